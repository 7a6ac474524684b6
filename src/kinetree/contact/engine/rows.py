"""Rows of a step: contacts, ends of travel, dry joint friction, loops and couplings.

Every group of rows is a set of blocks over the nodes that move it, see ``newton.problem``. Contacts
have 1, 3, 4 or 6 rows: along the normal, along two tangents, about the normal, about the tangents;
rows of friction are scaled so that all limits are alike. Only groups that can act in the step are
written; ``missed`` finds those for which that turned out to be wrong.
"""

from kinetree.codegen.procedures import dot, local, procedure, record, sqrt, vector, view
from kinetree.contact.collision.sweep import velocity_at
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.loops import Loops
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.sleep import Sleep, is_asleep
from kinetree.contact.newton.pattern import top
from kinetree.contact.newton.problem import BOUNDS, CONE, Problem
from kinetree.contact.newton.problem import row_velocity as velocities_of_rows

FULL = -2
"""Code of lists that are too small."""

JUMP = -0.5  # of the tangents: see ``contacts.contact_axes``
UNBOUNDED = 1e300
PASSED = 1e-10  # of an end of travel [m or rad], beyond which it needs a row
LEAST = 1e-9  # of a coefficient of friction relative to that of sliding, so that rows are not zero


@record
class Rows:
    """What groups of rows stand for, and what is kept of them until the next step.

    Attributes:
        groups_room, rows_room, entries_room, numbers_room: lengths of the lists of ``Problem``.
        numbers: how many numbers of ``J`` are taken.
        contacts: number of groups that are contacts; they come first.
        fixed: like ``J``, the numbers of variables that move prescribed, which ``J`` leaves out.
        active: of the contacts found: 1 + number of the group, 0 for none.
        order: contacts that are active, island by island;  pile, place: to find that order.
        contact: of groups: number of the contact found, or of the stop, joint or loop row.
        axes: of groups that are contacts: normal and tangents.
        scale: of groups that are contacts: by what each row was multiplied.
        before: of groups: velocity of the first row before the step.
        gap: of groups [m or rad], at the middle of the step, without what ``bending`` adds.
        stops: number of ends of travel;  stop_q, stop_v: their variables, the second -1 - t for
            tendon ``t``;  stop_sign: 1 for a lower bound, -1 for an upper;  stop_at: bounds;
            stop_bounce: restitution.
        dry: number of variables with dry friction;  dry_v: which, or tendons, in the same way;
            dry_level: [N or N·m].
        tendon_first: where the variables of a tendon begin;  tendon_q, tendon_v, tendon_arm:
            variables, ascending, and their coefficients;  tendon_offset: length at zero.
        loops: number of rows of loops and couplings;  loop_first: where the nodes that move a row
            begin in ``loop_node``;  loop_value: numbers of these nodes, row by row;  loop_error:
            [m or rad];  loop_ended: velocities of the rows when the step began;
            loop_rounding: of each of ``loop_value``, up to where it may be a rounding error.
        closed: what these rows are computed from.
        loop_of: of groups of a shift of positions: number of the row of a loop, or -1;
            end: gap [m or rad].
        dim: of groups;  force: impulses per second of their rows, as they are scaled.
        slip: of groups that are contacts: velocities after the step along normal and tangents, or
            in its middle where the contact goes on.
        follows: 1 where the step begins with the state that the last one ended with.
        timed: 1 where a step is taken with times of impact, see ``bounces``;  moment: of trees:
            that time [s], -1 for none;  left: of groups: part of the step after a bounce, 0 for
            none;  rests: of trees: 1 where rows act that do not bounce.
        inside: penetration from which on bodies are inside each other [m], see ``add_contacts``.
        known: contacts of the last step, by shapes and feature, in a table with open addressing:
            ``slot`` is 1 + number in ``key``.
        key: shapes and feature.
        kept: impulses per second of the contact's rows as they are scaled;  ended: velocities of
            the contact when the step had ended, along normal and tangents;  spot: its ``local``;
            claimed: 1 for those that a contact of this step continues.
        match: of the contacts found: 1 + number of that of the last step that it continues, or 0;
            local: place in coordinates of the second body.
        bent: of the contacts that are known: half of the change of velocity in the last step, see
            ``bending``;  turned: of groups: the same in this step and in the last one.
        ball: of shapes: 1 for spheres.
        prior: of groups that are contacts: ``ended`` of the last step;  bend: half of what the
            velocity has changed by since, see ``bending``; of loops what it has since the start.
        slept: of the contacts found: forces with which they sleep, as ``kept``.
        slots: length of ``slot``, more than twice the groups.
    """

    groups_room: int
    rows_room: int
    entries_room: int
    numbers_room: int
    numbers: int
    contacts: int
    fixed: "float[:]"
    active: "int[:]"
    order: "int[:]"
    pile: "int[:]"
    place: "int[:]"
    contact: "int[:]"
    axes: "float[:, 3, 3]"
    scale: "float[:, 6]"
    before: "float[:]"
    gap: "float[:]"
    stops: int
    stop_q: "int[:]"
    stop_v: "int[:]"
    stop_sign: "float[:]"
    stop_at: "float[:]"
    stop_bounce: "float[:]"
    stop_kept: "float[:]"
    dry: int
    dry_v: "int[:]"
    dry_level: "float[:]"
    dry_kept: "float[:]"
    tendon_first: "int[:]"
    tendon_q: "int[:]"
    tendon_v: "int[:]"
    tendon_arm: "float[:]"
    tendon_offset: "float[:]"
    loops: int
    loop_first: "int[:]"
    loop_node: "int[:]"
    loop_value: "float[:]"
    loop_rounding: "float[:]"
    loop_error: "float[:]"
    loop_kept: "float[:]"
    loop_ended: "float[:]"
    loop_of: "int[:]"
    closed: Loops
    end: "float[:]"
    dim: "int[:]"
    force: "float[:, 6]"
    slip: "float[:, 3]"
    follows: int
    timed: int
    moment: "float[:]"
    left: "float[:]"
    rests: "int[:]"
    inside: float
    known: int
    slots: int
    slot: "int[:]"
    key: "int[:, 3]"
    kept: "float[:, 6]"
    slept: "float[:, 6]"
    ended: "float[:, 3]"
    spot: "float[:, 3]"
    bent: "float[:, 3]"
    turned: "float[:, 2, 3]"
    claimed: "int[:]"
    ball: "int[:]"
    match: "int[:]"
    local: "float[:, 3]"
    prior: "float[:, 3]"
    bend: "float[:, 3]"


