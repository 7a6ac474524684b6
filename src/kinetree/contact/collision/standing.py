"""Ways in which a normal stands on a shape: on a corner, an edge, a face, a rim, a round side.

Each mode of a shape is one of these: in it there is a point farthest along the normal, whose
derivative is the matrix of the radii of curvature. Of a polyhedron, the corners in the simplex of
``gjk`` or ``epa`` are tried: its face, edges, corners.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, view, workspace
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.kinds.kind import EDGE, FACE, NONE, SINGLE, TILT
from kinetree.contact.collision.simplex import Simplex
from kinetree.contact.collision.support import MODES, best_face, is_curved
from kinetree.contact.collision.tables import BOX, HULL, Shapes


@procedure
def no_mode(
    size: "float[3]",
    mode: int,
    d: "float[3]",
    q: "float[3]",
    x: "float[3]",
    bend: "float[3, 3]",
    e: "float[4]",
) -> int:
    """Support point of a solid without curved faces in any mode: none; returns ``NONE``."""
    return NONE


@procedure
def never_within(size: "float[3]", mode: int, x: "float[3]", slack: float) -> bool:
    """Whether a point is on a curved feature of a solid without curved faces: never."""
    return False


STAND = choice_of("stand", no_mode)
WITHIN = choice_of("within", never_within)


@workspace
class Side:
    """One shape of a pair, and how the normal stands on it; see ``SolidKind.stand``.

    Attributes:
        shape: its number.
        count: different corners of it in a simplex.
        corner: these.
        mode: in which of the ways.
        status: what was found, ``SINGLE``, ``EDGE``, ``FACE``, ``CROSSING`` or ``NONE``.
        normal: outwards.
        point: farthest along the normal, relative to the origin of the pair.
        bend: derivative of the point by the normal.
        line: of an edge ``line[:3] @ normal == line[3]`` where it is farthest; a face's normal.
    """

    shape: int
    count: int
    corner: "float[4, 3]"
    mode: int
    status: int
    normal: "float[3]"
    point: "float[3]"
    bend: "float[3, 3]"
    line: "float[4]"


@procedure
def set_side(side: Side, shape: int, simplex: Simplex, which: int) -> None:
    """Set a ``Side``: shape and distinct corners of its simplex; ``which``: 0 first, 1 second."""
    P = simplex.first if which == 0 else simplex.second
    at = simplex.corner
    count = 0
    for k in range(simplex.count):
        old = False
        for e in range(k):
            if at[e, which] == at[k, which]:
                old = True
        if not old and count < 3:
            side.corner[count] = P[k]
            count += 1
    side.shape = shape
    side.count = count


@procedure
def modes(shapes: Shapes, side: Side) -> int:
    """Number of modes of a ``Side``: features of its shape on which the normal may stand."""
    if is_curved(shapes, side.shape):
        return MODES[shapes.kind[side.shape]]
    if side.count == 3:
        return 8
    return 4 if side.count == 2 else 2


@procedure
def stand(shapes: Shapes, side: Side, origin: "float[3]", other: "float[3]") -> int:
    """Support point of a ``Side``'s shape in its mode, with derivative and edge line; the status.

    ``other`` is about the nearest point of the other shape.
    """
    side.bend[:] = 0.0
    side.line[3] = 0.0
    if is_curved(shapes, side.shape):
        side.status = stand_on_curved(shapes, side, origin, other)
    elif side.mode == 0:
        side.status = nearest_face(shapes, side, origin)
    else:
        side.status = stand_on_corners(side)
    return side.status


@procedure
def stand_on_curved(shapes: Shapes, side: Side, origin: "float[3]", other: "float[3]") -> int:
    """Support point on a curved solid's feature in a mode; returns the status."""
    i = side.shape
    P = shapes.pose[i]
    R = view(P, 0, 3, 4)[:, :3]
    d, q, x = local("float", 3, 3)
    turned = local("float", 3, 3)
    turned[:] = 0.0
    into_shape(P, side.normal, d)
    into_shape(P, other - (P[3::4] - origin), q)
    e = side.line
    status = STAND[shapes.kind[i]](shapes.size[i], side.mode, d, q, x, turned, e)
    if status == NONE:
        return NONE
    out_of_shape(P, origin, x[0], x[1], x[2], side.point)
    for k in range(3):
        side.bend[k] = R @ (turned @ R[k])
    if status != SINGLE:
        e[:3] = R @ e[:3]
    return status


