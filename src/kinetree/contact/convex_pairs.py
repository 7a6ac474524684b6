"""Distance of any two convex shapes: the library coal (GJK), depth (EPA), and a refinement."""

import importlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.contact.penetration import size_of, way_out
from kinetree.contact.refinement import refined_normal
from kinetree.contact.shapes.hulls import hull_of
from kinetree.errors import MissingPackageError, ModelError, SingularError
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Plane, Sphere

__all__ = ["Nearest", "convex_distance"]

# [m] of GJK, for shapes that are apart, and EPA, for those that overlap, which fails if pressed.
_TOLERANCES = ((1e-12, 1e-8), (1e-6, 1e-6))
_SHALLOW = 1e-4  # of the size of the smaller shape: overlap that is not looked at twice
_FAR = 1e100


class Nearest(NamedTuple):
    """How two shapes are nearest: gap [m], unit normal from the first, point of the first."""

    gap: float
    normal: np.ndarray
    foot: np.ndarray


def convex_distance(a, b) -> Nearest:
    """How two placed convex shapes are nearest, or how they overlap least.

    A back end of your own is a function like this one: ``Scene(..., distance=...)``.
    """
    if any(isinstance(p.shape, (HeightField, Plane)) for p in (a, b)):
        kinds = " and ".join(type(p.shape).__name__ for p in (a, b))
        raise ModelError(
            f"there is no way to find where {kinds} touch: the pair has no closed form, and coal "
            f"needs bounded convex shapes; leave it out: Scene(..., ignore=...)"
        )
    try:
        return _nearest(a, b)
    except np.linalg.LinAlgError as error:  # of numbers that are not finite, or beyond reason
        raise _not_found(a, b, f" ({error})") from error


def _nearest(a, b):
    """The same; what coal says is refined, and checked where it would be an overlap."""
    if not all(np.all(np.abs(x) < _FAR) for p in (a, b) for x in (p.axes, p.origin)):
        raise _not_found(a, b, ", which are not at a finite place")
    normal = _by_coal(a, b)
    found = None if normal is None else refined_normal(a, b, normal)
    shallow = _SHALLOW * min(size_of(a), size_of(b))
    if found is None or found[1] < -shallow:
        # EPA may end in a local minimum, or give up: is there a shorter way out?
        normal, depth = way_out(a, b)
        if found is None and depth <= 0:
            raise _not_found(a, b)
        if found is None or depth < -found[1]:
            found = refined_normal(a, b, normal)
    normal, gap, foot = found
    return Nearest(gap, normal, foot)


def _by_coal(a, b):
    """The normal that coal finds, or None."""
    coal = _coal()
    first, second = (_of_shape(p.shape) for p in (a, b))
    where = _transform(coal, a), _transform(coal, b)
    for gjk, epa in _TOLERANCES:
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_variant = coal.GJKVariant.NesterovAcceleration
        request.gjk_tolerance, request.epa_tolerance = gjk, epa
        request.gjk_max_iterations = 512
        coal.distance(first, where[0], second, where[1], request, result)
        normal, foot = np.array(result.normal), np.array(result.getNearestPoint1())
        length = np.sqrt(normal @ normal)
        if 0.5 < length < 2 and np.all(np.abs(foot) < _FAR):  # not so where EPA gives up
            return normal / length
    return None


def _not_found(a, b, why=""):
    return SingularError(
        f"coal found no distance between {a.shape!r} and {b.shape!r}{why}, of which one may be too "
        f"flat or too small; simplify the shapes, or leave the pair out: Scene(..., ignore=...)"
    )


def _transform(coal, placed):
    return coal.Transform3s(np.asarray(placed.axes, float), np.asarray(placed.origin, float))


@lru_cache(maxsize=1024)
def _of_shape(shape):
    coal = _coal()
    if isinstance(shape, Box):
        return coal.Box(*shape.size)
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, Capsule):
        return coal.Capsule(shape.radius, shape.length)
    if isinstance(shape, Cylinder):
        return coal.Cylinder(shape.radius, shape.length)
    if isinstance(shape, Ellipsoid):
        return coal.Ellipsoid(*shape.radii)
    return _of_hull(coal, hull_of(shape))


def _of_hull(coal, hull):
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for p in hull.vertices:
        points.append(p)
    for t in hull.triangles.tolist():
        triangles.append(coal.Triangle(*t))
    return coal.Convex(points, triangles)


def _coal():
    try:
        return importlib.import_module("coal")
    except ImportError as error:
        raise MissingPackageError(
            f"contact between general convex shapes needs coal, which cannot be imported "
            f'({error}): pip install "kinetree[contact]"'
        ) from error
