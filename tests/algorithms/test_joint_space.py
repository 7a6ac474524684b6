"""Loops in joint space, against maximal coordinates and against Lagrange's equation."""

from types import SimpleNamespace

import numpy as np
import pytest
from support import linkages
from support.closeness import assert_close
from support.mechanisms import with_armature

import kinetree as kt
from kinetree.algorithms import aba, crba
from kinetree.algorithms.closed import joint_space, maximal
from kinetree.algorithms.closed.constraints import LoopConstraints
from kinetree.algorithms.closed.inverse_dynamics import ClosedChainTerms, check_motion
from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import ShapeError, SingularError
from kinetree.joints import REPRESENTATIVES, Fixed, Prescribed, Prismatic, Revolute, Spherical
from kinetree.model import Loop, ModelBuilder
from kinetree.samples import random_inertia, random_placement, random_tree


@pytest.mark.covers(
    "RBDA 8.1", "RBDA 8.2", by=(joint_space.forward_dynamics, joint_space.constraint)
)
@pytest.mark.parametrize("y", [-2.0, 0.4, 1.3])
def test_planar_linkages_in_space_move_as_lagrange_says(linkage, rng, y):
    build, positions = linkage
    model, yd, u = build(rng), 3.1, 0.7
    q, G, g = linkages.explicit(positions, y, yd)
    s = joint_space.solution(model, q, G * yd, np.array([u, 0.0, 0.0]))
    ydd = linkages.lagrange(positions, y, yd, u)
    assert_close(s.qdd, G * ydd + g, ulps=1000, condition=10)
    assert (s.rank, s.redundancy) == (2, 3)


def closed(builder, rng, joint):
    """The chain that a builder holds, closed to the base by a joint where it happens to be."""
    tree = builder.build()
    q = tree.random_configuration(rng)
    X_0 = base_transforms(tree, joint_transforms(tree, q)[0])
    ground = joint.transform(joint.random(rng)).inverse() @ X_0[-1]
    last = tree.body_names[-1]
    builder.loop("closure", predecessor="base", successor=last, joint=joint, at=ground)
    model = builder.build()
    K = joint_space.constraint(model, q, np.zeros(model.nv)).implicit.K
    qd = rng.standard_normal(model.nv)
    return model, q, qd - np.linalg.pinv(K, rcond=1e-10) @ (K @ qd)


@pytest.mark.covers("RBDA 8.2", "RBDA 8.5", by=joint_space.solution)
@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_every_kind_of_joint_can_close_a_loop(rng, joint):
    """The same motion as all bodies and all joints at once."""
    builder = ModelBuilder("ring")
    for n, kind in enumerate((Spherical(), Revolute("y"), Spherical())):
        on = f"b{n - 1}" if n else None
        at, inertia = random_placement(rng), random_inertia(rng)
        builder.body(f"b{n}", on=on, joint=kind, at=at, inertia=inertia)
    model, q, qd = closed(builder, rng, joint)
    tau = rng.standard_normal(model.nv)
    for m in (model, with_armature(model, rng)):
        a, b = (s.solution(m, q, qd, tau) for s in (joint_space, maximal))
        condition = np.linalg.cond(crba.joint_space_inertia(m, q))
        assert_close(a.qdd, b.qdd, ulps=1000, condition=10 * condition)
        assert a.redundancy == b.redundancy
        error = m.loops and maximal.equations(m, q, qd, tau).joints[-1].rate
        assert_close(error, 0 * error, scale=10)


def test_constraint_rows_are_the_derivative_of_the_loop_velocity(rng):
    """d/dt (K qd) = K qdd - k along a motion, by central differences."""
    builder = ModelBuilder("ring")
    for n in range(3):
        at, inertia = random_placement(rng), random_inertia(rng)
        joint = Spherical() if n != 1 else Revolute("y")
        builder.body(f"b{n}", on=f"b{n - 1}" if n else None, joint=joint, at=at, inertia=inertia)
    model, q, qd = closed(builder, rng, Revolute("x"))
    h = 1e-5

    def velocity(t):
        q_t = model.integrate(q, qd * t)
        return joint_space.constraint(model, q_t, qd).implicit.K @ qd

    k = joint_space.constraint(model, q, qd).implicit.k
    rate = (velocity(h) - velocity(-h)) / (2 * h)
    assert np.max(np.abs(rate + k)) < 1e-8 * max(1.0, np.max(np.abs(k)))


