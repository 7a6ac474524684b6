"""Placements, inertias and shapes of the native format."""

import inspect
import math
from typing import Any

import numpy as np

from kinetree.joints.axis import as_axis
from kinetree.loaders.meshes import mesh_file
from kinetree.loaders.toml.table import TomlTable
from kinetree.model import geometry, shapes
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.rotation import euler_rotation, rotation_about, rotation_from_quaternion
from kinetree.spatial.vector3 import ZERO3, identity3, symmetric


def placement(table: TomlTable) -> Plucker | None:
    """Placement from a TOML table's own keys; None if it has none of them."""
    position, E = table.numbers("at", 3, None), orientation(table)
    if position is None and E is None:
        return None
    return Plucker(
        identity3() if E is None else E, np.array((0, 0, 0) if position is None else position)
    )


def placement_of(table: TomlTable, key) -> Plucker | None:
    """Placement under a key: a position, or a table with ``at`` and an orientation."""
    value = table.get(key)
    if not isinstance(value, dict):
        position = table.numbers(key, 3, None)
        return None if position is None else Plucker(identity3(), np.array(position))
    inner = table.inner(value, key)
    X = placement(inner)
    inner.finish()
    return X


def orientation(table: TomlTable):
    """Rotation from roll-pitch-yaw, quaternion, axis and angle, or matrix; or None."""
    key = table.choice("rpy", "quaternion", "axis_angle", "rotation")
    if key is None:
        return None
    if key == "rotation":  # exactly as given; the model checks that it is a rotation
        return np.array(table.matrix(key)).T
    if key == "rpy":
        # Turns about fixed x, y, z are turns about moving z, y, x.
        E = euler_rotation("zyx", table.numbers(key, 3)[::-1])
    elif key == "quaternion":
        p = np.array(table.numbers(key, 4), dtype=float)
        size = float(np.max(np.abs(p)))
        if size == 0:
            raise table.error("quaternion must not be zero", key)
        p = p / size
        E = rotation_from_quaternion(p / np.linalg.norm(p))
    else:
        axis, angle = _axis_and_angle(table, key)
        E = rotation_about(axis, math.cos(angle), math.sin(angle))
    return _without_dust(E)


def _axis_and_angle(table, key):
    """Axis and angle [rad] of an entry such as ``["z", "30 deg"]``."""
    value = table.get(key)
    if not isinstance(value, list) or len(value) != 2:
        raise table.error(f"{key} must be [axis, angle], such as ['z', '30 deg'], got {value}", key)
    axis = value[0] if isinstance(value[0], str) else table.as_numbers(value[0], key, 3)
    return table.attempt(as_axis, axis, "axis", key=key), table.as_number(value[1], key)


def _without_dust(E):
    """Rotation with entries near 0 and ±1 made exact, as after quarter turns."""
    E = np.asarray(E, dtype=float)
    E = np.where(np.abs(E) < 4e-16, 0.0, E)
    return np.where(np.abs(np.abs(E) - 1) < 4e-16, np.sign(E), E)


# --- Inertias ------------------------------------------------------------------------------------


def _takes(name):
    """Names of the sizes and options of a function in ``kinetree.shapes``."""
    parameters = inspect.signature(getattr(shapes, name)).parameters.values()
    sizes = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return sizes, {p.name for p in parameters} - {*sizes}


_TAKES = {name: _takes(name) for name in shapes.__all__ if name != "point"}
SIZES = {name: len(sizes) for name, (sizes, _) in _TAKES.items()}
_WITH_AXIS = {name for name, (_, options) in _TAKES.items() if "axis" in options}


def read_inertia(body: TomlTable) -> Inertia | None:
    """Inertia under the key ``inertia`` of the TOML table of a body; None if absent."""
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


def _part(table: TomlTable) -> Inertia:
    """Inertia of one part of the TOML table of a body."""
    shape = table.choice(*SIZES)
    if shape is not None:
        inertia = _of_shape(table, shape)
    elif "first_moment" in table or "rotational" in table:
        inertia = Inertia(
            table.number("mass"),
            np.array(table.numbers("first_moment", 3)),
            np.array(table.matrix("rotational")),
        )
    else:
        inertia = _about_center(table)
    table.finish()
    return inertia


