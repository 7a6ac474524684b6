"""A plane (solid below, its z axis upwards) against convex shapes.

Each narrow phase ``plane_x(shapes, i, j, margin, touch, n)`` appends the points of shape j within
``margin`` of the plane i to ``touch``, after n others, and returns how many there are then.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, vector, view
from kinetree.contact.collision.clipping import put
from kinetree.contact.collision.support import farthest_vertex, support_face
from kinetree.contact.collision.tables import BALL, Shapes, Touch

_UPRIGHT = 1e-8  # sine of the tilt below which the lowest point of a rim is left to rounding
_LEVEL = 0.2  # sine of the tilt up to which a face or edge may arrive as a whole
_STEEP, _STEEPER = 1e3, 5e3  # one over tilts [rad] after which corners may be the lowest
_TURN, _WIDE = 4.0, 1.0  # the same for turns within a step, and for what is round and deep


@procedure
def height_over(shapes: Shapes, i: int, j: int, up: "float[3]", m: "float[3]") -> float:
    """Height of shape j's origin above plane i; sets the plane's normal, in the world and in j."""
    p, q = shapes.pose[i], shapes.pose[j]
    up[:] = p[2::4]
    m[:] = up[0] * q[:3] + up[1] * q[4:7] + up[2] * q[8:11]
    return up @ (q[3::4] - p[3::4])


@procedure
def put_above(
    pose: "float[12]",
    x: "float[3]",
    up: "float[3]",
    gap: float,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Append the contact of a plane with point x of a shape, ``gap`` above it; new count."""
    at = pose[3::4] + pose[::4] * x[0] + pose[1::4] * x[1] + pose[2::4] * x[2] - gap / 2 * up
    return put(touch, n, at, up, gap, feature)


