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

_FACE = [(0.0, y, z) for y in (-0.3, 0.3) for z in (-0.3, 0.3)]
WEDGE = [*_FACE, *((0.6, y, z) for y in (-0.3, 0.3) for z in (-0.05, 0.05))]
"""Eight corners of a wedge, one face of which is the plane x = 0."""


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
    """Of a free body at a pose, (7,)."""
    x, y, z, w = Rotation.from_matrix(T[:3, :3]).as_quat()
    return np.array([*T[:3, 3], w, x, y, z])
