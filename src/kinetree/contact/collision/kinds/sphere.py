"""Balls: a point with a ball around it."""

from kinetree.codegen.procedures import local, procedure, vector
from kinetree.contact.collision.frames import curved_surface
from kinetree.contact.collision.kinds.ellipsoid import ray as ray_ellipsoid
from kinetree.contact.collision.kinds.kind import SolidKind


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Farthest point of the core of a ball: its centre, in every direction."""
    x[:] = 0.0
    return 0


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """A ray against a ball."""
    return ray_ellipsoid(vector(size[0], size[0], size[0]), x, v, n)


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Outline of a ball on a contact plane: its centre alone."""
    x[:] = 0.0


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is in the ball."""
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
    """Curved alike in all directions."""
    K = local("float", 3, 3)
    K[:] = 0.0
    for k in range(3):
        K[k, k] = 1.0 / size[0]
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure(inline=True)
def reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Radius of the ball around a ball: its own."""
    return size[0]


KIND = SolidKind(
    support, ray, clip, contains, surface=surface, reach=reach, is_rounded=True, has_feet=True
)
