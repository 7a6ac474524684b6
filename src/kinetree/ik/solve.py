"""Joint positions that put frames where they should be, and dynamics as functions of a pose.

Task-space dynamics ``Lambda(X)`` and ``eta(X, V)`` of the pose of a task — Lynch & Park §9.6 —
stand for ``Lambda(q)`` and ``eta(q, qd)`` with ``q`` found by inverse kinematics and
``qd = J⁻¹ V``. The text recommends to keep ``q``, and so do we: a pose may belong to several
configurations, of which the search takes one near ``q0``, or to none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.algorithms.jacobians import singular_jacobian
from kinetree.arrays.batch import batch_shape
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike, as_numpy
from kinetree.codegen import tiers
from kinetree.errors import ShapeError, SingularError, UnreachableError
from kinetree.ik.problem import TaskProblem
from kinetree.ik.search import CLOSED, Request, reasons, search, settle
from kinetree.ik.tasks import (
    CenterOfMassTask,
    OrientationTask,
    PoseTask,
    PositionTask,
    PostureTask,
    limits_of,
)
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import closure_error
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model
from kinetree.notebook import block, line, table
from kinetree.quantities.kinematics import Coordinates, Rows, joint_velocity
from kinetree.quantities.task_space import operational_space_dynamics

_TASKS = (PoseTask, PositionTask, OrientationTask, CenterOfMassTask)

Task: TypeAlias = PoseTask | PositionTask | OrientationTask | CenterOfMassTask | PostureTask
"""A task of inverse kinematics."""


REASONS = {
    "converged": "the error is below the tolerance",
    "out of reach": "every attempt came to rest short of the target, and no smaller error was "
    "found nearby; q is the closest that was found",
    "limits": "the target can be reached, but not within the joint limits, as far as was found",
    "singular": "the search ended in a singular configuration, where no small step of the joints "
    "helps although larger ones might; try other starts, or more restarts",
    "open loops": "no configuration within the joint limits was found that closes the loops",
    "iterations": "the error was still getting smaller when the iterations ran out",
}
"""Reasons why a search ends."""


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Joint positions for targets, one for each sample of the batch.

    Attributes:
        q: configurations, (..., nq); where ``success`` is False, the closest that were found.
            They close the loops, unless ``reason`` is ``"open loops"``.
        success: whether the error is below the tolerance, (...).
        error: norm of all errors of the tasks, radians and metres in one, (...).
        iterations: number of iterations, in all attempts, (...).
        restarts: number of restarts before ``q`` was found, (...).
        reason: why the search ended, a key of ``REASONS``, (...).
        tolerance: the error at which a target counts as reached.
        worst: the task that is farthest off and its error, in words, (...); empty where there is
            success.
    """

    q: Any
    success: Any
    error: Any
    iterations: Any
    restarts: Any
    reason: Any
    tolerance: float
    worst: Any = ""

    def require(self) -> Array:
        """Solution ``q`` if every target was reached; UnreachableError names the first failure."""
        success = as_numpy(self.success)
        if np.all(success):
            return self.q
        sample = tuple(int(k) for k in np.argwhere(~success)[0])
        reason = str(as_numpy(self.reason)[sample])
        error, count = as_numpy(self.error)[sample], int(np.sum(~success))
        many = f"{count} of {success.size} targets were not reached; the first, target {sample}"
        raise UnreachableError(
            f"{many if sample else 'the target was not reached'}: {reason} ({REASONS[reason]}). "
            f"Its error is {error:.3g}, the tolerance {self.tolerance:.3g}; farthest off is "
            f"{np.asarray(self.worst)[sample]}"
        )

    def __repr__(self):
        success = as_numpy(self.success)
        if success.ndim == 0:
            return f"<inverse kinematics: {self.reason}, error {self.error:.3g}>"
        reasons, counts = np.unique(as_numpy(self.reason), return_counts=True)
        found = ", ".join(f"{n} {reason}" for reason, n in zip(reasons, counts, strict=True))
        return f"<inverse kinematics of {success.size} targets: {found}>"

    def _repr_html_(self):
        """HTML table of how samples ended, for notebooks."""
        reason, error = np.ravel(as_numpy(self.reason)), np.ravel(as_numpy(self.error))
        iterations, rows = np.ravel(as_numpy(self.iterations)), []
        for name in dict.fromkeys(reason.tolist()):
            of = reason == name
            rows.append((int(of.sum()), name, error[of].max(), iterations[of].max(), REASONS[name]))
        head = ("targets", "reason", "largest error", "iterations at most", "meaning")
        q = np.asarray(as_numpy(self.q))
        found = line(f"q = ({', '.join(f'{x:.6g}' for x in q)})") if q.ndim == 1 else ""
        return block(repr(self)[1:-1], table(head, rows), found)


