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
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.spatial.vector3 import ZERO3, cross, identity3


@for_all_joints(force)
def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """``tau = H(q) qdd + C(q, qd)``."""
    lam, NB, at = model.parent, model.body_count, model.v_slice
    E, r, S, w, wd, vd, Om, f, n, tau = ([None] * (NB + 1) for _ in range(10))

    w[0], wd[0], vd[0], Om[0] = ZERO3, ZERO3, -model.gravity, np.zeros((3, 3), dtype=int)
    for i in range(1, NB + 1):
        X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
        X = X_J @ model.tree_transform[i]
        E[i], r[i] = X.E, X.r
        w_J, v_J, a_J = v_J.angular, v_J.linear, S[i] @ qdd[at[i]] + c_J
        w[i] = E[i] @ w[lam[i]] + w_J
        wd[i] = E[i] @ wd[lam[i]] + cross(w[i], w_J) + a_J.angular
        slide = 2 * cross(w[i], v_J) - cross(w_J, v_J) + a_J.linear  # Coriolis
        vd[i] = E[i] @ (vd[lam[i]] + Om[lam[i]] @ r[i]) + slide
        Om[i] = acceleration_tensor(w[i], wd[i])
        f[i], n[i] = _inertia_force(model.inertia[i], vd[i], Om[i])

    if f_ext is not None:
        f, n = _minus_external(model, E, r, f, n, f_ext)

    for i in range(NB, 0, -1):
        tau[i] = S[i].angular.T @ n[i] + S[i].linear.T @ f[i]
        if lam[i] != 0:
            force = E[i].T @ f[i]
            f[lam[i]] = f[lam[i]] + force
            n[lam[i]] = n[lam[i]] + E[i].T @ n[i] + cross(r[i], force)
    return armature.forces(model, np.concatenate([model.zero_velocity[:0], *tau[1:]]), qdd)


def bias_force(model, q, qd, f_ext=None):
    """``C(q, qd)``: the joint forces at zero acceleration; gravity included."""
    return inverse_dynamics(model, q, qd, model.zero_velocity, f_ext)


@for_all_joints(force)
def gravity_force(model, q):
    """Joint forces that hold the mechanism against gravity, whatever prescribed joints do."""
    lam, NB = model.parent, model.body_count
    X, S = joint_transforms(model, q)
    vd, f, n, tau = [-model.gravity] + [None] * NB, *([None] * (NB + 1) for _ in range(3))
    for i in range(1, NB + 1):
        vd[i] = X[i].E @ vd[lam[i]]
        f[i] = model.inertia[i].mass * vd[i]
        n[i] = cross(model.inertia[i].first_moment, vd[i])
    for i in range(NB, 0, -1):
        tau[i] = S[i].angular.T @ n[i] + S[i].linear.T @ f[i]
        if lam[i] != 0:
            turned = X[i].E.T @ f[i]
            f[lam[i]] = f[lam[i]] + turned
            n[lam[i]] = n[lam[i]] + X[i].E.T @ n[i] + cross(X[i].r, turned)
    return np.concatenate([model.zero_velocity[:0], *tau[1:]])


def acceleration_tensor(w, wd):
    """``ω̇× + ω× ω×``: 6m + 9a."""
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
    K = Om @ J
    turn = np.array([K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1]])
    return m * vd + Om @ h, turn + cross(h, vd)


def _minus_external(model, E, r, f, n, f_ext):
    """Forces in body coordinates less the external ones, which come in base coordinates."""
    E_0, r_0 = [identity3()], [ZERO3]  # orientation and position of each body in the base
    for i in range(1, model.body_count + 1):
        p = model.parent[i]
        E_0.append(E[i] @ E_0[p])
        r_0.append(r_0[p] + E_0[p].T @ r[i])
        force, moment = f_ext[i].linear, f_ext[i].angular
        f[i] = f[i] - E_0[i] @ force
        n[i] = n[i] - E_0[i] @ (moment - cross(r_0[i], force))
    return f, n
