"""Joint vectors and inertial parameters of one mechanism, from kinetree to Pinocchio and back.

Joints are matched by name, so the two models may number them differently. Positions, velocities,
accelerations and forces are (..., n) arrays; leading axes are a batch. What goes into ``to_*`` is
kinetree's, the configuration too; what goes into ``from_*`` is Pinocchio's.
"""

from functools import partial
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import InteropError, ShapeError
from kinetree.interop.pinocchio.kinds import as_kinetree, kind_of, same_joint
from kinetree.interop.pinocchio.leaves import followers, leaves
from kinetree.interop.states import FollowingJoint, JointPair, States
from kinetree.joints import Fixed
from kinetree.model import Model
from kinetree.spatial import Inertia


def to_q(model: Model, pin_model: Any, q: ArrayLike) -> Array:
    """Pinocchio's configuration, (..., pin_model.nq), from kinetree's, (..., nq)."""
    return _states(model, pin_model).to_position(q)


def from_q(model: Model, pin_model: Any, q: ArrayLike) -> Array:
    """Kinetree's configuration, (..., nq), from Pinocchio's, (..., pin_model.nq).

    Unbounded revolute joints come back as an angle in (-π, π].
    """
    return _states(model, pin_model).from_position(q)


def to_v(model: Model, pin_model: Any, q: ArrayLike, qd: ArrayLike) -> Array:
    """Pinocchio's velocity from kinetree's configuration and velocity."""
    return _states(model, pin_model).to_tangent("velocity", q, qd=qd)


def from_v(model: Model, pin_model: Any, q: ArrayLike, v: ArrayLike) -> Array:
    """Kinetree's velocity from Pinocchio's configuration and velocity."""
    return _states(model, pin_model).from_tangent("velocity", q, v=v)


def to_a(model: Model, pin_model: Any, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Pinocchio's acceleration from kinetree's configuration, velocity and acceleration."""
    return _states(model, pin_model).to_tangent("acceleration", q, qd=qd, qdd=qdd)


def from_a(model: Model, pin_model: Any, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Kinetree's acceleration from Pinocchio's configuration, velocity and acceleration."""
    return _states(model, pin_model).from_tangent("acceleration", q, v=v, a=a)


def to_tau(model: Model, pin_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """Pinocchio's joint forces from kinetree's: the same power at any velocity.

    Forces of joints that mimic others add to those of the others.
    """
    return _states(model, pin_model).to_tangent("velocity", q, tau=tau)


def from_tau(model: Model, pin_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """Kinetree's joint forces from Pinocchio's: the same power at any velocity."""
    return _states(model, pin_model).from_tangent("velocity", q, tau=tau)


def _states(model, pin_model):
    """Converter of states between a model and Pinocchio."""
    sizes = pin_model.nq, pin_model.nv
    return States(model, "Pinocchio", pin_model.name, *sizes, partial(_pairs, pin_model), _settle)


def _settle(pair, theirs, q):
    """Configuration, after a check that cosines and sines have unit length."""
    off = ~np.isclose(pair.map.to_position(q), theirs, rtol=1e-4, atol=1e-4).all(axis=-1)
    if np.any(off):
        sample = f" of sample {tuple(np.argwhere(off)[0].tolist())}" if off.ndim else ""
        raise ShapeError(
            f"Pinocchio's q{sample}, joint {pair.name!r}: cosine and sine must be those of an "
            f"angle, got {theirs[off][0].tolist()}; see pinocchio.neutral and normalize"
        )
    return q


def _pairs(pin_model, model):
    """Joints with variables in both models, matched by name, and coupled ones."""
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
            pairs.append(JointPair(name, *here, leaf.q, leaf.v, joint_map))
    at = {n: (model.q_slice[i], model.v_slice[i]) for n, i in ours.items()}
    mimics = [
        FollowingJoint(*at[f.name], *at[f.leader], f.scaling, f.offset)
        for f in followers(pin_model)
    ]
    return pairs, mimics


def _require_same_names(model, pin_model, ours, theirs):
    """Raise an error unless joints of both models can be matched by name."""
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

    Bodies that Pinocchio does not have, such as inner parts of composite joints, get zeros.
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
    """Number of the Pinocchio joint that carries each kinetree body."""
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
    """Inertial parameters as rows of ten, one per body."""
    p = np.asarray(p, dtype=float)
    if p.shape != (10 * count,):
        raise ShapeError(f"parameters must have shape ({10 * count},) here, got {p.shape}")
    return p.reshape(count, 10)
