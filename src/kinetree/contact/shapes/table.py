"""Which pairs of shapes have a closed form, and what it is."""

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

__all__ = ["closed_form", "is_compiled", "touches"]

CLOSED_FORMS = {
    (Plane, Sphere): planes.plane_and_points,
    (Plane, Capsule): planes.plane_and_points,
    (Plane, Box): planes.plane_and_points,
    (Plane, Mesh): planes.plane_and_points,
    (Plane, Cylinder): planes.plane_and_cylinder,
    (Plane, Ellipsoid): planes.plane_and_ellipsoid,
    (HeightField, Sphere): grounds.field_and_points,
    (HeightField, Capsule): grounds.field_and_points,
    (HeightField, Box): grounds.field_and_points,
    (HeightField, Mesh): grounds.field_and_points,
    (HeightField, Cylinder): grounds.field_and_points,
    (Sphere, Sphere): balls.ball_and_ball,
    (Capsule, Sphere): balls.capsule_and_ball,
    (Capsule, Capsule): balls.capsule_and_capsule,
    (Box, Sphere): balls.box_and_ball,
    (Cylinder, Sphere): balls.cylinder_and_ball,
}


def closed_form(a, b):
    """The function of a pair of shapes, and whether they must change places; None without one."""
    for pair, swapped in (((type(a), type(b)), False), ((type(b), type(a)), True)):
        if pair in CLOSED_FORMS:
            return CLOSED_FORMS[pair], swapped
    return None


def is_compiled(a, b) -> bool:
    """Whether a pair has a closed form that is short enough to compile."""
    return closed_form(a, b) is not None and not any(_is_long(shape) for shape in (a, b))


def _is_long(shape):
    if isinstance(shape, Mesh):
        return len(hull_of(shape).vertices) > COMPILED_VERTICES
    if isinstance(shape, HeightField):
        return len(shape.heights) * len(shape.heights[0]) > grounds.COMPILED_HEIGHTS
    return False


def touches(a, b):
    """Where two placed shapes are nearest: a fixed number of ``Touch``, from ``a`` to ``b``."""
    function, swapped = closed_form(a.shape, b.shape)  # type: ignore[misc]
    return [t.reversed() for t in function(b, a)] if swapped else function(a, b)
