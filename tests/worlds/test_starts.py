"""Every start is checked: whenever a state was set, in every world of a batch."""

import warnings

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import SimulationWarning
from kinetree.model.geometry import Box


@pytest.fixture
def world():
    """Two boxes, one above the other, that have taken a step."""
    world = kt.World()
    world.add_ground()
    world.add(Box((0.2, 0.2, 0.2)), mass=1.0, name="a", at=(0, 0, 0.1))
    world.add(Box((0.2, 0.2, 0.2)), mass=1.0, name="b", at=(0, 0, 0.5))
    world.step()
    return world


INSIDE = r"world 'world' starts with bodies inside each other: 'a/b', up to 0.05 m"


def _set_q(world):
    q = world.q
    q[9] = 0.25
    world.q = q


def _set_pose(world):
    world["b"].pose = kt.xlt([0, 0, 0.25])


def _set_part(world):
    q = world["b"].q
    q[2] = 0.25
    world["b"].q = q


@pytest.mark.parametrize("set_inside", [_set_q, _set_pose, _set_part])
def test_a_state_set_after_the_first_step_is_checked(world, set_inside):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.step(2)
    set_inside(world)
    with pytest.warns(SimulationWarning, match=INSIDE):
        world.step()
    world.step(3)  # says so once
    set_inside(world)
    with pytest.warns(SimulationWarning, match=INSIDE):
        world.step(2, tau=np.zeros(12))


def test_a_controller_does_not_escape_the_check(world):
    _set_pose(world)
    with pytest.warns(SimulationWarning, match=INSIDE):
        world.step(1, tau=lambda t, q, qd: np.zeros(12))


def test_restored_states_and_resets_are_checked(world):
    fine, start = world.state, kt.World()
    _set_pose(world)
    inside = world.state
    with pytest.warns(SimulationWarning, match=INSIDE):
        world.step()
    world.set_state(fine)
    world.step()  # says nothing
    world.set_state(inside)
    with pytest.warns(SimulationWarning, match=INSIDE):
        world.step()
    world.reset()
    world.step()
    start.add(Box((0.2, 0.2, 0.2)), mass=1.0, name="a", at=[(0, 0, 0), (0, 0, 0.15)])
    for _ in range(2):
        with pytest.warns(SimulationWarning, match=r"'a/a_2', up to 0.05 m"):
            start.step()
        start.reset()


def test_velocities_set_alone_need_no_check(world, monkeypatch):
    monkeypatch.setattr(world._whole.steps.engine, "find", None)  # would fail
    world["b"].set_velocity((0, 0, -1))
    world.step(2)


def test_every_world_of_a_batch_is_checked(world):
    worlds = world.batch(4)
    worlds.step()
    q = worlds.q
    q[2, 9] = 0.25
    worlds.q = q
    message = r"1 of 4 worlds 'world' start with bodies inside each other: world 2: 'a/b', up to 0."
    with pytest.warns(SimulationWarning, match=message):
        worlds.step()
    worlds.step()  # says so once
    worlds.reset([1, 3])
    worlds.step()
    states = list(worlds.state)
    states[3] = states[3]._replace(q=q[2])
    worlds.set_state(states)
    with pytest.warns(SimulationWarning, match=r"world 3: 'a/b'"):
        worlds.step()


def test_a_batch_that_starts_inside_names_its_worlds_at_each_reset(world):
    _set_pose(world)
    worlds = world.batch(3)
    with pytest.warns(SimulationWarning, match=r"3 of 3 worlds.*: world 0: 'a/b', up to 0.05 m; w"):
        worlds.step()
    worlds.reset(1)
    with pytest.warns(SimulationWarning, match=r"1 of 3 worlds.*: world 1: 'a/b'"):
        worlds.step()


def test_worlds_of_other_sizes_are_looked_at_one_by_one():
    world = kt.World()
    world.add(Box((0.2, 0.2, 0.2)), mass=1.0, name="a")
    world.add(Box((0.2, 0.2, 0.2)), mass=1.0, name="b", at=(0, 0, 0.25))
    worlds = world.batch(3, size={"a": [1.0, 2.0, 1.2]})
    with pytest.warns(SimulationWarning, match=r"1 of 3 worlds.*: world 1: 'a/b', up to 0.05 m"):
        worlds.step()


def test_joints_beyond_limits_are_named_whenever_they_are_set():
    world = kt.World()
    arm = world.add("ur5", name="arm")
    world.step()
    arm.q = arm.q + np.array([7.0, 0, 0, 0, 0, 0])
    with pytest.warns(SimulationWarning, match=r"joints beyond their limits: 'arm\."):
        world.step()
    worlds = world.batch(2)
    q = worlds.q
    q[1, 0] = 9.0
    worlds.q = q
    with pytest.warns(SimulationWarning, match=r"joints beyond their limits: .*world 1: 'arm\."):
        worlds.step()


def test_rollouts_of_worlds_check_their_starts(world):
    worlds = world.batch(3)
    q = worlds.q
    q[1, 9] = 0.25
    worlds.q = q
    with pytest.warns(SimulationWarning, match=r"1 of 3 worlds.*: world 1: 'a/b'"):
        kt.rollout(worlds, steps=2)
    kt.rollout(worlds, steps=2)  # says so once
    _set_pose(world)
    with pytest.warns(SimulationWarning, match=INSIDE):
        kt.rollout(world, steps=2)
