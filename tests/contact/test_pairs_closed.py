"""Narrow phases in closed form: against their own text in Python, and against brute force."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from support.contact_scenes import touch_table

from kinetree.codegen.procedures import local
from kinetree.contact.collision.boxes import box_box, capsule_box
from kinetree.contact.collision.clipping import Faces, clip_faces
from kinetree.contact.collision.planes import (
    plane_box,
    plane_capsule,
    plane_cylinder,
    plane_ellipsoid,
    plane_hull,
    plane_sphere,
)
from kinetree.contact.collision.shapes import cluster, farthest_ahead, polyhedron
from kinetree.contact.collision.spheres import (
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)
from kinetree.contact.collision.tables import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    PLANE,
    SPHERE,
    Shapes,
)
from kinetree.contact.finding.shapes import Hull

PAIRS = {
    (PLANE, SPHERE): plane_sphere,
    (PLANE, CAPSULE): plane_capsule,
    (PLANE, BOX): plane_box,
    (PLANE, CYLINDER): plane_cylinder,
    (PLANE, ELLIPSOID): plane_ellipsoid,
    (PLANE, HULL): plane_hull,
    (SPHERE, SPHERE): sphere_sphere,
    (SPHERE, CAPSULE): sphere_capsule,
    (SPHERE, BOX): sphere_box,
    (SPHERE, CYLINDER): sphere_cylinder,
    (CAPSULE, CAPSULE): capsule_capsule,
    (CAPSULE, BOX): capsule_box,
    (BOX, BOX): box_box,
}
NAMES = {pair: f.name for pair, f in PAIRS.items()}
SIZES = {
    PLANE: ([0, 0, 0],),
    SPHERE: ([0.1, 0, 0], [0.3, 0, 0]),
    CAPSULE: ([0.1, 0.2, 0], [0.2, 0.05, 0]),
    BOX: ([0.1, 0.1, 0.1], [0.3, 0.1, 0.2], [0.4, 0.4, 0.02]),
    CYLINDER: ([0.1, 0.2, 0], [0.3, 0.02, 0]),
    ELLIPSOID: ([0.1, 0.2, 0.3],),
    HULL: ([0, 0, 0],),
}
CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
VERTICES = np.concatenate([0.15 * CORNERS, 0.3 * np.vstack([np.eye(3), -np.eye(3)])])
SIZE = 1.0  # [m] of shapes and their distances
EPS = 50 * np.finfo(float).eps * SIZE


def rows_of_hull(corners):
    """Rows of ``Shapes`` for a polyhedron of these corners, all of them extreme."""
    found = ConvexHull(corners)
    normals, triangles = found.equations[:, :3], found.simplices
    sides = corners[triangles]
    turned = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    inward = np.sum(turned * normals, axis=1) < 0
    triangles = np.where(inward[:, None], triangles[:, ::-1], triangles)
    _, counts, neighbours = polyhedron(Hull(corners, triangles, normals))[:3]
    clusters, ball = cluster(corners)
    return {
        "vertex": corners,
        "data": np.array([[0, len(corners), 0, 0]] * 2),
        "neighbour_first": np.concatenate([[0], np.cumsum(counts)]),
        "neighbour": neighbours,
        "ahead": farthest_ahead(corners),
        "cluster": clusters,
        "ball": ball,
        "firsts": np.zeros((2, 2), dtype=np.int64),
    }


def placed(sizes, poses, corners=VERTICES):
    return Shapes(
        count=2,
        size=np.array(sizes, float),
        pose=np.array([np.column_stack(pose).reshape(12) for pose in poses]),
        radius=np.full(2, 10.0),
        **rows_of_hull(corners),
    )


def found(function, shapes, margin):
    touch = touch_table()
    n = function(shapes, 0, 1, margin, touch, 0)
    return touch.point[:n], touch.normal[:n], touch.gap[:n], touch.feature[:n]


# --- Poses ---------------------------------------------------------------------------------------


def random_rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


TURNS = [
    r
    for order in permutations(range(3))
    for signs in product((1.0, -1.0), repeat=3)
    if np.linalg.det(r := np.eye(3)[list(order)] * np.array(signs)) > 0
]


def random_poses(rng, count, distance=0.5):
    for _ in range(count):
        away = rng.normal(size=3)
        away *= distance * rng.uniform() / np.linalg.norm(away)
        at = rng.normal(size=3) / 4
        yield (random_rotation(rng), at), (random_rotation(rng), at + away)


def aligned_poses(rng, count):
    """Shapes along the same axes whose faces, edges and corners meet, in a turned world."""
    grid = np.array([-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    for k in range(count):
        world, at = random_rotation(rng) if k % 2 else np.eye(3), rng.normal(size=3) / 4
        turn = TURNS[rng.integers(24)]
        away = grid[rng.integers(len(grid), size=3)]
        yield (world, at), (world @ turn, at + world @ away)


def some_poses(rng, count):
    yield from random_poses(rng, count)
    yield from aligned_poses(rng, count)


# --- Brute force ---------------------------------------------------------------------------------


def inside(kind, size, pose, points):
    """Signed distances of points from a shape (of a hull and an ellipsoid: only their sign)."""
    x = (points - pose[1]) @ pose[0]
    if kind == PLANE:
        return x[:, 2]
    if kind == SPHERE:
        return np.linalg.norm(x, axis=1) - size[0]
    if kind == CAPSULE:
        x[:, 2] -= np.clip(x[:, 2], -size[1], size[1])
        return np.linalg.norm(x, axis=1) - size[0]
    if kind == BOX:
        d = np.abs(x) - size
    elif kind == CYLINDER:
        d = np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.abs(x[:, 2])]) - size[:2]
    elif kind == ELLIPSOID:
        return (np.linalg.norm(x / size, axis=1) - 1) * min(size)
    else:
        raise ValueError(f"no oracle for kind {kind}")
    return np.linalg.norm(np.maximum(d, 0), axis=1) + np.minimum(d.max(axis=1), 0)


def core(kind, size, pose):
    """Corners and generators of the polytope that a shape is a ball around, and its radius."""
    r, p = pose
    if kind == BOX:
        return p, r * size, 0.0
    if kind == CAPSULE:
        return p, r[:, 2:] * size[1], size[0]
    return p, np.zeros((3, 0)), size[0]


def segments(p, g):
    """All edges of a zonotope with independent generators: starts and directions."""
    if g.shape[1] == 0:
        return p[None], np.zeros((1, 3))
    starts, ways = [], []
    for k in range(g.shape[1]):
        rest = np.delete(g, k, axis=1)
        for signs in product((-1.0, 1.0), repeat=rest.shape[1]):
            starts.append(p + rest @ np.array(signs) - g[:, k])
            ways.append(2 * g[:, k])
    return np.array(starts), np.array(ways)


def segment_distances(a, u, b, w):
    """Distances of all pairs of segments: ends against segments, and where they cross."""
    a, u, b, w = (x.reshape(-1, 3) for x in np.broadcast_arrays(a[:, None], u[:, None], b, w))
    tiny = 1e-300

    def to(points, start, way):
        t = np.clip(
            np.sum((points - start) * way, axis=1) / np.maximum(np.sum(way**2, 1), tiny), 0, 1
        )
        return np.linalg.norm(points - start - t[:, None] * way, axis=1)

    best = np.minimum.reduce([to(a, b, w), to(a + u, b, w), to(b, a, u), to(b + w, a, u)])
    n = np.cross(u, w)
    nn = np.sum(n**2, axis=1)
    d = b - a
    safe = np.where(nn > 1e-14 * np.sum(u**2, 1) * np.sum(w**2, 1), nn, np.inf)
    s = np.sum(np.cross(d, w) * n, axis=1) / safe
    t = np.sum(np.cross(d, u) * n, axis=1) / safe
    crossing = (safe < np.inf) & (s > 0) & (s < 1) & (t > 0) & (t < 1)
    across = np.abs(np.sum(d * n, axis=1)) / np.sqrt(np.maximum(nn, tiny))
    return np.where(crossing, np.minimum(best, across), best).min()


def separation(pair, sizes, poses):
    """Distance of two balls around zonotopes; negative: depth along the best axis."""
    (p, g, r), (q, h, s) = (core(*args) for args in zip(pair, sizes, poses, strict=True))
    generators = np.hstack([g, h])
    axes = [
        c for i in range(generators.shape[1]) for c in [np.cross(generators[:, i], generators.T)]
    ]
    axes = np.concatenate(axes) if axes else np.zeros((0, 3))
    length = np.linalg.norm(axes, axis=1)
    scale = np.linalg.norm(generators, axis=0).max(initial=1e-300) ** 2
    axes = axes[length > 1e-6 * scale] / length[length > 1e-6 * scale][:, None]
    along = np.abs(axes @ (q - p)) - np.abs(axes @ generators).sum(axis=1)
    if generators.shape[1] >= 3 and along.max() <= 0:
        return along.max() - r - s
    (a, u), (b, w) = segments(p, g), segments(q, h)
    best = segment_distances(a, u, b, w)
    for kind, size, pose, points in (
        (pair[1], sizes[1], poses[1], np.vstack([a, a + u])),
        (pair[0], sizes[0], poses[0], np.vstack([b, b + w])),
    ):
        if kind == BOX:
            best = min(best, inside(BOX, np.array(size), pose, points).min())
    return best - r - s


EXACT = [pair for pair in PAIRS if set(pair) <= {SPHERE, CAPSULE, BOX}]
IDS = [NAMES[pair] for pair in EXACT]


def cases(pair, rng, count):
    for first, second in product(SIZES[pair[0]], SIZES[pair[1]]):
        for poses in some_poses(rng, count):
            yield (np.array(first), np.array(second)), poses


@pytest.mark.parametrize("pair", EXACT, ids=IDS)
def test_the_least_gap_is_the_distance_or_the_depth_along_the_best_axis(pair):
    rng = np.random.default_rng(1)
    choice = 1e-6 * 3  # boxes: a face is preferred to an axis that is better by less than this
    for sizes, poses in cases(pair, rng, 25):
        shapes, wanted = placed(sizes, poses), separation(pair, sizes, poses)
        _, _, gap, _ = found(PAIRS[pair], shapes, 10.0)
        assert len(gap) >= 1
        tolerance = choice if BOX in pair and wanted <= choice else EPS
        assert abs(gap.min() - wanted) < tolerance
        for margin in (wanted - 1e-5, wanted + 1e-5):
            gaps = found(PAIRS[pair], shapes, margin)[2]
            assert (len(gaps) > 0) == (margin > wanted)
            assert np.all(gaps <= margin)


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.values())
def test_points_are_half_way_between_the_surfaces(pair):
    rng = np.random.default_rng(2)
    for sizes, poses in cases(pair, rng, 15):
        point, normal, gap, feature = found(PAIRS[pair], placed(sizes, poses), 0.05)
        assert np.allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-14)
        assert (
            len(set(feature.tolist()))
            == len(feature)
            <= (8 if HULL in pair else 5 if pair == (BOX, BOX) else 4)
        )
        half = normal * gap[:, None] / 2
        for kind, size, pose, surface in zip(
            pair, sizes, poses, (point - half, point + half), strict=True
        ):
            if kind == HULL:
                corners = pose[1] + VERTICES @ pose[0].T
                far = np.linalg.norm(surface[:, None] - corners, axis=2).min(axis=1)
            else:
                far = inside(kind, size, pose, surface)
            # Corners of a box just beyond the border of the other's face stay where they are.
            assert np.all(far < (3e-6 if pair == (BOX, BOX) else EPS))
            if len(gap) and gap.min() > 0:
                assert abs(far[gap.argmin()]) < (3e-6 if pair == (BOX, BOX) else EPS)


@pytest.mark.parametrize("kind", [k for k in SIZES if k != PLANE])
def test_planes_find_the_lowest_point(kind):
    """The lowest of a shape's support points, by its support function."""
    rng = np.random.default_rng(3)
    pair = (PLANE, kind)
    for sizes, poses in cases(pair, rng, 40):
        (up, p), (r, q) = (poses[0][0][:, 2], poses[0][1]), poses[1]
        m, size = r.T @ up, sizes[1]
        reach = {
            SPHERE: lambda m, s: s[0],
            CAPSULE: lambda m, s: s[0] + s[1] * abs(m[2]),
            BOX: lambda m, s: np.abs(m) @ s,
            CYLINDER: lambda m, s: s[0] * np.hypot(m[0], m[1]) + s[1] * abs(m[2]),
            ELLIPSOID: lambda m, s: np.linalg.norm(m * s),
            HULL: lambda m, s: np.max(-VERTICES @ m),
        }[kind](m, size)
        wanted = up @ (q - p) - reach
        gap = found(PAIRS[pair], placed(sizes, poses), 10.0)[2]
        # The lowest point of an upright rim is left to rounding.
        assert abs(gap.min() - wanted) < (1e-8 if kind == CYLINDER else EPS)


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.values())
def test_compiled_as_by_python(pair):
    """Also where faces, edges and corners meet, and choices must not depend on rounding."""
    rng = np.random.default_rng(4)
    for sizes, poses in cases(pair, rng, 3):
        shapes = placed(sizes, poses)
        ours, text = (found(f, shapes, 0.05) for f in (PAIRS[pair], PAIRS[pair].python))
        assert ours[3].tolist() == text[3].tolist()
        for a, b in zip(ours[:3], text[:3], strict=True):
            assert np.allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("pair", EXACT, ids=IDS)
