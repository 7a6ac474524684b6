"""The nearest pair of shapes of many, and the nearest points of a pair of any kinds."""

from kinetree.codegen.procedures import local, procedure, record, sqrt, vector, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.convex import APART, BEYOND, nearest, patch
from kinetree.contact.collision.fields import height_at, put_foot
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.meshes import (
    Triangles,
    box_in_shape,
    extent,
    load_triangle,
    node_in_shape,
)
from kinetree.contact.collision.on_fields import field_pair
from kinetree.contact.collision.placing import place_shape
from kinetree.contact.collision.simplex import Pair, Slab, copy_slab, place_pair
from kinetree.contact.collision.support import round_of, support
from kinetree.contact.collision.tables import Shapes, Touch
from kinetree.contact.collision.witness import facing_points, miss_distance, move_into

_ON = 1e-13  # of the size: by which points may miss the surface
_MOVES = 32  # of nearest points into both shapes


@record
class Questions:
    """Groups of pairs of shapes, of each of which the nearest pair is to be found in many samples.

    Attributes:
        bodies: how many, with the base.
        poses: of all of them, sample by sample.
        samples: how many.
        used: numbers of the shapes that are in pairs.
        used_count: how many.
        pairs: numbers of shapes.
        starts: of each group its first row in ``pairs``, and the end.
        groups: how many.
        nearest: of each group of each sample the normal, the gap, and a point of each shape.
        which: numbers of the two shapes.
    """

    bodies: int
    poses: "float[:, 12]"
    samples: int
    used: "int[:]"
    used_count: int
    pairs: "int[:, 2]"
    starts: "int[:]"
    groups: int
    nearest: "float[:, 10]"
    which: "int[:, 2]"


@procedure
def distances(shapes: Shapes, questions: Questions, touch: Touch) -> None:
    """Write the nearest pair of every group of shapes, for every sample of the body poses."""
    for sample in range(questions.samples):
        bodies_here = view(questions.poses, sample * questions.bodies)
        for k in range(questions.used_count):
            i = questions.used[k]
            place_shape(shapes, i, bodies_here[shapes.body[i]])
        for g in range(questions.groups):
            nearest_of_group(shapes, questions, touch, g, sample * questions.groups + g)


@procedure
def nearest_of_group(
    shapes: Shapes, questions: Questions, touch: Touch, group: int, row: int
) -> None:
    """Write the nearest of a group's shape pairs, at the current poses, to a result row."""
    near = local(Slab)
    out, n = questions.nearest[row], near.normal
    best = 1e300
    for k in range(questions.starts[group], questions.starts[group + 1]):
        i, j = questions.pairs[k, 0], questions.pairs[k, 1]
        if boxes_apart(shapes, i, j) > best:
            continue
        swap = shapes.kind[i] > shapes.kind[j]
        status = pair_distance(shapes, j if swap else i, i if swap else j, best, touch, near)
        if status != BEYOND and near.gap < best:
            best = near.gap
            questions.which[row, 0] = i
            questions.which[row, 1] = j
            out[3] = best
            out[:3] = -n if swap else n
            out[4:7] = near.second if swap else near.first
            out[7:] = near.first if swap else near.second


@procedure
def boxes_apart(shapes: Shapes, i: int, j: int) -> float:
    """Distance of two shapes' bounding boxes, a lower bound of the shapes' distance [m]."""
    total = 0.0
    for c in range(3):
        d = max(shapes.low[i, c] - shapes.high[j, c], shapes.low[j, c] - shapes.high[i, c])
        if d > 0:
            total += d * d
    return sqrt(total)


@procedure
def pair_distance(shapes: Shapes, i: int, j: int, far: float, touch: Touch, near: Slab) -> int:
    """Signed distance query of two shapes, the lower kind first; sets ``near``, returns status."""
    a = shapes.kind[i]
    b = shapes.kind[j]
    pair = local(Pair)
    way = local("float", 3)
    place_pair(shapes, pair, i, j)
    way[:] = 0.0
    status = BEYOND
    if a == tables.PLANE:
        status = over_plane(shapes, pair, near)
    elif b == tables.FIELD:
        status = over_field(shapes, i, j, touch, near)
        pair.origin[:] = 0.0
    elif b == tables.TRIANGLES:
        status = to_mesh(shapes, i, j, far, near)
    else:
        status = nearest(shapes, pair, far, way, near)
        if status != BEYOND:
            into_both(shapes, pair, touch, near)
    if status != BEYOND:
        near.first[:] += pair.origin
        near.second[:] += pair.origin
    return status


