"""Tables of shapes: sizes, hulls, height fields, and triangles in trees."""

import hashlib
from typing import NamedTuple

import numpy as np

from kinetree.contact.collision import tables
from kinetree.contact.collision.facets import facets_and_edges
from kinetree.contact.collision.kinds import OF_SOLIDS
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.support import SIDE, round_of, support
from kinetree.contact.collision.tables import Shapes
from kinetree.contact.finding.shapes import (
    Hull,
    Placed,
    hull_of,
    kept_arrays,
    spline_coefficients,
)
from kinetree.errors import ModelError, need
from kinetree.model.geometry import Geometry, HeightField, Mesh, Plane, Solid, Surface
from kinetree.model.triangles import read_triangles

_FLAT = 1e-7  # [rad] between triangles that are one face


class _Pools:
    """Rows that shapes refer to, each kept once for all shapes that are alike."""

    def __init__(self):
        self.known, self.rows, self.counts = {}, {}, {}

    def add(self, **arrays):
        """Append named arrays of rows to their pools; number of each pool's first new row."""
        first = {}
        for name, array in arrays.items():
            first[name] = self.counts.get(name, 0)
            self.counts[name] = first[name] + len(array)
            self.rows.setdefault(name, []).append(array)
        return first

    def array(self, name, dtype, *shape):
        """Contiguous array of all rows of a pool, (0, ...) where there are none."""
        rows = self.rows.get(name)
        return np.ascontiguousarray(
            np.concatenate(rows) if rows else np.zeros((0, *shape)), dtype=dtype
        )


def shapes_of(geometry, weld, parent, given) -> Shapes:
    """``Shapes`` record, the compiled tables, of a list of ``Geometry``.

    Args:
        geometry: the shapes.
        weld: for every body, the first of those that it is welded to.
        parent: for these, the first of the weld that carries them.
        given: coefficients that hold for all of them, by name, or None.
    """
    n, pools = len(geometry), _Pools()
    uneven = any(isinstance(g.shape, HeightField) for g in geometry)
    measures = [_measure(g.shape, pools, uneven) for g in geometry]
    body = np.array([g.body for g in geometry], dtype=np.int64)
    boxes = np.array([m.box for m in measures], dtype=float).reshape(n, 6)
    endless = np.array([isinstance(g.shape, (Plane, HeightField)) for g in geometry], dtype=bool)
    return Shapes(
        count=n,
        kind=np.array([m.kind for m in measures], dtype=np.int64),
        body=body,
        place=np.array([_pose_row(g.placement) for g in geometry], dtype=float).reshape(n, 12),
        size=np.array([m.size for m in measures], dtype=float).reshape(n, 3),
        data=np.array([m.data for m in measures], dtype=np.int64).reshape(n, 4),
        radius=np.array([m.radius for m in measures], dtype=float),
        box=boxes,
        thin=np.where(endless, np.inf, boxes[:, 3:].min(axis=1) if n else 0.0),
        weld=np.array([weld[b] for b in body], dtype=np.int64),
        weld_parent=np.array([parent[weld[b]] for b in body], dtype=np.int64),
        facets=np.array([m.facets for m in measures], dtype=np.int64).reshape(n, 4),
        firsts=np.array([m.firsts for m in measures], dtype=np.int64).reshape(n, 2),
        pose=np.zeros((n, 12)),
        low=np.zeros((n, 3)),
        high=np.zeros((n, 3)),
        **_materials(geometry, given),
        **_rows_of(pools),
    )


