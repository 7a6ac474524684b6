"""Public distances against certificates and brute force, for all pairs of convex shapes.

Apart: two points of the shapes bound the distance from above, the slab at right angles to the
normal from below, both computed here from the definitions of the shapes: agreement is a proof.
Overlapping polyhedra: all separating axes. Overlapping curved shapes: no direction that ascent
finds from many starts is better. ``make fuzz`` looks at 100,000 poses (``KINETREE_POSES``).
"""

import os
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
)

POSES = int(os.environ.get("KINETREE_POSES", "2000"))
EPS = np.finfo(float).eps
INERTIA = kt.shapes.sphere(0.1, mass=1.0)
SOLIDS = {
    "sphere": Sphere(0.3),
    "capsule": Capsule(0.2, 0.8),
    "box": Box((0.6, 0.4, 1.0)),
    "cylinder": Cylinder(0.3, 0.8),
    "ellipsoid": Ellipsoid((0.2, 0.3, 0.5)),
    "cone": Cone(0.3, 0.8),
    "hull": "rock.stl",
}
PAIRS = list(combinations_with_replacement(SOLIDS, 2))


@pytest.fixture(scope="module")
def rock(tmp_path_factory):
    """A file with a random polyhedron of about 50 corners, and its corners."""
    import trimesh

    points = np.random.default_rng(7).normal(size=(50, 3))
    points *= 0.5 / np.linalg.norm(points, axis=1)[:, None]
    hull = trimesh.convex.convex_hull(points * [0.8, 1.0, 0.6])
    path = tmp_path_factory.mktemp("meshes") / "rock.stl"
    hull.export(path)
    return Mesh(str(path))


def two_free(first, second):
    b = kt.ModelBuilder("two")
    for name, shape in (("first", first), ("second", second)):
        b.body(name, joint=kt.Free(), inertia=INERTIA)
        b.geometry(shape, on=name, name=f"{name} shape")
    return b.build()


