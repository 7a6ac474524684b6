"""Faces on faces, meshes, hills, and shapes that slide off them."""

import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull
from support.closeness import assert_close
from support.contact_scenes import on_table, two_bodies

import kinetree as kt
from kinetree.contact.collision.clipping import clip_faces
from kinetree.contact.finding import shapes
from kinetree.contact.finding.shapes import height_and_derivatives, hull_of
from kinetree.contact.scene import Scene
from kinetree.errors import MissingPackageError
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Mesh,
    Plane,
    Sphere,
)

# --- faces on faces ------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.6", by=clip_faces)
def test_box_on_table_touches_at_its_corners_and_where_it_hangs_over_at_the_border():
    scene, q = on_table(Box((0.2, 0.4, 0.6)), (0.1, 0.2, 0.4))
    contacts = scene.contacts(q, margin=1e-9)
    corners = [[x, y, 0.1] for x in (0.0, 0.2) for y in (0.0, 0.4)]
    assert_close(np.array(sorted(contacts.point.tolist())), corners, ulps=1000)
    assert_close(contacts.normal, np.tile([0.0, 0.0, 1.0], (4, 1)))
    np.testing.assert_allclose(contacts.gap, 0.0, atol=1e-15)
    over, q = on_table(Box((0.2, 0.4, 0.6)), (0.5, 0.2, 0.4))
    points = over.contacts(q, margin=1e-9).point
    assert_close(points[:, 0].max(), 0.5)
    assert_close(points[:, 0].min(), 0.4)


def test_tilted_box_touches_with_an_edge_and_a_turned_one_with_more_corners():
    scene, q = on_table(Box((0.2, 0.2, 0.2)), (0, 0, 0.1 + 0.1 * np.sqrt(2)))
    q = scene.model.integrate(q, np.array([0, np.pi / 4, 0, 0, 0, 0]))
    contacts = scene.contacts(q, margin=1e-6)
    assert_close(np.sort(contacts.point[:, 1]), [-0.1, 0.1])
    turned, q = on_table(Box((1.2, 1.2, 0.2)), (0, 0, 0.2), turn=np.pi / 4)
    contacts = turned.contacts(q, margin=1e-9)
    # Four of the eight corners of what the tops have in common, far apart from each other.
    short = 0.6 * np.sqrt(2) - 0.5
    corners = [sorted(map(abs, p)) for p in contacts.point[:, :2]]
    assert_close(corners, [[short, 0.5]] * 4, ulps=1000)
    area = ConvexHull(contacts.point[:, :2]).volume
    assert area > 0.7 * (1 - 2 * (0.5 - short) ** 2)


@pytest.mark.parametrize(
    ("shape", "height", "count"),
    [
        (Cylinder(0.1, 0.4), 0.3, 4),  # a disc, as a square
        (Capsule(0.1, 0.4), 0.4, 1),
        (Ellipsoid((0.1, 0.2, 0.3)), 0.4, 1),
    ],
)
def test_round_shapes_on_a_table(shape, height, count):
    scene, q = on_table(shape, (0, 0, height))
    contacts = scene.contacts(q, margin=1e-6)
    assert contacts.size == count
    np.testing.assert_allclose(contacts.gap, 0.0, atol=1e-9)
    np.testing.assert_allclose(contacts.point[:, 2], 0.1, atol=1e-9)


@pytest.mark.parametrize("shape", [Cylinder(0.1, 0.4), Capsule(0.1, 0.4)])
def test_lying_shapes_touch_a_table_along_a_line(shape):
    scene, q = on_table(shape, (0, 0, 0.2))
    q = scene.model.integrate(q, np.array([np.pi / 2, 0, 0, 0, 0, 0]))
    points = scene.contacts(q, margin=1e-6).point
    assert_close(np.sort(points[:, 1]), [-0.2, 0.2], ulps=1e5)


def test_parallel_edges_share_the_two_ends_of_their_overlap():
    a, b = Box((0.2, 0.2, 1.0)), Box((0.2, 0.2, 0.6))
    model = two_bodies(a, b, at_a=kt.rotz(np.pi / 4), at_b=kt.rotz(np.pi / 4), fixed=True)
    q = model.neutral()
    q[:3] = 0.2 * np.sqrt(2) + 1e-3, 0.0, 0.4
    contacts = Scene(model).contacts(q, margin=0.01)
    assert_close(np.sort(contacts.point[:, 2]), [0.1, 0.5], ulps=1e4)
    np.testing.assert_allclose(contacts.gap, 1e-3, atol=1e-9)
    q[2] = 5.0
    assert Scene(model).contacts(q, margin=0.01).size == 0


def test_shapes_on_planes_with_closed_forms_touch_at_the_same_points_as_on_a_large_box():
    for shape in (Box((0.2, 0.4, 0.6)), Capsule(0.1, 0.4), Cylinder(0.1, 0.6)):
        reach = 0.3
        on_box, q = on_table(shape, (0, 0, 0.1 + reach))
        on_plane, _ = on_table(shape, (0, 0, 0), table=Plane())
        lowered = q.copy()
        lowered[2] = reach
        kinds = [s.contacts(p, 1e-9) for s, p in ((on_box, q), (on_plane, lowered))]
        assert_close(
            np.abs(kinds[0].point[:, :2]).max(axis=0), np.abs(kinds[1].point[:, :2]).max(axis=0),
            scale=1.0,
        )  # fmt: skip


