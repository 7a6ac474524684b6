"""Geometry: visual and collision shapes fixed to bodies.

Geometry plays no part in the dynamics; viewers, collision checks and file formats use it. Sizes
are in metres. Shapes are centred on their own frame and those with an axis have it along z.
``SOLIDS`` lists those that a few sizes describe, ``SHAPES`` all: files, checks, contact and
pictures go through them.
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import ArrayLike
from kinetree.model import shapes
from kinetree.model.parts import FrozenPart, as_placement
from kinetree.model.solid import Shape, Solid, rounded_outline
from kinetree.spatial import Inertia, Plucker
from kinetree.spelling import explains_itself

__all__ = [
    "SHAPES",
    "SOLIDS",
    "Box",
    "Capsule",
    "Cone",
    "ContactPair",
    "Cylinder",
    "Ellipsoid",
    "Geometry",
    "HeightField",
    "Mesh",
    "Plane",
    "Shape",
    "Solid",
    "Sphere",
    "Surface",
]

_EVERYWHERE = frozenset({"urdf", "sdf", "mjcf"})


@explains_itself
@dataclass(frozen=True)
class Box(Solid):
    """Cuboid with edges of length ``size`` = (x, y, z)."""

    formats: ClassVar = _EVERYWHERE
    size: tuple[float, float, float]

    @property
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the box [m], (3,)."""
        x, y, z = self.size
        return (x / 2, y / 2, z / 2)

    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
        """Inertia of a solid box of uniform density [kg/m³], placed ``at`` on a body."""
        return shapes.box(*self.size, density=density, at=at)


@explains_itself
@dataclass(frozen=True)
class Sphere(Solid):
    """Ball."""

    formats: ClassVar = _EVERYWHERE
    radius: float

    @property
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the bounding box [m], (3,)."""
        return (self.radius, self.radius, self.radius)

    @property
    def reach(self) -> float:
        """Radius of the bounding sphere about the centre [m]."""
        return self.radius

    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
        """Inertia of a solid sphere of uniform density [kg/m³], placed ``at`` on a body."""
        return shapes.sphere(self.radius, density=density, at=at)

    def outline(self, corners: int) -> list[tuple[float, float]]:
        """Outline of the sphere as a half circle of points (r, z)."""
        return rounded_outline(self.radius, 0.0, corners)


@explains_itself
@dataclass(frozen=True)
class Cylinder(Solid):
    """Cylinder along z."""

    formats: ClassVar = _EVERYWHERE
    radius: float
    length: float

    @property
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the bounding box [m], (3,)."""
        return (self.radius, self.radius, self.length / 2)

    @property
    def reach(self) -> float:
        """Radius of the bounding sphere about the centre [m]."""
        return math.hypot(self.radius, self.length / 2)

    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
        """Inertia of a solid cylinder of uniform density [kg/m³], placed ``at`` on a body."""
        return shapes.cylinder(self.radius, self.length, density=density, at=at)

    def outline(self, corners: int) -> list[tuple[float, float]]:
        """Outline of the cylinder: three sides of a rectangle of points (r, z)."""
        del corners
        r, h = self.radius, self.length / 2
        return [(0, -h), (r, -h), (r, h), (0, h)]