@procedure
def stand_on_corners(side: Side) -> int:
    """Support feature among a simplex's corners: face, edge or corner; returns the status."""
    C, e, count, mode = side.corner, side.line, side.count, side.mode - 1
    if count == 3 and mode == 0:
        f = cross(C[1] - C[0], C[2] - C[0])
        length = sqrt(f @ f)
        if length == 0.0:
            return NONE
        if f @ side.normal < 0:
            length = -length
        e[:3] = f / length
        side.point[:] = C[0]
        return FACE
    k = mode - 4 if count == 3 else mode - 1
    if (count == 3 and mode < 4) or (count == 2 and mode == 0):
        first = mode - 1 if count == 3 else 0
        second = (first + 1) % count
        way = C[second] - C[first]
        length = sqrt(way @ way)
        if length == 0.0:
            return NONE
        e[:3] = way / length
        side.point[:] = C[first]
        return EDGE
    if count == 1:
        k = 0
    side.point[:] = C[k]
    return SINGLE


@procedure
def nearest_face(shapes: Shapes, side: Side, origin: "float[3]") -> int:
    """Plane of the box or hull face nearest to a side's normal; ``NONE`` for other shapes."""
    i, n, p, e = side.shape, side.normal, side.point, side.line
    if i < 0 or (shapes.kind[i] != BOX and shapes.kind[i] != HULL):
        return NONE
    P = shapes.pose[i]
    d = local("float", 3)
    into_shape(P, n, d)
    if shapes.kind[i] == BOX:
        k = 0
        if abs(d[1]) > abs(d[k]):
            k = 1
        if abs(d[2]) > abs(d[k]):
            k = 2
        sign = 1.0 if d[k] > 0 else -1.0
        e[:3] = sign * view(P, 0, 3, 4)[:, k]
        p[:] = e[:3] * shapes.size[i, k] + (P[3::4] - origin)
    else:
        face = best_face(shapes, i, d)
        f = shapes.face_normal[face]
        x = shapes.vertex[shapes.face_vertex[shapes.face_first[face]]]
        out_of_shape(P, origin, x[0], x[1], x[2], p)
        e[:3] = P[::4] * f[0] + P[1::4] * f[1] + P[2::4] * f[2]
    return FACE if e[:3] @ n > 1 - TILT else NONE


@procedure
def within(shapes: Shapes, side: Side, origin: "float[3]", slack: float) -> bool:
    """Whether the point of a ``Side`` lies on the edge or face of its mode, with slack [m]."""
    i, mode, count, C, p = side.shape, side.mode, side.count, side.corner, side.point
    if is_curved(shapes, i):
        P = shapes.pose[i]
        d = local("float", 3)
        d[:] = p - (P[3::4] - origin)
        s = local("float", 3)
        into_shape(P, d, s)
        return WITHIN[shapes.kind[i]](shapes.size[i], mode, s, slack)
    if mode == 0:
        return within_polyhedron(shapes, i, origin, p, slack)
    mode -= 1
    if count == 3 and mode == 0:
        f = cross(C[1] - C[0], C[2] - C[0])
        for k in range(3):
            q = (k + 1) % 3
            if cross(C[q] - C[k], p - C[k]) @ f < -slack * sqrt(f @ f):
                return False
        return True
    first = mode - 1 if count == 3 else 0
    way = C[(first + 1) % count] - C[first]
    past = (p - C[first]) @ way
    length = sqrt(way @ way)
    return past >= -slack * length and past <= (length + slack) * length


@procedure
def within_polyhedron(
    shapes: Shapes, i: int, origin: "float[3]", p: "float[3]", slack: float
) -> bool:
    """Whether a point is inside a box or hull, with slack [m]."""
    P = shapes.pose[i]
    x = local("float", 3)
    d = p - (P[3::4] - origin)
    into_shape(P, d, x)
    if shapes.kind[i] == BOX:
        past = abs(x[0]) - shapes.size[i, 0]
        past = max(past, abs(x[1]) - shapes.size[i, 1])
        return max(past, abs(x[2]) - shapes.size[i, 2]) <= slack
    for f in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
        corner = shapes.vertex[shapes.face_vertex[shapes.face_first[f]]]
        if (x - corner) @ shapes.face_normal[f] > slack:
            return False
    return True
