"""Friction against sliding, spinning and rolling: limits that do not depend on one another."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.newton.cones import OPEN, SLIDING, STICKING, held_slip, law, project, slip
from kinetree.contact.newton.problem import problem_of, with_room

G, RADIUS, MASS = 9.81, 0.1, 1.3
DISCS = {4: ((1, 3), (3, 4)), 6: ((1, 3), (3, 4), (4, 6))}


def one_contact(dim, mu):
    problem = with_room(problem_of([-1]), 1, 6, 1, 6)
    problem.dim[0], problem.mu[0], problem.kind[0] = dim, mu, 0
    return problem


def lengths(x, dim):
    return np.array([np.linalg.norm(x[a:b]) for a, b in DISCS[dim]])


@pytest.mark.parametrize("dim", [4, 6])
def test_the_projection_is_the_nearest_of_admissible_impulses(dim):
    rng, problem, mu = np.random.default_rng(dim), one_contact(dim, 0.7), 0.7
    for _ in range(200):
        y, p = rng.normal(size=6), np.zeros(6)
        project(problem, 0, y, p)
        assert p[0] >= 0
        assert np.all(lengths(p, dim) <= mu * p[0] * (1 + 1e-12) + 1e-15)
        x = rng.normal(size=(50, 6))
        x[:, 0] = np.abs(x[:, 0]) + 0.1
        for row in x:
            for a, b in DISCS[dim]:
                row[a:b] *= min(1.0, mu * row[0] / np.linalg.norm(row[a:b]))
        assert np.max((x - p)[:, :dim] @ (y - p)[:dim]) < 1e-12


@pytest.mark.parametrize("dim", [4, 6])
def test_discs_are_cut_one_by_one(dim):
    problem, p = one_contact(dim, 0.5), np.zeros(6)
    y = np.array([2.0, 3.0, 4.0, 0.5, 0.3, -0.4])
    assert law(problem, 0, y, p) == SLIDING
    np.testing.assert_allclose(p[:4], [2.0, 0.6, 0.8, 0.5], rtol=1e-14)
    y[1:3] = 0.1
    assert law(problem, 0, y, p) == STICKING
    assert law(problem, 0, -y, p) == OPEN
    w = np.array([0.0, 0.3, 0.4, 0.2, 0.0, 0.1])
    assert abs(slip(w, dim) - lengths(w, dim).sum()) < 1e-15
    assert held_slip(dim, 0.5, np.array([2.0, 1.0, 0, 0, 0, 0]), w, 0.0) == 0.2


def rolled(friction, spin, velocity=(1.0, 0, 0), steps=250, **coefficients):
    """Velocities of a ball after some steps on the ground."""
    world = kt.World(gravity=(0, 0, -G), friction=None)
    world.add_ground(friction=friction)
    ball = world.add(
        kt.geometry.Sphere(RADIUS), mass=MASS, at=(0, 0, RADIUS), condim=6, friction=friction,
        velocity=velocity, spin=spin, **coefficients,
    )  # fmt: skip
    world.step(steps)
    return ball.velocity[:3], ball.pose[:3, :3] @ world.qd[:3], world.time


@pytest.mark.parametrize("rolling", [0.002, 0.01])
def test_rolling_friction_slows_a_ball_that_does_not_slip(rolling):
    v, turn, t = rolled(0.5, (0, 1 / RADIUS, 0), rolling=rolling, torsion=0.0)
    assert abs(v[0] - (1 - 5 / 7 * G * rolling / RADIUS * t)) < 1e-9
    assert abs(v[0] - RADIUS * turn[1]) < 1e-9


def test_a_ball_that_slides_and_spins_is_slowed_by_each_as_if_alone():
    mu, torsion = 0.1, 0.02
    v, turn, t = rolled(mu, (0, 0, 60.0), steps=100, torsion=torsion, rolling=0.0)
    assert abs(v[0] - (1 - mu * G * t)) < 1e-9
    inertia = 0.4 * MASS * RADIUS**2
    assert abs(turn[2] - (60 - torsion * MASS * G / inertia * t)) < 1e-7


def test_piles_with_friction_against_rolling_are_solved():
    rng, world = np.random.default_rng(0), kt.World(friction=0.5)
    world.add_ground()
    for k in range(12):
        shape = kt.geometry.Cylinder(0.07, 0.2) if k % 2 else kt.geometry.Sphere(0.1)
        at = [*rng.uniform(-0.12, 0.12, 2), 0.15 + 0.2 * k]
        world.add(shape, mass=rng.uniform(0.3, 3), at=at, condim=6, torsion=0.02, rolling=0.01)
    engine = world._whole.steps.engine
    for _ in range(400):
        world.step(1)
        assert engine.s.unsolved == 0
        rows = engine.rows
        force = rows.force[: rows.contacts]
        for a, b in DISCS[6]:
            excess = np.linalg.norm(force[:, a:b], axis=1) - 0.5 * force[:, 0]
            assert np.max(excess, initial=0.0) < 1e-3
