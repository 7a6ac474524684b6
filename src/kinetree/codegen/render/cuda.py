"""A program as CUDA C: one thread computes one sample, a block moves its samples together.

The text defines ``run(count, input, step, ..., output, ...)``: for every input its address and the
numbers from one sample to the next (0 when all share it), then the address of every output. Any
number of threads up to ``LARGEST_BLOCK`` may be in a block, a multiple of 32; it needs
``CudaText.shared`` bytes of shared memory for each.

Inputs and small results go through tiles in shared memory (``cuda_tiles.cuh``), large results
through windows: some columns of the rows of one warp, written when they are complete.

Where a check of the program fails, or an input is not finite and could have been hidden by a
division or a choice, all results of that sample are NaN. Its neighbours are not touched.
"""

from dataclasses import dataclass
from importlib import resources
from math import gcd

from kinetree.codegen.order import by_results, fewest_waiting
from kinetree.codegen.render.c import NOT_FINITE
from kinetree.codegen.render.cstyle import assignments
from kinetree.codegen.render.cuda_language import Cuda, angles_of
from kinetree.codegen.render.cuda_math import elementary
from kinetree.codegen.render.minimax import RANGE
from kinetree.codegen.watch import what_to_watch

__all__ = ["LARGEST_BLOCK", "CudaText", "Layout", "render"]

LARGEST_BLOCK = 256  # threads
_STAGED = 160  # numbers of a sample's inputs that go through tiles
_WHOLE = 96  # numbers of a result that goes through one tile


@dataclass(frozen=True)
class Layout:
    """How samples travel.

    Attributes:
        staged: largest number of a sample's inputs, all together, that go through tiles.
        whole: largest number of results of a sample, all together, that go through tiles.
        window: columns of a window of larger results.
        windows: of them at most so many are open at the same time; others are written directly.
        order: ``"created"``, ``"results"``, or None for the better one.
        inline: whether the code that writes a window is repeated for each.
        in_step: the threads of a block wait for each other after so many values; None for never.
    """

    staged: int = _STAGED
    whole: int = _WHOLE
    window: int = 8
    windows: int = 40
    order: str | None = None
    inline: bool = False
    in_step: int | None = None


@dataclass(frozen=True)
class CudaText:
    """CUDA C.

    Attributes:
        text: the whole of it.
        shared: bytes of shared memory for each thread of a block.
    """

    text: str
    shared: int


def render(program, dtype="float64", layout=None) -> CudaText:
    """CUDA C of a program; its entry point is ``run``."""
    return _Renderer(program, dtype, layout or Layout()).render()


