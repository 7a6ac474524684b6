"""Numbers of a configuration that a user can change: a knob for every joint variable.

Every joint variable has a knob, an orientation three, for its angles.
"""

import math
from typing import NamedTuple

import numpy as np

from kinetree.errors import AssemblyError
from kinetree.functional.layout import positions
from kinetree.loops import assemble
from kinetree.spatial.rotation import (
    euler_angles,
    euler_rotation,
    quaternion_from_rotation,
    rotation_from_quaternion,
)

_SEQUENCE = "zyx"
_TURNS = ("yaw", "pitch", "roll")


class Knob(NamedTuple):
    """One number that a user can change."""

    label: str
    """Name of the joint, with the part where it has several."""
    joint: int
    """Number of the joint."""
    lower: float
    """Smallest value."""
    upper: float
    """Largest value."""
    unit: str
    """``rad`` or ``m``."""


class Knobs:
    """The knobs of a mechanism; configurations into their values and back.

    Args:
        model: the mechanism.
        size: how far what has no limits may move [m].
    """

    def __init__(self, model, size=1.0):
        self.model, self._pieces = model, []
        variables, knobs = positions(model), []
        for i, joint in enumerate(model.joint[1:], start=1):
            turns = list(joint.unit_parts) if joint.nq else []
            k = 0
            while k < joint.nq:
                at = model.q_slice[i].start + k
                part = next((p for p in turns if p.start == k), None)
                if part is not None:
                    knobs += self._orientation(i)
                    self._pieces.append((slice(at, at + 4), True))
                    k = part.stop
                else:
                    knobs.append(self._number(i, k, variables[at], size))
                    self._pieces.append((slice(at, at + 1), False))
                    k += 1
        self.knobs = tuple(knobs)

    def _orientation(self, i):
        """Three knobs (Euler angles) for the orientation of a joint."""
        name = self.model.joint_names[i - 1]
        half = (math.pi, math.pi / 2, math.pi)
        return [
            Knob(f"{name}.{turn}", i, -h, h, "rad") for turn, h in zip(_TURNS, half, strict=True)
        ]

    def _number(self, i, k, variable, size):
        """``Knob`` for one position variable, ranging over its limits."""
        limits = self.model.travel[i]
        reach = math.pi if variable.is_turn else 2 * size
        lower, upper = -reach, reach
        if limits is not None and len(limits.lower) > k and math.isfinite(limits.lower[k]):
            lower, upper = limits.lower[k], max(upper, limits.lower[k] + reach)
        if limits is not None and len(limits.upper) > k and math.isfinite(limits.upper[k]):
            lower, upper = min(lower, limits.upper[k]), limits.upper[k]
            if not math.isfinite(limits.lower[k]):
                lower = upper - 2 * reach
        return Knob(variable.name, i, lower, upper, variable.unit)

    def values(self, q) -> list[float]:
        """Knob values in configuration ``q``, (nq,)."""
        found = []
        for part, is_turn in self._pieces:
            if is_turn:
                found += [
                    float(x) for x in euler_angles(_SEQUENCE, rotation_from_quaternion(q[part]))
                ]
            else:
                found.append(float(q[part.start]))
        return found

    def configuration(self, values) -> np.ndarray:
        """Configuration (nq,) with these knob values."""
        q, k = self.model.neutral().astype(float), 0
        for part, is_turn in self._pieces:
            if is_turn:
                q[part] = quaternion_from_rotation(euler_rotation(_SEQUENCE, values[k : k + 3]))
                k += 3
            else:
                q[part.start] = values[k]
                k += 1
        return q

    def turn(self, q, k, value, *, closed=True):
        """Configuration after setting knob ``k``; None if loops cannot close there.

        Args:
            q: before, (nq,).
            k: number of the knob.
            value: where it is now.
            closed: let the other joints follow so that loops stay closed.

        Returns:
            The configuration, or None where the loops cannot close.
        """
        values = self.values(q)
        values[k] = value
        wanted = self.configuration(values)
        if not (closed and self.model.is_constrained):
            return wanted
        try:
            return assemble(
                self.model, wanted, hold=[self.model.joint_names[self.knobs[k].joint - 1]]
            )
        except AssemblyError:
            return None
