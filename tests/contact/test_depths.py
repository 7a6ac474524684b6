"""How deep convex shapes are inside each other, against the least depth over many directions."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import placed, two_bodies, wedge_in
from support.convex_shapes import SOLIDS, depths, least_depth, touches_of

from kinetree.contact.collision.convex import convex_distance
from kinetree.contact.finding.shapes import Placed, place_shapes
from kinetree.contact.scene import Scene
from kinetree.model.geometry import Capsule, Cylinder
from kinetree.spatial.rotation import rotation_exp


def overlapping(first, second, rng):
    """Both shapes at places where they overlap, by name: generic and degenerate ones."""
    R, S = (rotation_exp(2 * rng.normal(size=3)) for _ in range(2))
    o = R @ np.array([0.06, 0.03, 0.04])
    quarter = R @ rotation_exp(np.array([np.pi / 2, 0, 0]))
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    far = depths(Placed(first, R, np.zeros(3)), Placed(second, S, np.zeros(3)), way[None])[0]
    places = {
        "deep": (S, o), "barely": (S, way * (far - 1e-3)), "parallel": (R, o),
        "nearly parallel": (R @ rotation_exp(1e-5 * rng.normal(size=3)), o),
        "coaxial": (R, R[:, 2] * 0.05), "crossing": (quarter, R[:, 0] * 0.02),
        "crossing axes": (quarter, np.zeros(3)), "the same place": (R, np.zeros(3)),
    }  # fmt: skip
    return {
        name: (Placed(first, R, np.zeros(3)), Placed(second, *place))
        for name, place in places.items()
    }


@pytest.mark.parametrize("names", list(combinations_with_replacement(SOLIDS, 2)))
@pytest.mark.covers("RBDA 11.6", by=(convex_distance, touches_of))
def test_no_direction_is_a_shorter_way_out(names, rng):
    for kind, (a, b) in overlapping(*(SOLIDS[n] for n in names), rng).items():
        expected = least_depth(a, b, rng)
        if expected <= 0:
            continue
        found = convex_distance(a, b)
        assert_close(depths(a, b, found.normal[None])[0], -found.gap, scale=1.0, ulps=1000)
        assert -found.gap <= expected + 1e-12, (kind, expected)
        # Boxes that are nearly parallel are pushed apart along an axis of one of them.
        deepest = min(t.gap for t in touches_of(a, b, 0.0))
        assert abs(deepest - found.gap) <= (2e-6 if names == ("box", "box") else 1e-12), kind


def test_depth_of_a_mesh_in_all_solids(tmp_path, rng):
    wedge = wedge_in(tmp_path)
    for shape in (*SOLIDS.values(), wedge):
        a, b = placed(wedge, rng), placed(shape, rng, (0.05, 0.02, 0.1))
        found = convex_distance(a, b)
        assert_close(depths(a, b, found.normal[None])[0], -found.gap, scale=1.0, ulps=1000)
        assert -found.gap <= least_depth(a, b, rng) + 1e-12


def test_parallel_cylinders_leave_sideways_and_not_along_their_axes():
    a, b = (placed(Cylinder(0.1, 0.3), None, o) for o in ((0, 0, 0), (0.1, 0.05, 0.05)))
    found = convex_distance(a, b)
    assert_close(found.gap, np.hypot(0.1, 0.05) - 0.2, scale=1.0)
    assert_close(found.normal, np.array([2, 1, 0]) / np.sqrt(5), scale=1.0, ulps=100)


def test_crossed_capsules_leave_at_right_angles_to_both(rng):
    model = two_bodies(Capsule(0.1, 0.6), Capsule(0.05, 0.4))
    q = model.integrate(model.neutral(), rng.normal(size=12))
    q[model.q_slice[1]][:3] = q[model.q_slice[2]][:3] = 0
    contacts = Scene(model).contacts(q)
    axes = [p.axes[:, 2] for p in place_shapes(model, q, model.geometry)]
    assert_close(contacts.gap.min(), -0.15, scale=1.0)
    normal = contacts.normal[contacts.gap.argmin()]
    assert_close([normal @ axis for axis in axes], [0, 0], scale=1.0)
