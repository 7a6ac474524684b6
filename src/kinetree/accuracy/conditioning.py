"""How errors of forces become errors of accelerations — RBDA §10.2.

What is asked once runs on the texts of the algorithms; only inverse and forward dynamics, whose own
errors are wanted, run as everybody calls them.
"""

import numpy as np

from kinetree.algorithms.crba import joint_space_inertia
from kinetree.algorithms.regressors import regressor
from kinetree.dynamics import forward_dynamics, inverse_dynamics

__all__ = ["condition_number", "digits_lost", "influence", "round_trip_error", "worst_chain"]


def condition_number(model, q, *, scaled=False) -> float:
    """Of the inertia matrix: relative errors of ``tau`` may grow by as much in ``qdd``.

    Infinite where a variable has no inertia at all.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        scaled: measure every variable such that its own inertia is one; the number then does not
            depend on units, and armature and light links at the tip count for what they are.
    """
    if not model.nv:
        return 1.0
    H = joint_space_inertia(model, q)
    if not np.all(np.diagonal(H) > 0):
        return np.inf
    d = np.sqrt(np.diagonal(H)) if scaled else np.ones(model.nv)
    return float(np.linalg.cond(H / np.outer(d, d)))


def worst_chain(links: int) -> float:
    """About the condition number of a straight chain of equal links, ``4 n⁴``."""
    return 4.0 * links**4


def round_trip_error(model, q, qd) -> float:
    """Largest relative error of accelerations after inverse and then forward dynamics."""
    if not model.nv:
        return 0.0
    wanted = np.ones(model.nv)
    tau = inverse_dynamics(model, q, qd, wanted)
    return float(np.max(np.abs(forward_dynamics(model, q, qd, tau) - wanted)))


def digits_lost(model, q, qd):
    """Decimal digits that rounding takes from inverse and from forward dynamics, at this state.

    Measured: the same code is run in single precision, whose errors are large enough to be seen in
    double precision. Inputs are rounded beforehand, so that both start from the same numbers.
    """
    single = [np.asarray(x, np.float32) for x in (q, qd, np.ones(model.nv))]
    single[0] = _on_the_manifold(model, single[0])
    double = [x.astype(np.float64) for x in single]
    found = []
    for function in (inverse_dynamics, forward_dynamics):
        rough, exact = function(model, *single), function(model, *double)
        scale = np.max(np.abs(exact), initial=0.0)
        if not scale > 0:
            found.append(0.0)
            continue
        error = np.max(np.abs(rough - exact)) / (scale * np.finfo(np.float32).eps)
        found.append(float(np.log10(max(error, 1.0))))
    return tuple(found)


def _on_the_manifold(model, q):
    """Unit quaternions again after rounding, as nearly as single precision can have them."""
    return model.integrate(q.astype(np.float64), np.zeros(model.nv)).astype(np.float32)


def influence(model, q, qd):
    """Relative change of the accelerations per relative change of each body's inertia, (bodies,).

    ``tau = Y π`` is linear in the inertias ``π``, so ``H δqdd = -Y δπ`` at equal forces.
    """
    qdd = np.ones(model.nv)
    Y = regressor(model, q, qd, qdd).reshape(model.nv, model.body_count, 10)
    parameters = np.reshape([I.parameters() for I in model.inertia[1:]], (model.body_count, 10))
    forces = np.einsum("ikp,kp->ik", Y, parameters)
    changes = np.linalg.solve(joint_space_inertia(model, q), forces)
    return np.max(np.abs(changes), axis=0, initial=0.0)
