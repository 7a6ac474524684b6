"""Hybrid dynamics, by the inertia matrix and by articulated bodies — RBDA §9.1, §9.2.

Of every joint either the force or the acceleration is given; the other is wanted. ``free`` are the
numbers of the joints whose forces are given (the set *fd* of the book); the motion of all others is
prescribed.
"""

import numpy as np

from kinetree.algorithms import armature, crba, ltl, rnea
from kinetree.algorithms.closed.rank import RANK_TOLERANCE
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.kinematics import external_forces, joint_transforms
from kinetree.algorithms.propagation import apparent_inertia, joint_response, moves_no_inertia
from kinetree.model import tree
from kinetree.model.gearing import elimination_tree, inertia_pattern
from kinetree.spatial import Force, crf, crm


def hybrid_dynamics(model, q, qd, tau, qdd, f_ext=None, *, free):
    """Forward dynamics of free joints and inverse dynamics of the others — RBDA §9.1.

    Args:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,).
        tau: joint forces, (nv,), of which those of the free joints are read.
        qdd: joint accelerations, (nv,), of which those of the other joints are read.
        f_ext: external forces on bodies in base coordinates, or None.
        free: numbers of the joints whose forces are given.

    Returns:
        ``tau`` and ``qdd`` of all joints, (2, nv).
    """
    at = variables(model, free)
    _, qdd = given_forces_and_accelerations(model, tau, qdd, free)
    C = rnea.inverse_dynamics(model, q, qd, qdd, f_ext)  # C' of (9.2): the free joints coast
    qdd_free = _solve(model, q, tau[at] - C[at], free)
    increment = _at_free(model, qdd_free, at)
    return np.stack([C + rnea.inertia_product(model, q, increment), qdd + increment])


def response(model, q, free):
    """Derivatives of unknown by given forces and accelerations, (nv, nv), in joint order.

    Solved for the unknowns, (9.1) reads — RBDA (9.4)

        [qdd_1]   [ H11⁻¹       -H11⁻¹ H12         ] [tau_1]
        [tau_2] = [ H21 H11⁻¹    H22 - H21 H11⁻¹ H12 ] [qdd_2] + ...
    """
    at = variables(model, free)
    rest = np.setdiff1d(np.arange(model.nv), at)
    units = np.eye(model.nv, dtype=int)
    columns = [rnea.inertia_product(model, q, e) for e in units]
    H = np.stack(columns, axis=1) if columns else units
    if not len(at):
        return H
    solve = _solver(model, q, free)
    H11_inv_H12 = solve(H[np.ix_(at, rest)])
    R = np.zeros_like(H)
    R[np.ix_(at, at)] = solve(units[: len(at), : len(at)])
    R[np.ix_(at, rest)] = -H11_inv_H12
    R[np.ix_(rest, at)] = H11_inv_H12.T
    R[np.ix_(rest, rest)] = H[np.ix_(rest, rest)] - H[np.ix_(rest, at)] @ H11_inv_H12
    return R


def given_forces_and_accelerations(model, tau, qdd, free):
    """Forces, zero for prescribed joints, and accelerations, zero for free ones, (nv,)."""
    of_free = np.zeros(model.nv, int)
    of_free[variables(model, free)] = 1
    of_free = of_free.reshape(model.nv, *[1] * (np.ndim(tau) - 1))  # vectors, or columns
    return tau * of_free, qdd * (1 - of_free)


def variables(model, joints):
    """Numbers of the velocity variables of some joints, in order."""
    slices = [np.arange(model.nv)[model.v_slice[i]] for i in sorted(joints)]
    return np.concatenate([np.zeros(0, int), *slices])


# --- loops: the given accelerations are coordinates ----------------------------------------------
# With the variables of the prescribed joints among the coordinates ``y`` of a closed mechanism,
# ``qdd = G ydd + g``, its equation of motion splits like that of a tree,
#
#     [H11 H12] [ydd_1]   [C1]   [G1ᵀ tau]
#     [H21 H22] [qdd_2] + [C2] = [G2ᵀ tau]
#
# where ``G1ᵀ tau`` has no force of the prescribed joints in it, and ``G2ᵀ tau`` each of them once:
# the columns ``G2`` put ``-K2 qdd_2`` on the right-hand side of the constraints.


