"""Couplings as constraints among all joints: an equation for each follower — RBDA §3.2.

A joint that follows others by ``q_f = p(q_1, q_2, ...)`` satisfies

    K qdd = k        K = e_f - Σ ∂p/∂q_i e_i        k = Σ ∂²p/∂q_i∂q_j qd_i qd_j

Methods that take all joints as they are use these rows; others have no variable for a follower,
see ``coupled``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.model.gearing import Gearing

__all__ = ["AllJoints", "CouplingRows", "all_joints", "coupling_rows"]


class CouplingRows(NamedTuple):
    """``K qdd = k``, one row for each coupling."""

    K: np.ndarray
    """Constraint matrix, (n_c, nv) of all joints."""
    k: np.ndarray
    """Right-hand side, (n_c,)."""


class AllJoints(NamedTuple):
    """The state of all joints of a model, and the forces on those that follow nothing."""

    model: Any
    """The model without its couplings."""
    q: Any
    qd: Any
    tau: Any
    """Joint forces; followers have none, as ``tau_y = Gᵀ tau`` leaves a choice."""
    rows: CouplingRows
    """The couplings that are left out of the model."""


def all_joints(model, q, qd, tau) -> AllJoints:
    """A model, with or without couplings, as one without and rows that stand for them."""
    if not model.couplings:
        none = CouplingRows(np.zeros((0, model.nv)), np.zeros(0))
        return AllJoints(model, q, qd, tau, none)
    at = Gearing(model, q, qd)
    forces = np.zeros(model.uncoupled.nv, np.asarray(tau).dtype)
    forces[model.independent_variables[1]] = tau
    return AllJoints(model.uncoupled, at.q, at.qd, forces, coupling_rows(model, at.q, at.qd))


def coupling_rows(model, q, qd) -> CouplingRows:
    """The couplings of a model as equations.

    Args:
        model: the mechanism.
        q: positions of all joints, (nq,) of ``model.uncoupled``.
        qd: velocities of all joints, (nv,) of ``model.uncoupled``.
    """
    full, n = model.uncoupled, len(model.couplings)
    dtype = model.scalar_type(q, qd)
    K, k = np.zeros((n, full.nv), dtype), np.zeros(n, dtype)
    for row, c in enumerate(model.couplings):
        leaders = [full.v_slice[i].start for i in c.leaders]
        first, second = c.derivatives([q[full.q_slice[i].start] for i in c.leaders])
        K[row, full.v_slice[c.joint].start] = 1
        for i, s in enumerate(leaders):
            K[row, s] = -first[i]
            for j, t in enumerate(leaders):
                k[row] = k[row] + second[i][j] * qd[s] * qd[t]
    return CouplingRows(K, k)
