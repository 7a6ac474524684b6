"""Fluids around bodies: what is under water or in the wind, and the coefficients of its forces.

The forces are in ``algorithms.fluid``.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from kinetree.errors import ModelError
from kinetree.model.geometry import Box, Ellipsoid
from kinetree.spatial import Plucker

COEFFICIENTS = (0.5, 0.25, 1.5, 1.0, 1.0)
"""Usual ones of ellipsoids: blunt and slender drag, angular drag, Kutta and Magnus lift."""


@dataclass(frozen=True)
class FluidForce:
    """A fluid around a body: drag, and for an ellipsoid lift and the momentum of the fluid, too.

    Part of ``passive_force``. The shape is that of what the fluid flows around; it touches nothing.
    Several on a body add up.

    Attributes:
        body: number of the body.
        shape: ``Box`` or ``Ellipsoid``, which have different laws, see ``algorithms.fluid``.
        placement: from the body to the frame of the shape, whose centre is its origin.
        density: of the fluid [kg/m³].
        viscosity: of the fluid [Pa·s].
        wind: velocity of the fluid in base coordinates [m/s], (3,).
        coefficients: of an ellipsoid: blunt drag, slender drag, angular drag, Kutta lift, Magnus
            lift.
        added_mass: volumes of the fluid that an ellipsoid takes along with each axis [m³], (3,);
            those of an ideal fluid by default.
        added_inertia: the same for turns about each axis [m⁵], (3,).
    """

    body: int
    shape: Box | Ellipsoid
    placement: Plucker = field(default_factory=Plucker.identity)
    density: float = 0.0
    viscosity: float = 0.0
    wind: tuple[float, ...] = (0.0, 0.0, 0.0)
    coefficients: tuple[float, ...] = COEFFICIENTS
    added_mass: tuple[float, ...] = ()
    added_inertia: tuple[float, ...] = ()

    def __post_init__(self):
        if not isinstance(self.shape, (Box, Ellipsoid)):
            raise ModelError(
                f"a fluid force needs a geometry.Box or geometry.Ellipsoid, got "
                f"{type(self.shape).__name__}"
            )
        sizes = {"wind": 3, "coefficients": 5, "added_mass": 3, "added_inertia": 3}
        for name, size in sizes.items():
            given = getattr(self, name)
            try:
                values = tuple(float(x) for x in given)
            except (TypeError, ValueError):
                values = ()
            if len(values) != size and not (name.startswith("added") and len(given) == 0):
                raise ModelError(f"{name} of a fluid force must be {size} numbers, got {given!r}")
            object.__setattr__(self, name, values)
        if isinstance(self.shape, Ellipsoid):
            usual = added_volumes(self.shape.radii)
            for name, values in zip(("added_mass", "added_inertia"), usual, strict=True):
                if not getattr(self, name):
                    object.__setattr__(self, name, values)

    @property
    def is_momentum(self) -> bool:
        """Whether the force is a velocity product alone, as of ``momentum_force``."""
        names = ("viscosity", "wind", "coefficients", "added_mass", "added_inertia")
        alone = momentum_force(self.body, self.density)
        here = isinstance(self.shape, Ellipsoid) and not np.any(self.placement.r)
        return here and all(getattr(self, name) == getattr(alone, name) for name in names)


def momentum_force(body: int, mass: float) -> FluidForce:
    """Velocity-product force ``-mass ω × v`` of a mass at the origin of a body, as a FluidForce.

    With the same armature in the translations of a free joint, whose velocities are those in the
    body, the armature counts for velocities in the world, as in MuJoCo.
    """
    nothing, one = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    return FluidForce(
        body,
        Ellipsoid(one),
        density=mass,
        coefficients=(0.0,) * 5,
        added_mass=one,
        added_inertia=nothing,
    )


def added_volumes(radii) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Added-mass volumes of an ellipsoid along its axes, in an ideal fluid — Lamb, §114.

    With ``κ_x = a b c ∫ dλ / ((a² + λ) Δ)`` over all positive ``λ``, an integral of Carlson's, the
    fluid adds the mass ``ρ V κ_x / (2 - κ_x)`` to motion along x, and to turns about x the inertia
    ``ρ V/5 (b² - c²)² (κ_z - κ_y) / (2 (b² - c²) + (b² + c²) (κ_y - κ_z))``.
    """
    from scipy.special import elliprd

    square = [float(r) ** 2 for r in radii]
    volume = 4 / 3 * math.pi * math.prod(radii)
    kappa = [
        2 / 3 * math.prod(radii) * float(elliprd(square[i - 2], square[i - 1], square[i]))
        for i in range(3)
    ]
    mass = tuple(volume * k / (2 - k) for k in kappa)
    inertia = []
    for i in range(3):
        b, c, k_b, k_c = square[i - 2], square[i - 1], kappa[i - 2], kappa[i - 1]
        below = 2 * (b - c) + (b + c) * (k_b - k_c)
        round_ = abs(b - c) < 1e-9 * (b + c)  # about the axis: the fluid stays where it is
        inertia.append(0.0 if round_ else volume / 5 * (b - c) ** 2 * (k_c - k_b) / below)
    return mass, tuple(inertia)


def inertia_box(inertia) -> tuple[Box, Plucker]:
    """Homogeneous box with a body's mass and inertia, and its placement on the body."""
    m, c = float(inertia.mass), np.asarray(inertia.center_of_mass, dtype=float)
    moments, R = np.linalg.eigh(np.asarray(inertia.rotational_at_center, dtype=float))
    if np.linalg.det(R) < 0:
        R = R * np.array([1.0, 1.0, -1.0])
    sides = [max((moments.sum() - 2 * x) * 6 / m, 0.0) for x in moments]
    x, y, z = map(math.sqrt, sides)
    return Box((x, y, z)), Plucker(R.T, c)


def check_fluid_force(model, f) -> None:
    """Raise ModelError for a fluid force with an invalid body, shape or coefficients."""
    what = f"the fluid force of body {model.body_names[f.body]!r}"
    if f.body == 0:
        raise ModelError(f"{what}: the base does not move, and no fluid flows around it")
    for name in ("density", "viscosity"):
        value = getattr(f, name)
        if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
            raise ModelError(f"{name} of {what} must be a number that is not negative: {value!r}")
    for name in ("wind", "coefficients", "added_mass", "added_inertia"):
        if not np.all(np.isfinite(getattr(f, name))):
            raise ModelError(f"{name} of {what} must be finite, got {getattr(f, name)!r}")
