"""A Coriolis matrix that conserves energy, and Christoffel symbols — Lynch & Park §9.4.

``C(q, qd) qd`` is the velocity part of the bias force for many matrices ``C``; the one computed
here also makes ``dH/dt - 2C`` skew-symmetric (passivity). No matrix is differentiated: the
recursion costs O(n d) like the composite-rigid-body algorithm (S. Echeandia and P. Wensing,
"Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body systems",
2021).
"""

import numpy as np

from kinetree.algorithms.coupled import congruent, for_all_joints, instead
from kinetree.algorithms.crba import joint_space_inertia
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import body_velocities, joint_transforms, subspace_rate
from kinetree.spatial import Force, Plucker, crm, cross, skew
from kinetree.spatial.arithmetic import rotate_general
from kinetree.spatial.axial_screw import AxialScrew
from kinetree.spatial.vector3 import identity3


def coupled_coriolis(C, at):
    """Coriolis matrix in independent variables, ``Gᵀ(C G + H dG/dt)`` — RBDA (9.26)."""
    C = C @ at.G
    return at.G.T @ (C + joint_space_inertia(at.model, at.q) @ at.G_rate if at.second else C)


def _coupled_rate(rate, at):
    """Rate ``d(GᵀHG)/dt`` of the inertia matrix of a model with couplings."""
    rate = congruent(rate, at)
    if not at.second:
        return rate
    K = at.G.T @ joint_space_inertia(at.model, at.q) @ at.G_rate
    return rate + K + K.T


@for_all_joints(_coupled_rate)
def inertia_rate(model, q, qd):
    """Time derivative ``dH/dt = C + Cᵀ`` of the inertia matrix, (nv, nv)."""
    rate, at = model.matrix(q, qd), model.v_slice

    def store(i, j, C_ij, C_ji):
        rate[at[i], at[j]], rate[at[j], at[i]] = C_ij + C_ji.T, C_ji + C_ij.T

    _recursion(model, q, qd, *_at_rest(model, q), body_velocities(model, q, qd)[1], store)
    return rate


@for_all_joints(coupled_coriolis)
def half_inertia_rate(model, q, qd):
    """Matrix ``C`` with ``dH/dt = C + Cᵀ``, (nv, nv): sum of ``Jᵀ (I dJ/dt + B J)`` over bodies."""
    C, at = model.matrix(q, qd), model.v_slice

    def store(i, j, C_ij, C_ji):
        C[at[i], at[j]], C[at[j], at[i]] = C_ij, C_ji

    _recursion(model, q, qd, *_at_rest(model, q), body_velocities(model, q, qd)[1], store)
    return C


def _at_rest(model, q):
    """Transforms ``X``, axes ``S`` and composite inertias of all bodies."""
    X, S = joint_transforms(model, q)
    lam, IC = model.parent, model.copy_table(model.inertia)
    for i in model.inward():
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
    return X, S, IC


def _recursion(model, q, qd, X, S, IC, v, store):
    """Compute the blocks ``C_ij``, ``C_ji`` of joints that support each other; calls ``store``."""
    lam, I = model.parent, model.inertia
    Sd, B, F, Fd, Ft = (model.table() for _ in range(5))
    for i in model.outward():
        Sd[i] = subspace_rate(model, i, q, qd, v[i])
        B[i] = BodyCoriolis.of(I[i], v[i])

    BC = model.copy_table(B)
    for i in model.inward():
        if lam[i] != 0:
            BC[lam[i]] = BC[lam[i]] + X[i].T @ BC[i] @ X[i]
        F[i], Ft[i] = IC[i] @ S[i], BC[i].T @ S[i]
        Fd[i] = IC[i] @ Sd[i] + BC[i] @ S[i]
        C_ii = S[i].T @ Fd[i]
        store(i, i, C_ii, C_ii)
        if lam[i] != 0:
            F[i], Fd[i], Ft[i] = X[i].T @ F[i], X[i].T @ Fd[i], X[i].T @ Ft[i]
        for j in model.above(i):
            store(i, j, F[i].T @ Sd[j] + Ft[i].T @ S[j], S[j].T @ Fd[i])
            if lam[j] != 0:
                F[i], Fd[i], Ft[i] = X[j].T @ F[i], X[j].T @ Fd[i], X[j].T @ Ft[i]


@refuses("prescribed", use="rnea.coriolis_force: prescribed motion is not a product with qd")
def coriolis_matrix(model, q, qd):
    """Coriolis matrix ``C(q, qd)``, (nv, nv), with ``dH/dt - 2C`` skew-symmetric.

    Where ``qd`` is the rate of ``q``, it is the matrix of the Christoffel symbols,
    ``C_ij = Σ_k Γ_ijk qd_k`` — Lynch & Park (9.87). With prescribed joints no matrix does both.
    """
    return half_inertia_rate(model, q, qd)


@refuses("prescribed", use="rnea.coriolis_force: prescribed motion is not a product with qd")
def christoffel(model, q):
    """Christoffel symbols, ``C_ij = Σ_k Γ_ijk qd_k``, (nv, nv, nv) — Lynch & Park (9.86), (9.87).

    Where ``qd`` is the rate of ``q`` these are the Christoffel symbols of the first kind,
    symmetric in j and k. For spherical, free and similar joints they are the coefficients of the
    same recursion in the tangent space, ``∂C_ij/∂qd_k``, and not symmetric: the frame of velocity
    variables turns with the body.
    """
    n = model.nv
    by_themselves = coriolis_matrix(model, q, model.zero_velocity)  # prescribed joints
    slices = [coriolis_matrix(model, q, e_k) - by_themselves for e_k in np.eye(n, dtype=int)]
    return np.moveaxis(np.array(slices).reshape(n, n, n), 0, 2)


