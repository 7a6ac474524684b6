"""A program as CUDA C: one thread computes one sample, a warp moves its samples together.

The text defines ``run(count, dense, input, step, ..., output, ...)``: ``dense`` says that all
addresses are multiples of 16 bytes and all steps the sizes of the inputs; for every input there is
its address and the numbers from one sample to the next (0 when all share it), then the address of
every output. Any number of threads up to ``LARGEST_BLOCK`` may be in a block, a multiple of 32; each
32 of them need ``CudaText.shared`` bytes of shared memory. Warps never wait for each other. With
``CudaText.ahead`` each computes several times 32 samples if there are fewer warps, and loads the
next meanwhile.

Inputs and results go through tiles in shared memory (``cuda_tiles.cuh``). Results of which too few
rows would fit there are computed in slices by several functions (``cuda_pieces.py``).

Where a check of the program fails, or an input is not finite and a division or a choice could hide
that, all results of the sample are NaN. Otherwise what is not finite goes where sums and products
take it. Neighbours are not touched.

Quotients in float32 are within 1 ulp for divisors between 2**-126 and 2**126 in size.
"""

from dataclasses import dataclass
from importlib import resources

from kinetree.codegen.order import by_results, created, fewest_waiting, most_waiting
from kinetree.codegen.render.c import NOT_FINITE
from kinetree.codegen.render.cstyle import assignments
from kinetree.codegen.render.cuda_language import Cuda, angles_of
from kinetree.codegen.render.cuda_math import elementary
from kinetree.codegen.render.cuda_places import Tile, given_up, tiles
from kinetree.codegen.render.minimax import RANGE
from kinetree.codegen.watch import hidden_inputs
from kinetree.expr.node import LEAVES

__all__ = ["LARGEST_BLOCK", "CudaText", "Layout", "Whole", "render"]

LARGEST_BLOCK = 256  # threads
_BYTES = 60 * 1024  # of the tiles of a warp, at most; three of them leave room for a cache
_STAGED = 160  # numbers of a sample's inputs that go through tiles
_TWICE = 8 * 1024  # bytes of the inputs of a warp that it may have two sets of
_MUCH = 18  # operations for each number that is read or written
_RESIDENT = {64: 3, 88: 0, 104: 2}  # by waiting values of 32 bits: what was fastest


