"""Linear equations of motion near a state, in continuous and in discrete time.

The state of a mechanism near ``(q, qd)`` is described by ``x = (dq, dqd)``: the configuration is
``model.integrate(q, dq)`` and the velocity ``qd + dqd``. When the reference moves on,

    d(dq)/dt = dqd + [dq, qd]      d(dqd)/dt = ∂qdd/∂q dq + ∂qdd/∂qd dqd + ∂qdd/∂tau dtau

The bracket stands for axes that turn with the body: for a spherical joint it is ``dq × qd``. It
vanishes for joints whose ``qd`` is the derivative of ``q``, and for every joint at rest.

A mechanism with loops or couplings is described by independent coordinates ``y``, with
``x = (dy, dyd)``: see ``kinetree.loops.linearize_in_coordinates``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from kinetree.algorithms.closed.constraints import velocity_rows
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.control.equilibria import motion_under
from kinetree.errors import LoopError, ShapeError, UnknownNameError
from kinetree.functional.products import brackets, step_derivatives
from kinetree.loops.linear.linearization import LinearModel, linear_model
from kinetree.loops.linear.nonholonomic import linearize_nonholonomic
from kinetree.loops.linear.tangent_dynamics import acceleration_derivatives
from kinetree.loops.state_space.charts import AbstractChart
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, as_seconds
from kinetree.notebook import block, eigenvalues, matrix
from kinetree.spelling import from_textbook

if TYPE_CHECKING:
    from kinetree.textbook.system_linearization import SystemLinearization


class Linearization(NamedTuple):
    """``dx/dt = A x + B dtau``, or ``x' = A x + B dtau`` for the next sample."""

    A: np.ndarray
    """(..., 2 nv, 2 nv)"""
    B: np.ndarray
    """(..., 2 nv, nv)"""

    def _repr_html_(self):
        """Eigenvalues and matrices for notebooks."""
        parts = eigenvalues(self.A), matrix("A", self.A), matrix("B", self.B)
        return block("Linear model of x = (dq, dqd)", *parts)


@overload
def linearize(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ArrayLike | None = None,
    *,
    dt: float | None = None,
    method: Literal["zoh", "euler"] | None = None,
    independent: str | Sequence[str] | ArrayLike | None = None,
) -> Linearization | LinearModel: ...
@overload
def linearize(
    model: ConstrainedSystem,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    independent: ArrayLike | AbstractChart | None = None,
) -> "SystemLinearization": ...
@on_host
def linearize(
    model: Model | ConstrainedSystem,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ArrayLike | None = None,
    *,
    dt: float | None = None,
    method: Literal["zoh", "euler"] | None = None,
    independent: Any = None,
) -> "Linearization | LinearModel | SystemLinearization":
    """Linearised equations of motion about a state, for ``x = (dq, dqd)``.

    Args:
        model: the mechanism. With loops, ``x = (dy, dyd)`` for independent ``y``; with nonholonomic
            constraints there are more coordinates ``y`` than velocities. Or a
            ``kinetree.loops.ConstrainedSystem``, for which ``independent`` is a matrix or a chart:
            see ``kinetree.loops.linearize_system``.
        q: joint positions, (..., nq), which close the loops.
        qd: joint velocities, (..., nv).
        tau: forces of the motors, (..., nv); zero by default. Springs and dampers of the joints are
            part of the linear system, and so is the force of dry friction, which is constant near
            a state.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``; they are constant in base
            coordinates.
        dt: time between samples [s]; continuous time if it is left out.
        method: ``"zoh"``, the default: ``exp(A dt)`` and the input held over the step, exact for
            the continuous linear system, and for the mechanism about an equilibrium. ``"euler"``:
            the derivative of one step of semi-implicit Euler, ``qd' = qd + dt qdd`` and
            ``q' = integrate(q, dt qd')``, exact for a simulator that takes such steps; not
            for mechanisms with loops.
        independent: of a mechanism with loops or couplings, names of the joints whose variables are
            ``y``, ``"tangent"``, or a matrix, as in ``kinetree.loops.linearize_in_coordinates``;
            chosen if left out.

    Returns:
        A ``Linearization``, or a ``kinetree.loops.LinearModel``, which has ``A`` and ``B``, too; of
        a constrained system a ``kinetree.loops.SystemLinearization``.
    """
    _check(dt, method)
    if isinstance(model, ConstrainedSystem):
        return _of_system(model, q, qd, tau, f_ext, dt, independent)
    tau = np.zeros(as_model(model).nv) if tau is None else tau
    if as_model(model).is_constrained:
        return _of_loops(model, q, qd, tau, f_ext, dt, method, independent)
    if independent is not None:
        raise LoopError(
            f"model {model.name!r} has no loops or constraints: all its joint variables are "
            f"independent, got independent={independent!r}"
        )
    q = as_configuration(model, q)
    qd, tau = as_joint_vector(model, qd, "qd"), as_joint_vector(model, tau, "tau")
    derivatives = acceleration_derivatives(model, q, qd, tau, f_ext)
    if dt is not None and method == "euler":
        qdd = motion_under(model, q, qd, tau, f_ext)
        return _euler(model, q, qd + dt * qdd, derivatives, dt)
    batch, nv = derivatives[0].shape[:-2], model.nv
    A = np.zeros((*batch, 2 * nv, 2 * nv), derivatives[0].dtype)
    A[..., :nv, :nv] = brackets(model, q, qd)
    A[..., :nv, nv:] = np.eye(nv)
    A[..., nv:, :nv], A[..., nv:, nv:] = derivatives[0], derivatives[1]
    B = np.concatenate([np.zeros_like(derivatives[2]), derivatives[2]], axis=-2)
    return Linearization(A, B) if dt is None else Linearization(*held_input(A, B, dt))


