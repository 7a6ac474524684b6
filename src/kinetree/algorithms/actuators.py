"""Actuators: from controls and the state to forces before their gears, and to joint forces.

An actuator has a length ``l``, a velocity ``ld`` and moment arms ``r`` (columns of ``R``), as its
transmission gives them, with the gear in all three:

    ld = rᵀ qd        f = clip(gain(l, ld) u + bias(l, ld), effort)        tau = R f

``u`` is the control within its range, or the activation that follows it. While the control is held,
activations have a closed form, so that no integrator needs to move them. Integral action adds
``ki z`` with ``z' = u - l - z0``: over a step ``z`` follows from the lengths and velocities at both
ends, by the cubic between them, to the fourth order.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.jacobians import RelativeFrame, frame_jacobian, frame_pose
from kinetree.algorithms.muscles import muscle_activation, muscle_force
from kinetree.algorithms.passive import compensation_force
from kinetree.joints import Free
from kinetree.model.actuator import states_of
from kinetree.model.gearing import Gearing
from kinetree.model.limits import counted_compensation, effort_bounds
from kinetree.model.tendon_paths import tendon_motion
from kinetree.spatial.ops import exp, less, select, sqrt
from kinetree.spatial.rotation import rotation_log


class Transmission(NamedTuple):
    """How all actuators are connected to the mechanism in a state."""

    length: Any
    """``l``, gear times the position of what each drives, (n,)."""
    velocity: Any
    """``ld``, (n,)."""
    arms: Any
    """``R``, joint forces for a unit of force of each, (nv, n)."""


@for_all_joints(lambda result, at: result._replace(arms=force(result.arms, at)))
def transmission(model, q, qd) -> Transmission:
    """Lengths (n,), velocities (n,) and moment arms (nv, n) of all actuators."""
    lengths, arms = [], np.zeros((model.nv, len(model.actuators)), model.scalar_type(q, qd))
    for k, a in enumerate(model.actuators):
        length, arms[:, k] = transmission_of(model, a, q, qd)
        lengths.append(length)
    return Transmission(np.array(lengths), arms.T @ qd, arms)


def transmission_of(model, a, q, qd):
    """Length and moment arms (nv,) of one actuator."""
    gear, arms = np.array(a.gear), np.zeros(model.nv)
    if a.adhesion:  # which only contacts give something to pull at
        return 0 * q.sum(), arms
    if a.frame:
        return _of_frame(model, a, q)
    if a.tendon:
        length, arms = tendon_motion(model, model.tendon(a.tendon), q)
        return gear[0] * length, gear[0] * arms
    if a.loop:
        loop = model.loops[a.loop - 1]
        at, _, B = loop_joint_motion(model, q, qd, [loop])
        return gear @ _displacement(loop.joint, at), B @ gear
    arms[model.v_slice[a.joint]] = gear
    return gear @ _displacement(model.joint[a.joint], q[model.q_slice[a.joint]]), arms


def _displacement(joint, q):
    """Displacement of a joint from neutral, (nv,); the rotation vector of a ball joint.

    A free joint has no length, as in MuJoCo.
    """
    return 0 * q[: joint.nv] if isinstance(joint, Free) else joint.difference(joint.neutral(), q)


def _of_frame(model, a, q):
    """Length and moment arms (nv,) of an actuator whose wrench acts on a frame.

    As MuJoCo has it: moment arms are those of the wrench in the axes of the reference; joints that
    carry both frames do not count.
    """
    frame, gear = model.frame(a.frame), np.array(a.gear)
    if not a.reference:
        return 0 * q.sum(), frame_jacobian(model, q, frame, "body").T @ gear
    other = model.frame(a.reference)
    if a.crank:
        return _of_crank(model, a, q, frame, other)
    pose = frame_pose(model, q, frame, other)
    position = np.concatenate([rotation_log(pose[:3, :3].T), pose[:3, 3]])
    E = frame_pose(model, q, other)[:3, :3]
    wrench = np.concatenate([E @ gear[:3], E @ gear[3:]])
    J = [frame_jacobian(model, q, x, "aligned") for x in (frame, other)]
    between = np.zeros(model.nv, dtype=int)
    for i in RelativeFrame(model, frame, observer=other).bodies:
        between[model.v_slice[i]] = 1
    return gear @ position, (J[0] - J[1]).T @ wrench * between


def _of_crank(model, a, q, frame, slider):
    """Length and moment arms of a slider-crank actuator: a rod from a frame to a slider along z."""
    x, y, z = frame_pose(model, q, frame, slider)[:3, 3]
    J = frame_jacobian(model, q, frame, "aligned", observer=slider)[3:]
    square = a.crank**2 - x * x - y * y
    reaches = less(0, square)
    root = sqrt(select(reaches, square, 1 + 0 * square))
    slope = [select(reaches, r / root, 0 * r) for r in (x, y)]
    arms = slope[0] * J[0] + slope[1] * J[1] + J[2]
    return a.gear[0] * (z - select(reaches, root, 0 * root)), a.gear[0] * arms


# --- forces --------------------------------------------------------------------------------------


def actuator_forces(model, q, qd, controls, activation=None):
    """Scalar forces of all actuators before their gears, (n,)."""
    return _forces(model, transmission(model, q, qd), controls, activation)


@for_all_joints(force)
def driving_force(model, q, qd, controls, activation=None):
    """Joint forces of all actuators, (nv,), clipped to each joint's effort limits.

    An effort of zero means that it is unknown. Gravity compensation that counts as a force of
    actuators uses up a part of the effort; ``passive_force`` has it, as it has all of it.
    """
    return _bounded_force(model, q, qd, controls, activation)[0]


@for_all_joints(force)
def force_with_compensation(model, q, qd, controls, activation=None):
    """Joint forces of all actuators and of the gravity compensation counted with them, (nv,)."""
    tau, compensation = _bounded_force(model, q, qd, controls, activation)
    return tau + compensation


def _bounded_force(model, q, qd, controls, activation):
    """Joint forces of all actuators within effort limits, and the counted compensation."""
    through = transmission(model, q, qd)
    tau = through.arms @ _forces(model, through, controls, activation)
    more, found = compensation_within_effort(model, q), []
    for x, w, (low, high) in zip(tau, more, effort_bounds(model), strict=True):
        x = select(less(x + w, low), low - w, x) if np.isfinite(low) else x
        found.append(select(less(high, x + w), high - w, x) if np.isfinite(high) else x)
    return np.array(found), more


def compensation_within_effort(model, q):
    """Gravity compensation counted as an actuator force, (nv,), of a model without couplings."""
    counted = counted_compensation(model)
    if not counted.any():
        return np.zeros(model.nv, dtype=int)
    tau = compensation_force(model, q)
    return np.array([x if yes else 0 for x, yes in zip(tau, counted, strict=True)])


def resistance(model, q, qd, controls, activation=None):
    """Diagonals of ``-∂tau/∂q`` and ``-∂tau/∂qd`` of the actuators' servo laws, (nv,) each.

    Of those at joints of one variable that follow no others; none where a bound cuts the force of
    the actuator, or that of all actuators at the joint.
    """
    through, found = transmission(model, q, qd), np.zeros((2, model.nv), model.scalar_type(q, qd))
    laws = list(force_laws(model, through.length, through.velocity, controls, activation))
    uncut = _within_efforts(
        model,
        q,
        qd,
        [_clip(f, *a.effort) for a, (_, f) in zip(model.actuators, laws, strict=True)],
    )
    motion = zip(through.length, through.velocity, strict=True)
    for a, (u, f), (l, ld) in zip(model.actuators, laws, motion, strict=True):
        at, (low, high) = model.v_slice[a.joint], a.effort
        if not a.joint or at.stop - at.start != 1:
            continue
        inside = select(less(low, f), 1, 0) if np.isfinite(low) else 1
        inside = select(less(f, high), inside, 0) if np.isfinite(high) else inside
        for n, slope in enumerate(slopes(a, l, ld, u)):
            if not (isinstance(slope, float) and slope == 0):
                resists = -(a.gear[0] ** 2) * slope
                found[n, at] += inside * select(less(0, resists), resists, 0)
    return found * uncut


def _within_efforts(model, q, qd, forces):
    """For each variable, 1 where the actuators' forces are within its effort limits, else 0."""
    full, of_v = model.uncoupled, slice(None)
    if model.couplings:
        at, of_v = Gearing(model, q, qd), model.independent_variables[1]
        q, qd = at.q, at.qd
    tau = transmission(full, q, qd).arms @ np.array(forces) + compensation_within_effort(full, q)
    found = []
    for x, (low, high) in zip(tau, effort_bounds(full), strict=True):
        inside = select(less(low, x), 1, 0) if np.isfinite(low) else 1
        found.append(select(less(x, high), inside, 0) if np.isfinite(high) else inside)
    return np.array(found)[of_v]


