"""Moving on: where a step ends, without overlaps, and with no more energy than there was."""

from kinetree.codegen.procedures import procedure, vector, view
from kinetree.codegen.tied import run
from kinetree.contact.engine.bounces import (
    account_of_bounce,
    account_of_rest,
    way_to_end,
)
from kinetree.contact.engine.contact_frames import slips
from kinetree.contact.engine.drives import (
    resisting_force,
)
from kinetree.contact.engine.energy import (
    Balance,
    Flight,
    energy_of_trees,
    find_excess,
    flying,
    limit_energy,
    sum_up,
    turn_back,
)
from kinetree.contact.engine.known_contacts import remember
from kinetree.contact.engine.mechanism import (
    Mechanism,
    body_velocities,
)
from kinetree.contact.engine.parts import (
    Kernels,
    Parts,
    StepState,
)
from kinetree.contact.engine.products import have_bias
from kinetree.contact.engine.shift import (
    close_at_end,
    deepest,
    shift_positions,
)
from kinetree.contact.newton.problem import Problem, give


@procedure
def add_impulse(p: Problem, fixed: "float[:]", g: int, x: "float[:]"):
    """Add ``Jᵀ lam`` of a group to ``x``, prescribed variables included."""
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
def impulses_at_joints(m: Mechanism, p: Problem, fixed: "float[:]", x: "float[:]"):
    """Write the joint-space impulse ``x = Jᵀ lam`` of all groups."""
    x[: p.nv] = 0.0
    if m.prescribed == 0:
        for g in range(p.groups):
            give(p, p.J, g, view(p.impulse, p.row_first[g]), x)
        x[: p.nv] *= -1.0
        return
    for g in range(p.groups):
        add_impulse(p, fixed, g, x)


@procedure
def account(a: Parts):
    """Compute the step's work of joint forces and rows at the mean velocity."""
    s, m, p, rows, b, k = a.step, a.mechanism, a.problem, a.rows, a.balance, a.kernels
    resisting_force(a.drives, a.springs, m, s.v_m, s.after, s.resist)
    s.resist[: m.nv] += s.across[: m.nv]
    impulses_at_joints(m, p, rows.fixed, s.x)
    if s.immersed == 1:
        run(k.fluid)
    if m.prescribed == 1:
        for i in range(m.nv):
            s.y[i] = s.given[i]
            if m.free[i] == 1.0:
                s.given[i] = (s.after[i] - s.v_m[i]) / s.h
        have_bias(s, m, k)
        s.push[: m.nv] = 0.0
        for g in range(p.groups):
            if g < rows.contacts or rows.contact[g] < rows.stops + rows.dry:
                add_impulse(p, rows.fixed, g, s.push)
        for i in range(m.nv):
            s.given[i] = s.y[i]
            f = s.h * (s.bias[i] - s.tau[i] - s.spring[i]) - s.x[i]
            s.drive[i] = f * (1.0 - m.free[i])
    b.joints[: p.trees] = b.rows[: p.trees] = 0.0
    contact = mean = s.work = 0.0
    for i in range(m.nv):
        f = s.tau[i] + s.spring[i] + s.fluid[i] - s.resist[i]
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
def keep_momentum(s: StepState, m: Mechanism, p: Problem, b: Balance, w: Flight, k: Kernels):
    """Restore the angular momentum that flying islands had at the start of the step."""
    run(k.terms_before)
    sum_up(w, b, m, p, s.v)
    w.spun[: p.trees] = w.spin[: p.trees]
    run(k.terms_after)
    sum_up(w, b, m, p, s.v_e)
    turn_back(w, b, m, p, s.v_e)


@procedure
def foresee(s: StepState, p: Problem, b: Balance):
    """Predict the next step's velocity change: this step's, or free motion after a jump.

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
def move(a: Parts) -> "(int, bool)":
    """Set end-of-step positions and remove penetrations; 0 or a code, and whether any moved."""
    s, m, p, rows, f = a.step, a.mechanism, a.problem, a.rows, a.found
    b, w, k = a.balance, a.flight, a.kernels
    beta = s.h - s.alpha * s.h
    account(a)
    if rows.timed == 1:  # otherwise geometry was looked at where the step ends
        body_velocities(m, s.after, m.twist)
        s.part[0] = beta
        run(k.to_end)
    slips(m, rows, f, m.twist)
    remember(p, rows, f, s.h, True, a.sleep)
    s.residuals[3:5] = 0.0
    for i in range(m.nv):
        s.x[i] = s.after[i] if m.free[i] == 1.0 or s.alpha == 0.0 else s.given_x[i]
    if rows.timed == 1:
        way_to_end(s, m, p, rows, f, beta)
        impulses_at_joints(m, p, rows.fixed, s.y)
        account_of_bounce(s, m, p, rows, b, beta)
    if m.prescribed == 1 or rows.timed == 1:
        run(k.to_shifted)
    if rows.loops > 0:
        close_at_end(m, p, rows, k)
    b.shifts = 0
    deep = deepest(s, m, p, a.work, rows, b, beta)
    w.any = 0
    flies = s.immersed == 0 and flying(w, b, m, p, rows, f, s.tau)
    code = 0
    if deep:
        code = take_out_overlaps(a, beta, flies)
    return code, deep


@procedure
def take_out_overlaps(a: Parts, beta: float, flies: bool) -> int:
    """Shift positions to remove penetrations and loop errors; 0, or a code."""
    s, p, b = a.step, a.problem, a.balance
    if s.conserving == 1:
        run(a.kernels.energy_after)
        energy_of_trees(b, p.trees, b.unshifted)
        b.shifts = 1
    error, islands = p.error, p.islands  # what the velocities have is reported
    code = shift_positions(s, a.mechanism, p, a.work, a.rows, b, a.kernels, beta)
    if code < 0:
        return code
    p.error = error
    p.islands = islands
    if flies:
        keep_momentum(s, a.mechanism, p, b, a.flight, a.kernels)
    return 0


@procedure
def keep_energy(a: Parts):
    """Remove energy that contacts have added in the step, and update the energy balance."""
    s, m, p, b, w = a.step, a.mechanism, a.problem, a.balance, a.flight
    run(a.kernels.energy_after)
    energy_of_trees(b, p.trees, b.total)
    if a.rows.timed == 1:
        account_of_rest(s, p, a.rows, b)
    b.fresh = 1
    if find_excess(b, w, p, a.rows, a.found) and b.shifts == 0:
        keep_momentum(s, m, p, b, w, a.kernels)
        b.fresh = 0
    s.residuals[7], s.residuals[8] = limit_energy(b, w, m, p, s.v_e)
    if s.residuals[7] > 0.0:
        b.fresh = 0
    s.work -= s.residuals[7]
