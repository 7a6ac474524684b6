"""Constraints that come and go while a world runs: ties between parts, loops that are released."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import KinetreeError, ModelError


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
    arm = kt.samples.double_pendulum().replace(geometry=())
    world.add(arm.replace(couplings=[kt.Coupling("belt", 2, 1, (0.0, 1.0))]), name="arm")
    with pytest.raises(ModelError, match=r"'arm\.belt' is a coupling, whose joint has no separate"):
        world.release("arm.belt")
