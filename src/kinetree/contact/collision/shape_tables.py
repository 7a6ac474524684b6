"""Tables of the shapes of a scene: sizes, hulls, height fields, triangles, and special pairs."""

from typing import NamedTuple

import numpy as np

from kinetree.contact.collision.tables import (
    ALL,
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FIELD,
    HULL,
    LEFT_OUT,
    LISTED,
    MAY_TOUCH,
    PLANE,
    SPHERE,
    TRIANGLES,
    WITH_BASE,
    Shapes,
    Special,
)
from kinetree.contact.finding.height_fields import spline_coefficients
from kinetree.contact.finding.pairs import (
    FRICTION,
    RESTITUTION,
    ROLLING,
    TORSION,
    chosen_pairs,
    masks,
    named_pairs,
    names_of,
    weld_parents,
    welded,
)
from kinetree.contact.finding.shapes import hull_of
from kinetree.errors import ModelError
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
    Surface,
)
from kinetree.model.triangles import read_triangles

_WORD = 2**32
_FLAT = 1e-7  # [rad] between triangles that are one face


class ShapeTables(NamedTuple):
    """The tables of a scene.

    Attributes:
        shapes: ``Shapes``.
        special: ``Special``.
        numbers: of the shapes in ``model.geometry``, (n,).
    """

    shapes: Shapes
    special: Special
    numbers: np.ndarray


def shape_tables(scene) -> ShapeTables:
    """``Shapes`` and ``Special`` of a ``Scene``; only a scene that lists its pairs has them all."""
    model, geometry = scene.model, scene.model.geometry
    if scene.rule not in (None, "base") or any(map(callable, scene.given.values())):
        at = {id(g): k for k, g in enumerate(geometry)}
        pairs = {_key(at[id(p.first)], at[id(p.second)]): k for k, p in enumerate(scene.pairs)}
        used = {k for pair in pairs for k in pair}
    else:
        pairs = None
        used = {k for k, g in enumerate(geometry) if g.collision}
        used |= {k for pair in chosen_pairs(model) for k in pair}
    numbers = np.array(sorted(used), dtype=np.int64)
    shapes = _shapes(model, numbers, scene.given)
    return ShapeTables(shapes, _special(scene, numbers, pairs), numbers)


def _key(i, j):
    return (i, j) if i < j else (j, i)


# --- Shapes --------------------------------------------------------------------------------------


class _Pools:
    """Rows that shapes refer to, each kept once for all shapes that are alike."""

    def __init__(self):
        self.known, self.rows, self.counts = {}, {}, {}

    def add(self, **arrays):
        """Append rows; the number of the first row of each."""
        first = {}
        for name, array in arrays.items():
            first[name] = self.counts.get(name, 0)
            self.counts[name] = first[name] + len(array)
            self.rows.setdefault(name, []).append(array)
        return first

    def array(self, name, dtype, *shape):
        rows = self.rows.get(name)
        return np.ascontiguousarray(
            np.concatenate(rows) if rows else np.zeros((0, *shape)), dtype=dtype
        )


