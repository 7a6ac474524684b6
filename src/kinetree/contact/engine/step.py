"""One step with contact, whole: Moreau's midpoint scheme, second order where motion is smooth.

    q_m = q + h/2 v,    M (v⁺ - v) = h (tau - C) + Jᵀ lam,    q⁺ = q_m + h/2 v⁺,

all terms at ``q_m``, ``C`` at the mean velocity, ``M = H + h lag``: joint springs and dampers act
as far ahead as they are stiff, see ``resistance``. Contacts are found once, at ``q_m``; what their
rows want, ``rows.targets`` says; what bounces does so at the surface, see ``bounces``. With
constant ``H`` and forces the change of energy is exactly the work of all forces at the mean
velocity, so that wheels roll without drag. Bodies that move farther in half a step than they are
thin are looked at where the step begins, ``q_m = q`` and ``β = h``, and nothing passes through.

Penetration that is left (curvature of surfaces, a start inside) is taken out of positions by a
second problem with the same matrices and without friction, no faster than the correction speed.
"""

from kinetree.codegen.procedures import cross, dot, isfinite, local, procedure, sqrt, vector
from kinetree.codegen.tied import run
from kinetree.contact.collision.detect import detect
from kinetree.contact.collision.sweep import Pairs
from kinetree.contact.collision.tables import SPHERE, Found, Shapes, place_shapes
from kinetree.contact.engine.arrivals import (
    ARRIVALS,
    add_arrivals,
    deepest_new,
    overlap_after,
    overlap_at_end,
)
from kinetree.contact.engine.bounces import (
    PASSES_OF_BOUNCES,
    account_of_bounce,
    account_of_rest,
    foresee_forces,
    look_ahead,
    products_in_parts,
    times_of_impact,
    way_to_end,
)
from kinetree.contact.engine.direct import close_directly
from kinetree.contact.engine.drives import (
    Actuators,
    add_resistance,
    add_springs,
    exert,
    follow_controls,
    other_bounds,
    read_controls,
    request_forces,
    resisting_force,
)
from kinetree.contact.engine.energy import (
    Balance,
    Flight,
    balanced,
    energy_of_trees,
    flying,
    sum_up,
    turn_back,
    weighed,
)
from kinetree.contact.engine.joint_laws import add_joint_forces, most_friction
from kinetree.contact.engine.mechanism import (
    Mechanism,
    body_velocities,
    divide,
    factor,
    inertia_blocks,
)
from kinetree.contact.engine.parts import (
    FOUND_FULL,
    FULL,
    IN_FLIGHT,
    NO_CONTROL,
    NO_INERTIA,
    NO_TRUST,
    WOKEN,
    WORK_FULL,
    Kernels,
    Parts,
    Step,
)
from kinetree.contact.engine.pushes import add_pushes, wake_pushed
from kinetree.contact.engine.rows import (
    Rows,
    add_contacts,
    add_joint_rows,
    add_loops,
    approaching,
    beyond_stops,
    keep_asleep,
    loop_velocities,
    missed,
    misses_stop,
    point_velocity,
    remember,
    show_asleep,
    slips,
    targets,
)
from kinetree.contact.engine.shift import (
    close_at_end,
    close_in_middle,
    deepest,
    look_at_start,
    shifted,
)
from kinetree.contact.engine.sleep import Sleep, driven, fall_asleep, is_mixed, wake
from kinetree.contact.newton.newton import solve
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.settings import PASSES

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

LEAST_GAIN = 1e-6
"""Gain of energy in a step that always can be trusted [J]."""

INSIDE = 3.0
"""Overlap in the middle of a step, in units of ``Step.arrives``, from which on contacts are looked
at where the step begins."""

TRIES = 4
"""How often rows that turn out to act are added within a step."""


