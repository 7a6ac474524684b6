"""Results from the workspace into their places, in CUDA C: the last function of a program in parts.

A warp brings some numbers of its 32 samples after the other to shared memory, and writes the slices
of rows that consist of them and of zeros. Which ones, and where they go, is in tables, so that the
text is short for any number of results.
"""

from dataclasses import dataclass

from kinetree.codegen.render.c import C
from kinetree.codegen.render.cuda_entry import CudaText, head, result_name
from kinetree.codegen.render.cuda_places import PITCH, WARP

_UNIT = 32  # numbers of a result that stay together


@dataclass(frozen=True)
class _Slice:
    """Consecutive numbers of a result."""

    output: int
    """Number of the result."""
    start: int
    """Number of it that the slice begins with."""
    step: int
    """Numbers of the result."""
    slots: tuple
    """Places in the workspace of what is not zero."""
    places: tuple
    """For each number which of those it is; 0 is zero."""


def render_assembly(parts, whole, dtype, layout) -> CudaText:
    """CUDA C of the kernel that assembles results from the workspace of a program in parts.

    Args:
        parts: the program in parts.
        whole: the program; its inputs are not looked at.
        dtype: ``"float32"`` or ``"float64"``.
        layout: how samples travel.
    """
    size = 4 if dtype == "float32" else 8
    slices = _slices(parts, whole, max(_UNIT, layout.written // (PITCH * size)))
    shared = -(-(1 + max(len(s.slots) for s in slices)) * PITCH // 4) * 4 * size
    text = [
        f"/* {whole.name}, {dtype}, results: written by kinetree. */",
        head(dtype, shared),
        _tables(slices),
        _entry(parts, whole, len(slices), C(dtype).constant(0.0)),
    ]
    return CudaText("\n\n".join(text) + "\n", shared, ahead=False)


def _slices(parts, whole, most):
    """Slices of results, each with at most ``most`` nonzero entries."""
    nodes, found, position = parts.assembly.program.graph.nodes, [], 0
    numbers = {a.name: (k, a.size) for k, a in enumerate(a for a in whole.outputs if a.size)}
    for argument in parts.assembly.program.outputs:
        name, start = parts.assembly.slices[argument.name]
        roots = parts.assembly.program.roots[position : position + argument.size]
        position += argument.size
        first = 0
        while first < len(roots):
            end, known = first, {}
            while end < len(roots):
                after = end + _UNIT - (start + end) % _UNIT
                more = [nodes[i][2][0] for i in roots[end:after] if nodes[i][0] == "input"]
                if known and len(known.keys() | set(more)) > most:
                    break
                for slot in more:
                    known.setdefault(slot, len(known) + 1)
                end = min(after, len(roots))
            places = [
                known[nodes[i][2][0]] if nodes[i][0] == "input" else 0 for i in roots[first:end]
            ]
            output, step = numbers[name]
            found.append(_Slice(output, start + first, step, tuple(known), tuple(places)))
            first = end
    return found


def _tables(slices):
    """CUDA tables of where each slice's numbers are in the workspace and the results."""
    slots = [WARP * slot for s in slices for slot in s.slots]
    places = [PITCH * place for s in slices for place in s.places]
    rows, slot, place = [], 0, 0
    for s in slices:
        rows.append(
            f"    {{{s.output}, {s.start}, {s.step}, {slot}, {len(s.slots)}, {place}, "
            f"{len(s.places)}, {0 if s.step % 4 else 1}, {min(-s.start % 4, len(s.places))}}},"
        )
        slot, place = slot + len(s.slots), place + len(s.places)
    return "\n".join(
        [
            f"static __device__ const int slots[] = {{{', '.join(map(str, slots or [0]))}}};",
            f"static __device__ const int places[] = {{{', '.join(map(str, places))}}};",
            "static __device__ const struct {",
            "    int output, start, step, first_slot, count, first_place, size, dense, head;",
            "} slices[] = {",
            *rows,
            "};",
        ]
    )


def _entry(parts, whole, count, zero):
    """CUDA entry point ``run`` of the assembly."""
    inputs, outputs = ([a for a in side if a.size] for side in (whole.inputs, whole.outputs))
    results = [result_name(a.name) for a in outputs]
    parameters = [
        "long long count, long long dense",
        *(f"const real *unused_{k}, long long step_{k}" for k, _ in enumerate(inputs)),
        *(f"real *{name}" for name in results),
        "const real *__restrict__ work",
    ]
    looks = "".join(f"    wrong |= !(own[{WARP * k}] == {zero});\n" for k in parts.watched)
    body = _BODY.format(
        slots=parts.slots,
        results=", ".join(results),
        looks=looks,
        zero=zero,
        count=count,
        pitch=PITCH,
    )
    return "ENTRY void run(\n    " + ",\n    ".join(parameters) + ")\n" + body


_BODY = """\
{{
    extern __shared__ vector16 shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long first = (long long)blockIdx.x * blockDim.x + warp * 32;
    if (first >= count) return;
    const int rows = count - first < 32 ? (int)(count - first) : 32;
    real *const kept = (real *)((char *)shared + warp * BYTES_OF_A_WARP);
    const real *const own = work + first * {slots} + lane;
    real *const results[] = {{{results}}};
    int wrong = 0;
{looks}\
    kept[lane] = wrong ? (real)nan("") : {zero};
#pragma unroll 1
    for (int s = 0; s < {count}; s++) {{
        const int *const from = slots + slices[s].first_slot, step = slices[s].step;
#pragma unroll 16
        for (int k = 0; k < slices[s].count; k++)
            kept[(k + 1) * {pitch} + lane] = wrong ? kept[lane] : own[from[k]];
        __syncwarp();
        store_kept(results[slices[s].output] + first * step + slices[s].start, step, kept,
                   places + slices[s].first_place, slices[s].size, rows, dense && slices[s].dense,
                   slices[s].head);
        __syncwarp();
    }}
}}"""
