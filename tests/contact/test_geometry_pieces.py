"""Small procedures of collision, each by its own definition.

What finds contacts checks its answers and has other ways to them, so that a piece that is wrong
need not be seen in the result.
"""

from itertools import combinations, permutations, product

import numpy as np
import pytest
import trimesh
from scipy.interpolate import BSpline
from scipy.optimize import minimize_scalar
from scipy.spatial import HalfspaceIntersection
from support.closeness import assert_close

from kinetree.codegen.procedures import local
from kinetree.contact.collision import (
    axes,
    boxes,
    clipping,
    curvature,
    fields,
    frames,
    gjk,
    meshes,
    rays,
    sweep,
    witness,
)
from kinetree.contact.collision.kinds import lines
from kinetree.contact.collision.polytope import Polytope, foot_on_face
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.spheres import out_of_box, to_shape
from kinetree.contact.engine.contact_frames import contact_frame
from kinetree.contact.finding.shapes import Placed
from kinetree.model.geometry import Box, Capsule, Mesh
from kinetree.spatial.rotation import rotation_exp

# --- Simplices ------------------------------------------------------------------------------------


def nearest_of(corners):
    """Point of a simplex nearest to the origin: the best of the feet on all of its faces."""
    best = np.full(3, np.inf)
    for count in range(1, len(corners) + 1):
        for chosen in combinations(corners, count):
            first, sides = chosen[0], np.array(chosen)[1:] - chosen[0]
            part = np.linalg.lstsq(sides.T, -first, rcond=None)[0] if count > 1 else np.zeros(0)
            foot = first + sides.T @ part
            if min([1 - part.sum(), *part]) > -1e-12 and foot @ foot < best @ best:
                best = foot
    return best


def simplices(rng, count):
    """Corners about the origin and away from it; some so flat that they are a face or an edge."""
    for n in range(count):
        W = rng.normal(size=(4, 3)) + rng.choice([0.0, 0.7, 2.0]) * rng.normal(size=3)
        if n % 5 == 4:
            k, m = rng.permutation(4)[:2]
            W[k] = W[m] if n % 2 else (W[m] + W[k - 1]) / 2
        yield W


@pytest.mark.parametrize("count", [2, 3, 4])
def test_nearest_points_of_simplices(count, rng):
    inside = 0
    for W in simplices(rng, 150):
        weight, v, order = np.full(4, 7.0), np.full(3, 7.0), rng.permutation(4)[:count]
        if count == 2:
            square = gjk.on_segment(W, *order, weight, v)
        elif count == 3:
            square = gjk.on_triangle(W, *order, weight, v)
        else:
            square = gjk.on_tetrahedron(W, weight, v)
        expected = nearest_of(W[order])
        assert_close(v, expected, scale=1.0, ulps=1e4)
        assert_close(np.sqrt(square), np.linalg.norm(expected), scale=1.0, ulps=1e5)
        assert_close(weight @ W, v, scale=1.0, ulps=1e4)
        assert_close(weight.sum(), 1.0, ulps=8)
        assert weight.min() >= 0
        assert not np.any(weight[[k for k in range(4) if k not in order]])
        inside += not np.any(v)
    assert (inside > 5) == (count == 4)


def test_feet_on_faces(rng):
    polytope = local(Polytope)
    for _ in range(50):
        W, A = rng.normal(size=(2, 6, 3))
        p, q, r = rng.permutation(6)[:3]
        f = np.cross(W[q] - W[p], W[r] - W[p])
        f, a = f / np.linalg.norm(f), np.zeros(3)
        polytope.difference[:6], polytope.first[:6], polytope.face[3] = W, A, (p, q, r)
        least = foot_on_face(polytope, 3, f, a)
        weight = np.linalg.solve(np.array([W[p], W[q], W[r]]).T, f * (f @ W[p]))
        assert_close(least, weight.min(), scale=1.0, ulps=1e6)
        if weight.min() >= 0:
            assert_close(a, weight @ A[[p, q, r]], scale=1.0, ulps=1e6)


# --- Faces that are clipped -----------------------------------------------------------------------


