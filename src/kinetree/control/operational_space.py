"""Control of a frame in space, and of the posture where the frame leaves a choice.

O. Khatib, "A unified approach for motion and force control of robot manipulators: the operational
space formulation" (1987); Lynch & Park §9.6 for the equations of motion in task space.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.equilibria import motor_forces
from kinetree.control.joint_space import (
    Freedoms,
    Gain,
    Reference,
    as_reference,
    configuration_error,
    damping_for,
    parts_of_reference,
)
from kinetree.errors import ShapeError, UnknownNameError, require_known
from kinetree.functional.kernel import kernel
from kinetree.model import Model
from kinetree.model.arrays import as_model, as_numbers, check_finite
from kinetree.quantities.dynamics import inverse_mass_matrix
from kinetree.quantities.kinematics import jacobian, jacobian_rate, pose
from kinetree.spatial.rotation import rotation_log
from kinetree.spelling import explains, explains_itself

_SMALLEST = 1e-4  # of the largest mobility, with units scaled away: below, inertia is capped


@kernel
def _rotation_vector(E):
    """Rotation vector of a rotation matrix given as (9,), as a kernel."""
    return rotation_log(E.reshape(3, 3))


@explains
def pose_error(pose: ArrayLike, target: ArrayLike) -> Array:
    """Rotation vector and displacement from one pose to another, in base axes.

        error = kt.control.pose_error(kt.pose(m, q, "tool"), goal)
        tau = kt.bias_force(m, q, qd) + J.T @ (K @ error - D @ (J @ qd))

    With ``J = kt.jacobian(m, q, "tool", frame="aligned")`` this is an impedance: ``J @ qd`` is the
    velocity of the tool in the same coordinates, and ``K @ error`` a moment and a force.

    Args:
        pose: where a frame is, (..., 4, 4), as from ``kinetree.pose``.
        target: where it should be, (..., 4, 4).

    Returns:
        Rotation vector [rad], of length at most π, then displacement [m], (..., 6).
    """
    plain = type(pose) is type(target) is np.ndarray and pose.dtype == target.dtype == float
    if plain and pose.shape[-2:] == target.shape[-2:] == (4, 4):
        return _compiled_error().call(pose, target)
    T, target = (checked_vector(x, (4, 4), n) for x, n in ((pose, "pose"), (target, "target")))
    return _pose_error(T, target)


@cache
def _compiled_error():
    """Pose error as one compiled kernel, for arrays only."""

    @kernel
    def pose_error(pose: (4, 4), target: (4, 4)):  # pyright: ignore[reportInvalidTypeForm]
        turn = rotation_log(pose[:3, :3] @ target[:3, :3].T)
        return np.concatenate([turn, target[:3, 3] - pose[:3, 3]])

    return pose_error.compiled(np.eye(4), np.eye(4))


def _pose_error(T, target):
    """Spatial displacement from a pose to a target, angular part first."""
    E = T[..., :3, :3] @ np.swapaxes(target[..., :3, :3], -1, -2)
    turn = _rotation_vector(E.reshape(*E.shape[:-2], 9))
    return np.concatenate([turn, target[..., :3, 3] - T[..., :3, 3]], axis=-1)


@explains_itself
class OperationalSpaceControl:
    """Operational-space control: a frame follows a pose or point like a unit mass on a spring.

        tau = C + Jᵀ Λ (a_r + kd (v_r - v) + kp error - dJ/dt qd) + (1 - Jᵀ Λ J H⁻¹) H qdd_posture

    ``Λ = (J H⁻¹ Jᵀ)⁻¹`` is the inertia felt at the frame; the factor of ``H qdd_posture`` is the
    projector onto joint forces that do not accelerate the frame. In directions in which the
    mechanism cannot move the frame, ``Λ`` is capped instead of growing without bound. With
    loops, ``H`` and ``J`` are those of the independent coordinates, ``Gᵀ H G`` and ``J G``, and the
    forces are the smallest of the driven joints that produce the motion.

        reach = kt.control.OperationalSpaceControl(m, "tool", pose, kp=100, posture=m.neutral())
        tau = reach(t, q, qd)

    Args:
        model: the mechanism, fully actuated; with loops, a motor per degree of freedom or more.
        frame: name of the frame.
        reference: a pose (..., 4, 4) to go to, or a function of time that returns the pose, the
            velocity and the acceleration of the frame, (6,) each: angular first, then that of the
            origin, along the axes of the base. With ``task="position"`` points, and their
            velocities and accelerations, (3,).
        kp: stiffness per inertia [1/s²], a number, (6,) or (6, 6); (3,) or (3, 3) for positions.
        kd: damping per inertia [1/s]; critical if left out.
        task: ``"pose"`` or ``"position"``.
        posture: reference of the redundant degrees of freedom, as in ``ComputedTorque``. Without
            it they are only damped.
        posture_kp: stiffness per inertia of the posture, a number, (nv,) or (nv, nv).
        posture_kd: damping per inertia of the posture; critical if left out.
        independent: of a mechanism with loops, names of the joints whose variables are the
            coordinates; ``kinetree.loops.independent(model)`` if left out.

    Raises:
        ModelError: there are joints without motors.
    """

    def __init__(
        self,
        model: Model,
        frame: str,
        reference: Reference,
        kp: ArrayLike,
        kd: ArrayLike | None = None,
        *,
        task: Literal["pose", "position"] = "pose",
        posture: Reference | None = None,
        posture_kp: ArrayLike = 10.0,
        posture_kd: ArrayLike | None = None,
        independent: str | Sequence[str] | None = None,
    ):
        if task not in ("pose", "position"):
            raise UnknownNameError(f"task must be 'pose' or 'position', got {task!r}")
        as_model(model).frame(frame)
        self.model, self.frame, self.task = model, frame, task
        self.freedoms = Freedoms(model, independent)
        self.freedoms.require_motors("OperationalSpaceControl")
        self.reference = as_task_reference(reference, task)
        size = 6 if task == "pose" else 3
        self.kp = Gain(kp, size, "kp")
        self.kd = Gain(damping_for(kp, kd), size, "kd")
        held = posture is not None
        self.posture = as_reference(model, posture if held else model.neutral())
        self.posture_kp = Gain(posture_kp if held else 0.0, model.nv, "posture_kp")
        damping = damping_for(posture_kp, posture_kd, "posture_kd")
        self.posture_kd = Gain(damping, model.nv, "posture_kd")

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        m, q, qd = self.model, np.asarray(q), np.asarray(qd)
        rows = slice(None) if self.task == "pose" else slice(3, None)
        J = np.asarray(jacobian(m, q, self.frame, frame="aligned"))[..., rows, :]
        J_rate = np.asarray(jacobian_rate(m, q, qd, self.frame, frame="aligned"))[..., rows, :]

        target, v_r, a_r = self.reference(t)
        error = self._error(pose(m, q, self.frame), target)
        wanted = a_r + self.kd(v_r - _times(J, qd)) + self.kp(error) - _times(J_rate, qd)
        posture = self.freedoms.allowed_acceleration(q, qd, self._posture(t, q, qd))

        # J qdd = wanted and, as far as that leaves a choice, qdd = posture. With loops the inverse
        # inertia is G (Gᵀ H G)⁻¹ Gᵀ, and leads from what they allow to what they allow.
        response = inverse_mass_matrix(m, q) @ np.swapaxes(J, -1, -2)
        force = _times(_capped_inverse(J @ response), wanted - _times(J, posture))
        return motor_forces(m, q, qd, posture + _times(response, force))

    def _error(self, T, target):
        """Task error of the frame: of a pose, or of a position."""
        if self.task == "pose":
            return pose_error(T, target)
        return target - T[..., :3, 3]

    def _posture(self, t, q, qd):
        """Desired joint accelerations of the posture task, in the frame's null space."""
        q_r, qd_r, qdd_r = self.posture(t)
        e = configuration_error(self.model, q, q_r)
        return qdd_r + self.posture_kd(qd_r - qd) + self.posture_kp(e)


