"""A program as CUDA C: one thread computes one sample, a warp moves its samples together.

The text defines ``run(count, input, step, ..., output, ...)``: for every input its address and the
numbers from one sample to the next (0 when all share it), then the address of every output. Any
number of threads up to ``LARGEST_BLOCK`` may be in a block, a multiple of 32; each 32 of them need
``CudaText.shared`` bytes of shared memory. Warps never wait for each other.

Inputs and small results go through tiles in shared memory (``cuda_tiles.cuh``), large results
through windows: some columns of the rows of one warp, written when they are complete. Values that
do not fit into registers wait in shared memory, too (``cuda_park.py``).

Where a check of the program fails, or an input is not finite and a division or a choice could hide
that, all results of the sample are NaN. Otherwise what is not finite goes where sums and products
take it. Neighbours are not touched.

Quotients in float32 are within 1 ulp for divisors between 2**-126 and 2**126 in size.
"""

from dataclasses import dataclass
from importlib import resources

from kinetree.codegen.order import by_results, deep_first, fewest_waiting, most_waiting
from kinetree.codegen.render.c import NOT_FINITE
from kinetree.codegen.render.cstyle import assignments
from kinetree.codegen.render.cuda_language import Cuda, angles_of
from kinetree.codegen.render.cuda_math import elementary
from kinetree.codegen.render.cuda_park import parked
from kinetree.codegen.render.cuda_places import WARP, given_up, tiles
from kinetree.codegen.render.minimax import RANGE
from kinetree.codegen.watch import hidden_inputs

__all__ = ["LARGEST_BLOCK", "CudaText", "Layout", "Slice", "Whole", "render", "whole_results"]

LARGEST_BLOCK = 256  # threads
_ROOM = {"float32": 220, "float64": 100}  # values that fit into the registers of a thread
_WHOLE = {"float32": 180, "float64": 90}  # results that leave eight warps on a multiprocessor


@dataclass(frozen=True)
class Layout:
    """How samples travel.

    Attributes:
        staged: largest number of a sample's inputs, all together, that go through tiles.
        whole: largest number of results of a sample, all together, that go through tiles; None for
            as many as leave eight warps on a multiprocessor.
        window: columns of a window of larger results.
        windows: of them at most so many are open at the same time; others are written directly.
        order: ``"created"``, ``"results"``, or None for the better one.
        inline: whether the code that writes a window is repeated for each.
        room: values that wait in registers; None for what fits.
        reuse: whether results may take the tiles of inputs.
        piece: values of a piece of a large program.
    """

    staged: int = 160
    whole: int | None = None
    window: int = 8
    windows: int = 40
    order: str | None = None
    inline: bool = False
    room: int | None = None
    reuse: bool = True
    piece: int = 8000


@dataclass(frozen=True)
class Slice:
    """What an output is part of.

    Attributes:
        name: of the whole output.
        size: its numbers.
        start: the number of it that the output begins with.
    """

    name: str
    size: int
    start: int = 0


@dataclass(frozen=True)
class Whole:
    """Outputs of an entry point that computes only parts of them.

    Attributes:
        outputs: all of them, as ``Argument``s.
        slices: what each output of the program is part of, by name.
        constants: pairs of a place and a number that is written there, by the name of an output.
    """

    outputs: tuple
    slices: dict
    constants: dict


@dataclass(frozen=True)
class CudaText:
    """CUDA C.

    Attributes:
        text: the whole of it.
        shared: bytes of shared memory for each 32 threads of a block.
    """

    text: str
    shared: int


def render(program, dtype="float64", layout=None, whole=None) -> CudaText:
    """CUDA C of a program; its entry point is ``run``.

    Args:
        program: what to compute.
        dtype: ``"float32"`` or ``"float64"``.
        layout: how samples travel.
        whole: outputs of the entry point, where those of the program are parts of them.
    """
    return _Renderer(program, dtype, layout or Layout(), whole).render()


def whole_results(program, dtype, layout) -> bool:
    """Whether all results go through tiles."""
    most = _WHOLE[dtype] if layout.whole is None else layout.whole
    return sum(a.size for a in program.outputs) <= most


