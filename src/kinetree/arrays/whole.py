"""Public functions that do more than call one kernel, for arrays of other libraries."""

import functools
import inspect
from typing import Any

import numpy as np

from kinetree.array_kinds import common, is_foreign, kind_of, module_of
from kinetree.codegen.inline import evaluated
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import ArrayKindError

__all__ = ["on_host", "whole"]


def whole(**shapes):
    """Let a function of arrays be one kernel when its arrays belong to another library.

    Args:
        **shapes: for each array argument the shape of one sample; text is an attribute of the
            model. What is not an array then stays as it is and is compiled in.
    """

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapped(*args, **options):
            if not any(map(is_foreign, (*args, *options.values()))):
                return function(*args, **options)
            given = signature.bind(*args, **options).arguments
            model, names = given["model"], [n for n in given if _is_array(given[n], n, shapes)]
            rest = {n: x for n, x in given.items() if n not in names}
            key = (function, tuple(names), *((n, x) for n, x in rest.items() if n != "model"))
            if key not in model.kernels:
                inputs = [Argument(n, _shape(model, shapes[n])) for n in names]
                model.kernels[key] = _kernel(function, inputs, rest)
            return model.kernels[key].call(*(given[n] for n in names))

        return wrapped

    return decorate


def _is_array(value, name, shapes):
    return name in shapes and value is not None and not isinstance(value, str)


def _shape(model, shape):
    return tuple(getattr(model, n) if isinstance(n, str) else n for n in shape)


def _kernel(function, inputs, rest):
    def of_arrays(*symbols):
        return function(**dict(zip((i.name for i in inputs), symbols, strict=True)), **rest)

    program = trace(of_arrays, inputs, function.__name__)

    def validate(arrays):
        of_arrays(*arrays)  # which knows what the arrays should be

    return Kernel(
        function.__name__,
        inputs,
        program.outputs,
        lambda: program,
        reference=lambda arrays: evaluated(program, arrays),
        validate=validate,
    )


def on_host(function):
    """Let a function that decides on the host take arrays of other libraries, and return them.

    Their numbers are copied to the host and back; derivatives stop here, with an error.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapped(*args, **options) -> Any:
        bound = signature.bind(*args, **options)
        foreign = {n: x for n, x in bound.arguments.items() if is_foreign(x)}
        if not foreign:
            return function(*args, **options)
        names = [Argument(n, ()) for n in foreign]
        kind = module_of(common(function.__name__, names, list(foreign.values())))
        for name, x in foreign.items():
            if kind.is_followed(x):
                raise ArrayKindError(
                    f"{function.__name__} decides about ranks on the host and has no derivative "
                    f"there, nor can it be traced by {kind_of(x)}: detach {name} first, or call it "
                    f"outside the transformation"
                )
            bound.arguments[name] = kind.to_numpy(x)
        like = next(iter(foreign.values()))
        return _converted(function(*bound.args, **bound.kwargs), kind, like)

    return wrapped


def _converted(result, kind, like):
    if isinstance(result, tuple):
        return type(result)(*(_converted(x, kind, like) for x in result))
    return kind.convert(result, like) if isinstance(result, np.ndarray) else result
