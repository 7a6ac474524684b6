"""Ellipsoids: smooth everywhere."""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.frames import curved_surface
from kinetree.contact.collision.kinds.kind import SINGLE, SolidKind
from kinetree.contact.collision.kinds.lines import NONE, entry


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Where the tangent plane is at right angles to ``d``."""
    far = size * size * d
    length = sqrt(far @ d)
    x[:] = far / length if length > 0 else far
    return 0


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """A ray against an ellipsoid; a ball if the radii are equal."""
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
    """A point of the surface towards the centre, which is as good as the nearest one nearby."""
    u = x / size
    length = sqrt(u @ u)
    if length > 1:
        x[:] = x / length


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is in the ellipsoid, about."""
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
    """Shape operator of a level set."""
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
    """How far it goes along a direction."""
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
    """The point of ``support``; its derivative is ``(diag(r²) - x x') / |diag(r) d|``."""
    a = size * size
    length = sqrt((a * d) @ d)
    x[:] = a * d / length
    for k in range(3):
        bend[k] = -x[k] * x / length
        bend[k, k] += a[k] / length
    return SINGLE


@procedure(inline=True)
def within(size: "float[3]", mode: int, x: "float[3]", slack: float) -> bool:
    """Always false: an ellipsoid has neither edges nor faces."""
    return True


KIND = SolidKind(
    support, ray, clip, contains, None, surface, reach, stand, within, modes=1, has_feet=True
)
