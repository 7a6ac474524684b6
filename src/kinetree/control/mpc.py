"""Model-predictive control by trajectory optimization."""

from typing import Any

import numpy as np

from kinetree.control.optimized_motion import OptimizedMotion, Plan
from kinetree.control.problem import Problem
from kinetree.control.starts import later_guess
from kinetree.errors import ModelError, ShapeError
from kinetree.model import Model
from kinetree.spelling import explains_itself

WRONG = 1e-2  # gap or violation of a plan that is not solved, which MPC then does not follow


@explains_itself
class MPC:
    """Model-predictive control: replans from the current state at regular intervals.

        control = kt.control.MPC(m, steps=50, dt=0.02, running=..., terminal=...)
        motion = kt.simulate(m, q0, duration=3.0, dt=0.005, controller=control)

    Every ``replan`` steps of the plan, the problem of ``optimize`` is solved from the current
    state, starting from the last plan. In between, the joint forces are those of the plan, with
    its optimal feedback. Limits of states are soft: a mechanism that is pushed beyond them returns.

    Args:
        model: the mechanism.
        steps: of the plan.
        dt: length of a step of the plan [s].
        replan: steps after which there is a new plan.
        iterations: of every plan but the first.
        first_iterations: of the first plan, and of those that are far from solved after
            ``iterations``.
        tolerance: of plans.
        limit_penalty: as for ``optimize``; choose it well above the cost that violating a limit of
            states can save; None makes them hard.
        guess: for the first plan.
        **problem: as for ``optimize``.

    Attributes:
        plan: the last ``OptimizedMotion``.
        planned_at: time of its start [s].
    """

    plan: OptimizedMotion | None = None
    planned_at: float = 0.0

    def __init__(
        self,
        model: Model,
        *,
        steps: int,
        dt: float,
        replan: int = 1,
        iterations: int = 10,
        first_iterations: int = 200,
        tolerance: float = 1e-4,
        limit_penalty: float | None = 1e3,
        guess: Any = None,
        **problem: Any,
    ):
        if replan < 1 or replan >= steps:
            raise ShapeError(f"replan must be from 1 to steps - 1 = {steps - 1}, got {replan}")
        self.problem = Problem.of_arguments(
            model, steps=steps, dt=dt, tolerance=tolerance, limit_penalty=limit_penalty, **problem
        )
        if self.problem.held != "tau":
            raise ModelError("MPC returns joint forces: leave out use='controls'")
        self.replan, self.guess = replan, guess
        self.iterations, self.first_iterations = iterations, first_iterations

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Joint forces, (nv,)."""
        p, passed = self.problem, (t - self.planned_at) / self.problem.dt + 1e-9
        plan = self.plan
        if plan is None or passed < 0 or int(passed) >= self.replan:
            started = plan is not None and 0 <= passed < p.steps
            guess = later_guess(plan, int(passed)) if started else self.guess
            found = None
            if started:
                found = p.solve(q, qd, guess=guess, iterations=self.iterations)
            if found is None or (p.limit_penalty is not None and _is_wrong(found)):
                found = p.solve(q, qd, guess=guess, iterations=self.first_iterations)
            if plan is None or not started or not _is_wrong(found):
                plan = self.plan = found
                self.planned_at, passed = t, 0.0
        return Plan(plan).forces(passed, q, qd)


def _is_wrong(plan):
    """Whether a plan is so far from solved that it is better to follow another."""
    return not plan.converged and max(plan.gap, plan.violation) > WRONG
