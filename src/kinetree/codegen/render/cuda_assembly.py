"""Results from the workspace into their places, in CUDA C: the last function of a program in parts.

A warp fills a tile with a slice of the results of its 32 samples after the other. Which number goes
where is in a table; of the results of a robot most are zero, and only the others are in it.
"""

from dataclasses import dataclass

from kinetree.codegen.parts import WORK
from kinetree.codegen.program import Argument
from kinetree.codegen.render.c import C
from kinetree.codegen.render.cuda_entry import result_name
from kinetree.codegen.render.cuda_places import WARP, Tile
from kinetree.codegen.render.cuda_text import CudaText, head

__all__ = ["Slice", "render_assembly", "slices"]

_CONSTANT = 60_000  # bytes of a table that the cache for constants has room for


@dataclass(frozen=True)
class Slice:
    """Consecutive numbers of an output.

    Attributes:
        argument: the output.
        start: number of it that the slice begins with.
        roots: its nodes.
    """

    argument: Argument
    start: int
    roots: tuple


def slices(program, most):
    """All results in slices of at most so many numbers, whole rows where possible."""
    found, position = [], 0
    for argument in program.outputs:
        size, row = argument.size, argument.shape[-1] if argument.shape else 1
        length = min(most, size)
        for unit in (row, 4 * row, 4):  # rows, and multiples of 16 bytes
            if unit and length >= unit and length < size:
                length -= length % unit
        for start in range(0, size, length or 1):
            roots = program.roots[position + start : position + min(start + length, size)]
            found.append(Slice(argument, start, roots))
        position += size
    return found


def render_assembly(parts, inputs, dtype, layout) -> CudaText:
    """CUDA C of ``parts.assembly``.

    Args:
        parts: the whole program.
        inputs: of the whole program; they are not looked at.
        dtype: ``"float32"`` or ``"float64"``.
        layout: how samples travel.
    """
    program, size = parts.assembly, 4 if dtype == "float32" else 8
    found = slices(program, max(WARP, layout.written // (WARP * size)))
    tiles = [Tile(len(s.roots), s.argument.size, s.start) for s in found]
    shared = max(t.numbers for t in tiles) * size
    moves, body = [], []
    for s, tile in zip(found, tiles, strict=True):
        body += _filled(program, s, tile, moves, C(dtype).constant)
    table = ",\n".join(f"    {{{slot}, {place}}}" for slot, place in moves)
    memory = "__constant__" if 8 * len(moves) <= _CONSTANT else "__device__ const"
    text = [
        f"/* {program.name}, {dtype}, results: written by kinetree. */",
        head(dtype, shared),
        f"static {memory} int moves[][2] = {{\n{table}\n}};",
        _GATHER,
        _entry(parts, [a for a in inputs if a.size], body, dtype),
    ]
    return CudaText("\n\n".join(text) + "\n", shared, ahead=False)


_GATHER = """\
/* Numbers of the workspace into the own row of a tile. */
DEVICE void gather(real *own, const real *work, int first, int end)
{
#pragma unroll 16
    for (int n = first; n < end; n++) own[moves[n][1]] = work[moves[n][0] * 32];
}"""


def _filled(program, s, tile, moves, number):
    """Statements that write a slice; what is moved for it is added to ``moves``."""
    first, constants = len(moves), []
    for place, i in enumerate(s.roots):
        op, *rest = program.graph.nodes[i]
        if op == "input":
            moves.append((rest[1][0], place))
        elif rest[0] != 0.0:
            constants.append(f"own[{place}] = {number(rest[0])};")
    to = f"{result_name(s.argument.name)} + first * {tile.step} + {tile.start}"
    return [
        "{",
        f"    real *const own = tile + lane * {tile.pitch};",
        f"    clear_tile(tile, {tile.numbers});",
        f"    gather(own, {WORK}_own, {first}, {len(moves)});",
        *(f"    {line}" for line in constants),
        f'    if (wrong) for (int i = 0; i < {tile.size}; i++) own[i] = (real)nan("");',
        "    __syncwarp();",
        f"    store_slice({to}, {tile.step}, tile, {tile.size}, {tile.pitch}, rows, dense);",
        "    __syncwarp();",
        "}",
    ]


def _entry(parts, inputs, body, dtype):
    """The entry point ``run``."""
    zero = C(dtype).constant(0.0)
    parameters = [
        "long long count, long long dense",
        *(f"const real *unused_{k}, long long step_{k}" for k, _ in enumerate(inputs)),
        *(f"real *{result_name(a.name)}" for a in parts.assembly.outputs if a.size),
        f"const real *__restrict__ {WORK}",
    ]
    looks = [f"wrong |= !({WORK}_own[{WARP * k}] == {zero});" for k in parts.watched]
    lines = [
        "extern __shared__ vector16 shared[];",
        "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
        "const long long first = (long long)blockIdx.x * blockDim.x + warp * 32;",
        "if (first >= count) return;",
        "const int rows = count - first < 32 ? (int)(count - first) : 32;",
        "real *const tile = (real *)((char *)shared + warp * BYTES_OF_A_WARP);",
        f"const real *const {WORK}_own = {WORK} + first * {parts.slots} + lane;",
        "int wrong = 0;",
        *looks,
        *body,
    ]
    return (
        "ENTRY void run(\n    " + ",\n    ".join(parameters) + ")\n{\n"
        + "\n".join(f"    {line}" for line in lines) + "\n}"
    )  # fmt: skip
