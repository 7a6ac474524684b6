"""CuPy's interface on the memory of the host, and launches that read it by address and step."""

import ctypes
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np

FUNCTIONS = (
    "ascontiguousarray", "broadcast_to", "clip", "concatenate", "einsum", "exp", "full_like",
    "isfinite", "nanstd", "stack", "tensordot", "where", "zeros", "zeros_like",
)  # fmt: skip


class OutOfMemoryError(Exception):
    pass


class ndarray(np.ndarray):
    """An array that says it is CuPy's; ``place`` is its device."""

    place = 0

    def __new__(cls, shape, dtype):
        if np.prod(shape) > 1e9:
            raise OutOfMemoryError("out of memory")
        return _made(np.full(shape, np.nan, dtype))

    @property
    def device(self):
        return SimpleNamespace(id=self.place)

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data, device_id=self.place)

    def get(self):
        return np.array(self)


ndarray.__module__ = "cupy"


def _made(array):
    return np.asarray(array).view(ndarray)


@contextmanager
def _device(number):
    yield


def _wrapped(function):
    return lambda *args, **options: _made(function(*args, **options))


def module():
    """A module ``cupy``."""
    cupy = ModuleType("cupy")
    cupy.ndarray = ndarray
    cupy.asarray = lambda x, dtype=None: _made(np.asarray(x, dtype))
    cupy.asnumpy = lambda x: np.array(x)
    cupy.cuda = SimpleNamespace(
        Device=_device,
        runtime=SimpleNamespace(getDevice=lambda: 0),
        get_current_stream=lambda: SimpleNamespace(ptr=7),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )
    for name in FUNCTIONS:
        setattr(cupy, name, _wrapped(getattr(np, name)))
    cupy.random = np.random
    return cupy


def runtime(launches, compile=None, compile_loops=None):
    """A module like ``kinetree.codegen.runtime.cuda``.

    Args:
        launches: a list that collects the arguments of launches.
        compile: makes of a program and a dtype what computes; the CPU's own code by default.
        compile_loops: the same of a program with loops, a robot and a dtype.
    """
    cuda = ModuleType("kinetree.codegen.runtime.cuda")

    def numbers(address, count, dtype):
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)

    def cuda_kernel(kernel, dtype, device):
        if hasattr(kernel, "source") and compile_loops is not None:
            run = compile_loops(kernel, dtype)
        else:
            run = kernel.full if compile is None else compile(kernel.program, dtype)

        def launch(inputs, steps, outputs, count, stream):
            launches.append((kernel.name, dtype, device, tuple(steps), count, stream))
            arrays = []
            for address, step, i in zip(inputs, steps, kernel.inputs, strict=True):
                memory = numbers(address, (count - 1) * step + i.size, dtype)
                rows = [memory[k * step :][: i.size].reshape(i.shape) for k in range(count)]
                arrays.append(np.stack(rows))
            results = run(*arrays)
            results = results if isinstance(results, tuple) else (results,)
            for address, result in zip(outputs, results, strict=True):
                numbers(address, result.size, dtype)[:] = np.ravel(result)

        def again(steps, count):
            return lambda ins, outs, stream: launch(ins, steps, outs, count, stream)

        return SimpleNamespace(launch=launch, again=again)

    cuda.cuda_kernel = cuda_kernel
    return cuda
