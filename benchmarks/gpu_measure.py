"""How long kernels take on a GPU, how exact they are, and what the chip can do."""

import statistics
import time
from dataclasses import dataclass, field

import cupy as cp
import numpy as np
from gpu_kernels import FUNCTIONS, STEPS, inputs_of, robot

import kinetree as kt
from kinetree.codegen.runtime.cuda import CudaKernel
from kinetree.expr import interpret
from kinetree.expr.counting import count_operations

MEMORY = 12 * 2**30  # bytes of arrays at most
CHECKED = 101  # samples compared with the CPU


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
    shared: int = 0  # bytes of a warp
    functions: int = 0  # that compute it together
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
        stream = cp.cuda.get_current_stream().ptr
        inputs, outputs = ([a.data.ptr for a in arrays] for arrays in (self.inputs, self.outputs))
        self.compiled.launch(inputs, self.steps, outputs, self.count, stream, block)

    def error(self):
        """Largest difference from the interpreter in float64, relative to the largest number."""
        self.arrays(CHECKED)
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
    row.registers = max(f.registers for f in compiled.code.functions)
    row.local = max(f.local for f in compiled.code.functions)
    row.shared, row.functions = max(compiled.code.shared), len(compiled.code.functions)
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
    for block in compiled.blocks:
        row.blocks[block] = median_time(lambda block=block: launch(block), 5)
    row.block = compiled.block or 0
    return row


def overhead():
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
