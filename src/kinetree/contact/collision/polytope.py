"""Polytopes of differences of points of two cores, which grow corner by corner; see ``epa``."""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, workspace
from kinetree.contact.collision.simplex import Pair, Simplex
from kinetree.contact.collision.support import support
from kinetree.contact.collision.tables import Shapes

CORNERS = 512
FACES = 1024
"""Room of a polytope."""
_RIM = 256
EVEN = 1e-13
"""Part of the size within which what is in one plane may miss it."""
_THICK = 1e-11  # of the size: what is thinner is flat


@workspace
class Polytope:
    """A polytope of differences of points of two cores.

    Attributes:
        count: corners.
        difference: points of the second core less those of the first.
        first: points of the first core.
        second: points of the second core.
        corner: numbers of the corners that these are.
        faces: how many.
        face: three corners of each.
        normal: outwards, unit.
        offset: distance of its plane from the origin, or a bound that is found for it.
        centre: of the first four corners.
        scale: distance of the farthest corner from the origin.
        rims: edges of the hole of the faces that a new corner sees.
        rim: their corners.
        depth: the best upper bound so far.
        is_refined: whether Newton's method found that.
    """

    count: int
    difference: "float[CORNERS, 3]"
    first: "float[CORNERS, 3]"
    second: "float[CORNERS, 3]"
    corner: "int[CORNERS, 2]"
    faces: int
    face: "int[FACES, 3]"
    normal: "float[FACES, 3]"
    offset: "float[FACES]"
    centre: "float[3]"
    scale: float
    rims: int
    rim: "int[_RIM, 2]"
    depth: float
    is_refined: bool


@procedure
def find_corner(shapes: Shapes, pair: Pair, polytope: Polytope, f: "float[3]", k: int) -> None:
    """Set polytope corner ``k`` to the support point of the Minkowski difference along ``f``."""
    minus = -f
    before = k - 1 if k > 0 else 0
    A, B, at = polytope.first, polytope.second, polytope.corner
    i_start = at[before, 0] if k > 0 else -1
    j_start = at[before, 1] if k > 0 else -1
    at[k, 0] = support(shapes, pair.i, pair.corners, pair.origin, minus, i_start, A[k])
    at[k, 1] = support(shapes, pair.j, pair.corners, pair.origin, f, j_start, B[k])
    polytope.difference[k] = B[k] - A[k]


@procedure
def move_corner(polytope: Polytope, source: int, target: int) -> None:
    """Copy one polytope corner over another."""
    polytope.difference[target] = polytope.difference[source]
    polytope.first[target] = polytope.first[source]
    polytope.second[target] = polytope.second[source]
    polytope.corner[target] = polytope.corner[source]


# --- From a simplex to a tetrahedron -------------------------------------------------------------


@procedure
def thicken(shapes: Shapes, pair: Pair, polytope: Polytope, n: "float[3]") -> int:
    """Grow a flat simplex towards a tetrahedron; number of corners, with normal ``n`` if flat.

    ``n`` is then a unit vector at right angles to it.
    """
    size = find_extent(shapes, pair, polytope)
    thin = _THICK * size
    if polytope.count == 1:
        if size == 0.0:
            return 1
        polytope.count = 2
    if polytope.count == 3:
        drop_middle(polytope, thin)
    if polytope.count == 2 and not add_beside(shapes, pair, polytope, thin, n):
        return 2
    if polytope.count == 3 and not add_above(shapes, pair, polytope, thin, n):
        return 3
    return polytope.count


