"""The narrow phase of GPUs for convex shapes against that of the engine, and in single precision.

``make fuzz`` looks at many poses (``KINETREE_POSES``).
"""

import os
from itertools import combinations_with_replacement

import numpy as np
import pytest
from support.contact_scenes import stone_in
from support.narrow_in_c import narrow_in_c

from kinetree.contact.collision.convex import convex_pair
from kinetree.contact.collision.detect import touch_table
from kinetree.contact.collision.shallow import MOST, shallow_pair
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.finding.shapes import Placed
from kinetree.model.geometry import Box, Capsule, Cone, Cylinder, Ellipsoid, Mesh, Sphere

POSES = int(os.environ.get("KINETREE_POSES", "600")) // 6
MARGIN = 1e-2
GAPS = (5e-3, 1e-4, 1e-6, 0.0, -1e-6, -1e-4)
KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "cone", "hull")
PAIRS = [p for p in combinations_with_replacement(KINDS, 2) if KINDS.index(p[1]) > 2]


@pytest.fixture(scope="module")
def stone(tmp_path_factory):
    return stone_in(tmp_path_factory.mktemp("meshes"), corners=24)


def solid(kind, rng, stone):
    a, b, c = rng.uniform(0.03, 0.2, 3)
    return {
        "sphere": Sphere(a),
        "capsule": Capsule(a, 2 * b),
        "box": Box((2 * a, 2 * b, 2 * c)),
        "cylinder": Cylinder(a, 2 * b),
        "ellipsoid": Ellipsoid((a, b, c)),
        "cone": Cone(a, 2 * b),
        "hull": Mesh(stone, (a, b, c)),
    }[kind]


def turned(rng):
    """Axes by columns: of the world, turned about one of them, or any."""
    quaternion = np.eye(4)[0] + rng.choice([0.0, 1.0]) * rng.standard_normal(4)
    if rng.random() < 0.5:
        quaternion[1:] *= np.eye(3)[rng.integers(3)]
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * skew + 2 * skew @ skew


def found(narrow, shapes, touch, margin=MARGIN):
    """Points of the first two shapes: how many, gaps, normals and places."""
    count = narrow(shapes, 0, 1, margin, touch, 0)
    return count, touch.gap[:count].copy(), touch.normal[:count].copy(), touch.point[:count].copy()


def placed(pair, gap, rng, stone, touch):
    """Two shapes at places where the engine finds about this gap."""
    solids = [solid(kind, rng, stone) for kind in pair]
    axes = [turned(rng) for _ in solids]
    way, aside = rng.standard_normal(3), rng.uniform(-0.05, 0.05, 3)
    way /= np.linalg.norm(way)
    low, high = 0.0, 2.0
    for _ in range(45):
        middle = (low + high) / 2
        places = np.zeros(3), aside + middle * way
        shapes = placed_table(*map(Placed, solids, axes, places))
        is_wide = found(convex_pair, shapes, touch, 10.0)[1].min() > gap
        low, high = (low, middle) if is_wide else (middle, high)
    return shapes


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_gaps_normals_and_points_are_those_of_the_engine(pair, rng, stone):
    """Of overlapping shapes the depth is at least that of the engine, nearly always the same."""
    touch, differ = touch_table(), 0
    for k in range(max(POSES // len(PAIRS), 12)):
        shapes = placed(pair, GAPS[k % len(GAPS)], rng, stone, touch)
        right = found(convex_pair, shapes, touch)
        count, gap, normal, point = found(shallow_pair, shapes, touch)
        assert count >= 1
        assert gap.min() < right[1].min() + 1e-12
        if gap.min() < right[1].min() - 1e-12:
            differ += 1
            continue
        if right[1].min() < MARGIN / 2 and np.all(np.abs(normal[0] - right[2][0]) < 1e-6):
            np.testing.assert_allclose(gap.min(), right[1].min(), rtol=0, atol=1e-12)
            assert count == right[0]
            apart = np.linalg.norm(point[:, None] - right[3], axis=2)
            assert apart.min(axis=1).max() < 1e-6  # in some order
    assert differ <= max(1, POSES // len(PAIRS) // 50)
    assert count <= MOST


@pytest.mark.parametrize("pair", [p for p in PAIRS if p[1] != "cone"], ids="-".join)
def test_single_precision_is_as_good_as_its_numbers(pair, rng, stone, tmp_path):
    """Gaps to 1e-7 m, normals to 2e-5 rad, against the same text in double precision."""
    touch, single = touch_table(), narrow_in_c(shallow_pair, tmp_path)
    gaps, normals = [], []
    for k in range(max(POSES // len(PAIRS), 12)):
        shapes = placed(pair, GAPS[k % len(GAPS)], rng, stone, touch)
        _, right, axis, _ = found(shallow_pair, shapes, touch)
        count, gap, normal, _ = found(single, shapes, touch)
        assert count >= 1
        gaps.append(abs(gap.min() - right.min()))
        normals.append(np.abs(normal[0] - axis[0]).max())
    assert np.median(gaps) < 5e-8
    assert np.mean(np.array(gaps) < 1e-7) > 0.9
    assert np.mean(np.array(normals) < 2e-5) > 0.9
