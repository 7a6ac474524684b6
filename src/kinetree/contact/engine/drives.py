"""Actuators as tables, and what they do in a step: forces, stiffness, damping, bounds, activations.

All is in the variables of all joints, so that couplings, which are rows of a step, change nothing:
arms of joints of one variable and of tendons are constant, those of other joints, of frames and of
loop joints come from a kernel. The force of an actuator in a step is

    f = clip(f_0 - lead rᵀ v - lag rᵀ Δv, effort),        tau = clip(R f + w, joint efforts) - w,

with ``f_0`` where the step begins, activations, moving arms and the gravity compensation ``w``
that counts as a force of actuators being those in its middle, and
``lead`` and ``lag`` by ``mechanism.resistance``: servos are implicit. Which bounds are reached is
part of the solution. A step is solved with the bounds that ``f_0`` reaches; where the velocities
that it leads to reach others, it is taken again with those.
"""

import itertools
from math import exp

import numpy as np

from kinetree.codegen.procedures import ProcedureTable, procedure, record
from kinetree.contact.engine.mechanism import Mechanism, resistance
from kinetree.contact.engine.muscles import muscle_activation, muscle_force, numbers_of
from kinetree.contact.newton.problem import Problem
from kinetree.model.actuator import ACTIVATIONS
from kinetree.model.limits import counted_compensation, effort_bounds, position_index

INSIDE = 1e-9
"""Part of a bound by which a force may be beyond it."""

ATTEMPTS = 4
"""Attempts in which bounds may be left again; later ones only add some, and come to an end."""


@record
class Actuators:
    """Actuators, the variables that they drive, and their forces in a step.

    Attributes:
        count: how many;  nv: variables of all joints;  acts: 1 where they exert forces;  reads: 1
            where controls, activations and the time of these are the first inputs of forces.
        limited: 1 where an effort is bounded.
        adheres: bodies that they pull to what these touch, 0 for others: see ``adhesion``;
            sticks: gears of these.
        gain: of the control: value, by length, by velocity;  bias: likewise.
        control: smallest and largest control;  effort: likewise, of the force before the gear.
        muscle: ``muscles.numbers_of``.
        state: number of the activation, or -1;  kind: of activation;  time, fall: its time
            constants [s];  range: of activations.
        integral: number of the integral among the states, or -1;  states: how many there are;
            integral_gain: force for a unit of it;  integral_zero: length that it counts from;
            integral_range: smallest and largest;  midway: length in the middle of the step.
        curves: actuators with a torque–speed curve;  curve_of: their numbers;  curve_first: corners
            of a curve are ``curve[curve_first[c]:curve_first[c + 1]]``;  curve: speed and force;
            own_effort: of all actuators, their ``effort`` without curves.
        offset: length where all positions are zero;  rest: lengths between which a spring is slack.
        arm_first: arms of an actuator are ``arm[arm_first[k]:arm_first[k + 1]]``.
        arm: joint force for a unit of force;  arm_q, arm_v: position and velocity variable;
            own: where the inertia of that variable is in ``M``.
        moving: 1 for actuators whose arms and lengths change;  traced: how many these are;
            traced_of: their numbers;  length, dense: their lengths and arms, rows of nv numbers.
        pair_first: pairs of arms of an actuator;  pair: the two arms;  pair_at: the two places of
            their product in ``M``, -1 for none;  crosses: 1 where one has none.
        most: of the velocity variables: smallest and largest joint force.
        counts: 1 where gravity compensation counts as a force of actuators;  counted: whether it
            does anywhere;  compensation: this force in the middle of the step.
        u, activation: controls and activations of the step.
        request: forces before bounds where the step begins;  stiff, damp: against lengths and
            their rates;  lead, lag: of the step.
        bound: 1 at the upper bound, -1 at the lower, 0 between;  joint_bound: of the variables.
        joint_force: of the variables, before their bounds.
        attempts: to find the bounds of a step.
    """

    count: int
    nv: int
    acts: int
    reads: int
    limited: int
    adheres: "int[:]"
    sticks: "float[:]"
    gain: "float[:, 3]"
    bias: "float[:, 3]"
    control: "float[:, 2]"
    effort: "float[:, 2]"
    state: "int[:]"
    kind: "int[:]"
    time: "float[:]"
    fall: "float[:]"
    muscle: "float[:, 9]"
    range: "float[:, 2]"
    integral: "int[:]"
    states: int
    integral_gain: "float[:]"
    integral_zero: "float[:]"
    integral_range: "float[:, 2]"
    midway: "float[:]"
    curves: int
    curve_of: "int[:]"
    curve_first: "int[:]"
    curve: "float[:, 2]"
    own_effort: "float[:, 2]"
    offset: "float[:]"
    rest: "float[:, 2]"
    arm_first: "int[:]"
    arm: "float[:]"
    arm_q: "int[:]"
    arm_v: "int[:]"
    own: "int[:]"
    moving: "int[:]"
    traced: int
    traced_of: "int[:]"
    length: "float[:]"
    dense: "float[:]"
    pair_first: "int[:]"
    pair: "int[:, 2]"
    pair_at: "int[:, 2]"
    crosses: int
    most: "float[:, 2]"
    counts: "int[:]"
    counted: int
    compensation: "float[:]"
    u: "float[:]"
    activation: "float[:]"
    request: "float[:]"
    stiff: "float[:]"
    damp: "float[:]"
    lead: "float[:]"
    lag: "float[:]"
    bound: "int[:]"
    joint_bound: "int[:]"
    joint_force: "float[:]"
    attempts: int


