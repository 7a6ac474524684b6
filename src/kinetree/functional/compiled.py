"""``compile``: the explicit form of what happens when a function is first called."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from kinetree.arrays.dispatch import module_of
from kinetree.arrays.kinds import is_foreign, kind_of
from kinetree.errors import UnknownNameError
from kinetree.functional.parameters import parameter, with_parameters
from kinetree.functional.prepare import bind, prepare, require_traceable
from kinetree.model import Model
from kinetree.model.arrays import as_given
from kinetree.model.define import kept


def compile(
    function: Callable[..., Any], model: Model, *, target: Literal["cpu", "cuda"] = "cpu",
    dtype: Any = None, parameters: Sequence[str] = (), **options: Any,
) -> "CompiledFunction":  # fmt: skip
    """A function for one model, with chosen parameters of the model as additional inputs.

        f = kt.compile(kt.inverse_dynamics, m, parameters=("gravity", "inertia:link7"))
        tau = f(q, qd, qdd, gravity, inertia)

    Its code is always specialised and optimised, whatever the tier (``kinetree.set_tier``).

    Args:
        function: a function of kinetree, one of your own under ``@kinetree.kernel``, or a
            derivative of either.
        model: the mechanism; its own numbers are compiled in, except for the parameters.
        target: ``"cpu"``.
        dtype: precision to compute in, float64 or float32; by default that of the inputs.
        parameters: names of parameters, see ``functional.parameters``. Their arrays follow the
            others in a call, each with any leading batch axes.
        **options: arguments of the function that stay the same, such as the name of a frame.

    Returns:
        A function of arrays, which takes ``out=`` as well. ``kinetree.differentiate`` takes it,
        also with respect to parameters.
    """
    require_traceable(function, "kinetree.compile")
    if not isinstance(target, str) or target != "cpu":
        raise UnknownNameError(f"target {target!r} is not available; only 'cpu' is")
    names = (parameters,) if isinstance(parameters, str) else parameters
    if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
        raise UnknownNameError(
            f"parameters must be names such as 'gravity' or 'inertia:link7', got {parameters!r}"
        )
    names = tuple(names)
    if len(set(names)) < len(names):
        raise UnknownNameError(f"parameters must be different, got {list(names)}")
    with_parameters(model, {name: parameter(model, name).value(model) for name in names})
    return CompiledFunction(function, model, as_dtype(dtype), names, options)


def as_dtype(dtype):
    """float64 or float32, or None; raise UnknownNameError for another precision."""
    if dtype is None:
        return None
    with suppress(TypeError, ValueError):
        if np.dtype(dtype) in (np.float32, np.float64):
            return np.dtype(dtype)
    raise UnknownNameError(f"dtype must be float64 or float32, got {dtype!r}")


_REMEMBERED = 256  # ways of calling one function


def _look(arrays):
    """The last axes, which tell what code applies; None where arrays are yet to be made."""
    shapes = []
    for a in arrays:
        shape = getattr(a, "shape", None)
        if shape is None or (type(a) is np.ndarray and a.dtype == object):
            return None
        shapes.append((*shape[-1:],))
    return tuple(shapes)


def _cast(array, dtype):
    if is_foreign(array):
        return module_of(kind_of(array)).cast(array, dtype)
    return array.astype(dtype, copy=False)


class CompiledFunction:
    """A function bound to a model.

    Attributes:
        function: the function of a model and arrays.
        model: the model.
        dtype: precision of the computation, or None for that of the inputs.
        parameters: names of the parameters that are inputs.
        options: arguments that stay the same.
    """

    def __init__(self, function, model, dtype, parameters, options):
        self.function, self.model, self.dtype = function, model, dtype
        self.parameters, self.options = parameters, options
        self._known = {}

    def __getstate__(self):
        """Everything but compiled code, which does not travel."""
        return {**self.__dict__, "_known": {}}

    def __call__(self, *args, out=None, **options) -> Any:
        """The result for the arguments of the function, then the parameters."""
        if out is None and not options:
            known = self._known.get(_look(args))
            if known is not None:
                return known.call(*args)
        if args and isinstance(args[0], Model):
            raise TypeError(f"{self!r} has its model already: leave it out")
        n = len(args) - len(self.parameters)
        if n < 0:
            raise TypeError(
                f"{self!r} takes the arguments of the function and then "
                f"{', '.join(self.parameters)}; got {len(args)} in all"
            )
        call = bind(self.function, (self.model, *args[:n]), {**self.options, **options})
        key = (self.function, "compiled", self.parameters, call.key)
        prepared = kept(self.model, key, lambda: self._prepared(call))
        if not options and self.dtype is None and len(call.arrays) == n:
            self._remember(_look(args), prepared)
        arrays = [
            *call.arrays.values(),
            *(as_given(a, name) for a, name in zip(args[n:], self.parameters, strict=True)),
        ]
        if self.dtype is not None:
            arrays = [_cast(a, self.dtype) for a in arrays]
        return prepared.call(*arrays, out=out)

    def _prepared(self, call):
        """Code for this model, optimised at once: that is what was asked for."""
        prepared = prepare(self.function, call, self.parameters)
        prepared.kernel.settle()
        return prepared

    def _remember(self, look, prepared):
        if look and len(self._known) < _REMEMBERED:
            self._known[look] = prepared

    def with_function(self, function):
        """Another function in place of this one, for the same model and parameters."""
        return CompiledFunction(function, self.model, self.dtype, self.parameters, self.options)

    def __repr__(self):
        name = getattr(self.function, "__name__", repr(self.function))
        return f"<kinetree {name} compiled for {self.model.name!r}>"
