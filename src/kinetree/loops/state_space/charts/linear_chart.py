"""Coordinates linear in positions, ``y_q = R (q - q_bar)`` — Spencer §2.3.3."""

from collections.abc import Sequence

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
from kinetree.loops.state_space.system import (
    ConstrainedSystem,
)
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
        """Residual ``R (q - q_bar) - y_q`` of the linear coordinates, (p,)."""
        return self.position_coordinates(q) - y_q

    def position_coordinates(self, q: ArrayLike) -> np.ndarray:
        """Linear coordinates ``R (q - q_bar)`` of a configuration, (p,)."""
        return self.R @ self.system.space.difference(self.offset, q)

    def position_rows(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """Derivative (p, n) of the coordinates: ``R`` times that of ``q - q_bar``."""
        space = self.system.space
        return self.R if space.flat else self.R @ space.difference_gradient(self.offset, q)

    def velocity_rows(self, q: ArrayLike, y_q: ArrayLike) -> np.ndarray:
        """Matrix ``R`` (p, n) from velocities to coordinate rates."""
        return self.R

    def parameter_columns(self, q: ArrayLike, y_q: ArrayLike) -> None:
        """None, which stands for minus the identity matrix."""
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
        """Zero vector (p,), since ``R`` is constant."""
        return self._zeros

    def inverse(self, rows: ArrayLike, G: ArrayLike) -> np.ndarray:
        """Inverse of ``[R; G]`` by the m x m matrix ``G S_bar`` — Spencer (2.46)."""
        if rows is not self.R:
            return super().inverse(rows, G)
        p, B = self.p, np.empty((self.system.n, self.system.n))
        B[:, p:] = self.S_bar @ invert(G @ self.S_bar, END)
        B[:, :p] = self.R_bar - B[:, p:] @ (G @ self.R_bar)
        return B

    def dependent_condition(self, q: ArrayLike) -> float:
        """Condition number of ``G S_bar``, which the chart inverts (Spencer Remark 1)."""
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
    """``LinearChart`` of user-chosen coordinates ``y_q = R (q - q_bar)``.

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
    """Orthonormal rows orthogonal to those of ``R``."""
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
    """``LinearChart`` whose coordinates are some of the system's own coordinates.

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
    """Ascending column numbers of ``G`` that span all others, by greedy pivoting."""
    scaled = G if system is None else system.scaling.apply(G)
    return independent_rows(scaled.T)


def _check(independent, system):
    """Raise ShapeError unless the independent variables are as many different ones as needed."""
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
    """``LinearChart`` whose rows are an orthonormal null-space basis of ``G(q)``.

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
