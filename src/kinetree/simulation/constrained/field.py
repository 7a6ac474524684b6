"""What moves a mechanism with loops or couplings."""

from dataclasses import dataclass

from kinetree.simulation.constrained.motion import Chosen, acceleration
from kinetree.simulation.field import Field

__all__ = ["Constrained"]


@dataclass(frozen=True)
class Constrained:
    """A field under which accelerations obey the constraints.

    States inside a step are off the constraints by its error, and are taken as they are.

    Attributes:
        field: all forces that act.
        chosen: which of the constraint equations are solved.
        time_constant: with which errors decay [s], Baumgarte's method; None for none — RBDA (8.22).
    """

    field: Field
    chosen: Chosen
    time_constant: float | None = None

    @property
    def forces(self):
        """Functions that act on top of what a controller says."""
        return self.field.forces

    def joint_force(self, model, t, q, qd, tau):
        """All joint forces but those of the constraints, (..., nv)."""
        return self.field.joint_force(model, t, q, qd, tau)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        total = self.joint_force(model, t, q, qd, tau)
        qdd = acceleration(
            model, q, qd, total, chosen=self.chosen, time_constant=self.time_constant
        )
        return qdd, (total * qd).sum(-1)