@procedure
def find_extent(shapes: Shapes, pair: Pair, polytope: Polytope) -> float:
    """Largest distance of the Minkowski difference's support points from the first corner."""
    f = local("float", 3)
    W = polytope.difference
    size = 0.0
    for k in range(6):
        f[:] = 0.0
        f[k // 2] = 1.0 if k % 2 == 0 else -1.0
        find_corner(shapes, pair, polytope, f, 4)
        distance = sqrt((W[4] - W[0]) @ (W[4] - W[0]))
        size = max(size, distance)
        if polytope.count == 1 and size > 0 and distance >= size:
            move_corner(polytope, 4, 1)
    return size


@procedure
def drop_middle(polytope: Polytope, thin: float) -> None:
    """Drop the middle one of three collinear corners of a polytope."""
    W = polytope.difference
    one = W[1] - W[0]
    two = W[2] - W[0]
    off = cross(one, two)
    longest = max(one @ one, two @ two)
    if off @ off <= thin * thin * longest:
        if two @ two > one @ one:
            move_corner(polytope, 2, 1)
        polytope.count = 2


@procedure
def add_beside(shapes: Shapes, pair: Pair, polytope: Polytope, thin: float, n: "float[3]") -> bool:
    """Add a corner off the line of the first two and return True; else set ``n`` normal to it."""
    W = polytope.difference
    f = local("float", 3)
    t = W[1] - W[0]
    length = sqrt(t @ t)
    t = t / length
    k = 0
    if abs(t[1]) < abs(t[k]):
        k = 1
    if abs(t[2]) < abs(t[k]):
        k = 2
    f[:] = 0.0
    f[k] = 1.0
    side = cross(t, f)
    side = side / sqrt(side @ side)
    for _ in range(6):
        f[:] = side
        find_corner(shapes, pair, polytope, f, 2)
        off = cross(W[2] - W[0], t)
        if sqrt(off @ off) > thin:
            polytope.count = 3
            return True
        side = side * 0.5 + cross(t, side) * 0.8660254037844386
    side = side - t * (side @ t)
    side = side / sqrt(side @ side)
    n[:] = side
    return False


@procedure
def add_above(shapes: Shapes, pair: Pair, polytope: Polytope, thin: float, n: "float[3]") -> bool:
    """Add a corner off the plane of the first three and return True; else set its normal ``n``."""
    W = polytope.difference
    f = local("float", 3)
    up = cross(W[1] - W[0], W[2] - W[0])
    up = up / sqrt(up @ up)
    for _ in range(2):
        f[:] = up
        find_corner(shapes, pair, polytope, f, 3)
        if abs((W[3] - W[0]) @ up) > thin:
            polytope.count = 4
            return True
        up = -up
    n[:] = up
    return False


@procedure
def begin(shapes: Shapes, pair: Pair, simplex: Simplex, polytope: Polytope, n: "float[3]") -> bool:
    """Start a polytope as a tetrahedron from a simplex; False with a normal if the set is flat."""
    W = polytope.difference
    for k in range(simplex.count):
        W[k] = simplex.difference[k]
        polytope.first[k] = simplex.first[k]
        polytope.second[k] = simplex.second[k]
        polytope.corner[k] = simplex.corner[k]
    for k in range(simplex.count, 4):
        polytope.corner[k] = -1  # where the search for the next one begins
    polytope.count = simplex.count
    if simplex.count < 4 and thicken(shapes, pair, polytope, n) < 4:
        return False
    polytope.scale = 0.0
    for k in range(4):
        polytope.scale = max(polytope.scale, W[k] @ W[k])
    polytope.scale = sqrt(polytope.scale)
    turn = 0
    if cross(W[1] - W[0], W[2] - W[0]) @ (W[3] - W[0]) > 0:
        turn = 1
    polytope.centre[:] = (W[0] + W[1] + W[2] + W[3]) / 4
    set_face(polytope, 0, 0, 1 + turn, 2 - turn)
    set_face(polytope, 1, 0, 3 - 2 * turn, 1 + 2 * turn)
    set_face(polytope, 2, 1, 3 - turn, 2 + turn)
    set_face(polytope, 3, 2, 3 - 3 * turn, 3 * turn)
    polytope.faces = 4
    return True


# --- Faces ---------------------------------------------------------------------------------------


@procedure
def set_face(polytope: Polytope, k: int, p: int, q: int, r: int) -> None:
    """Set polytope face ``k`` through corners p, q, r, with its normal and offset.

    One without an area is never the nearest, nor one that rounding turned inside out, which has the
    centre of the polytope in front of it.
    """
    face, W = polytope.face[k], polytope.difference
    face[0] = p
    face[1] = q
    face[2] = r
    a = W[q] - W[p]
    b = W[r] - W[p]
    n = cross(a, b)
    area = n @ n
    if area > 1e-28 * (a @ a) * (b @ b) and (W[p] - polytope.centre) @ n > 0:
        n = n / sqrt(area)
        polytope.normal[k] = n
        polytope.offset[k] = n @ W[p]
    else:
        polytope.normal[k] = n * 0.0
        polytope.offset[k] = 1e300


@procedure
def nearest_face(polytope: Polytope) -> int:
    """Number of the polytope face that is nearest to the origin."""
    offset = polytope.offset
    near = 0
    for k in range(1, polytope.faces):
        if offset[k] < offset[near]:
            near = k
    return near


@procedure
def foot_on_face(polytope: Polytope, k: int, f: "float[3]", a: "float[3]") -> float:
    """Project the origin on a face: writes the first core's point; smallest barycentric weight."""
    W, A = polytope.difference, polytope.first
    p, q, r = polytope.face[k, 0], polytope.face[k, 1], polytope.face[k, 2]
    foot = f * (f @ W[p])
    x = cross(W[q] - foot, W[r] - foot) @ f
    y = cross(W[r] - foot, W[p] - foot) @ f
    z = cross(W[p] - foot, W[q] - foot) @ f
    least = min(min(x, y), z) / (x + y + z)
    x = max(x, 0.0)
    y = max(y, 0.0)
    z = max(z, 0.0)
    total = x + y + z
    a[:] = (x * A[p] + y * A[q] + z * A[r]) / total
    return least


@procedure
def is_corner(polytope: Polytope, w: "float[3]") -> bool:
    """Whether the Minkowski difference ``w`` coincides with a polytope corner, up to rounding."""
    near = EVEN * EVEN * polytope.scale * polytope.scale
    old = False
    for k in range(polytope.count):
        away = polytope.difference[k] - w
        if away @ away <= near:
            old = True
    return old


@procedure
def add_to_rim(polytope: Polytope, p: int, q: int) -> None:
    """Add a directed edge to the horizon of the visible faces, or cancel its reverse."""
    rim, count = polytope.rim, polytope.rims
    back = -1
    for e in range(count):
        if rim[e, 0] == q and rim[e, 1] == p:
            back = e
    if back >= 0:
        count -= 1
        rim[back] = rim[count]
    elif count < _RIM:
        rim[count, 0] = p
        rim[count, 1] = q
        count += 1
    polytope.rims = count


@procedure
def remove_seen(polytope: Polytope, near: int) -> None:
    """Remove the polytope faces that the new corner sees, and collect their horizon."""
    face, normal, offset = polytope.face, polytope.normal, polytope.offset
    w = polytope.difference[polytope.count]
    even = EVEN * polytope.scale
    polytope.rims = 0
    faces = polytope.faces
    k = 0
    while k < faces:
        if normal[k] @ w - min(offset[k], 1e200) > even or k == near:
            add_to_rim(polytope, face[k, 0], face[k, 1])
            add_to_rim(polytope, face[k, 1], face[k, 2])
            add_to_rim(polytope, face[k, 2], face[k, 0])
            faces -= 1
            face[k] = face[faces]
            normal[k] = normal[faces]
            offset[k] = offset[faces]
            if near == k:
                near = -1
            elif near == faces:
                near = k
        else:
            k += 1
    polytope.faces = faces


@procedure
def add_faces(polytope: Polytope) -> None:
    """Add the new polytope corner with a face to every edge of the horizon."""
    for e in range(polytope.rims):
        set_face(
            polytope,
            polytope.faces,
            polytope.rim[e, 0],
            polytope.rim[e, 1],
            polytope.count,
        )
        polytope.faces += 1
    polytope.count += 1
