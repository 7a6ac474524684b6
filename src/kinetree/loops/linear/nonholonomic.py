"""Linear models under nonholonomic constraints: more coordinates than velocities.

Constraints of velocities alone leave positions free: ``dq = N dz`` for the coordinates ``z`` that
the holonomic ones leave, ``K_h N = 0``, and ``dqd = V dz + G du`` for the independent velocities
``u`` that all of them leave, ``K G = 0``. With ``V``, ``W`` and ``U`` as in ``derivatives``, from
the rates of all constraints,

    dz/dt = R (V dz + G du)        Gᵀ H G du/dt = Gᵀ (dtau - f_z dz - f_u du)

where ``R`` picks ``z``. Without nonholonomic constraints this is ``linearize_in_coordinates``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.closed.constraints import velocity_rows
from kinetree.errors import LoopError
from kinetree.functional.products import brackets
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.derivatives import motion_derivatives
from kinetree.loops.linear.linearization import LinearModel, lower_blocks, motion_state
from kinetree.loops.linear.velocity_basis import velocity_basis


@dataclass(frozen=True)
class NonholonomicModel(LinearModel):
    """``dx/dt = A x + B dtau`` for ``x = (dz, du)``: coordinates, and fewer velocities."""

    velocities: tuple = ()
    """Names of the joint variables whose velocities are ``u``."""
    G_u: Any = None
    """``dqd = G_u du``, for the change of velocity alone, (..., nv, len(velocities))."""


def linearize_nonholonomic(model, q, qd, tau, f_ext=None, *, independent=None) -> NonholonomicModel:
    """``LinearModel`` of a nonholonomic mechanism; arguments of ``linearize_in_coordinates``."""
    if independent is not None:
        nonholonomic = next(c.name for c in model.constraints if not c.holonomic)
        raise LoopError(
            f"constraint {nonholonomic!r} of model {model.name!r} is nonholonomic: coordinates and "
            f"velocities are chosen apart, and independent={independent!r} says one of them; leave "
            f"it out"
        )
    state, fast, basis = motion_state(model, q, qd, tau, f_ext, None)
    _, q, qd, qdd, *_ = state
    K = np.array(constraint(model, q, qd).K)
    K[..., velocity_rows(model), :] = 0
    chosen = coordinates(model, K)
    N, G, R = velocity_basis(model, q, K, chosen).G, basis.G, chosen.rows
    motion = motion_derivatives(state, fast, basis, N)
    by_z, by_u, by_tau = lower_blocks(state, motion, basis)

    n, p = N.shape[-1], G.shape[-1]
    A = np.zeros((*qd.shape[:-1], n + p, n + p))
    A[..., :n, :n] = R @ (motion.V + brackets(model, q, qd) @ N)
    A[..., :n, n:], A[..., n:, :n], A[..., n:, n:] = R @ G, by_z, by_u
    B = np.concatenate([np.zeros((*qd.shape[:-1], n, model.nv)), by_tau], axis=-2)
    rate = np.concatenate([qd @ R.T, qdd @ fast.rows.T], axis=-1)
    names = chosen.names, fast.names
    return NonholonomicModel(A, B, rate, names[0], N, qdd, chosen, velocities=names[1], G_u=G)
