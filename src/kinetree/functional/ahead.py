"""Which code a function runs for a model, and building the specialised code ahead of the work."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from inspect import Parameter, signature
from typing import Any, Literal

from kinetree.codegen import tiers
from kinetree.codegen.progress import reporter
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.runtime.threads import threads
from kinetree.errors import KinetreeError, LoopError, UnknownNameError
from kinetree.functional.compiled import CompiledFunction, as_dtype
from kinetree.functional.kernel import UserKernel
from kinetree.functional.transformed import Transformed
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.define import DEFINITIONS
from kinetree.spelling import close_names


def tier_of(
    model: Model, function: Callable[..., Any], **options: Any
) -> Literal["general", "specialised"]:
    """The tier of the code that the next single call of a function runs for a model.

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
    for key, prepared in model.memo.items():
        if isinstance(key, tuple) and key[0] == function:
            return prepared.kernel
    raise UnknownNameError(
        f"the {function.__name__} has no code for model {model.name!r} yet: which code it needs "
        f"depends on its arguments. Call it once, then ask"
    )


_USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def warm_up(
    model: Model, functions: Any = None, *, batch: bool = True, single: bool = True,
    dtype: Any = "float64", progress: Any = None,
) -> None:  # fmt: skip
    """Build specialised, optimised code for a model ahead of the work, on all cores.

        kt.warm_up(m, [kt.forward_dynamics, (kt.jacobian, {"name": "tool"})])
        kt.warm_up(m, lambda: kt.rollout(m, q0, steps=1))

    From then on this code is used, whatever the tier, and later processes find it in the cache.

    Args:
        model: the mechanism.
        functions: a function of kinetree, one with its options as a pair, or a list of such; or
            functions without arguments that do a little of the work, such as a short rollout, which
            builds whatever that needs. By default all that the model was asked for so far, and for
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
                error.named(job.name)
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
    """Kernels, and functions without arguments."""
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
    """What to write for the function that somebody calls by its name."""
    close = close_names(name, DEFINITIONS) if isinstance(name, str) else []
    return f"; write kt.{close[0]}, without quotes" if close else ""


def _is_pair(item):
    return len(item) == 2 and isinstance(item[1], dict)


def _needs_arguments(function):
    if isinstance(function, UserKernel):
        return True
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # built in
        return True
    free = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return any(p.default is Parameter.empty and p.kind not in free for p in parameters)


def kernel_of_function(model, function, options) -> Kernel:
    """The kernel of a public function, by its options; raise UnknownNameError where it has none."""
    definition = getattr(function, "definition", None)
    if definition is None:
        name = getattr(function, "__name__", repr(function))
        if not str(getattr(function, "__module__", "")).startswith("kinetree"):
            raise UnknownNameError(
                f"{name} is not a function of kinetree, nor one under @kinetree.kernel"
                f"{_function_called(function)}"
            )
        raise UnknownNameError(
            f"{name} has no code of its own: it runs in Python and calls compiled functions. Ask "
            f"about one of these, such as kinetree.forward_dynamics"
        )
    unknown = [n for n in options if n not in definition.options]
    if unknown:
        known = ", ".join(definition.options) or "none"
        raise UnknownNameError(
            f"{definition.name} has no option {unknown[0]!r}; those that choose its code: {known}"
        )
    missing = [
        n for n in definition.options
        if n not in options and definition.signature.parameters[n].default is Parameter.empty
    ]  # fmt: skip
    if missing:
        raise UnknownNameError(f"{definition.name} needs {missing[0]}= to say which code is meant")
    return definition.kernel(model, **options)
