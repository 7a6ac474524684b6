"""All that acts in a simulation, put together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kinetree.errors import ModelError
from kinetree.integration.events import UserEvents
from kinetree.integration.field import Field, PrescribedField
from kinetree.integration.step import Stepper
from kinetree.integration.watcher import Watcher
from kinetree.model.dynamics import joints_with
from kinetree.simulation.forces.actuators import drive_of
from kinetree.simulation.forces.applied import PassiveForces
from kinetree.simulation.forces.friction import friction_of
from kinetree.simulation.forces.limits import StiffLimits, limits_of
from kinetree.simulation.forces.loop_joints import loop_joint_forces_of
from kinetree.simulation.forces.modes import Modes
from kinetree.simulation.forces.stateful import CarryingStepper, remembering

__all__ = ["Acting", "acting_on"]


@dataclass(frozen=True)
class Acting:
    """What acts on a mechanism.

    Attributes:
        model: the mechanism.
        passive: forces of the joints that can be compiled, or None.
        friction: exact friction, or None.
        limits: rigid limits, or None.
        drive: torque–speed curves, or None.
    """

    model: Any
    passive: Any
    friction: Any
    limits: Any
    drive: Any

    def field(self, forces, told=None) -> Field:
        """All forces that act; ``told`` are joints that move as told, or None."""
        given = (forces, self.passive, self.drive)
        return Field(*given) if told is None else PrescribedField(*given, told)

    def stepper(self, method, field, q, events, *, compiled, make: Callable = Stepper):
        """What takes steps, and hooks that look at them for events.

        Args:
            method: the integrator.
            field: what moves the mechanism.
            q: positions at the start, (..., nq).
            events: of the user's.
            compiled: whether a step is one kernel.
            make: what makes a stepper from model, method and field.
        """
        batch = q.shape[:-1]
        groups: list = [UserEvents(events, self.model)] if events else []
        carrying = bool(remembering(field))
        if self.friction is None and self.limits is None:
            if carrying:
                stepper = CarryingStepper(self.model, method, field, q, compiled=compiled)
            else:
                stepper = make(self.model, method, field, compiled=compiled)
            hooks = (Watcher(self.model, groups, batch),) if groups else ()
            return stepper, hooks
        if carrying:
            raise ModelError(
                "contact with a memory goes with friction='smooth' and limits='stiff' only; for "
                "exact friction or rigid limits use law='hunt_crossley' or 'linear'"
            )
        modes = Modes(self.model, self.friction, self.limits, batch, field.prescription)
        modes.check_start(q)
        watcher = Watcher(self.model, groups + modes.groups(), batch, modes.settle)
        stepper = modes.stepper(method, field, compiled=compiled)
        noting = () if field.prescription is None else (stepper.note,)
        return stepper, (*noting, watcher, modes.repair)


def acting_on(model, *, friction="smooth", limits="stiff", motors=None) -> Acting:
    """What acts on a model by its own nature.

    Args:
        model: the mechanism.
        friction: ``"smooth"``, ``"exact"``, None or a ``Friction``.
        limits: ``"stiff"``, ``"rigid"``, None, ``StiffLimits`` or ``RigidLimits``.
        motors: torque–speed curves by name of the actuator.
    """
    law, stops = friction_of(model, friction), limits_of(model, limits)
    smooth = law if law is not None and not law.exact else None
    stiff = stops if isinstance(stops, StiffLimits) else None
    springs = joints_with(model, "stiffness", "damping")
    frictionless = law is None and joints_with(model, "friction")
    loops = loop_joint_forces_of(model, friction, limits)
    passive = None
    if springs or frictionless or smooth or stiff or loops or (law is not None and law.exact):
        passive = PassiveForces(smooth, stiff, loops)
    return Acting(
        model,
        passive,
        law if smooth is None else None,
        stops if stiff is None else None,
        drive_of(model, motors),
    )
