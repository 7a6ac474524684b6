"""``compile``, which code a function runs for a model, and building it ahead of the work.

``compile`` is the explicit form of what happens when a function is first called.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from inspect import Parameter, signature
from typing import Any, Literal

import numpy as np

from kinetree.arrays.kinds import is_foreign, kind_of, module_of
from kinetree.codegen import tiers
from kinetree.codegen.progress import reporter
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.runtime.threads import threads
from kinetree.errors import KinetreeError, LoopError, UnknownNameError
from kinetree.functional.kernel import UserKernel
from kinetree.functional.parameters import parameter, with_parameters
from kinetree.functional.prepare import bind, prepare, require_traceable
from kinetree.functional.transformed import Transformed
from kinetree.model import Model
from kinetree.model.arrays import as_given, as_model
from kinetree.model.define import DEFINITIONS
from kinetree.model.memo import remember
from kinetree.spelling import close_names, explains


def compile(
    function: Callable[..., Any],
    model: Model,
    *,
    target: Literal["cpu"] = "cpu",
    dtype: Any = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> "CompiledFunction":
    """Compile a function for one model, optionally with model parameters as additional inputs.

        f = kt.compile(kt.inverse_dynamics, m, parameters=("gravity", "inertia:link7"))
        tau = f(q, qd, qdd, gravity, inertia)

    Its code is always specialised and optimised, whatever the tier (``kinetree.set_tier``).

    Args:
        function: a function of kinetree, one of your own under ``@kinetree.kernel``, or a
            derivative of either.
        model: the mechanism; its own numbers are compiled in, except for the parameters.
        target: ``"cpu"``; on a GPU call the function itself, with arrays of the GPU.
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
        raise UnknownNameError(f"target {target!r} is not 'cpu'; on a GPU call the function itself")
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
    """Precision float64, float32 or None; UnknownNameError for others."""
    if dtype is None:
        return None
    with suppress(TypeError, ValueError):
        if np.dtype(dtype) in (np.float32, np.float64):
            return np.dtype(dtype)
    raise UnknownNameError(f"dtype must be float64 or float32, got {dtype!r}")


_REMEMBERED = 256  # ways of calling one function


def _look(arrays):
    """Last axes of arrays, by which compiled code is looked up; None for lists and objects."""
    shapes = []
    for a in arrays:
        shape = getattr(a, "shape", None)
        if shape is None or (type(a) is np.ndarray and a.dtype == object):
            return None
        shapes.append((*shape[-1:],))
    return tuple(shapes)


def _cast(array, dtype):
    """Array of any library converted to another precision."""
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
        prepared = remember(self.model, key, lambda: self._prepare(call))
        if not options and self.dtype is None and len(call.arrays) == n:
            self._remember(_look(args), prepared)
        arrays = [
            *call.arrays.values(),
            *(as_given(a, name) for a, name in zip(args[n:], self.parameters, strict=True)),
        ]
        if self.dtype is not None:
            arrays = [_cast(a, self.dtype) for a in arrays]
        return prepared.call(*arrays, out=out)

    def _prepare(self, call):
        """Prepare fully optimised code for this model and a call."""
        prepared = prepare(self.function, call, self.parameters)
        prepared.kernel.settle()
        return prepared

    def _remember(self, look, prepared):
        """Cache prepared code by the last axes of its arguments."""
        if look and len(self._known) < _REMEMBERED:
            self._known[look] = prepared

    def with_function(self, function):
        """Compiled wrapper of another function, for the same model and parameters."""
        return CompiledFunction(function, self.model, self.dtype, self.parameters, self.options)

    def __repr__(self):
        name = getattr(self.function, "__name__", repr(self.function))
        return f"<kinetree {name} compiled for {self.model.name!r}>"


def tier_of(
    model: Model, function: Callable[..., Any], **options: Any
) -> Literal["general", "specialised"]:
    """Tier of code, general or specialised, that the next single call of a function runs.

    Args:
        model: the mechanism.
        function: a function of kinetree, one of your own under ``@kinetree.kernel``, or what
            ``kinetree.compile`` returned; or a derivative that was called for the model before.
        **options: arguments of the function that choose its code, such as the name of a frame.

    Returns:
        ``"general"`` for code that serves every robot, ``"specialised"`` for code for this one.
    """
    as_model(model)
    if isinstance(function, (UserKernel, CompiledFunction)):
        return "specialised"
    if isinstance(function, Transformed):
        return _derivative(model, function).next_tier
    try:
        return kernel_of_function(model, function, options).next_tier
    except LoopError:  # closed chains go another way, which has specialised code alone
        return "specialised"


def _derivative(model, function):
    """Kernel of a derivative that was already compiled for a model; an error otherwise."""
    for key, prepared in model.memo.items():
        if isinstance(key, tuple) and key[0] == function:
            return prepared.kernel
    raise UnknownNameError(
        f"the {function.__name__} has no code for model {model.name!r} yet: which code it needs "
        f"depends on its arguments. Call it once, then ask"
    )


_USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


