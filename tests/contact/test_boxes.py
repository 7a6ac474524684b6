"""Boxes against boxes and capsules, piece by piece: axes, faces that are clipped, edges, corners.

By slabs and polygons in coordinates of the world.
"""

from itertools import product

import numpy as np
import pytest
from scipy.spatial import HalfspaceIntersection
from support.closeness import assert_close
from support.contact_scenes import touch_table

from kinetree.contact.collision import boxes
from kinetree.contact.collision.tables import BOX, CAPSULE, Shapes
from kinetree.spatial.rotation import rotation_exp

SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
NEAR = 1e-6


def two(rng, away=0.9, turn=1.0):
    """Two boxes in places, half edges included."""
    sizes = rng.uniform(0.2, 0.6, (2, 3))
    R, x = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    S = R @ rotation_exp(turn * rng.normal(size=3))
    d = rng.normal(size=3)
    y = x + away * rng.uniform(0.2, 1.2) * d / np.linalg.norm(d)
    return Shapes(
        count=2, kind=np.full(2, BOX), size=sizes, radius=np.linalg.norm(sizes, axis=1),
        pose=np.array([np.column_stack([R, x]).ravel(), np.column_stack([S, y]).ravel()]),
    )  # fmt: skip


def frames(s):
    P = s.pose.reshape(2, 3, 4)
    return P[0, :, :3], P[0, :, 3], P[1, :, :3], P[1, :, 3]


def seen(s):
    out = np.zeros((3, 4))
    boxes.relative_pose(s.pose[0], s.pose[1], out)
    return out


def slab(s, n):
    """Separation along a direction."""
    R, x, S, y = frames(s)
    return abs(n @ (y - x)) - np.abs(R.T @ n) @ s.size[0] - np.abs(S.T @ n) @ s.size[1]


def by_faces(s):
    R, _, S, _ = frames(s)
    return np.array([slab(s, n) for n in (*R.T, *S.T)])


def by_edges(s):
    R, _, S, _ = frames(s)
    found = np.full(9, -np.inf)
    for k, l in product(range(3), repeat=2):
        n = np.cross(R[:, k], S[:, l])
        found[3 * k + l] = slab(s, n / np.linalg.norm(n))
    return found


def test_poses_seen_from_another_box(rng):
    s = two(rng)
    R, x, S, y = frames(s)
    assert_close(seen(s), np.column_stack([R.T @ S, R.T @ (y - x)]), scale=1.0)


def test_the_best_face_and_edges_that_are_better(rng):
    kinds = set()
    for _ in range(300):
        s = two(rng)
        faces, edges = by_faces(s), by_edges(s)
        margin = rng.choice([-0.05, 0.02, 0.3])
        gap, axis = boxes.best_face(s, 0, 1, seen(s), margin, NEAR)
        if faces.max() > margin:
            assert axis == -1
            assert_close(gap, faces[np.argmax(faces > margin)], scale=1.0)
        else:
            assert axis == np.argmax(faces)
            assert_close(gap, faces.max(), scale=1.0)
        least = rng.choice([faces.max(), -10.0, edges.max() + 1e-3])
        edge, which = boxes.best_edges(seen(s), *s.size, least, margin)
        if which == boxes._APART:
            assert edge > margin
            assert_close(np.abs(edges - edge).min(), 0.0, scale=1.0)
        elif edges.max() > least:
            assert edges.max() <= margin
            assert which == np.argmax(edges)
            assert_close(edge, edges.max(), scale=1.0)
        else:
            assert (edge, which) == (least, -1)
        kinds.add((axis < 0, which if which < 0 else 0))
    assert len(kinds) >= 5


def test_faces_go_before_others_that_are_hardly_better(rng):
    """The first of those that are as good: boxes at rest keep their normal."""
    s = two(rng, turn=0.0)
    s.pose[1] = s.pose[0]
    s.size[:] = 0.5
    R, _, _, _ = frames(s)
    for more, axis in ((0.0, 0), (0.5 * NEAR, 0), (2 * NEAR, 1)):
        s.pose[1, 3::4] = s.pose[0, 3::4] + R @ [0.9, 0.9 + more, 0.1]
        assert boxes.best_face(s, 0, 1, seen(s), 1.0, NEAR)[1] == axis


