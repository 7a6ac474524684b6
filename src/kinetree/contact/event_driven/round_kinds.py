"""Pairs of features of a cylinder and a polyhedron: rims on faces, corners and edges on the side.

As in ``kinds``; an edge on the side is one of ``Edges``, with the axis as a rod. The normal ``N``
in formulas is that from the cylinder to the polyhedron.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.event_driven.kinds import TURNED, Followed, above
from kinetree.contact.event_driven.polyhedra import STANDING
from kinetree.contact.event_driven.vectors import across, cross, dot, turn, unit, velocity_at

UPRIGHT = 1e-3
"""Sine of the tilt below which a rim has no lowest point: the cylinder stands on corners."""


def _of_barrel(shapes, bodies, kind):
    """Cylinder and other shape of a pair, their bodies, the sign of their order, and size."""
    c, o = (1, 0) if kind % 2 else (0, 1)
    size = min(s.size for s in shapes)
    return shapes[c].barrel, shapes[o], bodies[c], bodies[o], 1.0 if c == 0 else -1.0, size


class Rims(NamedTuple):
    """Lowest points of the rims of cylinders on faces."""

    body: Any
    """Of the cylinder, (m,)."""
    ground: Any
    """Of the face, (m,)."""
    center: Any
    """Of the rim, (m, 3)."""
    axis: Any
    """Out of the cylinder at that end, (m, 3)."""
    radius: Any
    """(m,)."""
    normal: Any
    """Of the face, and of all others of its shape, (m, f, 3)."""
    offset: Any
    """(m, f)."""
    sign: Any
    """1 where the cylinder is the first shape, else -1, (m,)."""
    size: Any
    """Of the smaller shape, (m,)."""

    @staticmethod
    def row(shapes, bodies, key):
        """Fields of one feature of a cylinder's rim and a face, identified by ``key``."""
        _, kind, end, j, _ = key
        barrel, other, body, ground, sign, size = _of_barrel(shapes, bodies, kind)
        axis = (1 - 2 * end) * barrel.axis
        order = [j, *(f for f in range(len(other.normal)) if f != j)]
        rim = barrel.center + barrel.half * axis, axis, barrel.radius
        return body, ground, *rim, other.normal[order], other.offset[order], sign, size

    def at(self, R, r) -> Followed:
        """Gaps, points and normals of rim-face contacts for body poses ``R``, ``r``."""
        T = R[..., self.body, :, :]
        center, axis = turn(T, self.center) + r[..., self.body, :], turn(T, self.axis)
        up = turn(R[..., self.ground, :, :], self.normal[:, 0])
        aside, lean = unit(across(up, axis))
        x = center - self.radius[:, None] * aside
        _, gap, beyond = above(self, R, r, x)
        wrong = np.maximum(dot(axis, up) - TURNED, UPRIGHT - lean[..., 0])
        return Followed(gap, beyond, self.size * wrong, x, -self.sign[:, None] * up)

    def rates(self, R, r, v, found):
        """Rates of points and normals of rim-face contacts, each (..., m, 3)."""
        T, own = R[..., self.body, :, :], v[..., self.body, :]
        center, axis = turn(T, self.center) + r[..., self.body, :], turn(T, self.axis)
        up = -self.sign[:, None] * found.normal
        up_rate, axis_rate = cross(v[..., self.ground, :3], up), cross(own[..., :3], axis)
        aside, lean = unit(across(up, axis))
        rate = across(up_rate, axis) - axis_rate * dot(up, axis)[..., None]
        rate = across(rate - axis * dot(up, axis_rate)[..., None], aside) / lean
        point = velocity_at(own, center) - self.radius[:, None] * rate
        return point, -self.sign[:, None] * up_rate


class SidePoints(NamedTuple):
    """Corners on the sides of cylinders."""

    body: Any
    """Of the cylinder, (m,)."""
    other: Any
    """Of the corner, (m,)."""
    center: Any
    """(m, 3)."""
    axis: Any
    """(m, 3)."""
    radius: Any
    """(m,)."""
    half: Any
    """(m,)."""
    corner: Any
    """(m, 3)."""
    cone: Any
    """(m, k, 3)."""
    sign: Any
    """1 where the cylinder is the first shape, else -1, (m,)."""
    size: Any
    """Of the smaller shape, (m,)."""

    @staticmethod
    def row(shapes, bodies, key):
        """Fields of one feature of a cylinder's side and a corner, identified by ``key``."""
        barrel, other, body, ground, sign, size = _of_barrel(shapes, bodies, key[1])
        corner = other.corner[key[2]], other.cone[key[2]]
        return body, ground, *barrel, *corner, sign, size

    def _place(self, R, r):
        """World centres and axes of cylinders, and world corners of the other shapes."""
        T, O = R[..., self.body, :, :], R[..., self.other, :, :]
        center, axis = turn(T, self.center) + r[..., self.body, :], turn(T, self.axis)
        return center, axis, turn(O, self.corner) + r[..., self.other, :]

    def at(self, R, r) -> Followed:
        """Gaps, points and normals of side-corner contacts for body poses ``R``, ``r``."""
        center, axis, x = self._place(R, r)
        N, distance = unit(across(x - center, axis))
        rays = np.einsum("...mij,mkj->...mki", R[..., self.other, :, :], self.cone)
        down = -np.einsum("...mki,...mi->...mk", rays, N).min(axis=-1, initial=1.0)
        beyond = np.abs(dot(x - center, axis)) - self.half
        gap = distance[..., 0] - self.radius
        return Followed(gap, beyond, self.size * (down - TURNED), x, self.sign[:, None] * N)

    def rates(self, R, r, v, found):
        """Rates of points and normals of side-corner contacts, each (..., m, 3)."""
        center, axis, x = self._place(R, r)
        own = v[..., self.body, :]
        moving, axis_rate = velocity_at(v[..., self.other, :], x), cross(own[..., :3], axis)
        arm, parting = x - center, moving - velocity_at(own, center)
        N, distance = unit(across(arm, axis))
        rate = across(parting, axis) - axis_rate * dot(arm, axis)[..., None]
        rate = across(rate - axis * dot(arm, axis_rate)[..., None], N) / distance
        return moving, self.sign[:, None] * rate


