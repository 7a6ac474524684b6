"""The normal between cores of which at least one is curved, to rounding error, by Newton's method.

Near its maximum the width of the slab between two shapes changes little with its direction, so that
a search by widths leaves the direction uncertain by the square root of their error. Here it comes
from a condition that is met only there: the farthest points of both lie along the normal,
``t · (b(-n) - a(n)) = 0`` for both tangents t. The derivative of a support point is the matrix of
the radii of curvature; corners do not move, on edges and faces the normal is at right angles to
them: see ``standing``.
"""

from kinetree.codegen.procedures import Rounding, cross, local, procedure, sqrt
from kinetree.contact.collision.kinds.kind import CROSSING, EDGE, FACE, NONE, SINGLE, TILT
from kinetree.contact.collision.simplex import Pair, Simplex, Slab, width
from kinetree.contact.collision.standing import Side, modes, set_side, stand, within
from kinetree.contact.collision.tables import Shapes

_STEPS = 12
_CERTAIN = 2e-5  # one minus the cosine between directions that lead to the same maximum
_PARALLEL = Rounding(1e-9, single=3e-4)  # [rad]
_SAME = Rounding(1e-12, single=1e-5)
"""Of the depth: as good in any direction, like the middle of a ball."""
_SOLUTION = Rounding(3e-15, single=1e-6)  # [rad] steps after which the normal is found
_NEARLY = Rounding(1e-12, single=1e-4)  # [rad] likewise where there were many
_SLACK = Rounding(1e-12, single=5e-7)  # of the size: by which points may miss each other
_NOISE = Rounding(1e-15, single=1e-7)  # of the size: by which widths that are the same differ
_NOWHERE, _NEARBY, _SOLVED, _MOVED = range(4)
"""What a search for the normal ends with: none; a direction nearby; the solution; it goes on."""


@procedure
def is_level(one: Side, two: Side) -> bool:
    """Whether flat faces are parallel to the face or edge of the other shape; True without faces.

    What is not parallel to the face touches it with a corner, edge or rim instead.
    """
    ea, eb = one.line[:3], two.line[:3]
    lean = 0.0
    if one.status == FACE and two.status == FACE:
        off = cross(ea, eb)
        lean = off @ off
    elif one.status == EDGE or two.status == EDGE:
        past = ea @ eb + one.line[3] + two.line[3]
        lean = past * past
    return not lean > _PARALLEL * _PARALLEL


@procedure
def turn_across(one: Side, two: Side, n: "float[3]") -> int:
    """Turn the normal orthogonal to the edges of two shapes; ``_NEARBY`` if these are parallel."""
    ea, eb, ka, kb = one.line[:3], two.line[:3], one.line[3], two.line[3]
    over = cross(ea, eb)
    length = sqrt(over @ over)
    if not length > _PARALLEL:
        return _NEARBY
    if over @ n < 0:
        length = -length
    # ea @ n == ka and -eb @ n == kb: a part along both, and the rest across them
    cosine = -(ea @ eb)
    along = (ka - cosine * kb) / (length * length)
    back = (kb - cosine * ka) / (length * length)
    rest = 1.0 - along * ka - back * kb
    if rest < 0:
        return _NOWHERE
    n[:] = sqrt(rest) * over / length + along * ea - back * eb
    return _MOVED


@procedure
def cross_lines(one: Side, two: Side, n: "float[3]") -> None:
    """Move both shapes' points to where two edges cross, projected along the normal."""
    a, b = one.point, two.point
    u = one.line[:3] - one.line[3] * n  # the lines that touch, not of unit length
    w = two.line[:3] + two.line[3] * n
    past = cross(b - a, w) @ n / (cross(u, w) @ n)
    gap = (b - a) @ n
    a[:] += past * u
    b[:] = a + gap * n
    one.status = CROSSING


@procedure
def turn_to_edge(one: Side, two: Side, n: "float[3]", t: "float[3]") -> bool:
    """Turn the normal to where a shape's edge is the support, unless it is far; sets tangent ``t``.

    ``t`` becomes the tangent at right angles to the edge.
    """
    e = one.line[:3] * 1.0
    k = one.line[3]
    if one.status != EDGE:
        e = -two.line[:3]
        k = two.line[3]
    along = e @ n
    n[:] -= along * e
    length = sqrt(n @ n)
    if abs(along - k) > 0.7 or length < 1e-9:
        return False
    root = sqrt(1.0 - k * k)
    n[:] = root * n / length + k * e
    t[:] = cross(e, n) / root
    return True


@procedure
def find_tangent(n: "float[3]", t: "float[3]") -> None:
    """Write a unit vector orthogonal to the normal ``n``."""
    axis = 0
    if abs(n[1]) < abs(n[axis]):
        axis = 1
    if abs(n[2]) < abs(n[axis]):
        axis = 2
    m = local("float", 3)
    m[:] = 0.0
    m[axis] = 1.0
    t[:] = cross(n, m)
    t[:] = t / sqrt(t @ t)


@procedure
def take_step(one: Side, two: Side, n: "float[3]", t: "float[3]", is_free: bool) -> "(int, float)":
    """Newton step of the normal towards a wider slab; returns the search's status and the step.

    ``is_free`` is whether it turns both ways, or along the tangent ``t`` alone.
    """
    between = two.point - one.point
    gap = between @ n
    u = cross(n, t)
    Bt = one.bend @ t + two.bend @ t + t * gap
    M11 = t @ Bt
    r1 = t @ between
    move = t * 0.0
    if not is_free:
        if M11 <= 0:
            return _SOLVED if abs(r1) <= _SAME * abs(gap) else _NEARBY, 0.0
        move = t * (r1 / M11)
    else:
        Bu = one.bend @ u + two.bend @ u + u * gap
        M12 = t @ Bu
        M22 = u @ Bu
        r2 = u @ between
        det = M11 * M22 - M12 * M12
        if M11 <= 0 or det <= 0:
            return _SOLVED if abs(r1) + abs(r2) <= _SAME * abs(gap) else _NEARBY, 0.0
        move = t * ((M22 * r1 - M12 * r2) / det) + u * ((M11 * r2 - M12 * r1) / det)
    size = sqrt(move @ move)
    if size > 0.5:
        return _NEARBY, size
    n[:] += move
    length = sqrt(n @ n)
    n[:] = n / length
    return _SOLVED if size < _SOLUTION else _MOVED, size


