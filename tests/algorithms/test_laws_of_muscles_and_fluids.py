"""Muscles and fluids by their own laws: slopes, knots, definitions; the same in compiled steps."""

from math import pi

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import muscles, passive
from kinetree.contact.engine import muscles as compiled
from kinetree.model.geometry import Box
from kinetree.model.muscle import Muscle
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_exp

MUSCLES = [
    Muscle(force=300.0, length_range=(0.18, 0.36)),
    Muscle(force=90.0, length_range=(-0.1, 0.2), range=(0.7, 1.1), lmin=0.4, lmax=1.7, vmax=2.0,
           fpmax=1.5, fvmax=1.4),
]  # fmt: skip
H = 1e-6


@pytest.mark.parametrize("muscle", MUSCLES, ids=["usual", "own"])
def test_forces_have_their_slopes_in_both_ways_of_computing(muscle, rng):
    """Lengths and velocities on both sides of all knots."""
    numbers = np.array(compiled.numbers_of(muscle))
    L0 = muscle.optimal_length
    for L, V, u in rng.uniform((0.2, -1.5, 0), (2.2, 1.5, 1), (300, 3)):
        length = muscle.length_range[0] + (L - muscle.range[0]) * L0
        velocity = V * L0 * muscle.vmax
        found = muscles.muscle_force(muscle, length, velocity, u)
        assert_close(compiled.muscle_force(numbers, length, velocity, u), found, scale=1e3)
        for k, step in enumerate(((H * L0, 0.0), (0.0, H * L0 * muscle.vmax)), start=1):
            low, high = (
                muscles.muscle_force(muscle, length + s * step[0], velocity + s * step[1], u)[0]
                for s in (-1, 1)
            )
            slope = (high - low) / (2 * sum(step))
            bend = muscle.force / (L0 * (1.0 if k == 1 else muscle.vmax)) * 1e-4
            assert abs(slope - found[k]) < bend  # a difference across a knot is between both slopes


@pytest.mark.parametrize("muscle", MUSCLES, ids=["usual", "own"])
def test_curves_at_their_knots(muscle):
    low, high, y = muscle.lmin, muscle.lmax, muscle.fvmax - 1
    active = {low: 0, (1 + low) / 2: 0.5, 1.0: 1, (1 + high) / 2: 0.5, high: 0, high + 1: 0}
    by_speed = {-2.0: 0, -1.0: 0, -0.5: 0.25, 0.0: 1, y: muscle.fvmax, y + 1: muscle.fvmax}
    b = (high - 1) / 2
    passive_force = {0.5: 0, 1.0: 0, 1 + b: 0.5, 1 + 2 * b: 1.5}
    for curve, same, known, more in (
        (muscles.force_length, compiled.force_length, active, (low, high)),
        (muscles.force_velocity, compiled.force_velocity, by_speed, (muscle.fvmax,)),
        (muscles.passive_force_length, compiled.passive_force_length, passive_force,
         (high, muscle.fpmax)),
    ):  # fmt: skip
        factor = muscle.fpmax if curve is muscles.passive_force_length else 1.0
        for x, value in known.items():
            assert_close(curve(muscle, x)[0], factor * value, scale=1.0)
            for s in (-1e-9, 1e-9):  # neither value nor slope jumps
                assert_close(curve(muscle, x + s)[0], factor * value, scale=1e8)
                assert_close(curve(muscle, x + s)[1], curve(muscle, x)[1], scale=1e9)
                assert_close(same(x + s, *more), curve(muscle, x + s), scale=10.0)


def test_activation_obeys_its_differential_equation(rng):
    """``a' = (u - a) / τ(a)``, rising and falling; after a long time it is the control."""
    rise, fall = 0.02, 0.06
    for u, a, t in rng.uniform(0, (1, 1, 0.1), (100, 3)):
        before, after, at = (
            muscles.muscle_activation(u, a, (rise, fall), t + s) for s in (-H, H, 0)
        )
        tau = rise * (0.5 + 1.5 * at) if u > at else fall / (0.5 + 1.5 * at)
        assert abs((after - before) / (2 * H) - (u - at) / tau) < 1e-4
        assert_close(compiled.muscle_activation(u, a, rise, fall, t), at, scale=1.0, ulps=1e4)
        assert_close(muscles.muscle_activation(u, a, (rise, fall), 0.0), a, scale=1.0, ulps=1e4)
        for time in (60 * fall, 1e9):
            assert_close(
                muscles.muscle_activation(u, a, (rise, fall), time), u, scale=1.0, ulps=1e4
            )
            assert_close(compiled.muscle_activation(u, a, rise, fall, time), u, scale=1.0, ulps=1e4)


def drag_of_box(size, w, u, rho, mu):
    """Moment and force on a box, face by face and as a sphere (docstring of the module)."""
    d, n, f = sum(size) / 3, np.zeros(3), np.zeros(3)
    for x, y, z in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        f[x] = -rho / 2 * size[y] * size[z] * abs(u[x]) * u[x] - 3 * pi * d * mu * u[x]
        moment = rho / 64 * size[x] * (size[y] ** 4 + size[z] ** 4) * abs(w[x]) * w[x]
        n[x] = -moment - pi * d**3 * mu * w[x]
    return n, f


def test_drag_of_boxes_is_that_of_faces_and_spheres_wherever_they_are(rng):
    """Forces of all bodies on the joints, by Jacobians of the centres of the boxes."""
    b = kt.ModelBuilder("chain")
    joints = kt.Free(), kt.Revolute((0.6, 0.0, 0.8)), kt.Prismatic("y"), kt.Revolute("x")
    for k, joint in enumerate(joints):
        at = tuple(rng.normal(size=3))
        b.body(f"b{k}", joint=joint, inertia=kt.shapes.sphere(0.1, mass=1.0), at=at)
    model = b.build()
    wind = (0.3, -0.2, 0.5)
    parts = [
        kt.FluidForce(body, Box(size), X, density=900.0, viscosity=2.0, wind=wind)
        for body, size, X in (
            (i, tuple(rng.uniform(0.1, 0.4, 3)),
             Plucker(rotation_exp(rng.normal(size=3)), rng.normal(size=3)))
            for i in (1, 2, 4, 4)
        )
    ]  # fmt: skip
    model = model.replace(fluid_forces=parts)
    for _ in range(5):
        q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
        expected, power = np.zeros(model.nv), 0.0
        for part in parts:
            name = model.body_names[part.body]
            J = part.placement.to_matrix() @ kt.jacobian(model, q, name, frame="body")
            E = part.placement.E @ np.asarray(kt.pose(model, q, name))[:3, :3].T
            v = J @ qd
            n, f = drag_of_box(part.shape.size, v[:3], v[3:] - E @ wind, 900.0, 2.0)
            expected += J.T @ np.concatenate([n, f])
            power += n @ v[:3] + f @ (v[3:] - E @ wind)
        assert_close(passive.passive_force(model, q, qd), expected, scale=1e3, ulps=1e3)
        assert power < 0  # it takes energy from what moves against the fluid
