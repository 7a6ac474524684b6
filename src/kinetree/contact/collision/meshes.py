"""Triangle meshes: concave terrain and objects, by the triangles that a tree of boxes finds.

A triangle is a sheet whose outer side is solid ground for others. What touches it does so along its
normal, or along one between its normal and that of the triangle across an edge, if the edge sticks
out: directions beyond these come from the edges inside of a surface, at which nothing must catch.
"""

from math import atan2

from kinetree.codegen.procedures import cross, local, procedure, sqrt, workspace
from kinetree.contact.collision.clipping import Faces, clip_faces, put, put_between
from kinetree.contact.collision.convex import BEYOND, find_faces, nearest
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.simplex import Pair, Slab, place_pair, width
from kinetree.contact.collision.spread import FLAT, spread, without_doubles
from kinetree.contact.collision.support import round_of
from kinetree.contact.collision.tables import Shapes, Touch

STACK = 128
"""Nodes that wait while a tree is searched."""
_ROOM = 40  # points after which patches are reduced
_TILT = 0.2  # [rad] up to which the whole of a face is looked at
_SAME = 1e-7  # of the size: points that are one
_MOST = 16  # points of a pair


@workspace
class Triangles:
    """A triangle of a mesh, and of another mesh whose triangle it may touch.

    Attributes:
        mesh: numbers of the meshes, first that of shape -1 of a pair, then that of -2, or -1.
        number: of the triangles.
        normal: of these, in the world.
        margin: gaps up to which points count [m].
        size: of the pair, for tolerances [m].
        start: first row of the pair in ``Touch``.
    """

    mesh: "int[2]"
    number: "int[2]"
    normal: "float[2, 3]"
    margin: float
    size: float
    start: int


@procedure
def load_triangle(
    shapes: Shapes, triangles: Triangles, pair: Pair, side: int, mesh: int, t: int
) -> None:
    """Load triangle ``t`` of a mesh, in the world, as the first or second shape of a pair."""
    P = shapes.pose[mesh]
    for k in range(3):
        p = shapes.vertex[shapes.triangle[t, k]]
        out_of_shape(P, pair.origin, p[0], p[1], p[2], pair.corners[3 * side + k])
    triangles.mesh[side] = mesh
    triangles.number[side] = t
    to_world(P, shapes.triangle_normal[t], triangles.normal[side])


@procedure
def set_triangles(triangles: Triangles, margin: float, size: float, start: int) -> None:
    """Set margin, size and first contact row that all triangle queries of a pair share."""
    triangles.margin = margin
    triangles.size = size
    triangles.start = start


@procedure
def to_world(P: "float[12]", d: "float[3]", out: "float[3]"):
    """Rotate a direction from the axes of a shape's pose ``P`` to the world."""
    out[:] = P[::4] * d[0] + P[1::4] * d[1] + P[2::4] * d[2]


@procedure
def box_in_shape(shapes: Shapes, i: int, j: int, margin: float, low: "float[3]", high: "float[3]"):
    """Axis-aligned bounds of shape i's box in the axes of shape j, widened by ``margin``."""
    P = shapes.pose[i]
    Q = shapes.pose[j]
    x = shapes.box[i]
    for k in range(3):
        middle = 0.0
        reach = margin
        for c in range(3):
            r = Q[k] * P[c] + Q[4 + k] * P[4 + c] + Q[8 + k] * P[8 + c]
            middle += r * x[c]
            reach += abs(r) * x[3 + c]
            middle += Q[4 * c + k] * (P[4 * c + 3] - Q[4 * c + 3])
        low[k] = middle - reach
        high[k] = middle + reach


@procedure
def boxes_meet(node: "float[6]", low: "float[3]", high: "float[3]") -> bool:
    """Whether a tree node's box intersects the box from ``low`` to ``high``."""
    return (
        node[0] <= high[0]
        and node[3] >= low[0]
        and node[1] <= high[1]
        and node[4] >= low[1]
        and node[2] <= high[2]
        and node[5] >= low[2]
    )