@procedure
def too_fast(m: Mechanism, shapes: Shapes, twist: "float[:, 6]", time: float) -> bool:
    """Whether a shape moves farther than it is thin in some time."""
    w = local("float", 3)
    for n in range(shapes.count):
        x = vector(shapes.pose[n, 3], shapes.pose[n, 7], shapes.pose[n, 11])
        point_velocity(m, twist, shapes.body[n], x, w)
        if time * time * dot(w, w) > shapes.thin[n] * shapes.thin[n]:
            return True
    return False


@procedure
def note_turns(s: Step, shapes: Shapes):
    """Remember which body turns farthest in a step; spheres turn as they like."""
    for n in range(shapes.count):
        turn = s.before[shapes.body[n], :3]
        angle = s.h * s.h * dot(turn, turn)
        if angle > s.turn and shapes.kind[n] != SPHERE:
            s.turn = angle
            s.turner = shapes.body[n]


@procedure
def motion_ahead(m: Mechanism, twist: "float[:, 6]", pairs: Pairs, h: float):
    """Spatial velocities of the bodies in the world, times ``h``, for the broad phase."""
    for i in range(m.bodies):
        t = twist[i]
        u = pairs.motion[i]
        u[:] = 0.0
        if i > 0:
            u[:3] = h * t[:3]
            u[3:] = h * (t[3:] - cross(t[:3], m.pose[m.root[i], 3::4]))


@procedure
def unconstrained(s: Step, m: Mechanism, p: Problem, drives: Actuators, tendons: Actuators):
    """``free = v_m + M⁻¹ h (tau + springs - lead v_m - C)``, but for prescribed variables."""
    resisting_force(drives, tendons, m, s.v_m, s.v_m, s.x)
    for k in range(m.nv):
        f = s.tau[k] + s.spring[k] - s.x[k] - s.bias[k]
        s.x[k] = s.h * f * m.free[k]
    divide(p, s.factors, s.x)
    for k in range(m.nv):
        s.free[k] = s.v_m[k] + s.x[k] if m.free[k] == 1.0 else s.given_v[k]


@procedure
def change_of_speed(m: Mechanism, a: "float[:, 6]", b: "float[:, 6]") -> float:
    """Largest difference of the linear velocities of bodies [m/s]."""
    most = 0.0
    for i in range(1, m.bodies):
        change = b[i, 3:] - a[i, 3:]
        most = max(most, dot(change, change))
    return sqrt(most)


@procedure
def rows_of_step(
    s: Step, m: Mechanism, p: Problem, rows: Rows, f: Found, slack: float, again: bool, z: Sleep
) -> int:
    """All groups of the step, with what they want; 0, or ``FULL``."""
    code = add_contacts(m, p, rows, f, s.h, slack, s.given_v, s.before, s.unheld, again, z)
    if code < 0:
        return code
    code = add_joint_rows(p, rows, s.q_m, s.v_m, s.free, s.h, again, z)
    if code < 0:
        return code
    code = add_loops(m, p, rows, s.v_m, s.given_v, s.h, z)
    if code < 0:
        return code
    targets(p, rows, f, s.h, s.alpha, s.rest, s.deep, s.change)
    return 0


@procedure
def solved(s: Step, m: Mechanism, p: Problem, work: Work, coarse: bool) -> int:
    """Velocities and impulses of the problem from ``free``; 0, or ``WORK_FULL``."""
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
    elif not close_directly(p, s.factors, work):
        if solve(p, work) < 0:
            return WORK_FULL
        s.newton += p.newton
        s.factored += p.factored
    s.unsolved = p.status
    s.after[: m.nv] = p.velocity[: m.nv]
    s.mean[: m.nv] = (s.v_m[: m.nv] + p.velocity[: m.nv]) / 2.0
    return 0


@procedure
def solved_from_sticking(s: Step, m: Mechanism, p: Problem, work: Work) -> int:
    """The same from where contacts would be if friction held all of them; 0, or ``WORK_FULL``.

    Where more than one solution exists, or none with finite forces (Painlevé), that is the one.
    """
    p.mu[: p.groups] *= STICKS
    p.impulse[: p.row_first[p.groups]] = 0.0
    passes = s.passes
    s.passes = 0
    code = solved(s, m, p, work, False)
    p.mu[: p.groups] /= STICKS
    code = code if code < 0 else solved(s, m, p, work, False)
    s.passes = passes
    return code


