"""Joint vectors and inertial parameters of one mechanism, from kinetree to Pinocchio and back.

Joints are matched by name, so the two models may number them differently. Positions, velocities,
accelerations and forces are (..., n) arrays; leading axes are a batch. What goes into ``to_*`` is
kinetree's, the configuration too; what goes into ``from_*`` is Pinocchio's.
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
from kinetree.interop.pinocchio.kinds import JointMap, as_kinetree, kind_of, same_joint
from kinetree.interop.pinocchio.leaves import followers, leaves
from kinetree.joints import Fixed
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.spatial import Inertia

__all__ = [
    "from_a",
    "from_parameters",
    "from_q",
    "from_tau",
    "from_v",
    "to_a",
    "to_parameters",
    "to_q",
    "to_tau",
    "to_v",
]


def to_q(model: Model, pin_model: Any, q: ArrayLike) -> Array:
    """Pinocchio's configuration, (..., pin_model.nq), from kinetree's, (..., nq)."""
    model, q = all_joints(model, q)
    q = as_configuration(model, q)
    pairs, _ = _pairs(model, pin_model)
    parts = [(p.pin_q, p.map.to_position(q[..., p.q])) for p in pairs]
    return _assemble(parts, pin_model.nq, q)


def from_q(model: Model, pin_model: Any, q: ArrayLike) -> Array:
    """Kinetree's configuration, (..., nq), from Pinocchio's, (..., pin_model.nq).

    Unbounded revolute joints come back as an angle in (-π, π].
    """
    return leading_positions(model, _from_q(model.uncoupled, pin_model, q))


def _from_q(model, pin_model, q):
    """Positions of all joints."""
    q = _pinocchio_vector(pin_model, q, "q", pin_model.nq)
    parts, (pairs, mimics) = [], _pairs(model, pin_model)
    for p in pairs:
        theirs = q[..., p.pin_q]
        values = p.map.from_position(theirs)
        off = ~np.isclose(p.map.to_position(values), theirs, rtol=1e-4, atol=1e-4).all(axis=-1)
        if np.any(off):
            raise ShapeError(
                f"Pinocchio's q{_sample(off)}, joint {p.name!r}: cosine and sine must be those of "
                f"an angle, got {theirs[off][0].tolist()}; see pinocchio.neutral and normalize"
            )
        parts.append((p.q, values))
    ours = _assemble(parts, model.nq, q)
    for f in mimics:
        ours[..., f.q] = f.scaling * ours[..., f.leader_q] + f.offset
    return as_configuration(model, ours, "q from Pinocchio")


def to_v(model: Model, pin_model: Any, q: ArrayLike, qd: ArrayLike) -> Array:
    """Pinocchio's velocity from kinetree's configuration and velocity."""
    model, q, qd = all_joints(model, q, qd=qd)
    return _to_tangent(model, pin_model, q, qd=qd)


def from_v(model: Model, pin_model: Any, q: ArrayLike, v: ArrayLike) -> Array:
    """Kinetree's velocity from Pinocchio's configuration and velocity."""
    return leading_variables(model, _from_tangent(model.uncoupled, pin_model, q, v=v))


def to_a(model: Model, pin_model: Any, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Pinocchio's acceleration from kinetree's configuration, velocity and acceleration."""
    model, q, qd, qdd = all_joints(model, q, qd=qd, qdd=qdd)
    return _to_tangent(model, pin_model, q, qd=qd, qdd=qdd)


