"""Joint vectors of one mechanism, from kinetree to MuJoCo and back.

Joints are matched by name. Positions, velocities, accelerations and forces are (..., n) arrays;
leading axes are a batch. What goes into ``to_*`` is kinetree's, the configuration too; what goes
into ``from_*`` is MuJoCo's.
"""

from functools import partial
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import InteropError, ShapeError
from kinetree.interop.states import Pair, States
from kinetree.joints import Free
from kinetree.loaders.mjcf.joints import variables
from kinetree.loaders.mjcf.maps import map_of
from kinetree.loaders.mjcf.values import joint_names, model_name
from kinetree.model import Model
from kinetree.writers.mjcf.elements import Part, parts_of

_KINDS = ("free", "ball", "slide", "hinge")  # mjtJoint


def to_q(model: Model, mj_model: Any, q: ArrayLike) -> Array:
    """MuJoCo's ``qpos``, (..., mj_model.nq), from kinetree's configuration, (..., nq)."""
    return _states(model, mj_model).to_position(q)


def from_q(model: Model, mj_model: Any, qpos: ArrayLike) -> Array:
    """Kinetree's configuration from MuJoCo's ``qpos``; quaternions come back with unit length."""
    return _states(model, mj_model).from_position(qpos, "qpos")


def to_v(model: Model, mj_model: Any, q: ArrayLike, qd: ArrayLike) -> Array:
    """MuJoCo's ``qvel`` from kinetree's configuration and velocity."""
    return _states(model, mj_model).to_tangent("velocity", q, qd=qd)


def from_v(model: Model, mj_model: Any, qpos: ArrayLike, qvel: ArrayLike) -> Array:
    """Kinetree's velocity from MuJoCo's ``qpos`` and ``qvel``."""
    states = _states(model, mj_model)
    return states.from_tangent("velocity", qpos, position="qpos", qvel=qvel)


def to_a(model: Model, mj_model: Any, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """MuJoCo's ``qacc`` from kinetree's configuration, velocity and acceleration."""
    return _states(model, mj_model).to_tangent("acceleration", q, qd=qd, qdd=qdd)


def from_a(model: Model, mj_model: Any, qpos: ArrayLike, qvel: ArrayLike, qacc: ArrayLike) -> Array:
    """Kinetree's acceleration from MuJoCo's ``qpos``, ``qvel`` and ``qacc``."""
    states = _states(model, mj_model)
    return states.from_tangent("acceleration", qpos, position="qpos", qvel=qvel, qacc=qacc)


def to_tau(model: Model, mj_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """MuJoCo's joint forces from kinetree's: the same power at any velocity."""
    return _states(model, mj_model).to_tangent("velocity", q, tau=tau)


def from_tau(model: Model, mj_model: Any, qpos: ArrayLike, tau: ArrayLike) -> Array:
    """Kinetree's joint forces from MuJoCo's: the same power at any velocity."""
    return _states(model, mj_model).from_tangent("velocity", qpos, position="qpos", tau=tau)


def _states(model, mj_model):
    sizes = mj_model.nq, mj_model.nv
    match = partial(_pairs, mj_model)
    return States(model, "MuJoCo", model_name(mj_model), *sizes, match, partial(_settle, model))


def _pairs(mj_model, model):
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
        where = (model.q_slice[i], model.v_slice[i], mj_q, mj_v)
        pairs.append(Pair(name, *where, map_of(joint), np.array(reference)))
    if left:
        raise InteropError(
            f"model {model.name!r} has no joint {', '.join(map(repr, sorted(left)))}, which "
            f"MuJoCo's model {model_name(mj_model)!r} has; joints are matched by name"
        )
    return pairs, []


def _parts(mj_model, joint, name, theirs):
    if isinstance(joint, Free) and name in theirs:
        return (Part(name, "free", None, slice(0, 7), slice(0, 6)),)
    return parts_of(joint, name)


def _settle(model, pair, theirs, q):
    """``q`` with quaternions of unit length."""
    for part in model.uncoupled.joint[model.uncoupled.joint_index(pair.name)].unit_parts:
        p = q[..., part]
        length = np.linalg.norm(p, axis=-1, keepdims=True)
        if np.any(length < 1e-12):
            raise ShapeError(f"MuJoCo's qpos, joint {pair.name!r}: a quaternion of length zero")
        off = np.abs(length - 1) > 8 * np.finfo(p.dtype).eps  # a unit quaternion stays as it is
        np.divide(p, length, out=p, where=off)
    return q
