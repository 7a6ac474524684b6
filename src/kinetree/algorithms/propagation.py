"""Propagating an articulated-body inertia across a joint — RBDA §7.2.2, (7.18)–(7.25).

``IA, pA`` describe a handle by ``f = IA a + pA``. Across the joint, in terms of the parent's
acceleration, the same force is ``f = Ia a_parent + pa``: the apparent inertia of a massless handle,
which can be added to that of the parent.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature, ltl
from kinetree.errors import SingularError
from kinetree.spatial import ArticulatedInertia, dyadic
from kinetree.spatial.ops import check_pivot


class Propagated(NamedTuple):
    """Apparent inertia and bias force of a handle, across its joint."""

    Ia: object
    """Apparent inertia; ``Ia S = 0``."""
    pa: object
    """Apparent bias force."""


def propagate(IA, pA, S, c, tau):
    """Inertia ``Ia`` and bias force ``pa`` of a child, felt by its parent — RBDA (7.23), (7.24).

    All in the same coordinates; ``c`` is the full velocity-product acceleration ``c_J + v × v_J``
    and ``tau`` the joint force.
    """
    U = IA @ S
    D_inv = inverse_joint_inertia(IA, S, S.T @ U)
    Ia = clear_rows(IA - dyadic(U, D_inv), S)
    return Propagated(Ia, pA + Ia @ c + U @ (D_inv @ (tau - S.T @ pA)))


def joint_response(model, i, IA, S):
    """Columns ``U = IA S`` and inverse ``D⁻¹`` of joint ``i``, with armature — Table 7.1."""
    U = IA @ S
    D = armature.joint_inertia(model, i, S.T @ U)
    return U, inverse_joint_inertia(IA, S, D, singular_at(model, i))


def apparent_inertia(model, i, IA, S, U, D_inv):
    """Apparent inertia ``Ia = IA - U D⁻¹ Uᵀ`` of a body across its joint ``i`` — RBDA Table 7.1."""
    Ia = IA - dyadic(U, D_inv)
    return Ia if armature.is_present(model, i) else clear_rows(Ia, S)


def inverse_joint_inertia(IA, S, D, message=ltl.not_positive):
    """Inverse of the joint inertia ``D = Sᵀ IA S``; SingularError if the joint moves no inertia.

    ``D`` is compared with ``joint_inertia_bound``: after rounding, the inertia of a rod about its
    own axis is not zero but small.
    """
    D = np.array(D)
    for k in range(len(D)):
        D[k, k] = check_pivot(D[k, k], joint_inertia_bound(IA, S, k), lambda k=k: message(k))
    return 1 / D if len(D) == 1 else ltl.Inverse(D, message)


def joint_inertia_bound(IA, S, k):
    """Upper bound of ``sᵀ IA s`` for all ``s`` as long as column ``k`` of ``S``.

    Rounding errors of ``Sᵀ IA S`` are proportional to it. If ``S`` depends on the configuration,
    all its columns are included: one of them may vanish (the rotation vector of a full turn).
    """
    I, S = _dense(IA).diagonal(), _dense(S)
    w = 1 if len(S) == 3 else 3  # angular coordinates, in the plane and in space
    bound = 0
    for part in (slice(0, w), slice(w, None)):
        if not _is_structural_zero(S[part, k]):
            s = S[part, k] if _is_structure(S[part]) else S[part].ravel()
            bound = bound + sum(I[part]) * (s @ s)
    return bound


def _is_structural_zero(s):
    """Whether an array is zero in every state: integer zeros."""
    return _is_structure(s) and not np.any(s)


def _is_structure(s):
    """Whether an array consists of integer zeros and ones, constants of every state."""
    return np.issubdtype(s.dtype, np.integer)


def singular_variables(model, i):
    """Error message for a joint ``i`` at a singularity of its variables."""
    return (
        f"forward dynamics is singular: the variables of joint {model.joint_names[i - 1]!r} "
        f"({type(model.joint[i]).__name__}) are singular in this configuration, by gimbal lock or "
        f"at a full turn of a rotation vector. Stay away from it, take other variables for the "
        f"same state (joint.reparameterize), or make it a kinetree.Spherical joint, which is "
        f"singular nowhere"
    )


def require_regular_variables(model, q):
    """Raise SingularError if a joint's variables are singular at the configuration ``q``, (nq,).

    For solvers that determine ranks, which would mistake the singularity for a constraint.
    """
    for i, joint in enumerate(model.joint[1:], start=1):
        if joint.may_be_singular and abs(joint.singularity(q[model.q_slice[i]])) < _SINGULAR:
            raise SingularError(singular_variables(model, i))


_SINGULAR = 1e-12  # of the determinant of the motion subspace: rounding errors


def moves_no_inertia(model, i):
    """Error message: forward dynamics has no solution because joint ``i`` moves no inertia."""
    joint, I = model.joint[i], model.inertia[i]
    if joint.nv > 1 and not joint.constant_subspace and has_full_inertia(I):
        return singular_variables(model, i)
    return (
        f"forward dynamics is singular: joint {model.joint_names[i - 1]!r} moves no inertia, so "
        f"any force gives it infinite acceleration. Give body {model.body_names[i]!r} or a body "
        f"beyond it mass away from the joint axis, or make the joint Fixed"
    )


def has_full_inertia(I):
    """Whether the inertia is positive definite; not for a point, a rod or a symbolic inertia."""
    if is_formula(I) or not I.mass > 0:
        return False
    moments = np.linalg.eigvalsh(I.rotational_at_center)
    return bool(moments[0] > 1e-9 * moments[-1])


def is_formula(I):
    """Whether an inertia has traced or symbolic entries."""
    return I.parameters().dtype == object


def singular_at(model, i):
    """Lazily composed message of ``moves_no_inertia`` for joint ``i``."""
    return lambda k: moves_no_inertia(model, i)


def clear_rows(Ia, S):
    """``Ia`` with exact zeros where ``Ia S = 0`` requires them — RBDA §7.2.2.

    When ``S`` consists of coordinate vectors (a revolute joint about z, a planar joint), the rows
    and columns of ``Ia`` that they select are zero. Only integers in ``S`` are considered: they are
    structure, not values, so generated code drops the same rows in every configuration.
    """
    keep = kept_rows(S)
    if isinstance(Ia, np.ndarray):
        return Ia * np.outer(keep, keep)
    if not isinstance(Ia, ArticulatedInertia):
        return Ia.clear(keep)
    w, v = keep[:3], keep[3:]
    return ArticulatedInertia(Ia.I * np.outer(w, w), Ia.H * np.outer(w, v), Ia.M * np.outer(v, v))


def kept_rows(S):
    """Mask (6,) that is 0 in coordinates that ``S`` spans, else 1; all 1 for oblique axes."""
    S = S if isinstance(S, np.ndarray) else S.to_array()
    keep = np.ones(len(S), dtype=int)
    if np.issubdtype(S.dtype, np.integer):
        moved = np.any(S != 0, axis=1)
        if np.count_nonzero(moved) == S.shape[1]:
            keep[moved] = 0
    return keep


def _dense(x):
    """Spatial vector, columns or inertia as an array; arrays unchanged."""
    if isinstance(x, np.ndarray):
        return x
    return x.to_array() if hasattr(x, "to_array") else x.to_matrix()
