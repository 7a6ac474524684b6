"""Distances between shapes of a model, in compiled code and in batches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.procedures import local, procedure, sqrt, vector, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.convex import APART, BEYOND, nearest, patch
from kinetree.contact.collision.detect import touch_table
from kinetree.contact.collision.fields import height_at, put_foot
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.meshes import box_in_shape, extent, load_triangle, node_in_shape
from kinetree.contact.collision.on_fields import field_pair
from kinetree.contact.collision.placing import place_shape
from kinetree.contact.collision.shapes import shapes_of
from kinetree.contact.collision.support import round_of, support
from kinetree.contact.collision.tables import Shapes, Touch
from kinetree.contact.collision.witness import facing_points, misses, move_into
from kinetree.contact.finding.pairs import names_of
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model.arrays import as_model
from kinetree.model.geometry import HeightField, Mesh, Plane
from kinetree.model.memo import kept
from kinetree.model.model import Model
from kinetree.quantities import kinematics
from kinetree.spelling import did_you_mean

_ON = 1e-13  # of the size: by which points may miss the surface
_MOVES = 32  # of nearest points into both shapes


class Distance(NamedTuple):
    """Distance of shapes, or depth of their overlap.

    Attributes:
        gap: [m]; if they overlap, minus the shortest translation that separates them.
        points: the nearest points, of the first and of the second, in the base [m], (..., 2, 3).
        normal: unit, from the first to the second, (..., 3).
        shapes: numbers of the two shapes in ``model.geometry``, (..., 2).
    """

    gap: np.ndarray
    points: np.ndarray
    normal: np.ndarray
    shapes: np.ndarray


@on_host
def distance(
    model: Model, q: ArrayLike, first: str | Sequence[str], second: str | Sequence[str]
) -> Distance:
    """Distances, nearest points and normals between shapes, links or bodies.

    Exact to rounding error for all convex shapes, whether they are apart or overlap. Nonconvex
    meshes and height fields are treated as surfaces.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        first: name of a shape, link, frame or body, or several of them.
        second: likewise, as many: the distance of each pair.

    Returns:
        ``Distance`` with arrays of shape (...), or (..., n) for n names. A body or link counts with
        those of its shapes that can touch, and of them the nearest.
    """
    names = [[x] if isinstance(x, str) else list(x) for x in (first, second)]
    single = isinstance(first, str) and isinstance(second, str)
    count = max(len(x) for x in names)
    if any(len(x) not in (1, count) for x in names):
        raise ModelError(
            f"first and second must be as many, or one of them a single name, got {len(names[0])} "
            f"and {len(names[1])} names"
        )
    asked = tuple((names[0][k % len(names[0])], names[1][k % len(names[1])]) for k in range(count))
    poses, batch = placed_poses(model, q)
    shapes, numbers, pairs, starts, used = _tables(model, asked)
    samples = int(np.prod(batch, dtype=int))
    out, which = np.empty((samples * count, 10)), np.empty((samples * count, 2), dtype=np.int64)
    distances(
        shapes,
        poses,
        model.body_count + 1,
        samples,
        used,
        len(used),
        pairs,
        starts,
        count,
        touch_table(),
        out,
        which,
    )
    shape = batch if single else (*batch, count)
    return Distance(
        out[:, 3].reshape(shape),
        out[:, 4:].reshape(*shape, 2, 3),
        out[:, :3].reshape(*shape, 3),
        numbers[which].reshape(*shape, 2),
    )


def placed_poses(model, q):
    """Poses of all bodies with the base first, (samples * bodies, 12), and the batch's axes."""
    T = np.asarray(kinematics.poses(as_model(model), q), dtype=float)
    batch = T.shape[:-3]
    poses = np.empty((int(np.prod(batch, dtype=int)), model.body_count + 1, 12))
    poses[:, 0] = np.eye(4)[:3].reshape(12)
    poses[:, 1:] = T[..., :3, :].reshape(len(poses), model.body_count, 12)
    return poses.reshape(-1, 12), batch


def numbers_of(model, name) -> list[int]:
    """Numbers of the shapes that a name stands for."""
    found = names_of(model).find(name)
    if not found:
        known = (*names_of(model).own, *model.body_names[1:])
        raise UnknownNameError(
            f"no shape, link, frame or body with shapes is called {name!r}; "
            f"{did_you_mean(name, known)}"
        )
    return found


def chosen_shapes(model, left_out):
    """Tables of all shapes less those numbers, meshes as triangles, and their numbers."""
    numbers = tuple(k for k in range(len(model.geometry)) if k not in left_out)
    shapes = _shapes(model, numbers, triangles=True)
    return own_poses(shapes), np.array(numbers, dtype=np.int64)


