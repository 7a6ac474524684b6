"""The linear-quadratic regulator: the feedback that costs least near an equilibrium."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control import algebraic_riccati
from kinetree.control.algebraic_riccati import growth
from kinetree.control.equilibria import closed_holding_forces, holding_forces, load_on_freedoms
from kinetree.control.joint_space import configuration_error
from kinetree.control.linearization import held_input, linearize
from kinetree.errors import EquilibriumError, ShapeError, SimulationWarning, warn
from kinetree.loops.kinematics.constraint import require_holonomic
from kinetree.loops.linear.velocity_basis import coordinate_changes, coordinate_rates
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.notebook import block, eigenvalues, fold, matrix
from kinetree.spelling import explains_itself


class LQRGain(NamedTuple):
    """Feedback ``u = -K x`` and cost ``xᵀ P x`` of the motion that starts at ``x``."""

    K: np.ndarray
    """(..., inputs, states)"""
    P: np.ndarray
    """(..., states, states)"""

    def _repr_html_(self):
        """HTML of the matrices for notebooks."""
        return block("Feedback u = -K x", matrix("K", self.K), fold("P", matrix("P", self.P)))


@on_host
def lqr_gain(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, *, discrete: bool = False
) -> LQRGain:
    """Feedback gain with the least ``∫ xᵀ Q x + uᵀ R u dt`` for ``dx/dt = A x + B u``.

    Args:
        A: (..., n, n).
        B: (..., n, k).
        Q: cost of the state, symmetric and not negative: a number, (n,) for a diagonal, or
            (..., n, n).
        R: cost of the input, symmetric and positive: a number, (k,) or (..., k, k).
        discrete: the sum over samples of ``x' = A x + B u`` instead of the integral.

    Returns:
        The gain ``K`` and the matrix ``P`` of the cost.

    Raises:
        SingularError: no feedback stabilises the system, or that of least cost does not.
    """
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    if A.ndim < 2 or B.ndim < 2 or A.shape[-1] != A.shape[-2] or B.shape[-2] != A.shape[-1]:
        raise ShapeError(f"A must be (..., n, n) and B (..., n, k), got {A.shape} and {B.shape}")
    Q, R = _cost(Q, A.shape[-1], "Q"), _cost(R, B.shape[-1], "R")
    if np.any(np.linalg.eigvalsh(R)[..., 0] <= 0):
        raise ShapeError("R must have positive eigenvalues: every input costs something")
    P, K = algebraic_riccati.solve(A, B, Q, R, discrete=discrete)
    return LQRGain(K, P)


def _cost(value, size, name):
    """Symmetric cost matrix from a number, a diagonal or a matrix."""
    value = np.asarray(value, dtype=float)
    if value.ndim == 0 or value.shape == (size,):
        value = value * np.eye(size)
    if value.ndim < 2 or value.shape[-2:] != (size, size):
        raise ShapeError(
            f"{name} must be a number, ({size},) or (..., {size}, {size}), got shape {value.shape}"
        )
    rounding = 1e-12 * np.max(np.abs(value), axis=(-2, -1), initial=0)[..., None, None]
    asymmetric = np.any(np.abs(value - np.swapaxes(value, -1, -2)) > rounding)
    if asymmetric or np.any(np.linalg.eigvalsh(value)[..., 0] < -rounding[..., 0, 0]):
        raise ShapeError(f"{name} must be symmetric, without negative eigenvalues")
    return value


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
        self.tau = _equilibrium_force(model, self.q, tau, self.columns)
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
        self._last, self._step, self._warned = np.nan, np.nan, False

    def _repr_html_(self):
        """Gain and closed-loop eigenvalues for notebooks."""
        closed = self.A - self.B @ self.K
        values = eigenvalues(closed, discrete=self.dt is not None)
        return block(repr(self)[1:-1], matrix("K", self.K), values)

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
        """Gain ``K`` with a row per velocity variable, zero where none is driven, (nv, n)."""
        gain = np.zeros((self.model.nv, self.K.shape[1]))
        gain[self.columns] = self.K
        return gain

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        if self.dt is None:
            self._watch(t)
        x = self._deviation(q, qd)
        tau = np.broadcast_to(self.tau, (*x.shape[:-1], self.model.nv)).copy()
        tau[..., self.columns] -= x @ self.K.T
        return tau

    def _watch(self, t):
        """Warn once if the sampled feedback, with forces held between calls, is unstable."""
        step, self._last = t - self._last, t
        if not self._warned and step > 0 and abs(step - self._step) <= 1e-6 * step:
            self._warned = True
            A, B, *_ = held_input(self.A, self.B, step)
            if growth(A - B @ self.K, True) >= 0:
                warn(
                    f"this LQR of model {self.model.name!r} is designed for forces that change all "
                    f"the time, and is called every {step:.3g} s: held in between, they do not "
                    f"stabilise the equilibrium (its fastest pole is "
                    f"{np.min(self.poles.real):.3g} 1/s). Pass LQR(..., dt={step:.3g}), or call it "
                    f"more often",
                    SimulationWarning,
                )
        self._step = step

    def _deviation(self, q, qd):
        """Deviation of the state from the equilibrium, in its coordinates."""
        if self._chosen is None:
            parts = configuration_error(self.model, self.q, q), qd
        else:
            parts = (
                coordinate_changes(self.model, self.q, q, self._chosen),
                coordinate_rates(self.model, q, qd, self._chosen),
            )
        return np.concatenate(np.broadcast_arrays(*parts), axis=-1)


def _equilibrium_force(model, q, tau, columns):
    """Motor forces at the equilibrium, (nv,); an error if the configuration is none."""
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
