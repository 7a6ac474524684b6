"""Verification of coordinates by a scan of the manifold — Spencer §2.3.4, (2.21), (2.22)."""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SingularError
from kinetree.loops.state_space.charts.chart import (
    AbstractChart,
    AbstractPositionChart,
    row_condition,
)
from kinetree.model.arrays import as_numbers
from kinetree.textbook.system_invariants import project_position


class Verification(NamedTuple):
    """Result of ``charts.verify``."""

    valid: bool
    """Whether the coordinates held at all configurations, and between them."""
    condition: float
    """The worst condition, 1 at best."""
    worst: np.ndarray
    """The configuration where that is."""
    failures: list
    """Configurations at which the coordinates fail, as far as found."""
    scanned: int
    """Number of configurations."""


def verify(
    chart: AbstractChart,
    q: ArrayLike,
    *,
    samples: int = 400,
    step: float = 0.3,
    limit: float = 1e6,
    seed: int = 0,
) -> Verification:
    """Random-walk test of a chart's coordinates over the constraint manifold.

    A scan proves failure only. Between two configurations of different orientation, by the sign of
    the determinant of ``[D1R; G]``, there is one where the coordinates fail; it is found by
    bisection.

    Args:
        chart: a chart of positions.
        q: where the walk begins.
        samples: number of configurations.
        step: length of the steps, in the units of ``q``.
        limit: of the condition.
        seed: of the random directions.
    """
    if not isinstance(chart, AbstractPositionChart):
        raise ShapeError(
            f"charts.verify walks over configurations and needs a chart of positions, such as "
            f"charts.tangent(system, q), got a {type(chart).__name__}"
        )
    rng, system, q = np.random.default_rng(seed), chart.system, as_numbers(q, "q")
    worst, where, failures = 1.0, q, []
    sign, condition = _test(chart, q)
    for _ in range(samples):
        before, q_before, direction = sign, q, _direction(system, q, rng)
        q = _along(system, q_before, direction * step)
        sign, condition = _test(chart, q)
        if condition > worst:
            worst, where = condition, q
        if sign != before or condition > limit:
            found = _bisect(chart, q_before, direction, step, before) if sign != before else q
            failures.append(found)
            worst, where = np.inf, found
    return Verification(not failures, worst, where, failures, samples)


def _test(chart, q):
    """Orientation (determinant sign) and condition of the coordinates at ``q``."""
    try:
        y = chart.position_coordinates(q)
        A = np.concatenate([chart.position_rows(q, y), chart.system.G(q)])
        D = chart.parameter_columns(q, y)
        D = -np.eye(chart.p) if D is None else D
        conditions = [row_condition(a, np.linalg.inv(a)) for a in (A, D)]
    except (SingularError, np.linalg.LinAlgError):
        return 0.0, np.inf
    return np.linalg.slogdet(A)[0] * np.linalg.slogdet(D)[0], max(conditions)


def _direction(system, q, rng):
    """Random unit velocity that the constraints allow at ``q``."""
    u = rng.standard_normal(system.n)
    u = u - np.linalg.pinv(system.G(q)) @ (system.G(q) @ u)
    return u / np.linalg.norm(u)


def _along(system, q, u):
    """Configuration displaced by ``u`` from ``q``, projected onto the constraints."""
    return project_position(system, system.space.move(q, u))


def _bisect(chart, q, direction, step, sign):
    """Last configuration along a direction with orientation ``sign``, by bisection."""
    low, high = 0.0, step
    for _ in range(50):
        middle = (low + high) / 2
        here, _ = _test(chart, _along(chart.system, q, direction * middle))
        low, high = (middle, high) if here == sign else (low, middle)
    return _along(chart.system, q, direction * low)
