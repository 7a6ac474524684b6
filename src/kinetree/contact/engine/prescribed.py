"""Prescribed joints in a step: where their motions lead, which steps take as given (RBDA §9.1)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.mobility import drive_forces, free_acceleration
from kinetree.contact.scheme.inertia import straight_motion
from kinetree.functional.kernel import kernel
from kinetree.model.gearing import Gearing


class PrescribedMotion(NamedTuple):
    """Motion of prescribed variables in a step; zero for others.

    Attributes:
        qdd: mean accelerations, along the axes in the middle of the step, (nv,).
        qd: velocities at the end, along these axes, (nv,).
        move: velocities with which they come to their places from the middle on, (nv,).
        end_q, end_qd: positions and velocities at the end, (nq,) and (nv,).
    """

    qdd: Any
    qd: Any
    move: Any
    end_q: Any
    end_qd: Any


def prescribed_motion(prescription, model, t, h, q, qd) -> PrescribedMotion:
    """Motion of prescribed joints over a step of ``h`` seconds, generic in the number type.

    Args:
        prescription: ``Prescription``.
        model: the mechanism.
        t: time at the start [s].
        h: length of the step [s].
        q: positions where it starts, (nq,); those of prescribed joints are not read.
        qd: velocities, (nv,), likewise.
    """
    fixed = 1 - prescription.others(model)
    (q0, qd0, _), (q1, qd1, _) = (prescription.at(model, t + x, q, qd) for x in (0 * h, h))
    middle, first = straight_motion(model, q0, qd0, h / 2)
    end = straight_motion(model, q1, qd1, -h / 2)[1]
    move = 0 * end
    for i in prescription.joints:
        at_q, at_v = model.q_slice[i], model.v_slice[i]
        move[at_v] = model.joint[i].difference(middle[at_q], q1[at_q]) / (h / 2)
    return PrescribedMotion((end - first) / h * fixed, end * fixed, move, q1, qd1 * fixed)


@dataclass(frozen=True)
class _InAllJoints:
    """``prescribed_motion`` in the variables of all joints, for compiled steps."""

    model: Any
    prescription: Any

    def __call__(self, t, h, q, qd):
        model, of_q, of_v = self.model, slice(None), slice(None)
        if model.couplings:
            of_q, of_v = model.independent_variables
        found = prescribed_motion(self.prescription, model, t, h, q[of_q], qd[of_v])
        whole = 0 * qd, 0 * qd, 0 * qd, 0 * q, 0 * qd
        for all_of, values, at in zip(whole, found, (of_v, of_v, of_v, of_q, of_v), strict=True):
            all_of[at] = values
        return whole


@kernel
def _prescribed_motion(full, t, h, q, qd, *, motion):
    """Kernel function of prescribed joints' motion over a step of ``h`` seconds."""
    return motion(t, h, q, qd)


def prescribed_kernel(prescription, model):
    """Compiled ``prescribed_motion`` in the variables of all joints."""
    full = model.uncoupled
    start = 0.0, 1.0, full.neutral(), np.zeros(full.nv)
    return _prescribed_motion.compiled(full, *start, motion=_InAllJoints(model, prescription))


def prescribed_places(prescription, model):
    """Indices of prescribed joints' position variables among those of all joints."""
    at = [k for i in prescription.joints for k in range(model.nq)[model.q_slice[i]]]
    own = np.array(at, dtype=np.int64)
    return model.independent_variables[0][own] if model.couplings else own


def drives_at(field, model, t, q, qd, tau, push):
    """Joint forces (nv,) of the controller and of prescribed joints' drives at one state.

    Args:
        field: what moves the mechanism.
        model: the mechanism.
        t: time [s].
        q: positions, (nq,).
        qd: velocities, (nv,).
        tau: what is held.
        push: of contacts, stops and dry friction, in the variables of all joints.
    """
    motions = field.prescription
    q, qd, qdd = motions.at(model, t, q, qd)
    if model.couplings:
        push = Gearing(model, q, qd).G.T @ push
    applied = field.joint_force(model, t, q, qd, tau)
    qdd = free_acceleration(model, q, qd, applied + push, motions.names, qdd)
    total = drive_forces(model, q, qd, applied, qdd, push, motions.names)
    own = (total - applied) * (1 - motions.others(model))
    return field.driving_force(model, t, q, qd, tau) + own
