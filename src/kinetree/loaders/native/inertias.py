"""How heavy a body is: a shape with its mass, the usual ten numbers, or a list of such parts."""

import numpy as np

from kinetree.loaders.native.placements import orientation, placement
from kinetree.loaders.toml.table import Table
from kinetree.model import shapes
from kinetree.spatial import Inertia
from kinetree.spatial.transform import Plucker
from kinetree.spatial.vector3 import ZERO3, symmetric

__all__ = ["read_inertia"]

# Sizes that each shape of kinetree.shapes takes; those with an axis take one.
SIZES = {
    "box": 3, "ellipsoid": 3, "sphere": 1, "sphere_shell": 1, "cylinder": 2, "cylinder_shell": 2,
    "disc": 1, "rod": 1, "capsule": 2, "cone": 2,
}  # fmt: skip
_WITH_AXIS = {"cylinder", "cylinder_shell", "disc", "rod", "capsule", "cone"}


def read_inertia(body: Table) -> Inertia | None:
    """The inertia under the key ``inertia`` of a body; None if there is none."""
    value = body.get("inertia")
    if value is None:
        return None
    parts = value if isinstance(value, list) else [value]
    total = None
    for part in parts:
        if not isinstance(part, dict):
            raise body.error(
                "inertia must be a table such as {box = [0.1, 0.1, 0.4], mass = 2}, or a list of "
                f"tables, got {part!r}",
                "inertia",
            )
        inertia = _part(body.inner(part, "inertia"))
        total = inertia if total is None else total + inertia
    return total


def _part(table: Table) -> Inertia:
    shape = table.choice(*SIZES)
    if shape is not None:
        inertia = _of_shape(table, shape)
    elif "first_moment" in table or "rotational" in table:
        inertia = Inertia(
            table.number("mass"), np.array(table.numbers("first_moment", 3)),
            np.array(table.matrix("rotational")),
        )  # fmt: skip
    else:
        inertia = _about_center(table)
    table.finish()
    return inertia


def _of_shape(table, shape):
    sizes = table.numbers(shape, None if SIZES[shape] == 1 else SIZES[shape])
    options = {key: table.number(key, None) for key in ("mass", "density")}
    if shape in _WITH_AXIS:
        options["axis"] = table.text("axis", "z")
    make = getattr(shapes, shape)
    if len(sizes) != SIZES[shape]:
        raise table.error(f"{shape} takes one number, got {len(sizes)}", shape)
    at = placement(table)
    table.finish()  # a misspelt mass is no missing one
    return table.attempt(make, *sizes, **options, at=at, key=shape)


def _about_center(table):
    """Mass, mass centre, and moments and products about it along the axes of the body or others."""
    mass, center = table.number("mass"), np.array(table.numbers("center", 3, (0, 0, 0)))
    moments = table.numbers("moments", 3, (0, 0, 0))
    xy, xz, yz = table.numbers("products", 3, (0, 0, 0))
    I = symmetric(moments[0], xy, moments[1], xz, yz, moments[2])
    E = orientation(table)
    if E is not None:
        I = Inertia(0, ZERO3, I).inverse_transformed(Plucker(E, ZERO3)).rotational
    return table.attempt(Inertia.from_mass_center, mass, center, I)