def closed_hybrid_dynamics(allowed, tau, qdd, f_ext=None, *, free):
    """Joint forces and accelerations of hybrid dynamics with loops, (2, nv).

    Args:
        allowed: the motions that loops allow (``closed.independent``), the variables of the
            prescribed joints among the independent ones.
        tau: joint forces, (nv,), of which those of the free joints are read.
        qdd: joint accelerations, (nv,), of which those of the other joints are read.
        f_ext: external forces on bodies in base coordinates, or None.
        free: numbers of the joints whose forces are given.
    """
    return np.stack(_closed_hybrid(allowed, tau, qdd, allowed.bias(f_ext), allowed.g, free))


def closed_response(allowed, *, free):
    """Derivatives of hybrid dynamics with loops by what is given, a column for each."""
    units, none = np.eye(allowed.model.nv, dtype=int), 0 * allowed.g[:, None]
    zero = np.zeros((allowed.G.shape[1], 1), int)
    tau, qdd = _closed_hybrid(allowed, units, units, zero, none, free)
    of_free = np.zeros(allowed.model.nv, bool)
    of_free[variables(allowed.model, free)] = True
    return np.where(of_free[:, None], qdd, tau)


def _closed_hybrid(allowed, tau, qdd, bias, g, free):
    """Forces and accelerations of hybrid dynamics with loops, in independent coordinates."""
    model, G, H = allowed.model, allowed.G, allowed.inertia
    tau, given = given_forces_and_accelerations(model, tau, qdd, free)
    coordinates = np.array(allowed.columns, dtype=int)
    at = variables(model, free)
    first = np.flatnonzero(np.isin(coordinates, at))  # of ydd_1, and of qdd_2
    second = np.flatnonzero(~np.isin(coordinates, at))
    ydd = given[coordinates]
    drive = G.T @ tau - bias - H @ ydd  # what the coordinates that are free feel
    moved = np.zeros(np.shape(drive), dtype=np.result_type(drive, float))
    moved[first] = allowed.solve(drive[first], first)
    qdd = G @ (ydd + moved) + g
    forces = np.zeros(np.shape(qdd), dtype=np.result_type(drive, float))
    forces[coordinates[second]] = (H @ moved - drive)[second]
    return tau + forces, qdd


# --- loops that tie the given accelerations: ranks are decided by values, on floats ---------------

TIED = 1e-6
"""Largest difference of given accelerations from allowed ones, relative to their size."""


def tied_hybrid_dynamics(allowed, tau, qdd, f_ext=None, *, free):
    """Hybrid dynamics when loops tie the given accelerations; forces, accelerations, violation.

    Loops leave combinations of the given accelerations no choice. Those that are given must agree
    with them; of the forces that then produce the motion, the smallest are returned.

    Args:
        allowed: the motions that loops allow, in any coordinates.
        tau: as for ``closed_hybrid_dynamics``; so are ``qdd``, ``f_ext`` and ``free``.
        qdd: joint accelerations, (nv,).
        f_ext: external forces on bodies, or None.
        free: numbers of the joints whose forces are given.

    Returns:
        ``tau`` and ``qdd``, (2, nv), and the differences of the given accelerations, (nv,).
    """
    model, G, H = allowed.model, allowed.G, allowed.inertia
    tau, given = given_forces_and_accelerations(model, tau, qdd, free)
    at = np.setdiff1d(np.arange(model.nv), variables(model, free))
    U, s, Vt = np.linalg.svd(G[at])
    rank = int(np.sum(s > RANK_TOLERANCE * max(s, default=0.0)))
    ydd = Vt[:rank].T @ ((U[:, :rank].T @ (given - allowed.g)[at]) / s[:rank])
    N, bias = Vt[rank:].T, allowed.bias(f_ext)
    if N.shape[1]:
        ydd = ydd - N @ np.linalg.solve(N.T @ H @ N, N.T @ (H @ ydd + bias - G.T @ tau))
    required = H @ ydd + bias - G.T @ tau  # Gᵀ of the forces at the given joints
    forces = np.zeros(model.nv)
    forces[at] = U[:, :rank] @ ((Vt[:rank] @ required) / s[:rank])
    found, off = G @ ydd + allowed.g, np.zeros(model.nv)
    off[at] = (given - found)[at]
    return np.stack([tau + forces, found]), off


