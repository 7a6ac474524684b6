"""Dynamics in the coordinates of a task: the inertia felt at a frame, and control of its motion.

A task is the motion of a frame, in the coordinates that ``frame`` names as in ``jacobian``, or some
rows of it: ``V = J qd``. Its acceleration ``dV/dt = J qdd + dJ/dt qd`` is that of a point
(classical) for ``frame="aligned"``, and a spatial acceleration otherwise. Forces on the task,
moment first, are those with the power ``F·V``.

Loops are supported: the task has no motions that they forbid, and their own accelerations are part
of its biases. Where ``J`` lacks full row rank some accelerations are impossible, and
``SingularError`` is raised; ``task_freedom`` finds which, and ``damping`` bounds the inertia
instead.
"""

from collections.abc import Sequence
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import task_articulated as articulated
from kinetree.algorithms import task_space as texts
from kinetree.algorithms.closed.independent import allowed_motion_at
from kinetree.algorithms.crba import require_independent_joints
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike, is_foreign
from kinetree.errors import ShapeError, TraceError, calling
from kinetree.model import Model
from kinetree.model.array_arguments import ArrayArgument as Argument
from kinetree.model.arrays import as_configuration, as_given, as_model, check_finite
from kinetree.model.define import quantity, register
from kinetree.quantities.kinematics import Coordinates, reference_point
from kinetree.quantities.loops import none_kept, with_loops

__all__ = [
    "dynamically_consistent_inverse", "inverse_operational_space_inertia", "null_space_projector",
    "operational_space_bias", "operational_space_dynamics", "operational_space_gravity",
    "operational_space_inertia", "task_freedom", "task_space_forward_dynamics",
    "task_space_inverse_dynamics",
]  # fmt: skip


Rows = str | Sequence[str] | None
"""Coordinates of a task: all six, ``"linear"``, ``"angular"``, or names of some."""


class OperationalSpace(NamedTuple):
    """``F = inertia @ dV/dt + coriolis + gravity``, the equation of motion of a task."""

    inertia: Any
    """``Lambda``, (..., k, k)."""
    coriolis: Any
    """Velocity terms, (..., k)."""
    gravity: Any
    """What holds the task against gravity, (..., k)."""


def _of_task(algorithm):
    """Task algorithms wrapped to take frame names: by plain and leanest formulations."""

    def of_names(model, *state, name, frame, rows, **options):
        return algorithm(model, *state, model.frame(name), frame, rows=rows, **options)

    return of_names, partial(of_names, ways=texts.FEWEST)


def _by_articulated_bodies(algorithm):
    """General code of a task quantity, by articulated bodies."""
    text = getattr(articulated, algorithm.__name__)

    def of_options(options):
        def of_arrays(model, *state, **more):
            at = model.frame("name"), options["frame"]
            return text(model, *state, *at, rows=options["rows"], **more)

        return of_arrays

    return of_options


def _moves_by_joints(model, options):
    """Whether a frame moves with the joints, and no joint is prescribed."""
    on_base = model.frame(options["name"]).body == 0
    return not on_base and not any(joint.moves_by_itself for joint in model.joint[1:])


def _size(model, options):
    """Number of rows of the task."""
    return len(texts.task_rows(options.get("rows")))


def _check(model, given):
    """Raise an error for unknown frame names or invalid choices of coordinates."""
    model.frame(given["name"])
    _rows(given["rows"])
    reference_point(given["frame"], given["point"])
    for name in ("acceleration", "force"):
        if name in given:
            _check_vector(given[name], name, given["rows"])


def _damping(model, damping):
    """Damping of a call as a positive number, or an error."""
    damping = as_given(damping, "damping")
    if is_foreign(damping) or damping.dtype == object:
        return damping
    if not np.all(damping > 0):
        raise ShapeError(f"damping must be positive, got {damping.min()}")
    return check_finite(damping, "damping", core=0)


def _check_vector(x, name, rows):
    """Raise an error unless a vector has a number for each row of the task."""
    n = len(texts.task_rows(_rows(rows)))
    x = as_given(x, name)
    if x.ndim == 0 or x.shape[-1] != n:
        raise ShapeError(
            f"{name} must have one number for each coordinate of the task, (..., {n}), angular "
            f"first; got shape {x.shape}"
        )
    check_finite(x, name)


