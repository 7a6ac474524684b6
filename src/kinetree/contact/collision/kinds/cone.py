"""Cones: a tip at ``size[1]``, a round side, a rim and a flat base at ``-size[1]``.

Along the side the normal has the component ``R / s`` along the axis, where ``R`` is the radius,
``2 h`` the length and ``s`` the length of a line from the rim to the tip.
"""

from math import cos, sin

from kinetree.codegen.procedures import local, procedure, sqrt, vector
from kinetree.contact.collision.frames import curved_surface, edge_surface, flat_surface
from kinetree.contact.collision.kinds import kind
from kinetree.contact.collision.kinds.kind import (
    ALONG,
    DISC,
    DISC_TURN,
    EDGE,
    FACE,
    NEAR,
    SINGLE,
    TILT,
    SolidKind,
)
from kinetree.contact.collision.kinds.lines import NONE, entry

_LEVEL = 1e-14  # of the squared speed of a ray: it is along the side


@procedure(inline=True)
def side_normal(size: "float[3]") -> "(float, float)":
    """Radial and axial component of the unit normal of a cone's side."""
    s = sqrt(size[0] * size[0] + 4.0 * size[1] * size[1])
    return 2.0 * size[1] / s, size[0] / s


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of a cone along ``d``: the tip, or a point of the base's rim."""
    across = sqrt(d[0] * d[0] + d[1] * d[1])
    x[0] = 0.0
    x[1] = 0.0
    if 2.0 * size[1] * d[2] >= size[0] * across:
        x[2] = -size[1] if d[2] < 0 else size[1]
        return 0
    x[2] = -size[1]
    if across > 1e-15 * abs(d[2]):
        x[0] = size[0] * d[0] / across
        x[1] = size[0] * d[1] / across
    return 0


