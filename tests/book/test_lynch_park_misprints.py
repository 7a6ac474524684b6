"""Lynch & Park chapter 9 as printed in the draft: what is printed fails, what we compute holds.

The truth is the planar arm of 9.1.1 and chains of revolute, prismatic and helical joints, by
algorithms that do not follow the book's derivation.
"""

import numpy as np
import pytest
import sympy as sp
from scipy.linalg import block_diag, expm
from support.closeness import assert_close
from support.textbook import Arm, assert_printed, rate, two_link_arm

import kinetree as kt
from kinetree.algorithms import coriolis, crba, energy, jacobians, kinematics, rnea
from kinetree.model.poe import link_screws
from kinetree.samples import random_placement
from kinetree.spatial import dense
from kinetree.symbolic import lagrange_equations
from kinetree.textbook import stacked, state_space

c1, c2, s2 = np.cos(Arm.q[0]), np.cos(Arm.q[1]), np.sin(Arm.q[1])
c12 = np.cos(Arm.q.sum())
(w1, w2), (a1, a2) = Arm.qd, Arm.qdd
L1, L2, m1, m2, g = Arm.L1, Arm.L2, Arm.m1, Arm.m2, Arm.g


@pytest.fixture(scope="module")
def chain():
    """Six joints with axes anywhere: the state, and its joint forces by the Lagrangian."""
    rng = np.random.default_rng(9)
    joints = [kt.Revolute((1, 2, 2)), kt.Prismatic((2, -1, 2)), kt.Helical("y", pitch=0.3)]
    m = kt.samples.random_tree(6, rng, joints=joints, branching=0)
    return (m, *rng.standard_normal((3, m.nv)))


@pytest.mark.covers("Lynch & Park 9.1", by=rnea.inverse_dynamics)
def test_equations_of_the_planar_arm():
    """The second coefficient of tau1, and velocity and gravity terms of tau2, are misprinted."""
    inertia = ((m1 + m2) * L1**2 + m2 * (2 * L1 * L2 * c2 + L2**2)) * a1
    speed = m2 * L1 * L2 * s2
    weight = (m1 + m2) * g * L1 * c1 + m2 * g * L2 * c12
    printed = np.array([
        inertia + m2 * (L1 * L2 * c1 + L2**2) * a2 - speed * (2 * w1 * w2 + w2**2) + weight,
        m2 * (L1 * L2 * c2 + L2**2) * a1 + m2 * L2**2 * a2 - speed * w1 * w2 - m2 * g * L2 * c12,
    ])  # fmt: skip
    corrected = np.array([
        inertia + m2 * (L1 * L2 * c2 + L2**2) * a2 - speed * (2 * w1 * w2 + w2**2) + weight,
        m2 * (L1 * L2 * c2 + L2**2) * a1 + m2 * L2**2 * a2 + speed * w1**2 + m2 * g * L2 * c12,
    ])  # fmt: skip
    tau = kt.inverse_dynamics(two_link_arm(), Arm.q, Arm.qd, Arm.qdd)
    assert_close(tau, corrected)
    assert_printed(printed, (37.0140392896911, -3.83013260684166), 10)
    assert np.min(np.abs(tau - printed)) > 0.1


@pytest.mark.covers("Lynch & Park 9.1", by=energy.kinetic_energy)
def test_kinetic_energy_of_the_second_link():
    """The mass stands before the first of three terms only; it belongs to all."""
    for mass, K2, wrong in ((1.0, 0.0524026172252, None), (3.0, 0.157207851676, 0.556113164046)):
        first = (L1**2 + 2 * L1 * L2 * c2 + L2**2) * w1**2
        others = 2 * (L2**2 + L1 * L2 * c2) * w1 * w2 + L2**2 * w2**2
        both = energy.kinetic_energy(two_link_arm(m2=mass), Arm.q, Arm.qd)
        assert_printed(both - m1 * L1**2 * w1**2 / 2, K2, 12)
        assert_printed(mass * (first + others) / 2, K2, 12)
        if wrong is not None:
            assert_printed((mass * first + others) / 2, wrong, 12)
    K, P = 0.302402617225214, 6.787062713019292
    assert_printed(energy.kinetic_energy(two_link_arm(), Arm.q, Arm.qd), K, 14)
    assert_printed(energy.potential_energy(two_link_arm(), Arm.q), P, 14)


