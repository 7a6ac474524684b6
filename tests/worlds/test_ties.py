"""Constraints that come and go while a world runs: ties between parts, loops that are released."""

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import KinetreeError, ModelError, ShapeError
from kinetree.loaders import loads


def two_boxes():
    world = kt.World(timestep=2e-3, gravity=(0, 0, 0))
    box = kt.geometry.Box((0.2, 0.2, 0.2))
    a = world.add(box, name="a", mass=1.0, at=(0, 0, 1))
    b = world.add(box, name="b", mass=1.0, at=(0.5, 0, 1))
    a.set_velocity((0, 1.0, 0))
    return world, a, b


def test_a_tie_keeps_two_parts_as_they_are():
    """They turn about their common centre, with the momentum that they had; then they part."""
    world, a, b = two_boxes()
    world.tie("grasp", "a", "b")
    assert "grasp" in world.model.loop_names
    world.step(200)
    between = np.linalg.inv(a.pose) @ b.pose
    np.testing.assert_allclose(between[:3, 3], [0.5, 0, 0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(between[:3, :3], np.eye(3), rtol=0, atol=1e-6)
    np.testing.assert_allclose(a.velocity + b.velocity, [0, 1, 0], rtol=0, atol=1e-6)
    L = 2 * 0.04 / 6 + 2 * 0.25**2  # inertia of both about the centre, mass 1 each
    assert a.spin[2] == pytest.approx(-0.25 / L, rel=1e-4)
    world.release("grasp")
    assert not world.model.loop_names
    before = a.velocity.copy()
    world.step(100)
    np.testing.assert_allclose(a.velocity, before, rtol=0, atol=1e-9)


def test_ties_of_other_joints_turn():
    world, a, b = two_boxes()
    world.tie("pin", "a", "b", joint=kt.Spherical(), at=(0.4, 0, 0))
    world.step(100)
    ends = [p.pose @ [x, 0, 0, 1] for p, x in ((a, 0.4), (b, -0.1))]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-6)
    assert abs(a.spin[2] - b.spin[2]) > 0.1


def test_loops_of_robots_open_and_hold_again():
    linkage = kt.samples.four_bar().replace(geometry=())
    (name,) = linkage.loop_names
    world, chain = kt.World(timestep=1e-3), kt.World(timestep=1e-3)
    robot = world.add(linkage)
    q = robot.q.copy()
    open_chain = chain.add(linkage.spanning_tree, q=q)
    world.release(world.model.loop_names[0])
    world.step(100)
    chain.step(100)
    np.testing.assert_allclose(robot.q, open_chain.q, rtol=0, atol=1e-12)
    with pytest.raises(KinetreeError, match="has not released"):
        world.hold("pin")
    released = next(iter(world._released))
    world.hold(released)
    robot.q, robot.qd = q, 0 * q
    world.step(100)
    assert name in released
    assert np.abs(kt.loops.closure_error(linkage, robot.q)).max() < 1e-8


def test_copies_and_batches_are_those_of_the_moment():
    world, a, _ = two_boxes()
    world.tie("grasp", "a", "b")
    world.step(10)
    other, worlds = world.copy(), world.batch(2)
    for x in (world, other):
        x.step(50)
    worlds.step(50)
    np.testing.assert_allclose(other.q, world.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(worlds.q[1], world.q, rtol=0, atol=1e-9)
    world.remove("b")
    assert not world.model.loop_names
    world.step()
    assert a.q.size == 7


def test_what_cannot_be_tied():
    world, *_ = two_boxes()
    with pytest.raises(ModelError, match="are on one body, 'a'"):
        world.tie("t", "a", "a")
    with pytest.raises(ModelError, match="joint of 't' must be a joint"):
        world.tie("t", "a", "b", joint="weld")
    world.tie("t", "a", "b")
    with pytest.raises(ModelError, match="has a joint 't' already"):
        world.tie("t", "a", "b")
    with pytest.raises(KinetreeError, match="holds nothing by 'grip'"):
        world.release("grip")


LEVER = """<mujoco><worldbody>
<body name="a" pos="0 0 1"><joint name="j" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1" contype="0" conaffinity="0"/>
  <body name="b" pos=".3 0 0"><joint name="k" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .2 0 .1" size=".02" mass=".5" contype="0" conaffinity="0"/>
  </body></body></worldbody>
<equality><joint name="cam" joint1="k" joint2="j" polycoef=".1 .5 .2 0 0" solref=".002 1"/>
</equality></mujoco>"""


def test_a_coupling_of_mjcf_is_let_go_and_holds_again_as_eq_active_does():
    model = loads(LEVER, "mjcf")
    theirs = mujoco.MjModel.from_xml_string(LEVER)
    theirs.opt.timestep = 5e-4
    data = mujoco.MjData(theirs)
    data.qpos[1] = 0.1
    world = kt.World(timestep=1e-3, gravity=model.gravity)
    robot = world.add(model, name="lever")
    for name in ("lever.cam", None):  # it holds, then it does not
        world.step(100)
        mujoco.mj_step(theirs, data, 200)
        full = robot.q if robot.q.size == 2 else model.expand(robot.q)
        np.testing.assert_allclose(full, data.qpos, rtol=0, atol=2e-3)
        if name:
            before = model.expand(robot.q), model.expand_velocity(robot.q, robot.qd)
            world.release(name)
            np.testing.assert_array_equal(robot.q, before[0])
            np.testing.assert_array_equal(robot.qd, before[1])
            data.eq_active[0] = 0
    with pytest.raises(ShapeError, match=r"violates coupling 'cam'"):
        world.hold("lever.cam")
    robot.q = model.expand([robot.q[0]])
    world.hold("lever.cam")
    assert robot.q.size == 1
    held, (q, qd) = kt.World(timestep=1e-3, gravity=model.gravity), (robot.q, robot.qd)
    other = held.add(model, q=q, qd=qd)
    for x in (world, held):
        x.step(50)
    np.testing.assert_allclose(robot.q, other.q, rtol=0, atol=1e-9)
    with pytest.raises(KinetreeError, match="has not released 'lever"):
        world.hold("lever.cam")
    world.release("lever.cam")
    world.reset()
    np.testing.assert_allclose(robot.q, model.expand([0.0]), rtol=0, atol=0)
    world.remove("lever")
    with pytest.raises(KinetreeError, match="cannot hold: its robot was removed"):
        world.hold("lever.cam")
