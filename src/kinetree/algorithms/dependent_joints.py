"""Joints that together move no inertia, whatever the configuration; ranks, so numbers only.

A joint can move inertia by itself and still add nothing to what others move: a point mass on three
hinges through one point. ``H`` is then singular everywhere, but its entries and pivots are rounding
errors that look like small inertias. It takes bodies without full inertia to build such a thing.
"""

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.propagation import has_full_inertia, is_formula
from kinetree.errors import SingularError

__all__ = ["require_independent_joints"]


def require_independent_joints(model, function):
    """Raise SingularError when some combination of joints accelerates without any force."""
    if model.nv == 0 or all(is_formula(I) or has_full_inertia(I) for I in model.inertia[1:]):
        return  # H is a sum of positive definite terms, one for each joint
    q = model.random_configuration(np.random.default_rng(0))
    H = crba.joint_space_inertia(model, q)
    d = np.diagonal(H)
    if H.dtype == object or np.any(d <= 1e-12 * np.max(d)):
        return  # formulas; or a single joint, which the algorithms name themselves
    values, vectors = np.linalg.eigh(H / np.sqrt(np.outer(d, d)))
    if values[0] > 64 * np.finfo(float).eps * model.nv:
        return
    moved = np.abs(vectors[:, 0]) > 1e-6
    at = model.v_slice
    names = [n for i, n in enumerate(model.joint_names, start=1) if np.any(moved[at[i]])]
    raise SingularError(
        f"{function} is singular for model {model.name!r}: joints {', '.join(map(repr, names))} "
        f"can move together without moving any inertia, in every configuration. Give the bodies "
        f"between them mass and a rotational inertia, or make one of the joints Fixed"
    )
