"""Linear equations of motion under nonholonomic constraints: more coordinates than velocities.

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
from kinetree.loops.linear.derivatives import constraint_along, forces_along
from kinetree.loops.linear.linearization import LinearModel, motion_state
from kinetree.loops.linear.velocity_basis import velocity_basis

__all__ = ["NonholonomicModel", "linearize_nonholonomic"]


@dataclass(frozen=True)
class NonholonomicModel(LinearModel):
    """``dx/dt = A x + B dtau`` for ``x = (dz, du)``: coordinates, and fewer velocities.

    Attributes:
        velocities: names of the joint variables whose velocities are ``u``.
        G_u: ``dqd = G_u du``, for the change of velocity alone, (..., nv, len(velocities)).
    """

    velocities: tuple = ()
    G_u: Any = None


def linearize_nonholonomic(model, q, qd, tau, f_ext=None, *, independent=None) -> NonholonomicModel:
    """The equations of motion to first order; arguments as in ``linearize_in_coordinates``."""
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
    N, (G, inverse) = velocity_basis(model, q, K, chosen).G, basis
    to_all = inverse[..., G.shape[-1] :]  # of constraints, with ``u`` held
    still = np.zeros_like(N)
    V = -to_all @ constraint_along(state, N, still)[0]
    W = -to_all @ constraint_along(state, N, V)[1]
    U = -to_all @ constraint_along(state, np.zeros_like(G), G)[1]
    lam, rest, G_T = state.multipliers(basis), np.zeros_like(G), np.swapaxes(G, -1, -2)
    by_z = forces_along(state, lam, N, V, W)
    by_u, by_rate = forces_along(state, lam, rest, G, U), forces_along(state, lam, rest, rest, G)
    blocks = [np.linalg.solve(G_T @ by_rate, x) for x in (-G_T @ by_z, -G_T @ by_u, G_T)]

    n, p, R = N.shape[-1], G.shape[-1], chosen.rows
    A = np.zeros((*qd.shape[:-1], n + p, n + p))
    A[..., :n, :n] = R @ (V + brackets(model, q, qd) @ N)
    A[..., :n, n:], A[..., n:, :n], A[..., n:, n:] = R @ G, blocks[0], blocks[1]
    B = np.concatenate([np.zeros((*qd.shape[:-1], n, model.nv)), blocks[2]], axis=-2)
    rate = np.concatenate([qd @ R.T, qdd @ fast.rows.T], axis=-1)
    names = chosen.names, fast.names
    return NonholonomicModel(A, B, rate, names[0], N, qdd, chosen, velocities=names[1], G_u=G)
