"""Checking what a caller passes in: a model; right length, finite, unit quaternions."""

import operator
from contextlib import suppress
from inspect import signature
from math import isfinite
from os import PathLike
from typing import Any

import numpy as np

from kinetree.arrays.batch import common_shape
from kinetree.arrays.kinds import is_foreign, refuse_masked
from kinetree.errors import ArrayKindError, JointError, ModelError, ShapeError, refuse_formulas
from kinetree.joints import Prescribed
from kinetree.joints.base import UNIT_TOLERANCE

_SHORT = 100  # numbers that are added up sooner than NumPy begins


def as_model(model):
    """The argument if it is a model or a view of one; TypeError with advice otherwise."""
    if not hasattr(model, "body_count"):
        remedy = _remedy(model)
        raise ModelError(f"the first argument must be a Model, got {type(model).__name__}{remedy}")
    return model


def require_instant(model, function):
    """The model, after an error if it is none, has symbols, or a joint depends on time."""
    refuse_formulas(function, (model,))
    for body in model.bodies:
        if isinstance(body.joint, Prescribed):
            raise JointError(
                f"{function} is about an instant, and the prescribed joint {body.joint_name!r} of "
                f"model {model.name!r} depends on time: use model.replace(joint="
                f"{{{body.joint_name!r}: joint.at(t)}})"
            )
    return model


def _remedy(given) -> str:
    """Advice how to make a model of an object of another type, for an error message."""
    if hasattr(given, "build"):
        return "; call its build() first"
    if isinstance(given, (str, PathLike)):
        return f"; kinetree.load({str(given)!r}) makes one of a file, kinetree.samples has others"
    if callable(given):
        name = getattr(given, "__name__", "")
        takes_model = next(iter(signature(given).parameters), "") == "model"
        return f": the model comes before {name}" if takes_model else f"; call it first: {name}()"
    return ": the model comes before the arrays"


def as_configuration(model, q, name="q"):
    """Configuration as an array (..., nq) of finite numbers with unit quaternions, checked."""
    q = as_position_vector(model, q, name)
    if q.dtype == object:
        return q
    joints = model.joint
    for i in range(1, model.body_count + 1):
        if not joints[i].unit_parts:
            continue
        part = q[..., model.q_slice[i]]
        for sample in np.ndindex(part.shape[:-1]) if part.ndim > 1 else ((),):
            defect = model.joint[i].defect(part[sample])
            if defect:
                joint = model.joint_names[i - 1]
                raise ShapeError(f"{name}{_where(sample)}, joint {joint!r}: {defect}")
    return q


def require_unit_parts(model, q):
    """Trace a run-time check that quaternions in a symbolic ``q`` have unit length."""
    for i in model.outward():
        for part in model.joint[i].unit_parts:
            p = q[model.q_slice[i]][part]
            deviation = p @ p - 1
            (deviation * deviation < (2 * UNIT_TOLERANCE) ** 2).require()


def as_position_vector(model, q, name="q"):
    """Position variables as an array (..., nq) of finite numbers; quaternions of any length."""
    return _require_size(model, q, name, "nq")


def as_joint_vector(model, x, name):
    """Joint vector as an array (..., nv) of finite numbers, checked."""
    return _require_size(model, x, name, "nv")


def _require_size(model, x, name, size_name):
    """Argument as finite numbers (..., size); ShapeError with a hint for other shapes."""
    size = getattr(as_model(model), size_name)
    a = as_numbers(x, name)
    if a.ndim == 0 or a.shape[-1] != size:
        raise ShapeError(
            f"{name} must have shape (..., {size_name}) with {size_name} = {size} for model "
            f"{model.name!r}, got {a.shape}" + _hint(model, a, size, size_name)
        )
    return check_finite(a, name)


