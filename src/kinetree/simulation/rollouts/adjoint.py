"""The way back through a rollout: from slopes at its end to slopes of everything that goes in.

Between steps, slopes with respect to ``q`` are those with respect to its numbers, (nq,): the chain
rule does not mind.
"""

from typing import Any

import numpy as np

from kinetree.codegen.runtime.memory import empty
from kinetree.errors import ShapeError, SimulationError
from kinetree.functional.kernel import kernel
from kinetree.integration.implicit import factor, solve

__all__ = ["WayBack", "along_tangents", "inverse_rates"]


class WayBack:
    """Slopes of one cost, or of several at once, gathered on the way back.

    Attributes:
        value: the cost, (samples,).
        q, qd: slopes at the start, (*several, samples, nq or nv).
        found: slopes with respect to each given array.
    """

    def __init__(self, run, running, several=()):
        self.run, self.several = run, several
        if not run.model.nv:
            raise ShapeError(f"no joint of model {run.model.name!r} moves: there is no derivative")
        self.kernel = run.transition.pullback(running)
        self.variant = self.kernel.variant(run.arrays.dtype, wide=run.arrays.size > 1)
        self.before = self.variant.status.value
        size, dtype, model = run.arrays.size, run.arrays.dtype, run.model
        self.numbers = self.kernel.numbers
        self.value = np.zeros(size, dtype)
        self.q, self.qd = (np.zeros((*several, size, n), dtype) for n in (model.nq, model.nv))
        shapes = [out.shape for out in self.kernel.outputs[3:]]
        self.found = [
            np.zeros((*([run.steps] if g.timed else []), *several, size, *shape), dtype)
            for g, shape in zip(run.arrays.given, shapes, strict=True)
        ]

    def forward(self, part):
        """All states of a part of the batch: (steps + 1, samples, ...)."""
        run = self.run
        model, dtype, marks = run.model, run.arrays.dtype, np.arange(run.steps + 1)
        n = part.stop - part.start
        q, qd, work = (
            empty((len(marks), n, *shape), dtype) for shape in ((model.nq,), (model.nv,), ())
        )
        run.part(part).fill(marks, q, qd, work, threaded=False)
        return q, qd

    def end_cost(self, terminal, part, q, qd):
        """Slopes of the terminal cost with respect to the final state; its value is taken down."""
        if terminal is None:
            return np.zeros_like(q), np.zeros_like(qd)
        run = self.run
        t, h = (np.array(x, q.dtype) for x in (run.time(run.steps), run.dt))
        compiled = run.transition.terminal(terminal)
        value, p_q, p_qd, *slopes = compiled.general(t, h, q, qd, *self._held(-1, part))
        self.value[part] += value
        for g, total, slope in zip(run.arrays.given, self.found, slopes, strict=True):
            self._add(g, total, -1, part, slope)
        return p_q, p_qd

    def backward(self, part, q, qd, p_q, p_qd):
        """From the final state of a part of the batch to its start."""
        run, h = self.run, np.array(self.run.dt, q.dtype)
        given, outputs = run.arrays.given, self.kernel.outputs
        samples = (*self.several, q.shape[1])
        cost, *slopes = (
            np.empty((*samples, *o.shape), q.dtype) for o in (outputs[0], *outputs[3:])
        )
        # Two places for the slopes of the state: one is read while the other is written.
        places = [
            tuple(np.empty((*samples, *o.shape), q.dtype) for o in outputs[1:3]) for _ in range(2)
        ]
        for k in reversed(range(run.steps)):
            t, held, place = np.array(run.time(k), q.dtype), self._held(k, part), places[k % 2]
            out = (cost, *place, *slopes)
            self.variant.ufunc(t, h, q[k], qd[k], *held, p_q, p_qd, out=out)
            p_q, p_qd = place
            if not self.several:
                self.value[part] += cost
            for g, total, slope in zip(given, self.found, slopes, strict=True):
                self._add(g, total, k, part, slope)
        self.q[..., part, :], self.qd[..., part, :] = p_q, p_qd

    def _held(self, k, part):
        return [g.at(k, part) for g in self.run.arrays.given]

    def _add(self, given, total, k, part, slope):
        """Add slopes of a part of the batch; the axes of one sample come last."""
        total = total[k] if given.timed else total
        total[(slice(None),) * len(self.several) + (part,)] += slope

    def check(self):
        """Raise SimulationError when a check of the compiled code has failed."""
        if self.variant.status.value != self.before:
            raise SimulationError(
                f"the derivative of a rollout of {self.run.model.name!r} is not finite, or a step "
                f"of it is near a singular configuration; the rollout itself is fine. Take fewer "
                f"or smaller steps: slopes may grow without bound in motions that are chaotic"
            )

    # --- as the caller wants them ------------------------------------------------------------

    def batched(self, array):
        """``(*several, samples, ...)`` with the caller's batch axes, then those of the several."""
        array = np.moveaxis(array, 0, 1) if self.several else array
        shape = array.shape[1:]
        result = array.reshape((*self.run.arrays.batch, *shape))
        return result if result.shape else result[()]

    def shaped(self):
        """Slopes with respect to arrays, by kind and name."""
        result = {"tau": None, "inputs": {}, "arguments": {}, "parameters": {}}
        for g, total in zip(self.run.arrays.given, self.found, strict=True):
            if g.timed:
                slopes = np.array([self.batched(x) for x in total])
            else:
                slopes = self.batched(total)
                if g.kind == "inputs" or (g.kind == "tau" and not g.squeeze):
                    slopes = slopes[np.newaxis]
            if g.kind == "tau":
                result["tau"] = slopes
            else:
                result[g.kind][g.name] = slopes
        return result


# --- between the numbers of q and its tangent space ----------------------------------------------


def along_tangents(model, q, slope) -> Any:
    """Slopes along tangent directions from those with respect to the numbers of ``q``."""
    if model.nq == 0:
        return slope
    return _pulled(model, q, slope)


@kernel
def _pulled(model, q, slope):
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        parts.append(model.joint[i].rate_matrix(q[at]).T @ slope[at])
    return np.concatenate(parts)


@kernel
def inverse_rates(model, q):
    """The matrix from rates of ``q`` to velocities, (nv, nq)."""
    result = np.zeros((model.nv, model.nq), dtype=object)
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        R = np.asarray(model.joint[i].rate_matrix(q[at]))
        if R.size:
            LU = factor(R.T @ R)
            result[model.v_slice[i], at] = np.column_stack([solve(LU, row) for row in R])
    return result
