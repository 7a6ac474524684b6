"""Where a function of time changes its sign inside a step.

A step is sampled in several places, near its ends too, so that a function that comes back to the
sign it began with is seen; where it comes close to zero between two of these, its extremum is
sought. What can still escape has two extrema within an eighth of the step.
"""

import numpy as np

FRACTIONS = np.array([0, 1e-3, *np.arange(1, 8) / 8, 1 - 1e-3, 1])
"""Where a step is looked at."""
FRESH = np.array([0, *10.0 ** np.arange(-9, -2), *np.arange(1, 8) / 8, 1 - 1e-3, 1])
"""Where a step that begins with an event is looked at."""

_ROUNDS = 5  # of the search for an extremum, each four times as close
_ITERATIONS, _SLOW = 100, 4  # at most; that hardly help, before an interval is halved


def may_cross(values) -> np.ndarray:
    """Mask of functions that may cross zero, from values at increasing times, (n, ...)."""
    low, high = values.min(axis=0), values.max(axis=0)
    size = np.abs(values)
    dips = (size[1:-1] < size[:-2]) & (size[1:-1] <= size[2:])
    return ((low <= 0) & (high >= 0) & (low < high)) | dips.any(axis=0)


def bracket(evaluate, theta, values, direction, fresh):
    """First interval in which a function crosses zero, or None.

    Args:
        evaluate: the function, of fractions of a step, (n,).
        theta: increasing fractions, the first 0, (n,).
        values: of the function there, (n,).
        direction: 1 for upward crossings, -1 for downward ones, 0 for both.
        fresh: whether it has just crossed at the start, so that its value there is noise.

    Returns:
        Ends of the interval, and values there.
    """
    theta, values = _with_extrema(evaluate, theta, np.array(values, dtype=float))
    if fresh:
        values[0] = 0.0
    last = None
    for x, g in zip(theta, values, strict=True):
        if last is not None and last[1] * g <= 0 and direction * (g or -last[1]) >= 0:
            return (*last, x, g)
        last = (x, g) if g != 0 else None  # from zero there is nothing to cross
    return None


def _with_extrema(evaluate, theta, values):
    """Sample points and values, with points added where the function nearly reaches zero."""
    added = []
    for j in range(1, len(theta) - 1):
        sign = np.sign(values[j])
        g = sign * values[j - 1 : j + 2]
        if not (0 < g[1] <= g[0] and g[1] <= g[2]):
            continue
        if _vertex(theta[j - 1 : j + 2], g) > g[1] / 2:
            continue
        x, value = _lowest(lambda x, s=sign: s * evaluate(x), theta[j - 1], theta[j + 1])
        if value < 0:
            added.append((x, sign * value))
    if not added:
        return theta, values
    x = np.concatenate([theta, [a[0] for a in added]])
    g = np.concatenate([values, [a[1] for a in added]])
    order = np.argsort(x, kind="stable")
    return x[order], g[order]


def _vertex(x, g):
    """Minimum value of the parabola through three points."""
    rate = np.diff(g) / np.diff(x)
    curvature = (rate[1] - rate[0]) / (x[2] - x[0])
    if curvature <= 0:
        return g[1]
    middle = rate[0] + curvature * (x[1] - x[0])  # rate at the middle point
    return g[1] - middle**2 / (4 * curvature)


def _lowest(evaluate, a, b):
    """Minimum of a function between ``a`` and ``b``, or its first negative point."""
    for _ in range(_ROUNDS):
        x = np.linspace(a, b, 9)
        g = evaluate(x)
        j = int(np.argmin(g))
        if g[j] < 0:
            break
        a, b = x[max(j - 1, 0)], x[min(j + 1, 8)]
    return x[j], g[j]


def root(function, a, g_a, b, g_b, tolerance):
    """Zero of a function between ``a`` and ``b``, on the far side (Illinois method).

    By the Illinois variant of regula falsi, which keeps zero between its ends; bisection where
    that is slow.

    Args:
        function: of a number.
        a: one end.
        g_a: the value there.
        b: the other end.
        g_b: the value there, of the other sign, or zero.
        tolerance: width of the last interval.
    """
    weight_a = weight_b = 1.0
    width, slow, side = b - a, 0, None
    for _ in range(_ITERATIONS):
        if b - a <= tolerance:
            break
        if slow >= _SLOW:
            x, slow = (a + b) / 2, _SLOW - 2
        else:  # where g_b is zero, look just in front of it
            x = b - (b - a) * weight_b * g_b / (weight_b * g_b - weight_a * g_a)
        # Never so close to an end that the interval shrinks from one side alone.
        margin = min(tolerance / 2, (b - a) / 4)
        x = min(max(x, a + margin), b - margin)
        g, before = function(x), side
        side = bool(g * g_a > 0)
        flat = g == (g_a if side else g_b)  # constant there: only halves say where it changes
        if side:
            a, g_a, weight_a = x, g, 1.0
            weight_b /= 2 if before is side else 1  # the far end has stayed: take it for closer
        else:
            b, g_b, weight_b = x, g, 1.0
            weight_a /= 2 if before is side else 1
        width, slow = b - a, slow + 1 if b - a > width / 4 else 0
        slow = _SLOW if flat else slow
    return b