class _Renderer:
    def __init__(self, program, dtype, layout, whole):
        self.program, self.dtype, self.layout = program, dtype, layout
        self.size, self.f = (4, "f") if dtype == "float32" else (8, "")
        self.inputs = [a for a in program.inputs if a.size]
        self.outputs = [a for a in program.outputs if a.size]
        every = {a.name: Slice(a.name, a.size) for a in self.outputs}
        self.part = whole or Whole(tuple(self.outputs), every, {})
        self.slices = self.part.slices
        self.tiles = tiles(self.inputs, layout.staged)
        fits = whole is None and whole_results(program, dtype, layout)
        self.whole = tiles(self.outputs, sum(a.size for a in self.outputs)) if fits else {}
        self.order = self._order()
        self.hidden = sorted(hidden_inputs(program))
        self.angles = angles_of(program, self.tiles)
        self.taken = self._taken()
        self.language = Cuda(program, dtype, layout, self.angles, self.whole, self.slices)
        for output, source in self.taken.items():
            self.language.outputs[output] = self.language.inputs[source]

    def _order(self):
        order = self.layout.order
        if order is None and (self.whole or not self.outputs):
            return fewest_waiting(self.program)
        if order == "created":
            return self.program.graph.reachable(
                [*self.program.roots, *(node for node, *_ in self.program.checks)]
            )
        orders = (by_results(self.program), deep_first(self.program))
        return min(orders[: 1 if order else 2], key=lambda o: most_waiting(self.program, o))

    def _taken(self):
        """Results that take the tile of an input, by name."""
        if not self.layout.reuse:
            return {}
        inputs = [name for name in self.tiles if name not in self._looked_at]
        return given_up(self.program, self.order, inputs, self.whole)

    @property
    def _looked_at(self):
        """Inputs that are looked at in the end."""
        return {name for name, _ in self.hidden}

    def render(self):
        body, places = self._body()
        own = {name: tile for name, tile in self.whole.items() if name not in self.taken}
        numbers = sum(t.numbers for t in (*self.tiles.values(), *own.values()))
        numbers += WARP * (places + self.language.slots * (self.layout.window + 1))
        shared = numbers * self.size
        parts = [
            f"/* {self.program.name}, {self.dtype}: written by kinetree. */",
            self._head(shared),
            elementary(self.dtype),
            resources.files(__package__).joinpath("cuda_tiles.cuh").read_text("utf-8"),
            self._sample(body),
            self._kernel(),
        ]
        return CudaText("\n\n".join(parts) + "\n", shared)

    def _head(self, shared):
        inline = "__forceinline__" if self.layout.inline else "__noinline__"
        return "\n".join(
            [
                f"typedef {self.language.real} real;",
                f"typedef {'float4' if self.f else 'double2'} vector16;",
                f"#define NUMBERS_IN_16_BYTES {4 if self.f else 2}",
                f"#define BYTES_OF_A_WARP {shared}",
                f"#define WINDOW {self.layout.window}",
                "#define PARKED(place) (*(volatile real *)&(place))",
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

    def _body(self):
        """Lines, and the places where values wait."""
        items = assignments(self.program, self.language, order=self.order)
        lines, places = parked(items, self.layout.room or _ROOM[self.dtype], self._cells())
        return [*lines, *self.language.rest(), *self._watch()], places

    def _cells(self):
        """Numbers of inputs whose places are free once they have been read."""
        if not self.layout.reuse:
            return []
        kept = {
            self.language.input(a, index) for a in self.inputs for name, index in self.hidden
            if name == a.name
        }  # fmt: skip
        cells = [
            f"{self.language.inputs[a.name]}[{k}]"
            for a in self.inputs
            if a.name in self.tiles and a.name not in self.taken.values()
            for k in range(a.size)
        ]
        return [cell for cell in cells if cell not in kept]

    def _watch(self):
        if not self.hidden:
            return []
        arguments, zero = {a.name: a for a in self.program.inputs}, self.language.constant(0.0)
        texts = [self.language.input(arguments[name], index) for name, index in self.hidden]
        return [
            f"real watched = {zero};",
            *(f"watched = fma{self.f}({text}, {zero}, watched);" for text in texts),
            f"if (!(watched == {zero})) status |= {NOT_FINITE};",
        ]

    def _sample(self, body):
        ins, outs = self.language.inputs, self.language.outputs
        parameters = [
            *(
                f"{'' if a.name in self.tiles else 'const '}real *__restrict__ {ins[a.name]}"
                for a in self.inputs
            ),
            *(f"real *__restrict__ {outs[a.name]}" for a in self._separate),
            "real *__restrict__ window, real *__restrict__ park, int lane, int rows",
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

    @property
    def _separate(self):
        """Outputs that have memory of their own."""
        return [a for a in self.outputs if a.name not in self.taken]

    # --- the samples of a warp -------------------------------------------------------------------

    def _kernel(self):
        ins = self.language.inputs
        parameters = [
            "long long count",
            *(f"const real *{ins[a.name]}, long long {ins[a.name]}_step" for a in self.inputs),
            *(f"real *{_result(a.name)}" for a in self.part.outputs),
        ]
        lines = [
            "extern __shared__ vector16 shared[];",
            "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            "const long long first = (long long)blockIdx.x * blockDim.x + warp * 32;",
            "if (first >= count) return;",
            "const int rows = count - first < 32 ? (int)(count - first) : 32;",
            "real *free = (real *)((char *)shared + warp * BYTES_OF_A_WARP);",
        ]
        for a in self.inputs:
            lines += self._staged(a, ins[a.name])
        for a in self._separate:
            if a.name in self.whole:
                lines += self._placed(_result(a.name), self.whole[a.name])
        lines += ["finish_loads();", *self._moderate_angles(), *self._call(), *self._written()]
        lines += self._constants()
        text = "\n".join(f"    {line}" for line in lines)
        head = f"ENTRY void __launch_bounds__({LARGEST_BLOCK}) run(\n    "
        return head + ",\n    ".join(parameters) + f")\n{{\n{text}\n}}"

    def _placed(self, name, tile):
        """A tile and the row of this thread in it."""
        own = f"lane * {tile.size} + skipped(lane, {tile.group})"
        return [
            f"real *const {name}_tile = free, *const {name}_own = {name}_tile + {own};",
            f"free += {tile.numbers};",
        ]

    def _staged(self, a, name):
        tile = self.tiles.get(a.name)
        if tile is None:
            row = "(lane < rows ? lane : rows - 1)"
            return [f"const real *const {name}_own = {name} + (first + {row}) * {name}_step;"]
        return [
            *self._placed(name, tile),
            f"load_tile({name}_tile, {tile.size}, {tile.group}, {name} + first * {name}_step, "
            f"{name}_step, rows);",
        ]

    def _moderate_angles(self):
        """Look at all angles at once."""
        if not self.angles:
            return []
        name, runs = self.language.inputs, _runs(self.angles)
        lines = [f"real far = {self.language.constant(0.0)};"]
        for argument, first, end in runs:
            x = f"{name[argument]}_own[i]"
            lines += ["#pragma unroll"]
            lines += [f"for (int i = {first}; i < {end}; i++) far = fma{self.f}({x}, {x}, far);"]
        lines.append(f"if (far > {self.language.constant(RANGE[self.dtype] ** 2)}) {{")
        for argument, first, end in runs:
            x = f"{name[argument]}_own[i]"
            lines.append("#pragma unroll 1")
            lines.append(f"    for (int i = {first}; i < {end}; i++) {x} = reduced({x});")
        return [*lines, "}"]

    def _call(self):
        ins, w = self.language.inputs, self.layout.window
        lines = [
            "real *const window = free;",
            f"real *const park = free + {WARP * self.language.slots * (w + 1)} + lane;",
        ]
        arguments = [f"{ins[a.name]}_own" for a in self.inputs]
        for a in self._separate:
            part = self.slices[a.name]
            if a.name in self.whole:
                arguments.append(f"{_result(a.name)}_own")
            else:
                arguments.append(f"{_result(part.name)} + first * {part.size} + {part.start}")
        arguments += ["window", "park", "lane", "rows"]
        return [*lines, f"const int status = sample({', '.join(arguments)});"]

    def _written(self):
        """Results to memory; NaN where something is wrong with a sample."""
        lines = self._spoiled() if self.program.checks or self.hidden else ["(void)status;"]
        if self.whole:
            lines.append("__syncwarp();")
        for a in self.outputs:
            if a.name in self.whole:
                tile, source = self.whole[a.name], self.taken.get(a.name)
                name = self.language.inputs[source] if source else _result(a.name)
                lines.append(
                    f"store_tile({_result(a.name)} + first * {a.size}, {name}_tile, "
                    f"{tile.size}, {tile.group}, rows);"
                )
        return lines

    def _spoiled(self):
        nan, lines = f'nan{self.f}("")', []
        for a in self.outputs:
            part, source = self.slices[a.name], self.taken.get(a.name)
            place = f"{self.language.inputs[source] if source else _result(a.name)}_own[i]"
            if a.name not in self.whole:
                place = f"{_result(part.name)}[(first + lane) * {part.size} + {part.start} + i]"
            lines.append("#pragma unroll 1")
            lines.append(f"    for (int i = 0; i < {a.size}; i++) {place} = {nan};")
        return ["__syncwarp();", "if (status && lane < rows) {", *lines, "}"]

    def _constants(self):
        """Numbers that are the same in every sample."""
        lines, sizes = [], {a.name: a.size for a in self.part.outputs}
        if self.part.constants:
            lines.append("const unsigned bad = __ballot_sync(0xffffffffu, status);")
        for name, numbers in self.part.constants.items():
            values = ", ".join(self.language.constant(x) for _, x in numbers)
            lines += [
                f"static __device__ const int {name}_places[] = "
                f"{{{', '.join(str(place) for place, _ in numbers)}}};",
                f"static __device__ const real {name}_values[] = {{{values}}};",
                f"for (int k = lane; k < {len(numbers)}; k += 32) {{",
                f"    real *const to = {_result(name)} + first * {sizes[name]} + {name}_places[k];",
                f"    const real x = {name}_values[k];",
                "#pragma unroll 8",
                f"    for (int i = 0; i < rows; i++) to[i * {sizes[name]}] = "
                f'bad >> i & 1 ? nan{self.f}("") : x;',
                "}",
            ]
        return lines


def _result(name):
    """Name of an output of the entry point."""
    return f"result_{name}"


def _runs(angles):
    """Sorted places (argument, offset) as ranges (argument, first, end)."""
    runs = []
    for argument, place in sorted(angles):
        if runs and runs[-1][0] == argument and runs[-1][2] == place:
            runs[-1][2] += 1
        else:
            runs.append([argument, place, place + 1])
    return runs
