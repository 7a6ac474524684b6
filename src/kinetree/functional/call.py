"""Arguments of one call of a user's kernel: a model, arrays with their shapes, and options."""

import inspect
from typing import Any

import numpy as np

from kinetree.arrays.batch import batch_shape
from kinetree.arrays.kinds import is_foreign, refuse_masked
from kinetree.errors import ShapeError, SingularError, TraceError
from kinetree.expr.node import Expr
from kinetree.model import Model
from kinetree.model.array_arguments import argument_shape, validate

MODEL_ARRAYS = ("q", "qd", "qdd", "tau", "f_ext", "point")
"""Arguments whose shapes the model knows."""


def read_signature(function):
    """Signature of a function, after a check that every parameter has a name."""
    if not callable(function):
        raise TypeError(
            f"kinetree.kernel takes a function, got {function!r}; write @kinetree.kernel, without "
            f"brackets, above it"
        )
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError):  # annotations as text, with names not known here
        signature = inspect.signature(function)
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**"
            raise TypeError(
                f"{function!r} has a parameter {stars}{p.name}: which arrays it "
                f"takes must be known when it is compiled; name them one by one"
            )
    return signature


def bound_to(signature, name, args, options):
    """Arguments of a call by name; TypeError shows the expected signature."""
    try:
        return signature.bind(*args, **options)
    except TypeError as error:
        raise TypeError(f"{error}; it is {name}{_without_annotations(signature)}") from None


def _without_annotations(signature):
    """Signature without annotations, so that these are not evaluated."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


class KernelCall:
    """The arguments of one call, sorted.

    Attributes:
        model: the model, or None.
        arrays: the arrays by name, in the order of the parameters.
        shapes: the shape of one sample of each.
        options: everything else, by name.
        key: what the compiled code depends on, besides the model.
        inner: of an extended call, the call of the function itself.
    """

    inner: Any = None

    def __init__(self, signature, name, args, options):
        self.signature, self.name = signature, name
        bound = bound_to(signature, name, args, options)
        by_position = set(list(signature.parameters)[: len(args)])
        bound.apply_defaults()
        self.model, self.arrays, self.options = None, {}, {}
        for place, (parameter, value) in enumerate(bound.arguments.items()):
            if place == 0 and isinstance(value, Model):
                self.model = value
            elif self._is_option(parameter, value, parameter in by_position):
                self.options[parameter] = value
            else:
                self.arrays[parameter] = self._as_array(parameter, value)
        self.shapes = {p: self._shape(p, a) for p, a in self.arrays.items()}
        self.key = (tuple(self.shapes.items()), tuple(self.options.items()))
        try:
            hash(self.key)
        except TypeError:
            raise TypeError(
                f"the options of kernel {name!r} are compiled in and must be hashable, such as "
                f"text, numbers and tuples; got {self.options}"
            ) from None

    def _is_option(self, parameter, value, by_position):
        """Whether an argument is compiled in as an option, not passed as an array."""
        if isinstance(value, np.ndarray) or is_foreign(value):
            return False
        if value is None or isinstance(value, (str, bool, Model)) or callable(value):
            return True
        if isinstance(value, tuple) and (not value or any(isinstance(x, str) for x in value)):
            return True  # names
        if isinstance(value, (int, np.integer)):
            return not by_position or self.signature.parameters[parameter].annotation is int
        return False

    def _as_array(self, parameter, value):
        """Argument as an array of numbers; an error that names the parameter otherwise."""
        if is_foreign(value):
            return value
        refuse_masked(value, f"{self.name}: {parameter}")
        try:
            array = np.asarray(value)
        except ValueError:
            raise ShapeError(
                f"{self.name}: {parameter} must be an array, got rows of different lengths"
            ) from None
        numbers = array.dtype.kind in "fiubc"
        if array.dtype == object:  # traced or exact ones
            numbers = all(hasattr(x, "__sub__") for x in array.ravel())
        if not numbers:
            raise TypeError(
                f"{self.name}: {parameter} must be an array of numbers, got "
                f"{type(value).__name__} with {array.dtype}"
            )
        return array

    def _shape(self, parameter, array):
        """Shape of one sample of an argument: annotated, known by the model, or its last axis."""
        annotation = self.signature.parameters[parameter].annotation
        if isinstance(annotation, tuple):
            return tuple(self._size(parameter, n) for n in annotation)
        if self.model is not None and parameter in MODEL_ARRAYS:
            return argument_shape(self.model, parameter)
        return tuple(array.shape[-1:])

    def _size(self, parameter, n):
        """Length of an annotated axis: a number, or a size of the model such as ``"nv"``."""
        if isinstance(n, str) and self.model is not None:
            return getattr(self.model, n)  # such as "nv"
        if isinstance(n, int) and n >= 0:
            return n
        raise TypeError(
            f"{self.name}: the annotation of {parameter} must hold integers or names of "
            f"sizes of the model such as 'nv', got {n!r}"
        )

    @property
    def is_traced(self) -> bool:
        """Whether the call must run in Python: with traced, complex or exact numbers."""
        if self.model is not None and isinstance(self.model.instant, Expr):
            return True
        return any(not is_foreign(a) and a.dtype.kind in "Oc" for a in self.arrays.values())

    def apply(self, function, arrays):
        """Result of ``function`` with this call's model and options, and the given arrays."""
        values = dict(zip(self.arrays, arrays, strict=True)) | self.options
        parameters = list(self.signature.parameters)
        if self.model is not None:
            values[parameters[0]] = self.model
        bound = inspect.BoundArguments(self.signature, {p: values[p] for p in parameters})
        return function(*bound.args, **bound.kwargs)

    def with_arrays(self, arrays):
        """Copy of the call with other arrays of the same shapes."""
        other = object.__new__(KernelCall)
        other.__dict__.update(self.__dict__)
        other.arrays = dict(zip(self.arrays, map(np.asarray, arrays), strict=True))
        return other

    def at(self, t):
        """Copy of the call at time ``t``, for models with time-dependent constraints."""
        other = object.__new__(KernelCall)
        other.__dict__.update(self.__dict__)
        model: Any = self.model
        other.model = model.timeless.at(t)
        return other

    def extend(self, values, shapes):
        """Copy of the call with additional arrays that the function itself does not take.

        The call without them is the attribute ``inner`` of the result.
        """
        other = object.__new__(KernelCall)
        other.__dict__.update(self.__dict__)
        other.inner = self
        other.arrays = self.arrays | {p: self._as_array(p, x) for p, x in values.items()}
        other.shapes = self.shapes | shapes
        other.key = (self.key, tuple(shapes.items()))
        return other