@explains
def warm_up(
    model: Model,
    functions: Any = None,
    *,
    batch: bool = True,
    single: bool = True,
    dtype: Any = "float64",
    progress: Any = None,
) -> None:
    """Compile specialised, optimised code for a model in advance, on all cores.

        kt.warm_up(m, [kt.forward_dynamics, (kt.jacobian, {"name": "tool"})])
        kt.warm_up(m, lambda: kt.rollout(m, q0, steps=1))

    From then on this code is used, whatever the tier, and later processes find it in the cache.

    Args:
        model: the mechanism.
        functions: a function of kinetree, one with its options as a pair, or a list of such; or
            functions without arguments that do a little of the work, such as a short rollout, which
            builds whatever that needs. By default all that was used of the model so far, and for
            trees ``inverse_dynamics``, ``forward_dynamics`` and ``mass_matrix``.
        batch: whether to build code for batches.
        single: whether to build code for single samples.
        dtype: precision, ``"float64"`` or ``"float32"``.
        progress: True for a bar, False for none; by default a bar on a terminal or in a notebook.
            Or a function of the number of functions done and of all.
    """
    as_model(model)
    precision = str(as_dtype(dtype or "float64"))
    wide = [w for w, wanted in ((False, single), (True, batch)) if wanted]
    if not wide:
        raise UnknownNameError("warm_up has nothing to build with batch=False and single=False")
    jobs = [*_jobs(model, functions)]

    def build(job):
        if not isinstance(job, Kernel):
            with tiers.settling():
                job()
        else:
            job.settle()
            try:
                for w in [] if job.is_empty else wide:
                    job.variant(precision, w)
            except KinetreeError as error:
                error.put_name(job.name)
                raise

    count = min(threads(), max(len(jobs), 1))
    with (
        reporter(progress, len(jobs), 0, f"compiling for {model.name}") as advance,
        ThreadPoolExecutor(count) as pool,
    ):
        futures = [pool.submit(build, job) for job in jobs]
        try:
            for done in as_completed(futures):
                done.result()
                advance(1)
        except BaseException:  # Ctrl-C, too: what has not begun is not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _jobs(model, functions: Any):
    """Kernels to be compiled in advance, and functions that must be called for it."""
    if functions is None:
        known = (*model.kernels.values(), *model.memo.values())
        used = [k for k in (getattr(k, "kernel", k) for k in known) if isinstance(k, Kernel)]
        usual = [DEFINITIONS[n].kernel(model) for n in _USUAL if not model.is_constrained]
        used = [k for k in used if k.samples]
        return dict.fromkeys([*used, *usual])
    is_one = callable(functions) or (isinstance(functions, tuple) and _is_pair(functions))
    found = []
    items: Any = functions if isinstance(functions, Iterable) and not is_one else [functions]
    items = [items] if isinstance(items, str) else items
    for item in items:
        function, options = item if isinstance(item, tuple) and _is_pair(item) else (item, {})
        if not callable(function):
            raise UnknownNameError(
                f"warm_up takes functions, and pairs of one and its options, got {item!r}"
                f"{_function_called(function)}"
            )
        if hasattr(function, "definition"):
            found.append(kernel_of_function(model, function, options))
        elif _needs_arguments(function):
            name = getattr(function, "__name__", repr(function))
            raise UnknownNameError(
                f"what code {name} needs depends on its arguments: give warm_up a function without "
                f"arguments that does a little of the work, such as lambda: kt.{name}(...)"
            )
        else:
            found.append(function)
    return found


def _function_called(name):
    """Public function by its name, as text or object."""
    close = close_names(name, DEFINITIONS) if isinstance(name, str) else []
    return f"; write kt.{close[0]}, without quotes" if close else ""


def _is_pair(item):
    """Whether an item is a function with arguments: a pair of positional ones and options."""
    return len(item) == 2 and isinstance(item[1], dict)


def _needs_arguments(function):
    """Whether a function has required arguments."""
    if isinstance(function, UserKernel):
        return True
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # built in
        return True
    free = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return any(p.default is Parameter.empty and p.kind not in free for p in parameters)


def kernel_of_function(model, function, options) -> Kernel:
    """Compiled kernel of a public function with options; UnknownNameError if it has none."""
    definition = getattr(function, "definition", None)
    if definition is None:
        name = getattr(function, "__name__", repr(function))
        if not str(getattr(function, "__module__", "")).startswith("kinetree"):
            raise UnknownNameError(
                f"{name} is not a function of kinetree, nor one under @kinetree.kernel"
                f"{_function_called(function)}"
            )
        raise UnknownNameError(
            f"{name} has no separate code: it runs in Python and calls compiled functions. Ask "
            f"about one of these, such as kinetree.forward_dynamics"
        )
    unknown = [n for n in options if n not in definition.options]
    if unknown:
        known = ", ".join(definition.options) or "none"
        raise UnknownNameError(
            f"{definition.name} has no option {unknown[0]!r}; those that choose its code: {known}"
        )
    missing = [
        n
        for n in definition.options
        if n not in options and definition.signature.parameters[n].default is Parameter.empty
    ]
    if missing:
        raise UnknownNameError(f"{definition.name} needs {missing[0]}= to say which code is meant")
    return definition.kernel(model, **options)
