"""Spheres and capsules against each other, boxes and cylinders.

A sphere is its centre and a radius, a capsule a segment and a radius: what is nearest to them is
what is nearest to the centre or the segment. Each narrow phase ``x_y(shapes, i, j, margin, touch,
n)`` appends the points within ``margin`` to ``touch``, after n others, and returns how many there
are then; normals go from i to j.
"""

from kinetree.codegen.procedures import Rounding, cross, local, procedure, sqrt, vector, workspace
from kinetree.contact.collision.clipping import EXACT, NEAR, put
from kinetree.contact.collision.tables import Shapes, Touch

_TINY = Rounding(1e-290, single=1e-36)  # [m^2] where a distance has no direction
_SAME = Rounding(1e-24, single=1e-12)  # [radii^2] where its direction is lost in rounding
_PARALLEL = Rounding(1e-12, single=1e-6)  # squared sine between capsules that lie along each other
_ALONG = 0.01  # squared sine below which the ends of an overlap may touch beside the nearest point
_APART = 1e-3  # [lengths of the overlap] between points that are not the same


@workspace
class Balls:
    """Two spheres.

    Attributes:
        centre: of the first, in the world.
        way: from there to the centre of the second.
        radius: of both.
        fallback: unit normal where the centres are the same.
    """

    centre: "float[3]"
    way: "float[3]"
    radius: "float[2]"
    fallback: "float[3]"


@procedure
def put_balls(balls: Balls, margin: float, touch: Touch, n: int, feature: int) -> int:
    """Append the contact of two spheres, if they are within ``margin``; returns the new count."""
    d, ri, rj = balls.way, balls.radius[0], balls.radius[1]
    square = d @ d
    reach = ri + rj + margin
    if reach < 0 or square > reach * reach:
        return n
    normal = local("float", 3)
    length = sqrt(square)
    if square > _TINY + _SAME * (ri + rj) * (ri + rj):
        normal[:] = d / length
    else:
        length = d @ balls.fallback  # the side is lost, too
        normal[:] = balls.fallback
    h = (ri + length - rj) / 2
    return put(touch, n, balls.centre + h * normal, normal, length - ri - rj, feature)


