"""Recursive Newton–Euler algorithm in base coordinates — RBDA §5.3, basic equations of Table 5.1.

Shorter than the version in body coordinates and dearer: every ``S`` and ``I`` must be brought to
base coordinates first. It is the oracle of ``rnea``.
"""

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.algorithms.rnea import NewtonEuler
from kinetree.spatial import crf, crm


@for_all_joints(lambda result, at: result._replace(tau=force(result.tau, at)))
def newton_euler(model, q, qd, qdd, f_ext=None, *, gravity=True):
    """Recursive Newton-Euler equations in base coordinates with by-products — RBDA (5.7)–(5.11)."""
    lam, NB = model.parent, model.body_count
    v, a, f, S = ([None] * (NB + 1) for _ in range(4))
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    tau = [model.zero_velocity[:0]] + [None] * NB

    v[0] = model.zero_motion
    a[0] = -model.a_g if gravity else model.zero_motion
    for i in range(1, NB + 1):
        _, S_i, v_J, c_J = model.jcalc(i, q, qd)
        S[i], v_J, c_J = (X_0[i].inv_apply(m) for m in (S_i, v_J, c_J))
        I = X_0[i].inv_apply(model.inertia[i])
        v[i] = v[lam[i]] + v_J
        a[i] = a[lam[i]] + S[i] @ qdd[model.v_slice[i]] + c_J + crm(v[i], v_J)
        f[i] = I @ a[i] + crf(v[i], I @ v[i])
        if f_ext is not None:
            f[i] = f[i] - f_ext[i]

    for i in range(NB, 0, -1):
        tau[i] = S[i].T @ f[i]
        if lam[i] != 0:
            f[lam[i]] = f[lam[i]] + f[i]
    return NewtonEuler(armature.forces(model, np.concatenate(tau), qdd), X_0, v, a, f)


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces ``H qdd + C`` of inverse dynamics in base coordinates, (nv,)."""
    return newton_euler(model, q, qd, qdd, f_ext).tau
