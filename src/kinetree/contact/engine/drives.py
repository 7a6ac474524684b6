"""Forces of actuators in a step: with stiffness and damping, and within their bounds.

The force of an actuator in a step is

    f = clip(f_0 - lead rᵀ v - lag rᵀ Δv, effort),        tau = clip(R f + w, joint efforts) - w,

with ``f_0`` where the step begins, activations, moving arms and the gravity compensation ``w``
that counts as a force of actuators being those in its middle, and
``lead`` and ``lag`` by ``mechanism.resistance``: servos are implicit. Which bounds are reached is
part of the solution. A step is solved with the bounds that ``f_0`` reaches; where the velocities
that it leads to reach others, it is taken again with those.
"""

from kinetree.codegen.procedures import procedure
from kinetree.contact.engine.activations import next_activation, setpoint
from kinetree.contact.engine.actuator_tables import Actuators
from kinetree.contact.engine.mechanism import Mechanism, resistance
from kinetree.contact.engine.muscles import muscle_force
from kinetree.contact.newton.problem import Problem

INSIDE = 1e-9
"""Part of a bound by which a force may be beyond it."""

ATTEMPTS = 4
"""Attempts in which bounds may be left again; later ones only add some, and come to an end."""


# --- Forces of a step ----------------------------------------------------------------------------


@procedure
def side(f: float, low: float, high: float) -> int:
    """Side of the bounds that a force has reached: 1 upper, -1 lower, 0 between them."""
    if f >= high:
        return 1
    return -1 if f <= low else 0


@procedure
def most_at(a: Actuators, c: int, speed: float) -> float:
    """Driving force limit of torque–speed curve ``c`` at a speed; the stall value below 0."""
    first = a.curve_first[c]
    last = a.curve_first[c + 1] - 1
    if speed <= 0.0:
        return a.curve[first, 1]
    for n in range(first, last):
        if speed < a.curve[n + 1, 0]:
            slope = (a.curve[n + 1, 1] - a.curve[n, 1]) / (a.curve[n + 1, 0] - a.curve[n, 0])
            return a.curve[n, 1] + (speed - a.curve[n, 0]) * slope
    return a.curve[last, 1]


@procedure
def limit_by_speed(a: Actuators, v: "float[:]"):
    """Set effort limits of motors with torque–speed curves at joint velocities ``v``."""
    for c in range(a.curves):
        k = a.curve_of[c]
        speed = 0.0
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            speed += a.arm[j] * v[a.arm_v[j]]
        high = most_at(a, c, speed)
        low = -most_at(a, c, -speed)
        for n in range(2):
            a.effort[k, n] = min(max(a.own_effort[k, n], low), high)


@procedure
def request_forces(a: Actuators, q: "float[:]", v: "float[:]", v_m: "float[:]", h: float):
    """Set all actuators' forces before limits, stiffness and damping at mid-step.

    Activations are those in the middle of the step of ``h`` seconds, and so are arms that move,
    with velocities ``v_m`` there: their lengths are taken back along these.
    """
    for n in range(a.traced):
        k = a.traced_of[n]
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            a.arm[j] = a.dense[n * a.nv + a.arm_v[j]]
    n = 0
    for k in range(a.count):
        x = min(max(a.u[k], a.control[k, 0]), a.control[k, 1])
        if a.state[k] >= 0:
            x = next_activation(a, k, a.activation[a.state[k]], h / 2.0)
        l = a.offset[k]
        ld = 0.0
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            if a.moving[k] == 0:
                l += a.arm[j] * q[a.arm_q[j]]
                ld += a.arm[j] * v[a.arm_v[j]]
            else:
                ld += a.arm[j] * v_m[a.arm_v[j]]
        if a.moving[k] == 1:
            l = a.length[n] - ld * h / 2.0
            n += 1
        z = 0.0
        if a.integral[k] >= 0:
            a.midway[k] = l + ld * h / 2.0
            z = a.activation[a.integral[k]]
            z += (setpoint(a, k, h / 4.0) - a.integral_zero[k] - l - ld * h / 4.0) * h / 2.0
            z = a.integral_gain[k] * min(max(z, a.integral_range[k, 0]), a.integral_range[k, 1])
        slack = a.rest[k, 0] < l and l < a.rest[k, 1]
        l -= min(max(l, a.rest[k, 0]), a.rest[k, 1])
        f = (a.gain[k, 0] + a.gain[k, 1] * l + a.gain[k, 2] * ld) * x
        f += a.bias[k, 0] + a.bias[k, 1] * l + a.bias[k, 2] * ld + z
        by_l = 0.0 if slack else a.gain[k, 1] * x + a.bias[k, 1]
        by_ld = a.gain[k, 2] * x + a.bias[k, 2]
        if a.muscle[k, 2] > 0.0:
            f, by_l, by_ld = muscle_force(a.muscle[k], l, ld, x)
        a.request[k] = f
        a.stiff[k] = max(-by_l, 0.0)
        a.damp[k] = max(-by_ld, 0.0)
        a.lead[k] = a.lag[k] = 0.0
    a.bound[: a.count] = 0
    a.joint_bound[: a.nv] = 0
    a.attempts = 0
    limit_by_speed(a, v)
    if a.limited == 1:
        reach_bounds(a, v, v)


