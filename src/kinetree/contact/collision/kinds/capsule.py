"""Capsules: a segment with a ball around every point of it."""

from kinetree.codegen.procedures import local, procedure, sqrt, vector
from kinetree.contact.collision.frames import curved_surface
from kinetree.contact.collision.kinds.kind import NEAR, SolidKind
from kinetree.contact.collision.kinds.lines import NONE, entry, tube


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of a capsule's axis segment along ``d``; returns the number of the end."""
    x[0] = 0.0
    x[1] = 0.0
    x[2] = size[1]
    if d[2] < 0:
        x[2] = -size[1]
        return 1
    return 0


@procedure
def face(size: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]") -> int:
    """Ends of a capsule's segment if it is level within ``tilt``; returns 2, else 0."""
    if abs(d[2]) > tilt:
        return 0
    out[0] = vector(0.0, 0.0, size[1])
    out[1] = vector(0.0, 0.0, -size[1])
    return 2


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets a capsule, and the normal there; ``NONE`` if it misses."""
    r, h = size[0], size[1]
    low, high = tube(r, x, v)
    if v[2] == 0.0:
        if abs(x[2]) > h:
            low = NONE
            high = -NONE
    else:
        a = (-h - x[2]) / v[2]
        b = (h - x[2]) / v[2]
        low = max(low, min(a, b))
        high = min(high, max(a, b))
    if low > high:
        low = NONE
        high = -NONE
    square = v @ v
    for end in range(2):
        y = vector(x[0], x[1], x[2] - (h if end == 0 else -h))
        half = (y @ v) / square
        q = y - half * v
        rest = r * r - q @ q
        if rest >= 0:
            root = sqrt(rest / square)
            low = min(low, -half - root)
            high = max(high, -half + root)
    t = entry(low, high)
    z = x[2] + t * v[2]
    n[:] = vector((x[0] + t * v[0]) / r, (x[1] + t * v[1]) / r, (z - min(max(z, -h), h)) / r)
    return t


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Move a point to the nearest point of a capsule's axis segment."""
    x[0] = 0.0
    x[1] = 0.0
    x[2] = min(max(x[2], -size[1]), size[1])


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is inside a capsule, with slack [m]."""
    past = max(abs(x[2]) - size[1], 0.0)
    r = size[0] + slack
    return x[0] * x[0] + x[1] * x[1] + past * past <= r * r


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
    """Curvature of a capsule at a surface point: cylindrical at the side, spherical at the ends."""
    K = local("float", 3, 3)
    K[:] = 0.0
    K[0, 0] = 1.0 / size[0]
    K[1, 1] = 1.0 / size[0]
    core = x[2] - size[0] * n[2]  # where the point of the axis is whose ball touches
    if abs(core) >= size[1] - NEAR * (size[0] + size[1]):
        K[2, 2] = 1.0 / size[0]
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure(inline=True)
def reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Support function of a capsule: its extent from the centre along a unit direction [m]."""
    return abs(z) * size[1] + size[0]


KIND = SolidKind(
    support, ray, clip, contains, face, surface, reach, is_rounded=True, is_rod=True, has_feet=True
)
