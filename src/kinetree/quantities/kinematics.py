"""Where frames are and how they move: poses, velocities, accelerations, Jacobians.

The six coordinates of a motion, angular first, can mean several things, and ``frame`` says which:

- ``"world"``, the default of every function: spatial motion in base coordinates.
- ``"body"``: spatial motion in the frame's own coordinates.
- ``"aligned"``: at the frame's origin, along the axes of the base: the geometric Jacobian.

``relative_to`` names another frame that takes the place of the base in all of these: motion
relative to that frame, in its coordinates.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from kinetree.algorithms import jacobians as texts
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.joint_space import (
    CLOSURE_TOLERANCE,
    check_constraints_hold,
    constraint,
)
from kinetree.algorithms.closed.rank import kept_rows, rank_at
from kinetree.algorithms.task_space import task_rows
from kinetree.arrays.batch import over_batch
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SingularError, TraceError, UnknownNameError, calling
from kinetree.model import Model
from kinetree.model.array_arguments import ArrayArgument as Argument
from kinetree.model.arrays import as_given, as_model, as_numbers, check_finite
from kinetree.model.define import DEFINITIONS, quantity

__all__ = [
    "acceleration", "bias_acceleration", "hessian", "jacobian", "jacobian_rate", "jacobians",
    "joint_acceleration", "joint_velocity", "pose", "poses", "velocity",
]  # fmt: skip

Coordinates = Literal["world", "body", "aligned"]
Kind = Literal["spatial", "classical"]


def _of_frame(algorithm):
    """Algorithm of a frame object wrapped to take frame names."""

    def of_names(model, *state, name, frame, relative_to, **options):
        observer = None if relative_to is None else model.frame(relative_to)
        return algorithm(model, *state, model.frame(name), frame, observer=observer, **options)

    return of_names


def _pose(model, q, *, name, relative_to):
    """Pose of a frame by name, relative to the base or another frame."""
    observer = None if relative_to is None else model.frame(relative_to)
    return texts.frame_pose(model, q, model.frame(name), observer)


def _check(model, given):
    """Raise an error for unknown frame names or invalid choices of coordinates."""
    if "kind" in given and given["kind"] not in ("spatial", "classical"):
        raise UnknownNameError(
            f"an acceleration has no kind {given['kind']!r}; use 'spatial' or 'classical'"
        )
    if "name" in given:
        model.frame(given["name"])
    if given.get("relative_to") is not None:
        model.frame(given["relative_to"])
    if "frame" in given:
        reference_point(given["frame"], given.get("point"))
    if "rows" in given:
        task_rows(given["rows"])


def _in_the_base(model, options):
    """Whether motions are relative to the base, so that general code serves."""
    return options.get("relative_to") is None


_frame_quantity = partial(quantity, check=_check, general=True, general_for=_in_the_base)


@_frame_quantity((4, 4), _pose)
def pose(model: Model, q: ArrayLike, name: str, *, relative_to: str | None = None) -> Array:
    """Pose of a frame or body: a homogeneous matrix (..., 4, 4).

    It maps the frame's coordinates of points to those of the base, or of ``relative_to``.
    """


@quantity(("body_count", 4, 4), texts.all_poses, general=True)
def poses(model: Model, q: ArrayLike) -> Array:
    """Poses of all moving bodies in the base, in the order of ``model.body_names[1:]``.

    The result has the shape (..., body_count, 4, 4).
    """


@_frame_quantity((6, "nv"), _of_frame(texts.frame_jacobian))
def jacobian(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Jacobian of a frame or body, (..., 6, nv).

    Its velocity is ``J @ qd + velocity(model, q, 0 * qd, name)``; the last term, of prescribed
    joints, is zero without them.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        name: name of the frame or body.
        frame: ``"world"``, the default: spatial velocity in base coordinates; ``"body"``: in the
            frame's own coordinates; ``"aligned"``: at the frame's origin, along the axes of the
            base.
        point: a point fixed to the frame [m], (3,), used instead of its origin; not with
            ``frame="world"``.
        relative_to: name of a frame or body used instead of the base.
    """


@_frame_quantity(
    ("body_count", 6, "nv"),
    lambda model, q, *, frame: texts.all_jacobians(model, q, reference=frame),
)
def jacobians(model: Model, q: ArrayLike, *, frame: Coordinates = "world") -> Array:
    """Jacobians of all moving bodies, (..., body_count, 6, nv); ``frame`` as in ``jacobian``."""


