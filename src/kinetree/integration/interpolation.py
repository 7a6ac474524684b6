"""The motion inside a step, without taking smaller ones — RBDA §11.5, (11.45)–(11.51)."""

from typing import Any

import numpy as np

from kinetree.functional.kernel import kernel
from kinetree.integration.manifold import is_flat, local_rate, move

_GOOD_ENOUGH = 6  # order of the series for dexp⁻¹


class Interpolant:
    """A function of time to ``q, qd, work`` that is exact at both ends of a step.

    By the weights of the method's stages, where it has them; else by cubics through values and
    derivatives at both ends, whose error is of the fourth order.
    """

    def __init__(self, step):
        self.step, self.method = step, step.stepper.method
        self.h = step.t1 - step.t0
        if step.stages is None:
            self.ends = self._rates_at_ends()

    def __call__(self, t):
        """``q, qd, work`` at time ``t`` inside the step; ``work`` since its start."""
        step, theta = self.step, (t - self.step.t0) / self.h
        if step.stages is not None:
            weights = self.method.interpolation(theta)
            u = self.h * np.einsum("s,...sv->...v", weights, step.stages.u)
            dv = self.h * np.einsum("s,...sv->...v", weights, step.stages.qd)
            work = self.h * np.einsum("s,...s->...", weights, step.stages.work)
        else:
            u, dv, work = (cubic(theta, self.h, *end) for end in self.ends)
        q, qd = move(step.stepper.model, step.q0, u), step.qd0 + dv
        prescription = step.stepper.field.prescription
        if prescription is not None:
            q, qd, _ = prescription.at(step.stepper.model, t, q, qd)
        return q, qd, work

    def _rates_at_ends(self):
        """Changes, and rates at both ends, of coordinates, velocities and work."""
        step, model, rates = self.step, self.step.stepper.model, self.step.stepper.accelerations
        flat = is_flat(model)
        u = step.q1 - step.q0 if flat else _difference(model, step.q0, step.q1)
        rate = local_rate(model, step.q0, u, step.qd1, order=_GOOD_ENOUGH)
        qdd0, power0 = rates(step.t0, step.q0, step.qd0, step.tau)
        qdd1, power1 = rates(step.t1, step.q1, step.qd1, step.tau)
        return ((u, step.qd0, rate), (step.qd1 - step.qd0, qdd0, qdd1), (step.work, power0, power1))


@kernel
def _difference(model, q, end):
    """Kernel of ``model.difference``."""
    return model.difference(q, end)


def cubic(theta, h, change, rate0, rate1):
    """Cubic Hermite polynomial from zero, by total change and rates at both ends."""
    rest = 1 - theta
    return theta * (theta * (3 - 2 * theta) * change + h * rest * (rest * rate0 - theta * rate1))


def states_inside(step, fractions) -> tuple[Any, Any]:
    """States at fractions of a step, (n, ..., nq) and (n, ..., nv), by interpolation.

    Between 0 and 1, by the method's own interpolant or Hermite's cubic: see ``Interpolant``.
    """
    theta, dense = np.asarray(fractions, dtype=float), step.interpolant
    if step.stages is not None:
        weights = np.array([dense.method.interpolation(x) for x in theta])
        u, dv = (dense.h * np.einsum("ns,...sv->n...v", weights, k) for k in step.stages[:2])
    else:
        column = theta.reshape(-1, *[1] * np.ndim(step.qd0))
        u, dv = (cubic(column, dense.h, *end) for end in dense.ends[:2])
    q, qd = move(step.stepper.model, step.q0, u), step.qd0 + dv
    prescription = step.stepper.field.prescription
    if prescription is not None:
        q, qd, _ = prescription.each(step.stepper.model, step.t0 + theta * dense.h, q, qd)
    return q, qd
