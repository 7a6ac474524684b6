"""States in maximal coordinates, from and to joint coordinates — tutorial, sections 5.1 and 6.

Engines for maximal coordinates have a position, a rotation and velocities of every body, and forces
and torques at the mass centres, all along the axes of the world. ``maximal_state`` gives them what
belongs to ``q, qd, tau``; ``generalized_state`` leads back. Most states of loose bodies belong to
no ``q``: the way back measures how far the joints are torn apart.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SingularError, UnknownNameError, UnreachableError
from kinetree.model import Model
from kinetree.model.array_arguments import CONFIGURATION, require_shape
from kinetree.model.array_arguments import ArrayArgument as Argument
from kinetree.model.arrays import as_model, check_batches, check_finite
from kinetree.model.define import quantity, register
from kinetree.model.manifold import continue_state
from kinetree.quantities.cartesian import (
    Method,
    cartesian_forces,
    cross,
    generalized_velocity,
    require_numbers,
    rotate,
)
from kinetree.quantities.kinematics import jacobians
from kinetree.quantities.lagrangian import generalized_force
from kinetree.spatial import Plucker
from kinetree.spatial.ops import is_symbolic, less, select
from kinetree.spatial.rotation import rotation_log

__all__ = ["generalized_position", "generalized_state", "maximal_state"]

Point = Literal["center_of_mass", "origin"]


class MaximalState(NamedTuple):
    """Position, rotation, velocities and forces of every moving body, along the world's axes."""

    position: Any
    """Of the mass centre, or origin, of each body [m], (..., body_count, 3)."""
    rotation: Any
    """Maps coordinates of the body to those of the world, (..., body_count, 3, 3)."""
    velocity: Any = None
    """Of that point [m/s], (..., body_count, 3)."""
    angular_velocity: Any = None
    """[rad/s], (..., body_count, 3)."""
    force: Any = None
    """At that point [N], (..., body_count, 3); without those that the joints transmit."""
    torque: Any = None
    """About that point [N·m], (..., body_count, 3)."""


class GeneralizedPosition(NamedTuple):
    """Joint positions found from poses of bodies."""

    q: np.ndarray
    """Joint positions, (..., nq)."""
    residual: np.ndarray
    """Largest distance of a body from where it should be: angles [rad], and lengths by the size of
    the mechanism, (...)."""


class GeneralizedState(NamedTuple):
    """Joint coordinates found from a state in maximal coordinates."""

    q: np.ndarray
    """Joint positions, (..., nq)."""
    qd: Any
    """Joint velocities, (..., nv); None where no velocities were given."""
    tau: Any
    """Joint forces worth the given forces, (..., nv); None where none were given."""
    residual: Any
    """Of positions and velocities, (...): what no joint coordinates explain."""


# --- from joints to bodies -----------------------------------------------------------------------


@quantity(("body_count", 18), called="maximal_state", public=False, general=True)
def _bodies(model, q, qd, *, at) -> Any:
    """Position, rotation, velocity and angular velocity of every body, a row each."""
    X, v = body_velocities(model, q, qd)
    X_0, rows = base_transforms(model, X), model.table()
    for i in model.outward():
        R = X_0[i].E.T
        c = R @ _point(model, i, at)
        w, u = R @ v[i].angular, R @ v[i].linear
        rows[i] = np.concatenate([X_0[i].r + c, R.ravel(), u + cross(w, c), w])
    return model.stack_rows(rows, 18)


@register
def maximal_state(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    at: Point = "center_of_mass",
) -> MaximalState:
    """Positions, rotations and velocities of all bodies; with ``tau``, also forces and torques.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        tau: joint forces, (..., nv); the smallest equivalent forces and torques, see
            ``cartesian_forces``, are computed on the CPU.
        at: the reference point of a body: ``"center_of_mass"`` (the origin, for bodies without
            mass) or ``"origin"`` of the body frame. Forces are at the mass centre.
    """
    _check_point(at, tau)
    x = _bodies(model, q, qd, at=at)
    R = x[..., 3:12].reshape((*x.shape[:-1], 3, 3))
    forces = (None, None) if tau is None else cartesian_forces(model, q, tau)
    return MaximalState(x[..., :3], R, x[..., 12:15], x[..., 15:], *forces)


