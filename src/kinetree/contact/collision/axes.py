"""The widest slab between two boxes or hulls: separating axes, all of them.

The differences of points of two polyhedra fill a polyhedron whose facets are those of either, and
one for each pair of edges whose arcs cross on the sphere of normals (D. Gregorius, "The separating
axis test between convex polyhedra", 2013). The widest slab is at right angles to one of them
if they overlap: its width is minus the depth. If they are apart, it is a lower bound of the gap,
and the gap itself unless corners are nearest. Every width is that between support points,
so that no rounding error makes it too large.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, vector, view
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.simplex import Pair, Slab, turn_pair, width
from kinetree.contact.collision.support import farthest_vertex
from kinetree.contact.collision.tables import BOX, HULL, Shapes

FEW = 512
"""Pairs of edges up to which this is as quick as the expanding polytope."""
_MANY = 24  # vertices from which on the farthest one is found by climbing
_ROUNDING = 4e-15  # of the size: by which a facet may miss the border of its shape
_PARALLEL = 1e-20  # squared sine between edges without a common normal
_TOUCH = 1e-20  # product of sines up to which arcs touch


@procedure
def edge_pairs(shapes: Shapes, i: int, j: int) -> int:
    """Number of edge-edge combinations of two boxes or hulls; -1 for other shapes."""
    if i < 0 or j < 0:
        return -1
    one, two = shapes.kind[i], shapes.kind[j]
    if (one != BOX and one != HULL) or (two != BOX and two != HULL):
        return -1
    a = 12 if one == BOX else shapes.facets[i, 3]
    b = 12 if two == BOX else shapes.facets[j, 3]
    return a * b


@procedure
def widest_slab(shapes: Shapes, pair: Pair, far: float, slab: Slab) -> "(float, bool)":
    """Width of the widest slab separating two boxes or hulls, and whether it lies across edges.

    One wider than ``far`` is returned as it is found: there may be others that are wider still.
    Also whether it is across edges: then the first point is where that of the first shape is
    passed.
    """
    best = widest_by_facets(shapes, pair, far, slab)
    if best > far:
        return best, False
    return widest_by_edges(shapes, pair, best, slab)


@procedure
def widest_by_facets(shapes: Shapes, pair: Pair, far: float, slab: Slab) -> float:
    """Width of the widest slab normal to a facet of either polyhedron; sets the slab's normal.

    Every facet counts as the border of its shape at first, which is an upper bound of the width;
    that of the best one is then taken between support points.
    """
    i, j = pair.i, pair.j
    upper = widest_facet(shapes, i, j, 1.0, far, -1e300, slab.normal)
    if upper <= far:
        upper = widest_facet(shapes, j, i, -1.0, far, upper, slab.normal)
    slab.corner[:] = -1
    best = width(shapes, pair, slab)
    if best >= upper - _ROUNDING * (shapes.radius[i] + shapes.radius[j]) or best > far:
        return best
    best = across_facets(shapes, pair, 1.0, far, best, slab.normal)
    if best > far:
        return best
    turned = local(Pair)
    turn_pair(pair, turned)
    return across_facets(shapes, turned, -1.0, far, best, slab.normal)


@procedure
def widest_facet(
    shapes: Shapes, i: int, j: int, sign: float, far: float, best: float, n: "float[3]"
) -> float:
    """Upper bound of the widest slab normal to a facet of shape i if above ``best``; sets ``n``."""
    P, Q = shapes.pose[i], shapes.pose[j]
    C = view(P, 0, 3, 4)[:, :3].T @ view(Q, 0, 3, 4)[:, :3]  # second to first
    t, way = local("float", 2, 3)
    way[:] = Q[3::4] - P[3::4]
    into_shape(P, way, t)
    box, other, half = shapes.kind[i] == BOX, shapes.kind[j] == BOX, shapes.size[j]
    first, last = shapes.data[j, 0], shapes.data[j, 0] + shapes.data[j, 1]
    vertex, at, start = shapes.vertex, -1, -1
    m = vector(0.0, 0.0, 0.0)
    for k in range(6 if box else shapes.facets[i, 1]):
        if box:
            m = vector(0.0, 0.0, 0.0)
            m[k // 2] = 1.0 if k % 2 == 0 else -1.0
            gap = m @ t - shapes.size[i, k // 2]
        else:
            f = shapes.facet[shapes.facets[i, 0] + k]
            m = f[:3] * 1.0
            gap = m @ (t - f[3:])
        d = m @ C
        if other:
            gap -= abs(d) @ half
        elif last - first > _MANY:
            start = farthest_vertex(shapes, j, -d[0], -d[1], -d[2], start)
            gap += vertex[start] @ d
        else:
            low = vertex[first] @ d
            for v in range(first + 1, last):
                low = min(low, vertex[v] @ d)
            gap += low
        if gap > best:
            best = gap
            at = k
            if best > far:
                break
    if at >= 0:
        if box:
            n[:] = (sign if at % 2 == 0 else -sign) * view(P, 0, 3, 4)[:, at // 2]
        else:
            f = shapes.facet[shapes.facets[i, 0] + at]
            n[:] = sign * (P[::4] * f[0] + P[1::4] * f[1] + P[2::4] * f[2])
    return best


@procedure
def widest_by_edges(shapes: Shapes, pair: Pair, best: float, slab: Slab) -> "(float, bool)":
    """Width of the widest slab across two edges, True if above ``best``; else ``best``, False."""
    i, j = pair.i, pair.j
    one, two = local("float", 2, 12, 12)
    if shapes.kind[i] == BOX:
        box_edges(shapes.size[i], one)
    if shapes.kind[j] == BOX:
        box_edges(shapes.size[j], two)
    before = best
    # four calls, since an array is a pool or a local one
    if shapes.kind[i] == BOX:
        if shapes.kind[j] == BOX:
            best = across_edges(shapes, pair, one, 12, two, 12, best, slab)
        else:
            more = view(shapes.edge, shapes.facets[j, 2])
            best = across_edges(shapes, pair, one, 12, more, shapes.facets[j, 3], best, slab)
    else:
        own = view(shapes.edge, shapes.facets[i, 2])
        count = shapes.facets[i, 3]
        if shapes.kind[j] == BOX:
            best = across_edges(shapes, pair, own, count, two, 12, best, slab)
        else:
            more = view(shapes.edge, shapes.facets[j, 2])
            best = across_edges(shapes, pair, own, count, more, shapes.facets[j, 3], best, slab)
    return best, best > before


@procedure
def across_facets(
    shapes: Shapes, pair: Pair, sign: float, far: float, best: float, n: "float[3]"
) -> float:
    """Width of the widest slab normal to facets of a pair's first shape, if above ``best``.

    The normal ``n`` is ``sign`` times that of the facet.
    """
    i = pair.i
    P = shapes.pose[i]
    R = view(P, 0, 3, 4)
    slab = local(Slab)
    d = slab.normal
    slab.corner[:] = -1
    box = shapes.kind[i] == BOX
    for k in range(6 if box else shapes.facets[i, 1]):
        if box:
            d[:] = (1.0 if k % 2 == 0 else -1.0) * R[:, k // 2]
        else:
            f = shapes.facet[shapes.facets[i, 0] + k]
            d[:] = P[::4] * f[0] + P[1::4] * f[1] + P[2::4] * f[2]
        found = width(shapes, pair, slab)
        if found > best:
            best = found
            n[:] = sign * d
            if best > far:
                return best
    return best


@procedure
def box_edges(size: "float[3]", edge: "float[12, 12]") -> None:
    """Write the 12 edges of a box of half extents ``size``, each as a row of 12 numbers."""
    for k in range(3):
        u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
        for c in range(4):
            s, t = (1.0 if c % 2 == 0 else -1.0), (1.0 if c < 2 else -1.0)
            row = edge[4 * k + c]
            row[:] = 0.0
            row[u] = s * size[u]
            row[w] = t * size[w]
            row[3 + k] = s * t  # along the vector product of both normals
            row[6 + u] = s
            row[9 + w] = t


@procedure
def across_edges(
    shapes: Shapes,
    pair: Pair,
    one: "float[:, 12]",
    ones: int,
    two: "float[:, 12]",
    twos: int,
    best: float,
    slab: Slab,
) -> float:
    """Width of the widest slab across one edge of each of two polyhedra, if above ``best``.

    The slab then has its normal, and the point of the edge of the first where the other one passes.
    """
    P, Q = shapes.pose[pair.i], shapes.pose[pair.j]
    C = view(P, 0, 3, 4)[:, :3].T @ view(Q, 0, 3, 4)[:, :3]  # second to first
    t, way = local("float", 2, 3)
    trial = local(Slab)
    d = trial.normal
    trial.corner[:] = -1
    way[:] = Q[3::4] - P[3::4]
    into_shape(P, way, t)
    for y in range(twos):
        row = two[y]
        q = C @ row[:3] + t
        f = C @ row[3:6]
        c = C @ row[6:9]
        e = C @ row[9:]
        for x in range(ones):
            edge = one[x]
            along, back = c @ edge[3:6], e @ edge[3:6]
            if along * back > _TOUCH:
                continue
            other = edge[9:] @ f
            if (edge[6:9] @ f) * other > _TOUCH or along * other > _TOUCH:
                continue
            m = cross(edge[3:6], f)
            square = m @ m
            if square <= _PARALLEL:
                continue
            m = m / (sqrt(square) if m @ (edge[6:9] + edge[9:]) > 0 else -sqrt(square))
            if m @ (q - edge[:3]) > best:
                d[:] = P[::4] * m[0] + P[1::4] * m[1] + P[2::4] * m[2]
                d[:] = d / sqrt(d @ d)
                found = width(shapes, pair, trial)
                if found > best:
                    best = found
                    slab.normal[:] = d
                    past = cross(q - edge[:3], f) @ cross(edge[3:6], f) / square
                    x0 = edge[:3] + past * edge[3:6]
                    out_of_shape(P, pair.origin, x0[0], x0[1], x0[2], slab.first)
    return best
