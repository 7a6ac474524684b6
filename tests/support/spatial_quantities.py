"""Random spatial quantities, and two articulated bodies about to be joined."""

import numpy as np

from kinetree.samples import random_placement
from kinetree.spatial import ArticulatedInertia, Force, Motion

# --- Random spatial quantities for tests ---------------------------------------------------------


def random_motion(rng, columns=None):
    return Motion.from_array(rng.standard_normal((6,) if columns is None else (6, columns)))


def random_force(rng, columns=None):
    return Force.from_array(rng.standard_normal((6,) if columns is None else (6, columns)))


def random_rotation(rng):
    return random_placement(rng).E


def random_articulated(rng):
    A = rng.standard_normal((6, 6))
    return ArticulatedInertia.from_matrix(A @ A.T + np.eye(6))


# --- Two articulated bodies about to be joined, as dense matrices with random entries ------------


class Pair:
    """Two random articulated bodies and a joint of any degree of freedom, as dense matrices."""

    def __init__(self, rng, n):
        self.I1, self.I2 = (A @ A.T + np.eye(6) for A in rng.standard_normal((2, 6, 6)))
        self.p1, self.p2, self.c = rng.standard_normal((3, 6))
        frame = rng.standard_normal((6, 6))
        self.S, complement = frame[:, :n], np.linalg.inv(frame).T
        self.Ta, self.T = complement[:, :n], complement[:, n:]
        self.tau = rng.standard_normal(n)
        self.Phi1, self.Phi2 = np.linalg.inv(self.I1), np.linalg.inv(self.I2)
        self.b1, self.b2 = -self.Phi1 @ self.p1, -self.Phi2 @ self.p2
        self.condition = np.linalg.cond(frame) ** 2 * np.linalg.cond(self.I1 + self.I2) ** 2
