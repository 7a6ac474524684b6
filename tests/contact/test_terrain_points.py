"""Feet of shapes on height fields: known ones, those of brute force, in any place and unit."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import placed
from support.convex_shapes import SOLIDS, outside, reach, touches_of

from kinetree.contact.collision.on_fields import field_pair
from kinetree.contact.finding.closed_forms import field_and_ball, fits
from kinetree.contact.finding.shapes import (
    Placed,
    height_and_derivatives,
    hollow,
    surface_at_points,
)
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Mesh, Sphere
from kinetree.spatial.rotation import rotation_exp

Z = np.array([0, 0, 1.0])


def field(function, n=25, size=2.0):
    x = np.linspace(-size / 2, size / 2, n)
    return HeightField(tuple(tuple(float(function(i, j)) for j in x) for i in x), (size, size))


def waves(x, y):
    return 0.1 * np.sin(5 * x + 0.3) * np.cos(4 * y) + 0.3 * x + 0.1 * y


HILLS = field(waves)
CRATE = field(lambda x, y: 0.15 * np.cos(4 * x) * np.cos(4 * y))
EGGS = field(lambda x, y: 0.04 * np.sin(9 * x + 0.3) * np.cos(8 * y), n=33)


def changed(ground, b, *, scale=1.0, lift=0.0, R=None, o=(0, 0, 0)):
    """The same in another unit, with higher or lower ground, and moved as a whole."""
    R, s = np.eye(3) if R is None else R, scale
    heights = tuple(tuple(s * (h + lift) for h in row) for row in ground.heights)
    ground = HeightField(heights, tuple(s * x for x in ground.size))
    match b.shape:
        case Box(size):
            shape = Box(tuple(s * x for x in size))
        case Sphere(radius):
            shape = Sphere(s * radius)
        case Ellipsoid(radii):
            shape = Ellipsoid(tuple(s * x for x in radii))
        case Capsule(radius, length) | Cylinder(radius, length):
            shape = type(b.shape)(s * radius, s * length)
        case Mesh(path):
            shape = Mesh(path, (s, s, s))
    o = s * np.array(o)
    other = Placed(shape, R @ b.axes, o + R @ (s * (b.origin + lift * Z)))
    return Placed(ground, R, o), other


def lying(shape, ground, rng):
    """A shape at a random attitude, a little inside of the ground below its middle."""
    axes, (x, y) = rotation_exp(2 * rng.normal(size=3)), rng.uniform(-0.4, 0.4, 2)
    height = surface_at_points(ground, np.array([x]), np.array([y])).h[0]
    z = height + reach(shape, -axes[None, 2])[0] - rng.uniform(0, 0.01)
    return Placed(shape, axes, np.array([x, y, z]))


# --- Known feet -----------------------------------------------------------------------------------


def above(ground, rng, distance, count=60):
    """Points of the ground, upward normals, and points straight away from them."""
    feet, up = feet_at(ground, rng.uniform(-0.8, 0.8, size=(count, 2)))
    n = up / np.linalg.norm(up, axis=1)[:, None]
    return feet, n, feet + n * distance


def feet_at(ground, xy):
    """Points of the ground above (x, y), and vectors upward from it."""
    s = surface_at_points(ground, *xy.T)
    return np.column_stack([xy, s.h]), np.column_stack([-s.hx, -s.hy, np.ones(len(xy))])


def nearest_feet(ground, points):
    """Points of the ground that compiled code finds nearest to points: tiny balls there."""
    found = []
    for p in points:
        t = min(
            touches_of(placed(ground), placed(Sphere(1e-9), None, p), 10.0), key=lambda t: t.gap
        )
        found.append(t.point - t.normal * t.gap / 2)
    return np.array(found)


@pytest.mark.parametrize("part", [0.05, 0.5, 0.9])
@pytest.mark.covers("RBDA 11.6", by=(field_and_ball, field_pair))
def test_feet_are_found_again_from_points_straight_above_them(part, rng):
    distance = part / hollow(HILLS)
    feet, n, points = above(HILLS, rng, distance)
    assert_close(nearest_feet(HILLS, points), feet, scale=1.0)
    ball = Sphere(0.9 * distance)
    assert fits(HILLS, ball)
    for foot, normal, point in zip(feet, n, points, strict=True):
        (t,) = field_and_ball(placed(HILLS), placed(ball, rng, point))
        assert_close(t.point - t.normal * t.gap / 2, foot, scale=1.0)
        assert_close(t.normal, normal)
        assert_close(t.gap, 0.1 * distance, scale=1.0)


@pytest.mark.parametrize(("ground", "which", "share"), [(HILLS, 1, 0.95), (CRATE, 0, 0.8)])
def test_feet_are_found_from_beyond_the_centre_of_curvature_of_the_ground_below(
    ground, which, share, rng
):
    feet, _, points = above(ground, rng, 2.5 / hollow(ground), count=200)
    x, y = (g.ravel() for g in np.meshgrid(*[np.linspace(-1, 1, 200)] * 2))
    many = feet_at(ground, np.column_stack([x, y]))[0]
    nearest = np.array([many[np.argmin(np.sum((many - p) ** 2, axis=1))] for p in points])
    is_its_own = np.max(np.abs(nearest - feet), axis=1) < 0.03
    s = surface_at_points(ground, *points[:, :2].T)
    bend = np.array([[s.hxx, s.hxy], [s.hxy, s.hyy]])
    slope = np.array([[1 + s.hx**2, s.hx * s.hy], [s.hx * s.hy, 1 + s.hy**2]])
    J = np.moveaxis(bend * (points[:, 2] - s.h) - slope, -1, 0)
    is_beyond = np.linalg.eigvalsh(J)[:, which] >= 0
    assert np.sum(is_beyond & is_its_own) > 10
    errors = np.max(np.abs(nearest_feet(ground, points) - feet), axis=1)
    assert np.max(errors[is_beyond & is_its_own]) < 1e-13
    assert np.mean(errors[is_its_own] < 1e-13) > share


@pytest.mark.parametrize("ground", [HILLS, EGGS])
@pytest.mark.parametrize("name", [*SOLIDS, "mesh"])
@pytest.mark.covers("RBDA 11.6", by=field_pair)
def test_shapes_touch_the_ground_along_its_normal(name, ground, wedge, rng):
    shape, found = SOLIDS.get(name, wedge), 0
    for _ in range(6):
        R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
        a, other = changed(ground, lying(shape, ground, rng), R=R, o=o)
        touches = [t for t in touches_of(a, other, 0.03) if t.gap > -0.05]
        if name in ("capsule", "cylinder") and touches:  # feet of ends may be inside of the side
            touches = [min(touches, key=lambda t: t.gap)]
        for t in touches:
            foot = a.local(t.point - t.normal * t.gap / 2)
            s = surface_at_points(ground, *foot[:2, None])
            n = np.array([-s.hx[0], -s.hy[0], 1]) / np.sqrt(1 + s.hx[0] ** 2 + s.hy[0] ** 2)
            assert_close(s.h[0], foot[2], scale=1.0)
            assert_close(R.T @ t.normal, n)
            end = (t.point + t.normal * t.gap / 2)[None]
            assert_close(outside(other, end), [0], scale=1.0, ulps=1e4)
        found += len(touches)
    assert found >= 2


# --- Brute force ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lift", [0.0, -0.4])
@pytest.mark.covers("RBDA 11.6", by=field_pair)
def test_balls_capsules_and_boxes_are_as_far_as_the_nearest_of_many_points(lift, rng):
    x, y = (g.ravel() for g in np.meshgrid(*[np.linspace(-1.2, 1.2, 240)] * 2))
    steep = field(lambda x, y: 0.3 * np.tanh(8 * x) + 0.05 * y, n=33)
    for ground in (HILLS, steep):
        heights = surface_at_points(ground, x, y).h + lift
        points = np.column_stack([x, y, heights])
        for shape in (Sphere(0.05), Capsule(0.05, 0.3), Box((0.2, 0.3, 0.1))):
            if isinstance(shape, Box) and ground is steep:
                continue  # corners have no foot in hollows that are narrower than they are far
            for _ in range(2):
                where = np.array([*rng.uniform(-0.3, 0.3, 2), rng.uniform(0.5, 0.7)])
                b = Placed(shape, rotation_exp(rng.normal(size=3)), where)
                a, other = changed(ground, b, lift=lift)
                local = (points - other.origin) @ other.axes
                length, radius = getattr(shape, "length", 0.0), getattr(shape, "radius", 0.0)
                core = np.array(getattr(shape, "size", (0.0, 0.0, length))) / 2
                away = np.linalg.norm(np.maximum(np.abs(local) - core, 0), axis=1)
                gap = min(t.gap for t in touches_of(a, other, 1.0))
                assert -1e-12 <= away.min() - radius - gap < 1e-3


@pytest.mark.parametrize("name", [*SOLIDS, "mesh"])
@pytest.mark.covers("RBDA 11.6", by=field_pair)
def test_neither_units_nor_the_place_of_the_ground_change_what_touches(name, wedge, rng):
    shape = SOLIDS.get(name, wedge)
    for margin in (0.03, 0.2):
        b = lying(shape, EGGS, rng)
        plain = touches_of(*changed(EGGS, b), margin)
        assert plain
        for scale, lift in ((100.0, 0.0), (0.01, 0.0), (1.0, 3.0), (1.0, -3.0)):
            R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
            a, other = changed(EGGS, b, scale=scale, lift=lift, R=R, o=o)
            found = touches_of(a, other, scale * margin)
            assert len(found) == len(plain)
            for t, u in zip(plain, found, strict=True):
                assert_close(u.gap, scale * t.gap, scale=scale, ulps=1e5)
                assert_close(R.T @ u.normal, t.normal, ulps=1e5)
                point = (t.point + lift * Z) * scale
                assert_close(a.local(u.point), point, scale=scale, ulps=1e5)


def test_a_rim_touches_at_crests_that_it_crosses_all_around():
    ground = field(lambda x, y: 0.02 * np.cos(16 * np.arctan2(y, x)) * (np.hypot(x, y) > 0.3), n=81)
    angles = np.linspace(0, 2 * np.pi, 20001)[:-1]
    for radius in (0.6, 0.8):
        rim = surface_at_points(ground, radius * np.cos(angles), radius * np.sin(angles)).h
        crests = (rim > np.roll(rim, 1)) & (rim >= np.roll(rim, -1)) & (rim > 0.01)
        assert np.sum(crests) == 16
        disc = placed(Cylinder(radius, 0.2), None, (0, 0, 0.12))
        found = touches_of(placed(ground), disc, 0.015)
        turned = np.sort([np.arctan2(t.point[1], t.point[0]) for t in found])
        assert len(found) >= 8  # of 16, all around
        assert np.max(np.diff([*turned, turned[0] + 2 * np.pi])) < np.pi / 2
        for angle in turned:
            assert np.min(np.abs(np.angle(np.exp(1j * (angle - angles[crests]))))) < 0.05


def test_only_the_lower_side_of_a_plate_touches_level_ground(rng):
    level = HeightField(((0.3,) * 9,) * 9, (4.0, 4.0))
    for turn in (0.0, 0.4, 2.0):
        R = rotation_exp(np.array([0, 0, turn]))
        for shape, margin in ((Box((0.5, 0.4, 0.02)), 0.05), (Cylinder(0.3, 0.02), 0.02)):
            found = touches_of(placed(level), Placed(shape, R, np.array([0.1, 0, 0.32])), margin)
            assert len(found) == 4
            assert_close([t.gap for t in found], [0.01] * 4, scale=1.0)
    leaning = Placed(Box((0.5, 0.4, 0.02)), rotation_exp(np.array([0.05, 0.1, 0])), np.zeros(3))
    corners = leaning.axes @ (np.array([[i, j, k] for i in (1, -1) for j in (1, -1)
                                        for k in (1, -1)]) * [0.25, 0.2, 0.01]).T  # fmt: skip
    lowest = np.sort(corners[2])
    leaning = leaning._replace(origin=np.array([0, 0, 0.3 - lowest[0]]))
    (t,) = touches_of(placed(level), leaning, (lowest[1] - lowest[0]) / 2)
    assert_close(t.gap, 0.0, scale=1.0)


# --- Splines --------------------------------------------------------------------------------------


def test_no_hollow_is_more_curved_than_the_bound_which_a_parabola_reaches(rng):
    heights = tuple(map(tuple, rng.normal(size=(6, 9))))
    for size in ((3.0, 2.0), (30.0, 20.0), (0.5, 4.0)):
        ground = HeightField(heights, size)
        x, y = (rng.uniform(-s / 2, s / 2, 4000) for s in size)
        s = surface_at_points(ground, x, y)
        bend = np.array([[s.hxx, s.hxy], [s.hxy, s.hyy]]).transpose(2, 0, 1)
        most = np.linalg.eigvalsh(bend)[:, 1].max()
        assert most <= hollow(ground) < 4 * most
    for axis in (0, 1):
        line = np.linspace(-2, 2, 41) ** 2 / 2
        rows = np.tile(line[:, None], (1, 5)) if axis == 0 else np.tile(line, (5, 1))
        size = (4.0, 9.0) if axis == 0 else (9.0, 4.0)
        bowl = HeightField(tuple(map(tuple, rows)), size)
        assert 1.0 <= hollow(bowl) < 1.4  # natural ends overshoot
        dome = HeightField(tuple(map(tuple, -rows)), size)
        assert hollow(dome) < 0.4
    level = HeightField(((1.0,) * 4,) * 4, (1.0, 1.0))
    assert_close(hollow(level), 0.0, scale=1.0)


def test_splines_are_the_same_on_long_numbers_where_all_weights_are_computed(rng):
    heights = tuple(map(tuple, rng.normal(size=(7, 6))))
    ground = HeightField(heights, (3.0, 2.5))
    for x, y in rng.uniform(-1.8, 1.8, size=(20, 2)):
        exact = height_and_derivatives(ground, mpmath.mpf(x), mpmath.mpf(y))
        plain = height_and_derivatives(ground, x, y)
        many = surface_at_points(ground, np.array([x]), np.array([y]))
        scale = [1, 10, 10, 100, 100, 100]
        assert_close(np.array([float(v) for v in exact]) / scale, np.array(plain) / scale, scale=1)
        assert_close(np.array(many)[:, 0] / scale, np.array(plain) / scale, scale=1)
