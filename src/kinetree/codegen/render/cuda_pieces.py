"""Large results in slices, each of which a function of its own computes.

A warp has the results of its 32 samples in shared memory before they are written, so that whole
pieces of rows go to memory at once. Where few warps would fit, results are cut into slices of rows.
What several slices need is computed in each of their functions; those are also shorter, and
compilers take more than proportionally long for long functions.
"""

from dataclasses import dataclass, replace

from kinetree.codegen.program import Argument
from kinetree.codegen.render.cuda import Layout, Whole, render

__all__ = ["render_pieces"]


def render_pieces(program, dtype="float64", layout=None) -> list:
    """``CudaText``s that compute a program together."""
    layout = layout or Layout()
    most = layout.results(program, dtype)
    if sum(a.size for a in program.outputs) <= most:
        return [render(program, dtype, layout)]
    groups = _grouped(_slices(program, most), most)
    return [_piece(program, group, dtype, layout) for group in groups]


@dataclass(frozen=True)
class _Slice:
    argument: Argument
    start: int
    roots: tuple


def _slices(program, most):
    """All results in pieces of at most so many numbers, whole rows where possible."""
    found, position = [], 0
    for argument in program.outputs:
        size, row = argument.size, argument.shape[-1] if argument.shape else 1
        length = min(most, size)
        for unit in (row, 4 * row, 4):  # rows, and multiples of 16 bytes
            if unit and length >= unit and length < size:
                length -= length % unit
        for start in range(0, size, length or 1):
            roots = program.roots[position + start : position + min(start + length, size)]
            found.append(_Slice(argument, start, roots))
        position += size
    return found


def _grouped(slices, most):
    """Slices that fit together."""
    groups, total = [[]], 0
    for s in slices:
        if groups[-1] and total + len(s.roots) > most:
            groups.append([])
            total = 0
        groups[-1].append(s)
        total += len(s.roots)
    return groups


def _piece(program, group, dtype, layout):
    outputs, slices, roots = [], {}, []
    for s in group:
        outputs.append(Argument(f"{s.argument.name}_{s.start}", (len(s.roots),)))
        slices[outputs[-1].name] = (s.argument.name, s.start)
        roots += s.roots
    part = replace(program, outputs=tuple(outputs), roots=tuple(roots))
    whole = Whole(tuple(a for a in program.outputs if a.size), slices)
    return render(part, dtype, layout, whole)
