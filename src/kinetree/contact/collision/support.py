"""Support points of convex shapes: farthest along a direction, and the face or edge there.

A sphere is a point and a capsule a segment here, each with a ball around it (``round_of``): their
cores. Triangles of meshes are shapes -1 and -2 with their own corners. Points are relative to an
origin that the caller chooses near the shapes: far from that of the world nothing is lost.
"""

from math import cos, sin

from kinetree.codegen.procedures import cross, local, procedure, sqrt
from kinetree.contact.collision import tables
from kinetree.contact.collision.tables import Shapes

CORNERS = 16
"""The most corners of a support face."""
DISC = 16
"""Corners of the polygon that stands for the flat end of a cylinder."""
_FEW = 24  # vertices up to which looking at all is quicker than climbing
_TURN = 6.283185307179586 / DISC


@procedure
def round_of(shapes: Shapes, i: int) -> float:
    """Radius of the ball around every point of the core."""
    if i >= 0 and (shapes.kind[i] == tables.SPHERE or shapes.kind[i] == tables.CAPSULE):
        return shapes.size[i, 0]
    return 0.0


@procedure
def is_curved(shapes: Shapes, i: int) -> bool:
    """Whether the core has a curved surface."""
    return i >= 0 and (shapes.kind[i] == tables.CYLINDER or shapes.kind[i] == tables.ELLIPSOID)


@procedure
def size_of(shapes: Shapes, i: int, corners: "float[6, 3]") -> float:
    """Radius of a ball that holds a shape, or a length of the order of a triangle's."""
    if i >= 0:
        return shapes.radius[i]
    k = -3 * (i + 1)
    a = corners[k + 1] - corners[k]
    b = corners[k + 2] - corners[k]
    return sqrt(a @ a) + sqrt(b @ b)


@procedure
def middle(shapes: Shapes, i: int, corners: "float[6, 3]", o: "float[3]", out: "float[3]"):
    """Centre of the box around a shape, relative to ``o``."""
    if i < 0:
        k = -3 * (i + 1)
        out[:] = (corners[k] + corners[k + 1] + corners[k + 2]) / 3.0
    else:
        P = shapes.pose[i]
        x = shapes.box[i]
        out[:] = P[::4] * x[0] + P[1::4] * x[1] + P[2::4] * x[2] + (P[3::4] - o)


@procedure
def into_shape(P: "float[12]", d: "float[3]", out: "float[3]"):
    """A direction of the world in the axes of a shape."""
    out[:] = P[:3] * d[0] + P[4:7] * d[1] + P[8:11] * d[2]


@procedure
def out_of_shape(P: "float[12]", o: "float[3]", x: float, y: float, z: float, out: "float[3]"):
    """A point given in a shape, in the axes of the world and relative to ``o``."""
    out[:] = P[::4] * x + P[1::4] * y + P[2::4] * z + (P[3::4] - o)


@procedure
def farthest_vertex(shapes: Shapes, i: int, x: float, y: float, z: float, start: int) -> int:
    """The vertex of a hull farthest along (x, y, z), climbing from ``start`` on."""
    first = shapes.data[i, 0]
    count = shapes.data[i, 1]
    vertex = shapes.vertex
    best = first
    if count > _FEW and start >= first and start < first + count:
        best = start
    high = vertex[best, 0] * x + vertex[best, 1] * y + vertex[best, 2] * z
    if count <= _FEW:
        for k in range(first + 1, first + count):
            height = vertex[k, 0] * x + vertex[k, 1] * y + vertex[k, 2] * z
            if height > high:
                best = k
                high = height
        return best
    at = -1
    while at != best:
        at = best
        for k in range(shapes.neighbour_first[at], shapes.neighbour_first[at + 1]):
            other = shapes.neighbour[k]
            height = vertex[other, 0] * x + vertex[other, 1] * y + vertex[other, 2] * z
            if height > high:
                best = other
                high = height
    return best


