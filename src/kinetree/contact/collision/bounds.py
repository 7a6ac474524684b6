"""Shapes placed in the world, and boxes around them along its axes."""

from kinetree.codegen.procedures import procedure, sqrt
from kinetree.contact.collision.tables import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    SPHERE,
    Shapes,
)

ENDLESS = 1e300  # [m] how far planes and height fields go


@procedure
def place_shapes(shapes: Shapes, poses: "float[:, 12]") -> None:
    """Poses of all shapes in the world and boxes around them, from those of the bodies."""
    for i in range(shapes.count):
        place_shape(shapes, i, poses[shapes.body[i]])


@procedure
def place_shape(shapes: Shapes, i: int, body: "float[12]") -> None:
    """The pose of one shape, and the box around it."""
    place, pose = shapes.place[i], shapes.pose[i]
    for r in range(3):
        a, b, c = body[4 * r], body[4 * r + 1], body[4 * r + 2]
        for k in range(4):
            pose[4 * r + k] = a * place[k] + b * place[4 + k] + c * place[8 + k]
        pose[4 * r + 3] += body[4 * r + 3]
    kind = shapes.kind[i]
    low, high, size, box = shapes.low[i], shapes.high[i], shapes.size[i], shapes.box[i]
    for r in range(3):
        x, y, z = pose[4 * r], pose[4 * r + 1], pose[4 * r + 2]
        middle = pose[4 * r + 3]
        if kind == SPHERE:
            reach = size[0]
        elif kind == BOX:
            reach = abs(x) * size[0] + abs(y) * size[1] + abs(z) * size[2]
        elif kind == CAPSULE:
            reach = abs(z) * size[1] + size[0]
        elif kind == CYLINDER:
            reach = abs(z) * size[1] + size[0] * sqrt(max(1.0 - z * z, 0.0))
        elif kind == ELLIPSOID:
            u, v, w = x * size[0], y * size[1], z * size[2]
            reach = sqrt(u * u + v * v + w * w)
        elif shapes.radius[i] > ENDLESS:
            reach = ENDLESS
        else:
            middle += x * box[0] + y * box[1] + z * box[2]
            reach = abs(x) * box[3] + abs(y) * box[4] + abs(z) * box[5]
        low[r] = middle - reach
        high[r] = middle + reach


@procedure
def clearance(shapes: Shapes, i: int, j: int) -> float:
    """No point of shape j is nearer than this to the plane or height field i [m]."""
    p, q, box = shapes.pose[i], shapes.pose[j], shapes.box[j]
    field = shapes.box[i]
    height = -field[2] - field[5]  # above the highest point of a field; zero for a plane
    for r in range(3):
        n = p[4 * r + 2]
        x = q[4 * r] * box[0] + q[4 * r + 1] * box[1] + q[4 * r + 2] * box[2]
        height += n * (x + q[4 * r + 3] - p[4 * r + 3])
    across = 0.0
    for k in range(3):
        m = p[2] * q[k] + p[6] * q[4 + k] + p[10] * q[8 + k]
        across += abs(m) * box[3 + k]
    return height - min(across, shapes.radius[j])
