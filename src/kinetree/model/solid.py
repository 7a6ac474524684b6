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
        """Name in files."""
        return cls.__name__.lower()

    @classmethod
    @cache
    def counts(cls) -> dict[str, int]:
        """Numbers that each field takes, by name."""
        return {f.name: len(get_args(f.type)) or 1 for f in fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def from_sizes(cls, sizes: Any) -> "Self":
        """A shape from all its sizes in one row, in the order of the fields."""
        left, given = list(sizes), []
        for count in cls.counts().values():
            part, left = left[:count], left[count:]
            given.append(part[0] if count == 1 else tuple(part))
        return cls(*given)

    @property
    def sizes(self) -> tuple[float, ...]:
        """All sizes in one row."""
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
        """Half edges of the box around it."""

    @property
    def reach(self) -> float:
        """Radius of a ball around the origin that it is in."""
        return math.hypot(*self.half_extents)

    @abstractmethod
    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> "Inertia":
        """Inertia of the solid, of uniform density [kg/m³], at a place on a body."""

    def outline(self, corners: int) -> list[tuple[float, float]] | None:
        """Points (r, z) of the outline of a solid of revolution, upwards; None of any other.

        ``corners`` are those of the polygon that stands for a circle.
        """
        del corners
        return None

    # MuJoCo, and the tables of collision, have half lengths.

    @classmethod
    @cache
    def _are_whole(cls):
        """For every size, whether it is a whole length, not a radius or a half."""
        return [name in _WHOLE for name, count in cls.counts().items() for _ in range(count)]

    @classmethod
    def from_half_sizes(cls, sizes: Any) -> "Self":
        """A shape from its radii and half lengths, in the order of the fields; more are ignored."""
        whole = cls._are_whole()
        return cls.from_sizes([2 * x if w else x for x, w in zip(sizes, whole, strict=False)])

    @property
    def half_sizes(self) -> tuple[float, ...]:
        """Radii and half lengths, in the order of the fields."""
        whole = self._are_whole()
        return tuple(x / 2 if w else x for x, w in zip(self.sizes, whole, strict=True))

    def grown(self, factor: float) -> "Self":
        """Solid with all sizes multiplied."""
        return self.from_sizes([x * factor for x in self.sizes])


def rounded_outline(radius: float, length: float, corners: int) -> list[tuple[float, float]]:
    """Outline of a capsule, or of a ball where the length is zero."""
    count = corners // 4
    angles = [(k / count - 1) * math.pi / 2 for k in range(2 * count + 1)]
    low, high = angles[: count + 1], angles[count:] if length else angles[count + 1 :]
    return [
        (radius * math.cos(a), radius * math.sin(a) + end * length / 2)
        for end, part in ((-1, low), (1, high))
        for a in part
    ]
