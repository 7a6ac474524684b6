"""K, k and the errors of loops: identities that hold on and off the constraint manifold."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.constraints import (
    LoopConstraints,
    loop_constraints,
    loop_errors,
    loop_joint,
    loop_motion,
    loop_root,
    loop_signs,
)
from kinetree.algorithms.jacobians import all_jacobians
from kinetree.algorithms.kinematics import base_velocities
from kinetree.codegen.program import Argument, trace
from kinetree.errors import UnknownNameError
from kinetree.expr.interpret import run
from kinetree.joints import (
    REPRESENTATIVES,
    CustomJoint,
    Prescribed,
    Prismatic,
    Revolute,
    SphereInCylinder,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import rotz, xlt

CAM = CustomJoint(lambda q: xlt(0, 0.1 * kt.spatial.ops.cos(q[0]), 0) @ rotz(q[0]), 1)
SADDLE = CustomJoint(lambda q: rotz(q[1]) @ xlt(q[0], q[1], 0.3 * q[0] * q[1]), 2)
STEADY = Prescribed(Revolute("z"), lambda t: ([0.3 * t], [0.3], [0.0]))
SWINGING = Prescribed(Prismatic("x"), lambda t: ([0.1 + 0.2 * t + t * t], [0.2 + 2 * t], [2.0]))


def label(joint):
    """What a joint is called in every process: without addresses of functions."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(joint))


KINDS = [*REPRESENTATIVES, CAM, SADDLE]
CONSTANT = (kt.Revolute, kt.Prismatic, kt.Cylindrical, kt.Spherical, kt.Fixed)


def _mechanism(rng, joint, closing_on="tip"):
    """Two arms on a floating body; ``joint`` connects their ends, or one end and the base."""
    builder = ModelBuilder("arms")
    builder.body("hull", joint=kt.Free(), inertia=random_inertia(rng))
    for arm in ("left", "right"):
        on = "hull"
        for i, kind in enumerate((Revolute((1, 2, 3)), kt.Universal("xy"), Prismatic("y"))):
            name = f"{arm}{i}"
            builder.body(
                name, on=on, joint=kind, at=random_placement(rng), inertia=random_inertia(rng)
            )
            on = name
    builder.loop(
        "closure",
        predecessor="left2" if closing_on == "tip" else "base",
        successor="right2",
        joint=joint,
        at=random_placement(rng),
        successor_at=random_placement(rng),
    )
    return builder.build()


def _near_closure(rng, joint, size):
    """A mechanism whose loop is open by ``size``, and a state of it."""
    model = _mechanism(rng, joint)
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    (loop,) = model.loops
    X_J = loop_motion(model, loop, q, qd).X_J
    wanted = joint.transform(joint.random(rng))
    off = kt.spatial.exp(kt.Motion.from_array(size * rng.normal(size=6)))
    # Put the successor frame where the joint, or nearly the joint, wants it.
    placed = off @ wanted @ X_J.inverse() @ loop.successor_placement
    return model.replace(loops=[replace(loop, successor_placement=placed)]), q, qd


def _rate(f, h=1e-3):
    """Derivative of ``f`` at 0 by central differences of sixth order."""
    weights = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    return sum(w * (f(n * h) - f(-n * h)) for n, w in weights) / h


@pytest.mark.covers("RBDA 8.2", "RBDA 8.7", "RBDA Table 8.4", by=(loop_constraints, loop_joint))
@pytest.mark.parametrize("size", [0.0, 0.05], ids=["closed", "open"])
@pytest.mark.parametrize("joint", KINDS, ids=label)
def test_the_rate_of_K_qd_is_K_qdd_less_k_on_and_off_the_manifold(joint, size, rng):
    model, q, qd = _near_closure(rng, joint, size)
    qdd = rng.normal(size=model.nv)
    c = loop_constraints(model, q, qd)

    def velocity_error(t):
        moved = model.integrate(q, t * qd + t * t / 2 * qdd)
        return loop_constraints(model, moved, qd + t * qdd).rate

    assert_close(c.rate, c.K @ qd, ulps=1e4)
    expected = c.K @ qdd - c.k
    assert_close(
        _rate(velocity_error), expected, ulps=1e7, scale=1 + np.max(np.abs(c.K), initial=0) * 20
    )


