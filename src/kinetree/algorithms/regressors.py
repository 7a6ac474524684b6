"""Regressors: quantities that are linear in the inertial parameters, as matrices — RBDA §9.7.

The ten parameters of a body, ``p = (m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``, are
those of ``Inertia.parameters``: mass, first moment and rotational inertia about the origin of the
body's own frame. Momentum, energy, and the force that a motion takes, are linear in them; with the
parameters of all bodies one after the other, so are those of the mechanism, ``tau = Y p``.
"""

import numpy as np

from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
)
from kinetree.algorithms.rnea_tensor import acceleration_tensor
from kinetree.errors import UnknownNameError
from kinetree.model.views import axial_view
from kinetree.spatial import Force, Motion, cross, skew
from kinetree.spatial.ops import less, select
from kinetree.spatial.vector3 import ZERO3


@for_all_joints(force)
def regressor_in_base_coordinates(model, q, qd, qdd, *, bodies=None):
    """Regressor ``Y`` with ``tau = Y p``, (nv, 10 body_count), computed in base coordinates.

    ``bodies`` are those whose columns are wanted, all by default.
    """
    at, J, A = model.v_slice, model.table(), model.table()
    _, S = joint_transforms(model, q)
    X, v, a = body_accelerations(model, q, qd, qdd, a_0=-model.a_g)
    X_0, Y = base_transforms(model, X), model.zeros(("nv", "parameters"), q, qd, qdd)
    for i in model.outward():
        J[i] = X_0[i].inv_apply(S[i])
        A[i] = X_0[i].T @ force_columns(v[i], a[i])
    for i in model.outward():
        if bodies is None or i in bodies:
            Y[at[i], model.parameter_slice(i)] = J[i].T @ A[i]
        for j in model.above(i, bodies):
            Y[at[j], model.parameter_slice(i)] = J[j].T @ A[i]
    return Y


@for_all_joints(force)
def regressor(model, q, qd, qdd, *, friction=False, rotors=False):
    """Regressor ``Y`` with ``tau = Y p``, (nv, 10 body_count), plus friction and rotor columns.

    The force on body ``i`` is ``A_i p_i`` and reaches the joints that support the body by the
    transpose of its Jacobian: ``Y_i = J_iᵀ A_i``.
    """
    lam, NB, at = model.parent, model.body_count, model.v_slice
    Y = np.zeros((model.nv, 10 * NB), dtype=model.scalar_type(q, qd, qdd))
    _, S = joint_transforms(model, q)
    X, v, a = body_accelerations(model, q, qd, qdd, a_0=-model.a_g)
    J = [{} for _ in range(NB + 1)]  # by body: columns of its Jacobian, in its own coordinates
    for i in range(1, NB + 1):
        J[i] = {j: X[i] @ S_j for j, S_j in J[lam[i]].items()} | {i: S[i]}
        A = force_columns(v[i], a[i])
        for j, S_j in J[i].items():
            Y[at[j], 10 * (i - 1) : 10 * i] = S_j.T @ A
    return np.concatenate([Y, *joint_columns(qd, qdd, friction, rotors)], axis=1)


def regressor_by_axial_turns(model, q, qd, qdd, *, friction=False, rotors=False):
    """Regressor ``Y`` with ``tau = Y p``, with axial rotations factored out."""
    return regressor(axial_view(model), q, qd, qdd, friction=friction, rotors=rotors)


def joint_columns(qd, qdd, friction=False, rotors=False):
    """Regressor columns of effects at the joints, friction and rotors, as (nv, nv) matrices.

    Viscous friction ``d qd``, Coulomb friction ``k sign(qd)``, and the inertia of rotors that turn
    with the joints, ``j qdd``.
    """
    diagonals = {"viscous": qd, "coulomb": [_sign(x) for x in qd], "rotor": qdd}
    return [_diagonal(diagonals[effect]) for effect in joint_effects(friction, rotors)]


def joint_effects(friction=False, rotors=False):
    """Names of joint effects (friction, rotors) in the order of their regressor columns."""
    if not isinstance(friction, (bool, str)) or friction not in (False, True, *_FRICTION):
        raise UnknownNameError(
            f"friction must be True, False, 'viscous' or 'coulomb', got {friction!r}"
        )
    kinds = _FRICTION if friction is True else (friction,) if friction else ()
    return (*kinds, "rotor") if rotors else tuple(kinds)