def test_a_moved_world_and_swapped_shapes(pair):
    rng = np.random.default_rng(5)
    for sizes, poses in cases(pair, rng, 10):
        turn, by = random_rotation(rng), rng.normal(size=3)
        moved = [(turn @ r, turn @ p + by) for r, p in poses]
        at = found(PAIRS[pair], placed(sizes, poses), 0.0501)
        there = found(PAIRS[pair], placed(sizes, moved), 0.0501)
        assert len(at[2]) == len(there[2])
        assert np.allclose(at[2].min(initial=1), there[2].min(initial=1), atol=4e-6)
        if pair[0] == pair[1]:
            back = found(PAIRS[pair], placed(sizes[::-1], poses[::-1]), 0.0501)
            assert np.isclose(back[2].min(initial=1), at[2].min(initial=1), rtol=0, atol=4e-6)


# --- Patches -------------------------------------------------------------------------------------


def upright(angle=0.0, tilt=0.0):
    c, s = np.cos(angle), np.sin(angle)
    d, t = np.cos(tilt), np.sin(tilt)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) @ np.array(
        [[1.0, 0, 0], [0, d, -t], [0, t, d]]
    )


def area(points):
    """Area of the convex hull of points in the plane."""
    middle = points.mean(axis=0)
    around = points[np.argsort(np.arctan2(*(points - middle).T))] - middle
    x, y = around.T
    return abs(np.sum(np.roll(x, 1) * y - np.roll(y, 1) * x)) / 2


