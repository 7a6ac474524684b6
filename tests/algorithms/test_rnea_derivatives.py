"""Recursive derivatives of inverse dynamics, against complex steps, 30 digits and Pinocchio."""

import mpmath
import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_close
from support.states import aligned_chain, floating_tree, random_external_forces, random_state

from kinetree import samples
from kinetree.algorithms import coriolis, crba, rnea, rnea_derivatives
from kinetree.algorithms.rnea_derivatives import inverse_dynamics_derivatives, is_applicable
from kinetree.errors import JointError
from kinetree.interop import pinocchio as P
from kinetree.joints import (
    REPRESENTATIVES,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prescribed,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Translation,
    Universal,
)  # fmt: skip
from kinetree.model import ModelBuilder
from kinetree.spatial import Force, rotx

KINDS = (
    Revolute("x"), Revolute((1.0, 2.0, -3.0)), Prismatic("z"), Helical("y", pitch=0.2), Fixed(),
    Cylindrical("z"), Planar("z"), Planar("x", translation="child"), Spherical(), Translation(),
    Screw((0.6, 0.0, 0.8, 0.3, -0.2, 0.1)), Free(), Free(translation="child"),
)  # fmt: skip


def along_q(model, function, q):
    """Derivative along every tangent direction, by complex steps."""
    rates = (model.configuration_rate(q, e) for e in np.eye(model.nv))
    columns = [np.imag(function(q + 1e-30j * rate)) * 1e30 for rate in rates]
    return np.reshape(columns, (model.nv, model.nv)).T


def along(function, x):
    columns = [np.imag(function(x + 1e-30j * e)) * 1e30 for e in np.eye(len(x))]
    return np.reshape(columns, (len(x), len(x))).T


def complex_step(model, q, qd, qdd, f_ext=None):
    f = rnea.inverse_dynamics
    return (
        along_q(model, lambda q: f(model, q, qd, qdd, f_ext), q),
        along(lambda qd: f(model, q, qd, qdd, f_ext), qd),
        along(lambda qdd: f(model, q, qd, qdd, f_ext), qdd),
    )


@pytest.mark.covers("Spencer 4.3", by=inverse_dynamics_derivatives)
@pytest.mark.parametrize("fixed_base", [True, False])
def test_derivatives_equal_the_complex_step(fixed_base, rng):
    for size in (1, 3, 7):
        model = samples.random_tree(size, rng, joints=KINDS)
        model = model if fixed_base else floating_tree(rng, size, KINDS)
        assert is_applicable(model)
        q, qd, qdd = random_state(model, rng)
        for f_ext in (None, random_external_forces(model, rng)):
            found = inverse_dynamics_derivatives(model, q, qd, qdd, f_ext)
            for d, exact in zip(found, complex_step(model, q, qd, qdd, f_ext), strict=True):
                assert_close(d, exact, ulps=300)


@pytest.mark.parametrize("joint", [j for j in REPRESENTATIVES if j.constant_subspace], ids=str)
def test_every_joint_with_constant_axes(joint, rng):
    model = floating_tree(rng, 2, (joint,)).replace(gravity=rng.standard_normal(3))
    q, qd, qdd = random_state(model, rng)
    found = inverse_dynamics_derivatives(model, q, qd, qdd)
    for d, exact in zip(found, complex_step(model, q, qd, qdd), strict=True):
        assert_close(d, exact, ulps=300)


class OwnJoint(Universal):
    """A joint of the user's, with axes that move."""


@pytest.mark.parametrize("in_bodies", [False, True], ids=["one frame", "in bodies"])
@pytest.mark.parametrize(
    "joint", [*(j for j in REPRESENTATIVES if not j.constant_subspace), OwnJoint("zx")], ids=str
)
def test_every_joint_whose_axes_move(joint, in_bodies, rng):
    flavour = rnea_derivatives.composite_bodies
    if in_bodies:
        flavour = rnea_derivatives.composite_bodies_in_body_coordinates
    on_base = samples.random_tree(3, rng, joints=(joint, Revolute("y")))
    beyond = floating_tree(rng, 3, (joint, Revolute((1.0, 2.0, -3.0))))
    for model in (on_base, beyond):
        assert is_applicable(model)
        q, qd, qdd = random_state(model, rng)
        for f_ext in (None, random_external_forces(model, rng)):
            found = inverse_dynamics_derivatives(model, q, qd, qdd, f_ext, composite_bodies=flavour)
            for d, exact in zip(found, complex_step(model, q, qd, qdd, f_ext), strict=True):
                assert_close(d, exact, ulps=1000)