def check_arrays(call):
    """Raise an error for arrays with wrong shapes or infinite numbers, by name."""
    for name, array in call.arrays.items():
        if call.model is not None and name in ("q", "qd", "qdd", "tau"):
            validate(call.model, {name: array})
        n = len(call.shapes[name])
        if array.ndim < n or array.shape[array.ndim - n :] != call.shapes[name]:
            expected = ", ".join(["...", *map(str, call.shapes[name])])
            raise ShapeError(f"{call.name}: {name} must have shape ({expected}), got {array.shape}")
        if array.dtype.kind not in "Ofiubc":
            raise ShapeError(
                f"{call.name}: {name} must hold numbers, got an array of {array.dtype}"
            )
        if array.dtype != object and not np.all(np.isfinite(array)):
            where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
            raise ShapeError(
                f"{call.name}: {name} must be finite, got {array[where]} at index {where}"
            )


# --- What a user's kernel returns: one array, or a tuple or dict of arrays; and stacks of them ---


def flatten(result, name):
    """Arrays of a nested result as a tuple, and the function that restores its form.

    The function takes one array, or a tuple of several; it is None where there is nothing to do.
    """
    if isinstance(result, dict):
        keys = tuple(result)
        return _arrays(result.values(), name), lambda r: dict(zip(keys, _tuple(r), strict=True))
    if isinstance(result, tuple):
        return _arrays(result, name), _tuple if len(result) == 1 else None
    return _arrays((result,), name), None


def _tuple(r):
    """One or several results as a tuple."""
    return r if isinstance(r, tuple) else (r,)


def _arrays(results, name):
    """Results of a kernel as arrays; an error if there are none."""
    results = tuple(results)
    if not results or any(r is None for r in results):
        raise TraceError(
            f"kernel {name!r} returned {None if results else 'no arrays'}: it must return a number "
            f"or an array, or a tuple or dict of such"
        )
    return tuple(np.asarray(r) for r in results)


def over_samples(function, call):
    """Results of ``function`` for every sample of a call's arrays, stacked."""
    core = [len(shape) for shape in call.shapes.values()]
    batch = batch_shape(call.arrays, core)
    full = [
        np.broadcast_to(a, batch + a.shape[a.ndim - n :])
        for a, n in zip(call.arrays.values(), core, strict=True)
    ]
    if not batch:
        return function(*(_sample(a, ()) for a in full))
    samples = [_one(function, full, index) for index in np.ndindex(batch)]
    if not samples:  # one made-up sample tells the shapes
        samples = [function(*(np.zeros(shape)[()] for shape in call.shapes.values()))]
    forms = [flatten(s, call.name) for s in samples]
    stacked = [np.stack(parts) for parts in zip(*(arrays for arrays, _ in forms), strict=True)]
    size = np.prod(batch, dtype=int)
    results = tuple(a[:size].reshape(batch + a.shape[1:]) for a in stacked)
    pack = forms[0][1]
    if pack is not None:
        return pack(results)
    return results[0] if len(results) == 1 else results


def _one(function, arrays, index):
    """Result of a function for one sample; errors name its index."""
    try:
        return function(*(_sample(a, index) for a in arrays))
    except SingularError as error:
        raise SingularError(f"sample {index}: {error}") from error


def _sample(array, index):
    """Sample of an array at a batch index, as a number if it has no other axes."""
    sample = array[index]
    return sample[()] if isinstance(sample, np.ndarray) else sample
