"""Rows of contacts.

Contacts have 1, 3, 4 or 6 rows: along the normal, along two tangents, about the normal, about the
tangents; rows of friction are scaled so that all limits are alike. Only groups that can act in the
step are written; ``missed`` finds those for which that turned out to be wrong.
"""

from kinetree.codegen.procedures import dot, local, procedure, view
from kinetree.contact.collision.sweep import velocity_at
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.contact_frames import normal_velocity, scaled_rows
from kinetree.contact.engine.known_contacts import bending, match_contacts, warm_start
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import FULL, UNBOUNDED, Rows, moment_of
from kinetree.contact.engine.sleep import Sleep, is_asleep
from kinetree.contact.newton.pattern import top
from kinetree.contact.newton.problem import CONE, Problem


@procedure
def contact_block(
    m: Mechanism,
    p: Problem,
    rows: Rows,
    a: int,
    low: int,
    high: int,
    sign: float,
    x: "float[3]",
    root: int,
    axes: "float[3, 3]",
    scale: "float[6]",
    dim: int,
    at: int,
    target: "float[:]",
    v: "float[:]",
):
    """Write one node's Jacobian columns of a contact; prescribed variables go to the target.

    Prescribed variables are not unknowns: what they add goes to the target.
    """
    wide = p.node_count[a]
    d = x - m.pose[root, 3::4]
    e = local("float", 3)
    if dim == 3 and m.prescribed == 0:  # as most are
        s0 = sign * scale[0]
        s1 = sign * scale[1]
        s2 = sign * scale[2]
        for k in range(low + 1, high + 1):
            velocity_at(m.S[k], d, e)
            j = at + k - p.node_first[a]
            p.J[j] = dot(axes[0], e) * s0
            p.J[j + wide] = dot(axes[1], e) * s1
            p.J[j + 2 * wide] = dot(axes[2], e) * s2
        return
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


@procedure(inline=True)
def begin_group(p: Problem, rows: Rows, f: Found, c: int) -> int:
    """Start a constraint group for contact ``c`` with its axes; returns the number of rows."""
    g = p.groups
    dim, slide = scaled_rows(rows, f, c, g)
    axes = rows.axes[g]
    scale = rows.scale[g]
    target = view(p.target, p.row_first[g])
    target[:dim] = 0.0
    if dim > 1:
        target[1] = scale[1] * dot(axes[1], f.drift[c])
        target[2] = scale[2] * dot(axes[2], f.drift[c])
    p.kind[g] = CONE
    p.dim[g] = dim
    p.mu[g] = slide if dim > 1 else 0.0
    p.low[g] = 0.0
    p.high[g] = UNBOUNDED
    return dim


@procedure
def add_contact(m: Mechanism, p: Problem, rows: Rows, f: Found, c: int, v: "float[:]") -> int:
    """Append the constraint group of contact ``c`` with its Jacobian; 0, or ``FULL``."""
    g = p.groups
    row = p.row_first[g]
    entry = p.entry_first[g]
    at = rows.numbers
    if g + 1 >= rows.groups_room or row + 6 >= rows.rows_room:
        return FULL
    dim = begin_group(p, rows, f, c)
    axes = rows.axes[g]
    scale = rows.scale[g]
    target = view(p.target, row)
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
        if m.prescribed == 1:
            rows.fixed[at : at + dim * wide] = 0.0
        low = min(last_a, last_b) if a == b else p.node_first[node] - 1
        plus = last_b > last_a if a == b else node == b
        high = last_b if plus else last_a
        if high - low < wide or m.prescribed == 1:
            p.J[at : at + dim * wide] = 0.0
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
    rows.contact[g] = p.label[g] = c
    rows.gap[g] = f.gap[c]
    rows.active[c] = g + 1
    p.groups = g + 1
    p.row_first[g + 1] = row + dim
    p.entry_first[g + 1] = entry
    rows.numbers = at
    return 0


@procedure
def approaching(
    m: Mechanism,
    f: Found,
    c: int,
    h: float,
    slack: float,
    before: "float[:, 6]",
    after: "float[:, 6]",
) -> bool:
    """Whether contact ``c`` is closed or can close within ``h`` seconds."""
    if f.gap[c] <= slack:
        return True
    w = min(normal_velocity(m, f, c, before), normal_velocity(m, f, c, after))
    return f.gap[c] + h * w < slack


@procedure
def add_contacts(
    m: Mechanism,
    p: Problem,
    rows: Rows,
    f: Found,
    h: float,
    slack: float,
    v: "float[:]",
    before: "float[:, 6]",
    after: "float[:, 6]",
    again: bool,
    z: Sleep,
) -> int:
    """Build constraint groups of all contacts that can act in the step; 0, or ``FULL``.

    ``again``: of those that had rows, or for which ``missed`` has found that they should have.
    Bodies inside each other have contacts on opposite sides, which press against each other as they
    like. What these want by ``bending`` contradicts, and impulses would grow from step to step: in
    islands with such bodies no contact is known from the last one.
    """
    p.groups = rows.numbers = p.row_first[0] = p.entry_first[0] = 0
    p.changed = max(p.changed, 1 if again else 2)
    p.same = p.lasting = 0
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
        continue_contact(m, p, rows, f, c, n, h, before)
    rows.contacts = p.groups
    return 0


@procedure
def continue_contact(
    m: Mechanism, p: Problem, rows: Rows, f: Found, c: int, n: int, h: float, before: "float[:, 6]"
):
    """Warm-start the last group from known contact ``n - 1``, if there is one."""
    g = p.groups - 1
    warm_start(p, rows, n, g, h)
    if moment_of(p, rows, g) >= 0.0:
        n = 0
    bending(m, rows, f, c, n, g, h, before)
    rows.before[g] = normal_velocity(m, f, c, before)


@procedure
def by_islands(p: Problem, rows: Rows, f: Found, z: Sleep) -> int:
    """List the active contacts island by island in ``rows.order``; returns their number."""
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
    """Root tree of the island of contact ``c``; the number of trees if nothing in it moves."""
    t = max(z.tree[f.bodies[c, 0]], z.tree[f.bodies[c, 1]])
    return top(rows.pile, t) if t >= 0 else p.trees


@procedure
def count_missed(
    m: Mechanism, f: Found, rows: Rows, h: float, tolerance: float, after: "float[:, 6]", z: Sleep
) -> int:
    """Mark contacts without rows that penetrate by ``tolerance`` [m]; returns their number.

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
