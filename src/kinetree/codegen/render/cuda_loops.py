"""Loops over tables in CUDA C: one thread computes one sample, the robot is data for all of them.

The text defines ``run(count, dense, input, step, ..., output, ..., work, ints, numbers)``, the
arguments as in ``render.cuda``; then a workspace, and a robot's tables (``loops.robots``). Threads
of a warp always do the same, since the robot alone decides what comes next; where values decide,
each goes its own way.

A sample's numbers are 32 numbers apart and those of a warp's 32 samples lie together, so that a
warp's loads and stores are whole pieces of memory. Arguments and results, which come sample after
sample, are turned over by warps on their way. Where they live meanwhile depends on the robot's size
(``PLACES``): everything in shared memory; only arguments and results there, and rows in the
workspace; or all in the workspace. Each warp computes one set of 32 samples after the other, so
that the workspace is no larger than the device has threads for.
"""

from dataclasses import dataclass

from kinetree.codegen.loops.layout import layout_of_kinds
from kinetree.codegen.render.c import NOT_FINITE, C
from kinetree.codegen.render.cstyle import identifier
from kinetree.codegen.render.cstyle_loops import LoopWriter, TableLanguage
from kinetree.codegen.render.cuda_language import Cuda, elementary
from kinetree.codegen.render.cuda_places import PITCH, WARP, Kept

PLACES = ("shared", "arguments", "memory")
"""What is in shared memory: rows, arguments and results; all but rows; nothing."""

LARGEST_BLOCK = 256  # threads
_TILE = 16  # numbers of a row that are turned over at a time


@dataclass(frozen=True)
class LoopLayout:
    """How samples travel."""

    place: str | None = None
    """What is in shared memory, one of ``PLACES``; None for what suits the robot."""
    resident: int = 0
    """Blocks of the largest size that a multiprocessor must have registers for; 0 for what the
    compiler finds best."""


