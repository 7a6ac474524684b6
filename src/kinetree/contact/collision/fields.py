"""Height fields: bicubic splines, against all convex shapes and triangle meshes.

The ground is smooth, so that the normal of every contact is that of the ground. Above a foot
``g = (x, y, h)`` with the tangents ``t1 = (1, 0, hx)``, ``t2 = (0, 1, hy)`` and the upward vector
``N = (-hx, -hy, 1)`` a point ``p`` of the shape is nearest if

    corner          t1 · (p - g) = t2 · (p - g) = 0
    edge, rim       the same, and the curve is level there: N · dp/ds = 0
    face            its normal is that of the ground: t1 · f = t2 · f = 0
    ball, capsule   t1 · (k - g) = t2 · (k - g) = 0 with the point k of the core nearest to g;
                    likewise the side of a cylinder, away from its ends
    ellipsoid       t1 · (p - g) = t2 · (p - g) = 0 with p farthest along -N

A shape may be nearest in many places: a plank lies on two ridges, a ball in a ditch on both of its
sides. Clearances are sampled closer than the heights are, every local minimum of the samples is a
start, and Newton's method ends on the conditions. Two minima of which one is missed are within a
quarter of the spacing of the heights of each other. All is in coordinates of the field.
"""

from math import ceil, cos, sin

from kinetree.codegen.procedures import cross, local, procedure, sqrt, vector, view, workspace
from kinetree.contact.collision.clipping import put
from kinetree.contact.collision.frames import into_shape
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.meshes import to_world
from kinetree.contact.collision.tables import Shapes, Touch

SAMPLES = 4
"""Samples of the ground between two heights."""
_STEPS = 30
_DONE = 1e-11  # of the spacing: steps that end Newton's method
_MET = 1e-9  # of the size: conditions that count as met
_COLUMNS = 512
_RIM = 32  # samples of a rim at least
ROUND, FACE, BALL = 0, 1, 2
"""What the ground is sampled against: a core with a radius, a plane, an ellipsoid."""


