"""Broad phase: pairs of shapes whose boxes, grown by margins and motion, overlap.

Sweep and prune (D. Baraff, "Dynamic simulation of non-penetrating rigid bodies", 1992) along the
axis on which the shapes are spread most, within strips along the second one. The order along the
axis is kept from step to step, so that sorting it anew costs little. Planes and height fields are
compared with every other shape.
"""

import numpy as np

from kinetree.codegen.procedures import isfinite, local, procedure, record, sqrt
from kinetree.contact.collision import tables
from kinetree.contact.collision.placing import clearance
from kinetree.contact.collision.tables import Shapes, Special

PAIRS_FULL = -1
"""Code of a ``Pairs`` that is too small."""

_WORD = 4294967296  # 2**32: keys of pairs
_FEW = 24  # shapes that are not divided into strips
_STRIPS = 3  # entries of strips for every shape, at most


@record
class Pairs:
    """Near pairs, what bodies move within the step, and what the sweep keeps between steps."""

    capacity: int
    """Of ``near``."""
    axis: int
    """Along which ``order`` is sorted; -1: not yet."""
    bounded: int
    """Number of shapes in ``order``."""
    endless: int
    """Number of planes and height fields, ``order[bounded:]``."""
    order: "int[:]"
    """Numbers of shapes."""
    motion: "float[:, 6]"
    """Of the bodies until the end of the step: their spatial velocities in the world times its
    length. Pairs that can meet on the way are near; zero: as they stand."""
    move: "float[:, 4]"
    """Displacement of the centre of every shape and how far its points get around it."""
    box: "float[:, 6]"
    """Grown boxes: low and high corner."""
    strip: "int[:, 2]"
    """First and last strip of every shape."""
    strip_first: "int[:]"
    """Where each strip begins in ``entry``."""
    entry: "int[:]"
    """Numbers of shapes."""
    row: "float[:, 5]"
    """Boxes of one strip."""
    met: "int[:]"
    """Shapes of the strip whose boxes meet that of one of them."""
    near: "int[:, 2]"
    """The pairs, the lower number first, in order."""
    way: "float[:, 3]"
    """Of pairs that ``detect`` has found apart: see ``Touch.way``; or zero."""
    unsorted: "int[:, 2]"
    """As the sweep found them."""


def pair_tables(shapes, bodies, capacity=None) -> Pairs:
    """``Pairs`` record of the broad phase for these shapes and a number of bodies."""
    endless = shapes.radius > tables.ENDLESS
    order = np.concatenate([np.flatnonzero(~endless), np.flatnonzero(endless)])
    n, capacity = shapes.count, capacity or 64 + 8 * shapes.count
    return Pairs(
        capacity=capacity,
        axis=-1,
        bounded=int(np.sum(~endless)),
        endless=int(np.sum(endless)),
        order=order,
        motion=np.zeros((bodies, 6)),
        move=np.zeros((n, 4)),
        box=np.zeros((n, 6)),
        strip=np.zeros((n, 2), dtype=np.int64),
        strip_first=np.zeros(n + 2, dtype=np.int64),
        entry=np.zeros(_STRIPS * n, dtype=np.int64),
        row=np.zeros((n, 5)),
        met=np.zeros(n, dtype=np.int64),
        near=np.zeros((capacity, 2), dtype=np.int64),
        way=np.zeros((capacity, 3)),
        unsorted=np.zeros((capacity, 2), dtype=np.int64),
    )


def enlarge_pairs(pairs) -> None:
    """Double the capacity of the broad phase's list of near pairs; its content is lost."""
    pairs.capacity *= 2
    pairs.near = np.zeros((pairs.capacity, 2), dtype=np.int64)
    pairs.way = np.zeros((pairs.capacity, 3))
    pairs.unsorted = np.zeros((pairs.capacity, 2), dtype=np.int64)


@procedure
def near_pairs(shapes: Shapes, special: Special, pairs: Pairs, margin: float) -> int:
    """Broad phase: list pairs that may come within ``margin``; their number, negative if full."""
    grow_boxes(shapes, special, pairs, margin)
    if special.rule == tables.LISTED:
        return listed_pairs(shapes, special, pairs, margin)
    sort_boxes(pairs)
    n = swept_pairs(shapes, special, pairs, fill_strips(pairs))
    n = endless_pairs(shapes, special, pairs, margin, n)
    if n >= 0:
        put_in_order(pairs, shapes.count, n)
    return n


