"""One chart after another: a new one where the old one becomes poor — Spencer §2.3.3, Remark 1.

Motions of other systems than models on charts are a text: ``kinetree.textbook.chart_motion``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import SingularError
from kinetree.loops.state_space.charts.linear_chart import tangent
from kinetree.loops.state_space.system import ConstrainedSystem


class Atlas:
    """Charts along a motion.

    A chart is replaced when the condition of its coordinates has grown beyond ``growth`` times
    what it was where the chart began. A new chart near a kinematic singularity is poor from the
    start; measuring its growth from there keeps it from being replaced at every step.

    Attributes:
        chart: the chart in use.
        changes: how often it was replaced.
        growth: condition, relative to that at the beginning of a chart, at which it ends.
    """

    def __init__(
        self,
        system: ConstrainedSystem,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        make: Callable = tangent,
        growth: float = 3.0,
        **options: Any,
    ):
        """Begin at a state.

        Args:
            system: the constrained system.
            q: a configuration that satisfies the constraints.
            v: velocity there; zero by default.
            make: what makes charts: ``charts.tangent``, ``charts.partition``, or a function of
                ``system, q, v`` and ``rank``.
            growth: see above.
            **options: for ``make``.
        """
        self.system, self.growth, self.changes = system, growth, 0
        self._make, self._options = make, options
        self._rank: Any = None  # until the first chart has counted
        self.chart = self._begin(q, np.zeros(system.n) if v is None else v)

    @property
    def is_worn(self) -> bool:
        """Whether the chart has become so ill-conditioned that it should be replaced."""
        return not self.chart.health <= self.growth * self._start

    def follow(self, q: ArrayLike, v: ArrayLike) -> bool:
        """Replace the chart after a step if it is worn; whether it was replaced.

        Coordinates of the old chart, including the history of a multistep method, are then invalid:
        ``atlas.chart.coordinates(q, v)`` are the new ones.
        """
        if not self.is_worn:
            return False
        self.chart = self._begin(q, v)
        self.changes += 1
        return True

    def step(self, t: float, q: ArrayLike, v: ArrayLike, advance: Callable) -> tuple[Array, Array]:
        """State after one step of a vector integrator in coordinates of the chart.

        Args:
            t: time [s].
            q: configuration at which the step begins.
            v: velocity at which it begins.
            advance: function of ``chart, t, y`` that returns ``y`` at the end of the step, where
                ``chart.rate(t, y)`` is the derivative.

        Returns:
            ``q, v`` at its end. If the chart ends within the step, or becomes poor, the step is
            made again in a chart that begins where the step does.
        """
        found = None
        try:
            found = self._advance(t, q, v, advance)
            if not self.is_worn:
                return found
        except SingularError:
            pass
        if not np.array_equal(q, self._where):
            self.chart = self._begin(q, v)
            self.changes += 1
            try:
                return self._advance(t, q, v, advance)
            except SingularError:
                found = None
        if found is None:
            sigma = np.linalg.svd(self.system.G(q), compute_uv=False)[: self.chart.system.m]
            raise SingularError(
                f"no chart reaches the end of the step from t = {t:.6g} s, where the condition of "
                f"the constraints is {sigma[0] / sigma[-1]:.3g}; take a shorter step, "
                f"or pass singularities with kt.loops.SVDForm or constraints='projection'"
            )
        return found

    def _advance(self, t, q, v, advance):
        """State after a step in the coordinates of the present chart."""
        y = advance(self.chart, t, self.chart.coordinates(q, v))
        return self.chart.state(y)

    def _begin(self, q, v):
        """New chart at a state, whose condition is the reference for later ones."""
        chart = self._make(self.system, q, v, rank=self._rank, **self._options)
        self._rank = chart.system.m
        self._start, self._where = chart.health, np.array(q)
        return chart
