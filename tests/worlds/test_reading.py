"""Reading poses, velocities and contacts of a world: values, and microseconds."""

import pickle
import timeit

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import UnknownNameError
from kinetree.model.geometry import Box


@pytest.fixture(scope="module")
def world():
    """A tumbling box, a stack, and an arm that falls."""
    world = kt.World()
    world.add_ground(friction=0.5)
    world.add(Box((0.1, 0.2, 0.1)), mass=1.0, at=[(0, 0, 0.05), (0, 0, 0.15)])
    world.add(Box((0.1, 0.1, 0.3)), mass=1.0, name="tumbling", at=(1, 0, 1), velocity=(1, 2, 3),
              spin=(3, -2, 5))  # fmt: skip
    world.add("double_pendulum", name="arm", at=(3, 0, 2))
    world.step(40)
    return world


def test_robots_whose_names_parts_cannot_have_get_others():
    """As Adroit hands, ADROIT-door(v1.5): a dot stands before what belongs to a part."""
    model = kt.samples.double_pendulum().replace(name="arm(v1.5)/left")
    world = kt.World()
    assert world.add(model).name == "arm(v1_5)_left"
    with pytest.raises(kt.ModelError, match=r"must be a string without '\.' and '/', got 'a\.b'"):
        world.add(model, name="a.b")


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("name", ["box", "box_2", "tumbling", "arm.lower"])
def test_pose_and_velocity_of_a_part_are_those_of_its_body(world, name, ahead):
    if ahead:  # the state is still in the engine
        world.step()
    part, body = world[name], world.model
    found = part.pose, part.position, part.velocity, part.spin
    pose = kt.pose(body, world.q, name)
    twist = kt.velocity(body, world.q, world.qd, name, frame="aligned")
    for x, y in zip(found, (pose, pose[:3, 3], twist[3:], twist[:3]), strict=True):
        assert_close(x, y)
        x[...] = 0.0  # a copy
    assert_close(part.pose, pose)


def test_what_was_read_stays_when_steps_follow(world):
    at = world["tumbling"].position
    kept, contacts = at.copy(), world.contacts()
    force = contacts.force.copy()
    world.step(3)
    assert np.array_equal(at, kept)
    assert np.array_equal(contacts.force, force)
    assert not np.array_equal(world["tumbling"].position, kept)


def test_contacts_have_the_names_and_forces_of_the_engine(world):
    world.step()
    found, engine = world.contacts(), world._whole.steps.machine.forces(0)
    assert found.names == engine.contacts.names
    axes = kt.contact.contacts.contact_axes(engine.contacts.normal)
    assert_close(found.force, np.einsum("nk,nki->ni", engine.force, axes))
    assert_close(found.slip, np.einsum("nk,nki->ni", engine.velocity[:, 1:], axes[:, 1:]))
    assert abs(found.of("box_2").normal_force.sum() - 9.81) < 1e-4
    assert len(found.between("box", "box_2")) == 4
    assert set(found.bodies) == {("world", "box"), ("box", "box_2")}
    with pytest.raises(UnknownNameError, match="has no part 'bx'"):
        found.of("bx")
    again = pickle.loads(pickle.dumps(found))
    assert again.names == found.names
    assert np.array_equal(again.point, found.point)


def test_reading_takes_microseconds(world):
    """70 to 120 µs each before: as long as ten steps. The bounds leave room for busy machines."""
    box = world["box"]
    world.step()
    limits = {
        "position": (lambda: box.position, 5), "velocity": (lambda: box.velocity, 15),
        "pose": (lambda: world["box"].pose, 15), "q": (lambda: world.q, 5),
        "contacts": (lambda: world.contacts().force, 20),
    }  # fmt: skip
    for name, (read, limit) in limits.items():
        took = min(timeit.repeat(read, number=50, repeat=40)) / 50 * 1e6
        assert took < limit, f"{name} takes {took:.1f} µs"
