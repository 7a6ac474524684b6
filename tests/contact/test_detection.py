"""Finding contacts: broad phase, general convex shapes, axes, changes."""

from itertools import combinations

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import on_table, placed, state, two_bodies
from support.convex_shapes import farthest_points, reach_along

import kinetree as kt
from kinetree.contact.collision.convex import convex_distance
from kinetree.contact.collision.placing import clearance
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.contacts import contact_axes, contact_axes_rate, contact_changes, jacobian
from kinetree.contact.finding.shapes import place_shapes
from kinetree.contact.scene import Scene
from kinetree.errors import ModelError
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Plane,
    Sphere,
)

SOLIDS = (
    Box((0.2, 0.3, 0.5)), Sphere(0.2), Capsule(0.1, 0.4), Cylinder(0.15, 0.4),
    Ellipsoid((0.1, 0.2, 0.3)),
)  # fmt: skip


# --- broad phase ---------------------------------------------------------------------------------


def test_contacts_name_the_bodies_and_the_coefficients_of_their_own_pair(rng):
    builder = kt.ModelBuilder("balls")
    for k in range(5):
        inertia = kt.shapes.sphere(0.1, mass=1.0)
        builder.body(f"b{k}", joint=kt.Translation(), inertia=inertia)
    shapes = [Geometry(k + 1, Sphere(0.1 + 0.01 * k), name=f"g{k}") for k in range(5)]
    model = builder.build().replace(geometry=shapes)
    scene = Scene(model, friction=lambda a, b: a.body + b.body / 10, restitution=0.25)
    q = rng.uniform(-0.15, 0.15, size=15)
    contacts = scene.contacts(q, margin=0.05)
    expected = {}
    for i, j in combinations(range(5), 2):
        way = q[3 * j : 3 * j + 3] - q[3 * i : 3 * i + 3]
        gap = np.linalg.norm(way) - 0.2 - 0.01 * (i + j)
        if gap <= 0.05:
            expected[f"g{i}/g{j}:0"] = i + 1, j + 1, gap, way / np.linalg.norm(way)
    assert len(expected) > 4
    assert set(contacts.names) == set(expected)
    for k, name in enumerate(contacts.names):
        i, j, gap, normal = expected[name]
        assert (contacts.predecessor[k], contacts.successor[k]) == (i, j)
        assert_close(contacts.gap[k], gap, scale=1.0)
        assert_close(contacts.normal[k], normal)
        assert_close(contacts.friction[k], i + j / 10)
        assert contacts.restitution[k] == 0.25


def test_boxes_hold_their_shapes_and_touch_them(rng, wedge):
    for shape in (*SOLIDS, wedge):
        where = placed(shape, rng, rng.normal(size=3))
        table = placed_table(where)
        low, high = table.low[0], table.high[0]
        for k in range(3):
            for sign, limit in ((1.0, high), (-1.0, low)):
                farthest = sign * reach_along(where, sign * np.eye(3)[k])
                if shape is wedge:  # that of the box around the mesh along its own axes
                    assert sign * farthest <= sign * limit[k] + 1e-14
                else:
                    assert_close(farthest, limit[k], scale=1.0)


def test_nothing_is_nearer_to_a_ground_than_its_clearance(rng, wedge):
    heights = ((0.0, 1.0, 0.0), (1.0, 3.0, 1.0))
    for ground, top in ((Plane(), 0.0), (HeightField(heights, (2.0, 2.0)), 3.0)):
        below = placed(ground, rng, rng.normal(size=3))
        for shape in (*SOLIDS, wedge):
            where = placed(shape, rng, rng.normal(size=3))
            n = below.axes[:, 2]
            least = -reach_along(where, -n) - below.origin @ n - top
            found = clearance(placed_table(below, where), 0, 1)
            assert found <= least + 1e-12
            if isinstance(shape, Box) and isinstance(ground, Plane):
                assert_close(found, least, scale=1.0)


# --- general convex shapes -----------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.6", by=convex_distance)
def test_distances_agree_with_closed_forms(rng):
    for shape in (Sphere(0.2), Capsule(0.1, 0.4), Box((0.2, 0.3, 0.5)), Cylinder(0.15, 0.4)):
        model = two_bodies(shape, Sphere(0.15))
        direction = rng.normal(size=3)
        q, _ = state(model, rng, 0.6 * direction / np.linalg.norm(direction))
        contacts = Scene(model).contacts(q, margin=1.0)
        nearest = convex_distance(*place_shapes(model, q, model.geometry))
        np.testing.assert_allclose(nearest.gap, contacts.gap[0], atol=1e-14)
        np.testing.assert_allclose(nearest.normal, contacts.normal[0], atol=1e-13)


