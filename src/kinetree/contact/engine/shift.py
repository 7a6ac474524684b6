"""Shift of positions at the end of a step: out of penetration, and of errors of loops.

Another problem with the matrices of the step, without friction, no faster than the correction
speed: velocities in the world stay.
"""

from kinetree.codegen.procedures import procedure
from kinetree.codegen.tied import run
from kinetree.contact.engine.direct import solve_directly
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.joint_rows import copy_traced, loop_velocities
from kinetree.contact.engine.loops import place_loops
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.parts import WORK_FULL, Kernels, StepState
from kinetree.contact.engine.row_tables import UNBOUNDED, Rows
from kinetree.contact.engine.sharing import solve_islands
from kinetree.contact.engine.targets import gap_at_end, row_velocity
from kinetree.contact.newton.problem import BOUNDS, Problem, Work
from kinetree.contact.settings import GROWN, SAME

SHIFTS = 4
"""Of positions in a step, at most: more than one where loops are curved."""

SHIFTED, SHIFTED_ALONE = 1e-3, 0.03
"""Error of a shift of positions, relative to what holds it: the next step takes out the rest. The
same where all bodies are alone: sweeps then nearly always reach the thirtieth of it at which what
moves ends."""


@procedure
def close_in_middle(m: Mechanism, p: Problem, rows: Rows, k: Kernels):
    """Update Jacobian rows and errors of loops and couplings at mid-step positions."""
    if rows.closed.traced > 0:
        run(k.loops)
        copy_traced(m, p, rows)
    place_loops(rows.closed, rows.closed.pose, rows.closed.S, rows.loop_value, rows.loop_error)


@procedure
def close_at_end(m: Mechanism, p: Problem, rows: Rows, k: Kernels):
    """Update Jacobian rows and errors of loops and couplings at end-of-step positions."""
    if rows.closed.traced > 0:
        run(k.loops_end)
        copy_traced(m, p, rows)
    if rows.closed.count > 0:
        run(k.terms_after)
    place_loops(rows.closed, rows.closed.pose_e, rows.closed.S_e, rows.loop_value, rows.loop_error)


@procedure
def look_at_start(s: StepState, m: Mechanism, p: Problem, rows: Rows, k: Kernels):
    """Set velocities of loop rows at the start of a step without a predecessor."""
    s.q_e[: m.nq] = s.q[: m.nq]
    close_at_end(m, p, rows, k)
    loop_velocities(p, rows, s.v)


@procedure
def deepest(
    s: StepState, m: Mechanism, p: Problem, work: Work, rows: Rows, b: Balance, beta: float
) -> bool:
    """Set largest penetration and loop error at the step's end; whether any is too large.

    ``b.island`` are the islands of the trees, and ``b.deep`` those in which some is.
    """
    any_deep = False
    for t in range(p.trees):
        b.island[t] = work.tree_island[t] if p.groups > 0 else -1
        b.deep[t] = 0
    for g in range(p.groups):
        k = rows.contact[g]
        end = gap_at_end(p, rows, g, beta, s.x)
        if g < rows.contacts or k < rows.stops:
            s.residuals[3] = max(s.residuals[3], -end)
        elif k >= rows.stops + rows.dry:
            end = -abs(rows.loop_error[k - rows.stops - rows.dry])
            s.residuals[4] = max(s.residuals[4], -end)
        else:
            end = 0.0
        # Where there was less, less is left, so that it does not grow from step to step.
        limit = min(s.closed, max(-rows.gap[g], GROWN) + SAME) if g < rows.contacts else s.closed
        if end < -limit and p.entry_first[g + 1] > p.entry_first[g]:
            b.deep[b.island[p.node_tree[p.entry_node[p.entry_first[g]]]]] = 1
            any_deep = True
    return any_deep