# --- the inertia of the free joints --------------------------------------------------------------


def moved_bodies(model, free):
    """Whether a free joint supports each body, ``ν(fd)`` of RBDA (9.5); entry 0: the base."""
    moved = [False] * (model.body_count + 1)
    for i in range(1, model.body_count + 1):
        moved[i] = i in free or moved[model.parent[i]]
    return moved


def _from_whole(model, q, free):
    """Inertia ``H11`` of the free joints, cut out of ``H``; for models with couplings."""
    at = variables(model, free)
    return crba.joint_space_inertia(model, q)[np.ix_(at, at)]


@instead(_from_whole)
def free_joint_inertia(model, q, free):
    """Inertia ``H11`` of the free joints alone, without other work — RBDA Table 9.1."""
    lam, at = model.parent, model.v_slice
    moved, row = moved_bodies(model, free), _rows(model, free)
    X, S = joint_transforms(model, q)
    n = len(variables(model, free))
    H11 = np.zeros((n, n), dtype=model.scalar_type(q))
    IC = list(model.inertia)
    for i in range(model.body_count, 0, -1):
        if moved[lam[i]]:
            IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
        if i not in free or at[i].start == at[i].stop:
            continue
        F = IC[i] @ S[i]
        H11[row[i], row[i]] = armature.joint_inertia(model, i, S[i].T @ F)
        j = i
        while moved[lam[j]]:
            F = X[j].T @ F
            j = lam[j]
            if j in free:
                H11[row[i], row[j]] = F.T @ S[j]
                H11[row[j], row[i]] = H11[row[i], row[j]].T
    return H11


def _rows(model, free):
    """Slices of the rows of ``H11`` that belong to each free joint."""
    rows, start = {}, 0
    for i in sorted(free):
        stop = start + model.v_slice[i].stop - model.v_slice[i].start
        rows[i], start = slice(start, stop), stop
    return rows


def expanded_reduced_parent(model, free):
    """Expanded parent array ``λ'`` of free joints only: structural zeros of ``H11``."""
    if model.couplings:
        at = variables(model, free)
        return elimination_tree(inertia_pattern(model)[np.ix_(at, at)])
    nv = [model.joint[i].nv if i in free else 0 for i in range(model.body_count + 1)]
    return tree.expanded_parent(model.parent, nv)  # which looks through joints without any


def _solver(model, q, free):
    """Function from ``b`` to ``H11⁻¹ b``, by sparse factors."""
    owner = [i for i in sorted(free) for _ in range(*model.v_slice[i].indices(model.nv))]
    lam = expanded_reduced_parent(model, free)
    H11 = free_joint_inertia(model, q, free)
    L = ltl.ltdl(H11, lam, lambda k: moves_no_inertia(model, owner[k]))
    return lambda b: ltl.solve_ltdl(L, lam, b)


def _solve(model, q, b, free):
    """Accelerations of the free joints under forces ``b``, (n,)."""
    return _solver(model, q, free)(b) if len(b) else b


def _at_free(model, qdd_free, at):
    """Accelerations of all joints, (nv,), zero but for the free ones."""
    qdd = np.zeros(model.nv, dtype=qdd_free.dtype if len(at) else int)
    qdd[at] = qdd_free
    return qdd


# --- by articulated bodies -----------------------------------------------------------------------


