"""Curvature of surfaces where they touch: how the normal turns as the contact travels.

``w = turn s`` is the rate of the normal and ``u = travel s`` the velocity of the contact, both in a
frame that moves with the body, for any tangent vector ``s``: 1, R for a ball, 0, 1 for a plane,
1, 0 for a corner. See ``contact_rates``, which makes rates of points and normals from them.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.fields import ground
from kinetree.contact.collision.support import into_shape
from kinetree.contact.collision.tables import Found, Shapes

_NEAR = 1e-6  # part of the size of a shape by which a point may miss a face, edge or corner
_FLAT = 1e-5  # [rad] between faces that count as one
_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_ALONG = 1e-12  # by which the product of a face's normal and that of the contact may miss 1


@procedure
def curvatures(
    shapes: Shapes, found: Found, turn: "float[:, 2, 3, 3]", travel: "float[:, 2, 3, 3]"
) -> None:
    """Curvatures of both surfaces at all contacts, of the first shape first."""
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
    shapes: Shapes, i: int, point: "float[3]", normal: "float[3]", turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> bool:  # fmt: skip
    """Curvature of shape i at a point of its surface, all in the world, with the outward normal.

    Returns:
        Whether the normal is that of a flat face there.
    """
    kind, size, pose = shapes.kind[i], shapes.size[i], shapes.pose[i]
    x, n = local("float", 3), local("float", 3)
    into_shape(pose, point - pose[3::4], x)
    into_shape(pose, normal, n)
    K = local("float", 3, 3)  # shape operator along the axes of the shape
    K[:] = 0.0
    if kind == tables.PLANE:
        flat_surface(normal, turn, travel)
        return True
    if kind == tables.BOX:
        return polyhedral_surface(shapes, i, x, n, normal, turn, travel)
    if kind == tables.HULL:
        return polyhedral_surface(shapes, i, x, n, normal, turn, travel)
    if kind == tables.TRIANGLES:
        return polyhedral_surface(shapes, i, x, n, normal, turn, travel)
    if kind == tables.CYLINDER:
        near = _NEAR * max(size[0], 2.0 * size[1])
        rho = sqrt(x[0] * x[0] + x[1] * x[1])
        on_end = abs(x[2]) >= size[1] - near
        if rho < size[0] - near:
            flat_surface(normal, turn, travel)
            return True
        if on_end:  # the rim is an edge that turns: along it, the normal is carried around the axis
            along = local("float", 3)
            along[:] = (pose[1:10:4] * x[0] - pose[:9:4] * x[1]) / rho
            edge_surface(normal, along, turn, travel)
            bend = (n[0] * x[0] + n[1] * x[1]) / (rho * size[0])
            turn[:] += bend * travel
            return abs(n[2]) > 1.0 - _ALONG
    if kind == tables.FIELD:
        s = local("float", 6)
        ground(shapes, i, x[0], x[1], s)
        slope = sqrt(1.0 + s[1] * s[1] + s[2] * s[2])
        K[0, 0] = -s[3] / slope
        K[0, 1] = -s[4] / slope
        K[1, 0] = -s[4] / slope
        K[1, 1] = -s[5] / slope
    elif kind == tables.ELLIPSOID:
        square = 0.0
        for k in range(3):
            K[k, k] = 1.0 / (size[k] * size[k])
            square += (K[k, k] * x[k]) * (K[k, k] * x[k])
        for k in range(3):
            K[k, k] /= sqrt(square)
    else:
        K[0, 0] = 1.0 / size[0]
        K[1, 1] = 1.0 / size[0]
        core = x[2] - size[0] * n[2]  # where the point of the axis is whose ball touches
        at_end = kind == tables.CAPSULE and abs(core) >= size[1] - _NEAR * (size[0] + size[1])
        if kind == tables.SPHERE or at_end:
            K[2, 2] = 1.0 / size[0]
    curved_surface(pose, K, normal, turn, travel)
    return False


@procedure
def flat_surface(n: "float[3]", turn: "float[3, 3]", travel: "float[3, 3]") -> None:
    """The normal stays as the contact travels."""
    turn[:] = 0.0
    for r in range(3):
        travel[r] = _AXES[r] - n[r] * n


@procedure
def edge_surface(
    n: "float[3]", along: "float[3]", turn: "float[3, 3]", travel: "float[3, 3]"
) -> None:
    """The contact travels along an edge and the normal turns across it."""
    for r in range(3):
        travel[r] = along[r] * along
        turn[r] = _AXES[r] - n[r] * n - travel[r]


@procedure
def curved_surface(
    pose: "float[12]", K: "float[3, 3]", n: "float[3]", turn: "float[3, 3]", travel: "float[3, 3]"
) -> None:
    """The normal turns as the shape operator ``K`` [1/m] of the surface says."""
    flat_surface(n, turn, travel)
    along = view(pose, 0, 3, 4)[:, :3].T @ travel  # the tangent plane along the shape's axes
    turn[:] = along.T @ (K @ along)


# --- Faces, edges and corners --------------------------------------------------------------------


@procedure
def polyhedral_surface(
    shapes: Shapes, i: int, x: "float[3]", n: "float[3]", normal: "float[3]", turn: "float[3, 3]",
    travel: "float[3, 3]",
) -> bool:  # fmt: skip
    """Face, edge or corner, by how many different faces meet at a point of the shape."""
    seen = local("float", 3, 3)  # a face's normal, the direction of an edge
    rank, on_face, kind = 0, False, shapes.kind[i]
    f = local("float", 3)
    if kind == tables.BOX:
        size = shapes.size[i]
        near = _NEAR * max(max(size[0], size[1]), size[2])
        for k in range(3):
            if abs(x[k]) >= size[k] - near:
                f[:] = 0.0
                f[k] = 1.0 if x[k] > 0.0 else -1.0
                rank = met(seen, rank, f)
                on_face = on_face or f[k] * n[k] > 1.0 - _ALONG
    elif kind == tables.HULL:
        box = shapes.box[i]
        near = 2.0 * _NEAR * max(max(box[3], box[4]), box[5])
        for k in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
            face = shapes.face_normal[k]
            corner = shapes.vertex[shapes.face_vertex[shapes.face_first[k]]]
            if face @ (corner - x) <= near:
                rank = met(seen, rank, face)
                on_face = on_face or face @ n > 1.0 - _ALONG
    else:
        box = shapes.box[i]
        near = 2.0 * _NEAR * max(max(box[3], box[4]), box[5])
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
                    rank = met(seen, rank, face)
                    on_face = on_face or face @ n > 1.0 - _ALONG
    if rank >= 3:
        flat_surface(normal, travel, turn)  # the other way round: the contact stays
    elif rank == 2:
        along = view(shapes.pose[i], 0, 3, 4)[:, :3] @ seen[1]
        edge_surface(normal, along, turn, travel)
    else:
        flat_surface(normal, turn, travel)
    return on_face


@procedure
def met(seen: "float[3, 3]", rank: int, face: "float[3]") -> int:
    """How many faces in different directions meet (3: in a corner), with one more."""
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
    """Whether a point is on a triangle, or so near to it."""
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
