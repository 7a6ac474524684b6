"""One step with contact, whole: Moreau's midpoint scheme, second order where motion is smooth.

    q_m = q + h/2 v,    M (v⁺ - v) = h (tau - C) + Jᵀ lam,    q⁺ = q_m + h/2 v⁺,

all terms at ``q_m``, ``C`` at the mean velocity, ``M = H + h lag``: joint springs and dampers act
as far ahead as they are stiff, see ``resistance``. Contacts are found once, at ``q_m``; what their
rows want, ``targets`` says; what bounces does so at the surface, see ``bounces``. With
constant ``H`` and forces the change of energy is exactly the work of all forces at the mean
velocity, so that wheels roll without drag. Bodies that move farther in half a step than they are
thin are looked at where the step begins, ``q_m = q`` and ``β = h``, and nothing passes through.

Penetration that is left (curvature of surfaces, a start inside) is taken out of positions by a
second problem with the same matrices and without friction, no faster than the correction speed.
"""

from kinetree.codegen.procedures import cross, dot, local, procedure, sqrt, vector
from kinetree.codegen.tied import run
from kinetree.contact.collision.detect import detect
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.sweep import Pairs
from kinetree.contact.collision.tables import SPHERE, Shapes
from kinetree.contact.engine.activations import add_up_errors, follow_controls, read_controls
from kinetree.contact.engine.actuator_tables import Actuators
from kinetree.contact.engine.adhesion import adhere
from kinetree.contact.engine.arrivals import (
    deepest_new,
    overlap_at_end,
)
from kinetree.contact.engine.bounces import (
    foresee_forces,
    look_ahead,
    times_of_impact,
)
from kinetree.contact.engine.contact_frames import point_velocity
from kinetree.contact.engine.drives import (
    add_resistance,
    exert,
    other_bounds,
    request_forces,
    resisting_force,
)
from kinetree.contact.engine.energy import (
    energy_of_trees,
)
from kinetree.contact.engine.joint_laws import add_joint_forces, most_friction
from kinetree.contact.engine.joint_rows import (
    beyond_stops,
    keep_speeds,
    loop_velocities,
    place_moving,
)
from kinetree.contact.engine.known_contacts import keep_asleep, show_asleep
from kinetree.contact.engine.mechanism import (
    Mechanism,
    body_velocities,
    divide,
    factor,
    inertia_blocks,
)
from kinetree.contact.engine.moving import foresee, keep_energy, move
from kinetree.contact.engine.parts import (
    FOUND_FULL,
    FULL,
    IN_FLIGHT,
    NO_INERTIA,
    NO_TRUST,
    WOKEN,
    Kernels,
    Parts,
    StepState,
)
from kinetree.contact.engine.products import have_bias
from kinetree.contact.engine.pushes import add_pushes, wake_pushed
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.shift import (
    close_in_middle,
    look_at_start,
)
from kinetree.contact.engine.sleep import fall_asleep, wake_driven
from kinetree.contact.engine.solving import rouse, rows_of_step, solve_until_geometry_agrees
from kinetree.contact.engine.springs import add_springs, force_across
from kinetree.contact.engine.undoing import keep_before, undo
from kinetree.contact.newton.problem import Problem

LEAST_GAIN = 1e-6
"""Gain of energy in a step that always can be trusted [J]."""

INSIDE = 3.0
"""Overlap in the middle of a step, in units of ``StepState.arrives``, from which on contacts are
looked at where the step begins."""


@procedure
def too_fast(m: Mechanism, shapes: Shapes, twist: "float[:, 6]", time: float) -> bool:
    """Whether some shape moves farther than its thickness in ``time`` seconds."""
    w = local("float", 3)
    for n in range(shapes.count):
        x = vector(shapes.pose[n, 3], shapes.pose[n, 7], shapes.pose[n, 11])
        point_velocity(m, twist, shapes.body[n], x, w)
        if time * time * dot(w, w) > shapes.thin[n] * shapes.thin[n]:
            return True
    return False


@procedure
def note_turns(s: StepState, shapes: Shapes):
    """Record the largest squared rotation of a non-spherical body in the step, and the body."""
    for n in range(shapes.count):
        turn = s.before[shapes.body[n], :3]
        angle = s.h * s.h * dot(turn, turn)
        if angle > s.turn and shapes.kind[n] != SPHERE:
            s.turn = angle
            s.turner = shapes.body[n]