def _materials(geometry, given):
    """Contact columns of all shapes from their surfaces, overridden by ``given`` values."""
    n, surfaces = len(geometry), [g.surface or Surface() for g in geometry]
    contype, conaffinity = masks(geometry)
    coefficients = np.array(
        [[s.friction, s.torsion, s.rolling, s.restitution] for s in surfaces], dtype=float
    ).reshape(n, 4)
    condim = np.array([g.surface.condim if g.surface else 0 for g in geometry], dtype=np.int64)
    for column, name in ((0, "friction"), (3, "restitution")):
        if given[name] is not None and not callable(given[name]):
            coefficients[:, column] = given[name]
            if name == "friction":  # the scene's, whatever the surfaces say
                condim[condim == 1] = 3
    return {
        "margin": np.array([s.margin for s in surfaces], dtype=float),
        "contype": np.ascontiguousarray(contype),
        "conaffinity": np.ascontiguousarray(conaffinity),
        "priority": np.array([s.priority for s in surfaces], dtype=np.int64),
        "condim": condim,
        "friction": np.ascontiguousarray(coefficients[:, :3]),
        "restitution": np.ascontiguousarray(coefficients[:, 3]),
        "drift": np.array([s.velocity for s in surfaces], dtype=float).reshape(n, 3),
    }


def _rows_of(pools):
    """Fields of ``Shapes`` with the rows of hulls, height fields and meshes in the pools."""
    return {
        "vertex": pools.array("vertex", float, 3),
        "neighbour_first": _starts(pools, "neighbour_count"),
        "neighbour": pools.array("neighbour", np.int64),
        "ahead": pools.array("ahead", np.int64),
        "cluster": pools.array("cluster", np.int64),
        "ball": pools.array("ball", float, 4),
        "face_first": _starts(pools, "face_count"),
        "face_vertex": pools.array("face_vertex", np.int64),
        "face_normal": pools.array("face_normal", float, 3),
        "facet": pools.array("facet", float, 6),
        "edge": pools.array("edge", float, 12),
        "height": pools.array("height", float),
        "node": pools.array("node", float, 6),
        "child": pools.array("child", np.int64, 2),
        "triangle": pools.array("triangle", np.int64, 3),
        "triangle_next": pools.array("triangle_next", np.int64, 3),
        "triangle_normal": pools.array("triangle_normal", float, 3),
    }


def placed_table(*placed) -> Shapes:
    """``Shapes`` record of a few ``Placed`` shapes, each on its own body at its pose."""
    n = len(placed)
    geometry = [Geometry(k, p.shape) for k, p in enumerate(placed)]
    shapes = shapes_of(geometry, range(n), [0] * n, _NOTHING)
    for place, p in zip(shapes.place, placed, strict=True):
        place[:] = np.column_stack([p.axes, p.origin]).reshape(12)
    place_shapes(shapes, np.tile(np.eye(4)[:3].reshape(12), (n, 1)))
    return shapes


_NOTHING = {"friction": None, "restitution": None}


def _starts(pools, name):
    """First row of each group and, last, the number of all rows, from a pool of group sizes."""
    return np.concatenate([[0], np.cumsum(pools.array(name, np.int64))]).astype(np.int64)


def _pose_row(placement):
    """Placement of a shape in its body as a row of 12: ``[E^T | r]``."""
    E, r = np.asarray(placement.E, dtype=float), np.asarray(placement.r, dtype=float)
    return np.column_stack([E.T, r]).reshape(12)


class _Measures(NamedTuple):
    kind: int
    size: tuple
    box: tuple
    radius: float
    data: tuple = (0, 0, 0, 0)
    facets: tuple = (0, 0, 0, 0)
    firsts: tuple = (0, 0)


def _measure(shape, pools, uneven):
    """Kind, sizes, box and bounding radius of a shape, and the rows it has in the pools.

    ``uneven`` is whether there are height fields, on which some solids stand as polyhedra.
    """
    if isinstance(shape, (Mesh, HeightField)):
        if shape not in pools.known:
            add = _field if isinstance(shape, HeightField) else _hull if shape.convex else _mesh
            pools.known[shape] = add(shape, pools)
        return pools.known[shape]
    middle = (0.0, 0.0, 0.0)
    if isinstance(shape, Plane):
        return _Measures(tables.PLANE, middle, (0.0,) * 6, np.inf)
    if not isinstance(shape, Solid):
        raise ModelError(f"a shape that touches must be one of kinetree's, got {shape!r}")
    kind, half = tables.number_of(type(shape)), shape.half_sizes
    box, size = (*middle, *shape.half_extents), (*half, *middle)[:3]
    if uneven and not OF_SOLIDS[type(shape)].has_feet:
        if shape not in pools.known:
            pools.known[shape] = _add_polyhedron(_arrays_of_hull(solid_hull(shape)), pools)
        return _Measures(kind, size, box, shape.reach, *pools.known[shape])
    return _Measures(kind, size, box, shape.reach)


