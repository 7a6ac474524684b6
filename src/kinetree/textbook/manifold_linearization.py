"""Linear models of closed mechanisms in all joint variables, tangent to the manifold — Spencer 4.1.

On the manifold of states ``x = (q, qd)`` the motion is ``dx/dt = f(x)``, and small deviations
must be tangent to it: ``H dx = 0``, with ``H`` the derivative of the invariants ``(error, rate)``.
A linear model in all variables is

    A = [Df] Π        H Π = 0     Π² = Π

for any such projector ``Π``: how ``f`` goes on off the manifold then makes no difference. ``A`` has
two zeros for each constraint, the directions in which a simulation would drift, and at an
equilibrium its other eigenvalues do not depend on ``Π`` (Theorems 4.1.1, 4.1.2). ``kt.linearize``
is the linear model in independent coordinates.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import UnknownNameError
from kinetree.functional.products import brackets
from kinetree.loops.kinematics.constraint import require_holonomic
from kinetree.loops.linear.derivatives import invariant_derivatives, motion_derivatives
from kinetree.loops.linear.linearization import lower_blocks, motion_state
from kinetree.loops.linear.velocity_basis import coordinate_jacobian, loop_coordinates_along
from kinetree.model import Model
from kinetree.model.arrays import as_model


class ManifoldLinearization(NamedTuple):
    """``d(dx)/dt = A dx + B dtau`` for ``dx = (dq, dqd)`` tangent to the manifold."""

    A: Any
    """(..., 2 nv, 2 nv)"""
    B: Any
    """(..., 2 nv, nv)"""
    projector: Any
    """``Π``, (..., 2 nv, 2 nv)."""
    tangent: Any
    """``Dψ``: ``(dq, dqd)`` for ``(dy, dyd)``; it spans the tangent space, (..., 2 nv, 2 p)."""
    invariants: Any
    """``H``, (..., 2 nc, 2 nv)."""
    rate: Any
    """``f(x) = (qd, qdd)``, (..., 2 nv)."""


@on_host
def linearize_on_manifold(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    f_ext: ArrayLike | dict | None = None,
    *,
    independent: Sequence[str] | str | ArrayLike | None = "tangent",
    projector: str = "orthogonal",
) -> ManifoldLinearization:
    """Linear model of the equations of motion in all joint variables.

    Args:
        model: the mechanism; without loops all its variables are independent.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        tau: forces of the motors, (..., nv).
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        independent: coordinates ``y``, as in ``kinetree.loops.linearize_in_coordinates``.
        projector: ``"orthogonal"``, ``Π = 1 - Hᵀ (H Hᵀ)⁻¹ H``, which does not depend on
            coordinates; ``"coordinates"``, ``Π = Dψ R``, which leaves ``y`` and ``yd`` as they are.
    """
    if projector not in ("orthogonal", "coordinates"):
        raise UnknownNameError(
            f"projector must be 'orthogonal' or 'coordinates', got {projector!r}"
        )
    require_holonomic(as_model(model))
    state, chosen, basis = motion_state(model, q, qd, tau, f_ext, independent)
    motion = motion_derivatives(state, chosen, basis)
    A21, A22, B2 = lower_blocks(state, motion, basis)
    G, V, W, U, _ = motion
    zero = np.zeros_like(G)
    tangent = _blocks([[G, zero], [V, G]])
    turning = brackets(model, state.q, state.qd)
    rates = _blocks([[V + turning @ G, G], [W + G @ A21, U + G @ A22]])
    K, r_q = invariant_derivatives(state)
    H = _blocks([[K, np.zeros_like(K)], [r_q, K]])
    orthogonal = projector == "orthogonal"
    back = np.linalg.pinv(tangent) if orthogonal else _coordinate_rows(state, chosen)
    return ManifoldLinearization(
        A=rates @ back,
        B=np.concatenate([np.zeros_like(G @ B2), G @ B2], axis=-2),
        projector=tangent @ back,
        tangent=tangent,
        invariants=H,
        rate=np.concatenate([state.qd, state.qdd], axis=-1),
    )


def _coordinate_rows(state, chosen):
    """Matrix ``R`` from ``(dq, dqd)`` to changes ``(dy, dyd)`` of the coordinates."""
    still = np.zeros((*state.qd.shape, state.model.nv))
    gradient, _ = loop_coordinates_along(state, chosen, still + np.eye(state.model.nv), still)
    R = np.broadcast_to(coordinate_jacobian(state.model, state.q, chosen), gradient.shape)
    return _blocks([[R, np.zeros_like(R)], [gradient, R]])


def _blocks(rows):
    """Matrix assembled from rows of blocks, with batch axes."""
    return np.concatenate([np.concatenate(row, axis=-1) for row in rows], axis=-2)