class RimEdges(NamedTuple):
    """Edges that cross the rims of cylinders: where they pass through the plane of the end.

    Their distance from the rim, in that plane, is zero where they touch; times the cosine between
    it and the normal it is the gap, with the right rate there. Edges that are parallel to the
    plane, within ``STANDING``, cross the edges of the polygon instead.
    """

    body: Any
    """Of the cylinder, (m,)."""
    other: Any
    """Of the edge, (m,)."""
    center: Any
    """Of the rim, (m, 3)."""
    axis: Any
    """Out of the cylinder at that end, (m, 3)."""
    radius: Any
    """(m,)."""
    start: Any
    """Of the edge, (m, 3)."""
    along: Any
    """(m, 3)."""
    length: Any
    """(m,)."""
    inward: Any
    """(m, 2, 3)."""
    sign: Any
    """1 where the cylinder is the first shape, else -1, (m,)."""
    size: Any
    """Of the smaller shape, (m,)."""

    @staticmethod
    def row(shapes, bodies, key):
        """Fields of one feature of a cylinder's rim and an edge, identified by ``key``."""
        _, kind, edge, end, _ = key
        barrel, other, body, ground, sign, size = _of_barrel(shapes, bodies, kind)
        axis = (1 - 2 * end) * barrel.axis
        rim = barrel.center + barrel.half * axis, axis, barrel.radius
        names = ("start", "along", "length", "inward")
        return body, ground, *rim, *(getattr(other, name)[edge] for name in names), sign, size

    def _place(self, R, r):
        """World rims and edges, and where the edges intersect the planes of the rims.

        With the cosine between edge and axis, at least ``STANDING``, and the way along the edge.
        """
        T, O = R[..., self.body, :, :], R[..., self.other, :, :]
        center, axis = turn(T, self.center) + r[..., self.body, :], turn(T, self.axis)
        start, u = turn(O, self.start) + r[..., self.other, :], turn(O, self.along)
        cosine = dot(u, axis)
        cosine = np.where(np.abs(cosine) < STANDING, np.copysign(STANDING, cosine), cosine)
        t = dot(center - start, axis) / cosine
        return center, axis, u, cosine, t, start + t[..., None] * u

    def _normal(self, axis, out, u):
        """Unit normals to edge and rim tangent, away from the cylinder, and their lengths."""
        n, length = unit(cross(u, cross(axis, out)))
        return n * np.where(dot(n, out) < 0, -1.0, 1.0)[..., None], length

    def at(self, R, r) -> Followed:
        """Gaps, points and normals of rim-edge contacts for body poses ``R``, ``r``."""
        center, axis, u, _, t, x = self._place(R, r)
        out, distance = unit(x - center)
        N, _ = self._normal(axis, out, u)
        inward = np.einsum("...mij,mkj->...mki", R[..., self.other, :, :], self.inward)
        down = -np.einsum("...mki,...mi->...mk", inward, N).min(axis=-1)
        wrong = np.maximum(
            np.maximum(down, -dot(N, axis)) - TURNED, STANDING - np.abs(dot(u, axis))
        )
        beyond = np.maximum(-t, t - self.length)
        gap = (distance[..., 0] - self.radius) * dot(N, out)
        return Followed(gap, beyond, self.size * wrong, x, self.sign[:, None] * N)

    def rates(self, R, r, v, found):
        """Rates of points and normals of rim-edge contacts, each (..., m, 3)."""
        center, axis, u, cosine, _, x = self._place(R, r)
        own, theirs = v[..., self.body, :], v[..., self.other, :]
        axis_rate, u_rate = cross(own[..., :3], axis), cross(theirs[..., :3], u)
        moving, middle = velocity_at(theirs, x), velocity_at(own, center)
        sliding = -(dot(moving - middle, axis) + dot(x - center, axis_rate)) / cosine
        point = moving + sliding[..., None] * u
        out, distance = unit(x - center)
        out_rate = across(point - middle, out) / distance
        N, length = self._normal(axis, out, u)
        tangent, facing = cross(axis, out), np.sign(dot(cross(u, cross(axis, out)), N))[..., None]
        tangent_rate = cross(axis_rate, out) + cross(axis, out_rate)
        rate = facing * (cross(u_rate, tangent) + cross(u, tangent_rate)) / length
        return point, self.sign[:, None] * across(rate, N)