# --- Contacts ------------------------------------------------------------------------------------


@procedure
def contact_frame(n: "float[3]", axes: "float[3, 3]"):
    """Normal and tangents as rows: ``contacts.contact_axes``."""
    x, y, z = n[0], n[1], n[2]
    s = -1.0 if z < JUMP else 1.0
    a = -1.0 / (s + z)
    b = x * y * a
    axes[0] = n
    axes[1] = vector(1.0 + s * x * x * a, s * b, -s * x)
    axes[2] = vector(b, s + y * y * a, -y)


@procedure
def point_velocity(m: Mechanism, twist: "float[:, 6]", i: int, x: "float[3]", out: "float[3]"):
    """Velocity of the point of body ``i`` that is at ``x``."""
    if i == 0:
        out[:] = 0.0
    else:
        velocity_at(twist[i], x - m.pose[m.root[i], 3::4], out)


@procedure
def relative_velocity(m: Mechanism, f: Found, c: int, twist: "float[:, 6]", w: "float[3]"):
    """Velocity of the second body against the first at contact ``c``."""
    u = local("float", 3)
    point_velocity(m, twist, f.bodies[c, 0], f.point[c], u)
    point_velocity(m, twist, f.bodies[c, 1], f.point[c], w)
    w[:] -= u


@procedure
def normal_velocity(m: Mechanism, f: Found, c: int, twist: "float[:, 6]") -> float:
    """Velocity with which contact ``c`` opens."""
    w = local("float", 3)
    relative_velocity(m, f, c, twist, w)
    return dot(f.normal[c], w)


@procedure
def slips(m: Mechanism, rows: Rows, f: Found, twist: "float[:, 6]"):
    """Velocities of contacts that have rows along normal and tangents, in ``slip``."""
    w = local("float", 3)
    for g in range(rows.contacts):
        relative_velocity(m, f, rows.contact[g], twist, w)
        rows.slip[g] = rows.axes[g] @ w + rows.bend[g]


@procedure
def contact_block(
    m: Mechanism, p: Problem, rows: Rows, a: int, low: int, high: int, sign: float, x: "float[3]",
    root: int, axes: "float[3, 3]", scale: "float[6]", dim: int, at: int, target: "float[:]",
    v: "float[:]",
):  # fmt: skip
    """Columns of variables above ``low`` up to ``high`` of node ``a``, of a block at ``J[at]``.

    Prescribed variables are not unknowns: what they add goes to the target.
    """
    wide = p.node_count[a]
    d = x - m.pose[root, 3::4]
    e = local("float", 3)
    for k in range(low + 1, high + 1):
        S = m.S[k]
        velocity_at(S, d, e)
        j = at + k - p.node_first[a]
        for r in range(dim):
            y = dot(axes[r], e) if r < 3 else dot(axes[r - 3], S[:3])
            y *= sign * scale[r]
            if m.free[k] == 0.0:
                target[r] += y * v[k]
                rows.fixed[j + r * wide] = y
                y = 0.0
            p.J[j + r * wide] = y


