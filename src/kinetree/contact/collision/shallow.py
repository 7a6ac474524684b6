"""Convex shapes that touch or overlap a little, in a small amount of code and memory: for GPUs.

Every direction bounds the gap of two convex shapes from below: by the width of the slab between
them along it. So the widest slab is looked for, in turns. Shapes that are moved apart along the
widest one so far are nearest along a direction that ``gjk`` finds easily, in single precision, too;
from there Newton's method (``refine``) finds the widest slab of the shapes where they are. A turn
whose answer is a maximum is the last one. Where shapes overlap deeply there may be several maxima,
of which ``convex_pair`` finds the least depth, and these turns one nearby.
"""

from kinetree.codegen.procedures import Rounding, local, procedure, sqrt, view
from kinetree.contact.collision.convex import patch
from kinetree.contact.collision.gjk import FAR, INSIDE, gjk
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.simplex import (
    Pair,
    Simplex,
    Slab,
    copy_slab,
    find_foot,
    place_pair,
    width,
)
from kinetree.contact.collision.support import middle, round_of
from kinetree.contact.collision.tables import BOX, HULL, Shapes, Touch

_TURNS = 6
_SHIFT = 0.01  # of the size: how far shapes are moved apart, beyond their overlap
_CLEAR = 1e-3  # of the size: gaps of shapes that need not be moved
_ROUGH = 1e-3  # tolerance of the search, of the square of the distance
_BETTER = Rounding(1e-14, single=1e-6)  # of the size: by which a turn must be better to go on
_AGREE = 0.998  # cosine between directions of two turns that are the same
BEYOND, OPEN, SOLVED, PROVED = range(4)
"""How a slab is: too wide; it may be wider yet; a maximum, and so says the next turn."""
MOST = 8
"""Points of a pair, at most: those of polyhedra; others have four."""


@procedure
def widen_along(shapes: Shapes, pair: Pair, ends: Slab, near: Slab) -> None:
    """Set slab ``near`` to the pair's slab along the normal of ``ends``, if that slab is wider."""
    ends.corner[:] = -1
    found = width(shapes, pair, ends)
    if found > near.gap:
        near.gap = found
        near.normal[:] = ends.normal
        near.first[:] = ends.first
        near.second[:] = ends.first + found * ends.normal


@procedure(inline=False)
def begin_slab(shapes: Shapes, pair: Pair, near: Slab) -> None:
    """Set the widest slab along the line of centres and the axes of both shapes."""
    ends = local(Slab)
    n = ends.normal
    middle(shapes, pair.i, pair.corners, pair.origin, ends.first)
    middle(shapes, pair.j, pair.corners, pair.origin, ends.second)
    n[:] = ends.second - ends.first
    length = sqrt(n @ n)
    near.gap = -1e30
    for k in range(13):
        if k > 0:
            x = pair.i if k < 7 else pair.j
            n[:] = view(shapes.pose[x], 0, 3, 4)[:, (k - 1) // 2 % 3]
            if k % 2 == 0:
                n[:] = -n
            length = 1.0
        if length > 0.0:
            n[:] = n / length
            widen_along(shapes, pair, ends, near)


@procedure(inline=False)
def turn_slab(shapes: Shapes, pair: Pair, far: float, shift: float, before: int, near: Slab) -> int:
    """Widen a slab by GJK with the shapes moved ``shift`` apart along it; the search's status."""
    simplex, slab = local(Simplex), local(Slab)
    v, n = local("float", 2, 3)
    n[:] = shift * near.normal
    v[:] = near.normal
    P = shapes.pose[pair.j]
    place = P[3::4] * 1.0
    P[3::4] += n
    m = gjk(shapes, pair, v, max(far, 0.0) + shift, _ROUGH, simplex)
    P[3::4] = place
    if m == FAR:
        return BEYOND
    length = sqrt(v @ v)
    if m == INSIDE or length <= 0.1 * _CLEAR * pair.size:
        return OPEN
    if before == SOLVED and v @ near.normal >= _AGREE * length:
        return PROVED
    for k in range(simplex.count):
        simplex.second[k] -= n
    slab.normal[:] = v / length
    find_foot(simplex, slab.first)
    slab.second[:] = slab.first
    slab.gap, solved = refine(shapes, pair, simplex, slab, 1e30)
    if slab.gap >= near.gap - _BETTER * pair.size:
        copy_slab(slab, near)
        return SOLVED if solved else OPEN
    return OPEN


@procedure(inline=False)
def shallow_gap(shapes: Shapes, pair: Pair, far: float, near: Slab) -> bool:
    """Whether two convex shapes are within ``far`` [m]; sets the slab, its normal and points."""
    ra = round_of(shapes, pair.i)
    rb = round_of(shapes, pair.j)
    begin_slab(shapes, pair, near)
    cores = far + ra + rb
    state = OPEN
    for turn in range(_TURNS):
        if near.gap > cores:
            return False
        shift = 0.0
        if turn > 0 or near.gap < _CLEAR * pair.size:
            shift = max(-near.gap, 0.0) + _SHIFT * pair.size
        state = turn_slab(shapes, pair, cores, shift, state, near)
        if state == BEYOND:
            return False
        if state == PROVED:
            break
    near.gap -= ra + rb
    near.first[:] += ra * near.normal
    near.second[:] -= rb * near.normal
    return near.gap <= far


@procedure(inline=False)
def shallow_pair(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of convex shapes i and j by the search for shallow overlaps; new count."""
    pair, near = local(Pair), local(Slab)
    place_pair(shapes, pair, i, j)
    if not shallow_gap(shapes, pair, margin, near):
        return n
    polyhedra = (shapes.kind[i] == HULL or shapes.kind[i] == BOX) and shapes.kind[j] == HULL
    return patch(shapes, pair, near, margin, MOST if polyhedra else MOST // 2, touch, n, 0)
