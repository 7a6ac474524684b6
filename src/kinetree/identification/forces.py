"""Measured forces: of the motors, or along the joints, with what springs and friction add."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.errors import ModelWarning, warn
from kinetree.model import Model
from kinetree.quantities.dynamics import passive_force

_NOTICED = 1e-6  # part of the measured forces


@dataclass(frozen=True, eq=False)
class Forces:
    """Forces, (..., nv), of which nothing says where they were measured."""

    tau: Any

    def along_joints(self, model: Model, q: Any, qd: Any, tau: Any, friction: Any) -> np.ndarray:
        """Total joint forces, passive ones included, without the friction to be identified."""
        largest = np.max(np.abs(_passive(model, q, qd, friction)), initial=0.0)
        if largest > _NOTICED * np.max(np.abs(tau), initial=0.0):
            warn(
                f"joints of model {model.name!r} have springs, dampers or friction, which exert up "
                f"to {largest:.3g} N or N·m in this motion; identify takes tau as the whole force "
                f"along the joints, these included. Pass kinetree.identification.MotorForces(tau) "
                f"if it is that of the motors, or JointForces(tau)",
                ModelWarning,
            )
        return tau


class JointForces(Forces):
    """The whole forces along the joints, (..., nv), as of sensors behind gears and springs."""

    def along_joints(self, model: Model, q: Any, qd: Any, tau: Any, friction: Any) -> np.ndarray:
        """Joint forces unchanged, as they already contain all effects."""
        return tau


class MotorForces(Forces):
    """The forces of the motors, (..., nv), as from their currents.

    Springs, dampers, friction and tendons of the model add theirs (``kinetree.passive_force``).
    Friction that is identified lies between motor and joint, and is not taken from the model.
    """

    def along_joints(self, model: Model, q: Any, qd: Any, tau: Any, friction: Any) -> np.ndarray:
        """Joint forces from motor forces and the model's passive forces."""
        return tau + _passive(model, q, qd, friction)


def _passive(model, q, qd, friction):
    """Passive joint forces, except the friction to be identified."""
    effects = {"damping": "viscous", "friction": "coulomb"}
    none: dict = {name: () for name, effect in effects.items() if friction in (True, effect)}
    bodies = [replace(b, dynamics=b.dynamics and replace(b.dynamics, **none)) for b in model.bodies]
    return np.asarray(passive_force(model.replace(bodies=bodies) if none else model, q, qd))
