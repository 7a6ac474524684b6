"""Derivatives of rollouts: of a cost by the adjoint of every step, of the final state likewise.

States are stored in the forward pass; in the reverse pass the gradient of the cost with respect to
the state goes from the end of each step to its start, through one compiled function that costs a
few times as much as the step, whatever the number of variables. Derivatives with respect to ``q0``
are in the tangent space, (nv,), as everywhere: entry ``j`` is the derivative along
``model.integrate(q0, t e_j)``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import UnknownNameError
from kinetree.model import Model
from kinetree.simulation.rollouts.adjoint import Adjoint, along_tangents, inverse_rates
from kinetree.simulation.rollouts.inputs import names_of, require_kernel
from kinetree.simulation.rollouts.rollout import run_of
from kinetree.simulation.rollouts.run import over_chunks


@dataclass(frozen=True)
class RolloutGradient:
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
    """

    value: np.ndarray
    q0: np.ndarray
    qd0: np.ndarray
    tau: np.ndarray | None
    inputs: dict = field(default_factory=dict)
    arguments: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    controls: np.ndarray | None = None


@dataclass(frozen=True)
class FinalState:
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
    """

    q: np.ndarray
    qd: np.ndarray
    state: np.ndarray
    tau: np.ndarray | None
    inputs: dict = field(default_factory=dict)
    arguments: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    controls: np.ndarray | None = None


@on_host
def rollout_gradient(
    model: Model, q0: ArrayLike, qd0: ArrayLike | None = None, tau: ArrayLike | None = None, *,
    running: Callable | None = None, terminal: Callable | None = None, **options: Any,
) -> RolloutGradient:  # fmt: skip
    """The cost of a rollout, and its derivatives with respect to everything that goes in.

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
            ``inputs``, ``arguments``, ``parameters``, ``t0``, ``prescribed`` and ``contact``, as
            for ``kinetree.rollout``.
    """
    require_kernel(running, "running cost")
    require_kernel(terminal, "terminal cost")
    if running is None and terminal is None:
        raise TypeError("rollout_gradient needs a cost: running=..., terminal=..., or both")
    if terminal is not None:
        _check_terminal(terminal, options.get("inputs"))
    costs, name = (running, terminal), "rollout_gradient"
    run = run_of(model, q0, qd0, tau, costs=costs, function=name, **options)
    with run.task():
        adjoint = Adjoint(run, running)

        def piece(part):
            q, qd = adjoint.forward(part)
            adjoint.backward(part, q, qd, *adjoint.end_cost(terminal, part, q[-1], qd[-1]))

        over_chunks(piece, run.arrays.size, adjoint.numbers, run.steps)
        adjoint.check()
        start = along_tangents(model, run.arrays.q0, adjoint.q)
        value, by_q0, by_qd0 = (adjoint.batched(x) for x in (adjoint.value, start, adjoint.qd))
        return RolloutGradient(value, by_q0, by_qd0, **adjoint.shaped())


@on_host
def final_state_derivatives(
    model: Model, q0: ArrayLike, qd0: ArrayLike | None = None, tau: ArrayLike | None = None,
    **options: Any,
) -> FinalState:  # fmt: skip
    """The final state of a rollout, and its derivatives with respect to everything that goes in.

    Costs ``2 nv`` ways back; for one cost, ``rollout_gradient`` costs one.

    Args:
        model: the mechanism.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        tau: joint forces [N, N·m], as for ``kinetree.rollout``.
        **options: as for ``rollout_gradient``.
    """
    run = run_of(model, q0, qd0, tau, function="final_state_derivatives", **options)
    n, size, dtype = model.nv, run.arrays.size, run.arrays.dtype
    with run.task():
        adjoint = Adjoint(run, None, (2 * n,))
        ends = np.empty((size, model.nq), dtype), np.empty((size, n), dtype)

        def piece(part):
            q, qd = adjoint.forward(part)
            ends[0][part], ends[1][part] = q[-1], qd[-1]
            p_q, p_qd = (np.zeros((2 * n, *x[-1].shape), dtype) for x in (q, qd))
            rates: Any = inverse_rates(model, q[-1])
            p_q[:n] = np.moveaxis(rates, -2, 0)
            p_qd[n:] = np.eye(n)[:, np.newaxis]
            adjoint.backward(part, q, qd, p_q, p_qd)

        over_chunks(piece, size, adjoint.numbers, run.steps)
        adjoint.check()
        start = np.concatenate(
            [along_tangents(model, run.arrays.q0, adjoint.q), adjoint.qd], axis=-1
        )
        q, qd = (a.reshape(*run.arrays.batch, a.shape[-1]) for a in ends)
        return FinalState(q, qd, adjoint.batched(start), **adjoint.shaped())


def _check_terminal(terminal, inputs):
    for name in names_of(terminal):
        if name in ("tau", "controls") or name in (inputs or {}):
            raise UnknownNameError(
                f"terminal cost {terminal.__name__!r} takes {name!r}, which belongs to a step; "
                f"after the last there is none. It may take t, q, qd and what is in arguments"
            )
