"""Derivatives of inverse dynamics by recursion, O(n d) like the composite-rigid-body algorithm.

A motion of joint ``j`` along its axis ``J_j`` carries everything beyond it. With the parent's
velocity ``v_λ`` and acceleration ``a_λ`` it changes the force ``f_k = I_k a_k + v_k ×* I_k v_k`` of
a body ``k`` beyond the joint by

    ∂f_k/∂q_j  = J_j ×* f_k + I_k Jdd_j + B_k Jd_j        Jd_j  = v_λ × J_j
    ∂f_k/∂qd_j = I_k (v_λ + v_j) × J_j + B_k J_j          Jdd_j = a_λ × J_j + v_λ × Jd_j

where ``B`` is twice the matrix of ``coriolis.BodyCoriolis``. On the right only ``I``, ``B`` and
``f`` belong to the body, so they are summed over subtrees once. Where joint ``i`` itself is beyond
joint ``j``, its axes turn along, and the first term drops out of ``J_iᵀ f`` (J. Carpentier and
N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018; S. Singh, R. Russo
and P. Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector
algebra", 2022).

In which coordinates the vectors are makes no difference to these equations: in those of one frame
for all (``composite_bodies``), where nothing has to be transformed, or in those of each body
(``composite_bodies_in_body_coordinates``), where the axes are constants and composite inertias cost
little.

Where ``S`` is not constant in child coordinates, a joint changes velocities and accelerations
beyond it by ``∂v_J/∂q_j`` and ``∂(S qdd + c_J)/∂q_j`` as well (``joint_variations``), so that

    Jd_j  = v_λ × J_j + ∂v_J/∂q_j
    Jdd_j = a_λ × J_j + v_λ × Jd_j + ∂(S qdd + c_J)/∂q_j + v_j × ∂v_J/∂q_j

``∂c_J/∂qd_j`` joins ``(v_λ + v_j) × J_j``, and ``(∂S/∂q_j)ᵀ f`` the forces of the joint itself.

Derivatives with respect to ``q`` are along ``model.integrate(q, e_j)``. No joint may have a
prescribed motion: ``is_applicable(model)``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coriolis import BodyCoriolis
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.joint_variations import can_vary, joint_variation
from kinetree.errors import JointError
from kinetree.spatial import Plucker, crf, crm, skew
from kinetree.spatial.axial_screw import AxialScrew, ScrewProduct


class InverseDynamicsDerivatives(NamedTuple):
    """Derivatives of the joint forces, each (nv, nv): row ``i`` for ``tau_i``."""

    dq: np.ndarray
    """Along the tangent directions of the configuration."""
    dqd: np.ndarray
    """With respect to the velocity variables."""
    dqdd: np.ndarray
    """With respect to the acceleration variables: the joint-space inertia matrix ``H``."""


class CompositeBodies(NamedTuple):
    """Terms without accelerations, per body, in the coordinates chosen for it."""

    X_0: list
    """Transforms from base coordinates."""
    X: list | None
    """Transforms from the coordinates of the parent; None if one frame serves all."""
    v: list
    """Velocities."""
    v_lam: list
    """Velocities of the parents."""
    J: list
    """Axes of the joints: ``S`` in these coordinates."""
    Jd: list
    """``v_λ × J``."""
    I: list
    """Inertias."""
    B: list
    """Coriolis matrices, times two."""
    IC: list
    """``I``, summed over subtrees."""
    BC: list
    """``B``, summed over subtrees."""
    F: list
    """``IC J``: momentum of a subtree that its joint moves at unit speed."""
    variation: Callable
    """Function of a body: the ``JointVariation`` of its joint in these coordinates, or None."""


@refuses("couplings", use="kinetree.differentiate")
def composite_bodies(model, q, qd):
    """Positions, velocities and composite inertias of all bodies in one frame's coordinates.

    A child of the base and what hangs on it form their own mechanism. Its coordinates are
    those of the child, in which the axes of that joint, all six of a floating base, are constants.
    """
    lam, at = model.parent, model.v_slice
    X_0, X_root = (model.table(model.identity_transform) for _ in range(2))

    def variation(i):
        w = joint_variation(model, i, q, qd)
        return w if w is None or lam[i] == 0 else w.map(X_root[i].inv_apply)

    v, v_lam, J, Jd, I, B = (model.table(model.zero_motion), *(model.table() for _ in range(5)))
    for i in model.outward():
        require_applicable(model, i)
        X_J, S, _, _ = model.jcalc(i, q, qd)
        X_i = X_J @ model.tree_transform[i]
        if lam[i] == 0:
            X_0[i], X_root[i], J[i], I[i] = X_i, Plucker.identity(), S, model.inertia[i]
        else:
            X_0[i], X_root[i] = X_0[lam[i]], X_i @ X_root[lam[i]]
            J[i], I[i] = X_root[i].inv_apply(S), X_root[i].inv_apply(model.inertia[i])
        v_lam[i], v[i] = v[lam[i]], v[lam[i]] + J[i] @ qd[at[i]]
        Jd[i] = _moved_axes(v_lam[i], J[i], variation(i))
        B[i] = BodyCoriolis.of(I[i], 2 * v[i])
    IC, BC, F = _subtree_sums(model, None, I), _subtree_sums(model, None, B), model.table()
    for i in model.outward():
        F[i] = IC[i] @ J[i]
    return CompositeBodies(X_0, None, v, v_lam, J, Jd, I, B, IC, BC, F, variation)


def _moved_axes(v_lam, J, variation):
    """Derivative ``Jd`` of the velocity beyond a joint by the joint's position."""
    Jd = crm(v_lam, J)
    return Jd if variation is None else Jd + variation.v_q


