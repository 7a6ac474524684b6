"""How the forces of the motors change with the motion of a closed mechanism — Spencer 4.3, 4.6.

For planning: with as many motors as degrees of freedom, a motion ``y(t)`` of the independent
coordinates determines their forces, and the gradient of a cost such as ``∫ |tau|² dt`` follows from
the derivatives of the forces with respect to ``y``, ``yd`` and ``ydd``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.errors import SingularError
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.rank import RANK_TOLERANCE
from kinetree.loops.linear.independent import coordinates, velocity_columns
from kinetree.loops.linear.motion_slopes import force_slopes, motion_slopes
from kinetree.loops.linear.motion_state import MotionState, require_loops
from kinetree.loops.linear.velocity_basis import velocity_basis
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["TorqueSlopes", "torque_slopes"]


class TorqueSlopes(NamedTuple):
    """Forces of the motors and their derivatives."""

    tau: Any
    """Forces of the driven joints [N or N·m], (..., p)."""
    dy: Any
    """By the coordinates, (..., p, p): entry [i, j] is that of force ``i`` by coordinate ``j``."""
    dyd: Any
    """By their rates."""
    dydd: Any
    """By their accelerations."""


@on_host
def torque_slopes(model, q, qd, qdd, f_ext=None, *, actuated, independent=None) -> TorqueSlopes:
    """Forces that a motion takes, and how they change with the motion.

    Args:
        model: the mechanism, with loops or couplings.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        qdd: joint accelerations that keep them closed, (..., nv); see ``coordinate_motion``.
        f_ext: forces acting on bodies (..., body_count, 6), which stay what they are.
        actuated: names of the driven joints, with as many variables as degrees of freedom.
        independent: coordinates, as in ``linearize``.

    Raises:
        SingularError: the driven joints do not control the mechanism here.
    """
    q = as_configuration(as_model(model), q)
    require_loops(model, "use kinetree.differentiate(kinetree.inverse_dynamics, ...)")
    qd, qdd = as_joint_vector(model, qd, "qd"), as_joint_vector(model, qdd, "qdd")
    K = constraint(model, q, qd).K
    chosen = coordinates(model, K, independent)
    basis = velocity_basis(model, q, K, chosen)
    driven = velocity_columns(model, actuated, "actuated")
    G_T = np.swapaxes(basis.G, -1, -2)
    B = G_T[..., driven]
    s = np.linalg.svd(B, compute_uv=False)
    if B.shape[-1] != B.shape[-2] or np.any(s[..., -1] <= RANK_TOLERANCE * s[..., 0]):
        raise SingularError(
            f"the driven joints {', '.join(map(repr, actuated))} do not control model "
            f"{model.name!r} here: it has {B.shape[-2]} degrees of freedom, and as many forces "
            f"must act on them independently"
        )
    rest = MotionState(model, q, qd, qdd, np.zeros_like(qd), f_ext)
    forces = np.linalg.solve(B, G_T @ rest.constraint_force()[..., None])[..., 0]
    tau = np.zeros(rest.constraint_force().shape)
    tau[..., driven] = forces
    state = rest._replace(tau=tau)
    slopes = force_slopes(state, motion_slopes(state, chosen, basis), basis)
    return TorqueSlopes(forces, *(np.linalg.solve(B, G_T @ slope) for slope in slopes))
