"""Whether motions that joints are told make sense: with the start, with themselves, with events."""

import warnings

import numpy as np

from kinetree.errors import JointError, SimulationError, SimulationWarning
from kinetree.model.arrays import as_configuration, as_joint_vector

__all__ = ["check_rates", "left_alone", "told_start"]

_AGREES = 1e-6  # how far from the motion a start may be, over one plus its size
_LOOKS = 7  # instants at which rates are looked at
_NOISE = 1e3 * np.finfo(float).eps  # of positions and velocities
_WRONG = 1e-3  # of the largest rate, by which another one is wrong


def told_start(told, model, t, q, qd, *, at_rest=False):
    """The start with the joints that are told exactly in place; an error if it is elsewhere.

    Args:
        told: the joints that move as told.
        model: the mechanism.
        t: time at the start [s].
        q: positions that were given, (..., nq).
        qd: velocities that were given, (..., nv).
        at_rest: whether no velocities were given, so that there is nothing to contradict.
    """
    q1, qd1, qdd = told.at(model, t, q, qd)
    as_configuration(model, q1, f"the motion at t = {t:g} s")
    as_joint_vector(model, qd1, f"velocity of the motion at t = {t:g} s")
    as_joint_vector(model, qdd, f"acceleration of the motion at t = {t:g} s")
    for i, name in zip(told.joints, told.names, strict=True):
        at, at_q = model.v_slice[i], model.q_slice[i]
        gap = _difference(model.joint[i], q[..., at_q], q1[..., at_q])
        pairs = [("q0", gap, q1[..., at_q])]
        if not at_rest:
            pairs.append(("qd0", qd1[..., at] - qd[..., at], qd1[..., at]))
        for what, apart, there in pairs:
            far = np.max(np.abs(apart), initial=0.0)
            if not far <= _AGREES * (1 + np.max(np.abs(there), initial=0.0)):
                unit = "m or rad" if what == "q0" else "m/s or rad/s"
                raise JointError(
                    f"{what} has joint {name!r} {far:.6g} {unit} away from where its motion begins "
                    f"at t = {t:g} s, {there.tolist()}: start there"
                )
    return q1, qd1


def check_rates(told, model, start, end, dt):
    """Warn of motions whose velocities are not the rates of their positions, and so on.

    Args:
        told: the joints that move as told.
        model: the mechanism.
        start: time at the start [s].
        end: at the end.
        dt: length of a step [s].
    """
    h = min(dt, end - start) / 8
    times = start + h + (end - start - 2 * h) * (np.arange(_LOOKS) + 0.37) / _LOOKS
    for i, name in zip(told.joints, told.names, strict=True) if h > 0 else ():
        given = [told.of(model, i, t) for t in times]
        wide, narrow = ([_rates(told, model, i, t, w) for t in times] for w in (h, h / 2))
        for k, (what, of) in enumerate((("qd", "q"), ("qdd", "qd"))):
            stated = np.array([state[k + 1] for state in given])
            coarse, fine = (np.array([rates[k] for rates in x]) for x in (wide, narrow))
            found = (4 * fine - coarse) / 3
            size = max(float(np.max(np.abs(state[k]))) for state in given)
            noise = _NOISE * (1 + size) / h + _WRONG * np.max(np.abs(stated))
            off = np.abs(found - stated) - 10 * np.abs(fine - coarse) - noise
            if np.max(off) > 0:
                at = np.unravel_index(int(np.argmax(off)), off.shape)
                warnings.warn(
                    f"the motion of joint {name!r} contradicts itself: at t = {times[at[0]]:.6g} s "
                    f"its {what} is {stated[at]:.6g}, and the rate of its {of} is {found[at]:.6g}; "
                    f"forces and energies will mean little",
                    SimulationWarning,
                    stacklevel=4,
                )


def _rates(told, model, i, t, h):
    """Rates of positions and velocities of a joint, by central differences."""
    (q0, v0, _), (q1, v1, _) = told.of(model, i, t - h), told.of(model, i, t + h)
    return _difference(model.joint[i], q0, q1) / (2 * h), (v1 - v0) / (2 * h)


def _difference(joint, q0, q1):
    """From positions to positions of one joint of a batch, in its tangent space, (..., nv)."""
    q0, q1 = np.broadcast_arrays(q0, q1)
    if joint.rates_are_velocities:
        return q1 - q0
    rows = zip(q0.reshape(-1, joint.nq), q1.reshape(-1, joint.nq), strict=True)
    found = np.array([joint.difference(a, b) for a, b in rows], dtype=float)
    return found.reshape(*q0.shape[:-1], joint.nv)


def left_alone(told, model):
    """A hook: raises for an event whose action moved a joint that moves as told."""

    def hook(step):
        for event in step.events:
            if not hasattr(event, "q_after"):
                continue
            for i, name in zip(told.joints, told.names, strict=True):
                at_q, at_v = model.q_slice[i], model.v_slice[i]
                if np.any(event.q[at_q] != event.q_after[at_q]) or np.any(
                    event.qd[at_v] != event.qd_after[at_v]
                ):
                    raise SimulationError(
                        f"event {event.name!r} at t = {event.t:.6g} s changes the state of joint "
                        f"{name!r}, which moves as told: leave it where it is"
                    )
        return step

    return hook