def _shapes(model, numbers, triangles=False):
    def make():
        chosen = [model.geometry[k] for k in numbers]
        if triangles:
            chosen = [
                replace(g, shape=replace(g.shape, convex=False)) if isinstance(g.shape, Mesh) else g
                for g in chosen
            ]
        nothing = [0] * (model.body_count + 1)  # pairs are given, so rules do not matter
        return shapes_of(chosen, nothing, nothing, {"friction": None, "restitution": None})

    return kept(model, ("shapes in tables", numbers, triangles), make)


def own_poses(shapes) -> Shapes:
    """Copy of the shapes with separate room for poses, so that callers do not share it."""
    mine = {name: getattr(shapes, name) for name in Shapes.types}
    mine |= {name: np.empty_like(mine[name]) for name in ("pose", "low", "high")}
    return Shapes(**mine)


def _tables(model, asked):
    """Shapes, their numbers, pairs of rows, where each question's pairs start, and rows in use."""

    def make():
        groups = [(numbers_of(model, a), numbers_of(model, b)) for a, b in asked]
        used = sorted({k for pair in groups for side in pair for k in side})
        row = {k: r for r, k in enumerate(used)}
        pairs, starts = [], [0]
        for (a, b), names in zip(groups, asked, strict=True):
            found = [(i, j) for i in a for j in b if i != j]
            for i, j in found:
                _check_pair(model, i, j)
            if not found:
                raise ModelError(f"{names[0]!r} and {names[1]!r} are the same shape")
            pairs += [(row[i], row[j]) for i, j in found]
            starts.append(len(pairs))
        return (
            _shapes(model, tuple(used)),
            np.array(used, dtype=np.int64),
            np.array(pairs, dtype=np.int64),
            np.array(starts, dtype=np.int64),
            np.arange(len(used)),
        )

    shapes, *rest = kept(model, ("distances of", asked), make)
    return own_poses(shapes), *rest


def _check_pair(model, i, j):
    shapes = [model.geometry[k].shape for k in (i, j)]
    endless = sum(isinstance(s, (Plane, HeightField)) for s in shapes)
    concave = any(isinstance(s, Mesh) and not s.convex for s in shapes)
    if endless == 2 or (concave and any(isinstance(s, HeightField) for s in shapes)):
        kinds = " and ".join(type(s).__name__ for s in shapes)
        names = names_of(model).own
        raise ModelError(
            f"there is no distance between {names[i]!r} and {names[j]!r}, {kinds}: of two grounds "
            f"without end, or of a height field and a mesh that is not convex; name other shapes"
        )


# --- compiled ------------------------------------------------------------------------------------


@procedure
def distances(
    shapes: Shapes,
    poses: "float[:, 12]",
    bodies: int,
    samples: int,
    used: "int[:]",
    count: int,
    pairs: "int[:, 2]",
    starts: "int[:]",
    groups: int,
    touch: Touch,
    out: "float[:, 10]",
    which: "int[:, 2]",
) -> None:
    """The nearest pair of every group, for every sample of the poses."""
    near = local("float", 10)
    for sample in range(samples):
        bodies_here = view(poses, sample * bodies)
        for k in range(count):
            place_shape(shapes, used[k], bodies_here[shapes.body[used[k]]])
        for g in range(groups):
            row = sample * groups + g
            best = 1e300
            for k in range(starts[g], starts[g + 1]):
                i = pairs[k, 0]
                j = pairs[k, 1]
                if boxes_apart(shapes, i, j) > best:
                    continue
                swap = shapes.kind[i] > shapes.kind[j]
                status = pair_distance(
                    shapes, j if swap else i, i if swap else j, best, touch, near
                )
                if status != BEYOND and near[3] < best:
                    best = near[3]
                    which[row, 0] = i
                    which[row, 1] = j
                    out[row, 3] = near[3]
                    out[row, :3] = -near[:3] if swap else near[:3]
                    out[row, 4:7] = near[7:] if swap else near[4:7]
                    out[row, 7:] = near[4:7] if swap else near[7:]


@procedure
def boxes_apart(shapes: Shapes, i: int, j: int) -> float:
    """No point of one shape is nearer to the other than this."""
    total = 0.0
    for c in range(3):
        d = max(shapes.low[i, c] - shapes.high[j, c], shapes.low[j, c] - shapes.high[i, c])
        if d > 0:
            total += d * d
    return sqrt(total)