@pytest.mark.covers("RBDA 11.6", by=convex_distance)
def test_distance_is_the_least_over_many_points_of_the_surfaces(rng):
    a, b = placed(SOLIDS[4], rng), placed(Cylinder(0.15, 0.4), rng, (0.5, 0.3, 0.2))
    nearest = convex_distance(a, b)
    directions = rng.normal(size=(1500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    ends = [farthest_points(p, d)[0] for p in (a,) for d in directions[:700]]
    separations = [  # a plane between the shapes at right angles to d: its width
        -np.max(farthest_points(a, d) @ d) + np.min(farthest_points(b, -d) @ d) for d in directions
    ]
    assert max(separations) <= nearest.gap + 1e-9
    assert max(separations) > nearest.gap - 0.01
    assert min((np.array(ends) - nearest.foot) @ -nearest.normal) >= -1e-9


def test_overlap_of_ellipsoids_is_negative():
    a, b = (
        placed(Ellipsoid((0.1, 0.2, 0.3))),
        placed(Ellipsoid((0.2, 0.2, 0.1)), None, (0.25, 0, 0)),
    )
    nearest = convex_distance(a, b)
    np.testing.assert_allclose(nearest.gap, -0.05, atol=1e-15)
    np.testing.assert_allclose(nearest.normal, [1, 0, 0], atol=1e-14)


def test_distances_to_grounds_are_rejected():
    with pytest.raises(
        ModelError, match=r"distance between Plane and Box is not one of bounded.*Scene.contacts"
    ):
        convex_distance(placed(Plane()), placed(Box((1, 1, 1))))


def test_another_back_end_has_no_effect():
    model = two_bodies(Ellipsoid((1, 1, 1)), Ellipsoid((1, 1, 1)))
    q = model.neutral()
    q[7] = 1.9
    with pytest.warns(DeprecationWarning, match=r"Scene\(distance=...\) has no effect"):
        scene = Scene(model, distance=convex_distance)
    contacts = scene.contacts(q)
    assert_close(contacts.gap, [-0.1], ulps=1000)
    assert_close(contacts.point, [[0.95, 0, 0]], ulps=1000)


# --- events and axes -----------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.6", by=contact_changes)
def test_block_slides_off_a_table_when_its_last_corner_passes_the_border():
    scene, q = on_table(Box((0.2, 0.2, 0.2)), (0.55, 0, 0.2))
    model, qd = scene.model, np.array([0, 0, 0, 1.0, 0, 0])
    before = scene.contacts(q, margin=1e-9)
    times = [0.05 - 1e-6, 0.05 + 1e-6]
    held, gone = (scene.contacts(model.integrate(q, t * qd), margin=1e-9) for t in times)
    assert held.size >= 2
    assert gone.size == 0
    changes = contact_changes(model, q, qd, before, gone)
    assert changes == ((), (), ("a/b",))
    up = np.array([0, 0, 0, 0, 0, 1.0])
    lifted = scene.contacts(model.integrate(q, 0.1 * up), margin=1e-9)
    assert contact_changes(model, q, up, before, lifted).parted == ("a/b",)
    assert contact_changes(model, q, qd, lifted, before).gained == ("a/b",)


def test_axes_are_orthonormal_smooth_and_start_along_those_of_the_base(rng):
    normals = rng.normal(size=(50, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    axes = contact_axes(normals)
    assert_close(axes @ np.swapaxes(axes, 1, 2), np.tile(np.eye(3), (50, 1, 1)))
    assert_close(np.linalg.det(axes), np.ones(50))
    assert_close(contact_axes(np.array([0, 0, 1.0])), np.eye(3)[[2, 0, 1]])
    rates = np.cross(rng.normal(size=(50, 3)), normals)
    h = 1e-6
    moved = [normals + s * h * rates for s in (1, -1)]
    ahead, behind = (contact_axes(n / np.linalg.norm(n, axis=1)[:, None]) for n in moved)
    steady = np.abs(normals[:, 2] + 0.5) > 1e-3
    found = contact_axes_rate(normals, rates)
    np.testing.assert_allclose(found[steady], (ahead - behind)[steady] / (2 * h), atol=1e-8)


def test_deep_contact_pushes_out_along_the_shortest_way(rng):
    model = two_bodies(Box((1, 1, 1)), Sphere(0.1), fixed=True)
    q = model.neutral()
    q[:3] = 0.1, 0.45, 0.2
    contacts = Scene(model).contacts(q)
    assert_close(contacts.normal, [[0, 1.0, 0]])
    assert_close(contacts.gap, [-0.15])
    assert jacobian(model, q, contacts).shape == (1, 3, 6)
