"""Convex shapes on height fields: corners, edges, rims, faces and round sides that may touch."""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.fields import (
    BALL,
    FACE,
    ROUND,
    SAMPLES,
    along_curve,
    height_at,
    sample_ground,
    settle,
    spacing,
)
from kinetree.contact.collision.meshes import spread, turn, without_doubles
from kinetree.contact.collision.support import out_of_shape
from kinetree.contact.collision.tables import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    SPHERE,
    Shapes,
    Touch,
)

_ROOM = 40  # points after which patches are reduced
_MOST = 16  # points of a pair
_LEANS = 1e-4  # sine of the angle by which normals of a cylinder's side may miss a right angle


@procedure
def corner_foot(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    x: float,
    y: float,
    z: float,
    size: float,
    margin: float,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """The contact of a corner, given in the shape."""
    par = local("float", 16)
    for c in range(3):
        par[c] = L[4 * c] * x + L[4 * c + 1] * y + L[4 * c + 2] * z + L[4 * c + 3]
    for c in range(3, 7):
        par[c] = 0.0
    top = shapes.box[j, 2] + shapes.box[j, 5]
    if par[2] > top + margin:
        return n
    return settle(
        shapes, i, L, j, ROUND, par, par[0], par[1], 1e300, size, margin, touch, n, feature
    )


@procedure
def edge_feet(
    shapes: Shapes,
    j: int,
    L: "float[12]",
    a: "float[3]",
    b: "float[3]",
    size: float,
    margin: float,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Contacts of an edge between two corners, given in the shape."""
    o = local("float", 3)
    p = local("float", 3)
    q = local("float", 3)
    curve = local("float", 9)
    for c in range(3):
        o[c] = 0.0
    out_of_shape(L, o, a[0], a[1], a[2], p)
    out_of_shape(L, o, b[0], b[1], b[2], q)
    if min(p[2], q[2]) > shapes.box[j, 2] + shapes.box[j, 5] + margin:
        return n
    for c in range(3):
        curve[c] = p[c]
        curve[3 + c] = q[c] - p[c]
    return along_curve(shapes, j, False, curve, size, margin, touch, n, feature)


@procedure
def face_feet(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    corner: "float[3]",
    f: "float[3]",
    low: "float[2]",
    high: "float[2]",
    size: float,
    margin: float,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Peaks of the ground against a face, given by a corner and its normal in the field."""
    par = local("float", 16)
    for c in range(3):
        par[c] = corner[c]
        par[3 + c] = f[c]
    limit = margin + 2 * spacing(shapes, j) / SAMPLES
    return sample_ground(
        shapes, i, L, j, FACE, par, low, high, limit, size, margin, touch, n, feature
    )


@procedure
def round_feet(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    bottom: float,
    top: float,
    size: float,
    margin: float,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Contacts of what is round about the part of the shape's axis from ``bottom`` to ``top``."""
    par = local("float", 16)
    low = local("float", 2)
    high = local("float", 2)
    radius = shapes.size[i, 0]
    below = 0.0
    for c in range(3):
        par[c] = L[4 * c + 2] * bottom + L[4 * c + 3]
        par[3 + c] = L[4 * c + 2] * (top - bottom)
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
    return sample_ground(
        shapes, i, L, j, ROUND, par, low, high, limit, size, margin, touch, n, feature
    )


@procedure
def field_pair(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Points where a convex shape i is within ``margin`` of the height field j."""
    P = shapes.pose[i]
    Q = shapes.pose[j]
    L = local("float", 12)
    for r in range(3):
        for c in range(4):
            L[4 * r + c] = 0.0
            for e in range(3):
                x = P[4 * e + c] - (Q[4 * e + 3] if c == 3 else 0.0)
                L[4 * r + c] += Q[4 * e + r] * x
    kind = shapes.kind[i]
    half = shapes.size[i]
    size = shapes.radius[i] + 2 * max(shapes.size[j, 0], shapes.size[j, 1])
    start = n
    if kind == SPHERE:
        n = round_feet(shapes, i, L, j, 0.0, 0.0, size * size, margin, touch, n, 0)
    elif kind == CAPSULE:
        n = round_feet(shapes, i, L, j, -half[1], half[1], size * size, margin, touch, n, 0)
        n = round_feet(shapes, i, L, j, -half[1], -half[1], size * size, margin, touch, n, 1 << 20)
        n = round_feet(shapes, i, L, j, half[1], half[1], size * size, margin, touch, n, 2 << 20)
    elif kind == ELLIPSOID:
        n = ellipsoid_feet(shapes, i, L, j, size, margin, touch, n)
    elif kind == CYLINDER:
        n = cylinder_feet(shapes, i, L, j, size, margin, touch, n)
    elif kind == BOX:
        n = box_feet(shapes, i, L, j, size, margin, touch, n)
    elif kind == HULL:
        n = hull_feet(shapes, i, L, j, size, margin, touch, n)
    n = without_doubles(touch, start, start, n, 1e-9)
    return spread(touch, start, n, _MOST)


@procedure
def ellipsoid_feet(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    size: float,
    margin: float,
    touch: Touch,
    n: int,
) -> int:
    """Contacts of an ellipsoid."""
    par = local("float", 16)
    low = local("float", 2)
    high = local("float", 2)
    for c in range(3):
        par[c] = L[4 * c + 3]
        for r in range(3):
            par[3 + 3 * c + r] = L[4 * c + r]
        par[12 + c] = shapes.size[i, c] * shapes.size[i, c]
    below = abs(par[2] - height_at(shapes, j, par[0], par[1])) + 2 * spacing(shapes, j)
    for c in range(2):
        reach = 0.0
        for r in range(3):
            reach += L[4 * c + r] * L[4 * c + r] * par[12 + r]
        reach = sqrt(reach) + min(max(margin, 0.0), below)
        low[c] = par[c] - reach
        high[c] = par[c] + reach
    return sample_ground(
        shapes, i, L, j, BALL, par, low, high, 1e300, size * size, margin, touch, n, 0
    )


@procedure
def cylinder_feet(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    size: float,
    margin: float,
    touch: Touch,
    n: int,
) -> int:
    """Contacts of a cylinder: its side, rims, four corners of each for when it stands, and ends."""
    r = shapes.size[i, 0]
    h = shapes.size[i, 1]
    first = n
    n = round_feet(shapes, i, L, j, -h, h, size * size, margin, touch, n, 0)
    # What is round about an end belongs to the rims: there the normal leans along the axis. Where
    # the foot is, rounding may hide: far from the origin, or where Newton's method ended early.
    kept = first
    P = shapes.pose[i]
    for k in range(first, n):
        along = 0.0
        for c in range(3):
            along += P[4 * c + 2] * touch.normal[k, c]
        if abs(along) < _LEANS:
            if kept < k:
                touch.point[kept] = touch.point[k]
                touch.normal[kept] = touch.normal[k]
                touch.gap[kept] = touch.gap[k]
                touch.feature[kept] = touch.feature[k]
            kept += 1
    n = kept
    curve = local("float", 9)
    f = local("float", 3)
    corner = local("float", 3)
    low = local("float", 2)
    high = local("float", 2)
    for end in range(2):
        z = h if end == 0 else -h
        for k in range(4):
            x = r if k == 0 else -r if k == 2 else 0.0
            y = r if k == 1 else -r if k == 3 else 0.0
            n = corner_foot(
                shapes, i, L, j, x, y, z, size, margin, touch, n, (1 << 20) + 4 * end + k
            )
        for c in range(3):
            curve[c] = L[4 * c + 2] * z + L[4 * c + 3]
            curve[3 + c] = L[4 * c] * r
            curve[6 + c] = L[4 * c + 1] * r
            corner[c] = curve[c]
            f[c] = L[4 * c + 2] if end == 0 else -L[4 * c + 2]
        n = along_curve(shapes, j, True, curve, size, margin, touch, n, (2 + end) << 20)
        if f[2] < 0:
            for c in range(2):
                reach = r * sqrt(max(1 - f[c] * f[c], 0.0))
                low[c] = corner[c] - reach
                high[c] = corner[c] + reach
            n = face_feet(
                shapes, i, L, j, corner, f, low, high, size, margin, touch, n, (4 + end) << 20
            )
    return n


@procedure
def box_feet(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    size: float,
    margin: float,
    touch: Touch,
    n: int,
) -> int:
    """Contacts of a box: corners, edges and faces of the sides that look down."""
    half = shapes.size[i]
    a = local("float", 3)
    b = local("float", 3)
    f = local("float", 3)
    corner = local("float", 3)
    low = local("float", 2)
    high = local("float", 2)
    for k in range(8):
        x = -half[0] if k % 2 == 1 else half[0]
        y = -half[1] if k // 2 % 2 == 1 else half[1]
        z = -half[2] if k // 4 == 1 else half[2]
        # corners of sides that look down
        if L[8] * x < 0 or L[9] * y < 0 or L[10] * z < 0:
            n = corner_foot(shapes, i, L, j, x, y, z, size, margin, touch, n, k)
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
                n = edge_feet(
                    shapes, j, L, a, b, size, margin, touch, n, (1 << 20) * (1 + 4 * k + side)
                )
        sign = 1.0 if L[8 + k] < 0 else -1.0
        if L[8 + k] != 0.0:
            for c in range(3):
                f[c] = sign * L[4 * c + k]
                corner[c] = L[4 * c + 3] + f[c] * half[k]
            for c in range(2):
                reach = abs(L[4 * c + u]) * half[u] + abs(L[4 * c + v]) * half[v]
                low[c] = corner[c] - reach
                high[c] = corner[c] + reach
            if corner[2] - half[u] - half[v] <= shapes.box[j, 2] + shapes.box[j, 5] + margin:
                n = face_feet(
                    shapes, i, L, j, corner, f, low, high, size, margin, touch, n, (20 + k) << 20
                )
    return n


@procedure
def hull_feet(
    shapes: Shapes,
    i: int,
    L: "float[12]",
    j: int,
    size: float,
    margin: float,
    touch: Touch,
    n: int,
) -> int:
    """Contacts of a hull, likewise."""
    o = local("float", 3)
    f = local("float", 3)
    p = local("float", 3)
    corner = local("float", 3)
    low = local("float", 2)
    high = local("float", 2)
    for c in range(3):
        o[c] = 0.0
    start = n
    first = shapes.data[i, 0]
    top = shapes.box[j, 2] + shapes.box[j, 5] + margin
    for k in range(first, first + shapes.data[i, 1]):
        v = shapes.vertex[k]
        n = corner_foot(shapes, i, L, j, v[0], v[1], v[2], size, margin, touch, n, k - first)
        if n - start > _ROOM:
            n = spread(touch, start, n, _ROOM)
    for g in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
        turn(L, shapes.face_normal[g], f)
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
            n = edge_feet(
                shapes, j, L, v, shapes.vertex[following], size, margin, touch, n,
                (1 << 20) * (1 + k - shapes.face_first[shapes.data[i, 2]]),
            )  # fmt: skip
            for c in range(3):
                corner[c] = p[c]
        if lowest <= top:
            n = face_feet(
                shapes, i, L, j, corner, f, low, high, size, margin, touch, n,
                (1 << 40) + (g << 20),
            )  # fmt: skip
        if n - start > _ROOM:
            n = without_doubles(touch, start, start, n, 1e-9)
            n = spread(touch, start, n, _ROOM)
    return n
