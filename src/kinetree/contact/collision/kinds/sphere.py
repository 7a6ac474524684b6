"""Balls: a point with a ball around it."""

from kinetree.codegen.procedures import local, procedure, vector
from kinetree.contact.collision.frames import curved_surface
from kinetree.contact.collision.kinds.ellipsoid import ray as ray_ellipsoid
from kinetree.contact.collision.kinds.kind import SolidKind


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of a ball's core: the centre, for every direction; returns corner 0."""
    x[:] = 0.0
    return 0


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets a ball, and the normal there; ``NONE`` if it misses."""
    return ray_ellipsoid(vector(size[0], size[0], size[0]), x, v, n)


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Move a point to the nearest point of a ball's core: the centre."""
    x[:] = 0.0


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is inside a ball, with slack [m]."""
    return x @ x <= (size[0] + slack) * (size[0] + slack)


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
    """Curvature of a ball at a surface point: the reciprocal radius in all directions."""
    K = local("float", 3, 3)
    K[:] = 0.0
    for k in range(3):
        K[k, k] = 1.0 / size[0]
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure(inline=True)
def reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Support function of a ball: its radius in every direction [m]."""
    return size[0]


KIND = SolidKind(
    support, ray, clip, contains, surface=surface, reach=reach, is_rounded=True, has_feet=True
)
