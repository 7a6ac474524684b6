"""Worlds of thousands of bodies: work in proportion to their number."""

from time import process_time

import numpy as np

import kinetree as kt
from kinetree.model.geometry import Box, Sphere


def _build(n):
    """Processor time of building a world of spheres, its first step included [s]."""
    side = np.arange(np.ceil(n ** (1 / 3)))
    grid = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)[:n]
    start = process_time()
    world = kt.World()
    world.add_ground()
    world.add(Sphere(0.1), mass=1.0, at=0.22 * grid + [0, 0, 0.15])
    world.step()
    world["sphere"].pose = kt.xlt([-1.0, 0, 1.0])
    world.step()
    return process_time() - start


def test_building_takes_time_in_proportion_to_the_bodies():
    """10,000 spheres took 67 s, half of it in lists of names and of variables for each of them."""
    _build(10)
    small, large = _build(1000), _build(6000)
    assert large < 12 * small + 0.5
    assert large < 6.0


def test_names_of_copies_are_numbered_and_their_inertias_equal():
    world = kt.World()
    world.add(Sphere(0.1), mass=1.0, name="ball_2", at=(0, 0, 9))
    balls = world.add(Sphere(0.1), mass=2.0, name="ball", at=np.eye(3))
    assert [b.name for b in balls] == ["ball", "ball_3", "ball_4"]
    masses = [world.model.inertia[b.numbers[0]].mass for b in balls]
    assert masses == [2.0, 2.0, 2.0]
    assert [b.position.tolist() for b in balls] == np.eye(3).tolist()


def test_more_contacts_do_not_double_the_room_of_factors():
    """A spread of boxes has factors of 36 numbers each, however often lists of contacts grow."""
    world = kt.World(timestep=2e-3)
    world.add_ground()
    at = [(0.3 * (k % 20), 0.3 * (k // 20), 0.05) for k in range(400)]
    world.add(Box((0.1, 0.1, 0.1)), mass=1.0, at=at)
    world.step(3)
    engine = world._whole.steps.engine
    assert engine.rows.groups_room >= 1600
    assert len(engine.work.H) <= 4 * len(engine.problem.M)