def as_numbers(x, name):
    """Array of floats, complex numbers or number-like objects such as formulas, else an error."""
    refuse_masked(x, name)
    try:
        a = np.asarray(x)
    except (TypeError, RuntimeError) as error:  # as CuPy and JAX say it, and as torch does
        raise ArrayKindError(
            f"{name}: here NumPy arrays are needed, on the CPU, got {type(x).__name__} on "
            f"another device, or followed by autograd or a transformation; copy the numbers to the "
            f"CPU first"
        ) from error
    except ValueError:
        raise ShapeError(f"{name} must be an array, got rows of different lengths") from None
    if a.dtype.kind in "fc":
        return a
    if a.dtype == object:
        for number in a.flat:
            if not hasattr(number, "__truediv__") or isinstance(number, type):
                raise ShapeError(f"{name} must hold numbers, got a {type(number).__name__}")
    elif not (np.issubdtype(a.dtype, np.number) or a.dtype == bool):
        if a.ndim == 0 and a.dtype.kind == "U":
            text = str(a)
            raise ShapeError(f"{name} must hold numbers, got {text!r}; see model.posture({text!r})")
        raise ShapeError(f"{name} must hold numbers, got an array of {a.dtype}")
    return a if a.dtype == object else a.astype(float)


def as_seconds(x, name, *, least: float | None = None) -> float:
    """Time [s] as a finite float, above ``least`` if given; an error otherwise."""
    if type(x) is float and isfinite(x) and (least is None or x > least):
        return x
    number = None
    if isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool):
        with suppress(OverflowError):
            number = float(x)
    elif isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind in "fiu":
        number = float(x)
    if number is None or not isfinite(number) or (least is not None and not number > least):
        kind = "a time in seconds" if least is None else "a positive time in seconds"
        text = repr(x) if len(repr(x)) < 60 else type(x).__name__
        raise ShapeError(f"{name} must be {kind}, got {text}")
    return number


def whole_number(n, name, least=0):
    """Integer value of ``n``; ShapeError if it is not integral, or less than ``least``."""
    try:
        n = operator.index(n)
    except TypeError:
        raise ShapeError(f"{name} must be an integer, got {n!r}") from None
    if n < least:
        raise ShapeError(f"{name} must be at least {least}, got {n}")
    return n


def as_reals(x, name) -> np.ndarray:
    """Array of floats; an error for complex numbers, whose imaginary parts NumPy drops."""
    if np.asarray(x).dtype.kind == "c":
        raise ShapeError(f"{name} must hold real numbers, got complex ones")
    return np.asarray(x, dtype=float)


def as_given(x, name) -> Any:
    """Array of another library unchanged, for a kernel to check; else as by ``as_numbers``."""
    return x if is_foreign(x) else as_numbers(x, name)


def check_batches(function, **arrays):
    """Raise ShapeError where batch axes of arrays do not broadcast, each given by name."""
    leads = [np.shape(a)[: np.ndim(a) - core] for a, core in arrays.values()]
    common_shape(arrays, leads, f"{function}: batch axes")


def check_finite(a, name, core=1):
    """The array if all its numbers are finite; an error names the sample that is not."""
    short = a.__class__ is np.ndarray and a.dtype.char == "d" and a.ndim == 1 and a.size < _SHORT
    if short and isfinite(sum(a.tolist())):  # in a tenth of the time
        return a
    if is_foreign(a):  # kernels look
        return a
    if a.dtype == object or np.all(np.isfinite(a)):
        return a
    where = tuple(int(n) for n in np.argwhere(~np.isfinite(a))[0])
    sample, inner = where[: len(where) - core], where[len(where) - core :]
    index = inner[0] if core == 1 else inner
    raise ShapeError(f"{name} must be finite, got {a[where]} at index {index}{_where(sample)}")


def _hint(model, a, size, size_name):
    """Hint for a wrong array shape: transposed, or of the model without couplings."""
    if a.ndim > 1 and a.shape[-2] == size:
        return ": batch axes come first and variables last, so pass its transpose"
    if a.ndim and model.couplings and a.shape[-1] == getattr(model.uncoupled, size_name):
        back = "model.reduce(q)" if size_name == "nq" else "model.reduce_velocity(qd)"
        return f": joints that follow others have no independent variable, {back} leaves them out"
    if a.ndim and model.nq != model.nv and a.shape[-1] in (model.nq, model.nv):
        other = "nv" if size_name == "nq" else "nq"
        return (
            f" = (..., {other}); positions and velocities differ in length here: see "
            f"model.neutral(), model.integrate() and model.difference()"
        )
    return ""


def _where(sample):
    """Words that locate a sample in a batch, for messages."""
    return f" of sample {tuple(sample)}" if len(sample) else ""
