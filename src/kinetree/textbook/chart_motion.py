"""Motions of constrained systems on charts, by methods for vectors — Spencer §1.1, §2.2.2.

Every stage gets its state from the chart, so that all satisfy the constraints. The methods
themselves are ordinary ones. Multistep methods begin anew in every chart, since old rates are in
coordinates of the old one. ``kt.simulate(constraints="charts")`` moves models in this way.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.loops.state_space.charts.atlas import Atlas
from kinetree.loops.state_space.charts.linear_chart import tangent
from kinetree.loops.state_space.invariants import newton
from kinetree.loops.state_space.system import ConstrainedSystem

_ADAMS = np.array([55, -59, 37, -9]) / 24  # of order 4, latest first


class ChartMotion(NamedTuple):
    """A motion on charts; entry 0 is the start."""

    t: np.ndarray
    """Times [s], (steps,)."""
    q: np.ndarray
    """Configurations, (steps, nq)."""
    v: np.ndarray
    """Velocities, (steps, n)."""
    changes: int
    """How often the chart was replaced."""


def integrate_on_charts(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    step: float,
    *,
    method: str = "runge-kutta",
    make: Callable = tangent,
    growth: float = 3.0,
    **options: Any,
) -> ChartMotion:
    """Motion of a constrained system on charts, replaced where they end.

    Args:
        system: the constrained system.
        q: configuration at the start, consistent with the constraints.
        v: velocity at the start, likewise.
        duration: how long [s].
        step: of the integration [s]; the last one is shorter where it must be.
        method: ``"runge-kutta"``, the classical one, and ``"adams-bashforth"``, four steps, both
            explicit and of order 4; or implicit, for stiff systems: ``"backward-euler"``,
            ``"trapezoid"``, ``"bdf2"`` and ``"bdf3"``, backward differences, of orders 1, 2, 2
            and 3, solved with the linear model of the chart.
        make: what makes charts, as for ``Atlas``.
        growth: of the condition at which a chart ends, as for ``Atlas``.
        **options: for ``make``.
    """
    if method not in _METHODS:
        raise UnknownNameError(f"no method is called {method!r}; there are {list(_METHODS)}")
    atlas, advance = Atlas(system, q, v, make=make, growth=growth, **options), _METHODS[method]()
    times = instants(duration, step)
    states = [(np.asarray(q, dtype=float), np.asarray(v, dtype=float))]
    for t, end in pairwise(times):
        states.append(
            atlas.step(t, *states[-1], lambda chart, t, y, h=end - t: advance(chart, t, y, h))
        )
    q, v = (np.array(part) for part in zip(*states, strict=True))
    return ChartMotion(times, q, v, atlas.changes)


class _RungeKutta:
    def __call__(self, chart, t, y, h):
        return runge_kutta_step(chart.rate, t, y, h)


class _AdamsBashforth:
    """Four steps of equal length; others are made by the Runge-Kutta method.

    So are the first ones in every chart, and a last one that is shorter.
    """

    def __init__(self):
        self._chart, self._rates, self._time, self._step = None, [], None, None

    def __call__(self, chart, t, y, h):
        if chart is not self._chart or abs(h - self._step) > 1e-6 * h:
            self._chart, self._rates, self._step = chart, [], h
        elif self._time == t:
            self._rates = self._rates[1:]  # the same step again
        self._time, self._rates = t, [chart.rate(t, y), *self._rates[:3]]
        if len(self._rates) < 4:
            return runge_kutta_step(chart.rate, t, y, h)
        return y + h * (_ADAMS @ np.array(self._rates))


class _Implicit:
    """``z = known + weight f(z)`` by Newton's method with the linear model of the chart.

    The iteration matrix ``1 - weight A`` is that of the iterate, which converges quadratically —
    Spencer §4.6.
    """

    def solve(self, chart, t, z, known, weight):
        """Chart coordinates after an implicit step, by Newton's method."""
        one = np.eye(len(z))

        def step(z):
            linear = chart.linearize(t, z)
            defect = z - known - weight * linear.rate
            return -np.linalg.solve(one - weight * linear.A, defect), float(np.linalg.norm(defect))

        return newton(step, z, tolerance=1e-12, what="an implicit step").x


class _OneStep(_Implicit):
    """``theta`` of the rate at the end of the step, the rest of that at its beginning."""

    def __init__(self, theta):
        self.theta = theta

    def __call__(self, chart, t, y, h):
        f = chart.rate(t, y)
        return self.solve(chart, t + h, y + h * f, y + (1 - self.theta) * h * f, self.theta * h)


class _BackwardDifferences(_Implicit):
    """``z = Σ a_k y_k + b h f(z)`` from steps of equal length in one chart.

    The first ones are made by the trapezoid rule, and so is a last one that is shorter.
    """

    def __init__(self, past, weight):
        self.past, self.weight, self._start = np.array(past), weight, _OneStep(0.5)
        self._chart, self._states, self._time, self._step = None, [], None, None

    def __call__(self, chart, t, y, h):
        if chart is not self._chart or abs(h - self._step) > 1e-6 * h:
            self._chart, self._states, self._step = chart, [], h
        elif self._time == t:
            self._states = self._states[1:]  # the same step again
        self._time, self._states = t, [y, *self._states[: len(self.past) - 1]]
        if len(self._states) < len(self.past):
            return self._start(chart, t, y, h)
        guess = 2 * y - self._states[1]
        return self.solve(chart, t + h, guess, self.past @ np.array(self._states), self.weight * h)


_METHODS = {
    "runge-kutta": _RungeKutta, "adams-bashforth": _AdamsBashforth,
    "trapezoid": lambda: _OneStep(0.5), "backward-euler": lambda: _OneStep(1.0),
    "bdf2": lambda: _BackwardDifferences([4 / 3, -1 / 3], 2 / 3),
    "bdf3": lambda: _BackwardDifferences([18 / 11, -9 / 11, 2 / 11], 6 / 11),
}  # fmt: skip


# --- times and steps of motions of every kind -----------------------------------------------------


def instants(duration, step) -> np.ndarray:
    """Times from 0 to ``duration`` in equal steps, the last possibly shorter [s]."""
    if not (0 <= duration < np.inf and 0 < step < np.inf):
        raise ShapeError(
            f"a motion needs a duration [s] that is not negative and a step [s] above zero, got "
            f"duration = {duration} and step = {step}"
        )
    count = math.ceil(duration / step - 1e-6)  # of a step: rounding errors make no step
    return np.append(step * np.arange(count), float(duration))


def runge_kutta_step(rate: Callable, t, x, h, first=None):
    """State after one step of the classical fourth-order Runge-Kutta method."""
    k1 = rate(t, x) if first is None else first
    k2 = rate(t + h / 2, x + h / 2 * k1)
    k3 = rate(t + h / 2, x + h / 2 * k2)
    k4 = rate(t + h, x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
