"""Solid shapes on a plane: the points of them that can touch it."""

import math

import numpy as np

from kinetree.contact.shapes.hulls import hull_of
from kinetree.contact.shapes.placed import chosen, direction, touch
from kinetree.model.geometry import Box, Capsule, Cylinder, Sphere
from kinetree.spatial.ops import less, sqrt

__all__ = ["plane_and_cylinder", "plane_and_ellipsoid", "plane_and_points", "round_points"]

RIM_POINTS = 4
_UPRIGHT = 1e-3  # sine of the tilt below which a cylinder stands on its rim as a whole


def round_points(shape):
    """Points of a shape and the radius of the ball around each, whose hull the shape is.

    Of a cylinder they are corners of its two rims: an approximation from inside.
    """
    if isinstance(shape, Sphere):
        return [([0, 0, 0], shape.radius)]
    if isinstance(shape, Capsule):
        return [([0, 0, end * shape.length / 2], shape.radius) for end in (1, -1)]
    if isinstance(shape, Box):
        x, y, z = (s / 2 for s in shape.size)
        return [([i * x, j * y, k * z], 0) for i in (1, -1) for j in (1, -1) for k in (1, -1)]
    if isinstance(shape, Cylinder):
        angles = [2 * math.pi * k / RIM_POINTS for k in range(RIM_POINTS)]
        rim = [(shape.radius * math.cos(t), shape.radius * math.sin(t)) for t in angles]
        return [([x, y, end * shape.length / 2], 0) for end in (1, -1) for x, y in rim]
    return [(vertex, 0) for vertex in hull_of(shape).vertices.tolist()]


def plane_and_points(a, b):
    """A point for each of ``round_points``: exact for balls, capsules, boxes and meshes."""
    return [_above(a, b.point(local), radius) for local, radius in round_points(b.shape)]


def plane_and_ellipsoid(a, b):
    """One point: where the tangent plane is parallel to the plane."""
    n = a.axes[:, 2]
    m = b.axes.T @ n
    stretched = np.array([r * x for r, x in zip(b.shape.radii, m, strict=True)])
    length = sqrt(stretched @ stretched)
    lowest = -np.array([r * x for r, x in zip(b.shape.radii, stretched, strict=True)]) / length
    return [_above(a, b.point(lowest), 0)]


def plane_and_cylinder(a, b):
    """Ten points: the lowest of either rim, and corners of both for when the cylinder stands up.

    Rolling and tilting are exact. The disc that a standing cylinder rests on is approximated by a
    square, RBDA Fig. 11.7, whose first corner also stands in for the lowest point there.
    """
    m = b.axes.T @ a.axes[:, 2]
    down = np.array([-m[0], -m[1]])
    tilted = less(_UPRIGHT * _UPRIGHT, down @ down)
    x, y = direction(chosen(tilted, down, [1, 0]), [1, 0])[0] * b.shape.radius
    lowest = [b.point([x, y, end * b.shape.length / 2]) for end in (1, -1)]
    return [*(_above(a, p, 0) for p in lowest), *plane_and_points(a, b)]


def _above(a, point, radius):
    n = a.axes[:, 2]
    distance = n @ (point - a.origin)
    return touch(point - n * distance, n, distance - radius, radius)