@procedure
def scaled_rows(rows: Rows, f: Found, c: int, g: int) -> "(int, float)":
    """Axes and scales of a contact's rows, as those of group ``g``: how many, and the friction."""
    mu = f.friction[c]
    dim = f.dim[c]
    slide = mu[0]
    if slide <= 0.0 and dim > 1:
        slide = max(mu[1], mu[2]) if dim > 3 else 0.0
    if slide <= 0.0:
        dim = 1
    if dim > 3 and mu[1] <= 0.0 and mu[2] <= 0.0:
        dim = 3
    contact_frame(f.normal[c], rows.axes[g])
    scale = rows.scale[g]
    scale[0] = 1.0
    for r in range(1, dim):
        n = 0 if r < 3 else (1 if r == 3 else 2)
        scale[r] = max(mu[n] / slide, LEAST)
    return dim, slide


@procedure
def add_contact(m: Mechanism, p: Problem, rows: Rows, f: Found, c: int, v: "float[:]") -> int:
    """The next group, that of contact ``c``; 0, or ``FULL``."""
    g = p.groups
    row = p.row_first[g]
    entry = p.entry_first[g]
    at = rows.numbers
    if g + 1 >= rows.groups_room or row + 6 >= rows.rows_room:
        return FULL
    dim, slide = scaled_rows(rows, f, c, g)
    axes = rows.axes[g]
    scale = rows.scale[g]
    target = view(p.target, row)
    target[:dim] = 0.0
    if dim > 1:
        target[1] = scale[1] * dot(axes[1], f.drift[c])
        target[2] = scale[2] * dot(axes[2], f.drift[c])
    p.kind[g] = CONE
    p.dim[g] = dim
    p.mu[g] = slide if dim > 1 else 0.0
    p.low[g] = 0.0
    p.high[g] = UNBOUNDED
    i = f.bodies[c, 0]
    j = f.bodies[c, 1]
    a = m.node[i]
    b = m.node[j]
    last_a = m.last[i]
    last_b = m.last[j]
    while a >= 0 or b >= 0:
        if a == b and last_a == last_b:
            break
        node = max(a, b)
        wide = p.node_count[node]
        if entry + 1 >= rows.entries_room or at + dim * wide >= rows.numbers_room:
            return FULL
        p.entry_node[entry] = node
        p.entry_at[entry] = at
        p.J[at : at + dim * wide] = rows.fixed[at : at + dim * wide] = 0.0
        low = min(last_a, last_b) if a == b else p.node_first[node] - 1
        plus = last_b > last_a if a == b else node == b
        high = last_b if plus else last_a
        root = m.root[j] if plus else m.root[i]
        sign = 1.0 if plus else -1.0
        contact_block(
            m, p, rows, node, low, high, sign, f.point[c], root, axes, scale, dim, at, target, v
        )
        entry += 1
        at += dim * wide
        up = p.node_parent[node]
        last_up = -1
        if up >= 0:
            last_up = p.node_first[up] + p.node_count[up] - 1
        if a == node:
            a = up
            last_a = last_up
        if b == node:
            b = up
            last_b = last_up
    rows.contact[g] = c
    rows.gap[g] = f.gap[c]
    rows.active[c] = g + 1
    p.groups = g + 1
    p.row_first[g + 1] = row + dim
    p.entry_first[g + 1] = entry
    rows.numbers = at
    return 0


@procedure
def approaching(
    m: Mechanism, f: Found, c: int, h: float, slack: float, before: "float[:, 6]",
    after: "float[:, 6]",
) -> bool:  # fmt: skip
    """Whether a contact can close within ``h``, by the velocities before and without contact."""
    if f.gap[c] <= slack:
        return True
    w = min(normal_velocity(m, f, c, before), normal_velocity(m, f, c, after))
    return f.gap[c] + h * w < slack


@procedure
def add_contacts(
    m: Mechanism, p: Problem, rows: Rows, f: Found, h: float, slack: float, v: "float[:]",
    before: "float[:, 6]", after: "float[:, 6]", again: bool, z: Sleep,
) -> int:  # fmt: skip
    """Groups of all contacts that can act within the step; 0, or ``FULL``.

    ``again``: of those that had rows, or for which ``missed`` has found that they should have.
    Bodies inside each other have contacts on opposite sides, which press against each other as they
    like. What these want by ``bending`` contradicts, and impulses would grow from step to step: in
    islands with such bodies no contact is known from the last one.
    """
    p.groups = rows.numbers = p.row_first[0] = p.entry_first[0] = 0
    p.changed = max(p.changed, 1 if again else 2)
    for c in range(f.count):
        acts = rows.active[c] != 0 if again else approaching(m, f, c, h, slack, before, after)
        rows.active[c] = -1 if acts and not is_asleep(z, f, c) else 0
    count = by_islands(p, rows, f, z)
    match_contacts(m, rows, f, count)
    rows.place[: p.trees + 1] = 0
    for k in range(count):
        if f.gap[rows.order[k]] < -rows.inside:
            rows.place[pile_of(p, rows, f, rows.order[k], z)] = 1
    for k in range(count):
        c = rows.order[k]
        code = add_contact(m, p, rows, f, c, v)
        if code < 0:
            return code
        n = rows.match[c]
        if rows.place[pile_of(p, rows, f, c, z)] == 1:
            n = 0
        warm_start(p, rows, n, p.groups - 1, h)
        if moment_of(p, rows, p.groups - 1) >= 0.0:
            n = 0
        bending(m, rows, f, c, n, p.groups - 1, h, before)
        rows.before[p.groups - 1] = normal_velocity(m, f, c, before)
    rows.contacts = p.groups
    return 0


