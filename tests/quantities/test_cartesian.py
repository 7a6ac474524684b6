"""Cartesian and generalised velocities and forces, there and back: the tutorial's section 6."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import Figure1, figure_1_tree, random_state

import kinetree as kt
from kinetree.joints import Euler, Exponential, Revolute, Spherical, Universal
from kinetree.spatial.vector3 import unskew

BALLS = [Euler("xyz"), Exponential(), Spherical()]
TURNING = (Revolute("x"), Revolute((1.0, -2.0, 2.0)), Universal("xy"), Euler("zyx"), Spherical())


def character(ball, rng):
    m = figure_1_tree(ball)
    q = Figure1.q if m.nq == 7 else m.random_configuration(rng)
    return m, q


# --- velocities ----------------------------------------------------------------------------------


@pytest.mark.covers("Tutorial 6", by=kt.generalized_velocity)
@pytest.mark.parametrize("frame", ["world", "body", "aligned"])
@pytest.mark.parametrize("method", ["least_squares", "joints"])
def test_joint_velocities_come_back_from_those_of_the_bodies(frame, method, rng):
    m, q, qd, *_ = random_state(rng)
    V = kt.jacobians(m, q, frame=frame) @ qd
    found = kt.generalized_velocity(m, q, V, frame=frame, method=method)
    J = kt.jacobians(m, q, frame=frame).reshape(-1, m.nv)
    assert_close(found.qd, qd, condition=np.linalg.cond(J), scale=10)
    assert found.residual < 1e-10
    assert found.rank == m.nv
    batch = kt.generalized_velocity(m, q, np.stack([V, 2 * V]), frame=frame, method=method)
    assert_close(batch.qd[1], 2 * qd, condition=np.linalg.cond(J), scale=10)
    assert batch.residual.shape == (2,)


@pytest.mark.covers("Tutorial 6", by=kt.jacobians)
@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_any_independent_rows_of_consistent_velocities_give_the_same(ball, rng):
    """TU-53: exactly nv of them, chosen at random, for consistent velocities only."""
    m, q = character(ball, rng)
    J = kt.jacobians(m, q, frame="aligned").reshape(-1, m.nv)
    V = (J @ Figure1.qd).reshape(-1, 6)
    torn = V + 0.1 * rng.standard_normal(V.shape)
    found, others = [], []
    while len(found) < 4:
        rows = rng.choice(len(J), m.nv, replace=False)
        condition = np.linalg.cond(J[rows])
        if condition < 1e4:
            result = kt.generalized_velocity(m, q, V, frame="aligned", rows=rows)
            assert result.rank == m.nv
            assert_close(result.qd, Figure1.qd, condition=condition)
            assert result.residual < 1e-9  # of all rows, also those that were left out
            assert_close(result.qd, np.linalg.solve(J[rows], V.ravel()[rows]), condition=condition)
            found.append(result.qd)
            others.append(kt.generalized_velocity(m, q, torn, frame="aligned", rows=rows))
    assert np.max(np.ptp(found, axis=0)) < 1e-9
    assert np.max(np.ptp([x.qd for x in others], axis=0)) > 1e-2  # they do not agree any more
    assert all(x.residual > 1e-2 for x in others)
    dependent = kt.generalized_velocity(m, q, V, frame="aligned", rows=np.arange(m.nv - 1))
    assert dependent.rank < m.nv
    with pytest.raises(kt.ShapeError, match="rows must be integers"):
        kt.generalized_velocity(m, q, V, rows=[0, len(J)])
    with pytest.raises(kt.UnknownNameError, match="rows are for method"):
        kt.generalized_velocity(m, q, V, rows=[0], method="joints")


@pytest.mark.covers("Tutorial 6", by=kt.generalized_velocity)
def test_velocities_that_tear_joints_apart_leave_a_residual(rng):
    m, q = character(Euler("xyz"), rng)
    V = kt.jacobians(m, q, frame="aligned") @ Figure1.qd
    V[3, 3:] += [0.1, 0.0, 0.0]
    for method in ("least_squares", "joints"):
        assert kt.generalized_velocity(m, q, V, frame="aligned", method=method).residual > 1e-3


def test_gimbal_lock_shows_in_the_rank(rng):
    m = kt.ModelBuilder("ball").body("ball", joint=Euler("xyz")).build()
    q = np.array([0.3, np.pi / 2, -0.2])
    found = kt.generalized_velocity(m, q, np.zeros((1, 6)), frame="body")
    assert found.rank == 2
    assert kt.generalized_velocity(m, q, np.zeros((1, 6)), frame="body", method="joints").rank == 2


@pytest.mark.covers("Tutorial 6", by=kt.jacobians)
@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_relative_angular_velocities_by_the_connectivity_matrix(ball, rng):
    """Tutorial (62)–(65): ``D w = R Ĵ qd`` and ``Ĵ = Rᵀ D J``, in frames of the parents.

    TU-52: ``Ĵ`` of the joints by themselves, and relative velocities by differences of rotations.
    """
    m, q = character(ball, rng)
    T, n = kt.poses(m, q), m.body_count
    D, R = np.eye(3 * n), np.zeros((3 * n, 3 * n))
    for k, parent in enumerate(m.parent[1:]):
        block = slice(3 * k, 3 * k + 3)
        R[block, block] = T[parent - 1, :3, :3] if parent else np.eye(3)
        if parent:
            D[block, 3 * (parent - 1) : 3 * parent] = -np.eye(3)
    J_w = kt.jacobians(m, q, frame="aligned")[:, :3].reshape(3 * n, m.nv)
    J_hat = np.zeros((3 * n, m.nv))  # block diagonal, each in its parent's frame
    qd = rng.standard_normal(m.nv)
    for k in range(n):
        X_J, S, *_ = m.jcalc(k + 1, q, qd)
        E = X_J.E @ m.tree_transform[k + 1].E
        J_hat[3 * k : 3 * k + 3, m.v_slice[k + 1]] = E.T @ S.angular
    assert_close(R.T @ D @ J_w, J_hat, ulps=20, scale=1)
    w = kt.maximal_state(m, q, qd).angular_velocity.ravel()
    w_hat = R.T @ D @ w
    assert_close(w_hat, J_hat @ qd, scale=5)
    h = 1e-6
    ends = [kt.poses(m, m.integrate(q, s * h * qd))[:, :3, :3] for s in (1, -1)]
    for k, parent in enumerate(m.parent[1:]):  # [ŵ] = dR_k/dt R_kᵀ of the rotation in the parent
        turn = [e[parent - 1].T @ e[k] if parent else e[k] for e in ends]
        rate = (turn[0] - turn[1]) / (2 * h) @ ((turn[0] + turn[1]) / 2).T
        np.testing.assert_allclose(unskew(rate), w_hat[3 * k : 3 * k + 3], atol=1e-8)


# --- forces on bodies ----------------------------------------------------------------------------


@pytest.mark.covers("Tutorial 6", by=(kt.applied_force, kt.generalized_force))
@pytest.mark.parametrize("frame", ["world", "body", "aligned"])
def test_a_force_has_the_power_of_its_point_and_its_torque(frame, rng):
    """Tutorial (67): ``Q·qd = f·v(r) + torque·w``."""
    m, q, qd, *_ = random_state(rng)
    name = m.body_names[-1]
    f, n, at = rng.standard_normal((3, 3))
    Q = kt.generalized_force(
        m, q, {name: kt.applied_force(m, q, name, force=f, torque=n, at=at, frame=frame)}
    )
    if frame == "world":
        v = kt.velocity(m, q, qd, name)
        power = n @ v[:3] + f @ (v[3:] + np.cross(v[:3], at))
    else:
        v = kt.velocity(m, q, qd, name, frame=frame, point=at)
        power = n @ v[:3] + f @ v[3:]
    assert_close(Q @ qd, power, scale=100)
    qdd = rng.standard_normal(m.nv)
    push = {name: kt.applied_force(m, q, name, force=f, torque=n, at=at, frame=frame)}
    difference = kt.inverse_dynamics(m, q, qd, qdd) - kt.inverse_dynamics(m, q, qd, qdd, push)
    assert_close(difference, Q, scale=1000)


@pytest.mark.covers("Tutorial 6", by=kt.applied_force)
def test_two_conventions_for_torques(rng):
    """A couple besides the force at a point, or a torque about the mass centre with its moment."""
    m, q, *_ = random_state(rng)
    name = m.body_names[-1]
    f, couple, at = rng.standard_normal((3, 3))
    at_point = kt.applied_force(m, q, name, force=f, torque=couple, at=at, frame="aligned")
    T = kt.pose(m, q, name)
    r = T[:3, :3] @ at + T[:3, 3]
    x = T[:3, :3] @ m.inertia[-1].center_of_mass + T[:3, 3]
    about_center = couple + np.cross(r - x, f)
    at_center = kt.applied_force(
        m, q, name, force=f, torque=about_center, at="center_of_mass", frame="aligned"
    )
    assert_close(at_center, at_point, scale=100)


@pytest.mark.covers("Tutorial 6", by=kt.applied_force)
def test_weight_is_a_force_at_the_mass_center(rng):
    m, q, *_ = random_state(rng)
    weights = {
        name: kt.applied_force(
            m, q, name, force=I.mass * m.gravity, at="center_of_mass", frame="aligned"
        )
        for name, I in zip(m.body_names[1:], m.inertia[1:], strict=True)
    }
    Q = kt.generalized_force(m, q, weights)
    assert_close(Q, -kt.gravity_force(m, q), scale=100)


def test_applied_forces_broadcast_and_trace(rng):
    m = kt.samples.panda()
    q = np.array([m.random_configuration(rng) for _ in range(4)])
    f = rng.standard_normal((4, 3))
    batch = kt.applied_force(m, q, "tool", force=f, frame="body", at=(0, 0, 0.1))
    assert batch.shape == (4, 6)
    one = kt.applied_force(m, q[2], "tool", force=f[2], frame="body", at=(0, 0, 0.1))
    assert_close(batch[2], one)
    derivative = kt.differentiate(kt.applied_force, wrt="q")(
        m, q[0], "tool", force=f[0], frame="body", at=np.array([0, 0, 0.1])
    )
    assert derivative.shape == (6, m.nv)


# --- torques at joints ---------------------------------------------------------------------------


@pytest.mark.covers("Tutorial 6", by=(kt.forces_of_joint_torques, kt.generalized_force))
@pytest.mark.parametrize("n", range(2))
def test_joint_torques_act_on_both_sides(n, rng):
    """Tutorial (68), (69): ``Q_k = Ĵ_kᵀ τ̂_k``, and inside the mechanism everything cancels."""
    m, q, *_ = random_state(rng, joints=TURNING)
    torques = rng.standard_normal((m.body_count, 3))
    f_ext = kt.forces_of_joint_torques(m, q, torques)
    roots = [i for i in range(m.body_count) if m.parent[i + 1] == 0]
    assert_close(f_ext[:, :3].sum(axis=0), sum(torques[i] for i in roots), scale=10)
    assert np.all(f_ext[:, 3:] == 0)
    Q = kt.generalized_force(m, q, f_ext)
    S, T = kt.jacobians(m, q, frame="body"), kt.poses(m, q)
    for i in range(m.body_count):
        parent = m.parent[i + 1]
        R = T[i, :3, :3] if parent == 0 else T[parent - 1, :3, :3].T @ T[i, :3, :3]
        J_hat = R @ S[i, :3, m.v_slice[i + 1]]
        assert_close(Q[m.v_slice[i + 1]], J_hat.T @ torques[i], scale=10)


@pytest.mark.covers("Tutorial 6", by=kt.joint_torques)
@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_smallest_joint_torques_for_generalized_forces(ball, rng):
    m, q = character(ball, rng)
    tau = rng.standard_normal(m.nv)
    torques = kt.joint_torques(m, q, tau)
    back = kt.generalized_force(m, q, kt.forces_of_joint_torques(m, q, torques))
    assert_close(back, tau, condition=100)
    assert_close(np.cross(torques[2], [1, 0, 0]), np.zeros(3), scale=1)  # hinge x: along its axis
    assert_close(torques[2][0], tau[5])
    batch = kt.joint_torques(m, np.stack([q, q]), np.stack([tau, 2 * tau]))
    assert_close(batch[1], 2 * torques)


def test_forces_that_no_torque_replaces_are_named():
    m = kt.ModelBuilder("rail").body("cart", joint=kt.Prismatic("x")).build()
    with pytest.raises(kt.SingularError, match=r"joint 'cart.*no torque is worth its force"):
        kt.joint_torques(m, np.zeros(1), np.ones(1))
    assert np.all(kt.joint_torques(m, np.zeros(1), np.zeros(1)) == 0)
    ball = kt.ModelBuilder("ball").body("ball", joint=Euler("xyz")).build()
    locked = np.array([0.3, np.pi / 2, 0.1])
    with pytest.raises(kt.SingularError, match="axes are in line"):
        kt.joint_torques(ball, locked, np.array([1.0, 0.0, 0.0]))


@pytest.mark.covers("Tutorial 6", by=kt.cartesian_forces)
@pytest.mark.parametrize("n", range(2))
def test_smallest_cartesian_forces_for_generalized_forces(n, rng):
    """Tutorial (70): they are worth ``tau``, and any others that are have a larger norm."""
    m, q, tau, *_ = random_state(rng)
    found = kt.cartesian_forces(m, q, tau)
    pushes = {
        name: kt.applied_force(m, q, name, force=f, torque=n_, at="center_of_mass", frame="aligned")
        for name, f, n_ in zip(m.body_names[1:], found.force, found.torque, strict=True)
    }
    Q = kt.generalized_force(m, q, pushes)
    assert_close(Q, tau, scale=100)
    x = kt.poses(m, q)
    J = kt.jacobians(m, q, frame="aligned")
    c = np.array([I.center_of_mass for I in m.inertia[1:]])
    r = np.einsum("kij,kj->ki", x[:, :3, :3], c)
    J[:, 3:] += np.cross(J[:, :3], r[:, :, None], axis=1)
    flat = J.reshape(-1, m.nv)
    other = np.linalg.lstsq(flat.T, tau, rcond=None)[0]
    size = np.sum(found.force**2) + np.sum(found.torque**2)
    assert_close(size, other @ other, condition=1e3)
    free = np.linalg.svd(flat.T)[2][-1]  # changes no joint force
    assert np.sum((other + 0.1 * free) ** 2) > size


# --- messages ------------------------------------------------------------------------------------


def test_a_force_in_base_coordinates_needs_its_point():
    m = kt.samples.panda()
    q = m.neutral()
    with pytest.raises(kt.ShapeError, match="point is in base coordinates: state at="):
        kt.applied_force(m, q, "tool", force=(1, 0, 0))
    assert_close(kt.applied_force(m, q, "tool", torque=(1, 2, 3)), [1.0, 2, 3, 0, 0, 0])
    with pytest.raises(kt.UnknownNameError, match="frame must be 'world', 'body' or 'aligned'"):
        kt.applied_force(m, q, "tool", force=(1, 0, 0), frame="base")
    with pytest.raises(kt.ShapeError, match="point is in base coordinates: state at="):
        kt.applied_force(m, q, "tool", force=(1, 0, 0), frame="world")
    with pytest.raises(kt.UnknownNameError, match="'center_of_mass', got 'tip'"):
        kt.applied_force(m, q, "tool", force=(1, 0, 0), at="tip", frame="body")
    with pytest.raises(kt.ShapeError, match=r"force must have shape \(..., 3\)"):
        kt.applied_force(m, q, "tool", force=np.ones(6), frame="body")


def test_shapes_and_methods_are_named():
    m = kt.samples.panda()
    q = m.neutral()
    with pytest.raises(kt.ShapeError, match=r"velocities must have shape \(..., body_count, 6\)"):
        kt.generalized_velocity(m, q, np.zeros(6), frame="body")
    with pytest.raises(kt.UnknownNameError, match="'least_squares' or 'joints', got 'qr'"):
        kt.generalized_velocity(m, q, np.zeros((9, 6)), frame="body", method="qr")
    with pytest.raises(kt.ShapeError, match=r"torques must have shape \(..., body_count, 3\)"):
        kt.forces_of_joint_torques(m, q, np.zeros(3))

    @kt.kernel
    def inside(m, q, tau):
        return kt.cartesian_forces(m, q, tau)

    with pytest.raises(
        kt.errors.TraceError, match="cartesian_forces decides about ranks on the CPU, in Python"
    ):
        inside(m, q, np.zeros(m.nv))
