"""What motors have to supply: joint forces less those that the joints exert of their own accord.

``inverse_dynamics`` gives the sum of all forces along a joint. Springs, dampers and friction of the
joints (``passive_force``) are part of it; a controller asks the motors for the rest.
"""

from kinetree.functional.kernel import kernel
from kinetree.quantities.dynamics import (
    bias_force,
    forward_dynamics,
    inverse_dynamics,
    passive_force,
)

__all__ = ["holding_forces", "motion_under", "motor_forces"]


def motor_forces(model, q, qd, qdd):
    """Forces of the motors that produce the accelerations ``qdd``, (..., nv)."""
    return inverse_dynamics(model, q, qd, qdd) - passive_force(model, q, qd)


@kernel
def holding_forces(m, q):
    """Forces of the motors that hold the mechanism at rest, (..., nv)."""
    return bias_force(m, q, m.zero_velocity) - passive_force(m, q, m.zero_velocity)


def motion_under(model, q, qd, tau, f_ext=None):
    """Accelerations that forces ``tau`` of the motors produce, (..., nv)."""
    return forward_dynamics(model, q, qd, tau + passive_force(model, q, qd), f_ext)
