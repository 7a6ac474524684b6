"""Solid shapes on height fields: nothing between the samples of either surface is overlooked."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import derivatives, placed, two_bodies
from support.convex_shapes import touches_of

import kinetree as kt
from kinetree.contact.collision.on_fields import field_pair
from kinetree.contact.contacts import bias, velocity
from kinetree.contact.finding.shapes import (
    Placed,
    height_and_derivatives,
    hollow,
    hull_of,
    surface_at_points,
)
from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.errors import ModelError
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Sphere
from kinetree.spatial.rotation import rotation_exp

SOLIDS = {
    "box": Box((0.5, 0.4, 0.2)), "capsule": Capsule(0.08, 0.6), "cylinder": Cylinder(0.1, 0.5),
    "ellipsoid": Ellipsoid((0.3, 0.2, 0.1)), "ball": Sphere(0.25), "mesh": None,
}  # fmt: skip


def field(function, n=17, size=2.0):
    x = np.linspace(-size / 2, size / 2, n)
    return HeightField(tuple(tuple(float(function(i, j)) for j in x) for i in x), (size, size))


RIDGE = field(lambda x, y: 0.1 * np.exp(-((x / 0.2) ** 2)))
TWO_RIDGES = field(lambda x, y: 0.1 * np.cos(2 * np.pi * x) - 0.1, n=33)
PEAK = field(lambda x, y: 0.2 * np.exp(-(x * x + y * y) / 0.02), n=33)
DITCH = field(lambda x, y: 0.3 * min(abs(x) / 0.1, 1.0), n=41)


def surface_points(shape, n=60):
    """Many points of the surface of a shape, in its own coordinates."""
    u, v = (g.ravel() for g in np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n)))
    turn, z = 2 * np.pi * u, 2 * v - 1
    ball = np.column_stack([*(np.sqrt(1 - z * z) * g(turn) for g in (np.cos, np.sin)), z])
    ring = np.column_stack([np.cos(turn), np.sin(turn), 0 * u])
    match shape:
        case Sphere(radius):
            return radius * ball
        case Ellipsoid(radii):
            return np.array(radii) * ball
        case Capsule(radius, length):
            side = radius * ring + np.outer(z, [0, 0, length / 2])
            ends = radius * ball + np.outer(np.sign(z), [0, 0, length / 2])
            return np.concatenate([side, ends])
        case Cylinder(radius, length):
            side = radius * ring + np.outer(z, [0, 0, length / 2])
            caps = [radius * ring * v[:, None] + [0, 0, s * length / 2] for s in (1, -1)]
            return np.concatenate([side, *caps])
        case Box(size):
            corners = np.array(size) / 2 * np.array([[i, j, k] for i in (1, -1) for j in (1, -1)
                                                     for k in (1, -1)])  # fmt: skip
        case _:
            corners = hull_of(shape).vertices
    # Of a polyhedron: between any three corners, inside or on the surface.
    at = [(i, j, k) for i in range(8) for j in range(i) for k in range(j)]
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    weights = np.column_stack([u, v, 1 - u - v])[::7]
    at = [t for t in at if max(t) < len(corners)]
    return np.concatenate([weights @ corners[list(t)] for t in at])


def clearance(ground, b):
    """The least height of sampled points of a shape above the ground."""
    p = b.origin + surface_points(b.shape) @ b.axes.T
    return float(np.min(p[:, 2] - surface_at_points(ground, p[:, 0], p[:, 1]).h))


def deepest(ground, b, margin=1.0):
    return min(touches_of(placed(ground), b, margin), key=lambda t: t.gap)


def lowered(ground, b):
    """The shape straight down until it touches."""
    b = b._replace(origin=b.origin - [0, 0, clearance(ground, b) - 1e-3])
    for _ in range(20):
        t = deepest(ground, b, margin=0.1)
        if abs(t.gap) < 1e-13:
            break
        b = b._replace(origin=b.origin - [0, 0, t.gap / t.normal[2]])
    return b


@pytest.mark.parametrize("name", SOLIDS)
@pytest.mark.parametrize("ground", [RIDGE, PEAK, TWO_RIDGES])
@pytest.mark.covers("RBDA 11.6", by=field_pair)
def test_nothing_is_below_the_ground_where_a_shape_touches_it(name, ground, wedge, rng):
    shape = SOLIDS[name] or wedge
    for turn in (np.zeros(3), np.array([0, np.pi / 2, 0.3]), rng.normal(size=3)):
        start = Placed(shape, rotation_exp(turn), np.array([*rng.uniform(-0.2, 0.2, 2), 0.9]))
        b = lowered(ground, start)
        assert abs(deepest(ground, b).gap) < 1e-12
        assert -1e-9 < clearance(ground, b) < 1e-2  # the samples are so far apart


@pytest.mark.covers("RBDA 11.6", by=field_pair)
def test_distance_is_the_least_over_many_points_of_the_ground(rng):
    x, y = (g.ravel() for g in np.meshgrid(*[np.linspace(-0.9, 0.9, 400)] * 2))
    points = np.column_stack([x, y, surface_at_points(PEAK, x, y).h])
    for shape in (SOLIDS["box"], SOLIDS["capsule"]):
        b = Placed(shape, rotation_exp(rng.normal(size=3)), np.array([0.1, 0.05, 0.55]))
        local = (points - b.origin) @ b.axes
        core = np.array(shape.size) / 2 if isinstance(shape, Box) else [0, 0, shape.length / 2]
        away = np.linalg.norm(np.maximum(np.abs(local) - core, 0), axis=1)
        least = away.min() - getattr(shape, "radius", 0.0)
        assert 0 <= least - deepest(PEAK, b).gap < 1e-4


@pytest.mark.parametrize(
    ("shape", "turn"),
    [
        (Box((0.8, 0.6, 0.1)), 0.0),
        (Capsule(0.05, 0.8), np.pi / 2),
        (Cylinder(0.05, 0.8), np.pi / 2),
    ],
)
def test_what_lies_across_a_ridge_is_held_by_it(shape, turn):
    b = Placed(shape, rotation_exp(np.array([0, turn, 0])), np.array([0.03, 0.02, 0.14]))
    found = [t for t in touches_of(placed(RIDGE), b, 0.0) if t.gap < -0.009]
    assert len(found) == (2 if isinstance(shape, Box) else 1)  # where edges cross the ridge
    for t in found:
        assert_close(t.gap, -0.01, scale=1.0, ulps=100)
        assert_close(t.normal, [0, 0, 1], scale=1.0, ulps=100)
        assert_close(t.point[0], 0.0, scale=1.0, ulps=1e4)


def test_a_peak_holds_a_face_from_below():
    for shape in (Box((0.6, 0.6, 0.1)), Cylinder(0.3, 0.1)):
        found = touches_of(placed(PEAK), placed(shape, None, (0.05, 0.02, 0.24)), 0.0)
        assert len(found) == 1
        assert_close(found[0].gap, -0.01, scale=1.0, ulps=100)
        assert_close(found[0].point, [0, 0, 0.195], scale=1.0, ulps=1e6)


def test_a_ball_in_a_narrow_ditch_touches_both_sides_and_is_not_compiled():
    model = two_bodies(DITCH, Sphere(0.25), fixed=True)
    scene = Scene(model)
    assert hollow(DITCH) > 4
    assert scene.open_pairs == (0,)
    q = model.neutral()
    q[:3] = 0, 0.1, 0.5
    found = scene.contacts(q, margin=0.02)
    assert found.size == 2
    assert_close(found.normal[0] * [-1, 1, 1], found.normal[1], ulps=1e6)
    assert Scene(two_bodies(RIDGE, Sphere(0.01), fixed=True)).open_pairs == ()
    with pytest.raises(ModelError, match=r"no closed form.*HeightField and Box"):
        _ = Scene(two_bodies(RIDGE, Box((1, 1, 1)), fixed=True)).candidates


def test_many_points_of_a_spline_are_those_one_by_one(rng):
    x, y = rng.uniform(-1.3, 1.3, size=(2, 40))
    found = surface_at_points(DITCH, x, y)
    each = [height_and_derivatives(DITCH, *p) for p in zip(x, y, strict=True)]
    for one, many in zip(zip(*each, strict=True), found, strict=True):
        assert_close(np.array(one), many, scale=100.0, ulps=100)


@pytest.mark.covers("RBDA 11.1", "RBDA 11.6", by=(bias, field_pair))
@pytest.mark.parametrize("name", ["box", "cylinder", "ellipsoid"])
def test_rates_of_gaps_on_hills(name, rng):
    hills = field(lambda x, y: 0.1 * np.sin(3 * x) * np.cos(2 * y), n=9)
    model = two_bodies(hills, SOLIDS[name], fixed=True)
    scene = Scene(model)
    compared = 0
    for _ in range(4):
        q = model.integrate(model.neutral(), rng.normal(size=6))
        q[:3] = *rng.uniform(-0.2, 0.2, 2), 0.6
        qd = rng.normal(size=6)

        def least(t, q=q, qd=qd):
            return scene.contacts(model.integrate(q, t * qd), margin=1.0).gap.min()

        (first, second), (_, wider) = derivatives(least, 4e-4), derivatives(least, 8e-4)
        if abs(second - wider) > 1e-4 * (1 + abs(second)):
            continue  # another corner or edge takes over, or the spline goes on to its next piece
        contacts = scene.contacts(q, margin=1.0)
        k, compared = int(np.argmin(contacts.gap)), compared + 1
        np.testing.assert_allclose(velocity(model, q, qd, contacts)[k, 0], first, atol=1e-8)
        np.testing.assert_allclose(bias(model, q, qd, contacts)[k, 0], second, atol=1e-4)
    assert compared >= 2


@pytest.mark.parametrize(
    ("ground", "shape", "turn", "height"),
    [
        (TWO_RIDGES, Box((1.6, 0.3, 0.1)), 0.0, 0.052),
        (TWO_RIDGES, Capsule(0.05, 1.6), np.pi / 2, 0.052),
    ],
)
def test_a_plank_falls_on_two_ridges_and_stays_there(ground, shape, turn, height):
    model = two_bodies(ground, shape, fixed=True)
    q = model.integrate(model.neutral(), np.array([0, turn, 0, 0, 0, 0]))
    q[2] = height
    contact = TimeStepping(Scene(model, friction=0.5), tolerance=1e-12)
    motion = kt.simulate(model, q, duration=0.06, dt=0.004, contact=contact)
    worst = motion.contact.worst
    assert worst.penetration < 1e-9
    assert max(worst.velocity, worst.cone) < 1e-9
    assert np.all(np.diff(motion.energy) < 1e-9)
    assert_close(motion.q[-1, 2], 0.05, scale=1.0, ulps=1e7)
    assert np.abs(motion.qd[-1]).max() < 1e-6