def _forces(model, through, controls, activation):
    """Force of each actuator before its gear, clipped to its force range, (n,)."""
    laws = force_laws(model, through.length, through.velocity, controls, activation)
    pairs = zip(model.actuators, laws, strict=True)
    return np.array([_clip(force, *a.effort) for a, (_, force) in pairs])


def force_laws(model, length, velocity, controls, activation):
    """Input ``u`` (control or activation) and unclipped force of every actuator, one by one."""
    states = iter(() if activation is None else activation)
    for k, a in enumerate(model.actuators):
        u = next(states, 0) if a.activation else _clip(controls[k], *a.control)
        l, ld = length[k], velocity[k]
        if a.muscle is not None:
            yield u, muscle_force(a.muscle, l, ld, u)[0]
            continue
        force = _affine(a.gain, l, ld) * u + _affine(a.bias, l, ld)
        if a.integral:
            force = force + a.integral * next(states, 0)
        yield u, force


def slopes(a, length, velocity, u) -> tuple[Any, Any]:
    """Derivatives of an actuator's unclipped force by its length and by its velocity."""
    if a.muscle is not None:
        return muscle_force(a.muscle, length, velocity, u)[1:]
    return a.gain[1] * u + a.bias[1], a.gain[2] * u + a.bias[2]


