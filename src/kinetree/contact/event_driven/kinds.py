"""Pairs of features of polyhedra that touch: a corner on a face, or two edges that cross.

Arrays have one row for each pair, in coordinates of its bodies. ``at`` says where they are, smooth
functions of the positions; ``rates`` how points of contact and normals move.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.event_driven.vectors import across, cross, dot, turn, velocity_at

TURNED = 1e-7
"""[rad] by which a normal may miss those that a feature allows."""
PARALLEL = 1e-6
"""[rad] between edges that do not cross."""
FAR = 1.0
"""[m] stands for the gap of a slot that is not in use."""


class Followed(NamedTuple):
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


class Corners(NamedTuple):
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

    @staticmethod
    def row(shapes, bodies, key):
        """Fields of one corner-face feature of two shapes, identified by ``key``."""
        _, kind, i, j, sign = key
        ground, carrier = (0, 1) if kind == 0 else (1, 0)
        a, b = shapes[ground], shapes[carrier]
        order = [j, *(f for f in range(len(a.normal)) if f != j)]
        place = bodies[carrier], bodies[ground], b.corner[i], b.cone[i]
        return *place, a.normal[order], a.offset[order], float(sign), min(s.size for s in shapes)

    def at(self, R, r) -> Followed:
        """Gaps, points and normals of corner-face contacts for body poses ``R``, ``r``."""
        x = turn(R[..., self.body, :, :], self.corner) + r[..., self.body, :]
        up, gap, beyond = above(self, R, r, x)
        rays = np.einsum("...mij,mkj->...mki", R[..., self.body, :, :], self.cone)
        down = -np.einsum("...mki,...mi->...mk", rays, up).min(axis=-1, initial=1.0)
        return Followed(gap, beyond, self.size * (down - TURNED), x, self.sign[:, None] * up)

    def rates(self, R, r, v, found):
        """Rates of points and normals of corner-face contacts, each (..., m, 3)."""
        points = velocity_at(v[..., self.body, :], found.point)
        return points, cross(v[..., self.ground, :3], found.normal)


class Edges(NamedTuple):
    """Edges of two bodies that cross, in coordinates of their bodies; (m, 2, ...) for both."""

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
    radius: Any
    """Of rods; 0 for edges, (m, 2)."""
    sign: Any
    """1 where the normal is along the cross product of the edges, else -1, (m,)."""
    size: Any
    """Of the smaller shape, (m,)."""

    @staticmethod
    def row(shapes, bodies, key):
        """Fields of one edge-edge feature of two shapes, identified by ``key``."""
        names = ("start", "along", "length", "inward", "radius")
        both = list(zip(shapes, key[2:4], strict=True))
        fields = (np.array([getattr(s, name)[e] for s, e in both]) for name in names)
        return np.array(bodies), *fields, float(key[4]), min(s.size for s in shapes)

    def at(self, R, r) -> Followed:
        """Gaps, points and normals of edge-edge contacts for body poses ``R``, ``r``."""
        T = R[..., self.body, :, :]
        start, along = self._lines(R, r)
        inward = np.einsum("...msij,mskj->...mski", T, self.inward)
        u, between = along[..., 0, :], start[..., 1, :] - start[..., 0, :]
        product, square, s, t = crossing(u, along[..., 1, :], between)
        n = self.sign[:, None] * product / np.sqrt(square)[..., None]
        ends = np.stack([s, t], axis=-1)
        beyond = np.maximum(-ends, ends - self.length).max(axis=-1)
        outward = np.stack([n, -n], axis=-2)
        down = np.einsum("...mski,...msi->...msk", inward, outward).max(axis=(-1, -2), initial=-1.0)
        point = start[..., 0, :] + s[..., None] * u + self.radius[:, :1] * n
        gap = dot(n, between) - self.radius.sum(axis=-1)
        return Followed(gap, beyond, self.size * (down - TURNED), point, n)

    def _lines(self, R, r):
        """World start points and directions of the edges of both shapes."""
        T = R[..., self.body, :, :]
        return turn(T, self.start) + r[..., self.body, :], turn(T, self.along)

    def rates(self, R, r, v, found):
        """Rates of points and normals of edge-edge contacts, each (..., m, 3)."""
        n, own = found.normal, self.radius[:, :1]
        apart = found.gap[..., None] + self.radius.sum(axis=-1)[:, None]  # of the lines
        x = found.point - own * n  # on the first of them
        along = self._lines(R, r)[1]
        u, w = along[..., 0, :], along[..., 1, :]
        v_p, v_s = (v[..., b, :] for b in self.body.T)
        product = cross(u, w)
        square = np.maximum(dot(product, product), PARALLEL**2)[..., None]
        rate = cross(cross(v_p[..., :3], u), w) + cross(u, cross(v_s[..., :3], w))
        rate = across(self.sign[:, None] * rate / np.sqrt(square), n)
        parting = velocity_at(v_s, x + apart * n) - velocity_at(v_p, x)
        over = across(parting, n) - apart * rate
        sliding = dot(cross(over, w), product)[..., None] / square
        return velocity_at(v_p, x) + sliding * u + own * rate, rate


def above(features, R, r, x):
    """World face normals, heights of points above those faces, and distances beyond others."""
    G = R[..., features.ground, :, :]
    local = turn(np.swapaxes(G, -1, -2), x - r[..., features.ground, :])
    apart = np.einsum("mfi,...mi->...mf", features.normal, local) - features.offset
    up = turn(G, features.normal[:, 0])
    return up, apart[..., 0], apart[..., 1:].max(axis=-1, initial=-FAR)


def crossing(u, w, between):
    """Cross product of two lines, its square, and line parameters of their nearest points."""
    product = cross(u, w)
    square = np.maximum(dot(product, product), PARALLEL**2)
    return product, square, *(dot(cross(between, x), product) / square for x in (w, u))


def as_many(rays):
    """Ray lists of corners padded by repetition to one array, (m, k, 3)."""
    return np.array([np.resize(each, (max(map(len, rays)), 3)) for each in rays])


def pad(arrays, fill):
    """Arrays (n_i, ...) of different lengths stacked to (m, n, ...), padded with ``fill``."""
    most = max(map(len, arrays))
    ends = (np.full((most - len(a), *np.shape(a)[1:]), fill) for a in arrays)
    return np.array([np.concatenate([a, end]) for a, end in zip(arrays, ends, strict=True)])


RAGGED = {
    "cone": as_many,
    "normal": partial(pad, fill=0.0),
    "offset": partial(pad, fill=np.inf),
}
"""What joins fields of different lengths, by name."""


def join_rows(kind, rows):
    """One instance of a feature kind with the stacked fields of several features."""
    columns = zip(*(kind.row(*row) for row in rows), strict=True)
    fields = zip(kind._fields, columns, strict=True)
    return kind(**{name: RAGGED.get(name, np.array)(x) for name, x in fields})
