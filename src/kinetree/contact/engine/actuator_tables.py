"""Actuators as tables, in the variables of all joints.

Couplings, which are rows of a step, change nothing in these: arms of joints of one variable and of
tendons are constant, those of other joints, of frames and of loop joints come from a kernel.
"""

import itertools

import numpy as np

from kinetree.codegen.procedures import record
from kinetree.contact.engine.muscles import numbers_of
from kinetree.model.actuator import ACTIVATIONS
from kinetree.model.limits import counted_compensation, effort_bounds, position_index

ACTIVATION_NUMBERS = {name: k for k, name in enumerate(ACTIVATIONS)}


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


def no_actuators(nv) -> Actuators:
    """``Actuators`` table without actuators, for a mechanism with ``nv`` velocity variables."""
    whole, bounds = np.zeros(1, dtype=np.int64), np.zeros(nv, dtype=np.int64)
    none = np.full((nv, 2), [-np.inf, np.inf])
    return Actuators(
        count=0,
        nv=nv,
        arm_first=whole,
        pair_first=whole,
        joint_bound=bounds,
        most=none,
        joint_force=np.zeros(nv),
        counts=bounds.copy(),
        compensation=np.zeros(nv),
    )


def moving_arms(model) -> list[int]:
    """Numbers of the actuators whose moment arms may change with the configuration."""
    return [
        k
        for k, a in enumerate(model.actuators)
        if not (_is_sum(model, a) or (a.joint and _is_single(model.uncoupled.joint[a.joint])))
        and not a.adhesion
    ]


def _is_sum(model, a):
    """Whether an actuator pulls a tendon that is a linear sum of joint positions."""
    return bool(a.tendon) and not model.tendon(a.tendon).path


def variables_of(full, tendon):
    """Ascending velocity variables on which a tendon may have moment arms."""
    slices = (full.v_slice[i] for i in tendon.moves_with(full))
    return [k for at in slices for k in range(at.start, at.stop)]


def _is_single(joint):
    """Whether a joint has one position and one velocity variable."""
    return joint.nv == joint.nq == 1


def actuators_of(model, problem, kernel=None, *, reads=False, drive=None) -> Actuators:
    """``Actuators`` table of a model, for the compiled step.

    Args:
        model: the mechanism.
        problem: of its spanning tree with all joints.
        kernel: lengths and arms of ``moving_arms`` from positions, or None where there are none.
        reads: whether controls are inputs of the forces of a step.
        drive: ``Drive`` with torque–speed curves of actuators, or None.
    """
    full, n = model.uncoupled, len(model.actuators)
    most, counts = effort_bounds(full), counted_compensation(full).astype(np.int64)
    own = attributes_in_tables(full)
    motors = () if drive is None else drive.motors
    bounded = motors or np.any(np.isfinite(own["effort"])) or np.any(np.isfinite(most))
    return Actuators(
        count=n,
        nv=full.nv,
        acts=int(reads),
        reads=int(reads),
        limited=int(bool(bounded)),
        **own,
        **states_in_tables(full.actuators),
        **curves_of(motors, own["effort"]),
        **arms_in_tables(full, problem, moving_arms(model), kernel),
        rest=np.zeros((n, 2)),
        compensation=np.zeros(full.nv),
        most=most,
        counts=counts,
        counted=int(counts.any()),
        u=np.zeros(n),
        bound=np.zeros(n, dtype=np.int64),
        joint_bound=np.zeros(full.nv, dtype=np.int64),
        joint_force=np.zeros(full.nv),
        **{name: np.zeros(n) for name in ("request", "stiff", "damp", "lead", "lag")},
    )