@pytest.mark.covers("RBDA 8.3", "RBDA Table 8.1", by=loop_errors)
@pytest.mark.parametrize("joint", KINDS, ids=label)
def test_the_rate_of_the_error_is_the_velocity_error_up_to_the_size_of_the_error(joint, rng):
    for size in (0.0, 1e-3):
        model, q, qd = _near_closure(rng, joint, size)
        c = loop_constraints(model, q, qd)
        assert_close(loop_errors(model, q), c.error)
        rate = _rate(lambda t, m=model, q=q, v=qd: loop_errors(m, m.integrate(q, t * v)))
        slack = 40 * size * (1 + np.max(np.abs(qd)))
        np.testing.assert_allclose(rate, c.rate, atol=slack + 1e-8, rtol=0)
        assert np.max(np.abs(c.error), initial=0) <= 10 * size + 1e-13


@pytest.mark.covers("RBDA 3.5", "RBDA 8.2", by=loop_joint)
@pytest.mark.parametrize("joint", [STEADY, SWINGING], ids=["steady", "swinging"])
def test_time_moves_a_loop_joint(joint, rng):
    model = _mechanism(rng, joint)
    q, qd, qdd = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
    c = loop_constraints(model.at(0.4), q, qd)

    def velocity_error(t):
        moved = model.integrate(q, t * qd + t * t / 2 * qdd)
        return loop_constraints(model.at(0.4 + t), moved, qd + t * qdd).rate

    assert np.linalg.norm(c.rate - c.K @ qd) > 0.1
    assert_close(_rate(velocity_error), c.K @ qdd - c.k, ulps=1e7, scale=100)


@pytest.mark.covers("RBDA 8.7", by=loop_constraints)
@pytest.mark.parametrize("joint", KINDS, ids=label)
def test_the_short_formula_holds_for_constant_constraint_forces_only(joint, rng):
    model, q, qd = _near_closure(rng, joint, 0.0)
    m = loop_motion(model, model.loops[0], q, qd)
    T = m.X_s.T @ loop_joint(joint, m.X_J, m.v_J).T
    c, short = loop_constraints(model, q, qd), -(T.T @ m.a_J)
    if isinstance(joint, CONSTANT):
        assert_close(short, c.k)
    elif isinstance(joint, (kt.Universal, SphereInCylinder, CustomJoint)):
        assert np.max(np.abs(short - c.k)) > 1e-3


@pytest.mark.covers("RBDA 8.2", by=(loop_root, loop_signs))
def test_joints_above_the_loop_root_cancel_structurally(rng):
    model = _mechanism(rng, Revolute("z"))
    (loop,) = model.loops
    p, s = loop.predecessor, loop.successor
    assert loop_root(model, p, s) == 1
    signs = loop_signs(model, p, s)
    assert signs == {2: -1, 3: -1, 4: -1, 5: 1, 6: 1, 7: 1}
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    for coordinates in ("loop", "base"):
        K = loop_constraints(model, q, qd, coordinates=coordinates).K
        assert not np.any(K[:, model.v_slice[1]])
    assert loop_root(model, 0, s) == 0
    assert set(loop_signs(model, 0, s)) == set(model.support[s])


