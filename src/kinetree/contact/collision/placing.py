"""Shapes placed in the world, and boxes around them along its axes."""

from kinetree.codegen.procedures import procedure, view
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.tables import ENDLESS, Shapes


@procedure
def unknown_reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Support function of shapes for which only the box is known: -1."""
    return -1.0


REACH = choice_of("reach", unknown_reach)


@procedure
def place_shapes(shapes: Shapes, poses: "float[:, 12]") -> None:
    """Update world poses and axis-aligned boxes of all shapes from the poses of the bodies."""
    for i in range(shapes.count):
        place_shape(shapes, i, poses[shapes.body[i]])


@procedure
def place_shape(shapes: Shapes, i: int, body: "float[12]") -> None:
    """Update the world pose and the axis-aligned box of shape i from its body's pose."""
    place, pose = shapes.place[i], shapes.pose[i]
    view(pose, 0, 3, 4)[:] = view(body, 0, 3, 4)[:, :3] @ view(place, 0, 3, 4)
    pose[3::4] += body[3::4]
    kind = shapes.kind[i]
    low, high, size, box = shapes.low[i], shapes.high[i], shapes.size[i], shapes.box[i]
    for r in range(3):
        x, y, z = pose[4 * r], pose[4 * r + 1], pose[4 * r + 2]
        middle = pose[4 * r + 3]
        reach = REACH[kind](size, x, y, z)
        if reach < 0 and shapes.radius[i] > ENDLESS:
            reach = ENDLESS
        elif reach < 0:
            middle += x * box[0] + y * box[1] + z * box[2]
            reach = abs(x) * box[3] + abs(y) * box[4] + abs(z) * box[5]
        low[r] = middle - reach
        high[r] = middle + reach


@procedure
def clearance(shapes: Shapes, i: int, j: int) -> float:
    """Lower bound of the height of shape j above the plane or height field i [m]."""
    p, q, box = shapes.pose[i], shapes.pose[j], shapes.box[j]
    field = shapes.box[i]
    height = -field[2] - field[5]  # above the highest point of a field; zero for a plane
    d = view(q, 0, 3, 4)[:, :3] @ box[:3] + q[3::4] - p[3::4]
    for r in range(3):
        height += p[4 * r + 2] * d[r]
    m = p[2] * q[:3] + p[6] * q[4:7] + p[10] * q[8:11]
    return height - min(abs(m) @ box[3:], shapes.radius[j])
