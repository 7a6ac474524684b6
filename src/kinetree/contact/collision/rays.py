"""Rays ``p + t d``, ``t >= 0``, in compiled code: the first surface that each meets.

Solids are met from outside and from inside. Meshes are their triangles, from either side; height
fields their smooth surface, within the rectangle of their heights; planes have no end.
"""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.procedures import cross, local, procedure, record, sqrt, vector, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.distance import chosen_shapes, numbers_of, placed_poses
from kinetree.contact.collision.fields import ground, height_at, spacing
from kinetree.contact.collision.frames import into_shape
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.kinds.lines import NONE, entry
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.tables import Shapes
from kinetree.errors import ShapeError
from kinetree.model.model import Model


@procedure
def no_ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray on a shape that is not a solid: no hit."""
    return NONE


RAY = choice_of("ray", no_ray)


class RayHit(NamedTuple):
    """The first surface that each ray meets.

    Attributes:
        distance: along the ray [m]; infinite where nothing is met.
        shape: number of the shape in ``model.geometry``, -1 where nothing is met.
        point: in the base [m], (..., 3); NaN where nothing is met.
        normal: unit, outward, (..., 3); NaN where nothing is met.
    """

    distance: np.ndarray
    shape: np.ndarray
    point: np.ndarray
    normal: np.ndarray


@on_host
def ray_cast(
    model: Model,
    q: ArrayLike,
    origin: ArrayLike,
    direction: ArrayLike,
    *,
    ignore: tuple[str, ...] | list[str] = (),
) -> RayHit:
    """First shape that each ray hits, with distance and normal, from outside or from inside.

    Meshes are met at their triangles, height fields at their smooth surface within the rectangle of
    their heights. All of ``model.geometry`` counts.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        origin: where rays start, in the base [m]: (3,), (n, 3) for the same rays at every q, or
            (..., n, 3).
        direction: which way they go, of any length, likewise.
        ignore: names of shapes, links or bodies that rays pass through.

    Returns:
        ``RayHit`` with arrays of shape (...) for one ray, (..., n) for several.
    """
    return first_hits(
        model, q, origin, direction, {k for x in ignore for k in numbers_of(model, x)}
    )


def first_hits(model, q, origin, direction, left_out) -> RayHit:
    """First hits of rays with the shapes of a model, without those numbered in ``left_out``."""
    poses, batch = placed_poses(model, q)
    start, way = (np.asarray(x, dtype=float) for x in (origin, direction))
    single = start.ndim == 1 and way.ndim == 1
    try:
        start, way = np.broadcast_arrays(np.atleast_2d(start), np.atleast_2d(way))
        shape = (*batch, start.shape[-2], 3)
        start, way = (np.ascontiguousarray(np.broadcast_to(x, shape)) for x in (start, way))
    except ValueError:
        raise ShapeError(
            f"origin and direction must be (3,), (n, 3) or {(*batch, 'n', 3)}, "
            f"got {np.shape(origin)} and {np.shape(direction)}"
        ) from None
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    if not np.all(length > 0):
        raise ShapeError("direction must not be zero or NaN: it says which way a ray goes")
    way = way / length
    shapes, numbers = chosen_shapes(model, left_out)
    rays = start.shape[-2]
    count = int(np.prod(batch, dtype=int)) * rays
    out, which = np.empty((count, 4)), np.empty(count, dtype=np.int64)
    given = Rays(
        bodies=model.body_count + 1,
        poses=poses,
        count=count,
        per_sample=rays,
        start=start.reshape(-1, 3),
        way=way.reshape(-1, 3),
        hit=out,
        which=which,
    )
    cast(shapes, given)
    met = which >= 0
    distance = np.where(met, out[:, 0], np.inf).reshape(shape[:-1])
    names = np.where(met, numbers[which] if len(numbers) else -1, -1).reshape(shape[:-1])
    normal = np.where(met[:, None], out[:, 1:], np.nan).reshape(shape)
    way = np.where(np.isfinite(distance)[..., None], distance[..., None], np.nan) * way
    hit = RayHit(distance, names, start + way, normal)
    if single:
        hit = RayHit(*(np.take(x, 0, axis=len(batch)) for x in hit))
    return hit


@record
class Rays:
    """Rays in many samples of the poses, and what they meet.

    Attributes:
        bodies: how many, with the base.
        poses: of all of them, sample by sample.
        count: of rays in all samples.
        per_sample: of rays in one.
        start: where each begins.
        way: unit direction of each.
        hit: distance of the first surface that each meets, ``NONE`` for none, and its normal.
        which: number of the shape, -1 for none.
    """

    bodies: int
    poses: "float[:, 12]"
    count: int
    per_sample: int
    start: "float[:, 3]"
    way: "float[:, 3]"
    hit: "float[:, 4]"
    which: "int[:]"


@procedure
def cast(shapes: Shapes, rays: Rays) -> None:
    """Find every ray's nearest hit with any of the shapes; writes distance, normal and shape."""
    normal = local("float", 3)
    for k in range(rays.count):
        if k % rays.per_sample == 0:
            place_shapes(shapes, view(rays.poses, (k // rays.per_sample) * rays.bodies))
        start, way, hit = rays.start[k], rays.way[k], rays.hit[k]
        hit[0] = NONE
        rays.which[k] = -1
        for i in range(shapes.count):
            if may_meet(shapes, i, start, way, hit[0]):
                t = ray_shape(shapes, i, start, way, hit[0], normal)
                if t < hit[0]:
                    hit[0] = t
                    rays.which[k] = i
                    hit[1:] = normal


@procedure
def may_meet(shapes: Shapes, i: int, p: "float[3]", d: "float[3]", far: float) -> bool:
    """Whether a ray of unit direction meets the bounding box of a shape before ``far`` [m]."""
    low = 0.0
    high = far
    for c in range(3):
        if d[c] == 0.0:
            if p[c] < shapes.low[i, c] or p[c] > shapes.high[i, c]:
                return False
        else:
            a = (shapes.low[i, c] - p[c]) / d[c]
            b = (shapes.high[i, c] - p[c]) / d[c]
            low = max(low, min(a, b))
            high = min(high, max(a, b))
    return low <= high * (1 + 1e-15) + 1e-15


@procedure
def ray_shape(
    shapes: Shapes, i: int, p: "float[3]", d: "float[3]", far: float, normal: "float[3]"
) -> float:
    """Smallest ray parameter below ``far`` where a ray meets shape i; sets the outward normal."""
    P = shapes.pose[i]
    x, v, n = local("float", 3, 3)
    from_origin = p - P[3::4]
    into_shape(P, from_origin, x)
    into_shape(P, d, v)
    kind = shapes.kind[i]
    t = NONE
    if kind == tables.PLANE:
        n[:] = vector(0.0, 0.0, 1.0)
        if v[2] != 0.0:
            t = -x[2] / v[2]
    elif kind == tables.HULL:
        t = ray_hull(shapes, i, x, v, n)
    elif kind == tables.FIELD:
        t = ray_field(shapes, i, x, v, far, n)
    elif kind == tables.TRIANGLES:
        t = ray_mesh(shapes, i, x, v, far, n)
    else:
        t = RAY[kind](shapes.size[i], x, v, n)
    if not (t >= 0 and t < far):
        return NONE
    normal[:] = P[::4] * n[0] + P[1::4] * n[1] + P[2::4] * n[2]
    return t


@procedure
def ray_hull(shapes: Shapes, i: int, x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets a convex hull; sets the normal; ``NONE`` if it misses."""
    low = -NONE
    high = NONE
    into = shapes.data[i, 2]
    out = into
    for f in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
        face = shapes.face_normal[f]
        corner = shapes.vertex[shapes.face_vertex[shapes.face_first[f]]]
        height = (corner - x) @ face
        speed = face @ v
        if speed == 0.0:
            if height < 0:
                return NONE
        elif speed < 0:
            if height / speed > low:
                low = height / speed
                into = f
        elif height / speed < high:
            high = height / speed
            out = f
    t = entry(low, high)
    k = into if low >= 0 else out
    n[:] = shapes.face_normal[k]
    return t


@procedure
def ray_node(node: "float[6]", x: "float[3]", inverse: "float[3]", far: float) -> float:
    """Ray parameter where a ray enters a tree node's box before ``far``, else ``NONE``."""
    low = 0.0
    high = far
    for c in range(3):
        a = (node[c] - x[c]) * inverse[c]
        b = (node[3 + c] - x[c]) * inverse[c]
        low = max(low, min(a, b))
        high = min(high, max(a, b))
    return low if low <= high * (1 + 1e-14) + 1e-14 else NONE


@procedure
def ray_mesh(
    shapes: Shapes, i: int, x: "float[3]", v: "float[3]", far: float, n: "float[3]"
) -> float:
    """Ray parameter where a ray first meets a triangle mesh, by its tree of boxes; sets the normal.

    T. Möller, B. Trumbore, "Fast, minimum storage ray/triangle intersection", 1997.
    """
    stack = local("int", 128)
    enters = local("float", 128)
    inverse = local("float", 3)
    for c in range(3):  # of a direction within the box's planes a huge one, which is finite
        inverse[c] = 1 / v[c] if abs(v[c]) > 1e-200 else 1e200
    best = far
    met = -1
    stack[0] = shapes.data[i, 0]
    enters[0] = ray_node(shapes.node[stack[0]], x, inverse, best)
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if enters[depth] >= best:
            continue
        first = shapes.child[node, 0]
        if first >= 0:
            second = shapes.child[node, 1]
            one = ray_node(shapes.node[first], x, inverse, best)
            two = ray_node(shapes.node[second], x, inverse, best)
            if two < one:
                first, second = second, first
                one, two = two, one
            if two < best:
                stack[depth] = second
                enters[depth] = two
                depth += 1
            if one < best:
                stack[depth] = first
                enters[depth] = one
                depth += 1
            continue
        for k in range(-1 - first, -1 - first + shapes.child[node, 1]):
            a = shapes.vertex[shapes.triangle[k, 0]]
            e = shapes.vertex[shapes.triangle[k, 1]] - a
            f = shapes.vertex[shapes.triangle[k, 2]] - a
            m = cross(v, f)
            det = e @ m
            if det == 0.0:
                continue
            s = x - a
            y = (s @ m) / det
            if y < -1e-12 or y > 1 + 1e-12:
                continue
            w = cross(s, e)
            z = (w @ v) / det
            t = (f @ w) / det
            inside = z >= -1e-12 and y + z <= 1 + 1e-12
            if inside and t >= 0 and t < best:
                best = t
                met = k
    if met < 0:
        return NONE
    n[:] = shapes.triangle_normal[met]
    return best


@procedure
def ray_field(
    shapes: Shapes, i: int, x: "float[3]", v: "float[3]", far: float, n: "float[3]"
) -> float:
    """Ray parameter where a ray first meets a height field, by sampling and root finding."""
    low = 0.0
    high = far
    box = shapes.box[i]
    for c in range(3):
        if v[c] == 0.0:
            if abs(x[c] - box[c]) > box[3 + c] and c < 2:
                return NONE
        elif c < 2 or box[5] > 0:
            reach = box[3 + c] * (1 + 1e-9)
            a = (box[c] - reach - x[c]) / v[c]
            b = (box[c] + reach - x[c]) / v[c]
            low = max(low, min(a, b))
            high = min(high, max(a, b))
    if low > high:
        return NONE
    across = sqrt(v[0] * v[0] + v[1] * v[1])
    start = low
    before = x[2] + low * v[2] - height_at(shapes, i, x[0] + low * v[0], x[1] + low * v[1])
    t = NONE
    if across * (high - low) <= 1e-12 or high > 1e200:
        # straight down, or a plain ground
        if v[2] == 0.0:
            return NONE
        t = low - before / v[2]
    else:
        count = 1 + int(across * (high - low) / (spacing(shapes, i) / 4))
        step = (high - low) / count
        for k in range(1, count + 1):
            end = low + k * step
            after = x[2] + end * v[2] - height_at(shapes, i, x[0] + end * v[0], x[1] + end * v[1])
            if before == 0.0 or before * after <= 0:
                t = root_between(shapes, i, x, v, start, end, before, after)
                break
            before = after
            start = end
    if t >= NONE or t < 0:
        return NONE
    s = local("float", 6)
    ground(shapes, i, x[0] + t * v[0], x[1] + t * v[1], s)
    length = sqrt(1 + s[1] * s[1] + s[2] * s[2])
    n[:] = vector(-s[1] / length, -s[2] / length, 1 / length)
    return t


@procedure
def root_between(
    shapes: Shapes,
    i: int,
    x: "float[3]",
    v: "float[3]",
    a: float,
    b: float,
    fa: float,
    fb: float,
) -> float:
    """Root of a ray's height above a height field between parameters a, b (Illinois method)."""
    side = 0
    t = a
    for _ in range(100):
        if fa == fb:
            return a
        t = (a * fb - b * fa) / (fb - fa)
        if not (t > a and t < b):
            t = (a + b) / 2
        f = x[2] + t * v[2] - height_at(shapes, i, x[0] + t * v[0], x[1] + t * v[1])
        if f == 0.0 or b - a <= 4e-16 * (abs(a) + abs(b)):
            return t
        if f * fb > 0:
            b = t
            fb = f
            if side == -1:
                fa = fa / 2
            side = -1
        else:
            a = t
            fa = f
            if side == 1:
                fb = fb / 2
            side = 1
    return t
