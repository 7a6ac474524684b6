"""Modes of joints, at rest or sliding: exact dry friction, and rigid stops.

Between events every joint with friction either slides in a known direction or is held, and every
joint at a stop is held there or free; see ``held``. Events change that:

- a sliding joint comes to rest;
- a held joint would need more force than friction has, or a stop would have to pull;
- a joint arrives at a stop, and an impulse sends it back.

What a joint at rest does next is the answer to a linear complementarity problem: constraint forces
within their bounds, no acceleration against them — RBDA §11.5 in joint space.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.integration.field import Field, PrescribedField
from kinetree.integration.watcher import Watcher, mechanical_energy
from kinetree.model.limits import position_bounds, position_index
from kinetree.simulation.forces.held import FieldByMode, HeldStepper, Mode

COMPILED = 12
"""Variables that can be held, up to which a step is one kernel: solving for the forces that hold
them takes the cube of their number of operations, at every stage."""


class Modes:
    """The modes of all samples, and how they change.

    Args:
        model: the mechanism, a tree.
        law: exact ``Friction`` with the parameters of the model, or None.
        limits: ``RigidLimits``, or None.
        batch: shape of the batch.
        prescription: prescribed joints, which nothing holds, or None.
    """

    def __init__(self, model, law, limits, batch, prescription=None):
        self.model, self.law, self.limits = model, law, limits
        self.inertial = Field()  # without forces
        if prescription is not None:
            self.inertial = PrescribedField(prescription=prescription)
        none = np.full(model.nv, np.inf)
        self.lower, self.upper = (-none, none) if limits is None else position_bounds(model)
        self.position = position_index(model)
        self.friction = np.zeros(model.nv) if law is None else law.static_levels
        if prescription is not None:
            free = prescription.others(model) == 1
            self.friction = np.where(free, self.friction, 0.0)
            self.lower = np.where(free, self.lower, -np.inf)
            self.upper = np.where(free, self.upper, np.inf)
        stops = np.isfinite(self.lower) | np.isfinite(self.upper)
        self.variables = tuple(int(i) for i in np.flatnonzero(stops | (self.friction > 0)))
        self.mode = Mode(np.zeros((*batch, model.nv)), np.zeros((*batch, model.nv)))
        self._tau = None

    def check_start(self, q):
        """Raise an error for initial positions beyond a rigid stop."""
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

    def stepper(self, method, field, events, *, compiled) -> tuple[HeldStepper, tuple]:
        """Stepper in the present mode, and hooks that change the mode at events.

        Args:
            method: the integrator.
            field: all forces but those that hold, and exact friction.
            events: groups of the user's events for a ``Watcher``.
            compiled: whether a step can be one kernel.
        """
        compiled = compiled and len(self.variables) <= COMPILED
        self._stepper = HeldStepper(
            self.model,
            method,
            FieldByMode(field, self.law, self.variables),
            self.mode,
            compiled=compiled,
            prepare=self.prepare,
        )
        batch = self.mode.held.shape[:-1]
        watcher = Watcher(self.model, [*events, *self.groups()], batch, self.settle)
        noting = () if field.prescription is None else (self._stepper.note,)
        return self._stepper, (*noting, watcher, self.repair)

    def groups(self) -> list:
        """Event groups of mode changes (arrival, rest, release) for a ``Watcher``."""
        groups = (Arrivals(self, 1.0), Arrivals(self, -1.0), Rests(self), Releases(self))
        return [group for group in groups if len(group.variables)]

    def name(self, i) -> str:
        """Joint name of velocity variable ``i``, with an index if the joint has several."""
        for name, at in zip(self.model.joint_names, self.model.v_slice[1:], strict=True):
            if at.start <= i < at.stop:
                return name if at.stop - at.start == 1 else f"{name}[{i - at.start}]"
        raise UnknownNameError(f"there is no velocity variable {i}")

    # --- what joints at rest do next -------------------------------------------------------------

    def prepare(self, t, q, qd, tau):
        """Update the modes before a step if the held joint forces have changed."""
        if self._tau is not None and np.array_equal(self._tau, tau):
            return
        self._tau = np.array(tau)
        for index in np.ndindex(q.shape[:-1]):
            self.settle(t, q[index], qd[index], tau[index], index)

    def settle(self, t, q, qd, tau, index):
        """Determine which joints of a sample are stuck or slide, from its state."""
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
        """Smallest and largest holding force of every variable, (..., nv) each."""
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
        """Hook that stops joints which rounding errors made slide against their direction."""
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


# --- Forces within bounds that leave no motion against them: a convex program over a box ---------

_SWEEPS = 100_000


def solve_box(A, b, low, high):
    """Solution ``f`` of a box-constrained quadratic program: ``A f + b`` complementary.

    So ``w_i >= 0`` where ``f_i = low_i`` and ``w_i <= 0`` where ``f_i = high_i``: the one minimum
    of ``½ fᵀ A f + bᵀ f``. By projected Gauss–Seidel, then exactly for those between bounds.

    Args:
        A: symmetric and positive definite, (n, n).
        b: (n,).
        low: smallest, infinite where there is no bound, (n,).
        high: largest, likewise.

    Returns:
        ``f`` and which are between their bounds, (n,) each.
    """
    n = len(b)
    f = np.clip(np.zeros(n), low, high)
    for _ in range(_SWEEPS):
        change = 0.0
        for i in range(n):
            x = min(max(f[i] - (A[i] @ f + b[i]) / A[i, i], low[i]), high[i])
            change, f[i] = max(change, abs(x - f[i])), x
        if change <= 1e-15 * np.max(np.abs(f), initial=0.0):
            break
    inside = (low < f) & (f < high)
    s = np.flatnonzero(inside)
    if len(s):
        rest = A[np.ix_(s, ~inside)] @ f[~inside]
        exact = np.linalg.solve(A[np.ix_(s, s)], -b[s] - rest)
        if np.all((low[s] <= exact) & (exact <= high[s])):
            f[s] = exact
    return f, inside


# --- what changes the mode of a joint, as functions that cross zero ------------------------------
# All functions are positive as long as nothing happens, and one where nothing can.


class Watch:
    """One variable of a group, as a ``Watcher`` sees it; crossings downward count."""

    direction = -1
    terminal = False
    tolerance = 1e-12
    remedy = (
        "forces that switch with the motion do that; let them change smoothly, or take "
        "friction='smooth' and limits='stiff'"
    )

    def __init__(self, group, k, name):
        self.group, self.k, self.name = group, k, name

    def values(self, t, q, qd, tau, stepper):
        """Event function of one variable, for times (n,) and states (n, ...): (n, ...)."""
        return self.group.values(t, q, qd, tau, stepper)[..., self.k]

    def act(self, t, q, qd):
        """State after the event of the watched variable."""
        return self.group.act(self.group.variables[self.k], q, qd)


class _Group(ABC):
    """Some velocity variables of ``modes``, and what they have in common."""

    def __init__(self, modes, variables, what):
        self.modes, self.variables = modes, np.array(variables, dtype=int)
        self.watches = [Watch(self, k, f"{modes.name(i)} {what}") for k, i in enumerate(variables)]

    def values(self, t, q, qd, tau, stepper: HeldStepper):
        """Event functions of all variables of the group, 1 where inactive, (n, ..., k)."""
        on = self._on(stepper.mode)
        if not np.any(on):
            return np.ones((*qd.shape[:-1], len(self.variables)))
        return np.where(on, self._functions(t, q, qd, tau, stepper), 1.0)

    @abstractmethod
    def _on(self, mode) -> Any:
        """Mask of the group's variables whose event can occur in a mode."""

    @abstractmethod
    def _functions(self, t, q, qd, tau, stepper) -> Any:
        """Event functions whose zeros end a mode, (n, ..., variables)."""

    @abstractmethod
    def act(self, i, q, qd):
        """State after the mode-changing event of velocity variable ``i``."""


