"""Tasks and contacts of whole-body control: what a robot should do, and where it is held.

A task is a set of rows ``A x = b`` in the accelerations and contact forces ``x = (qdd, f)``. The
right-hand side of a motion is that of a unit mass on a spring and a damper,
``b = a_r + kd (v_r - v) + kp error - dJ/dt qd``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.arrays.kinds import ArrayLike
from kinetree.control.joint_space import (
    Gain,
    Reference,
    as_reference,
    damping_for,
    parts_of_reference,
)
from kinetree.control.operational_space import as_task_reference, checked_vector, rows_of
from kinetree.errors import ShapeError, require_known
from kinetree.model import Model
from kinetree.model.define import kernel_of
from kinetree.model.kernels import call_in_trace
from kinetree.quantities.centroidal import (
    center_of_mass,
    center_of_mass_acceleration,
    center_of_mass_velocity,
    centroidal_momentum,
    centroidal_momentum_bias,
)
from kinetree.quantities.kinematics import bias_acceleration, jacobian, pose, velocity
from kinetree.spatial.rotation import rotation_log
from kinetree.spelling import explains_itself

Points: TypeAlias = dict[str, slice]
"""Columns of the contact forces, by name of the contact."""


@explains_itself
@dataclass(frozen=True, eq=False)
class Contact:
    """A frame in contact: it does not move, and forces act there within friction cones.

    Args:
        frame: name of the frame or body.
        points: where it touches, in coordinates of the frame [m], (k, 3); by default its origin.
            One point may turn, two turn about the line between them, corners of a sole do not.
        friction: coefficient of friction.
        normal: direction in which the ground pushes, along the axes of the base.
        sides: of the pyramid inside the friction cone, which replaces it.
        least: smallest normal force at each point [N].
        most: largest normal force at each point [N].
        damping: rate at which a remaining velocity of the frame decays [1/s].
    """

    frame: str
    points: Any = ((0.0, 0.0, 0.0),)
    friction: float = 0.7
    normal: Any = (0.0, 0.0, 1.0)
    sides: int = 4
    least: float = 0.0
    most: float = np.inf
    damping: float = 20.0

    def __post_init__(self):
        points = np.atleast_2d(np.asarray(self.points, dtype=float))
        if points.ndim != 2 or points.shape[1] != 3 or not np.all(np.isfinite(points)):
            raise ShapeError(
                f"the points of contact {self.frame!r} must have shape (k, 3) and be finite, got "
                f"{self.points!r}"
            )
        normal = checked_vector(self.normal, (3,), f"the normal of contact {self.frame!r}")
        length = np.linalg.norm(normal)
        bounds = 0 <= self.least <= self.most
        if not (self.friction > 0 and length > 0 and self.sides >= 3 and bounds):
            raise ShapeError(
                f"contact {self.frame!r} needs friction > 0, sides >= 3, a normal that is not zero "
                f"and 0 <= least <= most, got friction={self.friction!r}, sides={self.sides!r}, "
                f"normal={self.normal!r}, least={self.least!r}, most={self.most!r}"
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "normal", normal / length)
        arms = [np.cross(np.eye(3), p - points[0]).T for p in points[1:]]
        _, s, Vt = np.linalg.svd(np.concatenate([np.zeros((3, 3)), *arms]))
        object.__setattr__(self, "turns", Vt[: int(np.sum(s > 1e-6))])

    turns: ClassVar[Any] = (
        None  # axes about which the frame cannot turn, in its coordinates, (j, 3)
    )

    @property
    def key(self) -> tuple:
        """Key of the contact's compiled code."""
        return self.frame, tuple(map(tuple, self.points))

    def motion(self, m: Model, q: Any, qd: Any) -> tuple:
        """Rows ``J`` that must not move, with ``J qd`` and ``dJ/dt qd``."""
        at: Any = {"frame": "aligned", "point": self.points[0]}
        J, v = jacobian(m, q, self.frame, **at), velocity(m, q, qd, self.frame, **at)
        c = bias_acceleration(m, q, qd, self.frame, kind="classical", **at)
        if len(self.turns) == 0:
            return J[3:], v[3:], c[3:]
        axes = np.eye(3, dtype=int) if len(self.turns) == 3 else self._axes(m, q)
        return tuple(np.concatenate([x[3:], axes @ x[:3]]) for x in (J, v, c))

    def _axes(self, m, q):
        """Axes, in the base, about which the contact cannot turn."""
        return self.turns @ pose(m, q, self.frame)[:3, :3].T

    def arms(self, m: Model, q: Any) -> Any:
        """Jacobians of the contact points, (3 k, nv)."""
        at: Any = {"frame": "aligned"}
        return np.concatenate([jacobian(m, q, self.frame, point=p, **at)[3:] for p in self.points])

    def cone(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Friction cone of one point as rows ``lower <= G f <= upper``."""
        n = self.normal
        a = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        a /= np.linalg.norm(a)
        b, angles = np.cross(n, a), 2 * np.pi * np.arange(self.sides) / self.sides
        tangents = np.outer(np.cos(angles), a) + np.outer(np.sin(angles), b)
        G = np.vstack([tangents - self.friction * np.cos(np.pi / self.sides) * n, n])
        lower = np.append(np.full(self.sides, -np.inf), self.least)
        return G, lower, np.append(np.zeros(self.sides), self.most)


@dataclass(frozen=True)
class TaskRows:
    """A task of one model: rows of ``A x = b``.

    Attributes:
        name: what messages call it.
        key: what compiled code depends on.
        size: number of rows.
        targets: a target as numbers, for instants at which the task does not apply.
        reference: function of time that returns these numbers, and the velocity and acceleration
            of the reference, (size,) each; or None where the task does not apply.
        text: function ``(m, q, qd, target)`` that returns ``J`` (None where it is ``fixed``), the
            error, the velocity and ``dJ/dt qd``; None where forces alone are meant.
        fixed: rows that do not depend on the state, (size, nv + 3 points).
        contact: name of the contact without which the task does not apply.
        constant: whether the reference is the same at all times.
    """

    name: str
    key: tuple
    size: int
    targets: np.ndarray
    reference: Callable[[float], Any]
    kp: Gain
    kd: Gain
    weight: np.ndarray
    priority: int
    text: Callable | None = None
    fixed: np.ndarray | None = None
    contact: str = ""
    constant: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class WholeBodyTask(ABC):
    """Base of all tasks.

    Attributes:
        weight: what its error counts against those of other tasks of the same priority, a number
            or one for each row.
        priority: 1 comes first. A task never disturbs one whose number is smaller.
        name: what messages and results call it.
    """

    weight: ArrayLike = 1.0
    priority: int = 1
    name: str = ""

    @abstractmethod
    def rows(self, model: Model, driven: np.ndarray, points: Points) -> TaskRows:
        """Rows of the task in the variables of a model.

        Args:
            model: the mechanism.
            driven: numbers of the driven velocity variables.
            points: columns of the contact forces, by name of the contact.
        """

    def _rows(
        self, name, key, size, targets, reference, kp: Any = 0.0, kd: Any = 0.0, **more
    ) -> TaskRows:
        """Rows of a task, with weight, gains and targets checked."""
        name = self.name or name
        weight = np.asarray(self.weight, dtype=float)
        if weight.shape not in ((), (size,)) or not np.all(weight > 0) or np.any(np.isinf(weight)):
            raise ShapeError(
                f"the weight of task {name!r} must be a positive number or ({size},) of them, got "
                f"{self.weight!r}; leave the task out to ignore it"
            )
        if not isinstance(self.priority, int) or self.priority < 1:
            raise ShapeError(
                f"the priority of task {name!r} must be 1, 2, ..., got {self.priority!r}"
            )
        gains = Gain(kp, size, f"kp of task {name!r}"), Gain(kd, size, f"kd of task {name!r}")
        weight = np.broadcast_to(weight, (size,))
        more["constant"] = not callable(getattr(self, "reference", None))
        return TaskRows(name, key, size, targets, reference, *gains, weight, self.priority, **more)


@explains_itself
@dataclass(frozen=True, eq=False)
class FrameTask(WholeBodyTask):
    """A task: a frame should follow a pose, a position or an orientation.

    Args:
        frame: name of the frame or body.
        reference: a pose (4, 4), a position (3,) or a rotation matrix (3, 3), as ``task`` says; of
            a pose an orientation or position takes its part; or
            a function of time that returns it, the velocity and the acceleration: angular first,
            then that of the origin, along the axes of the base. If it returns None, the task is
            left out, such as that of a foot on the ground.
        kp: stiffness per inertia [1/s²], a number or one for each row, or a matrix.
        kd: damping per inertia [1/s]; critical if left out.
        task: ``"pose"``, ``"position"`` or ``"orientation"``.
    """

    frame: str
    reference: Reference
    kp: ArrayLike = 100.0
    kd: ArrayLike | None = None
    task: Literal["pose", "position", "orientation"] = "pose"

    def rows(self, model: Model, driven: np.ndarray, points: Points) -> TaskRows:
        """Rows of the task in the variables of a model."""
        model.frame(self.frame)
        owner = f"FrameTask({self.frame!r}, task={self.task!r})"
        reference = as_task_reference(self.reference, self.task, may_rest=True, owner=owner)
        rows, frame, kind = rows_of(self.task), self.frame, self.task

        def numbers(t):
            found = reference(t)
            if found is None:
                return None
            target, v, a = found
            target = target[:3] if kind == "pose" else target
            return target.reshape(-1), v, a

        def text(m, q, qd, target):
            T = pose(m, q, frame)
            at: Any = {"frame": "aligned"}
            J, v = jacobian(m, q, frame, **at)[rows], velocity(m, q, qd, frame, **at)[rows]
            c = bias_acceleration(m, q, qd, frame, kind="classical", **at)[rows]
            if kind == "position":
                return J, target - T[:3, 3], v, c
            goal = target.reshape(3, -1)
            error = rotation_log(T[:3, :3] @ goal[:, :3].T)
            if kind == "pose":
                error = np.concatenate([error, goal[:, 3] - T[:3, 3]])
            return J, error, v, c

        targets = {"pose": np.eye(3, 4), "position": np.zeros(3), "orientation": np.eye(3)}[kind]
        return self._rows(
            f"{kind} of {frame}",
            ("frame", frame, kind),
            6 if kind == "pose" else 3,
            targets.reshape(-1),
            numbers,
            self.kp,
            damping_for(self.kp, self.kd),
            text=text,
        )


@explains_itself
@dataclass(frozen=True, eq=False)
class PostureTask(WholeBodyTask):
    """A task: joints should stay close to a configuration, or follow a motion.

    Args:
        reference: a configuration (nq,), or a function of time that returns ``(q, qd, qdd)``, or
            None to leave the task out.
        kp: stiffness per inertia [1/s²], a number or one for each variable, or a matrix.
        kd: damping per inertia [1/s]; critical if left out.
        joints: names of the joints; all that are driven if left out.
    """

    reference: Reference
    kp: ArrayLike = 100.0
    kd: ArrayLike | None = None
    joints: Sequence[str] | None = None

    def rows(self, model: Model, driven: np.ndarray, points: Points) -> TaskRows:
        """Rows of the task in the variables of a model."""
        at = driven if self.joints is None else velocity_columns(model, self.joints, "joints")
        reference, count = (
            as_reference(model, self.reference, may_rest=True),
            sum(_length(s) for s in points.values()),
        )

        def numbers(t):
            found = reference(t)
            if found is None:
                return None
            q, qd, qdd = found
            return q, qd[at], qdd[at]

        def text(m, q, qd, target):
            return None, m.difference(q, target)[at], qd[at], 0 * qd[at]

        return self._rows(
            "posture",
            ("posture", tuple(at.tolist())),
            len(at),
            model.neutral(),
            numbers,
            self.kp,
            damping_for(self.kp, self.kd),
            text=text,
            fixed=np.eye(model.nv + count)[at],
        )


@explains_itself
@dataclass(frozen=True, eq=False)
class CenterOfMassTask(WholeBodyTask):
    """A task: the centre of mass of the robot should follow a point.

    Args:
        reference: a point (3,) [m], or a function of time that returns it, its velocity and its
            acceleration.
        kp: stiffness per mass [1/s²], a number or one for each axis, or a matrix.
        kd: damping per mass [1/s]; critical if left out.
    """

    reference: Reference
    kp: ArrayLike = 100.0
    kd: ArrayLike | None = None

    def rows(self, model: Model, driven: np.ndarray, points: Points) -> TaskRows:
        """Rows of the task in the variables of a model."""

        def text(m, q, qd, target):
            c = center_of_mass_acceleration(m, q, qd, m.zero_velocity)
            v = center_of_mass_velocity(m, q, qd)
            J = call_in_trace(kernel_of(m, "center_of_mass_jacobian"), (q,))
            return J, target - center_of_mass(m, q), v, c

        reference = as_task_reference(self.reference, "position", may_rest=True)
        return self._rows(
            "center of mass",
            ("center of mass",),
            3,
            np.zeros(3),
            reference,
            self.kp,
            damping_for(self.kp, self.kd),
            text=text,
        )


@explains_itself
@dataclass(frozen=True, eq=False)
class MomentumTask(WholeBodyTask):
    """A task: the momentum of the robot about its centre of mass should follow a reference.

    Args:
        reference: momentum, angular first, (6,), or the part of it, (3,); or a function of time
            that returns the momentum and its rate, or None to leave the task out. By default zero:
            the robot should not tumble.
        kp: rate at which an error decays [1/s], a number or one for each row, or a matrix.
        part: ``"angular"``, ``"linear"`` or ``"both"``.
    """

    reference: Reference | None = None
    kp: ArrayLike = 10.0
    part: Literal["angular", "linear", "both"] = "angular"

    def rows(self, model: Model, driven: np.ndarray, points: Points) -> TaskRows:
        """Rows of the task in the variables of a model."""
        parts = {"angular": slice(0, 3), "linear": slice(3, 6), "both": slice(0, 6)}
        require_known(
            self.part, parts, f"part must be 'angular', 'linear' or 'both', got {self.part!r}"
        )
        at, size = parts[self.part], 6 if self.part == "both" else 3
        given, zero = self.reference, np.zeros(size)
        fixed = checked_vector(
            zero if given is None or callable(given) else given, (size,), "momentum"
        )

        def numbers(t):
            if not callable(given):
                return fixed, zero, zero
            found: Any = given(t)
            if found is None:
                return None
            demand = "the reference must return the momentum and its rate"
            h, rate = parts_of_reference(found, 2, t, demand)
            checked = checked_vector(rate, (size,), "rate of the momentum")
            return checked_vector(h, (size,), "momentum"), zero, checked

        def text(m, q, qd, target):
            A = call_in_trace(kernel_of(m, "centroidal_momentum_matrix"), (q,))[at]
            c = centroidal_momentum_bias(m, q, qd)[at]
            return A, target - centroidal_momentum(m, q, qd)[at], 0 * c, c

        return self._rows(
            f"{self.part} momentum",
            ("momentum", self.part),
            size,
            zero,
            numbers,
            self.kp,
            text=text,
        )


@explains_itself
@dataclass(frozen=True, eq=False)
class ForceTask(WholeBodyTask):
    """A task: the sum of the forces on a contact should have this value.

    Args:
        contact: name of the frame of a contact.
        reference: force of the surroundings on the robot, along the axes of the base [N], (3,), or
            a function of time that returns it, or None to leave the task out.
    """

    contact: str
    reference: Reference

    def rows(self, model: Model, driven: np.ndarray, points: Points) -> TaskRows:
        """Rows of the task in the variables of a model."""
        require_known(self.contact, points, f"there is no contact {self.contact!r}")
        given, at = self.reference, points[self.contact]
        constant = None if callable(given) else checked_vector(given, (3,), "force")
        fixed = np.zeros((3, model.nv + sum(_length(s) for s in points.values())))
        fixed[:, model.nv + at.start : model.nv + at.stop] = np.tile(np.eye(3), _length(at) // 3)
        none = np.zeros(0)

        def numbers(t):
            f: Any = given(t) if callable(given) else constant
            return None if f is None else (none, none, checked_vector(f, (3,), "force"))

        return self._rows(
            f"force of {self.contact}",
            ("force",),
            3,
            none,
            numbers,
            fixed=fixed,
            contact=self.contact,
        )


def _length(s):
    """Number of elements of a slice."""
    return s.stop - s.start
