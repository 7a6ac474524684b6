"""Derivatives of rollouts: of a cost by the adjoint of every step, of the final state likewise.

States are stored in the forward pass; in the reverse pass the gradient of the cost with respect to
the state goes from the end of each step to its start, through one compiled function that costs a
few times as much as the step, whatever the number of variables. Between steps, gradients are taken
with respect to the nq coordinates of ``q``; at the end ``along_tangents`` converts those with
respect to ``q0`` to the tangent space, (nv,), as everywhere: entry ``j`` is the derivative along
``model.integrate(q0, t e_j)``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.runtime.threads import empty
from kinetree.errors import ShapeError, SimulationError, UnknownNameError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.linear_equations import factor, solve
from kinetree.model import Model
from kinetree.quantities.actuators import activation_after
from kinetree.simulation.rollouts.inputs import names_of, require_kernel
from kinetree.simulation.rollouts.on_arrays import pullback_of
from kinetree.simulation.rollouts.rollout import run_of, warn_of_failures
from kinetree.simulation.rollouts.run import contact_notes, over_chunks


class Adjoint:
    """Reverse pass of a rollout: gradients of one cost, or of several at once.

    Attributes:
        value: the cost, (samples,).
        q, qd: gradients at the start, (*several, samples, nq or nv).
        found: gradients with respect to each given array.
        residuals: of the steps of each motion with rigid contact, (samples, 10), or None.
        failed: motions with rigid contact that stopped being finite, (samples,), or None.
    """

    residuals: Any = None
    failed: Any = None

    def __init__(self, run, running, several=()):
        self.run, self.several = run, several
        if not run.model.nv:
            raise ShapeError(f"no joint of model {run.model.name!r} moves: there is no derivative")
        self.kernel = pullback_of(run, running)
        self.variant = self.kernel.variant(run.arrays.dtype, wide=run.arrays.size > 1)
        self.before = self.variant.status.value
        size, dtype, model = run.arrays.size, run.arrays.dtype, run.model
        self.numbers = self.kernel.numbers
        if run.contact is not None:
            self.residuals, self.failed = np.zeros((size, 10), dtype), np.zeros(size, bool)
        self.value = np.zeros(size, dtype)
        self.q, self.qd = (np.zeros((*several, size, n), dtype) for n in (model.nq, model.nv))
        shapes = [out.shape for out in self.kernel.outputs[3:]]
        self.found = [
            np.zeros((*([run.steps] if g.timed else []), *several, size, *shape), dtype)
            for g, shape in zip(run.arrays.given, shapes, strict=True)
        ]

    def forward(self, part):
        """States of a part of the batch at all steps, (steps + 1, samples, ...), and memories."""
        run = self.run
        model, dtype, marks = run.model, run.arrays.dtype, np.arange(run.steps + 1)
        n = part.stop - part.start
        q, qd, work = (
            empty((len(marks), n, *shape), dtype) for shape in ((model.nq,), (model.nv,), ())
        )
        piece = run.part(part)
        piece.fill(marks, q, qd, work, threaded=False)
        if self.failed is not None:
            notes = contact_notes(run.transition, piece.memory, np.isfinite)
            _, self.residuals[part], self.failed[part] = notes
        return q, qd, piece.memory

    def end_cost(self, terminal, part, q, qd):
        """Gradients of the terminal cost by the final state; its value is added to the cost."""
        if terminal is None:
            return np.zeros_like(q), np.zeros_like(qd)
        run = self.run
        t, h = (np.array(x, q.dtype) for x in (run.time(run.steps), run.dt))
        compiled = run.transition.terminal(terminal)
        value, p_q, p_qd, *gradients = compiled.full(t, h, q, qd, *self._holding(-1, part))
        self.value[part] += value
        for g, total, gradient in zip(run.arrays.given, self.found, gradients, strict=True):
            self._add(g, total, -1, part, gradient)
        return p_q, p_qd

    def backward(self, part, q, qd, memory, p_q, p_qd):
        """Run the reverse pass over all steps of a part of the batch, adding gradients."""
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
            if run.halted:
                return
            t, held, place = (
                np.array(run.time(k), q.dtype),
                self._holding(k, part),
                places[k % 2],
            )
            out = (cost, *place, *gradients)
            both = () if memory is None else (memory[k], memory[k + 1])
            self.variant.ufunc(t, h, q[k], qd[k], *both, *held, p_q, p_qd, out=out)
            p_q, p_qd = place
            if not self.several:
                self.value[part] += cost
            for g, total, gradient in zip(given, self.found, gradients, strict=True):
                self._add(g, total, k, part, gradient)
        self.q[..., part, :], self.qd[..., part, :] = p_q, p_qd

    def _holding(self, k, part):
        """Inputs held during step ``k`` for a part of the batch, as a list."""
        return [g.at(k, part) for g in self.run.arrays.given]

    def _add(self, given, total, k, part, gradient):
        """Add the gradients of a part of the batch to an input's total at step ``k``."""
        total = total[k] if given.timed else total
        total[(slice(None),) * len(self.several) + (part,)] += gradient

    def check(self):
        """Raise SimulationError if a check failed in compiled code; NaN for failed motions.

        Motions with contact that failed have no derivatives, and are left to a warning.
        """
        broken = self.variant.status.value != self.before
        if self.failed is not None and self.failed.any():
            warn_of_failures(self.run, self.failed.reshape(self.run.arrays.batch))
            several, rest = (slice(None),) * len(self.several), ~self.failed
            broken = not all(np.isfinite(x[..., rest, :]).all() for x in (self.q, self.qd))
            self.q[..., self.failed, :], self.qd[..., self.failed, :] = 0.0, np.nan
            for g, total in zip(self.run.arrays.given, self.found, strict=True):
                total[((slice(None),) if g.timed else ()) + several + (self.failed,)] = np.nan
        if broken:
            raise SimulationError(
                f"the derivative of a rollout of {self.run.model.name!r} is not finite, or a step "
                f"of it is near a singular configuration; the rollout itself is fine. Take fewer "
                f"or smaller steps: gradients may grow without bound in motions that are chaotic"
            )

    def start(self):
        """Gradients by the initial positions, along tangents, (..., nv)."""
        found = along_tangents(self.run.model, self.run.arrays.q0, self.q)
        if self.failed is not None:
            found[..., self.failed, :] = np.nan
        return found

    # --- in the shapes of the caller ---------------------------------------------------------

    def with_batch_axes(self, array):
        """Array reshaped to the caller's batch axes, then the axis of several costs."""
        array = np.moveaxis(array, 0, 1) if self.several else array
        shape = array.shape[1:]
        result = array.reshape((*self.run.arrays.batch, *shape))
        return result if result.shape else result[()]

    def by_name(self):
        """Gradients with respect to all input arrays, by kind and name."""
        result = {
            "tau": None,
            "controls": None,
            "inputs": {},
            "arguments": {},
            "parameters": {},
        }
        self._through_activation()
        for g, total in zip(self.run.arrays.given, self.found, strict=True):
            if g.timed:
                gradients = np.array([self.with_batch_axes(x) for x in total])
            else:
                gradients = self.with_batch_axes(total)
                if g.kind == "inputs" or (g.is_held and not g.squeeze):
                    gradients = gradients[np.newaxis]
            if g.is_held:
                result[g.kind] = gradients
            elif g.kind != "activation":
                result[g.kind][g.name] = gradients
        return result

    def of_contact(self):
        """Result fields about rigid contact; {} without it."""
        if self.failed is None:
            return {}
        batch = self.run.arrays.batch
        return {
            "contact": self.run.contact,
            "residuals": self.residuals.reshape(*batch, -1),
            "failed": self.failed.reshape(batch),
        }

    def _through_activation(self):
        """Add to control gradients the part that acts through later activations."""
        pairs = zip(self.run.arrays.given, self.found, strict=True)
        given = {g.kind: (g, found) for g, found in pairs if g.timed}
        if "activation" in given:
            (act, by_act), (controls, by_controls) = given["activation"], given["controls"]
            through_activation(
                self.run.model,
                self.run.dt,
                controls.array,
                act.array[..., :-1],
                by_controls,
                by_act[..., :-1],
            )