def _of_shape(table, shape):
    """Inertia of a shape with a mass or density in a TOML table."""
    sizes = table.numbers(shape, None if SIZES[shape] == 1 else SIZES[shape])
    options = {key: table.number(key, None) for key in ("mass", "density")}
    if shape in _WITH_AXIS:
        options["axis"] = table.text("axis", "z")
    make = getattr(shapes, shape)
    if len(sizes) != SIZES[shape]:
        raise table.error(f"{shape} takes one number, got {len(sizes)}", shape)
    at = placement(table)
    table.finish()  # a misspelt mass is not a missing one
    return table.attempt(make, *sizes, **options, at=at, key=shape)


def _about_center(table):
    """Inertia from mass, mass centre, moments and products about it in a TOML table."""
    mass, center = table.number("mass"), np.array(table.numbers("center", 3, (0, 0, 0)))
    moments = table.numbers("moments", 3, (0, 0, 0))
    xy, xz, yz = table.numbers("products", 3, (0, 0, 0))
    I = symmetric(moments[0], xy, moments[1], xz, yz, moments[2])
    E = orientation(table)
    if E is not None:
        I = Inertia(0, ZERO3, I).inverse_transformed(Plucker(E, ZERO3)).rotational
    return table.attempt(Inertia.from_mass_center, mass, center, I)


# --- Shapes --------------------------------------------------------------------------------------


def read_shape(table: TomlTable, report, folders):
    """Shape of a TOML table of a geometry; None, with a notice, for an unavailable mesh."""
    kind = table.choice(*_SHAPES)
    if kind is None:
        raise table.error(f"has no shape; give one of {', '.join(_SHAPES)}")
    if kind == "mesh":
        return _mesh(table, report, folders)
    shape = _SIZED[kind]
    return shape.from_sizes(_sizes(table, kind, sum(shape.counts().values())))


def read_surface(table: TomlTable) -> geometry.Surface | None:
    """Contact surface under the key ``surface``; None if absent."""
    inner = table.table("surface")
    if inner is None:
        return None
    given = {}
    for name, usual in vars(geometry.Surface()).items():
        if name in inner and isinstance(usual, tuple):
            given[name] = tuple(map(float, inner.numbers(name, len(usual))))
        elif name in inner:
            x = inner.number(name)
            given[name] = int(x) if isinstance(usual, int) and x == int(x) else x
    inner.finish()
    return geometry.Surface(**given)


def read_color(table: TomlTable):
    """RGBA colour from 0 to 1, or None; opacity 1 by default."""
    color = table.numbers("color", None, None)
    if color is None:
        return None
    if len(color) not in (3, 4) or not all(0 <= x <= 1 for x in color):
        raise table.error("color must be 3 or 4 numbers from 0 to 1", "color")
    return (*map(float, color), 1.0)[:4]


def _sizes(table, key, count) -> Any:
    """Sizes of a shape in a TOML table, checked."""
    sizes = table.numbers(key, None if count == 1 else count)
    if len(sizes) != count or any(x < 0 for x in sizes):
        raise table.error(f"{key} must be {count} sizes, not negative, got {list(sizes)}", key)
    return tuple(map(float, sizes))


def _mesh(table, report, folders):
    """Mesh of a TOML table of a geometry, or None where its file is missing."""
    scale = table.numbers("scale", 3, (1, 1, 1))
    line = table.document.line((*table.path, "mesh"))

    def note(why):
        effect = "contact" if table.flag("collision", True) else "picture"
        report.ignore(line, f"{table.label}: mesh", why, effect)

    path = mesh_file(table.text("mesh"), folders, note)
    x, y, z = map(float, scale)
    convex = table.flag("convex", True)
    return None if path is None else geometry.Mesh(path, (x, y, z), convex)


_SIZED = {shape.spelling(): shape for shape in (*geometry.SOLIDS, geometry.Plane)}
_SHAPES = (*_SIZED, "mesh")
