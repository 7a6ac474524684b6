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
from kinetree.contact.collision.refine import refine, width
from kinetree.contact.collision.tables import BOX, Shapes
from kinetree.contact.collision.witness import facing_points

_TIGHT = 1e-15  # tolerance of the search, of the square of the distance
_AGREE = 1e-14  # of the size: by which bounds of the gap may differ
_ROUNDING = 4e-16  # of the size: by which a width may be wrong
_DEEP = 1e-11  # of the size: overlaps up to which a way out is as good as any shorter one
_ON = 1e-14  # of the size: by which points may miss the surface


@procedure
def is_in(shapes: Shapes, i: int, o: "float[3]", p: "float[3]", scale: float) -> bool:
    """Whether a point is of a box or hull, but for rounding errors."""
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
def polyhedra_gap(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    far: float,
    near: "float[10]",
) -> float:
    """The gap of two boxes or hulls; their normal, the gap and a point of each in ``near``.

    One that is larger than ``far`` is a lower bound, without points.
    """
    n, a, b = local("float", 3, 3)
    gap = widest_by_facets(shapes, i, j, o, far, n)
    near[:3] = n
    near[3] = gap
    if gap > far:
        return gap
    scale = shapes.radius[i] + shapes.radius[j]
    # A face, and points across the gap, prove each other: no slab across edges is wider.
    facing = gap >= -_DEEP * scale and facing_points(shapes, i, j, corners, o, n, gap, a, b)
    if not facing or not is_in(shapes, i, o, a, scale) or not is_in(shapes, j, o, b, scale):
        gap, crossing = widest_by_edges(shapes, i, j, o, gap, n, a)
        near[:3] = n
        near[3] = gap
        if gap > far:
            return gap
        b[:] = a + gap * n
        facing = crossing and is_in(shapes, i, o, a, scale) and is_in(shapes, j, o, b, scale)
        if not facing and facing_points(shapes, i, j, corners, o, n, gap, a, b):
            facing = is_in(shapes, i, o, a, scale) and is_in(shapes, j, o, b, scale)
        if not facing:
            gap = way_between(shapes, i, j, corners, o, far, scale, gap, n, a, b)
    near[:3] = n
    near[3] = gap
    near[4:7] = a
    near[7:] = b
    return gap


@procedure
def way_between(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    far: float,
    scale: float,
    slab: float,
    n: "float[3]",
    a: "float[3]",
    b: "float[3]",
) -> float:
    """The way between the nearest points, if a slab along it is wider than the one along ``n``."""
    W, A, B = local("float", 3, 4, 3)
    at = local("int", 4, 2)
    weight = local("float", 4)
    v, first, second, d = local("float", 4, 3)
    hint = local("int", 2)
    v[:] = n
    m = gjk(shapes, i, j, corners, o, v, max(far, 0.0), _TIGHT, W, A, B, at, weight)
    if m == FAR:
        return 2.0 * abs(far) + 1.0
    length = sqrt(v @ v)
    first[:] = 0.0
    for k in range(m):
        first[:] += weight[k] * A[k]
    if m == INSIDE or length <= _ROUNDING * scale:  # nearest points that are one have no direction
        a[:] = first
        b[:] = first + slab * n
        return slab
    d[:] = v / length
    second[:] = first + v
    W[0] = first
    W[1] = second
    hint[0] = at[0, 0]
    hint[1] = at[0, 1]
    wide = width(shapes, i, j, corners, o, d, first, second, hint)
    if wide < length - _AGREE * scale:
        if m < 4:  # rounding hid which edges and faces it is: those with the farthest corners, too
            A[m] = first
            B[m] = second
            at[m] = hint
            m += 1
        first[:] = W[0]
        second[:] = W[1]
        v[:] = d
        better, solved = refine(
            shapes, i, j, corners, o, A, B, at, m, scale, length, v, first, second
        )
        if better > wide:
            wide = better
            d[:] = v
            if solved:
                W[0] = first
                W[1] = second
    a[:] = W[0]
    if wide < slab - _ROUNDING * scale:
        b[:] = a + slab * n
        return slab
    n[:] = d
    b[:] = W[1]
    return length if wide >= length - _AGREE * scale else wide
