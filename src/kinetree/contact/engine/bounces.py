"""Bounces at the surface, when bodies arrive there: of second order in the length of the step.

A step looks at bodies in its middle, where one that is about to bounce is still above the ground,
or inside it, by up to half of what it moves in the step. So a step in which something bounces is
taken again, with the bodies that may meet it, its *party*, where they are at the first time of
impact ``τ``: there impulses act in the right directions at the right points. With ``c`` the change
of velocities in a step by all other forces, as foreseen from the last one, and ``d`` the same after
the bounce, when velocity products are others,

    q_τ = q + τ (v + c τ / 2h),    w⁺ = -e (w + c τ/h) + d (h - τ)/h,
    q⁺ = q_τ + (h - τ) (v⁺ - d (h - τ) / 2h).

Bodies that rest on others beside a bounce go on without the last term, which is not theirs. Later
impacts of a party in the same step are put off to the first.
"""

from kinetree.codegen.procedures import local, procedure
from kinetree.contact.collision.sweep import Pairs
from kinetree.contact.collision.tables import Found, Shapes
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.mechanism import Mechanism, divide
from kinetree.contact.engine.parts import Kernels, StepState
from kinetree.contact.engine.products import have_bias
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.engine.targets import arrival, restitution_of, row_velocity
from kinetree.contact.newton.pattern import top
from kinetree.contact.newton.problem import Problem
from kinetree.contact.newton.problem import row_velocity as velocities_of_rows

PASSES_OF_BOUNCES = 5
"""As ``settings.PASSES``, in steps in which something bounces: velocity products change at once."""


@procedure
def look_ahead(s: StepState, m: Mechanism, p: Problem, rows: Rows):
    """Set the velocities that carry bodies to the time at which contacts are evaluated."""
    for i in range(m.nv):
        s.ahead[i] = s.v[i]
        s.later[i] = s.change[i]
        tau = rows.moment[p.node_tree[p.dof_node[i]]] if rows.timed == 1 else -1.0
        if tau >= 0.0:
            s.ahead[i] = (s.v[i] + s.change[i] * tau / (2.0 * s.h)) * (2.0 * tau / s.h)


@procedure
def parties(p: Problem, rows: Rows, shapes: Shapes, pairs: Pairs, f: Found, z: Sleep):
    """Join trees that may collide in the step, or share a loop, into groups (``rows.pile``)."""
    up = rows.pile
    for t in range(p.trees + 1):
        up[t] = t
    for k in range(f.pairs):
        a = z.tree[shapes.body[pairs.near[k, 0]]]
        b = z.tree[shapes.body[pairs.near[k, 1]]]
        if a >= 0 and b >= 0:
            a = top(up, a)
            b = top(up, b)
            up[max(a, b)] = min(a, b)
    for s in range(rows.loops):
        for n in range(rows.loop_first[s] + 1, rows.loop_first[s + 1]):
            a = top(up, p.node_tree[rows.loop_node[n - 1]])
            b = top(up, p.node_tree[rows.loop_node[n]])
            up[max(a, b)] = min(a, b)


@procedure
def find_resting(s: StepState, p: Problem, rows: Rows, f: Found):
    """Mark the trees with loaded rows that do not bounce, in ``rows.rests``."""
    rows.rests[: p.trees + 1] = 0
    for g in range(p.groups):
        still = restitution_of(rows, f, g) == 0.0 or rows.before[g] >= -s.rest
        if still and p.impulse[p.row_first[g]] != 0.0:
            for n in range(p.entry_first[g], p.entry_first[g + 1]):
                rows.rests[p.node_tree[p.entry_node[n]]] = 1


@procedure
def foresee_forces(s: StepState, p: Problem, rows: Rows, f: Found):
    """Predict each velocity's change in the step: free motion where nothing holds it."""
    if rows.timed == 0:
        find_resting(s, p, rows, f)
    for i in range(p.nv):
        if rows.follows == 0 or rows.rests[p.node_tree[p.dof_node[i]]] == 0:
            s.change[i] = s.later[i] = s.free[i] - s.v_m[i]


@procedure
def times_of_impact(
    s: StepState, p: Problem, rows: Rows, f: Found, shapes: Shapes, pairs: Pairs, z: Sleep
) -> bool:
    """Find the impact times of colliding groups with restitution; whether there are any."""
    found = looked = False
    for g in range(p.groups):
        e = restitution_of(rows, f, g)
        if e > 0.0 and rows.before[g] < -s.rest and p.entry_first[g] < p.entry_first[g + 1]:
            if not looked:
                foresee_forces(s, p, rows, f)
                looked = True
            c = row_velocity(p, rows, g, s.change)
            gap = rows.gap[g] + c * s.h / 8.0  # bodies have come to the middle without the change
            t = arrival(gap, rows.before[g], c, s.h / 2.0, s.h)
            if t <= s.h:
                if not found:
                    parties(p, rows, shapes, pairs, f, z)
                    rows.moment[: p.trees + 1] = -1.0
                found = True
                a = top(rows.pile, p.node_tree[p.entry_node[p.entry_first[g]]])
                if rows.moment[a] < 0.0 or t < rows.moment[a]:
                    rows.moment[a] = t
    for i in range(p.trees if found else 0):
        rows.moment[i] = rows.moment[top(rows.pile, i)]
    return found