class Arrivals(_Group):
    """Joints reach their lower (``sign`` 1) or upper (-1) stops."""

    def __init__(self, modes, sign):
        self.sign, self.bound = sign, modes.lower if sign > 0 else modes.upper
        variables = [i for i in modes.variables if np.isfinite(self.bound[i])]
        super().__init__(modes, variables, f"reaches its {'lower' if sign > 0 else 'upper'} limit")

    def _on(self, mode):
        """Mask of the variables that may arrive at a stop: those not held."""
        return mode.held[..., self.variables] == 0

    def _functions(self, t, q, qd, tau, stepper):
        """Distances to the stops, zero on arrival [m or rad]."""
        x = q[..., self.modes.position[self.variables]]
        return self.sign * (x - self.bound[self.variables])

    def act(self, i, q, qd):
        """State after variable ``i``'s impact on its stop."""
        return self.modes.impact(i, self.sign, q, qd)


class Rests(_Group):
    """Sliding joints come to rest."""

    def __init__(self, modes):
        super().__init__(
            modes, [i for i in modes.variables if modes.friction[i] > 0], "comes to rest"
        )

    def _on(self, mode):
        """Mask of the variables that slide, and so may come to rest."""
        return mode.direction[..., self.variables] != 0

    def _functions(self, t, q, qd, tau, stepper):
        """Sliding speeds, zero when a joint comes to rest."""
        return stepper.mode.direction[..., self.variables] * qd[..., self.variables]

    def act(self, i, q, qd):
        """State with the velocity of variable ``i`` set to zero."""
        qd = np.array(qd)
        qd[i] = 0.0
        return q, qd


class Releases(_Group):
    """Events where what holds joints is not enough any more."""

    def __init__(self, modes):
        super().__init__(modes, list(modes.variables), "breaks away")

    def _on(self, mode):
        """Mask of the variables that are stuck, and so may be released."""
        return mode.held[..., self.variables] != 0

    def _functions(self, t, q, qd, tau, stepper):
        """Margins of holding forces to their bounds, zero on release."""
        low, high = self.modes.bounds(q)
        held = np.broadcast_to(tau, (*qd.shape[:-1], tau.shape[-1]))
        f = stepper.constraint_force(t, q, qd, held)
        return np.minimum(f - low, high - f)[..., self.variables]

    def act(self, i, q, qd):
        """State after a release: unchanged, only the mode changes."""
        return q, qd
