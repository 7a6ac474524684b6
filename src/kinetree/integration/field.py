"""What moves the mechanism: accelerations, and the power of all joint forces, at one instant."""

from dataclasses import dataclass
from typing import Any, ClassVar

from kinetree.functional.kernel import UserKernel
from kinetree.model.dynamics import joints_with
from kinetree.quantities import dynamics

__all__ = ["Field", "has_passive_forces", "is_traceable"]


@dataclass(frozen=True)
class Field:
    """The right-hand side of the equation of motion of a tree.

    Written for numbers of any kind: traced into a step kernel, or called on arrays with leading
    batch axes.

    Attributes:
        forces: functions ``(model, t, q, qd)`` that return joint forces [N, N·m], (..., nv), on top
            of those that the caller holds during a step.
        passive: function ``(model, t, q, qd)``: what joints exert of their own accord. By default
            ``kt.passive_force``, whose dry friction jumps.
        drive: function ``(model, qd, tau)``: what motors make of the forces that they are told to
            exert; by default just these.
    """

    forces: tuple = ()
    passive: Any = None
    drive: Any = None
    told: ClassVar[Any] = None  # no joint moves as told, but see ``prescribed``

    def joint_force(self, model, t, q, qd, tau):
        """All joint forces, (..., nv)."""
        if self.drive is not None:
            tau = self.drive(model, qd, tau)
        if self.passive is not None:
            tau = tau + self.passive(model, t, q, qd)
        elif has_passive_forces(model):
            tau = tau + dynamics.passive_force(model, q, qd)
        for force in self.forces:
            tau = tau + force(model, t, q, qd)
        return tau

    def acceleration(self, model, t, q, qd, total):
        """Joint accelerations under joint forces, (..., nv)."""
        return dynamics.forward_dynamics(model, q, qd, total)

    def mobility(self, model, q):
        """Accelerations for unit joint forces, (..., nv, nv)."""
        return dynamics.inverse_mass_matrix(model, q)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        total = self.joint_force(model, t, q, qd, tau)
        power = (total * qd).sum(-1)
        return self.acceleration(model, t, q, qd, total), power


def is_traceable(force) -> bool:
    """Whether a force can be part of compiled code: a ``@kernel``, or one that says so."""
    return isinstance(force, UserKernel) or getattr(force, "traceable", False)


def has_passive_forces(model) -> bool:
    """Whether joints of the model have springs, dampers or friction of their own."""
    return bool(joints_with(model, "stiffness", "damping", "friction"))