@refuses("couplings", use="kinetree.differentiate")
def inverse_dynamics_derivatives(
    model, q, qd, qdd, f_ext=None, *, composite_bodies=composite_bodies
):
    """Derivatives of the joint forces ``tau`` with respect to ``q``, ``qd`` and ``qdd``.

    ``composite_bodies`` chooses the coordinates: the function of this name here or in
    ``body_coordinates``.
    """
    bodies = composite_bodies(model, q, qd)
    forces = composite_forces(model, bodies, qd, qdd, f_ext)
    dq, dqd = force_derivatives(model, bodies, forces)
    return InverseDynamicsDerivatives(dq, dqd, joint_space_inertia(model, bodies))


class CompositeForces(NamedTuple):
    """Terms with accelerations, per body, in the coordinates chosen for it."""

    Jdd: list
    """``a_λ × J + v_λ × Jd``."""
    fC: list
    """Forces that the motion takes, summed over subtrees; gravity counts as acceleration."""
    fx: list | None
    """External forces, summed over subtrees."""


def composite_forces(model, bodies, qd, qdd, f_ext=None):
    """Accelerations of all bodies and the composite forces (sums over subtrees)."""
    lam, at = model.parent, model.v_slice
    X_0, X, v, v_lam, J, Jd, I, B, *_ = bodies
    a, Jdd, f = model.table(model.zero_motion), model.table(), model.table()
    for i in model.outward():
        a_lam = a[lam[i]] if lam[i] != 0 else X_0[i] @ -model.a_g
        if lam[i] != 0 and X is not None:
            a_lam = X[i] @ a_lam
        Jdd[i], w = crm(a_lam, J[i]) + crm(v_lam[i], Jd[i]), bodies.variation(i)
        if w is None:
            a[i] = a_lam + J[i] @ qdd[at[i]] + Jd[i] @ qd[at[i]]  # v × v_J = v_λ × v_J
        else:
            a[i] = a_lam + J[i] @ qdd[at[i]] + w.c_J + crm(v_lam[i], J[i] @ qd[at[i]])
            Jdd[i] = Jdd[i] + w.acceleration(qdd[at[i]]) + crm(v[i], w.v_q)
        f[i] = I[i] @ a[i] + B[i] @ (v[i] / 2)
    fx = None
    if f_ext is not None:
        fx = model.table()
        for i in model.outward():
            fx[i] = X_0[i].star @ f_ext[i]
        fx = _subtree_sums(model, X, fx)
    return CompositeForces(Jdd, _subtree_sums(model, X, f), fx)