def _shapes(model, numbers, given):
    geometry = [model.geometry[k] for k in numbers]
    n, pools = len(geometry), _Pools()
    measures = [_measured(g.shape, pools) for g in geometry]
    surfaces = [g.surface or Surface() for g in geometry]
    contype, conaffinity = masks(geometry) if n else np.zeros((2, 0), dtype=np.int64)
    weld = welded(model)
    parent = weld_parents(model, weld)
    body = np.array([g.body for g in geometry], dtype=np.int64)
    coefficients = np.array(
        [[s.friction, s.torsion, s.rolling, s.restitution] for s in surfaces], dtype=float
    ).reshape(n, 4)
    condim = np.array([g.surface.condim if g.surface else 0 for g in geometry], dtype=np.int64)
    for column, name in ((0, "friction"), (3, "restitution")):
        if given[name] is not None and not callable(given[name]):
            coefficients[:, column] = given[name]
            if name == "friction":  # the scene's, whatever the surfaces say
                condim[condim == 1] = 3
    boxes = np.array([m.box for m in measures], dtype=float).reshape(n, 6)
    endless = np.array([isinstance(g.shape, (Plane, HeightField)) for g in geometry], dtype=bool)
    radius = np.array([m.radius for m in measures], dtype=float)
    return Shapes(
        count=n,
        kind=np.array([m.kind for m in measures], dtype=np.int64),
        body=body,
        place=np.array([_placed(g.placement) for g in geometry], dtype=float).reshape(n, 12),
        size=np.array([m.size for m in measures], dtype=float).reshape(n, 3),
        data=np.array([m.data for m in measures], dtype=np.int64).reshape(n, 4),
        radius=radius,
        box=boxes,
        thin=np.where(endless, np.inf, boxes[:, 3:].min(axis=1) if n else 0.0),
        margin=np.array([s.margin for s in surfaces], dtype=float),
        contype=np.ascontiguousarray(contype),
        conaffinity=np.ascontiguousarray(conaffinity),
        priority=np.array([s.priority for s in surfaces], dtype=np.int64),
        condim=condim,
        friction=np.ascontiguousarray(coefficients[:, :3]),
        restitution=np.ascontiguousarray(coefficients[:, 3]),
        drift=np.array([s.velocity for s in surfaces], dtype=float).reshape(n, 3),
        weld=np.array([weld[b] for b in body], dtype=np.int64),
        weld_parent=np.array([parent[weld[b]] for b in body], dtype=np.int64),
        vertex=pools.array("vertex", float, 3),
        neighbour_first=_starts(pools, "neighbour_count"),
        neighbour=pools.array("neighbour", np.int64),
        face_first=_starts(pools, "face_count"),
        face_vertex=pools.array("face_vertex", np.int64),
        face_normal=pools.array("face_normal", float, 3),
        height=pools.array("height", float),
        node=pools.array("node", float, 6),
        child=pools.array("child", np.int64, 2),
        triangle=pools.array("triangle", np.int64, 3),
        triangle_next=pools.array("triangle_next", np.int64, 3),
        triangle_normal=pools.array("triangle_normal", float, 3),
        pose=np.zeros((n, 12)),
        low=np.zeros((n, 3)),
        high=np.zeros((n, 3)),
    )


def _starts(pools, name):
    return np.concatenate([[0], np.cumsum(pools.array(name, np.int64))]).astype(np.int64)


def _placed(placement):
    """Rows of shape to body: [E^T | r]."""
    E, r = np.asarray(placement.E, dtype=float), np.asarray(placement.r, dtype=float)
    return np.column_stack([E.T, r]).reshape(12)


class _Measures(NamedTuple):
    kind: int
    size: tuple
    box: tuple
    radius: float
    data: tuple = (0, 0, 0, 0)


def _measured(shape, pools):
    """Kind, sizes, box, radius of the ball around it, and where its rows are."""
    if isinstance(shape, (Mesh, HeightField)):
        if shape not in pools.known:
            add = _field if isinstance(shape, HeightField) else _hull if shape.convex else _mesh
            pools.known[shape] = add(shape, pools)
        return pools.known[shape]
    middle = (0.0, 0.0, 0.0)
    if isinstance(shape, Plane):
        return _Measures(PLANE, middle, (0.0,) * 6, np.inf)
    if isinstance(shape, Sphere):
        r = shape.radius
        return _Measures(SPHERE, (r, 0.0, 0.0), (*middle, r, r, r), r)
    if isinstance(shape, Ellipsoid):
        return _Measures(ELLIPSOID, shape.radii, (*middle, *shape.radii), max(shape.radii))
    if isinstance(shape, Box):
        half = tuple(x / 2 for x in shape.size)
        return _Measures(BOX, half, (*middle, *half), float(np.linalg.norm(half)))
    if not isinstance(shape, (Capsule, Cylinder)):
        raise ModelError(f"a shape that touches must be one of kinetree's, got {shape!r}")
    r, half = shape.radius, shape.length / 2
    if isinstance(shape, Capsule):
        return _Measures(CAPSULE, (r, half, 0.0), (*middle, r, r, half + r), half + r)
    return _Measures(CYLINDER, (r, half, 0.0), (*middle, r, r, half), float(np.hypot(r, half)))


