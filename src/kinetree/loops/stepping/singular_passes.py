"""Passes close to singular configurations: when a motion was closest to one, and how close."""

from dataclasses import dataclass, field

import numpy as np

from kinetree.algorithms.closed.rank import scaling
from kinetree.integration.events import EventRecord
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.space import space_of
from kinetree.loops.stepping.health import UNHEALTHY
from kinetree.loops.stepping.motion import constraint_health

_NEAR = 1e-3  # of the best health seen: steps whose neighbourhood is looked at
_CLOSE = 1e-4  # of the best health seen, at the closest point: what counts as a pass
_POOR = 50.0  # condition of the equations that a failed step is put down to
_PARTS = 16  # of a stored interval that are looked at, at most


@dataclass(frozen=True)
class SingularPass(EventRecord):
    """The moment at which a mechanism was closest to a singular configuration.

    The motion may have gone through a bifurcation there: what follows is one of several branches.
    Constraints are measured in pure numbers, as by ``kt.loops.singularity``.

    Attributes:
        sine: of the angle between constraints there, in the metric of the inertia matrix, relative
            to the largest in the simulation: zero right in the singular configuration.
        sigma: smallest singular value of the constraints, at ``q``.
        kappa: largest over smallest.
        indicator: ``|u_mᵀ Gdot v|``, as small as ``sigma`` in a benign pass — Spencer (3.7).
    """

    sine: float = field(default=0.0)
    sigma: float = field(default=0.0)
    kappa: float = field(default=np.inf)
    indicator: float = field(default=0.0)

    def __str__(self):
        return (
            f"singular configuration at t = {self.t:.4f} s: smallest singular value "
            f"{self.sigma:.3g}, condition {self.kappa:.3g}, indicator {self.indicator:.3g}; the "
            f"motion may have gone through a bifurcation"
        )


def _measures(model, chosen, q, qd):
    """Smallest singular value, condition and indicator of the constraints at a state."""
    units, c = scaling(model), constraint(model, q, qd)
    K = units.apply(np.asarray(c.K))
    K[:, list(chosen.prescribed)] = 0
    U, s, _ = np.linalg.svd(K)
    last = len(chosen.rows) - 1
    indicator = abs(float(U[:, last] @ (units.rows * np.asarray(c.k))))
    return float(s[last]), float(s[0] / s[last]) if s[last] > 0 else np.inf, indicator


def _pass(model, chosen, t, state, sine, sample) -> SingularPass:
    """``SingularPass`` record of a pass close to a singular configuration."""
    q, qd = state
    sigma, kappa, indicator = _measures(model.at(t), chosen, q, qd)
    return SingularPass(
        float(t),
        "singular configuration",
        q,
        qd,
        q,
        qd,
        sample=tuple(map(int, sample)),
        sine=float(sine),
        sigma=sigma,
        kappa=kappa,
        indicator=indicator,
    )


def near_singularity(model, chosen, q):
    """Message text if a configuration of a failed step is nearly singular, else ""."""
    for state in np.reshape(q, (-1, model.nq)):
        sigma, kappa, _ = _measures(model, chosen, state, np.zeros(model.nv))
        if kappa > _POOR:
            return (
                f". It is close to a singular configuration of the loops (smallest singular value "
                f"{sigma:.2g}, condition {kappa:.2g}), which constraints='projection' passes"
            )
    return ""


class Passes:
    """Minima of the health of the constraint equations, as steps go by.

    Args:
        model: the mechanism.
        chosen: equations that are solved.
    """

    def __init__(self, model, chosen):
        self.model, self.chosen, self.found = model, chosen, []
        self._seen: list = []  # time, state and health at the ends of the last steps

    def is_near(self, checks, judge):
        """Mask of samples so near a singular configuration that steps are examined singly."""
        return checks.health < _NEAR * judge.health

    def look(self, t, q, qd, health, best):
        """Examine the end of a step for a minimum of health, and record passes."""
        self._seen = [seen for seen in self._seen if seen[0] < t][-2:]
        if len(self._seen) == 2:
            (t0, *_, h0), (t1, q1, qd1, h1) = self._seen
            low = (h1 <= h0) & (h1 < health) & (h1 < _NEAR * best)
            for index in map(tuple, np.argwhere(low)):
                at, least = _vertex((t0, h0[index]), (t1, h1[index]), (t, health[index]))
                ratio = max(least, 0.0) / best[index]
                if ratio < _CLOSE:
                    state, sine = (q1[index], qd1[index]), np.sqrt(ratio)
                    self.found.append(_pass(self.model, self.chosen, at, state, sine, index))
        self._seen.append((t, np.array(q), np.array(qd), np.array(health)))


def passes_of(model, chosen, t, q, qd, steps) -> list[SingularPass]:
    """Singular passes in a stored motion, found by interpolation.

    Args:
        model: the mechanism.
        chosen: equations that were solved.
        t: times [s], (n,).
        q: positions, (n, ..., nq).
        qd: velocities, (n, ..., nv).
        steps: number of steps in a stored interval.
    """
    parts = min(steps, _PARTS)
    grid = t[:-1, None] + np.diff(t)[:, None] * (np.arange(parts) / parts)
    grid, found = np.append(grid.ravel(), t[-1]), []
    health_at = constraint_health.compiled(model, 0.0, model.neutral(), chosen=chosen)
    for index in np.ndindex(q.shape[1:-1]):
        motion = t, q[(slice(None), *index)], qd[(slice(None), *index)]

        def at(times, motion=motion):
            states = _between(model, motion, times)
            return np.asarray(health_at.call(times, states[0])), states

        health = np.asarray(health_at.call(t, motion[1])) if parts == 1 else at(grid)[0]
        best, inner = np.max(health), health[1:-1]
        low = (inner <= health[:-2]) & (inner < health[2:]) & (inner < UNHEALTHY * best)
        for k in np.flatnonzero(low) + 1:
            ends = grid[k - 1], grid[k + 1]
            for _ in range(4):
                times = np.linspace(ends[0], ends[1], 65)
                values, states = at(times)
                j = int(np.argmin(values[1:-1])) + 1
                ends = times[j - 1], times[j + 1]
            if values[j] < _CLOSE * best:
                sine = np.sqrt(max(values[j], 0.0) / best)
                state = states[0][j], states[1][j]
                found.append(_pass(model, chosen, times[j], state, sine, index))
    return found


def _between(model, motion, times):
    """States of a stored motion ``t, q, qd`` at given times, by cubic interpolation."""
    t, q, qd = motion
    k = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 2)
    h, x = (t[k + 1] - t[k])[:, None], ((times - t[k]) / (t[k + 1] - t[k]))[:, None]
    space, v0, v1 = space_of(model), h * qd[k], h * qd[k + 1]
    d = space.difference(q[k], q[k + 1])
    u = x * (v0 + x * (3 * d - 2 * v0 - v1 + x * (v0 + v1 - 2 * d)))
    v = v0 + x * (2 * (3 * d - 2 * v0 - v1) + 3 * x * (v0 + v1 - 2 * d))
    return space.move(q[k], u), v / h


def _vertex(a, b, c):
    """Abscissa and value of the minimum of a parabola through three points."""
    (x0, y0), (x1, y1), (x2, y2) = a, b, c
    s01, s12 = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    bend = (s12 - s01) / (x2 - x0)
    if not bend > 0 or not 0.5 < (x2 - x1) / (x1 - x0) < 2:  # others lie between
        return x1, y1
    x = (x0 + x1) / 2 - s01 / (2 * bend)
    x = min(max(x, x0), x2)
    return x, y0 + (x - x0) * (s01 + bend * (x - x1))
