"""Contacts between polyhedra by feature: a corner on a face, or two edges that cross — RBDA §11.6.

The gap of two features is a smooth function of the positions, and so are its rates: what events are
located with. Features also have borders. ``outside`` is how far the point of contact is beyond
them [m], negative within: a corner slides over the border of a face, an edge past the end of an
edge, or bodies have turned such that others of their features meet. Forces do not tell of such a
loss of contact; it is a separate event.

There are too many pairs of features to follow all of them: those that a step can bring together get
one of the slots of their pair of shapes, the same as long as they are near.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.contacts import body_motions, contact_axes, contact_axes_rate
from kinetree.contact.finding.closed_forms import is_compiled
from kinetree.contact.finding.shapes import hull_of
from kinetree.contact.scene import Candidates
from kinetree.errors import ModelError
from kinetree.model.geometry import Box, Mesh, Plane
from kinetree.quantities import kinematics

SLOTS = 32
"""Features of a pair of shapes that are followed at a time."""
BORDER = 1e-13
"""Of the size of a shape: how far a contact may be beyond a border before it is lost."""

_TURNED = 1e-7  # [rad] by which a normal may miss those that a feature allows
_PARALLEL = 1e-6  # [rad] between edges that do not cross
_SAME = 1e-9  # [m] between contacts with the same normal that are one
_COPLANAR = 1e-7  # [rad] between triangles of the same face
_NEAR = 0.05  # of the size of a shape: what is followed however slowly it comes
_BESIDE = 1e-6  # [m] added to gaps beyond borders: they are open
_FAR = 1.0  # [m] stands for the gap of a slot that is not in use


# --- Polyhedra -----------------------------------------------------------------------------------


class Polyhedron(NamedTuple):
    """A convex polyhedron: corners, faces and edges."""

    corner: Any
    """(v, 3)."""
    cone: Any
    """Unit vectors along the edges of every corner, repeated where it has few, (v, k, 3)."""
    normal: Any
    """Outward unit normals of the faces, (f, 3)."""
    offset: Any
    """Distances of their planes from the origin, (f,)."""
    start: Any
    """One end of every edge, (e, 3)."""
    along: Any
    """Its unit direction, (e, 3)."""
    length: Any
    """(e,)."""
    inward: Any
    """Unit vectors at right angles to it into both its faces, (e, 2, 3)."""
    size: float
    """[m]."""

    def placed(self, R, r) -> "Polyhedron":
        """The same in other coordinates: turned by ``R`` (3, 3), then moved by ``r``."""
        normal = self.normal @ R.T
        return Polyhedron(
            self.corner @ R.T + r,
            self.cone @ R.T,
            normal,
            self.offset + normal @ r,
            self.start @ R.T + r,
            self.along @ R.T,
            self.length,
            self.inward @ R.T,
            self.size,
        )


def polyhedron(shape) -> Polyhedron:
    """That of a ``Box``, of the hull of a ``Mesh``, or a ``Plane``: a face without end."""
    if isinstance(shape, Plane):
        none = np.zeros((0, 3))
        return Polyhedron(
            none,
            np.zeros((0, 1, 3)),
            np.array([[0.0, 0, 1]]),
            np.zeros(1),
            none,
            none,
            np.zeros(0),
            np.zeros((0, 2, 3)),
            np.inf,
        )
    if isinstance(shape, Box):
        return _of_box(tuple(map(float, shape.size)))
    hull = hull_of(shape)
    return _of_triangles(hull.vertices, hull.triangles, hull.normals)


@lru_cache(maxsize=256)
def _of_box(size):
    signs = np.array([[i, j, k] for i in (1, -1) for j in (1, -1) for k in (1, -1)], dtype=float)
    corner, normal = signs * size / 2, np.concatenate([np.eye(3), -np.eye(3)])
    edges = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            start = np.zeros(3)
            start[[i, j, k]] = a * size[i] / 2, b * size[j] / 2, -size[k] / 2
            inward = np.array([-b * np.eye(3)[j], -a * np.eye(3)[i]])
            edges.append((start, np.eye(3)[k], size[k], inward))
    start, along, length, inward = (np.array(part) for part in zip(*edges, strict=True))
    cone = -signs[:, :, None] * np.eye(3)
    offset = np.tile(size, 2) / 2
    return Polyhedron(corner, cone, normal, offset, start, along, length, inward, max(size))


def _of_triangles(vertices, triangles, normals):
    """Faces are made of triangles in the same plane; edges are between faces."""
    size = float(np.ptp(vertices, axis=0).max())
    offset = np.sum(normals * vertices[triangles[:, 0]], axis=1)
    sides: dict = {}
    for k, t in enumerate(triangles.tolist()):
        for i, j in zip(t, (*t[1:], t[0]), strict=True):
            sides.setdefault((min(i, j), max(i, j)), []).append(k)
    edges, rays = [], [[] for _ in vertices]
    for (i, j), (a, b) in ((side, both) for side, both in sides.items() if len(both) == 2):
        across = _cross(normals[a], normals[b])
        if np.sqrt(across @ across) < _COPLANAR:
            continue
        way = vertices[j] - vertices[i]
        length = np.sqrt(way @ way)
        into = [-(n - m * (m @ n)) for m, n in ((normals[a], normals[b]), (normals[b], normals[a]))]
        inward = np.array([x / np.sqrt(x @ x) for x in into])
        edges.append((vertices[i], way / length, length, inward))
        rays[i].append(way / length)
        rays[j].append(-way / length)
    used = [k for k, r in enumerate(rays) if r]
    most = max(len(rays[k]) for k in used)
    cone = np.array([[rays[k][j % len(rays[k])] for j in range(most)] for k in used])
    planes = np.column_stack([normals, offset / size])
    _, kept = np.unique(np.round(planes / _COPLANAR / 10), axis=0, return_index=True)
    start, along, length, inward = (np.array(part) for part in zip(*edges, strict=True))
    faces = normals[kept], offset[kept]
    return Polyhedron(vertices[used], cone, *faces, start, along, length, inward, size)


# --- Pairs of features: arrays with one row for each ---------------------------------------------


class _Followed(NamedTuple):
    """Contacts at some positions, before they are put into slots; arrays (..., m) and so on."""

    gap: Any
    """Distance along the normal, whatever the borders [m]."""
    beyond: Any
    """How far the point is beyond borders [m]."""
    turned: Any
    """The same for the normal, by how much other features are nearer [m]."""
    point: Any
    """(..., m, 3)."""
    normal: Any
    """From the first shape to the second, (..., m, 3)."""
    along: Any
    """Unit vectors of the two edges, (..., m, 2, 3); zero for corners."""


def _dot(a, b):
    return np.einsum("...i,...i->...", a, b)


def _cross(a, b):
    """Cross products; of few vectors ten times as fast as NumPy's."""
    i, j = [1, 2, 0], [2, 0, 1]
    return a[..., i] * b[..., j] - a[..., j] * b[..., i]