@procedure(inline=True)
def velocity_at(t: "float[6]", d: "float[3]", out: "float[3]") -> None:
    """Velocity at offset ``d`` from the point to which the twist ``t`` refers."""
    out[0] = t[3] + t[1] * d[2] - t[2] * d[1]
    out[1] = t[4] + t[2] * d[0] - t[0] * d[2]
    out[2] = t[5] + t[0] * d[1] - t[1] * d[0]


@procedure
def grow_boxes(shapes: Shapes, special: Special, pairs: Pairs, margin: float) -> None:
    """Enlarge every shape's box by its motion during the step and half of the margin."""
    common = margin / 2 + max(special.reach, 0.0) / 2
    for i in range(shapes.count):
        v, p, c = pairs.motion[shapes.body[i]], shapes.pose[i], shapes.box[i]
        m, box = pairs.move[i], pairs.box[i]
        centre = p[3::4] + p[::4] * c[0] + p[1::4] * c[1] + p[2::4] * c[2]
        velocity_at(v, centre, m[:3])
        turn = sqrt(v[:3] @ v[:3])
        m[3] = min(turn, 2.0) * shapes.radius[i] if turn > 0.0 else 0.0
        reach = common + max(shapes.margin[i], 0.0) + m[3]
        for k in range(3):
            box[k] = shapes.low[i, k] + min(m[k], 0.0) - reach
            box[3 + k] = shapes.high[i, k] + max(m[k], 0.0) + reach


@procedure
def approach(pairs: Pairs, i: int, j: int) -> float:
    """Upper bound of how far two shapes approach each other during the step [m]."""
    a, b = pairs.move[i], pairs.move[j]
    d = b[:3] - a[:3]
    return sqrt(d @ d) + a[3] + b[3]


# --- Who may touch -------------------------------------------------------------------------------


@procedure
def special_number(special: Special, i: int, j: int) -> int:
    """Row of a pair of shapes in ``special`` by binary search, or -1."""
    key = min(i, j) * _WORD + max(i, j)
    low, high = 0, special.count
    while low < high:
        middle = (low + high) // 2
        if special.key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < special.count and special.key[low] == key else -1


@procedure
def may_touch(shapes: Shapes, special: Special, i: int, j: int) -> bool:
    """Whether contact of two shapes is enabled: by welds, ``special`` or MuJoCo's bit masks."""
    a, b = shapes.weld[i], shapes.weld[j]
    if a == b or (special.rule == tables.WITH_BASE and a != 0 and b != 0):
        return False
    if special.count > 0:
        k = special_number(special, i, j)
        if k >= 0:
            return special.allowed[k] == tables.MAY_TOUCH
    if (shapes.contype[i] & shapes.conaffinity[j]) | (
        shapes.contype[j] & shapes.conaffinity[i]
    ) == 0:
        return False
    return a == 0 or b == 0 or (shapes.weld_parent[i] != b and shapes.weld_parent[j] != a)


@procedure
def overlap(pairs: Pairs, i: int, j: int) -> bool:
    """Whether the broad-phase boxes of shapes i and j intersect."""
    a, b = pairs.box[i], pairs.box[j]
    return (
        a[0] <= b[3]
        and b[0] <= a[3]
        and a[1] <= b[4]
        and b[1] <= a[4]
        and a[2] <= b[5]
        and b[2] <= a[5]
    )


@procedure
def listed_pairs(shapes: Shapes, special: Special, pairs: Pairs, margin: float) -> int:
    """Broad phase over the pairs listed in ``special``: number of near ones, negative if full."""
    n = 0
    for k in range(special.count):
        if special.allowed[k] != tables.MAY_TOUCH:
            continue
        i, j = special.key[k] // _WORD, special.key[k] % _WORD
        if shapes.radius[i] > tables.ENDLESS:
            near = is_over(shapes, special, pairs, i, j, margin)
        elif shapes.radius[j] > tables.ENDLESS:
            near = is_over(shapes, special, pairs, j, i, margin)
        else:
            near = overlap(pairs, i, j)
        if near:
            if n >= pairs.capacity:
                return PAIRS_FULL
            pairs.near[n, 0] = i
            pairs.near[n, 1] = j
            n += 1
    return n


