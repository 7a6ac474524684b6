"""Projection of positions at the end of a step.

Penetration and loop errors are removed; velocities in the world stay. Bodies that are deep inside
each other are not pushed apart at once: the rows are those of where they are, and along them no
joint may move farther than ``TimeStepping.correction_speed`` allows. Other engines bound the same
speed: ODE's maximum correcting velocity, PhysX's maximum depenetration velocity.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity.traced import largest
from kinetree.contact.scheme.inertia import turn_velocities
from kinetree.contact.settings import DOUBLE, Accuracy
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select

TRIES = 3  # of 1, 3 and 9 rounds
SWEEPS = 2


class ProjectedState(NamedTuple):
    """A state without penetration, and what remains of it and of the error of loops."""

    q: Any
    qd: Any
    penetration: Any
    opening: Any


@dataclass(frozen=True)
class GapProjection:
    """Moves bodies along ``M⁻¹ Gᵀ``, with the rows of a step, until gaps and loops are closed.

    Attributes:
        constraints: of the mechanism, which evaluate gaps.
        rows: of the step.
        inertia: what rows are divided by.
        Y, A: ``inertia.halves`` and ``inertia.mobility`` of the rows.
        accuracy: of the numbers that it is compiled for.
    """

    constraints: Any
    rows: Any
    inertia: Any
    Y: Any
    A: Any
    accuracy: Accuracy = DOUBLE

    def of(self, model, q, qd, farthest, *, once=False) -> ProjectedState:
        """State moved out of penetration, no variable by more than ``farthest``.

        No variable moves farther than ``farthest`` [rad, or in units of ``constraints.size``]. By
        Gauss–Seidel; gaps are evaluated after each of a few rounds, which run only where they are
        needed. For derivatives there is but ``once`` one round, a choice in place of a loop.
        """
        if not self._which:
            return ProjectedState(q, qd, 0.0, 0.0)
        closed, rows = self.accuracy.closed, self.rows
        there = largest(-rows.gap, self.accuracy.grown) + self.accuracy.same
        most = select(there < closed, there, closed)

        def move(state):
            (q, gap, error, *_), qd, left = state
            wanted = self._shift(gap, error)
            shift, left = limit_shift(wanted, self.constraints.units, left)
            found = look(self.constraints, model, model.integrate(q, shift))
            return found, turn_velocities(model, qd, shift), left

        def some(state):
            (found, qd, left), many = state
            return repeat(move, (found, qd, left), select(is_open(found, left), many, 0)), 3 * many

        def is_open(found, left):
            return ((found[3] > most) | (found[4] > closed)) & (left > 0)

        start = look(self.constraints, model, q), qd, farthest
        if once:
            moves, (found, after, _) = is_open(start[0], farthest), move(start)
            return ProjectedState(select(moves, found[0], q), select(moves, after, qd), 0.0, 0.0)
        (state, qd, _), _ = repeat(some, (start, 1.0), TRIES)
        return ProjectedState(state[0], qd, state[3], state[4])

    @property
    def _which(self):
        """Numbers of the rows with a position: contacts and stops, then loops."""
        rows = self.rows
        return [*rows.one_sided, *range(len(rows.G) - len(rows.error), len(rows.G))]

    def _shift(self, gap, error):
        """Joint displacements (nv,) that open the gaps and close the loops, by Gauss-Seidel."""
        which, A, sided = self._which, self.A, len(self.rows.one_sided)
        g, shifts = [*gap, *error], [0.0] * len(which)
        for _ in range(SWEEPS):
            for i, row in enumerate(which):
                shift = -g[i] / select(A[row, row] > 0, A[row, row], 1.0)
                if i < sided:
                    shift = select(shifts[i] + shift > 0, shift, -shifts[i])
                shifts[i] = shifts[i] + shift
                g = [x + A[other, row] * shift for x, other in zip(g, which, strict=True)]
        return self.inertia.response([self.Y[i] for i in which], shifts)


def limit_shift(shift, units, left):
    """Displacement scaled to the remaining travel ``left``, and the travel left after it."""
    way = largest(np.abs(shift) / units)
    part = select(way > left, left / select(way > left, way, 1.0), 1.0)
    return part * shift, left - part * way


def look(constraints, model, q):
    """Gaps and loop errors at positions ``q``, with the largest penetration and error."""
    gap, error = constraints.gaps(model, q)
    return q, gap, error, largest(-gap), largest(np.abs(error))
