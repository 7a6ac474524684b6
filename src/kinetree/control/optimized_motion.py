"""Motions that trajectory optimization found, and controllers that follow them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.energy import elastic_energy
from kinetree.control.algebraic_riccati import gain
from kinetree.control.equilibria import equilibrium
from kinetree.control.linearization import linearize
from kinetree.control.lqr import LQR
from kinetree.control.phases import Schedule
from kinetree.errors import EquilibriumError, LoopError, ModelError, SingularError
from kinetree.model import Model
from kinetree.notebook import block, show
from kinetree.quantities import kinetic_energy, mass_matrix, passive_force, potential_energy
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.rollouts.rollout import rollout

NEAR = 1e-2  # how far from rest the end of a motion may be that is held by a regulator
HOLDING = 10.0  # how fast it returns [1/s]
FOLLOWING, PARTS = 3.0, 4  # the same for a regulator along a motion, and how many gains a step has


@dataclass(frozen=True)
class OptimizedMotion:
    """Motions that ``optimize`` found; time comes first, then the batch.

    Attributes:
        model: the mechanism.
        t: times [s], (steps + 1,).
        q: positions, (steps + 1, ..., nq), exactly those of a rollout of ``tau``.
        qd: velocities, (steps + 1, ..., nv).
        tau: joint forces [N, N·m] held during each step, (steps, ..., nv); None with ``controls``.
        controls: of the model's actuators, (steps, ..., n); None with joint forces.
        cost: of every motion, (...).
        converged: which motions satisfy all tolerances, (...).
        optimality: largest derivative of the Lagrangian with respect to a control, relative to
            the largest force of the costates (at least 1), with feedback after it, (...).
        gap: largest difference between the end of a step and the next state before the gaps were
            closed at the end, (...).
        violation: largest violation of a limit or constraint, (...).
        iterations: of every motion, (...).
        history: costs, (iterations + 1, ...).
        gains: ``u = u_k + K (dq, dqd)`` of the best feedback near the motion,
            (steps, ..., m, 2 nv); a row for each driven variable.
        columns: numbers of the driven joint forces or controls.
        bounds: of the driven variables, lower and upper, (m,) each.
        options: of the rollout that is the motion.
        multipliers: of limits and constraints, for a warm start.
        schedule: of contacts, with phases; else None.
        forces: with phases, of the ground on each contact, at its points along the axes of the base
            [N], (steps, ..., points, 3) by name; zero where it is open.
        impulses: with phases, of touch-downs at the beginnings of steps [N·s], and moments about
            the first point of soles, (steps, ..., 3 or 6) by name.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray | None
    controls: np.ndarray | None
    cost: np.ndarray
    converged: np.ndarray
    optimality: np.ndarray
    gap: np.ndarray
    violation: np.ndarray
    iterations: np.ndarray
    history: np.ndarray
    gains: np.ndarray
    columns: tuple[int, ...]
    bounds: tuple[np.ndarray, np.ndarray]
    options: dict[str, Any]
    multipliers: tuple[np.ndarray, ...]
    schedule: Schedule | None = None
    forces: dict[str, np.ndarray] | None = None
    impulses: dict[str, np.ndarray] | None = None

    def __repr__(self):
        b, n = self.best, np.size(self.cost)
        many = f"{int(np.sum(self.converged))} of {n} converged; the best: " if n > 1 else ""
        state = "converged" if self.converged[b] else "not converged"
        return (
            f"<OptimizedMotion of {self.model.name!r}, {len(self.t) - 1} steps to "
            f"t = {self.t[-1]:g} s: {many}{state} after {int(self.iterations[b])} iterations, cost "
            f"{self.cost[b]:.6g}, optimality {self.optimality[b]:.1e}, violation "
            f"{self.violation[b]:.1e}>"
        )

    def _repr_html_(self):
        """Picture of the motion for notebooks."""
        return block(repr(self)[1:-1], show(self.motion()))

    @property
    def best(self) -> tuple[int, ...]:
        """Index of the motion with the least cost, converged ones preferred."""
        cost = np.where(self.converged, self.cost, np.inf) if self.converged.any() else self.cost
        found = np.unravel_index(int(np.nanargmin(cost)), np.shape(cost))
        return tuple(int(i) for i in found)

    def motion(self, index: tuple[int, ...] | int | None = None) -> Trajectory:
        """One motion, by default the best, as a ``Trajectory``."""
        at = self.best if index is None else index
        if self.schedule is not None:
            return self._record(at)
        held = {"tau": self.tau} if self.controls is None else {"controls": self.controls}
        options = {name: x for name, x in self.options.items() if name != "inputs"}
        found: Any = rollout(
            self.model, self.q[0], self.qd[0], steps=len(self.t) - 1, dt=self.dt, **held, **options
        )
        return found.motion(at)

    def _record(self, index):
        """Trajectory of one motion with phases, as rollouts do not cover phases."""
        index = index if isinstance(index, tuple) else (index,)
        at, m = (slice(None), *index), self.model
        if self.cost[index].ndim:
            raise IndexError(f"index {index!r} must name one sample of a batch {self.cost.shape}")
        given: Any = self.tau
        q, qd, tau = self.q[at], self.qd[at], given[at]
        tau = np.concatenate([tau, tau[-1:]])
        total = tau + passive_force(m, q, qd)
        power = np.einsum("tv,tv->t", total[:-1], (qd[:-1] + qd[1:]) / 2)
        work = np.concatenate([[0.0], np.cumsum(power) * self.dt])
        energy = kinetic_energy(m, q, qd) + potential_energy(m, q) + elastic_energy(m, q)
        return Trajectory(m, self.t, q, qd, tau, energy, work, np.zeros(len(q)))

    def controller(
        self, index: tuple[int, ...] | int | None = None
    ) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
        """Controller that follows one motion: joint forces as a function of ``t, q, qd``.

        If the mechanism can rest at the end, without contact, other forces and parameters, a
        linear-quadratic regulator along the motion returns to it, and one at the end holds the
        final state. Otherwise the feedback is that of ``gains``, and that of the last step goes on.
        States may have batch axes: all follow the same motion.
        Forces stay within the limits; where these leave nothing for the feedback, plan again.
        """
        if self.tau is None:
            raise ModelError("controllers return joint forces: leave out use='controls'")
        index = self.best if index is None else index if isinstance(index, tuple) else (index,)
        at = (slice(None), *index)
        plan = Plan(self, at)
        hold = self._holding(plan.q[-1], plan.qd[-1], HOLDING)
        tight = None
        if hold is not None and not hold.coordinates:
            tight = self._returning(plan.q, plan.qd, plan.tau)

        def follow(t, q, qd):
            passed = (t - self.t[0]) / self.dt + 1e-9
            if hold is not None and passed >= len(self.t) - 1:
                limits = np.full((2, self.model.nv), [[-np.inf], [np.inf]])
                limits[:, list(self.columns)] = self.bounds
                return np.clip(hold(t, q, qd), *limits)
            if tight is None:
                return plan.forces(passed, q, qd)
            k, q_plan, qd_plan = between(self.model, plan.q, plan.qd, self.dt, passed)
            off = deviation(self.model, (q_plan, qd_plan), (q, qd))
            return plan.correct(k, -times(tight[max(int(passed * PARTS), 0)], off))

        return follow

    def _returning(self, q, qd, tau):
        """LQR gains along a motion, ``PARTS`` in each of its steps.

        Those of the problem lead to its goal, not back to the motion; if that must be reached
        exactly, they grow without bound.
        """
        end: Any = self._holding(q[-1], qd[-1], FOLLOWING)
        parts = [
            between(self.model, q, qd, self.dt, (k + 0.5) / PARTS) for k in range(PARTS * len(tau))
        ]
        steps, at, rates = (np.array(x) for x in zip(*parts, strict=True))
        h, P, gains = self.dt / PARTS, end.P, []
        A, B, *_ = linearize(self.model, at, rates, tau[steps], dt=h)
        for a, b in zip(A[::-1], B[::-1][..., list(self.columns)], strict=True):
            K = gain(a, b, h * end.R, P, discrete=True)
            P = h * np.eye(len(P)) + a.T @ P @ (a - b @ K)
            P = (P + P.T) / 2
            gains.append(K)
        return gains[::-1]

    def _holding(self, q, qd, rate):
        """Regulator that holds the end of a motion, or None where that is not at rest.

        Deviations return at a ``rate`` [1/s], whatever the inertia.
        """
        model, driven = self.model, list(self.columns)
        spans = zip(model.joint_names, model.v_slice[1:], strict=True)
        names = [n for n, at in spans if {*driven}.issuperset(range(at.start, at.stop))]
        others = ("contact", "forces", "parameters")  # which ``equilibrium`` does not know
        phased = self.schedule is not None
        if phased or any(map(self.options.get, others)) or np.abs(qd).max() > NEAR:
            return None
        try:
            rest = equilibrium(model, q, actuated=names)
            if np.abs(model.difference(q, rest.q)).max() > NEAR:
                return None
            H = np.linalg.inv(mass_matrix(model.spanning_tree, rest.q)[np.ix_(driven, driven)])
            return LQR(model, rest.q, Q=1.0, R=H.T @ H / rate**4, actuated=names)
        except (EquilibriumError, LoopError, SingularError, ModelError):
            return None

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return float(self.t[1] - self.t[0])


