"""Joining articulated bodies that have several handles — RBDA §7.5, (7.57)–(7.63).

A handle is a place on a body where joints can still be attached. ``A12`` has a set of handles 1
that it keeps and a set 2 that joints are about to connect to set 3 of ``A34``, which keeps set 4.
Inverse inertias, because handles of one body do not move independently. All in one coordinate
system, forces of actuators already in the bias accelerations: ``T_a tau`` on set 3, ``-T_a tau``
on set 2. Cannot be traced: the rank of ``Y`` is decided by its eigenvalues.
"""

from typing import NamedTuple

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["HandleSets", "Joined", "as_handle_sets", "generalised_inverse", "join", "pushing"]

RANK_TOLERANCE = 1e-10
"""Eigenvalue of ``Y``, scaled to unit diagonal, below which a constraint counts as repeated."""


class HandleSets(NamedTuple):
    """``(a_k, a_c) = [[Phi_k, Phi_kc], [Phi_kcᵀ, Phi_c]] (f_k, f_c) + (b_k, b_c)`` — RBDA (7.57).

    Set k is kept, set c about to be connected; each has any number of handles, none included.
    """

    Phi_k: np.ndarray
    Phi_kc: np.ndarray
    Phi_c: np.ndarray
    b_k: np.ndarray
    b_c: np.ndarray


class Joined(NamedTuple):
    """The body that results, with what is needed to take it apart again."""

    Phi: np.ndarray
    """Inverse inertia of sets 1 and 4, stacked — RBDA (7.59)."""
    b: np.ndarray
    """Bias acceleration of sets 1 and 4, stacked."""
    gain: np.ndarray
    """``lambda = gain (f_1, f_4) + offset``, the constraint forces — RBDA (7.62)."""
    offset: np.ndarray
    rank: int
    """Number of independent constraints among those of the joints."""
    redundancy: int
    """Number of constraints that repeat others; ``lambda`` is then one of many."""
    contradiction: float
    """Size of the accelerations that repeated constraints demand and cannot have; zero when the
    positions and velocities obey the constraints."""

    def constraint_forces(self, f):
        """``lambda`` when the forces ``f = (f_1, f_4)`` act on the handles that are left."""
        return self.gain @ f + self.offset


def as_handle_sets(Phi, b, kept, connected):
    """Split the response ``a = Phi f + b`` of all handles into two sets, by handle number."""
    if sorted([*kept, *connected]) != list(range(len(b) // 6)):
        raise ShapeError(
            f"handles {list(kept)} and {list(connected)} must be 0 ... {len(b) // 6 - 1}, each in "
            f"one of the two sets"
        )
    k, c = _indices(kept), _indices(connected)
    return HandleSets(Phi[np.ix_(k, k)], Phi[np.ix_(k, c)], Phi[np.ix_(c, c)], b[k], b[c])


def join(A12, A34, T, c, stabilization=None):
    """Connect set 2 of ``A12`` to set 3 of ``A34``, handle by handle — RBDA (7.59)–(7.63).

    Args:
        A12: predecessor side, set 1 kept and set 2 connected.
        A34: successor side, set 4 kept and set 3 connected.
        T: constraint forces of the joints, block diagonal, (6 h, n_c).
        c: velocity-product accelerations of the joints, stacked, (6 h,).
        stabilization: what to add to ``Tᵀ (a_3 - a_2)`` against drift, (n_c,) — RBDA §8.3.
    """
    Phi_1, Phi_12, Phi_2, b_1, b_2 = A12
    Phi_4, Phi_43, Phi_3, b_4, b_3 = A34
    if not len(b_2) == len(b_3) == len(T) == len(c):
        raise ShapeError(
            f"sets 2 and 3 need as many handles as there are joints: got {len(b_2) // 6} and "
            f"{len(b_3) // 6} handles for {len(T) // 6} joints"
        )
    Y = T.T @ (Phi_2 + Phi_3) @ T
    Y_inv, rank = generalised_inverse(Y, pushes=pushing(T))
    W = T @ Y_inv @ T.T
    beta = c - b_3 + b_2
    k = T.T @ beta if stabilization is None else T.T @ beta + stabilization

    Phi_14 = Phi_12 @ W @ Phi_43.T
    Phi = np.block(
        [[Phi_1 - Phi_12 @ W @ Phi_12.T, Phi_14], [Phi_14.T, Phi_4 - Phi_43 @ W @ Phi_43.T]]
    )
    offset = Y_inv @ k
    f_c = T @ offset
    b = np.concatenate([b_1 - Phi_12 @ f_c, b_4 + Phi_43 @ f_c])
    gain = Y_inv @ T.T @ np.hstack([Phi_12.T, -Phi_43.T])
    contradiction = float(np.linalg.norm(k - Y @ offset))
    return Joined(Phi, b, gain, offset, rank, len(Y) - rank, contradiction)


def pushing(T):
    """Which columns of ``T``, (6 h, n_c), have a force; the others are moments alone."""
    return np.any(T.reshape(len(T) // 6, 6, T.shape[1])[:, 3:], axis=(0, 1))


def generalised_inverse(Y, size=None, pushes=None):
    """A symmetric generalised inverse of ``Y ≥ 0``, and its rank.

    Rows have mixed units (a moment, a force), so ``Y`` is scaled to unit diagonal first. Which
    generalised inverse it is makes no difference to any acceleration.

    Args:
        Y: what the constraints of some joints feel.
        size: the diagonal that rounding errors are relative to; that of ``Y`` by default. It is
            larger, where ``Y`` is a difference.
        pushes: which rows are those of forces; all others are moments, and the two are not
            compared with each other. None to compare all.
    """
    diagonal = np.diagonal(Y) if size is None else size
    pushes = np.zeros(len(Y), dtype=bool) if pushes is None else pushes
    floor = np.zeros(len(Y))
    for kind in (pushes, ~pushes):
        floor[kind] = RANK_TOLERANCE * np.max(diagonal[kind], initial=0.0)
    scale = 1 / np.sqrt(np.where(diagonal > floor, diagonal, np.inf))
    values, vectors = np.linalg.eigh(scale[:, None] * Y * scale)
    good = values > RANK_TOLERANCE
    V = scale[:, None] * vectors[:, good]
    return (V / values[good]) @ V.T, int(np.count_nonzero(good))


def _indices(handles):
    return [6 * h + n for h in handles for n in range(6)]
