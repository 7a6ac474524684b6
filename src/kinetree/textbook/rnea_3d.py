"""The original recursive Newton–Euler algorithm, in 3-D vectors — RBDA §5.4, Table 5.2.

After Luh, Walker and Paul: classical accelerations instead of spatial ones, forces at the mass
centre, and one set of equations for each kind of joint. Linear velocities are never needed. The
table is for an unbranched chain of revolute joints; prismatic and fixed joints and branches are
added here. Nothing in it uses spatial vectors, which makes it an independent oracle.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.honours import refuses
from kinetree.errors import JointError
from kinetree.joints import Fixed, Prismatic, Revolute
from kinetree.joints.axis import axis_rotation
from kinetree.spatial.vector3 import ZERO3, cross, identity3


class NewtonEuler3D(NamedTuple):
    """Everything the two passes compute, per body and in body coordinates."""

    tau: np.ndarray
    """Joint forces [N or N·m], (nv,)."""
    w: list
    """Angular velocities."""
    wd: list
    """Angular accelerations."""
    vd: list
    """Classical accelerations of the body origins, minus gravity."""
    F: list
    """Net forces on the bodies, minus gravity."""
    N: list
    """Net moments about the mass centres."""
    f: list
    """Forces transmitted across the joints."""
    n: list
    """Moments transmitted across the joints, about the body origins."""


@refuses("prescribed", use="rnea.inverse_dynamics")
@for_all_joints(lambda result, at: result._replace(tau=force(result.tau, at)))
def newton_euler(model, q, qd, qdd, f_ext=None):
    """Recursive Newton-Euler passes in 3D vectors with by-products (RBDA Table 5.2)."""
    lam, NB = model.parent, model.body_count
    w, wd, vd, F, N, f, n, E, r = ([None] * (NB + 1) for _ in range(9))
    E_0, r_0 = [identity3()] + [None] * NB, [ZERO3] + [None] * NB
    tau = [model.zero_velocity[:0]] + [None] * NB

    w[0], wd[0], vd[0] = ZERO3, ZERO3, -model.gravity
    for i in range(1, NB + 1):
        p, k = lam[i], model.v_slice[i]
        E[i], r[i] = _link(model, i, q[model.q_slice[i]])
        w[i], wd[i] = E[i] @ w[p], E[i] @ wd[p]
        vd[i] = E[i] @ (vd[p] + cross(wd[p], r[i]) + cross(w[p], cross(w[p], r[i])))
        if isinstance(model.joint[i], Revolute):
            z = np.array(model.joint[i].axis)
            wd[i] = wd[i] + z * qdd[k] + cross(w[i], z * qd[k])
            w[i] = w[i] + z * qd[k]
        elif isinstance(model.joint[i], Prismatic):
            z = np.array(model.joint[i].axis)
            vd[i] = vd[i] + z * qdd[k] + 2 * cross(w[i], z * qd[k])

        m, c, I_cm = _mass_center_inertia(model.inertia[i])
        F[i] = m * (vd[i] + cross(wd[i], c) + cross(w[i], cross(w[i], c)))
        N[i] = I_cm @ wd[i] + cross(w[i], I_cm @ w[i])
        f[i], n[i] = F[i], N[i] + cross(c, F[i])
        if f_ext is not None:
            E_0[i], r_0[i] = E[i] @ E_0[p], r_0[p] + E_0[p].T @ r[i]
            moment = f_ext[i].angular - cross(r_0[i], f_ext[i].linear)
            f[i], n[i] = f[i] - E_0[i] @ f_ext[i].linear, n[i] - E_0[i] @ moment

    for i in range(NB, 0, -1):
        tau[i] = _joint_force(model.joint[i], f[i], n[i])
        if lam[i] != 0:
            f_i = E[i].T @ f[i]
            f[lam[i]] = f[lam[i]] + f_i
            n[lam[i]] = n[lam[i]] + E[i].T @ n[i] + cross(r[i], f_i)
    tau = armature.forces(model, np.concatenate(tau), qdd)
    return NewtonEuler3D(tau, w, wd, vd, F, N, f, n)


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces of inverse dynamics by 3D vectors, for simple trees.

    For trees of revolute, prismatic and fixed joints; any other joint is a ``JointError``.
    """
    return newton_euler(model, q, qd, qdd, f_ext).tau


def _link(model, i, q):
    """Rotation from parent to body, and position of the body frame in the parent."""
    joint, E, r = model.joint[i], model.tree_transform[i].E, model.tree_transform[i].r
    if isinstance(joint, Revolute):
        return axis_rotation(joint.axis, q[0]) @ E, r
    if isinstance(joint, Prismatic):
        return E, r + E.T @ (np.array(joint.axis) * q[0])
    if isinstance(joint, Fixed):
        return E, r
    raise JointError(
        f"the 3-D Newton-Euler equations know revolute, prismatic and fixed joints only, but "
        f"joint {model.joint_names[i - 1]!r} is a {type(joint).__name__}; use "
        f"rnea.inverse_dynamics, which takes any joint"
    )


def _joint_force(joint, f, n):
    """Generalised force of a joint from the force and moment through it."""
    if isinstance(joint, Fixed):
        return ZERO3[:0]
    z = np.array(joint.axis)
    return np.array([z @ n if isinstance(joint, Revolute) else z @ f])


def _mass_center_inertia(I):
    """Mass, centre of mass and central inertia of a body; the origin if massless."""
    if I.mass == 0:
        return I.mass, ZERO3, I.rotational
    return I.mass, I.center_of_mass, I.rotational_at_center