@on_host
def inverse_kinematics(
    model: Model,
    frame: str | Task | Sequence[Task],
    target: ArrayLike | None = None,
    q0: ArrayLike | None = None,
    *,
    joints: str | Sequence[str] | None = None,
    limits: bool | tuple[ArrayLike, ArrayLike] = True,
    tolerance: float = 1e-8,
    restarts: int = 10,
    iterations: int = 104,
    seed: int = 0,
) -> InverseKinematics:
    """Joint positions that bring a frame to its target, or fulfil several tasks at once.

    Levenberg and Marquardt's method on the manifold of configurations, within joint limits, with
    restarts from random configurations where it fails. A target that is not reached is not an
    error: ``success`` is False and ``reason`` says why; ``.require()`` raises an error. Loops are
    closed in the result, to 1e-10 rad or 1e-10 of their size, whether ``q0`` closes them or not.

    Args:
        model: the mechanism.
        frame: name of a frame or body; or a list of tasks, such as ``PoseTask("tool", target)``,
            ``CenterOfMassTask(point)`` and ``PostureTask(q)``.
        target: where the frame should be: poses (..., 4, 4), or positions (..., 3) [m]. None when
            tasks are given, which have their own targets.
        q0: initial guess, (..., nq); neutral by default. It is moved into the limits.
        joints: names of joints and groups that may move, the others stay at ``q0``; default all.
        limits: True, to stay within the limits of the joints; False, to ignore them; or
            ``(lower, upper)``, each (nq,).
        tolerance: norm of the errors, radians and metres in one, at which a target is reached.
        restarts: number of restarts if a target is not reached.
        iterations: number of iterations of one attempt.
        seed: for the configurations from which restarts begin, the same for all targets.

    Returns:
        An ``InverseKinematics`` with ``q`` (..., nq), ``success``, ``error`` and ``reason``.
        Always in double precision.
    """
    as_model(model)
    tasks, posture = _tasks(frame, target)
    for name, value in (("restarts", restarts), ("iterations", iterations)):
        if not isinstance(value, (int, np.integer)) or value < (name == "iterations"):
            raise ShapeError(f"{name} must be an integer, not negative; got {value!r}")
    if not 0 < tolerance < np.inf:
        raise ShapeError(f"tolerance must be a positive number, got {tolerance!r}")
    problem = TaskProblem.of(model, tasks, joints)
    bounds = limits_of(problem, limits)
    arrays = {f"target {k}": task.numbers(model) for k, task in enumerate(tasks)}
    arrays["q0"] = as_configuration(model, model.neutral() if q0 is None else q0, "q0")
    if posture is not None:
        arrays["posture"] = posture.numbers(model, bounds.middle)
    batch = batch_shape(arrays, [1] * len(arrays))
    rows = [
        np.ascontiguousarray(np.broadcast_to(a, (*batch, a.shape[-1])), dtype=float).reshape(
            -1, a.shape[-1]
        )
        for a in arrays.values()
    ]
    numbers, q = np.concatenate(rows[: len(tasks)], axis=1), rows[len(tasks)].copy()
    q[:, problem.q_moving] = bounds.clip(q)[:, problem.q_moving]
    request = Request(problem, bounds, iterations, tolerance, wide=len(q) > 1)
    with tiers.task(iterations * len(q)):
        q = _with_other_loops_closed(problem, q)
        found = search(request, q, numbers, restarts, seed)
        if posture is not None:
            settle(request, found, numbers, rows[-1])
        return _result(request, found, numbers, restarts, batch)


def _tasks(frame, target):
    """Tasks of a call, and its posture task or None."""
    if isinstance(frame, str):
        return (_task(frame, target),), None
    if isinstance(frame, (*_TASKS, PostureTask)):
        frame = (frame,)
    if not isinstance(frame, (list, tuple)):
        raise TypeError(
            f"inverse_kinematics takes the name of a frame, or a list of tasks, got "
            f"{type(frame).__name__}"
        )
    if target is not None:
        raise TypeError("tasks have their own targets: leave the argument 'target' out")
    postures = [task for task in frame if isinstance(task, PostureTask)]
    tasks = tuple(task for task in frame if not isinstance(task, PostureTask))
    for task in tasks:
        if not isinstance(task, _TASKS):
            known = ", ".join(kind.__name__ for kind in (*_TASKS, PostureTask))
            raise TypeError(f"a task must be one of {known}; got {type(task).__name__}")
    if not tasks or len(postures) > 1:
        raise TypeError(
            f"inverse_kinematics needs one task or more that says where something should be, and "
            f"one PostureTask at most; got {len(tasks)} and {len(postures)}"
        )
    return tasks, postures[0] if postures else None


def _task(frame, target):
    """Task for a target, by its shape: pose, position or rotation."""
    if target is None:
        raise TypeError(f"inverse_kinematics needs a target for frame {frame!r}")
    shape = np.shape(target)
    if shape[-2:] == (4, 4):
        return PoseTask(frame, target)
    if shape[-2:] == (3, 3):
        R = np.asarray(target, dtype=float)
        if np.all(np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)) < 1e-3):
            raise ShapeError(
                f"a target of shape {shape} can be rotations or positions: say "
                f"OrientationTask({frame!r}, target) or PositionTask({frame!r}, target)"
            )
    if shape[-1:] == (3,):
        return PositionTask(frame, target)
    raise ShapeError(
        f"the target of frame {frame!r} must be poses (..., 4, 4) or positions (..., 3), got shape "
        f"{shape}"
    )


