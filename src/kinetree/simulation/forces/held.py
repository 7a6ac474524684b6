"""Joints that are held at rest, by dry friction or by a stop: one more unknown force for each.

While a set of velocity variables is held, the forces ``f`` that hold them follow from their
accelerations being zero: with ``A = H⁻¹`` and ``qdd`` the accelerations without these forces,

    A_ss f_s = -qdd_s,      qdd + A f

Which variables are held, and in which directions the others slide, are arrays that the compiled
step takes as inputs: going from one mode to another compiles nothing.
"""

import copy
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.functional.kernel import kernel, select
from kinetree.integration.field import FieldAround, masked_response
from kinetree.integration.linear_equations import factor, solve
from kinetree.integration.step import Scheme, Stepper
from kinetree.quantities import dynamics
from kinetree.simulation.forces.friction import Friction


@dataclass
class Mode:
    """Mode of every velocity variable."""

    held: np.ndarray
    """1 for those that are held at rest, else 0, (..., nv)."""
    direction: np.ndarray
    """1 or -1 for those with friction that slide, else 0, (..., nv)."""

    def sample(self, index):
        """``Mode`` of one sample of a batch."""
        return Mode(self.held[index], self.direction[index])


@dataclass(frozen=True)
class Held(FieldAround):
    """A field under which some variables are held, and others slide in known directions.

    Attributes:
        field: all other forces.
        law: exact friction, or None.
        joints: velocity variables that can be held.
        held, direction: a ``Mode``; see there.
    """

    law: Friction | None
    joints: tuple
    held: Any
    direction: Any

    def joint_force(self, model, t, q, qd, tau):
        """Joint forces (..., nv) without holding forces and drives, but with sliding friction."""
        tau = self.field.joint_force(model, t, q, qd, tau)
        return tau if self.law is None else tau + self.law.sliding(qd, self._sliding(model, qd))

    def response(self, model, q, M):
        """Accelerations per joint force, zero for held joints; see ``Field.response``."""
        return masked_response(self.field.response, model, q, M, 1 - self.held)

    def _sliding(self, model, qd):
        """Sliding directions (..., nv); of prescribed joints from their velocities."""
        if self.prescription is None:
            return self.direction
        sign = select(qd > 0, 1 + 0 * qd, select(qd < 0, -1 + 0 * qd, 0 * qd))
        return self.direction + sign * (1 - self.prescription.others(model))

    def constraint_force(self, model, t, q, qd, tau):
        """Holding forces (..., nv) of stuck joints; zero for free variables."""
        total = self.joint_force(model, t, q, qd, tau)
        qdd = self.field.acceleration(model, t, q, qd, total)
        return _holding_forces(self.field, model, q, qdd, self.held, self.joints)[0]

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        if self.prescription is not None:
            q, qd, _ = self.prescription.at(model, t, q, qd)
        total = self.joint_force(model, t, q, qd, tau)
        free = self.field.acceleration(model, t, q, qd, total)
        _, qdd = _holding_forces(self.field, model, q, free, self.held, self.joints)
        if self.prescription is not None:
            total = dynamics.inverse_dynamics(model, q, qd, qdd)
        return qdd, (total * qd).sum(-1)

    def drive_force(self, model, t, q, qd, tau):
        """Joint forces (..., nv) of controller and actuators, and of prescribed drives."""
        q, qd, _ = self.field.prescription.at(model, t, q, qd)
        qdd, _ = self(model, t, q, qd, tau)
        total, free = dynamics.inverse_dynamics(model, q, qd, qdd), self.prescription.others(model)
        own = (total - self.joint_force(model, t, q, qd, tau)) * (1 - free)
        return self.field.driving_force(model, t, q, qd, tau) + own


@dataclass(frozen=True)
class FieldByMode:
    """A function from a mode to the field in it, a ``Held``."""

    field: Any
    """All forces but those that hold, and exact friction."""
    law: Friction | None
    """Exact friction, or None."""
    joints: tuple
    """Velocity variables that can be held."""

    def __call__(self, held, direction) -> Held:
        """The field in a mode."""
        return Held(self.field, self.law, self.joints, held, direction)


def _holding_forces(field, model, q, qdd, held, joints):
    """Forces that hold stuck joints, and the resulting accelerations, zero where held."""
    if np.asarray(qdd).dtype == object:
        return _held_traced(field, model, q, qdd, held, list(joints))
    if not np.any(held):
        return np.zeros(qdd.shape), qdd
    A, s = field.mobility(model, q), list(joints)
    on = np.broadcast_to(held, qdd.shape)[..., s]
    masked = on[..., :, None] * on[..., None, :] * A[..., s, :][..., :, s]
    masked = masked + np.eye(len(s)) * (1 - on[..., None])
    f = np.zeros(qdd.shape)
    f[..., s] = np.linalg.solve(masked, -(on * qdd[..., s])[..., None])[..., 0]
    return f, (1 - held) * (qdd + (A @ f[..., None])[..., 0])