# --- Tables --------------------------------------------------------------------------------------


def no_actuators(nv) -> Actuators:
    """No actuators, for a mechanism with ``nv`` variables."""
    whole, bounds = np.zeros(1, dtype=np.int64), np.zeros(nv, dtype=np.int64)
    none = np.full((nv, 2), [-np.inf, np.inf])
    return Actuators(
        count=0, nv=nv, arm_first=whole, pair_first=whole, joint_bound=bounds, most=none,
        joint_force=np.zeros(nv), counts=bounds.copy(), compensation=np.zeros(nv),
    )  # fmt: skip


def moving_arms(model) -> list[int]:
    """Numbers of the actuators whose lengths or arms are not those of joints of one variable."""
    return [
        k for k, a in enumerate(model.actuators)
        if not (_is_sum(model, a) or (a.joint and _is_single(model.uncoupled.joint[a.joint])))
        and not a.adhesion
    ]  # fmt: skip


def _is_sum(model, a):
    """Whether an actuator pulls a tendon over joints alone, whose arms are constant."""
    return bool(a.tendon) and not model.tendon(a.tendon).path


def variables_of(full, tendon):
    """Velocity variables that a tendon may have arms on, whether it winds or not, ascending."""
    slices = (full.v_slice[i] for i in tendon.moves_with(full))
    return [k for at in slices for k in range(at.start, at.stop)]


def _is_single(joint):
    """Whether a joint has one variable."""
    return joint.nv == joint.nq == 1


