"""Back ends as functions of a program and a dtype, for tests that compare them."""

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from kinetree.codegen.build import code_of
from kinetree.codegen.loops.layout import layout_of_kinds
from kinetree.codegen.loops.recomputed import recompute
from kinetree.codegen.loops.robots import tables
from kinetree.codegen.render import c, c_loops, cuda_loops, cuda_pieces, numpy
from kinetree.codegen.render.llvm import render
from kinetree.codegen.runtime.single import gufunc

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
LIBRARIES = Path(__file__).parents[2] / ".pytest_cache" / "d" / "c"
"""Where compiled C is kept for the next run, which most often wants the same: by all it is of."""
_LONG = 14 * 86400  # [s] after which what nobody used goes
_ROOM = r"""{ real *const all = room - \1 * \2;
    __syncwarp(); for (int k = 0; k < \3; k++) all[k] = NAN; __syncwarp(); }"""
_ROOM_OF = (
    r"(?<=\+ )(\(threadIdx.x & 31\) / \d+|0) \* (\d+);"
    r"\n +\(void\)room, \(void\)live, \(void\)(\d+);"
)
_alive = []


def llvm(lanes, level=1):
    """Machine code with a number of lanes, as a ufunc; failed checks are counted in ``status``."""

    def compile(program, dtype):
        code = code_of(render(program, dtype, lanes), level)
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

    return lambda program, dtype: all_exported_c(folder, {"run": program}, dtype)["run"]


def all_exported_c(folder, programs, dtype="float64", level=1):
    """The same of several, by name; compiled together."""
    library = folder / f"programs{len(_alive)}.so"
    names = {name: f"run{k}" for k, name in enumerate(programs)}
    texts = [c.render(program, dtype, name=names[name]) for name, program in programs.items()]
    _compile_c(library, texts, level)
    return {n: _calls_of(_alive[-1][names[n]], p, dtype) for n, p in programs.items()}


def _compile_c(library, texts, level):
    """Make a library of functions in C, which becomes the last of ``_alive``."""
    text = "\n\n".join(["#include <math.h>", *texts]) + "\n"
    flags = ["-std=c99", f"-O{level}", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    _alive.append(c_library(library, text, [*flags, "-pedantic"]))


def c_library(path, text, flags):
    """The library of a text in C: one that is kept, or else compiled as ``path``, and kept."""
    header = Path(__file__).with_name("cuda_shim.h").read_text(encoding="utf-8")
    key = repr((_compiler_and_processor(), flags, header, text)).encode()
    kept = LIBRARIES / f"{hashlib.sha256(key).hexdigest()}.so"
    if kept.exists():
        os.utime(kept)
        return ctypes.CDLL(str(kept))
    source = path.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    more = ["-shared", "-fPIC", source, "-o", path, "-lm"]
    subprocess.run([COMPILER, *flags, *more], check=True)
    made = LIBRARIES / f"{os.getpid()}-{path.name}"
    shutil.copyfile(path, made)
    made.replace(kept)  # other workers see all of it, or nothing
    return ctypes.CDLL(str(kept))


@cache
def _compiler_and_processor():
    """What a library depends on besides its text; makes room for what is kept, too."""
    LIBRARIES.mkdir(parents=True, exist_ok=True)
    for path in LIBRARIES.iterdir():
        if path.stat().st_mtime < time.time() - _LONG:
            path.unlink(missing_ok=True)
    said = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True)
    return said.stdout, platform.machine()


def _calls_of(function, arguments, dtype):
    """A call for every sample."""

    def run(*arrays):
        return _call_samples(function, arguments, dtype, arrays)[0]

    run.status = lambda *arrays: _call_samples(function, arguments, dtype, arrays)[1]
    return run


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


def cuda_on_cpu(folder, layout=None, threads=32, samples=2):
    """The CUDA renderer with the C compiler of this machine, threads taking turns.

    A block has so many threads; with routines it has fewer samples than lanes.
    """

    def compile(program, dtype):
        pieces = cuda_pieces.render_pieces(program, dtype, layout)
        launches = [_compiled_shim(program, text, pieces.work, folder) for text in pieces.texts]
        each = samples if getattr(layout, "by_warps", False) else 0
        return lambda *arrays: _launched(
            launches, pieces.work, program, dtype, arrays, threads, samples=each
        )

    return compile


def _compiled_shim(program, found, work, folder, robot=False):
    """The function that launches a piece."""
    name = f"cuda{len(_alive)}"
    text = _shimmed(program, found, work, robot)
    flags = ["-std=gnu11", "-O0", "-ffp-contract=off", "-Wall", "-Wno-unknown-pragmas"]
    flags += ["-Wno-unused-function", f"-I{Path(__file__).parent}"]
    _alive.append(c_library(folder / f"{name}.so", text, flags).launch)
    return _alive[-1]


