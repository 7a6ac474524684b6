"""Parts of what finds contacts, one by one."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.finding.closed_forms import field_and_ball
from kinetree.contact.finding.height_fields import grid_spacing, surface_at_points
from kinetree.contact.finding.manifold import hull_order
from kinetree.contact.finding.shapes import Placed, Touch
from kinetree.contact.finding.terrain import _Lines
from kinetree.contact.finding.terrain_points import nearest_to_curves, nearest_to_face
from kinetree.model.geometry import HeightField, Sphere
from kinetree.spatial.rotation import rotation_exp


def test_spacing_of_heights_is_the_smaller_one():
    tall, wide = np.zeros((3, 6)), np.zeros((6, 3))
    for heights, size in ((tall, (2.0, 1.0)), (wide, (1.0, 2.0))):
        field = HeightField(tuple(map(tuple, heights)), size)
        assert grid_spacing(field) == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize("face", [None, 0, 1])
def test_touches_reversed_twice_are_what_they_were(face):
    there = Touch(np.arange(3.0), np.array([0, 0.6, 0.8]), -0.1, (0.2, 0.3), face)
    back = there.reversed()
    assert back.face == {None: None, 0: 1, 1: 0}[face]
    assert back.radii == (0.3, 0.2)
    assert_close(back.normal, [0, -0.6, -0.8])
    again = back.reversed()
    assert (again.face, again.radii, again.gap) == (face, (0.2, 0.3), -0.1)
    assert_close(again.normal, there.normal)


@pytest.mark.parametrize("middle", [(0.0, 0.0), (3.0, -2.0)])
def test_hulls_do_not_depend_on_where_the_points_are(middle):
    """Opposite points about the origin are not the same point; those that coincide are one."""
    segment = np.array([[-1.0, 0.5], [1.0, -0.5]]) + middle
    assert sorted(hull_order(segment)) == [0, 1]
    square = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]) + middle
    assert sorted(hull_order(square)) == [0, 1, 2, 3]
    twice = np.repeat(square, 2, axis=0)
    assert sorted(k // 2 for k in hull_order(twice)) == [0, 1, 2, 3]
    assert len(hull_order(np.repeat(square[:1], 3, axis=0))) == 1


@pytest.mark.parametrize("height", [0.8, 3.0, 6.0])
@pytest.mark.parametrize("along", [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8)])
def test_feet_of_balls_high_above_a_hill_are_nearest(height, along):
    """Where the distance bends more by the hill than by itself, along either axis."""
    x = np.linspace(-1, 1, 21)
    u, v = np.meshgrid(x, x, indexing="ij")
    bump = 0.3 * np.exp(-3 * (along[0] * u + along[1] * v) ** 2)
    hill = HeightField(tuple(map(tuple, bump)), (2.0, 2.0))
    here = np.array([0.1, -0.07, height])
    where = Placed(hill, np.eye(3), np.zeros(3)), Placed(Sphere(0.1), np.eye(3), here)
    (found,) = field_and_ball(*where)
    foot = found.point - found.normal * found.gap / 2
    fine = np.linspace(-0.1, 0.1, 101)
    grid = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2) + foot[:2]
    feet = np.column_stack([grid, surface_at_points(hill, *grid.T).h])
    least = np.min(np.linalg.norm(feet - here, axis=1))
    assert found.gap + 0.1 <= least + 1e-9
    assert_close(here - foot, (found.gap + 0.1) * found.normal, scale=height, ulps=1e4)


# --- rugged ground, on which Newton's method at times runs far away -------------------------------


def rugged(rng):
    n = int(rng.integers(5, 14))
    heights = 0.15 * rng.normal(size=(n, n))
    return HeightField(tuple(tuple(map(float, row)) for row in heights), (2.0, 2.0))


def in_order(points):
    return points[np.lexsort(np.round(points, 6).T)]


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_edges_touch_at_the_same_places_in_either_direction(seed):
    rng = np.random.default_rng(seed)
    ground, ends = rugged(rng), rng.uniform(-1, 1, size=(6, 2, 3))
    ends[..., 2] *= 0.2
    there, back = (nearest_to_curves(ground, _Lines(e), 0.2) for e in (ends, ends[:, ::-1]))
    assert len(there.points) > 5
    np.testing.assert_allclose(in_order(there.points), in_order(back.points), atol=1e-6)
    np.testing.assert_allclose(in_order(there.feet), in_order(back.feet), atol=1e-6)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("seed", [240, 638, 1354])
def test_peaks_touch_a_face_once_each(seed, turned):
    """Also where a start ends on the peak of another, on whichever side that is."""
    rng = np.random.default_rng(seed)
    ground = rugged(rng)
    tilt = rotation_exp(np.array([*(0.15 * rng.normal(size=2)), 0]))
    if turned:  # by half a turn, about z
        half = np.diag([-1.0, -1.0, 1.0])
        tilt = half @ tilt @ half
        heights = np.array(ground.heights)[::-1, ::-1]
        ground = HeightField(tuple(map(tuple, heights)), ground.size)
    square = np.array([[-0.9, -0.9, 0], [0.9, -0.9, 0], [0.9, 0.9, 0], [-0.9, 0.9, 0]]) @ tilt.T
    feet = nearest_to_face(ground, square, -tilt[:, 2], 0.3).feet
    assert len(feet) > 10
    apart = np.linalg.norm(feet[:, None] - feet, axis=-1) + np.eye(len(feet))
    assert np.min(apart) > 0.01