@procedure
def support(
    shapes: Shapes, i: int, corners: "float[6, 3]", o: "float[3]", d: "float[3]", start: int,
    out: "float[3]",
) -> int:  # fmt: skip
    """The farthest point of a core along ``d``, and the number of its corner (0 if it is curved).

    ``start`` is the corner found for a direction nearby, or anything.
    """
    if i < 0:
        best = -3 * (i + 1)
        high = corners[best] @ d
        for k in range(best + 1, best + 3):
            height = corners[k] @ d
            if height > high:
                best = k
                high = height
        out[:] = corners[best]
        return best
    kind = shapes.kind[i]
    P = shapes.pose[i]
    size = shapes.size[i]
    dx = P[0] * d[0] + P[4] * d[1] + P[8] * d[2]
    dy = P[1] * d[0] + P[5] * d[1] + P[9] * d[2]
    dz = P[2] * d[0] + P[6] * d[1] + P[10] * d[2]
    x = 0.0
    y = 0.0
    z = 0.0
    corner = 0
    if kind == tables.HULL:
        corner = farthest_vertex(shapes, i, dx, dy, dz, start)
        x = shapes.vertex[corner, 0]
        y = shapes.vertex[corner, 1]
        z = shapes.vertex[corner, 2]
    elif kind == tables.BOX:
        x = size[0]
        y = size[1]
        z = size[2]
        if dx < 0:
            x = -x
            corner += 1
        if dy < 0:
            y = -y
            corner += 2
        if dz < 0:
            z = -z
            corner += 4
    elif kind == tables.CAPSULE:
        z = size[1]
        if dz < 0:
            z = -z
            corner = 1
    elif kind == tables.CYLINDER:
        across = sqrt(dx * dx + dy * dy)
        if across > 1e-15 * abs(dz):
            x = size[0] * dx / across
            y = size[0] * dy / across
        z = size[1]
        if dz < 0:
            z = -z
    elif kind == tables.ELLIPSOID:
        x = size[0] * size[0] * dx
        y = size[1] * size[1] * dy
        z = size[2] * size[2] * dz
        length = sqrt(x * dx + y * dy + z * dz)
        if length > 0:
            x = x / length
            y = y / length
            z = z / length
    out_of_shape(P, o, x, y, z, out)
    return corner


# --- faces and edges -----------------------------------------------------------------------------


@procedure
def support_face(
    shapes: Shapes, i: int, corners: "float[6, 3]", o: "float[3]", d: "float[3]", tilt: float,
    out: "float[16, 3]",
) -> int:  # fmt: skip
    """Corners of the face or edge within ``tilt`` (sine) of right angles to ``d``, else one point.

    ``d`` has unit length. Faces are in order, counter-clockwise seen from the tip of ``d``.
    """
    if i < 0:
        return _face_of_triangle(corners, -3 * (i + 1), d, tilt, out)
    kind = shapes.kind[i]
    P = shapes.pose[i]
    size = shapes.size[i]
    if kind == tables.HULL:
        return _face_of_hull(shapes, i, o, d, tilt, out)
    if kind == tables.BOX:
        return _face_of_box(P, size, o, d, tilt, out)
    if kind == tables.CYLINDER:
        return _face_of_cylinder(P, size, o, d, tilt, out)
    r = round_of(shapes, i)
    level = local_dot(P, 2, d)
    n = 1
    if kind == tables.CAPSULE and abs(level) <= tilt:
        n = 2
        out_of_shape(P, o, 0.0, 0.0, size[1], out[0])
        out_of_shape(P, o, 0.0, 0.0, -size[1], out[1])
    else:
        support(shapes, i, corners, o, d, 0, out[0])
    out[:n] += r * d
    return n


@procedure
def local_dot(P: "float[12]", axis: int, d: "float[3]") -> float:
    """Component of a direction along an axis of a shape."""
    return P[axis] * d[0] + P[4 + axis] * d[1] + P[8 + axis] * d[2]


@procedure
def _face_of_triangle(
    corners: "float[6, 3]", first: int, d: "float[3]", tilt: float, out: "float[16, 3]"
) -> int:
    best = first
    for k in range(first + 1, first + 3):
        if corners[k] @ d > corners[best] @ d:
            best = k
    # neighbours of the farthest corner along edges that are level
    n = 1
    after = first + (best - first + 1) % 3
    before = first + (best - first + 2) % 3
    out[0] = corners[best]
    ahead = corners[after] - corners[best]
    back = corners[before] - corners[best]
    level_ahead = -(ahead @ d) <= tilt * sqrt(ahead @ ahead)
    level_back = -(back @ d) <= tilt * sqrt(back @ back)
    if level_ahead or level_back:
        n = 2
        other = after if level_ahead else before
        out[1] = corners[other]
    if level_ahead and level_back:
        n = 3
        one = after
        two = before
        if cross(ahead, back) @ d < 0:
            one = before
            two = after
        out[1] = corners[one]
        out[2] = corners[two]
    return n


