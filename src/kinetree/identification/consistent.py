"""Physically consistent inertias that fit the data best, by an interior-point method.

Bodies are possible where their pseudo-inertias are positive definite, a convex set, and the data
are linear in them: the best fit among the possible ones is a convex problem (Sousa & Cortesão,
IJRR 2014). It is written in units of the given inertias: ``P = L X Lᵀ`` with ``P₀ = L Lᵀ``, so
that ``‖X - 1‖`` is a distance from them that depends neither on units nor on frames (Lee, Wensing &
Park, IEEE T-RO 2020). A barrier ``-mu log det X`` keeps ``X`` inside while ``mu`` goes to zero.
Friction and rotor inertias, which cannot be negative either, are matrices of size one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ModelError
from kinetree.identification.base import inertial_parameters
from kinetree.model import Model
from kinetree.spatial import Inertia
from kinetree.spatial.pseudo_inertia import from_pseudo_inertia, pseudo_inertia


@dataclass(frozen=True)
class Possible:
    """Parameters that a real mechanism can have."""

    parameters: np.ndarray
    """Of all bodies, then of the joints, (n,)."""
    spread: np.ndarray
    """``D`` with ``D Dᵀ`` the covariance of their errors, the given model taken for a measurement,
    (n, ...)."""
    model: Model
    """The given model with the inertias found."""


def possible_parameters(model, base, A, b, regularisation):
    """Physically possible parameters ``p`` with ``A p ≈ b`` nearest to the model's."""
    prior = inertial_parameters(model)
    blocks = [_Body(model, i) for i in range(1, model.body_count + 1) if model.inertia[i].mass > 0]
    typical = _typical(A[:, len(prior) :], b - A[:, : len(prior)] @ prior)
    blocks += [_Coefficient(len(prior) + k, size) for k, size in enumerate(typical)]
    T = np.zeros((A.shape[1], sum(block.size for block in blocks)))  # p = T x
    at = 0
    for block in blocks:
        block.at = slice(at, at + block.size)
        T[block.rows, block.at] = block.columns
        at += block.size
    x_0 = np.concatenate([np.zeros(0), *(block.neutral for block in blocks)])
    R, b = triangular(A, b)
    B = np.concatenate([R @ T, regularisation * np.eye(at)])
    right = np.concatenate([b, regularisation * x_0])
    x = _interior_point(B, right, blocks, x_0)

    spread = T @ np.linalg.inv(np.linalg.qr(B, mode="r"))
    p = T @ x
    inertias = {
        model.body_names[block.number]: Inertia.from_parameters(p[block.rows])
        for block in blocks
        if isinstance(block, _Body)
    }
    return Possible(p, spread, model.replace(inertia=inertias))


def _interior_point(B, right, blocks, x):
    """Minimum of ``½ ‖B x - right‖²`` over ``x`` with positive definite blocks: interior point.

    Newton's steps on ``½ ‖B x - right‖² - mu log det X`` are least squares too: the Hessian of the
    barrier is ``mu CᵀC`` and its gradient ``-mu Cᵀe``.
    """
    degree = max(sum(block.degree for block in blocks), 1)
    mu = max(np.sum((B @ x - right) ** 2) / degree, 1.0)
    while True:
        for _ in range(50):
            rows, e = _barriers(blocks, x)
            A = np.concatenate([B, np.sqrt(mu) * rows])
            step = _solution(A, np.concatenate([right - B @ x, np.sqrt(mu) * e]))
            decrement = np.sum((A @ step) ** 2)
            if decrement <= 1e-2 * mu:
                break
            x = _move(x, step, decrement, B, right, mu, blocks)
        if mu * degree <= _GAP:
            return x
        mu = max(mu / 30, 0.5 * _GAP / degree)


_GAP = 1e-9  # how far from the best fit to stop, in squared standard deviations of a measurement


def _solution(A, b):
    """Least-squares solution with columns scaled to equal length."""
    scale = np.linalg.norm(A, axis=0)
    R, b = triangular(A / scale, b)
    return np.linalg.solve(R, b) / scale


