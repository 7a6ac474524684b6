"""``kinetree.health``: what is found, and what is said about it."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.accuracy import Health, health


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


def test_loops_are_refused_by_name():
    with pytest.raises(kt.LoopError, match="health"):
        health(kt.samples.four_bar())
