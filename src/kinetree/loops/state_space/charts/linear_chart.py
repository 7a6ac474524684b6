"""Coordinates linear in positions, ``y_q = R (q - q_bar)``, or given by ``R(q, y_q) = 0``.

Spencer §2.3.3; (2.25)-(2.28), §2.3.4, local or global:

    chart = charts.nonlinear(system, q, lambda q, y: ..., y=[0.3])
    chart = charts.declared(system, q, lambda q: np.array([np.arctan2(q[1], q[0])]))
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.loops.kinematics.constraint import independent_rows
from kinetree.loops.state_space.charts.chart import (
    END,
    AbstractPositionChart,
    independent_system,
    invert,
)
from kinetree.loops.state_space.invariants import newton
from kinetree.loops.state_space.system import (
    ConstrainedSystem,
    Relation,
    derived_relation,
    given_relation,
)
from kinetree.model import Model
from kinetree.model.arrays import as_numbers


class LinearChart(AbstractPositionChart):
    """Independent coordinates ``y_q = R (q - q_bar)``, dependent ones ``w = S (q - q_bar)``.

    Both levels use the same ``R``, so that ``y_v = R v`` is the derivative of ``y_q``. Where
    configurations are not vectors, ``q - q_bar`` is the tangent vector from ``q_bar`` to ``q``, and
    ``y_v = R v`` are separate velocities.

    Attributes:
        R: (p, n).
        S: (m, n); rows that make ``R`` a square matrix, orthonormal and at right angles to it
            unless given.
        R_bar: first columns of the inverse of ``[R; S]``, (n, p).
        S_bar: its other columns, (n, m).
        offset: ``q_bar``, (nq,).
    """

    def __init__(
        self,
        system: ConstrainedSystem,
        q: ArrayLike,
        R: ArrayLike,
        *,
        S: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        v: ArrayLike | None = None,
        tolerance: float = 1e-13,
    ):
        v = np.zeros(system.n) if v is None else v
        super().__init__(system, q, v, tolerance=tolerance)
        self.R = np.asarray(R, dtype=float)
        if self.R.shape != (self.p, system.n):
            raise ShapeError(
                f"R has shape {self.R.shape}, expected {(self.p, system.n)}: a row for each of the "
                f"{self.p} degrees of freedom that {system.m} independent constraints leave"
            )
        self.S = _complement(self.R) if S is None else np.asarray(S, dtype=float)
        inverse = invert(np.concatenate([self.R, self.S]), "R and S are not independent")
        self.R_bar, self.S_bar = inverse[:, : self.p], inverse[:, self.p :]
        self.offset = self.last[0] if offset is None else as_numbers(offset, "offset")
        self.is_linear, self._zeros = system.space.flat, np.zeros(self.p)
        self.health = self.condition(q)  # or a SingularError

    def residual(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """``R (q - q_bar) - y_q``."""
        return self.position_coordinates(q) - y_q

    def position_coordinates(self, q: ArrayLike) -> np.ndarray:
        """``R (q - q_bar)``."""
        return self.R @ self.system.space.difference(self.offset, q)

    def position_rows(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """``R``, times the derivative of ``q - q_bar`` where that is not one."""
        space = self.system.space
        return self.R if space.flat else self.R @ space.difference_gradient(self.offset, q)

    def velocity_rows(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """``R``."""
        return self.R

    def parameter_columns(self, q: ArrayLike, y_q: ArrayLike) -> None:
        """None, which stands for minus the identity."""
        return None

    def cross_terms(
        self,
        q: ArrayLike,
        y_q: ArrayLike,
        v: ArrayLike,
        y_v: ArrayLike,
        dq: ArrayLike,
        dy_q: ArrayLike,
    ) -> np.ndarray:
        """Zero: ``R`` is constant."""
        return self._zeros

    def inverse(self, rows: ArrayLike, G: ArrayLike) -> np.ndarray:
        """Inverse of ``[R; G]`` through that of the m x m matrix ``G S_bar`` — Spencer (2.46)."""
        if rows is not self.R:
            return super().inverse(rows, G)
        p, B = self.p, np.empty((self.system.n, self.system.n))
        B[:, p:] = self.S_bar @ invert(G @ self.S_bar, END)
        B[:, :p] = self.R_bar - B[:, p:] @ (G @ self.R_bar)
        return B

    def dependent_condition(self, q: ArrayLike) -> float:
        """Condition number of ``G S_bar``, whose inverse the chart needs — Spencer Remark 1."""
        return float(np.linalg.cond(self.system.G(q) @ self.S_bar))


def linear(
    system: ConstrainedSystem,
    q: ArrayLike,
    R: ArrayLike,
    *,
    v: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    S: ArrayLike | None = None,
    tolerance: float = 1e-13,
) -> LinearChart:
    """A chart of linear coordinates ``y_q = R (q - q_bar)`` of the user's choice.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: a configuration that satisfies the constraints, where the chart begins.
        R: rows of the coordinates, (p, n).
        v: velocity there; zero by default.
        offset: ``q_bar``; by default ``q``, which then has the coordinates zero.
        S: rows of the dependent coordinates, (m, n).
        tolerance: of positions.
    """
    return LinearChart(system.independent(q), q, R, S=S, offset=offset, v=v, tolerance=tolerance)


def _complement(R):
    """Orthonormal rows at right angles to those of ``R``."""
    return np.linalg.svd(R)[2][len(R) :] if len(R) else np.eye(R.shape[1])


# --- generalised coordinate partitioning: Spencer §2.3.3 -----------------------------------------


def partition(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    independent: Sequence[int] | None = None,
    rank: int | None = None,
    offset: ArrayLike | None = None,
    tolerance: float = 1e-13,
) -> LinearChart:
    """The chart whose coordinates are some of the coordinates of the system itself.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: a configuration that satisfies the constraints, where the chart begins.
        v: velocity there; zero by default.
        independent: numbers of the velocities that are to be independent. By default pivoting
            chooses: the columns of ``G(q)`` that are farthest from dependent belong to the
            dependent coordinates, and the rest is independent.
        rank: number of independent constraints elsewhere, as for ``tangent``.
        offset: configuration with coordinates zero. By default the zero of a vector space, so that
            coordinates are entries of ``q``; elsewhere ``q``.
        tolerance: of positions.
    """
    system = independent_system(system, q, rank)
    n = system.n
    if independent is None:
        dependent = dependent_columns(system.G(q), None if system.scaling is None else system)
    else:
        _check(independent, system)
        dependent = np.setdiff1d(np.arange(n), independent)
    one = np.eye(n)
    R = np.delete(one, dependent, axis=0) if independent is None else one[list(independent)]
    if offset is None and system.space.flat:
        offset = np.zeros(n)
    return LinearChart(system, q, R, S=one[dependent], offset=offset, v=v, tolerance=tolerance)


def dependent_columns(G, system=None):
    """Columns of ``G`` that span all others, the best by greedy pivoting, in ascending order."""
    scaled = G if system is None else system.scaling.apply(G)
    return independent_rows(scaled.T)


def _check(independent, system):
    """Raise an error where independent variables are not as many different ones as needed."""
    chosen, p = list(independent), system.n - system.m
    if len(set(chosen)) != p or len(chosen) != p or not set(chosen) <= set(range(system.n)):
        raise ShapeError(
            f"independent must be {p} different numbers from 0 to {system.n - 1}, as many as there "
            f"are degrees of freedom; got {chosen}"
        )


# --- tangent coordinates: Spencer §2.3.3, (3.1) --------------------------------------------------


def tangent(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    rank: int | None = None,
    offset: ArrayLike | None = None,
    tolerance: float = 1e-13,
) -> LinearChart:
    """The chart whose rows are an orthonormal basis of the null space of ``G(q)``.

    The best conditioned chart at ``q``: its directions are those of the motion.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: a configuration that satisfies the constraints, where the chart begins.
        v: velocity there; zero by default.
        rank: number of independent constraints elsewhere; with fewer at ``q``, a kinematic
            singularity, SingularError is raised.
        offset: configuration with coordinates zero; ``q`` by default.
        tolerance: of positions.
    """
    system = independent_system(system, q, rank)
    directions = np.linalg.svd(system.G(q))[2]
    R, S = directions[system.m :], directions[: system.m]
    return LinearChart(system, q, R, S=S, offset=offset, v=v, tolerance=tolerance)


class NonlinearChart(AbstractPositionChart):
    """Independent coordinates that ``R(q, y_q) = 0`` defines; ``y_v`` is their derivative.

    Attributes:
        relation: ``R`` and its derivatives.
        periods: of the coordinates, 2π for an angle and infinite by default, (p,): residuals are
            taken modulo them, so that coordinates count turns.
    """

    def __init__(
        self,
        system: ConstrainedSystem,
        q: ArrayLike,
        relation: Relation,
        *,
        y: Any,
        v: ArrayLike | None = None,
        periods: ArrayLike | None = None,
        tolerance: float = 1e-13,
    ):
        super().__init__(system, q, np.zeros(system.n) if v is None else v, tolerance=tolerance)
        self.relation = relation
        self.periods = None if periods is None else np.asarray(periods, dtype=float)
        self._y = np.asarray(y, dtype=float)
        size = np.shape(relation.value(q, self._y))
        if size != (self.p,) or self._y.shape != (self.p,):
            raise ShapeError(
                f"R(q, y) has shape {size} and y {self._y.shape}, expected {(self.p,)}: one for "
                f"each of the {self.p} degrees of freedom that {system.m} independent constraints "
                f"leave"
            )
        self.health = self.condition(q)  # or a SingularError

    def residual(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """``R``, modulo the periods."""
        value = self.relation.value(q, y_q)
        return value if self.periods is None else _nearest_zero(value, self.periods)

    def position_rows(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """Derivative of ``R`` with respect to ``q``."""
        return self.relation.first(q, y_q)

    def parameter_columns(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """Derivative of ``R`` with respect to ``y_q``."""
        return self.relation.second(q, y_q)

    def cross_terms(
        self,
        q: ArrayLike,
        y_q: ArrayLike,
        v: ArrayLike,
        y_v: ArrayLike,
        dq: ArrayLike,
        dy_q: ArrayLike,
    ) -> np.ndarray:
        """Second derivative of ``R`` along two directions."""
        return self.relation.cross(q, y_q, v, y_v, dq, dy_q)

    def position_coordinates(self, q: ArrayLike) -> np.ndarray:
        """``y_q`` near the one that was found last."""

        def step(y):
            value = self.residual(q, y)
            return -np.linalg.solve(self.relation.second(q, y), value), float(np.abs(value).max())

        self._y = newton(step, self._y, tolerance=self.tolerance, what="chart coordinates").x
        return self._y

    def solve(self, y: ArrayLike, guess: tuple | None = None) -> Any:
        """The state with coordinates ``y``, with the null-space basis there."""
        point = super().solve(y, guess)
        self._y = np.asarray(y, dtype=float)[: self.p]
        return point


def nonlinear(
    system: ConstrainedSystem,
    q: ArrayLike,
    R: Callable,
    *,
    y: ArrayLike,
    v: ArrayLike | None = None,
    first: Callable | None = None,
    second: Callable | None = None,
    bias: Callable | None = None,
    model: Model | None = None,
    rank: int | None = None,
    periods: ArrayLike | None = None,
    tolerance: float = 1e-13,
) -> NonlinearChart:
    """A chart whose coordinates a relation ``R(q, y_q) = 0`` defines.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: a configuration that satisfies the constraints, where the chart begins.
        R: function of ``q, y`` written as for ``@kt.kernel``, or of ``model, q, y``; (p,).
        y: guess of the coordinates of ``q``, (p,).
        v: velocity there; zero by default.
        first: derivative of ``R`` with respect to ``q``, for an ``R`` that cannot be traced;
            ``second`` and ``bias`` are then needed as well.
        second: derivative of ``R`` with respect to ``y``.
        bias: function of ``q, y, v, y_v``: second derivative of ``R`` along ``(v, y_v)``.
        model: what ``R`` takes first, if anything.
        rank: number of independent constraints elsewhere, as for ``tangent``.
        periods: of the coordinates, (p,).
        tolerance: of positions.
    """
    relation = (
        derived_relation(R, model) if first is None else given_relation(R, first, second, bias)
    )
    return NonlinearChart(
        independent_system(system, q, rank),
        q,
        relation,
        y=y,
        v=v,
        periods=periods,
        tolerance=tolerance,
    )


def declared(
    system: ConstrainedSystem,
    q: ArrayLike,
    coordinates: Callable,
    *,
    v: ArrayLike | None = None,
    model: Model | None = None,
    rank: int | None = None,
    periods: ArrayLike | None = None,
    tolerance: float = 1e-13,
) -> NonlinearChart:
    """A chart of coordinates ``y_q = r(q)`` that are known to be valid, perhaps everywhere.

    ``charts.verify`` checks this.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: a configuration that satisfies the constraints, where the chart begins.
        coordinates: function of ``q`` written as for ``@kt.kernel``, or of ``model, q``; (p,).
        v: velocity there; zero by default.
        model: what the function takes first, if anything.
        rank: number of independent constraints elsewhere, as for ``tangent``.
        periods: of the coordinates, 2π for an angle, (p,).
        tolerance: of positions.
    """
    if model is None:
        y = coordinates(np.asarray(q, dtype=float))
        relation = derived_relation(lambda q, y: coordinates(q) - y)
    else:
        y = coordinates(model, np.asarray(q, dtype=float))
        relation = derived_relation(lambda model, q, y: coordinates(model, q) - y, model)
    return NonlinearChart(
        independent_system(system, q, rank),
        q,
        relation,
        y=y,
        v=v,
        periods=periods,
        tolerance=tolerance,
    )


def _nearest_zero(value, periods):
    bounded = np.isfinite(periods)
    turns = np.where(bounded, np.round(value / np.where(bounded, periods, 1.0)), 0.0)
    return value - np.where(bounded, turns * periods, 0.0) if np.any(turns) else value