_CIRCLE = 32  # corners of the polygon that stands for a circle on height fields
_DIRECTIONS = 400


def solid_hull(solid: Solid) -> Hull:
    """Convex polyhedron whose corners lie on the surface of a solid."""
    points = _points_of_outline(solid)
    if points is None:
        shapes = placed_table(Placed(solid, np.eye(3), np.zeros(3)))
        points = np.zeros((_DIRECTIONS, 3))
        for k, point in enumerate(points):  # evenly spread: a spiral from pole to pole
            z, turn = 1 - (2 * k + 1) / _DIRECTIONS, k * np.pi * (3 - np.sqrt(5))
            r = np.sqrt(1 - z * z)
            d = np.array([r * np.cos(turn), r * np.sin(turn), z])
            support(shapes, 0, np.zeros((6, 3)), np.zeros(3), d, 0, point)
            point += round_of(shapes, 0) * d
    need("scipy", f"the polyhedron of a {solid.spelling()}", "contact")
    from scipy.spatial import ConvexHull

    found = ConvexHull(np.unique(np.round(points, 12), axis=0))
    corners, normals = found.points[found.simplices], found.equations[:, :3]
    turned = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.sum(turned * normals, axis=1) < 0
    triangles = np.where(inward[:, None], found.simplices[:, ::-1], found.simplices)
    used, numbers = np.unique(triangles, return_inverse=True)
    return Hull(found.points[used], numbers.reshape(-1, 3), normals)


def _points_of_outline(solid):
    """Points on the surface of a solid of revolution; None for other solids."""
    outline = solid.outline(_CIRCLE)
    if outline is None:
        return None
    angle = 2 * np.pi * np.arange(_CIRCLE) / _CIRCLE
    return np.array([[r * np.cos(t), r * np.sin(t), z] for r, z in outline for t in angle])


def _around(points):
    """Axis-aligned box (centre, half extents) of points, and radius of a ball about its centre."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    radius = float(np.sqrt(np.max(np.sum((points - middle) ** 2, axis=1))))
    return (*middle, *(high - low) / 2), radius


def _field(field, pools):
    """Measures of a height field, whose spline coefficients go into the pools."""
    c = spline_coefficients(field.heights)
    first = pools.add(height=c.reshape(-1))["height"]
    half = (field.size[0] / 2, field.size[1] / 2)
    low, high = float(c.min()), float(c.max())  # a B-spline is between its coefficients
    box = (0.0, 0.0, (low + high) / 2, *half, (high - low) / 2)
    return _Measures(tables.FIELD, (*half, 0.0), box, np.inf, (first, *c.shape, 0))


def _hull(mesh, pools):
    """Measures of a mesh's convex hull, whose vertices, faces and edges go into the pools."""
    hull, digest = hull_of(mesh), hashlib.sha256()
    for array in hull:
        digest.update(np.ascontiguousarray(array))
    found = kept_arrays(f"polyhedron 4\n{digest.hexdigest()}", lambda: _arrays_of_hull(hull))
    box, radius = _around(found[0])
    return _Measures(tables.HULL, (0.0, 0.0, 0.0), box, radius, *_add_polyhedron(found, pools))


def _add_polyhedron(arrays, pools):
    """Append a convex polyhedron to the pools; its ``data``, ``facets`` and ``firsts`` rows."""
    vertices, counts, neighbours, face_counts, corners, normals, facets, edges = arrays[:8]
    ahead, cluster, ball = arrays[8:]
    v = pools.counts.get("vertex", 0)
    # Rows of neighbours belong to all vertices, also to those of triangle meshes in between.
    first = pools.add(
        vertex=vertices,
        neighbour_count=counts,
        neighbour=neighbours + v,
        face_count=face_counts,
        face_vertex=corners + v,
        face_normal=normals,
        facet=facets,
        edge=edges,
        ahead=ahead,
        cluster=cluster,
        ball=ball,
    )
    data = (v, len(vertices), first["face_count"], len(face_counts))
    facet_rows = (first["facet"], len(facets), first["edge"], len(edges))
    return data, facet_rows, (first["ahead"], first["ball"])


