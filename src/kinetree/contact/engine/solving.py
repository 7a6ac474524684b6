"""Solving a step: rows, velocities and impulses, until laws and geometry agree.

A first solution may find rows that it did not have: contacts that close all the same, stops that
are reached, features that have arrived where the step ends. Each of them joins, and the step is
solved again. Velocity products follow the mean velocity as they are found.
"""

from kinetree.codegen.procedures import procedure
from kinetree.codegen.tied import run
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.arrivals import (
    ARRIVALS,
    add_arrivals,
    overlap_after,
)
from kinetree.contact.engine.bounces import (
    PASSES_OF_BOUNCES,
    products_in_parts,
)
from kinetree.contact.engine.contact_rows import (
    add_contact,
    add_contacts,
    approaching,
    continue_contact,
    count_missed,
)
from kinetree.contact.engine.direct import solve_directly
from kinetree.contact.engine.joint_rows import add_joint_rows, add_loops, misses_stop
from kinetree.contact.engine.known_contacts import place_contacts, remember
from kinetree.contact.engine.mechanism import (
    Mechanism,
    body_velocities,
    divide,
)
from kinetree.contact.engine.parts import (
    FOUND_FULL,
    WOKEN,
    WORK_FULL,
    Parts,
    StepState,
)
from kinetree.contact.engine.products import have_bias
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.sharing import solve_islands
from kinetree.contact.engine.sleep import Sleep, is_asleep, is_mixed, wake
from kinetree.contact.engine.springs import cross, force_across
from kinetree.contact.engine.targets import targets
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.settings import PASSES, PASSES_ACROSS, SETTLED_ACROSS

STICKS = 1024.0
"""Times the friction: what sticks whatever happens; a power of two, which rounds nothing."""

COARSE = 100.0
"""Error of the first pass where bodies move, in units of the tolerance."""

NO_SOLUTION = 1e-3
"""Relative error above which a step is taken to have no solution near the last one."""

ATTEMPTS = 3
"""Passes up to which islands that are not solved, but nearly, are taken up again."""

FEW = 200
"""Groups up to which every step that is not solved starts once more; more take too long."""

CONTRADICTS = 3e-5
"""Error of velocities [m/s] from which on contacts want to be at rest at the end of a step, not in
its middle."""

ROUNDS_OF_BENDING = 3
"""Rounds of an island as long as contacts want to be at rest in the middle of a step."""

TRIES = 4
"""How often rows that turn out to act are added within a step."""


@procedure
def rows_of_step(
    s: StepState,
    m: Mechanism,
    p: Problem,
    rows: Rows,
    f: Found,
    slack: float,
    again: bool,
    z: Sleep,
) -> int:
    """Build all constraint groups of the step with their targets; 0, or ``FULL``."""
    p.begins = 0 if again else 1
    code = add_contacts(m, p, rows, f, s.h, slack, s.given_v, s.before, s.unheld, again, z)
    if code < 0:
        return code
    code = add_joint_rows(p, rows, s.q_m, s.v_m, s.free, s.h, again, z)
    if code < 0:
        return code
    code = add_loops(m, p, rows, s.v_m, s.given_v, s.h, z)
    if code < 0:
        return code
    targets(s, p, rows, f, 0)
    return 0


@procedure
def solve_problem(s: StepState, m: Mechanism, p: Problem, work: Work, coarse: bool) -> int:
    """Solve the contact problem from the free velocities; 0, or ``WORK_FULL``."""
    for k in range(m.nv):
        p.start[k] = s.after[k] + (s.free[k] - p.free[k])  # once more, with other forces or rows
        p.free[k] = s.free[k]
        p.velocity[k] = s.v_m[k] if m.free[k] == 1.0 else s.free[k]
    p.again = s.passes
    p.coarse = COARSE * p.tolerance if coarse else 0.0
    if p.groups == 0:
        p.velocity[: m.nv] = s.free[: m.nv]
        p.status = 0
        p.error = p.velocity_error = p.cone_error = p.complementarity = 0.0
    elif not solve_directly(s.direct, p, s.factors, work):
        if solve_islands(s.sharing, p, work) < 0:
            return WORK_FULL
        p.same = 1
        p.lasting = p.groups
        s.newton += p.newton
        s.factored += p.factored
    s.unsolved = p.status
    s.after[: m.nv] = p.velocity[: m.nv]
    s.mean[: m.nv] = (s.v_m[: m.nv] + p.velocity[: m.nv]) / 2.0
    return 0


