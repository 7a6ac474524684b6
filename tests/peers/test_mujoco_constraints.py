"""Equality constraints of MJCF are loops and couplings that hold where MuJoCo's do."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import CLOSED, forward, loaded, mass_matrix, peer

import kinetree as kt
from kinetree.algorithms.coupled import coupling_rows
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.interop import mujoco as M

LOOPS = [name for name in CLOSED if not name.startswith(("joint", "tendon"))]
TENDONS = [name for name in CLOSED if name.startswith("tendon")]


def loop_transforms(model, q):
    """``X`` from predecessor to successor frame of each loop joint."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    for loop in model.loops:
        X_P = loop.predecessor_placement @ X_0[loop.predecessor]
        yield loop.joint, loop.successor_placement @ X_0[loop.successor] @ X_P.inverse()


def soft(text):
    """MuJoCo with its constraints on."""
    mj_model, data = peer(text)
    mj_model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return mj_model, data


@pytest.mark.parametrize("name", LOOPS)
def test_loops_close_where_mujoco_has_no_residual(name):
    model, (mj_model, data) = loaded(CLOSED[name]), soft(CLOSED[name])
    forward(mj_model, data, mj_model.qpos0, np.zeros(mj_model.nv))
    np.testing.assert_allclose(data.efc_pos[: data.ne], 0, atol=1e-12)
    q = M.from_q(model, mj_model, mj_model.qpos0)
    for joint, X in loop_transforms(model, q):
        np.testing.assert_allclose(joint.loop_error(X), 0, atol=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_open_by_as_much_as_in_mujoco(name, rng):
    model, (mj_model, data) = loaded(CLOSED[name]), soft(CLOSED[name])
    qpos = rng.uniform(-1, 1, mj_model.nq)
    mujoco.mj_normalizeQuat(mj_model, qpos)
    forward(mj_model, data, qpos, np.zeros(mj_model.nv))
    ((_, X),) = loop_transforms(model, M.from_q(model, mj_model, qpos))
    gap = np.linalg.norm(data.efc_pos[:3])
    np.testing.assert_allclose(np.linalg.norm(X.r), gap, rtol=1e-10)
    if data.ne == 6:  # a weld: sine of half the angle, times a length that scales torques
        scale = mj_model.eq_data[0, 10]
        half = np.sqrt((3 - np.trace(X.E)) / 4)
        np.testing.assert_allclose(half * scale, np.linalg.norm(data.efc_pos[3:6]), rtol=1e-10)


@pytest.mark.parametrize("name", ["joint", "joint held"])
def test_couplings_are_off_by_as_much_as_in_mujoco(name, rng):
    model, (mj_model, data) = loaded(CLOSED[name]), soft(CLOSED[name])
    qpos = rng.uniform(-1, 1, mj_model.nq)
    forward(mj_model, data, qpos, np.zeros(mj_model.nv))
    full = model.uncoupled
    q = M.from_q(full, mj_model, qpos)
    (follower,) = (full.q_slice[c.joint].start for c in model.couplings)
    error = (q - model.expand(model.reduce(q, tolerance=np.inf)))[follower]
    np.testing.assert_allclose([error], data.efc_pos[:1], rtol=1e-12)
    K, _ = coupling_rows(model, q, np.zeros(full.nv))
    np.testing.assert_allclose(K.ravel(), data.efc_J.reshape(-1)[: full.nv], rtol=1e-12)


@pytest.mark.parametrize("name", TENDONS)
def test_equal_tendons_are_equal_in_mujoco(name, rng):
    """Of a configuration that follows the coupling MuJoCo finds no error."""
    model, (mj_model, data) = loaded(CLOSED[name]), soft(CLOSED[name])
    assert model.nv == mj_model.nv - 1
    assert {t.name for t in model.tendons} <= {"one", "two", "three"}  # those that are not coupled
    for _ in range(3):
        q = model.random_configuration(rng)
        forward(mj_model, data, M.to_q(model, mj_model, q), np.zeros(mj_model.nv))
        np.testing.assert_allclose(data.efc_pos[0], 0, atol=1e-14 * max(1, np.max(np.abs(q))) ** 4)


@pytest.mark.parametrize("name", CLOSED)
def test_acceleration_is_that_of_hard_constraints_on_mujocos_terms(name, rng):
    """``M a + c = tau + Kᵀ λ`` and ``K a = k`` with ``M``, ``c``, ``K``, ``k`` from MuJoCo."""
    model, (mj_model, data) = loaded(CLOSED[name]), peer(CLOSED[name])
    start = M.to_q(model, mj_model, model.neutral()) if model.couplings else mj_model.qpos0
    forward(mj_model, data, start, np.zeros(mj_model.nv))
    K = rows(mj_model, data)[0]
    _, sizes, V = np.linalg.svd(K)
    free = V[np.sum(sizes > 1e-9) :].T
    assert free.shape[1] > 0
    qvel = free @ rng.standard_normal(free.shape[1])
    forward(mj_model, data, start, qvel)
    K, k = rows(mj_model, data)
    tau = rng.standard_normal(mj_model.nv)
    H, n = mass_matrix(mj_model, data), mj_model.nv
    system = np.block([[H, K.T], [K, np.zeros((len(K), len(K)))]])
    expected = np.linalg.lstsq(system, np.concatenate([tau - data.qfrc_bias, k]), rcond=1e-12)[0][
        :n
    ]
    q, qd = M.from_q(model, mj_model, data.qpos), M.from_v(model, mj_model, data.qpos, qvel)
    qdd = kt.forward_dynamics(model, q, qd, M.from_tau(model, mj_model, data.qpos, tau))
    actual = M.to_a(model, mj_model, q, qd, qdd)
    scale = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9 * scale)


