"""Tasks of inverse kinematics: frames at poses, points, orientations, a mass centre.

A task turns a configuration and its target into an error and the Jacobian of that error, in
metres and radians along the axes of the base. The texts run on any kind of number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.centroidal import center_of_mass, center_of_mass_jacobian, total_mass
from kinetree.algorithms.jacobians import frame_jacobian, frame_pose
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ModelError, ShapeError, TraceError
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_numbers, as_position_vector, check_finite
from kinetree.spatial.ops import sqrt
from kinetree.spatial.rotation import (
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_log,
)
from kinetree.spelling import explains_itself

_NOT_A_ROTATION = 1e-4  # how far from orthonormal a rotation matrix may be: float32, or typed in


@dataclass(frozen=True, eq=False)
class _FrameTask:
    """A frame or body of the model, its target, and what an error counts against other tasks."""

    frame: str
    target: Any
    weight: float = 1.0

    def supports(self, model: Model) -> Sequence[int]:
        """Numbers of the bodies whose joints move the frame."""
        return model.support[model.frame(self.frame).body]

    @property
    def signature(self) -> tuple:
        """Key of the task for compiled code."""
        return (type(self).__name__, self.frame, _weight(self))


@explains_itself
class PoseTask(_FrameTask):
    """A frame at a pose: position and orientation.

    Args:
        frame: name of a frame or body.
        target: poses in the base, homogeneous matrices (..., 4, 4), as from ``kinetree.pose``.
        weight: weight of its squared error if tasks contradict each other.
    """

    size = 12
    units = ("rad",) * 3 + ("m",) * 3

    def numbers(self, model: Model) -> np.ndarray:
        """Target as one row of numbers, (..., size)."""
        T = _array(self.target, "target pose", (4, 4))
        if np.max(np.abs(T[..., 3, :] - [0, 0, 0, 1]), initial=0) > _NOT_A_ROTATION:
            raise ShapeError("the last row of a pose must be (0, 0, 0, 1); is it transposed?")
        R = _rotations(T[..., :3, :3], "the rotation of the target pose")
        return np.concatenate([R.reshape(*R.shape[:-2], 9), T[..., :3, 3]], axis=-1)

    def rows(self, model: Model, q: ArrayLike, numbers: ArrayLike) -> tuple[Array, Array]:
        """Pose error (6,) and Jacobian (6, nv)."""
        frame = model.frame(self.frame)
        pose, J = frame_pose(model, q, frame), frame_jacobian(model, q, frame, "aligned")
        turn = _rotation_error(pose[:3, :3], numbers[:9])
        return np.concatenate([turn, numbers[9:] - pose[:3, 3]]), J


@explains_itself
class PositionTask(_FrameTask):
    """The origin of a frame at a point, with any orientation; target (..., 3) [m]."""

    size = 3
    units = ("m",) * 3

    def numbers(self, model: Model) -> np.ndarray:
        """Target as one row of numbers, (..., size)."""
        return _array(self.target, "target position", (3,))

    def rows(self, model: Model, q: ArrayLike, numbers: ArrayLike) -> tuple[Array, Array]:
        """Position error (3,) and Jacobian (3, nv)."""
        frame = model.frame(self.frame)
        J = frame_jacobian(model, q, frame, "aligned")[3:]
        return numbers - frame_pose(model, q, frame)[:3, 3], J


@explains_itself
class OrientationTask(_FrameTask):
    """A frame with a given orientation, at any position; rotation matrices (..., 3, 3)."""

    size = 9
    units = ("rad",) * 3

    def numbers(self, model: Model) -> np.ndarray:
        """Target as one row of numbers, (..., size)."""
        R = _rotations(_array(self.target, "target orientation", (3, 3)), "the target orientation")
        return R.reshape(*R.shape[:-2], 9)

    def rows(self, model: Model, q: ArrayLike, numbers: ArrayLike) -> tuple[Array, Array]:
        """Orientation error (3,) and Jacobian (3, nv)."""
        frame = model.frame(self.frame)
        J = frame_jacobian(model, q, frame, "aligned")[:3]
        return _rotation_error(frame_pose(model, q, frame)[:3, :3], numbers), J


@explains_itself
@dataclass(frozen=True, eq=False)
class CenterOfMassTask:
    """The mass centre of the whole mechanism at a point; target (..., 3) [m]."""

    target: Any
    weight: float = 1.0
    size = 3
    units = ("m",) * 3

    def supports(self, model: Model) -> Sequence[int]:
        """Numbers of all bodies, whose joints move the mass centre."""
        if total_mass(model) == 0:
            raise ModelError(f"model {model.name!r} has no mass, hence no mass centre")
        return range(1, model.body_count + 1)

    @property
    def signature(self) -> tuple:
        """Key of the task for compiled code."""
        return (type(self).__name__, _weight(self))

    def numbers(self, model: Model) -> np.ndarray:
        """Target as one row of numbers, (..., size)."""
        return _array(self.target, "target of the mass centre", (3,))

    def rows(self, model: Model, q: ArrayLike, numbers: ArrayLike) -> tuple[Array, Array]:
        """Mass-centre error (3,) and Jacobian (3, nv)."""
        return numbers - center_of_mass(model, q), center_of_mass_jacobian(model, q)


@explains_itself
@dataclass(frozen=True, eq=False)
class PostureTask:
    """Stay close to a configuration (..., nq) as far as the other tasks allow.

    Joints move towards it only where this does not affect the other tasks; those that no other task
    moves go there. By default it is the middle of the joint limits.
    """

    target: Any = None

    def numbers(self, model: Model, middle: np.ndarray) -> np.ndarray:
        """Target configuration, (..., nq)."""
        if self.target is None:
            return middle
        q = _no_trace(as_configuration(model, self.target, "the posture"), "the posture")
        return q.astype(float)


def _weight(task):
    """Weight of a task; an error unless it is positive."""
    weight = task.weight
    if not isinstance(weight, (int, float, np.number)) or not 0 < weight < np.inf:
        raise ShapeError(
            f"the weight of a {type(task).__name__} must be a positive number, got {weight!r}; "
            f"leave the task out to ignore it"
        )
    return float(weight)


def _rotation_error(R, target):
    """Rotation vector from ``R`` to its target, in base coordinates; at most 180°."""
    p = quaternion_from_rotation(target.reshape(3, 3).T)
    E = rotation_from_quaternion(
        p / sqrt(p @ p)
    )  # a rotation, even if the target is one but roughly
    return rotation_log(R @ E)


def _array(target, what, shape):
    """Target as a float array of the given shape; an error otherwise."""
    a = _no_trace(as_numbers(target, f"the {what}"), what).astype(float)
    n = len(shape)
    if a.ndim < n or a.shape[a.ndim - n :] != shape:
        expected = ", ".join(["...", *map(str, shape)])
        raise ShapeError(f"the {what} must have shape ({expected}), got {a.shape}")
    return check_finite(a, f"the {what}", core=n)


def _no_trace(a, what):
    """Raise an error for symbolic or complex numbers."""
    if a.dtype == object or np.iscomplexobj(a):
        raise TraceError(
            f"inverse kinematics takes real numbers, and cannot be traced: {what} is of type "
            f"{a.dtype}; call it outside the kernel"
        )
    return a


def _rotations(R, what):
    """Rotation matrices, after a check up to rounding."""
    gram = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-2, -1))
    handed = np.einsum("...i,...i", np.cross(R[..., 0, :], R[..., 1, :]), R[..., 2, :])
    bad = (gram > _NOT_A_ROTATION) | (handed < 0)
    if np.any(bad):
        sample = tuple(int(k) for k in np.argwhere(bad)[0])
        how = "it is a reflection" if gram[sample] <= _NOT_A_ROTATION else "not orthonormal"
        raise ShapeError(
            f"{what}{f' of sample {sample}' if sample else ''} must be a rotation matrix: {how}"
        )
    return R


# --- Joint limits as two rows of numbers, and configurations within them -------------------------

_NONE = 1e300  # compiled code wants finite numbers


class PositionBounds:
    """Bounds of the position variables, each (nq,); huge where there is none.

    Attributes:
        lower: smallest values.
        upper: largest values.
        middle: between the two; where a side is open, one unit inside the other.
        are_any: whether there is any bound.
        are_of_model: whether those of loop joints hold, too.
    """

    def __init__(self, problem, lower, upper, are_of_model=False):
        self.are_of_model = are_of_model
        self.lower, self.upper = np.maximum(lower, -_NONE), np.minimum(upper, _NONE)
        below, above = self.lower > -_NONE, self.upper < _NONE
        self.are_any = bool(np.any(below | above))
        unit = np.ones(problem.model.nq)
        unit[problem.q_of_v[problem.q_of_v >= 0]] = problem.v_scale[problem.q_of_v >= 0]
        self.middle = problem.model.neutral()
        one_sided = np.where(below, self.lower + unit, self.upper - unit)
        self.middle = np.where(below | above, one_sided, self.middle)
        both = below & above
        self.middle[both] = (self.lower[both] + self.upper[both]) / 2

    def clip(self, q):
        """Configuration with every variable clipped to its limits."""
        return np.clip(q, self.lower, self.upper)

    def active(self, problem, q, gradient, slack=0.0):
        """Mask (..., nq) of variables at a limit against which the error pushes them.

        Those count as at a limit that are within ``slack`` of it.
        """
        held = np.zeros(q.shape, dtype=bool)
        v = np.flatnonzero(problem.q_of_v >= 0)
        k = problem.q_of_v[v]
        push, at = gradient[..., v], q[..., k]
        low, high = at <= self.lower[k] + slack, at >= self.upper[k] - slack
        held[..., k] = (low & (push < 0)) | (high & (push > 0))
        return held

    def nearest(self, q):
        """Nearer limit of every position variable."""
        return np.where(q - self.lower < self.upper - q, self.lower, self.upper)


def limits_of(problem, limits) -> PositionBounds:
    """Position limits: True for the model's, False for none, or two arrays (nq,)."""
    model = problem.model
    if isinstance(limits, bool) and limits in problem.known_limits:
        return problem.known_limits[limits]
    if limits is False:
        free = PositionBounds(problem, np.full(model.nq, -np.inf), np.full(model.nq, np.inf))
        return problem.known_limits.setdefault(False, free)
    lower, upper = model.position_limits if limits is True else _given_limits(model, limits)
    movable = np.zeros(model.nq, dtype=bool)
    movable[problem.q_of_v[problem.q_of_v >= 0]] = True
    bounded = (lower > -_NONE) | (upper < _NONE)
    for i in problem.bodies:
        at = model.q_slice[i]
        if np.any(bounded[at] & ~movable[at]):
            raise ModelError(
                f"inverse kinematics cannot keep joint {model.joint_names[i - 1]!r}, a "
                f"{type(model.joint[i]).__name__}, within limits of its position variables, since "
                f"its velocities are not their rates; pass limits=False, or limits=(lower, upper) "
                f"that leave it free"
            )
    found = PositionBounds(problem, lower, upper, are_of_model=limits is True)
    return problem.known_limits.setdefault(True, found) if limits is True else found


def _given_limits(model, limits):
    """Lower and upper limits that a user gives, checked."""
    if not isinstance(limits, (tuple, list)) or len(limits) != 2:
        raise ShapeError(
            f"limits must be True (those of the model), False (none), or two arrays "
            f"(lower, upper) of shape (nq,); got {limits!r}"
        )
    bounds = []
    for name, values in zip(("lower", "upper"), limits, strict=True):
        a = np.asarray(values, dtype=float)
        as_position_vector(model, np.nan_to_num(a, posinf=0, neginf=0), f"{name} limits")
        bounds.append(np.broadcast_to(a, (model.nq,)))
    if np.any(bounds[0] > bounds[1]):
        k = int(np.argmax(bounds[0] > bounds[1]))
        raise ShapeError(
            f"lower limit {bounds[0][k]:.6g} of q[{k}] is above its upper limit {bounds[1][k]:.6g}"
        )
    return bounds