@procedure
def is_allowed(shapes: Shapes, triangles: Triangles, pair: Pair, side: int, u: "float[3]") -> int:
    """Classify a contact normal of a mesh triangle: 1 valid, 0 not its own, 2 snapped to the face.

    0: it belongs to nothing; 2: it came from an edge inside of a surface, and is now the normal.
    """
    normal, corners, first = triangles.normal[side], pair.corners, 3 * side
    c = u @ normal
    if c > 1 - 1e-12:
        return 1
    # the edge that the direction leans over
    edge = -1
    most = 1e-7
    m = local("float", 3)
    for k in range(3):
        way = corners[first + (k + 1) % 3] - corners[first + k]
        out = cross(way, normal)
        lean = (out @ u) / sqrt(out @ out)
        if lean > most:
            most = lean
            edge = k
            length = sqrt(out @ out)
            m[:] = out / length
    if edge < 0:
        return 1 if c > 0 else 0
    other = shapes.triangle_next[triangles.number[side], edge]
    if other < 0:
        return 1 if c > -1e-9 else 0
    n2 = local("float", 3)
    to_world(shapes.pose[triangles.mesh[side]], shapes.triangle_normal[other], n2)
    limit = atan2(n2 @ m, n2 @ normal)
    if limit > FLAT:
        if atan2(most, c) <= limit + FLAT:
            return 1
        return 0
    u[:] = normal
    return 2


@procedure
def may_reach(shapes: Shapes, triangles: Triangles, pair: Pair) -> bool:
    """Whether a convex shape intersects a triangle's plane or is within margin in front of it."""
    slab = local(Slab)
    normal = triangles.normal[0]
    slab.corner[:] = -1
    slab.normal[:] = normal
    r = round_of(shapes, pair.i)
    if width(shapes, pair, slab) > r + triangles.size * 1e-9:  # the sheet does not hold it
        return False
    slab.normal[:] = -normal
    return not width(shapes, pair, slab) > r + triangles.margin


@procedure
def touch_triangle(shapes: Shapes, triangles: Triangles, pair: Pair, touch: Touch, n: int) -> int:
    """Append new contacts of a convex shape, or triangle, with a mesh triangle; new count.

    Those that are there already do not count.
    """
    margin = triangles.margin
    if pair.i >= 0 and not may_reach(shapes, triangles, pair):
        return n
    near, faces = local(Slab), local(Faces)
    way, u = local("float", 2, 3)
    way[:] = -triangles.normal[0]
    if nearest(shapes, pair, margin, way, near) == BEYOND or near.gap > margin:
        return n
    u[:] = -near.normal
    found = is_allowed(shapes, triangles, pair, 0, u)
    if found == 0:
        return n
    way[:] = -u
    if pair.i < 0 and is_allowed(shapes, triangles, pair, 1, way) != 1:
        return n
    faces.normal[:] = way
    find_faces(shapes, pair, _TILT, faces)
    feature = (triangles.number[0] - shapes.data[triangles.mesh[0], 2]) * 4096
    first = n
    if faces.first_count > 1 or faces.second_count > 1:
        n = clip_faces(faces, margin, 8, touch, n, feature)
    if n == first and found == 1:
        n = put_between(touch, n, near.first, way, near.gap, feature + 4095)
    return without_doubles(touch, triangles.start, first, n, _SAME * triangles.size)


