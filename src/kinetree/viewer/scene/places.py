"""Where bodies are and how fast they move, for many states at once."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.kinematics import base_velocities
from kinetree.functional.kernel import kernel
from kinetree.quantities import kinematics

__all__ = ["Places", "along", "places", "quaternions", "velocities"]


class Places(NamedTuple):
    """Of all bodies, the base first.

    Attributes:
        positions: of their frames [m], (T, NB + 1, 3).
        rotations: matrices whose columns are their axes, (T, NB + 1, 3, 3).
    """

    positions: np.ndarray
    rotations: np.ndarray

    def points(self, local):
        """Points fixed to the bodies, (NB + 1, 3), in the base, (T, NB + 1, 3)."""
        return np.einsum("tbij,bj->tbi", self.rotations, local) + self.positions


def places(model, q) -> Places:
    """Where the bodies are in the configurations ``q``, (T, nq)."""
    q = np.asarray(q, dtype=float)
    shape = (len(q), model.body_count + 1)
    positions, rotations = np.zeros((*shape, 3)), np.broadcast_to(np.eye(3), (*shape, 3, 3)).copy()
    if model.body_count:
        pose = np.asarray(kinematics.poses(model, q))
        positions[:, 1:], rotations[:, 1:] = pose[..., :3, 3], pose[..., :3, :3]
    return Places(positions, rotations)


def velocities(model, q, qd) -> np.ndarray:
    """Spatial velocities of all bodies about the origin of the base, (T, NB + 1, 6)."""
    found = np.zeros((len(q), model.body_count + 1, 6))
    if model.body_count:
        found[:, 1:] = _velocities(model, q, qd)
    return found


@kernel
def _velocities(model, q, qd):
    return np.array([v.to_array() for v in base_velocities(model, q, qd)[1][1:]])


def quaternions(rotations) -> np.ndarray:
    """Unit quaternions (w, x, y, z) of rotation matrices (..., 3, 3)."""
    R = np.asarray(rotations)
    diagonal = [R[..., k, k] for k in range(3)]
    trace = sum(diagonal)
    # Four times the products of each pair; the row with the largest square is the best divided.
    products = np.empty((*R.shape[:-2], 4, 4))
    products[..., 0, 0] = 1 + trace
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        products[..., k + 1, k + 1] = 1 + 2 * diagonal[k] - trace
        products[..., 0, k + 1] = products[..., k + 1, 0] = R[..., j, i] - R[..., i, j]
        products[..., i + 1, j + 1] = products[..., j + 1, i + 1] = R[..., i, j] + R[..., j, i]
    squares = np.diagonal(products, axis1=-2, axis2=-1)
    best = np.argmax(squares, axis=-1)[..., None, None]
    row = np.take_along_axis(products, best, axis=-2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def along(directions) -> np.ndarray:
    """Rotation matrices (..., 3, 3) whose third columns point along unit ``directions``."""
    z = np.asarray(directions, dtype=float)
    other = np.eye(3)[np.argmin(np.abs(z), axis=-1)]
    x = np.cross(other, z)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)