@procedure
def _face_of_box(
    P: "float[12]", size: "float[3]", o: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]"
) -> int:
    c = local("float", 3)
    into_shape(P, d, c)
    x = size[0] if c[0] >= 0 else -size[0]
    y = size[1] if c[1] >= 0 else -size[1]
    z = size[2] if c[2] >= 0 else -size[2]
    flat_x = abs(c[0]) <= tilt
    flat_y = abs(c[1]) <= tilt
    flat_z = abs(c[2]) <= tilt
    n = 0
    # signs of the corners, in order around d
    for k in range(4):
        u = 1.0 if k == 0 or k == 3 else -1.0
        v = 1.0 if k < 2 else -1.0
        fx = x
        fy = y
        fz = z
        use = True
        if flat_x and flat_y:
            fx = u * size[0] if c[2] >= 0 else v * size[0]
            fy = v * size[1] if c[2] >= 0 else u * size[1]
        elif flat_y and flat_z:
            fy = u * size[1] if c[0] >= 0 else v * size[1]
            fz = v * size[2] if c[0] >= 0 else u * size[2]
        elif flat_z and flat_x:
            fz = u * size[2] if c[1] >= 0 else v * size[2]
            fx = v * size[0] if c[1] >= 0 else u * size[0]
        elif flat_x:
            fx = size[0] if k == 0 else -size[0]
            use = k < 2
        elif flat_y:
            fy = size[1] if k == 0 else -size[1]
            use = k < 2
        elif flat_z:
            fz = size[2] if k == 0 else -size[2]
            use = k < 2
        else:
            use = k < 1
        if use:
            out_of_shape(P, o, fx, fy, fz, out[n])
            n += 1
    return n


@procedure
def _face_of_cylinder(
    P: "float[12]", size: "float[3]", o: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]"
) -> int:
    c = local("float", 3)
    into_shape(P, d, c)
    across = sqrt(c[0] * c[0] + c[1] * c[1])
    x = 1.0
    y = 0.0
    if across > 1e-6:  # or else in the shape's own axes, so that corners keep their places
        x = c[0] / across
        y = c[1] / across
    z = size[1] if c[2] >= 0 else -size[1]
    if across <= tilt:
        turn = _TURN if c[2] >= 0 else -_TURN
        for k in range(DISC):
            co = cos(k * turn)
            si = sin(k * turn)
            out_of_shape(P, o, size[0] * (co * x - si * y), size[0] * (si * x + co * y), z, out[k])
        return DISC
    out_of_shape(P, o, size[0] * x, size[0] * y, z, out[0])
    if abs(c[2]) <= tilt:
        out_of_shape(P, o, size[0] * x, size[0] * y, -z, out[1])
        return 2
    return 1


@procedure
def _face_of_hull(
    shapes: Shapes, i: int, o: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]"
) -> int:
    P = shapes.pose[i]
    c = local("float", 3)
    into_shape(P, d, c)
    face = best_face(shapes, i, c)
    f = shapes.face_normal[face]
    n = 0
    away = cross(f, c)
    if f @ c > 0 and away @ away <= tilt * tilt:
        start, end = shapes.face_first[face], shapes.face_first[face + 1]
        step = (end - start + CORNERS - 1) // CORNERS  # of many corners some, all around
        while start + n * step < end:
            p = shapes.vertex[shapes.face_vertex[start + n * step]]
            out_of_shape(P, o, p[0], p[1], p[2], out[n])
            n += 1
        return n
    top = farthest_vertex(shapes, i, c[0], c[1], c[2], -1)
    p = shapes.vertex[top]
    out_of_shape(P, o, p[0], p[1], p[2], out[0])
    # the most level edge
    flattest = -1
    least = tilt
    for k in range(shapes.neighbour_first[top], shapes.neighbour_first[top + 1]):
        way = shapes.vertex[shapes.neighbour[k]] - p
        drop = -(way @ c) / sqrt(way @ way)
        if drop <= least:
            least = drop
            flattest = shapes.neighbour[k]
    if flattest < 0:
        return 1
    p = shapes.vertex[flattest]
    out_of_shape(P, o, p[0], p[1], p[2], out[1])
    return 2


@procedure
def best_face(shapes: Shapes, i: int, c: "float[3]") -> int:
    """The face of a hull whose outward normal is nearest to ``c``, in the shape's axes."""
    first = shapes.data[i, 2]
    best = first
    high = shapes.face_normal[first] @ c
    for f in range(first + 1, first + shapes.data[i, 3]):
        height = shapes.face_normal[f] @ c
        if height > high:
            best = f
            high = height
    return best
