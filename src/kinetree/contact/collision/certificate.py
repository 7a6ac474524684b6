"""A check of every answer of the searches for nearest points and depths, and another try.

The slab between two shapes at right angles to the normal is a lower bound of their gap, and the
gap itself if the answer is right; one along the opposite normal, or along the line of centres, is
never wider. Rounding errors of a simplex or polytope that is nearly flat may break both. Then the
widest slab is looked for among the normals of faces and axes, and refined from there.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, view
from kinetree.contact.collision.axes import across_facets, edge_pairs
from kinetree.contact.collision.gjk import INSIDE, gjk
from kinetree.contact.collision.polyhedra import polyhedra_gap
from kinetree.contact.collision.refine import refine, width
from kinetree.contact.collision.support import middle, size_of
from kinetree.contact.collision.tables import BOX, HULL, Shapes

_AGREE = 1e-13  # of the size: by which width and gap may differ
_TIGHT = 1e-15  # tolerance of the search, of the square of the distance
_TURNS = 6  # of Newton's method, each as far as a direction may turn
_BETTER = 1e-12  # of the size: by which no other slab may be wider


@procedure
def is_right(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    scale: float,
    near: "float[10]",
) -> bool:
    """Whether normal and gap of two cores (in ``near``) fit each other, and neither is reversed."""
    n, a, b = local("float", 3, 3)
    hint = local("int", 2)
    hint[:] = -1
    n[:] = near[:3]
    wide = width(shapes, i, j, corners, o, n, a, b, hint)
    if not abs(wide - near[3]) <= _AGREE * scale:  # nor if it is not a number
        return False
    if not n @ n > 0.5:  # a normal of zero fits every touch
        return False
    if near[3] > 0.0:
        return True
    n[:] = -n
    return width(shapes, i, j, corners, o, n, a, b, hint) <= near[3] + _BETTER * scale


@procedure
def repair(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    scale: float,
    near: "float[10]",
) -> None:
    """Normal, gap and points of two cores anew, from the widest slab that is found."""
    if edge_pairs(shapes, i, j) >= 0:
        polyhedra_gap(shapes, i, j, corners, o, 1e300, near)
        return
    n, a, b, d = local("float", 4, 3)
    hint = local("int", 2)
    hint[:] = -1
    n[:] = near[:3]
    best = -1e300
    if n @ n > 0.5:
        best = width(shapes, i, j, corners, o, n, a, b, hint)
    for side in range(2):
        x = j if side == 1 else i
        y = i if side == 1 else j
        if x >= 0 and (shapes.kind[x] == BOX or shapes.kind[x] == HULL):
            best = across_facets(shapes, x, y, o, 1.0 - 2.0 * side, 1e300, best, n)
        best = along_axes(shapes, x, i, j, corners, o, best, n)
    near[:3] = n
    near[3] = best
    near[4:7] = a
    near[7:] = b
    for k in range(2):
        if k == 0:
            middle(shapes, i, corners, o, a)
            middle(shapes, j, corners, o, b)
            d[:] = b - a
        else:
            d[:] = n
        length = sqrt(d @ d)
        if length > 0.0:
            d[:] = d / length
            shift = 1e-3 * scale
            while shift < 2.0 * scale and not by_shifting(shapes, i, j, corners, o, shift, d, near):
                shift *= 10.0


@procedure
def along_axes(
    shapes: Shapes,
    x: int,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    best: float,
    n: "float[3]",
) -> float:
    """The widest slab along axes of shape x, or the normal of a triangle, if it is wider."""
    d, a, b = local("float", 3, 3)
    hint = local("int", 2)
    for k in range(6 if x >= 0 else 2):
        if x >= 0:
            d[:] = view(shapes.pose[x], 0, 3, 4)[:, k // 2]
        else:
            c = -3 * (x + 1)
            d[:] = cross(corners[c + 1] - corners[c], corners[c + 2] - corners[c])
            length = sqrt(d @ d)
            if length == 0.0:
                return best
            d[:] = d / length
        if k % 2 == 1:
            d[:] = -d
        hint[:] = -1
        found = width(shapes, i, j, corners, o, d, a, b, hint)
        if found > best:
            best = found
            n[:] = d
    return best


@procedure
def by_shifting(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    shift: float,
    way: "float[3]",
    near: "float[10]",
) -> bool:
    """The widest slab near that of shapes that were moved apart along ``way``; whether they were.

    Just apart, nearest points are found easily. From their normal, Newton's method finds that of
    the shapes where they are. ``near`` changes if that is better.
    """
    W, A, B = local("float", 3, 4, 3)
    at = local("int", 4, 2)
    weight = local("float", 4)
    v, a, b, d = local("float", 4, 3)
    v[:] = way
    x = j if j >= 0 else i  # that is moved: triangles are not
    if x < 0:
        return False
    P = shapes.pose[x]
    place = P[3::4] * 1.0
    P[3::4] += (shift if j >= 0 else -shift) * way
    m = gjk(shapes, i, j, corners, o, v, 1e300, _TIGHT, W, A, B, at, weight)
    P[3::4] = place
    length = sqrt(v @ v)
    if m == INSIDE or length <= 1e-2 * shift:
        return False
    scale = size_of(shapes, i, corners) + size_of(shapes, j, corners)
    for k in range(m):  # back to where they are
        if j >= 0:
            B[k] -= shift * way
        else:
            A[k] += shift * way
    a[:] = 0.0
    for k in range(m):
        a[:] += weight[k] * A[k]
    d[:] = v / length
    b[:] = a
    best = near[3]
    for _ in range(_TURNS):
        found, solved = refine(shapes, i, j, corners, o, A, B, at, m, scale, 1e300, d, a, b)
        if found > best:
            best = found
            near[:3] = d
            near[3] = found
            near[4:7] = a
            near[7:] = b
        if solved:
            break
        width(shapes, i, j, corners, o, d, A[0], B[0], at[0])
        m = 1
    return True
