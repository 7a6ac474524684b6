"""Distance of two convex cores: E. G. Gilbert, D. W. Johnson, S. S. Keerthi, "A fast procedure for
computing the distance between complex objects in three-dimensional space" (1988).

The differences ``w = b - a`` of points of both fill a convex set; its point ``v`` nearest to the
origin is the shortest way from the first to the second. A simplex of at most four differences
grows towards the origin: the farthest one along ``-v`` is added, and the corners that do not carry
the new nearest point go. ``v · w / |v|`` is a lower bound of the distance, ``|v|`` an upper one.

Barycentric coordinates come from signed areas and volumes: M. Montanari, N. Petrinic, E. Barbieri,
"Improving the GJK algorithm for faster and more reliable distance queries between convex objects"
(2017).
"""

from kinetree.codegen.procedures import Rounding, cross, local, procedure, vector
from kinetree.contact.collision.simplex import (
    Pair,
    Simplex,
    Slab,
    add_corner,
    copy_corner,
    width,
)
from kinetree.contact.collision.tables import Shapes

FAR, INSIDE = -1, 4
"""What ``gjk`` returns besides the corners of the simplex: farther than requested, or overlap."""
_ROUNDS = 100
_STUCK = 4
_ROUNDING = Rounding(1e-15, single=1e-6)  # of the size of the simplex
_SLENDER = Rounding(1e-30, single=1e-12)  # squared sine in triangles without an area
_FLAT = Rounding(1e-26, single=1e-11)  # squared sine in tetrahedra without a volume
_SAME = Rounding(1e-32, single=1e-13)  # of the squared size: corners that are one
_NO_NEARER = Rounding(4e-16, single=2e-7)  # of the squared distance


@procedure
def on_segment(W: "float[4, 3]", p: int, q: int, weight: "float[4]", v: "float[3]") -> float:
    """Nearest point of a segment to the origin, with its weights; returns the squared distance."""
    t = W[q] - W[p]
    length = t @ t
    s = -(W[p] @ t)
    for k in range(4):
        weight[k] = 0.0
    if s <= 0 or length <= 0:
        weight[p] = 1.0
        v[:] = W[p]
    elif s >= length:
        weight[q] = 1.0
        v[:] = W[q]
    else:
        f = s / length
        weight[p] = 1.0 - f
        weight[q] = f
        foot = W[p] + f * t
        slip = (foot @ t) / length  # at right angles to the segment, however near it is
        v[:] = foot - slip * t
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]


@procedure
def on_triangle(
    W: "float[4, 3]", p: int, q: int, r: int, weight: "float[4]", v: "float[3]"
) -> float:
    """Nearest point of a triangle to the origin, with its weights; returns the squared distance."""
    a = W[q] - W[p]
    b = W[r] - W[p]
    n = cross(a, b)
    area = n @ n
    if area > _SLENDER * (a @ a) * (b @ b):
        h = (W[p] @ n) / area
        foot = n * h
        to_p = W[p] - foot
        to_q = W[q] - foot
        to_r = W[r] - foot
        x = (cross(to_q, to_r) @ n) / area
        y = (cross(to_r, to_p) @ n) / area
        z = (cross(to_p, to_q) @ n) / area
        if x > 0 and y > 0 and z > 0:
            for k in range(4):
                weight[k] = 0.0
            total = x + y + z
            weight[p] = x / total
            weight[q] = y / total
            weight[r] = z / total
            v[:] = foot
            return h * h * area
    best = on_segment(W, p, q, weight, v)
    other = local("float", 4)
    u = local("float", 3)
    for side in range(2):
        one = q if side == 0 else r
        two = r if side == 0 else p
        square = on_segment(W, one, two, other, u)
        if square < best:
            best = square
            for k in range(4):
                weight[k] = other[k]
            v[:] = u
    return best