@procedure
def by_islands(p: Problem, rows: Rows, f: Found, z: Sleep) -> int:
    """List the contacts that are active, island by island: what is solved together lies together.

    Returns how many.
    """
    up, place = rows.pile, rows.place
    for i in range(p.trees + 1):
        place[i] = 0
        up[i] = i  # the last one is the ground, which joins nothing
    for c in range(f.count):
        a = z.tree[f.bodies[c, 0]]
        b = z.tree[f.bodies[c, 1]]
        if rows.active[c] != 0 and a >= 0 and b >= 0:
            a = top(up, a)
            b = top(up, b)
            up[max(a, b)] = min(a, b)
    for c in range(f.count):
        if rows.active[c] != 0:
            place[pile_of(p, rows, f, c, z)] += 1
    count = 0
    for i in range(p.trees + 1):
        count += place[i]
        place[i] = count - place[i]
    for c in range(f.count):
        if rows.active[c] != 0:
            i = pile_of(p, rows, f, c, z)
            rows.order[place[i]] = c
            place[i] += 1
    return count


@procedure
def pile_of(p: Problem, rows: Rows, f: Found, c: int, z: Sleep) -> int:
    """The tree that stands for the island of a contact."""
    t = max(z.tree[f.bodies[c, 0]], z.tree[f.bodies[c, 1]])
    return top(rows.pile, t) if t >= 0 else p.trees


@procedure
def missed(
    m: Mechanism, f: Found, rows: Rows, h: float, tolerance: float, after: "float[:, 6]", z: Sleep
) -> int:
    """How many contacts without rows have closed farther than ``tolerance`` [m] all the same.

    They get rows the next time: ``active`` becomes -1.
    """
    n = 0
    for c in range(f.count):
        if rows.active[c] != 0 or is_asleep(z, f, c):
            continue
        if f.gap[c] + h * normal_velocity(m, f, c, after) < -tolerance:
            rows.active[c] = -1
            n += 1
    return n


# --- Memory of contacts --------------------------------------------------------------------------


@procedure
def slot_of(rows: Rows, first: int, second: int, feature: int) -> int:
    """Where a contact of the last step is, or may be put, in ``slot``."""
    s = (first * 7919 + second * 104729 + (abs(feature) % 1000003) * 31) % rows.slots
    while rows.slot[s] > 0:
        k = rows.key[rows.slot[s] - 1]
        if k[0] == first and k[1] == second and k[2] == feature:
            break
        s += 1
        if s == rows.slots:
            s = 0
    return s


@procedure
def place_contacts(m: Mechanism, rows: Rows, f: Found):
    """Places of the contacts found in coordinates of their second bodies, in ``local``."""
    for c in range(f.count):
        q = m.pose[f.bodies[c, 1]]
        d = f.point[c] - q[3::4]
        rows.local[c] = d[0] * q[:3] + d[1] * q[4:7] + d[2] * q[8:11]


@procedure
def is_of_pair(rows: Rows, f: Found, c: int, n: int) -> bool:
    """Whether a known contact is one of the same two shapes."""
    if n < 0 or n >= rows.known:
        return False
    return rows.key[n, 0] == f.first[c] and rows.key[n, 1] == f.second[c]


@procedure
def nearest_known(rows: Rows, f: Found, c: int, n: int, free: bool) -> int:
    """The known contact that was nearest, of the same shapes as number ``n``; -1 for none.

    Those of two shapes lie side by side. ``free``: of those that are not claimed.
    """
    while is_of_pair(rows, f, c, n - 1):
        n -= 1
    nearest = -1
    least = 1e300
    while is_of_pair(rows, f, c, n):
        d = rows.local[c] - rows.spot[n]
        way = dot(d, d)
        if way < least and not (free and rows.claimed[n] == 1):
            least = way
            nearest = n
        n += 1
    return nearest


@procedure
def match_contacts(m: Mechanism, rows: Rows, f: Found, count: int):
    """Find the contacts of the last step that the first ``count`` of ``order`` continue.

    By shapes and feature, if that is the nearest. A feature can change its name though nothing
    moves, where two corners are the same up to rounding, and two can exchange theirs: impulses
    would be lost or act elsewhere, and what rests would rattle. What is left takes the nearest of
    the same two shapes that no other has.
    """
    place_contacts(m, rows, f)
    rows.claimed[: rows.known] = 0
    for k in range(count):
        c = rows.order[k]
        n = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])] - 1
        rows.match[c] = 0
        if n >= 0 and nearest_known(rows, f, c, n, False) == n:
            rows.match[c] = n + 1
            rows.claimed[n] = 1
    for k in range(count):
        c = rows.order[k]
        if rows.match[c] > 0:
            continue
        n = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])] - 1
        if n < 0:
            n = 0
            while n < rows.known and not is_of_pair(rows, f, c, n):
                n += 1
        n = nearest_known(rows, f, c, n, True)
        if n >= 0:
            rows.match[c] = n + 1
            rows.claimed[n] = 1


