"""Poses and velocities of the bodies over time, and of a scene and its camera at one instant."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.kinematics import base_velocities
from kinetree.functional.kernel import kernel
from kinetree.quantities import kinematics
from kinetree.rendering.surfaces import cone, rod


class Places(NamedTuple):
    """Places of all bodies, the base first."""

    positions: np.ndarray
    """Of their frames [m], (T, NB + 1, 3)."""
    rotations: np.ndarray
    """Matrices whose columns are their axes, (T, NB + 1, 3, 3)."""

    def points(self, local):
        """Body-fixed points (NB + 1, 3) in base coordinates, (T, NB + 1, 3)."""
        return np.einsum("tbij,bj->tbi", self.rotations, local) + self.positions


def places(model, q) -> Places:
    """``Places``: poses of all bodies in configurations ``q``, (T, nq)."""
    q = np.asarray(q, dtype=float)
    shape = (len(q), model.body_count + 1)
    positions, rotations = np.zeros((*shape, 3)), np.broadcast_to(np.eye(3), (*shape, 3, 3)).copy()
    if model.body_count:
        pose = np.asarray(kinematics.poses(model, q))
        positions[:, 1:], rotations[:, 1:] = pose[..., :3, 3], pose[..., :3, :3]
    return Places(positions, rotations)


def velocities(model, q, qd) -> np.ndarray:
    """Spatial velocities of all bodies about the base's origin, (T, NB + 1, 6)."""
    found = np.zeros((len(q), model.body_count + 1, 6))
    if model.body_count:
        found[:, 1:] = _velocities(model, q, qd)
    return found


@kernel
def _velocities(model, q, qd):
    """Kernel of all bodies' velocities in base coordinates."""
    return np.array([v.to_array() for v in base_velocities(model, q, qd)[1][1:]])


def along(directions) -> np.ndarray:
    """Rotation matrices (..., 3, 3) whose third columns are unit ``directions``."""
    z = np.asarray(directions, dtype=float)
    other = np.eye(3)[np.argmin(np.abs(z), axis=-1)]
    x = np.cross(other, z)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


# --- A scene at one instant ----------------------------------------------------------------------


def at_time(scene, t):
    """Index of the state before ``t`` [s], and the fraction to the next one, 0 to 1."""
    times = scene.times
    k = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, max(len(times) - 2, 0)))
    if len(times) < 2 or times[k + 1] <= times[k]:
        return k, 0.0
    return k, float(np.clip((t - times[k]) / (times[k + 1] - times[k]), 0.0, 1.0))


def between(scene, t):
    """Positions (N, 3) and quaternions (N, 4) of the nodes at time ``t`` [s]."""
    k, s = at_time(scene, t)
    j = min(k + 1, len(scene.times) - 1)
    p = (1 - s) * scene.positions[k] + s * scene.positions[j]
    a, b = scene.quaternions[k], scene.quaternions[j]
    b = np.where(np.sum(a * b, axis=1, keepdims=True) < 0, -b, b)
    turn = (1 - s) * a + s * b
    return p, turn / np.linalg.norm(turn, axis=1, keepdims=True)


