"""Shapes on planes by definition: corners that stand for a hull, of boxes, rims, ends."""

import numpy as np
import pytest
import trimesh
from support.closeness import assert_close

from kinetree.contact.collision import planes
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.tables import TOUCHES, Touch
from kinetree.contact.finding.shapes import Placed
from kinetree.model.geometry import Box, Capsule, Cylinder, Mesh, Plane
from kinetree.spatial.rotation import rotation_exp

SOLIDS = {
    "ball": lambda: trimesh.creation.icosphere(subdivisions=2, radius=0.2),
    "drum": lambda: trimesh.creation.cylinder(radius=0.2, height=0.1, sections=30),
    "brick": lambda: trimesh.creation.box((0.2, 0.3, 0.1)),
    "egg": lambda: trimesh.creation.icosphere(subdivisions=2, radius=0.2).apply_scale((1, 2, 0.4)),
}


@pytest.fixture(scope="module")
def hulls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hulls")
    for name, make in SOLIDS.items():
        make().export(folder / f"{name}.stl")
    return {name: Mesh(str(folder / f"{name}.stl")) for name in SOLIDS}


def over(shape, rng, lean):
    """A shape over a plane, tilted by about ``lean``, both somewhere."""
    R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    A = R @ rotation_exp(lean * rng.normal(size=3))
    return R, o, A, lambda h: placed_table(Placed(Plane(), R, o), Placed(shape, A, o + h * R[:, 2]))


def touched(function, shapes, margin):
    touch = Touch(point=np.zeros((TOUCHES, 3)), normal=np.zeros((TOUCHES, 3)),
                  gap=np.zeros(TOUCHES), feature=np.zeros(TOUCHES, dtype=np.int64))  # fmt: skip
    n = function(shapes, 0, 1, margin, touch, 0)
    return touch.point[:n], touch.normal[:n], touch.gap[:n], touch.feature[:n].tolist()


def ways(up, steep, steeper):
    """Directions downwards, tilted a little to eight sides."""
    k = np.argmin(np.abs(up))
    u = np.eye(3)[k] - up[k] * up
    u /= np.linalg.norm(u)
    w = np.cross(up, u)
    a, b = 0.9 * u + 0.43 * w, 0.9 * w - 0.43 * u
    c, d = 0.7071 * (a + b), 0.7071 * (b - a)
    return [x - steep * up for x in (a, b, -a, -b)] + [x - steeper * up for x in (c, d, -c, -d)]


def standing_on(vertices, up, limit):
    """Corners that stand for a hull: all of a few, else the lowest after tilts to all sides."""
    below = np.flatnonzero(vertices @ up <= limit)
    if len(below) <= 8:
        return below.tolist()
    found = []
    for pair in ((planes._STEEP, planes._STEEPER), (planes._TURN, planes._WIDE)):
        if len(found) < 4:
            for way in ways(up, *pair):
                best = int(below[np.argmax(vertices[below] @ way)])
                found += [best] if best not in found else []
    return found[:8]


@pytest.mark.parametrize("name", SOLIDS)
@pytest.mark.parametrize("lean", [1e-4, 1e-3, 1.0])
def test_corners_that_stand_for_a_hull(name, lean, hulls, rng):
    counts = set()
    for _ in range(12):
        R, o, A, at = over(hulls[name], rng, lean)
        shapes = at(0.0)
        first, count = shapes.data[1, :2]
        vertices = shapes.vertex[first : first + count]
        up = A.T @ R[:, 2]
        low = (vertices @ up).min()
        for margin in (0.02, 0.08, -1e-3):
            shapes = at(-low)
            expected = standing_on(vertices, up, margin + low)
            point, normal, gap, feature = touched(planes.plane_hull, shapes, margin)
            assert sorted(feature) == sorted(expected)
            heights = vertices[feature] @ up - low
            assert_close(gap, heights, scale=1.0)
            x = o - low * R[:, 2] + vertices[feature] @ A.T
            assert_close(point, x - heights[:, None] / 2 * R[:, 2], scale=10.0)
            assert_close(normal, np.tile(R[:, 2], (len(gap), 1)), scale=1.0)
            counts.add(len(feature))
    assert 0 in counts
    assert max(counts) >= 4


@pytest.mark.parametrize("lean", [1e-3, 0.1, 2.0])
def test_corners_of_boxes(lean, rng):
    """Those within the margin; of more than four, those of the lowest face."""
    size = np.array([0.2, 0.3, 0.5])
    signs = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)])
    for _ in range(20):
        R, o, A, at = over(Box(tuple(size)), rng, lean)
        up = A.T @ R[:, 2]
        corners = signs * size / 2
        h = rng.uniform(-0.1, 0.4)
        for margin in (0.05, 0.6):
            heights = h + corners @ up
            near = heights <= margin
            if near.sum() > 4:
                axis = np.argmax(np.abs(up))
                near &= corners[:, axis] * up[axis] < 0
            point, _, gap, feature = touched(planes.plane_box, at(h), margin)
            order = np.argsort(feature)
            assert sorted(feature) == np.flatnonzero(near).tolist()
            assert_close(gap[order], heights[near], scale=1.0)
            x = o + h * R[:, 2] + corners[near] @ A.T - heights[near][:, None] / 2 * R[:, 2]
            assert_close(point[order], x, scale=10.0)


@pytest.mark.parametrize("lean", [0.0, 1e-2, 0.7, 3.0])
def test_rims_of_cylinders(lean, rng):
    """Four points of the lower rim a quarter apart, the lowest first; lying, one of each rim."""
    r, half, kinds = 0.2, 0.3, set()
    for _ in range(30):
        R, o, A, at = over(Cylinder(r, 2 * half), rng, lean)
        if lean == 0.0:
            A[:] = R
        m = A.T @ R[:, 2]
        sine = np.hypot(m[0], m[1])
        lowest = -r * m[:2] / sine if sine > 1e-8 else np.array([r, 0.0])
        if sine > abs(m[2]):
            points = [(*lowest, -half), (*lowest, half)]
            names = [0, 4]
        else:
            x, y = lowest
            low = half if m[2] < 0 else -half
            points = [(x, y, low), (-y, x, low), (-x, -y, low), (y, -x, low)]
            names = [k + 4 * (m[2] < 0) for k in range(4)]
        points = np.array(points)
        for h in (0.1, 0.25, 0.34):
            heights = h + points @ m
            near = heights <= 0.05
            point, _, gap, feature = touched(planes.plane_cylinder, at(h), 0.05)
            assert feature == [n for n, there in zip(names, near, strict=True) if there]
            assert_close(gap, heights[near], scale=1.0)
            x = o + h * R[:, 2] + points[near] @ A.T - heights[near][:, None] / 2 * R[:, 2]
            assert_close(point, x, scale=10.0, ulps=1e3)
            kinds.add(len(feature))
    assert max(kinds) == 4


def test_ends_of_capsules(rng):
    r, half = 0.1, 0.3
    for _ in range(20):
        R, o, A, at = over(Capsule(r, 2 * half), rng, 2.0)
        h = rng.uniform(0, 0.5)
        ends = np.array([half, -half])
        heights = h + ends * (A[:, 2] @ R[:, 2]) - r
        near = heights <= 0.1
        point, _, gap, feature = touched(planes.plane_capsule, at(h), 0.1)
        assert feature == np.flatnonzero(near).tolist()
        assert_close(gap, heights[near], scale=1.0)
        x = o + h * R[:, 2] + ends[near][:, None] * A[:, 2]
        x = x - (r + heights[near] / 2)[:, None] * R[:, 2]
        assert_close(point, x, scale=10.0)
