"""Muscles: force by length, velocity and activation; and how activation follows a control.

The curves are those of MuJoCo, which are made of parabolas; each function returns value and slope.
The activation follows Millard et al. (2013): ``a' = (u - a) / τ`` with

    τ = T (1/2 + 3/2 a) where it rises,      τ = T / (1/2 + 3/2 a) where it falls.

While ``u`` is held both have a closed form, the first in terms of Lambert's function.
"""

from typing import Any

from kinetree.spatial.ops import exp, less, log, select

_ROUNDS = 6  # of Newton's method for the logarithm, which converges from one side
_LONG = 60.0  # time constants, after which nothing is left


def muscle_force(muscle: Any, length: Any, velocity: Any, u: Any) -> tuple[Any, Any, Any]:
    """Force of a muscle, and its derivatives by length and velocity of the actuator."""
    L0, F = muscle.optimal_length, muscle.force
    L = muscle.range[0] + (length - muscle.length_range[0]) / L0
    (fl, dfl), (fv, dfv), (fp, dfp) = (
        force_length(muscle, L),
        force_velocity(muscle, velocity / (L0 * muscle.vmax)),
        passive_force_length(muscle, L),
    )
    by_length = -F / L0 * (dfl * fv * u + dfp)
    return -F * (fl * fv * u + fp), by_length, -F / (L0 * muscle.vmax) * fl * dfv * u


def force_length(muscle, L):
    """Active force-length factor of a muscle and its derivative: four parabolas, 1 at optimum."""
    low, high, one = muscle.lmin, muscle.lmax, 1.0 + 0 * L
    up, down = (1 - low) / 2, (high - 1) / 2
    x, y = (L - low) / up, (high - L) / down
    value, slope = 1 - (1 - L) * (1 - L) / (2 * up * up), (1 - L) / (up * up)
    value, slope = _where(L, low + up, (x * x / 2, x / up), (value, slope))
    value, slope = _where(L, low, (0 * L, 0 * L), (value, slope))
    fall = 1 - (L - 1) * (L - 1) / (2 * down * down), (1 - L) / (down * down)
    fall = _where(L, high - down, fall, (y * y / 2, -y / down))
    fall = _where(L, high, fall, (0 * L, 0 * L))
    return _where(L, one, (value, slope), fall)


def force_velocity(muscle, V):
    """Force-velocity factor of a muscle and its derivative; ``V`` < 0 where it shortens."""
    y = muscle.fvmax - 1
    pushed = _where(V, 0.0, ((V + 1) * (V + 1), 2 * (V + 1)), (muscle.fvmax + 0 * V, 0 * V))
    if y > 0:
        stretched = muscle.fvmax - (y - V) * (y - V) / y, 2 * (y - V) / y
        stretched = _where(V, y, stretched, (muscle.fvmax + 0 * V, 0 * V))
        pushed = _where(V, 0.0, ((V + 1) * (V + 1), 2 * (V + 1)), stretched)
    return _where(V, -1.0, (0 * V, 0 * V), pushed)


def passive_force_length(muscle, L):
    """Passive force-length factor of a muscle and its derivative: a parabola, then a line."""
    b = (muscle.lmax - 1) / 2
    x, most = (L - 1) / b, muscle.fpmax
    beyond = _where(L, 1 + b, (most * x * x / 2, most * x / b), (most * (x - 0.5), most / b))
    return _where(L, 1.0, (0 * L, 0 * L), beyond)


def _where(x, bound, below, above):
    """Value and derivative of one curve below a bound, and of another above."""
    return tuple(select(less(x, bound), a, b) for a, b in zip(below, above, strict=True))


def muscle_activation(u: Any, a: Any, times: tuple, time: Any) -> Any:
    """Activation after a time with a held control; control and activation are within 0 and 1.

    Rising, ``e = u - a`` obeys ``k ln(e/e_0) = 3/2 (e - e_0) - t/T`` with ``k = 1/2 + 3/2 u``;
    falling, ``x = a - u`` obeys a logistic equation.
    """
    u, a = _unit(u), _unit(a)
    k, rises = 0.5 + 1.5 * u, less(a, u)
    e = select(rises, u - a, 0 * a)
    beta, theta = 1.5 * e / k, time / (times[0] * k)
    theta = select(less(theta, _LONG), theta, _LONG + 0 * theta)
    r = exp(-theta - beta)
    for _ in range(_ROUNDS):
        f = log(r) - beta * (r - 1) + theta
        r = r - f * r / (1 - beta * r)
    x = select(rises, 0 * a, a - u)
    E = exp(-k * time / times[1])
    return u - e * r + k * x * E / (k + 1.5 * x * (1 - E))


def _unit(x):
    """Number clipped to the range from 0 to 1."""
    x = select(less(x, 0), 0 * x, x)
    return select(less(1, x), 1 + 0 * x, x)