@procedure
def contains_nothing(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Containment in a shape that is not a solid: none."""
    return False


CONTAINS = choice_of("contains", contains_nothing)


# --- the ground ----------------------------------------------------------------------------------


@procedure
def spline_weights(
    x: float, half: float, count: int, w: "float[4]", d: "float[4]", dd: "float[4]"
) -> int:
    """Four cubic B-spline weights and derivatives at ``x``; index of the first coefficient."""
    step = 2 * half / (count - 3)
    place = min(max((x + half) / step, 0.0), count - 3.0)
    first = min(int(place), count - 4)
    f = place - first
    g = 1 - f
    w[0] = g * g * g / 6
    w[1] = (4 - 6 * f * f + 3 * f * f * f) / 6
    w[2] = (4 - 6 * g * g + 3 * g * g * g) / 6
    w[3] = f * f * f / 6
    slope = 0.0 if abs(x) > half else 1 / step  # beyond the rectangle the ground is level
    d[0] = -g * g / 2 * slope
    d[1] = (3 * f * f - 4 * f) / 2 * slope
    d[2] = (4 * g - 3 * g * g) / 2 * slope
    d[3] = f * f / 2 * slope
    dd[0] = g * slope * slope
    dd[1] = (3 * f - 2) * slope * slope
    dd[2] = (3 * g - 2) * slope * slope
    dd[3] = f * slope * slope
    return first


@procedure
def ground(shapes: Shapes, j: int, x: float, y: float, s: "float[6]"):
    """Write height and derivatives by x, y, xx, xy, yy of height field j at (x, y)."""
    w, wx, wxx, v, vy, vyy = local("float", 6, 4)
    n = shapes.data[j, 2]
    row = spline_weights(x, shapes.size[j, 0], shapes.data[j, 1], w, wx, wxx)
    column = spline_weights(y, shapes.size[j, 1], n, v, vy, vyy)
    s[:] = 0.0
    for k in range(4):
        at = shapes.data[j, 0] + (row + k) * n + column
        a = 0.0
        b = 0.0
        c = 0.0
        for e in range(4):
            z = shapes.height[at + e]
            a += v[e] * z
            b += vy[e] * z
            c += vyy[e] * z
        s[0] += w[k] * a
        s[1] += wx[k] * a
        s[2] += w[k] * b
        s[3] += wxx[k] * a
        s[4] += wx[k] * b
        s[5] += w[k] * c


@procedure
def height_at(shapes: Shapes, j: int, x: float, y: float) -> float:
    """Height of height field j at (x, y), in its own frame [m]."""
    s = local("float", 6)
    ground(shapes, j, x, y, s)
    return s[0]


@procedure
def spacing(shapes: Shapes, j: int) -> float:
    """Smaller of the two grid spacings of height field j [m]."""
    return min(
        2 * shapes.size[j, 0] / (shapes.data[j, 1] - 3),
        2 * shapes.size[j, 1] / (shapes.data[j, 2] - 3),
    )


@procedure
def put_foot(
    shapes: Shapes, touch: Touch, x: float, y: float, p: "float[3]", radius: float, feature: int
):
    """Append the contact of a shape's point with the field at its foot (x, y), if within margin."""
    j = touch.second
    n = touch.count
    s = local("float", 6)
    normal = local("float", 3)
    ground(shapes, j, x, y, s)
    up = sqrt(1 + s[1] * s[1] + s[2] * s[2])
    d = vector(-s[1] / up, -s[2] / up, 1 / up)
    gap = d @ (p[:3] - vector(x, y, s[0])) - radius
    if not gap <= touch.margin or n >= 60:
        return
    Q = shapes.pose[j]
    to_world(Q, d, normal)
    e = vector(x, y, s[0]) + gap / 2 * d
    at = Q[::4] * e[0] + Q[1::4] * e[1] + Q[2::4] * e[2] + Q[3::4]
    touch.count = put(touch, n, at, -normal, gap, feature)


# --- what the ground is sampled against ----------------------------------------------------------
# ``par``: of a core its start, way and radius; of a plane a point and the outward normal of the
# shape; of an ellipsoid its centre, axes (rows of a matrix) and squares of its radii.


@workspace
class ShapePart:
    """Part of a convex shape that the ground is sampled against, in coordinates of the field.

    Attributes:
        mode: ``ROUND``, ``FACE`` or ``BALL``.
        par: numbers of the part, see above.
        frame: shape to field; of a ``FACE`` alone.
    """

    mode: int
    par: "float[16]"
    frame: "float[12]"


@procedure
def on_core(par: "float[16]", g: "float[3]", k: "float[3]") -> bool:
    """Nearest point of a core segment to ``g``; whether it is strictly between the ends."""
    square = par[3] * par[3] + par[4] * par[4] + par[5] * par[5]
    s = (g - par[:3]) @ par[3:6] / square if square > 0 else 0.0
    free = s > 0 and s < 1
    s = min(max(s, 0.0), 1.0)
    k[:] = par[:3] + s * par[3:6]
    return free


@procedure
def clearance_at(shapes: Shapes, j: int, mode: int, par: "float[16]", x: float, y: float) -> float:
    """Distance measure of the field at (x, y) from a face, rounded core or ellipsoid."""
    k = local("float", 3)
    g = vector(x, y, height_at(shapes, j, x, y))
    if mode == ROUND:
        on_core(par, g, k)
        d = k - g
        return sqrt(d @ d)
    if mode == FACE:
        return (g - par[:3]) @ par[3:6]
    total = 0.0
    a = view(par, 3, 3, 3).T @ (g - par[:3])
    for r in range(3):
        total += a[r] * a[r] / par[12 + r]
    return sqrt(total)


@procedure
def conditions(
    shapes: Shapes,
    j: int,
    mode: int,
    par: "float[16]",
    x: float,
    y: float,
    p: "float[3]",
    J: "float[4]",
) -> "(float, float)":
    """Two residuals, their 2x2 Jacobian, and a shape's point, for a foot of a height field."""
    s = local("float", 6)
    ground(shapes, j, x, y, s)
    g = vector(x, y, s[0])
    if mode == FACE:
        J[0] = par[5] * s[3]
        J[1] = par[5] * s[4]
        J[2] = J[1]
        J[3] = par[5] * s[5]
        p[:] = g - ((g - par[:3]) @ par[3:6]) * par[3:6]
        return par[3] + s[1] * par[5], par[4] + s[2] * par[5]
    free = False
    T = local("float", 3, 3)  # derivative of the point by the upward vector
    if mode == ROUND:
        free = on_core(par, g, p)
    else:
        d = par[3:6] * s[1] + par[6:9] * s[2] - par[9:12]
        length = sqrt((par[12:15] * d) @ d)
        q = par[12:15] * d / length
        p[:] = par[:3] + par[3:12:3] * q[0] + par[4:12:3] * q[1] + par[5:12:3] * q[2]
        for a in range(3):
            for b in range(3):
                T[a, b] = 0.0
                for r in range(3):
                    for e in range(3):
                        bend = (par[12 + r] if r == e else 0.0) - q[r] * q[e]
                        T[a, b] -= par[3 + 3 * a + r] * bend * par[3 + 3 * b + e] / length
    dz = p[2] - s[0]
    J[0] = s[3] * dz - 1 - s[1] * s[1]
    J[1] = s[4] * dz - s[1] * s[2]
    J[3] = s[5] * dz - 1 - s[2] * s[2]
    if free:
        square = par[3] * par[3] + par[4] * par[4] + par[5] * par[5]
        one = par[3] + s[1] * par[5]
        two = par[4] + s[2] * par[5]
        J[0] += one * one / square
        J[1] += one * two / square
        J[3] += two * two / square
    J[2] = J[1]
    if mode == BALL:
        # t · T · (-hxx, -hxy, 0) and so on
        x0 = T[0, 0] + s[1] * T[2, 0]
        x1 = T[0, 1] + s[1] * T[2, 1]
        y0 = T[1, 0] + s[2] * T[2, 0]
        y1 = T[1, 1] + s[2] * T[2, 1]
        J[0] -= x0 * s[3] + x1 * s[4]
        J[1] -= x0 * s[4] + x1 * s[5]
        J[2] -= y0 * s[3] + y1 * s[4]
        J[3] -= y0 * s[4] + y1 * s[5]
    elif J[0] >= 0 or J[0] * J[3] - J[1] * J[2] <= 0:
        # beyond the centre of curvature there is no minimum: go on without the curvature there
        J[0] = -1 - s[1] * s[1]
        J[1] = -s[1] * s[2]
        J[2] = J[1]
        J[3] = -1 - s[2] * s[2]
    return p[0] - x + s[1] * dz, p[1] - y + s[2] * dz


@procedure
def settle(
    shapes: Shapes, touch: Touch, part: ShapePart, x: float, y: float, reach: float, feature: int
):
    """Append the contact that Newton's method finds from (x, y), at most ``reach`` away."""
    mode, par = part.mode, part.par
    j = touch.second
    p = local("float", 3)
    J = local("float", 4)
    longest = spacing(shapes, j)
    u = x
    v = y
    for _ in range(_STEPS):
        a, b = conditions(shapes, j, mode, par, u, v, p, J)
        det = J[0] * J[3] - J[1] * J[2]
        if abs(det) <= 1e-24 * (J[0] * J[0] + J[3] * J[3]):
            break
        dx = (J[1] * b - J[3] * a) / det
        dy = (J[2] * a - J[0] * b) / det
        step = max(abs(dx), abs(dy)) / longest
        if step > 1:
            dx = dx / step
            dy = dy / step
        u += dx
        v += dy
        if step <= _DONE:
            break
    a, b = conditions(shapes, j, mode, par, u, v, p, J)
    near = abs(u - x) <= reach and abs(v - y) <= reach
    met = abs(a) + abs(b) <= _MET * (1.0 if mode == FACE else touch.size)
    if not (near and met):
        if mode == FACE:
            return
        u = x
        v = y
        conditions(shapes, j, mode, par, u, v, p, J)
    if mode == FACE:
        s = local("float", 6)
        ground(shapes, j, u, v, s)
        # a peak: curved down both ways, unlike a ridge, which the edges of the face touch
        half = (s[3] + s[5]) / 2
        away = sqrt((s[3] - s[5]) * (s[3] - s[5]) / 4 + s[4] * s[4])
        if half + away >= -1e-9 / touch.size or not within_shape(
            shapes, touch.first, part.frame, p
        ):
            return
    put_foot(shapes, touch, u, v, p, par[6] if mode == ROUND else 0.0, feature)


@procedure
def within_shape(shapes: Shapes, i: int, L: "float[12]", p: "float[3]") -> bool:
    """Whether a point in the height field's coordinates is inside a solid or hull."""
    x = local("float", 3)
    d = p - L[3::4]
    into_shape(L, d, x)
    tiny = 1e-9 * shapes.radius[i]
    if shapes.data[i, 3] == 0:
        return CONTAINS[shapes.kind[i]](shapes.size[i], x, tiny)
    for f in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
        corner = shapes.vertex[shapes.face_vertex[shapes.face_first[f]]]
        if (x - corner) @ shapes.face_normal[f] > tiny:
            return False
    return True


@procedure
def sample_ground(
    shapes: Shapes,
    touch: Touch,
    part: ShapePart,
    low: "float[2]",
    high: "float[2]",
    limit: float,
    feature: int,
):
    """Append contacts at every local minimum of the clearance on a grid over a rectangle."""
    j = touch.second
    fine = spacing(shapes, j) / SAMPLES
    rows = 3 + ceil((high[0] - low[0]) / fine)
    columns = min(3 + ceil((high[1] - low[1]) / fine), _COLUMNS)
    value = local("float", 3, 512)
    dx = (high[0] - low[0]) / (rows - 1)
    dy = (high[1] - low[1]) / (columns - 1)
    level = 1e-12 * touch.size
    reach = 3 * spacing(shapes, j)
    for r in range(rows):
        x = low[0] + r * dx
        now = r % 3
        for c in range(columns):
            value[now, c] = clearance_at(shapes, j, part.mode, part.par, x, low[1] + c * dy)
        if r < 2:
            continue
        middle = (r - 1) % 3
        for c in range(1, columns - 1):
            here = value[middle, c]
            if here > limit:
                continue
            least = True
            most = here
            for a in range(3):
                for b in range(3):
                    around = value[a, c - 1 + b]
                    least = least and here <= around
                    most = max(most, around)
            if least and most - here > level:
                key = feature + c + (r - 1) * _COLUMNS
                settle(shapes, touch, part, x - dx, low[1] + c * dy, reach, key)


# --- edges and rims ------------------------------------------------------------------------------
# ``curve``: of an edge its start and way, by a parameter from 0 to 1; of a rim its centre and two
# radii at right angles, by an angle.


@procedure
def on_curve(rim: bool, curve: "float[9]", s: float, p: "float[3]"):
    """Write the point of an edge (line) or rim (ellipse) at parameter ``s``."""
    a = cos(s) if rim else s
    b = sin(s) if rim else 0.0
    p[:] = curve[:3] + a * curve[3:6]
    if rim:
        p[:] += b * curve[6:]


@procedure
def curve_clearance(shapes: Shapes, j: int, rim: bool, curve: "float[9]", s: float) -> float:
    """Approximate distance of a curve's point at ``s`` above a height field, negative below."""
    p = local("float", 3)
    g = local("float", 6)
    on_curve(rim, curve, s, p)
    ground(shapes, j, p[0], p[1], g)
    return (p[2] - g[0]) / sqrt(1 + g[1] * g[1] + g[2] * g[2])


@procedure
def solve_three(J: "float[3, 3]", r: "float[3]", tiny: float, step: "float[3]") -> bool:
    """Solve J step = -r by Cramer's rule; False when the determinant is at most ``tiny``."""
    one = cross(J[1], J[2])
    det = J[0] @ one
    if abs(det) <= tiny:
        return False
    two = cross(J[2], J[0])
    three = cross(J[0], J[1])
    for c in range(3):
        step[c] = -(one[c] * r[0] + two[c] * r[1] + three[c] * r[2]) / det
    return True


@procedure
def settle_curve(
    shapes: Shapes,
    touch: Touch,
    rim: bool,
    curve: "float[9]",
    start: float,
    apart: float,
    feature: int,
):
    """Append the contact of an edge or rim that Newton's method finds from parameter ``start``."""
    j = touch.second
    size = touch.size
    p, q, r, move = local("float", 4, 3)
    g = local("float", 6)
    J = local("float", 3, 3)
    longest = spacing(shapes, j)
    s = start
    on_curve(rim, curve, s, p)
    x = p[0]
    y = p[1]
    met = False
    for _ in range(_STEPS):
        on_curve(rim, curve, s, p)
        ground(shapes, j, x, y, g)
        if rim:
            on_curve(rim, curve, s + 1.5707963267948966, q)
        for c in range(3):
            q[c] = q[c] - curve[c] if rim else curve[3 + c]
        # the second derivative of a rim leads back to its centre
        bx = curve[0] - p[0] if rim else 0.0
        by = curve[1] - p[1] if rim else 0.0
        bz = curve[2] - p[2] if rim else 0.0
        dz = p[2] - g[0]
        r[:] = vector(p[0] - x + g[1] * dz, p[1] - y + g[2] * dz, q[2] - g[1] * q[0] - g[2] * q[1])
        met = abs(r[0]) + abs(r[1]) + abs(r[2]) <= _MET * size
        J[0, 0] = g[3] * dz - 1 - g[1] * g[1]
        J[0, 1] = g[4] * dz - g[1] * g[2]
        J[1, 0] = J[0, 1]
        J[1, 1] = g[5] * dz - 1 - g[2] * g[2]
        J[0, 2] = q[0] + g[1] * q[2]
        J[1, 2] = q[1] + g[2] * q[2]
        J[2, 0] = -g[3] * q[0] - g[4] * q[1]
        J[2, 1] = -g[4] * q[0] - g[5] * q[1]
        J[2, 2] = bz - g[1] * bx - g[2] * by
        if not solve_three(J, r, 1e-24 * size, move):
            break
        dx, dy, ds = move[0], move[1], move[2]
        step = max(max(abs(dx), abs(dy)) / longest, abs(ds) / (2 * apart))
        if step > 1:
            dx = dx / step
            dy = dy / step
            ds = ds / step
        x += dx
        y += dy
        s += ds
        if step <= _DONE:
            break
    inside = rim or (s > 0 and s < 1)
    if not (met and inside and abs(s - start) <= 2 * apart):
        s = start  # a point of the curve, if not the nearest one
        on_curve(rim, curve, s, p)
        x = p[0]
        y = p[1]
    on_curve(rim, curve, s, p)
    put_foot(shapes, touch, x, y, p, 0.0, feature)


@procedure
def along_curve(shapes: Shapes, touch: Touch, rim: bool, curve: "float[9]", feature: int):
    """Append contacts of a height field with an edge, away from its ends, or with a rim."""
    j = touch.second
    fine = spacing(shapes, j) / SAMPLES
    length = sqrt(curve[3] * curve[3] + curve[4] * curve[4] + curve[5] * curve[5])
    count = 3 + ceil(length / fine)
    apart = 1.0 / (count - 1)
    if rim:
        count = max(_RIM, ceil(6.283185307179586 * length / fine))
        apart = 6.283185307179586 / count
    before = curve_clearance(shapes, j, rim, curve, -apart if rim else 0.0)
    here = curve_clearance(shapes, j, rim, curve, 0.0 if rim else apart)
    first = 0 if rim else 1
    for k in range(first, count if rim else count - 1):
        after = curve_clearance(shapes, j, rim, curve, (k + 1) * apart)
        lowest = here <= before and here <= after and max(before, after) - here > 1e-12 * touch.size
        if lowest and here <= touch.margin + 2 * fine:
            settle_curve(shapes, touch, rim, curve, k * apart, apart, feature + k)
        before = here
        here = after
