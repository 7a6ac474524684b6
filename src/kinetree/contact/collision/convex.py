"""Convex shapes without a closed form: nearest points, depth, and the patch where they touch."""

from typing import NamedTuple

import numpy as np

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.axes import FEW, edge_pairs
from kinetree.contact.collision.certificate import is_right, repair
from kinetree.contact.collision.clipping import Faces, clip_faces, put_between
from kinetree.contact.collision.epa import DONE, FLAT, FULL, epa
from kinetree.contact.collision.gjk import FAR, INSIDE, gjk
from kinetree.contact.collision.polyhedra import polyhedra_gap
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.simplex import (
    Pair,
    Simplex,
    Slab,
    add_corner,
    copy_slab,
    find_foot,
    measure_pair,
    place_pair,
    set_pair,
    width,
)
from kinetree.contact.collision.support import is_curved, middle, round_of, support_face
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
def nearest(shapes: Shapes, pair: Pair, far: float, way: "float[3]", near: Slab) -> int:
    """Distance or overlap query of two convex shapes, verified; sets the slab, returns its status.

    A search whose normal and gap do not fit each other is not believed: see ``certificate``.
    """
    i, j = pair.i, pair.j
    pairs = edge_pairs(shapes, i, j)
    if 0 <= pairs <= FEW:
        gap = polyhedra_gap(shapes, pair, far, near)
        return BEYOND if gap > far else APART if gap > 0 else OVERLAP
    ra = round_of(shapes, i)
    rb = round_of(shapes, j)
    measure_pair(shapes, pair)
    status = OPEN
    if i >= 0 and j >= 0 and (is_curved(shapes, i) or is_curved(shapes, j)):
        status = touching(shapes, pair, far + ra + rb, near)
    proved = status == PROVED
    if proved:
        status = APART if near.gap > 0 else OVERLAP
    elif status == OPEN:
        status = search(shapes, pair, far + ra + rb, way, near)
    if status == BEYOND:
        return status
    if not proved and status != BOUNDED and not is_right(shapes, pair, near):
        repair(shapes, pair, near)
        status = APART if near.gap > 0 else OVERLAP
    if pairs > FEW and near.gap < -_DEEP * pair.size:  # large hulls: do they really overlap so?
        other = local(Slab)
        second = touching(shapes, pair, far, other)
        if second == BEYOND:
            return BEYOND
        if second == PROVED and other.gap > near.gap:
            status = APART if other.gap > 0 else OVERLAP
            copy_slab(other, near)
    near.gap -= ra + rb
    near.first[:] += ra * near.normal
    near.second[:] -= rb * near.normal
    return BEYOND if near.gap > far else status


@procedure
def search(shapes: Shapes, pair: Pair, far: float, way: "float[3]", near: Slab) -> int:
    """Distance or overlap query of two convex cores; sets slab and points, returns its status.

    Gaps beyond ``far`` are not looked for: then the slab has a unit vector alone, along which they
    are apart. ``way`` is about the way from the first to the second, or zero.
    """
    simplex, best = local(Simplex), local(Slab)
    v = local("float", 3)
    middle(shapes, pair.i, pair.corners, pair.origin, near.first)
    middle(shapes, pair.j, pair.corners, pair.origin, near.second)
    near.normal[:] = near.second - near.first
    v[:] = way if way @ way > 0 else near.normal
    curved = is_curved(shapes, pair.i) or is_curved(shapes, pair.j)
    tolerance = _LOOSE if curved else _TIGHT
    for attempt in range(2):
        m = gjk(shapes, pair, v, max(far, 0.0), tolerance, simplex)
        if m == FAR:
            near.normal[:] = v / sqrt(v @ v)
            return BEYOND
        length = sqrt(v @ v)
        if m == INSIDE or length <= _TOUCHING * pair.size:
            return find_depth(shapes, pair, simplex, near)
        near.gap = length
        near.normal[:] = v / length
        find_foot(simplex, near.first)
        near.second[:] = near.first + v
        if not curved:
            settle_flat(shapes, pair, simplex, near)
            return APART
        wide, solved = refine(shapes, pair, simplex, near, length)
        near.gap = wide
        if attempt == 0 or wide > best.gap:
            copy_slab(near, best)
        if solved:
            break
        tolerance = _TIGHT
    copy_slab(best, near)
    return APART


