"""Algebraic Riccati and Lyapunov equations; numbers only, over any batch axes.

A stabilising solution belongs to the stable invariant subspace of a Hamiltonian matrix, that of a
discrete equation after a Cayley transform. Eigenvectors span it. Units of states and inputs are
changed by powers of two first, so that the matrix is balanced (P. Benner, "Symplectic balancing of
Hamiltonian matrices", 2001). Newton's steps follow (D. L. Kleinman, 1968), whose residuals are
computed in doubled precision: where control is cheap ``P`` consists of large and small parts, and
ordinary residuals have no digits left of the small ones. The last step says how good ``P`` is.

Lyapunov equations, and Riccati equations of which eigenvectors say too little, are solved by
doubling: E. K.-W. Chu, H.-Y. Fan and W.-W. Lin, "A structure-preserving doubling algorithm for
continuous-time algebraic Riccati equations" (2005).
"""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.batch import batch_shape
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.twofold import Twofold
from kinetree.errors import ShapeError, SingularError

_DOUBLINGS = 60  # enough for modes that decay over 2^60 samples
_TOO_LARGE = 1e100  # what grows so far grows without bound
_SWEEPS = 20  # of balancing
_STEPS = 60  # of Newton, which halve the distance at least
_ACCURATE = 1e-9  # size of the last of Newton's steps, relative to P
_MARGINAL = (
    1e-9  # growth of a motion, and how close to singular matrices are, relative to their size
)
_EXACT = 1e-22  # likewise, beyond which no step is worthwhile


class RiccatiSolution(NamedTuple):
    """The stabilising solution ``P`` and its gain ``K``, in ordinary numbers."""

    P: np.ndarray
    K: np.ndarray


@on_host
def continuous_riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike) -> Array:
    """Stabilising solution of the Riccati equation ``Aᵀ P + P A - P B R⁻¹ Bᵀ P + Q = 0``."""
    return solve(A, B, Q, R, discrete=False).P


@on_host
def discrete_riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike) -> Array:
    """Stabilising solution of ``P = Aᵀ P A - Aᵀ P B (R + Bᵀ P B)⁻¹ Bᵀ P A + Q``."""
    return solve(A, B, Q, R, discrete=True).P


@on_host
def discrete_lyapunov(A: ArrayLike, Q: ArrayLike) -> Array:
    """Solution of the Lyapunov equation ``P = Aᵀ P A + Q`` for a stable ``A``."""
    A, Q = _matrices(A=A, Q=Q)
    return _double(A, np.zeros_like(A), Q)


@on_host
def continuous_lyapunov(A: ArrayLike, Q: ArrayLike) -> Array:
    """Solution of the Lyapunov equation ``Aᵀ P + P A + Q = 0`` for a stable ``A``."""
    A, Q = _matrices(A=A, Q=Q)
    return _double(*_cayley(A, np.zeros_like(A), Q))


def solve(A, B, Q, R, *, discrete) -> RiccatiSolution:
    """Stabilising solution of a Riccati equation and its feedback gain.

    Raises:
        SingularError: there is none, or none that Newton's steps confirm.
    """
    A, B, Q, R = _matrices(A=A, B=B, Q=Q, R=R)
    d, e = _balance(A, B, Q, R)
    row, column = d[..., :, None], d[..., None, :]
    A, B, Q = A / row * column, B / row / e[..., None, :], Q * row * column
    R = R / e[..., :, None] / e[..., None, :]
    try:
        P, K = _refine((A, B, Q, R), _start(A, B, Q, R, discrete), discrete)
    except SingularError:
        raise SingularError(_why_not(A, B, Q, discrete)) from None
    if np.any(growth(A - B @ K, discrete) >= 0):
        raise SingularError(
            "the feedback of least cost does not stabilise the system: a motion that does not die "
            "out by itself costs nothing. Give every position or velocity a cost in Q"
        )
    return RiccatiSolution(P / row / column, K / e[..., :, None] / column)


def growth(A, discrete) -> np.ndarray:
    """Stability margin: largest real part of poles, or magnitude less 1; negative if stable."""
    poles = np.linalg.eigvals(A)
    return np.max(np.abs(poles) - 1 if discrete else poles.real, axis=-1)


