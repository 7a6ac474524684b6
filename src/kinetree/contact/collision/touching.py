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
from kinetree.contact.collision.support import middle, round_of
from kinetree.contact.collision.tables import Shapes
from kinetree.contact.collision.witness import facing_points, misses

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
def touching(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    far: float,
    scale: float,
    near: "float[10]",
) -> int:
    """Normal, gap and nearest points of two cores in ``near``, if Newton's method proves them.

    ``far`` is the largest gap of the cores that is looked for; beyond it a unit vector is left
    alone in ``near``, along which they are apart.
    """
    W, A, B = local("float", 3, 4, 3)
    at = local("int", 4, 2)
    weight = local("float", 4)
    v, a, b, n = local("float", 4, 3)
    if is_rod(shapes, i) and is_rod(shapes, j):
        side = round_sides(shapes, i, j, o, far, scale, near)
        if side != OPEN:
            return side
    middle(shapes, i, corners, o, a)
    middle(shapes, j, corners, o, b)
    n[:] = b - a
    length = sqrt(n @ n)
    if length <= _SHIFT * scale:
        return OPEN
    shift = _SHIFT * scale
    n[:] = n * (shift / length)
    v[:] = n
    P = shapes.pose[j]
    place = P[3::4] * 1.0
    P[3::4] += n
    m = gjk(shapes, i, j, corners, o, v, max(far, 0.0) + shift, _ROUGH, W, A, B, at, weight)
    P[3::4] = place
    if m == FAR:
        near[:3] = v / sqrt(v @ v)
        return BEYOND
    length = sqrt(v @ v)
    if m == INSIDE or length <= 0.1 * shift:
        return OPEN
    a[:] = 0.0
    for k in range(m):
        B[k] -= n
        a[:] += weight[k] * A[k]
    n[:] = v / length
    b[:] = a
    gap, _ = refine(shapes, i, j, corners, o, A, B, at, m, scale, 1e300, n, a, b)
    if gap > far:
        near[:3] = n
        return BEYOND
    if gap < -_DEEP * scale:
        return OPEN
    if not is_of_both(shapes, i, j, o, scale, gap, n, a):
        if not facing_points(shapes, i, j, corners, o, n, gap, a, b):
            return OPEN
        if not is_of_both(shapes, i, j, o, scale, gap, n, a):
            return OPEN
    near[:3] = n
    near[3] = gap
    near[4:7] = a
    near[7:] = a + gap * n
    return PROVED


@procedure
def is_rod(shapes: Shapes, i: int) -> bool:
    """Whether a shape is round about an axis of some length."""
    return _ROD[shapes.kind[i]] > 0


@procedure
def round_sides(
    shapes: Shapes, i: int, j: int, o: "float[3]", far: float, scale: float, near: "float[10]"
) -> int:
    """Contact where the round sides of two rods are nearest: along the way between their axes."""
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
    if length <= _SHIFT * scale or gap < -_DEEP * scale:
        return OPEN
    if slant >= _PARALLEL:  # at right angles to both, however near they are
        way = across * ((1.0 if way @ across > 0 else -1.0) / sqrt(slant))
    else:
        way = way / length
    if abs(way @ u) + abs(way @ w) > _LEVEL:
        return OPEN
    near[:3] = way
    if gap > far:
        return BEYOND
    near[3] = gap
    near[4:7] = P[3::4] - o + s * u + ra * way
    near[7:] = near[4:7] + gap * way
    return PROVED


@procedure
def is_of_both(
    shapes: Shapes,
    i: int,
    j: int,
    o: "float[3]",
    scale: float,
    gap: float,
    n: "float[3]",
    a: "float[3]",
) -> bool:
    """Whether a point of the first core, and the one across the gap, are of the shapes."""
    p = local("float", 3)
    ra, rb = round_of(shapes, i), round_of(shapes, j)
    p[:] = a + ra * n
    return misses(shapes, i, j, o, n, gap - ra - rb, p) <= _ON * scale