def configurations(rng, n):
    """Random, aligned and nearly aligned poses, on a grid and touching among them, (n, 14)."""
    q = np.zeros((n, 2, 7))
    q[:, :, 3:] = rng.normal(size=(n, 2, 4))
    q[:, 1, :3] = 0.6 * rng.normal(size=(n, 3))
    half = n // 2
    square = [s for s in product((-1, 0, 1), repeat=4) if np.sum(np.abs(s)) in (1, 2, 4)]
    square = np.array([s for s in square if len({abs(x) for x in s if x}) == 1], dtype=float)
    q[:half, :, 3:] = square[rng.integers(len(square), size=(half, 2))]
    tilt = rng.normal(size=(n // 4, 4)) * 10.0 ** rng.uniform(-16, -2, size=(n // 4, 1))
    q[: n // 4, 1, 3:] = q[: n // 4, 0, 3:] / np.linalg.norm(q[: n // 4, 0, 3:], axis=1)[:, None]
    q[: n // 4, 1, 3:] += tilt
    q[:half, 1, :3] = 0.1 * rng.integers(-8, 9, size=(half, 3))
    q[: n // 4, 1, :3] += 1e-9 * rng.normal(size=(n // 4, 3)) * (rng.random((n // 4, 1)) < 0.3)
    q[:, :, 3:] /= np.linalg.norm(q[:, :, 3:], axis=2, keepdims=True)
    return q.reshape(n, 14)


# --- shapes by their definitions, in their own coordinates ---------------------------------------


def corners_of(shape):
    """Corners of the core of a polyhedral shape, and the radius around it; None if it is curved."""
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius
    if isinstance(shape, Capsule):
        return np.array([[0, 0, s * shape.length / 2] for s in (1, -1)]), shape.radius
    if isinstance(shape, Box):
        return np.array(list(product((1, -1), repeat=3))) * np.array(shape.size) / 2, 0.0
    if isinstance(shape, Mesh):
        from kinetree.model.triangles import read_triangles

        return np.array(read_triangles(shape.path).vertices), 0.0
    return None, 0.0


def farthest(shape, d):
    """Farthest points along unit directions (n, 3)."""
    if isinstance(shape, Ellipsoid):
        p = np.square(shape.radii) * d
        return p / np.sqrt(np.sum(p * d, axis=1))[:, None]
    if isinstance(shape, Cylinder):
        across = d * [1, 1, 0]
        out = across / np.maximum(np.linalg.norm(across, axis=1), 1e-300)[:, None]
        return shape.radius * out + np.where(d[:, 2:] < 0, -1, 1) * [0, 0, shape.length / 2]
    if isinstance(shape, Cone):
        across = d * [1, 1, 0]
        out = across / np.maximum(np.linalg.norm(across, axis=1), 1e-300)[:, None]
        rim, tip = shape.radius * out - [0, 0, shape.length / 2], [0, 0, shape.length / 2]
        return np.where(np.sum((rim - tip) * d, axis=1)[:, None] > 0, rim, tip)
    corners, r = corners_of(shape)
    return corners[np.argmax(d @ corners.T, axis=1)] + r * d


def excess(shape, p):
    """How far points are outside a shape [m], about; not positive inside."""
    if isinstance(shape, Ellipsoid):
        return (np.linalg.norm(p / shape.radii, axis=1) - 1) * min(shape.radii)
    if isinstance(shape, Cylinder):
        side = np.hypot(p[:, 0], p[:, 1]) - shape.radius
        return np.maximum(side, np.abs(p[:, 2]) - shape.length / 2)
    if isinstance(shape, Cone):
        r, half = shape.radius, shape.length / 2
        side = 2 * half * np.hypot(p[:, 0], p[:, 1]) + r * (p[:, 2] - half)
        return np.maximum(side / np.hypot(r, 2 * half), -half - p[:, 2])
    if isinstance(shape, (Sphere, Capsule)):
        half = getattr(shape, "length", 0) / 2
        axis = np.clip(p[:, 2], -half, half)[:, None] * [0, 0, 1]
        return np.linalg.norm(p - axis, axis=1) - shape.radius
    if isinstance(shape, Box):
        return np.max(np.abs(p) - np.array(shape.size) / 2, axis=1)
    normals, offsets = planes_of(shape)
    return np.max(p @ normals.T - offsets, axis=1)


def planes_of(mesh):
    from scipy.spatial import ConvexHull

    equations = ConvexHull(corners_of(mesh)[0]).equations
    return equations[:, :3], -equations[:, 3]


def directions_of(shape):
    """Normals of the faces and directions of the edges of a core, as unit vectors."""
    if isinstance(shape, Sphere):
        return np.zeros((0, 3)), np.zeros((0, 3))
    if isinstance(shape, Capsule):
        return np.zeros((0, 3)), np.array([[0, 0, 1.0]])
    if isinstance(shape, Box):
        return np.concatenate([np.eye(3), -np.eye(3)]), np.eye(3)
    from scipy.spatial import ConvexHull

    hull = ConvexHull(corners_of(shape)[0])
    ends = {
        tuple(sorted((t[a], t[b]))) for t in hull.simplices for a, b in ((0, 1), (1, 2), (2, 0))
    }
    edges = np.array([hull.points[b] - hull.points[a] for a, b in ends])
    return hull.equations[:, :3], edges / np.linalg.norm(edges, axis=1)[:, None]


class Two:
    """Two shapes in many poses: rotations (n, 3, 3) and origins (n, 3) of each."""

    def __init__(self, model, shapes, q):
        poses = kt.poses(model, q)
        self.shapes = shapes
        self.R, self.o = poses[:, :, :3, :3], poses[:, :, :3, 3]

    def width(self, n, at=slice(None)):
        """Width of the slab between the shapes along n (m, 3), one for each pose of ``at``."""
        ends = []
        for k, sign in ((0, 1.0), (1, -1.0)):
            R = self.R[at, k]
            p = farthest(self.shapes[k], np.einsum("nij,ni->nj", R, sign * n))
            ends.append(self.o[at, k] + np.einsum("nij,nj->ni", R, p))
        return np.sum(n * (ends[1] - ends[0]), axis=1), ends[1] - ends[0]

    def outside(self, points):
        """How far points (n, 2, 3), one of each shape, are outside."""
        local = np.einsum("nkij,nki->nkj", self.R, points - self.o)
        return np.maximum(*(excess(s, local[:, k]) for k, s in enumerate(self.shapes)))


def least_by_axes(two, at):
    """Least depth of polyhedral cores and balls around them: separating axes of pose ``at``."""
    (A, ra), (B, rb) = (corners_of(s) for s in two.shapes)
    R, o = two.R[at], two.o[at]
    A, B = A @ R[0].T + o[0], B @ R[1].T + o[1]
    (f, e), (g, h) = (directions_of(s) for s in two.shapes)
    f, e, g, h = f @ R[0].T, e @ R[0].T, -g @ R[1].T, h @ R[1].T
    over = np.cross(e[:, None], h[None]).reshape(-1, 3)
    length = np.linalg.norm(over, axis=1)
    over = over[length > 1e-13] / length[length > 1e-13, None]  # any direction is a bound
    axes = np.concatenate([f, g, over, -over])
    return np.max(np.min(axes @ B.T, axis=1) - np.max(axes @ A.T, axis=1)) - ra - rb


def least_by_ascent(two, at, rng, starts=40, steps=60):
    """The largest width that ascent finds from many directions, for poses ``at``."""
    m = len(at)
    n = rng.normal(size=(m, starts, 3))
    axes = np.concatenate([two.R[at, k].transpose(0, 2, 1) for k in (0, 1)], axis=1)
    n = np.concatenate([n, axes, -axes], axis=1)
    n = (n / np.linalg.norm(n, axis=2, keepdims=True)).reshape(-1, 3)
    at = np.repeat(at, starts + 12)
    best, way = two.width(n, at)
    step = np.full(len(n), 0.5)
    for _ in range(steps):
        across = way - np.sum(way * n, axis=1)[:, None] * n
        trial = n + step[:, None] * across
        trial /= np.linalg.norm(trial, axis=1)[:, None]
        found, turned = two.width(trial, at)
        better = found > best
        n, way = np.where(better[:, None], trial, n), np.where(better[:, None], turned, way)
        best, step = np.maximum(best, found), np.where(better, 1.5 * step, 0.4 * step)
    return best.reshape(m, -1).max(axis=1)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda x: x)
def test_distances_are_proved_and_depths_are_least(one, other, rock, rng):
    shapes = [rock if name == "hull" else SOLIDS[name] for name in (one, other)]
    model = two_free(*shapes)
    q = configurations(rng, max(POSES // len(PAIRS), 8))
    found = kt.contact.distance(model, q, "first", "second")
    two, gap = Two(model, shapes, q), found.gap
    both_flat = not {one, other} & {"cylinder", "ellipsoid", "cone"}
    tiny = 64 * EPS * (2.0 + np.abs(q).max())  # the sizes of both together, and how far they are
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1, rtol=0, atol=8 * EPS)
    between = found.points[:, 1] - found.points[:, 0]
    way = np.linalg.norm(between - gap[:, None] * found.normal, axis=1)
    # Where faces or edges are parallel but for rounding, where on them the points are is uncertain
    # by a root of rounding errors, and so may be the normal of one pose in a thousand.
    for error, share in (
        (np.abs(two.width(found.normal)[0] - gap), 1e-3),
        (two.outside(found.points) / 4, 1e-3),
        (way, 1e-3 if both_flat else 2e-2),
    ):
        assert np.mean(error > tiny) < share
        assert error.max() <= 4 * np.sqrt(EPS)
    cores = [corners_of(s) for s in shapes]
    radius = sum(r for _, r in cores)
    inside = np.flatnonzero(gap <= -radius)  # of the cores; elsewhere both bounds hold
    if {one, other} <= {"sphere", "capsule"}:
        np.testing.assert_allclose(gap[inside], -radius, rtol=0, atol=tiny)  # points and lines
    elif both_flat:
        least = [least_by_axes(two, k) for k in inside]
        np.testing.assert_allclose(gap[inside], least, rtol=0, atol=4 * tiny)
    else:
        chosen = inside[:: max(len(inside) // 40, 1)] if POSES <= 2000 else inside
        for part in np.array_split(chosen, max(len(chosen) // 200, 1)):
            if len(part):
                assert np.all(least_by_ascent(two, part, rng) <= gap[part] + 4e-9)


# --- planes, meshes, height fields, bodies with several shapes -----------------------------------


def test_planes_and_meshes_and_fields(rng, tmp_path):
    import trimesh

    surface = trimesh.creation.torus(0.5, 0.2, major_sections=24, minor_sections=12)
    surface.export(tmp_path / "ring.stl")
    field = HeightField(tuple(map(tuple, rng.uniform(0, 0.2, (6, 6)))), (3.0, 3.0))
    b = kt.ModelBuilder("several")
    for name, shape in (("ball", Sphere(0.1)), ("box", Box((0.2, 0.3, 0.4)))):
        b.body(name, joint=kt.Free(), inertia=INERTIA)
        b.geometry(shape, on=name)
    b.geometry(Plane(), name="ground")
    b.geometry(Mesh(str(tmp_path / "ring.stl"), convex=False), name="ring")
    b.geometry(field, name="hills", at=(0, 0, -1.0))
    m = b.build()
    q = configurations(rng, 60)
    poses = kt.poses(m, q)
    centre = poses[:, 0, :3, 3]
    down = kt.contact.distance(m, q, "ground", "ball")
    np.testing.assert_allclose(down.gap, centre[:, 2] - 0.1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(down.normal, [[0, 0, 1]] * 60)
    corners = corners_of(Box((0.2, 0.3, 0.4)))[0]
    lowest = np.min((corners @ poses[:, 1, :3, :3].transpose(0, 2, 1))[..., 2], axis=1)
    found = kt.contact.distance(m, q, "box", "ground")
    np.testing.assert_allclose(found.gap, poses[:, 1, 2, 3] + lowest, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(found.normal, [[0, 0, -1]] * 60)
    # the ring is concave: a ball in its hole touches nothing
    corners = trimesh.load(tmp_path / "ring.stl").triangles
    feet = [trimesh.triangles.closest_point(corners, np.tile(p, (len(corners), 1))) for p in centre]
    far = np.linalg.norm(np.array(feet) - centre[:, None], axis=2)
    away, nearest = far.min(axis=1), np.array(feet)[np.arange(60), far.argmin(axis=1)]
    found = kt.contact.distance(m, q, "ball", "ring")
    clear = away > 1e-6
    np.testing.assert_allclose(found.gap[clear], away[clear] - 0.1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.points[clear, 1], nearest[clear], rtol=0, atol=1e-10)
    # the surface of the field is nowhere nearer
    found = kt.contact.distance(m, q, "ball", "hills")
    x, y = np.meshgrid(*2 * [np.linspace(-1.5, 1.5, 51)], indexing="ij")
    s = height_and_derivatives_on(field, x.ravel(), y.ravel())
    near = np.min(np.linalg.norm(s - centre[:, None], axis=2), axis=1)
    above = np.abs(centre[:, :2]).max(axis=1) < 1.2
    assert np.all(found.gap[above] <= near[above] - 0.1 + 1e-12)
    assert np.all(found.gap[above] >= near[above] - 0.1 - 0.05)


def height_and_derivatives_on(field, x, y):
    from kinetree.contact.finding.shapes import height_and_derivatives

    h = [height_and_derivatives(field, a, b).h for a, b in zip(x, y, strict=True)]
    return np.column_stack([x, y, np.array(h) - 1.0])


def test_bodies_count_with_the_nearest_of_their_shapes():
    m = kt.contact.with_ground(kt.samples.quadruped())
    q = np.stack([m.posture("home").q] * 2)
    q[1, 2] += 0.3
    legs = ["front_left_shank", "rear_right_shank"]
    found = kt.contact.distance(m, q, "ground", legs)
    assert found.points.shape == (2, 2, 2, 3)
    np.testing.assert_allclose(found.gap, [[0, 0], [0.3, 0.3]], rtol=0, atol=1e-12)
    assert {m.geometry[k].body for k in found.shapes[..., 1].ravel()} == {
        m.body_index(name) for name in legs
    }
    for k, name in enumerate(legs):
        one = kt.contact.distance(m, q[1], name, "ground")
        assert one.gap == found.gap[1, k]
        np.testing.assert_array_equal(one.points, found.points[1, k, ::-1])
        np.testing.assert_array_equal(one.normal, -found.normal[1, k])


def test_far_from_the_origin_nothing_is_lost(rng):
    m = two_free(Cylinder(0.3, 0.8), Ellipsoid((0.2, 0.3, 0.5)))
    q = configurations(rng, 40)
    there = q.copy()
    there[:, [0, 7]] += 2.0**20
    near, far = (kt.contact.distance(m, x, "first", "second") for x in (q, there))
    np.testing.assert_allclose(far.gap, near.gap, rtol=0, atol=2.0**21 * EPS)


def test_mistakes_with_distances_are_named():
    m = kt.contact.with_ground(two_free(Sphere(0.1), Sphere(0.2)))
    q = m.neutral()
    with pytest.raises(
        UnknownNameError, match=r"no shape, link, frame or body .* 'frist'; did you mean 'first'"
    ):
        kt.contact.distance(m, q, "frist", "second")
    with pytest.raises(ModelError, match="'first' and 'first shape' are the same shape"):
        kt.contact.distance(m, q, "first", "first shape")
    with pytest.raises(ModelError, match="as many, or one of them a single name, got 2 and 3"):
        kt.contact.distance(m, q, ["first"] * 2, ["second"] * 3)
    b = kt.ModelBuilder("grounds")
    b.body("a", joint=kt.Free(), inertia=INERTIA)
    b.geometry(Plane(), name="one")
    b.geometry(Plane(), on="a", name="two")
    with pytest.raises(ModelError, match="no distance between 'one' and 'two', Plane and Plane"):
        kt.contact.distance(b.build(), np.array([0, 0, 0, 1.0, 0, 0, 0]), "one", "two")
