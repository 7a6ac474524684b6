"""Motions of joints that were recorded, between their samples."""

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SimulationError

_CLOSE = 1e-9  # of the duration: how far beyond its ends a motion is still known


class RecordedMotion:
    """A prescribed motion of one joint from samples, with continuous accelerations.

        kt.simulate(m, q0, prescribed={"shoulder": kt.RecordedMotion(t, q)}, duration=1.0)

    Between two times it is the polynomial of degree five that meets positions, velocities and
    accelerations at both. For joints whose velocities are the rates of their positions.

    Args:
        t: increasing times [s], (T,), at least four.
        q: positions at these times [m, rad], (T,) or (T, ..., n).
        qd: velocities [m/s, rad/s] likewise; by default those of a cubic spline through ``q``.
        qdd: accelerations likewise; by default those of a cubic spline through ``qd``.
    """

    def __init__(
        self, t: ArrayLike, q: ArrayLike, qd: ArrayLike | None = None, qdd: ArrayLike | None = None
    ):
        self.t, q = np.array(t, dtype=float), np.array(q, dtype=float)
        if self.t.ndim != 1 or len(self.t) < 4 or q.shape[:1] != self.t.shape:
            raise ShapeError(
                f"a RecordedMotion needs four times (T,) or more, and positions (T, ..., n); got "
                f"{self.t.shape} and {q.shape}"
            )
        if not np.all(np.diff(self.t) > 0):
            k = int(np.argmin(np.diff(self.t) > 0))
            raise ShapeError(
                f"times of a RecordedMotion must increase, got {self.t[k]:g} and then "
                f"{self.t[k + 1]:g}"
            )
        for name, given in (("t", t), ("q", q), ("qd", qd), ("qdd", qdd)):
            if given is not None and not np.all(np.isfinite(given)):
                raise ShapeError(f"{name} of a RecordedMotion must be finite")
        rows = [q]
        for name, given in (("qd", qd), ("qdd", qdd)):
            rows.append(_rates_at(self.t, rows[-1]) if given is None else np.array(given, float))
            if rows[-1].shape != q.shape:
                raise ShapeError(
                    f"{name} of a RecordedMotion must have the shape of q, {q.shape}, got "
                    f"{rows[-1].shape}"
                )
        self.rows = [x[:, None] if x.ndim == 1 else x for x in rows]

    def __call__(self, t):
        """Position, velocity and acceleration at time ``t`` [s]."""
        start, end = self.t[0], self.t[-1]
        if not abs(t - (start + end) / 2) <= (0.5 + _CLOSE) * (end - start):
            raise SimulationError(
                f"a RecordedMotion from t = {start:g} s to {end:g} s does not know where the joint "
                f"is at t = {t:.9g} s; record more, or simulate less"
            )
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2))
        h = self.t[k + 1] - self.t[k]
        return _quintic((t - self.t[k]) / h, h, *(x[k : k + 2] for x in self.rows))


def _quintic(x, h, q, v, a):
    """Quintic Hermite value and two derivatives at fraction ``x`` of an interval."""
    d, dv, da = q[1] - q[0] - h * (v[0] + h / 2 * a[0]), h * (v[1] - v[0] - h * a[0]), a[1] - a[0]
    da = h**2 * da
    c3, c4, c5 = 10 * d - 4 * dv + da / 2, -15 * d + 7 * dv - da, 6 * d - 3 * dv + da / 2
    position = q[0] + x * h * (v[0] + x * h / 2 * a[0]) + x**3 * (c3 + x * (c4 + x * c5))
    velocity = v[0] + x * h * a[0] + x**2 * (3 * c3 + x * (4 * c4 + x * 5 * c5)) / h
    acceleration = a[0] + x * (6 * c3 + x * (12 * c4 + x * 20 * c5)) / h**2
    return position, velocity, acceleration


def _rates_at(t, q):
    """Derivatives at the knots of a cubic spline through the points."""
    h, n = np.diff(t), len(t)
    rise = (np.diff(q, axis=0).T / h).T
    lower, diagonal, upper = h[1:].copy(), 2 * (h[1:] + h[:-1]), h[:-1].copy()
    right = 3 * (rise[:-1].T * h[1:] + rise[1:].T * h[:-1]).T
    rates = np.empty(q.shape)
    rates[0], rates[-1] = _end_rate(t[:4], q[:4]), _end_rate(t[:-5:-1], q[:-5:-1])
    right[0] -= lower[0] * rates[0]
    right[-1] -= upper[-1] * rates[-1]
    for k in range(1, n - 2):  # the matrix is dominated by its diagonal
        factor = lower[k] / diagonal[k - 1]
        diagonal[k] -= factor * upper[k - 1]
        right[k] -= factor * right[k - 1]
    for k in range(n - 3, -1, -1):
        after = upper[k] * rates[k + 2] if k < n - 3 else 0.0
        rates[k + 1] = (right[k] - after) / diagonal[k]
    return rates


def _end_rate(t, q):
    """Derivative at the first of four points, by the cubic through them."""
    x = t - t[0]
    powers = x[1:, None] ** np.arange(1, 4)
    rest = (q[1:] - q[0]).reshape(3, -1)
    return np.linalg.solve(powers, rest)[0].reshape(q.shape[1:])