@procedure
def convex_mesh(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contacts of a convex shape and a triangle mesh within ``margin``; new count."""
    low, high = local("float", 2, 3)
    stack = local("int", 128)
    pair, triangles = local(Pair), local(Triangles)
    place_pair(shapes, pair, i, -1)
    set_triangles(triangles, margin, shapes.radius[i], n)
    box_in_shape(shapes, i, j, margin, low, high)
    start = n
    stack[0] = shapes.data[j, 0]
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if not boxes_meet(shapes.node[node], low, high):
            continue
        first = shapes.child[node, 0]
        if first >= 0:
            stack[depth] = shapes.child[node, 1]
            stack[depth + 1] = first
            depth += 2
            continue
        for t in range(-1 - first, -1 - first + shapes.child[node, 1]):
            load_triangle(shapes, triangles, pair, 0, j, t)
            n = touch_triangle(shapes, triangles, pair, touch, n)
            if n - start > _ROOM:
                n = spread(touch, start, n, _ROOM)
    n = spread(touch, start, n, _MOST)
    touch.point[start:n] += pair.origin
    return n


@procedure
def plane_mesh(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of a plane with mesh vertices within ``margin`` that span the patch."""
    P = shapes.pose[i]
    up, d, o, p = local("float", 4, 3)
    stack = local("int", 128)
    up[:] = P[2::4]
    o[:] = P[3::4]
    into_shape(shapes.pose[j], up, d)
    out_of_shape(shapes.pose[j], o, 0.0, 0.0, 0.0, p)
    base = p @ up
    start = n
    stack[0] = shapes.data[j, 0]
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        box = shapes.node[node]
        height = base
        for c in range(3):
            height += d[c] * (box[c] if d[c] > 0 else box[3 + c])
        if height > margin:
            continue
        first = shapes.child[node, 0]
        if first >= 0:
            stack[depth] = shapes.child[node, 1]
            stack[depth + 1] = first
            depth += 2
            continue
        for t in range(-1 - first, -1 - first + shapes.child[node, 1]):
            for k in range(3):
                v = shapes.triangle[t, k]
                height = base + shapes.vertex[v] @ d
                known = False
                for e in range(start, n):
                    known = known or touch.feature[e] == v
                if height <= margin and not known:
                    x = shapes.vertex[v]
                    out_of_shape(shapes.pose[j], o, x[0], x[1], x[2], p)
                    n = put(touch, n, p - height / 2 * up, up, height, v)
                    if n - start > _ROOM:
                        n = spread(touch, start, n, _ROOM)
    n = spread(touch, start, n, _MOST)
    touch.point[start:n] += o
    return n


@procedure
def mesh_mesh(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contacts of two triangle meshes within ``margin``; returns the new count."""
    low, high = local("float", 2, 3)
    stack = local("int", 256, 2)
    pair, triangles = local(Pair), local(Triangles)
    place_pair(shapes, pair, i, -1)
    pair.i = -2
    set_triangles(triangles, margin, min(shapes.radius[i], shapes.radius[j]), n)
    start = n
    stack[0, 0] = shapes.data[i, 0]
    stack[0, 1] = shapes.data[j, 0]
    depth = 1
    while depth > 0:
        depth -= 1
        one = stack[depth, 0]
        two = stack[depth, 1]
        node_in_shape(shapes, i, one, j, margin, low, high)
        if not boxes_meet(shapes.node[two], low, high):
            continue
        a = shapes.child[one, 0]
        b = shapes.child[two, 0]
        if a >= 0 or b >= 0:
            # the larger box of the two is opened
            first = a >= 0 and (b < 0 or extent(shapes.node[one]) > extent(shapes.node[two]))
            for side in range(2):
                stack[depth, 0] = shapes.child[one, side] if first else one
                stack[depth, 1] = two if first else shapes.child[two, side]
                depth += 1
            continue
        for s in range(-1 - a, -1 - a + shapes.child[one, 1]):
            load_triangle(shapes, triangles, pair, 1, i, s)
            for t in range(-1 - b, -1 - b + shapes.child[two, 1]):
                load_triangle(shapes, triangles, pair, 0, j, t)
                n = touch_triangle(shapes, triangles, pair, touch, n)
                if n - start > _ROOM:
                    n = spread(touch, start, n, _ROOM)
    n = spread(touch, start, n, _MOST)
    touch.point[start:n] += pair.origin
    return n


@procedure
def extent(node: "float[6]") -> float:
    """Sum of the three side lengths of a tree node's box [m]."""
    return node[3] + node[4] + node[5] - node[0] - node[1] - node[2]


@procedure
def node_in_shape(
    shapes: Shapes, i: int, node: int, j: int, margin: float, low: "float[3]", high: "float[3]"
):
    """Axis-aligned bounds of a tree node of mesh i in the axes of mesh j, plus ``margin``."""
    P = shapes.pose[i]
    Q = shapes.pose[j]
    x = shapes.node[node]
    for k in range(3):
        middle = 0.0
        reach = margin
        for c in range(3):
            r = Q[k] * P[c] + Q[4 + k] * P[4 + c] + Q[8 + k] * P[8 + c]
            middle += r * (x[c] + x[3 + c]) / 2
            reach += abs(r) * (x[3 + c] - x[c]) / 2
            middle += Q[4 * c + k] * (P[4 * c + 3] - Q[4 * c + 3])
        low[k] = middle - reach
        high[k] = middle + reach