@pytest.mark.covers("Lynch & Park 9.1", by=(lagrange_equations, rnea.inverse_dynamics))
def test_lagrangian_as_printed_and_as_meant():
    q, v, a = (sp.symbols(f"{x}1 {x}2") for x in "qva")
    M1, M2, l1, l2, G = sp.symbols("M1 M2 l1 l2 G")
    c2 = sp.cos(q[1])
    brackets = [
        (l1**2 + 2 * l1 * l2 * c2 + l2**2) * v[0] ** 2,
        2 * (l2**2 + l1 * l2 * c2) * v[0] * v[1],
        l2**2 * v[1] ** 2,
    ]
    P = M1 * G * l1 * sp.sin(q[0]) + M2 * G * (l1 * sp.sin(q[0]) + l2 * sp.sin(sum(q)))
    K1 = M1 * l1**2 * v[0] ** 2 / 2
    numbers = dict(zip((M1, M2, l1, l2, G), (m1, 3.0, L1, L2, g), strict=True))
    numbers |= dict(zip((*q, *v, *a), (*Arm.q, *Arm.qd, *Arm.qdd), strict=True))
    tau = rnea.inverse_dynamics(two_link_arm(m2=3.0), Arm.q, Arm.qd, Arm.qdd)
    for K2, holds in (
        (M2 * sum(brackets) / 2, True),
        ((M2 * brackets[0] + brackets[1] + brackets[2]) / 2, False),
    ):
        f = lagrange_equations(K1 + K2 - P, q, v, a).subs(numbers)
        agrees = np.allclose(np.array(f, dtype=float).ravel(), tau, rtol=1e-12)
        assert agrees == holds


@pytest.mark.covers("Lynch & Park 9.1", by=coriolis.christoffel)
def test_christoffel_symbols_of_the_planar_arm():
    """Symmetric in the last two indices; four of them, and the polarised force, are not zero."""
    G = coriolis.christoffel(two_link_arm(), Arm.q)
    k = m2 * L1 * L2 * s2
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 1] = expected[0, 1, 0] = expected[0, 1, 1] = -k
    expected[1, 0, 0] = k
    assert_close(G, expected)


@pytest.mark.covers("Lynch & Park 9.3", by=link_screws)
def test_screw_of_a_joint_in_its_own_link_frame(rng):
    """(9.51) prints M_(i-1) where (9.40) has M_i."""
    S = [np.array([0, 0, 1, 0, 0, 0.0]), np.array([0, 0.6, 0.8, 0.1, -0.2, 0.15])]
    M = [random_placement(rng).to_pose() for _ in range(2)]
    q, h = rng.standard_normal(2), 1e-6

    def pose(q):
        return expm(_bracket(S[0]) * q[0]) @ expm(_bracket(S[1]) * q[1]) @ M[1]

    step = np.array([0, h])
    moved = (pose(q + step) - pose(q - step)) / (2 * h)
    twist = _vee(np.linalg.inv(pose(q)) @ moved)  # of link 2 along joint 2, in frame 2
    np.testing.assert_allclose(link_screws(S, M)[1], twist, atol=1e-8)
    printed = _adjoint(np.linalg.inv(M[0])) @ S[1]
    assert np.max(np.abs(printed - twist)) > 0.1