def _of_system(system, q, v, tau, f_ext, dt, independent):
    """Linear model of a constrained system; an error for options that do not apply."""
    if tau is not None or f_ext is not None or dt is not None:
        raise ShapeError(
            "linearize takes q, qd and independent= with a constrained system, whose forces are "
            "its own: give tau and f_ext to kinetree.loops.system_of, and no dt"
        )
    return from_textbook("system_linearization", "linearize_system")(system, q, v, R=independent)


def _of_loops(model, q, qd, tau, f_ext, dt, method, independent):
    """Linear model of a mechanism with loops, in continuous time or for steps of ``dt``."""
    if method == "euler":
        raise LoopError(
            f"a step of semi-implicit Euler does not keep the loops of model {model.name!r} "
            f"closed; use method='zoh', or no dt for continuous time"
        )
    if velocity_rows(model):
        linear = linearize_nonholonomic(model, q, qd, tau, f_ext, independent=independent)
    else:
        linear = linear_model(model, q, qd, tau, f_ext, independent)
    if dt is None:
        return linear
    # the rate of a fixed point of the motion acts like one more input
    inputs = np.concatenate([linear.B, linear.rate[..., None]], axis=-1)
    A, B = held_input(linear.A, inputs, dt)
    return replace(linear, A=A, B=B[..., :-1], rate=B[..., -1])


def _check(dt, method):
    """Raise an error for an unknown discretisation method, or one without ``dt``."""
    if method is not None and (not isinstance(method, str) or method not in ("zoh", "euler")):
        raise UnknownNameError(f"linearize has no method {method!r}; use 'zoh' or 'euler'")
    if dt is None and method is not None:
        raise ValueError(f"method={method!r} is about discrete time: give the time step dt, too")
    if dt is not None:
        as_seconds(dt, "dt", least=0.0)


def _euler(model, q, qd, d, dt):
    """Derivatives of a semi-implicit Euler step of length ``dt`` that ends at ``qd``."""
    eye, zero = np.eye(model.nv), np.zeros_like(d[0])
    velocity = np.concatenate([dt * d[0], eye + dt * d[1], dt * d[2]], axis=-1)
    start = np.concatenate([zero + eye, zero, zero], axis=-1)
    shifted, moved = step_derivatives(model, q, dt * qd)
    rows = np.concatenate([shifted @ start + dt * moved @ velocity, velocity], axis=-2)
    return Linearization(rows[..., : 2 * model.nv], rows[..., 2 * model.nv :])


# --- Matrix exponential by scaling, squaring and a Padé approximant ------------------------------
# N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

# Coefficients of the numerator of the [13/13] approximant, and the norm up to which it is exact
# to rounding in float64.
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_NORM = 5.371920351148152


def matrix_exponential(A):
    """Matrix exponentials ``exp(A)``, (..., n, n)."""
    A = np.asarray(A)
    norm = np.max(np.sum(np.abs(A), axis=-2), initial=0)
    squarings = max(0, int(np.ceil(np.log2(norm / _NORM)))) if norm > 0 else 0
    X = _approximant(A / 2**squarings)
    for _ in range(squarings):
        X = X @ X
    return X


def _approximant(A):
    """Padé approximant of order 13 of the matrix exponential."""
    b, eye = _PADE, np.eye(A.shape[-1], dtype=A.dtype)
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A2 @ A4
    odd = A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2
    U = A @ (odd + b[1] * eye)
    even = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2
    V = even + b[0] * eye
    return np.linalg.solve(V - U, V + U)


def held_input(A, B, dt):
    """Zero-order hold: ``A_d, B_d`` with ``x(dt) = A_d x(0) + B_d u`` for a constant ``u``.

    Both are blocks of one exponential, which needs no inverse of ``A``. ``B`` enters with entries
    of at most one: those of light mechanisms are large, and the squarings that they require would
    cost ``A_d`` its digits.
    """
    n, m = B.shape[-2:]
    size = np.max(np.abs(B), axis=(-2, -1), keepdims=True, initial=0)
    size = np.where(size > 0, size, 1).astype(A.dtype)
    block = np.zeros((*A.shape[:-2], n + m, n + m), A.dtype)
    block[..., :n, :n], block[..., :n, n:] = dt * A, dt * (B / size)
    X = matrix_exponential(block)
    return X[..., :n, :n], X[..., :n, n:] * size
