"""Armature of free joints is that of velocities in the world, as in MuJoCo."""

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree.interop import mujoco as M

TEXT = """<mujoco><compiler angle="radian"/><option timestep="1e-3" integrator="RK4"/><worldbody>
<body name="base" pos=".1 .2 3"><joint name="root" type="free" armature="{armature}"/>
  <geom type="box" size=".1 .2 .3" pos=".1 0 .05" mass="2" contype="0" conaffinity="0"/>
  <body name="arm" pos=".2 0 0"><joint name="hinge" axis="1 2 0" armature=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 .2" size=".05" mass="1" contype="0" conaffinity="0"/>
</body></body></worldbody></mujoco>"""


def both(armature=0.7):
    text = TEXT.format(armature=armature)
    return mujoco.MjModel.from_xml_string(text), kt.loads(text)


def state(mj_model, model, rng):
    data = mujoco.MjData(mj_model)
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    data.qpos, data.qvel = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    return data, q, qd


def test_accelerations_are_those_of_mujoco(rng):
    mj_model, model = both()
    for _ in range(5):
        data, q, qd = state(mj_model, model, rng)
        data.qfrc_applied = rng.normal(size=model.nv)
        mujoco.mj_forward(mj_model, data)
        tau = M.from_tau(model, mj_model, data.qpos, data.qfrc_applied)
        qdd = kt.forward_dynamics(model, q, qd, tau + kt.passive_force(model, q, qd))
        expected = M.from_a(model, mj_model, data.qpos, data.qvel, data.qacc)
        np.testing.assert_allclose(qdd, expected, rtol=0, atol=1e-10 * (1 + np.abs(qdd).max()))


def motion(door, model, q, qd, dt, duration=0.1):
    steps = round(duration / dt)
    if door == "simulate":
        run = kt.simulate(model, q, qd, duration=duration, dt=dt, integrator="rk4")
    elif door == "rollout":
        run = kt.rollout(model, q, qd, steps=steps, dt=dt)
    elif door == "world":
        world = kt.World(gravity=model.gravity, timestep=dt)
        world.add(model, name="body", prefix="", q=q, qd=qd)
        world.step(steps)
        return world.q, world.qd
    else:
        contact = kt.contact.TimeStepping(kt.contact.Scene(model, pairs=[]), conserving=False)
        with kt.tier(door):
            run = kt.rollout(model, q, qd, steps=steps, dt=dt, contact=contact)
    return run.q[-1], run.qd[-1]


@pytest.mark.parametrize("door", ["simulate", "rollout", "world", "specialised", "general"])
def test_every_door_moves_as_mujoco_does(door, rng):
    mj_model, model = both()
    mj_model.opt.timestep = 2e-4
    data, q, qd = state(mj_model, model, rng)
    mujoco.mj_step(mj_model, data, 500)
    there = M.from_q(model, mj_model, data.qpos)
    gaps = []
    for dt in (4e-3, 1e-3):
        end, _ = motion(door, model, q, qd, dt)
        gaps.append(np.abs(model.difference(there, end)).max())
    assert gaps[1] < max(1e-9, gaps[0] / 3)
    assert gaps[1] < 2e-3


def test_written_files_have_it_once(tmp_path, recwarn):
    _, model = both()
    path = tmp_path / "robot.xml"
    kt.save(model, path)
    assert not [w for w in recwarn if "fluid" in str(w.message)]
    assert 'armature="0.7"' in path.read_text()
    (momentum,) = kt.load(path).fluid_forces
    assert momentum.is_momentum
    assert momentum.density == 0.7
    assert "momentum of armature on base" in model.summary()
    assert not both(0.0)[1].fluid_forces
