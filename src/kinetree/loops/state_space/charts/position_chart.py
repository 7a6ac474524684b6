"""Charts of positions, whose velocities follow: ``R_q(q, y_q) = 0`` — Spencer (2.25)–(2.28)."""

from abc import abstractmethod
from typing import Any

import numpy as np

from kinetree.loops.state_space import multipliers
from kinetree.loops.state_space.charts.chart import (
    AbstractChart,
    ChartPoint,
    coordinate_weights,
    inverted,
    row_condition,
    row_weights,
)
from kinetree.loops.state_space.invariants import newton, rate_gradient

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
        self.last, self.health = (q, v), np.nan
        self.p = system.n - system.m

    @property
    def size(self) -> int:
        """Number of coordinates, P = 2p."""
        return 2 * self.p

    # --- what a chart of this kind consists of ---------------------------------------------------

    @abstractmethod
    def residual(self, q, y_q) -> Any:
        """``R_q``, (p,)."""

    @abstractmethod
    def position_rows(self, q, y_q) -> Any:
        """Derivative of ``R_q`` along velocities, (p, n)."""

    def velocity_rows(self, q, y_q) -> Any:
        """``V``, (p, n): by default the derivative of ``R_q``."""
        return self.position_rows(q, y_q)

    @abstractmethod
    def parameter_columns(self, q, y_q) -> Any:
        """``D``, the derivative of ``R_q`` with respect to ``y_q``, (p, p); None for minus one."""

    @abstractmethod
    def cross_terms(self, q, y_q, v, y_v, dq, dy_q) -> Any:
        """Rate of ``V v + D y_v`` at constant ``v, y_v`` while ``q, y_q`` move, (p,)."""

    @abstractmethod
    def position_coordinates(self, q) -> Any:
        """``y_q``, (p,)."""

    def inverse(self, rows, G):
        """Inverse of ``[rows; G]``, (n, n)."""
        return inverted(np.concatenate([rows, G]), END)

    # --- the chart -------------------------------------------------------------------------------

    def state(self, y, guess=None):
        """``q, v`` that have the coordinates ``y``: ψ."""
        point = self.solve(y, guess)
        return point.q, point.v

    def solve(self, y, guess=None) -> ChartPoint:
        """The state with coordinates ``y``, with the null-space basis there."""
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
        bias = self.cross_terms(q, y_q, v, y_v, v, _solved(D, self.position_rows(q, y_q) @ v))
        c = -B @ np.concatenate([bias, system.Gdot_v(q, v)])  # with (2.45) for curved coordinates
        self.last, self.health = (q, v), condition
        return ChartPoint(q, v, K, c, condition, found.iterations)

    def coordinates(self, q, v):
        """``y`` of a state, (P,): ψ⁻¹."""
        y_q = self.position_coordinates(q)
        D = self.parameter_columns(q, y_q)
        y_v = _solved(D, self.velocity_rows(q, y_q) @ v)
        self.last = (q, v)
        return np.concatenate([y_q, y_v])

    def rate(self, t, y, *, acceleration=None, guess=None):
        """``dy/dt``, (P,)."""
        point, y_q = self.solve(y, guess), np.asarray(y, dtype=float)[: self.p]
        D = self.parameter_columns(point.q, y_q)
        first = _solved(D, self.position_rows(point.q, y_q) @ point.v)
        if acceleration is None:
            q, v, K, c, *_ = point
            z = multipliers.independent_acceleration(self.system, t, q, v, K, c)
            return np.concatenate([first, z])
        vdot = acceleration(t, point.q, point.v)
        y_v = np.asarray(y, dtype=float)[self.p :]
        bias = self.cross_terms(point.q, y_q, point.v, y_v, point.v, first)
        second = _solved(D, self.velocity_rows(point.q, y_q) @ vdot + bias)
        return np.concatenate([first, second])

    def derivative(self, q, v):
        """``Dψ = [[K, 0], [Kdot, K]]`` at a state of the manifold, (2n, P) — Spencer (2.40)."""
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
        """``Dψ⁻¹`` at a state of the manifold, (P, 2n) — Spencer (2.30)."""
        p, y_q, y_v, D = self._split(q, v)
        V = self.velocity_rows(q, y_q)
        first = _solved(D, self.position_rows(q, y_q))
        moved = zip(np.eye(self.system.n), first.T, strict=True)
        cross = [self.cross_terms(q, y_q, v, y_v, dq, dy_q) for dq, dy_q in moved]
        below = _solved(D, np.reshape(cross, (self.system.n, p)).T)
        return np.block([[first, np.zeros_like(first)], [below, _solved(D, V)]])

    def condition(self, q) -> float:
        """How well the coordinates determine states at ``q``: 1 at best — Spencer (2.28)."""
        rows = self.velocity_rows(q, self.position_coordinates(q))
        A = np.concatenate([rows, self.system.G(q)])
        return row_condition(A, inverted(A, "no chart here"))

    def _split(self, q, v):
        y = self.coordinates(q, v)
        y_q, y_v = y[: self.p], y[self.p :]
        return self.p, y_q, y_v, self.parameter_columns(q, y_q)

    def _position(self, y_q, q):
        system = self.system
        of_g = 1.0 if system.weights is None else np.asarray(system.weights)
        weights = coordinate_weights(system)

        def step(q):
            g, residual, rows = system.g(q), self.residual(q, y_q), self.position_rows(q, y_q)
            B = self.inverse(rows, system.G(q))
            pure = np.concatenate([row_weights(rows, weights) * residual, of_g * g])
            return -B @ np.concatenate([residual, g]), float(np.linalg.norm(pure))

        return newton(
            step, q, move=system.space.move, tolerance=self.tolerance, weights=weights,
            residual_tolerance=self.residual_tolerance, what="the configuration of a chart",
        )  # fmt: skip


def _times(B, D):
    """``-B D``, where None stands for minus one."""
    return B if D is None else -B @ D


def _solved(D, b):
    """``-D⁻¹ b``, where None stands for minus one."""
    return b if D is None else -np.linalg.solve(D, b)