@procedure
def face(size: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]") -> int:
    """Corners of a cone's base or side line farthest along ``d``, up to a tilt; their number."""
    across = sqrt(d[0] * d[0] + d[1] * d[1])
    x = 1.0
    y = 0.0
    if across > 1e-6:  # or else in the shape's own axes, so that corners keep their places
        x = d[0] / across
        y = d[1] / across
    if across <= tilt and d[2] < 0:
        for k in range(DISC):
            co = cos(k * DISC_TURN)
            si = -sin(k * DISC_TURN)
            out[k] = vector(size[0] * (co * x - si * y), size[0] * (si * x + co * y), -size[1])
        return DISC
    a, b = side_normal(size)
    if abs(a * d[2] - b * across) <= tilt and a * across + b * d[2] > 0:
        out[0] = vector(size[0] * x, size[0] * y, -size[1])
        out[1] = vector(0.0, 0.0, size[1])
        return 2
    return 0


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets a cone, and the normal there; ``NONE`` if it misses."""
    h = size[1]
    a, b = side_normal(size)
    # from the point of the line nearest to the centre: nothing cancels far away
    near = -(x @ v) / (v @ v)
    p = x + near * v
    low = -NONE
    high = NONE
    # b²(h - z)² - a²(x² + y²) >= 0 and z <= h, as a polynomial A t² + 2 B t + C
    A = b * b * v[2] * v[2] - a * a * (v[0] * v[0] + v[1] * v[1])
    B = -b * b * (h - p[2]) * v[2] - a * a * (p[0] * v[0] + p[1] * v[1])
    C = b * b * (h - p[2]) * (h - p[2]) - a * a * (p[0] * p[0] + p[1] * p[1])
    root = sqrt(max(B * B - A * C, 0.0))
    if abs(A) <= _LEVEL * (v @ v):
        if B == 0.0:
            if C < 0:
                return NONE
        elif B > 0:
            low = -C / (2 * B)
        else:
            high = -C / (2 * B)
        if v[2] * B > 0:  # of the other half of the cone
            return NONE
    elif A < 0:
        if B * B - A * C < 0:
            return NONE
        low = (-B + root) / A
        high = (-B - root) / A
        if p[2] + (low + high) / 2 * v[2] > h:
            return NONE
    elif v[2] < 0:
        low = (-B + root) / A
    else:
        high = (-B - root) / A
    flat_in = False
    flat_out = False
    if v[2] == 0.0:
        if abs(p[2]) > h:
            return NONE
    else:
        base = (-h - p[2]) / v[2]
        tip = (h - p[2]) / v[2]
        if v[2] > 0 and base > low:
            low = base
            flat_in = True
        if v[2] < 0 and base < high:
            high = base
            flat_out = True
        low = max(low, min(base, tip))
        high = min(high, max(base, tip))
    t = entry(low + near, high + near)
    q = x + t * v
    rho = sqrt(q[0] * q[0] + q[1] * q[1])
    if flat_in if low + near >= 0 else flat_out:
        n[:] = vector(0.0, 0.0, -1.0)
    elif rho > 0.0:
        n[:] = vector(a * q[0] / rho, a * q[1] / rho, b)
    else:
        n[:] = vector(0.0, 0.0, 1.0)
    return t


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Move a point to the nearest point of a solid cone."""
    a, b = side_normal(size)
    rho = sqrt(x[0] * x[0] + x[1] * x[1])
    out, up = rho, x[2]
    past = a * rho + b * (x[2] - size[1])
    if past > 0:
        out = rho - past * a
        up = x[2] - past * b
        if a * (x[2] - size[1]) - b * rho > 0:  # beyond the tip
            out = 0.0
            up = size[1]
    if up < -size[1]:
        up = -size[1]
        out = min(rho, size[0])
    factor = out / rho if rho > 0 else 0.0
    x[0] *= factor
    x[1] *= factor
    x[2] = up


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is inside a cone, with slack [m]."""
    a, b = side_normal(size)
    rho = sqrt(x[0] * x[0] + x[1] * x[1])
    return a * rho + b * (x[2] - size[1]) <= slack and x[2] >= -size[1] - slack


@procedure
def surface(
    size: "float[3]",
    pose: "float[12]",
    x: "float[3]",
    n: "float[3]",
    normal: "float[3]",
    turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> bool:
    """Curvature of a cone at a surface point: tip, side, rim or base; True on the flat base."""
    a, _ = side_normal(size)
    near = NEAR * max(size[0], 2.0 * size[1])
    rho = sqrt(x[0] * x[0] + x[1] * x[1])
    if x[2] >= size[1] - near:
        flat_surface(normal, travel, turn)  # the other way round: the contact stays
        return False
    if rho < size[0] - near and x[2] <= -size[1] + near:
        flat_surface(normal, turn, travel)
        return True
    along = local("float", 3)
    if x[2] <= -size[1] + near:  # the rim, along which the normal is carried around the axis
        along[:] = (pose[1:10:4] * x[0] - pose[:9:4] * x[1]) / rho
        edge_surface(normal, along, turn, travel)
        bend = (n[0] * x[0] + n[1] * x[1]) / (rho * size[0])
        turn[:] += bend * travel
        return n[2] < ALONG - 1.0
    K = local("float", 3, 3)
    K[:] = 0.0
    bend = a / (rho * rho * rho)
    K[0, 0] = bend * x[1] * x[1]
    K[0, 1] = -bend * x[0] * x[1]
    K[1, 0] = K[0, 1]
    K[1, 1] = bend * x[0] * x[0]
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure(inline=True)
def stand(
    size: "float[3]",
    mode: int,
    d: "float[3]",
    q: "float[3]",
    x: "float[3]",
    bend: "float[3, 3]",
    e: "float[4]",
) -> int:
    """Point of a cone with normal ``d`` by mode (0 rim, 1 side line, 2 base, 3 tip); its status."""
    across = sqrt(d[0] * d[0] + d[1] * d[1])
    e[:] = 0.0
    if mode == 3:
        x[:] = vector(0.0, 0.0, size[1])
        return SINGLE
    if mode == 2:
        if across > TILT or d[2] > 0:
            return kind.NONE
        x[:] = vector(0.0, 0.0, -size[1])
        e[2] = -1.0
        return FACE
    if across < 1e-12:
        return kind.NONE
    u = d[0] / across
    v = d[1] / across
    radius = size[0]
    x[:] = vector(radius * u, radius * v, -size[1])
    r = radius / across
    if mode == 1:
        a, b = side_normal(size)
        if abs(a * d[2] - b * across) > TILT or a == 0.0:
            return kind.NONE
        # The derivative is that at the point of the line next to the other shape.
        tip = vector(0.0, 0.0, size[1])
        down = vector(b * u, b * v, -a)
        along = (q - tip) @ down
        x[:] = tip + along * down
        r = max(along, 0.0) * b / a
        e[2] = 1.0
        e[3] = b
    bend[0, 0] = r * v * v
    bend[0, 1] = -r * u * v
    bend[1, 0] = -r * u * v
    bend[1, 1] = r * u * u
    return EDGE if mode == 1 else SINGLE


@procedure(inline=True)
def within(size: "float[3]", mode: int, x: "float[3]", slack: float) -> bool:
    """Whether a point is within a cone's side line (mode 1) or base disc (mode 2), with slack."""
    if mode == 1:
        return abs(x[2]) <= size[1] + slack
    return sqrt(x[0] * x[0] + x[1] * x[1]) <= size[0] + slack


KIND = SolidKind(support, ray, clip, contains, face, surface, None, stand, within, modes=4)