@procedure
def products_in_parts(s: StepState, m: Mechanism, p: Problem, rows: Rows, k: Kernels):
    """Average the bias forces before and after the impact for bodies that bounce.

    ``later`` becomes ``d``.
    """
    h = s.h
    w = local("float", 6)
    for i in range(m.nv):
        tau = rows.moment[p.node_tree[p.dof_node[i]]]
        if tau >= 0.0:
            s.mean[i] = s.v_m[i] + s.change[i] * tau / (2.0 * h)
    have_bias(s, m, k)
    for i in range(m.nv):
        tau = rows.moment[p.node_tree[p.dof_node[i]]]
        s.x[i] = s.bias[i]
        if tau >= 0.0:
            s.mean[i] = s.after[i] - s.later[i] * (h - tau) / (2.0 * h)
    have_bias(s, m, k)
    for i in range(m.nv):
        tau = rows.moment[p.node_tree[p.dof_node[i]]]
        s.mean[i] = (s.v_m[i] + s.after[i]) / 2.0
        before = s.x[i]
        s.x[i] = 0.0
        if tau >= 0.0:
            s.x[i] = h * (before - s.bias[i])
            s.bias[i] = (tau * before + (h - tau) * s.bias[i]) / h
    divide(p, s.factors, s.x)
    for i in range(m.nv):
        s.x[i] += s.change[i] - s.later[i]
        s.later[i] += s.x[i]
    for g in range(p.groups):
        if rows.left[g] > 0.0:
            velocities_of_rows(p, g, s.x, w)
            for r in range(p.dim[g]):
                p.target[p.row_first[g] + r] -= rows.left[g] * w[r]


@procedure
def way_to_end(s: StepState, m: Mechanism, p: Problem, rows: Rows, f: Found, beta: float):
    """Set the mean velocities ``x`` of bouncing bodies from the impact to the step's end."""
    h = s.h
    find_resting(s, p, rows, f)
    for i in range(m.nv):
        t = p.node_tree[p.dof_node[i]]
        left = h - rows.moment[t]
        if rows.moment[t] >= 0.0:
            d = s.later[i] if rows.rests[t] == 0 else 0.0
            s.x[i] = (s.after[i] - d * left / (2.0 * h)) * (left / beta)


@procedure
def account_of_bounce(s: StepState, m: Mechanism, p: Problem, rows: Rows, b: Balance, beta: float):
    """Correct the work of rows and joints for trees that bounce within the step.

    ``y`` are the impulses of the rows at the joints.
    """
    h = s.h
    for t in range(p.trees):
        if rows.moment[t] >= 0.0:
            s.work -= b.rows[t]
            b.rows[t] = 0.0
    for i in range(m.nv):
        t = p.node_tree[p.dof_node[i]]
        tau = rows.moment[t]
        if tau >= 0.0:
            before = s.v_m[i] + s.change[i] * tau / h
            after = s.after[i] - s.later[i] * (h - tau) / h
            held = s.y[i] * (before + after) / 2.0
            b.rows[t] += held
            way = tau * (s.v_m[i] + before) / 2.0 + beta * s.x[i] - h * s.mean[i]
            f = s.tau[i] + s.spring[i] - s.resist[i]
            b.joints[t] += f * way
            s.work += held + f * way


@procedure
def account_of_rest(s: StepState, p: Problem, rows: Rows, b: Balance):
    """Set the rows' work in bouncing islands to the unexplained energy loss, at most 0.

    ``b.total`` is known. Dampers resist in the whole step, not when something hits.
    """
    for t in range(p.trees):
        b.put[t] = 0.0
    for t in range(p.trees):
        if rows.moment[t] >= 0.0 and b.island[t] >= 0:
            end = b.unshifted[t] if b.shifts == 1 else b.total[t]
            b.put[b.island[t]] += end - b.energy[t] - b.joints[t]
    for t in range(p.trees):
        if rows.moment[t] >= 0.0 and b.island[t] >= 0:
            end = b.unshifted[t] if b.shifts == 1 else b.total[t]
            held = end - b.energy[t] - b.joints[t] if b.put[b.island[t]] < 0.0 else 0.0
            s.work += held - b.rows[t]
            b.rows[t] = held
