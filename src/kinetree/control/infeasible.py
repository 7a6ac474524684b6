"""Whole-body problems that have no solution: which constraints are in each other's way."""

import numpy as np

from kinetree.control.lexicographic import Constraints, InfeasibleError, minimize
from kinetree.control.whole_body_step import prepare
from kinetree.errors import InfeasibleControlError, SingularError


def as_matrices(problem):
    """Whole-body problem as matrices for ``lexicographic.minimize``."""
    n, tasks, bounds = problem.n, problem.tasks, problem.bounds
    A, G = problem.A.reshape(tasks, n), problem.G.reshape(bounds, n)
    E = problem.E.reshape(problem.equations, n + 1)
    levels = []
    for level in range(problem.levels):
        k = np.flatnonzero(problem.level == level)
        w = problem.root[k]
        levels.append((w[:, None] * A[k], w * problem.b[k]))
    constraints = Constraints(
        E[:, :n].copy(), E[:, n].copy(), G.copy(), problem.low.copy(), problem.high.copy()
    )
    return levels, constraints, problem.damping


def why_not(model, t, stance, instant, problem) -> InfeasibleControlError:
    """InfeasibleError that names the constraints that contradict each other; needs DAQP."""
    prepare(instant, problem)
    try:
        minimize(*as_matrices(problem))
    except SingularError:
        return InfeasibleControlError(
            f"whole-body control of model {model.name!r} at t = {t:g} s: contacts "
            f"{', '.join(stance.names)} cannot all stay where they are, as the joints between them "
            f"move them against each other; remove one, or one of its points",
            stance.names,
        )
    except InfeasibleError as error:
        if error.excess is not None:
            return _describe(model, t, stance, error.excess)
    return InfeasibleControlError(
        f"the solver found no answer for model {model.name!r} at t = {t:g} s, since constraints or "
        f"higher priorities leave a set that is too thin; use weights instead, or fewer priorities"
    )


def _describe(model, t, stance, excess):
    """Error message about tasks and limits that contradict each other, the worst first."""
    order = [k for k in np.argsort(-excess) if excess[k] > 1e-6]
    worst = {}
    for k in order:
        label, unit = stance.labels[k]
        worst.setdefault(label, f"{label} by {excess[k]:.3g} {unit}")
    said = ", ".join(list(worst.values())[:4]) or "bounds that could not be told apart"
    return InfeasibleControlError(
        f"no accelerations and contact forces of model {model.name!r} meet all "
        f"constraints at t = {t:g} s; the closest violate {said}. Relax these limits, close "
        f"more contacts, or start from a state in which the robot can stay",
        tuple(worst),
    )