@procedure
def known_again(rows: Rows):
    """Find the contacts that are known in a new ``slot``."""
    for n in range(rows.known):
        k = rows.key[n]
        rows.slot[slot_of(rows, k[0], k[1], k[2])] = n + 1


@procedure
def warm_start(p: Problem, rows: Rows, n: int, g: int, h: float):
    """Impulses of a contact as they were in the last step, as number ``n - 1``, or zero."""
    row = p.row_first[g]
    for r in range(p.dim[g]):
        p.impulse[row + r] = h * rows.kept[n - 1, r] if n > 0 else 0.0


@procedure
def bending(
    m: Mechanism, rows: Rows, f: Found, c: int, n: int, g: int, h: float, before: "float[:, 6]"
):
    """Half of what the velocity of a contact that goes on has changed by since the last step ended.

    Bodies have kept their velocities since then, but have turned, and touch at another point. In
    smooth motion it is the velocity in the middle of the step that is zero: between that before
    it, ``prior + 2 bend``, and that after it. Rows that want ``w + bend = 0`` are of second order,
    and neither Euler's disc nor a rattleback loses energy by them; as long as nothing turns they
    want the same as ever. The velocity has grown by ``bend`` in the half step since then, and the
    gap by ``h bend / 4``, which the second half takes back: ``gap`` is without it.

    Smooth is what changes about as much as in the last step, and spheres always are. Where bodies
    nearly lie flat on each other, corners of the patch between them come and go, and the point
    jumps from one end to the other: that is an impact, after which it rests, or piles would rattle
    for ever.
    """
    goes_on = rows.follows == 1 and n > 0 and rows.kept[n - 1, 0] > 0.0
    w = local("float", 3)
    relative_velocity(m, f, c, before, w)
    x = rows.axes[g] @ w
    rows.prior[g] = rows.ended[n - 1] if goes_on else x
    bend = (x - rows.prior[g]) / 2.0
    rows.turned[g, 0] = bend
    rows.turned[g, 1] = rows.bent[n - 1] if goes_on else bend
    jump = bend - rows.turned[g, 1]
    ball = rows.ball[f.first[c]] + rows.ball[f.second[c]] > 0
    if dot(jump, jump) > dot(bend, bend) / 4.0 and not ball:
        bend[:] = 0.0
    rows.bend[g] = bend
    rows.gap[g] -= h * rows.bend[g, 0] / 4.0


@procedure
def keep_asleep(z: Sleep, rows: Rows, f: Found) -> int:
    """Forces of contacts that sleep, by contact found; 0, or ``FULL``."""
    if z.asleep == 0:
        return 0
    if f.count + rows.stops + rows.dry + rows.loops + 1 >= rows.groups_room:
        return FULL
    for c in range(f.count):
        if is_asleep(z, f, c):
            n = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])]
            rows.slept[c] = 0.0
            if n > 0:
                rows.slept[c] = rows.kept[n - 1]
    return 0


@procedure
def show_asleep(z: Sleep, rows: Rows, f: Found):
    """List contacts that sleep after those that had rows, with their forces."""
    for c in range(f.count):
        if is_asleep(z, f, c) and rows.active[c] == 0:
            g = rows.contacts
            rows.contact[g] = c
            dim, _ = scaled_rows(rows, f, c, g)
            rows.dim[g] = dim
            rows.force[g] = rows.slept[c]
            rows.slip[g] = 0.0
            rows.contacts = g + 1


@procedure
def new_number(rows: Rows, f: Found, c: int) -> int:
    """Number under which a contact becomes known; -1 where it is already."""
    s = slot_of(rows, f.first[c], f.second[c], f.feature[c])
    if rows.slot[s] > 0:
        return -1
    n = rows.known
    rows.slot[s] = rows.known = n + 1
    rows.key[n, 0] = f.first[c]
    rows.key[n, 1] = f.second[c]
    rows.key[n, 2] = f.feature[c]
    return n


