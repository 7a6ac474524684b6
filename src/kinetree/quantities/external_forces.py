"""Forces on bodies as callers write them, made one array: the argument ``f_ext``."""

from typing import Any

import numpy as np

from kinetree.arrays.batch import common_shape
from kinetree.arrays.kinds import Array, common, is_foreign, stacked_rows
from kinetree.codegen.program import Argument
from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.model import Model
from kinetree.model.arrays import as_given, check_finite
from kinetree.model.memo import remember
from kinetree.spatial import Force, Motion

_FLOAT = np.dtype(float)


def external_forces(model: Model, f_ext: Any) -> Array:
    """External forces as one array (..., body_count, 6), in the order of the bodies."""
    if type(f_ext) is np.ndarray and f_ext.shape == (model.body_count, 6):
        return f_ext  # kernels look at its numbers
    if type(f_ext) is not dict:
        return _any_forces(model, f_ext)
    # Plain arrays of one shape, by name: the common case, without ceremony.
    bodies, zero = model.memo.get("external_forces") or _places(model)
    array: Any = None
    shape: Any = None
    for name, f in f_ext.items():
        i = bodies.get(name)
        if i is None or type(f) is not np.ndarray or f.dtype is not _FLOAT:
            return _any_forces(model, f_ext)
        if array is None:
            shape = f.shape
            array = zero.copy() if shape == (6,) else np.zeros((*shape[:-1], *zero.shape))
        if f.shape != shape or shape[-1:] != (6,):
            return _any_forces(model, f_ext)
        if i == 0:  # the base takes any force without moving
            continue
        if len(shape) == len(f_ext) == 1:
            array[i - 1] = f
        else:
            row = array[..., i - 1, :]
            row += f
    return zero if array is None else array


def _places(model):
    """Number of the body of every frame, and zero forces for all bodies."""
    names = (*model.body_names, *model.frame_names)

    def make():
        zero = np.zeros((model.body_count, 6))
        zero.flags.writeable = False
        return {n: model.frame(n).body for n in names}, zero

    return remember(model, "external_forces", make)


def _any_forces(model, f_ext):
    """External forces as an array (..., body_count, 6), from an array or a dict by frame."""
    if isinstance(f_ext, dict):
        forces = {name: _force(name, f) for name, f in f_ext.items()}
        if any(map(is_foreign, forces.values())):
            return _stack(model, forces)
        array = np.zeros((*_common_batch(forces), model.body_count, 6), _common_type(forces))
        for name, f in forces.items():
            i = model.frame(name).body
            if i > 0:  # the base takes any force without moving
                array[..., i - 1, :] = array[..., i - 1, :] + f
        return array
    if isinstance(f_ext, (list, tuple)) and any(isinstance(f, (Force, Motion)) for f in f_ext):
        f_ext = [_force(f"body {i}", f) for i, f in enumerate(f_ext, start=1)]
    array = as_given(f_ext, "f_ext")
    if array.ndim < 2 or array.shape[-2:] != (model.body_count, 6):
        raise ShapeError(
            f"f_ext must be a dict from body name to (..., 6), or an array (..., body_count, 6) "
            f"with body_count = {model.body_count}; got shape {array.shape}"
        )
    return check_finite(array, "f_ext", core=2)


def _stack(model, forces):
    """Stack forces given as arrays of another library."""
    common("f_ext", [Argument(name, (6,)) for name in forces], list(forces.values()))
    rows = {}
    for name, f in forces.items():
        i = model.frame(name).body
        if i > 0:
            rows[i - 1] = rows[i - 1] + f if i - 1 in rows else f
    return stacked_rows(rows, model.body_count)


def _force(name, f):
    """Spatial force on a body as an array (..., 6)."""
    if isinstance(f, Motion):
        raise SpatialTypeError(f"f_ext[{name!r}] must be a Force or (..., 6), got a Motion")
    f = as_given(f.to_array() if isinstance(f, Force) else f, f"f_ext[{name!r}]")
    if f.ndim == 0 or f.shape[-1] != 6:
        raise ShapeError(f"f_ext[{name!r}] must have shape (..., 6), moment first, got {f.shape}")
    return check_finite(f, f"f_ext[{name!r}]")


def _common_batch(forces):
    """Batch shape to which all forces broadcast."""
    leads = [f.shape[:-1] for f in forces.values()]
    names = [f"{name!r}:" for name in forces]
    return common_shape(names, leads, "batch axes of the forces in f_ext")


def _common_type(forces):
    """Number type that holds all forces."""
    return np.result_type(*(f.dtype for f in forces.values()))