def _turned(R, vectors):
    return np.einsum("...ij,...j->...i", R, vectors)


def _crossing(u, w, between):
    """Cross product of two lines and its square, and how far along each they are nearest."""
    across = _cross(u, w)
    square = np.maximum(_dot(across, across), _PARALLEL**2)
    return across, square, *(_dot(_cross(between, x), across) / square for x in (w, u))


class _Corners(NamedTuple):
    """Corners of one body on faces of another, all in coordinates of their bodies."""

    body: Any
    """That of the corner, (m,)."""
    ground: Any
    """That of the face, (m,)."""
    corner: Any
    """(m, 3)."""
    cone: Any
    """(m, k, 3)."""
    normal: Any
    """Of the face, and of all others of its shape, (m, f, 3)."""
    offset: Any
    """(m, f)."""
    sign: Any
    """1 where the face is that of the first shape, else -1, (m,)."""
    size: Any
    """Of the smaller shape, (m,)."""

    def at(self, R, r) -> _Followed:
        """Where bodies with axes ``R`` (..., b, 3, 3) at ``r`` (..., b, 3) touch."""
        x = _turned(R[..., self.body, :, :], self.corner) + r[..., self.body, :]
        G = R[..., self.ground, :, :]
        local = _turned(np.swapaxes(G, -1, -2), x - r[..., self.ground, :])
        apart = np.einsum("mfi,...mi->...mf", self.normal, local) - self.offset
        up = _turned(G, self.normal[:, 0])
        rays = np.einsum("...mij,mkj->...mki", R[..., self.body, :, :], self.cone)
        down = -np.einsum("...mki,...mi->...mk", rays, up).min(axis=-1, initial=1.0)
        beyond = apart[..., 1:].max(axis=-1, initial=-_FAR)
        normal, along = self.sign[:, None] * up, np.zeros((*beyond.shape, 2, 3))
        return _Followed(apart[..., 0], beyond, self.size * (down - _TURNED), x, normal, along)


