"""Passive forces: springs, dampers, dry friction and limits of joints and tendons."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.algorithms.passive import joint_spring_force, spring_and_damper_force
from kinetree.functional.kernel import kernel
from kinetree.model.limits import has_passive_forces
from kinetree.simulation.forces.friction import friction_of
from kinetree.simulation.forces.limits import StiffLimits, limits_of
from kinetree.simulation.forces.loop_joints import loop_joint_forces_of, tendon_forces_of


@kernel
def _springs_and_dampers(model, q, qd):
    """Kernel of the joint forces of all springs and dampers, (nv,)."""
    return spring_and_damper_force(model, q, qd)


@kernel
def _joint_springs(model, q, qd):
    """Kernel of the joint forces of joint springs alone, (nv,)."""
    return joint_spring_force(model, q, qd)


@dataclass(frozen=True)
class PassiveForces:
    """Passive forces of a mechanism: springs, dampers, smooth friction, stiff limits."""

    friction: Any = None
    """A smooth ``Friction`` with the parameters of the model, or None."""
    limits: Any = None
    """``StiffLimits`` with the parameters of the model, or None."""
    loops: Any = None
    """``LoopJointForces``, or None."""
    tendons: Any = None
    """``TendonForces``, or None."""
    given: tuple = (None, None, None)
    """Friction and limits as options of a simulation, and ``TendonRows``, from which the laws
    follow for a model."""
    of_tree: bool = False
    """Whether springs are those of joints in the tree alone, as for steps with rigid contact, which
    have those of tendons and loop joints, and gravity compensation, themselves."""
    traceable = True

    @property
    def for_steps(self) -> "PassiveForces":
        """Copy without the springs that rigid-contact steps treat implicitly."""
        return replace(self, of_tree=True)

    def of(self, model) -> "PassiveForces":
        """Passive forces of a model with other, possibly traced, parameters.

        Widths of friction and stiffnesses of limits follow from inertias of the model.
        """
        return replace(passive_of(model, *self.given), of_tree=self.of_tree)

    def exact_levels(self, model) -> Any:
        """Exact friction levels (nv,) of a model with other parameters; None without any."""
        law = friction_of(model, self.given[0])
        return law.levels if law is not None and law.exact else None

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        tau = 0 * qd
        if has_passive_forces(model, "stiffness", "damping"):
            tau = tau + self._springs(np.asarray(qd).dtype == object)(model, q, qd)
        for law in (self.friction, self.limits, self.loops, self.tendons):
            if law is not None:
                tau = tau + law(model, t, q, qd)
        return tau

    def _springs(self, traced):
        """Function ``(model, q, qd)`` of the spring and damper forces, traced or compiled."""
        if self.of_tree:
            return joint_spring_force if traced else _joint_springs
        return spring_and_damper_force if traced else _springs_and_dampers


def passive_of(model, friction, limits, rows=None) -> PassiveForces:
    """``PassiveForces`` of a model for given friction and limits.

    Args:
        model: the mechanism.
        friction: ``"smooth"``, ``"exact"``, None or a ``Friction``.
        limits: ``"stiff"``, ``"rigid"``, None, ``StiffLimits`` or ``RigidLimits``.
        rows: ``TendonRows``, which are not forces, or None.
    """
    law, stops = friction_of(model, friction), limits_of(model, limits)
    left = None if rows and rows.friction else friction, None if rows and rows.stops else limits
    return PassiveForces(
        friction=None if law is None or law.exact else law,
        limits=stops if isinstance(stops, StiffLimits) else None,
        loops=loop_joint_forces_of(model, *left),
        tendons=tendon_forces_of(model, *left),
        given=(friction, limits, rows),
    )
