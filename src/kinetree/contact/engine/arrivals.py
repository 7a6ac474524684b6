"""Arrivals: features of shapes that overlap at the end of a step, though none was near before.

Contacts are found at the middle of a step. What touches can change within it: two plates that
tumble meet at an edge, and a corner of theirs is inside at the end. So shapes are looked at once
more where the step has brought them, and features that overlap become rows of the step: a point
with gap ``g`` at the end had ``g - beta w`` at the middle, where ``w`` is the velocity along its
normal that the step had found. The step is solved again, until geometry agrees.
"""

from kinetree.codegen.procedures import dot, local, procedure, sqrt, vector
from kinetree.codegen.tied import run
from kinetree.contact.collision.overlap import (
    deepest_overlap,
    detect_overlaps,
    is_before,
    is_of,
)
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.tables import ENDLESS, Found, Shapes
from kinetree.contact.engine.contact_frames import normal_velocity, point_velocity
from kinetree.contact.engine.known_contacts import slot_of
from kinetree.contact.engine.mechanism import Mechanism, body_velocities
from kinetree.contact.engine.parts import FOUND_FULL, Parts
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.sleep import is_asleep

RESTS = 0.1
"""Way of all points, in units of the overlap that is left as it is, up to which nothing is looked
at anew."""

ARRIVALS = 3
"""Times that a step is solved again with features that have arrived."""


@procedure
def farthest(m: Mechanism, shapes: Shapes, twist: "float[:, 6]", time: float) -> float:
    """Upper bound of the distance that any shape's point moves in ``time`` seconds [m]."""
    most = 0.0
    w = local("float", 3)
    for n in range(shapes.count):
        i = shapes.body[n]
        if i > 0:
            x = vector(shapes.pose[n, 3], shapes.pose[n, 7], shapes.pose[n, 11])
            point_velocity(m, twist, i, x, w)
            turn = twist[i, :3]
            reach = 2.0 * min(shapes.radius[n], ENDLESS)
            most = max(most, sqrt(dot(w, w)) + sqrt(dot(turn, turn)) * reach)
    return time * most


@procedure
def overlap_at_end(a: Parts) -> float:
    """Largest penetration at the end-of-step positions [m]; negative code without room."""
    if a.found.pairs == 0:
        return 0.0
    run(a.kernels.poses_after)
    place_shapes(a.shapes, a.flight.pose)
    least, which = a.step.closed, a.worst[0]
    return deepest_overlap(a.shapes, a.special, a.pairs, a.touch, a.found, least, which)


@procedure
def overlap_after(a: Parts, beta: float) -> float:
    """Largest penetration at the end of a step, ``beta`` seconds after its middle [m]."""
    m = a.mechanism
    body_velocities(m, a.step.after, m.twist)
    if farthest(m, a.shapes, m.twist, beta) < RESTS * a.step.closed:
        return deepest_found(a.found)
    return overlap_at_end(a)


@procedure
def deepest_found(f: Found) -> float:
    """Largest penetration among the detected contacts [m], at least 0."""
    most = 0.0
    for c in range(f.count):
        most = max(most, -f.gap[c])
    return most


@procedure
def deepest_new(f: Found, rows: Rows) -> float:
    """Largest penetration among detected contacts that the last step did not have [m]."""
    most = 0.0
    for c in range(f.count):
        known = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])] > 0
        if -f.gap[c] > most and not known:
            most = -f.gap[c]
    return most


@procedure
def carry_back(m: Mechanism, after: "float[:, 12]", i: int, x: "float[3]") -> None:
    """Move a point fixed to body ``i`` from the pose at the step's end to that at its middle."""
    p, q = after[i], m.pose[i]
    d = x - p[3::4]
    own = d[0] * p[:3] + d[1] * p[4:7] + d[2] * p[8:11]
    x[:] = q[3::4] + own[0] * q[::4] + own[1] * q[1::4] + own[2] * q[2::4]