# --- References of frames -------------------------------------------------------------------------

_ROWS = {"pose": slice(0, 6), "position": slice(3, 6), "orientation": slice(0, 3)}
_SHAPES = {"pose": (4, 4), "position": (3,), "orientation": (3, 3)}


def rows_of(task) -> slice:
    """Indices (of six) of the coordinates of a task; an error for unknown tasks."""
    require_known(task, _ROWS, f"task must be 'pose', 'position' or 'orientation', got {task!r}")
    return _ROWS[task]


def as_task_reference(reference, task, *, may_rest=False, owner="") -> Callable[[float], Any]:
    """Reference as a function of time to a frame's target, velocity and acceleration.

    Args:
        reference: such a function, or a target.
        task: ``"pose"``, ``"position"`` or ``"orientation"``.
        may_rest: whether the function may return None.
        owner: what has the reference, for messages, such as ``"FrameTask('tool')"``.
    """
    rows = rows_of(task)
    size, name = rows.stop - rows.start, f"{owner}: reference".removeprefix(": ")
    if not callable(reference):
        fixed = _target_of(reference, task, name), np.zeros(size), np.zeros(size)
        return lambda t: fixed

    def read_reference(t):
        found = reference(t)
        if found is None and may_rest:
            return None
        demand = f"{name} must return the {task}, velocity and acceleration of the frame"
        target, v, a = parts_of_reference(found, 3, t, demand)
        return (
            _target_of(target, task, name),
            checked_vector(v, (size,), f"{name} velocity"),
            checked_vector(a, (size,), f"{name} acceleration"),
        )

    return read_reference


def _target_of(given, task, name):
    """Target as a pose, position or rotation, as far as the task concerns it."""
    core, shape = _SHAPES[task], np.shape(given)
    if task != "pose" and shape[-2:] == (4, 4):
        T = np.asarray(given)
        given = T[..., :3, :3] if task == "orientation" else T[..., :3, 3]
    elif task != "pose" and shape[-len(core) :] != core:
        raise ShapeError(
            f"{name} {task} must have shape (..., {', '.join(map(str, core))}), or (..., 4, 4) "
            f"as that of a pose, got {shape}"
        )
    return checked_vector(given, core, f"{name} {task}")


def checked_vector(x, core, name):
    """Array of finite numbers whose last axes are ``core``; an error otherwise."""
    x = as_numbers(x, name)
    if x.ndim < len(core) or x.shape[x.ndim - len(core) :] != core:
        shape = ", ".join(["...", *map(str, core)])
        raise ShapeError(f"{name} must have shape ({shape}), got {x.shape}")
    return check_finite(x, name, len(core))


def _capped_inverse(M):
    """Inverse of symmetric matrices, with near-zero eigenvalues replaced by small ones.

    The diagonal is scaled to one first, so that units do not count.
    """
    d = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    d = np.where(d > 0, d, 1.0)
    scale = d[..., :, None] * d[..., None, :]
    values, vectors = np.linalg.eigh(M / scale)
    smallest = np.maximum(_SMALLEST * values[..., -1:], np.finfo(float).tiny)
    values = np.maximum(values, smallest)
    return (vectors / values[..., None, :]) @ np.swapaxes(vectors, -1, -2) / scale


def _times(A, x):
    """Batched products of matrices and vectors."""
    return (A @ x[..., None])[..., 0]