def test_the_derivative_with_respect_to_qdd_is_the_inertia_matrix(rng):
    model = floating_tree(rng, 6, KINDS)
    q, qd, qdd = random_state(model, rng)
    d = inverse_dynamics_derivatives(model, q, qd, qdd)
    assert_close(d.dqdd, crba.joint_space_inertia(model, q), ulps=200)


def test_one_axis_joints_make_the_velocity_derivative_twice_the_coriolis_matrix(rng):
    model = aligned_chain(rng)
    q, qd, qdd = random_state(model, rng)
    d = inverse_dynamics_derivatives(model, q, qd, qdd)
    assert_close(d.dqd, 2 * coriolis.coriolis_matrix(model, q, qd), ulps=200)


def test_the_stiffness_of_gravity_is_symmetric(rng):
    model = aligned_chain(rng)
    q, zero = model.random_configuration(rng), model.zero_velocity
    dq = inverse_dynamics_derivatives(model, q, zero, zero).dq
    assert_close(dq, dq.T, ulps=100)


def test_thirty_digits(rng):
    builder = ModelBuilder("parallel frames")  # no rounded rotation in the model
    for i, joint in enumerate((Free(), Revolute("x"), Spherical(), Prismatic("y"))):
        on = f"body{i - 1}" if i else None
        at, inertia = rng.standard_normal(3), samples.random_inertia(rng)
        builder.body(f"body{i}", on=on, joint=joint, at=at, inertia=inertia)
    model = builder.build()
    with mpmath.workdps(60):
        exact = model.map_numbers(mpmath.mpf)
        q, qd, qdd = (
            np.array([mpmath.mpf(x) for x in s.tolist()]) for s in random_state(model, rng)
        )
        for at in (slice(3, 7), slice(8, 12)):  # quaternions of unit length to all digits
            q[at] = q[at] / mpmath.sqrt(q[at] @ q[at])
        d = inverse_dynamics_derivatives(exact, q, qd, qdd)
        h = mpmath.mpf(10) ** -18
        for j, e in enumerate(np.eye(model.nv, dtype=int)):
            ahead, back = (
                rnea.inverse_dynamics(exact, exact.integrate(q, s * h * e), qd, qdd)
                for s in (1, -1)
            )
            assert max(abs((ahead - back) / (2 * h) - d.dq[:, j])) < 1e-30


def test_pinocchio_agrees(rng):
    ours = samples.quadruped()
    theirs = P.to_model(ours)
    q, qd, qdd = random_state(ours, rng)
    x, A = P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, np.eye(ours.nv)).T
    data = theirs.createData()
    dq, dv, da = pin.computeRNEADerivatives(theirs, data, x, A @ qd, A @ qdd)
    found = inverse_dynamics_derivatives(ours, q, qd, qdd)
    H = np.triu(da) + np.triu(da, 1).T
    for d, theirs_ in zip(found, (dq, dv, H), strict=True):
        assert_close(d, A.T @ theirs_ @ A, ulps=2000)


DRIVEN = Prescribed(Revolute("z"), lambda t: ([t], [1.0], [0.0]))


def test_prescribed_joints_are_rejected():
    builder = ModelBuilder("mechanism")
    model = builder.body("link", joint=DRIVEN, at=rotx(0.1), joint_name="odd").build().at(0.5)
    assert not is_applicable(model)
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(JointError, match=r"do not cover joint 'odd'.*kinetree\.differentiate does"):
        inverse_dynamics_derivatives(model, q, v, v)


def test_external_forces_stay_where_they_are():
    model = samples.pendulum().replace(gravity=(0.0, 0.0, 0.0))
    q, zero = np.array([0.4]), np.zeros(1)
    f_ext = [None, Force(np.array([0.2, -0.1, 0.3]), np.array([1.0, 2.0, 0.5]))]
    d = inverse_dynamics_derivatives(model, q, zero, zero, f_ext)
    exact = along_q(model, lambda q: rnea.inverse_dynamics(model, q, zero, zero, f_ext), q)
    assert_close(d.dq, exact, ulps=20, scale=1.0)


@pytest.mark.parametrize("motion", [(0.0, 0.0), (2.0, 0.0), (0.0, 3.0), (2.0, 3.0)])
def test_a_drive_is_irregular_whether_it_turns_or_starts_to(motion, rng):
    drive = Prescribed(Revolute("z"), lambda t: ([0.3], [motion[0]], [motion[1]])).at(0.0)
    for joints in ((drive, Revolute("x")), (Revolute("x"), drive)):
        builder = ModelBuilder("driven")
        for n, joint in enumerate(joints):
            builder.body(f"b{n}", joint=joint, inertia=samples.random_inertia(rng))
        assert is_applicable(builder.build()) == (motion == (0.0, 0.0))