def actuators_of(model, problem, kernel=None, *, reads=False, drive=None) -> Actuators:
    """The actuators of a model as tables.

    Args:
        model: the mechanism.
        problem: of its spanning tree with all joints.
        kernel: lengths and arms of ``moving_arms`` from positions, or None where there are none.
        reads: whether controls are inputs of the forces of a step.
        drive: ``Drive`` with torque–speed curves of actuators, or None.
    """
    full, n = model.uncoupled, len(model.actuators)
    moving, at = moving_arms(model), position_index(full)
    arms = _constant_arms(full)
    if kernel is not None:
        arms[:, moving] = arms_that_occur(full, kernel).T
    for k, a in enumerate(full.actuators):
        if a.tendon and k in moving:
            arms[variables_of(full, full.tendon(a.tendon)), k] = 1.0
    used = [np.flatnonzero(arms[:, k]) for k in range(n)]
    first = np.cumsum([0, *map(len, used)]).astype(np.int64)
    arm_v = np.concatenate([np.zeros(0, dtype=np.int64), *used]).astype(np.int64)
    offset = [a.gear[0] * full.tendon(a.tendon).offset if a.tendon else 0.0
              for a in full.actuators]  # fmt: skip
    most, counts = effort_bounds(full), counted_compensation(full).astype(np.int64)

    def table(name, width):
        values = [getattr(a, name) for a in full.actuators]
        return np.array(values, dtype=float).reshape(n, width)

    effort = table("effort", 2)
    motors = () if drive is None else drive.motors
    bounded = motors or np.any(np.isfinite(effort)) or np.any(np.isfinite(most))
    return Actuators(
        count=n, nv=full.nv, acts=int(reads), reads=int(reads), limited=int(bool(bounded)),
        adheres=np.array([full.frame(a.frame).body if a.adhesion else 0 for a in full.actuators],
                         dtype=np.int64),
        sticks=np.array([a.gear[0] for a in full.actuators], dtype=float),
        gain=table("gain", 3), bias=table("bias", 3),
        control=table("control", 2), effort=effort,
        **states_in_tables(full.actuators), integral_range=table("integral_range", 2),
        kind=np.array([_NUMBERS[a.activation] for a in full.actuators], dtype=np.int64),
        time=np.array([a.time_constant or 0.0 for a in full.actuators], dtype=float),
        fall=np.array([a.deactivation_time or 0.0 for a in full.actuators], dtype=float),
        muscle=np.array([numbers_of(a.muscle) for a in full.actuators]).reshape(n, 9),
        range=table("activation_range", 2), rest=np.zeros((n, 2)), **curves_of(motors, effort),
        offset=np.array(offset, dtype=float), arm_first=first, arm_v=arm_v,
        arm=np.array([arms[i, k] for k in range(n) for i in used[k]], dtype=float),
        arm_q=at[arm_v].astype(np.int64),
        moving=np.isin(np.arange(n), moving).astype(np.int64), traced=len(moving),
        traced_of=np.array(moving, dtype=np.int64), length=np.zeros(len(moving)),
        dense=np.zeros(len(moving) * full.nv), compensation=np.zeros(full.nv), most=most,
        counts=counts, counted=int(counts.any()), **pairs_of(problem, first, arm_v),
        u=np.zeros(n),
        bound=np.zeros(n, dtype=np.int64), joint_bound=np.zeros(full.nv, dtype=np.int64),
        joint_force=np.zeros(full.nv),
        **{name: np.zeros(n) for name in ("request", "stiff", "damp", "lead", "lag")},
    )  # fmt: skip


def states_in_tables(actuators) -> dict:
    """Activations and integrals of actuators, by name."""
    follows = np.array([bool(a.activation) for a in actuators], dtype=bool)
    integrates = np.array([bool(a.integral) for a in actuators], dtype=bool)
    last = np.cumsum(follows.astype(int) + integrates) - 1
    count = int(follows.sum() + integrates.sum())
    return {
        "state": np.where(follows, last - integrates, -1).astype(np.int64),
        "integral": np.where(integrates, last, -1).astype(np.int64),
        "integral_gain": np.array([a.integral for a in actuators], dtype=float),
        "integral_zero": np.array([a.integral_zero for a in actuators], dtype=float),
        "states": count,
        "activation": np.zeros(count),
        "midway": np.zeros(len(actuators)),
    }


def curves_of(motors, effort) -> dict:
    """Torque–speed curves of motors, and efforts of all actuators beside them, by name."""
    corners = [np.array([m.curve.speeds, m.curve.forces]).T for m in motors]
    return {
        "curves": len(motors),
        "curve_of": np.array([m.actuator for m in motors], dtype=np.int64),
        "curve_first": np.cumsum([0, *map(len, corners)]).astype(np.int64),
        "curve": np.concatenate([np.zeros((0, 2)), *corners]),
        "own_effort": effort.copy(),
    }


