"""States at many instants inside one step, at once — RBDA §11.5."""

from typing import Any

import numpy as np

from kinetree.integration.interpolant import cubic
from kinetree.integration.manifold import move

__all__ = ["states_inside"]


def states_inside(step, fractions) -> tuple[Any, Any]:
    """``q, qd`` at fractions of a step, (n, ..., nq) and (n, ..., nv).

    Between 0 and 1, by the method's own interpolant or Hermite's cubic: see ``Interpolant``.
    """
    theta, dense = np.asarray(fractions, dtype=float), step.interpolant
    if step.stages is not None:
        weights = np.array([dense.method.interpolation(x) for x in theta])
        u, dv = (dense.h * np.einsum("ns,...sv->n...v", weights, k) for k in step.stages[:2])
    else:
        column = theta.reshape(-1, *[1] * np.ndim(step.qd0))
        u, dv = (cubic(column, dense.h, *end) for end in dense.ends[:2])
    q, qd, told = move(step.stepper.model, step.q0, u), step.qd0 + dv, step.stepper.field.told
    if told is not None:
        q, qd, _ = told.each(step.stepper.model, step.t0 + theta * dense.h, q, qd)
    return q, qd
