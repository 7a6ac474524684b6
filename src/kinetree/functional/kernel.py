"""``@kernel``: a function of your own, traced, compiled and batched like the built-in ones.

The body is written for one sample, with NumPy and kinetree's functions. When it is first called
with a model, or with arrays of new shapes, it is run once on symbols; what it does to them becomes
machine code that is then called for every sample of a batch.
"""

import functools
import linecache
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from kinetree.arrays.kinds import kind_of
from kinetree.codegen import tiers
from kinetree.codegen.inline import trace_of
from kinetree.codegen.program import Argument, Traced, trace
from kinetree.codegen.runtime.kernel import LONG
from kinetree.errors import KinetreeError, PickleError, ShapeError, TraceError
from kinetree.expr.calls import call as call_kernel
from kinetree.expr.calls import calls_to
from kinetree.expr.node import Expr
from kinetree.expr.refusals import explain_trace_errors
from kinetree.functional.call import (
    MODEL_ARRAYS,
    KernelCall,
    check_arrays,
    flatten,
    over_samples,
    read_signature,
)
from kinetree.model import Model
from kinetree.model.arrays import require_unit_parts
from kinetree.model.kernels import AtInstant, kernel_for
from kinetree.spatial import ops

_REMEMBERED = 256  # ways of calling one kernel on one model


def kernel(function: Callable[..., Any]) -> "UserKernel":
    """Decorator: compile a function of a model and arrays, for batches and with derivatives.

    Args:
        function: written for one sample. Its first parameter is the model, if it needs one.
            ``q``, ``qd``, ``qdd``, ``tau``, ``f_ext`` and ``point`` have the shapes that the model
            gives them; any other array has the shape of its annotation, such as ``target: (3,)``,
            or else is a vector (its last axis) or a number. Strings, True, False, None, and
            integers given by keyword are options that are compiled in. It returns a number or an
            array, or a tuple or dict of such.

    Returns:
        A kernel that is called like the function, with any leading batch axes.
    """
    return UserKernel(function)


def one_copy(user: "UserKernel") -> "UserKernel":
    """Mark a kernel so that compiled code calls one copy of it instead of inlining copies."""
    user.one_copy = "specialised", "general"
    return user


def one_copy_of_general_code(user: "UserKernel") -> "UserKernel":
    """Mark a kernel so that only general code calls one copy of it instead of inlining."""
    user.one_copy = ("general",)
    return user


class UserKernel:
    """A function that is compiled when it is called.

    Attributes:
        function: the function as it was written.
        signature: its parameters.
        one_copy: the tiers of code that calls it, see the function of this name.
    """

    one_copy: tuple[str, ...] = ()

    def __init__(self, function):
        self.signature = read_signature(function)
        self.function = function
        self.__name__ = type(function).__name__  # of callables that have no name
        functools.update_wrapper(self, function)
        self._without_model = {}

    def __repr__(self):
        return f"<kinetree kernel {self.__name__}{self.signature}>"

    def __reduce__(self) -> Any:
        """Name to pickle it by, as functions are; compiled code does not travel."""
        if _found_by_name(self) is self:  # decorated: what has the name is the kernel
            return getattr(self, "__qualname__", self.__name__)
        function = self.function
        if isinstance(function, FunctionType) and _found_by_name(function) is not function:
            _refuse_to_pickle(function)
        return UserKernel, (function,)

    def __call__(self, *args, **options) -> Any:
        """The result for arrays with any leading batch axes."""
        found = None if options else self._known_function(args)
        if found is not None:
            return found(*args[1:] if type(args[0]) is Model else args)
        call = self.bind(*args, **options)
        if not call.arrays or call.is_traced:
            found = self._call_in_trace(call) if calls_to() in self.one_copy else None
            return self._reference(call) if found is None else found
        compiled = self._compiled_form(call)
        self._remember(args, options, call, compiled)
        return compiled(*call.arrays.values())

    def _call_in_trace(self, call):
        """Traced call of the kernel in the program being traced; None if inlining is better."""
        arrays, model = list(call.arrays.values()), call.model
        graph = trace_of(arrays)
        if graph is None or any(
            a.shape != s for a, s in zip(arrays, call.shapes.values(), strict=True)
        ):
            return None
        if model is not None and model.scalar_type().kind == "O":  # its numbers are traced, too
            return None
        if model is not None and isinstance(model.instant, Expr):
            compiled = self._compiled_timed(call)
            arrays.append(model.instant)
        else:
            compiled = self._compiled_form(call)
        kernel = compiled.kernel.to_call()
        if kernel.own_cost < LONG:
            return None
        results = call_kernel(graph, kernel, arrays)
        result = results[0] if len(results) == 1 else results
        return result if compiled.pack is None else compiled.pack(result)

    def reference(self, *args, **options):
        """Results of the function without compilation, sample by sample."""
        return self._reference(self.bind(*args, **options))

    def bind(self, *args, **options):
        """Arguments of a call sorted into model, arrays by name, and options."""
        return KernelCall(self.signature, self.__name__, args, options)

    def compiled(self, *args, **options):
        """Compiled ``Kernel`` for a call with these arguments."""
        return self._compiled_form(self.bind(*args, **options)).kernel

    # --- one kernel for each model, set of options and shapes ---------------------------------

    def _compiled_form(self, call):
        """Compiled form for a call's options and shapes, made at the first such call."""
        if call.model is not None and call.model.timeless is not call.model:
            return self._timeless(call)
        kernels, key = self._kernels(call.model), (self, *call.key)
        found = kernels.get(key)
        if found is None:
            found = kernels[key] = _compile(self, call)
        return found

    def _timeless(self, call):
        """Compiled form with the model's time filled in, for time-dependent constraints."""
        found = self._compiled_timed(call)
        return _Compiled(AtInstant(found.kernel, call.model.instant), found.pack)

    def _compiled_timed(self, call):
        """Compiled form with time as the last input."""
        kernels, key = call.model.timeless.memo, (self, "at an instant", *call.key)
        found = kernels.get(key)
        if found is None:
            found = kernels[key] = _compile(self, call, timed=True)
        return found

    def _kernels(self, model):
        """Cache of compiled forms, of a model or of calls without one."""
        return self._without_model if model is None else model.memo

    def _known_function(self, args):
        """Compiled function of an earlier call with the same last axes, or None."""
        if not args:
            return None
        with_model = type(args[0]) is Model
        known = (args[0].memo if with_model else self._without_model).get(self)
        return None if known is None else known.get(_look(args[with_model:]))

    def _remember(self, args, options, call, compiled):
        """Cache compiled code by the last axes of a call's plain arrays."""
        arrays = args if call.model is None else args[1:]
        look = _look(arrays)
        if (
            not options
            and not call.options
            and look is not None
            and len(arrays) == len(call.arrays)
        ):
            known = self._kernels(call.model).setdefault(self, {})
            if len(known) < _REMEMBERED:
                known[look] = compiled

    def _reference(self, call):
        """Results of the function itself, sample by sample."""
        return over_samples(lambda *arrays: call.apply(self.function, arrays), call)


