"""Back onto the equations of a phase: gaps that are closed, contacts that stick, loops.

The nearest state in the metric of the inertia matrix: positions first, by Newton's method, then
velocities, by one linear equation. The velocities never gain energy by it. Joints that move as told
stay where they are.
"""

import numpy as np

from kinetree.algorithms.loop_rank import kept_rows
from kinetree.loops.kinematics.constraint import constraint

__all__ = ["closed_positions", "closed_velocities"]

_ROUNDS, _CLOSED = 5, 1e-15
_RANK = 1e-10


def closed_positions(held, q, contacts):
    """Positions in which the gaps of ``contacts``, and all loops, are closed."""
    still = np.zeros(held.model.nv)
    if not len(contacts) and held.tree is held.model:
        return q
    A = held.field.mobility(held.tree, q)
    for _ in range(_ROUNDS):
        gap, J, _ = held.scene.candidate_terms(held.tree, q, still)
        R, error = J[contacts, 0], gap[contacts]
        if held.tree is not held.model:
            c = _counting(held.model, constraint(held.model, q, still))
            R, error = np.concatenate([R, c.K]), np.concatenate([error, c.error])
        if np.max(np.abs(error), initial=0.0) <= _CLOSED:
            break
        q = held.model.integrate(q, -A @ (R.T @ _forces(R, A, error)))
    return q


def closed_velocities(held, q, qd, rows):
    """Velocities that do not move ``rows``, contacts and axes, nor open loops.

    Args:
        held: what moves the mechanism.
        q: joint positions, (nq,).
        qd: joint velocities, (nv,).
        rows: numbers of contacts and of axes, each (m,).
    """
    if not len(rows[0]) and held.tree is held.model:
        return qd
    _, J, _ = held.scene.candidate_terms(held.tree, q, qd)
    R = J[rows[0], rows[1]]
    rate = R @ qd
    if held.tree is not held.model:
        c = _counting(held.model, constraint(held.model, q, qd))
        R, rate = np.concatenate([R, c.K]), np.concatenate([rate, c.rate])
    A = held.field.mobility(held.tree, q)
    for _ in range(2):  # the second removes what rounding left of the first
        qd = qd - A @ (R.T @ _forces(R, A, rate))
        rate = R @ qd
    return qd


def _counting(model, c):
    """The constraints of loops without those that are nearly redundant."""
    rows = kept_rows(model, c.K)
    return c if rows is None else c._replace(K=c.K[rows], error=c.error[rows], rate=c.rate[rows])


def _forces(R, A, error):
    """The smallest ``x`` with ``R A Rᵀ x = error``."""
    W = R @ A @ R.T
    unit = 1 / np.sqrt(np.maximum(np.diagonal(W), 1e-300))
    scaled = unit[:, None] * W * unit
    return unit * np.linalg.lstsq(scaled, unit * error, rcond=_RANK)[0]
