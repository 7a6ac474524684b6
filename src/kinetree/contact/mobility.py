"""Mobility: accelerations per force of a mechanism with loops and prescribed joints.

What loops leave, with the variables of prescribed joints held, is ``G y``. Velocity changes per
impulse, and accelerations per force, are ``A = G (Gᵀ H G)⁻¹ Gᵀ``; without either, ``A = H⁻¹``.
Gears need nothing: the variables of a model are those that follow nothing. NumPy only.
"""

import numpy as np

from kinetree.algorithms import rnea
from kinetree.algorithms.closed.joint_space import expand_forces
from kinetree.algorithms.closed.rank import kept_rows, scaling
from kinetree.errors import LoopError
from kinetree.functional.kernel import kernel
from kinetree.loops.dynamics.methods import null_space
from kinetree.loops.kinematics.constraint import constraint, rank
from kinetree.loops.kinematics.space import tree_inertia
from kinetree.quantities import dynamics
from kinetree.quantities.hybrid import free_joints

_CONTRADICTS = 1e-8  # of the prescribed accelerations


@kernel
def tree_force(model, q, qd, qdd):
    """Joint forces ``H qdd + C`` of the spanning tree, (..., nv), loops open."""
    return rnea.inverse_dynamics(model, q, qd, qdd)


def free_variables(model, given) -> np.ndarray:
    """Mask (nv,) of the velocity variables whose joints are not in ``given``."""
    free = np.zeros(model.nv, dtype=bool)
    for i in free_joints(model, given):
        free[model.v_slice[i]] = True
    return free


def mobility(model, q, given=()):
    """Joint velocity changes per joint-space impulse, (nv, nv), with loops closed.

    Args:
        model: the mechanism; loops are kept.
        q: joint positions, (nq,).
        given: names of prescribed joints, whose motion no force changes.
    """
    free = free_variables(model, given)
    if free.all() and not model.is_constrained:
        return dynamics.inverse_mass_matrix(model, q)
    still = np.zeros(model.nv)
    G, _ = _motions(model, q, still, free, still)
    return G @ np.linalg.solve(G.T @ tree_inertia(model, q) @ G, G.T)


def free_acceleration(model, q, qd, tau, given=(), qdd=None):
    """Joint accelerations without contact, (nv,), with those of ``given`` joints prescribed."""
    free = free_variables(model, given)
    if free.all():
        return dynamics.forward_dynamics(model, q, qd, tau)
    known = np.where(free, 0.0, np.asarray(qdd, dtype=float))
    _, start = _motions(model, q, qd, free, known)
    return start + mobility(model, q, given) @ (tau - tree_force(model, q, qd, start))


def drive_forces(model, q, qd, tau, qdd, pushes, given):
    """Joint forces (nv,) with the drives that move the ``given`` joints as prescribed.

    Where loops leave it open how drives share a load, the forces of the loops are the smallest.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        qd: joint velocities, (nv,).
        tau: joint forces, (nv,).
        qdd: joint accelerations, (nv,).
        pushes: joint forces of the contacts, (nv,).
        given: names of the prescribed joints.
    """
    free = free_variables(model, given)
    missing = tree_force(model, q, qd, qdd) - tau - pushes
    missing = missing - loop_forces(model, q, missing, free)[1]
    return np.where(free, tau, tau + missing)


def loop_forces(model, q, missing, free):
    """Loop constraint forces ``κ`` (nc,) that supply ``missing[free]``, and ``Kᵀ κ``, (nv,).

    The smallest, where they are not unique.
    """
    if not model.is_constrained:
        return np.zeros(0), np.zeros(model.nv)
    K, units = constraint(model, q, np.zeros(model.nv)).K, scaling(model)
    rows = kept_rows(model, K)
    scaled, columns = units.apply(K).T[free], units.columns[free]
    scaled = scaled if rows is None else scaled[:, rows]
    found = np.linalg.lstsq(scaled, columns * missing[free], rcond=1e-10)[0]
    kappa = units.rows * expand_forces(found, rows, len(K))
    return kappa, K.T @ kappa


def _motions(model, q, qd, free, known):
    """Basis ``G`` and offset ``g`` of the accelerations ``G ydd + g`` that loops allow."""
    at = np.flatnonzero(free)
    if not model.is_constrained:
        return np.eye(model.nv)[:, at], known
    found, units = constraint(model, q, qd), scaling(model)
    K, right = found.K[:, at], found.k - found.K @ known
    units = units.part(columns=at)
    part = null_space(K, right, rank(K, units), units)
    off = np.max(np.abs(part.residual * units.rows), initial=0.0)
    if off > _CONTRADICTS * (1 + np.max(np.abs(known), initial=0.0)) and not free.all():
        raise LoopError(
            f"prescribed joints open the loops of model {model.name!r}: they miss one "
            f"another by {off:.3g} per second squared; leave some of them to follow"
        )
    G, g = np.zeros((model.nv, part.G.shape[1])), np.array(known, dtype=float)
    G[at], g[at] = part.G, part.g
    return G, g
