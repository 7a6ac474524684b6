"""Distances and depths of pairs of convex shapes, and where they touch, against brute force."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import placed
from support.convex_shapes import (
    SOLIDS,
    best_direction,
    depths,
    outside,
    reach,
    touches_of,
    unit_vectors,
)

from kinetree.contact.collision.convex import convex_distance
from kinetree.contact.finding.closed_forms import has_closed_form, touches
from kinetree.contact.finding.shapes import Placed
from kinetree.errors import SingularError
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from kinetree.spatial.rotation import rotation_exp

NAMES = (*SOLIDS, "mesh")


def poses(first, second, rng):
    """Both shapes at random attitudes, and parallel: apart, just apart, and inside each other."""
    o = 0.1 * rng.normal(size=3)
    R, S = (rotation_exp(2 * rng.normal(size=3)) for _ in range(2))
    quarter = R @ rotation_exp(np.array([np.pi / 2, 0, 0]))
    for kind, T in {"generic": S, "parallel": R, "crossing": quarter}.items():
        way = R[:, 2] if kind == "crossing" else unit_vectors(rng, 1)[0]
        a, b = Placed(first, R, o), Placed(second, T, o)
        far = depths(a, b, way[None])[0]
        for more in (0.3, 0.01, -0.01, -0.08):
            yield kind, a, b._replace(origin=o + way * (far + more))


@pytest.mark.parametrize("names", list(combinations_with_replacement(NAMES, 2)))
@pytest.mark.covers("RBDA 11.6", by=(convex_distance, touches_of))
def test_no_plane_between_shapes_is_wider_and_they_touch_on_their_surfaces(names, wedge, rng):
    for _, a, b in poses(*(SOLIDS.get(n, wedge) for n in names), rng):
        expected = -depths(a, b, best_direction(a, b, rng)[None])[0]
        for first, second in ((a, b), (b, a)):
            found = convex_distance(first, second)
            assert_close(np.linalg.norm(found.normal), 1.0)
            assert_close(-depths(first, second, found.normal[None])[0], found.gap, scale=1.0)
            assert found.gap >= expected - 1e-14
            # Where axes cross at right angles, the way out bends as little as the fourth power.
            ulps = 1e8 if names == ("cylinder", "cylinder") else 1000
            assert_close(outside(first, found.foot[None]), [0], scale=1.0, ulps=ulps)
            touches = touches_of(first, second, 1.0)
            nearest = min(touches, key=lambda t: t.gap)
            assert_close(nearest.gap, found.gap, scale=1.0, ulps=1000)
            for t in [nearest] if "capsule" in names else touches:  # others: of balls at its ends
                ends = (t.point - t.normal * t.gap / 2, t.point + t.normal * t.gap / 2)
                assert_close(np.linalg.norm(t.normal), 1.0)
                for shape, end in zip((first, second), ends, strict=True):
                    assert_close(outside(shape, end[None]), [0], scale=1.0, ulps=10 * ulps)


@pytest.mark.covers("RBDA 11.6", by=convex_distance)
def test_the_way_out_through_a_face_is_exact(rng):
    for shape in (Box((0.2, 0.3, 0.5)), Cylinder(0.4, 0.3)):
        for R in (rotation_exp(rng.normal(size=3)) for _ in range(3)):
            for axis in np.eye(3) if isinstance(shape, Box) else [np.eye(3)[2]]:
                for side in (1, -1):
                    n = side * R @ axis
                    top = reach(shape, axis[None])[0]
                    a = Placed(shape, R, np.zeros(3))
                    b = placed(Sphere(0.05), rng, n * (top - 0.01))
                    for pair, normal in (((a, b), n), ((b, a), -n)):
                        found = convex_distance(*pair)
                        assert_close(found.normal, normal)
                        assert_close(found.gap, -0.06, scale=1.0)


def test_what_is_not_at_a_finite_place_is_named(rng):
    a = placed(Ellipsoid((0.3, 0.2, 0.1)), rng)
    b = placed(Cylinder(0.2, 0.3), rng, 0.02 * rng.normal(size=3))
    for far in (np.inf, -np.inf, np.nan, 1e200, -1e200):
        for k in range(3):
            lost = b._replace(origin=np.where(np.arange(3) == k, far, 0.0))
            for pair in ((a, lost), (lost, a)):
                with pytest.raises(SingularError, match="which are not at a finite place"):
                    convex_distance(*pair)


# --- Closed forms ---------------------------------------------------------------------------------


def test_five_points_of_two_capsules_are_the_nearest_of_the_axes_and_of_each_end(rng):
    s = np.linspace(-1, 1, 2001)
    for kind, a, b in poses(Capsule(0.1, 0.9), Capsule(0.05, 0.5), rng):
        lines = [p.origin + np.outer(s * p.shape.length / 2, p.axes[:, 2]) for p in (a, b)]
        found = [t.gap + 0.15 for t in touches(a, b)]
        ends = [
            min(np.linalg.norm(line - end, axis=1))
            for line, other in ((lines[0], lines[1]), (lines[1], lines[0]))
            for end in (other[-1], other[0])
        ]
        coarse = min(np.linalg.norm(lines[1] - p, axis=1).min() for p in lines[0][::20])
        np.testing.assert_allclose(found, [coarse, *ends], atol=2e-3, err_msg=kind)


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.5, 0.66, 2.0, -0.4, -3.0])
def test_parallel_capsules_touch_where_they_overlap(shift, rng):
    R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    for flip in (np.eye(3), np.diag([1.0, -1.0, -1.0])):
        a = Placed(Capsule(0.1, 0.9), R, o)
        b = Placed(Capsule(0.05, 0.5), R @ flip, o + R @ np.array([0.3, 0, shift]))
        found = touches(a, b)
        beyond = max(abs(shift) - 0.7, 0.0)
        assert_close(found[0].gap, np.hypot(0.3, beyond) - 0.15, scale=1.0)
        middle = ((found[0].point - o) @ R)[2]
        overlap = sorted([np.clip(shift + e, -0.45, 0.45) for e in (-0.25, 0.25)])
        assert overlap[0] - 1e-9 - beyond <= middle <= overlap[1] + 1e-9 + beyond


@pytest.mark.parametrize("shape", [Box((0.6, 0.4, 0.8)), Cylinder(0.3, 0.8), Capsule(0.2, 0.6)])
def test_a_ball_with_its_centre_on_a_surface_or_an_axis_is_pushed_straight_out(shape, rng):
    assert has_closed_form(shape, Sphere(0.1))
    for R in (np.eye(3), rotation_exp(rng.normal(size=3))):
        a = Placed(shape, R, np.zeros(3))
        for axis in np.eye(3):
            for side in (1, -1):
                top = reach(shape, axis[None])[0]
                for height in (top, top - 0.05, top + 0.05, 0.0):
                    b = placed(Sphere(0.1), rng, R @ (side * height * axis))
                    (t,) = touches(a, b)
                    n = t.normal
                    assert_close(depths(a, b, n[None])[0], -t.gap, scale=1.0)
                    if height:
                        assert_close(n, R @ (side * axis), scale=1.0)
                    assert_close(
                        outside(a, (t.point - n * t.gap / 2)[None]), [0], scale=1.0, ulps=1000
                    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.covers("RBDA 11.6", by=touches)
def test_shapes_touch_planes_with_points_of_their_surface_the_lowest_among_them(name, wedge, rng):
    shape = SOLIDS.get(name, wedge)
    count = {"ball": 1, "capsule": 2, "box": 8, "cylinder": 10, "ellipsoid": 1, "mesh": 6}[name]
    R = rotation_exp(rng.normal(size=3))
    plane, n = Placed(Plane(), R, rng.normal(size=3)), R[:, 2]
    upright = R @ rotation_exp(np.array([0, 0, 0.3]))
    lying = R @ rotation_exp(np.array([np.pi / 2, 0, 0]))
    for axes in (rotation_exp(2 * rng.normal(size=3)), upright, upright * [1, -1, -1], lying):
        b = Placed(shape, axes, plane.origin + 0.3 * n + 0.4 * R[:, 0])
        lowest = 0.3 - reach(shape, -n[None] @ axes)[0]
        for pair, sign in (((plane, b), 1), ((b, plane), -1)):
            found = touches(*pair)
            assert len(found) == count
            assert_close(min(t.gap for t in found), lowest, scale=1.0)
            for t in found:
                assert_close(t.normal, sign * n)
                foot, end = (t.point + s * n * t.gap / 2 for s in (-1, 1))
                assert_close((foot - plane.origin) @ n, 0.0, scale=1.0)
                if name != "capsule":
                    assert_close(outside(b, end[None]), [0], scale=1.0)
                else:  # of the ball at either end
                    away = np.linalg.norm(
                        end - b.origin + 0.2 * axes[:, [2, 2]].T * [[1], [-1]], axis=1
                    )
                    assert_close(away.min(), 0.1, scale=1.0)
            different = np.array([t.point for t in found])
            apart = np.linalg.norm(different[:, None] - different, axis=2)
            same = int(np.sum(apart < 1e-9))
            if name == "cylinder" and abs(n @ axes[:, 2]) < 0.99:  # five on either rim are one
                assert same == 50
            else:
                assert same in (count, count + 2, count + 4)  # a rim and its corner


def test_a_standing_cylinder_rests_on_a_square_of_its_rim(rng):
    shape = Cylinder(0.3, 0.4)
    found = touches(placed(Plane()), placed(shape, None, (0.1, 0.2, 0.2)))
    low = np.array([t.point for t in found if t.gap < 0.1]) - [0.1, 0.2, 0]
    assert_close(low[:, 2], np.zeros(5), scale=1.0)
    assert_close(np.hypot(low[:, 0], low[:, 1]), np.full(5, 0.3))
    assert_close(low[0], [0.3, 0, 0])
    assert_close(low[1:], 0.3 * np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]))
