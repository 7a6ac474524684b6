"""Newton–Euler with angular acceleration tensors — Balafoutis & Hejazi; RBDA §5.4 in short form.

The same two passes as Table 5.1, in 3-D vectors and with ``Ω = ω̇× + ω× ω×``, the matrix that takes
a point of a body to its acceleration relative to the origin. No linear velocity is needed and the
inertia force of a body is ``m v̇ + Ω h``, its moment the skew part of ``Ω J``, where ``J`` is the
matrix of second moments. It takes about a third fewer operations than spatial vectors; the
compiler prefers it where it wins.
"""

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.spatial.vector3 import ZERO3, cross, identity3


@for_all_joints(force)
def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces ``tau = H(q) qdd + C(q, qd)``, (nv,), by acceleration tensors."""
    lam = model.parent
    E, r, S, f, n, tau = ([None] * (model.body_count + 1) for _ in range(6))
    for i, body in limb_by_limb(inertia_forces(model, q, qd, qdd, f_ext), lam):
        if body:
            E[i], r[i], S[i], f[i], n[i] = body
            continue
        tau[i] = S[i].angular.T @ n[i] + S[i].linear.T @ f[i]
        if lam[i] != 0:
            force = E[i].T @ f[i]
            f[lam[i]] = f[lam[i]] + force
            n[lam[i]] = n[lam[i]] + E[i].T @ n[i] + cross(r[i], force)
    return armature.forces(model, np.concatenate([model.zero_velocity[:0], *tau[1:]]), qdd)


def limb_by_limb(bodies, lam):
    """Depth-first walk: ``i, body`` where a body begins, ``i, None`` after all of its subtree.

    Tuples ``bodies`` begin with the number of a body, depth first: a limb is done with before the
    next one begins, so that few numbers wait in generated code.
    """
    begun = [0]
    for i, *body in bodies:
        while begun[-1] != lam[i]:
            yield begun.pop(), None
        begun.append(i)
        yield i, body
    yield from ((i, None) for i in reversed(begun[1:]))


def inertia_forces(model, q, qd, qdd, f_ext=None):
    """Force and moment that accelerate each body, with placement and axes, depth first.

    ``f`` and ``n`` are the force and the moment that give body ``i`` its acceleration, less the
    external ones, which come in base coordinates; ``E`` and ``r`` are its placement on the parent.
    """
    lam, NB, at = model.parent, model.body_count, model.v_slice
    w, wd, vd, Om, E_0, r_0 = ([None] * (NB + 1) for _ in range(6))
    w[0], wd[0], vd[0], Om[0] = ZERO3, ZERO3, -model.gravity, np.zeros((3, 3), dtype=int)
    E_0[0], r_0[0] = identity3(), ZERO3  # orientation and position in the base
    for *_, i in sorted(model.support[1:]):
        X_J, S, v_J, c_J = model.jcalc(i, q, qd)
        X = X_J @ model.tree_transform[i]
        E, r, p = X.E, X.r, lam[i]
        w_J, v_J, a_J = v_J.angular, v_J.linear, S @ qdd[at[i]] + c_J
        w[i] = E @ w[p] + w_J
        wd[i] = E @ wd[p] + cross(w[i], w_J) + a_J.angular
        slide = 2 * cross(w[i], v_J) - cross(w_J, v_J) + a_J.linear  # Coriolis
        vd[i] = E @ (vd[p] + Om[p] @ r) + slide
        Om[i] = acceleration_tensor(w[i], wd[i])
        for k, axis in enumerate(map(_axis, E)):  # a turn about an axis keeps ω² across it
            if axis is not None and _axis([*np.delete(w_J, k), 1]) == 2:
                Om[i][k, k] = Om[p][axis, axis]
        f, n = _inertia_force(model.inertia[i], vd[i], Om[i])
        if f_ext is not None:
            E_0[i], r_0[i] = E @ E_0[p], r_0[p] + E_0[p].T @ r
            force, moment = f_ext[i].linear, f_ext[i].angular
            f = f - E_0[i] @ force
            n = n - E_0[i] @ (moment - cross(r_0[i], force))
        yield i, E, r, S, f, n


def bias_force(model, q, qd, f_ext=None):
    """Bias force ``C(q, qd)``, gravity included, (nv,), by acceleration tensors."""
    return inverse_dynamics(model, q, qd, model.zero_velocity, f_ext)


def acceleration_tensor(w, wd):
    """Acceleration tensor ``ω̇× + ω× ω×``, (3, 3)."""
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return np.array(
        [
            [-(yy + zz), xy - wd[2], xz + wd[1]],
            [xy + wd[2], -(xx + zz), yz - wd[0]],
            [xz - wd[1], yz + wd[0], -(xx + yy)],
        ]
    )


def _inertia_force(inertia, vd, Om):
    """Force and moment about the origin that give a body its acceleration."""
    m, h, I = inertia.mass, inertia.first_moment, inertia.rotational
    J = (I[0, 0] + I[1, 1] + I[2, 2]) / 2 * identity3() - I
    if J.dtype != object:  # differences that are rounding errors would cost operations
        J = np.where(np.abs(J) <= 8 * np.finfo(float).eps * np.max(np.abs(I)), 0.0, J)
    K = Om @ J
    turn = np.array([K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1]])
    return m * vd + Om @ h, turn + cross(h, vd)


def _axis(row):
    """Number of the coordinate axis that a constant row is along; None for others."""
    known = all(isinstance(x, (int, float, np.number)) for x in row)
    return [abs(x) for x in row].index(1) if known and sorted(map(abs, row)) == [0, 0, 1] else None