@procedure
def copy_contact(given: Found, c: int, f: Found, n: int) -> None:
    """Copy contact ``c`` of one ``Found`` table to row ``n`` of another."""
    f.first[n] = given.first[c]
    f.second[n] = given.second[c]
    f.bodies[n] = given.bodies[c]
    f.feature[n] = given.feature[c]
    f.point[n] = given.point[c]
    f.normal[n] = given.normal[c]
    f.gap[n] = given.gap[c]
    f.apart[n] = given.apart[c]
    f.friction[n] = given.friction[c]
    f.restitution[n] = given.restitution[c]
    f.dim[n] = given.dim[c]
    f.drift[n] = given.drift[c]


@procedure
def length_in_order(f: Found) -> int:
    """Number of leading contacts that are sorted by pairs of shapes."""
    n = 1
    while n < f.count:
        a, b = f.first[n], f.second[n]
        if not is_before(f, n - 1, min(a, b), max(a, b) + 1):
            break
        n += 1
    return min(n, f.count)


@procedure
def range_of_shapes(f: Found, ordered: int, row: int, first: int, second: int) -> "(int, int, int)":
    """Range of detected contacts that holds all those of two shapes, and the next start.

    The first ``ordered`` are in the order of pairs, and are looked for from ``row`` on. Returns
    where to look for those of the next pair, too.
    """
    low = min(first, second)
    high = max(first, second)
    if row > 0 and not is_before(f, row - 1, low, high):  # pairs do not follow one another
        row = 0
    while row < ordered and is_before(f, row, low, high):
        row += 1
    begin = end = 0
    n = row
    while n < f.count:
        if f.first[n] == first and f.second[n] == second:
            begin = begin if end > 0 else n
            end = n + 1
        elif n < ordered and not is_of(f, n, low, high):
            n = ordered - 1
        n += 1
    return begin, end, row


@procedure
def is_known(f: Found, rows: Rows, late: Found, c: int, begin: int, end: int) -> bool:
    """Whether a late contact has a row, or its shapes were already as deep in the step's middle.

    Those of its shapes are from ``begin`` on, and end before ``end``.
    """
    for n in range(begin, end):
        if f.first[n] == late.first[c] and f.second[n] == late.second[c]:
            if f.gap[n] <= late.gap[c]:
                return True
            if f.feature[n] == late.feature[c] and rows.active[n] > 0:
                return True
    return False


@procedure
def add_arrivals(a: Parts, beta: float) -> int:
    """Append contacts that penetrate at the step's end without rows; count, or ``FOUND_FULL``.

    Shapes are in their places at the end. What features with rows overlap is of third order in the
    step where they are smooth, and is left to the next one.
    """
    s, m, f, late = a.step, a.mechanism, a.found, a.late
    one, two = local("float", 2, 3)
    if detect_overlaps(a.shapes, a.special, a.pairs, a.touch, f, s.arrives, late) < 0:
        return FOUND_FULL
    body_velocities(m, s.after, m.twist)
    known = f.count
    n = known
    ordered = length_in_order(f)
    begin = end = row = 0
    first = second = -1
    for c in range(late.count):
        f.count = known
        if late.gap[c] >= -s.arrives or is_asleep(a.sleep, late, c):
            continue
        if late.first[c] != first or late.second[c] != second:  # corners of a pair follow another
            first = late.first[c]
            second = late.second[c]
            begin, end, row = range_of_shapes(f, ordered, row, first, second)
        if is_known(f, a.rows, late, c, begin, end):
            continue
        if n >= f.capacity:
            return FOUND_FULL
        copy_contact(late, c, f, n)
        one[:] = f.point[n]
        two[:] = f.point[n]
        carry_back(m, a.flight.pose, f.bodies[n, 0], one)
        carry_back(m, a.flight.pose, f.bodies[n, 1], two)
        f.point[n] = (one + two) / 2.0
        f.restitution[n] = 0.0
        f.gap[n] -= beta * normal_velocity(m, f, n, m.twist)
        a.rows.active[n] = -1
        n += 1
    f.count = n
    return n - known