@procedure
def into_both(shapes: Shapes, pair: Pair, touch: Touch, near: Slab) -> None:
    """Choose nearest points that best lie on both shapes, among those the normal allows.

    Those that the search ended with may miss a shape where faces or edges are nearly parallel: then
    the middle of what these have in common, or the farthest point of either shape, is one.
    """
    a, best = local("float", 2, 3)
    close = _ON * (shapes.radius[pair.i] + shapes.radius[pair.j])
    least = 1e300
    for attempt in range(5):
        if attempt == 0:
            a[:] = near.first
        elif attempt < 3:
            farthest_point(shapes, pair, near, attempt == 1, a)
        elif attempt == 3:
            if not middle_of_faces(shapes, pair, near, a):
                continue
        elif not middle_of_patch(shapes, pair, touch, near, a):
            continue
        miss = miss_distance(shapes, pair, near, a)
        if miss < least:
            least = miss
            best[:] = a
        if least <= close:
            break
    near.first[:] = best
    near.second[:] = best + near.gap * near.normal
    if least > close:
        move_into_both(shapes, pair, near)


@procedure
def farthest_point(shapes: Shapes, pair: Pair, near: Slab, of_first: bool, a: "float[3]") -> None:
    """Write the first shape's support point, or the second's moved across the gap."""
    n, o, p = near.normal, pair.origin, local("float", 3)
    minus = -n
    if of_first:
        support(shapes, pair.i, pair.corners, o, n, -1, a)
        a[:] += round_of(shapes, pair.i) * n
    else:
        support(shapes, pair.j, pair.corners, o, minus, -1, p)
        a[:] = p - (round_of(shapes, pair.j) + near.gap) * n


@procedure
def middle_of_faces(shapes: Shapes, pair: Pair, near: Slab, a: "float[3]") -> bool:
    """Set the middle of the common part of facing features; False if they do not meet."""
    cores = local(Slab)
    ra, rb = round_of(shapes, pair.i), round_of(shapes, pair.j)
    cores.normal[:] = near.normal
    cores.gap = near.gap + ra + rb
    if not facing_points(shapes, pair, cores):
        return False
    a[:] = cores.first + ra * near.normal
    return True


@procedure
def middle_of_patch(shapes: Shapes, pair: Pair, touch: Touch, near: Slab, a: "float[3]") -> bool:
    """Set the mean of the deepest contacts between two shapes; False if there are none."""
    reach = near.gap + 8e-16 * (shapes.radius[pair.i] + shapes.radius[pair.j])
    n = patch(shapes, pair, near, reach, 8, touch, 0, 0)
    total = vector(0.0, 0.0, 0.0)
    for k in range(n):
        total += touch.point[k] - pair.origin
    if n > 0:
        a[:] = total / n - near.normal * near.gap / 2
    return n > 0


@procedure
def move_into_both(shapes: Shapes, pair: Pair, near: Slab) -> None:
    """Project the nearest points alternately into both shapes, where they missed a border."""
    a, b, n = local("float", 3, 3)
    n[:] = near.normal
    a[:] = near.first
    for _ in range(_MOVES):
        one = move_into(shapes, pair.i, pair.origin, n, a)
        b[:] = a + near.gap * n
        n[:] = -n
        two = move_into(shapes, pair.j, pair.origin, n, b)
        n[:] = -n
        near.first[:] = a
        near.second[:] = b
        a[:] = b - near.gap * n
        if one + two == 0.0:
            return


@procedure
def over_plane(shapes: Shapes, pair: Pair, near: Slab) -> int:
    """Distance query of a plane and a shape by its lowest point; sets ``near``, returns status."""
    P, j = shapes.pose[pair.i], pair.j
    p, o = local("float", 3), pair.origin
    o[:] = shapes.pose[j, 3::4]
    down = -P[2::4]
    q = P[3::4] - o
    if shapes.kind[j] == tables.TRIANGLES:
        x = shapes.vertex[farthest_of_mesh(shapes, j, down)]
        out_of_shape(shapes.pose[j], o, x[0], x[1], x[2], p)
    else:
        support(shapes, j, pair.corners, o, down, -1, p)
    r = round_of(shapes, j)
    near.gap = (q - p) @ down - r
    near.normal[:] = -down
    near.second[:] = p + r * down
    near.first[:] = near.second + near.gap * down
    return APART


@procedure
def farthest_of_mesh(shapes: Shapes, j: int, way: "float[3]") -> int:
    """Number of the triangle-mesh vertex that is farthest along a world direction."""
    d = local("float", 3)
    into_shape(shapes.pose[j], way, d)
    farthest = -1
    high = -1e300
    for t in range(shapes.data[j, 2], shapes.data[j, 2] + shapes.data[j, 3]):
        for k in range(3):
            height = shapes.vertex[shapes.triangle[t, k]] @ d
            if height > high:
                high = height
                farthest = shapes.triangle[t, k]
    return farthest


