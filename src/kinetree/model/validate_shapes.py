"""Checks of shapes, their surfaces, and pairs that touch."""

from contextlib import suppress

import numpy as np

from kinetree.codegen.weak_table import WeakTable
from kinetree.errors import (
    ModelError,
    UnknownNameError,
)
from kinetree.model.geometry import Mesh, Plane, Shape, Surface
from kinetree.model.names import is_known, names_that_touch
from kinetree.model.validate_attachments import check_numbers
from kinetree.spelling import did_you_mean

_SOUND = WeakTable()
"""Shapes and surfaces, which never change, that were found right in another model, by ``id``."""


def check_shape(geometry, what):
    """Raise ModelError unless a shape has valid sizes, placement and colour."""
    shape = geometry.shape
    if not isinstance(shape, Shape):
        raise ModelError(
            f"shape of {what} must be one of kinetree.geometry, such as Sphere(0.1), got "
            f"{type(shape).__name__}"
        )
    for name in () if _SOUND.get(id(shape)) is shape else shape.counts():
        value = getattr(shape, name)
        if name == "path":
            if not isinstance(value, str) or not value:
                raise ModelError(f"path of {what} must be the name of a file, got {shape!r}")
            continue
        if name == "convex":
            if not isinstance(value, bool):
                raise ModelError(f"convex of {what} must be True or False, got {value!r}")
            continue
        if name == "heights":
            _check_heights(value, f"heights of {what}")
            continue
        values = np.atleast_1d(value).tolist()
        check_numbers(values, f"{name} of {what}")
        size = shape.counts()[name]
        if len(values) != size:
            raise ModelError(f"{name} of {what} needs {size} numbers, got {len(values)}")
        flat = isinstance(shape, (Mesh, Plane)) or name == "length"  # mirrored, infinite, a ball
        if not flat and min(values) <= 0:
            raise ModelError(f"{name} of {what} must be positive, got {min(values):.6g}")
        if name == "length" and min(values) < 0:
            raise ModelError(f"{name} of {what} must not be negative, got {min(values):.6g}")
    _remember(shape)
    for key in ("name", "link"):
        if not isinstance(getattr(geometry, key), str):
            raise ModelError(f"{key} of {what} must be a string, got {getattr(geometry, key)!r}")
    check_surface(geometry.surface, what)
    if geometry.color is not None:
        check_numbers(geometry.color, f"color of {what}")
        if len(geometry.color) != 4 or not all(0 <= x <= 1 for x in geometry.color):
            raise ModelError(
                f"color of {what} must be red, green, blue and opacity from 0 to 1, got "
                f"{geometry.color}"
            )


def check_surface(surface, what):
    """Raise ModelError unless a contact surface has valid coefficients."""
    if surface is None or _SOUND.get(id(surface)) is surface:
        return
    what = f"surface of {what}"
    if not isinstance(surface, Surface):
        raise ModelError(f"{what} must be a geometry.Surface, got {type(surface).__name__}")
    for name, x in vars(surface).items():
        if name in ("condim", "priority", "contype", "conaffinity"):
            if not isinstance(x, (int, np.integer)) or isinstance(x, bool):
                raise ModelError(f"{name} of the {what} must be an integer, got {x!r}")
        elif name == "velocity":
            check_numbers(x, f"velocity of the {what}")
            if len(x) != 3:
                raise ModelError(f"velocity of the {what} must be three numbers [m/s], got {x!r}")
        elif x is not None or name in ("margin", "gap"):
            check_numbers((x,), f"{name} of the {what}")
            if name not in ("margin", "gap") and x is not None and x < 0:
                raise ModelError(f"{name} of the {what} must not be negative, got {x:.6g}")
    if surface.restitution is not None and surface.restitution > 1:
        raise ModelError(
            f"restitution of the {what} must be from 0 to 1, got {surface.restitution:.6g}"
        )
    if surface.condim not in (1, 3, 4, 6):
        raise ModelError(f"condim of the {what} must be 1, 3, 4 or 6, got {surface.condim}")
    _remember(surface)


def _remember(part):
    """Mark a part as checked, so that it is not checked again."""
    with suppress(TypeError):  # of lists and arrays, which may change
        hash(part)
        _SOUND[id(part)] = part


def check_contact_pairs(model):
    """Raise ModelError unless contact pairs name shapes, links, frames or bodies."""
    if not model.contact_pairs:
        return
    names = names_that_touch(model.base_name, model.bodies, model.frames, model.geometry)
    for pair in model.contact_pairs:
        what = f"contact pair {pair.first!r}, {pair.second!r}"
        for name in (pair.first, pair.second):
            if not isinstance(name, str) or not is_known(name, names):
                hint = did_you_mean(str(name), sorted(names))
                raise UnknownNameError(
                    f"{what}: model {model.name!r} has no shape, link, frame or body {name!r}; "
                    f"{hint}"
                )
        check_surface(pair.surface, what)


def _check_heights(heights, what):
    """Raise ModelError unless heights are rows of numbers of equal length."""
    rows = heights if isinstance(heights, (tuple, list)) else ()
    if len(rows) < 2 or any(not isinstance(r, (tuple, list)) or len(r) < 2 for r in rows):
        raise ModelError(f"{what} must be at least two rows of at least two numbers")
    if len({len(row) for row in rows}) > 1:
        raise ModelError(f"{what} must be rows of the same length, got {[*map(len, rows)]}")
    for row in rows:
        check_numbers(row, what)
