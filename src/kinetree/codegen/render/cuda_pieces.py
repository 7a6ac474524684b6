"""Large results by several functions.

A warp has the results of its 32 samples in shared memory before they are written, so that whole
pieces of rows go to memory at once. Where few warps would fit, results are cut into slices of rows,
each with its own function. What several slices need is computed in each of their functions.

Where that is much, functions compute groups of results that belong together instead and leave them
in a workspace, from which another one writes the slices (``parts``).
"""

from dataclasses import dataclass, replace

from kinetree.codegen.inline import alone
from kinetree.codegen.parts import ResultRow, in_parts
from kinetree.codegen.render.cuda import Layout, WholeResults, render
from kinetree.codegen.render.cuda_assembly import render_assembly
from kinetree.codegen.render.cuda_entry import CudaText
from kinetree.codegen.render.cuda_places import sparse_results
from kinetree.expr.node import LEAVES


@dataclass(frozen=True)
class Pieces:
    """A program as CUDA C."""

    texts: tuple[CudaText, ...]
    """``CudaText``s that compute it together, one after the other."""
    work: int = 0
    """Numbers of a sample in the workspace that they share."""


def render_pieces(program, dtype="float64", layout=None) -> Pieces:
    """CUDA C of a program as one kernel, or as several if it is long or has large results."""
    layout = layout or Layout()
    program = program if layout.by_warps else alone(program)
    most = layout.results(program, dtype)
    if _room(program, dtype) <= most:
        text = render(program, dtype, layout)
        return Pieces((text,), text.left)
    if _is_long(program, layout):
        return _by_parts(program, dtype, layout, most)
    groups = _group_slices(program, most, dtype)
    return Pieces(tuple(_piece(program, group, dtype, layout) for group in groups))


def _is_long(program, layout):
    """Whether a program has so many operations that it is split into parts that share values."""
    nodes = program.graph.nodes
    operations = [nodes[i][0] for i in program.graph.reachable(program.roots)]
    count = sum(op not in LEAVES for op in operations)
    return count > layout.longest and "repeat" not in operations


def _by_parts(program, dtype, layout, most):
    """CUDA C of a long program, split into parts that exchange values by a workspace."""

    def fits(rows):
        return _room(_part(program, rows), dtype) <= most

    found = in_parts(program, layout.part, fits)
    texts = [
        render(
            p.program,
            dtype,
            layout,
            WholeResults(_outputs(program), p.slices, found.slots, p.left, p.status),
        )
        for p in found.parts
    ]
    if found.assembly.program.roots:
        texts.append(render_assembly(found, program, dtype, layout))
    return Pieces(tuple(texts), found.slots)


def _outputs(program):
    """Result arguments that are not empty."""
    return tuple(a for a in program.outputs if a.size)


def _room(program, dtype):
    """Numbers of a sample's results that must be in shared memory, zeros left out."""
    found = sparse_results(program, {a.name for a in program.outputs}, dtype)
    return found.count + sum(a.size for a in program.outputs if a.name not in found.tables)


def _group_slices(program, most, dtype):
    """Group result slices so that each group fits into shared memory."""
    groups = [[]]
    for s in _slices(program, most):
        if groups[-1] and _room(_part(program, [*groups[-1], s]), dtype) > most:
            groups.append([])
        groups[-1].append(s)
    return groups


def _part(program, group):
    """Program of some slices of the results."""
    roots = tuple(i for s in group for i in s.roots)
    return replace(program, outputs=tuple(s.output for s in group), roots=roots)


def _slices(program, most):
    """Split all results into slices of at most ``most`` numbers, in whole rows if possible."""
    found, position = [], 0
    for argument in program.outputs:
        size, row = argument.size, argument.shape[-1] if argument.shape else 1
        length = min(most, size)
        for unit in (row, 4 * row, 4):  # rows, and multiples of 16 bytes
            if unit and length >= unit and length < size:
                length -= length % unit
        for start in range(0, size, length or 1):
            roots = program.roots[position + start : position + min(start + length, size)]
            found.append(ResultRow(argument, start, roots))
        position += size
    return found


def _piece(program, group, dtype, layout):
    """CUDA C of the kernel for one group of result slices."""
    places = {s.output.name: (s.argument.name, s.start) for s in group}
    return render(_part(program, group), dtype, layout, WholeResults(_outputs(program), places))
