"""Energy balance of a step.

The identity at the top of ``step`` holds for constant inertia. What its variation, and the
curvature of surfaces, add is an error of either sign. Where it would be a
gain, velocities are made smaller by a common factor, which leaves contacts closed, friction
against sliding, and loops closed as they are.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.functional.kernel import select
from kinetree.spatial.ops import sqrt

_ROUNDING = 1e-14  # of the energies, below which a gain is none


class Balance(NamedTuple):
    """Energies of a step [J].

    Attributes:
        joints: work of the joint forces.
        contact: ``lam · w`` of all rows at the end, not above zero unless something bounces.
        lost: impulses times by how much the mean velocity of the rows differs from that: to
            impacts.
        taken: what was taken from the velocities.
        gained: what is left of a gain.
    """

    joints: Any
    contact: Any
    lost: Any
    taken: Any = 0.0
    gained: Any = 0.0

    @property
    def work(self):
        """Accounted change of kinetic and potential energy in the step [J]."""
        return self.joints + self.contact - self.lost - self.taken


def balance_energy(start, end, after, balance):
    """Velocities after a step with excess energy removed, the balance, and the energies.

    ``start`` and ``end`` are the kinetic and potential energies there, (2,).
    """
    (first, before), (kinetic, potential) = start, end
    held = balance.contact - balance.lost
    given = balance.joints + select(held < 0, held, 0.0)
    excess = kinetic - first + (potential - before) - given
    size = kinetic + first + _absolute(potential) + _absolute(before)
    gains = excess > _ROUNDING * size
    kept = select(excess < kinetic, kinetic - excess, 0.0)
    factor = sqrt(select(gains, kept / select(kinetic > 0, kinetic, 1.0), 1.0))
    taken = select(gains, kinetic - kept, 0.0)
    left = excess - taken
    balance = balance._replace(taken=taken, gained=select(left > 0, left, 0.0))
    return factor * after, balance, np.array([kinetic - taken, potential])


def _absolute(x):
    """Absolute value of a traced number."""
    return select(x < 0, -x, x)
