"""Where an actuator pushes: active forces from its wrench — RBDA §3.5, Example 3.2."""

import numpy as np

from kinetree.errors import ShapeError, SingularError
from kinetree.spatial import Force

__all__ = ["active_subspace_from_wrench"]


def active_subspace_from_wrench(joint, q, wrench):
    """``T_a`` along the wrench that the actuator really exerts, scaled to ``T_aᵀ S = 1``.

    Motion does not depend on it; the bearing loads do.

    Args:
        joint: the joint.
        q: its position variables, (nq,).
        wrench: a ``Force`` on the successor in its coordinates, of any size; for a joint of n
            freedoms n independent ones as columns, (6, n).
    """
    F = wrench.to_array().reshape(6, -1)
    if F.shape != (6, joint.nv):
        raise ShapeError(
            f"{type(joint).__name__} has {joint.nv} freedoms and needs as many actuator "
            f"wrenches, got {F.shape[1]}"
        )
    S = joint.motion_subspace(q)
    power = S.T @ Force.from_array(F)
    if joint.nv == 1:
        scale = float(np.max(np.abs(S.to_array())) * np.max(np.abs(F)))
        independent = abs(power[0, 0]) > 64 * np.finfo(float).eps * scale
        coefficients = 1 / power if independent else power
    else:
        independent = np.linalg.cond(power) < 1 / (64 * np.finfo(float).eps)
        coefficients = np.linalg.inv(power) if independent else power
    if not independent:
        raise SingularError(
            f"the actuator wrench does no work on the freedom of this {type(joint).__name__} "
            f"joint (S^T f = {power.tolist()}): it loads the bearings only"
        )
    return Force.from_array(F @ coefficients)
