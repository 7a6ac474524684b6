"""Projection of positions: penetration and loop errors are removed, velocities in the world stay.

Bodies that are deep inside each other are not pushed apart at once: the rows are those of where
they are, and along them no joint may move farther than ``TimeStepping.correction_speed`` allows.
Other engines bound the same speed: ODE's maximum correcting velocity, PhysX's maximum depenetration
velocity.
"""

import numpy as np

from kinetree.contact.complementarity.traced import largest
from kinetree.contact.settings import DOUBLE
from kinetree.contact.stepping.inertia import turned
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select

_TRIES = 3  # of 1, 3 and 9 rounds
_SWEEPS = 2


def projected(constraints, model, q, qd, rows, inertia, Y, A, farthest, accuracy=DOUBLE):
    """Positions without penetration, ``qd`` along the axes there, and what remains.

    That is the penetration, and the error of loops.

    No variable moves farther than ``farthest`` [rad, or in units of ``constraints.size``]. Bodies
    move along ``M⁻¹ Gᵀ``, with the rows of the start of the step, by Gauss–Seidel; gaps are
    evaluated after each of a few rounds, which run only where they are needed.
    """
    which = _positional(rows)
    closed = accuracy.closed
    there = largest(-rows.gap, accuracy.grown) + accuracy.same
    most = select(there < closed, there, closed)

    def move(state):
        (q, gap, error, *_), qd, left = state
        wanted = _shift(which, rows, gap, error, inertia, Y, A)
        shift, left = _bounded(wanted, constraints.units, left)
        found = _look(constraints, model, model.integrate(q, shift))
        return found, turned(model, qd, shift), left

    def some(state):
        (found, qd, left), many = state
        open_ = ((found[3] > most) | (found[4] > closed)) & (left > 0)
        return repeat(move, (found, qd, left), select(open_, many, 0)), 3 * many

    if not which:
        return q, qd, 0.0, 0.0
    start = _look(constraints, model, q), qd, farthest
    (state, qd, _), _ = repeat(some, (start, 1.0), _TRIES)
    return state[0], qd, state[3], state[4]


def _bounded(shift, units, left):
    """As much of a shift as is ``left`` of the way that joints may go, and what is left then."""
    way = largest(np.abs(shift) / units)
    part = select(way > left, left / select(way > left, way, 1.0), 1.0)
    return part * shift, left - part * way


def _positional(rows):
    """Rows with a position of their own: contacts and ends of travel, then loops."""
    return [*rows.one_sided, *range(len(rows.G) - len(rows.error), len(rows.G))]


def _look(constraints, model, q):
    gap, error = constraints.gaps(model, q)
    return q, gap, error, largest(-gap), largest(np.abs(error))


def _shift(which, rows, gap, error, inertia, Y, A):
    """Displacements of the joints, (nv,), that open the gaps and close the loops."""
    g, shifts, sided = [*gap, *error], [0.0] * len(which), len(rows.one_sided)
    for _ in range(_SWEEPS):
        for i, row in enumerate(which):
            shift = -g[i] / select(A[row, row] > 0, A[row, row], 1.0)
            if i < sided:
                shift = select(shifts[i] + shift > 0, shift, -shifts[i])
            shifts[i] = shifts[i] + shift
            g = [x + A[other, row] * shift for x, other in zip(g, which, strict=True)]
    return inertia.response([Y[i] for i in which], shifts)
