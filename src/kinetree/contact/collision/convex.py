"""Convex shapes without a closed form: nearest points, depth, and the patch where they touch."""

from typing import NamedTuple

import numpy as np

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.axes import FEW, edge_pairs
from kinetree.contact.collision.certificate import is_right, repair
from kinetree.contact.collision.clipping import clip_faces, put_between
from kinetree.contact.collision.epa import DONE, FLAT, FULL, epa
from kinetree.contact.collision.gjk import FAR, INSIDE, gjk
from kinetree.contact.collision.polyhedra import polyhedra_gap
from kinetree.contact.collision.refine import refine, width
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.support import is_curved, middle, round_of, size_of, support_face
from kinetree.contact.collision.tables import BOX, HULL, Shapes, Touch
from kinetree.contact.collision.touching import OPEN, PROVED, touching
from kinetree.contact.finding.shapes import Placed, as_hull
from kinetree.errors import ModelError, SingularError
from kinetree.model.geometry import HeightField, Plane

BEYOND, APART, OVERLAP, BOUNDED = 0, 1, 2, 3
"""Status of ``nearest``: farther than requested, apart, overlap, overlap of which the depth is an
upper bound only (round shapes of nearly one size around one centre)."""
_TIGHT = 1e-15  # tolerances of the search, of the square of the distance
_LOOSE = 1e-8  # where Newton's method takes over
_TOUCHING = 1e-12  # of the size: too near for a direction from the way between them
_NEAR = 1e-6  # of the size: near enough for the direction to be uncertain
_TILT = 0.2  # [rad] up to which the whole of a face is looked at
_DEEP = 1e-8  # of the size: overlaps of which there is a second opinion
_SAME = 1e-6  # of the size: how much less deep than the nearest points a patch may be


@procedure
def nearest(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    far: float,
    way: "float[3]",
    near: "float[10]",
) -> int:
    """How two convex shapes are nearest or overlap least, like ``search``, and checked.

    A search whose normal and gap do not fit each other is not believed: see ``certificate``.
    """
    pairs = edge_pairs(shapes, i, j)
    if 0 <= pairs <= FEW:
        gap = polyhedra_gap(shapes, i, j, corners, o, far, near)
        return BEYOND if gap > far else APART if gap > 0 else OVERLAP
    ra = round_of(shapes, i)
    rb = round_of(shapes, j)
    scale = size_of(shapes, i, corners) + size_of(shapes, j, corners)
    status = OPEN
    if i >= 0 and j >= 0 and (is_curved(shapes, i) or is_curved(shapes, j)):
        status = touching(shapes, i, j, corners, o, far + ra + rb, scale, near)
    proved = status == PROVED
    if proved:
        status = APART if near[3] > 0 else OVERLAP
    elif status == OPEN:
        status = search(shapes, i, j, corners, o, far + ra + rb, way, near)
    if status == BEYOND:
        return status
    if not proved and status != BOUNDED and not is_right(shapes, i, j, corners, o, scale, near):
        repair(shapes, i, j, corners, o, scale, near)
        status = APART if near[3] > 0 else OVERLAP
    if pairs > FEW and near[3] < -_DEEP * scale:  # large hulls: do they really overlap so much?
        other = local("float", 10)
        second = touching(shapes, i, j, corners, o, far, scale, other)
        if second == BEYOND:
            return BEYOND
        if second == PROVED and other[3] > near[3]:
            status = APART if other[3] > 0 else OVERLAP
            for k in range(10):
                near[k] = other[k]
    near[3] -= ra + rb
    near[4:7] += ra * near[:3]
    near[7:] -= rb * near[:3]
    return BEYOND if near[3] > far else status


