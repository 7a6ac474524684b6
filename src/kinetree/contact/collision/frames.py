"""Directions and points in the axes of a shape, and how its surface bends where it is touched."""

from kinetree.codegen.procedures import procedure, view

_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@procedure
def into_shape(P: "float[12]", d: "float[3]", out: "float[3]"):
    """Rotate a world direction into the axes of a shape's pose ``P``."""
    out[:] = P[:3] * d[0] + P[4:7] * d[1] + P[8:11] * d[2]


@procedure
def out_of_shape(P: "float[12]", o: "float[3]", x: float, y: float, z: float, out: "float[3]"):
    """Transform point (x, y, z) of a shape to world axes, relative to the point ``o``."""
    out[:] = P[::4] * x + P[1::4] * y + P[2::4] * z + (P[3::4] - o)


# --- Surfaces: how the normal turns, and where the contact may travel ----------------------------


@procedure
def flat_surface(n: "float[3]", turn: "float[3, 3]", travel: "float[3, 3]") -> None:
    """Write the curvature matrices of a flat face: points move in the plane, the normal stays."""
    turn[:] = 0.0
    for r in range(3):
        travel[r] = _AXES[r] - n[r] * n


@procedure
def edge_surface(
    n: "float[3]", along: "float[3]", turn: "float[3, 3]", travel: "float[3, 3]"
) -> None:
    """Write the curvature matrices of an edge: points move along it, the normal turns about it."""
    for r in range(3):
        travel[r] = along[r] * along
        turn[r] = _AXES[r] - n[r] * n - travel[r]


@procedure
def curved_surface(
    pose: "float[12]", K: "float[3, 3]", n: "float[3]", turn: "float[3, 3]", travel: "float[3, 3]"
) -> None:
    """Write the curvature matrices of a smooth surface with shape operator ``K`` [1/m]."""
    flat_surface(n, turn, travel)
    along = view(pose, 0, 3, 4)[:, :3].T @ travel  # the tangent plane along the shape's axes
    turn[:] = along.T @ (K @ along)
