"""Iterations for few targets of linkages, on arrays: ``Problem.descend`` without compiling it.

The equations of the tasks and loops are a short kernel; eight iterations in a row, with their
factors, take ten times as long to compile. The steps are the same up to rounding errors.
"""

import numpy as np

from kinetree.codegen import tiers
from kinetree.codegen.tiers import TierChoice
from kinetree.ik import problem as texts
from kinetree.model.memo import remember

LARGE = 16
"""Velocity variables of a linkage from which the iterations run on arrays."""
REPAID = 2**12
"""Iterations that repay compiling them."""


def serve(problem, count: int) -> bool:
    """Whether inverse kinematics for ``count`` targets runs on batched arrays."""
    if not problem.closing_rows or problem.model.nv < LARGE or tiers.setting() != "auto":
        return False
    key = "inverse kinematics on arrays", *(task.signature for task in problem.tasks)
    choice = remember(problem.model, key, lambda: TierChoice(REPAID))
    return choice.tier_for(count * texts.STEPS) == "general"


def descend(problem, q, target, limits, damping, *, wide):
    """Iterations of damped least squares for all targets at once; ``Problem.descend``."""
    mu, moving = damping, problem.v_moving
    with np.errstate(all="ignore"):  # what is not finite is not better
        e, J, true = problem.run("equations", q, target, wide=wide)
        before = (e * e).sum(-1)
        for _ in range(texts.STEPS):
            free = _free(problem, q, (J * e[..., None]).sum(-2), limits)
            trial = _move(problem, q, _damped_step(J * free[:, None], e, mu), limits)
            e_t, J_t, true_t = problem.run("equations", trial, target, wide=wide)
            after = (e_t * e_t).sum(-1)
            better = after < before
            mu = np.clip(mu * np.where(better, texts.LESS, texts.MORE), texts.LEAST, texts.MOST)
            pairs = ((trial, q), (e_t, e), (J_t, J), (true_t, true), (after, before))
            q, e, J, true, before = (_choose(better, *pair) for pair in pairs)
    gradient = np.zeros((len(q), problem.model.nv))
    gradient[:, moving] = (J * e[..., None]).sum(-2)
    return q, np.column_stack([mu, before, true]), gradient


def _choose(better, new, old):
    """Elementwise choice of new values where they are better."""
    return np.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def _damped_step(J, e, mu):
    """Damped least-squares steps for rows of arrays; NaN where there is none."""
    m, n = J.shape[1:]
    J_T = np.swapaxes(J, 1, 2)
    try:
        if m <= n:
            A = J @ J_T + mu[:, None, None] * np.eye(m)
            return (J_T @ np.linalg.solve(A, e[..., None]))[..., 0]
        A = J_T @ J + mu[:, None, None] * np.eye(n)
        return np.linalg.solve(A, J_T @ e[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return np.full((len(J), n), np.nan)


def _move(problem, q, dv, limits):
    """Configurations after scaled steps, clipped to limits; unchanged for NaN steps."""
    full = np.zeros((len(q), problem.model.nv))
    full[:, problem.v_moving] = np.nan_to_num(dv) * problem.v_scale[problem.v_moving]
    q = np.array(problem.model.integrate(q, full))
    at = np.intersect1d(problem.q_moving, problem.q_of_v[problem.q_of_v >= 0])
    q[:, at] = np.clip(q[:, at], limits.lower[at], limits.upper[at])
    return q


def _free(problem, q, direction, limits):
    """Mask of the velocities that no limit blocks in a direction, for rows of arrays."""
    at = problem.q_of_v[problem.v_moving]
    x = q[:, at]
    held = ((x <= limits.lower[at]) & (direction < 0)) | ((x >= limits.upper[at]) & (direction > 0))
    return np.where(held & (at >= 0), 0.0, 1.0)
