"""Kernels on a GPU: evaluations, bytes and operations per second beside what the chip can do.

    python benchmarks/gpu.py FOLDER                  everything; writes FOLDER/gpu.json
    python benchmarks/gpu.py FOLDER --quick          two robots, one batch size
    python benchmarks/gpu.py FOLDER --variants       other layouts and compiler options as well
    python benchmarks/gpu.py FOLDER --profile talos:aba    a few launches, for a profiler

Needs NumPy and CuPy. Bytes are those that must move: every input read once, every result written
once; their limit is a copy measured in the same run. Operations are multiplications, additions and
so on of the program, a fused pair counting two; their limit is a loop of fused operations measured
in the same run. Results are compared with the interpreter in float64 on the CPU. Times are medians
of launches between events.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import cupy as cp
import numpy as np

import kinetree as kt
from kinetree.codegen.render.cuda import Layout
from kinetree.codegen.runtime.cuda import CudaKernel
from kinetree.expr import interpret
from kinetree.expr.count import count_operations
from kinetree.functions import quantity
from kinetree.simulation.rollouts.rollout import run_of

HERE = Path(__file__).parent
ROBOTS = ("ur5", "panda", "anymal", "talos", "talos_fixed")
BATCHES = tuple(4**k for k in range(13))  # 1 to 16 million
MEMORY = 12 * 2**30  # bytes of arrays at most
CHECKED = 256  # samples compared with the CPU
STEPS = 100  # of a rollout


# --- what is measured ----------------------------------------------------------------------------


def robot(name):
    return kt.Model.from_dict(json.loads((HERE / "robots" / f"{name}.json").read_text()))


@kt.kernel
def with_derivatives(model, q, qd, qdd):
    """Inverse dynamics and its derivatives with respect to position and velocity."""
    slopes = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    return kt.inverse_dynamics(model, q, qd, qdd), *slopes(model, q, qd, qdd)


def _rollout(model):
    q, qd = model.neutral(), np.zeros(model.nv)
    run = run_of(model, q, qd, qd, steps=STEPS, dt=1e-3, integrator="semi_implicit_euler")
    return run.transition.steps()


def _derivatives(model):
    return with_derivatives.compiled(model, model.neutral(), *np.zeros((2, model.nv)))


FUNCTIONS = {
    "rnea": lambda m: quantity(m, "inverse_dynamics"),
    "aba": lambda m: quantity(m, "forward_dynamics"),
    "crba": lambda m: quantity(m, "mass_matrix"),
    "jacobian": lambda m: quantity(m, "jacobian", of=m.body_names[-1], reference="world"),
    "rnea+d": _derivatives,
    "rollout": _rollout,
}


def inputs_of(kernel, model, count, dtype, rng):
    """Arrays on the device, (count, *shape) each, or without the first axis where all share it."""
    arrays = []
    for a in kernel.inputs:
        if a.name in ("t", "h", "count", "work"):
            value = {"t": 0.0, "h": 1e-3, "count": float(STEPS), "work": 0.0}[a.name]
            arrays.append(cp.asarray(value, dtype))
        elif a.name == "q":
            some = np.stack([model.random_configuration(rng) for _ in range(min(count, 1024))])
            arrays.append(cp.tile(cp.asarray(some, dtype), (-(-count // len(some)), 1))[:count])
        else:
            numbers = cp.random.standard_normal((count, *a.shape), dtype=cp.dtype(dtype))
            arrays.append(0.3 * numbers if kernel.name == "rollout" else numbers)
    return [cp.ascontiguousarray(a, dtype=dtype) for a in arrays]


@dataclass
class Row:
    """One robot, function and variant."""

    robot: str
    function: str
    dtype: str
    variant: str
    cold: float = 0.0  # [s] trace, render, compile, load
    registers: int = 0
    local: int = 0  # bytes of a thread that are spilled
    shared: int = 0  # bytes of a thread
    block: int = 0
    error: float = float("nan")  # largest, relative to the largest number of the result
    numbers: int = 0  # that a sample reads and writes
    operations: int = 0
    times: dict = field(default_factory=dict)  # [ms] by batch size
    blocks: dict = field(default_factory=dict)  # [ms] by threads in a block, largest batch

    def rate(self):
        """Evaluations per second of the largest batch."""
        count = max(self.times, default=0)
        return count / self.times[count] * 1e3 if count else 0.0

    def bytes(self):
        return self.rate() * self.numbers * (4 if self.dtype == "float32" else 8)


# --- measuring -----------------------------------------------------------------------------------


def median_time(function, repeats=7):
    """Median of the time of a launch [ms]."""
    function()
    times = []
    for _ in range(repeats):
        before, after = cp.cuda.Event(), cp.cuda.Event()
        before.record()
        function()
        after.record()
        after.synchronize()
        times.append(cp.cuda.get_elapsed_time(before, after))
    return statistics.median(times)


def copy_bandwidth():
    """Bytes read and written per second by a copy."""
    a = cp.random.standard_normal(2**30, dtype=cp.float32)
    b = cp.empty_like(a)
    return 2 * a.nbytes / median_time(lambda: cp.copyto(b, a)) * 1e3


_PEAK = r"""
extern "C" __global__ void run(float *out, float a, float b, int n)
{
    float x[8];
    for (int k = 0; k < 8; k++) x[k] = threadIdx.x + k;
    for (int i = 0; i < n; i++)
#pragma unroll
        for (int k = 0; k < 64; k++) x[k % 8] = fmaf(x[k % 8], a, b);
    for (int k = 1; k < 8; k++) x[0] += x[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}
"""


def peak_operations(dtype):
    """Multiplications and additions per second of fused operations alone."""
    real = "float" if dtype == "float32" else "double"
    text = _PEAK.replace("float", real).replace("fmaf", "fmaf" if real == "float" else "fma")
    kernel = cp.RawKernel(text, "run")
    blocks, n = 132 * 16, 2000
    out, number = cp.empty(blocks * 256, dtype), np.dtype(dtype).type
    arguments = (out, number(0.999), number(0.5), np.int32(n))
    return (
        2 * 64 * n * blocks * 256 / median_time(lambda: kernel((blocks,), (256,), arguments)) * 1e3
    )


def operations(program):
    checks = [node for node, *_ in program.checks]
    c = count_operations(program.graph, [*program.roots, *checks])
    return (
        c.multiplications + c.additions + c.divisions + c.square_roots + c.comparisons
        + 20 * c.trigonometric
    )  # fmt: skip


class Launch:
    """A compiled kernel with arrays for it."""

    def __init__(self, kernel, model, dtype, compiled, rng):
        self.kernel, self.model, self.dtype = kernel, model, dtype
        self.compiled, self.rng = compiled, rng

    def arrays(self, count):
        self.count = count
        self.inputs = inputs_of(self.kernel, self.model, count, self.dtype, self.rng)
        self.outputs = [cp.full((count, *o.shape), cp.nan, self.dtype) for o in self.kernel.outputs]
        self.steps = [
            i.size if a.ndim > len(i.shape) else 0
            for a, i in zip(self.inputs, self.kernel.inputs, strict=True)
        ]

    def __call__(self, block=None):
        pointers = [a.data.ptr for a in self.inputs], self.steps, [a.data.ptr for a in self.outputs]
        if block is None:
            self.compiled.launch(*pointers, self.count, cp.cuda.get_current_stream().ptr)
            return
        arguments = [self.count]
        for pair in zip(*pointers[:2], strict=True):
            arguments += pair
        self.compiled._start(
            block, self.count, (*arguments, *pointers[2]), cp.cuda.get_current_stream().ptr
        )

    def error(self):
        """Largest difference from the interpreter in float64, relative to the largest number."""
        self.arrays(CHECKED + 37)
        self()
        arrays = [cp.asnumpy(a).astype(float) for a in self.inputs]
        expected = interpret.run(self.kernel.program, *arrays)
        worst = 0.0
        for actual, e in zip(self.outputs, expected, strict=True):
            e = np.broadcast_to(e, actual.shape)
            size = max(float(np.max(np.abs(e))), 1e-30)
            difference = np.max(np.abs(cp.asnumpy(actual).astype(float) - e))
            worst = float("nan") if np.isnan(difference) else max(worst, float(difference) / size)
        return worst


def measure(name, function, dtype, batches, variant="", layout=None, options=()):
    """One row, with everything in it."""
    model, rng = robot(name), np.random.default_rng(0)
    start = time.perf_counter()
    kernel = FUNCTIONS[function](model)
    compiled = CudaKernel(kernel, dtype, 0, layout, options)
    cp.cuda.get_current_stream().synchronize()
    row = Row(name, function, dtype, variant, cold=time.perf_counter() - start)
    code = compiled.code.function
    row.registers, row.local, row.shared = (
        code.num_regs,
        code.local_size_bytes,
        compiled.code.shared,
    )
    row.numbers = kernel.numbers
    row.operations = operations(kernel.program) * (STEPS if function == "rollout" else 1)
    launch = Launch(kernel, model, dtype, compiled, rng)
    row.error = launch.error()
    size = 4 if dtype == "float32" else 8
    for count in batches:
        if count * row.numbers * size > MEMORY:
            break
        launch.arrays(count)
        row.times[count] = median_time(launch)
    for block in compiled._blocks:
        row.blocks[block] = median_time(lambda block=block: launch(block), 5)
    row.block = compiled.block or 0
    return row


VARIANTS = {
    "order created": {"layout": Layout(order="created")},
    "order results": {"layout": Layout(order="results")},
    "128 registers": {"options": ("--maxrregcount=128",)},
    "168 registers": {"options": ("--maxrregcount=168",)},
    "no staging": {"layout": Layout(staged=0, whole=96)},
    "in step 300": {"layout": Layout(in_step=300)},
    "fast division": {"options": ("--prec-div=false", "--prec-sqrt=false")},
}
WINDOWS = {
    "inline windows": {"layout": Layout(inline=True)},
    "window 16": {"layout": Layout(window=16, windows=24)},
    "window 32": {"layout": Layout(window=32, windows=12)},
    "168 registers": {"options": ("--maxrregcount=168",)},
}
WINDOWED = (("anymal", "crba"), ("talos", "crba"), ("panda", "rnea+d"), ("anymal", "rnea+d"))


def profiled(name, function):
    """A few launches of one kernel, for a profiler to look at."""
    model = robot(name)
    kernel = FUNCTIONS[function](model)
    launch = Launch(
        kernel, model, "float32", CudaKernel(kernel, "float32", 0), np.random.default_rng(0)
    )
    launch.arrays(2**20)
    for _ in range(2):
        launch(128 if 128 in launch.compiled._blocks else launch.compiled._blocks[0])
    cp.cuda.get_current_stream().synchronize()


def overhead(folder):
    """Time of a call from Python with 1,024 samples on the device [µs], beside an empty kernel."""
    empty = cp.RawKernel('extern "C" __global__ void run(long long n) {}', "run")
    model = robot("ur5")
    compiled = CudaKernel(FUNCTIONS["rnea"](model), "float32", 0)
    launch = Launch(FUNCTIONS["rnea"](model), model, "float32", compiled, np.random.default_rng(0))
    launch.arrays(1024)
    found = {
        "empty kernel through CuPy": lambda: empty((8,), (128,), (1024,)),
        "launch": launch,
    }
    arrays = launch.inputs
    found["kinetree.inverse_dynamics"] = lambda: kt.inverse_dynamics(model, *arrays)
    times = {}
    for name, call in found.items():
        try:
            for _ in range(100):
                call()
            cp.cuda.get_current_stream().synchronize()
            start = time.perf_counter()
            for _ in range(1000):
                call()
            issued = time.perf_counter() - start
            cp.cuda.get_current_stream().synchronize()
            times[name] = {"issue": issued * 1e3, "done": (time.perf_counter() - start) * 1e3}
        except Exception as error:  # the benchmark goes on; the report says what failed
            times[name] = repr(error)[:300]
    return times


# --- the report ----------------------------------------------------------------------------------


def show(rows, copy, peak):
    print(f"copy {copy / 1e12:.2f} TB/s, fused operations "
          + ", ".join(f"{d} {p / 1e12:.1f} T/s" for d, p in peak.items()))  # fmt: skip
    print(f"{'robot':12}{'function':10}{'type':5}{'variant':16}{'cold s':>7}{'regs':>5}{'local':>6}"
          f"{'blk':>4}{'error':>9}{'M/s':>9}{'% copy':>7}{'% ops':>6}")  # fmt: skip
    for r in rows:
        print(
            f"{r.robot:12}{r.function:10}{'f' + r.dtype[5:]:5}{r.variant[:15]:16}{r.cold:7.2f}"
            f"{r.registers:5}{r.local:6}{r.block:4}{r.error:9.1e}{r.rate() / 1e6:9.0f}"
            f"{100 * r.bytes() / copy:7.1f}{100 * r.rate() * r.operations / peak[r.dtype]:6.1f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--robots", default=",".join(ROBOTS[:4]))
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--types", default="float32")
    parser.add_argument("--profile", help="ROBOT:FUNCTION, a few launches for a profiler")
    given = parser.parse_args()
    if given.profile:
        return profiled(*given.profile.split(":"))
    given.folder.mkdir(parents=True, exist_ok=True)
    robots = given.robots.split(",") if not given.quick else ["ur5", "anymal"]
    batches = BATCHES if not given.quick else (4**11,)
    copy = copy_bandwidth()
    peak = {d: peak_operations(d) for d in ("float32", "float64")}
    rows, failures = [], []
    path = given.folder / "gpu.json"

    def save(**more):
        report = {
            "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
            "cupy": cp.__version__, "copy": copy, "peak": peak,
            "rows": [asdict(r) for r in rows], "failures": failures, **more,
        }  # fmt: skip
        path.write_text(json.dumps(report, indent=1) + "\n")

    def attempt(*arguments, **options):
        try:
            rows.append(measure(*arguments, **options))
            r = rows[-1]
            print(f"{r.robot} {r.function} {r.dtype} {r.variant}: {r.rate() / 1e6:.0f} M/s, "
                  f"cold {r.cold:.2f} s, error {r.error:.1e}", flush=True)  # fmt: skip
        except Exception as error:  # one kernel that fails must not hide the others
            failures.append(f"{arguments[:3]} {options.get('variant', '')}: {error!r}"[:600])
            print("FAILED", failures[-1], flush=True)
        cp.get_default_memory_pool().free_all_blocks()
        save()

    times = overhead(given.folder)
    print(json.dumps(times, indent=1), flush=True)
    for dtype in given.types.split(","):
        for name in robots:
            for function in given.functions.split(","):
                attempt(name, function, dtype, batches)
    if given.variants:
        for name in robots:
            for function in ("rnea", "aba"):
                for variant, how in VARIANTS.items():
                    attempt(name, function, "float32", (4**11,), variant, **how)
        for name, function in WINDOWED:
            for variant, how in WINDOWS.items():
                attempt(name, function, "float32", (4**10,), variant, **how)
    save(overhead=times)
    show(rows, copy, peak)
    for text in failures:
        print("FAILED", text)
    print(f"wrote {path}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