@procedure
def motion_ahead(m: Mechanism, twist: "float[:, 6]", pairs: Pairs, h: float):
    """Write the bodies' spatial displacements ``h v`` for the broad phase."""
    for i in range(m.bodies):
        t = twist[i]
        u = pairs.motion[i]
        u[:] = 0.0
        if i > 0:
            u[:3] = h * t[:3]
            u[3:] = h * (t[3:] - cross(t[:3], m.pose[m.root[i], 3::4]))


@procedure
def find_free_velocity(
    s: StepState, m: Mechanism, p: Problem, drives: Actuators, springs: Actuators
):
    """Set ``free = v_m + M⁻¹ h (tau + springs - lead v_m - C)``; prescribed ones as given."""
    resisting_force(drives, springs, m, s.v_m, s.v_m, s.x)
    for k in range(m.nv):
        f = s.tau[k] + s.spring[k] - s.x[k] - s.across[k] - s.bias[k]
        s.x[k] = s.h * f * m.free[k]
    divide(p, s.factors, s.x)
    for k in range(m.nv):
        s.free[k] = s.v_m[k] + s.x[k] if m.free[k] == 1.0 else s.given_v[k]


@procedure
def change_of_speed(m: Mechanism, a: "float[:, 6]", b: "float[:, 6]") -> float:
    """Largest difference of two sets of linear body velocities [m/s]."""
    most = 0.0
    for i in range(1, m.bodies):
        change = b[i, 3:] - a[i, 3:]
        most = max(most, dot(change, change))
    return sqrt(most)


@procedure
def resist_joints(a: Parts):
    """Add smooth joint friction and stiff limits to the springs' forces and resistance."""
    s, m = a.step, a.mechanism
    if s.springs == 0 and a.springs.count == 0:
        s.spring[: m.nv] = 0.0
    m.stiffness[: m.nv] = s.own_K[: m.nv] + s.more_K[: m.nv]
    m.damping[: m.nv] = s.own_D[: m.nv] + s.more_D[: m.nv]
    add_joint_forces(a.joint_laws, s.q, s.v, s.spring, m.stiffness, m.damping)
    most_friction(a.joint_laws, s.v, a.rows.dry_level)


@procedure
def middle(s: StepState, m: Mechanism, shapes: Shapes, k: Kernels):
    """Evaluate bodies and terms at mid-step, or at the start (``alpha`` 0) if they move too far."""
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
def drive(a: Parts) -> bool:
    """Evaluate all forces at the step's start and their resistance; whether all trees sleep."""
    s, m, b, k, z = a.step, a.mechanism, a.balance, a.kernels, a.sleep
    if s.conserving == 1 and b.known == 0:
        run(k.energy_before)
        energy_of_trees(b, a.problem.trees, b.energy)
        b.known = 1
    if s.guided == 1:
        s.part[0] = s.h
        run(k.prescribed)
    if s.springs == 1:
        run(k.springs)
    elif a.springs.count > 0 or s.carries == 1:
        s.spring[: m.nv] = 0.0
    add_springs(a.springs, s.spring)
    if s.forced == 1:
        run(k.forces)
    exert(a.drives, s.held, s.tau)
    if z.asleep > 0:
        wake_driven(z, s.tau, m.nv)
        wake_pushed(a.pushes, z)
        if z.asleep == z.trees:
            return True
    if s.resists == 1:
        run(k.resistance)
        m.stiffness[: m.nv] = s.own_K[: m.nv] + s.more_K[: m.nv]
        m.damping[: m.nv] = s.own_D[: m.nv] + s.more_D[: m.nv]
    if a.joint_laws.any == 1:
        resist_joints(a)
    return False


@procedure
def positions(a: Parts):
    """Set mid-step positions with all terms and forces that depend on them."""
    s, m = a.step, a.mechanism
    look_ahead(s, m, a.problem, a.rows)
    middle(s, m, a.shapes, a.kernels)
    add_pushes(a.pushes, m, s.tau)
    if s.carries == 1:
        if a.drives.counted == 0:  # else ``request`` has it
            run(a.kernels.carried)
        s.spring[: m.nv] += s.carried[: m.nv]
    if a.rows.moving > 0:
        run(a.kernels.moving_rows)
        place_moving(a.rows, m.nv, s.q_m)
    note_turns(s, a.shapes)
    if s.alpha == 0.0:
        a.rows.follows = 0


