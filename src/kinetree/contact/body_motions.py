"""Velocities and velocity-product accelerations of all bodies, in base coordinates."""

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.functional.kernel import kernel

__all__ = ["body_motions"]


@kernel
def body_motions(model, q, qd):
    """Spatial velocities ``v`` and accelerations ``a`` at ``qdd = 0``, each (body_count + 1, 6).

    In base coordinates, the base first; without gravity.
    """
    X, v, a = body_accelerations(model, q, qd, model.zero_velocity)
    X_0 = base_transforms(model, X)
    return tuple(
        np.array([X_0[i].inv_apply(m[i]).to_array() for i in range(model.body_count + 1)])
        for m in (v, a)
    )
