"""Muscles: how the force of an actuator depends on its length, its velocity and its activation."""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

from kinetree.errors import ModelError
from kinetree.model.coupling import as_floats


@dataclass(frozen=True)
class Muscle:
    """A muscle of Hill's type, with the curves of MuJoCo.

        f = -force (FL(L) FV(V) u + FP(L))

    ``u`` is the activation, from 0 to 1; a muscle pulls, so that forces are negative. ``L`` is the
    length and ``V`` its rate, in optimal lengths ``L0`` and ``vmax L0`` per second. ``FL`` rises
    from ``lmin`` to 1 at the optimal length and falls to ``lmax``, ``FV`` is 0 where the muscle
    shortens at full speed, 1 at rest and ``fvmax`` where it is stretched, ``FP`` is passive.

    Attributes:
        force: peak active force at rest [N].
        length_range: smallest and largest length of the actuator, which are ``range``.
        range: operating range of the muscle in optimal lengths.
        lmin: smallest length with active force, in optimal lengths.
        lmax: largest length with active force, likewise.
        vmax: fastest shortening, in optimal lengths per second.
        fpmax: passive force at ``lmax``, as a part of ``force``.
        fvmax: active force where it is stretched fast, likewise.
    """

    force: float
    length_range: tuple[float, float]
    range: tuple[float, float] = (0.75, 1.05)
    lmin: float = 0.5
    lmax: float = 1.6
    vmax: float = 1.5
    fpmax: float = 1.3
    fvmax: float = 1.2

    def __post_init__(self):
        for name in ("length_range", "range"):
            values = as_floats(getattr(self, name), f"{name} of a Muscle")
            object.__setattr__(self, name, values)
            if len(values) != 2 or not values[0] < values[1]:
                raise ModelError(
                    f"{name} of a Muscle must be the smallest and the largest length, got {values}"
                )
        for f in fields(self):
            x = getattr(self, f.name)
            if not isinstance(x, tuple) and not (
                isinstance(x, (int, float)) and math.isfinite(x) and x >= 0
            ):
                raise ModelError(
                    f"{f.name} of a Muscle must be a number that is not negative, got {x!r}"
                )
        if not (0 <= self.lmin < 1 < self.lmax and self.vmax > 0 and self.fvmax >= 1):
            raise ModelError(
                f"a Muscle needs lmin < 1 < lmax, vmax > 0 and fvmax >= 1, got lmin={self.lmin}, "
                f"lmax={self.lmax}, vmax={self.vmax}, fvmax={self.fvmax}"
            )

    @property
    def optimal_length(self) -> float:
        """Optimal length ``L0`` of the muscle [m]."""
        return (self.length_range[1] - self.length_range[0]) / (self.range[1] - self.range[0])

    @property
    def steepest(self) -> "ForceSlopes":
        """Upper bounds of the muscle's stiffness and damping, at full activation."""
        L0, rises = self.optimal_length, min(1 - self.lmin, self.lmax - 1)
        passive = self.fpmax / ((self.lmax - 1) / 2)
        stiffness = self.force / L0 * (2 / rises * self.fvmax + passive)
        return ForceSlopes(stiffness, 2 * self.force / (L0 * self.vmax))


class ForceSlopes(NamedTuple):
    """How fast a force falls."""

    stiffness: float
    """With length."""
    damping: float
    """With velocity."""
