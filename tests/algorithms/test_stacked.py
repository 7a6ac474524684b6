"""The stacked equations of Lynch & Park 9.4, with their signs put right."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import Arm, random_state, rate, two_link_arm

import kinetree as kt
from kinetree import samples
from kinetree.algorithms import crba, jacobians, kinematics, rnea, sparsity
from kinetree.joints import Free, Prescribed, Prismatic, Revolute, Spherical
from kinetree.model import Frame, Model, edit
from kinetree.spatial import Inertia, Plucker, dense, rot, rx
from kinetree.textbook import stacked


def stack(motions):
    return np.concatenate([v.to_array() for v in motions[1:]])


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.stacked_operators)
def test_gamma_is_nilpotent_and_l_is_its_geometric_series(rng):
    m, q, *_ = random_state(rng)
    _, _, Gamma, L = stacked.stacked_operators(m, q)
    depth = max(len(kappa) for kappa in m.support)
    one, power = np.eye(len(Gamma)), np.eye(len(Gamma))
    series = np.zeros_like(Gamma)
    for _ in range(depth):
        series, power = series + power, power @ Gamma
    assert not np.any(power)
    assert np.any(np.linalg.matrix_power(Gamma, depth - 1))
    assert_close(L, series)
    assert_close(L @ (one - Gamma), one, scale=np.max(np.abs(L)) ** 2)


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.stacked_operators)
def test_rows_of_l_times_a_are_the_body_jacobians(rng):
    m, q, *_ = random_state(rng)
    A, _, _, L = stacked.stacked_operators(m, q)
    J = (L @ A).reshape(m.body_count, 6, m.nv)
    for i in range(1, m.body_count + 1):
        expected = jacobians.frame_jacobian(m, q, m.frame(m.body_names[i]), "body")
        assert_close(J[i - 1], expected, scale=10)


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.stacked_operators)
def test_recursions_satisfy_the_implicit_equations(rng):
    """(9.72)–(9.75): velocities, accelerations, forces and joint forces of all bodies at once."""
    m, q, qd, qdd, _ = random_state(rng)
    A, G, Gamma, _ = stacked.stacked_operators(m, q)
    result = rnea.newton_euler(m, q, qd, qdd)
    V, Vd, F = stack(result.v), stack(result.a), stack(result.f)
    bodies = range(1, m.body_count + 1)
    base = [
        (result.X[i] @ -m.a_g if m.parent[i] == 0 else m.zero_motion).to_array() for i in bodies
    ]
    Vd_base = np.concatenate(base)
    c_J = np.concatenate([m.jcalc(i, q, qd)[3].to_array() for i in bodies])
    ad_V, ad_A = stacked._ad(V), stacked._ad(A @ qd)
    assert_close(Gamma @ V + A @ qd, V, scale=20)
    acceleration = Gamma @ Vd + A @ qdd + c_J - ad_A @ (Gamma @ V) + Vd_base
    assert_close(acceleration, Vd, scale=20 + np.max(np.abs(Vd)))
    force = Gamma.T @ F + G @ Vd - ad_V.T @ G @ V
    assert_close(force, F, scale=20 + np.max(np.abs(F)))
    assert_close(A.T @ F, result.tau, scale=20 + np.max(np.abs(F)))


@pytest.mark.covers(
    "Lynch & Park 9.4",
    by=(stacked.joint_space_inertia, stacked.coriolis_force, stacked.gravity_force),
)
@pytest.mark.parametrize("n", range(4))
def test_closed_forms_equal_the_recursive_algorithms(n, rng):
    m, q, qd, *_ = random_state(rng)
    H, g = crba.joint_space_inertia(m, q), rnea.gravity_force(m, q)
    assert_close(stacked.joint_space_inertia(m, q), H)
    assert_close(stacked.gravity_force(m, q), g, scale=10 + np.max(np.abs(g)))
    c = rnea.coriolis_force(m, q, qd)
    assert_close(stacked.coriolis_force(m, q, qd), c, scale=np.max(np.abs(H)) * (1 + qd @ qd))


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.coriolis_force)
def test_planar_arm_of_lynch_and_park():
    m = two_link_arm()
    assert_close(stacked.joint_space_inertia(m, Arm.q), Arm.M, ulps=10)
    assert_close(stacked.coriolis_force(m, Arm.q, Arm.qd), Arm.c, ulps=20)
    assert_close(stacked.gravity_force(m, Arm.q), Arm.gravity, ulps=10)


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.stacked_operators)
def test_factor_without_the_last_velocity_is_not_the_passive_matrix(rng):
    """Dropping the trailing qd from (9.83) gives a C with C qd = c whose dH/dt - 2C is not skew."""
    m = samples.chain(4)
    q, qd = m.random_configuration(rng), rng.standard_normal(4)
    A, G, Gamma, L = stacked.stacked_operators(m, q)
    V = L @ A @ qd
    ad_A, ad_V = stacked._ad(A @ qd), stacked._ad(V)
    C = -A.T @ L.T @ (G @ L @ ad_A @ Gamma + ad_V.T @ G) @ L @ A
    H = crba.joint_space_inertia(m, q)
    assert_close(C @ qd, rnea.coriolis_force(m, q, qd), scale=np.max(np.abs(H)) * (1 + qd @ qd))
    N = rate(lambda q: crba.joint_space_inertia(m, q), m, q, qd) - 2 * C
    assert np.max(np.abs(N + N.T)) > 1e-3 * np.max(np.abs(H))


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.stacked_vectors)
def test_base_terms_stand_in_the_first_block_and_the_tip_in_the_last(rng):
    """LP-45, (9.69)–(9.71): block content, with the tip moved by Ad of T_{n+1,n} transposed."""
    chain = samples.chain(4)
    tip = Plucker(rot(rx(0.4)).E, np.array([0.1, -0.3, 0.2]))
    m = chain.replace(frames=(Frame("tip", 4, tip),))
    q, (V_0, Vd_0, F) = m.random_configuration(rng), rng.standard_normal((3, 6))
    V, Vd, F_tip = stacked.stacked_vectors(m, q, V_0, Vd_0, F, "tip")
    X_1 = kinematics.joint_transforms(m, q)[0][1].to_matrix()
    assert_close(V[:6], X_1 @ V_0, scale=5)
    assert_close(Vd[:6], X_1 @ Vd_0, scale=5)
    assert not np.any(V[6:])
    assert not np.any(Vd[6:])
    assert_close(F_tip[18:], tip.to_matrix().T @ F, scale=5)
    assert not np.any(F_tip[:18])
    still = stacked.stacked_vectors(m, q)
    assert not np.any(still.V_base)
    assert not np.any(still.F_tip)
    assert_close(still.Vd_base[:6], X_1 @ [0, 0, 0, *-m.gravity], scale=20)
    assert_close(stacked.stacked_vectors(m, q, F_tip=F).F_tip[18:], F)  # the last body itself


@pytest.mark.covers("Lynch & Park 9.4", by=(stacked.stacked_vectors, stacked.inverse_dynamics))
@pytest.mark.parametrize("bodies", [1, 4, 6])
def test_a_moving_base_and_a_tip_enter_as_they_do_on_a_free_joint(bodies, rng):
    """(9.77)–(9.80) against the recursion for the same mechanism on a base that moves."""
    m = samples.random_tree(bodies, rng, joints=[Revolute("x"), Prismatic("y"), Spherical()])
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    V_0, Vd_0, F = rng.standard_normal((3, 6))
    weightless = edit.floating(m.replace(gravity=(0.0, 0.0, 0.0)), inertia=Inertia.zero())
    origin = Free().neutral()
    moving = np.concatenate([V_0, qd]), np.concatenate([Vd_0, qdd])
    tau = rnea.inverse_dynamics(weightless, np.concatenate([origin, q]), *moving)[6:]
    tip = m.body_names[-1]
    J = jacobians.frame_jacobian(m, q, m.frame(tip), "body")
    found = stacked.inverse_dynamics(m, q, qd, qdd, V_0, Vd_0, F)
    assert_close(found, tau + J.T @ F, scale=100 + np.max(np.abs(tau)))
    plain = stacked.inverse_dynamics(m, q, qd, qdd)
    expected = rnea.inverse_dynamics(m, q, qd, qdd)
    assert_close(plain, expected, scale=100 + np.max(np.abs(expected)))
    V = stacked.stacked_vectors(m, q, V_0).V_base  # the velocities themselves: (9.77)
    A, _, _, L = stacked.stacked_operators(m, q)
    v = kinematics.body_velocities(weightless, np.concatenate([origin, q]), moving[0])[1]
    assert_close(L @ (A @ qd + V), stack(v)[6:], scale=20)


@pytest.mark.covers("Tutorial 6", by=(stacked.global_jacobian, stacked.global_order))
def test_global_velocities_are_all_linear_first_then_all_angular(rng):
    """TU-49, (60): against velocities one by one, and reordered from those of the library."""
    m, q, qd, *_ = random_state(rng)
    n = m.body_count
    J = stacked.global_jacobian(m, q)
    assert J.shape == (6 * n, m.nv)
    V = J @ qd
    state = kt.maximal_state(m, q, qd)
    assert_close(V[: 3 * n].reshape(n, 3), state.velocity, scale=10)
    assert_close(V[3 * n :].reshape(n, 3), state.angular_velocity, scale=10)
    h = 1e-6  # and against positions, by a difference
    x = [kt.maximal_state(m, m.integrate(q, s * h * qd), qd).position for s in (1, -1)]
    np.testing.assert_allclose(V[: 3 * n], (x[0] - x[1]).ravel() / (2 * h), atol=1e-7)
    # body by body, angular first: the order of the library, with points at the mass centres
    by_body = np.concatenate([state.angular_velocity, state.velocity], axis=1).ravel()
    order = stacked.global_order(n)
    assert_close(by_body[order], V, scale=10)
    assert_close(V[np.argsort(order)], by_body, scale=10)
    assert sorted(order) == list(range(6 * n))
    assert not np.allclose(by_body, V)  # the order matters
    # what J is for, (61): only in its own order does it give the joint velocities back
    assert_close(np.linalg.pinv(J) @ V, qd, condition=np.linalg.cond(J))
    assert np.max(np.abs(np.linalg.pinv(J) @ by_body - qd)) > 1e-3


def test_shapes_and_sparsity(rng):
    m, q, *_ = random_state(rng, bodies=6)
    A, G, Gamma, L = stacked.stacked_operators(m, q)
    assert A.shape == (36, m.nv)
    assert G.shape == Gamma.shape == L.shape == (36, 36)
    blocks = np.abs(L).reshape(6, 6, 6, 6).max(axis=(1, 3)) > 0
    supports = np.tril(sparsity.pattern([p - 1 for p in m.parent[1:]]))
    assert np.array_equal(blocks, supports)
    v = kinematics.body_velocities(m, q, rng.standard_normal(m.nv))[1][1]
    assert np.array_equal(stacked._ad(v.to_array()), dense.crm(v.to_array()))
    nothing = np.zeros(0)
    assert stacked.coriolis_force(Model(), nothing, nothing).shape == (0,)


@pytest.mark.covers("Lynch & Park 9.4", by=stacked.coriolis_force)
def test_joints_that_time_moves_count_as_moving(rng):
    """Their velocity is not ``A qd``."""
    arm = samples.random_tree(4, rng, joints=[Revolute("x"), Revolute((1, 2, 3))])
    turntable = Prescribed(Revolute("z"), lambda t: ([2 * t], [2.0], [0.0]))
    m = arm.replace(joint={arm.joint_names[1]: turntable}).at(0.3)
    q, qd = m.random_configuration(rng), rng.standard_normal(m.nv)
    assert_close(stacked.coriolis_force(m, q, qd), rnea.coriolis_force(m, q, qd), scale=50)
