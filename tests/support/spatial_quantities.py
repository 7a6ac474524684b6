"""Random spatial quantities for tests."""

import numpy as np

from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import ArticulatedInertia, Force, Motion

__all__ = [
    "random_articulated",
    "random_force",
    "random_inertia",
    "random_motion",
    "random_placement",
    "random_rotation",
]


def random_motion(rng, columns=None):
    return Motion.from_array(rng.standard_normal((6,) if columns is None else (6, columns)))


def random_force(rng, columns=None):
    return Force.from_array(rng.standard_normal((6,) if columns is None else (6, columns)))


def random_rotation(rng):
    return random_placement(rng).E


def random_articulated(rng):
    A = rng.standard_normal((6, 6))
    return ArticulatedInertia.from_matrix(A @ A.T + np.eye(6))
