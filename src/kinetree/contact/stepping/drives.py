"""Joint forces of the unrolled step: those where it begins, what resists in it, and bounds.

The laws are those of ``engine.drives``, in the variables of all joints: servos are implicit, also
through couplings and tendons, and which bounds they reach is part of the solution.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.actuators import (
    compensation_within_effort,
    force_laws,
    slopes,
    transmission_of,
)
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.passive import (
    compensation_force,
    stretch,
    tendon_stretch,
)
from kinetree.contact.engine.actuator_tables import moving_arms
from kinetree.contact.engine.drives import ATTEMPTS, INSIDE
from kinetree.contact.engine.mechanism import resistance
from kinetree.contact.engine.terms import springs_of_loops
from kinetree.contact.scheme.inertia import is_zero, straight_motion
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.model.gearing import Gearing
from kinetree.model.limits import effort_bounds, joint_values
from kinetree.model.tendon_paths import tendon_motion
from kinetree.quantities import dynamics

MOST_ATTEMPTS = 2 * ATTEMPTS
"""Times that a step is solved for the bounds that its drives reach."""


class StepStart(NamedTuple):
    """Start of a step.

    Attributes:
        t: time [s].
        h: length of the step [s].
        q, qd: state, (nq,) and (nv,).
        inputs: joint forces or controls held during the step.
    """

    t: Any
    h: Any
    q: Any
    qd: Any
    inputs: Any

    def halfway(self, model, half) -> "Instant":
        """``Instant`` with the step's middle, after ``half`` seconds of force-free motion."""
        middle, v = straight_motion(model, self.q, self.qd, half)
        return Instant(self.t, self.h, half, self.q, self.qd, self.inputs, middle, v)


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

    def resisting(self, K, D, own, h, alpha) -> "Push":
        """Actuator with implicit coefficients from stiffness, damping and inertias ``own``."""
        if not self.arms or (is_zero(K) and is_zero(D)):
            return self
        mobility = sum(x * x / own[i] for i, x in self.arms)
        lead, lag = resistance.python(K, D, 1 / mobility, h, alpha)
        return self._replace(lead=lead, lag=lag)


def _spring(arms, length, rate):
    """Spring and damper as an actuator ``Push``, with its stiffness and damping.

    Args:
        arms: variable and arm, of those that are not zero.
        length: beyond rest where the step begins, and stiffness.
        rate: of the length there, and damping.
    """
    (x, K), (v, D) = length, rate
    return Push(tuple(arms), -K * x - D * v, (-np.inf, np.inf), 0.0, 0.0), K, D


class Resisting(NamedTuple):
    """Resistance of forces in a step, (nv, nv) each: against velocities, and their change.

    Attributes:
        lead: times velocities where the step begins.
        lag: times their change, with the zeros of the inertia matrix.
        across: what ``lag`` has too little, by pairs of arms of which neither joint carries the
            other: see ``engine.drives.add_force_across``.
    """

    lead: Any
    lag: Any
    across: Any

    def against(self, change):
        """Decrease (nv,) of the actuators' joint forces by a velocity change."""
        return self.lag @ change + self.more(change)

    @property
    def crosses(self) -> bool:
        """Whether actuators couple joints of different branches of the tree."""
        return self.across.dtype == object or bool(np.any(self.across))

    def more(self, change):
        """Cross-branch resisting forces of a velocity change, (nv,), or 0 without any."""
        return self.across @ change if self.crosses else 0