@pytest.mark.parametrize("turn", range(0, 24, 5))
def test_four_corners_of_the_overlap_of_aligned_boxes(turn):
    rng = np.random.default_rng(turn)
    world = random_rotation(rng)
    a, b = np.array([0.3, 0.2, 0.1]), np.array([0.15, 0.25, 0.05])
    other = TURNS[turn]
    size = np.abs(other @ b)
    for _ in range(20):
        x, y = rng.uniform(-1, 1, size=2) * (a + size)[:2] * 0.95
        for gap in (1e-4, 0.0, -1e-4):
            away = np.array([x, y, a[2] + size[2] + gap])
            poses = (world, np.zeros(3)), (world @ other, world @ away)
            point, normal, gaps, _ = found(box_box, placed((a, b), poses), 1e-3)
            low, high = np.maximum(-a, away - size)[:2], np.minimum(a, away + size)[:2]
            if np.min(high - low) < 1e-3:
                continue
            corners = (point @ world)[:, :2]
            assert len(gaps) == 4
            assert np.allclose(gaps, gap, atol=1e-14)
            assert np.allclose(normal, world[:, 2])
            assert np.isclose(area(corners), np.prod(high - low), rtol=1e-5)


def test_a_patch_with_eight_corners_keeps_four_that_span_it():
    half = np.array([0.1, 0.1, 0.1])
    poses = (np.eye(3), np.zeros(3)), (upright(np.pi / 4), np.array([0, 0, 0.2]))
    point, _, gap, _ = found(box_box, placed((half, half), poses), 1e-3)
    octagon = 0.04 * 2 * (np.sqrt(2) - 1)
    assert len(gap) == 4
    assert area(point[:, :2]) > 0.7 * octagon
    # Tilted, both ends of the lowest edge are among the four.
    poses = poses[0], (upright(np.pi / 4 + 0.1, 0.004), np.array([0, 0, 0.2002]))
    gap = found(box_box, placed((half, half), poses), 1e-3)[2]
    assert len(gap) == 4
    assert np.isclose(*np.sort(gap)[:2], rtol=0, atol=1e-12) or np.ptp(np.sort(gap)[:2]) < 1e-3


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES.values())
def test_what_rests_keeps_its_features(pair):
    """Rounding of the poses changes neither the number of points, nor features, nor normals."""
    rng = np.random.default_rng(6)
    for sizes, poses in cases(pair, rng, 8):
        if all(np.allclose(np.abs(r.T @ poses[0][0]).max(axis=0), 1) for r, _ in poses):
            first = found(PAIRS[pair], placed(sizes, poses), 0.0501)
            for _ in range(4):
                noisy = []
                for r, p in poses:
                    w = 1e-12 * rng.normal(size=3)
                    turn = np.eye(3) + np.cross(np.eye(3), w)
                    noisy.append((turn @ r, p + 1e-12 * rng.normal(size=3)))
                again = found(PAIRS[pair], placed(sizes, noisy), 0.0501)
                before, after = np.argsort(first[3]), np.argsort(again[3])
                assert first[3][before].tolist() == again[3][after].tolist()
                for a, b in zip(first[:3], again[:3], strict=True):
                    assert np.allclose(a[before], b[after], rtol=0, atol=1e-5)


