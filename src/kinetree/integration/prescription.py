"""Prescribed joint motions: positions, velocities and accelerations as functions of time.

At every stage of a step prescribed joints stand exactly where their motions say, whatever the
integrator made of them; only the others are integrated. Written for numbers of any kind. A
``RecordedMotion``, or a planned one, is interpolated from positions at times.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.errors import JointError, SimulationWarning, warn
from kinetree.functional.kernel import UserKernel
from kinetree.integration.explicit import ExplicitRungeKutta
from kinetree.integration.integrator import Integrator
from kinetree.integration.recorded_motion import RecordedMotion
from kinetree.integration.refusals import EVENT_PRESCRIBED, RECORDED_RATES
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.gearing import require_leader


@dataclass(frozen=True)
class Prescription:
    """Prescribed joints and their motions."""

    joints: tuple[int, ...]
    """Numbers of the joints, increasing."""
    names: tuple[str, ...]
    """Their names."""
    motions: tuple
    """Of each, a function of time [s] to its position, velocity and acceleration variables."""

    @property
    def traceable(self) -> bool:
        """Whether all prescribed motions are kernels, so that steps can be compiled."""
        return all(isinstance(motion, UserKernel) for motion in self.motions)

    def at(self, model, t, q, qd) -> tuple[Any, Any, Any]:
        """State with prescribed joints on their motion at time ``t``, and their accelerations.

        Args:
            model: the mechanism.
            t: time [s].
            q: joint positions, (..., nq); those of prescribed joints are not read.
            qd: joint velocities, (..., nv), likewise.

        Returns:
            ``q``, ``qd``, and ``qdd`` with zeros for the other joints.
        """
        q, qd, qdd = np.array(q), np.array(qd), 0 * np.asarray(qd)
        for i in self.joints:
            at_q, at_v = model.q_slice[i], model.v_slice[i]
            q[..., at_q], qd[..., at_v], qdd[..., at_v] = self.of(model, i, t)
        return q, qd, qdd

    def of(self, model, i, t):
        """Position, velocity and acceleration of prescribed joint ``i`` at time ``t``."""
        k = self.joints.index(i)
        return _check_values(self.names[k], model.joint[i], self.motions[k](t), t)

    def each(self, model, times, q, qd) -> tuple[Any, Any, Any]:
        """States with prescribed joints on their motion at several times (n,)."""
        instants = [self.at(model, *instant) for instant in zip(times, q, qd, strict=True)]
        q, qd, qdd = (np.array(x) for x in zip(*instants, strict=True))
        return q, qd, qdd

    def variables(self, model) -> tuple[int, ...]:
        """Indices of the prescribed joints' velocity variables."""
        return tuple(k for i in self.joints for k in range(model.nv)[model.v_slice[i]])

    def others(self, model) -> np.ndarray:
        """Mask (nv,): 1 for velocity variables of unprescribed joints, 0 for prescribed ones."""
        free = np.ones(model.nv, dtype=int)
        free[list(self.variables(model))] = 0
        return free


def as_prescription(model, prescribed) -> Prescription | None:
    """``Prescription`` from motions by joint name; None without any."""
    if not prescribed:
        return None
    if not hasattr(prescribed, "items"):
        raise TypeError(
            f"prescribed must be motions by the names of joints, {{'shoulder': motion}}, got "
            f"{type(prescribed).__name__}"
        )
    found = {}
    for name, motion in prescribed.items():
        i = as_model(model).joint_index(name)
        require_leader(model, i, "be prescribed")
        if not model.joint[i].nv:
            raise JointError(
                f"prescribed joint {name!r} of model {model.name!r} cannot move at all"
            )
        if not callable(motion):
            raise TypeError(
                f"the motion of joint {name!r} must be a function of time that returns its "
                f"(q, qd, qdd), or kinetree.RecordedMotion(t, q); got {type(motion).__name__}"
            )
        if isinstance(motion, RecordedMotion) and not model.joint[i].rates_are_velocities:
            raise RECORDED_RATES.of(
                "a RecordedMotion",
                f"joint {name!r} ({type(model.joint[i]).__name__}), whose velocities are not the "
                f"rates of its position variables",
            )
        found[i] = (name, motion)
    joints = tuple(sorted(found))
    names, motions = zip(*(found[i] for i in joints), strict=True)
    return Prescription(joints, names, motions)


def _check_values(name, joint, values, t):
    """Position, velocity and acceleration that a motion returned, as checked arrays."""
    sizes = (joint.nq, joint.nv, joint.nv)
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != 3:
        raise JointError(
            f"the motion of joint {name!r} must return (q, qd, qdd), got {values!r} at t = {t}"
        )
    arrays = [np.asarray(value) for value in values]
    arrays = [
        a.reshape(1) if not a.ndim and n == 1 else a for a, n in zip(arrays, sizes, strict=True)
    ]
    if any(not a.ndim or a.shape[-1] != n for a, n in zip(arrays, sizes, strict=True)):
        raise JointError(
            f"the motion of joint {name!r} must return (q, qd, qdd) of lengths {sizes}, got shapes "
            f"{tuple(a.shape for a in arrays)}"
        )
    return arrays


# --- whether motions agree with the start, with themselves, and with events ----------------------

_AGREES = 1e-6  # how far from the motion a start may be, over one plus its size
_LOOKS = 7  # instants at which rates are looked at
_NOISE = 1e3 * np.finfo(float).eps  # of positions and velocities
_WRONG = 1e-3  # of the largest rate, by which another one is wrong


