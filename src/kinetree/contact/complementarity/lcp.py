"""Linear complementarity problems: ``w = M lam + d``, ``w ≥ 0``, ``lam ≥ 0``, ``w · lam = 0``.

RBDA (11.42): contacts push or part. ``pivoting`` is for the symmetric positive-semidefinite
matrices of frictionless contact, where it always ends with a basic solution or with the proof that
there is none. ``lemke`` takes any matrix, such as that of contacts with polyhedral friction
cones. ``enumerated`` finds all basic solutions of a small problem, by trying.
"""

from itertools import chain, combinations

import numpy as np

from kinetree.contact.complementarity.certificates import Certificate
from kinetree.contact.complementarity.checks import matrix_and_vector
from kinetree.contact.complementarity.lemke import follow
from kinetree.contact.complementarity.quadratic import ForceSolution, in_forces
from kinetree.contact.complementarity.residuals import residuals
from kinetree.contact.complementarity.rows import Rows
from kinetree.errors import ShapeError

__all__ = ["LARGEST_ENUMERATED", "enumerated", "lemke", "pivoting"]

LARGEST_ENUMERATED = 14
"""Rows of the largest problem that ``enumerated`` takes: it tries 2ⁿ bases."""

_TOLERANCE = 1e-9


def pivoting(M, d) -> ForceSolution:
    """A basic solution for a symmetric positive-semidefinite matrix, by principal pivoting.

    Args:
        M: inverse inertia along the contact normals, (n, n).
        d: accelerations along them without contact forces, (n,).
    """
    return in_forces(M, d)


def lemke(M, d) -> ForceSolution:
    """A solution for any matrix, if Lemke's path leads to one.

    It does, or ends with a proof, for positive-semidefinite and other copositive-plus matrices. For
    others it may end with neither: ``solved`` false and no certificate.

    Args:
        M: square matrix, (n, n), symmetric or not.
        d: right side, (n,).
    """
    M, d = matrix_and_vector(M, d, symmetric=False)
    diagonal = np.diagonal(M)
    units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    size = np.max(np.abs(units * d), initial=0.0)
    path = follow(units[:, None] * M * units, units * d / (size if size > 0 else 1.0))
    lam = _basic(M, d, path.basis) if path.ray is None else np.zeros(len(d))
    certificate = None if path.ray is None else _farkas(M, d, units * path.ray)
    return _solution(M, d, lam, path.basis, path.ray is None, certificate, path.pivots)


def enumerated(M, d, tolerance=_TOLERANCE) -> list[ForceSolution]:
    """All basic solutions, those with fewest forces first; by trying all bases.

    Args:
        M: square matrix, (n, n), symmetric or not.
        d: right side, (n,).
        tolerance: what may be missing, in units of the largest terms.
    """
    M, d = matrix_and_vector(M, d, symmetric=False)
    n, found = len(d), []
    if n > LARGEST_ENUMERATED:
        raise ShapeError(
            f"lcp.enumerated tries 2ⁿ bases, and takes n up to {LARGEST_ENUMERATED}, got {n}; "
            f"use lcp.lemke or lcp.pivoting"
        )
    for basis in chain.from_iterable(combinations(range(n), k) for k in range(n + 1)):
        block = M[np.ix_(basis, basis)]
        if basis and np.linalg.cond(block) > 1e11:
            continue
        lam = _basic(M, d, basis)
        terms = np.abs(M) @ np.abs(lam) + np.abs(d)
        small = tolerance * max(1.0, np.max(np.abs(lam), initial=0.0))
        if np.any(lam < -small) or np.any(M @ lam + d < -tolerance * (terms + 1e-300)):
            continue
        if all(np.max(np.abs(lam - other.lam)) > small for other in found):
            found.append(_solution(M, d, np.maximum(lam, 0.0), basis, True, None, 0))
    return found


def _basic(M, d, basis):
    lam, basis = np.zeros(len(d)), list(basis)
    lam[basis] = np.linalg.solve(M[np.ix_(basis, basis)], -d[basis])
    return lam


def _farkas(M, d, y):
    """A proof that ``M lam + d ≥ 0`` has no solution ``lam ≥ 0``: ``Mᵀ y ≤ 0``, ``d · y < 0``."""
    y = y / np.linalg.norm(y)
    motion = float(np.max(np.maximum(M.T @ y, 0.0)) / max(np.max(np.abs(M)), 1e-300))
    closing = float(d @ y / np.max(np.abs(d)))
    proved = motion <= _TOLERANCE and closing < -_TOLERANCE
    return Certificate(y, motion, closing) if proved else None


def _solution(M, d, lam, basis, solved, certificate, pivots):
    bounds = np.zeros(len(d)), np.full(len(d), np.inf)
    found = residuals(Rows(np.zeros(0), *bounds), M, d, lam)
    return ForceSolution(lam, M @ lam + d, solved, tuple(basis), certificate, pivots, found)