def test_a_tilted_disc_touches_at_the_lowest_point_of_its_rim():
    size = np.array([0.2, 0.01, 0])
    for angle, tilt in product(np.linspace(0, 6, 7), (1e-7, 1e-3, 0.3, 1.2, np.pi / 2)):
        r = upright(angle, tilt)
        height = 0.2 * np.sin(tilt) + 0.01 * abs(np.cos(tilt))
        poses = (np.eye(3), np.zeros(3)), (r, np.array([0, 0, height]))
        point, _, gap, _ = found(plane_cylinder, placed((np.zeros(3), size), poses), 1e-6)
        assert abs(gap.min()) < EPS
        lowest = np.argmin(
            r[2, 0] * np.cos(t := np.linspace(0, 2 * np.pi, 100001)) + r[2, 1] * np.sin(t)
        )
        rim = r @ [0.2 * np.cos(t[lowest]), 0.2 * np.sin(t[lowest]), -0.01]
        assert np.linalg.norm(point[:, :2] - rim[:2], axis=1).min() < 1e-4
        assert len(gap) == (2 if tilt > 1.5 else 4 if tilt < 1e-6 else 1)


def test_standing_lying_and_thin_shapes_on_a_plane():
    flat = (np.eye(3), np.zeros(3))
    side = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])

    def points(function, size, r, z, margin=1e-3):
        return found(
            function, placed((np.zeros(3), size), (flat, (r, np.array([0, 0, z])))), margin
        )

    assert len(points(plane_capsule, [0.1, 0.2, 0], side, 0.1)[2]) == 2
    assert len(points(plane_capsule, [0.1, 0.2, 0], np.eye(3), 0.3)[2]) == 1
    assert len(points(plane_cylinder, [0.1, 0.2, 0], np.eye(3), 0.2)[2]) == 4
    point, _, gap, _ = points(plane_cylinder, [0.1, 0.2, 0], side, 0.1)
    assert np.allclose(np.sort(point[:, 0]), [-0.2, 0.2])
    assert np.allclose(gap, 0, atol=1e-16)
    # A plate thinner than the margin: the lower four of its corners.
    point, _, gap, feature = points(plane_box, [0.1, 0.2, 1e-5], np.eye(3), 1e-5)
    assert feature.tolist() == [7, 3, 5, 1]
    assert np.allclose(gap, 0, atol=1e-16)
    assert np.isclose(area(point[:, :2]), 0.08)