# --- from bodies to joints -----------------------------------------------------------------------


_of_poses = partial(
    quantity,
    arrays={"poses": Argument(("body_count", 4, 4))},
    called="generalized_position",
    public=False,
)


@_of_poses(("uncoupled.nq",))
def _joint_by_joint(model, poses) -> Any:
    """Position variables of every joint, from poses of its two bodies."""
    whole = model.uncoupled
    X_0 = [Plucker.identity(), *map(Plucker.from_pose, poses)]
    parts = [np.zeros(0, int)]
    for i in range(1, whole.body_count + 1):
        X = X_0[i] @ X_0[whole.parent[i]].inverse() @ whole.tree_transform[i].inverse()
        parts.append(whole.joint[i].coordinates(X))
    return np.concatenate(parts)


@quantity(("nq",), arrays={"near": CONFIGURATION}, called="generalized_position", public=False)
def _turned_over(model, q, near) -> Any:
    """Configuration in rotation vectors that continue a motion from ``near``."""
    return continue_state(model, q, model.zero_velocity, near)[0]


@_of_poses(("body_count", 6), general=True)
def _offsets(model, q, poses) -> Any:
    """Rotation and displacement of every body to its given pose, in base axes."""
    X_0, e = base_transforms(model, joint_transforms(model, q)[0]), model.table()
    for i in model.outward():
        X, Y = Plucker.from_pose(model.of_body(poses, i)), X_0[i]
        e[i] = np.concatenate([-rotation_log(X.E.T @ Y.E), X.r - Y.r])
    return model.stack_rows(e, 6)


@register
@on_host
def generalized_position(
    model: Model,
    poses: ArrayLike,
    *,
    near: ArrayLike | None = None,
    method: Method = "joints",
    tolerance: float = 1e-6,
) -> GeneralizedPosition:
    """Joint positions ``q`` from the poses of all bodies: the inverse of ``poses``.

    Computed on the CPU, by compiled code. Loops are ignored: poses that close them give a ``q``
    that does.

    Args:
        model: the mechanism.
        poses: homogeneous matrices of all moving bodies in the base, (..., body_count, 4, 4).
        near: a configuration, (..., nq): of angles that are equal modulo 2π, and of the two
            quaternions or rotation vectors of an orientation, the closest to it are taken; by
            default angles within ±π.
        method: ``"joints"``, from the pose of each body relative to its parent;
            ``"least_squares"``, which then minimises the sum of squares of the distances of
            all bodies, angles [rad] and lengths [m] alike: for poses with errors of measurement.
        tolerance: largest residual; ``np.inf`` takes any poses.

    Raises:
        UnreachableError: no ``q`` gives these poses; names the body that is farthest off.
    """
    as_model(model)
    if method not in ("joints", "least_squares"):
        raise UnknownNameError(f"method must be 'joints' or 'least_squares', got {method!r}")
    T = _checked_poses(model, poses)
    q = _joint_by_joint(model, T)
    if model.couplings:  # the joints that lead tell it all
        q = q[..., model.independent_variables[0]]
    if near is not None:
        q = _closest(model, q, near)
    if method == "least_squares":
        q = _least_squares(model, q, T)
    apart = _distances(model, q, T)
    _require_explained(model, apart, tolerance, "q", "poses")
    return GeneralizedPosition(q, np.max(apart, axis=-1, initial=0.0))


