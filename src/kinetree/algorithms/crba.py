"""Composite-rigid-body algorithm — RBDA §6.2, Table 6.2."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature, ltl, rnea
from kinetree.algorithms.coupled import congruent, for_all_joints
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.algorithms.propagation import (
    has_full_inertia,
    is_formula,
    joint_inertia_bound,
    moves_no_inertia,
)
from kinetree.errors import SingularError
from kinetree.spatial.ops import check_pivot


class CompositeBodies(NamedTuple):
    """Everything the algorithm computes; per body, in body coordinates."""

    H: np.ndarray
    """The joint-space inertia matrix, (nv, nv)."""
    IC: list
    """Composite inertias: everything beyond joint ``i`` as one rigid body — RBDA (6.17)."""
    S: list
    """Motion subspaces of the joints."""


@for_all_joints(lambda result, at: result._replace(H=congruent(result.H, at)))
def composite_bodies(model, q):
    """Composite-rigid-body algorithm, RBDA Table 6.2: ``H`` with intermediate quantities."""
    lam, at = model.parent, model.v_slice
    X, S = joint_transforms(model, q)

    H, IC, F = model.matrix(q), model.copy_table(model.inertia), model.table()
    for i in model.inward():
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
        F[i] = IC[i] @ S[i]
        H[at[i], at[i]] = armature.joint_inertia(model, i, S[i].T @ F[i])
        if lam[i] != 0:
            F[i] = X[i].T @ F[i]
        for j in model.above(i):
            H[at[i], at[j]] = F[i].T @ S[j]
            H[at[j], at[i]] = H[at[i], at[j]].T
            if lam[j] != 0:
                F[i] = X[j].T @ F[i]
    return CompositeBodies(H, IC, S)


def joint_space_inertia(model, q):
    """Joint-space inertia (mass) matrix ``H(q)``, (nv, nv).

    Entries that the branching of the tree makes zero are never touched — RBDA §6.4.
    """
    return composite_bodies(model, q).H


def composite_inertias(model, q):
    """Composite inertias ``IC[i]`` of everything beyond joint ``i`` — RBDA (6.17)."""
    return composite_bodies(model, q).IC


def inertia_factors(model, q):
    """Factors ``L``, ``D`` of ``H = LᵀDL`` in one array, (nv, nv), as of ``ltl.ltdl`` — RBDA §6.5.

    A joint that moves no inertia has a diagonal entry of rounding errors, which the matrix alone
    cannot tell from a small inertia: it is compared with ``joint_inertia_bound``.
    """

    def singular(k):
        i = next(i for i, at in enumerate(model.v_slice) if k < at.stop)
        return moves_no_inertia(model, i)

    H, IC, S = composite_bodies(model, q)
    for i, at in enumerate(model.v_slice):
        for n, k in enumerate(range(at.start, at.stop)):
            bound = joint_inertia_bound(IC[i], S[i], n)
            H[k, k] = check_pivot(H[k, k], bound, lambda k=k: singular(k))
    return ltl.ltdl(H, model.expanded_parent, singular)


@refuses("loops", use="implicit.forward_dynamics")
def forward_dynamics(model, q, qd, tau, f_ext=None):
    """Joint accelerations (nv,) from ``H qdd = tau - C``: the inertia-matrix method — RBDA §6.1."""
    C = rnea.bias_force(model, q, qd, f_ext)
    return ltl.solve_ltdl(inertia_factors(model, q), model.expanded_parent, tau - C)


def require_independent_joints(model, function):
    """Raise SingularError if some combination of joints accelerates without force.

    A joint can move inertia by itself and still add nothing to what others move: a point mass on
    three hinges through one point. ``H`` is then singular in every configuration, but its entries
    and pivots are rounding errors that look like small inertias. Decided by rank, so by numbers.
    """
    if model.nv == 0 or all(is_formula(I) or has_full_inertia(I) for I in model.inertia[1:]):
        return  # H is a sum of positive definite terms, one for each joint
    q = model.random_configuration(np.random.default_rng(0))
    H = joint_space_inertia(model, q)
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