def _rows(rows):
    """Rows of a task; an error if they are unknown."""
    texts.task_rows(rows)  # or an error
    return rows if rows is None or isinstance(rows, str) else tuple(rows)


def _with_loops(algorithm):
    """Task algorithm for mechanisms with loops, by their allowed motions."""

    def text(at, *, name, frame, **options):
        vectors = [options.pop(n) for n in ("acceleration", "force") if n in options]
        state = (at.q, at.qd, *vectors) if "qd" in signature(algorithm).parameters else (at.q,)
        handle = at.model.frame(name)
        return algorithm(at.model, *state, handle, frame, ways=texts.FEWEST, allowed=at, **options)

    return with_loops(text, none_kept)


def _task_quantity(shape, algorithm):
    """Quantity of a task: the motion of a frame, or some of its coordinates."""
    return quantity(
        shape,
        *_of_task(algorithm),
        general=_by_articulated_bodies(algorithm),
        general_for=_moves_by_joints,
        serve=_with_loops(algorithm),
        tree=True,
        needs=(require_independent_joints,),
        inverts_inertia=True,
        arrays={
            "acceleration": Argument((_size,)),
            "force": Argument((_size,)),
            "damping": Argument(()),
        },
        read={"rows": lambda model, rows: _rows(rows), "damping": _damping},
        check=_check,
    )


