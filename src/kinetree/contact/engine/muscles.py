"""Muscles in compiled steps: the formulas of ``algorithms.muscles`` as procedures."""

from math import exp, log

from kinetree.codegen.procedures import procedure

NUMBERS = ("force", "optimal_length", "lmin", "lmax", "vmax", "fpmax", "fvmax")
"""Of a muscle in the tables; before them its smallest length and ``range[0]``."""


def numbers_of(muscle) -> list[float]:
    """Parameters of a muscle as a list of nine floats; zeros for None."""
    if muscle is None:
        return [0.0] * (2 + len(NUMBERS))
    first = [muscle.length_range[0], muscle.range[0]]
    return [float(x) for x in (*first, *(getattr(muscle, name) for name in NUMBERS))]


@procedure
def force_length(L: float, low: float, high: float) -> "(float, float)":
    """Active force-length factor of a muscle at length ``L``, and its slope."""
    if low > L or high <= L:
        return 0.0, 0.0
    if L < 1.0:
        up = (1.0 - low) / 2.0
        if low + up > L:
            return (L - low) * (L - low) / (2.0 * up * up), (L - low) / (up * up)
        return 1.0 - (1.0 - L) * (1.0 - L) / (2.0 * up * up), (1.0 - L) / (up * up)
    down = (high - 1.0) / 2.0
    if high - down > L:
        return 1.0 - (L - 1.0) * (L - 1.0) / (2.0 * down * down), (1.0 - L) / (down * down)
    return (high - L) * (high - L) / (2.0 * down * down), (L - high) / (down * down)


@procedure
def force_velocity(V: float, most: float) -> "(float, float)":
    """Force-velocity factor of a muscle at velocity ``V``, and its slope."""
    y = most - 1.0
    if V < -1.0:
        return 0.0, 0.0
    if V < 0.0:
        return (V + 1.0) * (V + 1.0), 2.0 * (V + 1.0)
    if y > V:
        return most - (y - V) * (y - V) / y, 2.0 * (y - V) / y
    return most, 0.0


@procedure
def passive_force_length(L: float, high: float, most: float) -> "(float, float)":
    """Passive force-length factor of a muscle at length ``L``, and its slope."""
    b = (high - 1.0) / 2.0
    x = (L - 1.0) / b
    if L < 1.0:
        return 0.0, 0.0
    if 1.0 + b > L:
        return most * x * x / 2.0, most * x / b
    return most * (x - 0.5), most / b


@procedure
def muscle_force(
    m: "float[9]", length: float, velocity: float, u: float
) -> "(float, float, float)":
    """Force of a muscle at activation ``u``, and its derivatives by length and velocity."""
    F = m[2]
    L0 = m[3]
    L = m[1] + (length - m[0]) / L0
    fl, dfl = force_length(L, m[4], m[5])
    fv, dfv = force_velocity(velocity / (L0 * m[6]), m[8])
    fp, dfp = passive_force_length(L, m[5], m[7])
    by_length = -F / L0 * (dfl * fv * u + dfp)
    return -F * (fl * fv * u + fp), by_length, -F / (L0 * m[6]) * fl * dfv * u


@procedure
def muscle_activation(u: float, a: float, rise: float, fall: float, h: float) -> float:
    """Activation of a muscle after ``h`` seconds with constant control ``u``."""
    u = min(max(u, 0.0), 1.0)
    a = min(max(a, 0.0), 1.0)
    k = 0.5 + 1.5 * u
    if a < u:
        beta = 1.5 * (u - a) / k
        theta = min(h / (rise * k), 60.0)
        r = exp(-theta - beta)
        for _ in range(6):
            r -= (log(r) - beta * (r - 1.0) + theta) * r / (1.0 - beta * r)
        return u - (u - a) * r
    E = exp(-k * h / fall)
    return u + k * (a - u) * E / (k + 1.5 * (a - u) * (1.0 - E))