@procedure
def impulses_at_joints(p: Problem, fixed: "float[:]", x: "float[:]"):
    """``x = Jᵀ lam``."""
    x[: p.nv] = 0.0
    for g in range(p.groups):
        row = p.row_first[g]
        for n in range(p.entry_first[g], p.entry_first[g + 1]):
            a = p.entry_node[n]
            at = p.entry_at[n]
            wide = p.node_count[a]
            for r in range(p.dim[g]):
                lam = p.impulse[row + r]
                if lam != 0.0:
                    for j in range(wide):
                        x[p.node_first[a] + j] += (
                            p.J[at + r * wide + j] + fixed[at + r * wide + j]
                        ) * lam


@procedure
def account(a: Parts):
    """Work of the joint forces and of the rows at the mean velocity, in ``residuals``."""
    s, m, p, rows, b, k = a.step, a.mechanism, a.problem, a.rows, a.balance, a.kernels
    resisting_force(a.drives, a.tendons, m, s.v_m, s.after, s.resist)
    impulses_at_joints(p, rows.fixed, s.x)
    if m.prescribed == 1:
        for i in range(m.nv):
            s.y[i] = s.given[i]
            if m.free[i] == 1.0:
                s.given[i] = (s.after[i] - s.v_m[i]) / s.h
        run(k.bias)
        for i in range(m.nv):
            s.given[i] = s.y[i]
            f = s.h * (s.bias[i] - s.tau[i] - s.spring[i]) - s.x[i]
            s.drive[i] = f * (1.0 - m.free[i])
    b.joints[: p.trees] = b.rows[: p.trees] = 0.0
    contact = mean = s.work = 0.0
    for i in range(m.nv):
        f = s.tau[i] + s.spring[i] - s.resist[i]
        t = p.node_tree[p.dof_node[i]]
        power = (s.h * f + s.drive[i]) * s.mean[i]
        held = s.x[i] * s.mean[i]
        b.joints[t] += power
        b.rows[t] += held
        s.work += power + held
        mean += held
        contact += s.x[i] * s.after[i]
    for g in range(p.groups):
        for r in range(min(p.dim[g], 3)):
            scale = rows.scale[g, r] if g < rows.contacts else 1.0
            contact += p.impulse[p.row_first[g] + r] * scale * rows.bend[g, r]
    touching = 0.0
    for r in range(p.row_first[p.groups]):
        if p.impulse[r] != 0.0:
            touching = 1.0
    s.residuals[:3] = vector(p.velocity_error, p.cone_error, p.complementarity)
    s.residuals[5:7] = vector(contact, contact - mean)
    s.residuals[7:9] = 0.0
    s.residuals[9] = touching


@procedure
def resist_joints(a: Parts):
    """Have smooth friction and stiff limits of the joints among the forces of springs."""
    s, m = a.step, a.mechanism
    if s.springs == 0 and a.tendons.count == 0:
        s.spring[: m.nv] = 0.0
    m.stiffness[: m.nv] = s.own_K[: m.nv] + s.more_K[: m.nv]
    m.damping[: m.nv] = s.own_D[: m.nv] + s.more_D[: m.nv]
    add_joint_forces(a.joint_laws, s.q, s.v, s.spring, m.stiffness, m.damping)
    most_friction(a.joint_laws, s.v, a.rows.dry_level)


# --- The whole step ------------------------------------------------------------------------------


@procedure
def middle(s: Step, m: Mechanism, shapes: Shapes, k: Kernels):
    """Go to the middle of the step, and have the terms there; ``alpha`` says where it is."""
    s.alpha = 0.5 - 0.5 * s.at_start
    while True:
        s.part[0] = s.alpha * s.h
        run(k.to_middle)
        run(k.terms)
        place_shapes(shapes, m.pose)
        body_velocities(m, s.v_m, s.before)
        if s.alpha == 0.0 or not too_fast(m, shapes, s.before, s.alpha * s.h):
            break
        s.alpha = 0.0


