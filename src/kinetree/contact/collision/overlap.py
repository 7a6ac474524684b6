"""Deepest overlap of all shapes where they stand now: no patches, only how deep the worst pair is.

A direction bounds the overlap of two convex shapes from above: they are apart, or overlap by no
more than the slab between them along it says. The normals that ``detect`` found shortly before are
such directions, and so are those along which it found shapes apart, so that two support points
settle nearly every pair; only those that the bound leaves open are looked at.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.convex import BEYOND, nearest
from kinetree.contact.collision.detect import FOUND_FULL, append_pair, narrow_phase
from kinetree.contact.collision.placing import clearance
from kinetree.contact.collision.simplex import Pair, Slab, place_pair, width
from kinetree.contact.collision.support import round_of, support
from kinetree.contact.collision.sweep import Pairs, may_touch, near_pairs, special_number
from kinetree.contact.collision.tables import Found, Shapes, Special, Touch

_PARALLEL = 1e-12  # squared sine between edges without a common normal


@procedure
def deepest_overlap(
    shapes: Shapes,
    special: Special,
    pairs: Pairs,
    touch: Touch,
    found: Found,
    least: float,
    which: "int[2]",
) -> float:
    """Largest penetration of shapes that may touch [m], 0: none; ``which`` gets their numbers.

    Shapes are in their places (``place_shapes``). ``found`` and ``pairs`` are those of the last
    ``detect``, from which the shapes have moved a little: its pairs serve if no shape has left
    the box that it had for the step, or else the broad phase runs once more. Overlaps up to
    ``least`` are upper bounds, larger ones are exact. Negative (``PAIRS_FULL``): no room.
    """
    which[:] = -1
    near = found.pairs
    if has_left(shapes, pairs):
        for i in range(shapes.count):
            pairs.motion[shapes.body[i]] = 0.0
        near = near_pairs(shapes, special, pairs, 0.0)
        found.pairs = max(near, 0)
        if near < 0:
            return near * 1.0
        pairs.way[:near] = 0.0
    worst = endless_overlap(shapes, special, pairs, touch, which)
    row = 0
    for k in range(near):
        i, j = pairs.near[k, 0], pairs.near[k, 1]
        if shapes.radius[i] > tables.ENDLESS or shapes.radius[j] > tables.ENDLESS:
            continue
        apart = pair_margin(shapes, special, i, j)
        while row < found.count and is_before(found, row, i, j):
            row += 1
        if boxes_clear(shapes, i, j, apart - worst):
            continue
        touches = row < found.count and is_of(found, row, i, j)
        if touches or pairs.way[k] @ pairs.way[k] > 0.5:
            depth = apart
            if touches:
                depth -= slab_width(shapes, found.first[row], found.second[row], found.normal[row])
            elif shapes.kind[i] > shapes.kind[j]:
                depth -= slab_width(shapes, j, i, pairs.way[k])
            else:
                depth -= slab_width(shapes, i, j, pairs.way[k])
            if depth <= max(worst, least):
                if depth > worst:
                    worst = depth
                    which[:] = pairs.near[k]
                continue
        depth = apart - pair_gap(shapes, i, j, apart - worst, touch)
        if depth > worst:
            worst = depth
            which[:] = pairs.near[k]
    return worst


@procedure
def detect_overlaps(
    shapes: Shapes,
    special: Special,
    pairs: Pairs,
    touch: Touch,
    found: Found,
    least: float,
    deep: Found,
) -> int:
    """Append contacts of all pairs that overlap by more than ``least`` [m] to ``deep``; count.

    ``found`` and ``pairs`` are those of ``deepest_overlap``, called just before. Of a pair that the
    bound settles there is nothing to find. Negative (``FOUND_FULL``): no room.
    """
    deep.count = 0
    row = 0
    for k in range(found.pairs):
        i, j = pairs.near[k, 0], pairs.near[k, 1]
        apart = pair_margin(shapes, special, i, j)
        while row < found.count and is_before(found, row, i, j):
            row += 1
        if is_shallow(shapes, pairs, found, row, k, apart - least):
            continue
        if append_pair(shapes, special, pairs, touch, k, 0.0, deep) < 0:
            return FOUND_FULL
    return deep.count


@procedure
def is_shallow(shapes: Shapes, pairs: Pairs, found: Found, row: int, k: int, reach: float) -> bool:
    """Whether a cheap bound proves that near pair ``k`` has no gap below ``reach`` [m]."""
    i, j = pairs.near[k, 0], pairs.near[k, 1]
    if shapes.radius[i] > tables.ENDLESS:
        return clearance(shapes, i, j) > reach
    if shapes.radius[j] > tables.ENDLESS:
        return clearance(shapes, j, i) > reach
    if boxes_clear(shapes, i, j, reach):
        return True
    if row < found.count and is_of(found, row, i, j):
        return slab_width(shapes, found.first[row], found.second[row], found.normal[row]) > reach
    return False


@procedure
def has_left(shapes: Shapes, pairs: Pairs) -> bool:
    """Whether any shape left the box that the broad phase gave it for the step."""
    for i in range(shapes.count):
        box, low, high = pairs.box[i], shapes.low[i], shapes.high[i]
        for k in range(3):
            if low[k] < box[k] or high[k] > box[3 + k]:
                return True
    return False


@procedure
def pair_margin(shapes: Shapes, special: Special, i: int, j: int) -> float:
    """Margin at which the surfaces of shapes i and j are kept apart [m]."""
    number = special_number(special, i, j) if special.count > 0 else -1
    if number >= 0 and special.margin[number] == special.margin[number]:
        return special.margin[number]
    return shapes.margin[i] + shapes.margin[j]


@procedure
def boxes_clear(shapes: Shapes, i: int, j: int, reach: float) -> bool:
    """Whether the bounding boxes of two shapes are farther apart than ``reach`` on an axis."""
    for c in range(3):
        if shapes.low[i, c] - shapes.high[j, c] > reach:
            return True
        if shapes.low[j, c] - shapes.high[i, c] > reach:
            return True
    return False


@procedure
def is_of(found: Found, row: int, i: int, j: int) -> bool:
    """Whether contact ``row`` belongs to the pair of shapes i < j."""
    a, b = found.first[row], found.second[row]
    return min(a, b) == i and max(a, b) == j


@procedure
def is_before(found: Found, row: int, i: int, j: int) -> bool:
    """Whether contact ``row`` precedes those of shapes i < j in the sorted order of pairs."""
    a, b = found.first[row], found.second[row]
    low = min(a, b)
    return low < i or (low == i and max(a, b) < j)


@procedure
def slab_width(shapes: Shapes, i: int, j: int, n: "float[3]") -> float:
    """Separation of two convex shapes along unit vector ``n``; -1e300 if a shape is not convex."""
    if shapes.kind[i] >= tables.FIELD or shapes.kind[j] >= tables.FIELD:
        return -1e300
    pair, slab = local(Pair), local(Slab)
    place_pair(shapes, pair, i, j)
    slab.corner[:] = -1
    slab.normal[:] = n
    return width(shapes, pair, slab) - round_of(shapes, i) - round_of(shapes, j)


@procedure
def pair_gap(shapes: Shapes, i: int, j: int, reach: float, touch: Touch) -> float:
    """Gap of two bounded shapes if below ``reach`` [m], negative for overlap; else larger."""
    if shapes.kind[i] > shapes.kind[j]:
        i, j = j, i
    if shapes.kind[i] == tables.BOX and shapes.kind[j] == tables.BOX:
        if reach <= 0.0:
            return boxes_apart_by_axes(shapes, i, j)
    elif shapes.kind[j] <= tables.HULL and shapes.kind[j] > tables.BOX:
        pair, near = local(Pair), local(Slab)
        way = local("float", 3)
        place_pair(shapes, pair, i, j)
        way[:] = 0.0
        status = nearest(shapes, pair, reach, way, near)
        return 1e300 if status == BEYOND else near.gap
    gap = 1e300
    for k in range(narrow_phase(shapes, i, j, reach, touch, 0)):
        gap = min(gap, touch.gap[k])
    return gap


@procedure
def boxes_apart_by_axes(shapes: Shapes, i: int, j: int) -> float:
    """Largest separation of two boxes over the 15 separating axes; negative for overlap."""
    p, q, a, b = shapes.pose[i], shapes.pose[j], shapes.size[i], shapes.size[j]
    d = q[3::4] - p[3::4]
    t = p[:3] * d[0] + p[4:7] * d[1] + p[8:11] * d[2]  # centre to centre, seen from the first box
    s = q[:3] * d[0] + q[4:7] * d[1] + q[8:11] * d[2]
    C = view(p, 0, 3, 4)[:, :3].T @ view(q, 0, 3, 4)[:, :3]  # second to first
    F = abs(C)
    best = -1e300
    for k in range(3):
        best = max(best, abs(t[k]) - a[k] - b[0] * F[k, 0] - b[1] * F[k, 1] - b[2] * F[k, 2])
        best = max(best, abs(s[k]) - b[k] - a[0] * F[0, k] - a[1] * F[1, k] - a[2] * F[2, k])
    for k in range(3):
        u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
        for l in range(3):
            square = C[u, l] * C[u, l] + C[w, l] * C[w, l]
            if square > _PARALLEL:
                v, o = (l + 1 if l < 2 else 0), (l - 1 if l > 0 else 2)
                reach = a[u] * F[w, l] + a[w] * F[u, l] + b[v] * F[k, o] + b[o] * F[k, v]
                gap = abs(t[w] * C[u, l] - t[u] * C[w, l]) - reach
                best = max(best, gap / sqrt(square))
    return best


@procedure
def endless_overlap(
    shapes: Shapes, special: Special, pairs: Pairs, touch: Touch, which: "int[2]"
) -> float:
    """Largest penetration of bounded shapes into planes and height fields, at least 0 [m]."""
    worst = 0.0
    n = local("float", 3)
    for e in range(pairs.bounded, pairs.bounded + pairs.endless):
        i = pairs.order[e]
        n[:] = shapes.pose[i, 2::4]
        for x in range(pairs.bounded):
            j = pairs.order[x]
            apart = shapes.margin[i] + shapes.margin[j] + max(special.reach, 0.0)
            if clearance(shapes, i, j) >= apart - worst or not pair_may_touch(
                shapes, special, i, j
            ):
                continue
            apart = pair_margin(shapes, special, i, j)
            if shapes.kind[i] == tables.PLANE and shapes.kind[j] != tables.TRIANGLES:
                depth = apart - above_plane(shapes, i, j, n)
            else:
                depth = apart - pair_gap(shapes, i, j, apart - worst, touch)
            if depth > worst:
                worst = depth
                which[0] = min(i, j)
                which[1] = max(i, j)
    return worst


@procedure
def pair_may_touch(shapes: Shapes, special: Special, i: int, j: int) -> bool:
    """Whether contact of two shapes is enabled, by the rules or by a list of pairs."""
    if special.rule == tables.LISTED:
        k = special_number(special, i, j)
        return k >= 0 and special.allowed[k] == tables.MAY_TOUCH
    return may_touch(shapes, special, i, j)


@procedure
def above_plane(shapes: Shapes, i: int, j: int, n: "float[3]") -> float:
    """Height of the lowest point of convex shape j above plane i with normal ``n`` [m]."""
    o, a, d = local("float", 3, 3)
    corners = local("float", 6, 3)
    o[:] = shapes.pose[i, 3::4]
    d[:] = -n
    support(shapes, j, corners, o, d, -1, a)
    return (a[0] * n[0] + a[1] * n[1] + a[2] * n[2]) - round_of(shapes, j)