@dataclass(frozen=True)
class Layout:
    """How samples travel.

    Attributes:
        bytes: of the tiles of a warp, at most.
        order: ``"created"``, ``"results"``, or None for the best one.
        reuse: whether results may take the tiles of inputs.
        ahead: whether a warp loads the inputs of its next samples while it computes; None where
            it computes much and there is memory enough.
        resident: blocks of the largest size that a multiprocessor must have registers for; 0 for
            what the compiler finds best, None for what the number of waiting values suggests.
    """

    bytes: int = _BYTES
    order: str | None = None
    reuse: bool = True
    ahead: bool | None = None
    resident: int | None = None

    def results(self, program, dtype) -> int:
        """Numbers of a sample's results that there is room for."""
        inputs = sum(t.size for t in tiles([a for a in program.inputs if a.size], _STAGED).values())
        return max(32, self.bytes // (32 * (4 if dtype == "float32" else 8)) - inputs)


@dataclass(frozen=True)
class Whole:
    """Outputs of an entry point that computes only slices of them.

    Attributes:
        outputs: all of them, as ``Argument``s.
        slices: for each output of the program the name of the whole one and the number of it that
            the slice begins with.
    """

    outputs: tuple
    slices: dict


@dataclass(frozen=True)
class CudaText:
    """CUDA C.

    Attributes:
        text: the whole of it.
        shared: bytes of shared memory for each 32 threads of a block.
        ahead: whether warps load ahead, so that there should be no more of them than fit.
    """

    text: str
    shared: int
    ahead: bool


def render(program, dtype="float64", layout=None, whole=None) -> CudaText:
    """CUDA C of a program; its entry point is ``run``.

    Args:
        program: what to compute.
        dtype: ``"float32"`` or ``"float64"``.
        layout: how samples travel.
        whole: outputs of the entry point, where those of the program are slices of them.
    """
    return _Renderer(program, dtype, layout or Layout(), whole).render()


class _Renderer:
    def __init__(self, program, dtype, layout, whole):
        self.program, self.dtype, self.layout = program, dtype, layout
        self.size, self.f = (4, "f") if dtype == "float32" else (8, "")
        self.inputs = [a for a in program.inputs if a.size]
        self.outputs = [a for a in program.outputs if a.size]
        every = {a.name: (a.name, 0) for a in self.outputs}
        self.part = whole or Whole(tuple(self.outputs), every)
        self.tiles, self.results = tiles(self.inputs, _STAGED), self._results()
        self.order = self._order()
        self.hidden = sorted(hidden_inputs(program))
        self.angles = angles_of(program, self.tiles)
        self.taken = self._taken()
        self.inputs_of_a_warp = sum(t.numbers for t in self.tiles.values())
        self.sets = 2 if self.tiles and self._loads_ahead() else 1
        self.cleared = self._cleared()
        self.language = Cuda(program, dtype, self.angles, self.cleared)
        for output, source in self.taken.items():
            self.language.outputs[output] = self.language.inputs[source]

    def _loads_ahead(self):
        if self.layout.ahead is not None:
            return self.layout.ahead
        operations = sum(self.program.graph.nodes[i][0] not in LEAVES for i in self.order)
        numbers = sum(a.size for a in (*self.inputs, *self.outputs))
        fits = self.inputs_of_a_warp * self.size <= _TWICE
        return fits and operations >= _MUCH * numbers

    def _results(self):
        """The tile of each result, by name."""
        sizes = {a.name: a.size for a in self.part.outputs}
        found = {}
        for a in self.outputs:
            name, start = self.part.slices[a.name]
            found[a.name] = Tile(a.size, sizes[name], start)
        return found

    def _order(self):
        makers = {"created": created, "results": by_results, None: fewest_waiting}
        return makers[self.layout.order](self.program)

    def _taken(self):
        """Results that take the tile of an input, by name."""
        if not self.layout.reuse:
            return {}
        looked_at = {name for name, _ in self.hidden}
        inputs = [name for name in self.tiles if name not in looked_at]
        results = [name for name, tile in self.results.items() if not tile.is_slice]
        return given_up(self.program, self.order, inputs, results)

    def _cleared(self):
        """Results that are zero in most places."""
        found, position = set(), 0
        for a in self.program.outputs:
            roots = self.program.roots[position : position + a.size]
            position += a.size
            zeros = sum(self.program.graph.nodes[i] == ("const", 0.0) for i in roots)
            if 2 * zeros > a.size and a.name not in self.taken:
                found.add(a.name)
        return found

    def render(self):
        own = [tile for name, tile in self.results.items() if name not in self.taken]
        shared = (self.sets * self.inputs_of_a_warp + sum(t.numbers for t in own)) * self.size
        parts = [
            f"/* {self.program.name}, {self.dtype}: written by kinetree. */",
            self._head(shared),
            elementary(self.dtype),
            resources.files(__package__).joinpath("cuda_tiles.cuh").read_text("utf-8"),
            self._sample(),
            self._load(),
            self._kernel(),
        ]
        return CudaText("\n\n".join(parts) + "\n", shared, self.sets == 2)

    def _head(self, shared):
        return "\n".join(
            [
                f"typedef {self.language.real} real;",
                f"typedef {'float4' if self.f else 'double2'} vector16;",
                f"#define NUMBERS_IN_16_BYTES {4 if self.f else 2}",
                f"#define BYTES_OF_A_WARP {shared}",
                "#define DEVICE static __device__ __forceinline__",
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

    def _sample(self):
        ins, outs, given = self.language.inputs, self.language.outputs, set(self.taken.values())
        parameters = [
            *(
                f"{'' if a.name in given else 'const '}real *__restrict__ {ins[a.name]}"
                for a in self.inputs
            ),
            *(f"real *__restrict__ {outs[a.name]}" for a in self._separate),
        ]
        items = assignments(self.program, self.language, order=self.order)
        body = [*(line for item in items for line in item.lines), *self._watch()]
        return "\n".join(
            [
                f"DEVICE int sample({', '.join(parameters) or 'void'})",
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

    def _load(self):
        """A function that starts to fill the tiles of inputs, one after the other."""
        names, parameters, dense, any_rows, place = self.language.inputs, [], [], [], 0
        for a in self.inputs:
            tile, name = self.tiles.get(a.name), names[a.name]
            if tile is not None:
                parameters.append(f"const real *{name}, long long {name}_step")
                given = f"(tiles + {place}, {tile.size}, {tile.group}, {name} + first * "
                dense.append(f"load_dense{given}{tile.size});")
                any_rows.append(f"load_rows{given}{name}_step, {name}_step, rows);")
                place += tile.numbers
        self.loaded = bool(parameters)
        if not self.loaded:
            return ""
        return "\n".join(
            [
                "DEVICE void load(real *tiles, long long first, long long count, int dense,",
                "                 " + ", ".join(parameters) + ")",
                "{",
                "    if (dense && count - first >= 32) {",
                *(f"        {line}" for line in dense),
                "    } else {",
                "        const int rows = count - first < 32 ? (int)(count - first) : 32;",
                *(f"        {line}" for line in any_rows),
                "    }",
                "}",
            ]
        )

    def _kernel(self):
        ins = self.language.inputs
        parameters = [
            "long long count, long long dense",
            *(f"const real *{ins[a.name]}, long long {ins[a.name]}_step" for a in self.inputs),
            *(f"real *{_result(a.name)}" for a in self.part.outputs),
        ]
        step = "(long long)gridDim.x * blockDim.x"
        outer = [
            "extern __shared__ vector16 shared[];",
            "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            "long long first = (long long)blockIdx.x * blockDim.x + warp * 32;",
            "if (first >= count) return;",
            "real *const inputs = (real *)((char *)shared + warp * BYTES_OF_A_WARP);",
        ]
        if self.sets == 2:
            outer += [
                self._loading("inputs", "first"),
                f"for (int set = 0; first < count; first += {step}, set ^= 1) {{",
                *(f"    {line}" for line in self._turn(step)),
                "    __syncwarp();",
                "}",
            ]
        else:
            outer += ["const int set = 0;", *self._turn(step)]
        text = "\n".join(f"    {line}" for line in outer)
        head = f"ENTRY void __launch_bounds__({self._bounds()}) run(\n    "
        return head + ",\n    ".join(parameters) + f")\n{{\n{text}\n}}"

    def _bounds(self):
        """Threads of a block, and blocks for which there must be registers."""
        resident = self.layout.resident
        if resident is None:
            waiting = most_waiting(self.program, self.order) * self.size // 4
            resident = next((n for most, n in _RESIDENT.items() if waiting <= most), 0)
        return f"{LARGEST_BLOCK}, {resident}" if resident else str(LARGEST_BLOCK)

    def _loading(self, tiles, first):
        arguments = [tiles, first, "count", "(int)dense"]
        for a in self.inputs:
            if a.name in self.tiles:
                name = self.language.inputs[a.name]
                arguments += [name, f"{name}_step"]
        return f"load({', '.join(arguments)});"

    def _turn(self, step):
        """What a warp does with 32 samples."""
        lines = [
            "const int rows = count - first < 32 ? (int)(count - first) : 32;",
            "const int whole = dense && rows == 32;",
            "(void)whole;",
            f"real *free = inputs + set * {self.inputs_of_a_warp};",
        ]
        for a in self.inputs:
            lines += self._placed(self.language.inputs[a.name], self.tiles.get(a.name))
        lines.append(f"free = inputs + {self.sets * self.inputs_of_a_warp};")
        for a in self._separate:
            lines += self._placed(f"part_{a.name}", self.results[a.name])
            if a.name in self.cleared:
                lines.append(f"clear_tile(part_{a.name}_tile, {self.results[a.name].numbers});")
        if self.sets == 1 and self.loaded:
            lines.append(self._loading("inputs", "first"))
        if self.loaded:
            lines.append("finish_loads();")
        if self.sets == 2:
            other = f"inputs + (set ^ 1) * {self.inputs_of_a_warp}"
            lines.append(f"if (first + {step} < count)")
            lines.append("    " + self._loading(other, f"first + {step}"))
        return [*lines, *self._moderate_angles(), *self._call(), *self._stores()]

    def _placed(self, name, tile):
        """A tile and the row of this thread in it, or the row in device memory."""
        if tile is None:
            row = "(lane < rows ? lane : rows - 1)"
            return [f"const real *const {name}_own = {name} + (first + {row}) * {name}_step;"]
        own = f"lane * {tile.pitch} + skipped(lane, {tile.group})"
        return [
            f"real *const {name}_tile = free, *const {name}_own = {name}_tile + {own};",
            f"free += {tile.numbers};",
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
        arguments = [f"{self.language.inputs[a.name]}_own" for a in self.inputs]
        arguments += [f"part_{a.name}_own" for a in self._separate]
        return [f"const int status = sample({', '.join(arguments)});"]

    def _tile(self, output):
        """Name of the tile of a result."""
        source = self.taken.get(output)
        return self.language.inputs[source] if source else f"part_{output}"

    def _stores(self):
        """Results to memory; NaN where something is wrong with a sample."""
        lines = ["(void)status;"]
        if self.program.checks or self.hidden:
            lines = ["if (status) {"]
            for name, tile in self.results.items():
                lines.append("#pragma unroll 1")
                lines.append(
                    f"    for (int i = 0; i < {tile.size}; i++) "
                    f'{self._tile(name)}_own[i] = nan{self.f}("");'
                )
            lines.append("}")
        lines.append("__syncwarp();")
        for name, t in self.results.items():
            to = f"{_result(self.part.slices[name][0])} + first * {t.step} + {t.start}"
            if t.is_slice:
                lines.append(
                    f"store_slice({to}, {t.step}, {self._tile(name)}_tile, {t.size}, {t.pitch}, "
                    f"rows, dense);"
                )
            else:
                given = f"({to}, {self._tile(name)}_tile, {t.size}, {t.group}"
                lines.append(f"if (whole) store_dense{given});")
                lines.append(f"else store_rows{given}, rows);")
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
