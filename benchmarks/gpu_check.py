"""Arrays on a GPU: every public function, derivatives, rollouts and errors, checked one by one.

    python benchmarks/gpu_check.py              # on a CUDA device, with CuPy
    python benchmarks/gpu_check.py --on-cpu     # the CUDA text, compiled by the C compiler
    python benchmarks/gpu_check.py --tier general   # code for every robot, where there is some

Checks PyTorch and JAX where they are installed. Reference values come from the definition of the
operations, in NumPy, so that no other compiler is needed; with ``--on-cpu`` from compiled code.
Prints one line for each check and model, what there was no time for, and exits with the number of
those that failed.
"""

import argparse
import os
import sys
from pathlib import Path
from threading import Thread

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # calls of all functions, and the shim

import numpy as np
from gpu_checks import contact, environments
from gpu_checks.agreement import BOUND, check_names, every_sample, largest_error, use_shim
from gpu_checks.definition import compute_by_definition
from gpu_checks.report import Report
from support.public_calls import FUNCTIONS, States, converted, leaves

import kinetree as kt


def libraries():
    """For every library: from NumPy to a device, back, and the type of its arrays."""
    import cupy

    found = {"cupy": (cupy.asarray, cupy.asnumpy, cupy.ndarray)}
    try:
        import torch

        found["torch"] = (
            lambda x: torch.from_numpy(np.ascontiguousarray(x)).cuda(),
            lambda x: x.detach().cpu().numpy(),
            torch.Tensor,
        )
    except ImportError:
        print("PyTorch is not installed: not checked")
    try:
        import jax

        gpu = jax.devices("gpu")[0]
        found["jax"] = (lambda x: jax.device_put(x, gpu), np.asarray, jax.Array)
    except (ImportError, RuntimeError) as error:
        print(f"JAX with a GPU is not installed: not checked ({error})")
    return found


def is_on_device(x):
    """Whether an array is on a GPU."""
    if hasattr(x, "devices"):
        return next(iter(x.devices())).platform in ("gpu", "cuda")
    return x.is_cuda if hasattr(x, "is_cuda") else True


def same_kind(states, function, library):
    """Check that numbers are those by definition, of the same kind, on the device."""
    to, back, array = library
    given = states.arguments(function)
    expected = leaves(function(states.model, **given))
    found = leaves(function(states.model, **converted(given, to)))
    worst = 0.0
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, np.ndarray) and a.ndim:
            assert isinstance(b, array), f"{type(b)} is not {array}"
            assert is_on_device(b), "not on the device"
        worst = max(worst, largest_error(back(b) if isinstance(b, array) else b, a))
    assert worst < BOUND["float64"], f"differs by {worst:.1e}"
    return f"{worst:.0e}"


def particulars(model, known, report):
    """Particulars of each library, and the cost of a call: while nothing else runs."""
    from gpu_checks import on_cupy

    on_cupy.checks(model, report)
    if "torch" in known:
        from gpu_checks import on_torch

        on_torch.checks(model, report)
    if "jax" in known:
        from gpu_checks import on_jax

        on_jax.checks(model, report)


def every_library(model, known, report):
    """All functions on arrays of all libraries, for a small model."""
    for kind, library in known.items():
        for name, function in FUNCTIONS.items():
            states = States(model, 5, np.random.default_rng(0))
            report.run(f"{kind} {name}", same_kind, states, function, library)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--on-cpu", action="store_true", help="no device: the shim of the tests")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds for everything")
    parser.add_argument("--samples", nargs="*", default=(), help="names of sample models")
    parser.add_argument("--functions", nargs="*", default=(), help="names of functions")
    parser.add_argument("--workers", type=int, help="processes; one for each core by default")
    parser.add_argument("--tier", default="specialised", choices=("general", "specialised"))
    parser.add_argument("-v", "--verbose", action="store_true", help="tracebacks of failures")
    given = parser.parse_args()
    try:
        check_names(given.samples, given.functions)
    except kt.UnknownNameError as error:
        parser.error(str(error))
    os.environ["KINETREE_TIER"] = given.tier  # of the processes that share the work, too
    kt.set_tier(given.tier)
    report = Report(given.limit, verbose=given.verbose)
    model, known = kt.samples.double_pendulum(), {}
    if not given.on_cpu:
        compute_by_definition()
        known = libraries()
        particulars(model, known, report)
        contact.checks(report, known)
        contact.pair_checks(report, known)
        contact.gradient_checks(report, known)
        environments.checks(report, known)
    else:
        use_shim()
        import cupy

        shim = {"cupy": (cupy.asarray, cupy.asnumpy, cupy.ndarray)}
        contact.checks(report, shim)
        contact.pair_checks(report, shim)
        environments.checks(report, shim)
    scan = Thread(
        target=every_sample,
        args=(report, given.samples, given.functions, given.workers),
        kwargs={"on_cpu": given.on_cpu},
    )
    scan.start()
    every_library(model, known, report)
    scan.join()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
