"""Nearest points of two convex shapes whose normal and gap are known: where their faces meet.

Along the normal, the farthest points of a shape are a corner, an edge or a face. Seen along it,
those of both have points in common; of these the ones with the least gap are the nearest points.
"""

from kinetree.codegen.procedures import local, procedure
from kinetree.contact.collision.clipping import axes_across, clip, edges_meet, face_plane
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.simplex import Pair, Slab
from kinetree.contact.collision.support import round_of, support_face
from kinetree.contact.collision.tables import HULL, Shapes

_TILT = 1e-6  # [rad] up to which a face or edge counts as farthest
_NEAR = 1e-15  # of the size: what is on the border of a face
_LEVEL = 1e-14  # of the size: gaps that are the same


@procedure
def leave_point(size: "float[3]", x: "float[3]") -> None:
    """Nearest point of a shape without a procedure for it: leaves the point unchanged."""
    return


CLIP = choice_of("clip", leave_point)


@procedure
def facing_points(shapes: Shapes, pair: Pair, slab: Slab) -> bool:
    """Whether facing features overlap along the normal; sets the slab's points to the middle.

    These are points of the cores: the second is across the gap from the first.
    """
    face_a, face_b = local("float", 2, 16, 3)
    n, gap, o, corners = slab.normal, slab.gap, pair.origin, pair.corners
    minus = -n
    na = support_face(shapes, pair.i, corners, o, n, _TILT, face_a)
    nb = support_face(shapes, pair.j, corners, o, minus, _TILT, face_b)
    one, two = local("float", 2, 33, 3)
    u, w = local("float", 2, 3)
    axes_across(n, u, w)
    ra, rb = round_of(shapes, pair.i), round_of(shapes, pair.j)
    origin = face_a[0] - ra * n
    size = 0.0
    for k in range(max(na, nb)):
        p = face_a[min(k, na - 1)] - origin
        q = face_b[min(k, nb - 1)] - origin
        one[k, 0] = p @ u
        one[k, 1] = p @ w
        one[k, 2] = p @ n - ra
        two[k, 0] = q @ u
        two[k, 1] = q @ w
        two[k, 2] = q @ n + rb
        size = max(size, max(abs(one[k, 0]) + abs(one[k, 1]), abs(two[k, 0]) + abs(two[k, 1])))
    count = common(one, na, two, nb, _NEAR * size)
    if count == 0:
        return False
    lowest = 1e300
    for k in range(count):
        lowest = min(lowest, two[k, 2])
    x, y, z, found = 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        if two[k, 2] <= lowest + _LEVEL * (size + abs(gap)):
            x += two[k, 0]
            y += two[k, 1]
            z += one[k, 2] + (two[k, 2] - gap) / 2
            found += 1.0
    slab.first[:] = origin + (x / found) * u + (y / found) * w + (z / found) * n
    slab.second[:] = slab.first + gap * n
    return True


@procedure
def common(one: "float[33, 3]", na: int, two: "float[33, 3]", nb: int, near: float) -> int:
    """Intersection of two faces projected along the normal: number of corners; sets gaps.

    In: their corners. Out: heights of the first in ``one``, places and gaps in ``two``.
    """
    edge = local("int", 33)
    plane = local("float", 3)
    if na >= 3 and face_plane(one, na, plane) > 0.0:
        count = clip(two, edge, nb, one, na, near)
        for k in range(count):
            one[k, 2] = plane[0] + plane[1] * two[k, 0] + plane[2] * two[k, 1]
            two[k, 2] -= one[k, 2]
        return count
    if nb >= 3 and face_plane(two, nb, plane) > 0.0:
        count = clip(one, edge, na, two, nb, near)
        for k in range(count):
            two[k, 0] = one[k, 0]
            two[k, 1] = one[k, 1]
            two[k, 2] = plane[0] + plane[1] * one[k, 0] + plane[2] * one[k, 1] - one[k, 2]
        return count
    return edges_meet(one, min(na, 2), two, min(nb, 2), edge, near)


@procedure
def miss_distance(shapes: Shapes, pair: Pair, slab: Slab, a: "float[3]") -> float:
    """Approximate distance by which a point and its counterpart across the gap miss the shapes."""
    p = local("float", 3)
    n, o = slab.normal, pair.origin
    minus = -n
    p[:] = a
    total = move_into(shapes, pair.i, o, n, p)
    p[:] = a + slab.gap * n
    return total + move_into(shapes, pair.j, o, minus, p)


@procedure
def move_into(shapes: Shapes, i: int, o: "float[3]", n: "float[3]", p: "float[3]") -> float:
    """Move a point near the surface into shape i's core along normal ``n``; distance moved."""
    P = shapes.pose[i]
    x = local("float", 3)
    r = round_of(shapes, i)
    d = p - r * n - (P[3::4] - o)
    into_shape(P, d, x)
    if shapes.kind[i] == HULL:
        for f in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
            past = (x - shapes.vertex[shapes.face_vertex[shapes.face_first[f]]]) @ (
                shapes.face_normal[f]
            )
            if past > 0:
                x[:] -= past * shapes.face_normal[f]
    else:
        CLIP[shapes.kind[i]](shapes.size[i], x)
    out_of_shape(P, o, x[0], x[1], x[2], d)
    moved = 0.0
    for c in range(3):
        moved += abs(d[c] + r * n[c] - p[c])
        p[c] = d[c] + r * n[c]
    return moved if moved > 1e-16 * shapes.radius[i] else 0.0
