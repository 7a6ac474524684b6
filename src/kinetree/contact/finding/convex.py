"""Distance of any two convex shapes: the library coal (GJK), depth (EPA), and a refinement."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.contact.finding.shapes import Placed, hull_of
from kinetree.contact.finding.supports import farthest, support
from kinetree.errors import ModelError, SingularError, need
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Plane, Sphere

# [m] of GJK, for shapes that are apart, and EPA, for those that overlap, which fails if pressed.
_TOLERANCES = ((1e-12, 1e-8), (1e-6, 1e-6))
_SHALLOW = 1e-4  # of the size of the smaller shape: overlap that is not looked at twice
_FAR = 1e100


class Nearest(NamedTuple):
    """How two shapes are nearest: gap [m], unit normal from the first, point of the first."""

    gap: float
    normal: np.ndarray
    foot: np.ndarray


def convex_distance(a: Placed, b: Placed) -> Nearest:
    """How two placed convex shapes are nearest, or how they overlap least.

    A back end of your own is a function like this one: ``Scene(..., distance=...)``.
    """
    if any(isinstance(p.shape, (HeightField, Plane)) for p in (a, b)):
        kinds = " and ".join(type(p.shape).__name__ for p in (a, b))
        raise ModelError(
            f"contact between {kinds} is not supported: the pair has no closed form, and coal "
            f"needs bounded convex shapes; leave it out: Scene(..., ignore=...)"
        )
    try:
        return _nearest(a, b)
    except np.linalg.LinAlgError as error:  # of numbers that are not finite, or beyond reason
        raise _not_found(a, b, f" ({error})") from error


def _nearest(a, b):
    """The same; the result of coal is refined, and checked where shapes overlap."""
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
    return need("coal", "contact between general convex shapes", "contact")


# --- Refinement of the normal --------------------------------------------------------------------
# The distance of convex shapes is the largest width of a slab between them, over all directions;
# if they overlap, minus the least depth. Near its maximum the width changes little, so that a
# search by widths leaves the direction uncertain by the square root of their error. Here the
# direction comes from a condition that is met only there: the farthest points of both lie along
# the normal. Newton's method solves it on curved surfaces and corners, faces and edges are tried
# as they are.

_TILT = 1e-2  # [rad] by which the direction may be wrong
_EXACT = 1e-9  # [rad]
_PARALLEL = 1e-6  # [rad] between edges that count as one direction
_STEPS = 10


def refined_normal(a, b, normal):
    """The direction of largest width near a unit ``normal``, the width, and a point of ``a``."""
    tries = [normal, *_faces_and_edges(a, b, normal)]
    tries += [n for tilt in (_TILT, _EXACT) if (n := _newton(a, b, normal, tilt)) is not None]
    tries = [n for n in tries if n @ normal > 1 - _TILT]
    widths = [_width(a, b, n) for n in tries]
    best = max(widths)
    # Of directions that are equally good the later ones are exact.
    k = max(k for k, w in enumerate(widths) if w >= best - 1e-13 * (1 + abs(best)))
    return tries[k], widths[k], _foot(a, b, tries[k], widths[k])


def _width(a, b, n):
    return float(n @ (support(b, -n, 0.0).point - support(a, n, 0.0).point))


def _foot(a, b, n, width):
    """The nearest point of ``a``, from the side where it is a single one."""
    first, second = support(a, n, _EXACT), support(b, -n, _EXACT)
    single = first.edge is None and first.face is None
    return first.point if single else second.point - width * n


def _faces_and_edges(a, b, normal):
    """Normals of faces, and of the planes of two edges, that are close to the normal."""
    first, second = support(a, normal, _TILT), support(b, -normal, _TILT)
    found = [s * face for s, face in ((1, first.face), (-1, second.face)) if face is not None]
    if first.edge is not None and second.edge is not None:
        n = np.cross(first.edge, second.edge)
        length = np.sqrt(n @ n)
        if length > _PARALLEL:
            found.append(n / np.copysign(length, n @ normal))
    return found


def _different(edges):
    """Edges without those that are parallel to an earlier one."""
    kept: list = []
    for e in edges:
        if all(np.sum(np.cross(e, other) ** 2) > _PARALLEL**2 for other in kept):
            kept.append(e)
    return kept


def _newton(a, b, normal, tilt):
    """The normal at which the farthest points of both shapes lie along it, or None."""
    n = normal
    for _ in range(_STEPS):
        first, second = support(a, n, tilt), support(b, -n, tilt)
        edges = _different([s.edge for s in (first, second) if s.edge is not None])
        if len(edges) > 1 or first.face is not None or second.face is not None:
            return None
        for e in edges:  # the normal is at right angles to an edge; across it, it may turn
            n = n - e * (e @ n)
            if not n @ n > 0.5:
                return None  # an edge along the normal: the shape is nearly a point, or a needle
            n = n / np.sqrt(n @ n)
        free = np.linalg.svd(np.array([n, *edges]))[2][1 + len(edges) :]
        between = second.point - first.point
        M = free @ (first.bend + second.bend + (n @ between) * np.eye(3)) @ free.T
        if np.linalg.eigvalsh(M)[0] <= 0:
            return None  # no maximum nearby: corners that overlap
        step = free.T @ np.linalg.solve(M, free @ between)
        n = n + step
        n = n / np.sqrt(n @ n)
        if np.max(np.abs(step)) < 1e-15:
            break
    return n


# --- Penetration depth: the expanding polytope ---------------------------------------------------
# The differences ``a - b`` of all points of both shapes fill a convex set, which holds the origin
# if the shapes overlap; the nearest point of its border is the shortest way out. Points of the
# border are known in any direction, from the farthest points of both shapes. Their hull is inside
# the set, and each of its faces says: the border is nowhere nearer than this face, and in the
# direction of its normal no farther than so. Faces that could be nearer than the best direction
# get another point, until there are none: the expanding polytope of van den Bergen, "Proximity
# queries and penetration depth computation on 3D game objects" (2001), with all open faces at
# once. So the answer is the global minimum, where a search along the surface ends in the next
# local one.

_CLOSE = 1e-4  # of the depth: how near bounds must come; the rest is for Newton's method
_ROUNDS = 12
_POINTS = 2000  # of the hull; round shapes that are concentric have the same depth everywhere


def way_out(a, b):
    """Unit direction in which ``b`` leaves ``a`` by the shortest way, nearly, and the depth [m].

    A depth that is not positive means that a plane at right angles to the direction is between the
    shapes.
    """
    hull_type = _convex_hull()
    directions = np.concatenate([_DIRECTIONS, *(s * p.axes.T for p in (a, b) for s in (1, -1))])
    points, best, depth = np.zeros((0, 3)), None, np.inf
    for _ in range(_ROUNDS):
        found = farthest(a, directions) - farthest(b, -directions)
        depths = np.sum(found * directions, axis=1)
        k = int(np.argmin(depths))
        if depths[k] < depth:
            best, depth = directions[k], float(depths[k])
        points = np.concatenate([points, found])
        if depth <= 0 or len(points) > _POINTS:
            break
        faces = np.unique(hull_type(points, qhull_options="QJ Pp").equations, axis=0)
        directions = faces[-faces[:, 3] < depth - _CLOSE * abs(depth), :3]
        if not len(directions):
            break
    return best, depth


def size_of(placed):
    """Radius [m] of about the smallest ball around the middle of a shape that is not within it."""
    shape = placed.shape
    if isinstance(shape, Box):
        return min(shape.size) / 2
    if isinstance(shape, Ellipsoid):
        return min(shape.radii)
    if isinstance(shape, Cylinder):
        return min(shape.radius, shape.length / 2)
    if isinstance(shape, (Sphere, Capsule)):
        return shape.radius
    return float(np.min(np.ptp(hull_of(shape).vertices, axis=0))) / 2


def _spread(n):
    """Unit vectors spread evenly over the sphere, on a spiral, (n, 3)."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + np.sqrt(5)) * k
    across = np.sqrt(1 - z * z)
    return np.column_stack([across * np.cos(turn), across * np.sin(turn), z])


_DIRECTIONS = _spread(60)


def _convex_hull():
    return need("scipy.spatial", "the depth of shapes inside each other", "contact").ConvexHull