@instead(hybrid_dynamics)
def hybrid_dynamics_by_articulated_bodies(model, q, qd, tau, qdd, f_ext=None, *, free):
    """Hybrid dynamics by articulated bodies — RBDA §9.2, Tables 9.2 and 9.3."""
    lam, at, X_T, I = model.parent, model.v_slice, model.tree_transform, model.inertia
    X, S, v, c, pA, U, D_inv, u, a = (model.table() for _ in range(9))
    IA = model.copy_table(I)
    both = model.zeros((2, "nv"), q, qd, tau, qdd, *([] if f_ext is None else [f_ext]))

    v[0] = model.zero_motion
    for i in model.outward():
        X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        c[i] = c_J + crm(v[i], v_J)
        if i not in free:
            c[i] = c[i] + S[i] @ qdd[at[i]]
        pA[i] = crf(v[i], I[i] @ v[i])

    if f_ext is not None:
        fx = external_forces(model, X, f_ext)
        for i in model.outward():
            pA[i] = pA[i] - fx[i]

    for i in model.inward():
        Ia = IA[i]
        if i in free:
            U[i], D_inv[i] = joint_response(model, i, IA[i], S[i])
            u[i] = tau[at[i]] - S[i].T @ pA[i]
            Ia = apparent_inertia(model, i, IA[i], S[i], U[i], D_inv[i])
        if lam[i] != 0:
            pa = pA[i] + Ia @ c[i]
            if i in free:
                pa = pa + U[i] @ (D_inv[i] @ u[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ pa

    a[0] = -model.a_g
    for i in model.outward():
        a[i] = X[i] @ a[lam[i]] + c[i]
        if i in free:
            qdd_i = D_inv[i] @ (u[i] - U[i].T @ a[i])
            a[i] = a[i] + S[i] @ qdd_i
            both[0, at[i]], both[1, at[i]] = tau[at[i]], qdd_i
        else:
            tau_i = S[i].T @ (IA[i] @ a[i] + pA[i])
            both[0, at[i]] = armature.force(model, i, tau_i, qdd)
            both[1, at[i]] = qdd[at[i]]
    return both


def _response_by_solves(model, q, *, free):
    """Derivatives of hybrid dynamics, (nv, nv), by solving with ``H11``; with couplings."""
    return response(model, q, free)


@instead(_response_by_solves)
def response_by_articulated_bodies(model, q, *, free):
    """Derivatives of hybrid dynamics, (nv, nv), by articulated bodies, column by column."""
    lam, at = model.parent, model.v_slice
    X, S = joint_transforms(model, q)
    R, IA = model.matrix(q), model.copy_table(model.inertia)
    Ia, U, D_inv, u, c, p = (model.table() for _ in range(6))
    a = model.table(model.zero_motion)
    for i in model.inward():
        Ia[i] = IA[i]
        if i in free:
            U[i], D_inv[i] = joint_response(model, i, IA[i], S[i])
            Ia[i] = apparent_inertia(model, i, IA[i], S[i], U[i], D_inv[i])
        if lam[i] != 0:
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia[i] @ X[i]
        R[at[i], at[i]], p[i] = np.eye(model.joint[i].nv, dtype=int), Force.zero()

    for k in model.variables():  # a force if its joint is free, else an acceleration
        for i in model.inward():
            if i in free:
                u[i] = R[at[i], k] - S[i].T @ p[i]
                pa = p[i] + U[i] @ (D_inv[i] @ u[i])
            else:
                c[i] = S[i] @ R[at[i], k]
                pa = p[i] + Ia[i] @ c[i]
            if lam[i] != 0:
                p[lam[i]] = p[lam[i]] + X[i].T @ pa
        for i in model.outward():
            a[i] = X[i] @ a[lam[i]]
            if i in free:
                R[at[i], k] = D_inv[i] @ (u[i] - U[i].T @ a[i])
                a[i] = a[i] + S[i] @ R[at[i], k]
            else:
                a[i] = a[i] + c[i]
                tau_i = S[i].T @ (IA[i] @ a[i] + p[i])
                if armature.is_present(model, i):
                    tau_i = tau_i + model.armature[at[i]] * R[at[i], k]
                R[at[i], k] = tau_i
            p[i] = Force.zero()
    return R
