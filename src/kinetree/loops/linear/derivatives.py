"""Derivatives of the equations of a closed mechanism along motions that keep it closed.

The equations are ``f = ID(q, qd, qdd) - Kᵀ lam - tau_passive`` for the forces of the motors and
``a = K qdd - k = 0``, ``r = K qd = 0`` for loops and couplings. A mechanism that stays closed moves
by ``y`` alone:

    dq = G dy     dqd = V dy + G dyd     dqdd = W dy + U dyd + G dydd

where ``G`` solves ``[R; K] G = [1; 0]``, and the others follow from ``dr = 0`` and ``da = 0``. Any
joints will do: directions of ``q`` are those of ``model.integrate``. For joints whose ``qd`` is the
derivative of ``q`` and a constant ``R``, ``V`` is Spencer's ``Kdot`` of (B.1), ``U`` is ``2 Kdot``
and ``W`` is ``Kddot``. Forces ``lam`` are held: their change does no work on such motions.

Here ranks are decided, by singular values, in Python; ``tangent_dynamics`` computes the same in
compiled code, by a plan of elimination that was made before.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.algorithms.closed.rank import RANK_TOLERANCE
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import SingularError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp
from kinetree.loops.kinematics.constraint import constraint, require_holonomic
from kinetree.loops.linear.coordinates import Coordinates, coordinates
from kinetree.loops.linear.velocity_basis import (
    MotionState,
    VelocityBasis,
    along_columns,
    loop_coordinates_along,
    velocity_basis,
)
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.limits import has_passive_forces
from kinetree.quantities.dynamics import inverse_dynamics, mass_matrix, passive_force


class MotionDerivatives(NamedTuple):
    """How a closed mechanism moves with its independent coordinates, (..., nv, p).

    Nonholonomic constraints leave more coordinates than velocities: then ``N``, ``V`` and ``W``
    have more columns, (..., nv, n).
    """

    G: np.ndarray
    """``∂qd/∂yd``, ``∂qdd/∂ydd``."""
    V: np.ndarray
    """``∂qd/∂y``."""
    W: np.ndarray
    """``∂qdd/∂y``."""
    U: np.ndarray
    """``∂qdd/∂yd``."""
    N: np.ndarray
    """``∂q/∂y``: ``G`` itself without nonholonomic constraints."""


class ForceDerivatives(NamedTuple):
    """How the forces of the motors change with the motion, all (..., nv, p).

    Up to forces of the constraints: only ``Gᵀ`` times them has a meaning.
    """

    dy: np.ndarray
    dyd: np.ndarray
    dydd: np.ndarray


def motion_derivatives(
    state: MotionState, chosen: Coordinates, basis: VelocityBasis, positions=None
) -> MotionDerivatives:
    """``MotionDerivatives`` of a motion that keeps the loops closed, by its coordinates.

    Args:
        state: the motion.
        chosen: coordinates of the velocities.
        basis: all velocities from theirs.
        positions: columns along which positions change, (..., nv, n); those of the velocities by
            default.
    """
    G, inverse = basis
    N = G if positions is None else positions
    V = -inverse @ _along(state, chosen, N, np.zeros_like(N))[0]
    W = -inverse @ _along(state, chosen, N, V)[1]
    U = -inverse @ _along(state, chosen, np.zeros_like(G), G)[1]
    return MotionDerivatives(G, V, W, U, N)


def _along(state, chosen, dq, dqd):
    """Changes of coordinate rates and constraint residuals along columns of dq and dqd.

    Of ``yd`` and ``ydd``, what they change beyond ``R dqd`` and ``R dqdd``.
    """
    r, a = constraint_along(state, dq, dqd)
    y, z = loop_coordinates_along(state, chosen, dq, dqd)
    return np.concatenate([y, r], axis=-2), np.concatenate([z, a], axis=-2)


def constraint_along(state, dq, dqd):
    """Changes of ``K qd`` and ``K qdd - k`` along columns of ``q`` and ``qd``."""
    motion = (state.model, state.q, state.qd, state.qdd)
    if not state.model.is_constrained:
        return (np.zeros((*dq.shape[:-2], 0, dq.shape[-1])),) * 2
    return along_columns(_constraint_rate, *motion, tangents=(dq, dqd))


def invariant_derivatives(state: MotionState):
    """Derivatives ``K`` and ``∂(K qd)/∂q`` of errors and their rates, (..., nc, nv) each."""
    still = np.zeros((*state.qd.shape, state.model.nv))
    each = still + np.eye(state.model.nv)
    return constraint_along(state, still, each)[0], constraint_along(state, each, still)[0]


def force_derivatives(
    state: MotionState, motion: MotionDerivatives, basis: VelocityBasis
) -> ForceDerivatives:
    """``ForceDerivatives`` of the unbalanced joint forces along a motion's directions."""
    G, V, W, U, N = motion
    lam, still = state.multipliers(basis), np.zeros_like(G)
    return ForceDerivatives(
        forces_along(state, lam, N, V, W),
        forces_along(state, lam, still, G, U),
        forces_along(state, lam, still, still, G),
    )