class _Edges(NamedTuple):
    """Edges of two bodies that cross, all in coordinates of their bodies; (m, 2, ...) for both."""

    body: Any
    """(m, 2)."""
    start: Any
    """(m, 2, 3)."""
    along: Any
    """(m, 2, 3)."""
    length: Any
    """(m, 2)."""
    inward: Any
    """(m, 2, 2, 3)."""
    sign: Any
    """1 where the normal is along the cross product of the edges, else -1, (m,)."""
    size: Any
    """Of the smaller shape, (m,)."""

    def at(self, R, r) -> _Followed:
        """Where bodies with axes ``R`` (..., b, 3, 3) at ``r`` (..., b, 3) touch."""
        T = R[..., self.body, :, :]
        start, along = _turned(T, self.start) + r[..., self.body, :], _turned(T, self.along)
        inward = np.einsum("...msij,mskj->...mski", T, self.inward)
        u, between = along[..., 0, :], start[..., 1, :] - start[..., 0, :]
        across, square, s, t = _crossing(u, along[..., 1, :], between)
        n = self.sign[:, None] * across / np.sqrt(square)[..., None]
        ends = np.stack([s, t], axis=-1)
        beyond = np.maximum(-ends, ends - self.length).max(axis=-1)
        outward = np.stack([n, -n], axis=-2)
        down = np.einsum("...mski,...msi->...msk", inward, outward).max(axis=(-1, -2), initial=-1.0)
        point = start[..., 0, :] + s[..., None] * u
        return _Followed(_dot(n, between), beyond, self.size * (down - _TURNED), point, n, along)


def _padded(arrays, fill):
    """Arrays (n_i, ...) of different lengths in one, (m, n, ...), filled up."""
    most = max(map(len, arrays))
    ends = (np.full((most - len(a), *np.shape(a)[1:]), fill) for a in arrays)
    return np.array([np.concatenate([a, end]) for a, end in zip(arrays, ends, strict=True)])


# --- Slots ---------------------------------------------------------------------------------------