@procedure
def shifts_wanted(
    m: Mechanism,
    p: Problem,
    rows: Rows,
    b: Balance,
    h: float,
    beta: float,
    most: float,
    moved: "float[:]",
) -> float:
    """Rewrite the problem as a position correction of islands with penetration.

    Velocities are shifts per ``h``; ``moved`` are the velocities of the last ``beta`` seconds of
    the step, after which gaps are ``gap + beta w``. Of contacts the first row is left, and no row
    asks for more than its variables could do together, each at the larger of ``most`` and
    ``b.fastest`` in its own unit. Returns the penetration that is left as it is.
    """
    n = 0
    rest = 0.0
    entry = 0
    for g in range(p.groups):
        first = p.entry_first[g]
        last = p.entry_first[g + 1]
        k = rows.contact[g]
        is_dry = g >= rows.contacts and k >= rows.stops and k < rows.stops + rows.dry
        bilateral = g >= rows.contacts and k >= rows.stops
        end = gap_at_end(p, rows, g, beta, moved)
        if first == last or is_dry or b.deep[b.island[p.node_tree[p.entry_node[first]]]] == 0:
            if not bilateral:
                rest = max(rest, -end)
            continue
        rows.end[n] = end
        rows.loop_of[n] = -1
        if bilateral:
            rows.loop_of[n] = k - rows.stops - rows.dry
            end = rows.loop_error[rows.loop_of[n]]
        bound = 0.0
        for j in range(first, last):
            a = p.entry_node[j]
            fastest = h * max(b.fastest[p.node_tree[a]], most)
            for i in range(p.node_count[a]):
                bound += fastest * m.units[p.node_first[a] + i] * abs(p.J[p.entry_at[j] + i])
        p.kind[n] = BOUNDS
        p.dim[n] = 1
        p.row_first[n] = n
        p.impulse[n] = 0.0
        p.low[n] = -UNBOUNDED if bilateral else 0.0
        p.high[n] = UNBOUNDED
        p.target[n] = (min(max(end, -bound), bound) if bilateral else max(end, -bound)) / h
        p.entry_first[n] = entry
        for j in range(first, last):
            p.entry_node[entry] = p.entry_node[j]
            p.entry_at[entry] = p.entry_at[j]
            entry += 1
        n += 1
        p.entry_first[n] = entry
    p.row_first[n] = n
    p.groups = n
    p.changed = max(p.changed, 1)
    p.same = p.lasting = 0
    return rest


@procedure
def shift_positions(
    s: StepState,
    m: Mechanism,
    p: Problem,
    work: Work,
    rows: Rows,
    b: Balance,
    k: Kernels,
    beta: float,
) -> int:
    """Solve for and apply the position correction at the step's end; 0, or a code.

    ``x`` are velocities with which positions come from the middle to the end. Errors of loops are
    looked at again after each of a few shifts. The problem is that of the shift afterwards.
    """
    b.fastest[: p.trees] = 0.0
    for i in range(m.nv):  # what moves faster anyway may be shifted as fast: small bodies that spin
        t = p.node_tree[p.dof_node[i]]
        b.fastest[t] = max(b.fastest[t], abs(s.v_m[i]) / m.units[i])
    rest = shifts_wanted(m, p, rows, b, s.h, beta, s.correction, s.x)
    p.again = 0
    p.coarse = 0.0
    left = s.correction
    for _ in range(SHIFTS):
        p.free[: m.nv] = p.velocity[: m.nv] = 0.0
        tolerance = p.tolerance
        p.tolerance = max(SHIFTED_ALONE if m.all_alone == 1 else SHIFTED, tolerance)
        code = 0
        if not solve_directly(s.direct, p, s.factors, work):
            code = solve_islands(s.sharing, p, work)
        p.tolerance = tolerance
        if code < 0:
            return WORK_FULL
        way = 0.0
        for i in range(m.nv):
            t = p.node_tree[p.dof_node[i]]
            allowed = max(b.fastest[t], s.correction) / s.correction
            way = max(way, abs(p.velocity[i]) / (m.units[i] * allowed))
        part = 1.0 if way <= left else left / way
        left -= part * way
        s.x[: m.nv] += part * p.velocity[: m.nv] * s.h / beta
        run(k.to_shifted)
        s.residuals[3] = rest
        for g in range(p.groups):
            if rows.loop_of[g] < 0:
                rows.end[g] += part * s.h * row_velocity(p, rows, g, p.velocity)
                s.residuals[3] = max(s.residuals[3], -rows.end[g])
        if rows.loops == 0 or left <= 0.0:
            break
        close_at_end(m, p, rows, k)
        s.residuals[4] = loops_open(rows)
        if s.residuals[4] <= s.closed:
            break
        for g in range(p.groups):
            n = rows.loop_of[g]
            if n >= 0:
                p.target[g] = rows.loop_error[n] / s.h
            else:
                p.target[g] += row_velocity(p, rows, g, p.velocity)
            p.impulse[g] = 0.0
    return 0


@procedure
def loops_open(rows: Rows) -> float:
    """Largest position error of a loop or coupling [m or rad]."""
    worst = 0.0
    for n in range(rows.loops):
        worst = max(worst, abs(rows.loop_error[n]))
    return worst
