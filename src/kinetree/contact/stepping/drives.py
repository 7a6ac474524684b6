"""Joint forces of the unrolled step: those where it begins, what resists in it, and bounds.

The laws are those of ``engine.drives``, in the variables of all joints: servos are implicit, also
through couplings and tendons, and which bounds they reach is part of the solution.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.actuators import force_laws, transmission_of
from kinetree.contact.engine.drives import ATTEMPTS, INSIDE, moving_arms
from kinetree.contact.engine.mechanism import resistance
from kinetree.contact.scheme.inertia import is_zero
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.model.gearing import Gearing
from kinetree.model.limits import joint_values
from kinetree.quantities import dynamics

MOST_ATTEMPTS = 2 * ATTEMPTS
"""Times that a step is solved for the bounds that its drives reach."""


class Instant(NamedTuple):
    """Beginning and middle of a step.

    Attributes:
        t: time at the start [s];  h: length of the step;  half: time until its middle.
        q, qd: state at the start;  inputs: what is held.
        middle, v: positions in the middle, and velocities along the axes there.
    """

    t: Any
    h: Any
    half: Any
    q: Any
    qd: Any
    inputs: Any
    middle: Any
    v: Any


class Push(NamedTuple):
    """One actuator in a step.

    Attributes:
        arms: variable and arm, of those that are not zero.
        request: force before bounds where the step begins.
        effort: smallest and largest force.
        lead, lag: against velocities where the step begins, and their change.
    """

    arms: tuple
    request: Any
    effort: tuple
    lead: Any
    lag: Any


def limited_drives(model) -> dict[int, tuple]:
    """Bounds of the drives of a model by number: of actuators, then of the variables of joints."""
    full = model.uncoupled
    found = dict(enumerate(tuple(a.effort) for a in full.actuators))
    for i, most in enumerate(full.effort_limits if found else ()):
        found[len(full.actuators) + i] = (-most, most) if most > 0 else (-np.inf, np.inf)
    return {k: bounds for k, bounds in found.items() if np.any(np.isfinite(bounds))}


class StepForces:
    """Joint forces of a step.

    Args:
        settings: ``TimeStepping``.
        field: what moves it.
        model: the mechanism.
        at: where the step begins, and its middle.
        H: inertia matrix there, (nv, nv).
    """

    def __init__(self, settings, field, model, at: Instant, H):
        self.model, self.full, self.at = model, model.uncoupled, at
        gear = Gearing(model, at.middle, at.v) if model.couplings else None
        self.G = None if gear is None else gear.G
        self.v = at.v if gear is None else gear.qd
        tabled = field.actuators is not None and field.drive is None
        rest = replace(field, actuators=None) if tabled else field
        held = np.zeros(model.nv) if tabled else at.inputs
        self.held = rest.joint_force(model, at.t, at.q, at.qd, held)
        if gear is not None:
            H = dynamics.mass_matrix(self.full.spanning_tree, gear.q)
        own, alpha = np.diagonal(H), at.half / at.h
        K, D = self._resistance(settings, rest, held)
        self.lead, self.lag = _resistances(K, D, own, at.h, alpha)
        self.pushes = self._pushes(field, own + at.h * self.lag, alpha) if tabled else []
        self.bounds = limited_drives(model) if tabled else {}
        self.place = {k: n for n, k in enumerate(self.bounds)}

    def _resistance(self, settings, rest, held):
        """Stiffness and damping of the variables of all joints: of joints, controller, limits."""
        model, at, of_v = self.model, self.at, slice(None)
        if model.couplings:
            of_v = model.independent_variables[1]
        more = rest.resistance(model, at.t, at.q, at.qd, held) if rest.resists else (0.0, 0.0)
        found = []
        for name, other in zip(("stiffness", "damping"), more, strict=True):
            values = np.array(joint_values(model, name), dtype=object)
            values[of_v] = values[of_v] + getattr(settings, name) + other
            found.append(values)
        return found

    def _pushes(self, field, own, alpha):
        """The actuators, on joints that have inertias ``own``."""
        model, full, at = self.model, self.full, self.at
        start, middle = (at.q, at.qd), (at.middle, at.v)
        if model.couplings:
            start, middle = ((g.q, g.qd) for g in (Gearing(model, *x) for x in (start, middle)))
        controls, activation = field.actuators.state(model, at.t + at.h / 2, at.inputs)
        moving, lengths, rates, arms = set(moving_arms(model)), [], [], []
        for k, a in enumerate(full.actuators):
            l, r = transmission_of(full, a, *(middle if k in moving else start))
            ld = r @ (middle if k in moving else start)[1]
            lengths.append(l - ld * at.h / 2 if k in moving else l)
            rates.append(ld)
            arms.append(tuple((i, x) for i, x in enumerate(r) if not is_zero(x)))
        found = []
        laws = force_laws(full, lengths, rates, controls, activation)
        for a, r, (u, request) in zip(full.actuators, arms, laws, strict=True):
            K, D = (_positive(-(a.gain[n] * u + a.bias[n])) for n in (1, 2))
            lead = lag = 0.0
            if r and not (is_zero(K) and is_zero(D)):
                mobility = sum(x * x / own[i] for i, x in r)
                lead, lag = resistance.python(K, D, 1 / mobility, at.h, alpha)
            found.append(Push(r, request, tuple(a.effort), lead, lag))
        return found

    # --- what bounds leave --------------------------------------------------------------------

    def resisting(self, bound):
        """Matrices ``lead`` and ``lag`` with which forces resist, (nv, nv), under some bounds."""
        found = []
        for name in ("lead", "lag"):
            R = np.zeros((self.full.nv, self.full.nv), dtype=object)
            for i, x in enumerate(getattr(self, name)):
                R[i, i] = x
            for k, push in enumerate(self.pushes):
                if not is_zero(push.lag):
                    self._add(R, push, getattr(push, name) * self._inside(bound, k), bound)
            R = R if self.G is None else self.G.T @ R @ self.G
            found.append(np.array(R.tolist()).reshape(R.shape))  # of numbers, where all are
        return found

    def _add(self, R, push, x, bound):
        """Add ``x r rᵀ`` of an actuator; where neither joint carries the other, to the diagonal."""
        n, lam = len(self.pushes), self.full.expanded_parent
        free = {i: self._inside(bound, n + i) for i, _ in push.arms}
        for k, (i, a) in enumerate(push.arms):
            for j, b in push.arms[: k + 1]:
                y = x * (a * b) * (free[i] if i == j else free[i] * free[j])
                if i == j:
                    R[i, i] = R[i, i] + y
                elif j in ltl.ancestors(lam, i) or i in ltl.ancestors(lam, j):
                    R[i, j], R[j, i] = R[i, j] + y, R[j, i] + y
                else:
                    R[i, i], R[j, j] = R[i, i] + _size(y), R[j, j] + _size(y)

    def applied(self, bound):
        """Joint forces without what resists, (nv,), under some bounds."""
        if not self.pushes:
            return self.held
        n, tau = len(self.pushes), np.zeros(self.full.nv, dtype=object)
        for k, push in enumerate(self.pushes):
            f = self._cut(bound, k, push.request)
            for i, x in push.arms:
                tau[i] = tau[i] + x * f
        tau = np.array([self._cut(bound, n + i, x) for i, x in enumerate(tau)])
        return self.held + (tau if self.G is None else self.G.T @ tau)

    def _inside(self, bound, k):
        """1 where a force is between its bounds, 0 where not."""
        if k not in self.place:
            return 1
        side = bound[self.place[k]]
        return select(side * side > 0.5, 0.0, 1.0)

    def _cut(self, bound, k, force):
        """A force, or the bound where it is."""
        if k not in self.place:
            return force
        side, (low, high) = bound[self.place[k]], self.bounds[k]
        force = select(side > 0.5, high, force) if np.isfinite(high) else force
        return select(side < -0.5, low, force) if np.isfinite(low) else force

    # --- which bounds are reached -------------------------------------------------------------

    def first_bounds(self):
        """Bounds that the forces reach where the step begins: 1 upper, -1 lower, 0 between."""
        return self._reached([push.request for push in self.pushes])

    def next_bounds(self, bound, after, attempts):
        """Bounds to solve with, where those of a solution lead to velocities ``after`` it."""
        after = after if self.G is None else self.G @ after
        forces = [
            push.request - sum(
                x * (push.lead * self.v[i] + push.lag * (after[i] - self.v[i]))
                for i, x in push.arms
            )
            for push in self.pushes
        ]  # fmt: skip
        found = []
        for old, new in zip(bound, self._reached(forces), strict=True):
            if isinstance(new, (int, float)):  # nothing acts
                found.append(new)
                continue
            new = select(old * new < -0.5, 0.0, new)  # from one to the other it passes between
            stays = (new * new < 0.5) & (attempts > ATTEMPTS - 0.5)
            found.append(select(stays, old, new))
        return np.array(found)

    def _reached(self, forces):
        """Bounds that forces of the actuators reach, and those of joints with them."""
        tau = [0.0] * self.full.nv
        for k, (f, push) in enumerate(zip(forces, self.pushes, strict=True)):
            low, high = self.bounds.get(k, (-np.inf, np.inf))
            f = select(f > high, high, f) if np.isfinite(high) else f
            f = select(f < low, low, f) if np.isfinite(low) else f
            for i, x in push.arms:
                tau[i] = tau[i] + x * f
        every = [*forces, *tau]
        return np.array([_side(every[k], *bounds) for k, bounds in self.bounds.items()])

    def settle(self, solve, nothing):
        """Bounds of the step, and results of ``solve`` with them.

        Args:
            solve: function from bounds to a tuple of arrays, of which the first are the velocities
                after the step.
            nothing: zeros in the shape of these.
        """
        if not self.bounds:
            return np.zeros(0), solve(np.zeros(0))

        def attempt(state):
            _, bound, attempts = state[:3]
            results = solve(bound)
            after = self.next_bounds(bound, results[0], attempts + 1)
            change = (after - bound) @ (after - bound)
            return bound, after, attempts + 1, change, *results

        def if_changed(state):
            return repeat(attempt, state, select(state[3] > 0.5, 1, 0))

        first = self.first_bounds()
        found: Any = repeat(if_changed, (first, first, 0.0, 1.0, *nothing), MOST_ATTEMPTS)
        return found[0], found[4:]


def once_for_all(function, forces: StepForces):
    """A function of bounds; where there are none, its result is computed once."""
    if forces.bounds:
        return function
    found = function(np.zeros(0))
    return lambda bound: found


def _resistances(K, D, H, h, alpha):
    """``lead`` and ``lag`` of all variables, see ``resistance``; zero where nothing resists."""
    found = [
        resistance.python(k, d, m, h, alpha)
        if not (is_zero(k) and is_zero(d)) else (0.0, 0.0)
        for k, d, m in zip(K, D, H, strict=True)
    ]  # fmt: skip
    return np.array(found).reshape(-1, 2).T


def _positive(x):
    return max(x, 0.0) if isinstance(x, (int, float)) else select(x > 0, x, 0.0)


def _size(x):
    return abs(x) if isinstance(x, (int, float)) else select(x < 0, -x, x)


def _side(f, low, high):
    """1 for a force at an upper bound or beyond it, -1 at a lower one, 0 between."""
    slack, found = INSIDE * _size(f), 0.0
    if np.isfinite(low):
        found = select(f > low - slack, found, -1.0)
    return select(f < high + slack, found, 1.0) if np.isfinite(high) else found