@procedure
def exert(a: Actuators, held: "float[:]", tau: "float[:]"):
    """Write the joint forces of actuators and held forces, without implicit resistance."""
    if a.acts == 0:
        tau[: a.nv] = held[: a.nv]
        return
    tau[: a.nv] = 0.0
    for k in range(a.count):
        f = a.request[k]
        if a.bound[k] != 0:
            f = a.effort[k, 1] if a.bound[k] > 0 else a.effort[k, 0]
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            tau[a.arm_v[j]] += a.arm[j] * f
    for i in range(a.nv):
        if a.joint_bound[i] != 0:
            tau[i] = a.most[i, 1] if a.joint_bound[i] > 0 else a.most[i, 0]
            tau[i] -= a.compensation[i]
        tau[i] += held[i]


@procedure
def acts_on(a: Actuators, n: int) -> bool:
    """Whether neither variable of pair ``n`` of moment arms is at a joint force limit."""
    i = a.arm_v[a.pair[n, 0]]
    j = a.arm_v[a.pair[n, 1]]
    return a.joint_bound[i] == 0 and a.joint_bound[j] == 0


@procedure
def add_resistance(a: Actuators, m: Mechanism, p: Problem, h: float, alpha: float):
    """Set actuators' implicit ``lead`` and ``lag``, and add ``h lag r rᵀ`` to the matrix ``M``.

    Where ``M`` has no place for a product of two arms, since neither joint carries the other, its
    absolute value is added to the diagonal, which is no less; ``add_force_across`` has the rest.
    """
    if a.acts == 0:
        return
    for k in range(a.count):
        a.lead[k] = a.lag[k] = mobility = 0.0
        if a.stiff[k] > 0.0 or a.damp[k] > 0.0:
            for j in range(a.arm_first[k], a.arm_first[k + 1]):
                mobility += a.arm[j] * a.arm[j] / p.M[a.own[j]]
        if mobility > 0.0:
            a.lead[k], a.lag[k] = resistance(a.stiff[k], a.damp[k], 1.0 / mobility, h, alpha)
    for k in range(a.count):
        if a.lag[k] == 0.0 or a.bound[k] != 0:
            continue
        for n in range(a.pair_first[k], a.pair_first[k + 1]):
            i = a.pair[n, 0]
            j = a.pair[n, 1]
            x = h * a.lag[k] * a.arm[i] * a.arm[j]
            x *= m.free[a.arm_v[i]] * m.free[a.arm_v[j]]
            if not acts_on(a, n):
                continue
            if a.pair_at[n, 0] >= 0:
                p.M[a.pair_at[n, 0]] += x
                if a.pair_at[n, 1] >= 0:
                    p.M[a.pair_at[n, 1]] += x
            else:
                p.M[a.own[i]] += abs(x)
                p.M[a.own[j]] += abs(x)


@procedure
def resisting_force(
    a: Actuators,
    springs: Actuators,
    m: Mechanism,
    v: "float[:]",
    after: "float[:]",
    force: "float[:]",
):
    """Implicit resisting force of joints, actuators and springs for a velocity change.

    That is what the forces that they exert where a step begins are less by, but for what
    ``add_force_across`` adds.
    """
    for i in range(m.nv):
        force[i] = m.lead[i] * v[i] + m.lag[i] * (after[i] - v[i])
    add_resisting_force(a, v, after, force)
    add_resisting_force(springs, v, after, force)