@refuses("prescribed", use="rnea.coriolis_force: prescribed motion is not a product with qd")
@instead(christoffel)
def christoffel_by_planes(model, q):
    """Christoffel symbols (nv, nv, nv), from the Coriolis matrix of each unit velocity."""
    lam, at = model.parent, model.v_slice
    X, S, IC = _at_rest(model, q)
    symbols, v = model.zeros(("nv", "nv", "nv"), q), model.table(model.zero_motion)
    for k in model.variables():
        qd = model.unit(k)
        for i in model.outward():
            v[i] = X[i] @ v[lam[i]] + S[i] @ qd[at[i]]

        def store(i, j, C_ij, C_ji, k=k):
            symbols[at[i], at[j], k], symbols[at[j], at[i], k] = C_ij, C_ji

        _recursion(model, q, qd, X, S, IC, v, store)
    return symbols


class BodyCoriolis:
    """The Coriolis matrix ``B`` of one body: ``B v = v ×* I v`` and ``B + Bᵀ = dI/dt``.

    A body is particles, and a particle at ``x`` has the Jacobian ``[-x×  1]`` with the rate
    ``[-ẋ×  0]``. The sum of ``m [-x×  1]ᵀ [-ẋ×  0]`` is ``B = [[P, 0], [-p×, 0]]``, with the
    linear momentum ``p`` and ``P = -Σ m x× ẋ×``: twelve numbers.
    """

    __slots__ = ("P", "p")

    def __init__(self, P, p):
        self.P, self.p = P, p

    @classmethod
    def of(cls, I, v):
        """Coriolis matrix ``B`` of a rigid body with inertia ``I`` at velocity ``v``."""
        m, h, w, u = I.mass, I.first_moment, v.angular, v.linear
        xx = np.trace(I.rotational) * identity3() / 2 - I.rotational  # Σ m x xᵀ
        return cls(-cross(w, xx) - skew(h) @ skew(u), m * u + cross(w, h))

    def __add__(self, other):
        return BodyCoriolis(self.P + other.P, self.p + other.p)

    def __matmul__(self, m):
        return Force(self.P @ m.angular, -cross(self.p, m.angular))

    def arrays(self):
        """Arrays that the matrix consists of, for tables of recorded loops."""
        return [self.P, self.p]

    def like(self, arrays):
        """Coriolis matrix of a body made of other arrays; the inverse of ``arrays``."""
        return BodyCoriolis(*arrays)

    @property
    def T(self):
        """Transposed matrix ``Bᵀ``, for products with motions."""
        return _Transposed(self)

    def inverse_transformed(self, X):
        """Coriolis matrix ``Xᵀ B X``, transformed back to the old coordinates."""
        if isinstance(X, AxialScrew):
            turn, r = X.rotation.inverse(), X.rotation.rows([0, 0, X.d])
            P, p = turn.general(self.P), turn.vectors(self.p)
        else:
            P, p, r = rotate_general(X.E.T, self.P), X.E.T @ self.p, X.r
        return BodyCoriolis(P - skew(r) @ skew(p), p)


class _Transposed:
    def __init__(self, B):
        self.B = B

    def __matmul__(self, m):
        moment = self.B.P.T @ m.angular + cross(self.B.p, m.linear)
        return Force(moment, np.zeros(moment.shape, dtype=int))


# --- in the coordinates of root bodies: shorter for short chains ---------------------------------


@refuses("prescribed", use="rnea.coriolis_force: prescribed motion is not a product with qd")
@for_all_joints(coupled_coriolis)
def coriolis_matrix_in_root_coordinates(model, q, qd):
    """Coriolis matrix (nv, nv) in root coordinates: fewer operations for short chains.

    A child of the base and what hangs on it form their own mechanism. In the coordinates of
    that child composite bodies are plain sums, and the axes of its joint are constants; in exchange
    every entry is a full scalar product. Joints must have constant axes and no prescribed motion.
    """
    lam, at = model.parent, model.v_slice
    X, S = joint_transforms(model, q)
    J, Jd, I, B, F, Fd, Ft = (model.table() for _ in range(7))
    X_root, v = model.table(model.identity_transform), model.table(model.zero_motion)
    for i in model.outward():
        if lam[i] == 0:
            X_root[i], J[i], I[i] = Plucker.identity(), S[i], model.inertia[i]
        else:
            X_root[i] = X[i] @ X_root[lam[i]]
            J[i], I[i] = X_root[i].inv_apply(S[i]), X_root[i].inv_apply(model.inertia[i])
        v[i] = v[lam[i]] + J[i] @ qd[at[i]]
        Jd[i] = crm(v[lam[i]] if model.joint[i].nv == 1 else v[i], J[i])  # v_J × J = 0 for one axis
        B[i] = BodyCoriolis.of(I[i], v[i])

    C, IC, BC = model.matrix(q, qd), model.copy_table(I), model.copy_table(B)
    for i in model.inward():
        if lam[i] != 0:
            IC[lam[i]], BC[lam[i]] = IC[lam[i]] + IC[i], BC[lam[i]] + BC[i]
        F[i], Fd[i], Ft[i] = IC[i] @ J[i], IC[i] @ Jd[i] + BC[i] @ J[i], BC[i].T @ J[i]
        C[at[i], at[i]] = J[i].T @ Fd[i]
        for j in model.above(i):
            C[at[j], at[i]] = J[j].T @ Fd[i]
            C[at[i], at[j]] = F[i].T @ Jd[j] + Ft[i].T @ J[j]
    return C
