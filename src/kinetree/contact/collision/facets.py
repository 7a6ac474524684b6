"""Facets and edges of hulls, for separating axes: all of them, also those between flat neighbours.

Faces of patches join triangles whose normals differ by the rounding errors of files (``polyhedron``
of ``shapes``). The widest slab between two hulls needs them apart, or gaps are wrong by as much.
"""

import numpy as np

_SAME = 1e-13  # [rad] between triangles without an edge


def facets_and_edges(hull, beyond):
    """Facets (m, 6) and edges (k, 12) of a convex ``Hull``, coplanar triangles merged.

    ``beyond`` are the neighbours of its triangles, (t, 3). A facet is a normal and a point; an
    edge a point, its direction, and the normals of both facets, of which the vector product is
    along it.
    """
    vertices, triangles = np.asarray(hull.vertices, dtype=float), np.asarray(hull.triangles)
    normals = _normals(vertices[triangles], np.asarray(hull.normals, dtype=float))
    turn = np.cross(normals[:, None], normals[beyond])
    level = np.sum(turn**2, axis=2) < _SAME**2
    level &= (beyond >= 0) & (np.einsum("ik,ijk->ij", normals, normals[beyond]) > 0)
    group = np.arange(len(triangles))
    while True:  # the least number among all triangles of a facet spreads over it
        least = np.minimum(group, np.min(np.where(level, group[beyond], group[:, None]), axis=1))
        if np.array_equal(least, group):
            break
        group = least[least]
    first = np.unique(group)
    facets = np.concatenate([normals[first], vertices[triangles[first, 0]]], axis=1)
    t, side = np.nonzero(~level & (beyond > np.arange(len(triangles))[:, None]))
    a, b = (vertices[triangles[t, (side + k) % 3]] for k in (0, 1))
    way = b - a
    length = np.sqrt(np.sum(way**2, axis=1))[:, None]
    one, two = normals[t], normals[beyond[t, side]]
    # counter-clockwise from outside: across such an edge the normal turns about its direction
    edges = np.concatenate([a, way / np.where(length > 0, length, 1.0), one, two], axis=1)
    return facets, edges[length[:, 0] > 0]


def _normals(corners, given):
    """Unit normals of triangles (t, 3, 3) by the two shortest sides; ``given`` if degenerate."""
    sides = np.roll(corners, -1, axis=1) - corners  # side k: from corner k to the next one
    longest = np.argmax(np.sum(sides**2, axis=2), axis=1)
    rows = np.arange(len(corners))
    n = np.cross(sides[rows, (longest + 1) % 3], sides[rows, (longest + 2) % 3])
    length = np.sqrt(np.sum(n**2, axis=1))[:, None]
    n = np.where(length > 0, n / np.where(length > 0, length, 1.0), given)
    return n * np.where(np.sum(n * given, axis=1) < 0, -1.0, 1.0)[:, None]
