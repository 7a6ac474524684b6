"""Some coordinates determine the others: generalised coordinate partitioning — Spencer §2.3.3."""

import numpy as np

from kinetree.errors import ShapeError
from kinetree.loops.kinematics.rank import independent_rows
from kinetree.loops.state_space.charts.independence import independent_system
from kinetree.loops.state_space.charts.linear_chart import LinearChart

__all__ = ["dependent_columns", "partition"]


def partition(
    system, q, v=None, *, independent=None, rank=None, offset=None, tolerance=1e-13
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
    chosen, p = list(independent), system.n - system.m
    if len(set(chosen)) != p or len(chosen) != p or not set(chosen) <= set(range(system.n)):
        raise ShapeError(
            f"independent must be {p} different numbers from 0 to {system.n - 1}, as many as there "
            f"are freedoms; got {chosen}"
        )