@procedure
def add_resisting_force(a: Actuators, v: "float[:]", after: "float[:]", force: "float[:]"):
    """Add actuators' resisting force ``lead r rᵀ v + lag r rᵀ (after - v)``."""
    if a.acts == 0:
        return
    for k in range(a.count):
        if a.lag[k] == 0.0 or a.bound[k] != 0:
            continue
        rate = 0.0
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            if a.joint_bound[a.arm_v[j]] == 0:
                rate += a.arm[j] * v[a.arm_v[j]]
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            if a.joint_bound[a.arm_v[j]] == 0:
                force[a.arm_v[j]] += a.arm[j] * a.lead[k] * rate
        for n in range(a.pair_first[k], a.pair_first[k + 1]):
            if not acts_on(a, n):
                continue
            i = a.arm_v[a.pair[n, 0]]
            j = a.arm_v[a.pair[n, 1]]
            x = a.lag[k] * a.arm[a.pair[n, 0]] * a.arm[a.pair[n, 1]]
            if a.pair_at[n, 0] < 0:
                force[i] += abs(x) * (after[i] - v[i])
                force[j] += abs(x) * (after[j] - v[j])
            else:
                force[i] += x * (after[j] - v[j])
                if i != j:
                    force[j] += x * (after[i] - v[i])


@procedure
def add_force_across(a: Actuators, v: "float[:]", mean: "float[:]", force: "float[:]"):
    """Add resisting forces of pairs of moment arms that have no entry in ``M``.

    ``mean`` is the mean velocity as it is foreseen, or that of the last pass. Where it is the one
    of the step, this has all of ``r rᵀ``; otherwise nothing grows, since what ``M`` has is no less.
    """
    if a.acts == 0 or a.crosses == 0:
        return
    for k in range(a.count):
        if a.lag[k] == 0.0 or a.bound[k] != 0:
            continue
        for n in range(a.pair_first[k], a.pair_first[k + 1]):
            if a.pair_at[n, 0] >= 0 or not acts_on(a, n):
                continue
            i = a.arm_v[a.pair[n, 0]]
            j = a.arm_v[a.pair[n, 1]]
            x = 2.0 * a.lag[k] * a.arm[a.pair[n, 0]] * a.arm[a.pair[n, 1]]
            force[i] += x * (mean[j] - v[j]) - abs(x) * (mean[i] - v[i])
            force[j] += x * (mean[i] - v[i]) - abs(x) * (mean[j] - v[j])


# --- Bounds --------------------------------------------------------------------------------------


@procedure
def next_bound(bound: int, reached: int, attempts: int) -> int:
    """Force bound to assume next, when the solution with ``bound`` reached bound ``reached``.

    From one bound to the other a force passes what is between: a stiff servo that is close to its
    target is there.
    """
    if bound * reached < 0:
        reached = 0
    if attempts >= ATTEMPTS and reached == 0:
        return bound
    return reached


@procedure
def reach_bounds(a: Actuators, v: "float[:]", after: "float[:]") -> bool:
    """Update which force bounds actuators reach at velocities ``after``; whether any changed."""
    changed = False
    a.joint_force[: a.nv] = 0.0
    for k in range(a.count):
        f = a.request[k]
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            i = a.arm_v[j]
            f -= a.arm[j] * (a.lead[k] * v[i] + a.lag[k] * (after[i] - v[i]))
        slack = INSIDE * abs(f)
        reached = side(f, a.effort[k, 0] - slack, a.effort[k, 1] + slack)
        f = min(max(f, a.effort[k, 0]), a.effort[k, 1])
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            a.joint_force[a.arm_v[j]] += a.arm[j] * f
        if reached != a.bound[k]:
            reached = next_bound(a.bound[k], reached, a.attempts)
            changed = changed or reached != a.bound[k]
            a.bound[k] = reached
    for i in range(a.nv):
        f = a.joint_force[i] + a.compensation[i]
        slack = INSIDE * abs(f)
        reached = side(f, a.most[i, 0] - slack, a.most[i, 1] + slack)
        if reached != a.joint_bound[i]:
            reached = next_bound(a.joint_bound[i], reached, a.attempts)
            changed = changed or reached != a.joint_bound[i]
            a.joint_bound[i] = reached
    return changed


@procedure
def other_bounds(a: Actuators, v: "float[:]", after: "float[:]") -> bool:
    """Whether the step must be repeated because actuators reached other force bounds."""
    if a.acts == 0 or a.limited == 0:
        return False
    a.attempts += 1
    return reach_bounds(a, v, after)
