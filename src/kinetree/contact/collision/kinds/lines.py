"""Where lines are within solids."""

from kinetree.codegen.procedures import procedure, sqrt

NONE = 1e300
"""Where nothing is met."""


@procedure
def entry(low: float, high: float) -> float:
    """First nonnegative ray parameter in an interval of a line inside a solid; ``NONE`` if none."""
    if low > high or high < 0:
        return NONE
    return low if low >= 0 else high


@procedure
def tube(r: float, x: "float[3]", v: "float[3]") -> "(float, float)":
    """Parameter interval of a line inside an infinite cylinder about z; empty if it misses."""
    square = v[0] * v[0] + v[1] * v[1]
    if square == 0.0:
        if x[0] * x[0] + x[1] * x[1] <= r * r:
            return -NONE, NONE
        return NONE, -NONE
    half = (x[0] * v[0] + x[1] * v[1]) / square
    a = x[0] - half * v[0]
    b = x[1] - half * v[1]
    rest = r * r - a * a - b * b
    if rest < 0:
        return NONE, -NONE
    root = sqrt(rest / square)
    return -half - root, -half + root
