"""Contacts of shapes that move with each other, for steps in a fixed amount of memory.

Pairs whose shapes can come near each other within the step are listed, and the engine's narrow
phases find the points of these, at most ``PairTables.each`` for a pair. All quantities are along
the axes of the world, about the origin of the tree of the second body; ``slots`` has the step.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from kinetree.codegen.procedures import (
    ProcedureTable,
    cross,
    dot,
    lane_max,
    lanes,
    local,
    procedure,
    record,
    sqrt,
    view,
)
from kinetree.contact.collision.detect import CLOSED_FORMS, nowhere
from kinetree.contact.collision.shallow import MOST, shallow_pair
from kinetree.contact.collision.tables import BOX, HULL, PLANE, Shapes, Touch
from kinetree.contact.engine.slot_points import NEAR, PARTS, motion_of, pose_of
from kinetree.contact.engine.slot_world import SlotWorld

POINT_SIZE = 8
"""Numbers of a point: gap, place, normal, and its column."""
_KINDS = range(PLANE + 1, HULL + 1)
NARROW = {(a, b): CLOSED_FORMS.get((a, b), shallow_pair) for b in _KINDS for a in _KINDS if a <= b}
"""Narrow phases by kinds of two shapes, the lower one first."""
SHARED = ("vertex", "neighbour_first", "neighbour", "ahead", "face_first", "face_vertex",
          "face_normal")  # fmt: skip
"""Tables of hulls, which lanes share."""


def points_of_kinds(first: int, second: int) -> int:
    """Largest number of contact points of a pair of shapes of these kinds."""
    return MOST if second == HULL and first in (BOX, HULL) else MOST // 2


@record
class PairTables:
    """Pairs of shapes that move with each other, and bodies of contacts.

    Attributes:
        count, shapes: how many pairs there are, and shapes.
        each: points of a pair, at most.
        room: pairs that may be near at once.
        most: points that these may have altogether.
        pair: numbers of the two shapes, that of the lower kind first; the pair's first column, and
            how many it has.
        apart: how far apart the two are held [m].
        body: of shapes, the body that carries them.
        kind: number of the kind.
        place: shape to body, rows of ``[R | p]``.
        size, radius, box, data, firsts: as in ``Shapes``.
        ball: around the shape in coordinates of the body: centre and radius.
        couple: of carriers the two bodies, the lower number first, and how many variables move
            both. The carrier of contacts with what is fixed has the number of the body.
        carrier: of columns.
        column: of the contacts that are always looked at.
    """

    count: int
    shapes: int
    each: int
    room: int
    most: int
    pair: "int[:, 4]"
    apart: "float[:]"
    body: "int[:]"
    kind: "int[:]"
    place: "float[:, 12]"
    size: "float[:, 3]"
    radius: "float[:]"
    box: "float[:, 6]"
    data: "int[:, 4]"
    firsts: "int[:, 2]"
    ball: "float[:, 4]"
    couple: "int[:, 3]"
    carrier: "int[:]"
    column: "int[:]"


@procedure
def place_balls(world: SlotWorld, t: PairTables, h: float, ball: "float[:, 4]") -> None:
    """Set bounding balls of all shapes, enlarged by their motion in the step."""
    for i in lanes(t.shapes):
        b = t.body[i]
        its = local("float", 12)
        motion = local("float", 6)
        pose_of(world, b, world.pose_step, its)
        motion_of(b, world.twist, world.twist_step, motion)
        c = its[9:] + view(its, 0, 3, 3) @ t.ball[i, :3]
        v = motion[3:] + cross(motion[:3], c)
        speed = sqrt(dot(v, v)) + sqrt(dot(motion[:3], motion[:3])) * t.ball[i, 3]
        c += world.origin[world.tree[b]]
        for r in range(3):
            ball[i, r] = c[r]
        ball[i, 3] = t.ball[i, 3] + h * (NEAR / 2.0 + speed)


@procedure
def near_pairs_of(t: PairTables, ball: "float[:, 4]", listed: "float[:]") -> "(int, int)":
    """List the pairs whose bounding balls are near; numbers of listed and lost pairs.

    Each of ``PARTS`` parts takes every so-many-th pair, into a separate list.
    """
    most = (t.room + 1) // 2
    counts = view(listed, t.room)
    own = view(listed, t.room + PARTS)
    for m in lanes(PARTS):
        n = 0
        for k in range(m, t.count, PARTS):
            i, j = t.pair[k, 0], t.pair[k, 1]
            reach = ball[i, 3] + ball[j, 3] + t.apart[k]
            x, y, z = ball[j, 0] - ball[i, 0], ball[j, 1] - ball[i, 1], ball[j, 2] - ball[i, 2]
            if x * x + y * y + z * z <= reach * reach:
                if n < most:
                    own[m * most + n] = float(k)
                n += 1
        counts[m] = float(n)
    many = 0
    lost = 0
    for m in range(PARTS):
        n = min(int(counts[m]), most)
        lost += int(counts[m]) - n
        many += n
    for m in lanes(PARTS):
        at = 0
        for o in range(m):
            at += min(int(counts[o]), most)
        for k in range(min(int(counts[m]), most)):
            if at + k < t.room:
                listed[at + k] = own[m * most + k]
    return min(many, t.room), lost + max(many - t.room, 0)


@procedure(inline=True)
def place_shape(
    world: SlotWorld, t: PairTables, i: int, shift: "float[3]", out: "float[12]"
) -> None:
    """Pose of shape ``i`` as rows ``[R | p]``, with ``shift`` added to its position."""
    its = local("float", 12)
    pose_of(world, t.body[i], world.pose_step, its)
    R = view(its, 0, 3, 3)
    E = view(t.place[i], 0, 3, 4)
    P = view(out, 0, 3, 4)
    P[:, :3] = R @ E[:, :3]
    P[:, 3] = R @ E[:, 3] + its[9:] + shift


@procedure(inline=True)
def place_solid(t: PairTables, i: int, row: int, shapes: Shapes) -> None:
    """Copy the size of shape ``i``, as the closed-form contacts need it."""
    shapes.size[row] = t.size[i]


@procedure(inline=True)
def place_convex(t: PairTables, i: int, row: int, shapes: Shapes) -> None:
    """Copy size, bounds and hull tables of shape ``i``, as ``shallow_pair`` needs them."""
    shapes.size[row] = t.size[i]
    shapes.kind[row] = t.kind[i]
    shapes.radius[row] = t.radius[i]
    shapes.box[row] = t.box[i]
    shapes.data[row] = t.data[i]
    shapes.firsts[row] = t.firsts[i]


@procedure
def list_points(world: SlotWorld, t: PairTables, counts: "float[:]", many: int) -> int:
    """Number of contact points of all near pairs; those with room are listed in ``which``."""
    total = 0
    for m in range(many):
        total += int(counts[m])
    for m in lanes(many):
        at = 0
        for o in range(m):
            at += int(counts[o])
        for x in range(int(counts[m])):
            if at + x < t.most:
                world.which[(at + x) * world.which_step] = float(t.each * m + x)
    return total


@procedure(inline=True)
def keep_points(world: SlotWorld, t: PairTables, m: int, n: int, touch: Touch) -> float:
    """Write the contact points of near pair ``m`` to the world; their largest depth [m]."""
    k = int(world.work[4 * t.shapes + m])
    sign = 1.0 if t.body[t.pair[k, 0]] <= t.body[t.pair[k, 1]] else -1.0
    depth = 0.0
    for x in range(n):
        at = POINT_SIZE * (t.each * m + x)
        gap = touch.gap[x] - t.apart[k]
        depth = max(depth, -gap)
        world.points[at * world.points_step] = gap
        for r in range(3):
            world.points[(at + 1 + r) * world.points_step] = touch.point[x, r]
            world.points[(at + 4 + r) * world.points_step] = sign * touch.normal[x, r]
        world.points[(at + 7) * world.points_step] = float(t.pair[k, 2] + x)
    return depth


def slot_pairs_of(kinds: Iterable[tuple[int, int]]) -> Any:
    """Detection procedure ``slot_pairs`` specialised to pairs of these kinds of shapes.

    Its text has narrow phases for these alone.
    """
    return _slot_pairs_of(tuple(sorted(set(kinds))))


@cache
def _slot_pairs_of(kinds):
    """New ``slot_pairs`` procedure with narrow phases for the given pairs of shape kinds alone."""
    narrow = ProcedureTable({k: NARROW[k] for k in kinds}, nowhere)
    place_rest = place_convex if shallow_pair in narrow.procedures else place_solid

    @procedure(inline=False)
    def points_of(first: int, second: int, shapes: Shapes, margin: float, touch: Touch) -> int:
        """Points of two shapes of some kinds, the first two of ``shapes``: how many."""
        return narrow[first, second](shapes, 0, 1, margin, touch, 0)

    @procedure
    def slot_pairs(
        live: int, world: SlotWorld, pairs: PairTables, shapes: Shapes, touch: Touch
    ) -> None:
        """Points of the pairs that may touch within some time.

        - shapes, touch: records with room for two shapes, and for the points of a pair.
        - time: how long bodies go on as they move [s].
        - points: ``POINT_SIZE`` numbers for each of the points that near pairs may have.
        - which: of these the ones that there are, one after the other.
        - near: how many there are, pairs and points that there was no room for, the largest depth.
        - work: of ``pairs_work`` numbers.
        """
        h = world.time[0]
        ball = view(world.work, 0, pairs.shapes, 4)
        listed = view(world.work, 4 * pairs.shapes)
        counts = view(listed, pairs.room)  # where the lists of parts were, which are read before
        place_balls(world, pairs, h, ball)
        many, lost = near_pairs_of(pairs, ball, listed)
        many = many if live > 0 else 0
        depth = 0.0
        for m in lanes(many):
            k = int(listed[m])
            i, j = pairs.pair[k, 0], pairs.pair[k, 1]
            a, b = pairs.body[i], pairs.body[j]
            last = max(a, b)
            shift = local("float", 3)
            shift[:] = world.origin[world.tree[a]] - world.origin[world.tree[last]]
            place_shape(world, pairs, i, shift, shapes.pose[0])
            shift[:] = world.origin[world.tree[b]] - world.origin[world.tree[last]]
            place_shape(world, pairs, j, shift, shapes.pose[1])
            place_rest(pairs, i, 0, shapes)
            place_rest(pairs, j, 1, shapes)
            reach = ball[i, 3] + ball[j, 3] + (pairs.apart[k] - pairs.ball[i, 3] - pairs.ball[j, 3])
            n = points_of(pairs.kind[i], pairs.kind[j], shapes, reach, touch)
            n = min(n, min(pairs.pair[k, 3], pairs.each))
            counts[m] = float(n)
            depth = max(depth, keep_points(world, pairs, m, n, touch))
        total = list_points(world, pairs, counts, many)
        depth = lane_max(depth)
        if live > 0:
            world.near[0] = float(min(total, pairs.most))
            world.near[1] = float(lost + max(total - pairs.most, 0))
            world.near[2] = depth

    return slot_pairs


def pairs_work(room: int, shapes: int) -> int:
    """Number of floats in the workspace of ``slot_pairs``."""
    return room + PARTS + 4 * shapes + PARTS * ((room + 1) // 2)


@procedure(inline=True)
def point_of(world: SlotWorld, row: int, out: "float[8]") -> None:
    """Write the stored numbers of contact point ``row`` of a world."""
    for r in range(POINT_SIZE):
        out[r] = world.points[(POINT_SIZE * row + r) * world.points_step]


@procedure(inline=True)
def speed_between(
    world: SlotWorld,
    t: PairTables,
    carrier: int,
    p: "float[3]",
    twist: "float[:]",
    twist_step: int,
    out: "float[3]",
) -> None:
    """Relative velocity of a contact's second body against the first at a point."""
    a, b = t.couple[carrier, 0], t.couple[carrier, 1]
    motion = local("float", 6)
    motion_of(b, twist, twist_step, motion)
    out[:] = motion[3:] + cross(motion[:3], p)
    if a > 0:
        motion_of(a, twist, twist_step, motion)
        there = p + world.origin[world.tree[b]] - world.origin[world.tree[a]]
        out[:] -= motion[3:] + cross(motion[:3], there)
