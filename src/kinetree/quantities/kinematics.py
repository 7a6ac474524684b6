"""Where frames are and how they move: poses, velocities, accelerations, Jacobians.

The six coordinates of a motion, angular first, can mean several things, and ``frame`` says which:

- ``"world"``, the default of every function: spatial motion in base coordinates.
- ``"body"``: spatial motion in the frame's own coordinates.
- ``"aligned"``: at the frame's origin, along the axes of the base: the geometric Jacobian.

``relative_to`` names another frame that takes the place of the base in all of these: motion
relative to that frame, in its coordinates.
"""

from functools import partial
from typing import Literal

from kinetree.algorithms import jacobians as texts
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.model import Model
from kinetree.model.arrays import as_given, check_finite
from kinetree.model.define import quantity

__all__ = [
    "acceleration",
    "bias_acceleration",
    "hessian",
    "jacobian",
    "jacobian_rate",
    "jacobians",
    "pose",
    "poses",
    "velocity",
]

Coordinates = Literal["world", "body", "aligned"]
Kind = Literal["spatial", "classical"]


def _of_frame(algorithm):
    """A text about a frame, for the names that callers use."""

    def of_names(model, *state, name, frame, relative_to, **options):
        observer = None if relative_to is None else model.frame(relative_to)
        return algorithm(model, *state, model.frame(name), frame, observer=observer, **options)

    return of_names


def _pose(model, q, *, name, relative_to):
    observer = None if relative_to is None else model.frame(relative_to)
    return texts.frame_pose(model, q, model.frame(name), observer)


def _check(model, given):
    """Raise for names that the model does not have, and for choices that mean nothing."""
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


_frame_quantity = partial(quantity, check=_check)


@_frame_quantity((4, 4), _pose)
def pose(model: Model, q: ArrayLike, name: str, *, relative_to: str | None = None) -> Array:
    """Pose of a frame or body: a homogeneous matrix (..., 4, 4).

    It maps the frame's coordinates of points to those of the base, or of ``relative_to``.
    """


@quantity(("body_count", 4, 4), texts.all_poses)
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
    """Jacobian of a frame or body: its velocity is ``J @ qd``, (..., 6, nv).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        name: name of the frame or body.
        frame: ``"world"``, the default: spatial velocity in base coordinates; ``"body"``: in the
            frame's own coordinates; ``"aligned"``: at the frame's origin, along the axes of the
            base.
        point: a point fixed to the frame [m], (3,), to take the place of its origin; not with
            ``frame="world"``.
        relative_to: name of a frame or body to take the place of the base.
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
    rate of the Jacobian is ``hessian @ qd``. It is not symmetric in ``j`` and ``k``: rotations do
    not commute.
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

    It is ``jacobian_rate @ qd`` with ``kind="spatial"`` for the frames world and body, and with
    ``kind="classical"`` for aligned.
    """


# --- checking ------------------------------------------------------------------------------------


def require_reference(frame):
    """Raise UnknownNameError for what does not say how coordinates are meant."""
    if not isinstance(frame, str) or frame not in ("world", "body", "aligned"):
        raise UnknownNameError(
            f"frame must be 'world', 'body' or 'aligned', got {frame!r}; the frame or body whose "
            f"motion is wanted comes before it"
        )


def reference_point(frame, point):
    """``point`` as numbers, if there is one and it has a meaning."""
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