@procedure
def solve_normal(shapes: Shapes, pair: Pair, one: Side, two: Side, n: "float[3]") -> int:
    """Solve for the normal at which given features of two shapes are supports; the status.

    About the nearest points are those of the sides before.

    Returns ``_NOWHERE``, ``_NEARBY`` or ``_SOLVED``.
    """
    t = local("float", 3)
    last = 1.0
    for step in range(_STEPS):
        one.normal[:] = n
        two.normal[:] = -n
        first = stand(shapes, one, pair.origin, two.point)
        second = stand(shapes, two, pair.origin, one.point)
        if first == NONE or second == NONE:
            return _NOWHERE
        if first == FACE or second == FACE:
            if not is_level(one, two):
                return _NOWHERE
            n[:] = one.line[:3] if first == FACE else -two.line[:3]
            if step > 0:
                return _SOLVED
            continue
        state = turn_across(one, two, n) if first == EDGE and second == EDGE else _NEARBY
        if state == _NOWHERE:
            return _NOWHERE
        if state == _MOVED:
            if step > 0:
                cross_lines(one, two, n)
                return _SOLVED
            continue
        is_free = first != EDGE and second != EDGE
        if is_free:
            find_tangent(n, t)
        elif not turn_to_edge(one, two, n, t):
            return _NOWHERE
        state, last = take_step(one, two, n, t, is_free)
        if state != _MOVED:
            return state
    return _SOLVED if last < _NEARLY else _NEARBY


@procedure
def are_on_sides(
    shapes: Shapes, pair: Pair, one: Side, two: Side, ends: Slab, slack: float
) -> bool:
    """Set a missing nearest point from the other; whether both lie on their shapes' features."""
    d, a, b = ends.normal, one.point, two.point
    if one.status == CROSSING:
        on_first = within(shapes, one, pair.origin, slack)
        return on_first and within(shapes, two, pair.origin, slack)
    if one.status == SINGLE and two.status != SINGLE:
        b[:] = a + ends.gap * d
        return within(shapes, two, pair.origin, slack)
    if one.status != SINGLE and two.status == SINGLE:
        a[:] = b - ends.gap * d
        return within(shapes, one, pair.origin, slack)
    return one.status == SINGLE


@procedure
def take_points(slab: Slab, one: Side, two: Side, ends: Slab, optimal: bool) -> None:
    """Set a slab's normal and gap to those of ``ends``; points are the supports if ``optimal``.

    Where these are not nearest points, those of the slab are moved to the ends along the normal.
    """
    slab.gap = ends.gap
    slab.normal[:] = ends.normal
    if optimal:
        slab.first[:] = one.point
        slab.second[:] = two.point
    else:
        move_to_ends(slab, ends)


@procedure
def move_to_ends(slab: Slab, ends: Slab) -> None:
    """Shift a slab's points along its normal to the heights of the support points."""
    slip = (ends.first - slab.first) @ slab.normal
    slab.first[:] += slip * slab.normal
    slab.second[:] = slab.first + slab.gap * slab.normal


@procedure
def refine(
    shapes: Shapes, pair: Pair, simplex: Simplex, slab: Slab, most: float
) -> "(float, bool)":
    """Largest slab width near a normal by Newton's method, and whether it is a maximum.

    In: about the normal and the points, the simplex that they are of, and the ``most`` that the
    width can be.
    """
    one, two, ends = local(Side), local(Side), local(Slab)
    set_side(one, pair.i, simplex, 0)
    set_side(two, pair.j, simplex, 1)
    start = slab.normal * 1.0
    ends.normal[:] = start
    ends.corner[:] = simplex.corner[0]
    slab.gap = width(shapes, pair, ends)
    move_to_ends(slab, ends)
    slack = _SLACK * pair.size
    is_maximum = False
    for first in range(modes(shapes, one)):
        for second in range(modes(shapes, two)):
            one.mode = first
            two.mode = second
            ends.normal[:] = start
            one.point[:] = slab.first
            two.point[:] = slab.second
            solved = solve_normal(shapes, pair, one, two, ends.normal)
            if solved == _NOWHERE or ends.normal @ start < 1 - TILT:
                continue
            found = width(shapes, pair, ends)
            if found < slab.gap - _NOISE * pair.size:
                continue
            ends.gap = found
            gap = (two.point - one.point) @ ends.normal
            extended = one.status != SINGLE and one.status != CROSSING and two.status != SINGLE
            # Both points are farthest ones, and single or on the edge or face: a maximum.
            optimal = solved == _SOLVED and abs(gap - found) <= slack
            optimal = optimal and are_on_sides(shapes, pair, one, two, ends, slack)
            take_points(slab, one, two, ends, optimal)
            # Apart there is one maximum; of overlapping shapes there may be several nearby.
            certain = optimal and (found >= 0 or ends.normal @ start > 1 - _CERTAIN)
            if certain or found >= most - 1e-2 * slack:
                return found, True
            is_maximum = is_maximum or extended or optimal
    return slab.gap, is_maximum
