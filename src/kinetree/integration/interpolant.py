"""The motion inside a step, without taking smaller ones — RBDA §11.5, (11.45)–(11.51)."""

import numpy as np

from kinetree.functional.kernel import kernel
from kinetree.integration.manifold import is_flat, local_rate, move

__all__ = ["Interpolant", "cubic"]

_GOOD_ENOUGH = 6  # order of the series for dexp⁻¹


class Interpolant:
    """A function of time to ``q, qd, work`` that is exact at both ends of a step.

    By the weights of the method's stages, where it has them; else by cubics through values and
    slopes at both ends, whose error is of the fourth order.
    """

    def __init__(self, step):
        self.step, self.method = step, step.stepper.method
        self.h = step.t1 - step.t0
        if step.stages is None:
            self.ends = self._slopes_at_ends()

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
        q, qd, told = move(step.stepper.model, step.q0, u), step.qd0 + dv, step.stepper.field.told
        if told is not None:
            q, qd, _ = told.at(step.stepper.model, t, q, qd)
        return q, qd, work

    def _slopes_at_ends(self):
        """Change, slope at the start, slope at the end: of coordinates, velocities and work."""
        step, model, slopes = self.step, self.step.stepper.model, self.step.stepper.slopes
        flat = is_flat(model)
        u = step.q1 - step.q0 if flat else _difference(model, step.q0, step.q1)
        rate = local_rate(model, step.q0, u, step.qd1, order=_GOOD_ENOUGH)
        qdd0, power0 = slopes(step.t0, step.q0, step.qd0, step.tau)
        qdd1, power1 = slopes(step.t1, step.q1, step.qd1, step.tau)
        return (
            (u, step.qd0, rate),
            (step.qd1 - step.qd0, qdd0, qdd1),
            (step.work, power0, power1),
        )


@kernel
def _difference(model, q, end):
    return model.difference(q, end)


def cubic(theta, h, change, slope0, slope1):
    """Hermite's cubic from zero."""
    rest = 1 - theta
    return theta * (theta * (3 - 2 * theta) * change + h * rest * (rest * slope0 - theta * slope1))
