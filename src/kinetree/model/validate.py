"""Everything a model must satisfy before any algorithm sees it."""

import warnings

import numpy as np

from kinetree.errors import ModelError, ModelWarning
from kinetree.joints import AbstractJoint
from kinetree.model.tree import check_parents
from kinetree.spatial import Inertia, Plucker

__all__ = ["check_model", "inertia_defect"]


def check_model(model, *, strict):
    """Raise ModelError for the first thing that is wrong with ``model``."""
    check_parents(model.parent)
    _check_names(model)
    if model.gravity.shape != (3,):
        raise ModelError(f"gravity must have 3 components, got shape {model.gravity.shape}")
    _check_finite(model.gravity, "gravity")
    for body in model.bodies:
        _check_body(body, strict)
    for frame in model.frames:
        _check_body_number(model, frame.body, f"frame {frame.name!r}")
        _check_transform(frame.placement, f"placement of frame {frame.name!r}")
    for loop in model.loops:
        _check_loop(model, loop)


def _check_names(model):
    kinds = {
        "body": model.body_names,
        "joint": (*model.joint_names, *(loop.name for loop in model.loops)),
        "frame": model.frame_names,
    }
    for kind, names in kinds.items():
        for name in names:
            if not isinstance(name, str) or not name:
                raise ModelError(f"{kind} name must be a non-empty string, got {name!r}")
            if names.count(name) > 1:
                raise ModelError(f"{kind} name {name!r} is used {names.count(name)} times; names must be unique")
    shared = set(model.frame_names) & set(model.body_names)
    if shared:
        raise ModelError(
            f"frame name {sorted(shared)[0]!r} is also a body name; a body name already names "
            f"the body's own frame"
        )


def _check_body(body, strict):
    if not isinstance(body.joint, AbstractJoint):
        raise ModelError(
            f"joint {body.joint_name!r} must be a joint such as Revolute('z'), got {body.joint!r}"
        )
    _check_transform(body.placement, f"placement of joint {body.joint_name!r}")
    if not isinstance(body.inertia, Inertia):
        raise ModelError(
            f"inertia of body {body.name!r} must be an Inertia, got {type(body.inertia).__name__}"
        )
    parameters = body.inertia.parameters()
    _check_finite(parameters, f"inertia of body {body.name!r}")
    defect = None if parameters.dtype == object else inertia_defect(body.inertia)
    if defect:
        message = f"inertia of body {body.name!r} is physically impossible: {defect}"
        if strict:
            raise ModelError(message)
        warnings.warn(message, ModelWarning, stacklevel=4)
    _check_limits(body)


def _check_limits(body):
    if body.limits is None:
        return
    sizes = {"lower": body.joint.nq, "upper": body.joint.nq}
    sizes |= {"velocity": body.joint.nv, "effort": body.joint.nv}
    for name, size in sizes.items():
        got = len(getattr(body.limits, name))
        if got not in (0, size):
            raise ModelError(
                f"limits of joint {body.joint_name!r}: {name} needs {size} entries, got {got}"
            )


def _check_loop(model, loop):
    what = f"loop joint {loop.name!r}"
    _check_body_number(model, loop.predecessor, what)
    _check_body_number(model, loop.successor, what)
    if loop.predecessor == loop.successor:
        name = model.body_names[loop.predecessor]
        raise ModelError(f"{what} connects body {name!r} to itself")
    if not isinstance(loop.joint, AbstractJoint):
        raise ModelError(f"{what} must be a joint such as Revolute('z'), got {loop.joint!r}")
    _check_transform(loop.predecessor_placement, f"predecessor placement of {what}")
    _check_transform(loop.successor_placement, f"successor placement of {what}")


def _check_body_number(model, i, what):
    if not 0 <= i <= len(model.bodies):
        raise ModelError(f"{what} refers to body {i}; the model has bodies 0 to {len(model.bodies)}")


def _check_transform(X, what):
    if not isinstance(X, Plucker):
        raise ModelError(
            f"{what} must be a Plücker transform such as xlt(x, y, z), got {type(X).__name__}"
        )
    _check_finite(X.E, what)
    _check_finite(X.r, what)
    if X.E.dtype == object:
        return
    error = np.max(np.abs(X.E @ X.E.T - np.eye(3)))
    if error > 1e-6 or np.linalg.det(X.E) < 0:
        raise ModelError(
            f"{what} is not a proper rotation: E Eᵀ differs from 1 by {error:.2g}, "
            f"det E = {np.linalg.det(X.E):.6g}"
        )


def _check_finite(array, what):
    if array.dtype != object and not np.all(np.isfinite(array)):
        raise ModelError(f"{what} must be finite, got {array.tolist()}")


def inertia_defect(inertia) -> str | None:
    """Why no rigid body can have this inertia, or None. A massless body is possible."""
    m = float(np.real(inertia.mass))
    if m < 0:
        return f"mass must not be negative, got {m:.6g} kg"
    h, I = np.real(inertia.first_moment), np.real(inertia.rotational)
    size = float(np.max(np.abs(I)))
    if m == 0:
        if np.any(h) or size > 0:
            return "a body without mass cannot have a first moment or a rotational inertia"
        return None
    asymmetry = float(np.max(np.abs(I - I.T)))
    if asymmetry > 1e-9 * size:
        return f"rotational inertia must be symmetric, differs from its transpose by {asymmetry:.3g}"
    # Principal moments about the mass centre: each at most the sum of the other two.
    moments = np.linalg.eigvalsh(np.real(inertia.rotational_at_center))
    tolerance = 1e-9 * max(size, 1e-300)
    if moments[0] < -tolerance:
        return f"principal moments must not be negative, got {_list(moments)} kg m²"
    if moments[2] > moments[0] + moments[1] + tolerance:
        return (
            f"no principal moment may exceed the sum of the other two, got {_list(moments)} kg m²"
        )
    return None


def _list(values):
    return ", ".join(f"{v:.6g}" for v in values)
