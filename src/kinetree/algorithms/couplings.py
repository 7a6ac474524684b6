"""Couplings as constraints on joint variables: gears, mimic joints, belts — RBDA §3.2.

A joint that follows another by ``q_f = p(q_s)`` satisfies, in one form or the other of (3.11),

    implicit:   φ = q_f - p(q_s)    K = e_f - p' e_s        k = p'' qd_s²
    explicit:   q = γ(y)            qd = G yd               qdd = G ydd + g

where ``y`` are the variables that follow nothing. A joint that is held follows a constant.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["CouplingMap", "CouplingRows", "coupling_map", "coupling_rows"]


class CouplingRows(NamedTuple):
    """``K qdd = k``, one row for each coupling."""

    K: np.ndarray
    """Constraint matrix, (n_c, nv)."""
    k: np.ndarray
    """Right-hand side, (n_c,)."""
    error: np.ndarray
    """``φ``, how far each follower is from where it belongs [m or rad], (n_c,)."""


class CouplingMap(NamedTuple):
    """``qd = G yd``, ``qdd = G ydd + g``."""

    G: np.ndarray
    """From independent to all velocities, (nv, ny)."""
    g: np.ndarray
    """What velocities cause, (nv,)."""
    independent: tuple
    """Numbers of the velocity variables that are ``yd``."""


def coupling_rows(model, q, qd) -> CouplingRows:
    """The couplings of a model as equations."""
    n, dtype = len(model.couplings), model.scalar_type(q, qd)
    K, k, error = np.zeros((n, model.nv), dtype), np.zeros(n, dtype), np.zeros(n, dtype)
    for row, c in enumerate(model.couplings):
        f, s = (model.v_slice[i].start for i in (c.joint, c.source))
        p, dp, ddp = _polynomial(c.coefficients, _leader(model, q, c))
        K[row, f], error[row] = 1, q[model.q_slice[c.joint]][0] - p
        if c.source:
            K[row, s], k[row] = -dp, ddp * qd[s] * qd[s]
    return CouplingRows(K, k, error)


def coupling_map(model, q, qd) -> CouplingMap:
    """The couplings of a model solved for the followers.

    The equation of motion of the coupled mechanism is ``GᵀHG ydd + Gᵀ(C + Hg) = Gᵀtau`` — (3.20).
    """
    followers = {model.v_slice[c.joint].start: c for c in model.couplings}
    independent = tuple(k for k in range(model.nv) if k not in followers)
    dtype = model.scalar_type(q, qd)
    G, g = np.zeros((model.nv, len(independent)), dtype), np.zeros(model.nv, dtype)
    G[list(independent), range(len(independent))] = 1

    def follow(f):
        c = followers.pop(f)
        if c.source:
            s = model.v_slice[c.source].start
            if s in followers:
                follow(s)
            _, dp, ddp = _polynomial(c.coefficients, _leader(model, q, c))
            G[f], g[f] = dp * G[s], dp * g[s] + ddp * qd[s] * qd[s]

    while followers:
        follow(next(iter(followers)))
    return CouplingMap(G, g, independent)


def _leader(model, q, coupling):
    return q[model.q_slice[coupling.source]][0] if coupling.source else 0


def _polynomial(coefficients, x):
    """Value and first two derivatives, by Horner's rule."""
    p = dp = ddp = 0
    for c in reversed(coefficients):
        p, dp, ddp = p * x + c, dp * x + p, ddp * x + 2 * dp
    return p, dp, ddp