# --- meshes and hills ----------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.6", by=hull_of)
def test_mesh_touches_with_its_hull(wedge):
    hull = hull_of(wedge)
    assert len(hull.vertices) == 6  # the dent is gone
    assert_close(hull.offsets.max(), np.max(hull.normals @ hull.vertices.T), ulps=1000)
    model = two_bodies(Plane(), wedge, fixed=True)
    contacts = Scene(model).contacts(model.neutral(), margin=1e-9)
    assert contacts.size == 3
    on_box, q = on_table(wedge, (0, 0, 0.1))
    contacts = on_box.contacts(q, margin=1e-6)
    corners = [[0, 0, 0.1], [0.2, 0.5, 0.1], [0.4, 0, 0.1]]
    np.testing.assert_allclose(sorted(contacts.point.tolist()), corners, atol=1e-6)


def test_mesh_with_many_corners_on_a_plane(tmp_path):
    path = tmp_path / "ball.off"
    trimesh.creation.icosphere(subdivisions=2, radius=0.5).export(path)
    model = two_bodies(Plane(), Mesh(str(path)), fixed=True)
    scene = Scene(model)
    assert scene.open_pairs == (0,)
    q = model.neutral()
    q[2] = 0.4
    contacts = scene.contacts(q)
    corners = hull_of(Mesh(str(path))).vertices + np.array([0, 0, 0.4])
    below = corners[corners[:, 2] <= 0]
    assert 4 <= contacts.size <= 8 < len(below)
    assert_close(contacts.gap.min(), below[:, 2].min(), scale=1.0)
    ends = contacts.point + contacts.normal * contacts.gap[:, None] / 2
    away = np.linalg.norm(ends[:, None] - below, axis=2).min(axis=1)
    assert_close(away, 0 * away, scale=1.0)
    assert ConvexHull(ends[:, :2]).volume > 0.4 * ConvexHull(below[:, :2]).volume
    swapped = model.replace(
        geometry=(Geometry(0, Mesh(str(path)), name="ball"), Geometry(1, Plane(), name="p"))
    )
    below = swapped.neutral()
    below[2] = -0.4
    assert_close(np.sort(Scene(swapped).contacts(below).gap), np.sort(contacts.gap), scale=1.0)


def test_hulls_are_kept_on_disk(wedge, tmp_path, monkeypatch):
    hull = hull_of(Mesh(wedge.path, (1.0, 2.0, 3.0)))
    shapes._hull.cache_clear()
    monkeypatch.setattr(shapes, "convex_hull", None)  # not needed again, for the same content
    copy = tmp_path / "copy.off"
    copy.write_bytes(Path(wedge.path).read_bytes())
    for a, b in zip(hull_of(Mesh(str(copy), (1.0, 2.0, 3.0))), hull, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(TypeError, match="not callable"):
        hull_of(Mesh(str(copy), (1.0, 2.0, 3.5)))


def test_hull_needs_scipy(wedge, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingPackageError, match=r"hull of .* needs the package scipy"):
        hull_of(Mesh(wedge.path, (2.0, 2.0, 2.0)))


@pytest.mark.covers("RBDA 11.6", by=height_and_derivatives)
def test_spline_goes_through_its_heights_and_is_level_beyond(rng):
    heights = rng.normal(size=(5, 4))
    field = HeightField(tuple(map(tuple, heights)), (4.0, 6.0))
    for i in range(5):
        for j in range(4):
            assert_close(
                height_and_derivatives(field, i - 2.0, 2 * j - 3.0).h, heights[i, j], scale=1.0
            )
    beyond = height_and_derivatives(field, 9.0, -3.0)
    assert_close(beyond.h, heights[4, 0], scale=1.0)
    assert (beyond.hx, beyond.hxx, beyond.hxy) == (0, 0, 0)
    x, y, h = 0.3, 0.4, 1e-5
    s = height_and_derivatives(field, x, y)
    up, right = height_and_derivatives(field, x, y + h), height_and_derivatives(field, x + h, y)
    down, left = height_and_derivatives(field, x, y - h), height_and_derivatives(field, x - h, y)
    derivatives = [
        right.h - left.h,
        up.h - down.h,
        right.hx - left.hx,
        up.hx - down.hx,
        up.hy - down.hy,
    ]
    np.testing.assert_allclose(
        np.array(derivatives) / (2 * h), [s.hx, s.hy, s.hxx, s.hxy, s.hyy], atol=1e-8
    )


def test_ball_in_a_hollow_touches_where_its_surface_is_nearest():
    bowl = [[0.5 * (x * x + y * y) for y in np.linspace(-2, 2, 9)] for x in np.linspace(-2, 2, 9)]
    model = two_bodies(HeightField(tuple(map(tuple, bowl)), (4.0, 4.0)), Sphere(0.3), fixed=True)
    scene = Scene(model)
    q = model.neutral()
    q[:3] = 0.7, -0.2, 0.8
    contacts = scene.contacts(q, margin=1.0)
    foot = contacts.point[0] - contacts.normal[0] * contacts.gap[0] / 2
    x, y = np.linspace(0.2, 1.0, 40), np.linspace(-0.5, 0.2, 40)
    field = model.geometry[0].shape
    heights = np.array([[height_and_derivatives(field, i, j).h for j in y] for i in x])
    points = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], axis=-1)
    least = np.sqrt(np.sum((points - q[:3]) ** 2, axis=-1)).min()
    assert 0 <= least - (contacts.gap[0] + 0.3) < 1e-3
    np.testing.assert_allclose(
        q[:3] - foot, (contacts.gap[0] + 0.3) * contacts.normal[0], atol=1e-9
    )