def _arrays_of_hull(hull):
    """Arrays of a hull for ``Shapes``: vertices, faces, facets, edges and vertex clusters."""
    beyond = _beyond(np.asarray(hull.triangles, dtype=np.int64))
    vertices = np.array(hull.vertices, dtype=float)
    ahead, clusters = farthest_ahead(vertices), cluster(vertices)
    return *polyhedron(hull), *facets_and_edges(hull, beyond), ahead, *clusters


def farthest_ahead(vertices) -> np.ndarray:
    """Number of the farthest vertex along the middle direction of every cell of ``cell_of``."""
    middles = (2 * np.arange(SIDE) + 1) / SIDE - 1
    u, v = (x.reshape(-1) for x in np.meshgrid(middles, middles, indexing="ij"))
    faces = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            d = np.zeros((SIDE * SIDE, 3))
            d[:, axis], d[:, (axis + 1) % 3], d[:, (axis + 2) % 3] = sign, u, v
            faces.append(d)
    return np.argmax(np.concatenate(faces) @ vertices.T, axis=1)


def cluster(vertices) -> tuple[np.ndarray, np.ndarray]:
    """Order of points in which runs of ``BALL`` lie close together, and balls around the runs."""
    order, waiting, count = np.arange(len(vertices)), [(0, len(vertices))], tables.BALL
    while waiting:
        first, last = waiting.pop()
        if last - first > count:
            inside = order[first:last]
            axis = int(np.argmax(np.ptp(vertices[inside], axis=0)))
            half = max((last - first) // (2 * count), 1) * count
            order[first:last] = inside[np.argsort(vertices[inside, axis], kind="stable")]
            waiting += [(first, first + half), (first + half, last)]
    balls = []
    for first in range(0, len(vertices), count):
        points = vertices[order[first : first + count]]
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        radius = np.sqrt(np.max(np.sum((points - middle) ** 2, axis=1)))
        balls.append((*middle, radius * (1 + 1e-12) + 1e-15 * np.max(np.abs(points))))
    return order, np.array(balls)


def polyhedron(hull):
    """Vertices, vertex neighbours, and faces of a ``Hull``, coplanar triangles merged.

    Returns vertices (n, 3), numbers of neighbours (n,), neighbours, numbers of corners of the faces
    (m,), corners counter-clockwise from outside, and normals (m, 3).
    """
    triangles, n = np.asarray(hull.triangles, dtype=np.int64), len(hull.vertices)
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1).reshape(-1, 2)
    ways = np.unique(np.concatenate([ends @ [n, 1], ends @ [1, n]]))  # from, times n, plus to
    counts = np.bincount(ways // n, minlength=n)
    beyond = _beyond(triangles)
    turned = np.cross(hull.normals[:, None], hull.normals[beyond])
    flat = np.sum(turned**2, axis=2) < _FLAT**2
    flat &= (beyond >= 0) & (np.einsum("ik,ijk->ij", hull.normals, hull.normals[beyond]) > 0)
    group = np.arange(len(triangles))
    while True:  # the least number among all triangles of a face spreads over it
        least = np.minimum(group, np.min(np.where(flat, group[beyond], group[:, None]), axis=1))
        if np.array_equal(least, group):
            break
        group = least[least]  # and over as far as it has come already
    lone = np.flatnonzero(~np.any(flat, axis=1))
    corners, numbers, faces = triangles[lone].reshape(-1).tolist(), [3] * len(lone), lone.tolist()
    border = ~flat & np.any(flat, axis=1)[:, None]
    following: dict[int, dict[int, int]] = {}
    sides = ends.reshape(-1, 3, 2)[border]
    face = np.broadcast_to(group[:, None], border.shape)[border]
    for f, a, b in zip(face.tolist(), *sides.T.tolist(), strict=True):
        following.setdefault(f, {})[a] = b
    for f, after in following.items():
        start = at = next(iter(after))
        polygon = [at]
        while (at := after.get(at, start)) != start and len(polygon) <= len(after):
            polygon.append(at)
        corners += polygon
        numbers.append(len(polygon))
        faces.append(f)
    return (
        np.array(hull.vertices, dtype=float),
        counts,
        ways % n,
        np.array(numbers),
        np.array(corners),
        np.array(hull.normals)[faces],
    )


# --- Triangles in a tree -------------------------------------------------------------------------

_LEAF = 4  # triangles


def _mesh(mesh, pools):
    """Measures of a triangle mesh, whose triangles and tree of boxes go into the pools."""
    surface = read_triangles(mesh.path, mesh.scale)
    vertices, same = np.unique(np.array(surface.vertices), axis=0, return_inverse=True)
    triangles = same.reshape(-1)[np.array(surface.faces)]
    sides = vertices[triangles]
    area = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    length = np.sqrt(np.sum(area**2, axis=1))
    solid = length > 0
    triangles, normals = triangles[solid], area[solid] / length[solid, None]
    node, child, order = triangle_tree(vertices[triangles])
    triangles, normals = triangles[order], normals[order]
    v, t = pools.counts.get("vertex", 0), pools.counts.get("triangle", 0)
    beyond = _beyond(triangles)
    top = pools.counts.get("node", 0)
    child = np.where(child[:, :1] >= 0, child + top, child - [[t, 0]])
    pools.add(
        vertex=vertices,
        neighbour_count=np.zeros(len(vertices), dtype=np.int64),
        cluster=np.zeros(len(vertices), dtype=np.int64),
        node=node,
        child=child,
        triangle=triangles + v,
        triangle_next=np.where(beyond < 0, -1, beyond + t),
        triangle_normal=normals,
    )
    box, radius = _around(vertices)
    return _Measures(
        tables.TRIANGLES, (0.0, 0.0, 0.0), box, radius, (top, len(node), t, len(triangles))
    )


def triangle_tree(corners):
    """Bounding-volume tree of triangles (m, 3, 3), split at the median of the longest side.

    Returns boxes (k, 6), children (k, 2), of leaves ``-1 - first triangle`` and how many there are,
    and the order in which the triangles have to be, (m,).
    """
    low, high = corners.min(axis=1), corners.max(axis=1)
    middle = (low + high) / 2
    order = np.arange(len(corners))
    node, child, waiting = [], [], [(0, len(corners), -1, 0)]
    while waiting:
        first, last, above, side = waiting.pop()
        inside = order[first:last]
        k = len(node)
        node.append((*low[inside].min(axis=0), *high[inside].max(axis=0)))
        child.append([-1 - first, last - first])
        if above >= 0:
            child[above][side] = k
        if last - first > _LEAF:
            axis = int(np.argmax(np.ptp(middle[inside], axis=0)))
            half = (last - first) // 2
            order[first:last] = inside[np.argpartition(middle[inside, axis], half)]
            child[k] = [0, 0]
            waiting += [(first + half, last, k, 1), (first, first + half, k, 0)]
    return np.array(node), np.array(child, dtype=np.int64), order


def _beyond(triangles):
    """Neighbour of every triangle across its edges 0-1, 1-2 and 2-0, or -1: (m, 3)."""
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1).reshape(-1, 2)
    size = int(triangles.max(initial=0)) + 1
    there, back = ends[:, 0] * size + ends[:, 1], ends[:, 1] * size + ends[:, 0]
    order = np.argsort(there, kind="stable")
    at = np.minimum(np.searchsorted(there[order], back), len(order) - 1)
    found = np.where(there[order][at] == back, order[at] // 3, -1)
    return found.reshape(-1, 3)


def masks(shapes):
    """``contype`` and ``conaffinity`` of every shape: 0 without collision, all bits by default."""
    masks = [
        (0, 0)
        if not g.collision
        else (-1, -1)
        if g.surface is None
        else (g.surface.contype, g.surface.conaffinity)
        for g in shapes
    ]
    return np.array(masks, dtype=np.int64).reshape(-1, 2).T
