"""Recursive Newton–Euler algorithm against definitions, formulas on paper and published numbers."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from scipy.linalg import block_diag, expm
from support.closeness import assert_close
from support.textbook import (
    STEP,
    Arm,
    Figure1,
    Mixed,
    assert_printed,
    figure_1_tree,
    mixed_tree,
    point_mass,
    random_state,
    rate,
    two_link_arm,
)

from kinetree.algorithms import aba, crba, energy, jacobians, rnea
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.joints import Fixed, Free, Prismatic, Revolute, Screw
from kinetree.model import Model, ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Force, Inertia, Motion, Plucker, crf, dense


@pytest.mark.covers("RBDA 3.1", "RBDA 6.1", "Lynch & Park 9.1", by=rnea.inverse_dynamics)
@pytest.mark.parametrize("n", range(5))
def test_joint_forces_are_inertia_times_acceleration_plus_bias(n, rng):
    m, q, qd, qdd, f_ext = random_state(rng)
    tau = rnea.inverse_dynamics(m, q, qd, qdd, f_ext)
    H, C = crba.joint_space_inertia(m, q), rnea.bias_force(m, q, qd, f_ext)
    assert_close(H @ qdd + C, tau, scale=np.max(np.abs(H) @ np.abs(qdd) + np.abs(C)))
    assert_close(rnea.inertia_product(m, q, qdd), H @ qdd)


@pytest.mark.covers("RBDA 3.1", "RBDA 6.1", by=rnea.bias_force)
def test_a_tree_at_rest_without_gravity_needs_no_force(rng):
    m, q, *_ = random_state(rng)
    m = m.replace(gravity=(0.0, 0.0, 0.0))
    assert np.all(rnea.bias_force(m, q, m.zero_velocity) == 0)


@pytest.mark.covers("Lynch & Park 9.1", "Lynch & Park 9.3", by=rnea.inverse_dynamics)
def test_planar_arm_of_lynch_and_park():
    m = two_link_arm()
    assert_close(rnea.inverse_dynamics(m, Arm.q, Arm.qd, Arm.qdd), Arm.tau, ulps=8)
    assert_close(rnea.coriolis_force(m, Arm.q, Arm.qd), Arm.c, ulps=8)
    assert_close(rnea.gravity_force(m, Arm.q), Arm.gravity, ulps=8)
    assert_close(rnea.bias_force(m, Arm.q, Arm.qd), Arm.c + Arm.gravity, ulps=8)


@pytest.mark.covers("Lynch & Park 9.1", by=rnea.inverse_dynamics)
def test_planar_arm_symbolically_gives_the_equations_of_motion():
    """The printed equations have four misprints; these are the right ones."""
    L1, L2, m1, m2, g = sympy.symbols("L1 L2 m1 m2 g", positive=True)
    th1, th2, w1, w2, a1, a2 = sympy.symbols("th1 th2 w1 w2 a1 a2")
    m = two_link_arm(L1, L2, m1, m2, g)
    vectors = (np.array(pair, dtype=object) for pair in ((th1, th2), (w1, w2), (a1, a2)))
    tau = rnea.inverse_dynamics(m, *vectors)

    c1, c2, s2, c12 = sympy.cos(th1), sympy.cos(th2), sympy.sin(th2), sympy.cos(th1 + th2)
    M11 = (m1 + m2) * L1**2 + m2 * (2 * L1 * L2 * c2 + L2**2)
    M12 = m2 * (L1 * L2 * c2 + L2**2)
    tau1 = M11 * a1 + M12 * a2 - m2 * L1 * L2 * s2 * (2 * w1 * w2 + w2**2)
    tau1 += (m1 + m2) * g * L1 * c1 + m2 * g * L2 * c12
    tau2 = M12 * a1 + m2 * L2**2 * a2 + m2 * L1 * L2 * s2 * w1**2 + m2 * g * L2 * c12
    for actual, expected in zip(tau, (tau1, tau2), strict=True):
        assert sympy.simplify(sympy.expand_trig(actual - expected)) == 0


@pytest.mark.covers("Lynch & Park 9.1", by=rnea.inverse_dynamics)
def test_particle_on_a_vertical_line_symbolically():
    mass, g, x, v, a = sympy.symbols("m g x v a")
    model = (
        ModelBuilder("particle", gravity=(0, 0, -g))
        .body("particle", joint=Prismatic("z"), inertia=point_mass(mass, (0, 0, 0)))
        .build()
    )
    state = (np.array([s], dtype=object) for s in (x, v, a))
    (f,) = rnea.inverse_dynamics(model, *state)
    assert sympy.expand(f - (mass * a + mass * g)) == 0


@pytest.mark.covers("RBDA 5.3", by=(rnea.coriolis_force, crba.joint_space_inertia))
def test_planar_arm_with_extended_links(rng):
    """Masses, mass centres and inertias anywhere: the 2R formulas with relative angles."""
    m1, m2, c1, c2, l1, I1, I2 = rng.uniform(0.2, 2.0, 7)
    inertia = [
        Inertia.from_mass_center(m, (c, 0.0, 0.0), np.diag([0.3, 0.9, 1.0]) * I)
        for m, c, I in ((m1, c1, I1), (m2, c2, I2))
    ]
    m = (
        ModelBuilder("2R", gravity=(0.0, 0.0, 0.0))
        .body("a", joint=Revolute("z"), inertia=inertia[0])
        .body("b", on="a", joint=Revolute("z"), at=(l1, 0.0, 0.0), inertia=inertia[1])
        .build()
    )
    q, qd = rng.standard_normal((2, 2))
    h = m2 * l1 * c2
    H11 = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2) + 2 * h * np.cos(q[1])
    H12 = I2 + m2 * c2**2 + h * np.cos(q[1])
    H = np.array([[H11, H12], [H12, I2 + m2 * c2**2]])
    assert_close(crba.joint_space_inertia(m, q), H)
    c = h * np.sin(q[1]) * np.array([-2 * qd[0] * qd[1] - qd[1] ** 2, qd[0] ** 2])
    assert_close(rnea.coriolis_force(m, q, qd), c)


@pytest.mark.covers(
    "6-D Guide 2: Algorithm", "6-D Guide 2: A Computational Example", by=rnea.inverse_dynamics
)
def test_branched_tree_with_mixed_joints():
    m = mixed_tree()
    assert_printed(rnea.inverse_dynamics(m, Mixed.q, Mixed.qd, Mixed.qdd), Mixed.tau, 12)
    assert_printed(rnea.bias_force(m, Mixed.q, Mixed.qd), Mixed.bias, 12)


@pytest.mark.covers("Tutorial 5", "Tutorial 7", by=rnea.newton_euler)
@pytest.mark.parametrize("numbers", [Figure1.euler, Figure1.exponential], ids=["euler", "exp"])
def test_character_of_the_tutorial(numbers):
    m, q, qd, qdd = figure_1_tree(numbers["joint"]), Figure1.q, Figure1.qd, Figure1.qdd
    result = rnea.newton_euler(m, q, qd, qdd)
    assert_printed(result.tau, numbers["Q"], 8)
    assert_printed(rnea.coriolis_force(m, q, qd), numbers["C"], 8)
    assert_printed(rnea.gravity_force(m, q), numbers["gravity"], 8)
    assert_printed(result.f[1].linear, numbers["f1"], 8)
    assert_printed(result.f[1].angular, numbers["n1"], 8)
    assert_printed(np.diagonal(crba.joint_space_inertia(m, q)), numbers["diagonal"], 8)
    assert_printed(energy.kinetic_energy(m, q, qd), numbers["T"], 8)
    assert_printed(energy.potential_energy(m, q), numbers["U"], 8)
    velocity = jacobians.frame_velocity(m, q, qd, m.frame("link4"), "aligned", point=Figure1.c[3])
    assert_printed(velocity, (*numbers["w4"], *numbers["v4"]), 8)


@pytest.mark.covers("RBDA 5.3", by=rnea.newton_euler)
def test_gravity_is_an_acceleration_of_the_base(rng):
    """Accelerating the base by -a_g equals the force I a_g on every body."""
    m, q, qd, qdd, _ = random_state(rng)
    X_0 = base_transforms(m, joint_transforms(m, q)[0])
    weights = [None, *(X_0[i].inv_apply(m.inertia[i]) @ m.a_g for i in range(1, m.body_count + 1))]
    trick, explicit = (
        rnea.newton_euler(m, q, qd, qdd),
        rnea.newton_euler(m, q, qd, qdd, weights, gravity=False),
    )
    assert_close(explicit.tau, trick.tau)
    for i in range(1, m.body_count + 1):
        assert_close(explicit.f[i].to_array(), trick.f[i].to_array())
        true = trick.a[i] + X_0[i] @ m.a_g
        assert_close(explicit.a[i].to_array(), true.to_array(), scale=20)


@pytest.mark.covers("RBDA 5.3", "6-D Guide 2: Jacobians", by=rnea.inverse_dynamics)
def test_external_forces_act_through_the_transposed_jacobian(rng):
    """Forces on the bodies save that much joint force: virtual work."""
    m, q, qd, qdd, f_ext = random_state(rng)
    without = rnea.inverse_dynamics(m, q, qd, qdd)
    saved = sum(jacobians.body_jacobian(m, q, i).T @ f_ext[i] for i in range(1, m.body_count + 1))
    assert_close(rnea.inverse_dynamics(m, q, qd, qdd, f_ext), without - saved)


@pytest.mark.covers("RBDA 5.3", by=aba.forward_dynamics)
def test_pure_force_at_the_mass_center_of_a_free_body(rng):
    I = random_inertia(rng)
    builder = ModelBuilder("free", gravity=(0.0, 0.0, 0.0))
    m = builder.body("b", joint=Free(), inertia=I).build()
    q, f = m.random_configuration(rng), rng.standard_normal(3)
    X = m.joint[1].transform(q)
    c = X.r + X.E.T @ I.center_of_mass
    qdd = aba.forward_dynamics(m, q, np.zeros(6), np.zeros(6), [None, Force(np.cross(c, f), f)])
    assert_close(qdd[:3], np.zeros(3), scale=np.max(np.abs(qdd)))
    assert_close(X.E.T @ qdd[3:], f / I.mass)


def samples_free(I):
    from kinetree.joints import Free

    return ModelBuilder("free", gravity=(0.0, 0.0, 0.0)).body("b", joint=Free(), inertia=I).build()


@pytest.mark.covers("RBDA 5.3", by=rnea.newton_euler)
def test_sums_over_children_equal_accumulation_into_parents(rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=10)
    result = rnea.newton_euler(m, q, qd, qdd)
    X, v, a = result.X, result.v, result.a
    f = [None] * (m.body_count + 1)
    for i in range(m.body_count, 0, -1):
        f[i] = m.inertia[i] @ a[i] + crf(v[i], m.inertia[i] @ v[i])
        for j in m.children[i]:
            f[i] = f[i] + X[j].T @ f[j]
        assert_close(f[i].to_array(), result.f[i].to_array())


@pytest.mark.covers("RBDA 5.3", "Lynch & Park 9.3", by=rnea.newton_euler)
def test_bearing_carries_weight_and_centripetal_force():
    """A pendulum of mass m and length l passing at angle q with rate w: hand calculation."""
    mass, l, g, angle, w = 1.5, 0.4, 9.81, 0.6, 2.0
    m = (
        ModelBuilder("pendulum", gravity=(0.0, -g, 0.0))
        .body("bob", joint=Revolute("z"), inertia=point_mass(mass, (0.0, -l, 0.0)))
        .build()
    )
    qdd = -g / l * np.sin(angle)  # falls freely
    result = rnea.newton_euler(m, np.array([angle]), np.array([w]), np.array([qdd]))
    assert_close(result.tau, [0.0], scale=mass * g * l)
    tension = mass * (g * np.cos(angle) + l * w**2)
    assert_close(result.f[1].linear, [0.0, tension, 0.0])
    hold = rnea.inverse_dynamics(m, np.array([angle]), np.zeros(1), np.zeros(1))
    assert_close(hold, [mass * g * l * np.sin(angle)])


@pytest.mark.covers("RBDA 5.3", "Lynch & Park 9.1", by=rnea.gravity_force)
@pytest.mark.parametrize("n", range(4))
def test_gravity_force_is_the_gradient_of_potential_energy(n, rng):
    m, q, *_ = random_state(rng)
    g = rnea.gravity_force(m, q)
    gradient = [rate(lambda q: energy.potential_energy(m, q), m, q, e) for e in np.eye(m.nv)]
    assert_close(gradient, g, scale=np.max(np.abs(g)) + 10)
    X_0 = base_transforms(m, joint_transforms(m, q)[0])
    J = [jacobians.body_jacobian(m, q, i) for i in range(1, m.body_count + 1)]
    stripped = sum(
        J[i - 1].T @ -(X_0[i].inv_apply(m.inertia[i]) @ m.a_g) for i in range(1, m.body_count + 1)
    )  # RBDA (5.12), (5.13)
    assert_close(stripped, g)


@pytest.mark.covers("RBDA 5.3", "Tutorial 2", by=rnea.coriolis_force)
def test_coriolis_force_is_quadratic_in_velocity(rng):
    m, q, qd, *_ = random_state(rng)
    c = rnea.coriolis_force(m, q, qd)
    assert_close(rnea.coriolis_force(m, q, 2 * qd), 4 * c)
    bias = rnea.bias_force(m, q, qd)
    assert_close(c + rnea.gravity_force(m, q), bias, scale=np.max(np.abs(bias)) + 10)


@pytest.mark.covers("RBDA 5.3", by=rnea.inverse_dynamics)
def test_complex_step_along_acceleration_is_a_column_of_inertia(rng):
    m, q, qd, qdd, _ = random_state(rng)
    H = crba.joint_space_inertia(m, q)
    for k in range(m.nv):
        step = qdd + 1j * STEP * np.eye(m.nv)[k]
        assert_close(rnea.inverse_dynamics(m, q, qd, step).imag / STEP, H[:, k])


def _mp(x):
    return np.array([mpmath.mpf(float(value)) for value in x], dtype=object)


@pytest.mark.covers(
    "RBDA Table 5.1", "RBDA Table 6.2", "RBDA Table 7.1",
    by=(rnea.inverse_dynamics, crba.joint_space_inertia, aba.forward_dynamics),
)  # fmt: skip
@pytest.mark.parametrize("n", range(3))
def test_rounding_errors_against_fifty_digits(n, rng):
    """A few units in the last place of the largest number; times the condition of H for ABA."""
    m, q, qd, qdd, _ = random_state(rng, bodies=6)
    with mpmath.workdps(50):
        exact_tau = rnea.inverse_dynamics(m, _mp(q), _mp(qd), _mp(qdd))
        exact_H = crba.joint_space_inertia(m, _mp(q))
        tau = exact_tau.astype(float)
        exact_qdd = aba.forward_dynamics(m, _mp(q), _mp(qd), _mp(tau)).astype(float)
    assert_close(rnea.inverse_dynamics(m, q, qd, qdd), tau, ulps=50)
    H = crba.joint_space_inertia(m, q)
    assert_close(H, exact_H.astype(float), ulps=50)
    d = np.sqrt(np.diagonal(H))
    condition = np.linalg.cond(H / np.outer(d, d))
    assert_close(aba.forward_dynamics(m, q, qd, tau), exact_qdd, ulps=50, condition=condition)


def test_fractions_stay_exact():
    g, m1, m2 = Fraction(981, 100), Fraction(3, 7), Fraction(5, 11)
    m = (
        ModelBuilder("gantry", gravity=(0, 0, -g))
        .body("bridge", joint=Prismatic("x"), inertia=point_mass(m1, (0, 0, 0)))
        .body("hook", on="bridge", joint=Prismatic("z"), inertia=point_mass(m2, (0, 0, 0)))
        .build()
    )
    q, qd, qdd = (np.array([Fraction(1, n), Fraction(2, n)]) for n in (3, 5, 7))
    tau = rnea.inverse_dynamics(m, q, qd, qdd)
    assert tau.tolist() == [(m1 + m2) * qdd[0], m2 * (qdd[1] + g)]
    assert crba.joint_space_inertia(m, q).tolist() == [[m1 + m2, 0], [0, m2]]


def test_models_without_freedom_have_empty_joint_forces():
    fixed = ModelBuilder("bracket").body("plate", joint=Fixed(), inertia=Inertia.zero()).build()
    for m in (Model(), fixed):
        nothing = np.zeros(0)
        assert rnea.inverse_dynamics(m, nothing, nothing, nothing).shape == (0,)
        assert crba.joint_space_inertia(m, nothing).shape == (0, 0)
        assert crba.forward_dynamics(m, nothing, nothing, nothing).shape == (0,)


# --- Lynch & Park's own algorithm, in frames at the mass centres ---------------------------------


def _bracket(V):
    """4×4 form of a twist."""
    w, v = V[:3], V[3:]
    return np.block([[np.cross(np.eye(3), w), v[:, None]], [np.zeros((1, 4))]])


def _adjoint(T):
    R, p = T[:3, :3], T[:3, 3]
    P = np.cross(np.eye(3), p)
    return np.block([[R, np.zeros((3, 3))], [P @ R, R]])


def lynch_park_inverse_dynamics(M, A, G, g, theta, dtheta, ddtheta, F_tip):
    """Equations (9.50)–(9.57) with the adjoints and the sign of gravity corrected.

    ``F_tip`` is what the last link exerts on the environment, in the tip frame ``M[n]``.
    """
    n = len(A)
    V, Vd = [np.zeros(6)], [np.concatenate([np.zeros(3), -g])]
    Ad = []
    for i in range(n):
        T = M[i] @ expm(_bracket(A[i]) * theta[i])
        Ad.append(_adjoint(np.linalg.inv(T)))
        V.append(Ad[i] @ V[i] + A[i] * dtheta[i])
        Vd.append(Ad[i] @ Vd[i] + dense.crm(V[i + 1]) @ A[i] * dtheta[i] + A[i] * ddtheta[i])
    Ad.append(_adjoint(np.linalg.inv(M[n])))
    F, tau = F_tip, np.zeros(n)
    for i in reversed(range(n)):
        momentum = G[i] @ V[i + 1]
        F = Ad[i + 1].T @ F + G[i] @ Vd[i + 1] - dense.crm(V[i + 1]).T @ momentum
        tau[i] = F @ A[i]
    return tau


@pytest.mark.covers("Lynch & Park 9.3", by=rnea.inverse_dynamics)
@pytest.mark.parametrize("n", range(3))
def test_newton_euler_in_frames_at_the_mass_centers(n, rng):
    """Revolute, prismatic and helical joints with axes anywhere, and a force at the tip."""
    twists = [(0, 0, 1, 0.2, 0.1, 0), (0, 0, 0, 0.6, 0, 0.8), (0.6, 0.8, 0, 0.1, -0.3, 0.4)] * 2
    A = [np.array(Screw(t).twist) for t in twists]
    M = [random_placement(rng).to_pose() for _ in range(len(A) + 1)]
    G, builder, parent = [], ModelBuilder("chain", gravity=(1.0, -2.0, -9.0)), None
    for i, twist in enumerate(twists):
        cloud = random_inertia(rng)
        I = Inertia.from_mass_center(cloud.mass, np.zeros(3), cloud.rotational_at_center)
        G.append(block_diag(I.rotational, I.mass * np.eye(3)))
        name = f"link{i}"
        builder.body(name, on=parent, joint=Screw(twist), at=Plucker.from_pose(M[i]), inertia=I)
        parent = name
    m = builder.frame("tip", on=parent, at=Plucker.from_pose(M[-1])).build()
    q, qd, qdd = rng.standard_normal((3, m.nv))
    F_tip = rng.standard_normal(6)
    expected = lynch_park_inverse_dynamics(M, A, G, m.gravity, q, qd, qdd, F_tip)

    J = jacobians.frame_jacobian(m, q, m.frame("tip"), "body")
    tau, *_, f = rnea.newton_euler(m, q, qd, qdd)
    scale = max(np.max(np.abs(f_i.to_array())) for f_i in f[1:])
    assert_close(tau + J.T @ F_tip, expected, ulps=300, scale=scale)

    X = Plucker.from_pose(jacobians.frame_pose(m, q, m.frame("tip")))
    on_robot = [Force.zero() if i < m.body_count else X.T @ Force.from_array(-F_tip)
                for i in range(m.body_count + 1)]  # fmt: skip
    assert_close(rnea.inverse_dynamics(m, q, qd, qdd, on_robot), expected, ulps=300, scale=scale)


@pytest.mark.covers("Lynch & Park 9.3", by=rnea.newton_euler)
def test_joint_forces_satisfy_the_equation_of_every_body(rng):
    """What the parent gives minus what the children take is the rate of momentum."""
    m, q, qd, qdd, _ = random_state(rng)
    result = rnea.newton_euler(m, q, qd, qdd)
    for i in range(1, m.body_count + 1):
        net = result.f[i] - sum(
            (result.X[j].T @ result.f[j] for j in m.children[i]), start=Force.zero()
        )
        momentum = m.inertia[i] @ result.v[i]
        moved = m.inertia[i] @ result.a[i] + crf(result.v[i], momentum)
        assert_close(net.to_array(), moved.to_array(), scale=np.max(np.abs(result.f[i].to_array())))
    assert isinstance(result.v[1], Motion)
