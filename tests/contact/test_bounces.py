"""Bounces: at the surface and at the time of impact, of second order, and without energy gained."""

import numpy as np
import pytest
from support.spatial_quantities import random_rotation

import kinetree as kt

G = 9.81


def drop(h, restitution, radius=0.1):
    world = kt.World(timestep=h, restitution=restitution, gravity=(0, 0, -G))
    world.add_ground()
    world.add(kt.geometry.Sphere(radius), mass=1.0, at=(0, 0, 1 + radius))
    return world


def height(t, e):
    """Of a ball that falls from 1 m, above the ground."""
    speed = np.sqrt(2 * G)
    t = t - speed / G
    if t < 0:
        return 1 - G * (t + speed / G) ** 2 / 2
    speed *= e
    while t > 2 * speed / G:
        t, speed = t - 2 * speed / G, speed * e
    return speed * t - G * t * t / 2


@pytest.mark.parametrize("h", [4e-3, 2e-3])
@pytest.mark.parametrize("e", [0.3, 0.8, 1.0])
def test_a_ball_bounces_as_high_as_it_should_and_on_the_ground(h, e):
    world = drop(h, e)
    for k in range(round(0.7 / h)):
        world.step(1)
        assert abs(world.q[2] - 0.1 - height((k + 1) * h, e)) < 1e-12


def tumbling(h):
    world = kt.World(timestep=h, restitution=0.6, friction=0.4)
    world.add_ground()
    pose = np.eye(4)
    pose[:3, :3] = random_rotation(np.random.default_rng(3))
    pose[2, 3] = 0.5
    world.add(kt.geometry.Box((0.2, 0.3, 0.1)), mass=1.0, at=pose, spin=(2.0, 3.0, 1.0))
    return world


def colliding(h):
    world = kt.World(timestep=h, restitution=0.7, friction=0.3, gravity=(0, 0, 0))
    small, large = kt.geometry.Sphere(0.1), kt.geometry.Sphere(0.15)
    world.add(small, mass=1.0, at=(0, 0, 0), velocity=(1, 0.1, 0), spin=(0, 3, 1))
    world.add(large, mass=2.0, at=(0.5, 0.07, 0.03), velocity=(-0.5, 0.2, 0.1))
    return world


def swinging(h):
    """An arm of two links, whose tip hits the ground."""
    builder = kt.ModelBuilder("arm")
    for name, on, at, mass, centre in (
        ("a", None, (0, 0, 0.5), 1.0, 0.2), ("b", "a", (0.4, 0, 0), 0.7, 0.15),
    ):  # fmt: skip
        I = kt.Inertia.from_mass_center(mass, (centre, 0, 0), np.diag([0.001, 0.01, 0.01]))
        builder.body(name, on=on, joint=kt.Revolute("y"), at=at, inertia=I)
    builder.geometry(kt.geometry.Sphere(0.03), on="b", at=(0.3, 0, 0))
    world = kt.World(timestep=h, restitution=0.6, friction=0.4)
    world.add_ground()
    world.add(builder.build(), q=[-0.3, 0.5])
    return world


@pytest.mark.parametrize(
    ("world", "duration", "bound"),
    [(tumbling, 0.32, 100), (colliding, 0.6, 10), (swinging, 0.4, 1000)],
    ids=["tumbling box", "two balls", "arm"],
)
def test_bounces_are_of_second_order(world, duration, bound):
    ends = {}
    for h in (4e-3, 2e-3, 1e-3, 1e-4):
        w = world(h)
        w.step(round(duration / h))
        ends[h] = np.concatenate([w.q, w.qd])
    for h in (4e-3, 2e-3, 1e-3):
        assert np.abs(ends[h] - ends[1e-4]).max() < bound * h * h


def test_what_rests_beside_a_bounce_stays_where_it_is():
    world = kt.World(friction=0.5)
    world.add_ground(restitution=0.0)
    box = world.add(kt.geometry.Box((0.4, 0.4, 0.1)), mass=3.0, at=(0, 0, 0.05), restitution=0.0)
    ball = world.add(kt.geometry.Sphere(0.05), mass=0.5, at=(0.05, 0.02, 0.5), restitution=0.8)
    highest, was = 0.0, 1.0
    for _ in range(400):
        world.step(1)
        assert np.abs(box.position - (0, 0, 0.05)).max() < 1e-6
        rises, was = ball.position[2] > was, ball.position[2]
        highest = max(highest, ball.position[2] if rises else 0.0)
    assert abs(highest - 0.15 - 0.8**2 * 0.35) < 1e-5


def test_elastic_bounces_keep_energy_and_gain_none():
    world = kt.World(restitution=1.0, friction=0.0)
    world.add_ground()
    world.add(kt.geometry.Box((0.2, 0.3, 0.1)), mass=1.0, at=(0, 0, 0.5), spin=(2.0, 1.0, 3.0))
    model, energy = world.model, []
    for _ in range(500):
        world.step(1)
        energy.append(kt.kinetic_energy(model, world.q, world.qd))
        energy[-1] += kt.potential_energy(model, world.q)
    assert np.max(np.diff(energy)) < 1e-12
    assert energy[0] - energy[-1] < 2e-3 * energy[0]


def test_bodies_that_hit_in_flight_keep_their_momentum():
    world = colliding(2e-3)
    model, momenta = world.model, []
    for _ in range(300):
        world.step(1)
        momenta.append(kt.centroidal_momentum(model, world.q, world.qd))
    assert np.abs(np.array(momenta) - momenta[0]).max() < 1e-10
