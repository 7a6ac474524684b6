"""Results from the workspace into their places, in CUDA C: the last function of a program in parts.

A warp fills a tile with a slice of the results of its 32 samples after the other. Which number goes
where is in a table; of the results of a robot most are zero, and only the others are in it.
"""

from kinetree.codegen.parts import Row
from kinetree.codegen.render.c import C
from kinetree.codegen.render.cuda_entry import result_name
from kinetree.codegen.render.cuda_places import WARP, Tile
from kinetree.codegen.render.cuda_text import CudaText, head

__all__ = ["render_assembly", "slices"]

_CONSTANT = 60_000  # bytes of a table that the cache for constants has room for


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
            found.append(Row(argument, start, roots))
        position += size
    return found


def render_assembly(parts, whole, dtype, layout) -> CudaText:
    """CUDA C of ``parts.assembly``.

    Args:
        parts: the program in parts.
        whole: the program; its inputs are not looked at.
        dtype: ``"float32"`` or ``"float64"``.
        layout: how samples travel.
    """
    program, size = parts.assembly.program, 4 if dtype == "float32" else 8
    sizes = {a.name: a.size for a in whole.outputs}
    moves, body, numbers = [], [], 0
    for row in slices(program, max(WARP, layout.written // (WARP * size))):
        name, start = parts.assembly.slices[row.argument.name]
        tile = Tile(len(row.roots), sizes[name], start + row.start)
        numbers = max(numbers, tile.numbers)
        body += _filled(program, row, name, tile, moves, C(dtype).constant)
    shared = numbers * size
    table = ",\n".join(f"    {{{slot}, {place}}}" for slot, place in moves)
    memory = "__constant__" if 8 * len(moves) <= _CONSTANT else "__device__ const"
    text = [
        f"/* {program.name}, {dtype}, results: written by kinetree. */",
        head(dtype, shared),
        f"static {memory} int moves[][2] = {{\n{table}\n}};",
        _GATHER,
        _entry(parts, whole, body, dtype),
    ]
    return CudaText("\n\n".join(text) + "\n", shared, ahead=False)


_GATHER = """\
/* Numbers of the workspace into the own row of a tile. */
DEVICE void gather(real *own, const real *work, int first, int end)
{
#pragma unroll 16
    for (int n = first; n < end; n++) own[moves[n][1]] = work[moves[n][0] * 32];
}"""


def _filled(program, row, name, tile, moves, number):
    """Statements that write a slice; what is moved for it is added to ``moves``."""
    first, constants = len(moves), []
    for place, i in enumerate(row.roots):
        op, *rest = program.graph.nodes[i]
        if op == "input":
            moves.append((rest[1][0], place))
        elif rest[0] != 0.0:
            constants.append(f"own[{place}] = {number(rest[0])};")
    to = f"{result_name(name)} + first * {tile.step} + {tile.start}"
    return [
        "{",
        f"    real *const own = tile + lane * {tile.pitch};",
        f"    clear_tile(tile, {tile.numbers});",
        f"    gather(own, work_own, {first}, {len(moves)});",
        *(f"    {line}" for line in constants),
        f'    if (wrong) for (int i = 0; i < {tile.size}; i++) own[i] = (real)nan("");',
        "    __syncwarp();",
        f"    store_slice({to}, {tile.step}, tile, {tile.size}, {tile.pitch}, rows, dense);",
        "    __syncwarp();",
        "}",
    ]


def _entry(parts, whole, body, dtype):
    """The entry point ``run``."""
    zero, inputs = C(dtype).constant(0.0), [a for a in whole.inputs if a.size]
    parameters = [
        "long long count, long long dense",
        *(f"const real *unused_{k}, long long step_{k}" for k, _ in enumerate(inputs)),
        *(f"real *{result_name(a.name)}" for a in whole.outputs if a.size),
        "const real *__restrict__ work",
    ]
    looks = [f"wrong |= !(work_own[{WARP * k}] == {zero});" for k in parts.watched]
    lines = [
        "extern __shared__ vector16 shared[];",
        "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
        "const long long first = (long long)blockIdx.x * blockDim.x + warp * 32;",
        "if (first >= count) return;",
        "const int rows = count - first < 32 ? (int)(count - first) : 32;",
        "real *const tile = (real *)((char *)shared + warp * BYTES_OF_A_WARP);",
        f"const real *const work_own = work + first * {parts.slots} + lane;",
        "int wrong = 0;",
        *looks,
        *body,
    ]
    return (
        "ENTRY void run(\n    " + ",\n    ".join(parameters) + ")\n{\n"
        + "\n".join(f"    {line}" for line in lines) + "\n}"
    )  # fmt: skip