# --- Sweep ---------------------------------------------------------------------------------------


@procedure
def sort_boxes(pairs: Pairs) -> None:
    """Sort shapes by the low ends of their boxes along the axis of largest spread."""
    n, old = pairs.bounded, pairs.axis
    mean, spread = local("float", 3), local("float", 3)
    mean[:] = 0.0
    spread[:] = 0.0
    for x in range(n):
        box = pairs.box[pairs.order[x]]
        mean += (box[:3] + box[3:]) / (2.0 * n)
    for x in range(n):
        box = pairs.box[pairs.order[x]]
        d = (box[:3] + box[3:]) / 2.0 - mean
        spread += d * d
    axis = max(old, 0)
    for k in range(3):  # the order is kept unless another axis is much better
        if spread[k] > (2.0 if axis == old else 1.0) * spread[axis]:
            axis = k
    pairs.axis = axis
    gap = 1 if axis == old else max(n // 2, 1)
    while gap >= 1:
        for x in range(gap, n):
            i = pairs.order[x]
            low = pairs.box[i, axis]
            y = x
            while y >= gap and pairs.box[pairs.order[y - gap], axis] > low:
                pairs.order[y] = pairs.order[y - gap]
                y -= gap
            pairs.order[y] = i
        gap = 1 if gap == 2 else gap * 5 // 11


@procedure
def fill_strips(pairs: Pairs) -> int:
    """Distribute shapes to strips along a second axis; returns the number of strips."""
    n, side, start, span, width = pairs.bounded, 0, 0.0, 0.0, 0.0
    if n <= _FEW:
        for x in range(n):
            pairs.entry[x] = pairs.order[x]
            pairs.strip[pairs.order[x]] = 0
        pairs.strip_first[0] = 0
        pairs.strip_first[1] = n
        return 1
    for k in range(3):
        if k == pairs.axis:
            continue
        low, high, size = tables.ENDLESS, -tables.ENDLESS, 0.0
        for x in range(n):
            i = pairs.order[x]
            low = min(low, pairs.box[i, k])
            high = max(high, pairs.box[i, k])
            size += 1.5 * (pairs.box[i, 3 + k] - pairs.box[i, k]) / n
        if (high - low) * width >= span * size:
            side, start, span, width = k, low, high - low, size
    strips = 1
    if width > 0.0 and isfinite(span):
        strips = max(min(int(span / width), n), 1)
    list_strips(pairs, side, start, span, strips)
    first = pairs.strip_first
    for k in range(strips):
        first[k + 1] += first[k]
    for x in range(n - 1, -1, -1):  # from the back: a strip ends where the next one begins
        i = pairs.order[x]
        for k in range(pairs.strip[i, 0], pairs.strip[i, 1] + 1):
            first[k] -= 1
            pairs.entry[first[k]] = i
    return strips


@procedure
def list_strips(pairs: Pairs, side: int, start: float, span: float, strips: int) -> None:
    """Set first and last strip of every shape, and count the shapes in each strip.

    Strips are 1.5 times as wide as the boxes on average: these are in 2.67 strips at most.
    """
    scale = strips / span if strips > 1 else 0.0
    pairs.strip_first[: strips + 1] = 0
    for x in range(pairs.bounded):
        i = pairs.order[x]
        a = (pairs.box[i, side] - start) * scale
        b = (pairs.box[i, 3 + side] - start) * scale
        pairs.strip[i, 0] = int(max(min(a, strips - 1.0), 0.0))
        pairs.strip[i, 1] = max(int(max(min(b, strips - 1.0), 0.0)), pairs.strip[i, 0])
        for k in range(pairs.strip[i, 0], pairs.strip[i, 1] + 1):
            pairs.strip_first[k] += 1


@procedure
def swept_pairs(shapes: Shapes, special: Special, pairs: Pairs, strips: int) -> int:
    """Sweep and prune within strips: lists near pairs of bounded shapes; their number."""
    n, axis = 0, pairs.axis
    side = 0 if axis == 2 else axis + 1
    other = 3 - axis - side
    for s in range(strips):
        start, end = pairs.strip_first[s], pairs.strip_first[s + 1]
        for x in range(start, end):  # copied to lie side by side
            box, row = pairs.box[pairs.entry[x]], pairs.row[x - start]
            row[0] = box[axis]
            row[1] = box[side]
            row[2] = box[3 + side]
            row[3] = box[other]
            row[4] = box[3 + other]
        for x in range(start, end):
            i = pairs.entry[x]
            row = pairs.row[x - start]
            high, first = pairs.box[i, 3 + axis], pairs.strip[i, 0]
            a, b, c, d = row[1], row[2], row[3], row[4]
            met, y = 0, x + 1
            while (
                y < end and pairs.row[y - start, 0] <= high
            ):  # without branches that depend on boxes
                row = pairs.row[y - start]
                pairs.met[met] = pairs.entry[y]
                met += (row[1] <= b) & (row[2] >= a) & (row[3] <= d) & (row[4] >= c)
                y += 1
            for y in range(met):
                j = pairs.met[y]
                if max(first, pairs.strip[j, 0]) == s and may_touch(shapes, special, i, j):
                    if n >= pairs.capacity:
                        return PAIRS_FULL
                    pairs.unsorted[n, 0] = min(i, j)
                    pairs.unsorted[n, 1] = max(i, j)
                    n += 1
    return n


@procedure
def is_over(shapes: Shapes, special: Special, pairs: Pairs, i: int, j: int, margin: float) -> bool:
    """Whether shape j may come within the margins of the plane or height field i in the step."""
    apart = margin + max(special.reach, 0.0) + max(shapes.margin[i] + shapes.margin[j], 0.0)
    return clearance(shapes, i, j) <= apart + approach(pairs, i, j)


@procedure
def endless_pairs(shapes: Shapes, special: Special, pairs: Pairs, margin: float, n: int) -> int:
    """Append near pairs of planes and height fields with bounded shapes; the new count."""
    if n < 0:
        return n
    for e in range(pairs.bounded, pairs.bounded + pairs.endless):
        i = pairs.order[e]
        p, top, own = shapes.pose[i], shapes.box[i], pairs.move[i]
        x, y, z = p[2], p[6], p[10]
        level = x * p[3] + y * p[7] + z * p[11] + top[2] + top[5] + margin / 2
        level += max(special.reach, 0.0) / 2 + max(shapes.margin[i], 0.0)
        level += sqrt(own[:3] @ own[:3]) + own[3]
        for j in range(shapes.count):
            box = pairs.box[j]  # its corner that is lowest over the plane
            a = box[0] if x > 0.0 else box[3]
            b = box[1] if y > 0.0 else box[4]
            c = box[2] if z > 0.0 else box[5]
            if (
                a * x + b * y + c * z <= level
                and shapes.radius[j] <= tables.ENDLESS
                and is_over(shapes, special, pairs, i, j, margin)
                and may_touch(shapes, special, i, j)
            ):
                if n >= pairs.capacity:
                    return PAIRS_FULL
                pairs.unsorted[n, 0] = min(i, j)
                pairs.unsorted[n, 1] = max(i, j)
                n += 1
    return n


@procedure
def put_in_order(pairs: Pairs, count: int, n: int) -> None:
    """Sort the near pairs by both shapes, independently of the order in which they came."""
    sort_by(pairs.unsorted, pairs.near, 1, pairs.strip_first, count, n)
    pairs.unsorted[:n] = pairs.near[:n]
    sort_by(pairs.unsorted, pairs.near, 0, pairs.strip_first, count, n)


@procedure
def sort_by(
    given: "int[:, 2]", result: "int[:, 2]", side: int, first: "int[:]", count: int, n: int
) -> None:
    """Stable counting sort of pairs by the shape on one side."""
    first[: count + 1] = 0
    for k in range(n):
        first[given[k, side] + 1] += 1
    for k in range(count):
        first[k + 1] += first[k]
    for k in range(n):
        x = given[k, side]
        result[first[x]] = given[k]
        first[x] += 1