@procedure
def find_depth(shapes: Shapes, pair: Pair, simplex: Simplex, near: Slab) -> int:
    """Penetration query of two overlapping cores by the expanding-polytope algorithm; status."""
    toward = near.normal * 1.0
    find_foot(simplex, near.first)
    near.second[:] = near.first
    found, upper, lower = epa(shapes, pair, simplex, near)
    if found == FLAT and near.normal @ toward < 0:  # of sets without thickness either side will do
        near.normal[:] = -near.normal
    near.gap = -upper
    return BOUNDED if found == FULL and upper - lower > 5e-2 * upper + 1e-6 * pair.size else OVERLAP


@procedure
def settle_flat(shapes: Shapes, pair: Pair, simplex: Simplex, near: Slab) -> None:
    """Refine normal and points of two polyhedral cores where rounding hid the touching features."""
    length = near.gap
    ends, start = local(Slab), local(Slab)
    ends.normal[:] = near.normal
    ends.corner[:] = simplex.corner[0]
    narrow = width(shapes, pair, ends)
    copy_slab(near, start)
    if narrow < length - 4e-16 * pair.size:
        # Rounding hid which edges and faces it is: those with the farthest corners, too.
        add_corner(simplex, ends)
        wide, solved = refine(shapes, pair, simplex, near, length)
        if not solved or wide < narrow or wide < length - 1e-13 * pair.size:
            copy_slab(start, near)
        near.gap = length
    elif simplex.count < 3 and length <= _NEAR * pair.size:
        # A face there has a direction that is free of rounding errors, if it fits.
        found, upper, _ = epa(shapes, pair, simplex, near)
        if found == DONE and -upper >= length - 1e-15 * pair.size:
            near.gap = -upper
        else:
            copy_slab(start, near)


@procedure
def convex_pair(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contacts of convex shapes i and j within ``margin``; returns the new count."""
    pair, near = local(Pair), local(Slab)
    way = local("float", 3)
    place_pair(shapes, pair, i, j)
    way[:] = 0.0
    near.normal[:] = 0.0
    if nearest(shapes, pair, margin, way, near) == BEYOND or near.gap > margin:
        touch.way[:3] = near.normal
        return n
    polyhedra = (shapes.kind[i] == HULL or shapes.kind[i] == BOX) and shapes.kind[j] == HULL
    return patch(shapes, pair, near, margin, 8 if polyhedra else 4, touch, n, 0)


@procedure
def find_faces(shapes: Shapes, pair: Pair, tilt: float, faces: Faces) -> None:
    """Set the support faces, edges or corners of a pair along the normal, up to a tilt (sine)."""
    o, corners = pair.origin, pair.corners
    back = -faces.normal
    count = support_face(shapes, pair.i, corners, o, faces.normal, tilt, faces.first)
    faces.first_count = count
    faces.second_count = support_face(shapes, pair.j, corners, o, back, tilt, faces.second)


@procedure
def patch(
    shapes: Shapes,
    pair: Pair,
    near: Slab,
    margin: float,
    most: int,
    touch: Touch,
    n: int,
    feature: int,
) -> int:
    """Append the contacts that span the patch between two shapes' facing features; new count.

    Given how they are nearest; at least the nearest points themselves.
    """
    faces = local(Faces)
    faces.normal[:] = near.normal
    find_faces(shapes, pair, _TILT, faces)
    first = n
    lowest = -1
    if faces.first_count > 1 or faces.second_count > 1:
        n = clip_faces(faces, margin, most, touch, n, feature)
        for k in range(first, n):
            touch.gap[k] = max(touch.gap[k], near.gap)  # no point is deeper; borders are rounded
            if lowest < 0 or touch.gap[k] < touch.gap[lowest]:
                lowest = k
    if lowest >= 0 and touch.gap[lowest] <= near.gap + _SAME * pair.size:
        touch.gap[lowest] = near.gap
    else:
        if n - first >= most:
            n -= 1
        n = put_between(touch, n, near.first, near.normal, near.gap, feature + 4095)
    touch.point[first:n] += pair.origin
    return n


# --- for any two shapes of Python ----------------------------------------------------------------

_FAR = 1e100


class Nearest(NamedTuple):
    """Nearest points of two shapes: gap [m], unit normal from the first, point of the first."""

    gap: float
    normal: np.ndarray
    foot: np.ndarray


def convex_distance(a: Placed, b: Placed) -> Nearest:
    """Signed distance, nearest points and normal of two placed convex shapes (meshes: hulls)."""
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
    pair, near = local(Pair), local(Slab)
    set_pair(shapes, pair, 0, 1, np.array(a.origin, dtype=float))
    nearest(shapes, pair, _FAR, np.zeros(3), near)
    return Nearest(near.gap, near.normal.copy(), pair.origin + near.first)