@procedure
def find_contacts(a: Parts) -> int:
    """Detect contacts at mid-step; 0, or a code to repeat from the start or to enlarge tables."""
    s, f, rows = a.step, a.found, a.rows
    motion_ahead(a.mechanism, s.before, a.pairs, s.h)
    if detect(a.shapes, a.special, a.pairs, a.touch, s.margin, f) < 0:
        return FOUND_FULL
    may_begin = s.alpha > 0.0 and rows.loops == 0  # loops would open on the longer way
    if may_begin and deepest_new(f, rows) > INSIDE * s.arrives:
        s.at_start = 1
        return WOKEN
    return 0


@procedure
def free_velocities(a: Parts) -> int:
    """Set velocities after the step without contact, and the relevant gap; 0, or a code."""
    s, m, p = a.step, a.mechanism, a.problem
    inertia_blocks(m, p, s.h, s.alpha)
    add_resistance(a.springs, m, p, s.h, s.alpha)
    add_resistance(a.drives, m, p, s.h, s.alpha)
    s.culprit = factor(p, s.factors, s.numbers)
    if s.culprit >= 0:
        return NO_INERTIA
    s.mean[: m.nv] = s.v_m[: m.nv] + s.change[: m.nv] / 2.0
    have_bias(s, m, a.kernels)
    force_across(a)
    find_free_velocity(s, m, p, a.drives, a.springs)
    body_velocities(m, s.free, s.unheld)
    s.near = 1e-9 + s.h * change_of_speed(m, s.before, s.unheld)
    return 0


@procedure
def only_couplings(p: Problem, rows: Rows) -> bool:
    """Whether the step has no rows, or those of joint couplings alone."""
    return p.groups == 0 or (rows.contacts == 0 and rows.contact[0] >= rows.stops + rows.dry)


@procedure
def make_rows(a: Parts) -> int:
    """Build the rows of all that can act within the step; 0, or a code."""
    s, m, p, rows, f = a.step, a.mechanism, a.problem, a.rows, a.found
    k, z = a.kernels, a.sleep
    if z.asleep > 0:
        rouse(s, m, f, z, s.near)
    if keep_asleep(z, rows, f) < 0:
        return FULL
    if rows.loops > 0:
        if rows.follows == 0:
            look_at_start(s, m, p, rows, k)
        close_in_middle(m, p, rows, k)
    if rows.timed == 1:
        foresee_forces(s, p, rows, f)
    code = rows_of_step(s, m, p, rows, f, s.near, False, z)
    if code < 0:
        return code
    if s.flying == 1 and only_couplings(p, rows):
        return IN_FLIGHT
    timely = rows.timed == 0 and s.alpha > 0.0 and m.prescribed == 0
    if timely and times_of_impact(s, p, rows, f, a.shapes, a.pairs, z):
        rows.timed = 1
        return WOKEN
    return 0


@procedure
def solve_step(a: Parts) -> int:
    """Solve the step's velocities and impulses with drives within limits; 0, or a code."""
    s = a.step
    s.newton = s.factored = s.passes = s.tried = s.arrived = 0
    code = solve_until_geometry_agrees(a, s.near, s.h - s.alpha * s.h)
    if code < 0:
        return code
    return WOKEN if other_bounds(a.drives, s.v_m, s.after) else 0


@procedure
def place_prescribed(s: StepState, m: Mechanism):
    """Set prescribed variables exactly to their prescribed end of step."""
    for n in range(s.placed):
        s.q[s.places[n]] = s.end_q[s.places[n]]
    for i in range(m.nv):
        if m.free[i] == 0.0:
            s.v[i] = s.end_v[i]