def attributes_in_tables(full) -> dict:
    """Gains, limits and other constant attributes of all actuators as arrays, by field name."""
    actuators, n = full.actuators, len(full.actuators)

    def table(name, width):
        values = [getattr(a, name) for a in actuators]
        return np.array(values, dtype=float).reshape(n, width)

    pulls = [full.frame(a.frame).body if a.adhesion else 0 for a in actuators]
    offset = [a.gear[0] * full.tendon(a.tendon).offset if a.tendon else 0.0 for a in actuators]
    return {
        "adheres": np.array(pulls, dtype=np.int64),
        "sticks": np.array([a.gear[0] for a in actuators], dtype=float),
        "gain": table("gain", 3),
        "bias": table("bias", 3),
        "control": table("control", 2),
        "effort": table("effort", 2),
        "integral_range": table("integral_range", 2),
        "kind": np.array([ACTIVATION_NUMBERS[a.activation] for a in actuators], dtype=np.int64),
        "time": np.array([a.time_constant or 0.0 for a in actuators], dtype=float),
        "fall": np.array([a.deactivation_time or 0.0 for a in actuators], dtype=float),
        "muscle": np.array([numbers_of(a.muscle) for a in actuators]).reshape(n, 9),
        "range": table("activation_range", 2),
        "offset": np.array(offset, dtype=float),
    }


def arms_in_tables(full, problem, moving, kernel) -> dict:
    """Moment arms of all actuators with the variables and inertia entries they act on, by name.

    Args:
        full: the model with all joints.
        problem: of its spanning tree.
        moving: actuators whose arms change.
        kernel: lengths and arms of these, or None where there are none.
    """
    n, at = len(full.actuators), position_index(full)
    arms = _constant_arms(full)
    if kernel is not None:
        arms[:, moving] = arms_that_occur(full, kernel).T
    for k, a in enumerate(full.actuators):
        if a.tendon and k in moving:
            arms[variables_of(full, full.tendon(a.tendon)), k] = 1.0
    used = [np.flatnonzero(arms[:, k]) for k in range(n)]
    first = np.cumsum([0, *map(len, used)]).astype(np.int64)
    arm_v = np.concatenate([np.zeros(0, dtype=np.int64), *used]).astype(np.int64)
    return {
        "arm_first": first,
        "arm_v": arm_v,
        "arm": np.array([arms[i, k] for k in range(n) for i in used[k]], dtype=float),
        "arm_q": at[arm_v].astype(np.int64),
        "moving": np.isin(np.arange(n), moving).astype(np.int64),
        "traced": len(moving),
        "traced_of": np.array(moving, dtype=np.int64),
        "length": np.zeros(len(moving)),
        "dense": np.zeros(len(moving) * full.nv),
        **pairs_of(problem, first, arm_v),
    }


def states_in_tables(actuators) -> dict:
    """Places and initial values of actuators' activations and integrals, by field name."""
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
    """Torque–speed curves of motors and effort limits of all actuators, as arrays by field name."""
    corners = [np.array([m.curve.speeds, m.curve.forces]).T for m in motors]
    return {
        "curves": len(motors),
        "curve_of": np.array([m.actuator for m in motors], dtype=np.int64),
        "curve_first": np.cumsum([0, *map(len, corners)]).astype(np.int64),
        "curve": np.concatenate([np.zeros((0, 2)), *corners]),
        "own_effort": effort.copy(),
    }


def _constant_arms(full):
    """Constant moment arms (nv, n) of all actuators; zero where arms change."""
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
    """Sums of absolute moment arms over random configurations: zero where always zero."""
    rng = np.random.default_rng(0)
    places = [
        np.concatenate([np.zeros(0), *(joint.random(rng) for joint in full.joint[1:])])
        for _ in range(3)
    ]
    return np.sum([np.abs(kernel.reference((q,))[1]) for q in places], axis=0)


def pairs_of(problem, first, arm_v) -> dict:
    """Places in ``M`` of all products of an actuator's moment arms, as arrays by field name."""
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
    return {
        "own": own,
        "pair_first": numbers[0],
        "pair": pair,
        "pair_at": place,
        "crosses": crosses,
    }


def _place(problem, k, l):
    """Offsets in ``M`` of the inertia matrix's entries (k, l) and (l, k), -1 if not stored."""
    k, l = max(k, l), min(k, l)
    a, b = int(problem.dof_node[k]), int(problem.dof_node[l])
    i, j, wide = k - problem.node_first[a], l - problem.node_first[b], problem.node_count[b]
    for n in range(problem.node_blocks_first[a], problem.node_blocks_first[a + 1]):
        if problem.block_ancestor[n] == b:
            at = int(problem.block_at[n])
            other = at + j * wide + i if a == b and i != j else -1
            return int(at + i * wide + j), int(other)
    return -1, -1
