"""Motions beside those of MuJoCo's RK4, on models that both can express."""

import mujoco
import numpy as np
import pytest
from support.motions import assert_trusted
from support.mujoco_mechanisms import CLOSED, TREES, loaded

import kinetree as kt
from kinetree.interop import mujoco as M

NAMES = ("hinge", "slide", "ball", "free", "fixed tendons", "gravity compensation")
DT, STEPS = 5e-4, 1000


def peer(text):
    """MuJoCo's model without contacts, limits and friction, with its Runge–Kutta integrator."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = DT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("name", NAMES)
def test_motions_agree_with_those_of_mujoco(name, rng):
    model, (mj_model, data) = loaded(TREES[name]), peer(TREES[name])
    q, qd = model.random_configuration(rng), rng.uniform(-1, 1, model.nv)
    data.qpos[:] = M.to_q(model, mj_model, q)
    data.qvel[:] = M.to_v(model, mj_model, q, qd)
    mujoco.mj_step(mj_model, data, STEPS)
    motion = kt.simulate(model, q, qd, duration=DT * STEPS, dt=DT, store_every=100, limits=None)
    assert_trusted(motion, energy=1e-8)
    end = M.from_q(model, mj_model, data.qpos)
    np.testing.assert_allclose(model.difference(end, motion.q[-1]), 0, atol=1e-8)
    theirs = M.from_v(model, mj_model, data.qpos, data.qvel)
    np.testing.assert_allclose(motion.qd[-1], theirs, atol=1e-7)


@pytest.mark.parametrize("name", CLOSED)
def test_exact_constraints_are_what_stiff_ones_of_mujoco_tend_to(name):
    """Loops, gears and equal tendons: the distance goes down with the square of the softness."""
    model = loaded(CLOSED[name])
    coarse, fine = (_stiff_distance(model, CLOSED[name], dt) for dt in (4e-4, 2e-4))
    assert fine < 1e-6
    assert 3.5 < coarse / fine < 4.5


def _stiff_distance(model, text, dt, duration=0.3):
    mj_model = mujoco.MjModel.from_xml_string(text)
    mj_model.opt.integrator, mj_model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, dt
    mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mj_model.opt.tolerance, mj_model.opt.iterations = 1e-14, 200
    mj_model.eq_solref[:], mj_model.eq_solimp[:] = [5 * dt, 1], [0.9999, 0.9999, 1e-3, 0.5, 2]
    q = model.neutral() if model.couplings else M.from_q(model, mj_model, mj_model.qpos0)
    qd = np.zeros(model.nv) if model.loops else np.linspace(-1, 1, model.nv)
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    mujoco.mj_step(mj_model, data, round(duration / dt))
    motion = kt.simulate(model, q, qd, duration=duration, dt=dt, limits=None)
    end = M.to_q(model, mj_model, motion.q[-1])
    return np.max(np.abs(end - data.qpos))