@procedure
def keep_momentum(s: Step, m: Mechanism, p: Problem, b: Balance, w: Flight, k: Kernels):
    """Let islands that fly have the angular momentum with which the step began."""
    run(k.terms_before)
    sum_up(w, b, m, p, s.v)
    w.spun[: p.trees] = w.spin[: p.trees]
    run(k.terms_after)
    sum_up(w, b, m, p, s.v_e)
    turn_back(w, b, m, p, s.v_e)


@procedure
def foresee(s: Step, p: Problem, b: Balance):
    """The change of velocities to expect in the next step: that of this one, unless it was a jump.

    After an impact bodies go on as if free: its change, taken for that of the next step, would have
    velocity products far from the mean velocity. A change that had to be undone is none.
    """
    for i in range(p.nv):
        change = s.after[i] - s.v_m[i]
        if s.conserving == 1 and b.flown[p.node_tree[p.dof_node[i]]] < 1.0:  # it was not found
            change = 0.0
        free = s.free[i] - s.v_m[i]
        jumped = abs(change - s.last[i]) > abs(change) / 2.0 + abs(free)
        s.change[i] = free if jumped else change
        s.last[i] = change


@procedure
def rouse(s: Step, m: Mechanism, f: Found, z: Sleep, slack: float):
    """Wake what something that is awake can touch; what sleeps on has no velocity."""
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
    """Wake the body of a contact that sleeps."""
    a = z.tree[f.bodies[c, 0]]
    b = z.tree[f.bodies[c, 1]]
    wake(z, a if z.sleeps[a] == 1 else b)


@procedure
def drop_bending(a: Parts, slack: float) -> int:
    """Rows that want contacts to be at rest at the end of the step, not in its middle; 0 or a code.

    What ``bending`` wants of several contacts can contradict: impulses grow, or there are none.
    """
    a.rows.follows = 0
    remember(a.problem, a.rows, a.found, a.step.h, False, a.sleep)
    return rows_of_step(a.step, a.mechanism, a.problem, a.rows, a.found, slack, True, a.sleep)


