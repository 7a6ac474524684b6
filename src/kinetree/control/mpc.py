"""Model-predictive control by trajectory optimization."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kinetree.codegen.device.callers import OnGpu, gpu_of
from kinetree.control.optimized_motion import OptimizedMotion, Plan
from kinetree.control.problem import TrajectoryProblem
from kinetree.control.starts import later_guess
from kinetree.errors import ModelError, ShapeError
from kinetree.model import Model
from kinetree.model.arrays import as_seconds
from kinetree.simulation.rollouts.rollout import rollout
from kinetree.spelling import explains_itself

SOON = 1e-9  # of time: rounding [s, steps]
WRONG = 1e-2  # gap or violation of a plan that is not solved, which MPC then does not follow


@explains_itself
class MPC:
    """Model-predictive control: replans from the current state at regular intervals.

        control = kt.control.MPC(m, steps=50, dt=0.02, running=..., terminal=...)
        motion = kt.simulate(m, q0, duration=3.0, dt=0.005, controller=control)

    Every ``replan`` steps of the plan, the problem of ``optimize`` is solved from the current
    state, starting from the last plan. In between, the joint forces are those of the plan, with
    its optimal feedback. Limits of states are soft: a mechanism that is pushed beyond them returns.
    States may have batch axes: every robot has a plan. Those of arrays of CuPy or torch on a GPU
    are made there, and ``plan`` then has arrays of CuPy.

    On a robot, plans take time. ``budget`` is what one may take: the iterations end then, and the
    plan is as good as it is. ``delay`` is how much later it is followed: it begins at the state
    that is predicted for that time, and the plan before is followed until then.

    Args:
        model: the mechanism.
        steps: of the plan.
        dt: length of a step of the plan [s].
        replan: steps after which there is a new plan.
        iterations: of every plan but the first.
        first_iterations: of the first plan, and of those that are far from solved after
            ``iterations``.
        guess: for the first plan.
        budget: time of every plan but the first [s], by the clock; no limit by default.
        delay: from the state that a plan is made for to when it is followed [s]. The first plan is
            made before the motion begins.
        **problem: as for ``optimize``, with a ``tolerance`` of 1e-4 and a ``limit_penalty`` of 1e3
            by default; choose that well above the cost that violating a limit of states can save;
            None makes limits hard.

    Attributes:
        plan: the ``OptimizedMotion`` that is followed. One that has used up its ``iterations`` is
            not examined again: ``converged`` is False, and ``optimality`` that before the last.
        planned_at: time of its start [s].
        asked_at: time of the last state that was planned from [s].
        coming: a plan that is not followed yet, and the time of its start; or None.
    """

    plan: OptimizedMotion | None = None
    planned_at: float = 0.0
    asked_at: float = 0.0
    coming: tuple[OptimizedMotion, float] | None = None

    def __init__(
        self,
        model: Model,
        *,
        steps: int,
        dt: float,
        replan: int = 1,
        iterations: int = 10,
        first_iterations: int = 200,
        guess: Any = None,
        budget: float | None = None,
        delay: float = 0.0,
        **problem: Any,
    ):
        if replan < 1 or replan >= steps:
            raise ShapeError(f"replan must be from 1 to steps - 1 = {steps - 1}, got {replan}")
        usual = {"tolerance": 1e-4, "limit_penalty": 1e3}
        self.problem = TrajectoryProblem.of_arguments(
            model, steps=steps, dt=dt, **{**usual, **problem}
        )
        self.problem.lax = WRONG
        if self.problem.held != "tau":
            raise ModelError("MPC returns joint forces: leave out use='controls'")
        self.replan, self.guess = replan, guess
        self.iterations, self.first_iterations = iterations, first_iterations
        self.budget = None if budget is None else as_seconds(budget, "budget", least=0.0)
        self.delay = 0.0 if delay == 0 else as_seconds(delay, "delay", least=0.0)
        if self.delay > (steps - replan) * self.problem.dt:
            raise ShapeError(
                f"delay must be at most (steps - replan) dt = {(steps - replan) * dt:g} s, so that "
                f"the plan before lasts until then, got {delay:g}"
            )

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Joint forces, (..., nv)."""
        gpu = gpu_of(q)
        if gpu is None:
            return self._forces(t, q, qd)
        with OnGpu(gpu, q, "MPC") as place:
            return place.as_given(self._forces(t, place.take(q), place.take(qd)))

    def _forces(self, t, q, qd):
        """Joint forces (nv,) at a state, by a new plan when one is due."""
        if self.coming is not None and t >= self.coming[1] - SOON:
            (self.plan, self.planned_at), self.coming = self.coming, None
        dt, plan = self.problem.dt, self.plan
        lasts = plan is not None and 0 <= t - self.planned_at + SOON < self.problem.steps * dt
        if plan is None or not lasts:
            self.coming, self.asked_at, self.planned_at = None, t, t
            self.plan = self.problem.solve(
                q, qd, guess=self.guess, iterations=self.first_iterations, begins=t
            )
        elif t - self.asked_at >= self.replan * dt - SOON and self.coming is None:
            self.asked_at = t
            self._plan_again(t, q, qd)
        passed = (t - self.planned_at) / dt + SOON
        followed: Any = self.plan
        return Plan(followed).forces(passed, q, qd)

    def _plan_again(self, t, q, qd):
        """Optimise a new plan from the state predicted for the time when it takes effect."""
        p, start = self.problem, t + self.delay
        if self.delay:
            q, qd = self._predict(t, q, qd)
        k = int((start - self.planned_at) / p.dt + SOON)
        guess = later_guess(self.plan, k)
        limits = {"iterations": self.iterations, "budget": self.budget}
        found = p.solve(q, qd, guess=guess, begins=start, **limits)
        wrong = _are_wrong(found)
        if self.budget is None and p.limit_penalty is not None and wrong.any():
            many = self.first_iterations
            found = p.solve(q, qd, guess=guess, iterations=many, begins=start)
            wrong = _are_wrong(found)
        self.coming = _mend(found, wrong, self.plan, k) if wrong.any() else found, start
        if not self.delay:
            (self.plan, self.planned_at), self.coming = self.coming, None

    def _predict(self, t, q, qd):
        """State predicted after ``delay`` under the current plan."""
        followed: Any = self.plan
        p, now = self.problem, Plan(followed)
        if p.schedule is not None:
            return now.moved_on(t - self.planned_at, self.delay, q, qd)
        steps = math.ceil(self.delay / p.dt - SOON)
        h = self.delay / steps
        options = {name: x for name, x in p.options.items() if name not in ("inputs", "t0")}
        for k in range(steps):
            tau = now.forces((t + k * h - self.planned_at) / p.dt + SOON, q, qd)
            after: Any = rollout(p.model, q, qd, tau, steps=1, dt=h, t0=t + k * h, **options)
            q, qd = after.q[-1], after.qd[-1]
        return q, qd


def _are_wrong(plan):
    """Whether plans are too far from converged to be followed, per sample.

    Violations of friction cones are forces, and count relative to the largest.
    """
    doubted = ~plan.converged & (plan.violation > WRONG)
    if plan.forces and doubted.any():
        largest = [np.abs(f).max(axis=(0, -2, -1)) for f in plan.forces.values()]
        most = WRONG * np.maximum(1.0, np.stack(largest).max(axis=0))
        doubted = doubted & (plan.violation > most)
    return doubted | (~plan.converged & (plan.gap > WRONG))


def _mend(found, wrong, plan, k):
    """Plans in which unusable samples are replaced by the rest of an earlier plan."""
    mixed = {}
    for name in ("q", "qd", "tau", "gains"):
        old, new = getattr(plan, name), getattr(found, name)
        rest = np.concatenate([old[k:], np.repeat(old[-1:], k, axis=0)])
        mixed[name] = np.where(
            wrong.reshape(*wrong.shape, *[1] * (new.ndim - 1 - wrong.ndim)), rest, new
        )
    return replace(found, **mixed)