@procedure
def record_step(a: Parts, moved: bool) -> int:
    """Finish the step's end state and its residuals, with penetration; 0, or a code.

    ``moved``: whether positions have changed since overlaps were looked at.
    """
    s, m, rows, f, z = a.step, a.mechanism, a.rows, a.found, a.sleep
    if moved or rows.timed == 1 or m.prescribed == 1:
        s.overlap = overlap_at_end(a)
        if s.overlap < 0.0:
            return FOUND_FULL
    s.residuals[3] = max(s.overlap, beyond_stops(rows, s.q_e))
    show_asleep(z, rows, f)
    if z.on == 1 and fall_asleep(z, a.balance.island, s.v_e, m.units, s.tau, m.nv):
        a.balance.known = 0
    for i in range(m.nq):
        if z.sleeps[z.tree_of_q[i]] == 0:
            s.q[i] = s.q_e[i]
    s.v[: m.nv] = s.v_e[: m.nv]
    if s.placed > 0:
        place_prescribed(s, m)
    foresee(s, a.problem, a.balance)
    for i in range(m.nv if z.asleep > 0 else 0):
        if z.sleeps[z.tree_of_v[i]] == 1:
            s.change[i] = s.last[i] = 0.0
    s.time[0] += s.h
    rows.follows = 1 if s.alpha > 0.0 else 0
    loop_velocities(a.problem, rows, s.v_e)
    keep_speeds(rows, s.after)
    return 0


@procedure
def sleep_on(s: StepState) -> int:
    """Advance time alone for a step in which every tree sleeps; returns 0."""
    s.residuals[:3] = 0.0
    s.residuals[5:9] = 0.0
    s.work = 0.0
    s.time[0] += s.h
    return 0


@procedure
def take_step(a: Parts) -> int:
    """Take one step; 0, or an error code, which leaves the state unchanged."""
    if drive(a):
        return sleep_on(a.step)
    positions(a)
    code = find_contacts(a)
    if code == 0 and adhere(a):
        code = WOKEN
    if code == 0:
        code = free_velocities(a)
    if code == 0:
        code = make_rows(a)
    if code == 0:
        code = solve_step(a)
    if code < 0:
        return code
    code, moved = move(a)
    if code < 0:
        return code
    if a.step.conserving == 1:
        keep_energy(a)
    return record_step(a, moved)


@procedure
def request(a: Parts):
    """Set forces of actuators and springs before limits, with mid-step moment arms."""
    s, nv = a.step, a.mechanism.nv
    if a.drives.traced + a.drives.counted + a.springs.traced > 0:
        s.ahead[:nv] = s.v[:nv]
        s.part[0] = s.h / 2.0
        run(a.kernels.to_middle)
        if a.drives.acts == 1 and a.drives.traced > 0:
            run(a.kernels.arms)
        if a.springs.traced > 0:
            run(a.kernels.moving_springs)
        if a.drives.counted == 1:
            run(a.kernels.carried)
            for i in range(nv):
                a.drives.compensation[i] = s.carried[i] * a.drives.counts[i]
    if a.drives.acts == 1:
        request_forces(a.drives, s.q, s.v, s.v_m, s.h)
    if a.springs.count > 0:
        request_forces(a.springs, s.q, s.v, s.v_m, s.h)


@procedure
def one_more(a: Parts) -> int:
    """Take one step and add its residuals to ``total``; 0, or an error code."""
    s = a.step
    s.began[: a.mechanism.nv] = s.v[: a.mechanism.nv]
    s.overlap_before = s.overlap
    keep_before(a.before, a.rows, a.balance, a.sleep, s.change, s.overlap)
    a.rows.timed = s.at_start = 0
    if a.drives.acts == 1 and a.drives.reads == 1:
        read_controls(a.drives, s.inputs, s.time[0])
    request(a)
    code = WOKEN
    while code == WOKEN:
        code = take_step(a)
    if FOUND_FULL <= code <= FULL:  # it is taken again, with more room
        undo(a.before, a.rows, a.balance, a.sleep, s.change)
        s.overlap = a.before.overlap
    if code < 0:
        return code
    for i in range(10):
        summed = i == 5 or i == 6 or i == 7 or i == 9
        a.total[i] = a.total[i] + s.residuals[i] if summed else max(a.total[i], s.residuals[i])
    a.total[10] += s.work
    if a.drives.acts == 1 and a.drives.reads == 0:
        add_up_errors(a.drives, s.h)
        follow_controls(a.drives, s.h)
    return judge(a)


@procedure
def judge(a: Parts) -> int:
    """Add a step's residuals to the report; 0, or ``NO_TRUST`` if they are too large.

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
