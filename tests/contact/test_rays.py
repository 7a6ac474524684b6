"""Where rays meet shapes."""

from functools import lru_cache

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.finding.shapes import height_and_derivatives
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
)


@lru_cache
def carrying(shape):
    b = kt.ModelBuilder("still")
    b.body("far", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1.0))
    b.geometry(shape, name="met")
    return b.build()


def first_hit(shape, p, d):
    """The smallest t of a ray; the hit is where it says, and its normal is that of the surface."""
    hit = kt.contact.ray_cast(carrying(shape), np.zeros(1), p, d)
    if np.isinf(hit.distance):
        assert hit.shape == -1
        assert np.all(np.isnan([hit.point, hit.normal]))
    else:
        along = hit.distance * d / np.linalg.norm(d)
        np.testing.assert_allclose(hit.point, p + along, rtol=0, atol=1e-14 * (1 + hit.distance))
        assert hit.shape == 0
        assert abs(hit.normal @ hit.normal - 1) < 1e-14
    return hit.distance / np.linalg.norm(d)


SHAPES = {
    Box((0.6, 0.8, 1.0)): lambda p: np.max(np.abs(p) / [0.3, 0.4, 0.5]) - 1,
    Sphere(0.5): lambda p: np.linalg.norm(p) - 0.5,
    Ellipsoid((0.3, 0.4, 0.5)): lambda p: np.linalg.norm(p / [0.3, 0.4, 0.5]) - 1,
    Cylinder(0.4, 1.0): lambda p: max(np.hypot(*p[:2]) - 0.4, abs(p[2]) - 0.5),
    Capsule(0.4, 1.0): lambda p: np.linalg.norm(p - [0, 0, np.clip(p[2], -0.5, 0.5)]) - 0.4,
    Plane(): lambda p: p[2],
}
"""Each with a function that is zero on its surface."""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_the_first_point_is_on_the_surface_and_none_is_before_it(shape, rng):
    level, hits = SHAPES[shape], 0
    for _ in range(60):
        p = rng.normal(size=3)
        d = 0.3 * rng.normal(size=3) - p
        t = first_hit(shape, p, d)
        side = np.sign(level(p))
        before = np.linspace(0, min(t, 20.0), 200)[:-1]
        assert all(np.sign(level(p + s * d)) == side for s in before[:-1])
        if np.isfinite(t):
            assert abs(level(p + t * d)) < 1e-13 * (1 + t) ** 2
            hits += 1
    assert hits > 10


def test_triangles_of_meshes(tmp_path):
    path = tmp_path / "wedge.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    mesh = Mesh(str(path), (2.0, 2.0, 2.0))
    down = np.array([0, 0, -1.0])
    assert first_hit(mesh, np.array([0.5, 0.5, 5.0]), down) == pytest.approx(4.0)
    assert first_hit(mesh, np.array([0.5, 0.5, 0.3]), down) == pytest.approx(0.3)  # from inside
    assert first_hit(mesh, np.array([1.5, 1.5, 5.0]), down) == np.inf


def test_many_triangles_against_all_of_them_one_by_one(tmp_path, rng):
    import trimesh

    surface = trimesh.creation.torus(0.5, 0.2, major_sections=24, minor_sections=16)
    surface.export(tmp_path / "ring.stl")
    p = rng.normal(size=(200, 3))
    d = 0.6 * rng.normal(size=(200, 3)) - p
    d /= np.linalg.norm(d, axis=1)[:, None]
    found = kt.contact.ray_cast(carrying(Mesh(str(tmp_path / "ring.stl"))), np.zeros(1), p, d)
    corners = trimesh.load(tmp_path / "ring.stl").triangles
    a, sides = (
        corners[:, 0],
        np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]]),
    )
    for k in range(len(p)):
        A = np.stack([*sides, np.broadcast_to(-d[k], a.shape)], axis=-1)
        x, y, t = np.linalg.solve(A, (p[k] - a)[..., None])[..., 0].T
        met = (x >= 0) & (y >= 0) & (x + y <= 1) & (t >= 0)
        assert found.distance[k] == pytest.approx(np.min(t[met], initial=np.inf), abs=1e-12)
    assert 50 < np.sum(np.isfinite(found.distance)) < 190