@_frame_quantity((6, "nv"), _of_frame(texts.frame_jacobian_rate))
def jacobian_rate(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Time derivative of ``jacobian`` when the mechanism moves at ``qd``, (..., 6, nv)."""


@_frame_quantity((6, "nv", "nv"), _of_frame(texts.frame_hessian))
def hessian(
    model: Model,
    q: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Derivatives of ``jacobian`` with respect to ``q``, (..., 6, nv, nv).

    Entry ``[..., j, k]`` is the derivative of column ``j`` along ``model.integrate(q, t e_k)``; the
    rate of the Jacobian is ``hessian @ qd + jacobian_rate(model, q, 0 * qd, name)``, whose last
    term, of prescribed joints, is zero without them. It is not symmetric in ``j`` and ``k``:
    rotations do not commute.
    """


@_frame_quantity((6,), _of_frame(texts.frame_velocity))
def velocity(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Spatial velocity of a frame or body, (..., 6); options as in ``jacobian``."""


@_frame_quantity((6,), _of_frame(texts.frame_acceleration))
def acceleration(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    name: str,
    *,
    kind: Kind = "spatial",
    frame: Coordinates = "world",
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Acceleration of a frame or body, (..., 6); other options as in ``jacobian``.

    ``kind="spatial"`` is the rate of the spatial velocity; ``kind="classical"`` has the
    acceleration of the reference point as its linear part.
    """


@_frame_quantity((6,), _of_frame(texts.frame_bias_acceleration))
def bias_acceleration(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    name: str,
    *,
    kind: Kind = "spatial",
    frame: Coordinates = "world",
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Acceleration of a frame or body at ``qdd = 0``, (..., 6); options as in ``acceleration``.

    Without prescribed joints it is ``jacobian_rate @ qd``, with ``kind="spatial"`` for the frames
    world and body, and with ``kind="classical"`` for aligned.
    """


# --- inverse maps --------------------------------------------------------------------------------

Rows = str | Sequence[str] | None


def _inverse_map(algorithm):
    """Inverse Jacobian algorithm wrapped to take frame names."""

    def of_names(model, *state, name, frame, rows, relative_to, **options):
        observer = None if relative_to is None else model.frame(relative_to)
        options = {**options, "rows": task_rows(rows), "observer": observer}
        return algorithm(model, *state, model.frame(name), frame, **options)

    return of_names


def _with_loops(name):
    """Function for calls of an inverse map with loops, by their allowed motions."""

    def otherwise(model, *args, **options):
        defined = DEFINITIONS[name]
        if not as_model(model).is_constrained:
            return defined(model, *args, **options)
        bound = defined.signature.bind(model, *args, **options)
        bound.apply_defaults()
        given = dict(bound.arguments)
        given.pop("model")
        _check(model, given)
        arrays = {n: given.pop(n) for n in defined.required}
        arrays |= {n: given.pop(n) for n in ("point",) if given[n] is not None}
        with calling(name):
            return _allowed_by_loops(model, name, arrays, given)

    return otherwise


@on_host
def _allowed_by_loops(model, function, arrays, options):
    """Result of a function of the motions that loops allow, sample by sample."""
    arrays = {n: as_numbers(x, n) for n, x in arrays.items()}
    if any(x.dtype == object for x in arrays.values()):
        raise TraceError(
            f"{function} of a mechanism with loops decides about ranks on the CPU, in Python, and "
            f"cannot be traced; call it outside the kernel"
        )
    DEFINITIONS[function].validate(model, list(arrays), list(arrays.values()), options)
    fixed: dict[str, Any] = {n: options[n] for n in ("name", "frame", "relative_to")}
    rows, at_rest = list(task_rows(options["rows"])), "qd" not in arrays

    def one(*sample):
        given = dict(zip(arrays, (x.real for x in sample), strict=True))
        q, qd = given["q"], given.get("qd", np.zeros(model.nv))
        wanted = given["velocity" if at_rest else "acceleration"]
        of_frame: dict[str, Any] = {**fixed, "point": given.get("point")}
        J = jacobian(model, q, **of_frame)[rows]
        c = constraint(model, q, qd)
        moving = 0 * c.rate if at_rest else c.rate  # at rest, time may move constraints
        check_constraints_hold(model, c._replace(rate=moving), CLOSURE_TOLERANCE)
        K = c.implicit.K
        if at_rest:
            bias, k = velocity(model, q, qd, **of_frame), -loop_constraints(model, q, qd).rate
        else:
            kind = "classical" if options["frame"] == "aligned" else "spatial"
            bias, k = bias_acceleration(model, q, qd, kind=kind, **of_frame), c.implicit.k
        keep = kept_rows(model, K)
        K, k = (K, k) if keep is None else (K[keep], k[keep])
        U, s, Vt = np.linalg.svd(K)
        r = int(rank_at(model, c.implicit.K)) if keep is None else len(K)
        held, free = Vt[:r].T @ ((U[:, :r].T @ k) / s[:r]), Vt[r:].T
        A = J @ free
        if np.linalg.matrix_rank(A, tol=1e-8 * np.linalg.norm(J)) < len(J):
            raise SingularError(texts.singular_jacobian(model, model.frame(options["name"])))
        return held + free @ (np.linalg.pinv(A) @ (wanted - bias[rows] - J @ held))

    return over_batch(one, arrays, core=[1] * len(arrays), shape=(model.nv,))


def _inverse_quantity(name):
    """Quantity that maps a task velocity or acceleration to joints."""
    size = Argument((lambda model, options: len(task_rows(options["rows"])),))
    return _frame_quantity(
        ("nv",),
        _inverse_map(getattr(texts, name)),
        arrays={"velocity": size, "acceleration": size},
        read={"rows": lambda model, rows: rows if isinstance(rows, str) else tuple(rows)},
        otherwise=_with_loops(name),
        general=False,
    )


@_inverse_quantity("joint_velocity")
def joint_velocity(
    model: Model,
    q: ArrayLike,
    velocity: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Joint velocities ``qd`` that give a frame or body the velocity ``V``, (..., nv).

    The solution of ``V = J qd + V(q, 0)``, in which the last term is the velocity that prescribed
    joints cause.

    Lynch & Park (9.93). If there are more joints than coordinates of the frame, the result is the
    vector ``qd`` of least norm; ``dynamically_consistent_inverse`` gives that of least energy. With
    loops, it is sought among the velocities that they allow, on the CPU.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        velocity: ``V``, (..., k).
        name: name of the frame or body.
        frame: meaning of the coordinates, as in ``jacobian``.
        rows: which coordinates are given: all six, ``"linear"``, ``"angular"``, or a tuple of names
            from ``("rx", "ry", "rz", "x", "y", "z")``.
        point: as in ``jacobian``.
        relative_to: as in ``jacobian``.

    Raises:
        SingularError: some velocities of the frame are impossible in this configuration.
    """


@_inverse_quantity("joint_acceleration")
def joint_acceleration(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    acceleration: ArrayLike,
    name: str,
    *,
    frame: Coordinates = "world",
    rows: Rows = None,
    point: ArrayLike | None = None,
    relative_to: str | None = None,
) -> Array:
    """Joint accelerations ``qdd`` that give a frame an acceleration, (..., nv).

    The solution of ``dV/dt = J qdd + b`` with ``b`` from ``bias_acceleration`` — Lynch & Park
    (9.94). ``dV/dt`` is that of a point
    for ``frame="aligned"`` and spatial otherwise; other arguments as in ``joint_velocity``.
    """


# --- checking ------------------------------------------------------------------------------------


def require_reference(frame):
    """Raise UnknownNameError for an unknown reference of coordinates."""
    if not isinstance(frame, str) or frame not in ("world", "body", "aligned"):
        raise UnknownNameError(
            f"frame must be 'world', 'body' or 'aligned', got {frame!r}; the frame or body whose "
            f"motion is wanted comes before it"
        )


def reference_point(frame, point):
    """Point as numbers (..., 3), after a check that the reference allows one; or None."""
    require_reference(frame)
    if point is None:
        return None
    if frame == "world":
        raise ShapeError(
            "frame='world' gives the spatial velocity at the base origin, the same for every "
            "point of the body; use frame='aligned' for the velocity of a point"
        )
    point = as_given(point, "point")
    if point.shape[-1:] != (3,):
        raise ShapeError(f"point must have 3 coordinates, (..., 3), got shape {point.shape}")
    return check_finite(point, "point")