@pytest.mark.covers("Lynch & Park 9.3", by=kinematics.body_accelerations)
def test_acceleration_recursion_uses_the_transform_into_the_link(chain):
    """(9.47) and (9.58) print the transform of the other direction; and two right forms agree."""
    m, q, qd, qdd = chain
    X, v, a = kinematics.body_accelerations(m, q, qd, qdd)
    i = 4
    _, S, v_J, c_J = m.jcalc(i, q, qd)
    own = (S @ qdd[m.v_slice[i]] + c_J).to_array()
    V, A = v[i].to_array(), v_J.to_array()
    there = X[i].to_matrix()
    right = there @ a[i - 1].to_array() + dense.crm(V) @ A + own
    alternative = there @ a[i - 1].to_array() + dense.crm(there @ v[i - 1].to_array()) @ A + own
    printed = np.linalg.inv(there) @ a[i - 1].to_array() + dense.crm(V) @ A + own
    assert_close(a[i].to_array(), right)
    assert_close(a[i].to_array(), alternative)
    assert np.max(np.abs(printed - a[i].to_array())) > 0.1


@pytest.mark.covers("Lynch & Park 9.3", by=rnea.gravity_force)
def test_gravity_is_a_base_acceleration_upwards(chain):
    """Printed with a plus sign; the gradient of the potential energy decides."""
    m, q, *_ = chain
    gradient = [rate(lambda x: energy.potential_energy(m, x), m, q, e) for e in np.eye(m.nv)]
    gravity = rnea.gravity_force(m, q)
    assert_close(gravity, np.array(gradient), ulps=1e3)
    upside_down = rnea.gravity_force(m.replace(gravity=-m.gravity), q)
    assert np.max(np.abs(upside_down - gravity)) > 1


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.coriolis_force)
def test_sign_in_the_stacked_equations(chain):
    """(9.73), (9.78) and (9.83) print plus where the bracket term has minus."""
    m, q, qd, _ = chain
    A, G, Gamma, L = stacked.stacked_operators(m, q)
    V = L @ A @ qd
    own = block_diag(*(dense.crm(x) for x in (A @ qd).reshape(-1, 6)))
    all_ = block_diag(*(dense.crm(x) for x in V.reshape(-1, 6)))
    force = rnea.coriolis_force(m, q, qd)
    for sign, holds in ((-1, True), (1, False)):
        Vd = sign * L @ own @ Gamma @ V
        c = A.T @ L.T @ (G @ Vd - all_.T @ G @ V)
        assert np.allclose(c, force, rtol=1e-9, atol=1e-9) == holds
    assert_close(stacked.coriolis_force(m, q, qd), force, ulps=1e4)


@pytest.mark.covers("Lynch & Park 9.4", by=coriolis.coriolis_matrix)
def test_factor_of_9_83_is_no_passive_matrix_and_ours_is(chain):
    m, q, qd, _ = chain
    A, G, Gamma, L = stacked.stacked_operators(m, q)
    own = block_diag(*(dense.crm(x) for x in (A @ qd).reshape(-1, 6)))
    all_ = block_diag(*(dense.crm(x) for x in (L @ A @ qd).reshape(-1, 6)))
    factor = -A.T @ L.T @ (G @ L @ own @ Gamma + all_.T @ G) @ L @ A
    C = coriolis.coriolis_matrix(m, q, qd)
    assert_close(factor @ qd, C @ qd, ulps=1e4)
    Hd = rate(lambda x: crba.joint_space_inertia(m, x), m, q, qd)
    for matrix, holds in ((C, True), (factor, False)):
        N = Hd - 2 * matrix
        assert (np.max(np.abs(N + N.T)) < 1e-11 * np.max(np.abs(N))) == holds


