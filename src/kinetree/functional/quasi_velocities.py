"""Equations of motion in velocities other than ``qd``: ``qd = B(q) y`` — RBDA §3.1, §3.2.

The columns of ``B`` say what the new velocities do to the joints. With as many as joints they are
other coordinates of the same motion (quasi-velocities, such as the velocity of a foot instead of
some joint's); with fewer, the mechanism is held to the motions they span, and the forces that
hold it there drop out of the equation. For ``qdd = B yd + dB/dt y``,

    Bᵀ H B yd + Bᵀ (C + H dB/dt y) = Bᵀ tau
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.allowed_motion import require_unmoved
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.rank import scaling
from kinetree.arrays.kinds import ArrayLike, as_numpy
from kinetree.errors import LoopError, ShapeError, names_itself
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.transformed import kept_with
from kinetree.model import Model
from kinetree.model.arrays import as_given, as_model
from kinetree.quantities.dynamics import inverse_dynamics, mass_matrix
from kinetree.spatial.ops import less

__all__ = ["QuasiVelocityDynamics", "quasi_velocity_dynamics"]


class QuasiVelocityDynamics(NamedTuple):
    """``inertia @ yd + bias = B.T @ tau``."""

    inertia: Any
    """``Bᵀ H B``, (..., k, k)."""
    bias: Any
    """``Bᵀ (C + H dB/dt y)``, gravity included, (..., k)."""
    B: Any
    """The map, (..., nv, k)."""
    qd: Any
    """Joint velocities ``B y``, (..., nv)."""


@names_itself
def quasi_velocity_dynamics(
    model: Model, q: ArrayLike, y: ArrayLike, B: Callable[..., Any]
) -> QuasiVelocityDynamics:
    """Equation of motion in quasi-velocities ``y`` with ``qd = B(model, q) y``.

    Args:
        model: the mechanism. Loops have to allow every velocity ``B y``: their forces do no work
            then, and drop out like those of other constraints. ``kinetree.loops.null_space`` in
            ``B`` gives all that they allow.
        q: joint positions, (..., nq).
        y: the new velocities, (..., k).
        B: a function of the model and one ``q``, written as for ``@kt.kernel``, that returns
            (nv, k). It is compiled, and differentiated exactly.

    Raises:
        LoopError: ``B`` has velocities that the loops forbid.
    """
    tree = as_model(model).spanning_tree
    if model.is_constrained:
        require_unmoved(model, "qd = B y")
    of_q, rate = _compile(B)
    Bq, y = of_q(model, q), as_given(y, "y")
    if Bq.ndim < 2 or Bq.shape[-2] != model.nv:
        raise ShapeError(f"B must return (nv, k) with nv = {model.nv}, got {Bq.shape[-2:]}")
    if y.ndim == 0 or y.shape[-1] != Bq.shape[-1]:
        raise ShapeError(f"y must have shape (..., k), k = {Bq.shape[-1]} as B; got {y.shape}")
    if model.is_constrained:
        _require_allowed(model, q, Bq)
    qd = (Bq @ y[..., None])[..., 0]
    Bd = (rate(model, q) @ qd[..., None, :, None])[..., 0]
    Bt = Bq.swapaxes(-1, -2)
    force = inverse_dynamics(tree, q, qd, (Bd @ y[..., None])[..., 0])
    return QuasiVelocityDynamics(
        Bt @ mass_matrix(tree, q) @ Bq, (Bt @ force[..., None])[..., 0], Bq, qd
    )


_ALLOWED = 1e-9
"""Part of a velocity that loops may forbid, for rounding errors."""


@kernel
def _rows(m, q):
    """Kernel: constraint matrix ``K`` of a configuration."""
    return loop_constraints(m, q, m.zero_velocity).K


def _require_allowed(model, q, B):
    """Raise LoopError if ``B`` contains velocities that the loops forbid."""
    units, K, B = scaling(model), _rows(model, q), as_numpy(B)
    pure = B / units.columns[:, None]
    torn = np.sum((units.apply(as_numpy(K)) @ pure) ** 2, axis=-2)
    limit = _ALLOWED**2 * np.sum(pure**2, axis=-2) + np.finfo(float).tiny
    for sample in np.ndindex(torn.shape):
        allowed: Any = less(torn[sample], limit[sample])
        if not isinstance(allowed, (bool, np.bool_)):
            allowed.require()
        elif not allowed:
            raise LoopError(
                f"column {sample[-1]} of B is not a velocity that the loops and constraints of "
                f"model {model.name!r} allow: build B of kinetree.loops.null_space(model, q, qd).G"
            )


def _compile(B):
    """Function ``B`` as a kernel, and its derivative by ``q``; cached with the function."""

    def make():
        user = B if hasattr(B, "bind") else kernel(B)
        return user, differentiate(user, wrt="q")

    owner = getattr(B, "__self__", B)
    return kept_with(owner, ("quasi-velocities", B), make) if hasattr(owner, "__dict__") else make()
