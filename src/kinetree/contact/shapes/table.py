"""Which pairs of shapes have a closed form, and what it is."""

from collections.abc import Callable
from functools import partial

from kinetree.contact.shapes import balls, grounds, planes
from kinetree.contact.shapes.hulls import COMPILED_VERTICES, hull_of
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
)

__all__ = ["has_closed_form", "is_compiled", "touches"]


def _swapped(function, a, b):
    """A closed form with its shapes in the other order."""
    return [touch.reversed() for touch in function(b, a)]


CLOSED_FORMS: dict[tuple[type, type], Callable] = {
    (Plane, Sphere): planes.plane_and_points,
    (Plane, Capsule): planes.plane_and_points,
    (Plane, Box): planes.plane_and_points,
    (Plane, Mesh): planes.plane_and_points,
    (Plane, Cylinder): planes.plane_and_cylinder,
    (Plane, Ellipsoid): planes.plane_and_ellipsoid,
    (HeightField, Sphere): grounds.field_and_ball,
    (Sphere, Sphere): balls.ball_and_ball,
    (Capsule, Sphere): balls.capsule_and_ball,
    (Capsule, Capsule): balls.capsule_and_capsule,
    (Box, Sphere): balls.box_and_ball,
    (Cylinder, Sphere): balls.cylinder_and_ball,
}

CLOSED_FORMS |= {
    (second, first): partial(_swapped, function)
    for (first, second), function in CLOSED_FORMS.items()
    if first is not second
}


def has_closed_form(a, b) -> bool:
    """Whether a pair of shapes has one."""
    return (type(a), type(b)) in CLOSED_FORMS


def is_compiled(a, b) -> bool:
    """Whether a pair has a closed form that is complete, and short enough to compile."""
    if not has_closed_form(a, b) or any(_is_long(shape) for shape in (a, b)):
        return False
    field, ball = (a, b) if isinstance(a, HeightField) else (b, a)
    return not isinstance(field, HeightField) or grounds.fits(field, ball)


def _is_long(shape):
    if isinstance(shape, Mesh):
        return len(hull_of(shape).vertices) > COMPILED_VERTICES
    if isinstance(shape, HeightField):
        return len(shape.heights) * len(shape.heights[0]) > grounds.COMPILED_HEIGHTS
    return False


def touches(a, b):
    """Where two placed shapes are nearest: a fixed number of ``Touch``, from ``a`` to ``b``."""
    return CLOSED_FORMS[type(a.shape), type(b.shape)](a, b)