@_task_quantity((_size, _size), texts.inertia)
def operational_space_inertia(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> Array:
    """``Lambda = (J H⁻¹ Jᵀ)⁻¹``: the inertia felt at a frame, (..., k, k).

    Args:
        model: the mechanism; with loops, the inertia is ``(J G H_y⁻¹ Gᵀ Jᵀ)⁻¹`` of the motions
            ``qd = G yd`` that they allow.
        q: joint positions, (..., nq).
        name: name of the frame or body.
        frame: coordinates: ``"world"``, ``"body"`` or ``"aligned"``, as in ``jacobian``.
        rows: which coordinates belong to the task: all six, ``"linear"``, ``"angular"``, or a tuple
            of names from ``("rx", "ry", "rz", "x", "y", "z")``.
        point: a point fixed to the frame, (..., 3), used instead of its origin.
        damping: added to the diagonal of ``J H⁻¹ Jᵀ`` [1/kg, 1/(kg·m²)]; no inertia then exceeds
            ``1 / damping``, and singular configurations raise no error.
    """


@_task_quantity((_size, _size), texts.inverse_inertia)
def inverse_operational_space_inertia(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
) -> Array:
    """``J H⁻¹ Jᵀ``, how forces accelerate the task, (..., k, k); also at singularities."""


@_task_quantity((_size,), texts.bias)
def operational_space_bias(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> Array:
    """Task-space bias force ``eta``, which keeps ``dV/dt`` zero, gravity included, (..., k)."""


@_task_quantity((_size,), texts.gravity)
def operational_space_gravity(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> Array:
    """Task-space force that holds against gravity at rest, (..., k)."""


@register
def operational_space_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> OperationalSpace:
    """``Lambda``, velocity terms and gravity of the task: ``F = Lambda dV/dt + mu + p``.

    Options as in ``operational_space_inertia``. With ``tau = Jᵀ F`` the joint forces of this
    acceleration, if the robot has as many joints as the task has coordinates; a redundant robot is
    free to add ``null_space_projector.T @ tau_0``.

    Returns:
        A named tuple ``inertia`` (..., k, k), ``coriolis`` (..., k), ``gravity`` (..., k).
    """
    options: Any = {"frame": frame, "rows": rows, "point": point, "damping": damping}
    with calling("operational_space_dynamics"):
        gravity = operational_space_gravity(model, q, name, **options)
        bias = operational_space_bias(model, q, qd, name, **options)
        inertia = operational_space_inertia(model, q, name, **options)
    return OperationalSpace(inertia, bias - gravity, gravity)


@_task_quantity(("nv", _size), texts.consistent_inverse)
def dynamically_consistent_inverse(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> Array:
    """``J̄ = H⁻¹ Jᵀ Lambda``, (..., nv, k): the velocities of least energy for ``V`` are ``J̄ V``.

    Of all right inverses of ``J`` it is the one for which forces ``(1 - Jᵀ J̄ᵀ) tau_0`` do not
    accelerate the task.
    """


@_task_quantity(("nv", "nv"), texts.null_space_projector)
def null_space_projector(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> Array:
    """``N = 1 - J̄ J``, (..., nv, nv): ``N qd`` moves the joints, and not the task.

    ``N.T @ tau_0`` are joint forces that do not accelerate the task.
    """


@_task_quantity(("nv",), texts.task_inverse_dynamics)
def task_space_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    acceleration: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    damping: ArrayLike | None = None,
) -> Array:
    """Joint forces ``Jᵀ (Lambda dV/dt + eta)`` that give the task an acceleration, (..., nv).

    Args:
        model: the mechanism; loops are supported.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        acceleration: ``dV/dt``, (..., k).
        name: name of the frame or body.
        frame: as in ``operational_space_inertia``; so are the other options.
        rows: see there.
        point: see there.
        damping: see there; the acceleration is then reached only approximately.
    """


@_task_quantity((_size,), texts.task_forward_dynamics)
def task_space_forward_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    force: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
) -> Array:
    """Task acceleration ``dV/dt`` under a task force, (..., k); also at singularities.

    The force may come from the joints, ``tau = Jᵀ F``, or from outside; other joint forces are
    zero.
    """


class TaskFreedom(NamedTuple):
    """Motions of a task that are possible in one configuration."""

    rank: int
    """Number of independent directions in which the task can move."""
    condition: float
    """Ratio of the largest to the smallest singular value of ``J H^-½``; infinite if singular."""
    free: np.ndarray
    """Orthonormal directions in which it can accelerate, (k, rank), the easiest first."""
    blocked: np.ndarray
    """Orthonormal directions in which it cannot, (k, k - rank)."""
    inertia: np.ndarray
    """``Lambda`` within the free directions, zero in the others, (k, k)."""


@register
@on_host
def task_freedom(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    tolerance: float = 1e-8,
) -> TaskFreedom:
    """Rank, condition and free directions of a task in one configuration; raises no error.

    The rank is decided on the CPU, by singular values; options as in
    ``operational_space_inertia``. Loops are supported: directions that they block are not free.

    Args:
        model: the mechanism.
        q: joint positions, (nq,); with loops, a configuration that closes them.
        name: name of the frame or body.
        frame: see ``operational_space_inertia``.
        rows: see there.
        point: see there.
        tolerance: singular values below this fraction of the largest count as zero.
    """
    q = as_configuration(as_model(model), q)
    if q.ndim != 1:
        raise ShapeError(f"task_freedom takes one configuration (nq,), got shape {q.shape}")
    if q.dtype == object:
        raise TraceError(
            "task_freedom decides about a rank on the CPU, in Python, and cannot be traced; call "
            "it outside the kernel, or use damping= there"
        )
    rows = _rows(rows)
    point = reference_point(frame, point)
    half = _response(model, q, model.frame(name), frame, rows, point)
    U, s, _ = np.linalg.svd(half.T, full_matrices=True)
    s = np.concatenate([s, np.zeros(len(U) - len(s))])
    rank = int(np.count_nonzero(s > tolerance * max(s, default=0)))
    free, blocked = U[:, :rank], U[:, rank:]
    condition = float(s[0] / s[-1]) if rank == len(U) else np.inf
    return TaskFreedom(rank, condition, free, blocked, (free / s[:rank] ** 2) @ free.T)


def _response(model, q, frame, reference, rows, point):
    """Matrix ``H^-½ Jᵀ`` up to a rotation; with loops that of allowed motions."""
    with calling("task_freedom"):
        allowed = allowed_motion_at(model, q, None) if model.is_constrained else None
        task = texts.Task(model, q, frame, reference, rows, point, allowed=allowed)
    return task.Y / np.sqrt(task.L.diagonal())[:, None]
