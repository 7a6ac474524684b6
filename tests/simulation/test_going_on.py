"""Motions that go on from where another one ended, or where a world is."""

from typing import Any

import numpy as np
import pytest

import kinetree as kt
from kinetree.model import Actuator, JointDynamics

U = np.array([0.8])


def pendulum(activation="filter", ball=False):
    """A pendulum with a servo whose force follows its control with a delay."""
    b = kt.ModelBuilder("pendulum")
    b.body(
        "rod", joint=kt.Revolute("y"), joint_name="hinge", at=(0, 0, 0.5),
        inertia=kt.Inertia.from_mass_center(1.0, (0, 0, -0.3), 0.02 * np.eye(3)),
        dynamics=JointDynamics(damping=0.1),
    )  # fmt: skip
    b.geometry(kt.geometry.Sphere(0.05), on="rod", at=(0, 0, -0.4), name="tip")
    if ball:
        b.body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=0.5))
        b.geometry(kt.geometry.Sphere(0.1), on="ball", name="ball")
    model = b.build()
    drive = Actuator(
        "drive", joint=1, gain=(6.0, 0.0, 0.0), bias=(0.0, -2.0, -0.1),
        activation=activation, time_constant=0.2 if activation == "filter" else 0.0,
    )  # fmt: skip
    return model.replace(actuators=[drive])


def joined(first, second, name):
    return np.concatenate([getattr(first, name), getattr(second, name)[1:]])


def assert_goes_on(model, q, **options):
    """A motion in two parts has the bits of the one that was not interrupted."""
    whole = kt.simulate(model, q, duration=0.6, **options)
    first = kt.simulate(model, q, duration=0.25, **options)
    second = kt.simulate(model, first.state, duration=0.35, **options)
    assert second.t[0] == pytest.approx(0.25)
    for name in ("t", "q", "qd", "activation"):
        if getattr(whole, name) is not None:
            np.testing.assert_array_equal(joined(first, second, name), getattr(whole, name))


def test_without_contact_activations_go_on():
    assert_goes_on(pendulum(), [0.3], controls=U)


def test_with_soft_contact_that_remembers():
    model = kt.contact.with_ground(pendulum(ball=True))
    scene = kt.contact.Scene(model, pairs="base")
    soft = kt.contact.SoftContact(scene, stiffness=2e3, damping=20.0, law="patch")
    q = [0.3, 0.5, 0, 0.098, 1, 0, 0, 0]
    assert_goes_on(model, q, contact=soft, controls=U, integrator="rk4")


def test_with_rigid_contact_the_solver_goes_on_too():
    model = kt.contact.with_ground(pendulum(ball=True))
    contact = kt.contact.TimeStepping(kt.contact.Scene(model))
    q = [0.3, 0.5, 0, 0.12, 1, 0, 0, 0]
    assert_goes_on(model, q, contact=contact, controls=U, limits="rigid")


@pytest.mark.parametrize("activation", ["filter", "integrator"])
def test_a_world_is_simulated_from_its_activations_and_time(activation):
    world = kt.World(timestep=1e-3)
    world.add(pendulum(activation), name="arm")
    world.step(200, control=U)
    motion: Any = kt.simulate(world, duration=0.3, controls=U)
    rolled: Any = kt.rollout(world, steps=300, controls=U)
    alone = kt.simulate(world, world.q, world.qd, duration=0.3, controls=U)
    assert motion.t[0] == rolled.t[0] == pytest.approx(0.2)
    assert alone.t[0] == 0.0
    np.testing.assert_array_equal(motion.activation[0], world.activation)
    world.step(300, control=U)
    np.testing.assert_allclose(rolled.q[-1], world.q, atol=1e-7)
    np.testing.assert_allclose(motion.q[-1], world.q, atol=1e-5)  # flight by another scheme
    np.testing.assert_allclose(motion.activation[-1], world.activation, rtol=1e-12)
    assert abs(alone.q[-1] - world.q).max() > 0.05  # from activations of zero


def test_a_world_returns_to_the_state_of_its_simulation():
    world = kt.World()
    world.add_ground()
    world.add(kt.geometry.Box((0.2, 0.2, 0.2)), mass=1.0, at=(0, 0, 0.12), velocity=(1, 0, 0))
    world.step(30)
    motion = kt.simulate(world, duration=50 * world.timestep)
    other = world.copy()
    other.set_state(motion.state)
    other.step(20)
    world.step(70)
    np.testing.assert_array_equal(other.q, world.q)
    assert other.time == pytest.approx(world.time)


def test_parts_of_a_motion_know_their_states():
    motion: Any = kt.simulate(pendulum(), [0.3], duration=0.1, controls=U)
    part = motion[:50]
    assert part.state.time == motion.t[49]
    np.testing.assert_array_equal(part.state.q, motion.q[49])
    np.testing.assert_array_equal(part.state.activation, motion.activation[49])
    assert motion[::10].state is motion.state