@procedure
def remember(p: Problem, rows: Rows, f: Found, h: float, has_ended: bool, z: Sleep):
    """Keep the impulses and velocities of this step for the next one, or for another attempt."""
    rows.slot[: rows.slots] = 0
    rows.known = 0
    for g in range(p.groups):
        row = p.row_first[g]
        k = rows.contact[g]
        rows.dim[g] = p.dim[g]
        rows.force[g, : p.dim[g]] = p.impulse[row : row + p.dim[g]] / h
        if g < rows.contacts:
            n = new_number(rows, f, k)
            if n >= 0:
                for r in range(6):
                    rows.kept[n, r] = p.impulse[row + r] / h if r < p.dim[g] else 0.0
                rows.ended[n] = rows.slip[g] - rows.bend[g] if has_ended else rows.prior[g]
                rows.spot[n] = rows.local[k]
                rows.bent[n] = rows.turned[g, 0 if has_ended else 1]
        elif k < rows.stops:
            rows.stop_kept[k] = p.impulse[row] / h
        elif k < rows.stops + rows.dry:
            rows.dry_kept[k - rows.stops] = p.impulse[row] / h
        else:
            rows.loop_kept[k - rows.stops - rows.dry] = p.impulse[row] / h
    for c in range(f.count if z.asleep > 0 else 0):
        if is_asleep(z, f, c):
            n = new_number(rows, f, c)
            if n >= 0:
                rows.kept[n] = rows.slept[c]
                rows.ended[n] = 0.0
                rows.spot[n] = rows.local[c]
                rows.bent[n] = 0.0


# --- Joints, loops and couplings -----------------------------------------------------------------


@procedure
def add_row(p: Problem, rows: Rows, number: int, low: float, high: float) -> int:
    """The next group, one row without blocks yet; 0, or ``FULL``."""
    g = p.groups
    row = p.row_first[g]
    if g + 1 >= rows.groups_room or row + 1 >= rows.rows_room:
        return FULL
    p.kind[g] = BOUNDS
    p.dim[g] = 1
    p.mu[g] = 0.0
    p.low[g] = low
    p.high[g] = high
    p.target[row] = 0.0
    rows.contact[g] = number
    rows.gap[g] = rows.before[g] = rows.bend[g, 0] = 0.0
    p.groups = g + 1
    p.row_first[g + 1] = row + 1
    p.entry_first[g + 1] = p.entry_first[g]
    return 0


@procedure
def add_block(p: Problem, rows: Rows, node: int) -> int:
    """A block of zeros of the last group, which has one row: where it is, or ``FULL``."""
    g = p.groups - 1
    entry = p.entry_first[g + 1]
    at = rows.numbers
    wide = p.node_count[node]
    if entry + 1 >= rows.entries_room or at + wide >= rows.numbers_room:
        return FULL
    p.entry_node[entry] = node
    p.entry_at[entry] = at
    p.J[at : at + wide] = rows.fixed[at : at + wide] = 0.0
    p.entry_first[g + 1] = entry + 1
    rows.numbers = at + wide
    return at


@procedure
def add_variable(
    p: Problem, rows: Rows, number: int, k: int, sign: float, low: float, high: float, was: float
) -> int:
    """The next group, a row of variable ``k`` or tendon ``-1 - k``, whose impulse ``was`` this.

    0, or ``FULL``.
    """
    at = add_row(p, rows, number, low, high)
    if at < 0:
        return at
    p.impulse[p.row_first[p.groups - 1]] = was
    if k >= 0:
        at = add_block(p, rows, p.dof_node[k])
        if at >= 0:
            p.J[at + k - p.node_first[p.dof_node[k]]] = sign
        return min(at, 0)
    node = -1
    for n in range(rows.tendon_first[-1 - k], rows.tendon_first[-k]):
        i = rows.tendon_v[n]
        if p.dof_node[i] != node:
            node = p.dof_node[i]
            at = add_block(p, rows, node)
            if at < 0:
                return at
        p.J[at + i - p.node_first[node]] = sign * rows.tendon_arm[n]
    return 0


@procedure
def first_variable(rows: Rows, k: int) -> int:
    """Variable ``k``, or the first of tendon ``-1 - k``."""
    return k if k >= 0 else rows.tendon_v[rows.tendon_first[-1 - k]]


@procedure
def speed_of(rows: Rows, k: int, v: "float[:]") -> float:
    """Velocity of variable ``k``, or of tendon ``-1 - k``."""
    if k >= 0:
        return v[k]
    w = 0.0
    for n in range(rows.tendon_first[-1 - k], rows.tendon_first[-k]):
        w += rows.tendon_arm[n] * v[rows.tendon_v[n]]
    return w


@procedure
def gap_of_stop(rows: Rows, s: int, q: "float[:]") -> float:
    """How far a variable or the length of a tendon is from an end of its travel [m or rad]."""
    k = rows.stop_v[s]
    x = 0.0
    if k >= 0:
        x = q[rows.stop_q[s]]
    else:
        x = rows.tendon_offset[-1 - k]
        for n in range(rows.tendon_first[-1 - k], rows.tendon_first[-k]):
            x += rows.tendon_arm[n] * q[rows.tendon_q[n]]
    return rows.stop_sign[s] * (x - rows.stop_at[s])


