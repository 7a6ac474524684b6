"""Charts: independent states that give the whole state, at least nearby — Spencer §2.2.

Velocities of a chart of positions, ``R_q(q, y_q) = 0``, follow from it — (2.25)-(2.28).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import SingularError
from kinetree.loops.state_space import multipliers
from kinetree.loops.state_space.invariants import newton, rate_gradient
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.model.arrays import as_numbers
from kinetree.spelling import from_textbook

if TYPE_CHECKING:
    from kinetree.textbook.system_linearization import ChartLinearization


class ChartPoint(NamedTuple):
    """A state found from its coordinates, with what was computed on the way."""

    q: np.ndarray
    """Configuration, (nq,)."""
    v: np.ndarray
    """Velocities ``K y_v``, (n,)."""
    K: np.ndarray
    """Null-space basis of the chart, (n, p)."""
    c: np.ndarray
    """``Kdot y_v``: accelerations are ``K ydd + c``, (n,)."""
    condition: float
    """How well the coordinates determine the state here: 1 at best."""
    iterations: int
    """Steps of Newton's method."""


class AbstractChart(ABC):
    """Coordinates ``y`` of the states ``(q, v)`` that satisfy the constraints.

    ``state`` is the local parametrisation ψ of the text, ``coordinates`` its inverse. Since ψ is
    implicit it takes iterations, which start from the state that was found last. A chart holds near
    the state that it was made for; ``health`` measures how near its end is.

    Attributes:
        system: the constrained system, with independent constraints.
        health: condition of the state that was computed last: 1 at best, infinite where the
            coordinates fail.
    """

    system: ConstrainedSystem
    health: float
    is_linear = False
    """Whether ``dy/dt`` is a constant matrix times ``f(x)``."""
    residual_tolerance = 0.0
    """Norm of the residual, in the weights of the system, at which a search ends in any case."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of chart coordinates, P = 2p."""

    @abstractmethod
    def state(self, y: ArrayLike, guess: tuple | None = None) -> Any:
        """State ``q, v`` with the chart coordinates ``y`` (the map ψ).

        Args:
            y: coordinates, (P,).
            guess: a state ``(q, v)`` nearby; by default the one that was found last.
        """

    @abstractmethod
    def coordinates(self, q: ArrayLike, v: ArrayLike) -> Any:
        """Chart coordinates ``y`` (P,) of a state (the map ψ⁻¹)."""

    @abstractmethod
    def derivative(self, q: ArrayLike, v: ArrayLike) -> Any:
        """Derivative ``Dψ`` (2n, P) at a state, whose columns span the tangent space."""

    @abstractmethod
    def inverse_derivative(self, q: ArrayLike, v: ArrayLike) -> Any:
        """Derivative ``Dψ⁻¹`` (P, 2n) at a state of the constraint manifold."""

    @abstractmethod
    def rate(
        self,
        t: float,
        y: ArrayLike,
        *,
        acceleration: Callable | None = None,
        guess: tuple | None = None,
    ) -> Any:
        """Time derivative ``dy/dt`` of the chart coordinates, (P,) — Spencer (2.15).

        Args:
            t: time [s].
            y: coordinates, (P,).
            acceleration: function of ``t, q, v``; that of the system by default.
            guess: a state nearby, as for ``state``.
        """

    def linearize(
        self, t: float, y: ArrayLike, *, method: str = "equations"
    ) -> "ChartLinearization":
        """Jacobian of ``dy/dt`` by the chart coordinates at ``y``, (P, P).

        Args:
            t: time [s].
            y: coordinates, (P,).
            method: ``"equations"``, from derivatives of the equations of motion;
                ``"differences"`` of the motion on the chart; ``"forward differences"``.
        """
        return from_textbook("system_linearization", "linearize_chart")(self, t, y, method)

    def rate_by_pseudo_inverse(self, t: float, y: ArrayLike, acceleration: Callable) -> Array:
        """Rates ``dy/dt`` by least squares of ``Dψ ydot = f``, (P,) — Spencer (2.13)."""
        q, v = self.state(y)
        f = np.concatenate([v, acceleration(t, q, v)])
        return np.linalg.lstsq(self.derivative(q, v), f, rcond=None)[0]