@procedure
def solved_from_sticking(s: StepState, m: Mechanism, p: Problem, work: Work) -> int:
    """Solve again, starting as if friction stuck all contacts; 0, or ``WORK_FULL``.

    Where more than one solution exists, or none with finite forces (Painlevé), that is the one.
    """
    p.mu[: p.groups] *= STICKS
    p.impulse[: p.row_first[p.groups]] = 0.0
    passes = s.passes
    s.passes = 0
    code = solve_problem(s, m, p, work, False)
    p.mu[: p.groups] /= STICKS
    code = code if code < 0 else solve_problem(s, m, p, work, False)
    s.passes = passes
    return code


@procedure
def rouse(s: StepState, m: Mechanism, f: Found, z: Sleep, slack: float):
    """Wake sleeping trees that an awake body can touch; the others get zero velocity."""
    changed = True
    while changed:
        changed = False
        for c in range(f.count):
            if is_mixed(z, f, c) and approaching(m, f, c, s.h, slack, s.before, s.unheld):
                wake_side(z, f, c)
                changed = True
    for k in range(m.nv):
        if z.sleeps[z.tree_of_v[k]] == 1:
            s.free[k] = 0.0
    body_velocities(m, s.free, s.unheld)


@procedure
def wake_side(z: Sleep, f: Found, c: int):
    """Wake the sleeping body of contact ``c``."""
    a = z.tree[f.bodies[c, 0]]
    b = z.tree[f.bodies[c, 1]]
    wake(z, a if z.sleeps[a] == 1 else b)


@procedure
def drop_bending(a: Parts, slack: float) -> int:
    """Rebuild rows without curvature terms, at rest at the step's end; 0 or a code.

    What ``bending`` wants of several contacts can contradict: impulses grow, or there are none.
    """
    a.rows.follows = 0
    remember(a.problem, a.rows, a.found, a.step.h, False, a.sleep)
    return rows_of_step(a.step, a.mechanism, a.problem, a.rows, a.found, slack, True, a.sleep)


@procedure
def follow_mean(a: Parts) -> bool:
    """Update forces to the present mean velocity of the step; whether they changed much."""
    s, m, p = a.step, a.mechanism, a.problem
    s.y[: m.nv] = s.bias[: m.nv] + s.across[: m.nv]
    if a.rows.timed == 1:
        products_in_parts(s, m, p, a.rows, a.kernels)
    else:
        have_bias(s, m, a.kernels)
    force_across(a)
    most = 0.0
    for i in range(m.nv):
        s.y[i] = s.h * (s.y[i] - s.bias[i] - s.across[i]) * m.free[i]
        most = max(most, abs(s.y[i]))
    if most == 0.0:
        return False
    divide(p, s.factors, s.y)
    most = 0.0
    for i in range(m.nv):
        most = max(most, abs(s.y[i]))
    if most <= (SETTLED_ACROSS if cross(a) else s.settled):
        return False
    s.free[: m.nv] += s.y[: m.nv]
    return True


@procedure
def can_append(a: Parts) -> bool:
    """Whether rows of more contacts can be appended without rebuilding the others.

    Not where rows of joints follow, nor where something is inside: see ``add_contacts``.
    """
    rows, f = a.rows, a.found
    if rows.stops + rows.dry + rows.loops > 0 or rows.timed == 1:
        return False
    inside = False
    for c in range(f.count):
        inside = inside or (rows.active[c] != 0 and f.gap[c] < -rows.inside)
    return not inside


@procedure
def append_rows(a: Parts, first: int) -> int:
    """Append rows of contacts that turn out to act; 0, or a code.

    Contacts from ``first`` on are new in the list of those found.
    """
    s, m, p, rows, f = a.step, a.mechanism, a.problem, a.rows, a.found
    groups = p.groups
    p.changed = max(p.changed, 1)
    p.same = 0
    place_contacts(m, rows, f, first)
    for c in range(f.count):
        if rows.active[c] != -1:
            continue
        if is_asleep(a.sleep, f, c):
            rows.active[c] = 0
            continue
        code = add_contact(m, p, rows, f, c, s.given_v)
        if code < 0:
            return code
        continue_contact(m, p, rows, f, c, 0, s.h, s.before)
    rows.contacts = p.groups
    targets(s, p, rows, f, groups)
    return 0


@procedure
def rows_with_more(a: Parts, slack: float, first: int) -> int:
    """Append or rebuild rows with contacts and stops that turn out to act; 0, or a code."""
    if can_append(a):
        return append_rows(a, first)
    remember(a.problem, a.rows, a.found, a.step.h, False, a.sleep)
    return rows_of_step(a.step, a.mechanism, a.problem, a.rows, a.found, slack, True, a.sleep)