def test_a_joint_that_time_moves_may_close_a_loop(rng):
    drive = Prescribed(Revolute("z"), lambda t: ([np.sin(t)], [np.cos(t)], [-np.sin(t)])).at(0.3)
    builder = ModelBuilder("driven").body(
        "b", joint=Revolute("z"), inertia=random_inertia(rng)
    ).loop("drive", predecessor="base", successor="b", joint=drive)  # fmt: skip
    model = builder.build()
    q, qd = np.array([np.sin(0.3)]), np.array([np.cos(0.3)])
    for method in ("implicit", "maximal"):
        qdd = kt.forward_dynamics(model, q, qd, np.zeros(1), method=method)
        assert_close(qdd, [-np.sin(0.3)], ulps=1000)


def test_redundant_loops_and_massless_bodies(linkage, rng):
    build, positions = linkage
    model, tau = build(rng), rng.standard_normal(3)
    loop = model.loops[0]
    again = Loop("again", loop.predecessor, loop.successor, loop.joint,
                 loop.predecessor_placement, loop.successor_placement)  # fmt: skip
    twice = model.replace(loops=(loop, again))
    q, G, _ = linkages.explicit(positions, 0.5, 2.0)
    a, b = (joint_space.solution(m, q, 2.0 * G, tau) for m in (model, twice))
    assert b.redundancy == a.redundancy + 5
    assert_close(b.qdd, a.qdd, ulps=1000, condition=10)
    light = model.replace(inertia={model.body_names[2]: kt.Inertia.zero()})
    a, b = (f.forward_dynamics(light, q, 2.0 * G, tau) for f in (joint_space, maximal))
    assert_close(a, b, ulps=1000, condition=10)


def test_trees_need_no_constraint(rng):
    model = random_tree(5, rng)
    q, (qd, tau) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    s = joint_space.solution(model, q, qd, tau)
    assert_close(s.qdd, aba.forward_dynamics(model, q, qd, tau), ulps=1000, condition=1000)
    assert (s.rank, s.redundancy, s.lam.size) == (0, 0, 0)
    empty = ModelBuilder().build()
    none = np.zeros(0)
    assert joint_space.forward_dynamics(empty, none, none, none).shape == (0,)


@pytest.mark.parametrize("coordinates", [joint_space, maximal])
def test_states_that_do_not_close_the_loop_are_rejected_by_name(coordinates):
    model = linkages.four_bar()
    q, G, _ = linkages.explicit(linkages.four_bar_positions, 0.5, 2.0)
    zero = np.zeros(3)
    with pytest.raises(ShapeError, match=r"q does not close loop 'pin'.*assemble the mechanism"):
        coordinates.forward_dynamics(model, q + np.array([0, 0.1, 0]), zero, zero)
    with pytest.raises(ShapeError, match=r"qd tears loop 'pin' apart.*project qd"):
        coordinates.forward_dynamics(model, q, np.array([0.0, 1.0, 0.0]), zero)
    accepted = coordinates.forward_dynamics(model, q, G, zero, closure_tolerance=np.inf)
    assert np.all(np.isfinite(accepted))


def test_a_loop_that_leaves_no_freedom_or_no_sense(rng):
    builder = ModelBuilder().body("b", joint=Revolute("z"), inertia=random_inertia(rng))
    model = builder.loop("weld", predecessor="base", successor="b", joint=Fixed()).build()
    s = joint_space.solution(model, np.zeros(1), np.zeros(1), np.ones(1))
    assert_close(s.qdd, [0.0], scale=1)
    assert_close(
        s.tau_c, -np.ones(1) + joint_space.rnea.bias_force(model, np.zeros(1), np.zeros(1))
    )
    drive = Prescribed(Revolute("z"), lambda t: ([0.0], [0.0], [1.0])).at(0.0)
    model = builder.loop("drive", predecessor="base", successor="b", joint=drive).build()
    with pytest.raises(SingularError, match="contradictory constraints"):
        joint_space.solution(model, np.zeros(1), np.zeros(1), np.zeros(1))


@pytest.mark.covers("RBDA 8.3", by=joint_space.constraint)
def test_stabilisation_is_that_of_maximal_coordinates():
    model = linkages.four_bar()
    q, G, _ = linkages.explicit(linkages.four_bar_positions, 0.5, 2.0)
    q, qd, tau = q + np.array([0, 1e-4, 0]), 2 * G + np.array([0, 0, 1e-4]), np.zeros(3)
    a, b = (
        f.forward_dynamics(model, q, qd, tau, stabilization=0.1) for f in (joint_space, maximal)
    )
    assert_close(a, b, ulps=1000, condition=100)


