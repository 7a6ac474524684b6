"""Coordinates along the tangent space at one configuration — Spencer §2.3.3, (3.1)."""

import numpy as np

from kinetree.loops.state_space.charts.independence import independent_system
from kinetree.loops.state_space.charts.linear_chart import LinearChart

__all__ = ["tangent"]


def tangent(system, q, v=None, *, rank=None, offset=None, tolerance=1e-13) -> LinearChart:
    """The chart whose rows are an orthonormal basis of the null space of ``G(q)``.

    As good a chart as there is at ``q``: its directions are those of the motion.

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
