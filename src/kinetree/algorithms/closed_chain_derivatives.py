"""Jacobians of closed chains and their derivatives, by recursion over all links — Spencer 4.4.

``J_i`` has a column for every variable of every joint, virtual ones included, so that the
velocity of link ``i`` is ``J_i v̂`` in its own coordinates. From the root to the tips, with
``v_J = S_i v̂_i``:

    J_i        =  X_i J_P         + [0 … S_i … 0]
    ∂J_i/∂q_j  =  X_i ∂J_P/∂q_j                             j ≠ i
    ∂J_i/∂q_i  = -S_i × X_i J_P
    Jdot_i     =  X_i Jdot_P      - v_J × X_i J_P
    Jddot_i    =  X_i Jddot_P     - 2 v_J × X_i Jdot_P + v_J × v_J × X_i J_P - v_Jdot × X_i J_P

The thesis writes ``S_i × J_i`` for ``S_i × X_i J_P``, which is the same for a joint with one axis;
as they stand the equations hold for any joint with axes fixed in its link. (The dots of ``Jddot``
are misprinted there.) A virtual link ``i`` and the frame ``i'`` on the body that it must meet have
the same velocity, ``Ĝ v̂ = 0`` with ``Ĝ = A J``, where the constant ``A`` takes ``J_i - J_i'``
(A.9).
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed_chain_links import ClosedChain, link_states
from kinetree.spatial import Motion, crm

__all__ = [
    "ClosureDerivatives", "closure_derivatives", "closure_rate_product", "jacobian_derivatives",
    "jacobian_rates", "jacobians",
]  # fmt: skip


class ClosureDerivatives(NamedTuple):
    """``Ĝ v̂ = 0`` and its derivatives; six rows for each loop."""

    G: Any
    """``Ĝ``, (rows, n̂)."""
    dG: Any
    """``∂Ĝ/∂q̂_j`` in entry [:, :, j], (rows, n̂, n̂)."""
    Gdot: Any
    """Time derivative, (rows, n̂)."""
    Gddot: Any
    """Second time derivative, (rows, n̂)."""


def closure_derivatives(model, q, qd, qdd) -> ClosureDerivatives:
    """The closure of all loops to second order, for a motion that keeps them closed."""
    chain = ClosedChain(model)
    X, S, v, vdot, _ = link_states(chain, q, qd, qdd)
    J = jacobians(chain, X, S)
    dJ = jacobian_derivatives(chain, X, S, J)
    Jdot, Jddot = jacobian_rates(chain, X, S, J, v, vdot)

    loops = [_closure(chain, J), _closure(chain, Jdot), _closure(chain, Jddot)]
    slope = np.stack([_closure(chain, dJ_j) for dJ_j in dJ], axis=-1)
    return ClosureDerivatives(loops[0], slope, *loops[1:])


# --- Jacobians of all links ----------------------------------------------------------------------


def jacobians(chain, X, S):
    """``J_i`` of every link, motion columns in its coordinates — Spencer 4.4.1."""
    J = [_still(chain)] * len(chain.parent)
    for i in chain.links:
        J[i] = _plus_columns(chain, X[i] @ J[chain.parent[i]], i, S[i])
    return J


def jacobian_derivatives(chain, X, S, J):
    """``∂J_i/∂q̂_j``: for every variable ``j`` a list over the links — Spencer 4.4.1."""
    derivatives = []
    for k in chain.links:
        beyond = set(chain.subtree_with_virtual(k))
        for column in range(chain.joint[k].nv):
            dJ: list[Any] = [_still(chain)] * len(chain.parent)
            for i in sorted(beyond):
                P = chain.parent[i]
                axis = Motion(S[i].angular[:, column], S[i].linear[:, column]) if i == k else None
                dJ[i] = X[i] @ dJ[P] if axis is None else -crm(axis, X[i] @ J[P])
            derivatives.append(dJ)
    return derivatives


def jacobian_rates(chain, X, S, J, v, vdot):
    """``Jdot_i`` and ``Jddot_i`` of every link — Spencer 4.4.1."""
    Jdot, Jddot = [_still(chain)] * len(chain.parent), [_still(chain)] * len(chain.parent)
    for i in chain.links:
        P, at = chain.parent[i], chain.v_slice[i]
        v_J, v_Jdot = S[i] @ v[at], S[i] @ vdot[at]
        carried = crm(v_J, X[i] @ J[P])
        XJdot = X[i] @ Jdot[P]
        Jdot[i] = XJdot - carried
        Jddot[i] = (
            X[i] @ Jddot[P] - 2 * crm(v_J, XJdot) + crm(v_J, carried) - crm(v_Jdot, X[i] @ J[P])
        )
    return Jdot, Jddot


def closure_rate_product(model, q, qd):
    """``A Jdot v̂`` without ``Jdot``: velocity products, and no gravity — Spencer A.3.3."""
    chain = ClosedChain(model)
    X, S, v, *_ = link_states(chain, q, qd, model.zero_velocity)
    velocity, product = [Motion.zero()] * len(chain.parent), [Motion.zero()] * len(chain.parent)
    for i in chain.links:
        P, v_J = chain.parent[i], S[i] @ v[chain.v_slice[i]]
        velocity[i] = X[i] @ velocity[P] + v_J
        product[i] = X[i] @ product[P] - crm(v_J, velocity[i])
    return _closure(chain, product)


def _still(chain):
    return Motion(*(np.zeros((3, chain.nv), dtype=int) for _ in range(2)))


def _plus_columns(chain, J, i, S):
    """``J`` with the axes of joint ``i`` in their columns, in which it is zero."""
    at, parts = chain.v_slice[i], []
    for part, axes in ((J.angular, S.angular), (J.linear, S.linear)):
        part = np.array(part, dtype=np.result_type(part, axes))
        part[:, at] = axes
        parts.append(part)
    return Motion(*parts)


# --- the rows of the constraint ------------------------------------------------------------------


def _closure(chain, J):
    """``A J``: what of some motions of the links opens the loops."""
    parts = [np.zeros((0, *np.shape(J[0].angular)[1:]), dtype=int)]
    for i, loop in zip(chain.virtual, chain.model.loops, strict=True):
        parts.append((J[i] - loop.successor_placement @ J[chain.reference[i]]).to_array())
    return np.concatenate(parts)
