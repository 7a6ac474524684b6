"""Rows of joints: ends of travel, dry friction, tendons, loops and couplings."""

from kinetree.codegen.procedures import procedure, view
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import FULL, UNBOUNDED, Rows, moment_of
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.newton.problem import BOUNDS, Problem

PASSED = 1e-10  # of an end of travel [m or rad], beyond which it needs a row


@procedure
def add_row(p: Problem, rows: Rows, number: int, low: float, high: float) -> int:
    """Append a one-row group with impulse bounds, without Jacobian yet; 0, or ``FULL``."""
    g = p.groups
    row = p.row_first[g]
    if g + 1 >= rows.groups_room or row + 1 >= rows.rows_room:
        return FULL
    p.kind[g] = BOUNDS
    p.dim[g] = 1
    p.label[g] = -1 - number
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
    """Append a zero Jacobian block to the last one-row group; its offset, or ``FULL``."""
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
    """Append the one-row group of variable ``k``, or tendon ``-1 - k``; 0, or ``FULL``.

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
    """Velocity variable ``k``, or for negative ``k`` the first one of tendon ``-1 - k``."""
    return k if k >= 0 else rows.tendon_v[rows.tendon_first[-1 - k]]


@procedure
def speed_of(rows: Rows, k: int, v: "float[:]") -> float:
    """Velocity of variable ``k``, or rate of length of tendon ``-1 - k``."""
    if k >= 0:
        return v[k]
    w = 0.0
    for n in range(rows.tendon_first[-1 - k], rows.tendon_first[-k]):
        w += rows.tendon_arm[n] * v[rows.tendon_v[n]]
    return w


@procedure
def gap_of_stop(rows: Rows, s: int, q: "float[:]") -> float:
    """Distance of a joint variable or tendon length from its stop [m or rad]."""
    k = rows.stop_v[s]
    x = 0.0
    if k >= 0:
        x = q[rows.stop_q[s]]
    else:
        x = rows.tendon_offset[-1 - k]
        for n in range(rows.tendon_first[-1 - k], rows.tendon_first[-k]):
            if rows.tendon_q[n] >= 0:
                x += rows.tendon_arm[n] * q[rows.tendon_q[n]]
    return rows.stop_sign[s] * (x - rows.stop_at[s])


@procedure
def place_moving(rows: Rows, nv: int, q: "float[:]"):
    """Update moment arms and lengths of tendons whose arms change, linearised at ``q``."""
    for t in range(rows.moving):
        k = rows.moving_of[t]
        x = rows.moving_place[t]
        for n in range(rows.tendon_first[k], rows.tendon_first[k + 1]):
            rows.tendon_arm[n] = rows.moving_arm[t * nv + rows.tendon_v[n]]
            if rows.tendon_q[n] >= 0:
                x -= rows.tendon_arm[n] * q[rows.tendon_q[n]]
        rows.tendon_offset[k] = x


@procedure
def add_joint_rows(
    p: Problem,
    rows: Rows,
    q: "float[:]",
    v: "float[:]",
    free: "float[:]",
    h: float,
    everything: bool,
    z: Sleep,
) -> int:
    """Append rows of reachable joint stops and of dry friction; 0, or ``FULL``.

    Where arms of tendons turn, what the rate of a length changes by from step to step is twice
    ``bend``: see ``add_loops``.
    """
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
            g = p.groups - 1
            rows.before[g] = sign * speed
            if k < 0 and rows.follows == 1 and rows.stop_kept[s] > 0.0:
                rows.bend[g, 0] = (sign * speed - rows.stop_was[s]) / 2.0
            rows.gap[g] = gap - h * rows.bend[g, 0] / 4.0
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
def keep_speeds(rows: Rows, after: "float[:]"):
    """Store tendon stop velocities at the end of the step, for the next step's rows."""
    for s in range(rows.stops):
        if rows.stop_v[s] < 0:
            rows.stop_was[s] = rows.stop_sign[s] * speed_of(rows, rows.stop_v[s], after)


@procedure
def is_rounding(rows: Rows, s: int) -> bool:
    """Whether all Jacobian entries of loop row ``s`` are rounding errors."""
    for i in range(rows.closed.at[s], rows.closed.at[s + 1]):
        if abs(rows.loop_value[i]) > rows.loop_rounding[i]:
            return False
    return True


@procedure
def add_loops(
    m: Mechanism, p: Problem, rows: Rows, v_m: "float[:]", v: "float[:]", h: float, z: Sleep
) -> int:
    """Append the rows of loops and couplings; 0, or ``FULL``.

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


@procedure
def loop_velocities(p: Problem, rows: Rows, v: "float[:]"):
    """Write the velocities of all loop rows to ``loop_ended``."""
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
    """Copy Jacobian rows and errors of traced loops to the step's loop rows."""
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
def beyond_stops(rows: Rows, q: "float[:]") -> float:
    """Largest violation of joint stops at ``q`` [m or rad], at least 0."""
    most = 0.0
    for s in range(rows.stops):
        most = max(most, -gap_of_stop(rows, s, q))
    return most


@procedure
def misses_stop(p: Problem, rows: Rows, q: "float[:]", v: "float[:]", h: float) -> bool:
    """Whether a joint stop without a row would be passed at velocities ``v``."""
    for s in range(rows.stops):
        speed = rows.stop_sign[s] * speed_of(rows, rows.stop_v[s], v)
        if gap_of_stop(rows, s, q) + h * speed < -PASSED:
            has_row = False
            for g in range(rows.contacts, p.groups):
                has_row = has_row or rows.contact[g] == s
            if not has_row:
                return True
    return False