def test_the_face_that_lies_against_another(rng):
    for _ in range(60):
        s = two(rng)
        R, x, S, y = frames(s)
        k, side = int(rng.integers(3)), rng.choice([-1.0, 1.0])
        face = np.zeros((3, 3))
        f = boxes.face_against(seen(s), s.size[0], s.size[1], k, side, face)
        n = side * R[:, k]
        assert f == np.argmax(np.abs(S.T @ n))
        outward = -np.sign(n @ S[:, f]) * S[:, f]
        u, w = (k + 1) % 3, (k + 2) % 3
        high = x + side * s.size[0, k] * R[:, k]

        def across(v, R=R, n=n, u=u, w=w):
            return np.array([v @ R[:, u], v @ R[:, w], v @ n])

        middle = y + s.size[1, f] * outward
        expected = across(middle - x)
        expected[2] = (middle - high) @ n
        assert_close(face[0], expected, scale=1.0, ulps=200)
        for row, axis in ((1, (f + 1) % 3), (2, (f + 2) % 3)):
            assert_close(face[row], across(s.size[1, axis] * S[:, axis]), scale=1.0, ulps=200)


def test_faces_are_clipped_to_a_rectangle(rng):
    cut = 0
    for _ in range(80):
        turn, scale = rng.uniform(0, 2 * np.pi), rng.uniform(0.2, 1.0, 2)
        face = np.zeros((3, 3))
        face[0] = *rng.uniform(-0.6, 0.6, 2), rng.normal()
        face[1] = scale[0] * np.array([np.cos(turn), np.sin(turn), 0.3])
        face[2] = scale[1] * np.array([-np.sin(turn), np.cos(turn), -0.2])
        wide, deep = 0.7, 0.5
        corner, edge = np.zeros((32, 3)), np.zeros(32, dtype=np.int64)
        count = boxes.clip_face(face, wide, deep, 1e-9, corner, edge)
        rows = [(1, 0, -wide), (-1, 0, -wide), (0, 1, -deep), (0, -1, -deep)]
        inverse = np.linalg.inv(face[1:, :2])
        for axis, sign in product((0, 1), (1, -1)):
            n = sign * inverse[:, axis]
            rows.append((*n, -n @ face[0, :2] - 1))
        found = corner[:count]
        if count < 3:
            continue
        middle = found[:, :2].mean(axis=0)
        vertices = HalfspaceIntersection(np.array(rows), middle).intersections
        assert count == len(vertices)
        for x in found:
            assert np.abs(vertices - x[:2]).sum(axis=1).min() < 1e-9
            part = np.linalg.solve(face[1:, :2].T, x[:2] - face[0, :2])
            assert_close(x[2], face[0, 2] + part @ face[1:, 2], scale=1.0, ulps=1e4)
        cut += count != 4
    assert cut > 20


def test_corners_near_enough_are_kept():
    corner, edge = np.zeros((32, 3)), np.arange(32)
    corner[:5] = [(k, 2 * k, z) for k, z in enumerate((0.3, 0.1, 0.5, -0.2, 0.2))]
    given = corner.copy()
    assert boxes.keep_near(corner, edge, 5, 0.2) == (3, -0.2)
    assert np.array_equal(corner[:3], given[[1, 3, 4]])
    assert edge[:3].tolist() == [1, 3, 4]
    assert boxes.keep_near(given, np.arange(32), 3, -1.0) == (0, 0.1)


def face_points(s, i, k):
    """Corners of the face of the other box against face k of box i: polygon and gaps."""
    R, x, S, y = frames(s)
    if i == 1:
        R, x, S, y = S, y, R, x
    a, b = s.size[i], s.size[1 - i]
    side = np.sign(R[:, k] @ (y - x))
    n = side * R[:, k]
    f = np.argmax(np.abs(S.T @ n))
    out = -np.sign(n @ S[:, f]) * S[:, f]
    u, w = (k + 1) % 3, (k + 2) % 3
    rows = [(1, 0, -a[u]), (-1, 0, -a[u]), (0, 1, -a[w]), (0, -1, -a[w])]
    middle = y + b[f] * out - x
    flat = np.array([R[:, u], R[:, w]])
    sides = np.array([flat @ S[:, axis] for axis in ((f + 1) % 3, (f + 2) % 3)])
    inverse = np.linalg.inv(sides)
    for axis, length in ((0, b[(f + 1) % 3]), (1, b[(f + 2) % 3])):
        for sign in (1, -1):
            m = sign * inverse[:, axis]
            rows.append((*m, -m @ (flat @ middle) - length))
    rows = np.array(rows)
    scale = np.linalg.norm(rows[:, :2], axis=1)
    return rows / scale[:, None], flat, middle, out, n, a[k], x