def prescribed_start(prescription, model, t, q, qd, *, at_rest=False):
    """Initial state with prescribed joints on their motion; an error if contradicted.

    Args:
        prescription: the prescribed joints.
        model: the mechanism.
        t: time at the start [s].
        q: positions that were given, (..., nq).
        qd: velocities that were given, (..., nv).
        at_rest: whether no velocities were given, so that there is nothing to contradict.
    """
    q1, qd1, qdd = prescription.at(model, t, q, qd)
    as_configuration(model, q1, f"the motion at t = {t:g} s")
    as_joint_vector(model, qd1, f"velocity of the motion at t = {t:g} s")
    as_joint_vector(model, qdd, f"acceleration of the motion at t = {t:g} s")
    for i, name in zip(prescription.joints, prescription.names, strict=True):
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


def check_rates(prescription, model, start, end, dt):
    """Warn of motions whose velocities or accelerations do not match their rates.

    Args:
        prescription: the prescribed joints.
        model: the mechanism.
        start: time at the start [s].
        end: at the end.
        dt: length of a step [s].
    """
    h = min(dt, end - start) / 8
    times = start + h + (end - start - 2 * h) * (np.arange(_LOOKS) + 0.37) / _LOOKS
    for i, name in zip(prescription.joints, prescription.names, strict=True) if h > 0 else ():
        given = [prescription.of(model, i, t) for t in times]
        wide, narrow = ([_rates(prescription, model, i, t, w) for t in times] for w in (h, h / 2))
        for k, (what, of) in enumerate((("qd", "q"), ("qdd", "qd"))):
            stated = np.array([state[k + 1] for state in given])
            coarse, fine = (np.array([rates[k] for rates in x]) for x in (wide, narrow))
            found = (4 * fine - coarse) / 3
            size = max(float(np.max(np.abs(state[k]))) for state in given)
            noise = _NOISE * (1 + size) / h + _WRONG * np.max(np.abs(stated))
            off = np.abs(found - stated) - 10 * np.abs(fine - coarse) - noise
            if np.max(off) > 0:
                at = np.unravel_index(int(np.argmax(off)), off.shape)
                warn(
                    f"the motion of joint {name!r} contradicts itself: at t = {times[at[0]]:.6g} s "
                    f"its {what} is {stated[at]:.6g}, and the rate of its {of} is {found[at]:.6g}; "
                    f"forces and energies will be unreliable",
                    SimulationWarning,
                )


def _rates(prescription, model, i, t, h):
    """Rates of a prescribed joint's positions and velocities, by central differences."""
    (q0, v0, _), (q1, v1, _) = prescription.of(model, i, t - h), prescription.of(model, i, t + h)
    return _difference(model.joint[i], q0, q1) / (2 * h), (v1 - v0) / (2 * h)


def _difference(joint, q0, q1):
    """Tangent displacement (..., nv) between positions of one joint."""
    q0, q1 = np.broadcast_arrays(q0, q1)
    if joint.rates_are_velocities:
        return q1 - q0
    rows = zip(q0.reshape(-1, joint.nq), q1.reshape(-1, joint.nq), strict=True)
    found = np.array([joint.difference(a, b) for a, b in rows], dtype=float)
    return found.reshape(*q0.shape[:-1], joint.nv)


def require_untouched(prescription, model):
    """Hook that raises an error if an event action moved a prescribed joint."""

    def hook(step):
        for event in step.events:
            if not hasattr(event, "q_after"):
                continue
            for i, name in zip(prescription.joints, prescription.names, strict=True):
                at_q, at_v = model.q_slice[i], model.v_slice[i]
                if np.any(event.q[at_q] != event.q_after[at_q]) or np.any(
                    event.qd[at_v] != event.qd_after[at_v]
                ):
                    raise EVENT_PRESCRIBED.of(
                        f"event {event.name!r} at t = {event.t:.6g} s, which changes the state,",
                        f"joint {name!r}, whose motion is prescribed",
                    )
        return step

    return hook


# --- steps that end with prescribed joints exactly in place --------------------------------------


@dataclass(frozen=True)
class PrescribedSteps(Integrator):
    """Steps of another method, after which prescribed joints are put in place.

    Its stages may be wrong about these joints, since a ``PrescribedField`` places them anew; what
    remains is the method applied to the other joints alone.
    """

    inner: Integrator
    """The method."""
    prescription: Prescription
    """The prescribed joints."""

    def __post_init__(self):
        for name in ("name", "order", "error_order", "differentiates", "solves", "closes"):
            object.__setattr__(self, name, getattr(self.inner, name))

    def step(self, field, model, t, h, q, qd, tau):
        """State after a step of the inner method, prescribed joints set to their motion."""
        after = self.inner.step(field, model, t, h, q, qd, tau)
        q1, qd1, _ = self.prescription.at(model, t + h, after.q, after.qd)
        error = after.error
        if error is not None:
            error = tuple(e * self.prescription.others(model) for e in error)
        return after._replace(q=q1, qd=qd1, error=error)

    def interpolation(self, theta):
        """Interpolation weights of the inner method's stages."""
        return self.inner.interpolation(theta)


def with_loop(method: Integrator) -> Integrator:
    """Copy of an integrator with its stages in a compiled loop, to shorten code."""
    if isinstance(method, PrescribedSteps):
        return replace(method, inner=with_loop(method.inner))
    return replace(method, looped=True) if isinstance(method, ExplicitRungeKutta) else method
