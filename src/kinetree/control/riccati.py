"""Algebraic Riccati and Lyapunov equations by doubling; numbers only, over any batch axes.

The structure-preserving doubling algorithm squares a system again and again until its initial state
no longer counts; it needs no eigenvectors and keeps all matrices symmetric that should be. A
continuous equation becomes a discrete one through a Cayley transform (E. K.-W. Chu, H.-Y. Fan and
W.-W. Lin, "A structure-preserving doubling algorithm for continuous-time algebraic Riccati
equations", 2005). Newton's steps (D. L. Kleinman, 1968) then remove what rounding errors it left.
"""

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import SingularError

_DOUBLINGS = 60  # enough for modes that decay over 2^60 samples
_REFINEMENTS = 3
_TOO_LARGE = 1e100  # what grows so far grows without bound


@on_host
def discrete_riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike) -> Array:
    """The stabilising solution of ``P = Aᵀ P A - Aᵀ P B (R + Bᵀ P B)⁻¹ Bᵀ P A + Q``."""
    P = _doubled(A, B @ np.linalg.solve(R, _T(B)), Q)
    for _ in range(_REFINEMENTS):
        closed = A - B @ discrete_gain(A, B, R, P)
        residual = _T(A) @ P @ closed - P + Q
        P = P + discrete_lyapunov(closed, _symmetric(residual))
    return P


def discrete_gain(A, B, R, P):
    """``K`` of the feedback ``u = -K x`` that belongs to a solution of the discrete equation."""
    return np.linalg.solve(R + _T(B) @ P @ B, _T(B) @ P @ A)


@on_host
def continuous_riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike) -> Array:
    """The stabilising solution of ``Aᵀ P + P A - P B R⁻¹ Bᵀ P + Q = 0``."""
    G = B @ np.linalg.solve(R, _T(B))
    P = _doubled(*_cayley(A, G, Q))
    for _ in range(_REFINEMENTS):
        residual = _T(A) @ P + P @ A - P @ G @ P + Q
        P = P + continuous_lyapunov(A - G @ P, _symmetric(residual))
    return P


def continuous_gain(B, R, P):
    """``K`` of the feedback ``u = -K x`` that belongs to a solution of the continuous equation."""
    return np.linalg.solve(R, _T(B) @ P)


@on_host
def discrete_lyapunov(A: ArrayLike, Q: ArrayLike) -> Array:
    """The solution of ``P = Aᵀ P A + Q`` for a stable ``A``."""
    return _doubled(A, np.zeros_like(A), Q)


@on_host
def continuous_lyapunov(A: ArrayLike, Q: ArrayLike) -> Array:
    """The solution of ``Aᵀ P + P A + Q = 0`` for a stable ``A``."""
    return _doubled(*_cayley(A, np.zeros_like(A), Q))


def _cayley(A, G, H):
    """A discrete system with the same solution, for a shift beyond all eigenvalues of ``A``."""
    eye = np.eye(A.shape[-1])
    largest = np.max(np.sum(np.abs(A), axis=-1), axis=-1)
    coupling = np.linalg.norm(G, axis=(-2, -1)) * np.linalg.norm(H, axis=(-2, -1))
    shift = np.maximum(1.1 * (largest + coupling**0.25), 1e-3)[..., None, None]
    A_g = A - shift * eye
    W = _T(A_g) + H @ np.linalg.solve(A_g, G)
    return (
        eye + 2 * shift * _T(np.linalg.inv(W)),
        _symmetric(2 * shift * np.linalg.solve(A_g, G @ np.linalg.inv(W))),
        _symmetric(2 * shift * np.linalg.solve(W, H @ np.linalg.inv(A_g))),
    )


def _doubled(A, G, H):
    """The limit of ``H`` when the system is doubled; raises if there is none."""
    eye = np.eye(A.shape[-1])
    with np.errstate(all="ignore"):
        for _ in range(_DOUBLINGS):
            try:
                W = np.linalg.inv(eye + G @ H)
            except np.linalg.LinAlgError:
                break
            more = _symmetric(_T(A) @ H @ W @ A)
            A, G, H = A @ W @ A, G + _symmetric(A @ W @ G @ _T(A)), H + more
            size = _size(H)
            if not np.all(size < _TOO_LARGE):
                break
            if np.all(_size(more) <= 1e-17 * size):
                return H
    raise SingularError(
        "the Riccati equation has no stabilising solution: some motion that does not die out is "
        "out of reach of the inputs, or costs nothing"
    )


def _size(X):
    return np.linalg.norm(X, axis=(-2, -1))


def _symmetric(X):
    return (X + _T(X)) / 2


def _T(X):
    return np.swapaxes(X, -1, -2)
