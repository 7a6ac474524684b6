"""Models at an instant, and models whose numbers decide for others."""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from kinetree.joints.base import AbstractJoint
from kinetree.model.structure import ModelStructure

if TYPE_CHECKING:
    from kinetree.model.model import Model

COMPILED = ("kernels", "memo")
"""Attributes of a model in which its compiled code is."""


class ModelInstants(ModelStructure):
    """The model at a time, where joints or constraints depend on it."""

    @property
    def is_rheonomic(self) -> bool:
        """Whether a user-defined constraint depends on time; see ``at``."""
        return any(c.rheonomic for c in self.constraints)

    @property
    def instant(self) -> Any:
        """Time [s] at which time-dependent constraints are evaluated; None if there are none."""
        return next((c.t for c in self.constraints if c.rheonomic), None)

    @cached_property
    def timeless(self) -> "Model":
        """Model without a fixed time, whose compiled code takes time as input; or itself.

        If joints also depend on time, every instant has its own model and code.
        """
        return cast("Model", self)

    def at(self, t: float) -> "Model":
        """Model at time ``t`` [s], for time-dependent joints and constraints — RBDA §3.5."""
        if not self.has_timed_joints or all(
            p.joint.at(t) == p.joint for p in (*self.bodies, *self.loops)
        ):
            return cast("Model", self._with_constraints_at(t) if self.is_rheonomic else self)
        bodies = [replace(b, joint=b.joint.at(t)) for b in self.bodies]
        loops = [replace(loop, joint=loop.joint.at(t)) for loop in self.loops]
        constraints = [c.at(t) for c in self.constraints]
        return self.replace(bodies=bodies, loops=loops, constraints=constraints)

    @cached_property
    def has_timed_joints(self) -> bool:
        """Whether the motion of some joint depends on time."""
        still = AbstractJoint.at
        return any(type(part.joint).at is not still for part in (*self.bodies, *self.loops))

    def _with_constraints_at(self, t):
        """Copy at time ``t`` [s] that shares all parts that do not depend on time."""
        found, tree = object.__new__(type(self)), self.spanning_tree
        left = ("fingerprint", "constraints", *COMPILED)
        found.__dict__.update({k: v for k, v in self.__dict__.items() if k not in left})
        constraints = tuple(c.at(t) for c in self.constraints)
        found.__dict__.update(constraints=constraints, spanning_tree=tree, numeric=self.numeric)
        found.__dict__["timeless"] = self.timeless
        return found