@procedure
def rows_of_missed(a: Parts, slack: float) -> int:
    """Add rows of contacts and stops missed so far: 1 if there were any, 0, or a code."""
    s, m, p, rows, f, z = a.step, a.mechanism, a.problem, a.rows, a.found, a.sleep
    if s.tried >= TRIES or not (f.count > rows.contacts or rows.stops > 0):
        return 0
    body_velocities(m, s.after, m.twist)
    late = count_missed(m, f, rows, s.h, s.closed, m.twist, z) > 0
    if not late and (z.asleep > 0 or not misses_stop(p, rows, s.q_m, s.after, s.h)):
        return 0
    asleep = z.asleep
    for c in range(f.count):
        if rows.active[c] == -1 and is_mixed(z, f, c):
            wake_side(z, f, c)
    if z.asleep < asleep:
        return WOKEN
    s.tried += 1
    code = rows_with_more(a, slack, f.count)
    return code if code < 0 else 1


@procedure
def rows_of_arrivals(a: Parts, slack: float, beta: float, more: bool) -> int:
    """Add rows of features that penetrate at the step's end; number of new ones, or a code.

    None if not ``more`` are wanted: the overlap is known then.
    """
    s, f, z = a.step, a.found, a.sleep
    s.part[0] = beta
    run(a.kernels.to_end)
    s.overlap = overlap_after(a, beta)
    if s.overlap < 0.0:
        return FOUND_FULL
    if s.overlap <= s.arrives or not more:
        return 0
    first = f.count
    arrived = add_arrivals(a, beta)
    if arrived < 0:
        return FOUND_FULL
    if arrived == 0:
        return 0
    asleep = z.asleep
    for c in range(first, f.count):
        if is_mixed(z, f, c):
            wake_side(z, f, c)
    if z.asleep < asleep:
        return WOKEN
    code = rows_with_more(a, slack, first)
    return code if code < 0 else arrived


@procedure
def solve_rows(a: Parts, slack: float, beta: float) -> int:
    """Solve a step, repeating with missed rows and updated forces; 0, or a code.

    ``slack`` is the gap up to which contacts have rows, ``beta`` the time from the middle to the
    end.
    """
    s, m, p, work, rows = a.step, a.mechanism, a.problem, a.work, a.rows
    left = True
    while True:
        may_drop = rows.follows == 1 and rows.loops == 0
        rounds = p.most_rounds
        if may_drop:
            p.most_rounds = min(rounds, ROUNDS_OF_BENDING)
        code = solve_problem(s, m, p, work, s.passes == 0)
        p.most_rounds = rounds
        if code >= 0 and s.unsolved > 0 and may_drop:
            code = drop_bending(a, slack)
            code = code if code < 0 else solve_problem(s, m, p, work, False)
        if code >= 0 and s.unsolved > 0 and left and (p.groups <= FEW or p.error > NO_SOLUTION):
            code = solved_from_sticking(s, m, p, work)
        if code < 0:
            return code
        s.passes += 1
        left = p.groups > 0 and p.left > 0
        again = left or (s.unsolved > 0 and p.error <= NO_SOLUTION and s.passes < ATTEMPTS)
        products = m.all_alone == 0 or rows.timed == 1 or cross(a)
        passes = PASSES if rows.timed == 0 else PASSES_OF_BOUNCES
        if cross(a):
            passes = PASSES_ACROSS
        if products and s.passes < passes and follow_mean(a):
            again = True
        late = rows_of_missed(a, slack)
        if late < 0:
            return late
        again = again or late > 0
        if left and s.passes == 1 and not products:
            # Most of what arrives does so by rough velocities, before they are solved exactly.
            code = rows_of_arrivals(a, slack, beta, True)
            if code < 0:
                return code
        bends = rows.follows == 1 and rows.loops == 0
        if not again and bends and p.velocity_error > CONTRADICTS:
            code = drop_bending(a, slack)
            if code < 0:
                return code
            again = True
        if not again:
            return 0


@procedure
def solve_until_geometry_agrees(a: Parts, slack: float, beta: float) -> int:
    """Solve a step until no new feature penetrates at its end; 0, or a code.

    ``beta`` is the time from the middle to the end.
    """
    s = a.step
    while True:
        code = solve_rows(a, slack, beta)
        if code < 0 or a.rows.timed == 1:
            return code
        arrived = rows_of_arrivals(a, slack, beta, s.arrived < ARRIVALS)
        if arrived <= 0:
            return arrived
        s.arrived += 1
        s.passes = 1