@register
@on_host
def generalized_state(
    model: Model,
    state: MaximalState,
    *,
    at: Point = "center_of_mass",
    near: ArrayLike | None = None,
    method: Method = "joints",
    tolerance: float = 1e-6,
) -> GeneralizedState:
    """Joint coordinates ``q, qd, tau`` of a state in maximal coordinates, on the CPU.

    Args:
        model: the mechanism.
        state: positions and rotations of all bodies; velocities, forces and torques where given.
        at: the point of each body that the state is about, as in ``maximal_state``.
        near: as in ``generalized_position``.
        method: as in ``generalized_position`` and ``generalized_velocity``.
        tolerance: largest residual of positions and of velocities, these relative to the fastest.

    Raises:
        UnreachableError: no joint coordinates give these positions, or these velocities.
        SingularError: the velocities need joint coordinates that are singular here, as Euler angles
            are in gimbal lock.
    """
    state = MaximalState(*state)
    _check_point(at, state.force)
    x = _vectors(model, state.position, "position")
    R = require_numbers(state.rotation, "rotation", "generalized_state")
    c = rotate(R, _points(model, at))
    T = np.zeros((*np.broadcast_shapes(x.shape[:-1], R.shape[:-2]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, x - c, 1
    q, residual = generalized_position(model, T, near=near, method=method, tolerance=tolerance)
    qd = tau = None
    if state.velocity is not None:
        v = _vectors(model, state.velocity, "velocity")
        w = _vectors(model, state.angular_velocity, "angular_velocity")
        by_time = _bodies(model, q, np.zeros(model.nv), at="origin")  # of prescribed joints
        V = np.concatenate([w + 0 * v, v - cross(w, c)], axis=-1)
        V = V - np.concatenate([by_time[..., 15:], by_time[..., 12:15]], axis=-1)
        way = "joints" if method == "joints" else "least_squares"
        qd, _, rank = generalized_velocity(model, q, V, frame="aligned", method=way)
        rest = V - (jacobians(model, q, frame="aligned") @ qd[..., None, :, None])[..., 0]
        fastest = np.max(np.abs(V), axis=(-2, -1), initial=np.finfo(float).tiny)[..., None]
        apart = np.max(np.abs(rest), axis=-1) / fastest
        if np.any(rank < model.nv) and np.max(apart, initial=0.0) > tolerance:
            raise SingularError(_singular_variables(model, q))
        _require_explained(model, apart, tolerance, "qd", "velocities")
        residual = np.maximum(residual, np.max(apart, axis=-1, initial=0.0))
    if state.force is not None:
        f, n = _vectors(model, state.force, "force"), _vectors(model, state.torque, "torque")
        tau = generalized_force(model, q, np.concatenate([n + cross(x + 0 * f, f), f], axis=-1))
    return GeneralizedState(q, qd, tau, residual)


def _closest(model, q, near):
    """Configuration in the joint charts that contain ``near``."""
    check_batches("generalized_position", poses=(q, 1), near=(np.asarray(near), 1))
    if any(joint.turns_over for joint in model.joint[1:]):
        q = _turned_over(model, q, near)
    q = np.array(np.broadcast_arrays(q, near)[0])
    near = np.broadcast_to(near, q.shape)
    for joint, part in zip(model.joint[1:], model.q_slice[1:], strict=True):
        a, b = q[..., part], near[..., part]  # views
        for k in joint.angles:
            a[..., k] += 2 * np.pi * np.round((b[..., k] - a[..., k]) / (2 * np.pi))
        for unit in joint.unit_parts:
            turn = np.sum(a[..., unit] * b[..., unit], axis=-1, keepdims=True) < 0
            a[..., unit] = np.where(turn, -a[..., unit], a[..., unit])
    return q


def _least_squares(model, q, T):
    """Gauss-Newton iteration on the squared distances of bodies to their poses."""
    for _ in range(50):
        e = _offsets(model, q, T)
        J = jacobians(model, q, frame="aligned")
        J, e = J.reshape(*J.shape[:-3], -1, model.nv), e.reshape(*e.shape[:-2], -1, 1)
        dq = (np.linalg.pinv(J) @ e)[..., 0]
        q = model.integrate(q, dq)
        if np.max(np.abs(dq), initial=0.0) < 1e-12:
            break
    return q


def _distances(model, q, T):
    """Distance of every body from its pose, relative to the mechanism's size, (..., n)."""
    e = _offsets(model, q, T)
    sizes = [np.linalg.norm(X.r) for X in model.tree_transform[1:]]
    origin = T[..., :1, :3, 3]
    reach = np.max(np.linalg.norm(T[..., :3, 3] - origin, axis=-1), axis=-1, initial=0.0)
    size = np.maximum(reach, max(sizes, default=0.0))[..., None]
    shift = np.linalg.norm(e[..., 3:], axis=-1) / np.where(size > 0, size, 1.0)
    return np.maximum(np.linalg.norm(e[..., :3], axis=-1), shift)


# --- checks --------------------------------------------------------------------------------------


def _point(model, i, at):
    """Reference point of a body: its origin or mass centre."""
    I = model.inertia[i]
    if at == "origin":
        return np.zeros(3, int)
    if isinstance(I.mass, (int, float)) or is_symbolic(I.mass):
        return np.zeros(3, int) if I.mass == 0 else I.center_of_mass
    has_mass = less(0, I.mass)  # a mass that is data
    return np.array([select(has_mass, x, 0) for x in I.first_moment]) / select(has_mass, I.mass, 1)


def _points(model, at):
    """Reference points of all bodies in body coordinates, (body_count, 3)."""
    points = [_point(model, i, at) for i in range(1, model.body_count + 1)]
    return np.array(points, dtype=float).reshape(-1, 3)


def _check_point(at, force):
    """Raise an error unless ``at`` names a reference point that suits the forces."""
    if at not in ("center_of_mass", "origin"):
        raise UnknownNameError(f"at must be 'center_of_mass' or 'origin', got {at!r}")
    if at == "origin" and force is not None:
        raise UnknownNameError("forces are at mass centres: leave out at='origin', or the forces")


def _vectors(model, x, name):
    """Vectors of all bodies as an array (..., body_count, 3)."""
    x = require_numbers(x, name, "generalized_state")
    require_shape(as_model(model), x, name, ("body_count", 3))
    return check_finite(x, name, core=2)


def _checked_poses(model, T):
    """Poses of all bodies; an error names the first that is no pose."""
    T = require_numbers(T, "poses", "generalized_position")
    require_shape(model, T, "poses", ("body_count", 4, 4))
    check_finite(T, "poses", core=3)
    R = T[..., :3, :3]
    error = np.max(np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)), axis=(-2, -1))
    wrong = (error > 1e-6) | (np.linalg.det(R) < 0) | np.any(T[..., 3, :] != [0, 0, 0, 1], axis=-1)
    if np.any(wrong):
        *sample, k = (int(i) for i in np.argwhere(wrong)[0])
        where = f", sample {tuple(sample)}" if sample else ""
        raise ShapeError(
            f"the pose of body {model.body_names[k + 1]!r}{where} is not a homogeneous matrix with "
            f"a rotation in it: R Rᵀ differs from 1 by {error[(*sample, k)]:.3g}, det R = "
            f"{np.linalg.det(R[(*sample, k)]):.3g}, the last row is {T[(*sample, k, 3)].tolist()}"
        )
    return T


def _require_explained(model, apart, tolerance, unknown, given):
    """Raise UnreachableError naming the body whose pose the joints allow least."""
    if not np.max(apart, initial=0.0) > tolerance:
        return
    *sample, k = (int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    where = f"sample {tuple(sample)}: " if sample else ""
    raise UnreachableError(
        f"{where}no {unknown} gives these {given}: body {model.body_names[k + 1]!r} on joint "
        f"{model.joint_names[k]!r} ({type(model.joint[k + 1]).__name__}) is off by "
        f"{apart[(*sample, k)]:.3g}, and {tolerance:.3g} is allowed. tolerance=np.inf takes what "
        f"is nearest, method='least_squares' spreads errors of measurement over all bodies"
    )


def _singular_variables(model, q):
    """Error message naming joints in singular configurations."""
    names = [
        f"{name!r} ({type(joint).__name__})"
        for name, joint, part in zip(
            model.joint_names, model.joint[1:], model.q_slice[1:], strict=True
        )
        if any(abs(float(joint.singularity(x))) < 1e-7 for x in q[..., part].reshape(-1, joint.nq))
    ]
    return (
        f"no qd gives these velocities: the variables of joint {', '.join(names)} are singular in "
        f"this configuration, by gimbal lock or at a full turn of a rotation vector; a "
        f"kinetree.Spherical joint is singular nowhere"
    )