def test_a_gap_in_words_has_both_parts_and_the_size_of_the_loop():
    gap = np.array([0.0, 0.0, 0.1, 0.3, 0.0, 0.4])
    assert joint_space._in_words(gap, 2.0) == "0.1 rad and 0.5 m, 0.25 of its size"


def test_the_largest_error_is_named_with_its_unit():
    own = SimpleNamespace(units=("rad", "m"))
    assert joint_space._largest(np.array([0.1, -0.5]), own) == "0.5 m"


# --- by how much states miss the constraints -----------------------------------------------------


def tied(*functions):
    """Two carriages and a hinge, tied by functions."""
    builder = ModelBuilder("tied")
    for n, joint in enumerate((Prismatic("x"), Prismatic("y"), Revolute("z"))):
        builder.body(f"b{n}", joint=joint, inertia=kt.shapes.box(1, 1, 1, mass=1.0),
                     at=(2.0 * n, 0, 0))  # fmt: skip
    return builder.build().replace(constraints=functions)


def test_the_function_that_is_broken_is_named_with_its_largest_error():
    """Rows of the second constraint, of which one is off downwards; the first holds."""
    model = tied(
        kt.ConstraintFunction("first", position=lambda q: [q[0] - 2 * q[1]]),
        kt.ConstraintFunction("second", position=lambda q: [q[0] * q[2], q[2] - 5 * q[0]],
                              unit=["m", "rad"], rows=2),
    )  # fmt: skip
    q, zero = np.array([0.02, 0.01, 0.05]), np.zeros(3)
    rows = scaling(model).rows
    off = np.max(np.abs([0.001, -0.05]) * rows[1:])
    message = rf"q does not satisfy constraint 'second': its position error is 0.05 rad, {off:.3g} "
    with pytest.raises(ShapeError, match=message):
        joint_space.solution(model, q, zero, zero)
    q = np.zeros(3)
    with pytest.raises(ShapeError, match=r"qd does not .* 'second': its velocity error is 7 rad/s"):
        joint_space.solution(model, q, np.array([2.0, 1.0, 3.0]), zero)
    with pytest.raises(ShapeError, match=r"'first': its velocity error is 9 m/s"):
        joint_space.solution(model, q, np.array([1.0, 5.0, 5.0]), zero)
    assert np.all(np.isfinite(joint_space.solution(model, q, zero, zero).qdd))


def test_errors_of_states_are_pure_numbers_relative_to_the_speed():
    model = linkages.crank_slider()
    units = scaling(model)
    (length,) = set(1 / units.rows[2:])
    error = np.array([[0.0, 1e-3, 0, -4e-3, 0], [2e-3, 0, 0, 0, 1e-3]])
    rate = np.array([[0, 0, 0, 0, 3.0], [0, -0.2, 0.01, 0, 0]])
    qd = np.array([[0.1, 0.2, 8.0], [0.1, 0.1, 0.0]])
    c = LoopConstraints(None, None, error, rate)
    found = joint_space.ClosureErrors.of(model, c, qd)
    assert_close(found.position, [4e-3 / length, 2e-3])
    assert_close(found.velocity, [3.0 / length / (8.0 / length), 0.2])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("error", r"q does not satisfy loop 'pin': translation along y: it is off by 3, in sizes"),
        ("rate", r"qd does not satisfy loop 'pin': translation along y: it is off by 3, in sizes"),
        ("k", r"qdd does not satisfy loop 'pin': translation along y: it is off by 3, in sizes"),
    ],
)
def test_a_motion_that_opens_a_loop_is_off_in_sizes_of_the_loop(what, message):
    model = linkages.crank_slider()
    units, state = scaling(model), np.zeros(3)
    nothing = {name: np.zeros(5) for name in ("k", "error", "rate")}
    K = np.arange(15.0).reshape(5, 3)
    check_motion(model, ClosedChainTerms(K, **nothing, total=0, passive=0, B_loops=0), state, state)
    nothing[what] = np.array([0, 0, 0, 3 / units.rows[3], 0])
    terms = ClosedChainTerms(K, **nothing, total=0, passive=0, B_loops=0)
    if what == "k":  # half of it would pass, if the tolerance were
        check_motion(model, terms, state, state, tolerance=0.76)
    else:
        check_motion(model, terms, state, state, tolerance=3.01)
    with pytest.raises(ShapeError, match=message):
        check_motion(model, terms, state, state, tolerance=0.7)
    batch = terms._replace(**{what: np.stack([0 * nothing[what], nothing[what]])})
    with pytest.raises(ShapeError, match=r"sample \(1,\): " + message):
        check_motion(model, batch, state, state, tolerance=0.7)