def from_a(model: Model, pin_model: Any, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Kinetree's acceleration from Pinocchio's configuration, velocity and acceleration."""
    return leading_variables(model, _from_tangent(model.uncoupled, pin_model, q, v=v, a=a))


def to_tau(model: Model, pin_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """Pinocchio's joint forces from kinetree's: the same power at any velocity.

    Forces of joints that mimic others add to those of the others.
    """
    model, q, tau = all_joints(model, q, tau=tau)
    tau = np.array(as_joint_vector(model, tau, "tau"))
    for f in _pairs(model, pin_model)[1]:
        tau[..., f.leader_v] += f.scaling * tau[..., f.v]
    return _to_tangent(model, pin_model, q, tau=tau)


def from_tau(model: Model, pin_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """Kinetree's joint forces from Pinocchio's: the same power at any velocity."""
    full = model.uncoupled
    forces = _from_tangent(full, pin_model, q, tau=tau)
    return leading_forces(model, _from_q(full, pin_model, q), forces) if model.couplings else forces


def _to_tangent(model, pin_model, q, **vectors):
    """The last of ``vectors`` in Pinocchio's variables; the others are only checked."""
    q = as_configuration(model, q)
    *others, x = (as_joint_vector(model, x, name) for name, x in vectors.items())
    pairs, _ = _pairs(model, pin_model)
    parts = [(p.pin_v, p.map.to_velocity(x[..., p.v])) for p in pairs]
    return _assemble(parts, pin_model.nv, x, q, *others)


def _from_tangent(model, pin_model, q, **vectors):
    """The last of ``vectors`` in kinetree's variables; the others are only checked."""
    q = _pinocchio_vector(pin_model, q, "q", pin_model.nq)
    *others, x = (
        _pinocchio_vector(pin_model, x, name, pin_model.nv) for name, x in vectors.items()
    )
    pairs, mimics = _pairs(model, pin_model)
    parts = [(p.v, p.map.from_velocity(x[..., p.pin_v])) for p in pairs]
    ours = _assemble(parts, model.nv, x, q, *others)
    for f in mimics:
        ours[..., f.v] = 0 if "tau" in vectors else f.scaling * ours[..., f.leader_v]
    return ours


class _Pair(NamedTuple):
    """A joint of kinetree and its counterpart: where their variables are, how they translate."""

    name: str
    q: slice
    v: slice
    pin_q: slice
    pin_v: slice
    map: JointMap


class _Mimic(NamedTuple):
    """A joint of kinetree that has no variables in Pinocchio, and the one that it follows."""

    q: slice
    v: slice
    leader_q: slice
    leader_v: slice
    scaling: float
    offset: float


def _pairs(model, pin_model):
    """All joints that have variables in both models, matched by name, and those that follow."""
    ours = {n: i for i, n in enumerate(model.joint_names, start=1) if model.joint[i].nq}
    parts = leaves(pin_model)
    _require_same_names(model, pin_model, list(ours), [leaf.name for leaf in parts])
    theirs = {leaf.name: leaf for leaf in parts}
    pairs = []
    for name, i in ours.items():
        leaf = theirs[name]
        expected, joint_map = as_kinetree(leaf.joint, name)
        if not same_joint(model.joint[i], expected):
            raise InteropError(
                f"joint {name!r} is {model.joint[i]!r} in model {model.name!r}, but Pinocchio's "
                f"{kind_of(leaf.joint)} corresponds to {expected!r}: the two models do not "
                f"describe the same mechanism in the same body frames"
            )
        if kind_of(leaf.joint) != "JointModelMimic":
            here = (model.q_slice[i], model.v_slice[i])
            pairs.append(_Pair(name, *here, leaf.q, leaf.v, joint_map))
    at = {n: (model.q_slice[i], model.v_slice[i]) for n, i in ours.items()}
    mimics = [_Mimic(*at[f.name], *at[f.leader], f.scaling, f.offset) for f in followers(pin_model)]
    return pairs, mimics


def _require_same_names(model, pin_model, ours, theirs):
    if repeated := sorted({name for name in theirs if theirs.count(name) > 1}):
        raise InteropError(
            f"Pinocchio's model {pin_model.name!r} has several joints called "
            f"{', '.join(map(repr, repeated))}; joints are matched by name"
        )
    if missing := [name for name in ours if name not in theirs]:
        raise InteropError(
            f"Pinocchio's model {pin_model.name!r} has no joint {', '.join(map(repr, missing))}, "
            f"which model {model.name!r} has; joints are matched by name"
        )
    if extra := [name for name in theirs if name not in ours]:
        raise InteropError(
            f"model {model.name!r} has no joint {', '.join(map(repr, extra))}, which Pinocchio's "
            f"model {pin_model.name!r} has; joints are matched by name"
        )


def _pinocchio_vector(pin_model, x, name, size):
    a = np.asarray(x)
    if not np.issubdtype(a.dtype, np.inexact):
        a = a.astype(float)
    if a.ndim == 0 or a.shape[-1] != size:
        raise ShapeError(
            f"Pinocchio's {name} must have shape (..., {size}) for its model "
            f"{pin_model.name!r}, got {a.shape}"
        )
    finite = np.isfinite(a)
    if not np.all(finite):
        sample = _sample(~finite.all(axis=-1))
        raise ShapeError(f"Pinocchio's {name}{sample} must be finite, got {a[~finite][0]}")
    return a


def _sample(wrong):
    """The first wrong sample of a batch, for messages."""
    return f" of sample {tuple(np.argwhere(wrong)[0].tolist())}" if wrong.ndim else ""


def _assemble(parts, size, *arrays):
    """The ``parts``, (slice, values), put together in the precision of the first array.

    The batch axes are those of all ``arrays``, broadcast.
    """
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    out = np.empty((*batch, size), dtype=arrays[0].dtype)
    for at, values in parts:
        out[..., at] = values
    return out


# --- Inertial parameters -------------------------------------------------------------------------
# Both libraries have the same ten parameters of a body in the same order and in the same frame:
# ``m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz``. They may number the bodies differently,
# and Pinocchio has no bodies on fixed joints.


def to_parameters(model: Model, pin_model: Any, p: ArrayLike) -> Array:
    """Pinocchio's parameters, (10 (njoints - 1),), from kinetree's, (10 body_count,).

    Bodies on fixed joints become part of the body they are fixed to.
    """
    theirs = np.zeros((pin_model.njoints - 1, 10))
    joint = _joint_of(model, pin_model)
    for i, row in enumerate(_rows(p, model.body_count), start=1):
        I, body = Inertia.from_parameters(row), i
        while body and isinstance(model.joint[body], Fixed):
            I, body = I.inverse_transformed(model.tree_transform[body]), model.parent[body]
        if body and body in joint:
            theirs[joint[body] - 1] += I.parameters()
        elif body and np.any(row):
            raise InteropError(
                f"body {model.body_names[i]!r} has inertia, but moves with part of a composite "
                f"joint of Pinocchio's, which carries none"
            )
    return theirs.ravel()


def from_parameters(model: Model, pin_model: Any, p: ArrayLike) -> Array:
    """Kinetree's parameters, (10 body_count,), from Pinocchio's, (10 (njoints - 1),).

    What Pinocchio has no body for, such as the inner parts of composite joints, gets zeros.
    """
    fixed = [
        b.name
        for b in model.bodies
        if isinstance(b.joint, Fixed) and np.any(b.inertia.parameters())
    ]
    if fixed:
        raise InteropError(
            f"Pinocchio has the inertia of body {fixed[0]!r}, on a fixed joint, as part of "
            f"another body's: it cannot be separated"
        )
    rows, ours = _rows(p, pin_model.njoints - 1), np.zeros((model.body_count, 10))
    for i, number in _joint_of(model, pin_model).items():
        ours[i - 1] = rows[number - 1]
    return ours.ravel()


def _joint_of(model, pin_model):
    """Number of the joint of Pinocchio's that carries each body of ours."""
    carriers = {leaf.name: leaf.number for leaf in leaves(pin_model) if leaf.last}
    found = {i: carriers[n] for i, n in enumerate(model.joint_names, start=1) if n in carriers}
    missing = set(carriers) - set(model.joint_names)
    if missing:
        raise InteropError(
            f"model {model.name!r} has no joint {min(missing)!r}, which Pinocchio's model "
            f"{pin_model.name!r} has; joints are matched by name"
        )
    return found


def _rows(p, count):
    p = np.asarray(p, dtype=float)
    if p.shape != (10 * count,):
        raise ShapeError(f"parameters must have shape ({10 * count},) here, got {p.shape}")
    return p.reshape(count, 10)