def joint_forces(model, bodies, forces, qdd):
    """Joint forces ``tau``, (nv,), from composite forces."""
    _, fC, fx = forces
    tau = model.table(model.zero_velocity[:0])
    for i in model.outward():
        f = fC[i] if fx is None else fC[i] - fx[i]
        tau[i] = armature.force(model, i, bodies.J[i].T @ f, qdd)
    return model.join_rows(tau)


def joint_space_inertia(model, bodies):
    """Inertia matrix ``H``, with ``J_jᵀ IC_i J_i`` where joint ``j`` supports body ``i``."""
    at, X, J, H, F = model.v_slice, bodies.X, bodies.J, model.matrix(bodies.F), model.table()
    for i in model.outward():
        F[i] = bodies.F[i]
        H[at[i], at[i]] = armature.joint_inertia(model, i, J[i].T @ F[i])
        _carry(model, X, i, i, F)
        for j in model.above(i):
            H[at[j], at[i]] = J[j].T @ F[i]
            H[at[i], at[j]] = H[at[j], at[i]].T
            _carry(model, X, i, j, F)
    return H


def force_derivatives(model, bodies, forces):
    """Derivatives ``∂tau/∂q``, ``∂tau/∂qd``, nonzero where one joint supports the other."""
    at, (_, X, v, v_lam, J, Jd, _, _, IC, BC, *_), (Jdd, fC, fx) = model.v_slice, bodies, forces
    like = (fC,) if fx is None else (fC, fx)
    dq, dqd = model.matrix(*like), model.matrix(*like)
    Jv, f_q, f_qd, F, M, turned = (model.table() for _ in range(6))
    for i in model.outward():
        # (v_λ + v) × J, where v_J × J = 0 for a joint with one axis
        w = bodies.variation(i)
        if w is not None:
            Jv[i] = crm(v_lam[i] + v[i], J[i]) + w.c_qd
        else:
            Jv[i] = 2 * Jd[i] if model.joint[i].nv == 1 else crm(v_lam[i] + v[i], J[i])
    for i in model.outward():
        f_q[i], f_qd[i] = IC[i] @ Jdd[i] + BC[i] @ Jd[i], IC[i] @ Jv[i] + BC[i] @ J[i]
        dq[at[i], at[i]], dqd[at[i], at[i]] = J[i].T @ f_q[i], J[i].T @ f_qd[i]
        f_q[i] = f_q[i] + crf(J[i], fC[i])  # felt by all joints that do not turn along
        F[i], M[i] = bodies.F[i], BC[i].T @ J[i]
        _carry(model, X, i, i, f_q, f_qd, F, M)
        if fx is not None:  # external forces stay where they are while the axis turns
            turned[i] = crf(J[i], fx[i])
            dq[at[i], at[i]] = dq[at[i], at[i]] - turned[i].T @ J[i]
            _carry(model, X, i, i, turned)
        w = bodies.variation(i)
        if w is not None:
            dq[at[i], at[i]] = dq[at[i], at[i]] + w.force(fC[i] if fx is None else fC[i] - fx[i])
        for j in model.above(i):
            dq[at[j], at[i]], dqd[at[j], at[i]] = J[j].T @ f_q[i], J[j].T @ f_qd[i]
            dq[at[i], at[j]] = F[i].T @ Jdd[j] + M[i].T @ Jd[j]
            dqd[at[i], at[j]] = F[i].T @ Jv[j] + M[i].T @ J[j]
            _carry(model, X, i, j, f_q, f_qd, F, M)
            if fx is not None:
                dq[at[i], at[j]] = dq[at[i], at[j]] - turned[i].T @ J[j]
                _carry(model, X, i, j, turned)
    return dq, dqd