def between(model, q, qd, dt, passed):
    """Step number and interpolated state of a plan after ``passed`` steps."""
    k = min(max(int(passed), 0), len(q) - 2)
    s, ahead = max(passed - k, 0.0), model.difference(q[k], q[k + 1])
    v, w, r = dt * qd[k], dt * qd[k + 1], 1 - s
    change = s * s * (3 - 2 * s) * ahead + s * r * r * v - s * s * r * w
    rate = 6 * s * r * ahead + r * (1 - 3 * s) * v + s * (3 * s - 2) * w
    return k, model.integrate(q[k], change), rate / dt


class Plan:
    """One motion of an ``OptimizedMotion``, at an index of its arrays, with its feedback."""

    def __init__(self, motion: OptimizedMotion, at: Any = ...):
        self.motion = motion
        arrays: Any = (motion.q, motion.qd, motion.tau, motion.gains)
        self.q, self.qd, self.tau, self.gains = (x[at] for x in arrays)

    def forces(self, passed, q, qd):
        """Joint forces with feedback near a plan of which ``passed`` steps are over."""
        model, k = self.motion.model, min(max(int(passed), 0), len(self.tau) - 1)
        part = min(max(passed - k, 0.0), 1.0)
        off = deviation(model, self.state(k + part), (q, qd))
        return self.correct(k, times(self.gains[k], off))

    def state(self, passed):
        """Positions and velocities of a plan after ``passed`` steps."""
        k = min(max(int(passed), 0), len(self.tau) - 1)
        part, model = min(max(passed - k, 0.0), 1.0), self.motion.model
        q = model.integrate(self.q[k], part * model.difference(self.q[k], self.q[k + 1]))
        return q, self.qd[k] + part * (self.qd[k + 1] - self.qd[k])

    def moved_on(self, passed, delay, q, qd):
        """State after a delay, with the present deviation from the plan."""
        model, dt = self.motion.model, self.motion.dt
        now, then = (self.state(t / dt + 1e-9) for t in (passed, passed + delay))
        return model.integrate(then[0], model.difference(now[0], q)), then[1] + qd - now[1]

    def correct(self, k, change):
        """Joint forces of step ``k`` with a change of the driven ones, within bounds."""
        driven, own = list(self.motion.columns), self.tau[k]
        tau = np.broadcast_to(own, (*change.shape[:-1], own.shape[-1])).copy()
        tau[..., driven] = np.clip(tau[..., driven] + change, *self.motion.bounds)
        return tau


def deviation(model, planned, state) -> np.ndarray:
    """Deviation of states from planned ones, (..., 2 nv)."""
    dq, dqd = model.difference(planned[0], state[0]), np.subtract(state[1], planned[1])
    return np.concatenate(np.broadcast_arrays(dq, dqd), axis=-1)


def times(gains, off) -> np.ndarray:
    """Products of gains and deviations with any batch axes."""
    return (gains @ off[..., None])[..., 0]