@procedure
def solve_rows(a: Parts, slack: float) -> int:
    """Solve a step, with rows that turn out to act and velocity products that change; 0, or a code.

    ``slack`` is the gap up to which contacts have rows.
    """
    s, m, p, work, rows, f = a.step, a.mechanism, a.problem, a.work, a.rows, a.found
    k, z = a.kernels, a.sleep
    left = True
    while True:
        may_drop = rows.follows == 1 and rows.loops == 0
        rounds = p.most_rounds
        if may_drop:
            p.most_rounds = min(rounds, ROUNDS_OF_BENDING)
        code = solved(s, m, p, work, s.passes == 0)
        p.most_rounds = rounds
        if code >= 0 and s.unsolved > 0 and may_drop:
            code = drop_bending(a, slack)
            code = code if code < 0 else solved(s, m, p, work, False)
        if code >= 0 and s.unsolved > 0 and left and (p.groups <= FEW or p.error > NO_SOLUTION):
            code = solved_from_sticking(s, m, p, work)
        if code < 0:
            return code
        s.passes += 1
        left = p.groups > 0 and p.left > 0
        again = left or (s.unsolved > 0 and p.error <= NO_SOLUTION and s.passes < ATTEMPTS)
        if s.passes < (PASSES if rows.timed == 0 else PASSES_OF_BOUNCES):
            s.y[: m.nv] = s.bias[: m.nv]
            if rows.timed == 1:
                products_in_parts(s, m, p, rows, k)
            else:
                run(k.bias)
            most = 0.0
            changed = False
            for i in range(m.nv):
                s.y[i] = s.h * (s.y[i] - s.bias[i]) * m.free[i]
                most = max(most, abs(s.y[i]))
            if most > 0.0:
                divide(p, s.factors, s.y)
                most = 0.0
                for i in range(m.nv):
                    most = max(most, abs(s.y[i]))
                changed = most > s.settled
            if changed:
                again = True
                s.free[: m.nv] += s.y[: m.nv]
        if s.tried < TRIES and (f.count > rows.contacts or rows.stops > 0):
            body_velocities(m, s.after, m.twist)
            late = missed(m, f, rows, s.h, s.closed, m.twist, z) > 0
            if late or (z.asleep == 0 and misses_stop(p, rows, s.q_m, s.after, s.h)):
                asleep = z.asleep
                for c in range(f.count):
                    if rows.active[c] == -1 and is_mixed(z, f, c):
                        wake_side(z, f, c)
                if z.asleep < asleep:
                    return WOKEN
                s.tried += 1
                remember(p, rows, f, s.h, False, z)
                code = rows_of_step(s, m, p, rows, f, slack, True, z)
                if code < 0:
                    return code
                again = True
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
    """Solve a step, again with features that overlap where it ends; 0, or a code.

    ``beta`` is the time from the middle to the end.
    """
    s, m, p, rows, f, z = a.step, a.mechanism, a.problem, a.rows, a.found, a.sleep
    while True:
        code = solve_rows(a, slack)
        if code < 0 or rows.timed == 1:
            return code
        s.part[0] = beta
        run(a.kernels.to_end)
        s.overlap = overlap_after(a, beta)
        if s.overlap < 0.0:
            return FOUND_FULL
        if s.overlap <= s.arrives or s.arrived == ARRIVALS:
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
        s.arrived += 1
        s.passes = 1
        remember(p, rows, f, s.h, False, z)
        code = rows_of_step(s, m, p, rows, f, slack, True, z)
        if code < 0:
            return code