@pytest.mark.covers("RBDA 8.2", by=loop_constraints)
@pytest.mark.parametrize("closing_on", ["tip", "base"])
def test_K_is_the_difference_of_body_jacobians(closing_on, rng):
    model = _mechanism(rng, kt.Fixed(), closing_on)
    (loop,) = model.loops
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    X_0, v = base_velocities(model, q, qd)
    X_s = loop.successor_placement @ X_0[loop.successor]
    J = [np.zeros((6, model.nv)), *all_jacobians(model, q)]  # in base coordinates
    expected = X_s.to_matrix() @ (J[loop.successor] - J[loop.predecessor])
    c = loop_constraints(model, q, qd)
    assert_close(c.K, expected, ulps=1e4)
    assert_close(c.rate, (X_s @ (v[loop.successor] - v[loop.predecessor])).to_array(), ulps=1e4)


@pytest.mark.covers("RBDA 8.7", by=loop_constraints)
@pytest.mark.parametrize(
    "joint", [Revolute("z"), kt.Universal("xy"), SphereInCylinder("z")], ids=label
)
def test_coordinates_of_the_loop_and_of_the_base_agree(joint, rng):
    model, q, qd = _near_closure(rng, joint, 0.02)
    near, far = (loop_constraints(model, q, qd, coordinates=c) for c in ("loop", "base"))
    for a, b in zip(near, far, strict=True):
        assert_close(a, b, ulps=1e5)
    with pytest.raises(UnknownNameError, match=r"'loop' or 'base', got 'world'"):
        loop_constraints(model, q, qd, coordinates="world")


@pytest.mark.covers("RBDA 8.7", by=loop_constraints)
def test_far_from_the_base_only_base_coordinates_lose_digits(rng):
    model, q, qd = _near_closure(rng, Revolute("z"), 0.0)
    q = q.copy()
    q[model.q_slice[1]] = [1, 0, 0, 0, 0, 0, 0]
    far = q.copy()
    far[model.q_slice[1]][4:] = 1e6
    lost = {}
    for coordinates in ("loop", "base"):
        here, there = (loop_constraints(model, x, qd, coordinates=coordinates) for x in (q, far))
        lost[coordinates] = max(np.max(np.abs(a - b)) for a, b in zip(here, there, strict=True))
    assert lost["loop"] == 0
    assert lost["base"] > 1e-8


@pytest.mark.covers("RBDA 8.7", by=loop_constraints)
@pytest.mark.parametrize("joint", [*KINDS, STEADY.at(0.3)], ids=label)
def test_every_kind_of_loop_joint_can_be_compiled(joint, rng):
    model, q, qd = _near_closure(rng, joint, 0.01)

    def of_arrays(q, qd):
        return tuple(loop_constraints(model, q, qd))

    program = trace(of_arrays, [Argument("q", (model.nq,)), Argument("qd", (model.nv,))])
    found, expected = run(program, q, qd), loop_constraints(model, q, qd)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, ulps=1e4)


@pytest.mark.covers("RBDA 8.3", by=LoopConstraints.with_stabilization)
def test_stabilisation_pulls_errors_back(rng):
    model, q, qd = _near_closure(rng, Revolute("z"), 0.01)
    c = loop_constraints(model, q, qd)
    assert_close(c.with_stabilization(0.1), c.k - 20 * c.rate - 100 * c.error)


@pytest.mark.covers("RBDA 8.2", "RBDA 3.2", by=loop_constraints)
def test_couplings_leave_the_leaders(rng):
    model = kt.samples.four_bar()
    coupled = model.replace(couplings=[kt.Coupling("gear", 2, 1, (0.1, 2.0, 0.5))])
    q, qd = rng.normal(size=(2, 2))
    c = loop_constraints(coupled, q, qd)
    alone = loop_constraints(model, coupled.expand(q), coupled.expand_velocity(q, qd))
    G = np.array([[1, 0], [2.0 + q[0], 0], [0, 1]])
    assert_close(c.K, alone.K @ G)
    assert_close(c.k, alone.k - alone.K @ [0, qd[0] ** 2, 0], scale=1)
    assert_close(c.error, alone.error)
    assert_close(c.rate, alone.rate)
