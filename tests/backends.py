"""Back ends as functions of a program and a dtype, for tests that compare them."""

import ctypes
import shutil
import subprocess

import numpy as np

from kinetree.codegen.compile.llvm import load, object_code
from kinetree.codegen.render import c, numpy
from kinetree.codegen.render.llvm import render
from kinetree.codegen.runtime.gufunc import gufunc

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
_alive = []


def llvm(lanes):
    """Machine code with a number of lanes, as a ufunc; failed checks are counted in ``status``."""

    def compile(program, dtype):
        code = load(object_code(render(program, dtype, lanes)))
        status = ctypes.c_int64(0)
        _alive.append((code, status))
        ufunc = gufunc(program, dtype, code.address("loop"), status)

        def run(*arrays, **options):
            with np.errstate(all="ignore"):
                return ufunc(*(np.asarray(a, dtype) for a in arrays), **options)

        run.status, run.ufunc = status, ufunc
        return run

    return compile


def numpy_listing(program, dtype):
    """The NumPy listing."""
    function = numpy.function(program)
    return lambda *arrays: function(*(np.asarray(a, dtype) for a in arrays))


def exported_c(folder):
    """The C renderer with the compiler of this machine, one call for every sample."""

    def compile(program, dtype):
        name = f"program{len(_alive)}"
        source, library = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text("#include <math.h>\n\n" + c.render(program, dtype, name="run") + "\n")
        flags = ["-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        subprocess.run(
            [COMPILER, *flags, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True
        )
        function = ctypes.CDLL(str(library)).run
        _alive.append(function)

        def run(*arrays):
            return _call_samples(function, program, dtype, arrays)[0]

        run.status = lambda *arrays: _call_samples(function, program, dtype, arrays)[1]
        return run

    return compile


def _call_samples(function, program, dtype, arrays):
    """Results and the last status."""
    given = list(zip(arrays, program.inputs, strict=True))
    batch = np.broadcast_shapes(*(np.shape(a)[: np.ndim(a) - len(i.shape)] for a, i in given))
    count = int(np.prod(batch, dtype=int))
    rows = [
        np.ascontiguousarray(np.broadcast_to(a, batch + i.shape), dtype).reshape(count, i.size)
        for a, i in given
    ]
    results = [np.empty((count, o.size), dtype) for o in program.outputs]
    status = 0
    for k in range(count):
        status = function(*(ctypes.c_void_p(a[k].ctypes.data) for a in (*rows, *results)))
    shaped = zip(results, program.outputs, strict=True)
    return tuple(r.reshape(batch + o.shape) for r, o in shaped), status