def as_state(q, v) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity as float arrays."""
    return as_numbers(q, "q"), as_numbers(v, "v")


def coordinate_weights(system) -> Any:
    """Inverse scales (n,), or 1, of coordinates, for measuring state errors."""
    if system.coordinate_weights is not None:
        return np.asarray(system.coordinate_weights, dtype=float)
    return 1.0 if system.scaling is None else 1 / system.scaling.columns


def row_weights(rows, weights) -> np.ndarray:
    """Inverse sizes of the rows of ``rows dx = ..`` for ``dx`` of unit scaled size."""
    sizes = np.linalg.norm(rows / weights, axis=-1)
    return 1 / np.where(sizes > 0, sizes, 1.0)


def row_condition(A, inverse) -> float:
    """Condition number of a square matrix with unit-length rows: 1 at best.

    Equations of different units are thus comparable: no scaling of rows is better than this one by
    more than the square root of their number (van der Sluis).
    """
    squares = np.einsum("ij,ij->i", A, A)
    total = squares @ np.einsum("ij,ij->j", inverse, inverse)  # of the inverse, columns scaled
    return float(np.sqrt(total / len(A))) if len(A) else 1.0


def invert(A, what):
    """Inverse of a square matrix; SingularError with a reason if it has none."""
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError as error:
        raise SingularError(f"{what}: the coordinates do not determine the state") from error
    if not np.isfinite(inverse.sum()):
        raise SingularError(f"{what}: the coordinates do not determine the state")
    return inverse


# --- independent constraints ---------------------------------------------------------------------


def independent_system(system, q, rank=None):
    """System without redundant constraints; SingularError if ``rank`` is not reached."""
    found = system.independent(q)
    if rank is not None and found.m < rank:
        raise SingularError(
            f"only {found.m} of {rank} constraints are independent here: the mechanism is at a "
            f"kinematic singularity, where no chart of its states exists; kt.loops.SVDForm passes "
            f"through it"
        )
    return found


END = "the chart ends here"


class AbstractPositionChart(AbstractChart):
    """Coordinates ``y = (y_q, y_v)``, found in two stages.

    Positions solve ``R_q(q, y_q) = 0`` and ``g(q) = 0`` by Newton's method; then velocities solve
    ``V v + D y_v = 0`` and ``G v = 0``, which are linear. In a vector space ``V`` is the derivative
    of ``R_q``, and ``y_v`` the derivative of ``y_q``.

    Attributes:
        system: the constrained system, with independent constraints.
        tolerance: of the position error, in the weights of the coordinates.
        last: the state that was found last, where the next search starts.
    """

    def __init__(self, system, q, v, *, tolerance=1e-13):
        self.system, self.tolerance = system, tolerance
        self.last, self.health = as_state(q, v), np.nan
        self.p = system.n - system.m

    @property
    def size(self) -> int:
        """Number of chart coordinates, P = 2p."""
        return 2 * self.p

    # --- what a chart of this kind consists of ---------------------------------------------------

    @abstractmethod
    def residual(self, q, y_q) -> Any:
        """Residual ``R_q`` (p,) of the relation between ``q`` and ``y_q``."""

    @abstractmethod
    def position_rows(self, q, y_q) -> Any:
        """Derivative (p, n) of ``R_q`` along velocities."""

    def velocity_rows(self, q, y_q) -> Any:
        """Matrix ``V`` (p, n) of the velocity relation, the derivative of ``R_q`` by default."""
        return self.position_rows(q, y_q)

    @abstractmethod
    def parameter_columns(self, q, y_q) -> Any:
        """Derivative ``D`` (p, p) of ``R_q`` by ``y_q``; None for minus the identity."""

    @abstractmethod
    def cross_terms(self, q, y_q, v, y_v, dq, dy_q) -> Any:
        """Rate (p,) of ``V v + D y_v`` for constant ``v, y_v`` as ``q, y_q`` move."""

    @abstractmethod
    def position_coordinates(self, q) -> Any:
        """Position coordinates ``y_q`` (p,) of a configuration."""

    def inverse(self, rows, G):
        """Inverse (n, n) of the stacked matrix ``[rows; G]``."""
        return invert(np.concatenate([rows, G]), END)

    # --- the chart -------------------------------------------------------------------------------

    def state(self, y, guess=None):
        """State ``q, v`` with the chart coordinates ``y`` (the map ψ)."""
        point = self.solve(y, guess)
        return point.q, point.v

    def solve(self, y, guess=None) -> ChartPoint:
        """State with coordinates ``y``, and the null-space basis there."""
        system, p = self.system, self.p
        y = np.asarray(y, dtype=float)
        y_q, y_v = y[:p], y[p:]
        found = self._position(y_q, (self.last if guess is None else guess)[0])
        q = found.x
        D = self.parameter_columns(q, y_q)
        V, G = self.velocity_rows(q, y_q), system.G(q)
        B = self.inverse(V, G)
        condition = row_condition(np.concatenate([V, G]), B)
        K = _times(B[:, :p], D)
        v = K @ y_v
        bias = self.cross_terms(
            q, y_q, v, y_v, v, _minus_solution(D, self.position_rows(q, y_q) @ v)
        )
        c = -B @ np.concatenate([bias, system.Gdot_v(q, v)])  # with (2.45) for curved coordinates
        self.last, self.health = (q, v), condition
        return ChartPoint(q, v, K, c, condition, found.iterations)

    def coordinates(self, q, v):
        """Chart coordinates ``y`` (P,) of a state (the map ψ⁻¹)."""
        q, v = as_state(q, v)
        y_q = self.position_coordinates(q)
        D = self.parameter_columns(q, y_q)
        y_v = _minus_solution(D, self.velocity_rows(q, y_q) @ v)
        self.last = (q, v)
        return np.concatenate([y_q, y_v])

    def rate(self, t, y, *, acceleration=None, guess=None):
        """Time derivative ``dy/dt`` of the chart coordinates, (P,)."""
        point, y_q = self.solve(y, guess), np.asarray(y, dtype=float)[: self.p]
        D = self.parameter_columns(point.q, y_q)
        first = _minus_solution(D, self.position_rows(point.q, y_q) @ point.v)
        if acceleration is None:
            q, v, K, c, *_ = point
            z = multipliers.independent_acceleration(self.system, t, q, v, K, c)
            return np.concatenate([first, z])
        vdot = acceleration(t, point.q, point.v)
        y_v = np.asarray(y, dtype=float)[self.p :]
        bias = self.cross_terms(point.q, y_q, point.v, y_v, point.v, first)
        second = _minus_solution(D, self.velocity_rows(point.q, y_q) @ vdot + bias)
        return np.concatenate([first, second])

    def derivative(self, q, v):
        """Derivative ``Dψ = [[K, 0], [Kdot, K]]`` at a state, (2n, P) — Spencer (2.40)."""
        q, v = as_state(q, v)
        p, y_q, y_v, D = self._split(q, v)
        G = self.system.G(q)
        along = _times(self.inverse(self.position_rows(q, y_q), G)[:, :p], D)
        B = self.inverse(self.velocity_rows(q, y_q), G)
        moved = zip(along.T, np.eye(p), strict=True)
        cross = [self.cross_terms(q, y_q, v, y_v, dq, dy_q) for dq, dy_q in moved]
        rates = rate_gradient(self.system, q, v) @ along
        Kdot = -B @ np.concatenate([np.reshape(cross, (p, p)).T, rates])
        return np.block([[along, np.zeros_like(along)], [Kdot, _times(B[:, :p], D)]])

    def inverse_derivative(self, q, v):
        """Derivative ``Dψ⁻¹`` at a state, (P, 2n) — Spencer (2.30)."""
        q, v = as_state(q, v)
        p, y_q, y_v, D = self._split(q, v)
        V = self.velocity_rows(q, y_q)
        first = _minus_solution(D, self.position_rows(q, y_q))
        moved = zip(np.eye(self.system.n), first.T, strict=True)
        cross = [self.cross_terms(q, y_q, v, y_v, dq, dy_q) for dq, dy_q in moved]
        below = _minus_solution(D, np.reshape(cross, (self.system.n, p)).T)
        return np.block([[first, np.zeros_like(first)], [below, _minus_solution(D, V)]])

    def condition(self, q) -> float:
        """Condition number of the coordinates at ``q``: 1 at best — Spencer (2.28)."""
        q = as_numbers(q, "q")
        rows = self.velocity_rows(q, self.position_coordinates(q))
        A = np.concatenate([rows, self.system.G(q)])
        return row_condition(A, invert(A, "no chart here"))

    def _split(self, q, v):
        """Position and velocity coordinates of a state, and the matrix ``D``."""
        y = self.coordinates(q, v)
        y_q, y_v = y[: self.p], y[self.p :]
        return self.p, y_q, y_v, self.parameter_columns(q, y_q)

    def _position(self, y_q, q):
        """Configuration with position coordinates ``y_q``, by Newton's method."""
        system = self.system
        of_g = 1.0 if system.weights is None else np.asarray(system.weights)
        weights = coordinate_weights(system)

        def step(q):
            g, residual, rows = system.g(q), self.residual(q, y_q), self.position_rows(q, y_q)
            B = self.inverse(rows, system.G(q))
            pure = np.concatenate([row_weights(rows, weights) * residual, of_g * g])
            return -B @ np.concatenate([residual, g]), float(np.linalg.norm(pure))

        return newton(
            step,
            q,
            move=system.space.move,
            tolerance=self.tolerance,
            weights=weights,
            residual_tolerance=self.residual_tolerance,
            what="the configuration of a chart",
        )


def _times(B, D):
    """Product ``-B D``, where D = None stands for minus the identity."""
    return B if D is None else -B @ D


def _minus_solution(D, b):
    """Solution ``-D⁻¹ b``, where D = None stands for minus the identity."""
    return b if D is None else -np.linalg.solve(D, b)
