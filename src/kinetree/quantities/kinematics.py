"""Where frames are and how they move: poses, velocities, accelerations, Jacobians.

The six coordinates of a motion, angular first, can mean several things, and ``frame`` says which:

- ``"world"``, the default of every function: spatial motion in base coordinates.
- ``"body"``: spatial motion in the frame's own coordinates.
- ``"aligned"``: at the frame's origin, along the axes of the base: the geometric Jacobian.

``relative_to`` names another frame that takes the place of the base in all of these: the result is
what somebody sees who rides on it.
"""

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.model.arrays import as_given, as_model, check_finite
from kinetree.quantities.functions import quantity

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


def pose(model, q, name, *, relative_to=None):
    """Pose of a frame or body: a homogeneous matrix (..., 4, 4).

    It maps the frame's coordinates of points to those of the base, or of ``relative_to``.
    """
    options = _frames(model, name, relative_to)
    return quantity(model, "pose", **options).call(q)


def poses(model, q):
    """Poses of all moving bodies in the base, in the order of ``model.body_names[1:]``.

    The result has the shape (..., body_count, 4, 4).
    """
    return quantity(model, "poses").call(q)


def jacobian(model, q, name, *, frame="world", point=None, relative_to=None):
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
    return of_frame(model, "jacobian", (q,), name, frame, point, relative_to)


def jacobians(model, q, *, frame="world"):
    """Jacobians of all moving bodies, (..., body_count, 6, nv); ``frame`` as in ``jacobian``."""
    require_reference(frame)
    return quantity(model, "jacobians", reference=frame).call(q)


def jacobian_rate(model, q, qd, name, *, frame="world", point=None, relative_to=None):
    """Time derivative of ``jacobian`` when the mechanism moves at ``qd``, (..., 6, nv)."""
    return of_frame(model, "jacobian_rate", (q, qd), name, frame, point, relative_to)


def hessian(model, q, name, *, frame="world", point=None, relative_to=None):
    """Derivatives of ``jacobian`` with respect to ``q``, (..., 6, nv, nv).

    Entry ``[..., j, k]`` is the derivative of column ``j`` along ``model.integrate(q, t e_k)``; the
    rate of the Jacobian is ``hessian @ qd``. It is not symmetric in ``j`` and ``k``: rotations do
    not commute.
    """
    return of_frame(model, "hessian", (q,), name, frame, point, relative_to)


def velocity(model, q, qd, name, *, frame="world", point=None, relative_to=None):
    """Spatial velocity of a frame or body, (..., 6); options as in ``jacobian``."""
    return of_frame(model, "velocity", (q, qd), name, frame, point, relative_to)


def acceleration(
    model, q, qd, qdd, name, *, kind="spatial", frame="world", point=None, relative_to=None
):
    """Acceleration of a frame or body, (..., 6); other options as in ``jacobian``.

    ``kind="spatial"`` is the rate of the spatial velocity; ``kind="classical"`` has the
    acceleration of the reference point as its linear part.
    """
    _require_kind("acceleration", kind)
    where = (name, frame, point, relative_to)
    return of_frame(model, "acceleration", (q, qd, qdd), *where, kind=kind)


def bias_acceleration(
    model, q, qd, name, *, kind="spatial", frame="world", point=None, relative_to=None
):
    """Acceleration of a frame or body at ``qdd = 0``, (..., 6); options as in ``acceleration``.

    It is ``jacobian_rate @ qd`` with ``kind="spatial"`` for the frames world and body, and with
    ``kind="classical"`` for aligned.
    """
    _require_kind("bias_acceleration", kind)
    where = (name, frame, point, relative_to)
    return of_frame(model, "bias_acceleration", (q, qd), *where, kind=kind)


# --- checking ------------------------------------------------------------------------------------


def of_frame(model, function, arrays, name, frame, point, relative_to=None, **options):
    """A quantity of the frame or body ``name``, in the coordinates that ``frame`` asks for."""
    options.update(_frames(model, name, relative_to), reference=frame)
    point = reference_point(frame, point)
    if point is None:
        return quantity(model, function, **options).call(*arrays)
    return quantity(model, function, ("point",), **options).call(*arrays, point)


def _frames(model, name, relative_to):
    as_model(model).frame(name)
    if relative_to is None:
        return {"of": name}
    model.frame(relative_to)
    return {"of": name, "relative_to": relative_to}


def _require_kind(function, kind):
    if not isinstance(kind, str) or kind not in ("spatial", "classical"):
        raise UnknownNameError(f"{function} has no kind {kind!r}; use 'spatial' or 'classical'")


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