def _matrices(**given):
    """Matrices as float arrays with common batch axes."""
    arrays = {name: np.asarray(x, dtype=float) for name, x in given.items()}
    n, k = arrays["A"].shape[-1:], arrays.get("B", np.zeros((0, 0))).shape[-1:]
    shapes = {"A": 2 * n, "B": n + k, "Q": 2 * n, "R": 2 * k}
    for name, x in arrays.items():
        if x.ndim < 2 or x.shape[-2:] != shapes[name]:
            rows, columns = shapes[name] if len(shapes[name]) == 2 else ("n", "n")
            raise ShapeError(f"{name} must have shape (..., {rows}, {columns}), got {x.shape}")
        if not np.all(np.isfinite(x)):
            raise ShapeError(f"{name} must be finite")
    batch = batch_shape(arrays, [2] * len(arrays))
    return tuple(np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in arrays.values())


def _balance(A, B, Q, R):
    """Scales of states and inputs, powers of two, that balance the Hamiltonian matrix."""
    inputs = np.exp2(np.round(np.log2(np.diagonal(R, axis1=-2, axis2=-1)) / 2))
    B = B / inputs[..., None, :]
    R = R / inputs[..., :, None] / inputs[..., None, :]
    G = np.abs(B @ np.linalg.solve(R, _T(B)))
    A, Q, n = np.abs(A), np.abs(Q), A.shape[-1]
    states = np.ones(A.shape[:-1])
    off = 1 - np.eye(n)
    for _ in range(_SWEEPS):
        before = states.copy()
        for i in range(n):
            scale = states / states[..., i, None]  # of the others, in units of this one
            up = (A[..., :, i] / states) @ off[i] * states[..., i]
            up += np.sum(Q[..., i, :] * states, axis=-1) * states[..., i]
            down = np.sum(A[..., i, :] * scale * off[i], axis=-1)
            down += np.sum(G[..., i, :] / states, axis=-1) / states[..., i]
            both = (up > 0) & (down > 0)
            ratio = np.where(both, down, 1.0) / np.where(both, up, 1.0)
            states[..., i] *= np.exp2(np.round(np.log2(ratio) / 2))
        if np.array_equal(before, states):
            break
    return states, inputs


def _start(A, B, Q, R, discrete):
    """Approximate stabilising solution by eigenvectors, or by other methods where they fail."""
    P, fails = _by_eigenvectors(A, B, Q, R, discrete)
    for sample in map(tuple, np.argwhere(fails)):
        P[sample] = _from_dear_control(A[sample], B[sample], Q[sample], R[sample], discrete)
    return P


def _by_eigenvectors(A, B, Q, R, discrete):
    """Riccati solutions by eigenvectors, and a mask of the systems where they do not stabilise."""
    G, n = B @ np.linalg.solve(R, _T(B)), A.shape[-1]
    with np.errstate(all="ignore"):
        if discrete:
            eye, none = np.broadcast_to(np.eye(n), A.shape), np.zeros_like(A)
            M, L = _blocks(A, none, -Q, eye), _blocks(eye, G, none, _T(A))
            H = _solution(M + L, M - L)
        else:
            H = _blocks(A, -G, -Q, -_T(A))
        P = _from_subspace(H)
        closed = A - B @ gain(A, B, R, P, discrete=discrete)
    lost = ~np.all(np.isfinite(closed), axis=(-2, -1))
    unstable = growth(np.where(lost[..., None, None], 0.0, closed), discrete) >= 0
    return P, lost | unstable


def _from_dear_control(A, B, Q, R, discrete):
    """Riccati solution by continuation from a larger cost of inputs.

    Eigenvalues of cheap control differ so much in size that the small ones are lost.
    """
    for ease in 1e2 ** np.arange(1, 14):
        P, fails = _by_eigenvectors(A, B, Q, ease * R, discrete)
        if not fails:
            break
    else:
        system = A, B @ np.linalg.solve(R, B.T), Q
        return _double(*(system if discrete else _cayley(*system)))
    while ease > 1:
        ease /= 1e2
        P, _ = _refine((A, B, Q, max(ease, 1.0) * R), P, discrete)
    return P


def _from_subspace(H):
    """Riccati solution ``P`` from the stable invariant subspace of the Hamiltonian matrix."""
    n = H.shape[-1] // 2
    usable = np.all(np.isfinite(H), axis=(-2, -1), keepdims=True)
    values, vectors = np.linalg.eig(np.where(usable, H, np.eye(2 * n)))
    order = np.argsort(np.real(values), axis=-1)[..., None, :n]
    basis = np.linalg.qr(np.take_along_axis(vectors, order, axis=-1))[0]
    P = np.real(_T(_solution(_T(basis[..., :n, :]), _T(basis[..., n:, :]))))
    return np.where(usable, _symmetric(P), np.nan)


