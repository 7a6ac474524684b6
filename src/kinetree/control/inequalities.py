"""Inequalities of trajectory optimization at all knots, with slacks, multipliers and a barrier.

Inequalities ``c <= 0`` have slacks and multipliers, ``c + s - e = 0`` and ``s z = mu``. Those of
states may be soft: ``e > 0`` is their violation, at a cost of ``rho e``, with ``e (rho - z) = mu``;
for all others ``e = 0`` and ``rho`` is infinite.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.model import Model
from kinetree.model.limits import position_bounds, position_index

Limits = Literal["model"] | tuple[ArrayLike, ArrayLike] | None


class VariableLimits(NamedTuple):
    """Limits of controls, positions and velocities; entries as the arguments of ``optimize``."""

    effort_limits: Limits = "model"
    position_limits: Limits = "model"
    velocity_limits: Limits = "model"
    limit_penalty: float | None = None


class KnotBounds(NamedTuple):
    """Bounds on the variables ``z = (u, q, qd)`` of a knot: ``sign (z[index] - value) <= 0``.

    Attributes:
        lower, upper: of the controls, (m,) each, infinite if there are none.
        index: of the variable of every bound, (nb,).
        sign: -1 for lower bounds, 1 for upper ones, (nb,).
        value: of the bounds, (nb,).
        select: derivatives of the bounds by the variables, (nb, m + 2 nv).
        position: index in ``q`` of the position of every velocity variable, -1 for none, (nv,).
    """

    lower: np.ndarray
    upper: np.ndarray
    index: np.ndarray
    sign: np.ndarray
    value: np.ndarray
    select: np.ndarray
    position: np.ndarray

    @classmethod
    def of_limits(cls, model: Model, use: str, columns, limits: VariableLimits) -> "KnotBounds":
        """Bounds of the driven forces or controls, and of a model's states, at every knot."""
        m, effort = len(columns), limits.effort_limits
        most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)  # zero: unknown
        most = most[columns] if use == "tau" else np.full(m, np.inf)
        if use == "controls" and effort == "model":
            effort = tuple(np.array([a.control for a in model.actuators], float).T)
        fastest = np.where(model.velocity_limits > 0, model.velocity_limits, np.inf)
        own = position_bounds(model)
        pairs = [
            _limit_pair(effort, (-most, most), m, "effort_limits"),
            _limit_pair(limits.position_limits, own, model.nv, "position_limits"),
            _limit_pair(limits.velocity_limits, (-fastest, fastest), model.nv, "velocity_limits"),
        ]
        lower, upper = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        index = np.concatenate([low, high])
        sign = np.concatenate([-np.ones(len(low)), np.ones(len(high))])
        value = np.concatenate([lower[low], upper[high]])
        select = np.zeros((len(index), len(lower)))
        select[np.arange(len(index)), index] = sign
        return cls(lower[:m], upper[:m], index, sign, value, select, position_index(model))

    def holding(self, steps: int) -> np.ndarray:
        """Mask (steps + 1, bounds): which bounds apply at which knots.

        (steps + 1, nb).
        """
        knots = np.arange(steps + 1)[:, None]
        return np.where(self.index < len(self.lower), knots < steps, knots > 0)


def _limit_pair(given, own, size, name):
    """Lower and upper bounds, (size,) each."""
    if given is None:
        return np.full(size, -np.inf), np.full(size, np.inf)
    if isinstance(given, str):
        if given != "model":
            raise UnknownNameError(
                f"{name} must be 'model', None or a pair (lower, upper), got {given!r}"
            )
        given = own
    lower, upper = (np.broadcast_to(np.asarray(x, float), (size,)) for x in given)
    if not np.all(lower < upper):
        raise ShapeError(f"{name}: lower must be below upper, got {lower} and {upper}")
    return lower, upper


class Inequalities:
    """Bounds of variables, then path constraints, at all knots.

    Attributes:
        mask: which of them hold at which knot, (steps + 1, ni).
        rho: cost of violating one by one unit, infinite for hard ones, (ni,).
        soft: soft ones by knot, (steps + 1, ni).
    """

    def __init__(self, problem: Any, path_count: int, cones: np.ndarray):
        steps, bounds, penalty = problem.steps, problem.bounds, problem.limit_penalty
        self.bounds, self.bound_count = bounds, len(bounds.index)
        before_end = np.repeat(np.arange(steps + 1)[:, None] < steps, path_count, 1)
        before_end = np.concatenate([before_end, cones], 1)
        path_count = before_end.shape[1]
        self.mask = np.concatenate([bounds.holding(steps), before_end], 1)
        of_states = np.concatenate([bounds.index >= len(bounds.lower), np.ones(path_count, bool)])
        self.rho = np.where(of_states, np.inf if penalty is None else penalty, np.inf)
        self.soft = self.mask & np.isfinite(self.rho)
