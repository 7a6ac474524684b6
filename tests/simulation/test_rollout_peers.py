"""Rollouts beside MuJoCo's, with the same integrator, on models that both have."""

import mujoco
import numpy as np
import pytest
from support.closeness import EPS, assert_close

import kinetree as kt
from kinetree.simulation.rollouts.rollout import rollout

pytestmark = pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
M = kt.interop.mujoco


@pytest.mark.parametrize(
    ("name", "integrator", "number", "tolerance"),
    [
        ("double_pendulum", "semi_implicit_euler", mujoco.mjtIntegrator.mjINT_EULER, 1e-12),
        ("double_pendulum", "rk4", mujoco.mjtIntegrator.mjINT_RK4, 1e-12),
        ("satellite", "rk4", mujoco.mjtIntegrator.mjINT_RK4, 1e-8),
    ],
)
def test_motions_are_those_of_mujoco(name, integrator, number, tolerance, rng):
    model = getattr(kt.samples, name)().replace(geometry=(), actuators=())
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    qd = 0.3 * rng.standard_normal((3, model.nv))
    motion = rollout(model, q, qd, steps=50, dt=1e-3, integrator=integrator, store_every=50)
    peer = M.to_model(model)
    peer.opt.timestep, peer.opt.integrator = 1e-3, number
    for bit in ("CONTACT", "CONSTRAINT", "LIMIT", "DAMPER", "SPRING", "EULERDAMP"):
        peer.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{bit}"))
    data = mujoco.MjData(peer)
    for k in range(3):
        mujoco.mj_resetData(peer, data)
        data.qpos, data.qvel = M.to_q(model, peer, q[k]), M.to_v(model, peer, q[k], qd[k])
        mujoco.mj_step(peer, data, nstep=50)
        end = M.from_q(model, peer, np.array(data.qpos))
        change = model.difference(end, motion.q[-1, k])
        assert_close(change, np.zeros(model.nv), ulps=tolerance / EPS, scale=1.0)
    if integrator == "rk4":
        assert_close(motion.energy[-1], motion.energy[0], ulps=1e-9 / EPS)
