"""Convex shapes on height fields: corners, edges, rims, faces and round sides that may touch."""

from kinetree.codegen.procedures import ProcedureTable, local, procedure, sqrt, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.fields import (
    BALL,
    FACE,
    ROUND,
    SAMPLES,
    ShapePart,
    along_curve,
    height_at,
    sample_ground,
    settle,
    spacing,
)
from kinetree.contact.collision.frames import out_of_shape
from kinetree.contact.collision.meshes import to_world
from kinetree.contact.collision.spread import copy_touch, spread, without_doubles
from kinetree.contact.collision.tables import Shapes, Touch

_ROOM = 40  # points after which patches are reduced
_MOST = 16  # points of a pair
_LEANS = 1e-4  # sine of the angle by which normals of a cylinder's side may miss a right angle


@procedure
def top_of(shapes: Shapes, touch: Touch) -> float:
    """Highest z of a height field plus the contact margin, in the field's coordinates [m]."""
    box = shapes.box[touch.second]
    return box[2] + box[5] + touch.margin


@procedure
def corner_foot(
    shapes: Shapes, touch: Touch, L: "float[12]", x: float, y: float, z: float, feature: int
):
    """Append the contact of a height field with a corner (x, y, z) of a shape, if within margin."""
    part = local(ShapePart)
    par = part.par
    part.mode = ROUND
    par[:3] = L[::4] * x + L[1::4] * y + L[2::4] * z + L[3::4]
    for c in range(3, 7):
        par[c] = 0.0
    if par[2] <= top_of(shapes, touch):
        settle(shapes, touch, part, par[0], par[1], 1e300, feature)


@procedure
def edge_feet(
    shapes: Shapes, touch: Touch, L: "float[12]", a: "float[3]", b: "float[3]", feature: int
):
    """Append contacts of a height field with an edge between points a and b of a shape."""
    o, p, q = local("float", 3, 3)
    curve = local("float", 9)
    o[:] = 0.0
    out_of_shape(L, o, a[0], a[1], a[2], p)
    out_of_shape(L, o, b[0], b[1], b[2], q)
    if min(p[2], q[2]) > top_of(shapes, touch):
        return
    curve[:3] = p
    curve[3:6] = q - p
    along_curve(shapes, touch, False, curve, feature)


@procedure
def face_feet(
    shapes: Shapes,
    touch: Touch,
    L: "float[12]",
    corner: "float[3]",
    f: "float[3]",
    low: "float[2]",
    high: "float[2]",
    feature: int,
):
    """Append contacts of height-field peaks with a polyhedron's face, in field coordinates."""
    part = local(ShapePart)
    part.mode = FACE
    part.frame[:] = L
    part.par[:3] = corner
    part.par[3:6] = f
    limit = touch.margin + 2 * spacing(shapes, touch.second) / SAMPLES
    sample_ground(shapes, touch, part, low, high, limit, feature)


@procedure
def round_feet(
    shapes: Shapes, touch: Touch, L: "float[12]", bottom: float, top: float, feature: int
):
    """Append contacts of a height field with a ball swept along a part of a shape's z axis."""
    j = touch.second
    margin = touch.margin
    part = local(ShapePart)
    par = part.par
    part.mode = ROUND
    low, high = local("float", 2, 2)
    radius = shapes.size[touch.first, 0]
    par[:3] = L[2::4] * bottom + L[3::4]
    par[3:6] = L[2::4] * (top - bottom)
    par[6] = radius
    # nothing nearer is farther away than the ground straight below the core
    below = max(
        abs(par[2] - height_at(shapes, j, par[0], par[1])),
        abs(par[2] + par[5] - height_at(shapes, j, par[0] + par[3], par[1] + par[4])),
    )
    reach = min(radius + max(margin, 0.0), below + 2 * spacing(shapes, j))
    for c in range(2):
        low[c] = min(par[c], par[c] + par[3 + c]) - reach
        high[c] = max(par[c], par[c] + par[3 + c]) + reach
    limit = radius + margin + 2 * spacing(shapes, j) / SAMPLES
    sample_ground(shapes, touch, part, low, high, limit, feature)


