"""Pairs of convex shapes in poses that are hard for collision detection, with certificates.

A pose is made from a feature of each shape: a point of its surface and a normal there. With the
normals opposite and the points a gap apart along them, the slab between the shapes is that gap
wide, so that it is their distance whenever it is not negative.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from kinetree.contact.finding.shapes import hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere


class Solid:
    """A shape by its definition: corners, faces and edges of its core, and what is round."""

    def __init__(self, shape):
        self.shape, self.radius = shape, 0.0
        self.corners = self.faces = self.edges = None
        match shape:
            case Sphere(radius):
                self.radius, self.corners = radius, np.zeros((1, 3))
            case Capsule(radius, length):
                self.radius, self.corners = radius, np.array([[0, 0, 1.0], [0, 0, -1]]) * length / 2
                self.edges = np.array([[0, 1]])
            case Box(size):
                self.corners = np.array(list(product((1, -1), repeat=3))) * np.array(size) / 2
            case Mesh():
                self.corners = np.array(hull_of(shape).vertices)
        if isinstance(shape, (Box, Mesh)):
            self._find_faces()
        self.size = float(np.sqrt(np.max(np.sum(self.farthest(_AROUND) ** 2, axis=1))))

    def _find_faces(self):
        size = np.ptp(self.corners, axis=0)  # of thin shapes, too, faces come out
        hull = ConvexHull(self.corners / size)
        self.normals, self.faces = [], []
        sides = {}
        for k, t in enumerate(hull.simplices):
            p, q, r = self.corners[t]
            n = np.cross(q - p, r - p)
            n *= np.sign(n @ (hull.equations[k, :3] / size))
            self.normals.append(n / np.linalg.norm(n))
            self.faces.append(t)
            for a, b in ((0, 1), (1, 2), (2, 0)):
                sides.setdefault(tuple(sorted((t[a], t[b]))), []).append(k)
        self.normals = np.array(self.normals)
        self.edges = np.array(list(sides))
        self.beside = np.array(list(sides.values()))  # the faces of every edge

    @property
    def is_flat(self):
        return self.corners is not None

    def farthest(self, d):
        """Farthest points along directions (n, 3)."""
        match self.shape:
            case Ellipsoid(radii):
                p = np.square(radii) * d
                return p / np.sqrt(np.sum(p * d, axis=1))[:, None]
            case Cylinder(radius, length):
                across = d * [1, 1, 0]
                out = across / np.maximum(np.linalg.norm(across, axis=1), 1e-300)[:, None]
                return radius * out + np.where(d[:, 2:] < 0, -1, 1) * [0, 0, length / 2]
        unit = d / np.linalg.norm(d, axis=1)[:, None]
        return self.corners[np.argmax(d @ self.corners.T, axis=1)] + self.radius * unit

    def outside(self, p):
        """How far points (n, 3) are outside [m], about; not positive inside."""
        match self.shape:
            case Ellipsoid(radii):
                return (np.linalg.norm(p / radii, axis=1) - 1) * min(radii)
            case Cylinder(radius, length):
                return np.maximum(np.hypot(p[:, 0], p[:, 1]) - radius, np.abs(p[:, 2]) - length / 2)
            case Sphere() | Capsule():
                half = np.abs(self.corners[:, 2]).max()
                axis = np.clip(p[:, 2], -half, half)[:, None] * [0, 0, 1]
                return np.linalg.norm(p - axis, axis=1) - self.radius
            case Box(size):
                return np.max(np.abs(p) - np.array(size) / 2, axis=1)
        return np.max(
            p @ self.normals.T - np.sum(self.normals * self.corners[[f[0] for f in self.faces]], 1),
            axis=1,
        )

    def feature(self, rng):
        """A normal, a point of the surface there, and a direction along the surface, each (3,)."""
        match self.shape:
            case Sphere():
                n = unit(rng)
                return n, self.radius * n, unit(rng)
            case Ellipsoid():
                n = unit(rng)
                return n, self.farthest(n[None])[0], unit(rng)
            case Capsule(radius, length):
                n = unit(rng)
                if rng.random() < 0.5:
                    n = n * [1, 1, 0] / np.linalg.norm(n[:2])
                    return n, radius * n + [0, 0, rng.uniform(-1, 1) * length / 2], np.eye(3)[2]
                return n, self.farthest(n[None])[0], np.eye(3)[2]
            case Cylinder(radius, length):
                turn, kind = rng.uniform(0, 2 * np.pi), rng.integers(3)
                out, side = np.array([np.cos(turn), np.sin(turn), 0]), rng.choice([-1, 1])
                z, up = side * length / 2, np.array([0, 0, side])
                if kind == 0:
                    at = radius * np.sqrt(rng.choice([0, 1, rng.random()])) * out
                    return up, at + np.array([0, 0, z]), out
                if kind == 1:
                    return (
                        out,
                        radius * out + [0, 0, z * rng.choice([1, rng.random()])],
                        np.eye(3)[2],
                    )
                s = rng.uniform(0.01, 1.55)
                return np.cos(s) * out + np.sin(s) * up, radius * out + [0, 0, z], np.cross(up, out)
        return self._feature_of_polyhedron(rng)

    def _feature_of_polyhedron(self, rng):
        e = rng.integers(len(self.edges))
        f = self.beside[e]
        a, b = self.corners[self.edges[e]]
        along, kind = b - a, rng.integers(3)
        if kind == 0:
            n, corners = self.normals[f[0]], self.corners[self.faces[f[0]]]
            weight = rng.choice([rng.dirichlet(np.ones(3)), np.eye(3)[0], [0.5, 0.5, 0.0]])
            return n, weight @ corners, along
        if kind == 1:
            s = rng.uniform(0.001, 0.999)
            n = s * self.normals[f[0]] + (1 - s) * self.normals[f[1]]
            if np.linalg.norm(n) < 1e-9:
                n = self.normals[f[0]]
            return n / np.linalg.norm(n), a + rng.random() * along, along
        v = self.edges[e, 0]
        around = self.normals[[k for k, t in enumerate(self.faces) if v in t]]
        n = rng.dirichlet(np.ones(len(around))) @ around
        return n / np.linalg.norm(n), self.corners[v], along


def unit(rng):
    """A random direction, (3,)."""
    n = rng.normal(size=3)
    return n / np.linalg.norm(n)


_AROUND = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=3) if any(d)])


def rotation(rng):
    """Along the axes, or any."""
    if rng.random() < 0.3:
        R = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], size=3)[:, None]
        return R * np.sign(np.linalg.det(R))
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return R * np.sign(np.linalg.det(R))


def turned(axis, angle):
    """Rotation about a unit axis, (3, 3)."""
    K = np.cross(np.eye(3), axis)
    return np.eye(3) - np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


class Pose(NamedTuple):
    """Rotations (2, 3, 3) and origins (2, 3) of two shapes, and the distance if it is known."""

    R: np.ndarray
    o: np.ndarray
    gap: float


def hard_pose(first, second, rng):
    """Features on each other, touching, apart or overlapping; tilted a little in a third."""
    size = min(first.size, second.size)
    n, p, along = first.feature(rng)
    m, q, other = second.feature(rng)
    R = rotation(rng)
    n, p, along = R @ n, R @ p, R @ along
    # second: its normal against that of the first, turned about it anyhow or with edges parallel
    x = np.cross(n, along if rng.random() < 0.5 else unit(rng))
    y = np.cross(m, other if rng.random() < 0.5 else unit(rng))
    x, y = (v / np.linalg.norm(v) if np.linalg.norm(v) > 1e-12 else None for v in (x, y))
    if x is None or y is None:
        return hard_pose(first, second, rng)
    S = np.column_stack([-n, x, np.cross(-n, x)]) @ np.column_stack([m, y, np.cross(m, y)]).T
    kind = rng.integers(6)
    gap = size * 10.0 ** rng.uniform(-16, -0.5)
    gap = [0.0, gap, gap, -gap, -gap * rng.random(), -size * rng.random()][kind]
    if rng.random() < 0.3:
        S = turned(unit(rng), 10.0 ** rng.uniform(-16, -2)) @ S
        o = p - S @ q + gap * n
        return Pose(np.array([R, S]), np.array([np.zeros(3), o]), np.nan)
    if rng.random() < 0.05:
        return Pose(np.array([R, S]), np.zeros((2, 3)), np.nan)  # concentric
    o = p - S @ q + gap * n
    return Pose(np.array([R, S]), np.array([np.zeros(3), o]), gap if gap >= 0 else np.nan)


# --- Certificates --------------------------------------------------------------------------------


class Two:
    """Two ``Solid`` in many poses: rotations (n, 2, 3, 3) and origins (n, 2, 3)."""

    def __init__(self, solids, R, o):
        self.solids, self.R, self.o = solids, R, o
        self.size = sum(s.size for s in solids)

    def width(self, n, at=slice(None)):
        """Width of the slab between the shapes along n (m, 3), one for each pose of ``at``."""
        ends = []
        for k, sign in ((0, 1.0), (1, -1.0)):
            R = self.R[at, k]
            p = self.solids[k].farthest(np.einsum("nij,ni->nj", R, sign * n))
            ends.append(np.einsum("nij,nj->ni", R, p))
        between = ends[1] - ends[0] + (self.o[at, 1] - self.o[at, 0])
        return np.sum(n * between, axis=1), between

    def outside(self, points):
        """How far points (n, 2, 3), one of each shape, are outside."""
        local = np.einsum("nkij,nki->nkj", self.R, points - self.o)
        return np.maximum(*(s.outside(local[:, k]) for k, s in enumerate(self.solids)))

    def widest(self, at):
        """The widest slab of polyhedral cores along normals of faces and across edges.

        Minus the depth where they overlap, and else at most the distance.
        """
        R, o = self.R[at], self.o[at]
        (A, f, e), (B, g, h) = (_directions(s, R[k]) for k, s in enumerate(self.solids))
        over = np.cross(e[:, None], h[None]).reshape(-1, 3)
        length = np.linalg.norm(over, axis=1)
        over = over[length > 1e-9] / length[length > 1e-9, None]
        axes = np.concatenate([f, -g, over, -over])
        low = np.min(axes @ B.T, axis=1) - np.max(axes @ A.T, axis=1) + axes @ (o[1] - o[0])
        return float(np.max(low)) - sum(s.radius for s in self.solids)


def _directions(solid, R):
    """Corners, normals and edges of a core in the world."""
    corners = solid.corners @ R.T
    edges = np.zeros((0, 3))
    if solid.edges is not None:
        edges = solid.corners[solid.edges[:, 1]] - solid.corners[solid.edges[:, 0]]
        edges = edges / np.linalg.norm(edges, axis=1)[:, None]
    normals = solid.normals if solid.faces is not None else np.zeros((0, 3))
    return corners, normals @ R.T, edges @ R.T