def _affine(coefficients, length, velocity):
    """Affine force law ``c0 + c1 l + c2 ld``; coefficients of zero cost nothing."""
    value, first, second = coefficients
    value = value + first * length if first else value
    return value + second * velocity if second else value


def _clip(x, low, high):
    """Number clipped to two bounds, of which either may be infinite."""
    x = select(less(x, low), low, x) if np.isfinite(low) else x
    return select(less(high, x), high, x) if np.isfinite(high) else x


# --- activations ---------------------------------------------------------------------------------


def stateful(model) -> tuple:
    """Names of all state variables of the actuators: activations first, then integrals."""
    return tuple(states_of(model.actuators))


def integrating(model) -> tuple:
    """Pairs (actuator number, state number) of the actuators with integral action."""
    found, n = [], 0
    for k, a in enumerate(model.actuators):
        n += bool(a.activation) + bool(a.integral)
        if a.integral:
            found.append((k, n - 1))
    return tuple(found)


def integrate(u, act, times, time):
    """Activation after ``time`` of an integrator, ``act' = u``."""
    return act + u * time


def low_pass(u, act, times, time):
    """Activation after ``time`` of a first-order low-pass, ``act' = (u - act) / times[0]``."""
    return u + (act - u) * exp(-time / times[0]) if times[0] else u


def ramp(u, act, times, time):
    """Activation after ``time`` with limited rate, ``act' = ±1 / times[0]`` until it is ``u``."""
    most = time / times[0] if times[0] else 0
    return act + _between(u - act, most)


def _between(x, most):
    """Number clipped to ``±most``."""
    x = select(less(x, -most), -most, x)
    return select(less(most, x), most, x)


AFTER = {"integrator": integrate, "filter": low_pass, "muscle": muscle_activation, "ramp": ramp}
"""Activations after a time with a held control ``u``, by name; on numbers of any kind.

``times`` are the two time constants, with which activations rise and fall.
"""


def activation_after(model, controls, activation, time):
    """Activations (m,) after ``time`` [s] with constant controls, clipped to their ranges.

    Args:
        model: the mechanism.
        controls: of all actuators, (n,).
        activation: at the start, of those that have one, (m,).
        time: since then [s].
    """
    found, states = [], iter(activation)
    for k, a in enumerate(model.actuators):
        if a.activation:
            found.append(_activation(a, controls[k], next(states), time))
        if a.integral:
            found.append(next(states))
    return np.array(found)


def _activation(a, control, act, time):
    """Activation of one actuator after ``time`` [s] with a constant control, within its range."""
    u = _clip(control, *a.control)
    act = AFTER[a.activation](u, act, (a.time_constant, a.deactivation_time), time)
    return _clip(act, *a.activation_range)


def integral_motion(model, q, qd):
    """Lengths of the actuators with integral action, followed by their velocities, (2 m,)."""
    through = transmission(model, q, qd)
    at = [k for k, _ in integrating(model)]
    return np.concatenate([through.length[at], through.velocity[at]])


_NODES = ((0.5 - 15**0.5 / 10, 5 / 18), (0.5, 8 / 18), (0.5 + 15**0.5 / 10, 5 / 18))
"""Places and weights of Gauss's rule with three points, for what controls do to integrals."""


def states_after(model, controls, activation, time, start, end):
    """Activations and integrals of the actuators after ``time`` [s] with constant controls, (m,).

    Args:
        model: the mechanism.
        controls: of all actuators, (n,).
        activation: states at the start, (m,).
        time: since then [s].
        start: ``integral_motion`` at the start.
        end: the same at the end.
    """
    found = activation_after(model, controls, activation, time)
    pairs = integrating(model)
    for i, (k, n) in enumerate(pairs):
        a = model.actuators[k]
        l0, l1, r0, r1 = (x[i + m] for m in (0, len(pairs)) for x in (start, end))
        wanted = _clip(controls[k], *a.control) * time
        if a.activation:
            wanted = time * sum(
                w * _activation(a, controls[k], activation[n - 1], x * time) for x, w in _NODES
            )
        passed = time * (l0 + l1) / 2 + time * time * (r0 - r1) / 12
        z = activation[n] + wanted - passed - a.integral_zero * time
        found[n] = _clip(z, *a.integral_range)
    return found