@procedure
def take_step(a: Parts) -> int:
    """One step; 0, or the code of why there is none: then the state is as it was."""
    s, m, p, work, rows, f = a.step, a.mechanism, a.problem, a.work, a.rows, a.found
    shapes, b, w, k, z = a.shapes, a.balance, a.flight, a.kernels, a.sleep
    if s.conserving == 1 and b.known == 0:
        run(k.energy_before)
        energy_of_trees(b, p.trees, b.energy)
        b.known = 1
    if s.springs == 1:
        run(k.springs)
    elif a.tendons.count > 0 or s.carries == 1:
        s.spring[: m.nv] = 0.0
    add_springs(a.tendons, s.q, s.v, s.h, s.spring)
    if s.forced == 1:
        run(k.forces)
    exert(a.drives, s.held, s.tau)
    if z.asleep > 0:
        driven(z, s.tau, m.nv)
        wake_pushed(a.pushes, z)
        if z.asleep == z.trees:
            s.residuals[:3] = 0.0
            s.residuals[5:9] = 0.0
            s.work = 0.0
            s.time[0] += s.h
            return 0
    if s.resists == 1:
        run(k.resistance)
        m.stiffness[: m.nv] = s.own_K[: m.nv] + s.more_K[: m.nv]
        m.damping[: m.nv] = s.own_D[: m.nv] + s.more_D[: m.nv]
    if a.joint_laws.any == 1:
        resist_joints(a)
    look_ahead(s, m, p, rows)
    middle(s, m, shapes, k)
    add_pushes(a.pushes, m, s.tau)
    if s.carries == 1:
        run(k.carried)
        s.spring[: m.nv] += s.carried[: m.nv]
    note_turns(s, shapes)
    if s.alpha == 0.0:
        rows.follows = 0
    beta = s.h - s.alpha * s.h
    motion_ahead(m, s.before, a.pairs, s.h)
    if detect(shapes, a.special, a.pairs, a.touch, s.margin, f) < 0:
        return FOUND_FULL
    may_begin = s.alpha > 0.0 and rows.loops == 0  # loops would open on the longer way
    if may_begin and deepest_new(f, rows) > INSIDE * s.arrives:
        s.at_start = 1
        return WOKEN
    inertia_blocks(m, p, s.h, s.alpha)
    add_resistance(a.drives, m, p, s.h, s.alpha)
    add_resistance(a.tendons, m, p, s.h, s.alpha)
    s.culprit = factor(p, s.factors, s.numbers)
    if s.culprit >= 0:
        return NO_INERTIA
    s.mean[: m.nv] = s.v_m[: m.nv] + s.change[: m.nv] / 2.0
    run(k.bias)
    unconstrained(s, m, p, a.drives, a.tendons)
    body_velocities(m, s.free, s.unheld)
    slack = 1e-9 + s.h * change_of_speed(m, s.before, s.unheld)
    s.near = slack
    if z.asleep > 0:
        rouse(s, m, f, z, slack)
    if keep_asleep(z, rows, f) < 0:
        return FULL
    if rows.loops > 0:
        if rows.follows == 0:
            look_at_start(s, m, p, rows, k)
        close_in_middle(m, p, rows, k)
    if rows.timed == 1:
        foresee_forces(s, p, rows, f)
    code = rows_of_step(s, m, p, rows, f, slack, False, z)
    if code < 0:
        return code
    if p.groups == 0 and s.flying == 1:
        return IN_FLIGHT
    timely = rows.timed == 0 and s.alpha > 0.0 and m.prescribed == 0
    if timely and times_of_impact(s, p, rows, f, shapes, a.pairs, z):
        rows.timed = 1
        return WOKEN
    s.newton = s.factored = s.passes = s.tried = s.arrived = 0
    code = solve_until_geometry_agrees(a, slack, beta)
    if code < 0:
        return code
    if other_bounds(a.drives, s.v_m, s.after):
        return WOKEN
    account(a)
    body_velocities(m, s.after, m.twist)
    slips(m, rows, f, m.twist)
    remember(p, rows, f, s.h, True, z)
    s.part[0] = beta
    run(k.to_end)
    s.residuals[3:5] = 0.0
    for i in range(m.nv):
        s.x[i] = s.after[i] if m.free[i] == 1.0 or s.alpha == 0.0 else s.given_x[i]
    if rows.timed == 1:
        way_to_end(s, m, p, rows, f, beta)
        impulses_at_joints(p, rows.fixed, s.y)
        account_of_bounce(s, m, p, rows, b, beta)
    if m.prescribed == 1 or rows.timed == 1:
        run(k.to_shifted)
    if rows.loops > 0:
        close_at_end(m, p, rows, k)
    b.shifts = 0
    deep = deepest(s, m, p, work, rows, b, beta)
    flies = flying(w, b, m, p, rows, f, s.tau)
    if deep:
        if s.conserving == 1:
            run(k.energy_after)
            energy_of_trees(b, p.trees, b.unshifted)
            b.shifts = 1
        error, islands = p.error, p.islands  # what the velocities have is reported
        code = shifted(s, m, p, work, rows, b, k, beta)
        if code < 0:
            return code
        p.error = error
        p.islands = islands
        if flies:
            keep_momentum(s, m, p, b, w, k)
    if s.conserving == 1:
        run(k.energy_after)
        energy_of_trees(b, p.trees, b.total)
        if rows.timed == 1:
            account_of_rest(s, p, rows, b)
        if weighed(b, w, p, rows, f) and b.shifts == 0:
            keep_momentum(s, m, p, b, w, k)
        s.residuals[7], s.residuals[8] = balanced(b, w, m, p, s.v_e)
        s.work -= s.residuals[7]
    if deep or rows.timed == 1 or m.prescribed == 1:
        s.overlap = overlap_at_end(a)
        if s.overlap < 0.0:
            return FOUND_FULL
    s.residuals[3] = max(s.overlap, beyond_stops(rows, s.q_e))
    show_asleep(z, rows, f)
    if z.on == 1 and fall_asleep(z, b.island, s.v_e, m.units, s.tau, m.nv):
        b.known = 0
    for i in range(m.nq):
        if z.sleeps[z.tree_of_q[i]] == 0:
            s.q[i] = s.q_e[i]
    s.v[: m.nv] = s.v_e[: m.nv]
    foresee(s, p, b)
    for i in range(m.nv if z.asleep > 0 else 0):
        if z.sleeps[z.tree_of_v[i]] == 1:
            s.change[i] = s.last[i] = 0.0
    s.time[0] += s.h
    rows.follows = 1 if s.alpha > 0.0 else 0
    loop_velocities(p, rows, s.v_e)
    return 0


