"""The linear model by Spencer's recursions, with virtual joints — sections 4.2 to 4.4, appendix B.

``K̂`` takes the rates of the independent coordinates to the velocities of all joints, virtual ones
included; ``K`` keeps the rows of the real ones:

    X = [R; Ĝ]       K̂ = X⁻¹ [1; 0]       K̂dot = -X⁻¹ [0; Ĝdot] K̂
    ∂K̂/∂y_i = -X⁻¹ [0; Σ_j ∂Ĝ/∂q̂_j K̂_ji] K̂
    K̂ddot   = -X⁻¹ [0; Ĝddot] K̂ - 2 X⁻¹ [0; Ĝdot] K̂dot

    A21 = -(Kᵀ M K)⁻¹ ([… ∂K/∂y_iᵀ r …] + Kᵀ (∂tau/∂q K + ∂tau/∂v Kdot + M Kddot))
    A22 = -(Kᵀ M K)⁻¹ Kᵀ (∂tau/∂v K + 2 M Kdot)         r = tau_NE - tau

at the actual acceleration. Where the thesis prints ``K`` in the derivatives it must be ``K̂``, the
sum over ``j`` takes in the virtual joints, ``Kᵀ`` is missing in (B.5), and ``r`` of §4.2 is the
case without motors.
"""

import numpy as np

from kinetree.algorithms.closed_chain_derivatives import closure_derivatives
from kinetree.algorithms.closed_chain_links import ClosedChain
from kinetree.functional.kernel import kernel
from kinetree.loops.linear.motion_slopes import joint_forces_along

__all__ = ["recursion"]


@kernel
def _closure(m, q, qd, qdd):
    return tuple(closure_derivatives(m, q, qd, qdd))


def recursion(state, chosen, basis):
    """Lower blocks of ``A`` and ``B``; ``basis`` has checked that the coordinates will do."""
    model = state.model
    chain = ClosedChain(model)
    chain.require_constant_axes()
    G, dG, Gdot, Gddot = _closure(model, state.q, state.qd, state.qdd)
    p = len(chosen.names)
    R = np.zeros((*chosen.rows.shape[:-1], chain.nv))
    R[..., : model.nv] = chosen.rows
    for row, k in chosen.loops:
        R[..., row, model.nv + k] = 1
    R = np.broadcast_to(R, (*G.shape[:-2], p, chain.nv))
    inverse = np.linalg.pinv(np.concatenate([R, G], axis=-2))
    K_hat, solve = inverse[..., :p], inverse[..., p:]
    Kdot_hat = -solve @ Gdot @ K_hat
    Kddot_hat = -solve @ (Gddot @ K_hat + 2 * Gdot @ Kdot_hat)
    K, Kdot, Kddot = (part[..., : model.nv, :] for part in (K_hat, Kdot_hat, Kddot_hat))

    along_y = np.einsum("...abj,...ji->...iab", dG, K_hat) @ K_hat[..., None, :, :]
    dK = -(solve[..., None, :, :] @ along_y)[..., : model.nv, :]  # ∂K/∂y_i in [..., i, :, :]
    r = state.constraint_force()
    turned = np.einsum("...ink,...n->...ki", dK, r)

    K_T, still = np.swapaxes(K, -1, -2), np.zeros_like(K)
    blocks = (
        -turned - K_T @ joint_forces_along(state, K, Kdot, Kddot),
        -K_T @ joint_forces_along(state, still, K, 2 * Kdot),
        K_T,
    )
    inertia = K_T @ joint_forces_along(state, still, still, K)
    return [np.linalg.solve(inertia, block) for block in blocks]