def _with_other_loops_closed(problem, q):
    """Configuration with those loops closed that the tasks do not move."""
    if len(problem.loops) == len(problem.model.loops):
        return q
    others = [f"loop {p.name!r}" for p in problem.model.loops if p not in problem.loops]
    rows = [k for k, row in enumerate(rows_of(problem.model)) if row.owner in others]
    gap = np.asarray(closure_error(problem.model, q))[:, rows] * scaling(problem.model).rows[rows]
    if np.all(np.abs(gap) <= CLOSED):
        return q
    closed = assemble(problem.model, q)
    closed[:, problem.q_moving] = q[:, problem.q_moving]
    return closed


def _result(request, found, numbers, restarts, batch):
    """Solution with the reason why each search ended."""
    problem, tolerance = request.problem, request.tolerance
    reason = np.full(len(found.q), "converged", dtype="<U12")
    failed = np.flatnonzero(found.error >= tolerance)
    if len(failed):
        reason[failed] = reasons(request, found, failed, numbers)
    if problem.closing_rows:  # until here, open loops were part of the error
        error = np.sqrt(problem.run("equations", found.q, numbers, wide=found.wide)[2][:, 0])
    else:
        error = found.error
    success = reason == "converged"

    def reshape(a):
        a = a.reshape((*batch, *a.shape[1:]))
        return a if a.shape else a[()]

    restarts = np.where(success, found.attempts, restarts)
    return InverseKinematics(
        reshape(found.q),
        reshape(success),
        reshape(error),
        reshape(found.iterations),
        reshape(restarts),
        reshape(reason),
        tolerance,
        reshape(_worst(request, found, numbers, np.flatnonzero(~success))),
    )


def _worst(request, found, numbers, failed):
    """Name of the worst task in each failed sample; empty for others."""
    problem, words = request.problem, np.full(len(found.q), "", dtype=object)
    if not len(failed):
        return words
    q = np.ascontiguousarray(found.q[failed])
    scaled = problem.run("equations", q, np.ascontiguousarray(numbers[failed]), wide=found.wide)[0]
    errors = scaled / problem.e_scale
    ends = np.cumsum([len(task.units) for task in problem.tasks])[:-1]
    parts = np.split(errors[:, : problem.task_rows], ends, axis=1)
    norms = np.stack([np.linalg.norm(part, axis=1) for part in parts], axis=1)
    for sample, of_tasks in zip(failed, norms, strict=True):
        k = int(np.argmax(of_tasks))
        task = problem.tasks[k]
        kind = type(task).__name__.removesuffix("Task")
        frame = f"({task.frame!r})" if hasattr(task, "frame") else ""
        unit = " and ".join(dict.fromkeys(task.units))
        words[sample] = f"{kind}Task{frame}, by {of_tasks[k]:.3g} {unit}"
    return words


class PoseDynamics(NamedTuple):
    """``F = inertia @ dV/dt + coriolis + gravity`` at a pose and a velocity of the task."""

    inertia: Any
    """``Lambda(X)``, (..., k, k)."""
    coriolis: Any
    """Velocity terms, (..., k)."""
    gravity: Any
    """What holds the task against gravity, (..., k)."""
    q: Any
    """The configuration that was found for the pose, (..., nq)."""
    qd: Any
    """Joint velocities of the task's velocity, (..., nv)."""


@on_host
def dynamics_at_pose(
    model: Model,
    name: str,
    pose: ArrayLike,
    velocity: ArrayLike,
    q0: ArrayLike | None = None,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    **options: Any,
) -> PoseDynamics:
    """Equation of motion of a frame at a pose ``X`` and a velocity ``V``, on the CPU.

    Args:
        model: the mechanism, for which ``V`` determines ``qd``, such as one of six joints; with
            more, the ``qd`` of least norm is taken.
        name: name of the frame or body.
        pose: its pose ``X`` in the base, (..., 4, 4).
        velocity: its velocity ``V``, or the coordinates of it in ``rows``, (..., k).
        q0: where the search for the configuration begins, (..., nq).
        frame: meaning of ``V``, as in ``jacobian``.
        rows: which coordinates belong to the task, as in ``operational_space_inertia``; all six by
            default.
        **options: of ``inverse_kinematics``: ``limits``, ``tolerance``, ``restarts`` and so on.

    Raises:
        UnreachableError: no configuration was found for the pose.
        SingularError: some velocities of the frame are impossible there.
    """
    if np.shape(pose)[-2:] != (4, 4):
        raise ShapeError(f"pose must be homogeneous matrices (..., 4, 4), got {np.shape(pose)}")
    if not as_model(model).nv:
        raise SingularError(singular_jacobian(model, model.frame(name)))
    q = inverse_kinematics(model, name, pose, q0, **options).require()
    qd = joint_velocity(model, q, velocity, name, frame=frame, rows=rows)
    equation = operational_space_dynamics(model, q, qd, name, frame=frame, rows=rows)
    return PoseDynamics(*equation, q, qd)
