"""A joint of your own from its transform alone; the rest by differentiation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import JointError
from kinetree.joints.axis import orthogonal_complement
from kinetree.joints.base import AbstractJoint
from kinetree.joints.jet import jets
from kinetree.spatial import Force, Motion, log
from kinetree.spatial.ops import less
from kinetree.spatial.vector3 import unskew

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


_STEPS = 10
"""How often compiled code improves the coordinates; if that is not enough, it raises an error."""
_SETTLED = 1e-26
"""Square of the relative step after which coordinates count as found."""


@dataclass(frozen=True)
class CustomJoint(AbstractJoint):
    """A joint of ``freedoms`` variables that places its child where ``placement(q)`` says.

        cam = CustomJoint(lambda q: xlt(0, 0.1 * kt.spatial.ops.cos(q[0]), 0) @ rotz(q[0]), 1)

    ``placement`` takes an array of variables to ``X_J`` and is written with
    ``kinetree.spatial.ops`` and without ``if`` on a value; ``S`` and ``c_J`` follow exactly from
    its derivatives, for numbers of any kind. ``coordinates`` searches from the neutral position,
    in compiled code with a few steps only. A class of your own (see
    ``kinetree.joints.base``) costs more lines and fewer operations.
    """

    placement: Callable
    freedoms: int
    constant_subspace = False
    spelling = "custom"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return ()

    @classmethod
    def from_table(cls, table: Any) -> AbstractJoint:
        return cls(*table.placement_formulas())

    def __post_init__(self):
        if not callable(self.placement):
            raise JointError(f"placement must be a function q -> X_J, got {self.placement!r}")
        if self.freedoms not in range(1, 7):
            raise JointError(f"a custom joint has 1 to 6 degrees of freedom, got {self.freedoms!r}")
        object.__setattr__(self, "nq", self.freedoms)
        object.__setattr__(self, "nv", self.freedoms)

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        """Transform, motion subspace, velocity and velocity product, by derivatives."""
        columns = [self._velocity(q, e)[0].to_array() for e in np.eye(self.nv, dtype=int)]
        v_J, c_J = self._velocity(q, qd)
        return self.placement(q), Motion.from_array(np.column_stack(columns)), v_J, c_J

    def constraint_subspace(self, q: Array) -> Force:
        return Force.from_array(orthogonal_complement(self.motion_subspace(q).to_array()))

    def coordinates(self, X: "Plucker") -> Array:
        """Position variables for a transform, by Newton's method."""
        q, settled_steps = self.neutral(), 0
        for n in range(1, 101):
            step = self.velocity_variables(q, log(X @ self.transform(q).inverse()))
            q = q + step
            settled = less(step @ step, _SETTLED * (1 + q @ q))
            if not isinstance(settled, (bool, np.bool_)):  # known when the compiled code runs
                if n == _STEPS:
                    settled.require()
                    return q
            elif settled:
                settled_steps += 1
                if settled_steps == 3:  # two more steps, for derivatives and further digits
                    return q
        raise JointError(
            "coordinates of the custom joint were not found in 100 steps from its neutral "
            "position; write a class with its own method coordinates(X)"
        )

    def _velocity(self, q, qd):
        """Spatial velocity and velocity product from the derivatives of ``E`` and ``r``."""
        X = self.placement(jets(q, qd))
        E, dE, ddE = _derivatives(X.E)
        _, dr, ddr = _derivatives(X.r)
        v_J = Motion(unskew(-dE @ E.T), E @ dr)
        return v_J, Motion(unskew(-ddE @ E.T), dE @ dr + E @ ddr)


def _derivatives(x):
    """Values, first and second derivatives of an array of jets and plain numbers."""
    return tuple(
        np.array([getattr(a, name, default(a)) for a in x.ravel()]).reshape(x.shape)
        for name, default in (("value", lambda a: a), ("first", _zero), ("second", _zero))
    )


def _zero(_):
    """Structural zero, whatever the argument."""
    return 0