def triangular(A, b):
    """Triangular factor ``R`` and ``Qᵀ b`` of a QR factorisation, without ``Q``."""
    n = A.shape[1]
    both: Any = np.linalg.qr(np.column_stack([A, b]), mode="r")[: min(A.shape)]
    return both[:, :n], both[:, n]


def _barriers(blocks, x):
    """Rows and right-hand side of all log-barrier terms."""
    rows, right = np.zeros((sum(block.square for block in blocks), len(x))), []
    at = 0
    for block in blocks:
        C, e = block.barrier(x[block.at])
        rows[at : at + block.square, block.at] = C
        right.append(e)
        at += block.square
    return rows, np.concatenate([np.zeros(0), *right])


def _move(x, step, decrement, B, right, mu, blocks):
    """Iterate after the largest part of a step that stays feasible and decreases enough."""

    def value(x):
        inside = sum(block.log_det(x[block.at]) for block in blocks)
        return np.sum((B @ x - right) ** 2) / 2 - mu * inside

    start, length = value(x), 1.0
    while not value(x + length * step) <= start - 0.1 * length * decrement and length > 1e-10:
        length /= 2
    return x + length * step


class _Body:
    """The pseudo-inertia of one body in units of the given one: ten entries of ``X``."""

    size, degree, square = 10, 4, 16
    at = slice(0, 0)

    def __init__(self, model, i):
        self.number, self.rows = i, slice(10 * (i - 1), 10 * i)
        try:
            L = np.linalg.cholesky(np.asarray(pseudo_inertia(model.inertia[i]), dtype=float))
        except np.linalg.LinAlgError:
            raise ModelError(
                f"consistent=True starts from the inertias of the model, and that of body "
                f"{model.body_names[i]!r} is at the edge of what is possible, such as a point mass "
                f"or a thin rod; give it some extent in all directions"
            ) from None
        forms = [L @ unit @ L.T for unit in _UNITS]
        self.columns = np.array([from_pseudo_inertia(P).parameters() for P in forms]).T
        self.neutral = np.einsum("kij,ij->k", _UNITS, np.eye(4))

    def log_det(self, x):
        """Log determinant of a body's pseudo-inertia; -inf if it is not positive."""
        values = np.linalg.eigvalsh(np.einsum("k,kij->ij", x, _UNITS))
        return np.sum(np.log(values)) if values[0] > 0 else -np.inf

    def barrier(self, x):
        """Barrier terms ``C``, ``e``: Hessian ``CᵀC``, gradient ``-Cᵀe`` of ``-log det X``."""
        M = np.linalg.inv(np.linalg.cholesky(np.einsum("k,kij->ij", x, _UNITS)))
        return (M @ _UNITS @ M.T).reshape(10, 16).T, np.eye(4).ravel()


class _Coefficient:
    """One number that must be positive, in units of a typical value."""

    size, degree, square = 1, 1, 1
    at = slice(0, 0)
    neutral = np.ones(1)

    def __init__(self, row, typical):
        self.rows, self.columns = slice(row, row + 1), np.array([[typical]])

    def log_det(self, x):
        """Logarithm of the coefficient; -inf if it is not positive."""
        return np.log(x[0]) if x[0] > 0 else -np.inf

    def barrier(self, x):
        """Barrier terms ``C``, ``e`` of ``-log x``."""
        return 1 / x[:, None], np.ones(1)


def _unit_matrices():
    """Orthonormal basis of the symmetric 4×4 matrices."""
    units = []
    for i in range(4):
        for j in range(i + 1):
            E = np.zeros((4, 4))
            E[i, j] = E[j, i] = 1 if i == j else np.sqrt(0.5)
            units.append(E)
    return np.array(units)


_UNITS = _unit_matrices()


def _typical(A, b):
    """Typical friction and rotor inertias, from a fit with the model's inertias."""
    if A.shape[1] == 0:
        return np.zeros(0)
    fit = np.abs(np.linalg.lstsq(A, b, rcond=None)[0])
    return np.maximum(fit, 1e-3 * max(np.max(fit), 1e-9))