def _carry(model, X, i, j, *rows):
    """Transform entries ``i`` of tables from coordinates of body ``j`` to those of its parent."""
    if X is not None and model.parent[j] != 0:
        for x in rows:
            x[i] = X[j].inv_apply(x[i])


def _to_parent(X, x):
    """Motion ``x`` of a body in the coordinates of its parent."""
    return X.inv_apply(x)


def _subtree_sums(model, X, x, to_parent=_to_parent):
    """Sums of ``x`` over subtrees, transformed to parents by ``X`` if that is given."""
    lam, total = model.parent, model.copy_table(x)
    for i in model.inward():
        if lam[i] != 0:
            x_i = total[i] if X is None else to_parent(X[i], total[i])
            total[lam[i]] = total[lam[i]] + x_i
    return total


def is_applicable(model) -> bool:
    """Whether all joints move by their variables alone, by differentiable equations."""
    return all(_is_regular(body.joint) for body in model.bodies)


def _is_regular(joint):
    """Whether a joint has no velocity or acceleration besides those of its variables."""
    if not joint.moves_by_itself:
        return can_vary(joint)
    _, _, v_J, c_J = joint.jcalc(joint.neutral(), np.zeros(joint.nv, dtype=int))
    return not (np.any(v_J.to_array() != 0) or np.any(c_J.to_array() != 0))


def require_applicable(model, i):
    """Raise JointError if analytical derivatives do not cover joint ``i``."""
    if not _is_regular(model.joint[i]):
        raise JointError(
            f"the recursive derivatives (rnea_derivatives.composite_bodies, "
            f"inverse_dynamics_derivatives, forward_dynamics_derivatives) do not cover "
            f"joint {model.joint_names[i - 1]!r}, {model.joint[i]!r}: it is "
            f"prescribed, or its jcalc takes no numbers with derivatives (joints.jet); "
            f"kinetree.differentiate does"
        )


@refuses("couplings", use="kinetree.differentiate")
def composite_bodies_in_body_coordinates(model, q, qd):
    """Positions, velocities and composite inertias, each in its body's coordinates.

    There the axes of joints are constants, mostly unit vectors, so that products with them cost
    nothing; but what goes from body to body has to be transformed. That takes fewer operations than
    one frame for all where transforms are cheap (``model.views.axial_view``) and axes point in many
    directions, and more where most axes are parallel.
    """
    lam = model.parent
    X_0, X, v, v_lam, S, Sd, I, B = (model.table() for _ in range(8))

    def variation(i):
        return joint_variation(model, i, q, qd)

    for i in model.outward():
        require_applicable(model, i)
        X_J, S[i], v_J, _ = model.jcalc(i, q, qd)
        X_i = X_J @ model.tree_transform[i]
        if lam[i] == 0:
            X_0[i], v_lam[i] = X_i, model.zero_motion
        else:
            X[i], X_0[i] = X_i, ScrewProduct(X_i, X_0[lam[i]])
            v_lam[i] = X_i @ v[lam[i]]
        v[i] = v_lam[i] + v_J
        Sd[i], I[i] = _moved_axes(v_lam[i], S[i], variation(i)), model.inertia[i]
        B[i] = BodyCoriolis.of(I[i], 2 * v[i])
    IC, BC = _subtree_sums(model, X, I), _subtree_sums(model, X, B, _coriolis_to_parent)
    F = model.table()
    for i in model.outward():
        F[i] = IC[i] @ S[i]
    return CompositeBodies(X_0, X, v, v_lam, S, Sd, I, B, IC, BC, F, variation)


def _coriolis_to_parent(X, B):
    """``Xᵀ B X``; about coordinate axes at their lower cost — RBDA §A.4."""
    if isinstance(X, ScrewProduct):
        for factor in X.factors:
            B = _coriolis_to_parent(factor, B)
        return B
    if not isinstance(X, AxialScrew):
        return B.inverse_transformed(X)
    back, shift = X.rotation.inverse(), X.rotation.rows([0, 0, X.d])
    p = back.vectors(B.p)
    return BodyCoriolis(back.general(B.P) - skew(shift) @ skew(p), p)
