"""Steps that are halved where a mechanism is close to a singular configuration.

Close to one, constraint equations almost depend on each other, and the constrained accelerations
of states that are off by the error of a step are off by much. A step that shows it, by the energy
that it loses or by the kick that takes its velocities back to the constraints, is taken again in
two halves, and so on. Where halves are not better than the whole, the whole is kept: a step right
across a singular configuration is better than one that ends in it.
"""

from typing import Any

import numpy as np

from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.closed.scaling import typical_length
from kinetree.loops.stepping.projected import Checks

UNHEALTHY = 0.1
"""Health, relative to the best seen, below which steps are looked at closely."""
_ENERGY, _KICK = 1e-9, 1e-12  # of the energy at play, that a step may lose or be kicked by
_TIMES = 10.0  # what steps close to a singularity may lose, in terms of what others do
_MEMORY = 0.01
_DEPTH, _BUDGET = 18, 2000


class Judge:
    """Measures of what is usual in a simulation, and hence of what is suspicious.

    Args:
        model: the mechanism.
        health: of the constraint equations at the start, or next to it; (...) for a batch.
    """

    def __init__(self, model, health):
        mass = sum(float(b.inertia.mass) for b in model.bodies)
        weight = mass * float(np.linalg.norm(np.asarray(model.gravity, dtype=float)))
        length = typical_length(model)
        self.closed = 2e-13 * scaling(model).rounding
        self.health = np.asarray(health, dtype=float)  # the best seen
        self.energy = np.full(self.health.shape, weight * length)  # at play
        # on average, in good health
        self.lost: Any = np.zeros(self.health.shape)
        self.kick: Any = np.zeros(self.health.shape)

    def is_unhealthy(self, checks: Checks):
        """Mask (..., batch) of steps that end close to a singular configuration."""
        return ~(checks.health >= UNHEALTHY * self.health)

    def badness(self, checks: Checks, index: Any = ...):
        """Largest ratio of a step's energy loss, kick and loop error to tolerance, (..., batch)."""
        tiny = np.finfo(float).tiny
        lost = _ENERGY * self.energy[index] + _TIMES * self.lost[index] + tiny
        kick = _KICK * self.energy[index] + _TIMES * self.kick[index] + tiny
        bad = np.maximum(np.abs(checks.lost) / lost, checks.kick / kick)
        bad = np.maximum(bad, checks.position / self.closed)
        return np.where(np.isfinite(bad), bad, np.inf)

    def learn(self, checks: Checks):
        """Update typical energies and errors from accepted steps, (n, batch)."""
        finite = np.where(np.isfinite(checks.kinetic), checks.kinetic, 0.0)
        self.energy = np.maximum(self.energy, finite.max(axis=0))
        self.health = np.maximum(self.health, checks.health.max(axis=0))
        usual = ~self.is_unhealthy(checks)
        part = 1 - (1 - _MEMORY) ** usual.sum(axis=0)
        for name in ("lost", "kick"):
            values = np.where(usual, np.abs(getattr(checks, name)), 0.0)
            mean = values.sum(axis=0) / np.maximum(usual.sum(axis=0), 1)
            setattr(self, name, (1 - part) * getattr(self, name) + part * mean)


def refine_step(step, badness, t, h, state, tau):
    """Step of one sample, halved recursively while that reduces its ``badness`` (error ratio).

    Args:
        step: function ``(t, h, q, qd, tau)`` to a ``Stepped`` with checks.
        badness: function of checks, see ``Judge``.
        t: time at the start [s].
        h: length of the step [s].
        state: ``q, qd`` at the start.
        tau: joint forces.

    Returns:
        ``q, qd, work`` at the end, the checks of the last part, and the number of steps taken.
    """
    taken = 0

    def whole(t, h, state):
        nonlocal taken
        taken += 1
        after = step(t, h, *state, tau)
        return (*after[:3], after.checks), float(badness(Checks.of(after.checks)))

    def halve(t, h, state, result, bad, depth):
        if bad <= 1 or depth >= _DEPTH or taken >= _BUDGET:
            return result, bad
        worst, work, h, half = 0.0, 0.0, h / 2, result
        for now in (t, t + h):
            half, part = halve(now, h, state, *whole(now, h, state), depth + 1)
            if part >= bad:
                return result, bad
            worst, state, work = max(worst, part), half[:2], work + half[2]
        return (*state, work, half[3]), worst

    result, _ = halve(t, h, state, *whole(t, h, state), 0)
    return *result, taken