# --- through the activations of actuators --------------------------------------------------------


@kernel
def _next_activation(model, controls, activation, time):
    """Kernel of the activations after a time with constant controls."""
    return activation_after(model, controls, activation, time)


_activation_derivatives = differentiate(_next_activation, wrt=("controls", "activation"))


def through_activation(model, dt, controls, activation, by_controls, by_activation):
    """Add to control gradients what acts through activations of later steps, in place.

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
    """Gradients along tangents, (..., nv), from those by coordinates of ``q``, (..., nq)."""
    if model.nq == 0:
        return gradient
    return _pull_back(model, q, gradient)


@kernel
def _pull_back(model, q, gradient):
    """Kernel of the gradient along tangents (nv,) from that by coordinates (nq,)."""
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        parts.append(model.joint[i].rate_matrix(q[at]).T @ gradient[at])
    return np.concatenate(parts)


@kernel
def inverse_rates(model, q):
    """Matrix (nv, nq) from coordinate rates of ``q`` to joint velocities."""
    result = np.zeros((model.nv, model.nq), dtype=object)
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        R = np.asarray(model.joint[i].rate_matrix(q[at]))
        if R.size:
            LU = factor(R.T @ R)
            result[model.v_slice[i], at] = np.column_stack([solve(LU, row) for row in R])
    return result


@dataclass(frozen=True, kw_only=True)
class _ByInputs:
    """Derivatives with respect to what a rollout is given, and how rigid contact was treated."""

    tau: np.ndarray | None
    inputs: dict = field(default_factory=dict)
    arguments: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    controls: np.ndarray | None = None
    contact: str | None = None
    residuals: np.ndarray | None = None
    failed: np.ndarray | None = None


@dataclass(frozen=True)
class RolloutGradient(_ByInputs):
    """A cost, and its derivatives.

    Derivatives have the batch axes of the rollout, also those with respect to what all samples
    share: sum them over the batch for the derivative of the total.

    Attributes:
        value: the cost, (...).
        q0: with respect to the positions at the start, in the tangent space, (..., nv).
        qd0: with respect to the velocities at the start, (..., nv).
        tau: with respect to the joint forces, (steps, ..., nv); without an axis for time, or with
            one of length 1, as they were given; None if they were not.
        controls: with respect to the controls of actuators, likewise.
        inputs: with respect to inputs by name, (steps or 1, ..., shape of one sample).
        arguments: with respect to arguments by name, (..., shape of one sample).
        parameters: with respect to parameters by name, (..., shape), (..., 6) for placements.
        contact: of rigid contact: ``"relaxed"``, exact derivatives of a relaxed motion; ``"active
            set"``, those of a rigid motion in which everything that is open, sticks or slides stays
            so; None without it.
        residuals, failed: with rigid contact, as in ``Rollout``; derivatives of motions that failed
            are NaN.
    """

    value: np.ndarray
    q0: np.ndarray
    qd0: np.ndarray


@dataclass(frozen=True)
class FinalState(_ByInputs):
    """Where a rollout ends, and how that changes.

    A change of the state is ``(dq, dqd)`` in one vector of length ``2 nv``, ``dq`` in the tangent
    space; that of the final state comes first among the last axes.

    Attributes:
        q: joint positions at the end, (..., nq).
        qd: joint velocities at the end, (..., nv).
        state: with respect to the state at the start, (..., 2 nv, 2 nv).
        tau: with respect to the joint forces, (steps, ..., 2 nv, nv), as in ``RolloutGradient``.
        inputs, arguments, parameters: by name, likewise.
        controls: with respect to the controls of actuators, (steps, ..., 2 nv, n).
        contact, residuals, failed: as in ``RolloutGradient``.
    """

    q: np.ndarray
    qd: np.ndarray
    state: np.ndarray


@on_host
def rollout_gradient(
    model: Model,
    q0: ArrayLike,
    qd0: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    running: Callable | None = None,
    terminal: Callable | None = None,
    **options: Any,
) -> RolloutGradient:
    """Cost of a rollout and its gradients with respect to all inputs, by reverse mode.

    The cost is the sum of ``running`` over all steps, and ``terminal``.

    Args:
        model: the mechanism.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        tau: joint forces [N, N·m], as for ``kinetree.rollout``. Zeros are not the same as None:
            the derivative with respect to None is None.
        running: kernel ``(model, t, q, qd, tau, ...)`` of a number, for the state at the start of
            a step and the joint forces held during it. Like a controller it takes what it needs of
            these, of ``inputs`` and of ``arguments``, by name.
        terminal: kernel ``(model, t, q, qd, ...)`` of a number, for the final state; it takes what
            it needs of these and of ``arguments``.
        **options: ``steps``, ``dt``, ``integrator``, ``forces``, ``controller``, ``controls``,
            ``motors``, ``inputs``, ``arguments``, ``parameters``, ``t0``, ``prescribed`` and
            ``contact``, as for ``kinetree.rollout``.
    """
    require_kernel(running, "running cost")
    require_kernel(terminal, "terminal cost")
    if running is None and terminal is None:
        raise TypeError("rollout_gradient needs a cost: running=..., terminal=..., or both")
    if terminal is not None:
        _check_terminal(terminal, options.get("inputs"))
    costs, name = (running, terminal), "rollout_gradient"
    run = run_of(model, q0, qd0, tau, costs=costs, function=name, **options)
    with run.watched_task():
        adjoint = Adjoint(run, running)

        def piece(part):
            q, qd, memory = adjoint.forward(part)
            adjoint.backward(part, q, qd, memory, *adjoint.end_cost(terminal, part, q[-1], qd[-1]))

        over_chunks(piece, run.arrays.size, adjoint.numbers, run.steps, run.halted)
        adjoint.check()
        found = adjoint.value, adjoint.start(), adjoint.qd
        value, by_q0, by_qd0 = (adjoint.with_batch_axes(x) for x in found)
        return RolloutGradient(value, by_q0, by_qd0, **adjoint.by_name(), **adjoint.of_contact())


@on_host
def final_state_derivatives(
    model: Model,
    q0: ArrayLike,
    qd0: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    **options: Any,
) -> FinalState:
    """Final state of a rollout and its derivatives with respect to all inputs.

    Takes ``2 nv`` reverse passes; ``rollout_gradient`` takes one, for a single cost.

    Args:
        model: the mechanism.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        tau: joint forces [N, N·m], as for ``kinetree.rollout``.
        **options: as for ``rollout_gradient``.
    """
    run = run_of(model, q0, qd0, tau, function="final_state_derivatives", **options)
    n, size, dtype = model.nv, run.arrays.size, run.arrays.dtype
    with run.watched_task():
        adjoint = Adjoint(run, None, (2 * n,))
        ends = np.empty((size, model.nq), dtype), np.empty((size, n), dtype)

        def piece(part):
            q, qd, memory = adjoint.forward(part)
            ends[0][part], ends[1][part] = q[-1], qd[-1]
            p_q, p_qd = (np.zeros((2 * n, *x[-1].shape), dtype) for x in (q, qd))
            rates: Any = inverse_rates(model, q[-1])
            p_q[:n] = np.moveaxis(rates, -2, 0)
            p_qd[n:] = np.eye(n)[:, np.newaxis]
            adjoint.backward(part, q, qd, memory, p_q, p_qd)

        over_chunks(piece, size, adjoint.numbers, run.steps, run.halted)
        adjoint.check()
        start = np.concatenate([adjoint.start(), adjoint.qd], axis=-1)
        q, qd = (a.reshape(*run.arrays.batch, a.shape[-1]) for a in ends)
        shaped = adjoint.by_name()
        return FinalState(q, qd, adjoint.with_batch_axes(start), **shaped, **adjoint.of_contact())


def _check_terminal(terminal, inputs):
    """Raise UnknownNameError if a terminal cost takes inputs that belong to steps."""
    for name in names_of(terminal):
        if name in ("tau", "controls") or name in (inputs or {}):
            raise UnknownNameError(
                f"terminal cost {terminal.__name__!r} takes {name!r}, which belongs to a step; "
                f"after the last there is none. It may take t, q, qd and what is in arguments"
            )
