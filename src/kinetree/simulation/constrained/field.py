"""What moves a mechanism with loops or couplings."""

from dataclasses import dataclass

from kinetree.loops.constrained_motion import Chosen, acceleration, driven_acceleration
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

    @property
    def told(self):
        """Joints that move as told, or None."""
        return self.field.told

    def joint_force(self, model, t, q, qd, tau):
        """All joint forces but those of the constraints, (..., nv)."""
        return self.field.joint_force(model, t, q, qd, tau)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        if self.told is not None:
            qd, qdd, total, drives = self._driven(model, t, q, qd, tau)
            return qdd, ((total + drives) * qd).sum(-1)
        total = self.joint_force(model, t, q, qd, tau)
        qdd = acceleration(
            model, q, qd, total, chosen=self.chosen, time_constant=self.time_constant
        )
        return qdd, (total * qd).sum(-1)

    def drive_force(self, model, t, q, qd, tau):
        """``tau`` with the forces of the drives in place, (..., nv)."""
        return tau * self.told.others(model) + self._driven(model, t, q, qd, tau)[3]

    def _driven(self, model, t, q, qd, tau):
        """Velocities, accelerations, joint forces, and those that joints which are told need."""
        q, qd, qdd = self.told.at(model, t, q, qd)
        total = self.joint_force(model, t, q, qd, tau)
        qdd, drives = driven_acceleration(
            model, q, qd, total, qdd, chosen=self.chosen, time_constant=self.time_constant
        )
        return qd, qdd, total, drives