def convex_polygon(rng, count, middle=(0.0, 0.0)):
    """Corners around an ellipse, in either direction, with heights of a plane."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, count)) + np.linspace(0, 0.1, count)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1) * rng.uniform(0.5, 1.5, 2)
    plane = rng.normal(size=3)
    flat = around[:: rng.choice([1, -1])] + middle
    return np.column_stack([flat, plane[0] + flat @ plane[1:]]), plane


def shoelace(corners):
    x, y = corners[:, 0], corners[:, 1]
    return 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))


def half_planes(corners):
    """Rows (normal, -limit) of the sides of a polygon."""
    sign = np.sign(shoelace(corners))
    side = np.roll(corners[:, :2], -1, axis=0) - corners[:, :2]
    normal = sign * np.column_stack([side[:, 1], -side[:, 0]])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    return np.column_stack([normal, -np.sum(normal * corners[:, :2], axis=1)])


def test_planes_and_areas_of_polygons(rng):
    for count in (3, 4, 7):
        corners, expected = convex_polygon(rng, count, rng.normal(size=2))
        plane = np.zeros(3)
        assert_close(clipping.face_plane(corners, count, plane), 2 * abs(shoelace(corners)))
        assert_close(plane, expected, scale=np.abs(expected).max(), ulps=1e4)


def test_polygons_are_clipped_to_what_they_have_in_common_and_corners_have_their_edges(rng):
    seen = 0
    for _ in range(80):
        subject, _ = convex_polygon(rng, rng.integers(3, 9))
        window, _ = convex_polygon(rng, rng.integers(3, 9), rng.normal(size=2))
        room, edge = np.zeros((32, 3)), np.zeros(32, dtype=np.int64)
        room[: len(subject)] = subject
        count = clipping.clip(room, edge, len(subject), window, len(window), 1e-9)
        sides = np.concatenate([half_planes(subject), half_planes(window)])
        if count < 3:
            outside = sides @ np.append(window[:, :2].mean(axis=0), 1)
            assert np.max(outside) > 0
            continue
        seen += 1
        found = room[:count]
        middle = found[:, :2].mean(axis=0)
        true = HalfspaceIntersection(sides, middle).intersections
        around = np.argsort(np.arctan2(*(true - middle).T[::-1]))
        assert_close(abs(shoelace(found)), abs(shoelace(true[around])), scale=1.0, ulps=1e5)
        for corner, name in zip(found, edge[:count], strict=True):
            for k in (name // 64, name % 64):
                row = sides[k if k < 32 else len(subject) + k - 32]
                assert abs(row @ (corner[0], corner[1], 1)) < 1e-9
        heights = np.column_stack([subject[:, :2], np.ones(len(subject))])
        plane = np.linalg.lstsq(heights, subject[:, 2], rcond=None)[0]
        assert_close(found[:, 2], np.column_stack([found[:, :2], np.ones(count)]) @ plane,
                     scale=10.0, ulps=1e4)  # fmt: skip
    assert seen > 20


def test_segments_are_clipped_and_keep_their_ends(rng):
    """An end that is inside keeps its name; one that is cut has the side that cuts it."""
    square = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    for begin, end, ends, names in [
        ((-2, 0.2, 1), (2, 0.2, 5), [(-1, 0.2, 2), (1, 0.2, 4)], (64 * 35 + 0, 64 * 0 + 33)),
        ((0, 0, 1), (0, 3, 4), [(0, 0, 1), (0, 1, 2)], (64 * 63 + 0, 64 * 0 + 34)),
        ((0.5, 0, 0), (0, 0.5, 0), [(0.5, 0, 0), (0, 0.5, 0)], (64 * 63 + 0, 64 * 0 + 63)),
        ((2, 3, 0), (3, 2, 0), [], ()),
    ]:
        room, edge = np.zeros((32, 3)), np.zeros(32, dtype=np.int64)
        room[:2] = begin, end
        count = clipping.clip(room, edge, 2, square, 4, 1e-9)
        assert count == len(ends)
        assert_close(room[:count], np.array(ends).reshape(-1, 3), scale=1.0)
        assert tuple(edge[:count]) == names


def test_edges_meet_where_they_pass_each_other_seen_from_above(rng):
    crossing = 0
    for _ in range(100):
        a, b = np.zeros((2, 32, 3))
        a[:2], b[:2] = rng.normal(size=(2, 2, 3))
        p, q, edge = a[:2].copy(), b[:2].copy(), np.zeros(32, dtype=np.int64)
        count = clipping.edges_meet(a, 2, b, 2, edge, 1e-9)
        assert (count, edge[0]) == (1, 64 * 63)
        s, t = np.linalg.solve(np.array([p[1] - p[0], q[0] - q[1]])[:, :2].T, (q[0] - p[0])[:2])
        s = min(max(s, 0.0), 1.0)
        along = (q[1] - q[0])[:2]
        point = p[0] + s * (p[1] - p[0])
        t = min(max((point - q[0])[:2] @ along / (along @ along), 0.0), 1.0)
        crossing += 0 < s < 1 and 0 < t < 1
        other = q[0] + t * (q[1] - q[0])
        assert_close(a[0], point, scale=1.0, ulps=1e4)
        assert_close(b[0], (*point[:2], (other - point)[2]), scale=1.0, ulps=1e4)
    assert crossing > 10


def test_parallel_edges_and_points_meet_over_their_overlap():
    """Two ends of the overlap, or the foot of a point, with the gaps there."""
    edge = np.zeros(32, dtype=np.int64)
    for first, second, points in [
        ([(0, 0, 0), (4, 0, 8)], [(1, 0.5, 3), (3, 0.5, 3)], [(1, 0, 2, 1), (3, 0, 6, -3)]),
        ([(0, 0, 0), (4, 0, 8)], [(6, 0.5, 0), (3, 0.5, 3)], [(3, 0, 6, -3), (4, 0, 8, -6)]),
        ([(0, 0, 0), (4, 0, 8)], [(2, 1, 5)], [(2, 0, 4, 1)]),
        (
            [(0, 0, 0), (4, 0, 8)],
            [(4 - 2**-33, 0.5, 3), (7, 0.5, 3)],
            [(4 - 2**-33, 0, 8 - 2**-32, -5 + 2**-32)],
        ),
        ([(2, 1, 5)], [(0, 0, 0), (4, 0, 8)], [(2, 1, 5, -1)]),
        ([(1, 2, 3)], [(1, 2, 5)], [(1, 2, 3, 2)]),
    ]:
        a, b = np.zeros((2, 32, 3))
        a[: len(first)], b[: len(second)] = first, second
        count = clipping.edges_meet(a, len(first), b, len(second), edge, 1e-9)
        expected = np.array(points, float)
        assert count == len(points)
        assert_close(a[:count], expected[:, :3], scale=1.0, ulps=8)
        assert_close(b[:count], expected[:, [0, 1, 3]], scale=1.0, ulps=8)


def greedy(corners, most):
    """Numbers of corners by the description of ``spanning``, areas by the shoelace formula."""
    deepest = int(np.argmin(corners[:, 2]))
    away = np.linalg.norm((corners - corners[deepest])[:, :2], axis=1)
    away -= 1e3 * (corners[:, 2] - corners[deepest, 2])
    away[deepest] = -np.inf
    taken = {deepest, int(np.argmax(away))}
    while len(taken) < most:
        rest = [k for k in range(len(corners)) if k not in taken]
        taken.add(max(rest, key=lambda k: abs(shoelace(corners[sorted({*taken, k})]))))
    return sorted(taken)


@pytest.mark.parametrize("most", [4, 6, 8])
@pytest.mark.parametrize("slope", [0.0, 1e-4, 0.3])
def test_corners_that_span_a_patch_are_those_of_the_description(most, slope, rng):
    for _ in range(20):
        corners, _ = convex_polygon(rng, rng.integers(3, 14))
        corners[:, 2] = slope * (corners[:, 0] - 0.3 * corners[:, 1]) + 1e-7 * slope
        if not slope:
            corners[:, 2] = rng.uniform(-1, 1, len(corners)) * 1e-4
        chosen = np.full(8, -1)
        count = clipping.spanning(corners, len(corners), most, 1e-12, chosen)
        if len(corners) <= most:
            assert list(chosen[:count]) == list(range(len(corners)))
        else:
            assert list(chosen[:count]) == greedy(corners, most)


# --- Frames, boxes, lines, splines ----------------------------------------------------------------


def test_axes_beside_a_normal_are_those_of_a_frame(rng):
    """Right-handed ones, for the patch and for the rows of a contact."""
    for n in (*rng.normal(size=(30, 3)), (0, 0, 1.0), (0, 0, -1.0), (1.0, 0, 0), (0, -1.0, 0)):
        n = np.array(n) / np.linalg.norm(n)
        u, w, rows = np.zeros(3), np.zeros(3), np.zeros((3, 3))
        clipping.axes_across(n, u, w)
        contact_frame(n, rows)
        for R in (np.array([n, u, w]), rows):
            assert_close(R @ R.T, np.eye(3), scale=1.0, ulps=8)
            assert_close(np.linalg.det(R), 1.0, ulps=8)
        assert_close(rows[0], n)


def test_frames_of_shapes(rng):
    R, p = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    P, x, o = np.column_stack([R, p]).ravel(), rng.normal(size=3), rng.normal(size=3)
    out = np.zeros(3)
    frames.out_of_shape(P, o, *x, out)
    assert_close(out, R @ x + p - o, scale=1.0)
    frames.into_shape(P, x, out)
    assert_close(out, R.T @ x, scale=1.0)
    meshes.to_world(P, x, out)
    assert_close(out, R @ x, scale=1.0)
    to_shape(P, x, out)
    assert_close(out, R.T @ (x - p), scale=1.0)


def test_boxes_of_nodes(rng):
    """Whether they meet, how long their edges are and where a ray enters: by slabs, one by one."""
    met = entered = 0
    for _ in range(200):
        low, other = rng.uniform(-1, 1, (2, 3))
        size, more = rng.uniform(0.1, 1.5, (2, 3))
        node = np.concatenate([low, low + size])
        overlap = bool(np.all((low <= other + more) & (low + size >= other)))
        assert meshes.boxes_meet(node, other, other + more) == overlap
        assert_close(meshes.extent(node), size.sum(), ulps=8)
        x, v, far = rng.normal(size=3), rng.normal(size=3), rng.uniform(0.5, 3)
        t = np.linspace(0, far, 4001)
        points = x + t[:, None] * v
        inside = np.all((points >= low) & (points <= low + size), axis=1)
        found = rays.ray_node(node, x, 1 / v, far)
        if inside.any():
            assert abs(found - t[np.argmax(inside)]) <= 1.01 * far / 4000
        elif found < lines.NONE:  # less than two samples inside
            assert np.all(np.abs(x + found * v - low - size / 2) <= size / 2 + 1e-9)
        met, entered = met + overlap, entered + inside.any()
    assert 20 < met < 180
    assert 10 < entered < 190


def test_boxes_of_shapes_along_the_axes_of_others(tmp_path, rng):
    """They hold all corners, and touch them, wherever both are."""
    trimesh.Trimesh(rng.normal(size=(3, 3)), [[0, 1, 2]]).export(tmp_path / "one.stl")
    mesh = Mesh(str(tmp_path / "one.stl"), convex=False)
    poses = [(rotation_exp(rng.normal(size=3)), rng.normal(size=3)) for _ in range(3)]
    solids = [Box((0.6, 0.4, 1.0)), Capsule(0.2, 0.8), mesh]
    shapes = placed_table(*(Placed(s, *pose) for s, pose in zip(solids, poses, strict=True)))
    low, high = np.zeros((2, 3))
    sides = np.array(list(product((-1, 1), repeat=3)))

    def across(i, j, points):
        """Points of shape i in coordinates of shape j."""
        P, Q = (shapes.pose[k].reshape(3, 4) for k in (i, j))
        return (points @ P[:, :3].T + P[:, 3] - Q[:, 3]) @ Q[:, :3]

    for i, j in permutations(range(3), 2):
        middle, half = shapes.box[i, :3], shapes.box[i, 3:]
        corners = across(i, j, middle + sides * half)
        meshes.box_in_shape(shapes, i, j, 0.01, low, high)
        assert_close(low, corners.min(axis=0) - 0.01, scale=1.0, ulps=64)
        assert_close(high, corners.max(axis=0) + 0.01, scale=1.0, ulps=64)
    node = shapes.node[0]
    corners = across(2, 0, (node[:3] + node[3:]) / 2 + sides * (node[3:] - node[:3]) / 2)
    meshes.node_in_shape(shapes, 2, 0, 0, 0.02, low, high)
    assert_close(low, corners.min(axis=0) - 0.02, scale=1.0, ulps=64)
    assert_close(high, corners.max(axis=0) + 0.02, scale=1.0, ulps=64)


def test_edges_of_a_box_lie_between_their_faces():
    """Middle, direction along the product of both normals, and these; twelve different ones."""
    size, edge = np.array([1.0, 2.0, 3.0]), np.zeros((12, 12))
    axes.box_edges(size, edge)
    assert len({tuple(row[:3]) for row in edge}) == 12
    for x, along, one, two in edge.reshape(12, 4, 3):
        assert_close(np.cross(one, two), along)
        assert_close(x @ one, size @ np.abs(one))
        assert_close(x @ two, size @ np.abs(two))
        assert x @ along == 0
        assert np.linalg.norm(one) == np.linalg.norm(two) == 1


def test_faces_that_meet_are_counted(rng):
    """One, two along an edge, three in a corner; a third through the same edge is no corner."""
    seen, edge = np.zeros((3, 3)), rng.normal(size=3)
    edge /= np.linalg.norm(edge)
    around = [np.cross(edge, d) for d in rng.normal(size=(3, 3))]
    one, two, three = (d / np.linalg.norm(d) for d in around)
    assert curvature.count_directions(seen, 0, one) == 1
    assert curvature.count_directions(seen, 1, one) == 1
    assert curvature.count_directions(seen, 1, two) == 2
    assert_close(abs(seen[1] @ edge), 1.0, ulps=64)
    assert curvature.count_directions(seen, 2, three) == 2
    assert curvature.count_directions(seen, 2, edge) == 3
    assert curvature.count_directions(seen, 3, one) == 3


def test_velocities_at_a_distance(rng):
    t, d, out = rng.normal(size=6), rng.normal(size=3), np.zeros(3)
    sweep.velocity_at(t, d, out)
    assert_close(out, t[3:] + np.cross(t[:3], d), scale=1.0)


@pytest.mark.parametrize("first", [True, False])
def test_what_faces_have_in_common_has_heights_and_gaps(first, rng):
    """Of either face, or of an edge over it: heights of the first, gaps to the second."""
    met = 0
    for count in (5, 2) * 10:
        wide, high = convex_polygon(rng, 6)
        narrow, low = convex_polygon(rng, max(count, 3), 0.2 * rng.normal(size=2))
        one, two = np.zeros((2, 33, 3))
        a, b = (wide, narrow[:count]) if first else (narrow[:count], wide)
        one[: len(a)], two[: len(b)] = a, b
        found = witness.common(one, len(a), two, len(b), 1e-9)
        met += found >= 2
        planes = (high, low) if first else (low, high)
        under, over = (plane[0] + two[:found, :2] @ plane[1:] for plane in planes)
        assert_close(one[:found, 2], under, scale=10.0, ulps=1e4)
        assert_close(two[:found, 2], over - under, scale=10.0, ulps=1e4)
    assert met > 10


def test_points_leave_a_box_by_the_shortest_way(rng):
    for x in (*rng.normal(size=(60, 3)), (0.0, 0, 0), (-0.3, 0.1, 0.0), (0.0, 0, -0.79)):
        x, half, normal = np.asarray(x), np.array([0.5, 0.6, 0.8]), np.zeros(3)
        distance = out_of_box(x, half, normal)
        outside = x - np.clip(x, -half, half)
        assert_close(np.linalg.norm(normal), 1.0, ulps=8)
        if np.any(outside):
            assert_close(distance * normal, outside, scale=1.0)
        else:
            depths = half - np.abs(x)
            assert_close(distance, -depths.min(), scale=1.0)
            out = x - distance * normal
            assert_close(np.max(np.abs(out) / half), 1.0, ulps=8)
            assert normal[np.argmin(depths)] == (1 if x[np.argmin(depths)] >= 0 else -1)


def test_segments_and_boxes(rng):
    """The nearest point of a segment, and the widest slab along the axes of faces and edges."""
    for n in range(60):
        c, half, b = 1.5 * rng.normal(size=3), rng.uniform(0.2, 2), rng.uniform(0.2, 1, 3)
        u = rng.normal(size=3)
        u = np.eye(3)[n % 3] if n % 10 == 0 else u / np.linalg.norm(u)

        def away(t, c=c, u=u, b=b):
            x = c + t * u
            d = x - np.clip(x, -b, b)
            return d @ d

        found = boxes.nearest_on_segment(c, u, half, b)
        assert abs(found) <= half
        least = minimize_scalar(away, bounds=(-half, half), method="bounded",
                                options={"xatol": 1e-12}).fun  # fmt: skip
        assert away(found) <= min(least, away(-half), away(half)) + 1e-9
        t, e = rng.uniform(-half, half), 1e-6
        rate = (away(t + e) - away(t - e)) / (4 * e)
        assert abs(boxes.approach(c, u, b, t) - rate) < 1e-5
        faces = [abs(c[k]) - b[k] - half * abs(u[k]) for k in range(3)]
        edges = [-np.inf] * 3
        for k, axis in enumerate(np.eye(3)):
            across = np.cross(axis, u)
            if np.linalg.norm(across) > 1e-3:
                across /= np.linalg.norm(across)
                edges[k] = abs(across @ c) - np.abs(across) @ b
        most, axis = boxes.segment_box_separation(c, u, half, b, 1e-9)
        slabs = np.array([*faces, *edges])
        assert_close(most, slabs.max(), scale=1.0, ulps=100)
        assert slabs[axis] > slabs.max() - 1e-8


def test_edges_that_cross_on_a_face_are_told_from_others(rng):
    """By the angle of their common normal with that of the face."""
    counts = {True: 0, False: 0}
    for n in range(300):
        C = np.eye(3)[rng.permutation(3)] @ rotation_exp(
            10 ** rng.uniform(-3, 0) * rng.normal(size=3)
        )
        k, l, axis = rng.integers(3), rng.integers(3), rng.integers(6)
        across = np.cross(np.eye(3)[k], C[:, l])
        face = np.eye(3)[axis] if axis < 3 else C[:, axis - 3]
        cosine = across @ face / np.linalg.norm(across)
        if abs(cosine**2 - boxes._NEARLY) < 1e-9 or np.linalg.norm(across) < 1e-3:
            continue
        level = bool(boxes.is_level(np.column_stack([C, np.zeros(3)]), axis, k, l))
        assert level == (cosine**2 > boxes._NEARLY), n
        counts[level] += 1
    assert min(counts.values()) > 30


def test_lines_in_tubes(rng):
    for _ in range(40):
        r, x, v = rng.uniform(0.3, 1), rng.normal(size=3), rng.normal(size=3)
        low, high = lines.tube(r, x, v)
        if low <= high:
            for t in (low, high):
                assert_close(np.hypot(*(x + t * v)[:2]), r, ulps=1e3)
            assert np.hypot(*(x + (low + high) / 2 * v)[:2]) < r
        else:
            nearest = -(x[:2] @ v[:2]) / (v[:2] @ v[:2])
            assert np.hypot(*(x + nearest * v)[:2]) > r
            assert (low, high) == (lines.NONE, -lines.NONE)
    up = np.array([0.0, 0, 2])
    assert lines.tube(1.0, np.array([0.6, 0.7, 3]), up) == (-lines.NONE, lines.NONE)
    assert lines.tube(1.0, np.array([0.6, 0.9, 3]), up) == (lines.NONE, -lines.NONE)
    assert lines.entry(1.0, 2.0) == 1.0
    assert lines.entry(-1.0, 2.0) == 2.0
    assert lines.entry(-2.0, -1.0) == lines.entry(2.0, 1.0) == lines.NONE


def test_weights_of_splines_are_those_of_scipy(rng):
    """With the first two derivatives; beyond the ends the ground is level."""
    count, half = 9, 1.7
    step = 2 * half / (count - 3)
    knots = -half + step * np.arange(-3, count + 1)
    w, d, dd = np.zeros((3, 4))
    for x in (*rng.uniform(-half, half, 30), -half, half - 1e-9, 0.0):
        first = fields.spline_weights(x, half, count, w, d, dd)
        for order, found in enumerate((w, d, dd)):
            for k in range(4):
                basis = BSpline(knots, np.eye(count)[first + k], 3)
                expected = basis.derivative(order)(x) if order else basis(x)
                assert_close(found[k], expected, scale=step**-order, ulps=1e3)
    for x, at in ((-2.0, 0), (2.0, count - 4)):
        assert fields.spline_weights(x, half, count, w, d, dd) == at
        assert_close(np.sort(w), np.sort([0, 1 / 6, 2 / 3, 1 / 6]), scale=1.0)
        assert w[3 if x < 0 else 0] == 0
        assert not np.any(d)
        assert not np.any(dd)


def test_feet_on_cores(rng):
    """The nearest point of a segment, and whether it is between the ends."""
    for _ in range(30):
        par, g, k = np.zeros(16), rng.normal(size=3), np.zeros(3)
        par[:6] = rng.normal(size=6)
        free = fields.on_core(par, g, k)
        s = (g - par[:3]) @ par[3:6] / (par[3:6] @ par[3:6])
        assert free == (0 < s < 1)
        assert_close(k, par[:3] + np.clip(s, 0, 1) * par[3:6], scale=1.0)
    par[3:6] = 0
    assert not fields.on_core(par, g, k)
    assert_close(k, par[:3])
