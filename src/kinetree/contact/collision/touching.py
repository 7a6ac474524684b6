"""Curved shapes that touch or nearly do: Newton's method from the normal of shapes a little apart.

The search for nearest points converges slowly where they touch, and the polytope of depths is
worse. Moved apart along the line of their centres, a few rounds give a normal that is good enough
for Newton's method on the shapes where they are. Its answer counts only if it is proved: by the
slab along the normal, and by two points that are of the shapes.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt
from kinetree.contact.collision.gjk import FAR, INSIDE, gjk
from kinetree.contact.collision.kinds import trait
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.simplex import Pair, Simplex, Slab, copy_slab, find_foot
from kinetree.contact.collision.support import middle, round_of
from kinetree.contact.collision.tables import Shapes
from kinetree.contact.collision.witness import facing_points, miss_distance

PROVED, BEYOND, OPEN = 1, 0, -1
"""Results: the gap and its proof; farther than requested; not decided here."""
_ROD = trait(lambda kind: kind.is_rod)
_SHIFT = 0.05  # of the size: how far shapes are moved apart
_ROUGH = 1e-2  # tolerance of the search, of the square of the distance
_DEEP = 4e-9  # of the size: overlaps up to which a way out is as good as any shorter one
_PARALLEL = 1e-16  # squared sine between axes that count as parallel
_LEVEL = 1e-14  # sine of the angle by which a normal may miss a right angle with an axis
_ON = 1e-11  # of the size: by which points may miss the surface


@procedure
def touching(shapes: Shapes, pair: Pair, far: float, near: Slab) -> int:
    """Separation query of two cores by Newton's method; status, and a slab if it is proved.

    ``far`` is the largest gap of the cores that is looked for; beyond it a unit vector is left
    alone in ``near``, along which they are apart.
    """
    simplex, slab = local(Simplex), local(Slab)
    if is_rod(shapes, pair.i) and is_rod(shapes, pair.j):
        side = round_sides(shapes, pair, far, near)
        if side != OPEN:
            return side
    state = find_near(shapes, pair, far, simplex, slab)
    if state == BEYOND:
        near.normal[:] = slab.normal
    if state != PROVED:
        return state
    slab.gap, _ = refine(shapes, pair, simplex, slab, 1e300)
    if slab.gap > far:
        near.normal[:] = slab.normal
        return BEYOND
    if slab.gap < -_DEEP * pair.size:
        return OPEN
    if not is_of_both(shapes, pair, slab):
        if not facing_points(shapes, pair, slab):
            return OPEN
        if not is_of_both(shapes, pair, slab):
            return OPEN
    copy_slab(slab, near)
    near.second[:] = slab.first + slab.gap * slab.normal
    return PROVED


@procedure
def find_near(shapes: Shapes, pair: Pair, far: float, simplex: Simplex, slab: Slab) -> int:
    """GJK query of two cores moved apart: ``PROVED`` with simplex and approximate normal.

    Points of the simplex are where they are without being moved.
    """
    v, n = local("float", 2, 3)
    middle(shapes, pair.i, pair.corners, pair.origin, slab.first)
    middle(shapes, pair.j, pair.corners, pair.origin, slab.second)
    n[:] = slab.second - slab.first
    length = sqrt(n @ n)
    shift = _SHIFT * pair.size
    if length <= shift:
        return OPEN
    n[:] = n * (shift / length)
    v[:] = n
    P = shapes.pose[pair.j]
    place = P[3::4] * 1.0
    P[3::4] += n
    m = gjk(shapes, pair, v, max(far, 0.0) + shift, _ROUGH, simplex)
    P[3::4] = place
    if m == FAR:
        slab.normal[:] = v / sqrt(v @ v)
        return BEYOND
    length = sqrt(v @ v)
    if m == INSIDE or length <= 0.1 * shift:
        return OPEN
    for k in range(m):
        simplex.second[k] -= n
    slab.normal[:] = v / length
    find_foot(simplex, slab.first)
    slab.second[:] = slab.first
    return PROVED


@procedure
def is_rod(shapes: Shapes, i: int) -> bool:
    """Whether shape i is a rod: a solid of revolution about an axis segment, as a capsule."""
    return _ROD[shapes.kind[i]] > 0


@procedure
def round_sides(shapes: Shapes, pair: Pair, far: float, near: Slab) -> int:
    """Separation query of two rods whose round sides are nearest, from their axes; the status."""
    i, j = pair.i, pair.j
    P, Q = shapes.pose[i], shapes.pose[j]
    hi, hj = shapes.size[i, 1], shapes.size[j, 1]
    u, w, d = P[2::4], Q[2::4], Q[3::4] - P[3::4]
    cosine, du, dw, across = u @ w, u @ d, w @ d, cross(u, w)
    slant = across @ across  # squared sine
    if slant < _PARALLEL:  # the middle of the part along which they lie
        low, high = max(du - hj, -hi), min(du + hj, hi)
        s = (low + high) / 2
        if low >= high:
            return OPEN
    else:
        s = (du - cosine * dw) / slant
    t = cosine * s - dw
    if abs(s) > hi or abs(t) > hj:
        return OPEN
    way = d + t * w - s * u
    length = sqrt(way @ way)
    ra = shapes.size[i, 0] - round_of(shapes, i)
    rb = shapes.size[j, 0] - round_of(shapes, j)
    gap = length - ra - rb
    if length <= _SHIFT * pair.size or gap < -_DEEP * pair.size:
        return OPEN
    if slant >= _PARALLEL:  # at right angles to both, however near they are
        way = across * ((1.0 if way @ across > 0 else -1.0) / sqrt(slant))
    else:
        way = way / length
    if abs(way @ u) + abs(way @ w) > _LEVEL:
        return OPEN
    near.normal[:] = way
    if gap > far:
        return BEYOND
    near.gap = gap
    near.first[:] = P[3::4] - pair.origin + s * u + ra * way
    near.second[:] = near.first + gap * way
    return PROVED


@procedure
def is_of_both(shapes: Shapes, pair: Pair, core: Slab) -> bool:
    """Whether a slab's first point and its counterpart across the gap lie on both shapes."""
    slab = local(Slab)
    ra, rb = round_of(shapes, pair.i), round_of(shapes, pair.j)
    slab.gap = core.gap - ra - rb
    slab.normal[:] = core.normal
    slab.first[:] = core.first + ra * core.normal
    return miss_distance(shapes, pair, slab, slab.first) <= _ON * pair.size
