"""Charts of whole states: ``R(x, y) = 0`` for ``x = (q, v)`` — Spencer (2.20)–(2.39).

More general than charts of positions: a coordinate may mix positions and velocities. They take a
vector space, and Newton's method on all 2n equations at once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.loops.state_space import multipliers
from kinetree.loops.state_space.charts.chart import (
    AbstractChart,
    as_state,
    coordinate_weights,
    independent_system,
    invert,
    row_condition,
    row_weights,
)
from kinetree.loops.state_space.invariants import (
    InvariantSolution,
    invariant_gradient,
    invariants,
    newton,
)
from kinetree.loops.state_space.system import (
    ConstrainedSystem,
    Relation,
    derived_relation,
    given_relation,
)
from kinetree.model.arrays import as_numbers

_END = "the chart ends here"


def _state(system, q, v):
    """State ``(q, v)`` as one vector (2n,); ShapeError for wrong sizes."""
    q, v = as_state(q, v)
    if q.shape != (system.n,) or v.shape != (system.n,):
        raise ShapeError(
            f"q and v of a state of this system have shape {(system.n,)}, got {q.shape} and "
            f"{v.shape}"
        )
    return np.concatenate([q, v])


class StateChart(AbstractChart):
    """Independent states that ``R(x, y) = 0`` defines.

    Attributes:
        relation: ``R`` and its derivatives with respect to ``x`` and ``y``.
        tolerance: of the state, positions and velocities alike, in the weights of the coordinates.
        solved: how Newton's method found the last state.
    """

    solved: InvariantSolution

    def __init__(
        self,
        system: ConstrainedSystem,
        q: ArrayLike,
        v: ArrayLike,
        relation: Relation,
        *,
        y: Any,
        tolerance: float = 1e-13,
    ):
        if not system.space.flat:
            raise ShapeError(
                "charts of whole states need configurations that are vectors; use a chart of "
                "positions, such as charts.tangent(system, q)"
            )
        self.system, self.relation, self.tolerance = system, relation, tolerance
        self.last, self._y = _state(system, q, v), as_numbers(y, "y")
        size = np.shape(relation.value(self.last, self._y))
        if size != (self.size,) or self._y.shape != (self.size,):
            raise ShapeError(
                f"R(x, y) has shape {size} and y {self._y.shape}, expected {(self.size,)}: two for "
                f"each of the {self.size // 2} degrees of freedom"
            )
        self.health = self.condition(q, v)  # or a SingularError

    @property
    def size(self) -> int:
        """Number of chart coordinates, P = 2p."""
        return 2 * (self.system.n - self.system.m)

    def state(self, y: ArrayLike, guess: tuple | None = None) -> tuple[np.ndarray, np.ndarray]:
        """State ``q, v`` with the chart coordinates ``y`` (the map ψ)."""
        y = as_numbers(y, "y")
        if y.shape != (self.size,):
            raise ShapeError(f"coordinates y have shape {y.shape}, expected {(self.size,)}")
        n, system = self.system.n, self.system
        of_g = np.ones(system.m) if system.weights is None else np.asarray(system.weights)
        weights = np.tile(coordinate_weights(system) * np.ones(n), 2)

        def step(x):
            phi = np.concatenate([self.relation.value(x, y), invariants(system, x[:n], x[n:])])
            inverse = invert(self._matrix(x, y), _END)
            of_R = row_weights(self.relation.first(x, y), weights)
            pure = np.concatenate([of_R, of_g, of_g]) * phi
            return -inverse @ phi, float(np.linalg.norm(pure))

        start = self.last if guess is None else _state(system, *guess)
        self.solved = newton(
            step,
            start,
            tolerance=self.tolerance,
            weights=weights,
            residual_tolerance=self.residual_tolerance,
            what="the state of a chart",
        )
        self.last, self._y = self.solved.x, y
        A = self._matrix(self.last, y)
        self.health = row_condition(A, invert(A, _END))
        return self.last[:n], self.last[n:]

    def coordinates(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Chart coordinates ``y`` (P,) of a state near the last ones, by Newton (ψ⁻¹)."""
        x = _state(self.system, q, v)

        def step(y):
            value = self.relation.value(x, y)
            return -np.linalg.solve(self.relation.second(x, y), value), float(np.abs(value).max())

        self._y = newton(step, self._y, tolerance=self.tolerance, what="chart coordinates").x
        self.last = x
        return self._y

    def derivative(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Derivative ``Dψ = [D1R; H]⁻¹ [-D2R; 0]``, (2n, P) — Spencer (2.29)."""
        x, y = _state(self.system, q, v), self.coordinates(q, v)
        inverse = invert(self._matrix(x, y), _END)
        return -inverse[:, : self.size] @ self.relation.second(x, y)

    def inverse_derivative(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Derivative ``Dψ⁻¹ = -D2R⁻¹ D1R``, (P, 2n) — Spencer (2.31)."""
        x, y = _state(self.system, q, v), self.coordinates(q, v)
        return -np.linalg.solve(self.relation.second(x, y), self.relation.first(x, y))

    def rate(
        self,
        t: float,
        y: ArrayLike,
        *,
        acceleration: Callable | None = None,
        guess: tuple | None = None,
    ) -> np.ndarray:
        """Time derivative ``dy/dt`` of the chart coordinates, (P,)."""
        q, v = self.state(y, guess)
        if acceleration is None:
            vdot = multipliers.acceleration(self.system, t, q, v)
        else:
            vdot = acceleration(t, q, v)
        return self.inverse_derivative(q, v) @ np.concatenate([v, vdot])

    def condition(self, q: ArrayLike, v: ArrayLike) -> float:
        """Larger condition number of ``[D1R; H]`` and ``D2R`` — Spencer (2.21), (2.22)."""
        x, y = _state(self.system, q, v), self.coordinates(q, v)
        matrices = (self._matrix(x, y), self.relation.second(x, y))
        return max(row_condition(A, invert(A, "no chart here")) for A in matrices)

    def _matrix(self, x, y):
        """Derivatives of the relation and of the invariants by the state, (2n, 2n)."""
        n = self.system.n
        H = invariant_gradient(self.system, x[:n], x[n:])
        return np.concatenate([self.relation.first(x, y), H])


class LinearStateChart(StateChart):
    """Linear coordinates ``y = R (x - x_bar)`` of the state — Spencer §2.3.3.

    Attributes:
        R: (P, 2n).
        S: rows of dependent coordinates, (2m, 2n).
        R_bar: first columns of the inverse of ``[R; S]``, (2n, P).
        S_bar: its other columns, (2n, 2m).
        offset: ``x_bar``, (2n,).
    """

    is_linear = True

    def __init__(
        self,
        system: ConstrainedSystem,
        q: ArrayLike,
        v: ArrayLike,
        R: ArrayLike,
        *,
        S: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        tolerance: float = 1e-13,
    ):
        R = np.asarray(R, dtype=float)
        x = _state(system, q, v)
        P = 2 * (system.n - system.m)
        if R.shape != (P, 2 * system.n):
            raise ShapeError(f"R has shape {R.shape}, expected {(P, 2 * system.n)}")
        offset = x if offset is None else np.asarray(offset, dtype=float)
        self.R, self.offset = R, offset
        self.S = np.linalg.svd(R)[2][P:] if S is None else np.asarray(S, dtype=float)
        inverse = invert(np.concatenate([R, self.S]), "R and S are not independent")
        self.R_bar, self.S_bar = inverse[:, :P], inverse[:, P:]
        relation = given_relation(
            lambda x, y: R @ (x - offset) - y,
            lambda x, y: R,
            lambda x, y: -np.eye(P),
            lambda x, y, v, w: np.zeros(P),
        )
        super().__init__(system, q, v, relation, y=R @ (x - offset), tolerance=tolerance)

    def coordinates(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Linear chart coordinates ``R (x - x_bar)``, (P,)."""
        return self.R @ (_state(self.system, q, v) - self.offset)

    def derivative(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Derivative ``Dψ = R_bar - S_bar (H S_bar)⁻¹ H R_bar``, (2n, P) — Spencer (2.37)."""
        H = invariant_gradient(self.system, q, v)
        return self.R_bar - self.S_bar @ invert(H @ self.S_bar, _END) @ (H @ self.R_bar)

    def inverse_derivative(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Derivative ``Dψ⁻¹ = R``, (P, 2n)."""
        return self.R

    def dependent_condition(self, q: ArrayLike, v: ArrayLike) -> float:
        """Condition number of ``H S_bar``, which the chart inverts (Spencer Remark 1)."""
        return float(np.linalg.cond(invariant_gradient(self.system, q, v) @ self.S_bar))


def state(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    R: Callable,
    *,
    y: ArrayLike,
    first: Callable | None = None,
    second: Callable | None = None,
    rank: int | None = None,
    tolerance: float = 1e-13,
) -> StateChart:
    """``StateChart`` whose coordinates a relation ``R(x, y) = 0`` on states defines.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: configuration of a state that satisfies the constraints, where the chart begins.
        v: velocity of that state.
        R: function of ``x, y`` written as for ``@kt.kernel``, (P,).
        y: guess of the coordinates there, (P,).
        first: derivative of ``R`` with respect to ``x``, for an ``R`` that cannot be traced; then
            also
        second: that with respect to ``y``.
        rank: number of independent constraints elsewhere, as for ``tangent``.
        tolerance: of the state.
    """
    if first is None:
        relation = derived_relation(R, x="x")
    else:
        relation = given_relation(R, first, second, bias=None)
    return StateChart(independent_system(system, q, rank), q, v, relation, y=y, tolerance=tolerance)


def linear_state(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    R: ArrayLike,
    *,
    S: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    rank: int | None = None,
    tolerance: float = 1e-13,
) -> LinearStateChart:
    """``LinearStateChart`` of coordinates ``y = R (x - x_bar)`` of states ``x = (q, v)``."""
    return LinearStateChart(
        independent_system(system, q, rank), q, v, R, S=S, offset=offset, tolerance=tolerance
    )