def _constant_arms(full):
    """Arms on joints of one variable and on tendons over joints, (nv, n), else zero."""
    arms = np.zeros((full.nv, len(full.actuators)))
    for k, a in enumerate(full.actuators):
        if _is_sum(full, a):
            tendon = full.tendon(a.tendon)
            for i, c in zip(tendon.joints, tendon.coefficients, strict=True):
                arms[full.v_slice[i].start, k] += a.gear[0] * c
        elif a.joint and _is_single(full.joint[a.joint]):
            arms[full.v_slice[a.joint].start, k] = a.gear[0]
    return arms


def arms_that_occur(full, kernel):
    """Sizes of arms, zero for those that always are, by configurations all over the place."""
    rng = np.random.default_rng(0)
    places = [
        np.concatenate([np.zeros(0), *(joint.random(rng) for joint in full.joint[1:])])
        for _ in range(3)
    ]
    return np.sum([np.abs(kernel.reference((q,))[1]) for q in places], axis=0)


def pairs_of(problem, first, arm_v) -> dict:
    """Places of arms in ``M``, and pairs of the arms of every actuator with theirs, by name."""
    begin, pairs, places = [0], [], []
    for low, high in itertools.pairwise(first):
        for i in range(low, high):
            for j in range(low, i + 1):
                pairs.append((i, j))
                places.append(_place(problem, arm_v[i], arm_v[j]))
        begin.append(len(pairs))
    numbers = [np.array(x, dtype=np.int64) for x in (begin, pairs, places)]
    own = np.array([_place(problem, i, i)[0] for i in arm_v], dtype=np.int64)
    pair, place = (x.reshape(-1, 2) for x in numbers[1:])
    crosses = int(np.any(place[:, 0] < 0))
    return {"own": own, "pair_first": numbers[0], "pair": pair, "pair_at": place,
            "crosses": crosses}  # fmt: skip


def _place(problem, k, l):
    """Where entries ``(k, l)`` and ``(l, k)`` of the mass matrix are in ``M``, -1 for nowhere."""
    k, l = max(k, l), min(k, l)
    a, b = int(problem.dof_node[k]), int(problem.dof_node[l])
    i, j, wide = k - problem.node_first[a], l - problem.node_first[b], problem.node_count[b]
    for n in range(problem.node_blocks_first[a], problem.node_blocks_first[a + 1]):
        if problem.block_ancestor[n] == b:
            at = int(problem.block_at[n])
            other = at + j * wide + i if a == b and i != j else -1
            return int(at + i * wide + j), int(other)
    return -1, -1


# --- Forces of a step ----------------------------------------------------------------------------


@procedure
def side(f: float, low: float, high: float) -> int:
    """1 for a force at an upper bound or beyond it, -1 at a lower one, 0 between."""
    if f >= high:
        return 1
    return -1 if f <= low else 0


@procedure
def most_at(a: Actuators, c: int, speed: float) -> float:
    """Largest driving force of a curve at a speed; that at rest for negative ones, which brake."""
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
    """Efforts of motors with a torque–speed curve at velocities ``v``."""
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
    """Forces of actuators before bounds, stiffness and damping, and the bounds that they reach.

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
    """Joint forces: those held, and those of the actuators without what resists in the step."""
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
    """Whether neither variable of a pair of arms is at its bound."""
    i = a.arm_v[a.pair[n, 0]]
    j = a.arm_v[a.pair[n, 1]]
    return a.joint_bound[i] == 0 and a.joint_bound[j] == 0


@procedure
def add_resistance(a: Actuators, m: Mechanism, p: Problem, h: float, alpha: float):
    """``lead`` and ``lag`` of all actuators, and ``h lag r rᵀ`` of those between bounds in ``M``.

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
    a: Actuators, springs: Actuators, m: Mechanism, v: "float[:]", after: "float[:]",
    force: "float[:]",
):  # fmt: skip
    """``lead v + lag (after - v)`` of joints, actuators and springs of tendons and loops.

    That is what the forces that they exert where a step begins are less by, but for what
    ``add_force_across`` adds.
    """
    for i in range(m.nv):
        force[i] = m.lead[i] * v[i] + m.lag[i] * (after[i] - v[i])
    add_resisting_force(a, v, after, force)
    add_resisting_force(springs, v, after, force)


