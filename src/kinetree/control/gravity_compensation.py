"""Make a mechanism weightless."""

from kinetree.control.reference import Gain
from kinetree.model.arrays import as_model
from kinetree.quantities.dynamics import gravity_force

__all__ = ["GravityCompensation"]


class GravityCompensation:
    """Joint forces that carry the weight: ``tau = g(q) - damping qd``.

        hold = kt.control.GravityCompensation(m, damping=0.5)
        tau = hold(t, q, qd)

    Pushed by hand, the mechanism moves as in space, and with damping comes to rest where it is let
    go. Springs that its joints have keep pulling: they are no weight.

    Args:
        model: the mechanism, every joint driven.
        damping: of the joints, a number, (nv,) or (nv, nv).
    """

    def __init__(self, model, damping=0.0):
        self.model = as_model(model)
        self.damping = Gain(damping, model.nv, "damping")

    def __call__(self, t, q, qd):
        """Forces of the motors, (..., nv)."""
        return gravity_force(self.model, q) - self.damping(qd)
