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
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.simplex import (
    Pair,
    Simplex,
    Slab,
    add_corner,
    copy_slab,
    find_foot,
    turn_pair,
    width,
)
from kinetree.contact.collision.support import middle
from kinetree.contact.collision.tables import BOX, HULL, Shapes

_AGREE = 1e-13  # of the size: by which width and gap may differ
_TIGHT = 1e-15  # tolerance of the search, of the square of the distance
_TURNS = 6  # of Newton's method, each as far as a direction may turn
_BETTER = 1e-12  # of the size: by which no other slab may be wider


@procedure
def is_right(shapes: Shapes, pair: Pair, near: Slab) -> bool:
    """Whether normal and gap found for two cores agree with the width along that normal."""
    ends = local(Slab)
    n = ends.normal
    ends.corner[:] = -1
    n[:] = near.normal
    wide = width(shapes, pair, ends)
    if not abs(wide - near.gap) <= _AGREE * pair.size:  # nor if it is not a number
        return False
    if not n @ n > 0.5:  # a normal of zero fits every touch
        return False
    if near.gap > 0.0:
        return True
    n[:] = -n
    return width(shapes, pair, ends) <= near.gap + _BETTER * pair.size


@procedure
def repair(shapes: Shapes, pair: Pair, near: Slab) -> None:
    """Recompute normal, gap and points of two cores from the widest slab that can be found."""
    if edge_pairs(shapes, pair.i, pair.j) >= 0:
        polyhedra_gap(shapes, pair, 1e300, near)
        return
    widest_of_all(shapes, pair, near)
    widest = near.normal * 1.0
    way = local("float", 3)
    middles = local(Slab)
    for k in range(2):
        if k == 0:
            middle(shapes, pair.i, pair.corners, pair.origin, middles.first)
            middle(shapes, pair.j, pair.corners, pair.origin, middles.second)
            way[:] = middles.second - middles.first
        else:
            way[:] = widest
        length = sqrt(way @ way)
        if length > 0.0:
            way[:] = way / length
            shift = 1e-3 * pair.size
            while shift < 2.0 * pair.size and not by_shifting(shapes, pair, shift, way, near):
                shift *= 10.0


@procedure
def widest_of_all(shapes: Shapes, pair: Pair, near: Slab) -> None:
    """Set slab ``near`` to the widest along its normal, face normals and the shapes' axes."""
    turned = local(Pair)
    turn_pair(pair, turned)
    near.corner[:] = -1
    best = -1e300
    if near.normal @ near.normal > 0.5:
        best = width(shapes, pair, near)
    for side in range(2):
        x = pair.j if side == 1 else pair.i
        if x >= 0 and (shapes.kind[x] == BOX or shapes.kind[x] == HULL):
            if side == 0:
                best = across_facets(shapes, pair, 1.0, 1e300, best, near.normal)
            else:
                best = across_facets(shapes, turned, -1.0, 1e300, best, near.normal)
        best = along_axes(shapes, x, pair, best, near.normal)
    near.gap = best


@procedure
def along_axes(shapes: Shapes, x: int, pair: Pair, best: float, n: "float[3]") -> float:
    """Largest of ``best`` and the slab widths along shape x's axes, or a triangle's normal."""
    ends = local(Slab)
    d, corners = ends.normal, pair.corners
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
        ends.corner[:] = -1
        found = width(shapes, pair, ends)
        if found > best:
            best = found
            n[:] = d
    return best


@procedure
def by_shifting(shapes: Shapes, pair: Pair, shift: float, way: "float[3]", near: Slab) -> bool:
    """Widen the slab of a pair by a search with the shapes moved apart; whether that was possible.

    Just apart, nearest points are found easily. From their normal, Newton's method finds that of
    the shapes where they are. ``near`` changes if that is better.
    """
    simplex, slab = local(Simplex), local(Slab)
    x = pair.j if pair.j >= 0 else pair.i  # that is moved: triangles are not
    if x < 0:
        return False
    v = local("float", 3)
    v[:] = way
    P = shapes.pose[x]
    place = P[3::4] * 1.0
    P[3::4] += (shift if pair.j >= 0 else -shift) * way
    m = gjk(shapes, pair, v, 1e300, _TIGHT, simplex)
    P[3::4] = place
    length = sqrt(v @ v)
    if m == INSIDE or length <= 1e-2 * shift:
        return False
    for k in range(m):  # back to where they are
        if pair.j >= 0:
            simplex.second[k] -= shift * way
        else:
            simplex.first[k] += shift * way
    find_foot(simplex, slab.first)
    slab.second[:] = slab.first
    slab.normal[:] = v / length
    for _ in range(_TURNS):
        found, solved = refine(shapes, pair, simplex, slab, 1e300)
        if found > near.gap:
            copy_slab(slab, near)
        if solved:
            break
        restart_simplex(shapes, pair, simplex, slab)
    return True


@procedure
def restart_simplex(shapes: Shapes, pair: Pair, simplex: Simplex, slab: Slab) -> None:
    """Reset a simplex to the support points along a slab's normal."""
    ends = local(Slab)
    ends.normal[:] = slab.normal
    ends.corner[:] = simplex.corner[0]
    width(shapes, pair, ends)
    simplex.count = 0
    add_corner(simplex, ends)