@explains_itself
@dataclass(frozen=True)
class Capsule(Solid):
    """Cylinder along z with a half-ball on either end; ``length`` is without them."""

    formats: ClassVar = _EVERYWHERE
    usual: ClassVar = (0.5, 1.0)
    radius: float
    length: float

    @property
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the bounding box [m], (3,)."""
        return (self.radius, self.radius, self.length / 2 + self.radius)

    @property
    def reach(self) -> float:
        """Radius of the bounding sphere about the centre [m]."""
        return self.length / 2 + self.radius

    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
        """Inertia of a solid capsule of uniform density [kg/m³], placed ``at`` on a body."""
        return shapes.capsule(self.radius, self.length, density=density, at=at)

    def outline(self, corners: int) -> list[tuple[float, float]]:
        """Outline of the capsule: two quarter circles and a line, as points (r, z)."""
        return rounded_outline(self.radius, self.length, corners)


@explains_itself
@dataclass(frozen=True)
class Ellipsoid(Solid):
    """Ellipsoid with semi-axes ``radii`` = (x, y, z)."""

    formats: ClassVar = frozenset({"sdf", "mjcf"})
    radii: tuple[float, float, float]

    @property
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the bounding box [m], (3,)."""
        return self.radii

    @property
    def reach(self) -> float:
        """Radius of the bounding sphere: the largest semi-axis [m]."""
        return max(self.radii)

    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
        """Inertia of a solid ellipsoid of uniform density [kg/m³], placed ``at`` on a body."""
        return shapes.ellipsoid(*self.radii, density=density, at=at)


@explains_itself
@dataclass(frozen=True)
class Cone(Solid):
    """Cone along z, as in SDF: the base half of ``length`` below the origin, the tip above."""

    formats: ClassVar = frozenset({"sdf"})
    usual: ClassVar = (0.5, 1.0)
    radius: float
    length: float

    @property
    def half_extents(self) -> tuple[float, float, float]:
        """Half edge lengths of the bounding box [m], (3,)."""
        return (self.radius, self.radius, self.length / 2)

    @property
    def reach(self) -> float:
        """Radius of the bounding sphere about the origin [m]."""
        return math.hypot(self.radius, self.length / 2)

    def inertia(self, density: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
        """Inertia of a solid cone of uniform density [kg/m³], placed ``at`` on a body."""
        low = shapes.cone(self.radius, self.length, density=density, at=(0, 0, -self.length / 4))
        return low.inverse_transformed(as_placement(at))

    def outline(self, corners: int) -> list[tuple[float, float]]:
        """Outline of the cone: base and side, as points (r, z)."""
        del corners
        h = self.length / 2
        return [(0, -h), (self.radius, -h), (0, h)]


@explains_itself
@dataclass(frozen=True)
class Plane(Shape):
    """The x-y plane, solid below, without end for contact.

    ``size`` = (x, y) is the part around the origin that viewers draw and range finders see, from
    above; 0 for one without end.
    """

    formats: ClassVar = frozenset({"sdf", "mjcf"})
    size: tuple[float, float] = (10.0, 10.0)


@explains_itself
@dataclass(frozen=True)
class HeightField(Shape):
    """Uneven ground given by heights on a grid, solid below.

    A smooth surface (a bicubic spline) through ``heights[i][j]`` at points that are evenly spaced,
    i along x and j along y, over a rectangle of ``size`` = (x, y) around the origin. Beyond it, the
    ground continues level.
    """

    heights: tuple[tuple[float, ...], ...]
    size: tuple[float, float]

    def __post_init__(self):
        if getattr(self.heights, "ndim", 0) == 2:  # an array
            rows: Any = self.heights
            object.__setattr__(self, "heights", tuple(map(tuple, rows.tolist())))


@explains_itself
@dataclass(frozen=True)
class Mesh(Shape):
    """A triangle mesh in a file, ``path`` as resolved, scaled by ``scale``.

    Its convex hull is used for contact; if ``convex`` is False, the triangles themselves.
    """

    path: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    convex: bool = True


SOLIDS: tuple[type[Solid], ...] = (Sphere, Capsule, Box, Cylinder, Ellipsoid, Cone)
"""Simple solids; of two in contact, closed forms have the one that comes earlier here first."""

SHAPES: tuple[type[Shape], ...] = (*SOLIDS, Plane, HeightField, Mesh)
"""All shapes."""


def solids_of_format(name: str) -> dict[str, type[Solid]]:
    """Classes of solids that a file format has, by their names there."""
    return {solid.spelling(): solid for solid in SOLIDS if name in solid.formats}


@explains_itself
@dataclass(frozen=True)
class Surface:
    """Contact properties of a shape: what it touches, and how, as in MuJoCo (from 3.9 on).

    Two shapes may touch if a bit of ``contype`` of one is also one of ``conaffinity`` of the other.
    Coefficients of a pair are those of the shape with the higher ``priority``, or else the larger
    of the two.

    Attributes:
        friction: coefficient of sliding friction; None: that of the other shape, or of the scene.
        torsion: of friction against spinning about the normal [m].
        rolling: of friction against rolling [m].
        restitution: coefficient of restitution; None as for friction.
        condim: directions in which a contact acts: 1: no friction; 3: sliding friction; 4 and 6:
            with torsion, and with rolling too.
        margin: how far apart the shapes are held [m]; those of both are added. Negative ones let
            them overlap so far.
        gap: additional distance at which contacts are already reported [m]; it changes no motion.
        priority: the coefficients of the higher one hold.
        contype: bits of the kinds that the shape is of.
        conaffinity: bits of the kinds that it touches.
        velocity: at which the surface moves along the shape's axes, as of a conveyor belt [m/s].
    """

    friction: float | None = None
    torsion: float | None = None
    rolling: float | None = None
    restitution: float | None = None
    condim: int = 3
    margin: float = 0.0
    gap: float = 0.0
    priority: int = 0
    contype: int = 1
    conaffinity: int = 1
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)


