"""Registry of the scenes that contact has to get right, and what they share."""

import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import trimesh
from scipy.spatial.transform import Rotation

from truth.mechanics import rotations
from truth.verdict import Result

ROWS: dict[str, Callable[[], Result]] = {}
"""Functions that return the result of a scene, by its name."""

G = 9.81

WEDGE = [
    (0.3 * x * (0.4 if z > 0 else 1.0), 0.3 * y + (0.17 if z > 0 else 0.0), 0.3 * z)
    for x in (-1, 1)
    for y in (-1, 1)
    for z in (-1, 1)
]
"""Eight corners of a wedge that leans."""


def row(name):
    """Register a function under a name."""

    def register(function):
        ROWS[name] = function
        return function

    return register


def turned(rng):
    """A random rotation."""
    q = rng.normal(size=4)
    return rotations(q[None] / np.linalg.norm(q))[0]


@lru_cache(maxsize=16)
def mesh_file(kind) -> str:
    """Path of a mesh: an STL file of doubles, more or less."""
    solid = {
        "cube": lambda: trimesh.creation.box((0.2, 0.2, 0.2)),
        "finger": lambda: trimesh.creation.box((0.1, 0.1, 0.1)),
        "wedge": lambda: trimesh.convex.convex_hull(WEDGE),
        "pebble": lambda: trimesh.creation.icosphere(subdivisions=1, radius=0.1),
    }[kind]()
    path = Path(tempfile.mkdtemp()) / f"{kind}.obj"
    solid.export(path, digits=17)
    return str(path)


def coordinates(T):
    """Coordinates of a free body at a pose, (7,)."""
    x, y, z, w = Rotation.from_matrix(T[:3, :3]).as_quat()
    return np.array([*T[:3, 3], w, x, y, z])
