"""Every public function of every sample model: the device and the CPU give the same numbers.

Processes share the work, the smallest programs first. Where there is no device, ``on_cpu`` compiles
the same CUDA text for the CPU, with the shim of the tests.
"""

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from support.public_calls import FUNCTIONS, ON_HOST, States, converted, leaves

import kinetree as kt
from gpu_checks.definition import compute_by_definition
from kinetree.spelling import did_you_mean

__all__ = ["BOUND", "SAMPLES", "check_names", "every_sample", "largest_error", "use_shim"]

BOUND = {"float64": 1e-11, "float32": 1e-4}
"""Largest difference, as a part of the largest number of a result and of 1."""
SAMPLES = 33  # one more than a warp has


@dataclass(frozen=True)
class Outcome:
    """How a function did for a model: differences by precision; or words, where it failed."""

    model: str
    function: str
    errors: dict
    failed: str = ""
    seconds: float = 0.0


def check_names(samples=(), functions=()):
    """Raise a ``kt.UnknownNameError`` for the first name that ``every_sample`` would not know."""
    for name in samples:
        kt.samples.load(name)
    for name in functions:
        if name in ON_HOST:
            raise kt.UnknownNameError(
                f"{name!r} computes on the CPU, whatever it is given: there is nothing to compare"
            )
        if name not in FUNCTIONS:
            hint = did_you_mean(name, [f for f in FUNCTIONS if f not in ON_HOST], most=3)
            raise kt.UnknownNameError(f"no public function is called {name!r}; {hint}")


def every_sample(report, names=(), functions=(), workers=None, *, on_cpu=False):
    """Compare all, or as many as there is time for; one line for each model.

    Args:
        report: a ``Report``.
        names: of sample models; all by default.
        functions: names of functions; all by default.
        workers: number of processes, by default one for each core.
        on_cpu: whether the text runs on the CPU, through the shim.
    """
    sizes = {name: kt.samples.load(name).nv for name in names or kt.samples.names()}
    models = sorted(sizes, key=lambda name: sizes[name])
    functions = functions or [name for name in FUNCTIONS if name not in ON_HOST]
    pairs = [(m, f) for m in models for f in functions]
    pairs.sort(key=lambda pair: sizes[pair[0]] ** (3 if pair[1] == "christoffel" else 1))
    waiting = {model: len(functions) for model in models}
    found: dict = {model: [] for model in models}
    executor = ProcessPoolExecutor(
        workers or os.cpu_count(), get_context("spawn"), _prepare, (on_cpu,)
    )
    tasks = [executor.submit(_compared, *pair) for pair in pairs]
    try:
        for task in as_completed(tasks, timeout=report.seconds_left):
            outcome = task.result()
            found[outcome.model].append(outcome)
            waiting[outcome.model] -= 1
            if outcome.failed:
                report.fail(f"{outcome.model} {outcome.function}", outcome.failed)
            if not waiting[outcome.model]:
                _say(outcome.model, found[outcome.model])
    except TimeoutError:
        for model, outcomes in found.items():
            done = {o.function for o in outcomes}
            report.left += [f"{model} {f}" for f in functions if f not in done]
            if waiting[model] and outcomes:
                _say(model, outcomes)
    finally:
        for process in (
            list((executor._processes or {}).values()) if not report.seconds_left else ()
        ):
            process.terminate()
        executor.shutdown(wait=False, cancel_futures=True)


def _say(model, outcomes):
    defined = [o for o in outcomes if o.errors]
    words = []
    for dtype in BOUND:
        worst = max(defined, key=lambda o: o.errors[dtype], default=None)
        if worst is not None:
            words.append(f"{dtype} {worst.errors[dtype]:.0e} ({worst.function})")
    seconds = sum(o.seconds for o in outcomes)
    print(
        f"{model}: {len(defined)} functions, worst {', '.join(words)}, "
        f"{len(outcomes) - len(defined)} not defined or failed; {seconds:.0f} s of work",
        flush=True,
    )


# --- in a process of its own ---------------------------------------------------------------------


def _prepare(on_cpu):
    if on_cpu:
        use_shim()
    else:
        compute_by_definition()


def use_shim():
    """Run CUDA code on the CPU instead of through CuPy and launches."""
    from support import fake_cupy
    from support.backends import cuda_on_cpu, general_in_cuda

    from kinetree.codegen.program import calls_of
    from kinetree.codegen.render.cuda import ROUTINES

    sys.modules["cupy"] = fake_cupy.module()
    folder = Path(tempfile.mkdtemp())
    plain, with_routines = cuda_on_cpu(folder), cuda_on_cpu(folder, ROUTINES)

    def compiled(program, dtype):
        return (with_routines if calls_of(program) else plain)(program, dtype)

    runtime = fake_cupy.runtime([], compiled, general_in_cuda(folder))
    sys.modules["kinetree.codegen.runtime.cuda"] = runtime


@cache
def _states(name):
    return States(kt.samples.load(name), SAMPLES, np.random.default_rng(1))


class _UndefinedError(Exception):
    """The function has no value for this model, on the CPU either: it has loops, or no gravity."""


def _compared(name, function):
    begin, errors, failed = time.perf_counter(), {}, ""
    try:
        states = _states(name)
        given = states.arguments(FUNCTIONS[function])
        for dtype, bound in BOUND.items():
            errors[dtype] = _error(states.model, FUNCTIONS[function], given, dtype)
            if not errors[dtype] <= bound:
                failed = f"{dtype} differs by {errors[dtype]:.1e}, at most {bound:.0e} will do"
    except _UndefinedError:
        errors = {}
    except Exception as error:
        failed = f"{type(error).__name__}: {str(error)[:300]}"
    return Outcome(name, function, errors if len(errors) == len(BOUND) else {}, failed,
                   time.perf_counter() - begin)  # fmt: skip


def _error(model, function, given, dtype):
    import cupy

    rounded = converted(given, lambda x: x.astype(dtype))
    try:
        expected = leaves(function(model, **converted(rounded, lambda x: x.astype(float))))
    except kt.KinetreeError as error:
        raise _UndefinedError from error
    found = leaves(function(model, **converted(rounded, cupy.asarray)))
    return max(largest_error(cupy.asnumpy(b), a) for a, b in zip(expected, found, strict=True))


def largest_error(found, expected):
    """Largest difference, as a part of the largest number and of 1; NaN is infinitely wrong."""
    a, b = np.asarray(expected), np.asarray(found, float)
    size = max(1.0, float(np.max(np.abs(a), initial=0)))
    error = np.abs(a - b)
    return float(np.max(np.where(np.isnan(error), np.inf, error), initial=0)) / size