@procedure
def add_joint_rows(
    p: Problem, rows: Rows, q: "float[:]", v: "float[:]", free: "float[:]", h: float,
    everything: bool, z: Sleep,
) -> int:  # fmt: skip
    """Ends of travel that can be reached within the step, and dry friction; 0, or ``FULL``."""
    for s in range(rows.stops):
        k = rows.stop_v[s]
        if z.sleeps[z.tree_of_v[first_variable(rows, k)]] == 1:
            continue
        sign = rows.stop_sign[s]
        gap = gap_of_stop(rows, s, q)
        speed = speed_of(rows, k, v)
        reach = h * (abs(speed) + abs(speed_of(rows, k, free) - speed))
        if everything or gap < 2.0 * reach + 1e-9:
            code = add_variable(p, rows, s, k, sign, 0.0, UNBOUNDED, h * rows.stop_kept[s])
            if code < 0:
                return code
            rows.gap[p.groups - 1] = gap
            rows.before[p.groups - 1] = sign * speed
        else:
            rows.stop_kept[s] = 0.0
    for s in range(rows.dry):
        k = rows.dry_v[s]
        if z.sleeps[z.tree_of_v[first_variable(rows, k)]] == 1:
            continue
        most = h * rows.dry_level[s]
        code = add_variable(p, rows, rows.stops + s, k, 1.0, -most, most, h * rows.dry_kept[s])
        if code < 0:
            return code
    return 0


@procedure
def is_rounding(rows: Rows, s: int) -> bool:
    """Whether no number of a row of a loop is more than a rounding error."""
    for i in range(rows.closed.at[s], rows.closed.at[s + 1]):
        if abs(rows.loop_value[i]) > rows.loop_rounding[i]:
            return False
    return True


@procedure
def add_loops(
    m: Mechanism, p: Problem, rows: Rows, v_m: "float[:]", v: "float[:]", h: float, z: Sleep
) -> int:
    """Rows of loops and couplings; 0, or ``FULL``.

    Their velocities change by ``bend`` in half a step at ``v_m``, and by as much again until its
    end, where they are to be zero. By then errors have what the first half adds to them no more.
    Rows out of the plane of a planar loop are rounding errors: there is none for them.
    """
    for s in range(rows.loops):
        first = rows.loop_first[s]
        if is_rounding(rows, s):
            rows.loop_kept[s] = 0.0
            continue
        if first < rows.loop_first[s + 1] and z.sleeps[p.node_tree[rows.loop_node[first]]] == 1:
            continue
        code = add_row(p, rows, rows.stops + rows.dry + s, -UNBOUNDED, UNBOUNDED)
        if code < 0:
            return code
        g = p.groups - 1
        value = view(rows.loop_value, rows.closed.at[s])
        row = p.row_first[g]
        i = 0
        bend = -rows.loop_ended[s]
        for n in range(rows.loop_first[s], rows.loop_first[s + 1]):
            node = rows.loop_node[n]
            at = add_block(p, rows, node)
            if at < 0:
                return at
            for j in range(p.node_count[node]):
                k = p.node_first[node] + j
                bend += value[i] * v_m[k]
                if m.free[k] == 0.0:
                    p.target[row] += value[i] * v[k]
                    rows.fixed[at + j] = value[i]
                else:
                    p.J[at + j] = value[i]
                i += 1
        rows.bend[g, 0] = bend if moment_of(p, rows, g) < 0.0 else 0.0
        rows.gap[g] = rows.loop_error[s] - h * rows.bend[g, 0] / 4.0
        p.impulse[row] = h * rows.loop_kept[s]
    return 0


# --- What rows want ------------------------------------------------------------------------------


@procedure
def restitution_of(rows: Rows, f: Found, g: int) -> float:
    """Coefficient of restitution of a group."""
    k = rows.contact[g]
    if g < rows.contacts:
        return f.restitution[k]
    return rows.stop_bounce[k] if k < rows.stops else 0.0


@procedure
def moment_of(p: Problem, rows: Rows, g: int) -> float:
    """Time of impact at which a group is looked at, -1 for the middle of the step."""
    if rows.timed == 0 or p.entry_first[g] == p.entry_first[g + 1]:
        return -1.0
    return rows.moment[p.node_tree[p.entry_node[p.entry_first[g]]]]


@procedure
def arrival(gap: float, w: float, c: float, tau: float, h: float) -> float:
    """Time in the step at which a gap closes that is open by ``gap`` at ``tau``; 2h for never.

    ``w`` is its velocity at the start, ``c`` the change of that within the step.
    """
    start = gap - tau * w - c * tau * tau / (2.0 * h)
    if start <= 0.0:
        return 0.0
    root = w * w - 2.0 * start * c / h
    if root < 0.0 or (w >= 0.0 and c >= 0.0):
        return 2.0 * h
    t = 2.0 * start / (sqrt(root) - w)
    return t if t <= h else 2.0 * h