@procedure
def search(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    far: float,
    way: "float[3]",
    near: "float[10]",
) -> int:
    """How two convex cores are nearest or overlap least: status, and numbers in ``near``.

    ``i`` and ``j`` are numbers of shapes; -1 and -2: triangles, rows of ``corners``. Points are
    relative to ``o``, gaps beyond ``far`` are not looked for, ``way`` is about the way from the
    first to the second, or zero. In ``near`` are the unit normal from the first to the second,
    the gap, and a point of each; beyond ``far`` a unit vector alone, along which they are apart.
    """
    W, A, B = local("float", 3, 4, 3)
    at = local("int", 4, 2)
    weight = local("float", 4)
    v, n, a, b = local("float", 4, 3)
    scale = size_of(shapes, i, corners) + size_of(shapes, j, corners)
    middle(shapes, i, corners, o, a)
    middle(shapes, j, corners, o, b)
    known = way @ way > 0
    n[:] = b - a
    v[:] = way if known else n
    curved = is_curved(shapes, i) or is_curved(shapes, j)
    tolerance = _LOOSE if curved else _TIGHT
    status = APART
    gap = 0.0
    best = local("float", 9)
    first, second = local("float", 2, 3)
    hint = local("int", 2)
    for attempt in range(2):
        m = gjk(shapes, i, j, corners, o, v, max(far, 0.0), tolerance, W, A, B, at, weight)
        if m == FAR:
            near[:3] = v / sqrt(v @ v)
            return BEYOND
        length = sqrt(v @ v)
        if m == INSIDE or length <= _TOUCHING * scale:
            toward = n * 1.0
            a[:] = 0.0
            for k in range(m):
                a[:] += weight[k] * A[k]
            b[:] = a
            found, upper, lower = epa(
                shapes, i, j, corners, o, m, curved, scale, W, A, B, at, n, a, b
            )
            if found == FLAT and n @ toward < 0:  # of sets without thickness either side will do
                n[:] = -n
            status = OVERLAP
            if found == FULL and upper - lower > 5e-2 * upper + 1e-6 * scale:
                status = BOUNDED
            gap = -upper
            break
        n[:] = v / length
        a[:] = 0.0
        for k in range(m):
            a[:] += weight[k] * A[k]
        b[:] = a + v
        if not curved:
            gap = length
            hint[:] = at[0]
            narrow = width(shapes, i, j, corners, o, n, first, second, hint)
            if narrow < length - 4e-16 * scale:
                # Rounding hid which edges and faces it is: those with the farthest corners, too.
                if m < 4:
                    A[m] = first
                    B[m] = second
                    at[m] = hint
                    m += 1
                best[:3] = n
                best[3:6] = a
                best[6:] = b
                wide, solved = refine(shapes, i, j, corners, o, A, B, at, m, scale, length, n, a, b)
                if not solved or wide < narrow or wide < length - 1e-13 * scale:
                    n[:] = best[:3]
                    a[:] = best[3:6]
                    b[:] = best[6:]
                break
            if m < 3 and length <= _NEAR * scale:
                start = a * 1.0
                # A face there has a direction that is free of rounding errors, if it fits.
                found, upper, lower = epa(
                    shapes, i, j, corners, o, m, curved, scale, W, A, B, at, n, a, b
                )
                if found == DONE and -upper >= length - 1e-15 * scale:
                    gap = -upper
                else:
                    n[:] = v / length
                    a[:] = start[:3]
                    b[:] = a + v
            break
        wide, solved = refine(shapes, i, j, corners, o, A, B, at, m, scale, length, n, a, b)
        if wide > gap or attempt == 0:
            gap = wide
            best[:3] = n
            best[3:6] = a
            best[6:] = b
        if solved:
            break
        tolerance = _TIGHT
    if curved and status == APART:
        n[:] = best[:3]
        a[:] = best[3:6]
        b[:] = best[6:]
    near[3] = gap
    near[:3] = n
    near[4:7] = a
    near[7:] = b
    return status


@procedure
def convex_pair(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Points where two convex shapes are within ``margin``: how many there are then."""
    corners = local("float", 6, 3)
    o, way = local("float", 2, 3)
    near = local("float", 10)
    P = shapes.pose[i]
    o[:] = P[3::4]
    way[:] = 0.0
    near[:3] = 0.0
    if nearest(shapes, i, j, corners, o, margin, way, near) == BEYOND or near[3] > margin:
        touch.way[:3] = near[:3]
        return n
    polyhedra = (shapes.kind[i] == HULL or shapes.kind[i] == BOX) and shapes.kind[j] == HULL
    return patch(shapes, i, j, corners, o, near, margin, 8 if polyhedra else 4, touch, n, 0)


@procedure
def patch(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    near: "float[10]",
    margin: float,
    most: int,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Points that span the patch between faces or edges of two shapes.

    Given how they are nearest; at least the nearest points themselves.
    """
    face_a, face_b = local("float", 2, 16, 3)
    normal = local("float", 3)
    normal[:] = near[:3]
    back = -near[:3]
    na = support_face(shapes, i, corners, o, normal, _TILT, face_a)
    nb = support_face(shapes, j, corners, o, back, _TILT, face_b)
    first = n
    lowest = -1
    if na > 1 or nb > 1:
        n = clip_faces(face_a, na, face_b, nb, normal, margin, most, touch, n, feature)
        for k in range(first, n):
            touch.gap[k] = max(touch.gap[k], near[3])  # no point is deeper; borders are rounded
            if lowest < 0 or touch.gap[k] < touch.gap[lowest]:
                lowest = k
    size = size_of(shapes, i, corners) + size_of(shapes, j, corners)
    if lowest >= 0 and touch.gap[lowest] <= near[3] + _SAME * size:
        touch.gap[lowest] = near[3]
    else:
        if n - first >= most:
            n -= 1
        back[:] = near[4:7]
        n = put_between(touch, n, back, normal, near[3], feature + 4095)
    touch.point[first:n] += o
    return n


# --- for any two shapes of Python ----------------------------------------------------------------

_FAR = 1e100


class Nearest(NamedTuple):
    """Nearest points of two shapes: gap [m], unit normal from the first, point of the first."""

    gap: float
    normal: np.ndarray
    foot: np.ndarray


def convex_distance(a: Placed, b: Placed) -> Nearest:
    """Distance of two placed convex shapes (meshes: their hulls), or depth of their overlap."""
    if any(isinstance(p.shape, (HeightField, Plane)) for p in (a, b)):
        kinds = " and ".join(type(p.shape).__name__ for p in (a, b))
        raise ModelError(
            f"the distance between {kinds} is not one of bounded convex shapes; "
            f"Scene.contacts(q, margin) has points on planes and height fields, too"
        )
    if not all(np.all(np.abs(x) < _FAR) for p in (a, b) for x in (p.axes, p.origin)):
        raise SingularError(
            f"no distance between {a.shape!r} and {b.shape!r}, which are not at a finite place"
        )
    shapes = placed_table(as_hull(a), as_hull(b))
    o, near = np.array(a.origin, dtype=float), np.zeros(10)
    nearest(shapes, 0, 1, np.zeros((6, 3)), o, _FAR, np.zeros(3), near)
    return Nearest(float(near[3]), near[:3].copy(), o + near[4:7])