@procedure
def pair_distance(
    shapes: Shapes, i: int, j: int, far: float, touch: Touch, near: "float[10]"
) -> int:
    """How two shapes are nearest, the lower kind first; numbers as in ``nearest``, in the world."""
    a = shapes.kind[i]
    b = shapes.kind[j]
    o, way = local("float", 2, 3)
    corners = local("float", 6, 3)
    of = j if a == tables.PLANE else i
    o[:] = shapes.pose[of, 3::4]
    way[:] = 0.0
    status = BEYOND
    if a == tables.PLANE:
        status = over_plane(shapes, i, j, corners, o, near)
    elif b == tables.FIELD:
        status = over_field(shapes, i, j, corners, touch, near)
        o[:] = 0.0
    elif b == tables.TRIANGLES:
        status = to_mesh(shapes, i, j, corners, o, far, near)
    else:
        status = nearest(shapes, i, j, corners, o, far, way, near)
        if status != BEYOND:
            into_both(shapes, i, j, corners, o, touch, near)
    if status != BEYOND:
        near[4:7] += o
        near[7:] += o
    return status


@procedure
def into_both(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    touch: Touch,
    near: "float[10]",
) -> None:
    """Nearest points that are of both shapes, of all that the normal allows the best.

    Those that the search ended with may miss a shape where faces or edges are nearly parallel: then
    the middle of what these have in common, or the farthest point of either shape, is one.
    """
    n, minus, a, p, best = local("float", 5, 3)
    n[:] = near[:3]
    minus[:] = -n
    gap = near[3]
    ra, rb = round_of(shapes, i), round_of(shapes, j)
    least = 1e300
    for attempt in range(5):
        if attempt == 0:
            a[:] = near[4:7]
        elif attempt == 1:
            support(shapes, i, corners, o, n, -1, a)
            a[:] += ra * n
        elif attempt == 2:
            support(shapes, j, corners, o, minus, -1, p)
            a[:] = p - (rb + gap) * n
        elif attempt == 3:
            if not facing_points(shapes, i, j, corners, o, n, gap + ra + rb, a, p):
                continue
            a[:] += ra * n
        elif not middle_of_patch(shapes, i, j, corners, o, touch, near, a):
            continue
        miss = misses(shapes, i, j, o, n, gap, a)
        if miss < least:
            least = miss
            best[:] = a
        if least <= _ON * (shapes.radius[i] + shapes.radius[j]):
            break
    near[4:7] = best
    near[7:] = best + gap * n
    if least > _ON * (shapes.radius[i] + shapes.radius[j]):
        move_into_both(shapes, i, j, o, near)


@procedure
def middle_of_patch(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    touch: Touch,
    near: "float[10]",
    a: "float[3]",
) -> bool:
    """The middle of the deepest points of the patch between two shapes, if there is one."""
    reach = near[3] + 8e-16 * (shapes.radius[i] + shapes.radius[j])
    n = patch(shapes, i, j, corners, o, near, reach, 8, touch, 0, 0)
    total = vector(0.0, 0.0, 0.0)
    for k in range(n):
        total += touch.point[k] - o
    if n > 0:
        a[:] = total / n - near[:3] * near[3] / 2
    return n > 0


@procedure
def move_into_both(shapes: Shapes, i: int, j: int, o: "float[3]", near: "float[10]"):
    """Nearest points moved into their shapes, where they missed them at the border of a face."""
    a, b, n = local("float", 3, 3)
    n[:] = near[:3]
    a[:] = near[4:7]
    for _ in range(_MOVES):
        one = move_into(shapes, i, o, n, a)
        b[:] = a + near[3] * n
        n[:] = -n
        two = move_into(shapes, j, o, n, b)
        n[:] = -n
        near[4:7] = a
        near[7:] = b
        a[:] = b - near[3] * n
        if one + two == 0.0:
            return


@procedure
def over_plane(
    shapes: Shapes, i: int, j: int, corners: "float[6, 3]", o: "float[3]", near: "float[10]"
) -> int:
    """A plane and what is over it: its farthest point down."""
    P = shapes.pose[i]
    p = local("float", 3)
    down = -P[2::4]
    q = P[3::4] - o
    if shapes.kind[j] == tables.TRIANGLES:
        d = local("float", 3)
        into_shape(shapes.pose[j], down, d)
        lowest = -1
        high = -1e300
        for t in range(shapes.data[j, 2], shapes.data[j, 2] + shapes.data[j, 3]):
            for k in range(3):
                height = shapes.vertex[shapes.triangle[t, k]] @ d
                if height > high:
                    high = height
                    lowest = shapes.triangle[t, k]
        x = shapes.vertex[lowest]
        out_of_shape(shapes.pose[j], o, x[0], x[1], x[2], p)
    else:
        support(shapes, j, corners, o, down, -1, p)
    r = round_of(shapes, j)
    near[3] = (q - p) @ down - r
    near[:3] = -down
    near[7:] = p + r * down
    near[4:7] = near[7:] + near[3] * down
    return APART