def limited_drives(model) -> dict[int, tuple]:
    """Finite force bounds of actuators, then of joint variables, by number."""
    full = model.uncoupled
    found = dict(enumerate(tuple(a.effort) for a in full.actuators))
    for i, bounds in enumerate(effort_bounds(full).tolist() if found else ()):
        found[len(full.actuators) + i] = tuple(bounds)
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
        self._start = at.q, at.qd
        self._middle = (at.middle, at.v) if gear is None else (gear.q, gear.qd)
        if gear is not None:
            before = Gearing(model, at.q, at.qd)
            self._start = before.q, before.qd
            H = dynamics.mass_matrix(self.full.spanning_tree, gear.q)
        tabled = field.actuators is not None and field.drive is None
        rest = (replace(field, actuators=None) if tabled else field).for_steps
        held = np.zeros(model.nv) if tabled else at.inputs
        self.held = rest.joint_force(model, at.t, at.q, at.qd, held) + self._compensation()
        own, alpha = np.diagonal(H), at.half / at.h
        K, D = self._resistance(settings, rest, held)
        self.lead, self.lag = _resistances(K, D, own, at.h, alpha)
        self.pushes, self.bounds, self.place = [], {}, {}
        self.compensation = compensation_within_effort(self.full, self._middle[0])
        self.springs = self._springs(own + at.h * self.lag, alpha)
        if tabled:
            own = own + at.h * np.diagonal(self._matrices(np.zeros(0))[1])
            self.pushes, self.bounds = self._pushes(field, own, alpha), limited_drives(model)
            self.place = {k: n for n, k in enumerate(self.bounds)}

    def _compensation(self):
        """Gravity-compensation forces at mid-step, (nv,), or 0 without any."""
        if not self.full.gravity_compensation:
            return 0
        tau = compensation_force(self.full, self._middle[0])
        return tau if self.G is None else self.G.T @ tau

    def _springs(self, own, alpha):
        """Tendon and loop-joint springs as actuators, for joint inertias ``own``."""
        found = [*self._springs_of_tendons(), *self._springs_of_loops()]
        return [push.resisting(K, D, own, self.at.h, alpha) for push, K, D in found]

    def _springs_of_tendons(self):
        """Tendon springs with stiffness and damping, lengths at the start of the step.

        Those of tendons through space are lengths in the middle, taken back.
        """
        full, (q, qd) = self.full, self._start
        for t in full.tendons:
            if not t.has("stiffness", "damping"):
                continue
            if t.path:
                L, r = tendon_motion(full, t, self._middle[0])
                rate = r @ self._middle[1]
                L = L - self.at.h / 2 * rate
            else:
                L, r = tendon_motion(full, t, q)
                rate = r @ qd
            x, arms = tendon_stretch(t, L), [(i, c) for i, c in enumerate(r) if not is_zero(c)]
            K = t.stiffness if t.rest[0] == t.rest[1] else select(x * x > 0, t.stiffness, 0.0)
            yield _spring(arms, (x, K), (rate, t.damping))

    def _springs_of_loops(self):
        """Loop-joint springs with stiffness and damping, lengths at the start of the step."""
        for loop in springs_of_loops(self.model):
            at, rate, B = loop_joint_motion(self.full, *self._middle, [loop])
            x, given = stretch(loop, at) - self.at.h / 2 * rate, loop.dynamics
            for k in range(loop.joint.nv):
                arms = [(i, r) for i, r in enumerate(B[:, k]) if not is_zero(r)]
                K, D = (values[k] if values else 0.0 for values in (given.stiffness, given.damping))
                yield _spring(arms, (x[k], K), (rate[k], D))

    def _resistance(self, settings, rest, held):
        """Stiffness and damping of all joint variables: joints, controller and limits."""
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
        """Actuators of the step as ``Push``, for joint inertias ``own``."""
        model, full, at = self.model, self.full, self.at
        start, middle = self._start, self._middle
        given = at.t + at.h / 2, at.middle, at.v, at.inputs
        controls, activation = field.actuators.state(model, *given)
        moving, lengths, rates, arms = set(moving_arms(model)), [], [], []
        for k, a in enumerate(full.actuators):
            l, r = transmission_of(full, a, *(middle if k in moving else start))
            ld = r @ (middle if k in moving else start)[1]
            lengths.append(l - ld * at.h / 2 if k in moving else l)
            rates.append(ld)
            arms.append(tuple((i, x) for i, x in enumerate(r) if not is_zero(x)))
        found = []
        laws = force_laws(full, lengths, rates, controls, activation)
        given = zip(full.actuators, arms, lengths, rates, laws, strict=True)
        for a, r, l, ld, (u, request) in given:
            K, D = (_positive(-slope) for slope in slopes(a, l, ld, u))
            push = Push(r, request, tuple(a.effort), 0.0, 0.0)
            found.append(push.resisting(K, D, own, at.h, alpha))
        return found

    # --- what bounds leave --------------------------------------------------------------------

    def resisting(self, bound) -> Resisting:
        """Implicit resistance matrices of the step's forces, under these force bounds."""
        found = self._matrices(bound)
        if self.G is not None:
            found = [self.G.T @ R @ self.G for R in found]
        return Resisting(*(np.array(R.tolist()).reshape(R.shape) for R in found))

    def _matrices(self, bound):
        """Implicit resistance matrices in the variables of all joints, (nv, nv) each."""
        nv = self.full.nv
        lead, lag, across = (np.zeros((nv, nv), dtype=object) for _ in range(3))
        for i in range(nv):
            lead[i, i], lag[i, i] = self.lead[i], self.lag[i]
        for spring in self.springs:
            self._add((lead, lag, across), spring, 1, spring.arms)
        free = [self._inside(bound, len(self.pushes) + i) for i in range(nv)]
        for k, push in enumerate(self.pushes):
            arms = [(i, x * free[i]) for i, x in push.arms]
            self._add((lead, lag, across), push, self._inside(bound, k), arms)
        return lead, lag, across

    def _add(self, matrices, push, inside, arms):
        """Add ``r rᵀ`` of an actuator to the matrices; cross-branch terms go to the diagonal."""
        (lead, lag, across), lam = matrices, self.full.expanded_parent
        if is_zero(push.lag):
            return
        for k, (i, a) in enumerate(arms):
            for j, b in arms[: k + 1]:
                x, y = (part * inside * (a * b) for part in (push.lead, push.lag))
                for u, v in {(i, j), (j, i)}:
                    lead[u, v] = lead[u, v] + x
                if i == j or j in ltl.ancestors(lam, i) or i in ltl.ancestors(lam, j):
                    for u, v in {(i, j), (j, i)}:
                        lag[u, v] = lag[u, v] + y
                    continue
                for u, v in ((i, j), (j, i)):
                    lag[u, u] = lag[u, u] + _absolute(y)
                    across[u, u], across[u, v] = across[u, u] - _absolute(y), across[u, v] + y

    def applied_force(self, bound):
        """Joint forces (nv,) without implicit resistance, under these force bounds."""
        if not (self.pushes or self.springs):
            return self.held
        n, tau = len(self.pushes), np.zeros(self.full.nv, dtype=object)
        for k, push in enumerate(self.pushes):
            f = self._cut(bound, k, push.request)
            for i, x in push.arms:
                tau[i] = tau[i] + x * f
        tau = [
            self._cut(bound, n + i, x + w) - w
            for i, (x, w) in enumerate(zip(tau, self.compensation, strict=True))
        ]
        for spring in self.springs:
            for i, x in spring.arms:
                tau[i] = tau[i] + x * spring.request
        tau = np.array(tau)
        return self.held + (tau if self.G is None else self.G.T @ tau)

    def _inside(self, bound, k):
        """Factor of force ``k``: 1 between its bounds, 0 at a bound."""
        if k not in self.place:
            return 1
        side = bound[self.place[k]]
        return select(side * side > 0.5, 0.0, 1.0)

    def _cut(self, bound, k, force):
        """Force ``k`` replaced by its bound's value if it is at a bound."""
        if k not in self.place:
            return force
        side, (low, high) = bound[self.place[k]], self.bounds[k]
        force = select(side > 0.5, high, force) if np.isfinite(high) else force
        return select(side < -0.5, low, force) if np.isfinite(low) else force

    # --- which bounds are reached -------------------------------------------------------------

    def first_bounds(self):
        """Bounds that forces reach at the start of the step: 1 upper, -1 lower, 0 between."""
        return self._find_bounds([push.request for push in self.pushes])

    def next_bounds(self, bound, after, attempts):
        """Bounds for the next solution, from those that velocities ``after`` lead to."""
        after = after if self.G is None else self.G @ after
        forces = [push.request - self._given_way(push, after) for push in self.pushes]
        found = []
        for old, new in zip(bound, self._find_bounds(forces), strict=True):
            if isinstance(new, (int, float)):  # nothing acts
                found.append(new)
                continue
            new = select(old * new < -0.5, 0.0, new)  # from one to the other it passes between
            stays = (new * new < 0.5) & (attempts > ATTEMPTS - 0.5)
            found.append(select(stays, old, new))
        return np.array(found)

    def _given_way(self, push, after):
        """Decrease of an actuator's force due to implicit resistance at velocities ``after``."""
        return sum(
            x * (push.lead * self.v[i] + push.lag * (after[i] - self.v[i])) for i, x in push.arms
        )

    def _find_bounds(self, forces):
        """Bounds that forces of actuators, and of joints with them, reach."""
        tau = [0.0] * self.full.nv
        for k, (f, push) in enumerate(zip(forces, self.pushes, strict=True)):
            low, high = self.bounds.get(k, (-np.inf, np.inf))
            f = select(f > high, high, f) if np.isfinite(high) else f
            f = select(f < low, low, f) if np.isfinite(low) else f
            for i, x in push.arms:
                tau[i] = tau[i] + x * f
        every = [*forces, *(x + w for x, w in zip(tau, self.compensation, strict=True))]
        return np.array([_side(every[k], *bounds) for k, bounds in self.bounds.items()])

    def settle(self, solve, nothing):
        """Force bounds of the step by repeated attempts, and the results of ``solve`` with them.

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
    """``function`` of bounds; without any bounds, a constant function of its single result."""
    if forces.bounds:
        return function
    found = function(np.zeros(0))
    return lambda bound: found


def _resistances(K, D, H, h, alpha):
    """Implicit coefficients ``lead`` and ``lag`` of all variables, (2, nv)."""
    found = [
        (0.0, 0.0) if is_zero(k) and is_zero(d) else resistance.python(k, d, m, h, alpha)
        for k, d, m in zip(K, D, H, strict=True)
    ]
    return np.array(found).reshape(-1, 2).T


def _positive(x):
    """Positive part of a number, traceable."""
    return max(x, 0.0) if isinstance(x, (int, float)) else select(x > 0, x, 0.0)


def _absolute(x):
    """Absolute value of a number, traceable."""
    return abs(x) if isinstance(x, (int, float)) else select(x < 0, -x, x)


def _side(f, low, high):
    """Side of the bounds that a force has reached: 1 upper, -1 lower, 0 between; traceable."""
    slack, found = INSIDE * _absolute(f), 0.0
    if np.isfinite(low):
        found = select(f > low - slack, found, -1.0)
    return select(f < high + slack, found, 1.0) if np.isfinite(high) else found
