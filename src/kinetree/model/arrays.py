"""Checking the joint vectors a caller passes in: right length, finite, unit quaternions."""

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["as_configuration", "as_joint_vector"]


def as_configuration(model, q, name="q"):
    """``q`` as an array of shape (..., nq) of finite numbers with unit quaternions."""
    q = _checked(model, q, name, model.nq, "nq")
    if q.dtype == object:
        return q
    for i in range(1, model.body_count + 1):
        part = q[..., model.q_slice[i]]
        for sample in np.ndindex(part.shape[:-1]):
            defect = model.joint[i].defect(part[sample])
            if defect:
                joint = model.joint_names[i - 1]
                raise ShapeError(f"{name}{_where(sample)}, joint {joint!r}: {defect}")
    return q


def as_joint_vector(model, x, name):
    """``x`` as an array of shape (..., nv) of finite numbers."""
    return _checked(model, x, name, model.nv, "nv")


def _checked(model, x, name, size, size_name):
    a = np.asarray(x)
    if a.dtype == object:
        pass
    elif not (np.issubdtype(a.dtype, np.number) or a.dtype == bool):
        raise ShapeError(f"{name} must hold numbers, got an array of {a.dtype}")
    elif not np.issubdtype(a.dtype, np.inexact):
        a = a.astype(float)
    if a.ndim == 0 or a.shape[-1] != size:
        raise ShapeError(
            f"{name} must have shape (..., {size_name}) with {size_name} = {size} for model "
            f"{model.name!r}, got {a.shape}" + _hint(model, a, name, size_name)
        )
    if a.dtype != object and not np.all(np.isfinite(a)):
        *sample, k = (int(n) for n in np.argwhere(~np.isfinite(a))[0])
        raise ShapeError(
            f"{name} must be finite, got {a[(*sample, k)]} at index {k}{_where(sample)}"
        )
    return a


def _hint(model, a, name, size_name):
    if a.ndim and model.nq != model.nv and a.shape[-1] in (model.nq, model.nv):
        other = "nv" if size_name == "nq" else "nq"
        return (
            f" = (..., {other}); positions and velocities differ in length here: see "
            f"model.neutral(), model.integrate() and model.difference()"
        )
    return ""


def _where(sample):
    return f" of sample {tuple(sample)}" if len(sample) else ""
