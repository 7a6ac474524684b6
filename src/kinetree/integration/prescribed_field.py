"""What moves a mechanism some of whose joints move as told: hybrid dynamics — RBDA §9.1."""

from dataclasses import dataclass

from kinetree.integration.field import Field
from kinetree.integration.prescription import Told
from kinetree.quantities import dynamics, hybrid

__all__ = ["DrivenField"]


@dataclass(frozen=True)
class DrivenField(Field):
    """A field in which some joints move as told, and drives exert whatever that takes.

    What a caller holds during a step is not read for these joints: their drives take its place.
    Springs, dampers, friction and other forces act on them as on all joints.

    Attributes:
        told: the joints that move as told.
    """

    told: Told = None  # pyright: ignore[reportAssignmentType]

    def joint_force(self, model, t, q, qd, tau):
        """All joint forces but those of the drives, (..., nv)."""
        return super().joint_force(model, t, q, qd, tau * self.told.others(model))

    def acceleration(self, model, t, q, qd, total):
        """Joint accelerations under joint forces, (..., nv)."""
        qdd = self.told.at(model, t, q, qd)[2]
        return self._hybrid(model, q, qd, total, qdd).qdd

    def mobility(self, model, q):
        """Accelerations for unit joint forces, (..., nv, nv): zero for joints that are told."""
        free = self.told.others(model)
        return hybrid.hybrid_response(model, q, self.told.names) * free * free[:, None]

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        q, qd, qdd = self.told.at(model, t, q, qd)
        total = self.joint_force(model, t, q, qd, tau)
        total, qdd = self._hybrid(model, q, qd, total, qdd)
        return qdd, (total * qd).sum(-1)

    def drive_force(self, model, t, q, qd, tau):
        """``tau`` with the forces of the drives in place, (..., nv)."""
        q, qd, _ = self.told.at(model, t, q, qd)
        qdd, _ = self(model, t, q, qd, tau)
        total, free = dynamics.inverse_dynamics(model, q, qd, qdd), self.told.others(model)
        return tau * free + (total - self.joint_force(model, t, q, qd, tau)) * (1 - free)

    def _hybrid(self, model, q, qd, tau, qdd):
        return hybrid.hybrid_dynamics(model, q, qd, tau, qdd, given=self.told.names)