_COEFFICIENTS = ("friction", "torsion", "rolling", "restitution", "condim")


def joined_surface(a: Surface | None, b: Surface | None) -> Surface | None:
    """Contact properties of two touching shapes, combined as in MuJoCo.

    Coefficients are those of the one with the higher priority, else the larger ones; margins and
    gaps are added.
    """
    if a is None or b is None:
        return a or b
    of_both = {name: [getattr(s, name) for s in (a, b)] for name in _COEFFICIENTS}
    chosen: dict[str, Any]
    if a.priority == b.priority:
        chosen = {name: _largest(values) for name, values in of_both.items()}
    else:
        high = int(b.priority > a.priority)
        chosen = {
            name: values[1 - high] if values[high] is None else values[high]
            for name, values in of_both.items()
        }
    return Surface(**chosen, margin=a.margin + b.margin, gap=a.gap + b.gap)


def _largest(values):
    """Largest of the values that are not None, or None."""
    return max((x for x in values if x is not None), default=None)


@explains_itself
@dataclass(frozen=True)
class ContactPair:
    """Two shapes, or all shapes of two links or bodies, that may or must not touch.

    Attributes:
        first: name of a shape, link, frame or body.
        second: name of the other.
        touch: True if they may touch, False if they must not; overrides other settings.
        surface: coefficients of the pair; None: those of its shapes.
        name: what the file calls it; need not be unique.
    """

    first: str
    second: str
    touch: bool = True
    surface: Surface | None = None
    name: str = ""


@explains_itself
@dataclass(frozen=True, eq=False)
class Geometry(FrozenPart):
    """A shape fixed to a body.

    Attributes:
        body: number of the body; 0 is the base.
        shape: one of the shapes of this module.
        placement: from body to shape coordinates.
        name: what the file calls it; need not be unique.
        visual: whether it is drawn.
        collision: whether it can touch others.
        color: red, green, blue and opacity, each from 0 to 1, if known.
        surface: friction and other properties of its contacts; None: those of the scene.
        link: name of the link that it belongs to, where that is a named part of the body,
            such as a foot on a fixed joint; empty: the body.
    """

    body: int
    shape: Shape
    placement: Plucker = field(default_factory=Plucker.identity)
    name: str = ""
    visual: bool = True
    collision: bool = True
    color: tuple[float, float, float, float] | None = None
    surface: Surface | None = None
    link: str = ""


guard_module(__name__)
