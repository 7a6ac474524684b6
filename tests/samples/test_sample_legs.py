"""Robots with legs, and things that float or spin."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import frame_pose

from kinetree import samples
from kinetree.algorithms import aba
from kinetree.contact import Scene, with_ground
from kinetree.joints import Free, Revolute

MIRROR = np.diag([1.0, -1.0, 1.0])


def mass(model):
    return sum(b.inertia.mass for b in model.bodies)


def home(model):
    return np.array(model.postures[0].q)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_left_and_right_are_mirror_images(name):
    model = samples.load(name)
    pairs = [(b.name, b.name.replace("left", "right")) for b in model.bodies if "left" in b.name]
    assert 2 * len(pairs) == sum("left" in b.name or "right" in b.name for b in model.bodies)
    for one, other in pairs:
        left, right = (model.bodies[model.body_index(n) - 1] for n in (one, other))
        assert left.joint == right.joint
        assert left.joint_name.replace("left", "right") == right.joint_name
        np.testing.assert_array_equal(MIRROR @ left.placement.r, right.placement.r)
        assert left.inertia.mass == right.inertia.mass
        assert_close(MIRROR @ left.inertia.first_moment, right.inertia.first_moment, scale=1)
        assert_close(MIRROR @ left.inertia.rotational @ MIRROR, right.inertia.rotational)
        _check_limits(left, right)
        shapes = [
            [p for p in model.geometry if p.body == model.body_index(n)] for n in (one, other)
        ]
        for a, b in zip(*shapes, strict=True):
            assert a.shape == b.shape
            np.testing.assert_array_equal(MIRROR @ a.placement.r, b.placement.r)


def _check_limits(left, right):
    turned = left.joint != Revolute("y")  # rolls and yaws go the other way round
    lower, upper = left.limits.lower[0], left.limits.upper[0]
    expected = (-upper, -lower) if turned else (lower, upper)
    assert (right.limits.lower[0], right.limits.upper[0]) == expected
    assert right.limits.velocity == left.limits.velocity
    assert right.limits.effort == left.limits.effort


def test_quadruped_floats_and_stands_on_its_feet():
    dog = samples.quadruped()
    assert isinstance(dog.joint[1], Free)
    assert (dog.nv, len(dog.actuators)) == (18, 12)
    feet = [frame_pose(dog, dog.neutral(), f)[:3, 3] for f in dog.frame_names]
    assert_close(np.mean(feet, axis=0), np.array([0, 0, -0.4]), scale=1)
    assert mass(dog) == pytest.approx(12.0)
    for foot in dog.frame_names:
        assert_close(frame_pose(dog, home(dog), foot)[2, 3], 0.02)  # the radius of the foot


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "hopping_leg"])
def test_no_body_is_inside_another(name):
    model = samples.load(name)
    scene = Scene(model)
    assert scene.pairs
    for q in (model.neutral(), home(model)):
        found = scene.contacts(q)
        assert not found.size, list(zip(found.names, found.gap, strict=True))


def test_humanoid_stands_on_the_ground_with_the_default_scene():
    person = with_ground(samples.humanoid())
    scene = Scene(person)
    touching = scene.contacts(home(person), margin=1e-9)
    assert {name.partition(":")[0] for name in touching.names} == {
        "ground/left_foot", "ground/right_foot",
    }  # fmt: skip
    assert_close(touching.gap, np.zeros(8), scale=1.0)


def test_humanoid_has_the_size_of_a_person_and_thirty_joints():
    person = samples.humanoid()
    assert isinstance(person.joint[1], Free)
    assert (person.nv, len(person.actuators)) == (36, 30)
    assert mass(person) == pytest.approx(73.0)
    q = person.neutral()
    soles = [frame_pose(person, q, f"{side}_sole")[:3, 3] for side in ("left", "right")]
    assert_close(soles[0] * [1, -1, 1], soles[1])
    head = person.geometry[[p.body for p in person.geometry].index(person.body_index("head"))]
    top = frame_pose(person, q, "head")[2, 3] + head.placement.r[2] + head.shape.radii[2]
    assert top - soles[0][2] == pytest.approx(1.741, abs=0.002)
    for side in ("left", "right"):
        sole = frame_pose(person, home(person), f"{side}_sole")
        assert_close(sole[2], np.array([0, 0, 1.0, 0]), scale=1)  # flat on the ground


def test_hopping_leg_has_the_mass_and_inertia_of_the_paper():
    model = samples.hopping_leg()
    body = model.bodies[0].inertia
    assert (body.mass, mass(model)) == pytest.approx((10.0, 11.0))
    assert_close(body.center_of_mass, np.array([0, 0, 0.4]))
    assert body.rotational_at_center[1, 1] == pytest.approx(10.0, rel=0.02)
    assert_close(frame_pose(model, home(model), "foot")[:3, 3], np.zeros(3), scale=1)
    assert model.bodies[2].dynamics.stiffness == (1000.0,)
    longer = np.add(home(model), [0, 0, 0, 0, 0.1])
    assert_close(frame_pose(model, longer, "foot")[2, 3], -0.1)


def test_gyroscope_precesses_as_the_weight_and_the_spin_demand():
    model = samples.gyroscope()
    q, qd = np.array(model.postures[1].q), np.array(model.postures[1].qd)
    moment, spin_inertia = 0.1 * 9.81 * 0.13, 2.0 * 0.1**2 / 2
    qd[0] = moment / (spin_inertia * qd[2])
    qdd = aba.forward_dynamics(model, q, qd, np.zeros(3))
    assert_close(qdd, np.zeros(3), scale=moment / 0.01)
    qd[0] = 0
    assert aba.forward_dynamics(model, q, qd, np.zeros(3))[1] < -10  # it would fall
    assert_close(frame_pose(model, q, "weight")[:3, 3], np.array([0, 0.13, 0]))


def test_satellite_floats_without_gravity():
    model = samples.satellite()
    assert model.joint_names == ("bus_floating", "hinge")
    assert not model.gravity.any()
    assert mass(model) == 320.0
