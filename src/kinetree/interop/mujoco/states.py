"""Joint vectors of one mechanism, from kinetree to MuJoCo and back.

Joints are matched by name. Positions, velocities, accelerations and forces are (..., n) arrays;
leading axes are a batch. What goes into ``to_*`` is kinetree's, the configuration too; what goes
into ``from_*`` is MuJoCo's.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import InteropError, ShapeError
from kinetree.interop.coupled_states import (
    all_joints,
    leading_forces,
    leading_positions,
    leading_variables,
)
from kinetree.joints import Free
from kinetree.loaders.mjcf.joints import variables
from kinetree.loaders.mjcf.maps import JointMap, map_of
from kinetree.loaders.mjcf.values import joint_names, model_name
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_numbers, check_finite
from kinetree.writers.mjcf.elements import Part, parts_of

__all__ = ["from_a", "from_q", "from_tau", "from_v", "to_a", "to_q", "to_tau", "to_v"]

_KINDS = ("free", "ball", "slide", "hinge")  # mjtJoint


def to_q(model: Model, mj_model: Any, q: ArrayLike) -> Array:
    """MuJoCo's ``qpos``, (..., mj_model.nq), from kinetree's configuration, (..., nq)."""
    model, q = all_joints(model, q)
    q = as_configuration(model, q)
    out = np.empty((*q.shape[:-1], mj_model.nq), dtype=q.dtype)
    for p in _pairs(model, mj_model):
        out[..., p.mj_q] = p.map.to_position(q[..., p.q]) + p.reference
    return out


def from_q(model: Model, mj_model: Any, qpos: ArrayLike) -> Array:
    """Kinetree's configuration from MuJoCo's ``qpos``; quaternions come back with unit length."""
    return leading_positions(model, _from_q(model.uncoupled, mj_model, qpos))


def _from_q(model, mj_model, qpos):
    """Positions of all joints."""
    qpos = _vector(mj_model, qpos, "qpos", mj_model.nq)
    out = np.empty((*qpos.shape[:-1], model.nq), dtype=qpos.dtype)
    for p in _pairs(model, mj_model):
        out[..., p.q] = p.map.from_position(qpos[..., p.mj_q] - p.reference)
        for part in p.unit_parts:
            _normalize(out[..., p.q][..., part], p.name)
    return as_configuration(model, out, "q from MuJoCo")


def to_v(model: Model, mj_model: Any, q: ArrayLike, qd: ArrayLike) -> Array:
    """MuJoCo's ``qvel`` from kinetree's configuration and velocity."""
    model, q, qd = all_joints(model, q, qd=qd)
    q, qd = as_configuration(model, q), as_joint_vector(model, qd, "qd")
    return _to_tangent(model, mj_model, qd, (q, qd), "to_velocity")


def from_v(model: Model, mj_model: Any, qpos: ArrayLike, qvel: ArrayLike) -> Array:
    """Kinetree's velocity from MuJoCo's ``qpos`` and ``qvel``."""
    full, qvel = model.uncoupled, _vector(mj_model, qvel, "qvel", mj_model.nv)
    state = _from_q(full, mj_model, qpos), qvel
    return leading_variables(model, _from_tangent(full, mj_model, qvel, state, "from_velocity"))


def to_a(model: Model, mj_model: Any, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """MuJoCo's ``qacc`` from kinetree's configuration, velocity and acceleration."""
    model, q, qd, qdd = all_joints(model, q, qd=qd, qdd=qdd)
    q, qd = as_configuration(model, q), as_joint_vector(model, qd, "qd")
    qdd = as_joint_vector(model, qdd, "qdd")
    return _to_tangent(model, mj_model, qdd, (q, qd, qdd), "to_acceleration")


def from_a(model: Model, mj_model: Any, qpos: ArrayLike, qvel: ArrayLike, qacc: ArrayLike) -> Array:
    """Kinetree's acceleration from MuJoCo's ``qpos``, ``qvel`` and ``qacc``."""
    full, qvel = model.uncoupled, _vector(mj_model, qvel, "qvel", mj_model.nv)
    qacc = _vector(mj_model, qacc, "qacc", mj_model.nv)
    state = _from_q(full, mj_model, qpos), qvel, qacc
    return leading_variables(model, _from_tangent(full, mj_model, qacc, state, "from_acceleration"))


def to_tau(model: Model, mj_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """MuJoCo's joint forces from kinetree's: the same power at any velocity."""
    model, q, tau = all_joints(model, q, tau=tau)
    q, tau = as_configuration(model, q), as_joint_vector(model, tau, "tau")
    return _to_tangent(model, mj_model, tau, (q, tau), "to_velocity")


def from_tau(model: Model, mj_model: Any, qpos: ArrayLike, tau: ArrayLike) -> Array:
    """Kinetree's joint forces from MuJoCo's: the same power at any velocity."""
    full, tau = model.uncoupled, _vector(mj_model, tau, "tau", mj_model.nv)
    q = _from_q(full, mj_model, qpos)
    forces = _from_tangent(full, mj_model, tau, (q, tau), "from_velocity")
    return leading_forces(model, q, forces)


def _to_tangent(model, mj_model, like, arrays, convert):
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    out = np.empty((*batch, mj_model.nv), dtype=like.dtype)
    for p in _pairs(model, mj_model):
        parts = [a[..., p.q if k == 0 else p.v] for k, a in enumerate(arrays)]
        out[..., p.mj_v] = getattr(p.map, convert)(*parts)
    return out


def _from_tangent(model, mj_model, like, arrays, convert):
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    out = np.empty((*batch, model.nv), dtype=like.dtype)
    for p in _pairs(model, mj_model):
        parts = [a[..., p.q if k == 0 else p.mj_v] for k, a in enumerate(arrays)]
        out[..., p.v] = getattr(p.map, convert)(*parts)
    return out


class _Pair(NamedTuple):
    """A joint of kinetree and its counterpart: where their variables are, how they translate."""

    name: str
    q: slice
    v: slice
    mj_q: list
    mj_v: list
    reference: np.ndarray
    map: JointMap
    unit_parts: tuple


def _pairs(model, mj_model):
    """All joints that have variables, matched by name."""
    theirs = {name: j for j, name in enumerate(joint_names(mj_model))}
    left, pairs = set(theirs), []
    for i, name in enumerate(model.joint_names, start=1):
        joint = model.joint[i]
        if not joint.nq:
            continue
        parts = _parts(mj_model, joint, name, theirs)
        for part in parts:
            if part.name not in theirs:
                raise InteropError(
                    f"MuJoCo's model {model_name(mj_model)!r} has no joint {part.name!r}, which "
                    f"model {model.name!r} has; joints are matched by name"
                )
        at = [variables(mj_model, theirs[part.name]) for part in parts]
        for part, there in zip(parts, at, strict=True):
            if _KINDS[there.kind] != part.kind:
                raise InteropError(
                    f"joint {name!r} is {joint!r} in model {model.name!r}, and a "
                    f"{_KINDS[there.kind]} joint in MuJoCo's: not the same mechanism"
                )
        left -= {part.name for part in parts}
        mj_q = [k for there in at for k in range(there.q.start, there.q.stop)]
        mj_v = [k for there in at for k in range(there.v.start, there.v.stop)]
        reference = [x for there in at for x in [there.reference] * (there.q.stop - there.q.start)]
        where = (model.q_slice[i], model.v_slice[i], mj_q, mj_v, np.array(reference))
        pairs.append(_Pair(name, *where, map_of(joint), joint.unit_parts))
    if left:
        raise InteropError(
            f"model {model.name!r} has no joint {', '.join(map(repr, sorted(left)))}, which "
            f"MuJoCo's model {model_name(mj_model)!r} has; joints are matched by name"
        )
    return pairs


def _parts(mj_model, joint, name, theirs):
    if isinstance(joint, Free) and name in theirs:
        return (Part(name, "free", None, slice(0, 7), slice(0, 6)),)
    return parts_of(joint, name)


def _normalize(p, name):
    length = np.linalg.norm(p, axis=-1, keepdims=True)
    if np.any(length < 1e-12):
        raise ShapeError(f"MuJoCo's qpos, joint {name!r}: a quaternion of length zero")
    off = np.abs(length - 1) > 8 * np.finfo(p.dtype).eps  # a unit quaternion stays as it is
    np.divide(p, length, out=p, where=off)


def _vector(mj_model, x, name, size):
    a = as_numbers(x, f"MuJoCo's {name}")
    if a.ndim == 0 or a.shape[-1] != size:
        raise ShapeError(
            f"MuJoCo's {name} must have shape (..., {size}) for its model "
            f"{model_name(mj_model)!r}, got {a.shape}"
        )
    return check_finite(a, f"MuJoCo's {name}")
