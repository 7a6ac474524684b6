"""Geometry: visual and collision shapes fixed to bodies.

Geometry plays no part in the dynamics; viewers, collision checks and file formats use it. Sizes
are in metres. Shapes are centred on their own frame and those with an axis have it along z.
"""

from dataclasses import dataclass, field

from kinetree.model.parts import Part
from kinetree.spatial import Plucker

__all__ = [
    "Box", "Capsule", "Cylinder", "Ellipsoid", "Geometry", "HeightField", "Mesh", "Plane", "Sphere",
]  # fmt: skip


@dataclass(frozen=True)
class Box:
    """Cuboid with edges of length ``size`` = (x, y, z)."""

    size: tuple[float, float, float]


@dataclass(frozen=True)
class Sphere:
    """Ball."""

    radius: float


@dataclass(frozen=True)
class Cylinder:
    """Cylinder along z."""

    radius: float
    length: float


@dataclass(frozen=True)
class Capsule:
    """Cylinder along z with a half-ball on either end; ``length`` is without them."""

    radius: float
    length: float


@dataclass(frozen=True)
class Ellipsoid:
    """Ellipsoid with semi-axes ``radii`` = (x, y, z)."""

    radii: tuple[float, float, float]


@dataclass(frozen=True)
class Plane:
    """The x-y plane, solid below; ``size`` = (x, y) is what a viewer draws of it."""

    size: tuple[float, float] = (10.0, 10.0)


@dataclass(frozen=True)
class HeightField:
    """Ground that is higher in some places than in others, solid below.

    A smooth surface (a bicubic spline) through ``heights[i][j]`` at points that are evenly spaced,
    i along x and j along y, over a rectangle of ``size`` = (x, y) around the origin. Beyond it, the
    ground goes on level.
    """

    heights: tuple[tuple[float, ...], ...]
    size: tuple[float, float]


@dataclass(frozen=True)
class Mesh:
    """A file of triangles, ``path`` as it was resolved, stretched by ``scale``."""

    path: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


Shape = Box | Sphere | Cylinder | Capsule | Ellipsoid | Plane | HeightField | Mesh


@dataclass(frozen=True, eq=False)
class Geometry(Part):
    """A shape fixed to a body.

    Attributes:
        body: number of the body; 0 is the base.
        shape: one of the shapes of this module.
        placement: from body to shape coordinates.
        name: what the file calls it; need not be unique.
        visual: whether it is drawn.
        collision: whether it can touch others.
        color: red, green, blue and opacity, each from 0 to 1, if known.
    """

    body: int
    shape: Shape
    placement: Plucker = field(default_factory=Plucker.identity)
    name: str = ""
    visual: bool = True
    collision: bool = True
    color: tuple[float, float, float, float] | None = None
