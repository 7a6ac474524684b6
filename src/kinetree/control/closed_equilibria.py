"""Rest of mechanisms with loops and couplings: motors carry what the loops do not."""

import numpy as np

from kinetree.algorithms.loop_rank import RANK_TOLERANCE
from kinetree.errors import EquilibriumError
from kinetree.loops.kinematics.constraint import closure_error, constraint
from kinetree.loops.kinematics.projection import project_configuration
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.derivatives import forces_along
from kinetree.loops.linear.velocity_basis import MotionState, velocity_basis

__all__ = ["closed_equilibrium", "closed_holding_forces", "load_on_freedoms"]

_STEPS = 100


def load_on_freedoms(model, q):
    """The load at rest, (nv,), and a ``VelocityBasis`` with orthonormal directions of motion.

    The load is gravity less the forces of springs; loops carry what is normal to the directions.
    """
    still = np.zeros(model.nv)
    K = constraint(model, q, still).K
    basis = velocity_basis(model, q, K, coordinates(model, K, "tangent"))
    return MotionState(model, q, still, still, still).constraint_force(), basis


def closed_holding_forces(model, q, driven):
    """The smallest forces of the driven joints that hold the mechanism, and what stays of the load.

    Both (nv,); of the load, what neither motors nor loops carry.
    """
    load, (G, _) = load_on_freedoms(model, q)
    B, tau = G[driven].T, np.zeros(model.nv)
    tau[driven] = np.linalg.pinv(B, rcond=RANK_TOLERANCE) @ G.T @ load
    return tau, G @ (G.T @ (load - tau))


def closed_equilibrium(model, q, driven, held):
    """A configuration near ``q`` and the forces of the driven joints at rest there.

    Newton's method on the manifold of closed configurations, with the shortest step that does it.
    """
    q = project_configuration(model, q)
    tau, left = closed_holding_forces(model, q, driven)
    for _ in range(_STEPS):
        load, basis = load_on_freedoms(model, q)
        G, slope = basis.G, _stiffness(model, q, tau, basis)
        size = max(np.max(np.abs(slope), initial=0), np.max(np.abs(load), initial=0))
        if np.max(np.abs(left), initial=0) <= 1e-14 * size:
            return q, tau
        # freedoms in which no motor acts, and motions that leave the held joints alone
        idle, free = G @ _null(G[driven]), _null(G[held])
        step = G @ free @ -(np.linalg.pinv(idle.T @ slope @ free, rcond=1e-9) @ (idle.T @ left))
        length = np.linalg.norm(step)
        step *= min(1.0, 1.0 / length) if length else 0.0
        found = _shorter(model, q, driven, held, step, left)
        if found is None:
            break
        q, tau, left = found
    if np.max(np.abs(left)) <= 1e-10 * size:
        return q, tau
    raise EquilibriumError(_explanation(model, left, driven))


def _stiffness(model, q, tau, basis):
    """How the load changes in the directions of the basis, (nv, p), up to forces of the loops."""
    still = np.zeros(model.nv)
    state, held = MotionState(model, q, still, still, tau), np.zeros_like(basis.G)
    return forces_along(state, state.multipliers(basis), basis.G, held, held)


def _null(A):
    """Orthonormal columns ``x`` with ``A x = 0``."""
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.sum(s > RANK_TOLERANCE * np.max(s, initial=0)) :].T


def _shorter(model, q, driven, held, step, left):
    """Where a part of the step leads that reduces the load, or None."""
    for part in 0.5 ** np.arange(30):
        moved = _closed(model, model.integrate(q, part * step), held)
        if moved is None:
            continue
        tau, still = closed_holding_forces(model, moved, driven)
        if np.linalg.norm(still) < (1 - 0.1 * part) * np.linalg.norm(left):
            return moved, tau, still
    return None


def _closed(model, q, held):
    """A closed configuration near ``q`` with the same held joints, or None."""
    for _ in range(20):
        error = closure_error(model, q)
        if np.max(np.abs(error)) <= 1e-13:
            return q
        K = constraint(model, q, np.zeros(model.nv)).K
        rows = np.concatenate([K, np.eye(model.nv)[held]])
        step = np.linalg.pinv(rows, rcond=1e-9)[:, : len(error)] @ -error
        q = model.integrate(q, step)
    return None


def _explanation(model, left, driven):
    blamed = np.abs(left) > 0.1 * np.max(np.abs(left))
    blamed[driven] = False
    at = model.v_slice
    names = [n for i, n in enumerate(model.joint_names, start=1) if np.any(blamed[at[i]])]
    return (
        f"model {model.name!r} finds no rest: {np.max(np.abs(left)):.4g} N or N·m of its load are "
        f"carried neither by its loops nor by the driven joints, and show at the joints "
        f"{', '.join(map(repr, names))}; start elsewhere, drive more joints or hold fewer"
    )
