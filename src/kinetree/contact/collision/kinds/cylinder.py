"""Cylinders: a round side, two rims, two flat ends."""

from math import cos, sin

from kinetree.codegen.procedures import Rounding, local, procedure, sqrt, vector
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
from kinetree.contact.collision.kinds.lines import NONE, entry, tube

_UPRIGHT = Rounding(1e-15, single=1e-7)  # tangent of the tilt below which ends are level
_AS_BEFORE = Rounding(1e-6, single=1e-5)  # sine of the tilt below which corners keep their places
_NO_RIM = Rounding(1e-12, single=1e-6)  # sine of the tilt below which no point of a rim is lowest


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of a cylinder along ``d``: on a rim, or an end's centre if ``d`` is axial."""
    across = sqrt(d[0] * d[0] + d[1] * d[1])
    x[0] = 0.0
    x[1] = 0.0
    if across > _UPRIGHT * abs(d[2]):
        x[0] = size[0] * d[0] / across
        x[1] = size[0] * d[1] / across
    x[2] = -size[1] if d[2] < 0 else size[1]
    return 0


@procedure
def face(size: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]") -> int:
    """Corners of a cylinder's end or side line farthest along ``d``, up to a tilt; their number."""
    across = sqrt(d[0] * d[0] + d[1] * d[1])
    x = 1.0
    y = 0.0
    if across > _AS_BEFORE:  # or else in the shape's own axes
        x = d[0] / across
        y = d[1] / across
    z = size[1] if d[2] >= 0 else -size[1]
    if across <= tilt:
        turn = DISC_TURN if d[2] >= 0 else -DISC_TURN
        for k in range(DISC):
            co = cos(k * turn)
            si = sin(k * turn)
            out[k] = vector(size[0] * (co * x - si * y), size[0] * (si * x + co * y), z)
        return DISC
    out[0] = vector(size[0] * x, size[0] * y, z)
    if abs(d[2]) <= tilt:
        out[1] = vector(size[0] * x, size[0] * y, -z)
        return 2
    return 1


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets a cylinder, and the normal there; ``NONE`` if it misses."""
    r, h = size[0], size[1]
    low, high = tube(r, x, v)
    into = False
    out = False
    if v[2] == 0.0:
        if abs(x[2]) > h:
            return NONE
    else:
        near = ((-h if v[2] > 0 else h) - x[2]) / v[2]
        last = ((h if v[2] > 0 else -h) - x[2]) / v[2]
        if near > low:
            low = near
            into = True
        if last < high:
            high = last
            out = True
    t = entry(low, high)
    flat = into if low >= 0 else out
    n[0] = 0.0 if flat else (x[0] + t * v[0]) / r
    n[1] = 0.0 if flat else (x[1] + t * v[1]) / r
    n[2] = 0.0
    if flat:
        n[2] = 1.0 if x[2] + t * v[2] > 0 else -1.0
    return t


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Move a point to the nearest point of a solid cylinder."""
    across = sqrt(x[0] * x[0] + x[1] * x[1])
    if across > size[0]:
        x[0] = x[0] * size[0] / across
        x[1] = x[1] * size[0] / across
    x[2] = min(max(x[2], -size[1]), size[1])


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is inside a cylinder, with slack [m]."""
    across = sqrt(x[0] * x[0] + x[1] * x[1])
    return across <= size[0] + slack and abs(x[2]) <= size[1] + slack


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
    """Curvature of a cylinder at a surface point: side, rim or end; True on a flat end."""
    near = NEAR * max(size[0], 2.0 * size[1])
    rho = sqrt(x[0] * x[0] + x[1] * x[1])
    if rho < size[0] - near:
        flat_surface(normal, turn, travel)
        return True
    if abs(x[2]) >= size[1] - near:
        # The rim is an edge that turns: along it, the normal is carried around the axis.
        along = local("float", 3)
        along[:] = (pose[1:10:4] * x[0] - pose[:9:4] * x[1]) / rho
        edge_surface(normal, along, turn, travel)
        bend = (n[0] * x[0] + n[1] * x[1]) / (rho * size[0])
        turn[:] += bend * travel
        return abs(n[2]) > 1.0 - ALONG
    K = local("float", 3, 3)
    K[:] = 0.0
    K[0, 0] = 1.0 / size[0]
    K[1, 1] = 1.0 / size[0]
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure(inline=True)
def reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Support function of a cylinder: its extent from the centre along a unit direction [m]."""
    return abs(z) * size[1] + size[0] * sqrt(max(1.0 - z * z, 0.0))


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
    """Point of a cylinder with normal ``d`` by mode (0 rim, 1 side line, 2 end); its status."""
    across = sqrt(d[0] * d[0] + d[1] * d[1])
    end = 1.0 if d[2] >= 0 else -1.0
    e[:] = 0.0
    if mode == 2:
        if across > TILT:
            return kind.NONE
        x[:] = vector(0.0, 0.0, end * size[1])
        e[2] = end
        return FACE
    if across < _NO_RIM or (mode == 1 and abs(d[2]) > TILT):
        return kind.NONE
    a = d[0] / across
    b = d[1] / across
    x[:] = vector(size[0] * a, size[0] * b, 0.0 if mode == 1 else end * size[1])
    r = size[0] / across
    bend[0, 0] = r * b * b
    bend[0, 1] = -r * a * b
    bend[1, 0] = -r * a * b
    bend[1, 1] = r * a * a
    if mode == 1:
        e[2] = 1.0
        return EDGE
    return SINGLE


@procedure(inline=True)
def within(size: "float[3]", mode: int, x: "float[3]", slack: float) -> bool:
    """Whether a point is within a cylinder's side line (mode 1) or end disc, with slack."""
    if mode == 1:
        return abs(x[2]) <= size[1] + slack
    return sqrt(x[0] * x[0] + x[1] * x[1]) <= size[0] + slack


KIND = SolidKind(
    support,
    ray,
    clip,
    contains,
    face,
    surface,
    reach,
    stand,
    within,
    modes=3,
    is_rod=True,
    has_feet=True,
)
