"""Tendons over several joints, and gravity compensation: forces beside those of single joints."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError
from kinetree.model.coupling import exact
from kinetree.model.parts import as_floats, as_numbers
from kinetree.spatial import Plucker

__all__ = ["GravityCompensation", "Tendon"]


@dataclass(frozen=True)
class Tendon:
    """A weighted sum of joint positions, ``L = L0 + c1 q_1 + c2 q_2 + ...``, that carries a force.

    The force ``f`` along the tendon acts on joint ``i`` as ``c_i f``. Spring, damper and friction
    are part of ``passive_force``, the limits of simulations; actuators may pull.

    Attributes:
        name: unique name, among the tendons.
        joints: numbers of the joints, each of one variable; they may follow others.
        coefficients: ``c``, the change of the length with each joint's position.
        offset: ``L0``, the length where all positions are zero.
        lower, upper: smallest and largest length.
        stiffness: of the spring, force per length.
        damping: force against the rate of the length.
        friction: largest force of dry friction.
        rest: lengths between which the spring is slack; both equal for a spring that is never.
    """

    name: str
    joints: tuple[int, ...]
    coefficients: tuple[float, ...]
    offset: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    stiffness: Any = 0.0
    damping: Any = 0.0
    friction: Any = 0.0
    rest: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self):
        what = f"of tendon {self.name!r}"
        object.__setattr__(self, "joints", tuple(self.joints))
        for name in ("coefficients", "rest"):
            values = as_floats(getattr(self, name), f"{name} {what}")
            values = values * 2 if name == "rest" and len(values) == 1 else values
            object.__setattr__(self, name, values)

    @property
    def is_limited(self) -> bool:
        """Whether the length has a bound."""
        return math.isfinite(self.lower) or math.isfinite(self.upper)

    def length(self, positions: ArrayLike) -> Any:
        """``L`` where the joints of the tendon are at these positions."""
        return exact(self.offset) + self.rate(positions)

    def rate(self, velocities: ArrayLike) -> Any:
        """``dL/dt`` where the joints of the tendon have these velocities."""
        terms = [exact(c) * x for c, x in zip(self.coefficients, velocities, strict=True)]
        return sum(terms[1:], terms[0]) if terms else 0

    def has(self, *names: str) -> bool:
        """Whether it has stiffness, damping or friction; a formula is taken for some."""
        return any(_is_some(getattr(self, name)) for name in names)

    def with_held(self, positions: Mapping[int, Any]) -> "Tendon":
        """The tendon over the joints that still move, where some stand at these positions."""
        terms = list(zip(self.joints, self.coefficients, strict=True))
        offset = self.offset + sum(float(c * positions[i]) for i, c in terms if i in positions)
        left = [(i, c) for i, c in terms if i not in positions]
        joints, coefficients = zip(*left, strict=True) if left else ((), ())
        return replace(self, joints=joints, coefficients=coefficients, offset=offset)


def _is_some(x):
    return not isinstance(x, (int, float)) or x != 0


@dataclass(frozen=True)
class GravityCompensation:
    """A force ``-mass * gravity`` at a point of a body, as if so much of it had no weight.

    Part of ``passive_force``. Several on a body add up.

    Attributes:
        body: number of the body.
        mass: whose weight is carried [kg].
        center: where it is carried, in body coordinates [m], (3,).
    """

    body: int
    mass: Any
    center: Any = (0.0, 0.0, 0.0)

    def __post_init__(self):
        if not isinstance(self.body, (int, np.integer)):
            raise ModelError(
                f"GravityCompensation is a part of models and needs the number of a body, got a"
                f" {type(self.body).__name__}; kinetree.control.GravityCompensation is a controller"
            )
        object.__setattr__(self, "center", as_numbers(self.center, "center"))

    def moved(self, body: int, X: Plucker) -> "GravityCompensation":
        """The same on another body, from whose coordinates ``X`` leads to those of this one."""
        return replace(self, body=body, center=tuple(X.E.T @ self.center + X.r))