def _around(points):
    """Box around points, and the radius of the ball about its centre."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    radius = float(np.sqrt(np.max(np.sum((points - middle) ** 2, axis=1))))
    return (*middle, *(high - low) / 2), radius


def _field(field, pools):
    c = spline_coefficients(field.heights)
    first = pools.add(height=c.reshape(-1))["height"]
    half = (field.size[0] / 2, field.size[1] / 2)
    low, high = float(c.min()), float(c.max())  # a B-spline is between its coefficients
    box = (0.0, 0.0, (low + high) / 2, *half, (high - low) / 2)
    return _Measures(FIELD, (*half, 0.0), box, np.inf, (first, *c.shape, 0))


def _hull(mesh, pools):
    vertices, counts, neighbours, face_counts, corners, normals = polyhedron(hull_of(mesh))
    v = pools.counts.get("vertex", 0)
    # Rows of neighbours belong to all vertices, also to those of triangle meshes in between.
    first = pools.add(
        vertex=vertices, neighbour_count=counts, neighbour=neighbours + v, face_count=face_counts,
        face_vertex=corners + v, face_normal=normals,
    )  # fmt: skip
    box, radius = _around(vertices)
    data = (v, len(vertices), first["face_count"], len(face_counts))
    return _Measures(HULL, (0.0, 0.0, 0.0), box, radius, data)


def polyhedron(hull):
    """Vertices, their neighbours, and faces of a ``Hull``, of which flat ones are joined.

    Returns vertices (n, 3), numbers of neighbours (n,), neighbours, numbers of corners of the faces
    (m,), corners counter-clockwise from outside, and normals (m, 3).
    """
    triangles, n = hull.triangles, len(hull.vertices)
    ends = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    owner = np.tile(np.arange(len(triangles)), 3)
    ways = np.unique(np.concatenate([ends, ends[:, ::-1]]), axis=0)
    counts = np.bincount(ways[:, 0], minlength=n)
    across = {(a, b): t for (a, b), t in zip(ends.tolist(), owner.tolist(), strict=True)}
    normals = hull.normals
    group = list(range(len(triangles)))

    def root(t):
        while group[t] != t:
            t = group[t]
        return t

    for (a, b), t in across.items():
        other = across.get((b, a))
        if other is not None and other > t and _is_flat(normals[t], normals[other]):
            group[root(other)] = root(t)
    faces: dict[int, dict[int, int]] = {}
    for (a, b), t in across.items():
        other = across.get((b, a))
        if other is None or root(other) != root(t):
            faces.setdefault(root(t), {})[a] = b
    corners, numbers, outward = [], [], []
    for t, following in faces.items():
        start = at = next(iter(following))
        polygon = [at]
        while (at := following.get(at, start)) != start and len(polygon) <= len(following):
            polygon.append(at)
        corners += polygon
        numbers.append(len(polygon))
        outward.append(normals[t])
    return (
        np.array(hull.vertices, dtype=float), counts, ways[:, 1], np.array(numbers),
        np.array(corners), np.array(outward),
    )  # fmt: skip


def _is_flat(a, b):
    return np.sum(np.cross(a, b) ** 2) < _FLAT**2 and a @ b > 0


# --- Triangles in a tree -------------------------------------------------------------------------

_LEAF = 4  # triangles


def _mesh(mesh, pools):
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
        vertex=vertices, neighbour_count=np.zeros(len(vertices), dtype=np.int64), node=node,
        child=child, triangle=triangles + v, triangle_next=np.where(beyond < 0, -1, beyond + t),
        triangle_normal=normals,
    )  # fmt: skip
    box, radius = _around(vertices)
    return _Measures(TRIANGLES, (0.0, 0.0, 0.0), box, radius, (top, len(node), t, len(triangles)))


def triangle_tree(corners):
    """A tree of boxes over triangles (m, 3, 3), split at the median of the longest side.

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
    """Across the edges 0-1, 1-2 and 2-0 of every triangle the next one, or -1, (m, 3)."""
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1).reshape(-1, 2)
    known = {(a, b): k for k, (a, b) in enumerate(ends.tolist())}
    found = [known.get((b, a), -3) // 3 for a, b in ends.tolist()]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


# --- Special pairs -------------------------------------------------------------------------------


def _special(scene, numbers, pairs):
    """The pairs that the rules do not cover, by numbers of shapes in the tables.

    ``pairs`` are all that may touch, where they are listed; else None.
    """
    model, rows = scene.model, {}
    if pairs is not None:
        for pair, k in pairs.items():
            own = scene.friction[k], scene.restitution[k]
            rows[pair] = _row(scene.pairs[k].surface or Surface(), *own)
    else:
        number = {id(g): k for k, g in enumerate(model.geometry)}
        ignored = named_pairs(model, scene.ignore) if scene.ignore else ()
        rows |= dict.fromkeys(_left_out(model), _AS_SHAPES)
        for pair, surface in chosen_pairs(model).items():
            own = [scene.given[name] for name in ("friction", "restitution")]
            rows[pair] = (MAY_TOUCH, *_AS_SHAPES[1:]) if surface is None else _row(surface, *own)
        for p in ignored:
            rows[_key(number[id(p.first)], number[id(p.second)])] = _AS_SHAPES
    number = {k: i for i, k in enumerate(numbers.tolist())}
    keyed = [
        (number[i] * _WORD + number[j], *row)
        for (i, j), row in rows.items()
        if i in number and j in number
    ]
    columns = list(zip(*sorted(keyed, key=lambda row: row[0]), strict=True)) or [()] * 8
    key, allowed, condim = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 6))
    friction = np.array(columns[2:5], dtype=float).T.reshape(len(key), 3)
    margin = np.array(columns[7], dtype=float)
    rule = LISTED if pairs is not None else WITH_BASE if scene.rule == "base" else ALL
    return Special(
        count=len(key),
        rule=rule,
        reach=float(np.nanmax(margin, initial=0.0)),
        key=key,
        allowed=allowed,
        friction=np.ascontiguousarray(friction),
        restitution=np.array(columns[5], dtype=float),
        condim=condim,
        margin=margin,
    )


