"""Placements and inertias: the same quantities in the two notations.

Pinocchio's ``SE3(R, p)`` is the pose of a frame; ``Plucker(E, r)`` the coordinate transform to it.
"""

import numpy as np

from kinetree.spatial import Inertia, Plucker

__all__ = ["from_inertia", "from_se3", "to_inertia", "to_se3"]


def from_se3(M) -> Plucker:
    """The coordinate transform to the frame whose pose is ``M``."""
    return Plucker(np.array(M.rotation.T), np.array(M.translation))


def to_se3(pin, X):
    """The pose of the frame that ``X`` transforms to."""
    return pin.SE3(np.asarray(X.E.T, dtype=float), np.asarray(X.r, dtype=float))


def from_inertia(Y) -> Inertia:
    """From mass, lever and rotational inertia about the mass centre."""
    return Inertia.from_mass_center(Y.mass, np.array(Y.lever), np.array(Y.inertia))


def to_inertia(pin, I):
    """As Pinocchio's inertia; also one that is physically impossible."""
    if I.mass == 0:
        Y = pin.Inertia.Zero()
        Y.inertia = np.asarray(I.rotational, dtype=float)
        return Y
    return pin.Inertia.FromDynamicParameters(np.asarray(I.parameters(), dtype=float))
