"""The books of a step: what forces did, what the contact took, and that nothing was created.

The identity in ``step`` holds for constant inertia. What its variation, and the curvature of
surfaces, add to first-order steps is an error of either sign. Where it would be a gain, velocities
are made smaller by a common factor, which leaves contacts closed, friction against sliding, and
loops closed as they are.
"""

from typing import Any, NamedTuple

from kinetree.functional.choose import select
from kinetree.quantities import dynamics
from kinetree.spatial.ops import sqrt

__all__ = ["Balance", "balanced"]

_ROUNDING = 1e-14  # of the energies, below which a gain is none


class Balance(NamedTuple):
    """Energies of a step [J].

    Attributes:
        joints: work of the joint forces.
        contact: ``lam · w⁺`` of all rows, not above zero unless something bounces.
        lost: half the impulse of all forces times the change of velocity, to impacts and to
            first-order steps.
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
        """Change of kinetic and potential energy that is accounted for."""
        return self.joints + self.contact - self.lost - self.taken


def balanced(model, inertia, q, qd, end, after, balance):
    """Velocities at the end of a step that do not hold too much energy, and the new balance."""
    kinetic = dynamics.kinetic_energy(model, end, after)
    before, potential = (dynamics.potential_energy(model, x) for x in (q, end))
    first = qd @ (inertia.H @ qd) / 2
    given = balance.joints + select(balance.contact < 0, balance.contact, 0.0)
    excess = kinetic - first + (potential - before) - given
    size = kinetic + first + _size(potential) + _size(before)
    gains = excess > _ROUNDING * size
    kept = select(excess < kinetic, kinetic - excess, 0.0)
    factor = sqrt(select(gains, kept / select(kinetic > 0, kinetic, 1.0), 1.0))
    taken = select(gains, kinetic - kept, 0.0)
    left = excess - taken
    return factor * after, balance._replace(taken=taken, gained=select(left > 0, left, 0.0))


def _size(x):
    return select(x < 0, -x, x)
