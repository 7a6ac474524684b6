"""Contacts of simulated motions on the stage."""

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.model import geometry
from kinetree.viewer.scenes.contacts import forces_seen

MASS, SLOPE = 2.0, 0.2


@pytest.fixture(scope="module")
def rolling():
    """A ball on a slope, and where it can touch."""
    builder = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=MASS)
    )
    builder.geometry(geometry.Sphere(0.1), on="ball", name="ball")
    normal = np.array([np.sin(SLOPE), 0.0, np.cos(SLOPE)])
    model = kt.contact.with_ground(builder.build(), normal=normal)
    scene = kt.contact.Scene(model, friction=0.6)
    q = model.neutral()
    q[:3] = 0.1 * normal
    contact = kt.contact.TimeStepping(scene)
    return kt.simulate(model, q, duration=0.05, dt=1e-3, contact=contact), scene, normal


def test_points_normals_and_forces_are_those_of_the_motion(rolling):
    motion, scene, normal = rolling
    shown = kt.viewer.contacts_of(motion, scene)
    assert shown.count == 1
    assert np.allclose(shown.points[:, 0], motion.q[:, :3] - 0.1 * normal, atol=1e-9)
    assert np.allclose(shown.normals[:, 0], normal, atol=1e-12)
    assert np.allclose(shown.friction, 0.6)
    # it rolls: two sevenths of the slope's pull is friction, uphill
    weight = MASS * 9.81
    uphill = np.array([-np.cos(SLOPE), 0.0, np.sin(SLOPE)])
    expected = weight * np.cos(SLOPE) * normal + 2 / 7 * weight * np.sin(SLOPE) * uphill
    assert np.allclose(shown.forces[-1, 0], expected, atol=1e-6)


def test_a_contact_that_is_open_is_not_shown(rolling):
    motion, scene, normal = rolling
    lifted = motion.q.copy()
    lifted[:, :3] += 0.01 * normal
    shown = kt.viewer.contacts_of(replace(motion, q=lifted), scene)
    assert np.all(np.isnan(shown.points))


def test_all_forces_of_a_world_are_seen():
    """Contacts of boxes, in steps and in scenes, are called by the corners that touch."""
    world = kt.World()
    world.add_ground()
    world.add(geometry.Box((0.2, 0.2, 0.2)), mass=MASS, at=[(0, 0, 0.1), (0.02, 0, 0.3)])
    motion = kt.simulate(world, duration=0.02)
    shown = forces_seen(motion)
    assert shown.count == 8
    low = shown.points[..., 2] < 0.1
    for t in range(1, len(motion.t)):
        np.testing.assert_allclose(
            shown.forces[t, low[t]].sum(axis=0), (0, 0, 2 * MASS * 9.81), atol=1e-4
        )
    world.step(10)
    assert set(motion.contact.names) == set(world.contacts().names)


def test_the_scene_of_the_viewer_has_them(rolling):
    motion, scene, _ = rolling
    stage = kt.viewer.scene(motion, contacts=kt.viewer.contacts_of(motion, scene))
    assert any(part.name == "friction cone 1" for part in stage.parts)


def test_a_motion_without_contact_raises(rolling):
    _, scene, _ = rolling
    motion = kt.simulate(kt.samples.pendulum(), [0.1], duration=0.01)
    with pytest.raises(
        kt.errors.ContactError, match=r"simulate it with contact=, such as kt\.simulate"
    ):
        kt.viewer.contacts_of(motion, scene)