@procedure
def bounce(
    p: Problem, rows: Rows, g: int, e: float, gap: float, tau: float, h: float, change: "float[:]"
) -> float:
    """What is added to the normal velocity of a group that arrives fast, see ``bounces``.

    Before it has arrived it must not be inside at the end of the step, and no more. Friction that
    holds it holds it when it arrives.
    """
    w = local("float", 6)
    velocities_of_rows(p, g, change, w)
    c = row_velocity(p, rows, g, change)
    if moment_of(p, rows, g) < 0.0:  # bodies have come there without the change
        gap += c * tau * tau / (2.0 * h)
    t = arrival(gap, rows.before[g], c, tau, h)
    if t > h:
        return gap / max(h - tau, 1e-3 * h)
    rows.left[g] = (h - t) / h
    for r in range(1, p.dim[g]):
        p.target[p.row_first[g] + r] -= rows.left[g] * w[r]
    return e * (rows.before[g] + c * t / h) - rows.left[g] * c


@procedure
def targets(
    p: Problem, rows: Rows, f: Found, h: float, alpha: float, rest: float, deep: float,
    change: "float[:]",
):  # fmt: skip
    """What is added to the rows of every group before the first must not be negative.

    A gap that is open at the middle of the step closes by the middle of the next one at most:
    ``w_n + gap / h ≥ 0``. One that arrives faster than ``rest`` bounces: ``w_n ≥ -e w_n⁻``,
    Newton's law in the form of Moreau, as soon as it arrives. Penetration up to ``deep`` is
    rounding error, which velocities take out. Contacts that go on want to be at rest in the middle
    of the step, see ``bending``.
    """
    for g in range(p.groups):
        row = p.row_first[g]
        k = rows.contact[g]
        gap = rows.gap[g]
        rows.left[g] = 0.0
        if g < rows.contacts or k < rows.stops:
            e = restitution_of(rows, f, g)
            tau = moment_of(p, rows, g)
            add = max(gap, -deep) / (h if tau < 0.0 else 1.5 * h - tau)
            if g < rows.contacts:
                add += rows.bend[g, 0]
                for r in range(1, min(p.dim[g], 3)):
                    p.target[row + r] += rows.scale[g, r] * rows.bend[g, r]
            if e > 0.0 and rows.before[g] < -rest:
                add = bounce(p, rows, g, e, gap, alpha * h if tau < 0.0 else tau, h, change)
            p.target[row] += add
        elif k >= rows.stops + rows.dry:
            p.target[row] += min(max(gap, -deep), deep) / h + rows.bend[g, 0]


@procedure
def loop_velocities(p: Problem, rows: Rows, v: "float[:]"):
    """Velocities of the rows of loops, in ``loop_ended``."""
    for s in range(rows.loops):
        rows.loop_ended[s] = 0.0
        i = rows.closed.at[s]
        for n in range(rows.loop_first[s], rows.loop_first[s + 1]):
            a = rows.loop_node[n]
            for j in range(p.node_count[a]):
                rows.loop_ended[s] += rows.loop_value[i] * v[p.node_first[a] + j]
                i += 1


@procedure
def copy_traced(m: Mechanism, p: Problem, rows: Rows):
    """Copy the rows of traced code, and their errors, to those of the step."""
    c = rows.closed
    for t in range(c.traced):
        s = c.traced_row[t]
        rows.loop_error[s] = c.open[t]
        i = c.at[s]
        for n in range(rows.loop_first[s], rows.loop_first[s + 1]):
            a = rows.loop_node[n]
            for j in range(p.node_count[a]):
                rows.loop_value[i] = c.dense[t * m.nv + p.node_first[a] + j]
                i += 1


@procedure
def row_velocity(p: Problem, rows: Rows, g: int, v: "float[:]") -> float:
    """``J v`` of the first row of a group, with prescribed variables."""
    w = 0.0
    for n in range(p.entry_first[g], p.entry_first[g + 1]):
        a = p.entry_node[n]
        at = p.entry_at[n]
        for j in range(p.node_count[a]):
            w += (p.J[at + j] + rows.fixed[at + j]) * v[p.node_first[a] + j]
    return w


@procedure
def gap_at_end(p: Problem, rows: Rows, g: int, beta: float, v: "float[:]") -> float:
    """Gap of a contact or stop after the last ``beta`` seconds of the step at velocities ``v``."""
    w = row_velocity(p, rows, g, v)
    if g < rows.contacts:
        w += rows.bend[g, 0]
    return rows.gap[g] + beta * w


@procedure
def beyond_stops(rows: Rows, q: "float[:]") -> float:
    """How far joints are beyond the ends of their travel, at most [m or rad]."""
    most = 0.0
    for s in range(rows.stops):
        most = max(most, -gap_of_stop(rows, s, q))
    return most


@procedure
def misses_stop(p: Problem, rows: Rows, q: "float[:]", v: "float[:]", h: float) -> bool:
    """Whether a joint passes an end of its travel that has no row, at velocities ``v``."""
    for s in range(rows.stops):
        speed = rows.stop_sign[s] * speed_of(rows, rows.stop_v[s], v)
        if gap_of_stop(rows, s, q) + h * speed < -PASSED:
            has_row = False
            for g in range(rows.contacts, p.groups):
                has_row = has_row or rows.contact[g] == s
            if not has_row:
                return True
    return False