def forces_along(state: MotionState, lam, dq, dqd, dqdd):
    """Change of ``ID - Kᵀ lam - tau_passive`` along columns of ``q``, ``qd`` and ``qdd``.

    The forces ``lam`` of the constraints, (..., nc), and those on the bodies stay what they are.
    """
    found = joint_forces_along(state, dq, dqd, dqdd)
    if not state.model.is_constrained:
        return found
    return found - along_columns(_held_rate, state.model, state.q, lam, tangents=(dq,))


def joint_forces_along(state: MotionState, dq, dqd, dqdd):
    """Change of ``ID - tau_passive`` along columns of ``q``, ``qd`` and ``qdd``."""
    model, q, qd, qdd, _, f_ext = state
    tree, forces = model.spanning_tree, () if f_ext is None else (f_ext,)
    D_q, D_v = _inverse_derivatives(tree, q, qd, qdd, *forces)
    H = mass_matrix(tree, q)
    if has_passive_forces(model):
        by_q, by_v = _passive_derivatives(model, q, qd)
        D_q, D_v = D_q - by_q, D_v - by_v
    return D_q @ dq + D_v @ dqd + H @ dqdd


@kernel
def _constraint_motion(m, q, qd, qdd):
    """Kernel of ``K qd`` less prescribed rates, and of ``K qdd - k``."""
    c = loop_constraints(m, q, qd)
    return c.rate, c.K @ qdd - c.k


@kernel
def _constraint_force(m, q, lam):
    """Kernel of the joint forces ``Kᵀ lam`` of constraints."""
    return loop_constraints(m, q, m.zero_velocity).K.T @ lam


_constraint_rate = jvp(_constraint_motion, wrt=("q", "qd"))
_held_rate = jvp(_constraint_force, wrt=("q",))
_inverse_derivatives = differentiate(inverse_dynamics, wrt=("q", "qd"))
_passive_derivatives = differentiate(passive_force, wrt=("q", "qd"))


# --- torque derivatives: Spencer 4.3, 4.6 --------------------------------------------------------
# For planning: with as many motors as degrees of freedom, a motion ``y(t)`` of the independent
# coordinates determines their forces, and the gradient of a cost such as ``∫ |tau|² dt`` follows
# from the derivatives of the forces with respect to ``y``, ``yd`` and ``ydd``.


class TorqueDerivatives(NamedTuple):
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
def torque_derivatives(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    f_ext: ArrayLike | None = None,
    *,
    actuated: Sequence[str],
    independent: Sequence[str] | str | ArrayLike | None = None,
) -> TorqueDerivatives:
    """Motor forces of a motion and their derivatives by independent coordinates.

    Args:
        model: the mechanism; without loops all its variables are independent.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        qdd: joint accelerations that keep them closed, (..., nv); see ``coordinate_motion``.
        f_ext: constant forces acting on bodies, (..., body_count, 6).
        actuated: names of the driven joints, with as many variables as degrees of freedom.
        independent: coordinates, as in ``linearize_in_coordinates``.

    Raises:
        SingularError: the driven joints do not control the mechanism here.
    """
    q = as_configuration(as_model(model), q)
    require_holonomic(model)
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
    along = force_derivatives(state, motion_derivatives(state, chosen, basis), basis)
    return TorqueDerivatives(forces, *(np.linalg.solve(B, G_T @ part) for part in along))
