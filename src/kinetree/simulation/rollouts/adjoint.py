"""The adjoint of a rollout: from gradients at its end to gradients of everything that goes in.

Between steps, gradients are taken with respect to the nq coordinates of ``q``, not its tangent;
``along_tangents`` converts them at the end.
"""

from typing import Any

import numpy as np

from kinetree.codegen.runtime.threads import empty
from kinetree.errors import ShapeError, SimulationError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.implicit import factor, solve
from kinetree.quantities.actuators import activation_after


class Adjoint:
    """Reverse pass of a rollout: gradients of one cost, or of several at once.

    Attributes:
        value: the cost, (samples,).
        q, qd: gradients at the start, (*several, samples, nq or nv).
        found: gradients with respect to each given array.
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
        """Gradients of the terminal cost with respect to the final state; its value is kept."""
        if terminal is None:
            return np.zeros_like(q), np.zeros_like(qd)
        run = self.run
        t, h = (np.array(x, q.dtype) for x in (run.time(run.steps), run.dt))
        compiled = run.transition.terminal(terminal)
        value, p_q, p_qd, *gradients = compiled.full(t, h, q, qd, *self._held(-1, part))
        self.value[part] += value
        for g, total, gradient in zip(run.arrays.given, self.found, gradients, strict=True):
            self._add(g, total, -1, part, gradient)
        return p_q, p_qd

    def backward(self, part, q, qd, p_q, p_qd):
        """From the final state of a part of the batch to its start."""
        run, h = self.run, np.array(self.run.dt, q.dtype)
        given, outputs = run.arrays.given, self.kernel.outputs
        samples = (*self.several, q.shape[1])
        cost, *gradients = (
            np.empty((*samples, *o.shape), q.dtype) for o in (outputs[0], *outputs[3:])
        )
        # Two places for the gradients of the state: one is read while the other is written.
        places = [
            tuple(np.empty((*samples, *o.shape), q.dtype) for o in outputs[1:3]) for _ in range(2)
        ]
        for k in reversed(range(run.steps)):
            t, held, place = np.array(run.time(k), q.dtype), self._held(k, part), places[k % 2]
            out = (cost, *place, *gradients)
            self.variant.ufunc(t, h, q[k], qd[k], *held, p_q, p_qd, out=out)
            p_q, p_qd = place
            if not self.several:
                self.value[part] += cost
            for g, total, gradient in zip(given, self.found, gradients, strict=True):
                self._add(g, total, k, part, gradient)
        self.q[..., part, :], self.qd[..., part, :] = p_q, p_qd

    def _held(self, k, part):
        return [g.at(k, part) for g in self.run.arrays.given]

    def _add(self, given, total, k, part, gradient):
        """Add gradients of a part of the batch; the axes of one sample come last."""
        total = total[k] if given.timed else total
        total[(slice(None),) * len(self.several) + (part,)] += gradient

    def check(self):
        """Raise SimulationError when a check of the compiled code has failed."""
        if self.variant.status.value != self.before:
            raise SimulationError(
                f"the derivative of a rollout of {self.run.model.name!r} is not finite, or a step "
                f"of it is near a singular configuration; the rollout itself is fine. Take fewer "
                f"or smaller steps: gradients may grow without bound in motions that are chaotic"
            )

    # --- in the shapes of the caller ---------------------------------------------------------

    def batched(self, array):
        """``(*several, samples, ...)`` with the caller's batch axes, then those of the several."""
        array = np.moveaxis(array, 0, 1) if self.several else array
        shape = array.shape[1:]
        result = array.reshape((*self.run.arrays.batch, *shape))
        return result if result.shape else result[()]

    def shaped(self):
        """Gradients with respect to arrays, by kind and name."""
        result = {
            "tau": None, "controls": None, "inputs": {}, "arguments": {}, "parameters": {},
        }  # fmt: skip
        self._through_activation()
        for g, total in zip(self.run.arrays.given, self.found, strict=True):
            if g.timed:
                gradients = np.array([self.batched(x) for x in total])
            else:
                gradients = self.batched(total)
                if g.kind == "inputs" or (g.is_held and not g.squeeze):
                    gradients = gradients[np.newaxis]
            if g.is_held:
                result[g.kind] = gradients
            elif g.kind != "activation":
                result[g.kind][g.name] = gradients
        return result

    def _through_activation(self):
        """Complete gradients with respect to controls that change from step to step."""
        pairs = zip(self.run.arrays.given, self.found, strict=True)
        given = {g.kind: (g, found) for g, found in pairs if g.timed}
        if "activation" in given:
            (act, by_act), (controls, by_controls) = given["activation"], given["controls"]
            through_activation(
                self.run.model, self.run.dt, controls.array, act.array[..., :-1],
                by_controls, by_act[..., :-1],
            )  # fmt: skip


# --- through the activations of actuators --------------------------------------------------------


@kernel
def _next_activation(model, controls, activation, time):
    return activation_after(model, controls, activation, time)


_activation_derivatives = differentiate(_next_activation, wrt=("controls", "activation"))


def through_activation(model, dt, controls, activation, by_controls, by_activation):
    """Add to gradients with respect to controls what went through activations of later steps.

    Args:
        model: the mechanism.
        dt: length of a step [s].
        controls: of all steps, (steps, samples, n).
        activation: at their starts, (steps, samples, m).
        by_controls: gradients, (steps, ..., samples, n).
        by_activation: gradients, (steps, ..., samples, m).
    """
    by_u, by_a = _activation_derivatives(model, controls, activation, np.array(dt, controls.dtype))
    total: Any = 0
    for k in reversed(range(1, len(controls))):
        total = by_activation[k] + total
        by_controls[k - 1] += np.einsum("...m,...mn->...n", total, by_u[k - 1])
        total = np.einsum("...m,...mn->...n", total, by_a[k - 1])


# --- between the coordinates of q and its tangent space ------------------------------------------


def along_tangents(model, q, gradient) -> Any:
    """Gradients along tangent directions from those with respect to the coordinates of ``q``."""
    if model.nq == 0:
        return gradient
    return _pulled(model, q, gradient)


@kernel
def _pulled(model, q, gradient):
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        parts.append(model.joint[i].rate_matrix(q[at]).T @ gradient[at])
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
