"""Steps of trajectory optimization on arrays, see ``kinetree.integration.on_arrays``.

Derivatives of steps of loops and of large robots take seconds to minutes to compile. On arrays
first derivatives follow from the adjoint of the step, one row after the other, and second ones from
differences of these. All are along tangents.
"""

from typing import Any

import numpy as np

from kinetree.errors import KinetreeError
from kinetree.integration.adjoints import has_adjoint, pulled_back
from kinetree.integration.manifold import is_flat
from kinetree.integration.on_arrays import field_on_arrays
from kinetree.model.memo import remember
from kinetree.simulation.rollouts.on_arrays import suits

ITERATIONS = 10
"""Of a problem, roughly; those of loops count as one, as their steps take longest to compile."""
CURVED = 2
"""How many times as long second derivatives of steps take to compile where bodies turn freely."""


class JointForceSteps:
    """Steps of a ``Run`` with joint forces, and their derivatives.

    Args:
        run: for which ``JointForceSteps.serve`` holds.
        columns: numbers of the joint forces that derivatives are wanted of.
    """

    REPAID = 1000
    """Steps whose second derivatives repay compiling these, of all problems of a model together."""
    _CHANGE = 1e-5  # of variables; what it leaves out is of its square

    @staticmethod
    def serve(run) -> bool:
        """Whether the steps of a run take joint forces alone, and are fast enough on arrays."""
        t, model = run.transition, run.model
        times = 1 if model.is_constrained else ITERATIONS
        known = has_adjoint(model, t.method, t.field)
        longer = 1 if is_flat(model) else CURVED
        return known and suits(run, back=True, costs=True, times=times, longer=longer)

    def __init__(self, run, columns):
        t, self.model, self.h = run.transition, run.model, run.dt
        self.method, self.field = t.method, field_on_arrays(run.model, t.field)
        self.columns = list(columns)
        self._seen = remember(run.model, ("steps whose curvature was found", t), lambda: [0])

    def after(self, t, q, qd, tau) -> tuple[Any, Any]:
        """States after steps from ``q, qd``; NaN where a step fails.

        Args:
            t: times, (steps,) or a number.
            q: positions, (samples, steps, nq) or (samples, nq).
            qd: velocities, likewise.
            tau: joint forces, likewise.
        """
        shapes = (self.model.nq,), (self.model.nv,)
        return _of_samples(self._after, shapes, t, q, qd, tau)

    def _after(self, t, q, qd, tau):
        """State after one step of the integration method."""
        found = self.method.advance(self.field, self.model, t, self.h, q, qd, tau)
        return found.q, found.qd

    def rows(self, t, q, qd, tau) -> Any:
        """Derivatives of steps by ``(u, dq, dqd)``, (samples, steps, 2 nv, m + 2 nv)."""
        nv, batch = self.model.nv, q.shape[:-1]
        unit = np.broadcast_to(np.eye(2 * nv), (*batch, 2 * nv, 2 * nv))

        def derivatives(t, q, qd, tau, unit):
            p = np.moveaxis(unit, -2, 0)
            return (np.moveaxis(self._gradient((t, q, qd, tau), p), 0, -2),)

        shape = 2 * nv, len(self.columns) + 2 * nv
        return _of_samples(derivatives, (shape,), t, q, qd, tau, unit)[0]

    def _gradient(self, at, p):
        """Gradients by ``(u, dq, dqd)`` of a weighted sum ``p`` of a step's end."""
        (t, q, qd, tau), nv = at, self.model.nv
        state = t, self.h, q, qd, tau
        found = pulled_back(self.method, self.field, self.model, state, p[..., :nv], p[..., nv:])
        return np.concatenate([found.tau[..., self.columns], found.q, found.qd], axis=-1)

    def curvature(self, t, q, qd, tau, costates) -> Any:
        """Second derivatives of steps times ``costates``, (samples, steps, m + 2 nv, m + 2 nv).

        None where compiled code finds them from now on.
        """
        if self._seen[0] > self.REPAID:
            return None
        self._seen[0] += int(np.prod(q.shape[:-1]))
        m, nv = len(self.columns), self.model.nv

        def gradient(z, t, q, qd, tau, costates):
            moved = tau.copy()
            moved[..., self.columns] += z[:m]
            q = self.model.integrate(q, np.broadcast_to(z[m : m + nv], qd.shape))
            return self._gradient((t, q, qd + z[m + nv :], moved), costates)

        def second(*arrays):
            e = self._CHANGE * np.eye(m + 2 * nv)
            rows = [gradient(z, *arrays) - gradient(-z, *arrays) for z in e]
            H = np.stack(rows, axis=-2) / (2 * self._CHANGE)
            return (0.5 * (H + np.swapaxes(H, -1, -2)),)

        return _of_samples(second, ((m + 2 * nv,) * 2,), t, q, qd, tau, costates)[0]


def _of_samples(function, shapes, t, *arrays) -> tuple[Any, ...]:
    """Results of a function of batched arrays; NaN for samples that raise an error.

    ``shapes`` are those of the results of one step.
    """
    try:
        return function(t, *arrays)
    except (KinetreeError, np.linalg.LinAlgError):
        lead = arrays[0].shape[:-1]
        found = tuple(np.full((*lead, *shape), np.nan) for shape in shapes)
        for k in range(lead[0] if lead[0] > 1 else 0):
            one = _of_samples(function, shapes, t, *(a[k : k + 1] for a in arrays))
            for all_of_them, part in zip(found, one, strict=True):
                all_of_them[k : k + 1] = part
        return found
