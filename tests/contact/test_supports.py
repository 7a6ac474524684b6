"""Farthest points of convex shapes, how they move with the direction, and surfaces about them."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import placed
from support.convex_shapes import (
    SOLIDS,
    farthest,
    farthest_points,
    outside,
    reach,
    reach_along,
    surface_at,
    unit_vectors,
)

from kinetree.contact.collision import curvature
from kinetree.contact.collision.kinds.kind import DISC
from kinetree.contact.collision.support import support, support_face
from kinetree.contact.finding.shapes import Placed
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere
from kinetree.spatial.rotation import rotation_exp

NAMES = (*SOLIDS, "mesh")
SCALES = (1e-3, 1.0, 1e3)
X, Y, Z = np.eye(3)


def scaled(shape, s):
    """The same shape in another unit of length."""
    match shape:
        case Box(size):
            return Box(tuple(s * x for x in size))
        case Sphere(radius):
            return Sphere(s * radius)
        case Capsule(radius, length) | Cylinder(radius, length):
            return type(shape)(s * radius, s * length)
        case Ellipsoid(radii):
            return Ellipsoid(tuple(s * x for x in radii))
        case Mesh(path):
            return Mesh(path, (s, s, s))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.covers("RBDA 11.6", by=(reach_along, support, support_face))
def test_farthest_points_are_on_the_surface_and_no_point_is_farther(name, scale, wedge, rng):
    where = placed(scaled(SOLIDS.get(name, wedge), scale), rng, scale * rng.normal(size=3))
    special = np.concatenate([where.axes.T, -where.axes.T])
    directions = np.concatenate([unit_vectors(rng, 60), special])
    found = farthest(where, directions)
    limit = reach(where.shape, directions @ where.axes)
    assert_close(np.sum((found - where.origin) * directions, axis=1), limit, scale=scale)
    assert_close(outside(where, found), 0 * limit, scale=scale, ulps=100)
    for n, most in zip(directions, limit, strict=True):
        assert_close(reach_along(where, n) - where.origin @ n, most, scale=scale)
        corners = farthest_points(where, n, 1e-9)
        assert_close((corners - where.origin) @ n, np.full(len(corners), most), scale=scale)
        assert_close(outside(where, corners), np.zeros(len(corners)), scale=scale, ulps=100)
        assert len(corners) == 1 or n in special


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.covers("RBDA 11.6", by=(support, curvature.surface_at))
def test_points_move_with_the_direction_as_the_curvature_says(name, scale, wedge, rng):
    where = placed(scaled(SOLIDS.get(name, wedge), scale), rng, scale * rng.normal(size=3))
    h = 1e-5
    for n in unit_vectors(rng, 12):
        across = np.linalg.svd(n[None])[2][1:]
        ways = [(n + s * h * t) / np.sqrt(1 + h * h) for s in (1, -1) for t in across]
        ahead, behind = np.split(farthest(where, np.array(ways)), 2)
        bend = (ahead - behind).T / (2 * h) @ across
        turn, travel = surface_at(where, farthest(where, n[None])[0], n)
        # Every turn of the normal has its motion of the point, and the other way around.
        np.testing.assert_allclose(bend @ turn, travel, rtol=1e-5, atol=1e-5)
        pair = np.concatenate([turn * scale, travel]) @ across.T
        assert np.linalg.svd(pair, compute_uv=False)[-1] > 0.1 * min(1, scale)


def features(shape):
    """Directions at which a shape is flat or straight, with its edge or the normal of its face."""
    slant = np.array([0.6, 0.8, 0])
    match shape:
        case Box():
            return [(f, None, f) for f in (X, -X, Y, -Y, Z, -Z)] + [
                ((X + Y) / np.sqrt(2), Z, None),
                ((Y - Z) / np.sqrt(2), X, None),
                (0.6 * X - 0.8 * Z, Y, None),
            ]
        case Capsule():
            return [(slant, Z, None), (-Y, Z, None)]
        case Cylinder():
            return [(slant, Z, None), (-Y, Z, None), (Z, None, Z), (-Z, None, -Z)]
        case Mesh():
            side = np.array([0.5, 0.2, 0]) / np.sqrt(0.29)
            long = np.array([-0.2, 0.5, 0]) / np.sqrt(0.29)
            return [
                (Z, None, Z), (-Z, None, -Z), (-Y, None, -Y), (side, None, side),
                ((Z - Y) / np.sqrt(2), X, None), ((Z + side) / np.sqrt(2), long, None),
            ]  # fmt: skip
    return []


@pytest.mark.parametrize("name", ["box", "capsule", "cylinder", "mesh"])
@pytest.mark.covers("RBDA 11.6", by=support_face)
def test_edges_and_faces_count_as_far_as_the_direction_may_be_tilted(name, wedge, rng):
    shape, R = SOLIDS.get(name, wedge), rotation_exp(rng.normal(size=3))
    where = Placed(shape, R, rng.normal(size=3))
    for d, edge, face in features(shape):
        for tilt in (1e-2, 1e-4):
            axis = rng.normal(size=3)
            if edge is not None:  # the direction leaves the plane at right angles to the edge
                axis = np.cross(d, edge)
            axis -= d * (d @ axis)
            axis *= tilt / np.linalg.norm(axis)
            near = farthest_points(where, R @ rotation_exp(0.7 * axis) @ d, tilt)
            far = farthest_points(where, R @ rotation_exp(1.5 * axis) @ d, tilt)
            level = (near - where.origin) @ R @ d
            np.testing.assert_allclose(level, reach(shape, d[None])[0], atol=0.1 * tilt**2)
            assert (len(near) == 2) == (edge is not None)
            assert len(far) < len(near)
            ways = (near[1:] - near[0]) @ R
            if edge is not None:
                assert_close(np.abs(ways[0] @ edge), np.linalg.norm(ways[0]), ulps=1000)
            else:
                assert_close(ways @ face, np.zeros(len(ways)), scale=1.0)
                around = np.cross(ways[0], ways[1])
                assert around @ face > 0  # counter-clockwise from outside


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["box", "capsule", "cylinder", "mesh"])
@pytest.mark.covers("RBDA 11.6", by=curvature.surface_at)
def test_surfaces_are_flat_on_faces_and_straight_along_edges(name, scale, wedge, rng):
    shape, R = scaled(SOLIDS.get(name, wedge), scale), rotation_exp(rng.normal(size=3))
    where = Placed(shape, R, scale * rng.normal(size=3))
    for d, along, face in features(shape):
        corners = farthest_points(where, R @ d, 1e-9)
        weights = rng.dirichlet(np.ones(len(corners)))  # somewhere on the edge or the face
        turn, travel = (R.T @ m @ R for m in surface_at(where, weights @ corners, R @ d))
        tangent = np.eye(3) - np.outer(d, d)
        if face is not None:
            assert_close(turn, 0 * turn, scale=1 / scale)
            assert_close(travel, tangent, ulps=100)
        elif name in ("capsule", "cylinder"):
            around = np.cross(along, d)
            assert_close(turn, np.outer(around, around) / shape.radius, scale=1 / scale, ulps=100)
            assert_close(travel, tangent, ulps=100)
        else:
            assert_close(travel, np.outer(along, along), ulps=100)
            assert_close(turn, tangent - travel, ulps=100)


def test_the_end_of_a_cylinder_is_a_regular_polygon_with_a_corner_at_its_lowest_point(rng):
    shape, R = Cylinder(0.3, 0.8), rotation_exp(rng.normal(size=3))
    where = Placed(shape, R, rng.normal(size=3))
    for end in (1, -1):
        lean = rotation_exp(np.array([0.03, -0.05, 0])) @ (end * Z)
        x = (farthest_points(where, R @ lean) - where.origin) @ R
        assert_close(x[:, 2], np.full(DISC, end * 0.4))
        assert_close(np.hypot(x[:, 0], x[:, 1]), np.full(DISC, 0.3))
        assert_close(x[0, :2], 0.3 * lean[:2] / np.hypot(*lean[:2]), scale=1.0)
        sides = np.linalg.norm(np.roll(x, -1, axis=0) - x, axis=1)
        assert_close(sides, np.full(DISC, 0.6 * np.sin(np.pi / DISC)), ulps=100)
    line = (farthest_points(where, R @ np.array([0.6, 0.8, 0.1])) - where.origin) @ R
    assert_close(line[np.argsort(line[:, 2])], [[0.18, 0.24, -0.4], [0.18, 0.24, 0.4]])


@pytest.mark.parametrize("name", ["box", "cylinder", "mesh"])
def test_a_face_counts_as_a_whole_up_to_a_fifth_of_a_radian(name, wedge):
    where = placed(SOLIDS.get(name, wedge))
    whole = len(farthest_points(where, Z, 1e-3))
    for angle, is_whole in ((0.0, True), (0.18, True), (0.22, False), (0.5, False)):
        for axis in (X, -Y):
            found = farthest_points(where, rotation_exp(angle * axis) @ Z)
            assert (len(found) == whole) == is_whole