@pytest.mark.covers("Lynch & Park 9.6", by=jacobians.frame_jacobian)
def test_joint_forces_after_substitution_of_task_velocities(chain):
    """(9.95) multiplies b by J⁻ᵀ too early; (9.96) is right."""
    m, q, qd, qdd = chain
    frame = m.frame(m.body_names[-1])
    J = jacobians.frame_jacobian(m, q, frame, "body")
    Jd = jacobians.frame_jacobian_rate(m, q, qd, frame, "body")
    H, b = crba.joint_space_inertia(m, q), rnea.bias_force(m, q, qd)
    V, Vd = J @ qd, Jd @ qd + J @ qdd
    J_inv = np.linalg.inv(J)
    acceleration = J_inv @ Vd - J_inv @ Jd @ J_inv @ V
    tau, condition = rnea.inverse_dynamics(m, q, qd, qdd), np.linalg.cond(J) ** 2
    assert_close(H @ acceleration + b, tau, ulps=1e3, condition=condition)
    assert np.max(np.abs(H @ acceleration + J_inv.T @ b - tau)) > 1


@pytest.mark.covers("Lynch & Park 9.5", by=state_space.state_derivative)
def test_euler_loop_runs_from_zero_and_uses_the_old_velocity():
    """Printed from 1 to N, it would skip the first step; N steps reach the end time."""
    m, h, steps = two_link_arm(), 0.01, 3
    x = np.concatenate([Arm.q, Arm.qd])
    states = [x]
    for _ in range(steps):
        states.append(states[-1] + h * state_space.state_derivative(m, states[-1], np.zeros(2)))
    assert_printed(states[1], (0.305, -0.712, 0.411032684, -1.1524318495), 9)
    assert_printed(states[3], (0.3123341277, -0.734599463, 0.2339541314, -1.064758085), 9)
    assert len(states) == steps + 1


@pytest.mark.covers(
    "Lynch & Park 9.1", "Lynch & Park 9.5", by=(kt.inverse_dynamics, kt.forward_dynamics)
)
def test_forces_along_a_trajectory_bring_the_trajectory_back():
    """Inverse and forward dynamics as problems over time: RK4 follows a given sine."""
    m, h, n = two_link_arm(), 0.01, 100
    amplitude = np.array([0.4, -0.6])

    def given(t):
        t = np.asarray(t)[..., None]
        return (
            amplitude * np.sin(2 * t),
            2 * amplitude * np.cos(2 * t),
            -4 * amplitude * np.sin(2 * t),
        )

    def f(t, x):
        return np.concatenate(
            [x[2:], kt.forward_dynamics(m, x[:2], x[2:], kt.inverse_dynamics(m, *given(t)))]
        )

    x = np.concatenate(given(0.0)[:2])
    for k in range(n):
        t = k * h
        k1 = f(t, x)
        k2 = f(t + h / 2, x + h / 2 * k1)
        k3 = f(t + h / 2, x + h / 2 * k2)
        k4 = f(t + h, x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(x, np.concatenate(given(n * h)[:2]), atol=1e-6)


@pytest.mark.covers("Lynch & Park 9.3", by=rnea.inverse_dynamics)
def test_the_tip_wrench_of_the_equations_acts_on_the_environment(chain):
    """The prose says on the link; with the equations' plus sign it is the other way round."""
    m, q, qd, qdd = chain
    frame = m.frame(m.body_names[-1])
    J = jacobians.frame_jacobian(m, q, frame, "world")
    on_link = np.array([0.3, -0.2, 0.5, 4.0, -3.0, 2.0])
    f_ext = {m.body_names[-1]: on_link}
    with_force = kt.inverse_dynamics(m, q, qd, qdd, f_ext)
    without = kt.inverse_dynamics(m, q, qd, qdd)
    assert_close(with_force, without + J.T @ -on_link, ulps=1e3)
    assert np.max(np.abs(with_force - (without + J.T @ on_link))) > 1


def _bracket(V):
    """4×4 form of a twist."""
    x, y, z = V[:3]
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[skew, V[3:, None]], [np.zeros((1, 4))]])


def _vee(T):
    return np.array([T[2, 1], T[0, 2], T[1, 0], *T[:3, 3]])


def _adjoint(T):
    R, p = T[:3, :3], T[:3, 3]
    skew = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    return np.block([[R, np.zeros((3, 3))], [skew @ R, R]])
