"""Articulated-body inertias by projection, which are operational-space inertias — RBDA §7.2.1.

The equation of motion of the whole mechanism, projected on the motion of one or more handles
(frames, with their own coordinates): ``a = Phi f + b`` always, and ``f = IA a + pA`` when the
handles move freely, that is when their Jacobian has full row rank. ``IA`` and ``pA`` are
``Lambda`` and ``eta`` of Lynch & Park (9.97)–(9.99).

The mechanism may be any, loops included: then ``qd = G yd`` for the motions that they allow, with
the inertia ``Gᵀ H G``, and the handles are those of the closed mechanism.

``frames`` is a frame or its name, or a sequence of them; several handles are stacked, (7.4).
``rows`` keeps only some of the 6 h coordinates: ``rows=(3, 4, 5)`` for the linear part of a
single handle.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.closed.independent import allowed_motion_at
from kinetree.algorithms.crba import inertia_factors
from kinetree.algorithms.jacobians import frame_jacobian
from kinetree.algorithms.kinematics import body_accelerations
from kinetree.algorithms.rnea import bias_force
from kinetree.model import Frame
from kinetree.spatial.ops import check_pivot


class HandleResponse(NamedTuple):
    """``a = Phi f + b``: how handles accelerate under the forces on them — RBDA (7.3), (7.4)."""

    Phi: np.ndarray
    """Inverse inertia (6h, 6h): symmetric, positive semidefinite, of the rank of the Jacobian."""
    b: np.ndarray
    """Bias acceleration (6h,), gravity included."""


class HandleEquation(NamedTuple):
    """``f = IA a + pA`` — RBDA (7.2); ``F = Lambda dV/dt + eta`` in Lynch & Park (9.97)."""

    IA: np.ndarray
    """Articulated-body or operational-space inertia (6h, 6h)."""
    pA: np.ndarray
    """Bias force (6h,), gravity included."""


def handle_jacobian(model, q, frames, rows=None):
    """Jacobian (6h, nv) of stacked handles, each in its own coordinates."""
    handles = _handles(model, frames)
    J = np.concatenate([frame_jacobian(model, q, handle, "body") for handle in handles])
    return J if rows is None else J[list(rows)]


def inverse_inertia(model, q, frames, rows=None):
    """Inverse operational inertia ``Phi = J H⁻¹ Jᵀ`` of handles — RBDA (7.9)."""
    _, Y, D = _factor(model, q, frames, rows)
    return Y.T @ (Y / D)


def bias_acceleration(model, q, qd, tau, frames, f_ext=None, rows=None):
    """Bias acceleration ``Jd qd + J H⁻¹ (tau - C)`` of handles — RBDA (7.10)."""
    if model.is_constrained:
        allowed = allowed_motion_at(model, q, qd)
        qdd = allowed.free_acceleration(f_ext) + allowed.response(tau)
    else:
        L, lam = inertia_factors(model, q), model.expanded_parent
        qdd = ltl.solve_ltdl(L, lam, tau - bias_force(model, q, qd, f_ext))
    _, _, a = body_accelerations(model, q, qd, qdd)
    handles = _handles(model, frames)
    b = np.concatenate([(h.placement @ a[h.body]).to_array() for h in handles])
    return b if rows is None else b[list(rows)]


def handle_response(model, q, qd, tau, frames, f_ext=None, rows=None):
    """``HandleResponse`` ``Phi``, ``b`` of handles — RBDA (7.8)."""
    return HandleResponse(
        inverse_inertia(model, q, frames, rows),
        bias_acceleration(model, q, qd, tau, frames, f_ext, rows),
    )


def operational_space_inertia(model, q, frames, rows=None):
    """Operational-space inertia ``(J H⁻¹ Jᵀ)⁻¹`` of handles — RBDA (7.12), Lynch & Park (9.98).

    Raises:
        SingularError: when ``J`` lacks full row rank, so that some acceleration of the handles is
            impossible and the inertia against it infinite.
    """
    J, Y, D = _factor(model, q, frames, rows)
    L = _gram_ltdl(Y, D, lambda k: _not_free(model, J, frames))
    n = ltl.dense(len(J))
    return ltl.solve_ltdl(L, n, np.eye(len(J), dtype=int))


def operational_space_dynamics(model, q, qd, tau, frames, f_ext=None, rows=None):
    """Operational-space inertia and bias force ``-IA b`` of handles — RBDA (7.12), (7.13)."""
    IA = operational_space_inertia(model, q, frames, rows)
    return HandleEquation(IA, -IA @ bias_acceleration(model, q, qd, tau, frames, f_ext, rows))


def handle_freedom(model, q, frames, rows=None):
    """Rank and condition number of the handles' Jacobian — RBDA (7.14).

    The inertia exists when the rank is the number of rows, and grows with the square of the
    condition number.
    """
    J = np.asarray(handle_jacobian(model, q, frames, rows), float)
    if model.is_constrained:
        J = J @ allowed_motion_at(model, q, None).G
    s = np.linalg.svd(J, compute_uv=False)
    J_rows = len(_handles(model, frames)) * 6 if rows is None else len(rows)
    rank = int(np.count_nonzero(s > 1e-10 * max(s, default=0)))
    return rank, (float(s[0] / s[-1]) if rank == J_rows else np.inf)


def _handles(model, frames):
    """List of ``Frame`` handles from a name, a frame, or several."""
    several = [frames] if isinstance(frames, (str, Frame)) else frames
    return [f if isinstance(f, Frame) else model.frame(f) for f in several]


def _factor(model, q, frames, rows):
    """Jacobian ``J``, ``Y = L⁻ᵀ Jᵀ`` and ``D`` of ``H = LᵀDL``, with loops in reduced form.

    With loops, ``J G`` and ``Gᵀ H G`` in place of ``J`` and ``H``.
    """
    J = handle_jacobian(model, q, frames, rows)
    if model.is_constrained:
        allowed = allowed_motion_at(model, q, None)
        J, L, lam = J @ allowed.G, allowed.factors(), ltl.dense(allowed.G.shape[1])
    else:
        L, lam = inertia_factors(model, q), model.expanded_parent
    Y = ltl.solve_lt(L, lam, J.T, unit=True).reshape(J.T.shape)
    return J, Y, L.diagonal()[:, None]


def _gram_ltdl(Y, D, message):
    """LTDL factors of ``Yᵀ D⁻¹ Y`` by orthogonalising columns, without forming the product.

    A pivot is the square of what the later columns leave of a column. When they leave nothing,
    rounding makes it the *square* of the machine precision, far below the threshold of
    ``check_pivot``; a pivot of the matrix itself would hide in the noise.
    """
    n = Y.shape[1]
    y = [Y[:, k] for k in range(n)]
    L = np.zeros((n, n), dtype=Y.dtype)
    for k in reversed(range(n)):
        w = y[k] / D[:, 0]
        L[k, k] = check_pivot(y[k] @ w, Y[:, k] @ (Y[:, k] / D[:, 0]), lambda k=k: message(k))
        for i in range(k):
            L[k, i] = (y[i] @ w) / L[k, k]
            y[i] = y[i] - L[k, i] * y[k]
    return L


def _not_free(model, J, frames):
    """Error message about handles that cannot move in all directions."""
    names = ", ".join(repr(handle.name) for handle in _handles(model, frames))
    rank = np.linalg.matrix_rank(np.array(J, dtype=complex))
    return (
        f"the operational-space inertia of {names} does not exist in this configuration of model "
        f"{model.name!r}: its Jacobian has {len(J)} rows but rank {rank}, so some accelerations "
        f"are impossible. Keep fewer coordinates (rows=...), move away from the singularity, or "
        f"use projection.inverse_inertia, which always exists"
    )
