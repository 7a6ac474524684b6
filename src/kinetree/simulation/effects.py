"""Effects of joints in a simulation: springs, dampers, friction, limits and motors."""

from dataclasses import dataclass
from typing import Any

from kinetree.model.dynamics import joints_with
from kinetree.simulation.forces.actuators import drive_of
from kinetree.simulation.forces.applied import PassiveForces
from kinetree.simulation.forces.friction import friction_of
from kinetree.simulation.forces.limits import StiffLimits, limits_of
from kinetree.simulation.forces.loop_joints import loop_joint_forces_of


@dataclass(frozen=True)
class Effects:
    """What the joints of a mechanism exert.

    Attributes:
        model: the mechanism.
        passive: springs, dampers, smooth friction and stiff limits, which can be compiled; or None.
        friction: exact friction, or None.
        limits: rigid limits, or None.
        drive: torque–speed curves, or None.
    """

    model: Any
    passive: Any
    friction: Any
    limits: Any
    drive: Any


def effects_of(model, *, friction="smooth", limits="stiff", motors=None) -> Effects:
    """Effects of the joints of a model.

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
    return Effects(
        model,
        passive,
        law if smooth is None else None,
        stops if stiff is None else None,
        drive_of(model, motors),
    )
