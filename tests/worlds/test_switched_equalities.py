"""Constraints of MJCF that are switched while a world runs, beside MuJoCo's ``eq_active``."""

import re

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree.interop import mujoco as M

TEXT = """<mujoco><option timestep="1e-4" gravity="0 0 0"/><worldbody>
<body name="a"><freejoint name="root"/><geom size=".1" mass="2" contype="0" conaffinity="0"/>
  <body name="c" pos=".3 0 0"><joint name="hinge" axis="0 0 1" pos="-.1 0 0" damping=".01"/>
    <geom type="capsule" size=".03 .1" euler="0 90 0" mass="1" contype="0" conaffinity="0"/></body>
</body>
<body name="b" pos=".6 .05 0"><freejoint name="other"/>
  <geom type="box" size=".05 .1 .08" mass="1" contype="0" conaffinity="0"/></body>
</worldbody><equality>
<{kind} name="grip" body1="c" body2="b" {anchor} active="{active}" solref="-1e6 -2000"/>
</equality></mujoco>"""


def both(kind, active):
    anchor = 'anchor=".3 .05 0"' if kind == "connect" else ""
    text = TEXT.format(kind=kind, anchor=anchor, active=active)
    mj_model = mujoco.MjModel.from_xml_string(text)
    return mj_model, mujoco.MjData(mj_model), kt.loads(text)


def state(world, mj_model, data):
    """Positions and velocities here, and MuJoCo's in our variables."""
    model = world.model
    there = M.from_q(model, mj_model, data.qpos), M.from_v(model, mj_model, data.qpos, data.qvel)
    return (world.q, world.qd), there


def assert_same(world, mj_model, data, tolerance):
    here, there = state(world, mj_model, data)
    assert np.abs(world.model.difference(there[0], here[0])).max() < tolerance
    np.testing.assert_allclose(here[1], there[1], atol=10 * tolerance)


def running(mj_model, data, model, rng):
    posture = M.from_q(model, mj_model, data.qpos)
    qd = np.concatenate([0.5 * rng.normal(size=7), np.zeros(6)])
    data.qvel[:] = M.to_v(model, mj_model, posture, qd)
    world = kt.World(gravity=(0, 0, 0), timestep=1e-3)
    world.add(model, name="pair", prefix="", q=posture, qd=qd)
    return world


def test_a_weld_that_the_notice_tells_how_to_switch_on(rng):
    mj_model, data, model = both("weld", "false")
    (why,) = [n.why for n in model.report if "switched off" in n.why]
    call = re.search(r"World\.(tie\(.*\)) holds", why)
    assert call is not None
    world = running(mj_model, data, model, rng)
    world.step(50)
    mujoco.mj_step(mj_model, data, 500)
    assert_same(world, mj_model, data, 1e-5)
    eval(f"world.{call[1]}", {"world": world})
    data.eq_active[0] = 1
    # Held where they are: MuJoCo's weld would pull them back to where they were at the start.
    relative = _relative(mj_model, data)
    mj_model.eq_data[0, 3:10] = relative
    world.step(100)
    mujoco.mj_step(mj_model, data, 1000)
    assert_same(world, mj_model, data, 2e-3)
    for run in (world.qd, data.qvel):
        assert np.abs(run[-6:]).max() > 1e-2  # the other body is taken along


def _relative(mj_model, data):
    """Pose of the second body in the first, as a weld of MuJoCo has it."""
    first, second = (mj_model.body(name).id for name in ("c", "b"))
    back, turn, at = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(back, data.xquat[first])
    mujoco.mju_mulQuat(turn, back, data.xquat[second])
    mujoco.mju_rotVecQuat(at, data.xpos[second] - data.xpos[first], back)
    return np.concatenate([at, turn])


@pytest.mark.parametrize("kind", ["weld", "connect"])
def test_a_constraint_that_is_let_go(kind, rng):
    mj_model, data, model = both(kind, "true")
    world = running(mj_model, data, model, rng)
    world.step(100)
    mujoco.mj_step(mj_model, data, 1000)
    assert_same(world, mj_model, data, 2e-3)
    world.release("grip")
    data.eq_active[0] = 0
    before = M.from_q(model, mj_model, data.qpos), world.q
    world.step(100)
    mujoco.mj_step(mj_model, data, 1000)
    assert_same(world, mj_model, data, 5e-3)
    moved = world.model.difference(before[1], world.q)
    assert np.abs(moved).max() > 1e-2
