"""Rigid bodies in NumPy: poses, momenta and energies of free bodies and of slides.

A free body has the coordinates ``(x, y, z, w, qx, qy, qz)`` and the velocities ``(angular,
linear)`` of its frame in its own axes; a slide one of each. From them follow, in the axes of the
world, the centre of mass, its velocity and the angular momentum about it, which free flight leaves
as they are. Nothing here is computed by kinetree.
"""

from typing import NamedTuple

import numpy as np


def skew(a):
    """``a ×`` as matrices, (..., 3, 3)."""
    a = np.asarray(a)
    z = np.zeros(a.shape[:-1])
    x, y, w = a[..., 0], a[..., 1], a[..., 2]
    return np.stack([z, -w, y, w, z, -x, -y, x, z], axis=-1).reshape(*a.shape[:-1], 3, 3)


def cross(a, b):
    """``a × b`` of rows; NumPy's own takes long for few of them."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def rotations(q):
    """Rotation matrices of unit quaternions, scalar first, (n, 3, 3)."""
    K = skew(q[:, 1:])
    return np.eye(3) + 2 * q[:, :1, None] * K + 2 * K @ K


def rotations_by(angle):
    """Rotation matrices of rotation vectors, (n, 3, 3)."""
    a = np.linalg.norm(angle, axis=1)[:, None, None]
    K, small = skew(angle), a < 1e-4
    s = np.where(small, 1.0, a)
    one = np.where(small, 1 - a**2 / 6 + a**4 / 120, np.sin(s) / s)
    two = np.where(small, 0.5 - a**2 / 24, (1 - np.cos(s)) / s**2)
    return np.eye(3) + one * K + two * K @ K


class State(NamedTuple):
    """Bodies at one time, in the axes of the world.

    Attributes:
        R: orientations, (n, 3, 3).
        x: centres of mass [m], (n, 3).
        v: their velocities [m/s], (n, 3).
        L: angular momenta about them [N m s], (n, 3).
    """

    R: np.ndarray
    x: np.ndarray
    v: np.ndarray
    L: np.ndarray


class Bodies:
    """The bodies of a scene that move, in the order of its things.

    Args:
        scene: what there is.
        world: its ``kt.World``, of which inertias and the order of coordinates are read.
    """

    def __init__(self, scene, world):
        self.things = [t for t in scene.things if t.mass]
        self.number = {t.name: k for k, t in enumerate(self.things)}
        names = list(world.model.body_names)
        inertias = [world.model.inertia[names.index(t.name)] for t in self.things]
        self.mass = np.array([float(I.mass) for I in inertias])
        self.centre = _array([I.center_of_mass for I in inertias], 3)
        self.inertia = _array([I.rotational_at_center for I in inertias], 3, 3)
        self.inverse = np.linalg.inv(self.inertia)
        self.q_at = [np.atleast_1d(world[t.name].q_indices) for t in self.things]
        self.v_at = [np.atleast_1d(world[t.name].v_indices) for t in self.things]
        self.slides = [k for k, t in enumerate(self.things) if t.slide is not None]
        self.frees = [k for k, t in enumerate(self.things) if t.slide is None]
        self.axis = {k: np.asarray(self.things[k].slide, dtype=float) for k in self.slides}
        self.free_q = np.array([self.q_at[k] for k in self.frees], dtype=int).reshape(-1, 7)
        self.free_v = np.array([self.v_at[k] for k in self.frees], dtype=int).reshape(-1, 6)
        self.gravity = np.array([0, 0, -scene.gravity])
        self.push = np.array([t.push for t in self.things])

    def poses(self, q) -> np.ndarray:
        """Poses of the frames of the bodies, (n, 4, 4)."""
        T = np.tile(np.eye(4), (len(self.things), 1, 1))
        if self.frees:
            x = q[self.free_q]
            T[self.frees, :3, :3], T[self.frees, :3, 3] = rotations(x[:, 3:]), x[:, :3]
        for k in self.slides:
            T[k] = self.things[k].pose
            T[k, :3, 3] += q[self.q_at[k][0]] * self.axis[k]
        return T

    def state(self, q, qd) -> State:
        """From coordinates and velocities."""
        T, n = self.poses(q), len(self.things)
        R, v, L = T[:, :3, :3], np.zeros((n, 3)), np.zeros((n, 3))
        arm = _turned(R, self.centre)
        if self.frees:
            V, at = qd[self.free_v], self.frees
            spin = _turned(R[at], V[:, :3])
            v[at] = _turned(R[at], V[:, 3:]) + cross(spin, arm[at])
            L[at] = _turned(R[at], np.einsum("nij,nj->ni", self.inertia[at], V[:, :3]))
        for k in self.slides:
            v[k] = qd[self.v_at[k][0]] * self.axis[k]
        return State(R, T[:, :3, 3] + arm, v, L)

    def spins(self, R, L) -> np.ndarray:
        """Angular velocities from angular momenta, (n, 3)."""
        own = np.einsum("nji,nj->ni", R, L)
        return _turned(R, np.einsum("nij,nj->ni", self.inverse, own))

    def flown(self, s: State, time: float) -> State:
        """After a time without forces: momenta stay.

        Bodies turn about the mean ``f`` of their spins before and after, in their own axes: ``I (f
        - w) + tan(a/2) / a f × I f t = 0`` with the angle ``a = |f| t``, so that energy stays.
        """
        w = np.einsum("nij,njk,nk->ni", self.inverse, s.R.transpose(0, 2, 1), s.L)
        phi = time * w
        for _ in range(30):
            a = np.linalg.norm(phi, axis=1)[:, None]
            k = np.where(a < 1e-4, 0.5 + a**2 / 24, np.tan(a / 2) / np.where(a == 0, 1, a))
            turning = cross(phi, np.einsum("nij,nj->ni", self.inertia, phi))
            last, phi = phi, time * w - k * np.einsum("nij,nj->ni", self.inverse, turning)
            if np.abs(phi - last).max() < 1e-16:
                break
        return s._replace(R=s.R @ rotations_by(phi), x=s.x + time * s.v)

    def energy(self, s: State) -> float:
        """Kinetic and potential [J], without that of pushes."""
        return self.kinetic(s) - float(self.mass @ (s.x @ self.gravity))

    def kinetic(self, s: State) -> float:
        """Kinetic energy [J]."""
        moving = self.mass @ np.einsum("ni,ni->n", s.v, s.v)
        return float(moving + np.einsum("ni,ni->", s.L, self.spins(s.R, s.L))) / 2

    def work(self, s: State, after: State) -> float:
        """Work of the pushes between two states [J]."""
        return float(sum(self.push[k] * (after.x[k] - s.x[k]) @ self.axis[k] for k in self.slides))

    def pushed(self, s: State, impulse, moment, h) -> State:
        """State after impulses, and their moments about centres of mass, with those of a step."""
        v = s.v + h * self.gravity + impulse / self.mass[:, None]
        for k in self.slides:
            a = self.axis[k]
            v[k] = s.v[k] + a * ((v[k] - s.v[k]) @ a + h * self.push[k] / self.mass[k])
        L = s.L + moment
        L[self.slides] = 0.0
        return s._replace(v=v, L=L)

    def difference(self, a: State, b: State) -> float:
        """Largest difference of velocities [m/s], of angular ones times the radius of gyration."""
        radius = np.sqrt(np.linalg.eigvalsh(self.inertia)[:, -1] / self.mass)
        turned = radius * np.linalg.norm(self.spins(a.R, a.L - b.L), axis=1)
        return float(np.maximum(np.linalg.norm(a.v - b.v, axis=1), turned).max(initial=0.0))


def _turned(R, x):
    return np.einsum("nij,nj->ni", R, x)


def _array(rows, *shape):
    return np.array([np.asarray(x, dtype=float) for x in rows]).reshape(-1, *shape)
