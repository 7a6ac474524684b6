"""Boxes and hulls: the gap with a certificate, from both sides.

The widest slab (``axes``) is a lower bound of the gap, two points an upper one. Where they agree,
they prove each other; where shapes overlap, the slab is the gap. Apart, corners may be nearest:
then the way between nearest points (``gjk``) is at right angles to a slab that is as wide, and
again both agree.
"""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.axes import widest_by_edges, widest_by_facets
from kinetree.contact.collision.frames import into_shape
from kinetree.contact.collision.gjk import FAR, INSIDE, gjk
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.simplex import (
    Pair,
    Simplex,
    Slab,
    add_corner,
    copy_slab,
    find_foot,
    width,
)
from kinetree.contact.collision.tables import BOX, Shapes
from kinetree.contact.collision.witness import facing_points

_TIGHT = 1e-15  # tolerance of the search, of the square of the distance
_AGREE = 1e-14  # of the size: by which bounds of the gap may differ
_ROUNDING = 4e-16  # of the size: by which a width may be wrong
_DEEP = 1e-11  # of the size: overlaps up to which a way out is as good as any shorter one
_ON = 1e-14  # of the size: by which points may miss the surface


@procedure
def is_in(shapes: Shapes, i: int, o: "float[3]", p: "float[3]", scale: float) -> bool:
    """Whether a point is inside a box or hull, up to rounding errors of a length ``scale``."""
    P = shapes.pose[i]
    d, x = local("float", 2, 3)
    d[:] = p - (P[3::4] - o)
    into_shape(P, d, x)
    if shapes.kind[i] == BOX:
        past = abs(x) - shapes.size[i]
        return max(max(past[0], past[1]), past[2]) <= _ON * scale
    for k in range(shapes.facets[i, 0], shapes.facets[i, 0] + shapes.facets[i, 1]):
        f = shapes.facet[k]
        if f[:3] @ (x - f[3:]) > _ON * scale:
            return False
    return True


@procedure
def are_in(shapes: Shapes, pair: Pair, slab: Slab) -> bool:
    """Whether both points of a slab are inside their polyhedra, up to rounding errors."""
    if not is_in(shapes, pair.i, pair.origin, slab.first, pair.size):
        return False
    return is_in(shapes, pair.j, pair.origin, slab.second, pair.size)


@procedure
def polyhedra_gap(shapes: Shapes, pair: Pair, far: float, slab: Slab) -> float:
    """Signed gap of two boxes or hulls; sets the slab with its normal and points.

    One that is larger than ``far`` is a lower bound, without points.
    """
    slab.gap = widest_by_facets(shapes, pair, far, slab)
    if slab.gap > far:
        return slab.gap
    # A face, and points across the gap, prove each other: no slab across edges is wider.
    facing = slab.gap >= -_DEEP * pair.size and facing_points(shapes, pair, slab)
    if not facing or not are_in(shapes, pair, slab):
        gap, crossing = widest_by_edges(shapes, pair, slab.gap, slab)
        slab.gap = gap
        if gap > far:
            return gap
        slab.second[:] = slab.first + gap * slab.normal
        facing = crossing and are_in(shapes, pair, slab)
        if not facing and facing_points(shapes, pair, slab):
            facing = are_in(shapes, pair, slab)
        if not facing:
            find_way(shapes, pair, far, slab)
    return slab.gap


@procedure
def find_way(shapes: Shapes, pair: Pair, far: float, slab: Slab) -> None:
    """GJK query of two polyhedra: sets the slab's points, and normal and gap if GJK's are wider.

    A gap that is larger than ``far`` is a lower bound, without points.
    """
    simplex, way = local(Simplex), local(Slab)
    v = local("float", 3)
    v[:] = slab.normal
    m = gjk(shapes, pair, v, max(far, 0.0), _TIGHT, simplex)
    if m == FAR:
        slab.gap = 2.0 * abs(far) + 1.0
        return
    length = sqrt(v @ v)
    find_foot(simplex, way.first)
    if m == INSIDE or length <= _ROUNDING * pair.size:
        take_points(slab, way)  # nearest points that are one have no direction
        return
    way.normal[:] = v / length
    way.second[:] = way.first + v
    way.gap = widen(shapes, pair, simplex, length, way)
    if way.gap < slab.gap - _ROUNDING * pair.size:
        take_points(slab, way)
        return
    if way.gap >= length - _AGREE * pair.size:
        way.gap = length
    copy_slab(way, slab)


@procedure
def widen(shapes: Shapes, pair: Pair, simplex: Simplex, length: float, way: Slab) -> float:
    """Largest slab width near the direction between the nearest points; improves ``way``."""
    ends, better = local(Slab), local(Slab)
    ends.normal[:] = way.normal
    ends.corner[:] = simplex.corner[0]
    wide = width(shapes, pair, ends)
    if not wide < length - _AGREE * pair.size:
        return wide
    # Rounding hid which edges and faces it is: those with the farthest corners, too.
    add_corner(simplex, ends)
    copy_slab(way, better)
    found, solved = refine(shapes, pair, simplex, better, length)
    if found > wide:
        wide = found
        way.normal[:] = better.normal
        if solved:
            way.first[:] = better.first
            way.second[:] = better.second
    return wide


@procedure
def take_points(slab: Slab, way: Slab) -> None:
    """Copy another slab's first point; the second is set across the gap along the normal."""
    slab.first[:] = way.first
    slab.second[:] = slab.first + slab.gap * slab.normal
