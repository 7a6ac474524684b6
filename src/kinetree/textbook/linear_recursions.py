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

from kinetree.algorithms.closed.links import ClosedChain, closure_derivatives
from kinetree.errors import LoopError
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.derivatives import joint_forces_along
from kinetree.loops.linear.velocity_basis import (
    accelerations,
    along_columns,
    coordinate_accelerations,
    coordinate_rates,
    move_coordinates,
    velocities,
    velocity_basis,
)
from kinetree.quantities.dynamics import passive_force
from kinetree.spatial import Force
from kinetree.textbook.link_variations import link_variation


@kernel
def _closure(m, q, qd, qdd):
    """Kernel of the loop-closure derivatives along positions and time."""
    return tuple(closure_derivatives(m, q, qd, qdd))


def recursion(state, chosen, basis):
    """Lower blocks of ``A`` and ``B`` of a linear model by recursion along the links."""
    model = state.model
    if model.constraints:
        raise LoopError(
            f"method 'recursion' goes along the links of loops, and does not support constraint "
            f"{model.constraints[0].name!r} of model {model.name!r}; use 'equations'"
        )
    chain = ClosedChain(model)
    if model.couplings or not chain.has_fixed_axes:
        return along_links(state, chosen)
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


# --- joints whose axes turn or move, and gears ----------------------------------------------------
# Where ``K̂`` is not a function of coordinates, its derivatives are those along its own columns:
#
#     Ĝ V̂ = -δr(K̂, 0)     Ĝ Ŵ = -δa(K̂, V̂)     Ĝ Û = -δa(0, K̂)
#
# for relative velocities ``r`` and accelerations ``a`` of virtual links and the bodies that they
# meet; ``V̂`` is ``K̂dot``, ``Û`` is ``2 K̂dot`` and ``Ŵ`` is ``K̂ddot`` where axes are fixed. With the
# loop forces held, ``Ĝᵀ φ = r``, the forces of all joints change by ``δτ̂``, and only ``K̂ᵀ δτ̂``
# counts.


def along_links(state, chosen):
    """Lower blocks of a linear model's ``A`` and ``B``, by link recursion along each column."""
    model, n = state.model, state.model.nv
    total, p = n + sum(loop.joint.nv for loop in model.loops), len(chosen.names)
    batch = state.qd.shape[:-1]
    identity, none = np.eye(total) + np.zeros((*batch, 1, 1)), np.zeros((*batch, total, total))
    G, *_ = _along_links(state, identity, none, none)
    R = np.zeros((*chosen.rows.shape[:-1], total))
    R[..., :n] = chosen.rows
    for row, k in chosen.loops:
        R[..., row, n + k] = 1
    R = np.broadcast_to(R, (*batch, p, total))
    inverse = np.linalg.pinv(np.concatenate([R, G], axis=-2))
    K, solve, still = inverse[..., :p], inverse[..., p:], np.zeros((*batch, total, p))
    V = -solve @ _along_links(state, K, still, still)[1]
    W = -solve @ _along_links(state, K, V, still)[2]
    U = -solve @ _along_links(state, still, K, still)[2]
    r = np.concatenate([state.constraint_force(), np.zeros((*batch, total - n))], axis=-1)
    phi = np.einsum("...nc,...n->...c", solve, r) if model.loops else None
    K_T = np.swapaxes(K, -1, -2)

    def forces(dq, dv, da):
        found = _along_links(state, dq, dv, da, phi)[3].copy()
        found[..., :n, :] -= along_columns(
            _passive_rate, model, state.q, state.qd, tangents=(dq[..., :n, :], dv[..., :n, :])
        )
        return found

    inertia = K_T @ forces(still, still, K)
    blocks = (-K_T @ forces(K, V, W), -K_T @ forces(still, K, U), K_T[..., :n])
    return [np.linalg.solve(inertia, block) for block in blocks]