@procedure
def over_field(
    shapes: Shapes, i: int, j: int, corners: "float[6, 3]", touch: Touch, near: "float[10]"
) -> int:
    """A convex shape and a height field: of all places where they are near the nearest.

    The lowest point of the shape is straight above the ground by an upper bound of the gap. Of what
    is all below the ground, the way straight up to it counts.
    """
    P = shapes.pose[j]
    o, p, x = local("float", 3, 3)
    down = -P[2::4]
    o[:] = P[3::4]
    support(shapes, i, corners, o, down, -1, p)
    r = round_of(shapes, i)
    p[:] += r * down
    into_shape(P, p, x)
    bound = max(x[2] - height_at(shapes, j, x[0], x[1]), 0.0)
    n = field_pair(shapes, i, j, bound * (1 + 1e-9) + 1e-9, touch, 0)
    if n == 0:
        touch.second = j
        touch.margin = 1e300
        touch.count = 0
        put_foot(shapes, touch, x[0], x[1], x, 0.0, 0)
        n = touch.count
    best = 0
    for k in range(1, n):
        if touch.gap[k] < touch.gap[best]:
            best = k
    near[3] = touch.gap[best]
    near[:3] = touch.normal[best]
    near[4:7] = touch.point[best] - near[:3] * near[3] / 2
    near[7:] = touch.point[best] + near[:3] * near[3] / 2
    return APART


@procedure
def to_mesh(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    far: float,
    near: "float[10]",
) -> int:
    """A convex shape, or another mesh, and the nearest triangle of a mesh."""
    stack = local("int", 256, 2)
    low, high, way, normal = local("float", 4, 3)
    found = local("float", 10)
    mesh = shapes.kind[i] == tables.TRIANGLES
    best = far
    status = BEYOND
    stack[0, 0] = shapes.data[i, 0] if mesh else -1
    stack[0, 1] = shapes.data[j, 0]
    depth = 1
    while depth > 0:
        depth -= 1
        one = stack[depth, 0]
        two = stack[depth, 1]
        if node_apart(shapes, i, one, j, two, low, high) > best:
            continue
        a = shapes.child[one, 0] if mesh else -1
        b = shapes.child[two, 0]
        if a >= 0 or b >= 0:
            first = a >= 0 and (b < 0 or extent(shapes.node[one]) > extent(shapes.node[two]))
            node = one if first else two
            x = shapes.child[node, 0]
            y = shapes.child[node, 1]
            # the nearer one is looked at first
            if first:
                to_x = node_apart(shapes, i, x, j, two, low, high)
                to_y = node_apart(shapes, i, y, j, two, low, high)
            else:
                to_x = node_apart(shapes, i, one, j, x, low, high)
                to_y = node_apart(shapes, i, one, j, y, low, high)
            if to_x < to_y:
                x, y = y, x
            stack[depth, 0] = x if first else one
            stack[depth, 1] = two if first else x
            stack[depth + 1, 0] = y if first else one
            stack[depth + 1, 1] = two if first else y
            depth += 2
            continue
        begin = -1 - a if mesh else 0
        end = begin + shapes.child[one, 1] if mesh else 1
        for s in range(begin, end):
            if mesh:
                load_triangle(shapes, i, s, o, corners, 3, normal)
            for t in range(-1 - b, -1 - b + shapes.child[two, 1]):
                load_triangle(shapes, j, t, o, corners, 0, normal)
                way[:] = 0.0
                got = nearest(shapes, -2 if mesh else i, -1, corners, o, best, way, found)
                if got != BEYOND and found[3] < best:
                    status = got
                    best = found[3]
                    for c in range(10):
                        near[c] = found[c]
    return status


@procedure
def node_apart(
    shapes: Shapes, i: int, one: int, j: int, two: int, low: "float[3]", high: "float[3]"
) -> float:
    """No point of node ``one`` of mesh i, or of shape i, is nearer to node ``two`` than this.

    Negative where shapes may overlap: they may do so by the size of the smaller one.
    """
    if shapes.kind[i] == tables.TRIANGLES:
        node_in_shape(shapes, i, one, j, 0.0, low, high)
    else:
        box_in_shape(shapes, i, j, 0.0, low, high)
    node = shapes.node[two]
    total = 0.0
    for c in range(3):
        d = max(low[c] - node[3 + c], node[c] - high[c])
        if d > 0:
            total += d * d
    return sqrt(total) if total > 0 else -1e300