@procedure
def sphere_sphere(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contact of two balls, if within ``margin``; the normal is z if concentric."""
    p, q = shapes.pose[i], shapes.pose[j]
    balls = local(Balls)
    balls.centre[:] = p[3::4]
    balls.way[:] = q[3::4] - p[3::4]
    balls.radius[:] = vector(shapes.size[i, 0], shapes.size[j, 0])
    balls.fallback[:] = p[2::4]
    return put_balls(balls, margin, touch, n, 0)


@procedure
def sphere_capsule(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contact of a ball and a capsule, if within ``margin``; new count."""
    p, q = shapes.pose[i], shapes.pose[j]
    balls = local(Balls)
    d, half = q[3::4] - p[3::4], shapes.size[j, 1]
    t = min(max(-(q[2::4] @ d), -half), half)
    balls.centre[:] = p[3::4]
    balls.way[:] = d + t * q[2::4]
    balls.radius[:] = vector(shapes.size[i, 0], shapes.size[j, 0])
    balls.fallback[:] = q[::4]
    return put_balls(balls, margin, touch, n, 0)


@procedure
def to_shape(shape: "float[12]", x: "float[3]", out: "float[3]") -> None:
    """Transform a world point to coordinates of a shape."""
    d = x - shape[3::4]
    out[:] = shape[:3] * d[0] + shape[4:7] * d[1] + shape[8:11] * d[2]


@procedure
def out_of_box(x: "float[3]", half: "float[3]", normal: "float[3]") -> float:
    """Signed distance of a point from a box's surface; sets the outward normal.

    Inside or on a face, the way out is through the nearest face; of equally near ones, the first.
    """
    square = 0.0
    for k in range(3):
        d = x[k] - min(max(x[k], -half[k]), half[k])
        normal[k] = d
        square += d * d
    near = EXACT * (half[0] + half[1] + half[2])
    if square > near * near + _TINY:
        distance = sqrt(square)
        normal[:] = normal / distance
        return distance
    depth = half[0] - abs(x[0])
    axis = 0
    for k in range(1, 3):
        d = half[k] - abs(x[k])
        if d < depth - near:
            depth = d
            axis = k
    normal[:] = 0.0
    normal[axis] = 1.0 if x[axis] >= -near else -1.0
    return -depth


@procedure
def put_inwards(
    shape: "float[12]",
    x: "float[3]",
    out: "float[3]",
    distance: float,
    radius: float,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Append the contact of a sphere about x with a shape at ``distance`` from x along ``out``."""
    gap = distance - radius
    h = radius + gap / 2
    a, b, c = shape[::4], shape[1::4], shape[2::4]
    normal = -(a * out[0] + b * out[1] + c * out[2])
    at = shape[3::4] + a * x[0] + b * x[1] + c * x[2] + h * normal
    return put(touch, n, at, normal, gap, feature)


@procedure
def sphere_box(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contact of a ball and a box, if within ``margin``; returns the new count."""
    p, q, radius = shapes.pose[i], shapes.pose[j], shapes.size[i, 0]
    x, out = local("float", 2, 3)
    to_shape(q, vector(p[3], p[7], p[11]), x)
    distance = out_of_box(x, shapes.size[j], out)
    if distance - radius > margin:
        return n
    return put_inwards(q, x, out, distance, radius, touch, n, 0)


@procedure
def sphere_cylinder(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contact of a ball and a cylinder, if within ``margin``; new count."""
    p, q = shapes.pose[i], shapes.pose[j]
    radius, half = shapes.size[j, 0], shapes.size[j, 1]
    x = local("float", 3)
    to_shape(q, vector(p[3], p[7], p[11]), x)
    rho = sqrt(x[0] * x[0] + x[1] * x[1])
    u, w = 1.0, 0.0
    if rho > 0:
        u = x[0] / rho
        w = x[1] / rho
    up = 1.0 if x[2] >= -EXACT * (radius + half) else -1.0
    side, end = max(rho - radius, 0.0), max(abs(x[2]) - half, 0.0)
    distance = sqrt(side * side + end * end)
    if distance > EXACT * (radius + half):
        side = side / distance
        end = end / distance
    elif radius - rho < half - abs(x[2]) - EXACT * (radius + half):
        distance = rho - radius
        side = 1.0
        end = 0.0
    else:
        distance = abs(x[2]) - half
        side = 0.0
        end = 1.0
    if distance - shapes.size[i, 0] > margin:
        return n
    out = vector(side * u, side * w, end * up)
    return put_inwards(q, x, out, distance, shapes.size[i, 0], touch, n, 0)


@procedure
def capsule_capsule(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of two capsules: nearest points, and both overlap ends if parallel."""
    p, q, hi, hj = shapes.pose[i], shapes.pose[j], shapes.size[i, 1], shapes.size[j, 1]
    reach = margin + hi + hj + shapes.size[i, 0] + shapes.size[j, 0]
    d, u, w = q[3::4] - p[3::4], p[2::4], q[2::4]
    if d @ d > reach * reach:
        return n
    cosine, du, dw, a = u @ w, u @ d, w @ d, cross(u, w)
    slant = a @ a  # squared sine
    s = du if slant < _PARALLEL else (du - cosine * dw) / slant
    s = min(max(s, -hi), hi)
    t = min(max(cosine * s - dw, -hj), hj)
    s = min(max(cosine * t + du, -hi), hi)
    balls = local(Balls)  # out of segments that cross: at right angles to both
    if slant < _PARALLEL:
        balls.fallback[:] = p[::4]
    else:
        balls.fallback[:] = a / sqrt(slant)
    low, high = max(du - abs(cosine) * hj, -hi), min(du + abs(cosine) * hj, hi)
    apart = _APART * (high - low)
    if slant > _ALONG or high - low <= NEAR * (hi + hj):
        place_balls(shapes, i, j, s, t, balls)
        return put_balls(balls, margin, touch, n, 0)
    flat = slant < _PARALLEL
    name = 1 if s - low <= apart else 2 if high - s <= apart else 0
    if not flat:
        place_balls(shapes, i, j, s, t, balls)
        n = put_balls(balls, margin, touch, n, name)
    if flat or name != 1:
        place_balls(shapes, i, j, low, min(max(cosine * low - dw, -hj), hj), balls)
        n = put_balls(balls, margin, touch, n, 1)
    if flat or name != 2:
        place_balls(shapes, i, j, high, min(max(cosine * high - dw, -hj), hj), balls)
        n = put_balls(balls, margin, touch, n, 2)
    return n


@procedure
def place_balls(shapes: Shapes, i: int, j: int, s: float, t: float, balls: Balls) -> None:
    """Set two spheres at s and t along the axis segments of two capsules."""
    p, q = shapes.pose[i], shapes.pose[j]
    balls.centre[:] = p[3::4] + s * p[2::4]
    balls.way[:] = q[3::4] + t * q[2::4] - balls.centre
    balls.radius[:] = vector(shapes.size[i, 0], shapes.size[j, 0])
