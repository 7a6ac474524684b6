"""Array arguments of functions of a model: their shapes, and checks of what callers give."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kinetree.errors import ShapeError
from kinetree.model.arrays import (
    as_configuration,
    as_joint_vector,
    as_numbers,
    as_position_vector,
    check_finite,
)


@dataclass(frozen=True)
class ArrayArgument:
    """An array argument."""

    shape: tuple
    """Shape of one sample: integers, names of attributes of the model, or functions of the
    model and the options."""
    check: Callable[[Any, Any, str], Any] | None = None
    """Takes the model, the array and its name, and raises for numbers that make no sense; None
    where the shape says it all."""
    is_configuration: bool = False
    """Whether it has quaternions whose length compiled code must check."""


CONFIGURATION = ArrayArgument(("nq",), as_configuration, is_configuration=True)
POSITION = ArrayArgument(("nq",), as_position_vector)  # with quaternions of any length
VECTOR = ArrayArgument(("nv",), as_joint_vector)

ARRAYS = {
    **dict.fromkeys(("q", "q0", "q1"), CONFIGURATION),
    **dict.fromkeys(("qd", "qdd", "tau", "dv"), VECTOR),
    "f_ext": ArrayArgument(("body_count", 6)),
    "point": ArrayArgument((3,)),
}
"""Arguments that mean the same in every function."""


def argument_shape(model, name) -> tuple:
    """Shape of one sample of a common argument such as ``q`` or ``tau``, (nq,) or (nv,)."""
    return sample_shape(model, ARRAYS[name].shape)


def validate(model, arrays):
    """Raise an error for named argument arrays with wrong shapes or values for a model."""
    for name, array in arrays.items():
        check_array(model, array, name, ARRAYS[name], {})


def check_array(model, array, name, argument: ArrayArgument, options):
    """Raise an error for an argument array with a wrong shape or value for a model."""
    if argument.check is not None:
        argument.check(model, array, name)
        return
    array = as_numbers(array, name)
    require_shape(model, array, name, argument.shape, options)
    check_finite(array, name, core=len(argument.shape))


def require_shape(model, array, name, axes, options=None):
    """Raise ShapeError unless an array's last axes have the lengths ``axes`` of an argument."""
    shape = sample_shape(model, axes, options)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        written = [n if isinstance(n, str) else str(k) for n, k in zip(axes, shape, strict=True)]
        sizes = [f"{n} = {k}" for n, k in zip(written, shape, strict=True) if n != str(k)]
        raise ShapeError(
            f"{name} must have shape ({', '.join(['...', *written])})"
            f"{' with ' + ', '.join(sizes) if sizes else ''}, got {array.shape}"
        )


def sample_shape(model, shape, options=None) -> tuple:
    """Shape as integers, from axis lengths given as numbers, model attributes or functions."""
    return tuple(
        n(model, options or {})
        if callable(n)
        else attrgetter(n)(model)
        if isinstance(n, str)
        else n
        for n in shape
    )
