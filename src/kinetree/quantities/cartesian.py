"""Cartesian velocities and forces of bodies, from and to generalised ones of joints.

Simulators in maximal coordinates use velocities and forces of bodies; kinetree those of joints. The
Jacobian leads from joints to bodies; its inverse is unique only for velocities that the joints
allow. ``applied_force`` describes a force by its point of application, the axes of its components
and a torque. Tutorial, section 6.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SingularError, TraceError, UnknownNameError
from kinetree.model import Model
from kinetree.model.array_arguments import ArrayArgument as Argument
from kinetree.model.array_arguments import require_shape
from kinetree.model.arrays import as_joint_vector, as_model, as_numbers, check_batches
from kinetree.model.define import quantity, register
from kinetree.quantities.kinematics import Coordinates, jacobians, pose, poses, require_reference

__all__ = [
    "applied_force", "cartesian_forces", "forces_of_joint_torques", "generalized_velocity",
    "joint_torques",
]  # fmt: skip

Method = Literal["least_squares", "joints"]


# --- from bodies to joints -----------------------------------------------------------------------


@quantity(
    (6,),
    arrays={"force": Argument((3,)), "torque": Argument((3,)), "at": Argument((3,))},
    called="applied_force",
    public=False,
)
def _applied_force(model, q, *, name, frame, at_center, force=None, torque=None, at=None) -> Any:
    """Moment and force of an applied force, in base coordinates."""
    T = pose(model, q, name)
    R, p, zero = T[:3, :3], T[:3, 3], np.zeros(3, dtype=int)
    f = zero if force is None else force
    n = zero if torque is None else torque
    if frame == "body":
        f, n = R @ f, R @ n
    if at_center:
        there = model.frame(name)
        at = there.placement.point(model.inertia[there.body].center_of_mass)
    r = at if frame == "world" and not at_center else p if at is None else p + R @ at
    r = zero if r is None else r
    return np.concatenate([n + cross(r, f), f + zero])


@register
def applied_force(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    force: ArrayLike | None = None,
    torque: ArrayLike | None = None,
    at: ArrayLike | Literal["center_of_mass"] | None = None,
    frame: Coordinates = "world",
) -> Array:
    """A force at a point of a body as a spatial force in base coordinates, for ``f_ext``, (..., 6).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        name: the frame or body that is pushed.
        force: the force [N], (..., 3).
        torque: an additional couple [N·m], (..., 3), without the moment of the force.
        at: the point where the force acts [m], (..., 3), by default the origin of the frame; or
            ``"center_of_mass"`` of the body. If ``torque`` is about the mass centre and includes
            the moment of the force, use the latter.
        frame: whose coordinates these are: ``"body"``, the frame's own; ``"aligned"``, force and
            torque along the axes of the base, the point in the frame's own; ``"world"``, the
            default, all in base coordinates, which needs the point ``at``.
    """
    require_reference(frame)
    at_center = isinstance(at, str)
    if at_center and at != "center_of_mass":
        raise UnknownNameError(f"at must be a point or 'center_of_mass', got {at!r}")
    if at_center and as_model(model).frame(name).body == 0:
        raise UnknownNameError(f"{name!r} belongs to the base, which has no mass centre")
    if at is None and frame == "world" and force is not None:
        raise ShapeError(
            "with frame='world' the point is in base coordinates: state at=..., or use "
            "frame='aligned' for a force at a point of the body"
        )
    as_model(model).frame(name)
    at = None if at_center else at
    where = {"name": name, "frame": frame, "at_center": at_center}
    return _applied_force(model, q, **where, force=force, torque=torque, at=at)


@quantity(("body_count", 6), arrays={"torques": Argument(("body_count", 3))})
def forces_of_joint_torques(model: Model, q: ArrayLike, torques: ArrayLike) -> Array:
    """Forces on the bodies when every joint turns its body with a torque, (..., body_count, 6).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        torques: what joint ``i`` exerts on its body, and takes from its parent [N·m], in
            coordinates of the parent body, (..., body_count, 3).

    Returns:
        Pure torques in base coordinates for ``f_ext`` — animation tutorial (68). Inside the
        mechanism they cancel; only the joints on the base remain.
    """
    R = poses(model, q)[:, :3, :3]
    n = [0 * t for t in torques]
    for i, (parent, torque) in enumerate(zip(model.parent[1:], torques, strict=True)):
        if parent != 0:
            torque = R[parent - 1] @ torque
            n[parent - 1] = n[parent - 1] - torque
        n[i] = n[i] + torque
    moments = np.array(n).reshape(model.body_count, 3)
    return np.concatenate([moments, 0 * moments], axis=-1)


class GeneralizedVelocity(NamedTuple):
    """Joint velocities found from those of bodies."""

    qd: np.ndarray
    """Joint velocities, (..., nv)."""
    residual: np.ndarray
    """Largest part of the body velocities that no joint velocity explains [m/s, rad/s], (...)."""
    rank: Any
    """Number of joint velocities that the bodies determine, (...); ``nv``, unless coordinates are
    singular (Euler angles)."""


@register
@on_host
def generalized_velocity(
    model: Model,
    q: ArrayLike,
    velocities: ArrayLike,
    *,
    frame: Coordinates = "world",
    method: Method = "least_squares",
    rows: ArrayLike | None = None,
) -> GeneralizedVelocity:
    """Joint velocities from velocities of all bodies — animation tutorial (61), (66).

    Computed on the CPU, by singular values: coordinates may be singular. If the joints allow the
    velocities, any ``nv`` independent rows of them give the same answer.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        velocities: of all moving bodies, angular first, (..., body_count, 6).
        frame: what their coordinates mean, as in ``jacobian``.
        method: ``"least_squares"`` over all bodies, which mixes units where the velocities do not
            fit the joints; ``"joints"``, from the motion of each body relative to its parent.
        rows: numbers of the coordinates to use, counted over all bodies, 0 to 6 body_count - 1; all
            by default. Not with ``method="joints"``.
    """
    if method not in ("least_squares", "joints"):
        raise UnknownNameError(f"method must be 'least_squares' or 'joints', got {method!r}")
    if rows is not None and method == "joints":
        raise UnknownNameError("rows are for method='least_squares': 'joints' takes every body")
    V = require_numbers(velocities, "velocities", "generalized_velocity")
    require_shape(as_model(model), V, "velocities", ("body_count", 6))
    J = jacobians(model, q, frame=frame)
    check_batches("generalized_velocity", q=(J, 3), velocities=(V, 2))
    flat = J.reshape(*J.shape[:-3], 6 * model.body_count, model.nv)
    if method == "joints":
        qd, rank = _joint_by_joint(model, q, V, frame)
    else:
        target = V.reshape(*V.shape[:-2], 6 * model.body_count, 1)
        if rows is not None:
            some = _chosen_rows(model, rows)
            flat, target = flat[..., some, :], target[..., some, :]
        qd, rank = (np.linalg.pinv(flat) @ target)[..., 0], np.linalg.matrix_rank(flat)
    rest = V - (J @ qd[..., None, :, None])[..., 0]
    return GeneralizedVelocity(qd, np.max(np.abs(rest), axis=(-2, -1), initial=0.0), rank)


def _chosen_rows(model, rows):
    """Indices of the given body velocities; an error for invalid ones."""
    some, count = np.asarray(rows), 6 * model.body_count
    if some.ndim != 1 or some.dtype.kind not in "iu" or np.any((some < 0) | (some >= count)):
        raise ShapeError(
            f"rows must be integers, (k,), from 0 to 6 body_count - 1 = {count - 1}; got {rows!r}"
        )
    return some


def _joint_by_joint(model, q, V, frame):
    """Joint velocities from body velocities, joint by joint, and how many are determined."""
    if model.couplings:  # the joints that lead tell it all
        qd, rank = _joint_by_joint(model.uncoupled, model.expand(q), V, frame)
        return qd[..., model.independent_variables[1]], rank - len(model.couplings)
    v = _in_body_coordinates(model, q, V, frame)
    S = jacobians(model, q, frame="body")
    T = poses(model, q)
    parts, rank = [], 0
    for i in range(1, model.body_count + 1):
        relative, parent = v[..., i - 1, :], model.parent[i]
        if parent != 0:
            relative = relative - _parent_velocity(
                T[..., parent - 1, :, :], T[..., i - 1, :, :], v, parent
            )
        own = S[..., i - 1, :, model.v_slice[i]]
        parts.append((np.linalg.pinv(own) @ relative[..., None])[..., 0])
        rank = rank + (np.linalg.matrix_rank(own) if own.shape[-1] else 0)
    return np.concatenate([V[..., 0, :0] if model.body_count else V[..., :0, 0], *parts], -1), rank


def _in_body_coordinates(model, q, V, frame):
    """Velocities of bodies in their own coordinates."""
    if frame == "body":
        return V
    T = poses(model, q)
    R, r = T[..., :3, :3], T[..., :3, 3]
    w, u = V[..., :3], V[..., 3:]
    if frame == "world":
        u = u - cross(r, w)  # from the origin of the base to that of the body
    turn = np.swapaxes(R, -1, -2)
    return np.concatenate([rotate(turn, w), rotate(turn, u)], axis=-1)


def _parent_velocity(T_parent, T, v, parent):
    """Velocity of a parent body in coordinates of the child."""
    R = np.swapaxes(T[..., :3, :3], -1, -2) @ T_parent[..., :3, :3]
    apart = np.swapaxes(T_parent[..., :3, :3], -1, -2) @ (T[..., :3, 3:] - T_parent[..., :3, 3:])
    w, u = v[..., parent - 1, :3], v[..., parent - 1, 3:]
    u = u - cross(apart[..., 0], w)
    return np.concatenate([rotate(R, w), rotate(R, u)], axis=-1)


# --- from joints to bodies -----------------------------------------------------------------------


class CartesianForces(NamedTuple):
    """A force and a torque on every body, along the axes of the base."""

    force: np.ndarray
    """Force at the mass centre [N], (..., body_count, 3)."""
    torque: np.ndarray
    """Torque about the mass centre [N·m], (..., body_count, 3)."""


@register
@on_host
def cartesian_forces(model: Model, q: ArrayLike, tau: ArrayLike) -> CartesianForces:
    """Forces on the bodies that are equivalent to joint forces ``tau`` — animation tutorial (70).

    There are many; this is the smallest set, in the sense of the sum of squares of all components,
    newtons and newton metres alike. Computed on the CPU, by singular values.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        tau: joint forces, (..., nv).

    Returns:
        A named tuple of ``force`` and ``torque``, each (..., body_count, 3), at the mass centres,
        or at the origins of bodies without mass.
    """
    tau = as_joint_vector(model, require_numbers(tau, "tau", "cartesian_forces"), "tau")
    J = jacobians(model, q, frame="aligned")
    check_batches("cartesian_forces", q=(J, 3), tau=(tau, 1))
    R = poses(model, q)[..., :3, :3]
    w, u = J[..., :3, :], J[..., 3:, :]
    masses = [I if I.mass != 0 else None for I in model.inertia[1:]]
    centers = np.array([np.zeros(3) if I is None else I.center_of_mass for I in masses])
    c = rotate(R, centers.reshape(model.body_count, 3))[..., None]
    u = u + cross(w, np.broadcast_to(c, w.shape), axis=-2)
    flat = np.concatenate([w, u], -2).reshape(*J.shape[:-3], 6 * model.body_count, model.nv)
    f = np.linalg.pinv(np.swapaxes(flat, -1, -2)) @ tau[..., None]
    f = f.reshape(*f.shape[:-2], model.body_count, 6)
    return CartesianForces(f[..., 3:], f[..., :3])


@register
@on_host
def joint_torques(model: Model, q: ArrayLike, tau: ArrayLike) -> Array:
    """Torques at the joints that are equivalent to ``tau``, (..., body_count, 3).

    Animation tutorial (71). The smallest, in coordinates of the parent body, as
    ``forces_of_joint_torques`` takes them. Computed on the CPU, by singular values.

    Raises:
        SingularError: for a joint whose force no torque can replace: it slides, or its axes are in
            line (gimbal lock).
    """
    tau = as_joint_vector(model, require_numbers(tau, "tau", "joint_torques"), "tau")
    if model.couplings:
        forces = np.zeros((*tau.shape[:-1], model.uncoupled.nv), tau.dtype)
        forces[..., model.independent_variables[1]] = tau
        return joint_torques(model.uncoupled, model.expand(q), forces)
    S, R = jacobians(model, q, frame="body"), poses(model, q)[..., :3, :3]
    check_batches("joint_torques", q=(S, 3), tau=(tau, 1))
    R_parent = _parent_rotations(model, q)
    torques = []
    for i, at in enumerate(model.v_slice[1:]):
        turn = np.swapaxes(R_parent[..., i, :, :], -1, -2) @ R[..., i, :, :]
        A = np.swapaxes(turn @ S[..., i, :3, at], -1, -2)  # n(k) × 3
        tau_i = tau[..., at, None]
        n = np.linalg.pinv(A) @ tau_i if A.shape[-2] else np.zeros((*A.shape[:-2], 3, 1))
        error, size = np.abs(A @ n - tau_i), np.max(np.abs(tau_i), initial=0.0)
        if np.any(error > 1e-9 * size):
            raise SingularError(
                f"joint {model.joint_names[i]!r}: no torque is worth its force "
                f"{tau_i[..., 0][..., :].ravel()[:6]}. It slides, or its axes are in line in this "
                f"configuration; cartesian_forces gives forces as well"
            )
        torques.append(n[..., 0])
    if not torques:
        return np.zeros((*tau.shape[:-1], 0, 3))
    return np.stack(np.broadcast_arrays(*torques), axis=-2)


# --- small things --------------------------------------------------------------------------------


def _parent_rotations(model, q):
    """Orientations of the parents of all bodies, (..., body_count, 3, 3)."""
    R = poses(model, q)[..., :3, :3]
    base = np.eye(3, dtype=int) + 0 * R[..., :1, :, :]
    return np.concatenate([base, R], axis=-3)[..., list(model.parent[1:]), :, :]


def rotate(R, v):
    """Vectors (..., 3) after rotations (..., 3, 3)."""
    return (R @ v[..., None])[..., 0]


def cross(a, b, axis=-1):
    """Cross products of arrays of vectors along an axis."""
    (ax, ay, az), (bx, by, bz) = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis)


def require_numbers(x, name, function):
    """Array of numbers; TraceError for traced ones."""
    x = as_numbers(x, name)
    if x.dtype == object:
        raise TraceError(
            f"{function} decides about ranks on the CPU, in Python, and cannot be traced; call it "
            f"outside the kernel"
        )
    return x