def _shimmed(program, found, work, robot=False):
    """The text, what stands for CUDA before it, and a function that runs the kernel after it."""
    ins = [a for a in program.inputs if a.size]
    outs = [a for a in program.outputs if a.size]
    parts = ["given_count, given[0]"]
    parts += [f"(const real *)given[{2 * k + 1}], given[{2 * k + 2}]" for k in range(len(ins))]
    places = len(outs) + (1 if work or robot else 0)
    parts += [f"(real *)given[{2 * len(ins) + k + 1}]" for k in range(places)]
    if robot:
        at = 2 * len(ins) + places
        parts.append(f"(const int *)given[{at + 1}], (const real *)given[{at + 2}]")
    return "\n".join(
        [
            '#include "cuda_shim.h"',
            re.sub(_ROOM_OF, rf"\1 * \2;\n{_ROOM}", found.text),
            f"vector16 shared[{found.shared * (1 if found.threads else 8) // 16 + 1}];",
            "static long long given_count, *given;",
            f"static void kernel(void) {{ run({', '.join(parts)}); }}",
            "void launch(long long count, long long *arguments, int threads)",
            "{",
            "    given_count = count;",
            "    given = arguments;",
            f"    const long long samples = {'arguments[0]' if found.threads else 'threads'};",
            "    const int blocks = (int)((count + samples - 1) / samples);",
            f"    const int most = {2 if found.ahead else 1 << 30};",  # so that warps go round
            "    run_grid(blocks < most ? blocks : most, threads);",
            "}",
        ]
    )


def _launched(launches, work, program, dtype, arrays, threads, robot=(), samples=0):
    """Results of a launch; inputs without batch axes are shared by all samples."""
    pairs = list(zip(arrays, program.inputs, strict=True))
    batch = np.broadcast_shapes(*(np.shape(a)[: np.ndim(a) - len(i.shape)] for a, i in pairs))
    count = int(np.prod(batch, dtype=int))
    alive, words = [], [1]
    for a, i in pairs:
        if not i.size:
            continue
        a = np.asarray(a, dtype)
        if a.ndim > len(i.shape):
            a = np.ascontiguousarray(np.broadcast_to(a, batch + i.shape))
        alive.append(np.ascontiguousarray(a))
        words += [alive[-1].ctypes.data, i.size if a.ndim > len(i.shape) else 0]
        if words[-1]:
            words[0] &= not words[-2] & 15
    results = [np.full((*batch, *o.shape), 777.0, dtype) for o in program.outputs]
    words += [r.ctypes.data for r in results if r.size]
    words[0] &= not any(r.ctypes.data & 15 for r in results if r.size)
    places = -(-count // (samples or 32)) * -(-(samples or 32) // 32)
    workspace = np.full((places, work, 32), np.nan, dtype)
    words += [*([workspace.ctypes.data] if work else []), *robot]
    words[0] = samples or words[0]
    for launch in launches if count else ():
        launch(ctypes.c_longlong(count), (ctypes.c_longlong * len(words))(*words), threads)
    return tuple(results)


# --- programs with loops over tables --------------------------------------------------------------


def general_in_cuda(folder):
    """The CUDA C of a ``LoopKernel`` on the CPU."""

    def compile(kernel, dtype):
        kinds = kernel.data.domains["bodies"].kinds
        program = recompute(kernel.source.program(tuple(kinds)))
        return loops_in_cuda(folder, program, kernel.data, dtype)

    return compile


def loops_in_c(folder, program, data, dtype="float64"):
    """The C of a ``LoopProgram`` for a robot, with the compiler of this machine."""
    return all_loops_in_c(folder, {"run": (program, data)}, dtype)["run"]


def all_loops_in_c(folder, programs, dtype="float64", level=1):
    """The same of several, by name; compiled together."""
    library = folder / f"loops{len(_alive)}.so"
    texts = [c_loops.render(*given, dtype, name=name) for name, given in programs.items()]
    _compile_c(library, texts, level)
    return {
        name: _calls_of(_alive[-1][name], _as_arguments(*given), dtype)
        for name, given in programs.items()
    }


def loops_in_cuda(folder, program, data, dtype="float64", place="memory", threads=32):
    """The CUDA C of a ``LoopProgram`` for a robot on the CPU, threads taking turns."""
    layout = layout_of_kinds(program)
    ints, numbers = tables(layout, data)
    numbers, arguments = numbers.astype(dtype), _as_arguments(program, data)
    rows = int(ints[layout.header["rows of a sample"]])
    sizes = sum(a.size for a in (*arguments.inputs, *arguments.outputs))
    shared, work = cuda_loops.room(place, rows, sizes, dtype)
    text = SimpleNamespace(
        text=cuda_loops.render(program, dtype, place), shared=shared, ahead=True, threads=0
    )
    launch = _compiled_shim(arguments, text, work, folder, robot=True)
    robot = [ints.ctypes.data, numbers.ctypes.data]
    _alive.append((ints, numbers))
    return lambda *arrays: _launched(
        [launch], max(work, 1), arguments, dtype, arrays, threads, robot
    )


def _as_arguments(program, data):
    """Inputs and outputs of a ``LoopProgram`` for a robot."""
    inputs, outputs = c_loops.arguments(program, data)
    return SimpleNamespace(inputs=inputs, outputs=outputs)