def _blocks(a, b, c, d):
    """Matrix of four blocks."""
    return np.concatenate([np.concatenate([a, b], -1), np.concatenate([c, d], -1)], -2)


def _solution(A, b):
    """Solution ``A⁻¹ b``; NaN where ``A`` is singular."""
    try:
        return np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        if A.ndim == 2:
            return np.full_like(b, np.nan)
        return np.stack([_solution(*one) for one in zip(A, b, strict=True)])


def gain(A, B, R, P, *, discrete) -> np.ndarray:
    """Feedback gain ``K`` of ``u = -K x`` for a Riccati solution."""
    if discrete:
        return _solution(R + _T(B) @ P @ B, _T(B) @ P @ A)
    return _solution(R, _T(B) @ P)


def _refine(system, P, discrete):
    """Riccati solution and gain after Newton steps, while these reduce the residual."""
    A, B, Q, R = (Twofold.of(x) for x in system)
    P, last = Twofold.of(P), np.full(P.shape[:-2], np.inf)
    for _ in range(_STEPS):
        K, residual = _residual(A, B, Q, R, P, discrete)
        closed = A.high - B.high @ K.high
        none = np.zeros_like(closed)
        system = (closed, none, residual) if discrete else _cayley(closed, none, residual)
        step = _double(*system)
        P = P.plus(Twofold.of(step))
        size = _size(step) / np.maximum(_size(P.high), np.finfo(float).tiny)
        done = (size <= _EXACT) | ((size <= _ACCURATE) & (size > 0.1 * last))
        last = size
        if np.all(done):
            K, _ = _residual(A, B, Q, R, P, discrete)
            return P.high, K.high
    raise SingularError("Newton's steps do not end")


def _why_not(A, B, Q, discrete):
    """Reason why no Riccati solution exists, by the Popov-Belevitch-Hautus test, as text."""
    none, n = "the Riccati equation has no stabilising solution", A.shape[-1]
    for a, b, q in zip(*(x.reshape(-1, *x.shape[-2:]) for x in (A, B, Q)), strict=True):
        for pole in np.linalg.eigvals(a):
            growing = abs(pole) - 1 if discrete else pole.real
            beside = a - pole * np.eye(n)
            if growing >= -_MARGINAL and _is_singular(np.hstack([beside, b])):
                return f"{none}: the inputs cannot change the motion with eigenvalue {pole:.4g}"
            if abs(growing) <= _MARGINAL and _is_singular(np.vstack([beside, q])):
                return f"{none}: the motion with eigenvalue {pole:.4g} costs nothing"
    return (
        "no stabilising solution of the Riccati equation was found: motions or costs differ so "
        "much in size that rounding errors hide the smaller ones. Change the ratio of Q to R, or "
        "the units of the states"
    )


def _is_singular(M):
    """Whether the smallest singular value of a matrix is negligible beside the largest."""
    s = np.linalg.svd(M, compute_uv=False)
    return s[-1] <= _MARGINAL * s[0]


def _residual(A, B, Q, R, P, discrete):
    """Gain, and residual of the Riccati equation for ``P``, in doubled precision."""
    BP = B.T.times(P)
    right, W = (BP.times(A), R.plus(BP.times(B))) if discrete else (BP, R)
    K = Twofold.of(np.linalg.solve(W.high, right.high))
    for _ in range(2):
        K = K.plus(Twofold.of(np.linalg.solve(W.high, right.minus(W.times(K)).high)))
    back = A.T.times(P)
    left = back.times(A).minus(P) if discrete else back.plus(back.T)
    wrong = left.plus(Q).minus(K.T.times(W).times(K))
    return K, _symmetric(wrong.high)


# --- Doubling: a system is squared until its initial state no longer counts -----------------------


def _cayley(A, G, H):
    """Discrete system with the same Riccati solution, by a Cayley transform."""
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


def _double(A, G, H):
    """Riccati solution by the structure-preserving doubling algorithm; an error if it diverges."""
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
    raise SingularError("the equation has no solution: A has motions that do not die out")


def _size(X):
    """Frobenius norms of matrices (..., n, n)."""
    return np.linalg.norm(X, axis=(-2, -1))


def _symmetric(X):
    """Symmetric part of a matrix."""
    return (X + _T(X)) / 2


def _T(X):
    """Transpose of the last two axes."""
    return np.swapaxes(X, -1, -2)
