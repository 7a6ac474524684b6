"""Which joints rest and which slide: exact dry friction, and rigid stops.

Between events every joint with friction either slides in a known direction or is held, and every
joint at a stop is held there or free; see ``holding``. Events change that:

- a sliding joint comes to rest;
- a held joint would need more force than friction has, or a stop would have to pull;
- a joint arrives at a stop, and an impulse sends it back.

What a joint at rest does next is the answer to a linear complementarity problem: holding forces
within their bounds, no acceleration against them — RBDA §11.5 in joint space.
"""

import numpy as np

from kinetree.errors import LoopError, ShapeError, UnknownNameError
from kinetree.integration.field import Field, PrescribedField
from kinetree.integration.watcher import mechanical_energy
from kinetree.model.bounds import position_bounds, position_index
from kinetree.simulation.forces.box import solve_box
from kinetree.simulation.forces.holding import HeldStepper, Holding, Mode
from kinetree.simulation.forces.watches import Arrivals, Releases, Rests

__all__ = ["Modes"]

COMPILED = 12
"""Variables that can be held, up to which a step is one kernel: solving for the forces that hold
them takes the cube of their number of operations, at every stage."""


class Modes:
    """The modes of all samples, and how they change.

    Args:
        model: the mechanism, a tree.
        law: exact ``Friction`` with the numbers of the model, or None.
        limits: ``RigidLimits``, or None.
        batch: shape of the batch.
        told: joints that move as told, which nothing holds, or None.
    """

    def __init__(self, model, law, limits, batch, told=None):
        if model.loops:
            raise LoopError(
                f"exact friction and rigid limits hold joints one by one, which the loops of model "
                f"{model.name!r} do not allow: use friction='smooth' and limits='stiff'"
            )
        self.model, self.law, self.limits = model, law, limits
        self.inertial = (
            Field() if told is None else PrescribedField(prescription=told)
        )  # without forces
        none = np.full(model.nv, np.inf)
        self.lower, self.upper = (-none, none) if limits is None else position_bounds(model)
        self.position = position_index(model)
        self.friction = np.zeros(model.nv) if law is None else law.static_levels
        if told is not None:
            free = told.others(model) == 1
            self.friction = np.where(free, self.friction, 0.0)
            self.lower = np.where(free, self.lower, -np.inf)
            self.upper = np.where(free, self.upper, np.inf)
        stops = np.isfinite(self.lower) | np.isfinite(self.upper)
        self.variables = tuple(int(i) for i in np.flatnonzero(stops | (self.friction > 0)))
        self.mode = Mode(np.zeros((*batch, model.nv)), np.zeros((*batch, model.nv)))
        self._told = None

    def check_start(self, q):
        """Raise for positions beyond a stop."""
        for i in self.variables:
            if self.position[i] < 0:
                continue
            x = q[..., self.position[i]]
            if np.any(x < self.lower[i]) or np.any(x > self.upper[i]):
                worst = x.ravel()[np.argmax(np.maximum(self.lower[i] - x, x - self.upper[i]))]
                raise ShapeError(
                    f"q0 has joint {self.name(i)!r} at {worst:.6g}, beyond its limits "
                    f"{self.lower[i]:.6g} to {self.upper[i]:.6g}, where a rigid stop cannot let "
                    f"it be: start inside, or use limits='stiff'"
                )

    def stepper(self, method, field, *, compiled) -> HeldStepper:
        """Steps in the present mode."""
        if method.differentiates:
            raise UnknownNameError(
                f"integrator {method.name!r} takes derivatives of all forces, which those that "
                f"hold joints at rest do not have: use 'rk4' or 'dopri5' with exact friction and "
                f"rigid limits"
            )
        compiled = compiled and len(self.variables) <= COMPILED
        self._stepper = HeldStepper(
            self.model, method, Holding(field, self.law, self.variables), self.mode,
            compiled=compiled, prepare=self.prepare,
        )  # fmt: skip
        return self._stepper

    def groups(self) -> list:
        """What a ``Watcher`` has to look for."""
        groups = (Arrivals(self, 1.0), Arrivals(self, -1.0), Rests(self), Releases(self))
        return [group for group in groups if len(group.variables)]

    def name(self, i) -> str:
        """Name of the joint of a velocity variable, with its number if the joint has several."""
        for name, at in zip(self.model.joint_names, self.model.v_slice[1:], strict=True):
            if at.start <= i < at.stop:
                return name if at.stop - at.start == 1 else f"{name}[{i - at.start}]"
        raise UnknownNameError(f"there is no velocity variable {i}")

    # --- what joints at rest do next -------------------------------------------------------------

    def prepare(self, t, q, qd, tau):
        """Before a step: joint forces of a controller may have jumped."""
        if self._told is not None and np.array_equal(self._told, tau):
            return
        self._told = np.array(tau)
        for index in np.ndindex(q.shape[:-1]):
            self.settle(t, q[index], qd[index], tau[index], index)

    def settle(self, t, q, qd, tau, index):
        """Decide the mode of a sample from its state."""
        held, direction = np.zeros(self.model.nv), np.sign(qd) * (self.friction > 0)
        low, high = self.bounds(q)
        resting = np.flatnonzero((qd == 0) & (low < high))
        self.mode.held[index], self.mode.direction[index] = held, direction
        if len(resting):
            stepper = self._stepper.for_sample(index)
            qdd, _ = stepper.accelerations(t, q, qd, tau)
            A = self.inertial.mobility(self.model, q)
            f, inside = solve_box(
                A[np.ix_(resting, resting)], qdd[resting], low[resting], high[resting]
            )
            held[resting] = inside
            sliding = ~inside & (self.friction[resting] > 0)
            direction[resting] = np.where(sliding, -np.sign(f), 0.0)
        self.mode.held[index], self.mode.direction[index] = held, direction

    def bounds(self, q):
        """Smallest and largest force that can hold every variable where it is, (..., nv) each."""
        low = np.broadcast_to(-self.friction, (*q.shape[:-1], self.model.nv)).copy()
        high = -low
        for i in self.variables:
            if self.position[i] >= 0:
                x = q[..., self.position[i]]
                high[..., i] = np.where(x <= self.lower[i], np.inf, high[..., i])
                low[..., i] = np.where(x >= self.upper[i], -np.inf, low[..., i])
        return low, high

    # --- impacts ---------------------------------------------------------------------------------

    def impact(self, i, sign, q, qd):
        """State after variable ``i`` has hit its lower (``sign`` 1) or upper (-1) stop.

        Newton's law of restitution; joints that rest at their own stops are held there by impulses
        of theirs, as long as these push. Friction has no impulse.
        """
        e, slow = self.limits.restitution, self.limits.rest_velocity
        q = np.array(q)
        q[self.position[i]] = self.lower[i] if sign > 0 else self.upper[i]
        low, high = self.bounds(q)
        at_stop = np.isinf(high) | np.isinf(low)
        rows = np.array([k for k in np.flatnonzero(at_stop) if k == i or qd[k] == 0])
        after = -e * qd[i] if e * abs(qd[i]) >= max(slow, np.finfo(float).tiny) else 0.0
        A = self.inertial.mobility(self.model, q)
        b = qd[rows] - np.where(rows == i, after, 0.0)
        low, high = np.where(np.isinf(low), low, 0.0), np.where(np.isinf(high), high, 0.0)
        p, _ = solve_box(A[np.ix_(rows, rows)], b, low[rows], high[rows])
        qd = qd + A[:, rows] @ p
        pushed = rows[p != 0]
        qd[pushed] = np.where(pushed == i, after, 0.0)
        return q, qd

    def repair(self, step):
        """A hook: joints that rounding errors made slide the wrong way come to rest."""
        wrong = self.mode.direction * step.qd1 < 0
        if not wrong.any():
            return step
        _ = step.interpolant
        step.qd1, step.work = np.array(step.qd1), np.array(step.work)
        for index in {tuple(int(k) for k in at[:-1]) for at in np.argwhere(wrong)}:
            before = mechanical_energy(self.model, step.q1[index], step.qd1[index])
            step.qd1[index][wrong[index]] = 0.0
            after = mechanical_energy(self.model, step.q1[index], step.qd1[index])
            step.work[index] += after - before
            self.settle(step.t1, step.q1[index], step.qd1[index], step.tau[index], index)
        return step