def _found_by_name(thing):
    """Object that a module has under a function's qualified name, or None."""
    found = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


_BY_VALUE = ("cloudpickle", "dill")  # they send the function itself


def _refuse_to_pickle(function):
    """Raise PickleError for a kernel without a module-level name, unless pickled by value."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _BY_VALUE:
            return
        frame = frame.f_back
    raise PickleError(
        f"kernel {function.__qualname__!r} cannot be pickled: other processes find a function by "
        f"its name, and module {function.__module__!r} has none of this name, since it is a lambda "
        f"or was defined inside another function. Define it at the top of a module"
    )


def _look(arrays):
    """Last axes of arrays, or None if some are not plain arrays."""
    shapes = []
    for a in arrays:
        if type(a) is np.ndarray:
            if a.dtype == object:
                return None
            shapes.append(a.shape[-1:])
        elif kind_of(a) is None:
            return None
        else:
            shapes.append(tuple(a.shape[-1:]))
    return tuple(shapes)


# --- compiling -----------------------------------------------------------------------------------


class _Compiled:
    """A kernel, and the form of what the function returned."""

    __slots__ = ("kernel", "pack")

    def __init__(self, kernel, pack):
        self.kernel, self.pack = kernel, pack

    def __call__(self, *arrays):
        result = self.kernel.call(*arrays)
        return result if self.pack is None else self.pack(result)


def _compile(user, call, *, timed=False):
    """Trace and compile the function for a call; ``timed`` adds time as last input."""
    inputs = [Argument(name, shape) for name, shape in call.shapes.items()]
    inputs += [Argument("instant", ())] * timed
    form = {}

    def split(arrays):
        """The call at its instant, and the other arrays."""
        *arrays, t = arrays if timed else (*arrays, None)
        return call.at(np.asarray(t)[()]) if timed else call, arrays

    def of_arrays(*symbols):
        call, symbols = split(symbols)
        if call.model is not None and "q" in call.arrays:
            require_unit_parts(call.model, dict(zip(call.arrays, symbols, strict=True))["q"])
        arrays = [a if a.shape else a[()] for a in symbols]
        results, form["pack"] = flatten(call.apply(user.function, arrays), user.__name__)
        return results

    def make():
        with name_the_line(user, call):
            return trace(of_arrays, inputs, user.__name__)

    traced = Traced(make, calls_to() or tiers.first_calls())

    def reference(arrays):
        call, arrays = split(arrays)
        results, _ = flatten(user._reference(call.with_arrays(arrays)), user.__name__)
        return results[0] if len(results) == 1 else results

    kernel = kernel_for(
        call.model,
        user.__name__,
        inputs,
        traced.program.outputs,
        traced,
        reference=reference,
        validate=lambda arrays: check_arrays(call.with_arrays(arrays[: len(call.arrays)])),
        general_code=lambda: kernel.with_general_calls(always=user.one_copy == ("general",)),
    )
    return _Compiled(kernel, form["pack"])


# --- Where in the user's function tracing failed, and what to write there instead ----------------

_OURS = (str(Path(__file__).parents[1]), str(Path(np.__file__).parent), "<__array_function__")

# Text of the line that failed -> what to write there.
_ADVICE = {
    "np.linalg": "np.linalg decides by values (pivots, ranks): write the formula out, let "
    "kinetree.forward_dynamics or kinetree.inverse_mass_matrix solve, or do it outside the kernel",
    "range(": "a loop whose number of runs is an array argument is kinetree.repeat(body, state, "
    "times); pass the number by keyword as an integer to compile it in",
    "while ": "a loop until something holds is kinetree.repeat(body, state, times) with enough "
    "runs and kinetree.select(condition, new, old) in its body",
    "math.": "write np.sin for math.sin, and so on",
}


@contextmanager
def name_the_line(user, call):
    """Context that turns errors while tracing into ``TraceError`` with the user's line.

    An error that the function raises on plain numbers too is the function's own and passes.
    """
    try:
        with explain_trace_errors():
            yield
    except TraceError as error:
        raise _at_line(user, error, str(error)) from error
    except KinetreeError:
        raise
    except Exception as error:
        if isinstance(error, (IndexError, ValueError, TypeError)):
            _suggest_a_shape(user, call, error)
        _try_on_numbers(user, call)
        message = f"{type(error).__name__}: {error}. The function works on plain numbers, but not "
        raise _at_line(user, error, message + "on traced ones") from error


def _suggest_a_shape(user, call, error):
    """Raise ShapeError with advice if a matrix argument was taken for a batch of vectors."""
    for name, array in call.arrays.items():
        declared = isinstance(user.signature.parameters[name].annotation, tuple)
        known = call.model is not None and name in MODEL_ARRAYS
        if array.ndim == 2 and not declared and not known:
            shape = tuple(array.shape)
            raise ShapeError(
                f"{user.__name__}: {error}; {name} has shape {shape}, which is a batch of "
                f"{shape[0]} vectors of {shape[1]} numbers. If it is one matrix, declare it: "
                f"{name}: {shape}"
            ) from error


def _try_on_numbers(user, call):
    """Run the function on the first sample, so that its own errors are raised unchanged."""
    sample = []
    for name, array in call.arrays.items():
        shape = call.shapes[name]
        if (
            array.shape[array.ndim - len(shape) :] != shape
            or not array.size
            or array.dtype == object
        ):
            return
        sample.append(array.reshape(-1, *shape)[0][()])
    call.apply(user.function, sample)


def _at_line(user, error, message):
    """TraceError with the user's line and advice, for a kernel that cannot be traced."""
    frame = _where(user, error)
    if frame is None:
        return TraceError(f"kernel {user.__name__!r} cannot be compiled: {message}")
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    advice = next((text for part, text in _ADVICE.items() if part in line), None)
    return TraceError(
        f"kernel {user.__name__!r} cannot be compiled\n"
        f"  {frame.filename}:{frame.lineno}, in {frame.name}\n"
        f"    {line}\n"
        f"{message}" + (f"\n{advice}" if advice else "")
    )


def _where(user, error):
    """Innermost traceback frame in the user's code, else in the kernel."""
    origin = error.__cause__ or error  # a refusal of NumPy's, which has been explained
    frames = traceback.extract_tb(origin.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_OURS)]
    if own:
        return own[-1]
    code = getattr(user.function, "__code__", None)
    return next((f for f in frames if code and f.filename == code.co_filename), None)


# --- ``select``: a choice that can be compiled ---------------------------------------------------

_MANY = (np.ndarray, list, tuple)
_each = np.frompyfunc(ops.select, 3, 1)


def select(condition: Any, a: Any, b: Any) -> Any:
    """Elementwise choice: ``a`` where the condition holds, else ``b``; like ``np.where``.

    Unlike ``np.where`` it works in functions under ``@kinetree.kernel``. Both values are computed,
    for every sample: keep both finite.
    """
    if not (isinstance(condition, _MANY) or isinstance(a, _MANY) or isinstance(b, _MANY)):
        return ops.select(condition, a, b)
    if all(np.asarray(x).dtype != object for x in (condition, a, b)):
        return np.where(condition, a, b)
    return _each(condition, a, b)