def test_patches_of_faces_are_their_common_polygon(rng):
    """Where boxes lie on each other, tilted a little: places, gaps and the normal of points."""
    seen_counts = set()
    for _ in range(150):
        s = two(rng, turn=0.05)
        R, x, _, _ = frames(s)
        k = int(rng.integers(3))
        s.pose[1, 3::4] = x + R @ (
            np.where(np.arange(3) == k, 1.0, rng.uniform(-0.5, 0.5, 3)) * s.size[0]
            + np.where(np.arange(3) == k, s.size[1] + rng.choice([-0.02, 0.005]), 0.0)
        ) * rng.choice([-1, 1])
        faces, edges = by_faces(s), by_edges(s)
        axis = int(np.argmax(faces))
        if np.sort(faces)[-2] > faces[axis] - 1e-4 or edges.max() > faces[axis] - 1e-4:
            continue
        if faces[axis] > -1e-4:  # apart: corners may be nearest
            continue
        rows, flat, middle, out, n, half, origin = face_points(s, axis // 3, axis % 3)
        touch, margin = touch_table(), 0.01
        count = boxes.box_box(s, 0, 1, margin, touch, 0)
        found = touch.point[:count] - origin
        for point, normal, gap in zip(found, touch.normal, touch.gap, strict=False):
            assert_close(normal, n if axis < 3 else -n, scale=1.0, ulps=100)
            assert gap <= margin
            flatly = flat @ point
            slack = rows @ (*flatly, 1)
            assert slack.max() < 1e-5
            assert np.sum(np.abs(slack) < 1e-6) >= 2  # a corner of the polygon
            height = (
                middle
                + (flatly - flat @ middle)
                @ np.linalg.lstsq(flat @ _plane(out), np.eye(2), rcond=None)[0].T
                @ _plane(out).T
            )
            assert_close(height @ n - half, gap, scale=1.0, ulps=1e6)
            assert_close(point @ n, half + gap / 2, scale=1.0, ulps=1e4)
        assert_close(touch.gap[:count].min(), faces[axis], scale=1.0, ulps=1e10)
        seen_counts.add(count)
    assert {3, 4} <= seen_counts


def _plane(out):
    """Two directions in a plane with a normal, (3, 2)."""
    return np.linalg.svd(out[None])[2][1:].T


def test_edges_that_cross(rng):
    """The point is half-way between the lines, along their common normal."""
    crossing = 0
    for _ in range(150):
        s = two(rng, away=1.4)
        R, x, S, y = frames(s)
        edges = int(rng.integers(9))
        k, l = divmod(edges, 3)
        n = np.cross(R[:, k], S[:, l])
        n /= np.linalg.norm(n) * np.sign(np.cross(R[:, k], S[:, l]) @ (y - x))
        gap = slab(s, n)
        p = x + R @ (np.sign(R.T @ n) * s.size[0] * (np.arange(3) != k))
        q = y - S @ (np.sign(S.T @ n) * s.size[1] * (np.arange(3) != l))
        f, e = np.linalg.lstsq(np.column_stack([R[:, k], -S[:, l]]), q - p, rcond=None)[0]
        inside = abs(f) <= s.size[0, k] and abs(e) <= s.size[1, l]
        touch = touch_table()
        count = boxes.edge_edge(s, 0, 1, seen(s), edges, np.array([gap, 1.0, NEAR]), touch, 0)
        if gap > 1e-3 and not inside:
            assert count == -1
            continue
        assert count == 1
        assert_close(touch.normal[0], n, scale=1.0, ulps=1e4)
        assert touch.gap[0] == gap
        f, e = np.clip(f, -s.size[0, k], s.size[0, k]), np.clip(e, -s.size[1, l], s.size[1, l])
        middle = (p + f * R[:, k] + q + e * S[:, l]) / 2
        assert_close(touch.point[0], middle, scale=1.0, ulps=1e5)
        crossing += inside
    assert crossing > 15


def outside(half, x):
    """Distance of points from a box about the origin, and the way out."""
    d = x - np.clip(x, -half, half)
    return np.linalg.norm(d, axis=-1), d


def test_corners_that_are_nearest(rng):
    """Those of either box with the least distance, and only within the margin."""
    counts = set()
    for n in range(60):
        s = two(rng, away=3.0, turn=1.0 if n % 3 else 0.0)
        if n % 6 == 3:  # face to face
            s.size[1] = 0.5 * s.size[0]
            s.pose[1, 3::4] = s.pose[0, 3::4] + 1.5 * s.pose[0, 0::4][:3]
        R, x, S, y = frames(s)
        ours = (x + (SIGNS[:, ::-1] * s.size[0]) @ R.T - y) @ S
        theirs = (y + (SIGNS[:, ::-1] * s.size[1]) @ S.T - x) @ R
        far = np.concatenate([outside(s.size[1], ours)[0], outside(s.size[0], theirs)[0]])
        point, out = np.zeros((2, 3))
        for c in range(16):
            found = boxes.corner_box(s, 0, 1, c, point, out)
            assert_close(point, (ours if c < 8 else theirs)[c % 8], scale=1.0, ulps=100)
            if far[c] > 1e-9:
                assert_close(found, far[c], scale=1.0)
        if far.min() < 1e-6:
            continue
        touch = touch_table()
        assert boxes.corners_box(s, 0, 1, far.min() - 1e-3, NEAR, touch, 0) == 0
        count = boxes.corners_box(s, 0, 1, far.min() + 1e-3, NEAR, touch, 0)
        counts.add(count)
        assert 1 <= count <= 4
        assert_close(touch.gap[:count], np.full(count, far.min()), scale=1.0, ulps=1e10)
        for p, m, gap in zip(touch.point, touch.normal, touch.gap[:count], strict=False):
            a, b = (p - gap / 2 * m - x) @ R, (p + gap / 2 * m - y) @ S
            assert outside(s.size[0], a)[0] < 1e-6
            assert outside(s.size[1], b)[0] < 1e-6
        kept = touch.point[:count]
        for i in range(count):
            for j in range(i):
                assert np.linalg.norm(kept[i] - kept[j]) > NEAR
    assert {1, 4} <= counts


def test_what_is_level(rng):
    touch = touch_table()
    for least, near, expected in ((0.1, 0.05, (0.3, 0.1, 0.2)), (0.1, 0.01, (0.3, 0.12, 0.2)),
                                  (0.15, 0.0, (0.3, 0.15, 0.2))):  # fmt: skip
        touch.gap[:5] = 9.0, 9.0, 0.3, 0.12, 0.2
        assert boxes.level_out(touch, 2, 5, least, near) == 5
        assert touch.gap[2:5].tolist() == list(expected)
    assert boxes.level_out(touch, 3, 3, 0.1, 1.0) == 3


@pytest.mark.parametrize("along", [False, True])
def test_capsules_touch_boxes_at_the_ends_of_what_they_have_along_them(along, rng):
    """The least gap is that of the segment; two ends where it lies along a face or an edge."""
    two_ends = 0
    for n in range(120):
        s = two(rng, away=1.2)
        s.kind[0] = CAPSULE
        s.size[0] = rng.uniform(0.05, 0.2), rng.uniform(0.2, 0.6), 0.0
        R, x, S, y = frames(s)
        if along:
            turned = S @ rotation_exp(np.eye(3)[n % 3] * np.pi / 2)
            pose = s.pose[0].reshape(3, 4)
            pose[:, :3] = turned
            R = turned
        ts = np.linspace(-1, 1, 2001) * s.size[0, 1]
        points = (x + ts[:, None] * R[:, 2] - y) @ S
        away, _ = outside(s.size[1], points)
        if away.min() < 1e-3:
            continue
        touch = touch_table()
        r = s.size[0, 0]
        count = boxes.capsule_box(s, 0, 1, 0.1, touch, 0)
        if away.min() - r > 0.1:
            assert count == 0 or abs(away.min() - r - 0.1) < 1e-3
            continue
        assert abs(touch.gap[:count].min() - (away.min() - r)) < 1e-3
        for p, m, gap in zip(touch.point, touch.normal, touch.gap[:count], strict=False):
            inner = (p + gap / 2 * m - y) @ S
            assert outside(s.size[1], inner)[0] < 1e-9
            own = (p - gap / 2 * m - x) @ R
            own[2] -= np.clip(own[2], -s.size[0, 1], s.size[0, 1])
            far = np.linalg.norm(own)  # less where it leans over the face beside the nearest point
            assert (r - 1e-9 if along or count == 1 else 0) < far < r + 1e-9
        near = ts[away <= away.min() + 1e-9]
        if along and np.ptp(near) > 0.01:
            two_ends += 1
            assert count == 2
            ends = [(p - x) @ R[:, 2] for p in touch.point[:2]]
            assert abs(min(ends) - near.min()) < 2e-3
            assert abs(max(ends) - near.max()) < 2e-3
            assert len({*touch.feature[:2].tolist()}) == 2
    assert two_ends > 10 if along else two_ends == 0
