"""Kernels of a rollout: policies and costs, and the arrays that they ask for by name."""

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.functional.kernel import UserKernel
from kinetree.spelling import did_you_mean

__all__ = [
    "STATE", "apply", "check_name", "check_wanted", "names_of", "number", "require_kernel",
    "sample_shape",
]  # fmt: skip

STATE = ("t", "q", "qd")
"""What every kernel of a rollout may ask for, besides the arrays that are given."""


def require_kernel(function, role):
    """Raise TypeError for a policy or cost that is not a ``@kernel``."""
    if function is not None and not isinstance(function, UserKernel):
        raise TypeError(
            f"{role} becomes part of a compiled loop and must be a function under "
            f"@kinetree.kernel, got {function!r}; kinetree.simulate takes any controller"
        )
    return function


def names_of(kernel):
    """Names of the arrays that a kernel asks for; its first parameter is the model."""
    return tuple(kernel.signature.parameters)[1:]


def check_name(name, kind, raw, kernels):
    """Raise UnknownNameError for an array that no kernel can ask for."""
    if name in (*STATE, "tau"):
        raise UnknownNameError(
            f"{kind} cannot hold {name!r}, which kernels of a rollout get anyway"
        )
    if any(g.name == name for g in raw):
        raise UnknownNameError(f"{name!r} is in inputs and in arguments; give it once")
    wanted = sorted({n for k in kernels for n in names_of(k)} - {*STATE, "tau"})
    if name not in wanted:
        raise UnknownNameError(
            f"{kind} hold {name!r}, which no kernel of this rollout asks for; "
            f"{did_you_mean(name, wanted)}"
        )


def check_wanted(raw, kernels):
    """Raise UnknownNameError for a kernel that asks for an array that is not given."""
    known = {*STATE, "tau", *(g.name for g in raw)}
    for kernel in kernels:
        for name in names_of(kernel):
            if name not in known:
                raise UnknownNameError(
                    f"{kernel.__name__} asks for {name!r}: put it into arguments, or into inputs "
                    f"if it has a value for every step"
                )


def sample_shape(model, name, array, kernels, *, timed):
    """Shape of one sample of an array that kernels ask for: annotated, or the last axis."""
    for kernel in kernels:
        p = kernel.signature.parameters.get(name)
        if p is not None and isinstance(p.annotation, tuple):
            return tuple(getattr(model, n) if isinstance(n, str) else n for n in p.annotation)
    return tuple(array.shape[-1:]) if array.ndim > timed else ()


def apply(kernel, model, values):
    """A kernel with the values that it asks for."""
    return kernel(model, **{name: values[name] for name in names_of(kernel)})


def number(kernel, value):
    """The result of a cost, which must be one number."""
    if np.shape(value) != ():
        raise ShapeError(
            f"cost {kernel.__name__!r} must return one number, got shape {np.shape(value)}"
        )
    return np.asarray(value, dtype=object)[()]