@procedure
def on_tetrahedron(W: "float[4, 3]", weight: "float[4]", v: "float[3]") -> float:
    """Nearest point of a tetrahedron to the origin, with weights; squared distance, 0 inside."""
    other, volume = local("float", 2, 4)
    u = local("float", 3)
    best = -1.0
    for p in range(4):
        # the face opposite to corner p: is the origin on the side of p?
        i = (p + 1) % 4
        j = (p + 2) % 4
        k = (p + 3) % 4
        a = W[j] - W[i]
        b = W[k] - W[i]
        n = cross(a, b)
        height = (W[p] - W[i]) @ n
        origin = -(W[i] @ n)
        volume[p] = 0.0
        flat = height * height <= _FLAT * (n @ n) * (W[p] @ W[p] + W[i] @ W[i])
        if not flat:
            volume[p] = origin / height
        if flat or volume[p] < 0:
            square = on_triangle(W, i, j, k, other, u)
            if best < 0 or square < best:
                best = square
                for c in range(4):
                    weight[c] = other[c]
                v[:] = u
    if best >= 0:
        return best
    total = volume[0] + volume[1] + volume[2] + volume[3]
    for c in range(4):
        weight[c] = volume[c] / total
    v[:] = 0.0
    return 0.0


@procedure
def on_simplex(W: "float[4, 3]", count: int, weight: "float[4]", v: "float[3]") -> float:
    """Nearest point of a simplex of 1 to 4 corners to the origin; returns the squared distance."""
    if count == 1:
        weight[:] = vector(1.0, 0.0, 0.0, 0.0)
        v[:] = W[0]
        return W[0] @ W[0]
    if count == 2:
        return on_segment(W, 0, 1, weight, v)
    if count == 3:
        return on_triangle(W, 0, 1, 2, weight, v)
    return on_tetrahedron(W, weight, v)


@procedure
def is_corner(simplex: Simplex, w: "float[3]", near: float) -> bool:
    """Whether point ``w`` coincides with a corner of a GJK simplex, up to a squared distance."""
    for k in range(simplex.count):
        away = simplex.difference[k] - w
        if away @ away <= near:
            return True
    return False


@procedure
def drop_idle(simplex: Simplex, weight: "float[4]") -> None:
    """Remove simplex corners with zero weight in the nearest point; store the other weights."""
    kept = 0
    for k in range(simplex.count):
        if weight[k] > 0:
            if kept < k:
                copy_corner(simplex, k, kept)
            simplex.weight[kept] = weight[k]
            kept += 1
    simplex.count = kept


@procedure
def gjk(
    shapes: Shapes, pair: Pair, v: "float[3]", far: float, tolerance: float, simplex: Simplex
) -> int:
    """Gilbert-Johnson-Keerthi distance of two cores: simplex corner count, ``FAR`` or ``INSIDE``.

    ``v`` is about the way from first to second, and becomes the shortest one; nothing is looked for
    beyond ``far``; ``tolerance`` is that of the square, relative. ``simplex`` is set.
    """
    u = local("float", 3)
    weight = local("float", 4)
    ends = local(Slab)
    ends.corner[:] = -1
    simplex.count = 0
    if v @ v == 0:
        v[0] = 1.0
    vv = 1e300
    scale = 0.0
    stuck = 0
    for step in range(_ROUNDS):
        ends.normal[:] = v
        bound = width(shapes, pair, ends)
        w = ends.second - ends.first
        if bound > 0 and bound * bound > far * far * (vv if step > 0 else v @ v):
            return FAR
        if step > 0 and (vv - bound <= tolerance * vv or is_corner(simplex, w, _SAME * scale)):
            return simplex.count
        add_corner(simplex, ends)
        scale = max(scale, w @ w)
        square = on_simplex(simplex.difference, simplex.count, weight, u)
        if simplex.count == 4 and square == 0.0:
            simplex.weight[:] = weight
            v[:] = 0.0
            return INSIDE
        if square >= vv:  # as near as rounding lets it come, though the direction may still change
            stuck += 1
            if stuck > _STUCK or square > vv * (1 + _NO_NEARER):
                simplex.count -= 1
                return simplex.count
        vv = square
        v[:] = u
        drop_idle(simplex, weight)
        if vv <= _ROUNDING * _ROUNDING * scale:
            return simplex.count
    return simplex.count