def test_height_fields_are_their_smooth_surface(rng):
    heights = rng.uniform(0, 0.4, size=(6, 5))
    field = HeightField(tuple(map(tuple, heights)), (2.0, 1.6))

    def above(p):
        return p[2] - height_and_derivatives(field, p[0], p[1]).h

    hits = 0
    for _ in range(60):
        p = np.array([*rng.uniform(-1, 1, 2), 1.0])
        d = np.array([*rng.uniform(-1, 1, 2), -0.5])
        t = first_hit(field, p, d)
        steps = np.linspace(0, min(t, 4.0), 100)[:-1]
        inside = [s for s in steps if abs(p + s * d)[0] <= 1 and abs(p + s * d)[1] <= 0.8]
        assert all(above(p + s * d) > 0 for s in inside)
        if np.isfinite(t):
            assert abs(above(p + t * d)) < 1e-13
            hits += 1
    assert hits > 10
    down = np.array([0, 0, -1.0])
    exact = 3 - height_and_derivatives(field, 0.3, 0.1).h
    assert first_hit(field, np.array([0.3, 0.1, 3.0]), down) == pytest.approx(exact, abs=1e-14)
    assert first_hit(field, np.array([0.3, 0.1, -3.0]), -down) == pytest.approx(
        6 - exact, abs=1e-14
    )
    assert first_hit(field, np.array([5.0, 0, 3.0]), down) == np.inf


def test_rays_of_batches_and_what_they_pass_through():
    m = kt.contact.with_ground(kt.samples.quadruped())
    q = np.stack([m.posture("home").q] * 3)
    q[:, 2] += [0.0, 0.1, 0.2]
    origin, down = np.array([0.05, 0.02, 3.0]), np.array([0, 0, -2.0])
    one = kt.contact.ray_cast(m, q, origin, down)
    assert one.point.shape == (3, 3)
    np.testing.assert_allclose(one.distance, one.distance[0] - [0, 0.1, 0.2], rtol=0, atol=1e-14)
    assert [m.geometry[k].body for k in one.shape] == [1, 1, 1]  # the trunk
    several = kt.contact.ray_cast(m, q, [origin, [4.0, 4.0, 3.0]], down)
    np.testing.assert_array_equal(several.distance[:, 0], one.distance)
    np.testing.assert_array_equal(several.distance[:, 1], 3.0)
    np.testing.assert_array_equal(several.normal[:, 1], [[0, 0, 1]] * 3)
    each = kt.contact.ray_cast(m, q, np.broadcast_to(origin, (3, 1, 3)), [[0, 0, -1.0]])
    np.testing.assert_array_equal(each.distance[:, 0], one.distance)
    bodies = list(m.body_names[1:])
    assert np.all(kt.contact.ray_cast(m, q, origin, down, ignore=bodies).distance == 3.0)


def test_mistakes_with_rays_are_named():
    m, q = carrying(Plane()), np.zeros(1)
    with pytest.raises(UnknownNameError, match=r"no shape, link, frame or body .* 'mat'.*'met'"):
        kt.contact.ray_cast(m, q, [0, 0, 1.0], [0, 0, -1.0], ignore=["mat"])
    with pytest.raises(ShapeError, match="direction must not be zero"):
        kt.contact.ray_cast(m, q, [0, 0, 1.0], [0, 0, 0.0])
    with pytest.raises(ShapeError, match=r"origin and direction must be \(3,\), \(n, 3\)"):
        kt.contact.ray_cast(m, q, [0, 1.0], [0, 0, 1.0])
