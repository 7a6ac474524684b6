"""Models written as MJCF move as they did, here and in MuJoCo."""

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import CLOSED, TREES, forward, loaded, mass_matrix
from support.quiet import without_warnings

import kinetree as kt
from kinetree.algorithms import crba, jacobians, passive, rnea, tendons
from kinetree.interop import mujoco as M
from kinetree.loaders import read
from kinetree.writers.mjcf import to_mjcf

TEXTS = TREES | CLOSED
SAMPLES = [
    "double_pendulum", "cart_pole", "gyroscope", "scara", "ur5", "panda", "quadruped", "humanoid",
    "four_bar", "slider_crank", "hopping_leg", "stewart",
]  # fmt: skip


def assert_same_dynamics(a, b, rng, tolerance=1e-12):
    q, (qd, qdd) = a.random_configuration(rng), rng.standard_normal((2, a.nv))
    for function, state in (
        (crba.joint_space_inertia, (q,)),
        (rnea.inverse_dynamics, (q, qd, qdd)),
        (passive.passive_force, (q, qd)),
    ):
        one, other = function(a, *state), function(b, *state)
        scale = np.max(np.abs(one), initial=1.0)
        np.testing.assert_allclose(other, one, rtol=0, atol=tolerance * scale)
    for frame in a.frames:
        one, other = (jacobians.frame_pose(m, q, m.frame(frame.name)) for m in (a, b))
        np.testing.assert_allclose(other, one, rtol=0, atol=tolerance * np.max(np.abs(one)))


@pytest.mark.parametrize("name", TEXTS)
def test_mjcf_comes_back_from_mjcf(name, rng):
    model = loaded(TEXTS[name])
    again = loaded(without_warnings(to_mjcf, model))
    assert again.body_names == model.body_names
    assert again.joint_names == model.joint_names
    assert set(model.frame_names) <= set(again.frame_names)
    assert [x.name for x in again.loops] == [x.name for x in model.loops]
    assert [x.coefficients for x in again.couplings] == [x.coefficients for x in model.couplings]
    assert [p.name for p in again.postures] == [p.name for p in model.postures]
    assert_same_dynamics(model, again, rng)
    # links are written as bodies, before frames that are not
    third = loaded(without_warnings(to_mjcf, again))
    assert sorted(third.frame_names) == sorted(again.frame_names)  # those of loops, once


@pytest.mark.parametrize("name", TEXTS)
def test_attachments_come_back(name):
    model = loaded(TEXTS[name])
    again = loaded(without_warnings(to_mjcf, model))
    for one, other in zip(model.bodies, again.bodies, strict=True):
        assert _close(_numbers(one.limits), _numbers(other.limits))
        assert _close(_numbers(one.dynamics), _numbers(other.dynamics))
    for one, other in zip(model.actuators, again.actuators, strict=True):
        assert one == other
    assert [g.shape for g in again.geometry] == [g.shape for g in model.geometry]


def _numbers(part):
    return [] if part is None else [x for values in vars(part).values() for x in values]


def _close(a, b):
    return len(a) == len(b) and np.allclose(a, b, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_move_in_mujoco_as_here(name, rng):
    model = getattr(kt.samples, name)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        mj_model = M.to_model(model)
    data = mujoco.MjData(mj_model)
    q, (qd, qdd) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    forward(mj_model, data, M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd))
    rows = M.from_tau(model, mj_model, data.qpos, mass_matrix(mj_model, data))
    H = M.from_tau(model, mj_model, data.qpos, rows.T)
    expected = crba.joint_space_inertia(model, q)
    np.testing.assert_allclose(H, expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))
    a = M.to_a(model, mj_model, q, qd, qdd)
    tau = mass_matrix(mj_model, data) @ a + data.qfrc_bias
    expected = rnea.inverse_dynamics(model, q, qd, qdd)
    tau = M.from_tau(model, mj_model, data.qpos, tau)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))
    np.testing.assert_allclose(M.from_q(model, mj_model, data.qpos), q, rtol=0, atol=1e-15)


def test_the_model_that_ships_with_mujoco_loads_and_agrees(rng):
    path = Path(mujoco.__file__).parent / "testdata" / "model.xml"
    model, notices, _ = read(path)
    mj_model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(mj_model)
    qpos = rng.uniform(-1, 1, mj_model.nq)
    mujoco.mj_normalizeQuat(mj_model, qpos)
    qvel = rng.standard_normal(mj_model.nv)
    forward(mj_model, data, qpos, qvel)
    q, qd = M.from_q(model, mj_model, qpos), M.from_v(model, mj_model, qpos, qvel)
    qdd = M.from_a(model, mj_model, qpos, qvel, np.zeros(mj_model.nv))
    tau = M.to_tau(model, mj_model, q, rnea.inverse_dynamics(model, q, qd, qdd))
    scale = np.max(np.abs(data.qfrc_bias))
    np.testing.assert_allclose(tau, data.qfrc_bias, rtol=0, atol=1e-10 * scale)
    reported = {notice.what for notice in notices}
    assert {"<light>", "<custom>"} <= reported
    lengths = tendons.tendon_lengths(model, q)
    np.testing.assert_allclose(lengths, data.ten_length, rtol=0, atol=1e-12)
    assert all(notice.line for notice in notices)