@procedure
def plane_sphere(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contact of a plane and a ball, if within ``margin``; returns the new count."""
    p, q, radius = shapes.pose[i], shapes.pose[j], shapes.size[j, 0]
    up = vector(p[2], p[6], p[10])
    gap = up @ (q[3::4] - p[3::4]) - radius
    if gap > margin:
        return n
    h = radius + gap / 2
    return put(touch, n, q[3::4] - h * up, up, gap, 0)


@procedure
def plane_capsule(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append up to two contacts of a plane and a capsule, one for each end; new count."""
    q, radius, half = shapes.pose[j], shapes.size[j, 0], shapes.size[j, 1]
    up, m = local("float", 2, 3)
    height = height_over(shapes, i, j, up, m)
    for k in range(2):
        along = half if k == 0 else -half
        gap = height + along * m[2] - radius
        if gap <= margin:
            h = radius + gap / 2
            n = put(touch, n, q[3::4] + along * q[2::4] - h * up, up, gap, k)
    return n


@procedure
def plane_box(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of a plane and a box: corners within the margin, at most four; new count."""
    q, half = shapes.pose[j], shapes.size[j]
    up, m = local("float", 2, 3)
    height = height_over(shapes, i, j, up, m)
    x, y, z = m[0] * half[0], m[1] * half[1], m[2] * half[2]
    if height - abs(x) - abs(y) - abs(z) > margin:
        return n
    near = 0
    for c in range(8):
        rise = (x if c & 1 else -x) + (y if c & 2 else -y) + (z if c & 4 else -z)
        if height + rise <= margin:
            near += 1
    bit, side = 0, 0
    if near > 4:  # c & bit == side on the face whose normal points downwards most
        axis = 0
        for k in range(1, 3):
            if abs(m[k]) > abs(m[axis]):
                axis = k
        bit = 1 << axis
        side = 0 if m[axis] > 0 else bit
    for c in range(8):
        rise = (x if c & 1 else -x) + (y if c & 2 else -y) + (z if c & 4 else -z)
        if height + rise <= margin and (c & bit) == side:
            corner = vector(1.0 if c & 1 else -1.0, 1.0 if c & 2 else -1.0, 1.0 if c & 4 else -1.0)
            feature = (
                (0 if c & 1 else 4) + (0 if c & 2 else 2) + (0 if c & 4 else 1)
            )  # round_points
            n = put_above(q, corner * half, up, height + rise, touch, n, feature)
    return n


@procedure
def plane_cylinder(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append up to four contacts of a plane and a cylinder's rims; returns the new count.

    A rolling cylinder or disc touches exactly where it should. Four points, a quarter of the rim
    apart, stand for the disc that an upright cylinder rests on, RBDA Fig. 11.7.
    """
    q, radius, half = shapes.pose[j], shapes.size[j, 0], shapes.size[j, 1]
    up, m = local("float", 2, 3)
    height = height_over(shapes, i, j, up, m)
    sine = sqrt(m[0] * m[0] + m[1] * m[1])
    drop, rise = radius * sine, half * abs(m[2])
    if height - drop - rise > margin:
        return n
    x, y = radius, 0.0  # of the lowest point of either rim
    if sine > _UPRIGHT:
        x = -radius * m[0] / sine
        y = -radius * m[1] / sine
    low = half if m[2] < 0 else -half
    end = 4 if m[2] < 0 else 0
    if sine > abs(m[2]):
        for k in range(2):
            z = half if k == 1 else -half
            gap = height - drop + z * m[2]
            if gap <= margin:
                n = put_above(q, vector(x, y, z), up, gap, touch, n, 4 * k)
        return n
    for k in range(4):
        gap = height - rise + (m[0] * x + m[1] * y)
        if gap <= margin:
            n = put_above(q, vector(x, y, low), up, gap, touch, n, end + k)
        turned = x
        x = -y
        y = turned
    return n


@procedure
def plane_ellipsoid(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contact of a plane and an ellipsoid, if within ``margin``; new count."""
    radii = shapes.size[j]
    up, m = local("float", 2, 3)
    height = height_over(shapes, i, j, up, m)
    x = radii * m
    drop = sqrt(x @ x)
    gap = height - drop
    if gap > margin:
        return n
    if drop > 0:
        x[:] = -radii * x / drop
    return put_above(shapes.pose[j], x, up, gap, touch, n, 0)


@procedure
def plane_convex(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of a plane and a solid's lowest feature, at most four; new count.

    Of the corners of a face there are four at most, a quarter of it apart, the lowest one first.
    """
    corners = local("float", 6, 3)
    face = local("float", 16, 3)
    o, down = local("float", 2, 3)
    p = shapes.pose[i]
    o[:] = p[3::4]
    down[:] = -p[2::4]
    count = support_face(shapes, j, corners, o, down, _LEVEL, face)
    first = 0
    if count > 2:
        for k in range(1, count):
            if face[k] @ down > face[first] @ down:
                first = k
    step = (count + 3) // 4
    for k in range(0, count, 1):
        if k % step == 0:
            at = (first + k) % count
            gap = -(face[at] @ down)
            if gap <= margin:
                n = put(touch, n, face[at] + p[3::4] + gap / 2 * down, -down, gap, at)
    return n


@procedure
def plane_hull(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of a plane and a hull: corners within the margin, at most eight; new count.

    Four are the lowest after a tilt by a thousandth of a radian: those may arrive next. Four are
    after a tilt that is five times smaller, in the directions between: what the hull stands on,
    such as the sole of a foot with many corners that are nearly level. If one of those were left
    out, the hull would tilt onto it, and back in the next step. Where fewer than four are found
    that way, others, up to eight, are the lowest after tilts by 1/4 rad and half a right angle.
    """
    first = shapes.data[j, 0]
    up, m = local("float", 2, 3)
    height = height_over(shapes, i, j, up, m)
    limit = margin - height
    lowest = farthest_vertex(shapes, j, -m[0], -m[1], -m[2], -1)
    if shapes.vertex[lowest] @ m > limit:
        return n
    chosen = local("int", 16)
    near = corners_below(shapes, j, m, limit, chosen)
    if near > 8:
        spread_corners(shapes, j, m, limit, _STEEP, _STEEPER, lowest, chosen)
        different = 0
        for k in range(8):
            again = False
            for l in range(k):
                again = again or chosen[l] == chosen[k]
            if not again:
                chosen[different] = chosen[k]
                different += 1
        near = different
        if different < 4:  # round below
            more = view(chosen, different)
            spread_corners(shapes, j, m, limit, _TURN, _WIDE, lowest, more)
            near += 8
    most = n + 8
    for k in range(near):
        v = chosen[k]
        twice = False
        for l in range(k):
            twice = twice or chosen[l] == v
        if not twice and n < most:
            c = shapes.vertex[v]
            gap = height + m @ c
            n = put_above(shapes.pose[j], c, up, gap, touch, n, v - first)
    return n


@procedure
def corners_below(shapes: Shapes, j: int, up: "float[3]", limit: float, chosen: "int[:]") -> int:
    """Numbers of hull corners below a height, in order; count, nine if more than eight."""
    first, count = shapes.data[j, 0], shapes.data[j, 1]
    near = 0
    for n in range(0, count, BALL):
        ball = shapes.ball[shapes.firsts[j, 1] + n // BALL]
        if ball[:3] @ up - ball[3] > limit:
            continue
        for k in range(first + n, first + min(n + BALL, count)):
            v = first + shapes.cluster[k]
            if shapes.vertex[v] @ up <= limit:
                chosen[near] = v
                near += 1
                if near == 9:
                    return near
    for k in range(1, near):
        v = chosen[k]
        l = k
        while l > 0 and chosen[l - 1] > v:
            chosen[l] = chosen[l - 1]
            l -= 1
        chosen[l] = v
    return near


@procedure
def spread_corners(
    shapes: Shapes,
    j: int,
    up: "float[3]",
    limit: float,
    steep: float,
    steeper: float,
    lowest: int,
    chosen: "int[:]",
) -> None:
    """Choose eight hull corners below a height: the lowest ones after small tilts all around.

    Four after tilts by one over ``steep`` [rad], four, half-way between, by one over ``steeper``.
    ``lowest`` is one of the lowest without a tilt.
    """
    # The axis that is most level; turned by an odd angle, so that corners seldom tie.
    k = 0
    for l in range(1, 3):
        if abs(up[l]) < abs(up[k]):
            k = l
    length = sqrt(1.0 - up[k] * up[k])
    u = local("float", 3)
    for l in range(3):
        u[l] = ((1.0 if l == k else 0.0) - up[k] * up[l]) / length
    w = cross(up, u)
    way = local("float", 8, 3)
    way[0] = 0.9 * u + 0.43 * w
    way[1] = 0.9 * w - 0.43 * u
    way[4] = 0.7071 * (way[0] + way[1])
    way[5] = 0.7071 * (way[1] - way[0])
    for e in range(0, 8, 4):
        slope = (steep if e == 0 else steeper) * up
        way[e + 2] = -way[e] - slope
        way[e + 3] = -way[e + 1] - slope
        way[e] -= slope
        way[e + 1] -= slope
    for e in range(8):
        chosen[e] = farthest_vertex(shapes, j, way[e, 0], way[e, 1], way[e, 2], lowest)
        if shapes.vertex[chosen[e]] @ up > limit:
            farthest_below(shapes, j, way, up, limit, lowest, chosen)
            return


@procedure
def farthest_below(
    shapes: Shapes,
    j: int,
    way: "float[8, 3]",
    up: "float[3]",
    limit: float,
    lowest: int,
    chosen: "int[:]",
) -> None:
    """Choose the hull corners farthest along eight directions, of those below a height."""
    first, count = shapes.data[j, 0], shapes.data[j, 1]
    high, size = local("float", 2, 8)
    for e in range(8):
        chosen[e] = lowest
        high[e] = shapes.vertex[lowest] @ way[e]
        size[e] = sqrt(way[e] @ way[e])
    for n in range(0, count, BALL):
        ball = shapes.ball[shapes.firsts[j, 1] + n // BALL]
        if ball[:3] @ up - ball[3] > limit:
            continue
        none = True
        for e in range(8):
            none = none and ball[:3] @ way[e] + size[e] * ball[3] <= high[e]
        if none:
            continue
        for k in range(first + n, first + min(n + BALL, count)):
            v = first + shapes.cluster[k]
            corner = shapes.vertex[v]
            if corner @ up <= limit:
                for e in range(8):
                    along = corner @ way[e]
                    if along > high[e]:
                        high[e] = along
                        chosen[e] = v
