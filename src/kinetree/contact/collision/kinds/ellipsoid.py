"""Ellipsoids: smooth everywhere."""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.frames import curved_surface
from kinetree.contact.collision.kinds.kind import SINGLE, SolidKind
from kinetree.contact.collision.kinds.lines import NONE, entry


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of an ellipsoid along ``d``, where the tangent plane is normal to ``d``."""
    far = size * size * d
    length = sqrt(far @ d)
    x[:] = far / length if length > 0 else far
    return 0


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets an ellipsoid, and the normal there; ``NONE`` if it misses."""
    p, d = x / size, v / size
    square = d @ d
    half = (p @ d) / square
    # from the point of the line nearest to the centre: nothing cancels far away
    q = p - half * d
    rest = 1 - q[0] * q[0] - q[1] * q[1] - q[2] * q[2]
    if rest < 0:
        return NONE
    root = sqrt(rest / square)
    t = entry(-half - root, -half + root)
    n[:] = (p + t * d) / size
    n[:] = n / sqrt(n @ n)
    return t


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Move an outside point radially to an ellipsoid's surface: nearest to first order."""
    u = x / size
    length = sqrt(u @ u)
    if length > 1:
        x[:] = x / length


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is inside an ellipsoid, approximately enlarged by ``slack`` [m]."""
    u = x / (size + slack)
    return u @ u <= 1.0


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
    """Curvature of an ellipsoid at a surface point, from the shape operator of its level set."""
    K = local("float", 3, 3)
    K[:] = 0.0
    square = 0.0
    for k in range(3):
        K[k, k] = 1.0 / (size[k] * size[k])
        square += (K[k, k] * x[k]) * (K[k, k] * x[k])
    for k in range(3):
        K[k, k] /= sqrt(square)
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure(inline=True)
def reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Support function of an ellipsoid: its extent from the centre along a unit direction [m]."""
    u, v, w = x * size[0], y * size[1], z * size[2]
    return sqrt(u * u + v * v + w * w)


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
    """Support point of an ellipsoid and its derivative with respect to the direction ``d``.

    The derivative is ``(diag(r²) - x x') / |diag(r) d|``.
    """
    a = size * size
    length = sqrt((a * d) @ d)
    x[:] = a * d / length
    for k in range(3):
        bend[k] = -x[k] * x / length
        bend[k, k] += a[k] / length
    return SINGLE


@procedure(inline=True)
def within(size: "float[3]", mode: int, x: "float[3]", slack: float) -> bool:
    """True always: an ellipsoid has no edges or faces that a point could miss."""
    return True


KIND = SolidKind(
    support, ray, clip, contains, None, surface, reach, stand, within, modes=1, has_feet=True
)
