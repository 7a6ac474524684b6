"""Support points of convex shapes: farthest along a direction, and the face or edge there.

A sphere is a point and a capsule a segment here, each with a ball around it (``round_of``): their
cores. Triangles of meshes are shapes -1 and -2 with their own corners. Points are relative to an
origin that the caller chooses near the shapes: far from that of the world nothing is lost.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt
from kinetree.contact.collision import tables
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.kinds import choice_of, trait
from kinetree.contact.collision.tables import Shapes

CORNERS = 16
"""The most corners of a support face."""
_FEW = 24  # vertices up to which looking at all is quicker than climbing
SIDE = 4
"""Cells along the edges of a cube around the origin, whose rays are directions near each other."""
_ROUNDED = trait(lambda kind: kind.is_rounded)
MODES = trait(lambda kind: kind.modes)
"""Of curved kinds, in how many ways a normal can stand on them; 0 of others."""


@procedure(inline=True)
def no_support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of a shape that is not a solid: none."""
    x[:] = 0.0
    return 0


@procedure
def no_face(size: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]") -> int:
    """Face of a solid that touches in one point only: none."""
    return 0


SUPPORT = choice_of("support", no_support)
FACE = choice_of("face", no_face)


@procedure
def round_of(shapes: Shapes, i: int) -> float:
    """Rounding radius of a shape: that of the ball swept over its core; 0 if not rounded [m]."""
    if i >= 0 and _ROUNDED[shapes.kind[i]] > 0:
        return shapes.size[i, 0]
    return 0.0


@procedure
def is_curved(shapes: Shapes, i: int) -> bool:
    """Whether the core of shape i has a curved surface."""
    return i >= 0 and MODES[shapes.kind[i]] > 0


@procedure
def size_of(shapes: Shapes, i: int, corners: "float[6, 3]") -> float:
    """Bounding radius of a shape, or for i < 0 the length scale of a loaded triangle."""
    if i >= 0:
        return shapes.radius[i]
    k = -3 * (i + 1)
    a = corners[k + 1] - corners[k]
    b = corners[k + 2] - corners[k]
    return sqrt(a @ a) + sqrt(b @ b)


@procedure
def middle(shapes: Shapes, i: int, corners: "float[6, 3]", o: "float[3]", out: "float[3]"):
    """Centre of a shape's bounding box, or of a loaded triangle, relative to ``o``."""
    if i < 0:
        k = -3 * (i + 1)
        out[:] = (corners[k] + corners[k + 1] + corners[k + 2]) / 3.0
    else:
        P = shapes.pose[i]
        x = shapes.box[i]
        out[:] = P[::4] * x[0] + P[1::4] * x[1] + P[2::4] * x[2] + (P[3::4] - o)


@procedure
def cell_of(x: float, y: float, z: float) -> int:
    """Number of the cell of a cube map around the origin that a direction goes through."""
    a, b, c = abs(x), abs(y), abs(z)
    face, u, v, w = 0, y, z, a
    if b > a and b >= c:
        face, u, v, w = 2, z, x, b
    elif c > a:
        face, u, v, w = 4, x, y, c
    if (x if face == 0 else y if face == 2 else z) < 0.0:
        face += 1
    scale = 0.5 * SIDE / w if w > 0.0 else 0.0
    i = int(max(0.0, min(SIDE - 1.0, (u + w) * scale)))
    j = int(max(0.0, min(SIDE - 1.0, (v + w) * scale)))
    return (face * SIDE + i) * SIDE + j


@procedure
def farthest_vertex(shapes: Shapes, i: int, x: float, y: float, z: float, start: int) -> int:
    """Number of the hull vertex farthest along (x, y, z), by hill climbing from ``start``.

    It is climbed to from ``start``, found for a direction nearby, or from the one that is farthest
    along the middle of the direction's cell, whichever is higher.
    """
    first = shapes.data[i, 0]
    count = shapes.data[i, 1]
    vertex = shapes.vertex
    if count <= _FEW:
        best = first
        high = vertex[best, 0] * x + vertex[best, 1] * y + vertex[best, 2] * z
        for k in range(first + 1, first + count):
            height = vertex[k, 0] * x + vertex[k, 1] * y + vertex[k, 2] * z
            if height > high:
                best = k
                high = height
        return best
    best = first + shapes.ahead[shapes.firsts[i, 0] + cell_of(x, y, z)]
    high = vertex[best, 0] * x + vertex[best, 1] * y + vertex[best, 2] * z
    if start >= first and start < first + count:
        height = vertex[start, 0] * x + vertex[start, 1] * y + vertex[start, 2] * z
        if height > high:
            best = start
            high = height
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
    shapes: Shapes,
    i: int,
    corners: "float[6, 3]",
    o: "float[3]",
    d: "float[3]",
    start: int,
    out: "float[3]",
) -> int:
    """Support point of shape i's core along ``d``; returns its vertex number, 0 if curved.

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
    P = shapes.pose[i]
    c, x = local("float", 2, 3)
    into_shape(P, d, c)
    if shapes.kind[i] == tables.HULL:
        corner = farthest_vertex(shapes, i, c[0], c[1], c[2], start)
        x[:] = shapes.vertex[corner]
    else:
        corner = SUPPORT[shapes.kind[i]](shapes.size[i], c, x)
    out_of_shape(P, o, x[0], x[1], x[2], out)
    return corner


# --- faces and edges -----------------------------------------------------------------------------


@procedure
def support_face(
    shapes: Shapes,
    i: int,
    corners: "float[6, 3]",
    o: "float[3]",
    d: "float[3]",
    tilt: float,
    out: "float[16, 3]",
) -> int:
    """Corners of the support face or edge along ``d``, up to a tilt (sine); their number.

    ``d`` has unit length. Faces are in order, counter-clockwise seen from the tip of ``d``.
    """
    if i < 0:
        return _face_of_triangle(corners, -3 * (i + 1), d, tilt, out)
    if shapes.kind[i] == tables.HULL:
        return _face_of_hull(shapes, i, o, d, tilt, out)
    P = shapes.pose[i]
    c = local("float", 3)
    into_shape(P, d, c)
    n = FACE[shapes.kind[i]](shapes.size[i], c, tilt, out)
    for k in range(n):
        out_of_shape(P, o, out[k, 0], out[k, 1], out[k, 2], out[k])
    if n == 0:
        n = 1
        support(shapes, i, corners, o, d, 0, out[0])
    out[:n] += round_of(shapes, i) * d
    return n


@procedure
def _face_of_triangle(
    corners: "float[6, 3]", first: int, d: "float[3]", tilt: float, out: "float[16, 3]"
) -> int:
    """Corners of a triangle's support feature along ``d``, up to a tilt; returns their number."""
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
def _face_of_hull(
    shapes: Shapes, i: int, o: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]"
) -> int:
    """Corners of a hull's support face or edge along ``d``, up to a tilt; their number."""
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
    """Number of the hull face whose outward normal is nearest to ``c``, in the shape's axes."""
    first = shapes.data[i, 2]
    best = first
    high = shapes.face_normal[first] @ c
    for f in range(first + 1, first + shapes.data[i, 3]):
        height = shapes.face_normal[f] @ c
        if height > high:
            best = f
            high = height
    return best