def _along_links(state, dq, dv, da, phi=None):
    """``LinkVariation`` along columns of position, velocity and acceleration changes."""
    model, q, qd, qdd, _, f_ext = state
    arrays = [x[..., None, :] for x in (q, qd, qdd)]
    arrays += [np.swapaxes(x, -1, -2) for x in (dq, dv, da)]
    if model.loops:
        count = 6 * len(model.loops)
        phi = np.zeros((*qd.shape[:-1], count)) if phi is None else phi
        arrays.append(phi[..., None, :])
        found = _links(model, *arrays, *(() if f_ext is None else (f_ext[..., None, :, :],)))
        parts = np.split(found, [count, 2 * count, 3 * count], axis=-1)
    else:
        found = _bodies(model, *arrays, *(() if f_ext is None else (f_ext[..., None, :, :],)))
        parts = [*(np.zeros((*found.shape[:-1], 0)),) * 3, found]
    return [np.swapaxes(part, -1, -2) for part in parts]


@kernel
def _links(m, q, qd, qdd, dq, dv, da, phi, f_ext=None):
    """Kernel of the changes of all links' motions and forces along one direction, stacked."""
    forces = None if f_ext is None else [None, *map(Force.from_array, f_ext)]
    return np.concatenate(link_variation(m, (q, qd, qdd), (dq, dv, da), phi, forces))


@kernel
def _bodies(m, q, qd, qdd, dq, dv, da, f_ext=None):
    """Kernel of the changes of a tree's joint forces along one direction of its motion."""
    forces = None if f_ext is None else [None, *map(Force.from_array, f_ext)]
    return link_variation(m, (q, qd, qdd), (dq, dv, da), None, forces).forces


_passive_rate = jvp(passive_force, wrt=("q", "qd"))


# --- differences: Spencer 4.1, 4.5 ---------------------------------------------------------------
# Every column takes a few closed configurations, found by Newton's method, and their accelerations:
# slow, and independent of all derivatives. For checks.

_STEP = 1e-3
"""In units of the coordinates [m or rad], and of their rates: errors of the order of its square's
square."""


def differences(state, chosen, basis):
    """Lower blocks of a linear model's ``A`` and ``B`` by finite differences, sample by sample."""
    model, q, qd, _, tau, f_ext = state
    batch, p = qd.shape[:-1], len(chosen.names)
    blocks = [np.zeros((*batch, p, n)) for n in (p, p, model.nv)]
    for sample in np.ndindex(batch):
        forces = None if f_ext is None else f_ext[sample] if f_ext.ndim > 2 else f_ext
        one = chosen.at(sample)
        found = _differences(model, q[sample], qd[sample], tau[sample], forces, one)
        for block, value in zip(blocks, found, strict=True):
            block[sample] = value
    return blocks


def _differences(model, q, qd, tau, f_ext, chosen):
    """Lower blocks of a linear model's ``A`` and ``B`` for one sample by finite differences."""
    p, yd = len(chosen.names), coordinate_rates(model, q, qd, chosen)

    def acceleration(dy, dyd, dtau):
        """``ydd`` of the local state-space form — Spencer (4.8)–(4.10)."""
        here = move_coordinates(model, q, dy, chosen) if np.any(dy) else q
        K = constraint(model, here, np.zeros(model.nv)).K
        basis = velocity_basis(model, here, K, chosen)
        v = velocities(model, here, yd + dyd, basis)
        qdd = accelerations(model, here, v, tau + dtau, f_ext, constraint(model, here, v), basis)
        return coordinate_accelerations(model, here, v, qdd, chosen)

    still, no_force = np.zeros(p), np.zeros(model.nv)
    y_gradient = _gradient(lambda d: acceleration(d, still, no_force), p)
    yd_gradient = _gradient(lambda d: acceleration(still, d, no_force), p)
    return (
        y_gradient,
        yd_gradient,
        _gradient(lambda d: acceleration(still, still, d), model.nv, 1.0),
    )


def _gradient(f, n, step=_STEP):
    """Jacobian (..., n) by central differences of fourth order."""
    columns = []
    for e in step * np.eye(n):
        columns.append((8 * (f(e) - f(-e)) - (f(2 * e) - f(-2 * e))) / (12 * step))
    return np.stack(columns, axis=-1)