@procedure
def add_resisting_force(a: Actuators, v: "float[:]", after: "float[:]", force: "float[:]"):
    """Add ``lead r rᵀ v + lag r rᵀ (after - v)`` of actuators, the latter as ``M`` has it."""
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
    """Add what ``lag r rᵀ Δv`` has more than ``M``: pairs of arms without a place there.

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
    """The bound of the next attempt, where a solution with ``bound`` has ``reached`` another.

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
    """Take the bounds that forces reach at velocities ``after`` a step: have any changed?"""
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
    """Whether a step has to be taken again with other bounds, which it has led to."""
    if a.acts == 0 or a.limited == 0:
        return False
    a.attempts += 1
    return reach_bounds(a, v, after)


# --- Activations ---------------------------------------------------------------------------------


@procedure
def integrate(u: float, x: float, rise: float, fall: float, h: float) -> float:
    """``x' = u``."""
    return x + u * h


@procedure
def low_pass(u: float, x: float, rise: float, fall: float, h: float) -> float:
    """``x' = (u - x) / rise``."""
    return u + (x - u) * exp(-h / rise) if rise > 0.0 else u


@procedure
def ramp(u: float, x: float, rise: float, fall: float, h: float) -> float:
    """``x' = ±1 / rise`` until it is ``u``."""
    most = h / rise if rise > 0.0 else 0.0
    return x + min(max(u - x, -most), most)


_NUMBERS = {name: k for k, name in enumerate(ACTIVATIONS)}
MOVING = {"integrator": integrate, "filter": low_pass, "muscle": muscle_activation, "ramp": ramp}
FOLLOWING = ProcedureTable({_NUMBERS[name]: p for name, p in MOVING.items()}, low_pass)
"""Activations after ``h`` seconds with a held control, by number: see ``algorithms.actuators``."""


@procedure
def next_activation(a: Actuators, k: int, x: float, h: float) -> float:
    """Activation ``x`` after ``h`` seconds with a held control: see ``algorithms.actuators``."""
    u = min(max(a.u[k], a.control[k, 0]), a.control[k, 1])
    x = FOLLOWING[a.kind[k]](u, x, a.time[k], a.fall[k], h)
    return min(max(x, a.range[k, 0]), a.range[k, 1])


@procedure
def setpoint(a: Actuators, k: int, h: float) -> float:
    """Setpoint of an integral after ``h`` seconds with a held control."""
    if a.state[k] >= 0:
        return next_activation(a, k, a.activation[a.state[k]], h)
    return min(max(a.u[k], a.control[k, 0]), a.control[k, 1])


@procedure
def follow_controls(a: Actuators, h: float):
    """Let all activations go on for ``h`` seconds with held controls."""
    for k in range(a.count):
        n = a.state[k]
        if n >= 0:
            a.activation[n] = next_activation(a, k, a.activation[n], h)


@procedure
def add_up_errors(a: Actuators, h: float):
    """Let integrals go on for a step of ``h`` seconds, whose middle ``request_forces`` has seen."""
    for k in range(a.count):
        n = a.integral[k]
        if n >= 0:
            z = a.activation[n] + h * (setpoint(a, k, h / 2.0) - a.integral_zero[k] - a.midway[k])
            a.activation[n] = min(max(z, a.integral_range[k, 0]), a.integral_range[k, 1])


@procedure
def read_controls(a: Actuators, inputs: "float[:]", t: float):
    """Take controls from inputs of forces, and activations, which follow them since some time.

    Integrals are those of this time.
    """
    for k in range(a.count):
        a.u[k] = inputs[k]
    for n in range(a.states):
        a.activation[n] = inputs[a.count + n]
    if a.states > 0:
        follow_controls(a, t - inputs[a.count + a.states])
