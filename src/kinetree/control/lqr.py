"""The linear-quadratic regulator: the feedback that costs least near an equilibrium."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.equilibria import closed_holding_forces, holding_forces, load_on_freedoms
from kinetree.control.joint_space import configuration_error
from kinetree.control.linearization import linearize
from kinetree.errors import EquilibriumError, ShapeError, SingularError
from kinetree.loops.kinematics.constraint import require_holonomic
from kinetree.loops.linear.coordinates import velocity_columns
from kinetree.loops.linear.velocity_basis import coordinate_changes, coordinate_rates
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.spelling import explains_itself

# --- Algebraic Riccati and Lyapunov equations by doubling; numbers only, over any batch axes -----
# The structure-preserving doubling algorithm squares a system again and again until its initial
# state no longer counts; it needs no eigenvectors and keeps all matrices symmetric that should be.
# A continuous equation becomes a discrete one through a Cayley transform (E. K.-W. Chu, H.-Y. Fan
# and W.-W. Lin, "A structure-preserving doubling algorithm for continuous-time algebraic Riccati
# equations", 2005). Newton's steps (D. L. Kleinman, 1968) then remove what rounding errors it left.

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


class LQRGain(NamedTuple):
    """Feedback ``u = -K x`` and cost ``xᵀ P x`` of the motion that starts at ``x``."""

    K: np.ndarray
    """(..., inputs, states)"""
    P: np.ndarray
    """(..., states, states)"""


@on_host
def lqr_gain(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, *, discrete: bool = False
) -> LQRGain:
    """The feedback with the least ``∫ xᵀ Q x + uᵀ R u dt`` for ``dx/dt = A x + B u``.

    Args:
        A: (..., n, n).
        B: (..., n, k).
        Q: cost of the state, symmetric and not negative: a number, (n,) for a diagonal, or (n, n).
        R: cost of the input, symmetric and positive: a number, (k,) or (k, k).
        discrete: the sum over samples of ``x' = A x + B u`` instead of the integral.

    Returns:
        The gain ``K`` and the matrix ``P`` of the cost.

    Raises:
        SingularError: no feedback stabilises the system, or that of least cost does not.
    """
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    n, k = A.shape[-1], B.shape[-1]
    if A.shape[-2:] != (n, n) or B.shape[-2:] != (n, k):
        raise ShapeError(f"A must be (..., n, n) and B (..., n, k), got {A.shape} and {B.shape}")
    Q, R = _cost(Q, n, "Q"), _cost(R, k, "R")
    if np.linalg.eigvalsh(R)[0] <= 0:
        raise ShapeError("R must have positive eigenvalues: every input costs something")
    try:
        P = discrete_riccati(A, B, Q, R) if discrete else continuous_riccati(A, B, Q, R)
    except SingularError as error:
        raise SingularError(f"{error}{_out_of_reach(A, B, discrete)}") from None
    K = discrete_gain(A, B, R, P) if discrete else continuous_gain(B, R, P)
    if np.any(_growth(np.linalg.eigvals(A - B @ K), discrete) >= 0):
        raise SingularError(
            "the feedback of least cost does not stabilise the system: a motion that does not die "
            "out by itself costs nothing. Give every position or velocity a cost in Q"
        )
    return LQRGain(K, P)


def _cost(value, size, name):
    value = np.asarray(value, dtype=float)
    if value.ndim == 0 or value.shape == (size,):
        value = value * np.eye(size)
    if value.shape != (size, size):
        raise ShapeError(
            f"{name} must be a number, ({size},) or ({size}, {size}), got shape {value.shape}"
        )
    rounding = 1e-12 * np.max(np.abs(value), initial=0)
    if np.any(np.abs(value - value.T) > rounding) or np.linalg.eigvalsh(value)[0] < -rounding:
        raise ShapeError(f"{name} must be symmetric, without negative eigenvalues")
    return value


def _growth(poles, discrete):
    """Negative for motions that die out."""
    return np.abs(poles) - 1 if discrete else poles.real


def _out_of_reach(A, B, discrete):
    """The growing motion that the inputs do not reach — the test of Popov, Belevitch and Hautus."""
    n, k = B.shape[-2:]
    B = np.broadcast_to(B, (*A.shape[:-2], n, k))
    for a, b in zip(A.reshape(-1, n, n), B.reshape(-1, n, k), strict=True):
        for pole in np.linalg.eigvals(a):
            reach = np.linalg.svd(np.hstack([a - pole * np.eye(n), b]), compute_uv=False)
            if _growth(pole, discrete) >= -1e-9 and reach[-1] <= 1e-9 * reach[0]:
                return f". The inputs cannot change the motion with eigenvalue {pole:.4g}"
    return ""


@explains_itself
class LQR:
    """Linear-quadratic regulator at an equilibrium: ``tau = tau_0 - K (q - q_0, qd)``.

        q, tau = kt.control.equilibrium(m, upright, actuated=["shoulder"])
        balance = kt.control.LQR(m, q, Q=1.0, R=0.1, actuated=["shoulder"])
        tau = balance(t, q, qd)

    The gain is that of ``lqr_gain`` for ``kinetree.linearize`` at the equilibrium. ``q - q_0``
    stands for ``model.difference(q_0, q)``. The states of a mechanism with loops or couplings are
    its independent coordinates, ``(y - y_0, yd)``, two for each degree of freedom.

    Args:
        model: the mechanism.
        q: configuration at which it stays at rest, (nq,).
        Q: cost of the states, a number, (n,) or (n, n) for ``n`` states, which are ``2 nv`` in a
            mechanism without loops.
        R: cost of the forces, a number, (k,) or (k, k) for ``k`` driven velocity variables.
        tau: forces of the motors at the equilibrium, (nv,); those that hold it if left out.
        actuated: names of the driven joints; all by default.
        dt: time between calls [s], between which the forces are held; continuous if left out.
        independent: of a mechanism with loops or couplings, names of the joints whose variables are
            its coordinates; chosen if left out.

    Attributes:
        A: the linear system, (n, n).
        B: input matrix of the driven joints, (n, k).
        K: the feedback of the driven velocity variables, (k, n).
        columns: which velocity variables are driven, (k,).
        R: cost of the forces, (k, k).
        P: the cost ``xᵀ P x`` of returning from ``x``, (n, n).
        poles: eigenvalues of ``A - B K``, (n,).
        coordinates: names of the independent coordinates of a mechanism with loops; else None.
    """

    def __init__(
        self,
        model: Model,
        q: ArrayLike,
        *,
        Q: ArrayLike,
        R: ArrayLike,
        tau: ArrayLike | None = None,
        actuated: Sequence[str] | None = None,
        dt: float | None = None,
        independent: str | Sequence[str] | ArrayLike | None = None,
    ):
        self.model, self.q = model, as_configuration(model, q)
        if self.q.ndim != 1:
            raise ShapeError(f"LQR needs one equilibrium, got q of shape {self.q.shape}")
        self.columns = velocity_columns(model, actuated, "actuated")
        self.tau = _held(model, self.q, tau, self.columns)
        self.dt = dt
        rest = np.zeros(model.nv)
        linear = linearize(model, self.q, rest, self.tau, dt=dt, independent=independent)
        self.A, B = linear
        self.coordinates = getattr(linear, "coordinates", None)
        self._chosen = getattr(linear, "chosen", None)
        self.B = B[:, self.columns]
        self.R = _cost(R, len(self.columns), "R")
        self.K, self.P = lqr_gain(self.A, self.B, Q, self.R, discrete=dt is not None)
        self.poles = np.linalg.eigvals(self.A - self.B @ self.K)

    def __repr__(self):
        driven, states = self.K.shape
        return (
            f"<LQR of {self.model.name!r}: {driven} driven of {self.model.nv} velocity variables, "
            f"{states} states, slowest pole {np.max(self.poles.real):.3g} 1/s>"
            if self.dt is None
            else f"<LQR of {self.model.name!r}: {driven} driven of {self.model.nv} velocity "
            f"variables, {states} states, called every {self.dt:g} s>"
        )

    @property
    def full_gain(self) -> np.ndarray:
        """``K`` with a row for every velocity variable, zero where none is driven, (nv, n)."""
        gain = np.zeros((self.model.nv, self.K.shape[1]))
        gain[self.columns] = self.K
        return gain

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        x = self._deviation(q, qd)
        tau = np.broadcast_to(self.tau, (*x.shape[:-1], self.model.nv)).copy()
        tau[..., self.columns] -= x @ self.K.T
        return tau

    def _deviation(self, q, qd):
        if self._chosen is None:
            parts = configuration_error(self.model, self.q, q), qd
        else:
            parts = (
                coordinate_changes(self.model, self.q, q, self._chosen),
                coordinate_rates(self.model, q, qd, self._chosen),
            )
        return np.concatenate(np.broadcast_arrays(*parts), axis=-1)


def _held(model, q, tau, columns):
    """The forces at the equilibrium; raises if it is not one."""
    idle = np.setdiff1d(np.arange(model.nv), columns)
    if model.is_constrained:
        require_holonomic(model)
        weight, (G, _) = load_on_freedoms(model, q)
        smallest, _ = closed_holding_forces(model, q, columns)
    else:
        weight, G = holding_forces(model, q), np.eye(model.nv)
        smallest = np.array(weight)
        smallest[idle] = 0.0
    given = tau is not None
    tau = np.array(as_joint_vector(model, tau, "tau"), dtype=float) if given else smallest
    wrong = np.abs(G.T @ (tau - weight))  # what loops do not carry
    if np.any(wrong > 1e-8 * max(1.0, np.max(np.abs(weight), initial=0))) or np.any(tau[idle]):
        raise EquilibriumError(
            f"model {model.name!r} does not stay at rest at q with the driven joints: forces are "
            f"off by up to {np.max(wrong):.4g} N or N·m; kinetree.control.equilibrium finds a "
            f"configuration near q where it does"
        )
    return tau
