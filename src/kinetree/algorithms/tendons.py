"""Lengths of tendons and how they change with the joints: sums of positions, paths through space.

    L = L0 + Σ c_i q_i + Σ |p_b - p_a| / divisor

``model.tendon_paths`` has what one tendon's length and arms are.
"""

import numpy as np

from kinetree.algorithms.coupled import columns, for_all_joints
from kinetree.model.tendon_paths import tendon_motion


@for_all_joints()
def tendon_lengths(model, q):
    """Lengths of all tendons, (n,) [m]."""
    return np.array([tendon_motion(model, t, q)[0] for t in model.tendons])


@for_all_joints(columns)
def tendon_jacobian(model, q):
    """Tendon Jacobian ``J``, (n, nv): ``dL/dt = J qd``."""
    J = np.zeros((len(model.tendons), model.nv), model.scalar_type(q))
    for k, t in enumerate(model.tendons):
        J[k] = tendon_motion(model, t, q)[1]
    return J
