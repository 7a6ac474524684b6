"""A scene at one moment: where its nodes are, and the solid form of its arrows."""

from functools import lru_cache

import numpy as np

from kinetree.viewer.scene.places import along
from kinetree.viewer.scene.surfaces import cone, rod

__all__ = ["arrow_pieces", "at_time", "between", "rotations", "shaft_and_head"]


def at_time(scene, t):
    """The number of the state before ``t`` [s] and how far it is to the next, from 0 to 1."""
    times = scene.times
    k = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, max(len(times) - 2, 0)))
    if len(times) < 2 or times[k + 1] <= times[k]:
        return k, 0.0
    return k, float(np.clip((t - times[k]) / (times[k + 1] - times[k]), 0.0, 1.0))


def between(scene, t):
    """Positions (N, 3) and quaternions (N, 4) of the nodes at the time ``t`` [s]."""
    k, s = at_time(scene, t)
    j = min(k + 1, len(scene.times) - 1)
    p = (1 - s) * scene.positions[k] + s * scene.positions[j]
    a, b = scene.quaternions[k], scene.quaternions[j]
    b = np.where(np.sum(a * b, axis=1, keepdims=True) < 0, -b, b)
    turn = (1 - s) * a + s * b
    return p, turn / np.linalg.norm(turn, axis=1, keepdims=True)


def rotations(quaternions):
    """Rotation matrices (..., 3, 3), whose columns are axes, of (w, x, y, z)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternions), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


@lru_cache(maxsize=1)
def shaft_and_head():
    """A rod of unit size along z and a cone of unit size above the origin."""
    return rod(1.0, 0.0, 1.0, 12), cone(1.0, 0.0, 1.0, 16)


def arrow_pieces(arrows, k, size):
    """Surfaces of the arrows at state ``k``: vertices (n, 3) and faces of each rod and cone."""
    thick = 0.007 * size
    shaft, head = shaft_and_head()
    for origin, vector in zip(arrows.origins[k], arrows.vectors[k], strict=True):
        length = float(np.linalg.norm(vector))
        if not length > 0.01 * size:
            continue
        R = along(vector / length)
        tip = min(5 * thick, 0.5 * length)
        body = shaft.vertices * [thick, thick, length - tip]
        yield body @ R.T + origin, shaft.faces
        point = head.vertices * [2.4 * thick, 2.4 * thick, tip] + [0, 0, length - tip]
        yield point @ R.T + origin, head.faces