def rotations(quaternions):
    """Rotation matrices (..., 3, 3) of quaternions (w, x, y, z)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternions), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


@lru_cache(maxsize=1)
def shaft_and_head():
    """Surfaces of a unit rod along z and a unit cone above the origin."""
    return rod(1.0, 0.0, 1.0, 12), cone(1.0, 0.0, 1.0, 16)


def arrow_poses(arrows, k, size) -> np.ndarray:
    """Poses (2 K, 3, 4) that stretch shafts and heads to arrows; NaN if too short.

    Args:
        arrows: of one kind.
        k: number of the state.
        size: of the scene [m].
    """
    thick = 0.007 * size
    origins, vectors = arrows.origins[k], arrows.vectors[k]
    length = np.linalg.norm(vectors, axis=-1)
    long = length > 0.01 * size
    length = np.where(long, length, 1.0)
    R = along(np.where(long[:, None], vectors / length[:, None], [0.0, 0.0, 1.0]))
    tip = np.minimum(5 * thick, 0.5 * length)
    poses = np.full((len(length), 2, 3, 4), np.nan)
    sides = np.full_like(length, thick)
    poses[:, 0, :, :3] = R * np.stack([sides, sides, length - tip], axis=1)[:, None]
    poses[:, 1, :, :3] = R * np.stack([2.4 * sides, 2.4 * sides, tip], axis=1)[:, None]
    poses[:, 0, :, 3] = np.where(long[:, None], origins, np.nan)
    poses[:, 1, :, 3] = np.where(
        long[:, None], origins + (length - tip)[:, None] * R[:, :, 2], np.nan
    )
    return poses.reshape(-1, 3, 4)


_ANGLE = np.radians(35.0)
_FILLED, _WIDTH = 0.82, 1.3  # of the picture; its width over its height


@dataclass(frozen=True, eq=False)
class PointOfView:
    """A point of view."""

    position: np.ndarray
    """Of the eye [m], (3,)."""
    target: np.ndarray
    """What is in the middle [m], (3,)."""
    up: np.ndarray
    """Upwards in the picture, (3,)."""
    angle: float = _ANGLE
    """Of view, from bottom to top [rad]."""
    aspect: float = 1.0
    """Width over height of the narrowest picture that has everything in view; one that is narrower
    is seen under a larger angle."""

    def axes(self):
        """Camera axes as rows: right, up, towards the eye."""
        back = self.position - self.target
        back = back / np.linalg.norm(back)
        right = np.cross(self.up, back)
        right = right / np.linalg.norm(right)
        return np.array([right, np.cross(back, right), back])

    def shift(self, shift) -> "PointOfView":
        """Copy of the camera moved by a vector."""
        return replace(self, position=self.position + shift, target=self.target + shift)

    def half_height(self, aspect) -> float:
        """Half the picture's height at unit distance, for an aspect ratio."""
        return np.tan(self.angle / 2) * max(1.0, self.aspect / aspect)


def framing(scene, direction=None, zoom=1.0) -> PointOfView:
    """``PointOfView`` that has the whole mechanism in view at the scene's start.

    Args:
        scene: what to look at.
        direction: from the mechanism to the eye, (3,); by default from the front, right and above,
            and for a mechanism in a plane more from the front.
        zoom: larger than one to come closer.
    """
    low, high = scene.box
    up = np.asarray(scene.up, dtype=float)
    if direction is None:
        direction = _view_direction(up, high - low)
    direction = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    if abs(direction @ up) > 0.999:
        up = np.array([0.0, 1.0, 0.0]) if abs(up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
    middle = (low + high) / 2
    corners = np.array([[scene.box[k, i] for i, k in enumerate(c)] for c in np.ndindex(2, 2, 2)])
    across = PointOfView(middle + direction, middle, up).axes() @ (corners - middle).T
    part = _FILLED * np.tan(_ANGLE / 2)
    distance = np.max(across[2] + np.maximum(np.abs(across[0]) / _WIDTH, np.abs(across[1])) / part)
    distance = max(distance, 1e-3)
    aspect = float(np.max(np.abs(across[0]) / (distance - across[2])) / part)
    return PointOfView(middle + distance / zoom * direction, middle, up, aspect=aspect)


def _front(up):
    """Level direction from which mechanisms are viewed, a unit vector."""
    front = np.array([0.0, -1.0, 0.0]) if abs(up[1]) < 0.7 else np.array([0.0, 0.0, 1.0])
    front = front - (front @ up) * up
    return front / np.linalg.norm(front)


def across(up) -> np.ndarray:
    """Level direction to the right as seen from the front."""
    return np.cross(up, _front(np.asarray(up, dtype=float)))


def _view_direction(up, extent):
    """View direction in which a mechanism of this extent is seen best."""
    front, side = _front(up), across(up)
    deep, wide = abs(extent @ np.abs(front)), abs(extent @ np.abs(side))
    if deep < 0.4 * wide:
        return front + 0.35 * side + 0.25 * up
    if wide < 0.4 * deep:
        return side + 0.35 * front + 0.25 * up
    return front + 0.75 * side + 0.5 * up
