"""What every step says about itself."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity.rows import less
from kinetree.contact.stepping.solver import largest
from kinetree.functional.choose import select

__all__ = ["Residuals", "accumulated", "cone_error", "gathered", "power_error"]


class Residuals(NamedTuple):
    """Of one step, or of several: then the worst, and sums of energies.

    Attributes:
        velocity: by how much the velocity of a row misses the laws [m/s or rad/s].
        cone: by how much friction exceeds its cone [N·s].
        complementarity: energy that a force and the gap or slip beside it have in common [J].
        penetration: at the end [m or rad].
        opening: of loops at the end [m or rad].
        contact_work: of all forces that hold, ``lam · w⁺`` [J].
        loss: half the impulse of all forces times the change of velocity: what impacts take, and
            first-order steps [J].
        taken: energy taken from velocities so that none is created [J].
        gain: energy of unknown origin that is left [J].
        touching: 1 for steps in which something held, 0 for flight.
    """

    velocity: Any
    cone: Any
    complementarity: Any
    penetration: Any
    opening: Any
    contact_work: Any
    loss: Any
    taken: Any
    gain: Any
    touching: Any


SUMMED = ("contact_work", "loss", "taken", "touching")
"""Residuals that add up over steps; of the others the largest counts."""
_SUMMED = np.array([name in SUMMED for name in Residuals._fields])


def accumulated(total, step):
    """Residuals of several steps, (..., 10), with those of one more."""
    return select(_SUMMED, total + step, select(less(step, total), total, step))


def gathered(steps):
    """Residuals of several steps, (..., 10), from a list of those of each."""
    each = np.array(steps)
    return np.where(_SUMMED, each.sum(axis=0), each.max(axis=0))


def cone_error(mu, lam):
    """Largest excess of a tangential impulse over ``mu`` times the normal one."""
    contacts = [lam[3 * k : 3 * k + 3] for k in range(len(mu))]
    excess = [
        np.sqrt(x[1] * x[1] + x[2] * x[2]) - m * x[0] for m, x in zip(mu, contacts, strict=True)
    ]
    return largest(excess, 0.0)


def power_error(rows, lam, w):
    """Largest ``|lam_n w_n|``, and ``|lam_t · w_t + mu lam_n |w_t||``; ``w`` with its targets."""
    found = [np.abs(lam[k] * w[k]) for k in rows.one_sided]
    for k, mu in enumerate(rows.mu):
        n, t = lam[3 * k], slice(3 * k + 1, 3 * k + 3)
        slip = np.sqrt(w[t] @ w[t])
        found.append(np.abs(lam[t] @ w[t] + mu * n * slip))
    return largest(found, 0.0)