@procedure
def sphere_feet(shapes: Shapes, touch: Touch, L: "float[12]", size: float):
    """Append the contacts of a ball with a height field."""
    round_feet(shapes, touch, L, 0.0, 0.0, 0)


@procedure
def capsule_feet(shapes: Shapes, touch: Touch, L: "float[12]", size: float):
    """Append the contacts of a capsule with a height field: side and both end balls."""
    half = shapes.size[touch.first, 1]
    round_feet(shapes, touch, L, -half, half, 0)
    round_feet(shapes, touch, L, -half, -half, 1 << 20)
    round_feet(shapes, touch, L, half, half, 2 << 20)


@procedure
def ellipsoid_feet(shapes: Shapes, touch: Touch, L: "float[12]", size: float):
    """Append the contacts of an ellipsoid with a height field."""
    i = touch.first
    j = touch.second
    part = local(ShapePart)
    par = part.par
    part.mode = BALL
    low, high = local("float", 2, 2)
    par[:3] = L[3::4]
    view(par, 3, 3, 3)[:] = view(L, 0, 3, 4)[:, :3]
    par[12:15] = shapes.size[i] * shapes.size[i]
    below = abs(par[2] - height_at(shapes, j, par[0], par[1])) + 2 * spacing(shapes, j)
    for c in range(2):
        row = view(L, 4 * c, 3)
        reach = sqrt((row * row) @ par[12:15]) + min(max(touch.margin, 0.0), below)
        low[c] = par[c] - reach
        high[c] = par[c] + reach
    sample_ground(shapes, touch, part, low, high, 1e300, 0)


@procedure
def cylinder_feet(shapes: Shapes, touch: Touch, L: "float[12]", size: float):
    """Append contacts of a cylinder with a height field: side, rims, rim corners and ends."""
    i = touch.first
    r = shapes.size[i, 0]
    h = shapes.size[i, 1]
    kept = touch.count
    first = kept
    round_feet(shapes, touch, L, -h, h, 0)
    # What is round about an end belongs to the rims: there the normal leans along the axis. Where
    # the foot is, rounding may hide: far from the origin, or where Newton's method ended early.
    P = shapes.pose[i]
    for k in range(first, touch.count):
        if abs(P[2::4] @ touch.normal[k]) < _LEANS:
            if kept < k:
                copy_touch(touch, k, kept)
            kept += 1
    touch.count = kept
    touch.size = size
    curve = local("float", 9)
    f, corner = local("float", 2, 3)
    low, high = local("float", 2, 2)
    for end in range(2):
        z = h if end == 0 else -h
        for k in range(4):
            x = r if k == 0 else -r if k == 2 else 0.0
            y = r if k == 1 else -r if k == 3 else 0.0
            corner_foot(shapes, touch, L, x, y, z, (1 << 20) + 4 * end + k)
        corner[:] = L[2::4] * z + L[3::4]
        curve[:3] = corner
        curve[3:6] = L[::4] * r
        curve[6:] = L[1::4] * r
        f[:] = (1.0 if end == 0 else -1.0) * L[2::4]
        along_curve(shapes, touch, True, curve, (2 + end) << 20)
        if f[2] < 0:
            for c in range(2):
                reach = r * sqrt(max(1 - f[c] * f[c], 0.0))
                low[c] = corner[c] - reach
                high[c] = corner[c] + reach
            face_feet(shapes, touch, L, corner, f, low, high, (4 + end) << 20)