class Features:
    """The contacts of a scene for phases: closed forms, and features of polyhedra in slots.

    It stands in for the ``Scene``, with the same ``candidates`` and functions of positions. A gap
    is that of the features within their borders; beyond them it is how far beyond, if that is more.

    Args:
        scene: a ``Scene``.

    Attributes:
        candidates: all contacts that there may be: closed forms first, then slots.
        held: whether contacts are equations now, so that they may be at their borders, (n,).
        keys: features in the slots: numbers of the pair, the kind (a corner of the second shape on
            a face of the first, the reverse, two edges), and both features; None: not in use.
    """

    def __init__(self, scene):
        self.scene, self.pairs, self.pair_names = scene, scene.pairs, scene.pair_names
        self.numbers = [
            k for k, p in enumerate(scene.pairs) if not is_compiled(p.first.shape, p.second.shape)
        ]
        kinds = {k: [type(g.shape) for g in scene.pairs[k][:2]] for k in self.numbers}
        for k, both in kinds.items():
            convex = all(getattr(g.shape, "convex", True) for g in scene.pairs[k][:2])
            if not (convex and all(issubclass(kind, (Box, Mesh, Plane)) for kind in both)):
                names = " and ".join(kind.__name__ for kind in both)
                raise ModelError(
                    f"event-driven contact takes shapes with closed forms and polyhedra (Box, Mesh "
                    f"by its convex hull, Plane), and {scene.pair_names[k]!r} is {names}: leave "
                    f"the pair out, scene.closed_forms(), or take kinetree.contact.TimeStepping"
                )
        self.smooth = scene.closed_forms()
        of = self.smooth.candidates
        slot = np.repeat(np.array(self.numbers, dtype=int), SLOTS)
        bodies = np.array([[p.first.body, p.second.body] for p in scene.pairs], dtype=int)[slot]
        names = tuple(f"{scene.pair_names[k]}:{j}" for k in self.numbers for j in range(SLOTS))
        kept = np.array([k for k in range(len(scene.pairs)) if k not in kinds], dtype=int)
        self.candidates = Candidates(
            np.append(of.predecessor, bodies[:, 0]),
            np.append(of.successor, bodies[:, 1]),
            of.names + names,
            np.append(of.friction, scene.friction[slot]),
            np.append(of.restitution, scene.restitution[slot]),
            np.append(kept[of.pair], slot),
        )
        self.held = np.zeros(self.candidates.size, dtype=bool)
        self.keys: list = [None] * len(slot)
        self._shapes = {k: [_in_body(g) for g in scene.pairs[k][:2]] for k in self.numbers}
        self._gather()

    # --- which features are followed --------------------------------------------------------

    def follow(self, model, q, qd, h, tolerance, without=()):
        """Give slots to all features that can meet within ``h`` seconds, and take others away.

        Args:
            model: the mechanism, or its tree.
            q: joint positions, (nq,).
            qd: joint velocities, (nv,).
            h: [s].
            tolerance: gaps [m] up to which bodies count as in touch; those that are farther inside
                each other touch by other features.
            without: keys of features that have just come to their borders, on the way out.
        """
        R, r = self._poses(model, q)
        v = body_motions(model, q, qd)[0]
        first = self.candidates.size - len(self.keys)
        for i, k in enumerate(self.numbers):
            at = range(i * SLOTS, (i + 1) * SLOTS)
            held = {self.keys[j] for j in at if self.held[first + j]}
            first_shape, second_shape, reach = self._moved(k, R, r, v, h)
            near = _near(k, first_shape, second_shape, reach, tolerance)
            near = [feature for feature in near if feature[0] not in without]
            chosen = _distinct(near, held)[:SLOTS]
            keys = {feature[0] for feature in chosen}
            for j in at:
                if self.keys[j] not in keys:
                    self.release(first + j)
            new = [key for key in (f[0] for f in chosen) if key not in self.keys]
            free = [j for j in at if self.keys[j] is None]
            for j, key in zip(free, new, strict=False):
                self.keys[j] = key
        self._gather()

    def release(self, k):
        """Take the slot of contact ``k`` away from its feature, whose key is returned."""
        slot = k - (self.candidates.size - len(self.keys))
        key, self.keys[slot], self.held[k] = self.keys[slot], None, False
        return key

    def _moved(self, k, R, r, v, h):
        """Both shapes of a pair in the base, and how near features must be to count [m]."""
        shapes, bodies, reach = [], [g.body for g in self.scene.pairs[k][:2]], 0.0
        for shape, b in zip(self._shapes[k], bodies, strict=True):
            shapes.append(shape.placed(R[b], r[b]))
            linear = v[b, 3:] + _cross(v[b, :3], r[b])
            far = np.max(np.abs(shape.corner), initial=0.0) * 2
            reach += np.linalg.norm(linear) + np.linalg.norm(v[b, :3]) * far
        near = _NEAR * min(s.size for s in shapes)
        return *shapes, 2 * h * (reach + 10 * h) + near

    def _gather(self):
        """Arrays of the features in use: corners first, then edges."""
        offset = self.candidates.size - len(self.keys)
        used = [(key, j + offset) for j, key in enumerate(self.keys) if key is not None]
        used.sort(key=lambda feature: feature[0][1] == 2)
        corners = [self._feature(*key) for key, _ in used if key[1] < 2]
        edges = [self._feature(*key) for key, _ in used if key[1] == 2]
        self._corners = _joined_corners(corners) if corners else None
        self._edges = _Edges(*map(np.array, zip(*edges, strict=True))) if edges else None
        self._rows: np.ndarray = np.array([row for _, row in used], dtype=int)
        self._size = np.array([feature[-1] for feature in (*corners, *edges)], dtype=float)

    def _feature(self, k, kind, i, j, sign):
        shapes, bodies = self._shapes[k], [g.body for g in self.scene.pairs[k][:2]]
        size = min(s.size for s in shapes)
        if kind == 2:
            a, b = shapes
            both = ((a, i), (b, j))
            fields = (
                np.array([getattr(s, name)[e] for s, e in both])
                for name in ("start", "along", "length", "inward")
            )
            return (np.array(bodies), *fields, float(sign), size)
        ground, carrier = (0, 1) if kind == 0 else (1, 0)
        a, b = shapes[ground], shapes[carrier]
        order = [j, *(f for f in range(len(a.normal)) if f != j)]
        return (
            bodies[carrier],
            bodies[ground],
            b.corner[i],
            b.cone[i],
            a.normal[order],
            a.offset[order],
            float(sign),
            size,
        )

    # --- where they are ----------------------------------------------------------------------

    def _poses(self, model, q):
        """Axes (..., b, 3, 3) and origins (..., b, 3) of all bodies, the base first."""
        T = kinematics.poses(model, q)
        base = np.broadcast_to(np.eye(4), (*T.shape[:-3], 1, 4, 4))
        T = np.concatenate([base, T], axis=-3)
        return T[..., :3, :3], T[..., :3, 3]

    def _followed(self, model, q) -> _Followed:
        R, r = self._poses(model, q)
        parts = [part.at(R, r) for part in (self._corners, self._edges) if part is not None]
        if not parts:
            shape = R.shape[:-3]
            sizes = ((), (), (), (3,), (3,), (2, 3))
            return _Followed(*(np.zeros((*shape, 0, *size)) for size in sizes))
        joined = (
            np.concatenate(field, axis=axis)
            for field, axis in zip(zip(*parts, strict=True), (-1, -1, -1, -2, -2, -3), strict=True)
        )
        return _Followed(*joined)

    def _gaps(self, found):
        """Gaps within borders, and beyond them how far; of equations, smooth beyond them."""
        pair = self.candidates.pair[self._rows]
        margin = np.array([self.scene.pairs[k].margin for k in pair])
        gap, outside = found.gap - margin, self._outside(found)
        beside = (outside > 0) & ~self.held[self._rows]
        return np.where(beside, np.maximum(gap, outside) + _BESIDE, gap)

    def _outside(self, found):
        """How far features are beyond their borders, less what is allowed [m], (..., m).

        Contacts that are held stay what they are while bodies turn, until others take over.
        """
        held, limit = self.held[self._rows], BORDER * self._size
        turned = np.maximum(found.beyond, found.turned)
        return np.where(held, found.beyond - limit, turned - limit / 2)

    def _joined(self, function, own, model, q, *rest):
        """Values of closed forms with those of features, in the same order: gaps first."""
        lead = np.shape(q)[:-1]
        shapes = [x.shape[len(lead) + 1 :] for x in own]  # of one contact
        smooth = [np.zeros((*lead, 0, *shape)) for shape in shapes]
        if self.smooth.pairs:
            smooth = function(model, q, *rest)
        fills = [_FAR] + [0.0] * (len(own) - 1)
        parts = zip(smooth, shapes, own, fills, strict=True)
        return tuple(self._all(a, -1 - len(shape), b, fill) for a, shape, b, fill in parts)

    def _all(self, smooth, axis, values, fill):
        """Values of closed forms, then those of features among all slots; ``axis`` has them."""
        shape = list(values.shape)
        shape[axis] = len(self.keys)
        slots = np.full(shape, fill)
        at: list = [slice(None)] * len(shape)
        at[axis] = self._rows - (self.candidates.size - len(self.keys))
        slots[tuple(at)] = values
        return np.concatenate([smooth, slots], axis=axis)

    def outside(self, model, q):
        """How far contacts are beyond their borders [m], less what is allowed there, (..., n)."""
        smooth = np.full((*np.shape(q)[:-1], self.smooth.candidates.size), -_FAR)
        return self._all(smooth, -1, self._outside(self._followed(model, q)), -_FAR)

    def candidate_positions(self, model, q):
        """As ``Scene.candidate_positions``."""
        found = self._followed(model, q)
        own = self._gaps(found), found.point, contact_axes(found.normal)
        return self._joined(self.smooth.candidate_positions, own, model, q)

    def candidate_velocities(self, model, q, qd):
        """As ``Scene.candidate_velocities``."""
        found = self._followed(model, q)
        v, _ = self._between(model, q, qd)
        zeta = _turned(contact_axes(found.normal), _at(v, found.point))
        own = self._gaps(found), zeta
        return self._joined(self.smooth.candidate_velocities, own, model, q, qd)

    def candidate_terms(self, model, q, qd):
        """As ``Scene.candidate_terms``."""
        found = self._followed(model, q)
        J = kinematics.jacobians(model, q, frame="world")
        J = np.concatenate([np.zeros((*J.shape[:-3], 1, *J.shape[-2:])), J], axis=-3)
        between = J[..., self._ends[1], :, :] - J[..., self._ends[0], :, :]
        axes, x = contact_axes(found.normal), found.point
        rows = axes @ (
            between[..., 3:, :]
            + np.swapaxes(_cross(np.swapaxes(between[..., :3, :], -1, -2), x[..., None, :]), -1, -2)
        )
        v, a = self._between(model, q, qd)
        point_rate, normal_rate = self._rates(model, q, qd, found)
        there = _at(a, x) + _cross(v[..., :3], point_rate)
        turning = contact_axes_rate(found.normal, normal_rate)
        bias = _turned(axes, there) + _turned(turning, _at(v, x))
        own = self._gaps(found), rows, bias
        return self._joined(self.smooth.candidate_terms, own, model, q, qd)

    @property
    def _ends(self):
        """Bodies of the first and of the second shapes of the features in use."""
        of = self.candidates
        return of.predecessor[self._rows], of.successor[self._rows]

    def _between(self, model, q, qd):
        """Velocities and accelerations at ``qdd = 0`` between both sides, each (..., m, 6)."""
        p, s = self._ends
        return (m[..., s, :] - m[..., p, :] for m in body_motions(model, q, qd))

    def _rates(self, model, q, qd, found):
        """Rates of points and normals, each (..., m, 3)."""
        v, count = body_motions(model, q, qd)[0], 0
        points, normals = [np.zeros((*v.shape[:-2], 0, 3))], [np.zeros((*v.shape[:-2], 0, 3))]
        if self._corners is not None:
            count = len(self._corners.size)
            x, n = found.point[..., :count, :], found.normal[..., :count, :]
            points.append(_at(v[..., self._corners.body, :], x))
            normals.append(_cross(v[..., self._corners.ground, :3], n))
        if self._edges is not None:
            x, n, gap = (
                part[..., count:, :] for part in (found.point, found.normal, found.gap[..., None])
            )
            v_p, v_s = (v[..., b, :] for b in self._edges.body.T)
            u, w = (found.along[..., count:, k, :] for k in range(2))
            across = _cross(u, w)
            square = np.maximum(_dot(across, across), _PARALLEL**2)[..., None]
            rate = _cross(_cross(v_p[..., :3], u), w) + _cross(u, _cross(v_s[..., :3], w))
            rate = self._edges.sign[:, None] * rate / np.sqrt(square)
            rate = rate - n * _dot(n, rate)[..., None]
            apart = _at(v_s, x + gap * n) - _at(v_p, x)
            over = apart - n * _dot(n, apart)[..., None] - gap * rate
            along = _dot(_cross(over, w), across)[..., None] / square
            points.append(_at(v_p, x) + along * u)
            normals.append(rate)
        return np.concatenate(points, axis=-2), np.concatenate(normals, axis=-2)


