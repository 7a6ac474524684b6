"""A spatial vector as a screw: a directed line, a magnitude and a pitch — RBDA §2.5.

A vector with direction ``s`` and moment ``s_O`` is *free* if ``s = 0`` (a pure translation or
couple), a *line* vector if ``s·s_O = 0`` (a pure rotation or linear force), and *general* else.
For a motion ``s`` is the angular part, for a force the linear one. Deciding which it is needs
numbers, so the functions that do are for numbers only, not for traced code.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import as_vector3, cross

_TOLERANCE = 64 * np.finfo(float).eps


@dataclass(frozen=True)
class Screw:
    """A directed line with a magnitude and a pitch.

    Attributes:
        kind: ``Motion`` or ``Force``.
        direction: unit vector along the axis (3,); zero for the zero vector.
        magnitude: of the line part: angular speed or linear force; zero for a free vector.
        free_magnitude: of the part along the axis: linear speed or couple; signed like the pitch.
        point: of the axis, the one nearest the origin (3,); None where there is no definite axis.
    """

    kind: type
    direction: np.ndarray
    magnitude: float
    free_magnitude: float
    point: np.ndarray | None

    @classmethod
    def of(cls, x: Motion | Force) -> "Screw":
        """Screw (axis, pitch, magnitude) of a motion or force vector."""
        s, s_O = _parts(x)
        if classify(x) in ("free", "zero"):
            size = float(np.linalg.norm(s_O))
            return cls(type(x), s_O / size if size else s_O, 0.0, size, None)
        size = float(np.linalg.norm(s))
        return cls(type(x), s / size, size, float(s @ s_O) / size, axis_point(x))

    @property
    def pitch(self) -> float:
        """Pitch: translation per radian, or couple per force; infinite for a free vector."""
        return self.free_magnitude / self.magnitude if self.magnitude else np.inf

    def to_vector(self) -> Motion | Force:
        """Motion or force vector of this screw."""
        s = self.magnitude * self.direction
        moment = 0 * s if self.point is None else cross(self.point, s)
        return _assemble(self.kind, s, moment + self.free_magnitude * self.direction)


def classify(x, length=1.0) -> str:
    """Class of a spatial vector up to rounding: "zero", "free", "line" or "general".

    Args:
        x: a motion or force vector.
        length: size of the mechanism [m]; an axis 10¹³ times farther away counts as infinitely far.
    """
    s, s_O = _parts(x)
    size, moment = np.linalg.norm(s), np.linalg.norm(s_O)
    if size == 0 and moment == 0:
        return "zero"
    if size * length <= _TOLERANCE * moment:
        return "free"
    return "line" if abs(s @ s_O) <= _TOLERANCE * size * moment else "general"


def pitch(x):
    """Pitch ``h = s·s_O / s·s`` of a spatial vector; infinite for a free one — RBDA (2.10)."""
    if classify(x) == "zero":
        raise SingularError(f"the zero {type(x).__name__} has no pitch")
    return Screw.of(x).pitch


def axis_point(x):
    """Point of the screw axis nearest to the origin, (3,)."""
    kind = classify(x)
    if kind in ("zero", "free"):
        raise SingularError(
            f"a {kind} {type(x).__name__} has no definite axis: {_NO_AXIS[kind]}; its direction "
            f"is Screw.of(x).direction"
        )
    s, s_O = _parts(x)
    return cross(s, s_O) / (s @ s)


_NO_AXIS = {"zero": "it has no direction", "free": "every parallel line would do"}


def magnitude(x):
    """Magnitude of a spatial vector: angular or linear speed, force or couple.

    Magnitudes compare within one of these four sets only; a general vector has none.
    """
    kind = classify(x)
    if kind == "general":
        raise SingularError(
            f"a general {type(x).__name__} has no magnitude: it is the sum of a line vector and a "
            f"free vector with different units. Take the magnitudes of split(x) one by one"
        )
    s, s_O = _parts(x)
    return float(np.linalg.norm(s_O if kind == "free" else s))


def split(x):
    """Line vector and parallel free vector whose sum is ``x`` — RBDA (2.10).

    Of a free vector the line part is zero.
    """
    s, s_O = _parts(x)
    if classify(x) in ("zero", "free"):
        return type(x).zero(), x
    h = (s @ s_O) / (s @ s)
    return _assemble(type(x), s, s_O - h * s), _assemble(type(x), 0 * s, h * s)


def split_at_point(x, point):
    """Line vector through ``point`` and free vector whose sum is ``x`` — RBDA §2.5."""
    s, s_O = _parts(x)
    moment = cross(as_vector3(point, "the point"), s)
    return _assemble(type(x), s, moment), _assemble(type(x), 0 * s, s_O - moment)


def moment_about(f: Any, point: ArrayLike) -> Array:
    """Moment ``n_P = n_O + f × OP`` of a force about a point — RBDA (2.6)."""
    if not isinstance(f, Force):
        raise SpatialTypeError(
            f"moment_about needs a Force, got {type(f).__name__}; for a Motion see point_velocity"
        )
    return f.angular + cross(f.linear, as_vector3(point, "the point"))


def _parts(x):
    """Direction ``s`` and moment ``s_O`` of a motion or force."""
    if not isinstance(x, (Motion, Force)):
        raise SpatialTypeError(f"a screw is a Motion or a Force, got {type(x).__name__}")
    if x.angular.shape != (3,):
        raise ShapeError(f"a screw is a single vector, got {x.angular.shape[1]} columns")
    return (x.angular, x.linear) if isinstance(x, Motion) else (x.linear, x.angular)


def _assemble(kind, s, s_O):
    """Motion or force from direction ``s`` and moment ``s_O``."""
    return Motion(s, s_O) if kind is Motion else Force(s_O, s)
