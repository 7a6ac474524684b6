"""Energy, momentum and power; Lagrange's equations against Newton's and Euler's."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import STEP, Arm, random_state, rate, two_link_arm

import kinetree as kt
from kinetree.algorithms import coriolis, crba, energy, rnea
from kinetree.joints import (
    Cylindrical,
    Euler,
    Exponential,
    Free,
    Helical,
    Prismatic,
    RackAndPinion,
    Revolute,
    Spherical,
    Translation,
    Universal,
)

COORDINATES = (
    Revolute("x"), Prismatic((1.0, 2.0, 2.0)), Helical("y", pitch=0.2), Cylindrical("z"),
    Universal("xy"), Euler("zyx"), Exponential(), RackAndPinion(0.3), Translation(),
)  # fmt: skip
"""Joints whose velocity variables are the rates of their positions."""


def gradient(function, x):
    """Derivative by complex steps along the axes of ``x``, as the last axis."""
    steps = np.eye(len(x))
    return np.stack([function(x + 1j * STEP * e).imag / STEP for e in steps], axis=-1)


def scale_of(m, q, qd):
    return np.max(np.abs(crba.joint_space_inertia(m, q))) * (10 + qd @ qd)


@pytest.mark.covers("Lynch & Park 9.1", "RBDA 3.1", by=energy.generalized_momentum)
@pytest.mark.parametrize("n", range(2))
def test_momentum_is_the_slope_of_kinetic_energy_and_inertia_its_curvature(n, rng):
    m, q, qd, *_ = random_state(rng)
    p, H = energy.generalized_momentum(m, q, qd), crba.joint_space_inertia(m, q)
    scale = scale_of(m, q, qd)
    assert_close(p, H @ qd, scale=scale)
    assert_close(p, gradient(lambda qd: energy.kinetic_energy(m, q, qd), qd), scale=scale)
    curvature = gradient(lambda qd: energy.generalized_momentum(m, q, qd), qd)
    assert_close(curvature, H, scale=scale)
    assert_close(kt.generalized_momentum(m, q, qd), p, scale=scale)


@pytest.mark.covers(
    "Lynch & Park 9.1", "Tutorial 2", "Tutorial 4", by=(rnea.inverse_dynamics, energy.total_energy)
)
@pytest.mark.parametrize("n", range(2))
def test_lagrange_is_newton_and_euler(n, rng):
    """``d/dt ∂T/∂qd - ∂T/∂q + ∂U/∂q``, differentiated exactly, on joints with coordinates."""
    m, q, qd, qdd, _ = random_state(rng, joints=COORDINATES)
    moved = q + 1j * STEP * qd, qd + 1j * STEP * qdd
    dp_dt = energy.generalized_momentum(m, *moved).imag / STEP
    dT_dq = gradient(lambda q: energy.kinetic_energy(m, q, qd), q)
    dU_dq = gradient(lambda q: energy.potential_energy(m, q), q)
    tau = rnea.inverse_dynamics(m, q, qd, qdd)
    assert_close(dp_dt - dT_dq + dU_dq, tau, scale=scale_of(m, q, qd))


@pytest.mark.covers("Lynch & Park 9.1", by=rnea.inverse_dynamics)
@pytest.mark.parametrize("n", range(2))
def test_lagrange_with_rotating_velocity_axes(n, rng):
    """Boltzmann and Hamel: the momentum of a joint with body-fixed axes also turns with it."""
    kinds = [Spherical(), Free(), Revolute("y")]
    m, q, qd, qdd, _ = random_state(rng, joints=kinds)
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    p = energy.generalized_momentum(m, q, qd)
    result = energy.generalized_momentum(m, *moved).imag / STEP
    for k, e in enumerate(np.eye(m.nv)):
        result[k] -= rate(lambda q: energy.kinetic_energy(m, q, qd), m, q, e)
        result[k] += rate(lambda q: energy.potential_energy(m, q), m, q, e)
    for i in range(1, m.body_count + 1):
        at = m.v_slice[i]
        if isinstance(m.joint[i], Spherical):
            result[at] += np.cross(qd[at], p[at])
        if isinstance(m.joint[i], Free):
            v, h = kt.Motion.from_array(qd[at]), kt.Force.from_array(p[at])
            result[at] += v.cross(h).to_array()
    assert_close(result, rnea.inverse_dynamics(m, q, qd, qdd), scale=scale_of(m, q, qd))


@pytest.mark.covers("Lynch & Park 9.1", by=kt.inverse_dynamics)
def test_lagrange_by_compiled_derivatives(rng):
    m = kt.samples.random_tree(4, rng, joints=COORDINATES)
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    T_q, T_qd = kt.differentiate(kt.kinetic_energy, wrt=("q", "qd"))(m, q, qd)
    p_q, H = kt.differentiate(kt.generalized_momentum, wrt=("q", "qd"))(m, q, qd)
    U_q = kt.differentiate(kt.potential_energy, wrt="q")(m, q)
    scale = scale_of(m, q, qd)
    assert_close(T_qd, kt.generalized_momentum(m, q, qd), scale=scale)
    tau = kt.inverse_dynamics(m, q, qd, qdd)
    assert_close(H @ qdd + p_q @ qd - T_q + U_q, tau, scale=scale)


@pytest.mark.covers("Lynch & Park 9.4", "Tutorial 2", by=energy.mass_matrix_rate)
@pytest.mark.parametrize("n", range(2))
def test_rate_of_the_inertia_matrix(n, rng):
    m, q, qd, *_ = random_state(rng)
    expected = rate(lambda q: crba.joint_space_inertia(m, q), m, q, qd)
    scale = scale_of(m, q, qd)
    assert_close(energy.mass_matrix_rate(m, q, qd), expected, scale=scale)
    assert_close(kt.mass_matrix_rate(m, q, qd), expected, scale=scale)
    C = coriolis.coriolis_matrix(m, q, qd)
    assert_close(expected - 2 * C, 2 * C.T - expected, scale=scale)


@pytest.mark.covers("Lynch & Park 9.1", by=kt.generalized_momentum)
def test_planar_arm_of_lynch_and_park():
    m = two_link_arm()
    assert_close(kt.generalized_momentum(m, Arm.q, Arm.qd), Arm.M @ Arm.qd, ulps=10)


@pytest.mark.covers("RBDA 2.12", "RBDA 5.3", by=(kt.power_balance, kt.generalized_force))
@pytest.mark.parametrize("n", range(2))
def test_power_of_all_forces_feeds_the_energies(n, rng):
    m, q, qd, tau, f_ext = random_state(rng)
    forces = np.array([f.to_array() for f in f_ext[1:]])
    power = kt.power_balance(m, q, qd, tau, forces)
    outside = sum(
        kt.velocity(m, q, qd, name) @ f for name, f in zip(m.body_names[1:], forces, strict=True)
    )
    scale = 100 * scale_of(m, q, qd)
    assert_close(power.external, outside, scale=scale)
    assert_close(power.joints, tau @ qd)
    qdd = kt.forward_dynamics(m, q, qd, tau, forces)
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    assert_close(power.kinetic, energy.kinetic_energy(m, *moved).imag / STEP, scale=scale)
    assert_close(power.potential, energy.potential_energy(m, moved[0]).imag / STEP, scale=scale)
    assert_close(power.residual, 0.0, scale=scale, condition=1e3)
    alone = kt.power_balance(m, np.tile(q, (2, 1)), qd, tau)
    assert alone.residual.shape == (2,)
    assert np.all(alone.external == 0)


@pytest.mark.covers("Tutorial 6", by=kt.generalized_force)
def test_generalized_forces_have_the_power_of_the_forces(rng):
    m, q, qd, qdd, f_ext = random_state(rng)
    forces = np.array([f.to_array() for f in f_ext[1:]])
    Q = kt.generalized_force(m, q, forces)
    J = kt.jacobians(m, q, frame="world")
    assert_close(Q, np.einsum("ikj,ik->j", J, forces), scale=100)
    without, with_forces = (kt.inverse_dynamics(m, q, qd, qdd, f) for f in (None, forces))
    assert_close(without - with_forces, Q, scale=10 * scale_of(m, q, qd))


# --- quasi-velocities ----------------------------------------------------------------------------


def hand_velocity(m, q):
    """A planar arm moved by the velocity of its hand: ``qd = J⁻¹ y``."""
    (a, b), (c, d) = kt.jacobian(m, q, "tip", frame="aligned")[3:5]
    return np.array([[d, -b], [-c, a]]) / (a * d - b * c)


@pytest.mark.covers("RBDA 3.1", "RBDA 3.2", by=kt.quasi_velocity_dynamics)
def test_hand_velocities_in_place_of_joint_velocities_give_the_operational_space():
    m = two_link_arm()
    J = kt.jacobian(m, Arm.q, "tip", frame="aligned")[3:5]
    y = J @ Arm.qd
    equation = kt.quasi_velocity_dynamics(m, Arm.q, y, hand_velocity)
    Lambda, mu, p = kt.operational_space_dynamics(
        m, Arm.q, Arm.qd, "tip", frame="aligned", rows=("x", "y")
    )
    cond = np.linalg.cond(J) ** 2
    assert_close(equation.qd, Arm.qd, condition=cond)
    assert_close(equation.inertia, Lambda, condition=cond)
    assert_close(equation.bias, mu + p, condition=cond)
    batch = kt.quasi_velocity_dynamics(m, np.tile(Arm.q, (3, 1)), y, hand_velocity)
    assert_close(batch.bias[2], equation.bias)


@pytest.mark.covers("RBDA 3.2", by=kt.quasi_velocity_dynamics)
def test_quasi_velocities_of_a_skate():
    """A sled that moves along its own axis and turns: no sideways motion, two velocities.

    The equations are ``m (vd + a w²) = f`` and ``(I + m a²) wd + ... = n`` of the Chaplygin sleigh.
    """
    a, mass, I_c = 0.3, 2.0, 0.5
    inertia = kt.Inertia.from_mass_center(mass, (a, 0, 0), np.diag([0.4, 0.4, I_c]))
    m = (
        kt.ModelBuilder("sleigh", gravity=(0, 0, 0))
        .body("x", joint=kt.Prismatic("x"))
        .body("y", on="x", joint=kt.Prismatic("y"))
        .body("sled", on="y", joint=kt.Revolute("z"), inertia=inertia)
        .build()
    )

    def along_the_blade(m, q):
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([[c, 0], [s, 0], [0, 1]])

    q, (v, w) = np.array([0.4, -0.2, 1.1]), (1.5, -0.7)
    equation = kt.quasi_velocity_dynamics(m, q, (v, w), along_the_blade)
    assert_close(equation.inertia, np.diag([mass, I_c + mass * a**2]), ulps=20)
    assert_close(equation.bias, [-mass * a * w**2, mass * a * v * w], ulps=20)
    with pytest.raises(kt.ShapeError, match="k = 2 as B; got"):
        kt.quasi_velocity_dynamics(m, q, (1.0, 2.0, 3.0), along_the_blade)
    with pytest.raises(kt.ShapeError, match=r"B must return \(nv, k\) with nv = 3"):
        kt.quasi_velocity_dynamics(m, q, (1.0,), lambda m, q: np.array([[q[0]], [q[1]]]))