def _at(motions, points):
    """Linear velocities of motions at points."""
    return motions[..., 3:] + _cross(motions[..., :3], points)


def _in_body(geometry):
    E, r = (np.asarray(x, dtype=float) for x in (geometry.placement.E, geometry.placement.r))
    return polyhedron(geometry.shape).placed(E.T, r)


def _joined_corners(corners):
    body, ground, corner, cone, normal, offset, sign, size = zip(*corners, strict=True)
    rays = [np.resize(c, (max(map(len, cone)), 3)) for c in cone]
    return _Corners(
        np.array(body),
        np.array(ground),
        np.array(corner),
        np.array(rays),
        _padded(normal, 0.0),
        _padded(offset, np.inf),
        np.array(sign),
        np.array(size),
    )


# --- Search for features that are near -----------------------------------------------------------


def _near(k, a, b, margin, tolerance):
    """Features of two polyhedra in the base that are within ``margin``, as a list.

    Each is a key, gap, how far it is outside, point and normal. Those deeper than ``tolerance``
    are not among them.
    """
    found, size = [], min(a.size, b.size)
    for kind, (ground, other) in enumerate(((a, b), (b, a))):
        apart = other.corner @ ground.normal.T - ground.offset
        for i, j in np.argwhere((apart >= -tolerance) & (apart <= margin)).tolist():
            beyond = np.max(np.delete(apart[i], j), initial=-_FAR)
            down = -np.min(other.cone[i] @ ground.normal[j])
            outside = max(beyond, size * (down - _TURNED))
            if outside <= margin:
                sign = 1 if kind == 0 else -1
                n = sign * ground.normal[j]
                found.append(((k, kind, i, j, sign), apart[i, j], outside, other.corner[i], n))
    return found + _near_edges(k, a, b, margin, tolerance)


