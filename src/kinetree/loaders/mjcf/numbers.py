"""Placements and inertias as MuJoCo keeps them, as ours."""

import numpy as np

from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.rotation import rotation_from_quaternion
from kinetree.spatial.vector3 import identity3

__all__ = ["inertia_of", "is_identity", "placement", "shift"]


def placement(position, quaternion) -> Plucker:
    """The transform to a frame with this position and orientation ``(w, x, y, z)``."""
    return Plucker(rotation(quaternion), _exact(position))


def shift(position) -> Plucker:
    """The transform to a parallel frame."""
    return Plucker(identity3(), _exact(position))


def rotation(quaternion):
    """``E`` of a quaternion; of whole numbers if it takes axes to axes, so that zeros stay zero."""
    p = np.array(quaternion, dtype=float)
    E = rotation_from_quaternion(p / np.linalg.norm(p))
    whole = np.rint(E)
    return whole.astype(int) if np.max(np.abs(E - whole)) < 1e-15 else E


def inertia_of(mj_model, body) -> Inertia:
    """Inertia of one body in MuJoCo's frame of it."""
    m, moments = float(mj_model.body_mass[body]), np.array(mj_model.body_inertia[body])
    if m == 0 and not np.any(moments):
        return Inertia.zero()
    R = rotation(mj_model.body_iquat[body]).T
    I_C = R @ np.diag(moments) @ R.T
    return Inertia.from_mass_center(m, np.array(mj_model.body_ipos[body]), (I_C + I_C.T) / 2)


def is_identity(X) -> bool:
    """Whether a transform changes nothing, exactly."""
    return np.array_equal(X.E, identity3()) and not np.any(X.r)


def _exact(position):
    r = np.array(position, dtype=float)
    return r if np.any(r) else r.astype(int)
