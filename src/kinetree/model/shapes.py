"""Inertias of simple shapes of uniform density — Lynch & Park 9.2.1.

Every function takes sizes in metres, then a ``mass`` [kg] or a ``density`` (per volume, area or
length, as the shape has it), and where the shape sits on the body, ``at``: the position (3,) of
its centre, or a ``Plucker`` from body to shape coordinates. Shapes with an axis have it along z,
unless ``axis`` names another.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError
from kinetree.model.parts import as_placement
from kinetree.spatial import Inertia
from kinetree.spelling import explains

if TYPE_CHECKING:
    from kinetree.spatial import Plucker

__all__ = [
    "box", "capsule", "cone", "cylinder", "cylinder_shell", "disc", "ellipsoid", "point", "rod",
    "sphere", "sphere_shell",
]  # fmt: skip


@explains
def box(
    x: float,
    y: float,
    z: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
) -> Inertia:
    """Inertia of a solid cuboid with edges ``x``, ``y``, ``z`` [m]."""
    m = _mass("box", x * y * z, mass, density, x, y, z)
    return _place_moments(m, (m / 12) * np.array([y * y + z * z, x * x + z * z, x * x + y * y]), at)


@explains
def ellipsoid(
    a: float,
    b: float,
    c: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
) -> Inertia:
    """Inertia of a solid ellipsoid with semi-axes ``a``, ``b``, ``c`` along x, y, z [m]."""
    m = _mass("ellipsoid", 4 / 3 * math.pi * a * b * c, mass, density, a, b, c)
    return _place_moments(m, (m / 5) * np.array([b * b + c * c, a * a + c * c, a * a + b * b]), at)


@explains
def sphere(
    radius: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
) -> Inertia:
    """Inertia of a solid ball."""
    m = _mass("sphere", 4 / 3 * math.pi * radius**3, mass, density, radius)
    return _place_moments(m, np.full(3, 2 / 5 * m * radius**2), at)


@explains
def sphere_shell(
    radius: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
) -> Inertia:
    """Inertia of a thin spherical shell; density per area [kg/m²]."""
    m = _mass("sphere shell", 4 * math.pi * radius**2, mass, density, radius)
    return _place_moments(m, np.full(3, 2 / 3 * m * radius**2), at)


@explains
def cylinder(
    radius: float,
    length: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
    axis: str = "z",
) -> Inertia:
    """Inertia of a solid cylinder about its centre."""
    m = _mass("cylinder", math.pi * radius**2 * length, mass, density, radius, length)
    across = m * (3 * radius**2 + length**2) / 12
    return _place_moments(m, _about(axis, across, m * radius**2 / 2), at)


@explains
def cylinder_shell(
    radius: float,
    length: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
    axis: str = "z",
) -> Inertia:
    """Inertia of a thin tube without ends; density per area [kg/m²]."""
    m = _mass("cylinder shell", 2 * math.pi * radius * length, mass, density, radius, length)
    return _place_moments(m, _about(axis, m * (radius**2 / 2 + length**2 / 12), m * radius**2), at)


@explains
def disc(
    radius: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
    axis: str = "z",
) -> Inertia:
    """Inertia of a thin disc; density per area [kg/m²]."""
    m = _mass("disc", math.pi * radius**2, mass, density, radius)
    return _place_moments(m, _about(axis, m * radius**2 / 4, m * radius**2 / 2), at)


@explains
def rod(
    length: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
    axis: str = "z",
) -> Inertia:
    """Inertia of a thin rod about its centre, zero about its axis; density per length [kg/m]."""
    m = _mass("rod", length, mass, density, length)
    return _place_moments(m, _about(axis, m * length**2 / 12, 0.0), at)


@explains
def capsule(
    radius: float,
    length: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
    axis: str = "z",
) -> Inertia:
    """Inertia of a solid cylinder of the given length with half-balls at its ends."""
    r, tube, balls = radius, math.pi * radius**2 * length, 4 / 3 * math.pi * radius**3
    m = _mass("capsule", tube + balls, mass, density, radius, length)
    m_tube, m_balls = m * tube / (tube + balls), m * balls / (tube + balls)
    # The mass centre of a half-ball is 3r/8 from its flat side.
    across = m_tube * (3 * r**2 + length**2) / 12
    across += m_balls * (2 / 5 * r**2 + length**2 / 4 + 3 / 8 * length * r)
    return _place_moments(m, _about(axis, across, m_tube * r**2 / 2 + m_balls * 2 / 5 * r**2), at)


@explains
def cone(
    radius: float,
    height: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    at: "ArrayLike | Plucker | None" = None,
    axis: str = "z",
) -> Inertia:
    """Inertia of a solid cone about its mass centre, height/4 above the base; tip at +z."""
    m = _mass("cone", math.pi * radius**2 * height / 3, mass, density, radius, height)
    across = m * (3 / 20 * radius**2 + 3 / 80 * height**2)
    return _place_moments(m, _about(axis, across, 3 / 10 * m * radius**2), at)


@explains
def point(*, mass: float, at: "ArrayLike | Plucker | None" = None) -> Inertia:
    """Inertia of a point mass."""
    return _place_moments(_mass("point", 1, mass, None), np.zeros(3), at)


def _mass(shape, extent, mass, density, *sizes):
    """Mass of a shape, given directly or by density; errors for wrong sizes."""
    if (mass is None) == (density is None):
        raise ModelError(f"{shape}: give either mass or density, got {mass=}, {density=}")
    for value in (*sizes, density if mass is None else mass):
        if not 0 <= value < math.inf:
            raise ModelError(
                f"{shape}: sizes, mass and density must be finite and not negative, got {value}"
            )
    return density * extent if mass is None else mass


def _about(axis, across, along):
    """Principal moments (3,) of a shape with its axis along x, y or z."""
    if axis not in ("x", "y", "z"):
        raise ModelError(f"axis of a shape must be 'x', 'y' or 'z', got {axis!r}; others by 'at'")
    return np.array([along if axis == name else across for name in "xyz"])


def _place_moments(mass, moments, at):
    """Inertia from principal moments about the centre, placed ``at`` on a body."""
    return Inertia.from_mass_center(mass, np.zeros(3), np.diag(moments)).inverse_transformed(
        as_placement(at)
    )


guard_module(__name__)