def test_a_hull_with_many_corners_on_a_plane_stands_on_eight():
    angle = 2 * np.pi * np.arange(40) / 40
    rim = np.column_stack([0.2 * np.cos(angle), 0.2 * np.sin(angle)])
    prism = np.vstack([np.column_stack([rim, np.full(40, z)]) for z in (-0.1, 0.1)])
    for tilt in (0.0, 1e-4, 5e-3):
        r = upright(0.3, tilt)
        height = -np.min(prism @ r[2])
        poses = (np.eye(3), np.zeros(3)), (r, np.array([0, 0, height]))
        shapes = placed(np.zeros((2, 3)), poses, prism)
        point, _, gap, _ = found(plane_hull, shapes, 3e-3)
        assert abs(gap.min()) < 1e-6
        assert len(gap) <= 8
        assert tilt > 1e-3 or (len(gap) == 8 and area(point[:, :2]) > 0.8 * np.pi * 0.04)


def corners_chosen(corners, r, height, margin):
    """What ``plane_hull`` says of itself, with all corners looked at: numbers of them."""
    z, limit = corners @ r[2] + height, margin
    near = np.flatnonzero(z <= limit)
    if len(near) <= 8:
        return near
    axis = int(np.argmin(np.abs(r[2])))
    u = (np.eye(3)[axis] - r[2, axis] * r[2]) / np.sqrt(1 - r[2, axis] ** 2)
    x, y = corners @ u, corners @ np.cross(r[2], u)
    a, b = 0.9 * x + 0.43 * y, 0.9 * y - 0.43 * x
    c, d = 0.7071 * (a + b), 0.7071 * (b - a)

    def lowest(steep, steeper):
        ways = [w - steep * z for w in (a, b, -a, -b)] + [w - steeper * z for w in (c, d, -c, -d)]
        return [near[np.argmax(w[near])] for w in ways]

    chosen = list(dict.fromkeys(lowest(1e3, 5e3)))
    if len(chosen) < 4:
        chosen = list(dict.fromkeys(chosen + lowest(4.0, 1.0)))[:8]
    return np.array(chosen)