@procedure
def over_field(shapes: Shapes, i: int, j: int, touch: Touch, near: Slab) -> int:
    """Distance query of a convex shape and a height field; sets ``near``, returns the status.

    The lowest point of the shape is straight above the ground by an upper bound of the gap. Of what
    is all below the ground, the way straight up to it counts.
    """
    P = shapes.pose[j]
    corners = local("float", 6, 3)
    o, p, x = local("float", 3, 3)
    down = -P[2::4]
    o[:] = P[3::4]
    support(shapes, i, corners, o, down, -1, p)
    r = round_of(shapes, i)
    p[:] += r * down
    into_shape(P, p, x)
    bound = max(x[2] - height_at(shapes, j, x[0], x[1]), 0.0)
    n = field_pair(shapes, i, j, bound * (1 + 1e-9) + 1e-9, touch, 0)
    if n == 0:
        touch.second = j
        touch.margin = 1e300
        touch.count = 0
        put_foot(shapes, touch, x[0], x[1], x, 0.0, 0)
        n = touch.count
    best = 0
    for k in range(1, n):
        if touch.gap[k] < touch.gap[best]:
            best = k
    near.gap = touch.gap[best]
    near.normal[:] = touch.normal[best]
    near.first[:] = touch.point[best] - near.normal * near.gap / 2
    near.second[:] = touch.point[best] + near.normal * near.gap / 2
    return APART


@procedure
def to_mesh(shapes: Shapes, i: int, j: int, far: float, near: Slab) -> int:
    """Distance query of a convex shape or mesh to a triangle mesh by trees; returns the status."""
    stack = local("int", 256, 2)
    pair, triangles, found = local(Pair), local(Triangles), local(Slab)
    way = local("float", 3)
    place_pair(shapes, pair, i, -1)
    mesh = shapes.kind[i] == tables.TRIANGLES
    if mesh:
        pair.i = -2
    near.gap = far
    status = BEYOND
    stack[0, 0] = shapes.data[i, 0] if mesh else -1
    stack[0, 1] = shapes.data[j, 0]
    depth = 1
    while depth > 0:
        depth -= 1
        one = stack[depth, 0]
        two = stack[depth, 1]
        if node_apart(shapes, i, one, j, two) > near.gap:
            continue
        a = shapes.child[one, 0] if mesh else -1
        b = shapes.child[two, 0]
        if a >= 0 or b >= 0:
            open_nodes(shapes, i, j, view(stack, depth))
            depth += 2
            continue
        begin = -1 - a if mesh else 0
        end = begin + shapes.child[one, 1] if mesh else 1
        for s in range(begin, end):
            if mesh:
                load_triangle(shapes, triangles, pair, 1, i, s)
            for t in range(-1 - b, -1 - b + shapes.child[two, 1]):
                load_triangle(shapes, triangles, pair, 0, j, t)
                way[:] = 0.0
                got = nearest(shapes, pair, near.gap, way, found)
                if got != BEYOND and found.gap < near.gap:
                    status = got
                    copy_slab(found, near)
    return status


@procedure
def open_nodes(shapes: Shapes, i: int, j: int, waiting: "int[:, 2]") -> None:
    """Replace the top node pair of a search stack by pairs with the larger node's children."""
    one, two = waiting[0, 0], waiting[0, 1]
    a = shapes.child[one, 0] if shapes.kind[i] == tables.TRIANGLES else -1
    b = shapes.child[two, 0]
    first = a >= 0 and (b < 0 or extent(shapes.node[one]) > extent(shapes.node[two]))
    node = one if first else two
    x = shapes.child[node, 0]
    y = shapes.child[node, 1]
    if first:
        to_x = node_apart(shapes, i, x, j, two)
        to_y = node_apart(shapes, i, y, j, two)
    else:
        to_x = node_apart(shapes, i, one, j, x)
        to_y = node_apart(shapes, i, one, j, y)
    if to_x < to_y:
        x, y = y, x
    waiting[0, 0] = x if first else one
    waiting[0, 1] = two if first else x
    waiting[1, 0] = y if first else one
    waiting[1, 1] = two if first else y


@procedure
def node_apart(shapes: Shapes, i: int, one: int, j: int, two: int) -> float:
    """Lower bound of the distance of two meshes' tree nodes, or of shape i and a node [m].

    Negative where shapes may overlap: they may do so by the size of the smaller one.
    """
    low, high = local("float", 2, 3)
    if shapes.kind[i] == tables.TRIANGLES:
        node_in_shape(shapes, i, one, j, 0.0, low, high)
    else:
        box_in_shape(shapes, i, j, 0.0, low, high)
    node = shapes.node[two]
    total = 0.0
    for c in range(3):
        d = max(low[c] - node[3 + c], node[c] - high[c])
        if d > 0:
            total += d * d
    return sqrt(total) if total > 0 else -1e300