_FRICTION = ("viscous", "coulomb")


def _sign(x):
    """Sign of a number with the opposite sign, 0 at zero."""
    return select(less(x, 0), -1, select(less(0, x), 1, 0))


def _diagonal(x):
    """Diagonal matrix of a vector of any kind of numbers."""
    D = np.zeros((len(x), len(x)), dtype=np.asarray(x).dtype)
    D[np.arange(len(x)), np.arange(len(x))] = x
    return D


def force_columns(v, a):
    """Matrix ``A`` with ``I a + v ×* I v = A p``, ten force columns — RBDA (2.68).

    In terms of the acceleration ``d`` of the origin and the tensor ``Ω = ω̇× + ω× ω×``: the force is
    ``m d + Ω h``, its moment ``h × d + I ω̇ + ω × I ω``.
    """
    w, wd = v.angular, a.angular
    d = a.linear + cross(w, v.linear)
    turning = _rotational_columns(wd) + cross(w, _rotational_columns(w))
    return _columns(d, acceleration_tensor(w, wd), -skew(d), turning)


def momentum_columns(v):
    """Matrix ``B`` with ``I v = B p``, ten force columns — RBDA (2.63)."""
    w, u = v.angular, v.linear
    return _columns(u, skew(w), -skew(u), _rotational_columns(w))


def _columns(mass, moment_force, moment_moment, turning):
    """Ten force columns from the parts of mass, first moments and rotational inertia."""
    none = np.zeros((3, 6), dtype=int)
    return Force(
        np.concatenate([ZERO3[:, None], moment_moment, turning], axis=1),
        np.concatenate([mass[:, None], moment_force, none], axis=1),
    )


def _rotational_columns(w):
    """Matrix ``L`` with ``I w = L (I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``, (3, 6)."""
    x, y, z = w
    return np.array([[x, y, 0, z, 0, 0], [0, x, y, 0, z, 0], [0, 0, 0, x, y, z]])


def momentum_regressor(model, q, qd):
    """Regressor of the momentum about the base origin, (6, 10 body_count)."""
    X, v = body_velocities(model, q, qd)
    X_0, Y = base_transforms(model, X), model.zeros((6, "parameters"), q, qd)
    for i in model.outward():
        Y[:, model.parameter_slice(i)] = (X_0[i].T @ momentum_columns(v[i])).to_array()
    return Y


def kinetic_energy_regressor(model, q, qd):
    """Regressor of the kinetic energy, (10 body_count,)."""
    (_, v), y = body_velocities(model, q, qd), model.zeros(("parameters",), q, qd)
    for i in model.outward():
        y[model.parameter_slice(i)] = _kinetic(v[i])
    return y


def _kinetic(v: Motion):
    """Coefficients of a body's kinetic energy in its ten inertial parameters."""
    (x, y, z), u = v.angular, v.linear
    squares = [x * x / 2, x * y, y * y / 2, x * z, y * z, z * z / 2]
    return np.array([u @ u / 2, *cross(u, v.angular), *squares])


def potential_energy_regressor(model, q):
    """Regressor of the potential energy of gravity, (10 body_count,)."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    y = model.zeros(("parameters",), q)
    for i in model.outward():
        y[model.parameter_slice(i)] = _potential(X_0[i], model.gravity)
    return y


def _potential(X_0, g):
    """Coefficients of a body's potential energy ``-g·(m r + Eᵀ h)`` in its ten parameters."""
    return np.array([-(g @ X_0.r), *(-(X_0.E @ g)), *np.zeros(6, dtype=int)])


def energy_regressor(model, q, qd):
    """Regressor of the sum of kinetic and potential energy, (10 body_count,)."""
    X, v = body_velocities(model, q, qd)
    X_0, y = base_transforms(model, X), model.zeros(("parameters",), q, qd)
    for i in model.outward():
        y[model.parameter_slice(i)] = _kinetic(v[i]) + _potential(X_0[i], model.gravity)
    return y