def _held_traced(field, model, q, qdd, held, s):
    """Forces that hold stuck joints, and the accelerations, for traced numbers."""
    A, on = field.mobility(model, q), held[s]
    masked = np.outer(on, on) * A[np.ix_(s, s)] + np.diag(1 - on)
    f_s = solve(factor(masked), -on * qdd[s])
    f = np.array([f_s[s.index(i)] if i in s else 0 * held[i] for i in range(model.nv)])
    return f, (1 - held) * (qdd + A[:, s] @ f_s)


@kernel
def _held_step(model, t, h, q, qd, inputs, held, direction, *, scheme):
    """Kernel of a step in which some joints are stuck and others slide."""
    under = replace(scheme, field=scheme.field(held, direction))
    return under(model, t, h, q, qd, inputs)


@kernel
def _held_accelerations(model, t, q, qd, inputs, held, direction, *, field_by_mode):
    """Kernel of accelerations with some joints stuck and others sliding."""
    return field_by_mode(held, direction)(model, t, q, qd, inputs)


@kernel
def _constraint_force(model, t, q, qd, inputs, held, direction, *, field_by_mode):
    """Kernel of the forces that hold stuck joints."""
    return field_by_mode(held, direction).constraint_force(model, t, q, qd, inputs)


class HeldStepper(Stepper):
    """Steps during which some variables are held, according to ``mode``.

    Args:
        model: the mechanism, a tree.
        method: the integrator, one that takes no derivatives of forces.
        field_by_mode: gives the field in a mode.
        mode: what joints do; change it between steps.
        compiled: as for ``Stepper``.
        prepare: function ``(t, q, qd, tau)`` called before a step is taken.
    """

    def __init__(self, model, method, field_by_mode, mode, *, compiled, prepare):
        super().__init__(model, method, None, compiled=compiled)
        self.field_by_mode, self.mode, self.prepare = field_by_mode, mode, prepare
        self._kernels: dict = {}  # shared by copies for single samples
        self._noted: list = []  # times, and modes from then on

    @property
    def field(self):
        """Field of accelerations in the present mode."""
        return self.field_by_mode(self.mode.held, self.mode.direction)

    @field.setter
    def field(self, _):
        """Ignore assignments: the field always follows from the mode."""
        pass

    def note(self, step):
        """Hook that records the mode of a step with its start time."""
        mode = Mode(self.mode.held.copy(), self.mode.direction.copy())
        self._noted.append((step.t0, mode))
        return step

    def field_at(self, t):
        """Field in the mode recorded for the step at time ``t``, else in the present mode."""
        k = bisect_right(self._noted, t, key=lambda noted: noted[0]) - 1
        mode = self._noted[max(k, 0)][1] if self._noted else self.mode
        return self.field_by_mode(mode.held, mode.direction)

    def for_sample(self, index):
        """Stepper of one sample of a batch."""
        other = copy.copy(self)
        other.mode = self.mode.sample(index)
        other.prepare = _nothing  # the whole batch has been prepared
        return other

    def take(self, t, h, q, qd, tau):
        """Step of ``h`` seconds with interpolant, after updating the mode."""
        self.prepare(t, q, qd, tau)
        return super().take(t, h, q, qd, tau)

    def constraint_force(self, t, q, qd, tau):
        """Forces that hold stuck joints at many times and states, (n, ..., nv).

        Args:
            t: times [s], (n,).
            q: positions at these times, (n, ..., nq).
            qd: velocities, (n, ..., nv).
            tau: joint forces, (n, ..., nv).
        """
        if self.compiled:
            times = np.asarray(t, dtype=float).reshape(-1, *[1] * (qd.ndim - 2))
            kernel = self._held_kernel(_constraint_force, field_by_mode=self.field_by_mode)
            return kernel.call(times, q, qd, tau)
        field = self.field
        each = zip(t, q, qd, tau, strict=True)
        return np.array([field.constraint_force(self.model, *instant) for instant in each])

    @property
    def _one(self):
        """Compiled step in the present mode, without extra results."""
        return self._full  # one kernel will do

    @property
    def _full(self):
        """Compiled step in the present mode, with error estimate and stages."""
        scheme = Scheme(self.method, self.field_by_mode, full=True)
        return self._held_kernel(_held_step, 1.0, scheme=scheme)

    @property
    def _rates(self):
        """Compiled accelerations in the present mode."""
        return self._held_kernel(_held_accelerations, field_by_mode=self.field_by_mode)

    def _held_kernel(self, kernel, *h, **options):
        """Compiled kernel with the present mode bound as its last inputs."""
        key = kernel.__name__
        if key not in self._kernels:
            q, v, inputs = self._zeros()
            self._kernels[key] = kernel.compiled(self.model, 0.0, *h, q, v, inputs, v, v, **options)
        return _WithMode(self._kernels[key], self.mode)


def _nothing(t, q, qd, tau):
    """Mode update that does nothing, for steppers whose mode is already set."""


class _WithMode:
    """A compiled function whose last arguments are a mode."""

    def __init__(self, kernel, mode):
        self.kernel, self.mode = kernel, mode

    def call(self, *arguments):
        """Results of the kernel in the stepper's present mode."""
        return self.kernel.call(*arguments, self.mode.held, self.mode.direction)