@procedure
def one_more(a: Parts) -> int:
    """One step, and what it did in ``total``; 0, or the code of why there is none."""
    s = a.step
    s.began[: a.mechanism.nv] = s.v[: a.mechanism.nv]
    s.overlap_before = s.overlap
    a.rows.timed = s.at_start = 0
    if a.drives.acts == 1:
        if a.drives.reads == 1:
            read_controls(a.drives, s.inputs, s.time[0])
        if a.drives.traced > 0:
            s.ahead[: a.mechanism.nv] = s.v[: a.mechanism.nv]
            s.part[0] = s.h / 2.0
            run(a.kernels.to_middle)
            run(a.kernels.arms)
        request_forces(a.drives, s.q, s.v, s.v_m, s.h)
    code = WOKEN
    while code == WOKEN:
        code = take_step(a)
    if code < 0:
        return code
    a.taken += 1
    for i in range(10):
        summed = i == 5 or i == 6 or i == 7 or i == 9
        a.total[i] = a.total[i] + s.residuals[i] if summed else max(a.total[i], s.residuals[i])
    a.total[10] += s.work
    if a.drives.acts == 1 and a.drives.reads == 0:
        follow_controls(a.drives, s.h)
    return judge(a)


@procedure
def judge(a: Parts) -> int:
    """Add a step to what the next report covers; 0, or ``NO_TRUST``.

    What was inside before is no fault of the step.
    """
    s, n = a.step, a.counts
    for i in range(10):
        summed = i == 5 or i == 6 or i == 7 or i == 9
        a.since[i] = a.since[i] + s.residuals[i] if summed else max(a.since[i], s.residuals[i])
    a.since[10] += s.work
    a.since[11] += s.residuals[8]
    allowed = LEAST_GAIN
    for t in range(a.problem.trees):
        allowed += a.limits[2] * a.balance.kinetic[t]
        if a.balance.shifts == 1:  # by taking an overlap out of positions
            allowed += max(a.balance.lifted[t], 0.0)
    wrong = False
    if not s.residuals[0] <= a.limits[0]:
        n[3] += 1
        wrong = True
    if not s.overlap <= s.overlap_before + a.limits[1]:
        n[4] += 1
        wrong = True
    inside = s.overlap_before > a.limits[1]  # which is pushed out, up if need be
    if not inside and not s.residuals[8] <= allowed:
        n[5] += 1
        wrong = True
    n[0] += 1
    if wrong:
        n[1] += 1
        if n[1] == 1:
            n[2] = n[0]
    return NO_TRUST if wrong and a.strict == 1 else 0


@procedure
def take_steps(a: Parts, count: int, again: bool) -> int:
    """Up to ``count`` steps under the same controls; the code of why there are fewer, or 0.

    1 if something turns too far, or a first step cannot be trusted. ``again``: they are the rest
    of a call.
    """
    if not again:
        a.taken = 0
        a.total[:11] = 0.0
    if a.drives.acts == 1:
        x = 0.0
        for i in range(a.drives.count):
            x += abs(a.drives.u[i])
        if not isfinite(x):
            return NO_CONTROL
    for _ in range(count):
        code = one_more(a)
        if code < 0:
            return code
    unknown = a.counts[1] > 0 and a.warned == 0
    return 1 if a.step.turn > a.most_turn or unknown else 0
