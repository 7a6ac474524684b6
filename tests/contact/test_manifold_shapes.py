"""Where faces and edges lie on each other: polygons cut by brute force, in any place and unit."""

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull
from support.closeness import assert_close
from support.convex_shapes import farthest_points, touches_of

from kinetree.contact.collision.clipping import clip_faces
from kinetree.contact.collision.convex import convex_distance
from kinetree.contact.finding.shapes import Placed, hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Mesh, Plane
from kinetree.spatial.rotation import rotation_exp

Z = np.array([0, 0, 1.0])


def turn(x=0.0, y=0.0, z=0.0):
    return rotation_exp(np.array([0, 0, z])) @ rotation_exp(np.array([x, y, 0]))


def moved(where, R, o):
    return Placed(where.shape, R @ where.axes, o + R @ where.origin)


def side(a, b, p):
    """Positive where points (n, 2) are to the left of the way from a to b."""
    return (b - a)[0] * (p - a)[:, 1] - (b - a)[1] * (p - a)[:, 0]


def in_polygon(polygon, p):
    sides = zip(polygon, np.roll(polygon, -1, axis=0), strict=True)
    return np.all([side(a, b, p) >= -1e-12 for a, b in sides], axis=0)


def common(P, Q):
    """Corners of what is common to two convex polygons, counter-clockwise (n, 2), by all pairs."""
    found = [*P[in_polygon(Q, P)], *Q[in_polygon(P, Q)]]
    for a, b in zip(P, np.roll(P, -1, axis=0), strict=True):
        for c, d in zip(Q, np.roll(Q, -1, axis=0), strict=True):
            M = np.column_stack([b - a, c - d])
            if abs(np.linalg.det(M)) > 1e-12:
                s, t = np.linalg.solve(M, c - a)
                if 0 <= s <= 1 and 0 <= t <= 1:
                    found.append(a + s * (b - a))
    return different(np.array(found).reshape(-1, 2))


def different(points):
    kept = []
    for p in points:
        if all(np.max(np.abs(p - other)) > 1e-10 for other in kept):
            kept.append(p)
    return np.array(kept).reshape(-1, points.shape[1])


def assert_same(found, expected, tolerance):
    """Whether all points are the same, in any order."""
    assert len(found) == len(expected)
    apart = np.max(np.abs(np.asarray(found)[:, None] - expected), axis=2)
    for axis in (0, 1):
        assert np.all(np.min(apart, axis=axis, initial=np.inf) <= tolerance)


def polygon(points):
    return points[ConvexHull(points).vertices]


@pytest.mark.parametrize("upper", ["box", "large box", "wedge", "cylinder"])
@pytest.mark.covers("RBDA 11.6", by=clip_faces)
def test_what_two_faces_have_in_common_carries_the_load(upper, wedge, rng):
    table = Placed(Box((1.0, 0.8, 0.2)), np.eye(3), np.array([0, 0, -0.1]))
    top = np.array([[0.5, 0.4], [-0.5, 0.4], [-0.5, -0.4], [0.5, -0.4]])
    shape = {"box": Box((0.6, 0.4, 0.3)), "large box": Box((3.0, 1.0, 0.3)), "wedge": wedge,
             "cylinder": Cylinder(0.4, 0.3)}[upper]  # fmt: skip
    middle = 0.0 if upper == "wedge" else 0.15
    compared, leans = 0, [np.zeros(2), np.array([0.03, -0.05])]
    for lean in leans:
        for gap in (0.01, -0.02):
            b = Placed(shape, turn(*lean, z=rng.uniform(-3, 3)), np.array([0.35, 0.3, gap]))
            b = b._replace(origin=b.origin + b.axes @ [0, 0, middle])
            face = farthest_points(b, -Z)
            assert len(face) >= 3
            f = np.linalg.svd(face - face.mean(axis=0))[2][2]  # its normal gives the heights
            outline = polygon(face[:, :2])
            expected = common(top, outline)
            assert len(expected) >= 3
            heights = face[0, 2] - (expected - face[0, :2]) @ f[:2] / f[2]
            R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
            pair = moved(table, R, o), moved(b, R, o)
            corners = np.column_stack([expected, heights])
            for first, second, way in ((*pair, 1), (*pair[::-1], -1)):
                found = touches_of(first, second, 1.0)
                normal = convex_distance(first, second).normal
                if normal @ R @ Z * way < 1 - 1e-12:  # the face of the other one is nearer
                    assert_close(found[0].normal, normal, ulps=1e4)
                    continue
                compared += 1
                x = np.array([(t.point - o) @ R for t in found])
                gaps = np.array([t.gap for t in found])
                x[:, 2] *= 2  # half-way
                np.testing.assert_allclose(x[:, 2], gaps, atol=1e-12)
                # Corners of what they have in common, the lowest one and those that span it.
                apart = np.max(np.abs(x[:, None] - corners), axis=2).min(axis=1)
                assert np.all(apart <= (1e-6 if upper == "cylinder" else 1e-12))
                assert_close(gaps.min(), heights.min(), scale=1.0, ulps=1e4)
                assert len(x) >= min(len(corners), 4)
                area, whole = (ConvexHull(p[:, :2]).volume for p in (x, corners))
                assert area > 0.6 * whole
                for t in found:
                    assert_close(t.normal, way * R @ Z, ulps=100)
    assert compared >= 4