_AS_SHAPES = (LEFT_OUT, np.nan, np.nan, np.nan, np.nan, 0, np.nan)


def _row(surface, friction, restitution):
    """Whether, friction (3), restitution, condim and margin of a pair with a surface of its own."""
    if friction is None:
        usual = FRICTION if surface.friction is None else surface.friction
        friction = 0.0 if surface.condim == 1 else usual
    if restitution is None:
        restitution = RESTITUTION if surface.restitution is None else surface.restitution
    torsion = TORSION if surface.torsion is None else surface.torsion
    rolling = ROLLING if surface.rolling is None else surface.rolling
    condim = max(surface.condim, 3)  # without friction it counts as 1 in any case
    return MAY_TOUCH, friction, torsion, rolling, restitution, condim, surface.margin


def _left_out(model):
    """Pairs that loops and the model's ``contact_pairs`` exclude, by number in the model."""
    by_weld: dict[int, list[int]] = {}
    weld = welded(model) if model.loops else []
    for k, g in enumerate(model.geometry if model.loops else ()):
        by_weld.setdefault(weld[g.body], []).append(k)
    groups = [(weld[loop.predecessor], weld[loop.successor]) for loop in model.loops]
    groups = [(by_weld.get(i, ()), by_weld.get(j, ())) for i, j in groups if i and j]
    apart = [p for p in model.contact_pairs if not p.touch]
    names = names_of(model) if apart else None
    groups += [(names.of_link(p.first), names.of_link(p.second)) for p in apart]
    return {_key(i, j) for ones, others in groups for i in ones for j in others if i != j}