@pytest.mark.parametrize("count", [30, 400])
@pytest.mark.parametrize("flat", [1.0, 0.05])
def test_corners_on_a_plane_are_those_that_looking_at_all_would_choose(count, flat, rng):
    away = rng.normal(size=(count, 3))
    corners = away / np.linalg.norm(away, axis=1)[:, None] * [1.0, 0.7, flat]
    shapes = placed(np.zeros((2, 3)), [(np.eye(3), np.zeros(3))] * 2, corners)
    shapes.radius[:] = 1.0
    many = 0
    for k in range(120):
        r, margin = random_rotation(rng), 10 ** rng.uniform(-4, 0.3)
        if k % 2:  # about its smallest curvature
            r = upright(0.3, 1e-3 * rng.normal())
        height = -np.min(corners @ r[2]) + margin * rng.uniform(-1, 1.1)
        shapes.pose[1] = np.column_stack([r, [0, 0, height]]).reshape(12)
        _, _, gap, feature = found(plane_hull, shapes, margin)
        expected = corners_chosen(corners, r, height, margin)
        assert sorted(feature) == sorted(expected)
        assert np.allclose(gap, (corners @ r[2] + height)[feature], atol=1e-14)
        many += np.sum(corners @ r[2] + height <= margin) > 8
    assert many > 10


