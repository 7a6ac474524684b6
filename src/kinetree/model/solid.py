"""Bases of all shapes: the one place where files, checks, inertias and pictures look them up.

A shape is a frozen dataclass of sizes in metres. ``Solid`` is the base of convex bodies that a few
sizes describe; what such a class defines is all that there is to say of it outside of
``contact/collision/kinds``, which has its support function and the like.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, get_args

if TYPE_CHECKING:
    from typing_extensions import Self

    from kinetree.arrays.kinds import ArrayLike
    from kinetree.spatial import Inertia, Plucker

_WHOLE = ("size", "length")  # sizes that are not radii: half of them is a distance from the centre


class Shape:
    """Something that can be seen or touched.

    Attributes:
        formats: those of "urdf", "sdf" and "mjcf" that have such a shape, called ``spelling()``
            there, with its fields as attributes or elements.
    """

    formats: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def spelling(cls) -> str:
        """Name of the shape in model files."""
        return cls.__name__.lower()

    @classmethod
    @cache
    def counts(cls) -> dict[str, int]:
        """Number of scalars that each field of the shape takes, by name."""
        return {f.name: len(get_args(f.type)) or 1 for f in fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def from_sizes(cls, sizes: Any) -> "Self":
        """Shape from all its sizes in one sequence, in the order of the fields."""
        left, given = list(sizes), []
        for count in cls.counts().values():
            part, left = left[:count], left[count:]
            given.append(part[0] if count == 1 else tuple(part))
        return cls(*given)

    @property
    def sizes(self) -> tuple[float, ...]:
        """All sizes of the shape in one tuple."""
        values = [getattr(self, name) for name in self.counts()]
        return tuple(x for v in values for x in (v if isinstance(v, tuple) else (v,)))


class Solid(Shape, ABC):
    """A convex solid about the origin of its frame; one with an axis has it along z.

    Attributes:
        usual: sizes where a file of SDF leaves them out; one metre each by default.
    """

    usual: ClassVar[tuple[float, ...]] = ()

    @property
    @abstractmethod
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the bounding box [m], (3,)."""

    @property
    def reach(self) -> float:
        """Radius of a bounding ball about the origin [m]."""
        return math.hypot(*self.half_extents)

    @abstractmethod
    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> "Inertia":
        """Inertia of the solid with uniform density [kg/m³], placed ``at`` on a body."""

    def outline(self, corners: int) -> list[tuple[float, float]] | None:
        """Outline points (r, z) of a solid of revolution, upwards; None for other solids.

        ``corners`` are those of the polygon that stands for a circle.
        """
        del corners
        return None

    # MuJoCo, and the tables of collision, have half lengths.

    @classmethod
    @cache
    def _are_whole(cls):
        """For every size, whether it is a full length, not a radius or half length."""
        return [name in _WHOLE for name, count in cls.counts().items() for _ in range(count)]

    @classmethod
    def from_half_sizes(cls, sizes: Any) -> "Self":
        """Shape from radii and half lengths, in the order of the fields; excess is ignored."""
        whole = cls._are_whole()
        return cls.from_sizes([2 * x if w else x for x, w in zip(sizes, whole, strict=False)])

    @property
    def half_sizes(self) -> tuple[float, ...]:
        """Radii and half lengths of the shape, in the order of the fields."""
        whole = self._are_whole()
        return tuple(x / 2 if w else x for x, w in zip(self.sizes, whole, strict=True))

    def grown(self, factor: float) -> "Self":
        """Copy of the solid with all sizes multiplied by a factor."""
        return self.from_sizes([x * factor for x in self.sizes])


def rounded_outline(radius: float, length: float, corners: int) -> list[tuple[float, float]]:
    """Outline of a capsule as points (r, z); of a ball if the length is zero."""
    count = corners // 4
    angles = [(k / count - 1) * math.pi / 2 for k in range(2 * count + 1)]
    low, high = angles[: count + 1], angles[count:] if length else angles[count + 1 :]
    return [
        (radius * math.cos(a), radius * math.sin(a) + end * length / 2)
        for end, part in ((-1, low), (1, high))
        for a in part
    ]