@pytest.mark.parametrize("shape", [Capsule(0.1, 0.8), Cylinder(0.1, 0.8)])
def test_lines_are_cut_at_the_border_of_a_face(shape, rng):
    table = Placed(Box((1.0, 1.0, 0.2)), np.eye(3), np.array([0, 0, -0.1]))
    lying = rotation_exp(np.array([0, np.pi / 2, 0]))
    for x, ends in ((0.0, (-0.4, 0.4)), (0.3, (-0.1, 0.5)), (-0.6, (-0.5, -0.2))):
        b = Placed(shape, lying, np.array([x, 0.2, 0.11]))
        R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
        found = touches_of(moved(table, R, o), moved(b, R, o), 1.0)
        points = np.array([(t.point - o) @ R for t in found])
        expected = [[end, 0.2, 0.005] for end in ends]
        assert_close(points[np.argsort(points[:, 0])], expected, scale=1.0)
        assert_close([t.gap for t in found], [0.01, 0.01], scale=1.0)


def on_edge(size, along, R):
    """A box whose edge along one of its axes is the line through the origin, looking up."""
    lift = rotation_exp(np.pi / 4 * np.eye(3)[along])
    square = Box(tuple(size if k == along else 0.2 for k in range(3)))
    return Placed(square, R @ lift, -0.1 * np.sqrt(2) * Z)


@pytest.mark.covers("RBDA 11.6", by=clip_faces)
def test_edges_that_cross_touch_where_they_pass_each_other(rng):
    for angle in (0.2, 1.0, 2.5):
        a = on_edge(1.0, 0, np.eye(3))
        b = on_edge(0.6, 1, turn(z=angle))
        flip = np.diag([1.0, -1, -1])
        for gap in (0.02, -0.01):
            shift = np.array([*rng.uniform(-0.05, 0.05, 2), gap])
            upper = Placed(b.shape, flip @ b.axes, flip @ b.origin + shift)
            R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
            first, second = moved(a, R, o), moved(upper, R, o)
            for pair, way in (((first, second), 1), ((second, first), -1)):
                (t,) = touches_of(*pair, 0.05)
                x = (t.point - o) @ R
                along = flip @ turn(z=angle) @ np.array([0, 1, 0])
                s = -shift[1] / along[1]  # where the upper line is above y = 0
                assert_close(x, [shift[0] + s * along[0], 0, gap / 2], scale=1.0)
                assert_close(t.gap, gap, scale=1.0)
                assert_close(t.normal, way * R @ Z)


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5, -0.6, 0.8, -0.8, 1.5])
def test_parallel_edges_touch_at_the_ends_of_their_overlap(shift, way, rng):
    flip = rotation_exp(np.array([0, np.pi, 0])) if way == 1 else np.diag([1.0, -1, -1])
    a, b = on_edge(1.0, 0, np.eye(3)), on_edge(0.6, 0, np.eye(3))
    upper = Placed(b.shape, flip @ b.axes, flip @ b.origin + [shift, 0, 0.03])
    R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    first, second = moved(a, R, o), moved(upper, R, o)
    ends = {round(max(-0.5, shift - 0.3), 9), round(min(0.5, shift + 0.3), 9)}
    for pair in ((first, second), (second, first)):
        found = touches_of(*pair, 1.0)
        x = np.array([(t.point - o) @ R for t in found])
        if abs(shift) > 0.8:  # beside each other: between the ends
            beside = np.hypot(0.03, abs(shift) - 0.8)
            assert_close(min(t.gap for t in found), beside, scale=1.0)
        elif abs(shift) < 0.8:
            assert_close([t.gap for t in found], [0.03] * len(found), scale=1.0)
            expected = [[end, 0, 0.015] for end in sorted(ends)]
            assert_close(x[np.argsort(x[:, 0])], expected, scale=1.0)


def test_corners_of_a_large_mesh_are_above_or_below_a_plane(tmp_path, rng):
    path = tmp_path / "ball.off"
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.5)
    ball.apply_translation((0.05, 0.02, -0.04))
    ball.export(path)
    mesh = Mesh(str(path), (1.0, 0.7, 1.3))
    R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    plane = Placed(Plane(), R, o)
    ball = Placed(mesh, rotation_exp(rng.normal(size=3)), o + 0.4 * R[:, 2])
    corners = ball.origin + hull_of(mesh).vertices @ ball.axes.T
    heights = (corners - o) @ R[:, 2]
    low = heights <= 0.05
    assert 5 < np.sum(low) < len(low) / 2
    expected = (corners - np.outer(heights / 2, R[:, 2]))[low]
    for pair, sign in (((plane, ball), 1), ((ball, plane), -1)):
        found = touches_of(*pair, 0.05)
        apart = np.max(np.abs(np.array([t.point for t in found])[:, None] - expected), axis=2)
        assert np.all(apart.min(axis=1) <= 1e-15)  # some of them, the lowest among them
        assert 4 <= len(found) <= 8
        assert_close(min(t.gap for t in found), heights.min(), scale=1.0)
        assert_close([t.normal for t in found], np.tile(sign * R[:, 2], (len(found), 1)))


def test_a_round_sole_stands_on_corners_all_around(tmp_path):
    trimesh.creation.cylinder(0.3, 0.2, sections=48).export(tmp_path / "sole.off")
    sole = Placed(Mesh(str(tmp_path / "sole.off")), np.eye(3), np.array([0.0, 0, 0.1]))
    found = touches_of(Placed(Plane(), np.eye(3), np.zeros(3)), sole, 0.01)
    assert len(found) == 8
    assert_close([t.gap for t in found], np.zeros(8), scale=1.0)
    angle = np.sort([np.arctan2(t.point[1], t.point[0]) for t in found])
    assert np.max(np.diff([*angle, angle[0] + 2 * np.pi])) < np.pi / 3