@procedure
def box_feet(shapes: Shapes, touch: Touch, L: "float[12]", size: float):
    """Append contacts of a box with a height field: downward corners, edges and faces."""
    touch.size = size
    half = shapes.size[touch.first]
    a, b, f, corner = local("float", 4, 3)
    low, high = local("float", 2, 2)
    for k in range(8):
        x = -half[0] if k % 2 == 1 else half[0]
        y = -half[1] if k // 2 % 2 == 1 else half[1]
        z = -half[2] if k // 4 == 1 else half[2]
        # corners of sides that look down
        if L[8] * x < 0 or L[9] * y < 0 or L[10] * z < 0:
            corner_foot(shapes, touch, L, x, y, z, k)
    for k in range(3):
        u = (k + 1) % 3
        v = (k + 2) % 3
        for side in range(4):
            one = -half[u] if side % 2 == 1 else half[u]
            two = -half[v] if side // 2 == 1 else half[v]
            if L[8 + u] * one < 0 or L[8 + v] * two < 0:
                a[k] = -half[k]
                b[k] = half[k]
                a[u] = one
                b[u] = one
                a[v] = two
                b[v] = two
                edge_feet(shapes, touch, L, a, b, (1 << 20) * (1 + 4 * k + side))
        sign = 1.0 if L[8 + k] < 0 else -1.0
        if L[8 + k] != 0.0:
            f[:] = sign * view(L, 0, 3, 4)[:, k]
            corner[:] = L[3::4] + f * half[k]
            for c in range(2):
                reach = abs(L[4 * c + u]) * half[u] + abs(L[4 * c + v]) * half[v]
                low[c] = corner[c] - reach
                high[c] = corner[c] + reach
            if corner[2] - half[u] - half[v] <= top_of(shapes, touch):
                face_feet(shapes, touch, L, corner, f, low, high, (20 + k) << 20)


@procedure
def hull_feet(shapes: Shapes, touch: Touch, L: "float[12]", size: float):
    """Append contacts of a convex polyhedron with a height field: corners, edges and faces."""
    touch.size = size
    i = touch.first
    o, f, p, corner = local("float", 4, 3)
    low, high = local("float", 2, 2)
    o[:] = 0.0
    start = touch.count
    first = shapes.data[i, 0]
    for k in range(first, first + shapes.data[i, 1]):
        v = shapes.vertex[k]
        corner_foot(shapes, touch, L, v[0], v[1], v[2], k - first)
        if touch.count - start > _ROOM:
            touch.count = spread(touch, start, touch.count, _ROOM)
    for g in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
        to_world(L, shapes.face_normal[g], f)
        if f[2] >= 0:
            continue
        lowest = 1e300
        begin = shapes.face_first[g]
        end = shapes.face_first[g + 1]
        for k in range(begin, end):
            v = shapes.vertex[shapes.face_vertex[k]]
            out_of_shape(L, o, v[0], v[1], v[2], p)
            lowest = min(lowest, p[2])
            for c in range(2):
                low[c] = p[c] if k == begin else min(low[c], p[c])
                high[c] = p[c] if k == begin else max(high[c], p[c])
            following = shapes.face_vertex[k + 1 if k + 1 < end else begin]
            key = (1 << 20) * (1 + k - shapes.face_first[shapes.data[i, 2]])
            edge_feet(shapes, touch, L, v, shapes.vertex[following], key)
            corner[:] = p
        if lowest <= top_of(shapes, touch):
            face_feet(shapes, touch, L, corner, f, low, high, (1 << 40) + (g << 20))
        if touch.count - start > _ROOM:
            n = without_doubles(touch, start, start, touch.count, 1e-9)
            touch.count = spread(touch, start, n, _ROOM)


FEET = ProcedureTable(
    {
        tables.SPHERE: sphere_feet,
        tables.CAPSULE: capsule_feet,
        tables.BOX: box_feet,
        tables.CYLINDER: cylinder_feet,
        tables.ELLIPSOID: ellipsoid_feet,
    },
    hull_feet,
)
"""Contacts of convex shapes with height fields; other solids stand on them as polyhedra."""


@procedure
def field_pair(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contacts of convex shape i with height field j within ``margin``; new count."""
    P = shapes.pose[i]
    Q = shapes.pose[j]
    L = local("float", 12)
    R = view(Q, 0, 3, 4)[:, :3].T
    view(L, 0, 3, 4)[:, :3] = R @ view(P, 0, 3, 4)[:, :3]
    L[3::4] = R @ (P[3::4] - Q[3::4])
    size = shapes.radius[i] + 2 * max(shapes.size[j, 0], shapes.size[j, 1])
    start = n
    touch.first = i
    touch.second = j
    touch.margin = margin
    touch.count = n
    touch.size = size * size
    FEET[shapes.kind[i]](shapes, touch, L, size)
    n = without_doubles(touch, start, start, touch.count, 1e-9)
    return spread(touch, start, n, _MOST)
