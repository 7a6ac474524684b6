"""Curvature of surfaces where they touch: how the normal turns as the contact travels.

``w = turn s`` is the rate of the normal and ``u = travel s`` the velocity of the contact, both in a
frame that moves with the body, for any tangent vector ``s``: 1, R for a ball, 0, 1 for a plane,
1, 0 for a corner. See ``contact_rates``, which makes rates of points and normals from them.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.fields import ground
from kinetree.contact.collision.frames import (
    curved_surface,
    edge_surface,
    flat_surface,
    into_shape,
)
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.kinds.kind import ALONG, NEAR
from kinetree.contact.collision.tables import Found, Shapes

_FLAT = 1e-5  # [rad] between faces that count as one


@procedure
def level_surface(
    size: "float[3]",
    pose: "float[12]",
    x: "float[3]",
    n: "float[3]",
    normal: "float[3]",
    turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> bool:
    """Curvature of a surface that counts as flat: zero turn of the normal; returns True."""
    flat_surface(normal, turn, travel)
    return True


SURFACE = choice_of("surface", level_surface)


@procedure
def curvatures(
    shapes: Shapes, found: Found, turn: "float[:, 2, 3, 3]", travel: "float[:, 2, 3, 3]"
) -> None:
    """Write the curvature of both surfaces at every contact, the first shape's first."""
    point, normal = local("float", 3), local("float", 3)
    for k in range(found.count):
        i, j = found.first[k], found.second[k]
        gap = found.gap[k] + found.apart[k]
        flat = -1
        for side in range(2):
            sign = 1.0 - 2.0 * side
            normal[:] = sign * found.normal[k]
            point[:] = found.point[k] - normal * gap / 2.0
            shape = j if side == 1 else i
            on_face = surface_at(shapes, shape, point, normal, turn[k, side], travel[k, side])
            if on_face and flat < 0:
                flat = side
        a, b = travel[k, 0], travel[k, 1]
        room = a[0, 0] + a[1, 1] + a[2, 2] + b[0, 0] + b[1, 1] + b[2, 2]
        if flat >= 0 and room < 1.5:
            # Corners on corners, as of equal boxes on top of each other: one of them is on a face.
            flat_surface(normal, turn[k, flat], travel[k, flat])


@procedure
def surface_at(
    shapes: Shapes,
    i: int,
    point: "float[3]",
    normal: "float[3]",
    turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> bool:
    """Curvature of shape i at a surface point with this outward normal; whether the face is flat.

    Returns:
        Whether the normal is that of a flat face there.
    """
    kind, pose = shapes.kind[i], shapes.pose[i]
    x, n = local("float", 3), local("float", 3)
    into_shape(pose, point - pose[3::4], x)
    into_shape(pose, normal, n)
    if kind == tables.PLANE:
        flat_surface(normal, turn, travel)
        return True
    if kind == tables.FIELD:
        ground_surface(shapes, i, x, normal, turn, travel)
        return False
    if kind == tables.BOX or kind >= tables.HULL:
        return polyhedral_surface(shapes, i, x, n, normal, turn, travel)
    return SURFACE[kind](shapes.size[i], pose, x, n, normal, turn, travel)


@procedure
def ground_surface(
    shapes: Shapes,
    i: int,
    x: "float[3]",
    normal: "float[3]",
    turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> None:
    """Curvature of a height field at a point, as turn of the normal per travel of the contact."""
    K = local("float", 3, 3)  # shape operator along the axes of the shape
    K[:] = 0.0
    s = local("float", 6)
    ground(shapes, i, x[0], x[1], s)
    slope = sqrt(1.0 + s[1] * s[1] + s[2] * s[2])
    K[0, 0] = -s[3] / slope
    K[0, 1] = -s[4] / slope
    K[1, 0] = -s[4] / slope
    K[1, 1] = -s[5] / slope
    curved_surface(shapes.pose[i], K, normal, turn, travel)


# --- Faces, edges and corners --------------------------------------------------------------------


@procedure
def polyhedral_surface(
    shapes: Shapes,
    i: int,
    x: "float[3]",
    n: "float[3]",
    normal: "float[3]",
    turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> bool:
    """Write the curvature matrices at a face, edge or corner of a box, hull or mesh."""
    seen = local("float", 3, 3)  # a face's normal, the direction of an edge
    rank, on_face, kind = 0, False, shapes.kind[i]
    f = local("float", 3)
    if kind == tables.BOX:
        size = shapes.size[i]
        near = NEAR * max(max(size[0], size[1]), size[2])
        for k in range(3):
            if abs(x[k]) >= size[k] - near:
                f[:] = 0.0
                f[k] = 1.0 if x[k] > 0.0 else -1.0
                rank = count_directions(seen, rank, f)
                on_face = on_face or f[k] * n[k] > 1.0 - ALONG
    elif kind == tables.HULL:
        box = shapes.box[i]
        near = 2.0 * NEAR * max(max(box[3], box[4]), box[5])
        for k in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
            face = shapes.face_normal[k]
            corner = shapes.vertex[shapes.face_vertex[shapes.face_first[k]]]
            if face @ (corner - x) <= near:
                rank = count_directions(seen, rank, face)
                on_face = on_face or face @ n > 1.0 - ALONG
    else:
        box = shapes.box[i]
        near = 2.0 * NEAR * max(max(box[3], box[4]), box[5])
        waiting = local("int", 64)
        waiting[0] = shapes.data[i, 0]
        count = 1
        while count > 0:
            count -= 1
            node, child = shapes.node[waiting[count]], shapes.child[waiting[count]]
            outside = False
            for k in range(3):
                outside = outside or x[k] < node[k] - near or x[k] > node[3 + k] + near
            if outside:
                continue
            if child[0] >= 0:
                waiting[count] = child[0]
                waiting[count + 1] = child[1]
                count += 2
                continue
            for k in range(-1 - child[0], -1 - child[0] + child[1]):
                face = shapes.triangle_normal[k]
                if is_on_triangle(shapes, k, x, near):
                    rank = count_directions(seen, rank, face)
                    on_face = on_face or face @ n > 1.0 - ALONG
    if rank >= 3:
        flat_surface(normal, travel, turn)  # the other way round: the contact stays
    elif rank == 2:
        along = view(shapes.pose[i], 0, 3, 4)[:, :3] @ seen[1]
        edge_surface(normal, along, turn, travel)
    else:
        flat_surface(normal, turn, travel)
    return on_face


@procedure
def count_directions(seen: "float[3, 3]", rank: int, face: "float[3]") -> int:
    """Rank (1 face, 2 edge, 3 corner) of the face normals at a point, after adding ``face``."""
    if rank == 0:
        seen[0] = face
        return 1
    if rank == 1:
        along = cross(seen[0], face)
        length = sqrt(along @ along)
        if length > _FLAT:
            seen[1] = along / length
            return 2
    elif rank == 2 and abs(seen[1] @ face) > _FLAT:
        return 3
    return rank


@procedure
def is_on_triangle(shapes: Shapes, k: int, x: "float[3]", near: float) -> bool:
    """Whether a point is on triangle k of a mesh, up to a distance ``near`` [m]."""
    normal = shapes.triangle_normal[k]
    inside = True
    for side in range(3):
        a = shapes.vertex[shapes.triangle[k, side]]
        b = shapes.vertex[shapes.triangle[k, side + 1 if side < 2 else 0]]
        if side == 0 and abs(normal @ (x - a)) > near:
            return False
        way = b - a
        left = cross(normal, way)
        inside = inside and left @ (x - a) >= -near * sqrt(way @ way)
    return inside