def rows(mj_model, data):
    """Jacobian of the constraint and what it makes of the acceleration, exactly."""
    kind, data1 = int(mj_model.eq_type[0]), mj_model.eq_data[0]
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        return _coupled_rows(mj_model, data)
    if kind == mujoco.mjtEq.mjEQ_TENDON:
        return _tendon_rows(mj_model, data)
    ends = [int(mj_model.eq_obj1id[0]), int(mj_model.eq_obj2id[0])]
    if mj_model.eq_objtype[0] == mujoco.mjtObj.mjOBJ_SITE:
        points, bodies = data.site_xpos[ends], mj_model.site_bodyid[ends]
    else:
        local = [data1[:3], data1[3:6]] if kind == 0 else [data1[3:6], data1[:3]]
        bodies = ends
        points = [
            data.xpos[b] + data.xmat[b].reshape(3, 3) @ p for b, p in zip(ends, local, strict=True)
        ]
    J, Jdot = [], []
    for point, body in zip(points, bodies, strict=True):
        for function, found in ((mujoco.mj_jac, J), (mujoco.mj_jacDot, Jdot)):
            jacp, jacr = np.zeros((2, 3, mj_model.nv))
            function(mj_model, data, jacp, jacr, np.array(point), int(body))
            found.append(np.concatenate([jacp, jacr])[: 3 if kind == 0 else 6])
    return J[0] - J[1], -(Jdot[0] - Jdot[1]) @ data.qvel


def _coupled_rows(mj_model, data):
    y, x = int(mj_model.eq_obj1id[0]), int(mj_model.eq_obj2id[0])
    K = np.zeros((1, mj_model.nv))
    K[0, y] = 1
    if x < 0:
        return K, np.zeros(1)
    p = np.polynomial.Polynomial(mj_model.eq_data[0, :5])
    at = data.qpos[x] - mj_model.qpos0[x]
    K[0, x] = -p.deriv()(at)
    return K, np.array([p.deriv(2)(at) * data.qvel[x] ** 2])


def _tendon_rows(mj_model, data):
    y, x = int(mj_model.eq_obj1id[0]), int(mj_model.eq_obj2id[0])
    J = np.zeros((mj_model.ntendon, mj_model.nv))
    for row, wrap, n in zip(J, mj_model.tendon_adr, mj_model.tendon_num, strict=True):
        for k in range(wrap, wrap + n):
            row[mj_model.jnt_dofadr[mj_model.wrap_objid[k]]] = mj_model.wrap_prm[k]
    if x < 0:
        return J[[y]], np.zeros(1)
    p = np.polynomial.Polynomial(mj_model.eq_data[0, :5])
    at = data.ten_length[x] - mj_model.tendon_length0[x]
    return J[[y]] - p.deriv()(at) * J[[x]], np.array([p.deriv(2)(at) * (J[x] @ data.qvel) ** 2])