def test_a_round_hull_turns_onto_a_corner_that_was_found():
    rng = np.random.default_rng(0)
    golden = (1 + np.sqrt(5)) / 2
    ico = np.array(
        [np.roll((0, a, b * golden), k) for k in range(3) for a in (-1, 1) for b in (-1, 1)]
    )
    middles = [
        (x + y) / 2 for i, x in enumerate(ico) for y in ico[:i] if np.linalg.norm(x - y) < 2.1
    ]
    corners = np.array([x / np.linalg.norm(x) for x in (*ico, *middles)]) * [1, 1, 2]
    for _ in range(200):
        r, around, turn = random_rotation(rng), rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.12)
        height = -np.min(corners @ r[2])
        poses = (np.eye(3), np.zeros(3)), (r, np.array([0, 0, height]))
        shapes = placed(np.zeros((2, 3)), poses, corners)
        shapes.radius[:] = 2.0
        feature = found(plane_hull, shapes, 1.0)[3]  # a margin as large as the hull
        assert len(feature) <= 8
        z = (
            corners
            @ r.T
            @ [np.sin(turn) * np.cos(around), np.sin(turn) * np.sin(around), np.cos(turn)]
        )
        assert z.argmin() in feature


def test_parallel_capsules_touch_at_both_ends_of_their_overlap():
    size = np.array([0.1, 0.3, 0])
    r = np.eye(3)
    for slant in (0.0, 1e-9, 1e-7, 1e-4):
        poses = (r, np.zeros(3)), (upright(0, slant), np.array([0.2, 0, 0.1]))
        point, _, gap, _ = found(capsule_capsule, placed((size, size), poses), 1e-3)
        assert np.allclose(point[:, 2].min(), -0.2, atol=1e-3)
        assert np.allclose(point[:, 2].max(), 0.3, atol=1e-3)
        assert len(gap) == (2 if slant < 1e-6 else 3)


def test_a_capsule_on_a_box_touches_at_both_ends_of_what_lies_on_it():
    sizes = np.array([0.05, 0.3, 0]), np.array([0.2, 0.2, 0.1])
    side = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])
    for z, wanted in ((0.15, 0.0), (0.08, -0.07)):
        poses = (side, np.array([0.2, 0, z])), (np.eye(3), np.zeros(3))
        point, normal, gap, _ = found(capsule_box, placed(sizes, poses), 1e-3)
        assert np.allclose(np.sort(point[:, 0]), [-0.1, 0.2])
        assert np.allclose(gap, wanted)
        assert np.allclose(normal, [0, 0, -1])


def test_coincident_and_degenerate_shapes_have_finite_normals():
    for pair, function in PAIRS.items():
        for scale in (1.0, 0.0):
            sizes = [scale * np.array(SIZES[kind][0]) for kind in pair]
            for turn in (np.eye(3), upright(0.4, 0.3)):
                poses = (np.eye(3), np.ones(3)), (turn, np.ones(3))
                point, normal, gap, _ = found(function, placed(sizes, poses), 1e-3)
                assert len(gap) >= 1
                assert np.all(np.isfinite(point))
                assert np.allclose(np.linalg.norm(normal, axis=1), 1)
                assert np.all(gap <= 1e-3)


def test_faces_clipped_by_each_other():
    square = np.array([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]])
    up = np.array([0, 0, 1.0])

    def clipped(a, b, most=4):
        touch, faces = touch_table(), local(Faces)
        faces.normal[:] = up
        faces.first_count, faces.second_count = len(a), len(b)
        faces.first[: len(a)], faces.second[: len(b)] = a, b
        n = clip_faces(faces, 1.0, most, touch, 0, 0)
        return touch.point[:n], touch.gap[:n]

    lifted = square + np.array([0.5, 0.25, 0.1])
    point, gap = clipped(square, lifted)
    assert np.isclose(area(point[:, :2]), 1.5 * 1.75)
    assert np.allclose(gap, 0.1)
    assert np.allclose(point[:, 2], 0.05)
    point, gap = clipped(square, square @ upright(np.pi / 4).T + [0, 0, 0.1], 8)
    assert np.isclose(area(point[:, :2]), 8 * (np.sqrt(2) - 1))
    for a, b in ((square[:2], lifted), (lifted[1:3], square), (square, lifted[1:3])):
        assert len(clipped(a, b)[1]) == 2
    assert len(clipped(square, lifted + np.array([3, 0, 0]))[1]) == 0
    point, _ = clipped(square[:2], lifted[[1, 2]] + [0, 0.5, 0])
    assert np.allclose(point, [[-0.5, 1, 0.05]])