def _near_edges(k, a, b, margin, tolerance):
    size = min(a.size, b.size)
    first, second = (np.flatnonzero(_within(x, y, margin)) for x, y in ((a, b), (b, a)))
    if not (len(first) and len(second)):
        return []
    between = b.start[second][None] - a.start[first][:, None]
    lines = a.along[first][:, None], b.along[second][None]
    across, square, s, t = _crossing(*lines, between)
    beyond = np.maximum(
        np.maximum(-s, s - a.length[first][:, None]), np.maximum(-t, t - b.length[second])
    )
    found = []
    for sign in (1, -1):
        n = sign * across / np.sqrt(square)[..., None]
        gap = _dot(n, between)
        down_a = np.einsum("eki,efi->efk", a.inward[first], n).max(-1)
        down_b = np.einsum("fki,efi->efk", b.inward[second], -n).max(-1)
        outside = np.maximum(beyond, size * (np.maximum(down_a, down_b) - _TURNED))
        good = (gap >= -tolerance) & (gap <= margin) & (outside <= margin)
        for i, j in np.argwhere(good & (square > _PARALLEL**2)).tolist():
            x = a.start[first[i]] + s[i, j] * a.along[first[i]]
            key = (k, 2, int(first[i]), int(second[j]), sign)
            found.append((key, gap[i, j], outside[i, j], x, n[i, j]))
    return found


def _within(a, b, margin):
    """Which edges of ``a`` come within ``margin`` of the box around ``b``, (e,)."""
    if not len(b.corner):
        return np.zeros(len(a.start), dtype=bool)
    ends = np.stack([a.start, a.start + a.along * a.length[:, None]])
    low, high = b.corner.min(axis=0) - margin, b.corner.max(axis=0) + margin
    return np.all((ends.min(axis=0) <= high) & (ends.max(axis=0) >= low), axis=1)


def _distinct(found, held):
    """Features without those that are at the place of others: held ones first, then the nearest."""

    def rank(feature):
        key, gap, outside, _, _ = feature
        return key not in held, outside > 0, max(gap, outside), key[1]

    kept: list = []
    for feature in sorted(found, key=rank):
        _, gap, outside, x, n = feature
        twins = (
            abs(gap - g) <= _SAME
            and n @ m > 1 - _SAME
            and np.linalg.norm((x - y) - n * (n @ (x - y))) <= _SAME
            for _, g, o, y, m in kept
            if max(o, outside) <= _SAME
        )
        if not any(twins):
            kept.append(feature)
    return kept
