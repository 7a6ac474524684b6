"""Code for every robot on a GPU: quantities against the CPU and specialised code, and their speed.

    python benchmarks/gpu_general.py            # on a CUDA device, with CuPy; below 3 minutes
    python benchmarks/gpu_general.py --quick    # one robot, one precision
    python benchmarks/gpu_general.py --variants # all places of numbers and bounds of registers

For an arm, a quadruped, a humanoid and a chain of 1,000 bodies, in both precisions. Values on the
CPU are those of the interpreter of loop programs, in NumPy. Times are of one launch on arrays that
are on the device, sample after sample, best of several. *Moved* are the numbers of rows, arguments
and results that a sample loads and stores, each counted every time; *of peak* is the time that they
would take at the device's bandwidth, as a part of the measured one. Exits with the number of
quantities that are wrong.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from gpu_checks.agreement import BOUND, largest_error
from gpu_checks.general import general_kernels, moved

import kinetree as kt
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.render.cuda_loops import PLACES, LoopLayout
from kinetree.codegen.runtime.cuda import CudaKernel, LoopCudaKernel

TIMED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
SAMPLES = {"ur5": 2**21, "quadruped": 2**20, "humanoid": 2**19, "chain of 1000": 2**14}
_CHECKED = 70  # samples that are compared with the interpreter
_LARGE = 100  # bodies of a robot of which a few samples are compared
_SMALL = 15  # bodies of a robot for which specialised code is soon there


@cache
def robot(name):
    """A sample model, or a chain."""
    return kt.samples.chain(1000) if name == "chain of 1000" else kt.samples.load(name)


def arguments(kernel, model, count, dtype, rng):
    """Arrays for a kernel; of many samples the first ones, over and over."""
    few, found = min(count, 512), []
    for a in kernel.inputs:
        x = rng.normal(size=(few, *a.shape))
        if a.name in ("q", "q0", "q1"):
            x = model.random_configuration(rng, few)
        if a.name == "poses":
            x = kt.poses(model, model.random_configuration(rng, few))
        found.append(np.resize(x, (count, *a.shape)).astype(dtype))
    return found


def launcher(compiled, kernel, given, cupy):
    """A function that launches a kernel, and its results."""
    count = len(given[0])
    outputs = [cupy.empty((count, *a.shape), given[0].dtype) for a in kernel.outputs]
    addresses, steps = [x.data.ptr for x in given], [x[0].size for x in given]
    places = [o.data.ptr for o in outputs]
    stream = cupy.cuda.get_current_stream().ptr
    return lambda: compiled.launch(addresses, steps, places, count, stream), outputs


def seconds(launch, cupy):
    """Time of one launch, the best of several."""
    launch()
    cupy.cuda.runtime.deviceSynchronize()
    best = np.inf
    for _ in range(5):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        launch()
        after.record()
        after.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(before, after) / 1000)
    return best


def compared(name, function, dtype):
    """Words about a quantity in comparison with the interpreter, and whether it is wrong."""
    try:
        model = robot(name)
        (kernel,) = general_kernels(model, (function,))
        error, first = _difference(kernel, model, dtype)
        return f"{error:.0e}, first answer {first:.2f} s", not error <= BOUND[dtype]
    except Exception as problem:
        return f"{type(problem).__name__}: {str(problem)[:500]}", True


def _difference(kernel, model, dtype):
    """Largest difference from the interpreter; seconds until the first answer."""
    import cupy

    few, rng = _CHECKED if model.body_count < _LARGE else 5, np.random.default_rng(1)
    given = arguments(kernel, model, few, dtype, rng)
    program = kernel.source.program(tuple(kernel.data.domains["bodies"].kinds))
    expected = interpret(program, kernel.data, *(x.astype(float) for x in given))
    begin = time.perf_counter()
    on_device = [cupy.asarray(x) for x in given]
    launch, outputs = launcher(LoopCudaKernel(kernel, dtype, 0), kernel, on_device, cupy)
    launch()
    found = [cupy.asnumpy(o) for o in outputs]
    first = time.perf_counter() - begin
    error = max(largest_error(b, a) for a, b in zip(expected, found, strict=True))
    return error / condition(kernel, model, given[0].astype(float)), first


def condition(kernel, model, q):
    """Condition of the task that a quantity inverts, the worst of the samples; 1 for all others."""
    if kernel.name not in ("dynamically_consistent_inverse", "null_space_projector"):
        return 1.0
    inverse = kt.inverse_operational_space_inertia(model, q, model.body_names[-1])
    return float(np.max(np.linalg.cond(inverse)))


def timed(name, function, dtype, given, cupy, bandwidth):
    """Lines about the speed of a kernel."""
    model, variants, rng = robot(name), given.variants, np.random.default_rng(0)
    (kernel,) = general_kernels(model, (function,))
    count = SAMPLES[name] // (8 if kernel.name == "mass_matrix" else 1)
    on_device = [cupy.asarray(x) for x in arguments(kernel, model, count, dtype, rng)]
    every = [LoopLayout(place, resident) for place in PLACES for resident in (0, 2)]
    for layout in every if variants and kernel.name != "mass_matrix" else [LoopLayout()]:
        try:
            compiled = LoopCudaKernel(kernel, dtype, 0, layout)
        except ValueError:  # not even one block has room
            continue
        launch, _ = launcher(compiled, kernel, on_device, cupy)
        spent = seconds(launch, cupy) / count
        size = moved(kernel, dtype)
        registers = compiled.code.functions[0].registers
        words = f"{compiled.place}, {layout.resident}" if variants else compiled.place
        print(
            f"    {name} {kernel.name} {dtype} ({words}; {registers} registers, blocks of "
            f"{compiled.block or compiled.blocks[0]}): {spent * 1e9:.3f} ns a sample, moved "
            f"{size / 1000:.1f} kB, {size / bandwidth / spent:.2f} of peak",
            flush=True,
        )
    if model.body_count <= _SMALL and given.specialised:
        from kinetree.model.define import kernel_of

        with kt.tier("specialised"):
            other = kernel_of(model, kernel.name)
            launch, _ = launcher(CudaKernel(other, dtype, 0), other, on_device, cupy)
            print(f"    specialised: {seconds(launch, cupy) / count * 1e9:.3f} ns", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one robot, one precision")
    parser.add_argument("--variants", action="store_true", help="all places and register bounds")
    parser.add_argument("--robots", nargs="*", default=list(SAMPLES), help="names")
    parser.add_argument("--functions", nargs="*", default=(), help="names of functions")
    parser.add_argument("--specialised", action="store_true", help="time specialised code, too")
    parser.add_argument("--workers", type=int, help="processes; one for each core by default")
    parser.add_argument("--limit", type=float, default=170.0, help="seconds for everything")
    given = parser.parse_args()
    import cupy

    begin, wrong, left = time.monotonic(), [], []
    known = cupy.cuda.Device(0).attributes
    clock, width = known.get("MemoryClockRate", 3201000), known.get("GlobalMemoryBusWidth", 6144)
    bandwidth = 2e3 * clock * width / 8  # [B/s], twice a cycle; [kHz], [bit]
    print(f"bandwidth {bandwidth / 1e12:.2f} TB/s")
    robots = given.robots[:1] if given.quick else given.robots
    types = ("float64",) if given.quick else ("float64", "float32")
    names = {r: [k.name for k in general_kernels(robot(r), given.functions)] for r in robots}
    tasks = [(r, n, t) for t in types for r in robots for n in names[r]]

    def said(task, outcome):
        what, (words, failed) = " ".join(task), outcome
        print(f"{'FAIL' if failed else 'pass'}  {what}: {words}", flush=True)
        wrong.extend([what] if failed else [])

    for task in (t for t in tasks if t[1] in TIMED):  # while nothing else runs
        if time.monotonic() - begin < given.limit:
            said(task, compared(*task))
            try:
                timed(*task, given, cupy, bandwidth)
            except Exception as problem:
                said((*task, "timed"), (f"{type(problem).__name__}: {problem}", True))
        else:
            left.append(" ".join(task))
    rest = [t for t in tasks if t[1] not in TIMED]
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as executor:
        found = {executor.submit(compared, *task): task for task in rest}
        try:
            seconds_left = max(0.0, given.limit - time.monotonic() + begin)
            for done in as_completed(found, timeout=seconds_left):
                said(found.pop(done), done.result())
        except TimeoutError:
            left += [" ".join(task) for task in found.values()]
            executor.shutdown(wait=False, cancel_futures=True)
    if left:
        print(f"{len(left)} not reached: {', '.join(left)}")
    print(f"{len(wrong)} failed{': ' + ', '.join(wrong) if wrong else ''}; "
          f"{time.monotonic() - begin:.0f} s")  # fmt: skip
    return min(len(wrong), 100)


if __name__ == "__main__":
    sys.exit(main())
