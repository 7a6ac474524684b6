"""``kinetree.health``: what is found, and what is said about it."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.diagnosis.health import Health, health, trial_acceleration


def test_a_sound_robot_has_nothing_to_report():
    found = health(kt.samples.panda())
    assert isinstance(found, Health)
    assert found.is_good
    assert found.round_trip < 1e-12
    assert 100 < found.condition < 1e5
    assert max(found.digits_lost) < 3
    text = str(found)
    assert "panda: nothing found" in text
    assert "digits lost to rounding" in text


def test_a_long_chain_is_named_for_its_conditioning():
    found = health(kt.samples.chain(16))
    (cause,) = found.causes
    assert "16 bodies in line give the inertia matrix the condition number" in cause.what
    assert "a spanning tree of less depth" in cause.advice
    assert found.digits_lost[1] > found.digits_lost[0]


def test_distance_speed_frames_and_masses_are_named(rng):
    robot = kt.samples.quadruped()
    q, qd = robot.neutral(), np.zeros(robot.nv)
    q[0], qd[3] = 1e6, 7e3
    found = str(health(robot, q, qd))
    assert "the mechanism is 1e+06 m from the origin" in found
    assert "all bodies fly at about 7e+03 m/s" in found
    ball = kt.shapes.sphere(0.1, mass=1.0, at=(50.0, 0, 0))
    odd = (
        kt.ModelBuilder("odd")
        .body("a", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1e-6))
        .body("b", on="a", joint=kt.Revolute("y"), at=(0.2, 0, 0), inertia=ball)
        .build()
    )
    found = str(health(odd))
    assert "the mass centre of body 'b' is 645 radii of gyration from its frame" in found
    assert "body 'b' is 1e+06 times as heavy as 'a', which carries it" in found


def test_influence_is_the_derivative_with_respect_to_inertias(rng):
    model = kt.samples.arm()
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    found = health(model, q, qd).influence
    tau, h = kt.inverse_dynamics(model, q, qd, np.ones(model.nv)), 1e-6
    for name, I in zip(model.body_names[1:], model.inertia[1:], strict=True):
        heavier = model.replace(inertia={name: (1 + h) * I}, strict=False)
        change = (kt.forward_dynamics(heavier, q, qd, tau) - 1) / h
        np.testing.assert_allclose(found[name], np.max(np.abs(change)), rtol=1e-4, atol=1e-6)


def test_closed_mechanisms_in_good_shape_have_nothing_to_report():
    for make in (kt.samples.four_bar, kt.samples.loader):
        found = health(make())
        assert found.is_good, str(found)
        assert found.round_trip < 1e-11
        assert max(found.digits_lost) < 6


@pytest.mark.covers("RBDA 10.1", by=health)
def test_loops_that_are_nearly_singular_are_the_fourth_cause():
    """A parallelogram near the pose in which all links are in line."""
    model = kt.samples.five_bar()
    flat = np.array(model.posture("singular").q)
    conditions = []
    for away in (1e-2, 1e-4, 1e-6):
        q = kt.loops.assemble(model, flat + away * np.array([1.0, -2.0, 0.5, 0.0]))
        found = health(model, q)
        near = kt.loops.singularity(model, q)
        conditions.append(near.kappa)
        (cause,) = [c for c in found.causes if "closure of the loops" in c.what] or [None]
        assert (cause is not None) == (near.kappa > 1e3)
    assert f"{near.kappa:.3g}" in cause.what
    assert "'link" in cause.what
    assert "SVDForm" in cause.advice
    assert conditions == sorted(conditions)
    at = health(model, flat)
    assert any("closure of the loops" in c.what for c in at.causes)


def test_influence_of_inertias_in_a_linkage_is_a_derivative():
    model = kt.samples.four_bar()
    q = kt.loops.assemble(model, np.array([0.4, 0.1, 0.2]))
    qd = kt.loops.project_velocity(model, q, np.ones(3))
    found, h = health(model, q, qd).influence, 1e-6
    qdd = trial_acceleration(model, q, qd)
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    for name, I in zip(model.body_names[1:], model.inertia[1:], strict=True):
        heavier = model.replace(inertia={name: (1 + h) * I}, strict=False)
        change = (kt.forward_dynamics(heavier, q, qd, tau) - qdd) / h
        expected = np.max(np.abs(change)) / np.max(np.abs(qdd))
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-6)


def ball(joint, **options):
    inertia = kt.shapes.box(0.3, 0.2, 0.1, mass=2.0)
    return kt.ModelBuilder("ball").body("body", joint=joint, inertia=inertia, **options).build()


@pytest.mark.parametrize(
    ("model", "q"),
    [
        (ball(kt.joints.Exponential()), [2 * np.pi, 0, 0]),
        (ball(kt.joints.Euler("zyx")), [0.1, np.pi / 2, 0]),
    ],
)
def test_singular_variables_are_named_and_no_error(model, q):
    found = health(model, q)
    assert found.condition > 1e15
    assert found.round_trip == np.inf
    text = " ".join(map(str, found.causes))
    assert "variables of joint 'body_joint'" in text
    assert "are close to singular" in text
    assert "no accelerations can be computed at this state" in text
    assert "in line" not in text
    nearly = health(model, np.array(q) + 1e-4)
    assert not nearly.is_good
    assert nearly.round_trip < 1e-6


def test_a_joint_without_inertia_is_named_and_no_error():
    bare = kt.ModelBuilder("bare").body("arm", joint=kt.Revolute("x")).build()
    found = health(bare)
    assert found.condition == np.inf
    assert "joint 'arm_joint' moves no inertia" in str(found)


@pytest.mark.parametrize("model", [kt.Model(), ball(kt.Fixed())])
def test_nothing_that_moves_is_healthy_and_linear(model):
    assert health(model).is_good
    assert "condition of the inertia matrix   1 " in str(health(model))
    linear = kt.linearize(model, *[np.zeros(0)] * 3)
    assert linear.A.shape == linear.B.shape == (0, 0)
    assert kt.linearize(model, *[np.zeros(0)] * 3, dt=0.1).A.shape == (0, 0)


def test_frames_are_named_from_two_radii_on_and_cost_digits_from_twenty():
    """A sphere has the radius of gyration sqrt(3/5) times its own; see RBDA Fig. 10.2."""
    for radii, is_named, is_far in ((1.9, 0, 0), (2.1, 1, 0), (19.0, 1, 0), (21.0, 1, 1)):
        away = radii * np.sqrt(3 / 5) * 0.1
        inertia = kt.shapes.sphere(0.1, mass=1.0, at=(away, 0, 0))
        m = kt.ModelBuilder("far").body("ball", joint=kt.Revolute("z"), inertia=inertia).build()
        found = health(m)
        assert ("radii of gyration from its frame" in str(found)) == is_named
        assert ("1 found" in str(found)) == is_named
        assert ("nothing found" in str(found)) != is_named
        assert found.is_good != is_far


def two_spheres(first, second):
    """Spheres of one material, with the second on the first."""
    density = 1000.0 * 4 / 3 * np.pi
    inertias = [kt.shapes.sphere(r, mass=density * r**3) for r in (first, second)]
    return (
        kt.ModelBuilder("two")
        .body("a", joint=kt.Revolute("z"), inertia=inertias[0])
        .body("b", on="a", joint=kt.Revolute("y"), at=(0.1, 0, 0), inertia=inertias[1])
        .build()
    )


@pytest.mark.parametrize(("first", "second"), [(0.1, 1.0), (1.0, 0.1)])
def test_unlike_neighbours_are_named_in_both_directions(first, second):
    """Ten times as large is a thousand times the mass, and 1e5 times the moments of inertia."""
    (note,) = health(two_spheres(first, second)).notes
    large, small = ("a", "b") if first > second else ("b", "a")
    assert f"body {large!r} has 1e+03 times the mass and 1e+05 times the moments" in note.what
    assert f"of its neighbour {small!r}" in note.what
    assert "join bodies that are too light to matter" in note.advice
    assert not health(two_spheres(0.1, 0.9)).notes


def test_a_large_condition_number_is_never_left_without_a_word():
    """Arms far apart in size, whose joints are on the base: no two of them are neighbours."""
    b = kt.ModelBuilder("unlike")
    for name, mass in (("crane", 1e6), ("probe", 1e-5)):
        inertia = kt.shapes.sphere(0.1, mass=mass)
        b.body(name, joint=kt.Revolute("z"), inertia=inertia, joint_name=name)
    found = health(b.build())
    assert found.condition > 1e10
    assert "nothing found" not in str(found)
    (note,) = found.notes
    assert "condition number 1e+11: joint 'crane' moves 4e+03, joint 'probe' 4e-08" in note.what
    assert "costs no digits by itself" in note.advice


def test_a_batch_of_states_is_rejected():
    with pytest.raises(kt.ShapeError, match="health is about one state"):
        health(ball(kt.joints.Euler("zyx")), np.zeros((2, 3)))
