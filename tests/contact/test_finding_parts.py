"""Parts of what finds contacts, one by one."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.convex_shapes import touches_of

from kinetree.contact.finding.closed_forms import field_and_ball
from kinetree.contact.finding.shapes import Placed, Touch, surface_at_points
from kinetree.model.geometry import Box, Capsule, HeightField, Sphere
from kinetree.spatial.rotation import rotation_exp


def test_touches_reversed_twice_are_what_they_were():
    there = Touch(np.arange(3.0), np.array([0, 0.6, 0.8]), -0.1)
    back = there.reversed()
    assert_close(back.normal, [0, -0.6, -0.8])
    again = back.reversed()
    assert again.gap == -0.1
    assert_close(again.normal, there.normal)


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


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_edges_touch_at_the_same_places_in_either_direction(seed):
    rng = np.random.default_rng(seed)
    ground, ends = rugged(rng), rng.uniform(-1, 1, size=(6, 2, 3))
    ends[..., 2] *= 0.2
    field = Placed(ground, np.eye(3), np.zeros(3))
    for a, b in ends:
        length = np.linalg.norm(b - a)
        along = (b - a) / length
        side = np.cross(along, [0, 0, 1.0])
        side /= np.linalg.norm(side)
        axes = np.column_stack([side, np.cross(along, side), along])
        there, back = (
            touches_of(field, Placed(Capsule(1e-3, length), R, (a + b) / 2), 0.05)
            for R in (axes, axes * [1, -1, -1])
        )
        assert len(there) == len(back)
        if there:
            gaps = [min(t.gap for t in found) for found in (there, back)]
            np.testing.assert_allclose(*gaps, atol=1e-9)


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
    plate = Placed(Box((1.8, 1.8, 0.2)), tilt, tilt @ [0, 0, 0.1])
    found = touches_of(Placed(ground, np.eye(3), np.zeros(3)), plate, 0.3)
    feet = np.array([t.point - t.normal * t.gap / 2 for t in found])
    assert len(feet) >= 4
    apart = np.linalg.norm(feet[:, None] - feet, axis=-1) + np.eye(len(feet))
    assert np.min(apart) > 1e-4  # of a peak and of an edge nearby; the same one would be 1e-9
