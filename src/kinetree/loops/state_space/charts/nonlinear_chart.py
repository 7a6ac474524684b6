"""Coordinates given by ``R(q, y_q) = 0``, local or global — Spencer (2.25)-(2.28), §2.3.4.

chart = charts.nonlinear(system, q, lambda q, y: ..., y=[0.3])
chart = charts.declared(system, q, lambda q: np.array([np.arctan2(q[1], q[0])]))
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.loops.state_space.charts.chart import AbstractPositionChart, independent_system
from kinetree.loops.state_space.invariants import newton
from kinetree.loops.state_space.system import (
    ConstrainedSystem,
    Relation,
    derived_relation,
    given_relation,
)
from kinetree.model import Model


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
        """Residual ``R(q, y_q)`` (p,), modulo the coordinates' periods."""
        value = self.relation.value(q, y_q)
        return value if self.periods is None else _nearest_zero(value, self.periods)

    def position_rows(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """Derivative (p, n) of ``R`` with respect to ``q``."""
        return self.relation.first(q, y_q)

    def parameter_columns(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """Derivative (p, p) of ``R`` with respect to ``y_q``."""
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
        """Second derivative (p,) of ``R`` along the motion and a displacement."""
        return self.relation.cross(q, y_q, v, y_v, dq, dy_q)

    def position_coordinates(self, q: ArrayLike) -> np.ndarray:
        """Coordinates ``y_q`` (p,) of a configuration near the last ones, by Newton."""

        def step(y):
            value = self.residual(q, y)
            return -np.linalg.solve(self.relation.second(q, y), value), float(np.abs(value).max())

        self._y = newton(step, self._y, tolerance=self.tolerance, what="chart coordinates").x
        return self._y

    def solve(self, y: ArrayLike, guess: tuple | None = None) -> Any:
        """State with coordinates ``y``, and the null-space basis there."""
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
    """``NonlinearChart`` whose coordinates a relation ``R(q, y_q) = 0`` defines.

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
    """``NonlinearChart`` of explicit coordinates ``y_q = r(q)``, declared valid.

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
    """Residuals reduced to within half a period of zero."""
    bounded = np.isfinite(periods)
    turns = np.where(bounded, np.round(value / np.where(bounded, periods, 1.0)), 0.0)
    return value - np.where(bounded, turns * periods, 0.0) if np.any(turns) else value
