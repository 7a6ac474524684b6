"""Pairs of convex cores, simplices of differences of their points, and slabs between them.

These are workspaces: the searches for nearest points and depths hand them to each other.
"""

from kinetree.codegen.procedures import procedure, workspace
from kinetree.contact.collision.support import size_of, support
from kinetree.contact.collision.tables import Shapes


@workspace
class Pair:
    """Two convex shapes.

    Attributes:
        i: number of the first; -1 and -2 are triangles, rows of ``corners``.
        j: number of the second.
        size: sum of the sizes of both [m], for tolerances.
        origin: near the shapes, in the world; points are relative to it.
        corners: of the triangles -1 and -2, relative to the origin.
    """

    i: int
    j: int
    size: float
    origin: "float[3]"
    corners: "float[6, 3]"


@workspace
class Slab:
    """Slab between two cores, and a point of each, relative to the origin of their pair.

    Attributes:
        gap: its width [m], negative where the cores overlap.
        normal: unit, from the first core to the second.
        first: a point of the first core.
        second: a point of the second core.
        corner: numbers of the farthest corners that were found last, or -1: the next search for
            farthest points begins there.
    """

    gap: float
    normal: "float[3]"
    first: "float[3]"
    second: "float[3]"
    corner: "int[2]"


@workspace
class Simplex:
    """Simplex of at most four points of each core, and their differences.

    Attributes:
        count: how many.
        difference: points of the second core less those of the first.
        first: points of the first core.
        second: points of the second core.
        corner: numbers of the corners that these are.
        weight: fraction that each contributes to the nearest points.
    """

    count: int
    difference: "float[4, 3]"
    first: "float[4, 3]"
    second: "float[4, 3]"
    corner: "int[4, 2]"
    weight: "float[4]"


@procedure
def set_pair(shapes: Shapes, pair: Pair, i: int, j: int, origin: "float[3]") -> None:
    """Set shapes and origin of a ``Pair``; measures its size unless one is a triangle."""
    pair.i = i
    pair.j = j
    pair.origin[:] = origin
    if i >= 0 and j >= 0:
        measure_pair(shapes, pair)


@procedure
def place_pair(shapes: Shapes, pair: Pair, i: int, j: int) -> None:
    """Set the two shapes of a ``Pair``, with the origin at the first shape's position."""
    P = shapes.pose[i]
    pair.i = i
    pair.j = j
    pair.origin[:] = P[3::4]
    if j >= 0:
        measure_pair(shapes, pair)


@procedure
def measure_pair(shapes: Shapes, pair: Pair) -> None:
    """Set the length scale of a pair: the sum of its shapes' radii."""
    pair.size = size_of(shapes, pair.i, pair.corners) + size_of(shapes, pair.j, pair.corners)


@procedure
def turn_pair(pair: Pair, turned: Pair) -> None:
    """Copy a ``Pair`` with its two shapes exchanged."""
    turned.i = pair.j
    turned.j = pair.i
    turned.size = pair.size
    turned.origin[:] = pair.origin
    turned.corners[:] = pair.corners


@procedure
def width(shapes: Shapes, pair: Pair, slab: Slab) -> float:
    """Signed width of the slab along its normal, times the normal's length; sets support points."""
    n, a, b, o = slab.normal, slab.first, slab.second, pair.origin
    minus = -n
    slab.corner[0] = support(shapes, pair.i, pair.corners, o, n, slab.corner[0], a)
    slab.corner[1] = support(shapes, pair.j, pair.corners, o, minus, slab.corner[1], b)
    return (b[0] - a[0]) * n[0] + (b[1] - a[1]) * n[1] + (b[2] - a[2]) * n[2]


@procedure
def copy_slab(source: Slab, target: Slab) -> None:
    """Copy gap, normal and points of one slab to another."""
    target.gap = source.gap
    target.normal[:] = source.normal
    target.first[:] = source.first
    target.second[:] = source.second


@procedure
def find_foot(simplex: Simplex, foot: "float[3]") -> None:
    """Write the first core's nearest point: the simplex corners weighted."""
    foot[:] = 0.0
    for k in range(simplex.count):
        foot[:] += simplex.weight[k] * simplex.first[k]


@procedure
def add_corner(simplex: Simplex, slab: Slab) -> None:
    """Append the support points of a slab to a simplex, if it has less than four corners."""
    k = simplex.count
    if k < 4:
        simplex.difference[k] = slab.second - slab.first
        simplex.first[k] = slab.first
        simplex.second[k] = slab.second
        simplex.corner[k] = slab.corner
        simplex.count = k + 1


@procedure
def copy_corner(simplex: Simplex, source: int, target: int) -> None:
    """Copy one corner of a simplex over another."""
    simplex.difference[target] = simplex.difference[source]
    simplex.first[target] = simplex.first[source]
    simplex.second[target] = simplex.second[source]
    simplex.corner[target] = simplex.corner[source]
