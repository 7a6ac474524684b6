"""One chart after another: a new one where the old one becomes poor — Spencer §2.3.3, Remark 1."""

from collections.abc import Callable

import numpy as np

from kinetree.errors import SingularError
from kinetree.loops.state_space.charts.tangent_chart import tangent

__all__ = ["Atlas"]


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

    def __init__(self, system, q, v=None, *, make: Callable = tangent, growth=3.0, **options):
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
        self._make, self._options, self._rank = make, options, None
        self.chart = self._begin(q, np.zeros(system.n) if v is None else v)

    @property
    def is_worn(self) -> bool:
        """Whether the chart should be replaced, by the state that it computed last."""
        return not self.chart.health <= self.growth * self._start

    def follow(self, q, v) -> bool:
        """Look at the state of a finished step; whether there is a new chart from here on.

        Coordinates of the old chart, and what a multistep method remembers of them, are then void:
        ``atlas.chart.coordinates(q, v)`` are the new ones.
        """
        if not self.is_worn:
            return False
        self.chart = self._begin(q, v)
        self.changes += 1
        return True

    def step(self, t, q, v, advance: Callable):
        """One step of a method for vectors, in coordinates of the chart in use.

        Args:
            t: time [s].
            q: configuration, and
            v: velocity, at which the step begins.
            advance: function of ``chart, t, y`` that returns ``y`` at the end of the step, where
                ``chart.rate(t, y)`` is the derivative.

        Returns:
            ``q, v`` at its end. If the chart ends within the step, or becomes poor, the step is
            made again in a chart that begins where the step does.
        """
        try:
            found = self._advanced(t, q, v, advance)
            if not self.is_worn:
                return found
        except SingularError:
            found = None
        if np.array_equal(q, self._where):
            if found is None:
                raise SingularError(
                    f"no chart reaches the end of the step from t = {t:.6g} s; take a shorter "
                    f"step, or pass singularities with kt.loops.SVDForm"
                )
            return found
        self.chart = self._begin(q, v)
        self.changes += 1
        return self._advanced(t, q, v, advance)

    def _advanced(self, t, q, v, advance):
        y = advance(self.chart, t, self.chart.coordinates(q, v))
        return self.chart.state(y)

    def _begin(self, q, v):
        chart = self._make(self.system, q, v, rank=self._rank, **self._options)
        self._rank = chart.system.m
        self._start, self._where = chart.health, np.array(q)
        return chart