class _Renderer:
    def __init__(self, program, dtype, layout):
        self.program, self.dtype, self.layout = program, dtype, layout
        self.inputs = [a for a in program.inputs if a.size]
        self.outputs = [a for a in program.outputs if a.size]
        self.tiles = self._tiles(self.inputs, layout.staged)
        results = sum(a.size for a in self.outputs)
        self.whole = self._tiles(self.outputs, layout.whole) if results <= layout.whole else {}
        self.angles = angles_of(program, self.tiles)
        self.language = Cuda(program, dtype, layout, self.angles, self.whole)
        self.size = 4 if dtype == "float32" else 8

    def _tiles(self, arguments, most):
        """Pitch of the tile of each argument, by name, as long as all fit; the smallest first."""
        found, total = {}, 0
        for a in sorted(arguments, key=lambda a: a.size):
            pitch = _pitch(a.size, self.dtype)
            if total + pitch <= most:
                found[a.name] = pitch
                total += pitch
        return {a.name: found[a.name] for a in arguments if a.name in found}

    def render(self):
        body = self._body()
        numbers = sum(self.tiles.values()) + sum(self.whole.values())
        numbers += self.language.slots * (self.layout.window + 1)
        parts = [
            f"/* {self.program.name}, {self.dtype}: written by kinetree. */",
            self._head(),
            elementary(self.dtype),
            resources.files(__package__).joinpath("cuda_tiles.cuh").read_text("utf-8"),
            self._sample(body),
            self._kernel(),
        ]
        return CudaText("\n\n".join(parts) + "\n", numbers * self.size)

    def _head(self):
        f = self.dtype == "float32"
        inline = "__forceinline__" if self.layout.inline else "__noinline__"
        return "\n".join(
            [
                f"typedef {self.language.real} real;",
                f"typedef {'float4' if f else 'double2'} vector16;",
                f"#define NUMBERS_IN_16_BYTES {4 if f else 2}",
                f"#define WINDOW {self.layout.window}",
                "#define DEVICE static __device__ __forceinline__",
                f"#define FUNCTION static __device__ {inline}",
                "#ifdef __cplusplus",
                '#define ENTRY extern "C" __global__',
                "#else",
                "#define ENTRY __global__",
                "#endif",
                "#ifndef INFINITY",
                "#define INFINITY __int_as_float(0x7f800000)",
                "#endif",
            ]
        )

    # --- one sample ------------------------------------------------------------------------------

    def _order(self):
        order = self.layout.order
        if order is None and (self.whole or not self.outputs):
            return fewest_waiting(self.program)
        return None if order == "created" else by_results(self.program)

    def _body(self):
        items = assignments(self.program, self.language, order=self._order())
        lines = []
        for k, item in enumerate(items, start=1):
            lines += item.lines
            if self.layout.in_step and k % self.layout.in_step == 0:
                lines.append("__syncthreads();")
        return [*lines, *self.language.rest(), *self._watch()]

    @property
    def checks(self):
        """Whether anything can be wrong with a sample."""
        return bool(self.program.checks) or self._hides

    @property
    def _hides(self):
        """Whether infinities could be lost on the way."""
        watch = what_to_watch(self.program, self.dtype)
        return watch.inputs and watch.results

    def _watch(self):
        if not self._hides:
            return []
        nodes, f = self.program.graph.nodes, "f" if self.dtype == "float32" else ""
        arguments = {a.name: a for a in self.program.inputs}
        used = (nodes[i] for i in self.program.graph.reachable(self.program.roots))
        texts = [self.language.input(arguments[n[1]], n[2]) for n in used if n[0] == "input"]
        zero = self.language.constant(0.0)
        return [
            f"real watched = {zero};",
            *(f"watched = fma{f}({text}, {zero}, watched);" for text in texts),
            f"if (!(watched == {zero})) status |= {NOT_FINITE};",
        ]

    def _sample(self, body):
        ins, outs = self.language.inputs, self.language.outputs
        parameters = [
            *(f"const real *__restrict__ {ins[a.name]}" for a in self.inputs),
            *(f"real *__restrict__ {outs[a.name]}" for a in self.outputs),
            "real *__restrict__ window, int lane, int rows",
        ]
        return "\n".join(
            [
                f"DEVICE int sample({', '.join(parameters)})",
                "{",
                "    int status = 0;",
                *(f"    {line}" for line in body),
                "    return status;",
                "}",
            ]
        )

    # --- a block of samples ----------------------------------------------------------------------

    def _kernel(self):
        ins, outs = self.language.inputs, self.language.outputs
        parameters = [
            "long long count",
            *(f"const real *{ins[a.name]}, long long {ins[a.name]}_step" for a in self.inputs),
            *(f"real *{outs[a.name]}" for a in self.outputs),
        ]
        lines = [
            "extern __shared__ vector16 shared[];",
            "const int block = blockDim.x, thread = threadIdx.x, lane = thread & 31;",
            "const long long first = (long long)blockIdx.x * block;",
            "const int rows = count - first < block ? (int)(count - first) : block;",
            "real *free = (real *)shared;",
        ]
        for a in self.inputs:
            lines += self._staged(a, ins[a.name])
        for a in self.outputs:
            if a.name in self.whole:
                lines += [f"real *const {outs[a.name]}_tile = free;"]
                lines += [f"free += {self.whole[a.name]} * block;"]
        lines += ["finish_loads();", *self._moderate_angles(), *self._call()]
        lines += self._written()
        text = "\n".join(f"    {line}" for line in lines)
        head = f"ENTRY void __launch_bounds__({LARGEST_BLOCK}) run(\n    "
        return head + ",\n    ".join(parameters) + f")\n{{\n{text}\n}}"

    def _staged(self, a, name):
        pitch = self.tiles.get(a.name)
        if pitch is None:
            row = "(thread < rows ? thread : rows - 1)"
            return [f"const real *const {name}_own = {name} + (first + {row}) * {name}_step;"]
        return [
            f"real *const {name}_tile = free, *const {name}_own = {name}_tile + thread * {pitch};",
            f"free += {pitch} * block;",
            f"load_tile({name}_tile, {pitch}, {a.size}, {name} + first * {name}_step, "
            f"{name}_step, rows);",
        ]

    def _moderate_angles(self):
        """Look at all angles at once."""
        if not self.angles:
            return []
        name = self.language.inputs
        f = "f" if self.dtype == "float32" else ""
        runs = _runs(self.angles)
        lines = [f"real far = {self.language.constant(0.0)};"]
        for argument, first, end in runs:
            x = f"{name[argument]}_own[i]"
            lines += [f"for (int i = {first}; i < {end}; i++) far = fma{f}({x}, {x}, far);"]
        lines.append(f"if (far > {self.language.constant(RANGE[self.dtype] ** 2)}) {{")
        for argument, first, end in runs:
            x = f"{name[argument]}_own[i]"
            lines.append(f"    for (int i = {first}; i < {end}; i++) {x} = reduced({x});")
        return [*lines, "}"]

    def _call(self):
        ins, outs, w = self.language.inputs, self.language.outputs, self.layout.window
        lines = [f"real *const window = free + (thread - lane) * {self.language.slots * (w + 1)};"]
        arguments = [f"{ins[a.name]}_own" for a in self.inputs]
        for a in self.outputs:
            if a.name in self.whole:
                arguments.append(f"{outs[a.name]}_tile + thread * {self.whole[a.name]}")
            else:
                arguments.append(f"{outs[a.name]} + (first + thread - lane) * {a.size}")
        arguments += ["window", "lane", "rows - (thread - lane)"]
        return [*lines, f"const int status = sample({', '.join(arguments)});"]

    def _written(self):
        name, lines = self.language.outputs, []
        if self.whole:
            lines.append("__syncthreads();")
        for a in self.outputs:
            if a.name in self.whole:
                lines.append(
                    f"store_tile({name[a.name]} + first * {a.size}, {name[a.name]}_tile, "
                    f"{self.whole[a.name]}, {a.size}, rows);"
                )
        if not self.checks:
            return [*lines, "(void)status;"]
        nan = f'nan{"f" if self.dtype == "float32" else ""}("")'
        lines.append("if (__syncthreads_or(status) && status && thread < rows) {")
        for a in self.outputs:
            place = f"{name[a.name]}[(first + thread) * {a.size} + i]"
            lines.append(f"    for (int i = 0; i < {a.size}; i++) {place} = {nan};")
        return [*lines, "}"]


def _pitch(size, dtype):
    """Numbers from row to row of a tile: at most two threads of a warp share a bank."""
    banks = 32 if dtype == "float32" else 16
    return size if gcd(size, banks) <= 2 else size + 1


def _runs(angles):
    """Sorted places (argument, offset) as ranges (argument, first, end)."""
    runs = []
    for argument, place in sorted(angles):
        if runs and runs[-1][0] == argument and runs[-1][2] == place:
            runs[-1][2] += 1
        else:
            runs.append([argument, place, place + 1])
    return runs