def room(place, rows, arguments, dtype):
    """Bytes of shared memory of a warp, and numbers of a sample in the workspace, by place.

    Args:
        place: one of ``PLACES``.
        rows: numbers of a sample's rows.
        arguments: numbers of its arguments and results.
        dtype: precision.
    """
    size = 4 if dtype == "float32" else 8
    if place == "shared":
        return -(-(WARP * rows + PITCH * arguments) * size // 16) * 16, 0
    if place == "arguments":
        return -(-PITCH * arguments * size // 16) * 16, rows
    return WARP * (_TILE + 1) * size, rows + arguments


class _Case(TableLanguage, Cuda):
    """A case in CUDA C."""

    def __init__(self, case, dtype):
        super().__init__(case, dtype, set(), Kept({}, {}), ())

    def sine_and_cosine(self, names, text, argument):
        """CUDA lines for sine and cosine of an angle of any size."""
        sine, cosine = (
            name or f"unused_{other}" for name, other in zip(names, names[::-1], strict=True)
        )
        return [f"real {sine}, {cosine};", f"sincos_any({text}, &{sine}, &{cosine});"]


def render(program, dtype="float64", place="memory", resident=0) -> str:
    """CUDA C of a loop program; its entry point is the kernel ``run``.

    Args:
        program: a ``LoopProgram`` with the cases of the kinds that a robot has.
        dtype: ``"float32"`` or ``"float64"``.
        place: what is in shared memory, one of ``PLACES``.
        resident: blocks of the largest size that a multiprocessor must have registers for; 0 for
            what the compiler finds best.
    """
    layout, number = layout_of_kinds(program), C(dtype).constant
    writer = LoopWriter(program, layout, lambda case: _Case(case, dtype), number(0.0))
    body = writer.text()
    parts = [
        f"/* {program.name}, any robot, {dtype}: written by kinetree. */",
        _head(dtype, place),
        elementary(dtype),
        _MOVES.replace("ZERO", number(0.0)),
        _run(program, layout, writer, body, dtype, resident),
    ]
    return "\n\n".join(parts) + "\n"


def _head(dtype, place):
    """First lines of CUDA text for loops: types and macros."""
    single = dtype == "float32"
    return "\n".join(
        [
            f"typedef {'float' if single else 'double'} real;",
            f"typedef {'float4' if single else 'double2'} vector16;",
            f"#define ROWS_SHARED {int(place == 'shared')}",
            f"#define ENTRIES_SHARED {int(place != 'memory')}",
            f"#define ENTRY_PITCH {WARP if place == 'memory' else PITCH}",
            f"#define TILE {_TILE}",
            f"#define FMA fma{'f' if single else ''}",
            "#define RESTRICT __restrict__",
            f"#define ROW(p, k) (p)[(k) * {WARP}]",
            "#define ENTRY(p, k) (p)[(k) * ENTRY_PITCH]",
            "#define MODEL(k) numbers[k]",
            "#define DEVICE static __device__ __forceinline__",
            "#ifdef __cplusplus",
            '#define KERNEL extern "C" __global__',
            "#else",
            "#define KERNEL __global__",
            "#endif",
            "#ifndef INFINITY",
            "#define INFINITY __int_as_float(0x7f800000)",
            "#endif",
        ]
    )


_MOVES = """\
/* Rows of 32 samples to where their numbers lie together; the sum of all of them times zero.
 * Samples beyond the last are copies of it. */
DEVICE real turned_in(real *to, real *tile, const real *from, long long step, int size, int rows)
{
    const int lane = threadIdx.x & 31, own = lane & (TILE - 1);
    real watched = ZERO;
    for (int c = 0; c < size; c += TILE) {
        const int some = size - c < TILE ? size - c : TILE;
        if (own < some) {
#pragma unroll
            for (int k = 0; k < 32; k += 32 / TILE) {
                const int row = k + lane / TILE;
                const real x = from[(row < rows ? row : rows - 1) * step + c + own];
                if (ENTRIES_SHARED) to[(c + own) * ENTRY_PITCH + row] = x;
                else tile[row * (TILE + 1) + own] = x;
            }
        }
        __syncwarp();
        for (int k = 0; k < some; k++) {
            const real x = ENTRIES_SHARED ? to[(c + k) * ENTRY_PITCH + lane]
                                          : tile[lane * (TILE + 1) + k];
            if (!ENTRIES_SHARED) to[(c + k) * ENTRY_PITCH + lane] = x;
            watched = FMA(x, ZERO, watched);
        }
        __syncwarp();
    }
    return watched;
}

/* The other way. */
DEVICE void turned_out(real *to, real *tile, const real *from, int size, int rows)
{
    const int lane = threadIdx.x & 31, own = lane & (TILE - 1);
    for (int c = 0; c < size; c += TILE) {
        const int some = size - c < TILE ? size - c : TILE;
        if (!ENTRIES_SHARED) {
            for (int k = 0; k < some; k++)
                tile[lane * (TILE + 1) + k] = from[(c + k) * ENTRY_PITCH + lane];
            __syncwarp();
        }
        if (own < some) {
#pragma unroll
            for (int k = 0; k < 32; k += 32 / TILE) {
                const int row = k + lane / TILE;
                const real x = ENTRIES_SHARED ? from[(c + own) * ENTRY_PITCH + row]
                                              : tile[row * (TILE + 1) + own];
                if (row < rows) to[(long long)row * size + c + own] = x;
            }
        }
        __syncwarp();
    }
}"""


def _run(program, layout, writer, body, dtype, resident):
    """CUDA kernel ``run``: each warp computes one set of 32 samples after another."""
    tables = _Arguments(program, writer, dtype)
    lines = [
        "extern __shared__ vector16 shared[];",
        "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
        "long long first = (long long)blockIdx.x * blockDim.x + warp * 32;",
        "if (first >= count) return;",
        *tables.sizes,
        f"const int entries_of_a_sample = {tables.entries};",
        f"const int rows_of_a_sample = ints[{layout.header['rows of a sample']}];",
        *_PLACES_OF_A_WARP,
        "real *const rows = rows_of_a_warp + lane;",
        "int arguments = 0;",
        *tables.places,
        "(void)tile; (void)rows; (void)dense; (void)entries_of_a_sample; (void)numbers;",
        "for (; first < count; first += (long long)gridDim.x * blockDim.x) {",
        *(f"    {line}" for line in tables.samples(body)),
        "    __syncwarp();",
        "}",
    ]
    text = "\n".join(line if line.startswith("#") else f"    {line}" for line in lines)
    parameters = ",\n    ".join(tables.parameters)
    return f"{_launch(dtype, resident)} run(\n    {parameters})\n{{\n{text}\n}}"


class _Arguments:
    """Lines about the arguments and results of a program, which come in this order."""

    def __init__(self, program, writer, dtype):
        self.program, self.writer = program, writer
        self.nan = f'nan{"f" if dtype == "float32" else ""}("")'
        self.inputs = [identifier(f"in_{table}") for table in program.arguments]
        self.outputs = [identifier(f"out_{table}") for table in program.results]
        self.names = [*self.inputs, *self.outputs]

    @property
    def parameters(self):
        """Parameters of the kernel for the arguments and results."""
        return [
            "long long count, long long dense",
            *(f"const real *RESTRICT given_{n}, long long step_{n}" for n in self.inputs),
            *(f"real *RESTRICT got_{n}" for n in self.outputs),
            "real *RESTRICT work",
            "const int *RESTRICT ints, const real *RESTRICT numbers",
        ]

    @property
    def sizes(self):
        """Lines that define the size of each argument and result, per sample."""
        tables = (*self.program.arguments, *self.program.results)
        axes = [self.program.tables[table].axes for table in tables]
        sizes = [" * ".join(map(self.writer.length, a)) or "1" for a in axes]
        return [f"const int size_{n} = {s};" for n, s in zip(self.names, sizes, strict=True)]

    @property
    def entries(self):
        """Text of the total size of arguments and results of a sample."""
        return " + ".join(f"size_{name}" for name in self.names) or "0"

    @property
    def places(self):
        """Lines that define where a lane's entries of each argument and result begin."""
        return [
            line
            for name in self.names
            for line in (
                f"real *const {name} = entries + arguments * ENTRY_PITCH + lane;",
                f"arguments += size_{name};",
            )
        ]

    def samples(self, body):
        """Lines that load 32 samples, compute and store; NaN for samples that fail a check."""
        zero = self.writer.zero
        lines = [
            "const int held = count - first < 32 ? (int)(count - first) : 32;",
            "int status = 0;",
            f"real watched = {zero};",
            *map(self._load, self.inputs),
            "{",
            *(f"    {line}" for line in body),
            "}",
        ]
        if self.writer.can_hide:
            lines.append(f"if (!(watched == {zero})) status |= {NOT_FINITE};")
        lines += ["if (status) {", *map(self._spoil, self.outputs), "}", "__syncwarp();"]
        return [*lines, *map(self._store, self.outputs)]

    def _load(self, name):
        """Line that loads an argument into shared memory."""
        given = f"given_{name} + first * step_{name}, step_{name}, size_{name}, held"
        return f"watched += turned_in({name} - lane, tile, {given});"

    def _store(self, name):
        """Line that copies a result from shared memory to its array."""
        return (
            f"turned_out(got_{name} + first * size_{name}, tile, {name} - lane, size_{name}, held);"
        )

    def _spoil(self, name):
        """Line that sets a result to NaN where a check failed."""
        return f"    for (int n = 0; n < size_{name}; n++) ENTRY({name}, n) = {self.nan};"


_PLACES_OF_A_WARP = (
    "#if ROWS_SHARED",
    "real *const rows_of_a_warp = (real *)shared + warp * SHARED_NUMBERS;",
    f"real *const entries = rows_of_a_warp + {WARP} * rows_of_a_sample, *const tile = 0;",
    "#elif ENTRIES_SHARED",
    "real *const rows_of_a_warp = work + first * rows_of_a_sample;",
    "real *const entries = (real *)shared + warp * SHARED_NUMBERS, *const tile = 0;",
    "#else",
    "real *const rows_of_a_warp = work + first * (rows_of_a_sample + entries_of_a_sample);",
    f"real *const entries = rows_of_a_warp + {WARP} * rows_of_a_sample;",
    f"real *const tile = (real *)shared + warp * {WARP * (_TILE + 1)};",
    "#endif",
)
"""Where rows, arguments and results of a warp are, by ``PLACES``."""


def _launch(dtype, resident):
    """Head of a CUDA kernel with its launch bounds, and the macro of its shared memory."""
    unit = 4 if dtype == "float32" else 2  # numbers in 16 bytes
    whole = f"(({WARP} * ROWS_SHARED * rows_of_a_sample + {PITCH} * entries_of_a_sample + "
    whole += f"{unit - 1}) / {unit} * {unit})"
    bounds = f"{LARGEST_BLOCK}, {resident}" if resident else str(LARGEST_BLOCK)
    return f"#define SHARED_NUMBERS {whole}\nKERNEL void __launch_bounds__({bounds})"
