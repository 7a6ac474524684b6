"""Variables of a model: couplings among them, limits, and how they are integrated."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelWarning
from kinetree.model import gearing, manifold
from kinetree.model.limits import (
    Bounds,
    actuation,
    effort_limits,
    has_dynamics,
    joint_values,
    position_limits,
    travel,
    velocity_limits,
)
from kinetree.model.parts import Coupling
from kinetree.model.structure import ModelStructure

if TYPE_CHECKING:
    from kinetree.model.model import Model


class ModelVariables(ModelStructure):
    """Variables of the joints: those that follow others, ranges, neutral and random values."""

    @cached_property
    def uncoupled(self) -> "Model":
        """Model without couplings; itself if it has none."""
        if not self.couplings:
            return cast("Model", self)
        with warnings.catch_warnings():  # defects of the bodies were reported before
            warnings.simplefilter("ignore", ModelWarning)
            bare = self.replace(couplings=(), postures=(), constraints=())
            self.__dict__["uncoupled"] = bare  # in which the postures are written
            postures = [gearing.full_posture(self, p) for p in self.postures]
            return bare.replace(postures=postures) if postures else bare

    @cached_property
    def couplings_in_order(self) -> Sequence[Coupling]:
        """Couplings sorted so that each comes after those of its leaders."""
        return gearing.in_order(self.couplings)

    @cached_property
    def independent_variables(self) -> tuple[Array, ...]:
        """Indices of ``q`` and ``qd`` among the variables of ``uncoupled``, two arrays."""
        return gearing.independent_variables(self)

    @cached_property
    def travel(self) -> tuple:
        """Limits of every joint, narrowed by joints coupled to it; entry 0 is None.

        Joints that follow others have no separate entry here.
        """
        return travel(self)

    @cached_property
    def position_limits(self) -> Bounds:
        """Lower and upper bounds of the position variables [m or rad], (nq,) each.

        Where joints follow a joint, its limits are those that keep all of them within theirs.
        """
        return position_limits(self)

    @cached_property
    def velocity_limits(self) -> Array:
        """Largest speed of every velocity variable [m/s or rad/s], (nv,), infinite if unlimited."""
        return velocity_limits(self)

    @cached_property
    def effort_limits(self) -> Array:
        """Largest joint force of every velocity variable [N or N·m], (nv,)."""
        return effort_limits(self)

    expand = gearing.expand
    expand_velocity = gearing.expand_velocity
    expand_acceleration = gearing.expand_acceleration
    reduce = gearing.reduce
    reduce_velocity = gearing.reduce_velocity

    @cached_property
    def armature(self) -> Array:
        """Armature of each velocity variable, such as rotor inertia [kg or kg·m²], (nv,)."""
        return joint_values(self, "armature")

    @cached_property
    def armature_joints(self) -> tuple[int, ...]:
        """Numbers of the joints with armature."""
        bodies = enumerate(self.bodies, start=1)
        return tuple(i for i, b in bodies if has_dynamics(b, "armature"))

    @cached_property
    def actuation(self) -> Array:
        """Matrix (nv, n) of joint forces per unit actuator force before its gear.

        So ``tau = actuation @ u`` for motors, whose force is their control; ``kt.driving_force``
        has the joint forces of all actuators, within their ranges.
        """
        return actuation(self)

    def neutral(self) -> Array:
        """Neutral configuration of all joints, (nq,)."""
        return manifold.neutral(self)

    def random_configuration(
        self, rng: "np.random.Generator | None" = None, count: int | None = None
    ) -> Array:
        """A random configuration, within the joint limits where they are finite, (nq,).

        ``rng`` is a NumPy random generator or a seed; ``count`` makes several configurations,
        (count, nq).
        """
        return manifold.random_configuration(self, rng, count)

    integrate = manifold.integrate
    difference = manifold.difference
    configuration_rate = manifold.configuration_rate
    normalize = manifold.normalize

    def scalar_type(self, *arrays: Any) -> np.dtype:
        """NumPy type that can hold results for ``arrays`` and the model's parameters."""
        return np.result_type(self._dtype, *(np.asarray(a).dtype for a in arrays))

    @cached_property
    def _dtype(self):
        """NumPy type of the model's parameters."""
        numbers = [self.gravity, self.armature, np.zeros(0)]
        for b in self.bodies:
            numbers += [b.placement.E, b.placement.r, b.inertia.parameters()]
        found = np.result_type(*(n.dtype for n in numbers))
        # Springs, dampers and friction are floats, unless they are formulas or traced.
        return np.dtype(object) if found.hasobject or _has_formulas(self) else found


def _has_formulas(model):
    """Whether springs, dampers or friction of the model have symbolic coefficients."""
    forces = [part.dynamics for part in (*model.bodies, *model.loops) if part.dynamics is not None]
    values = [x for d in forces for x in (*d.damping, *d.friction, *d.stiffness)]
    values += [x for t in model.tendons for x in (t.damping, t.friction, t.stiffness)]
    return any(np.asarray(x).dtype.hasobject for x in values)
