"""Large results by several functions.

A warp has the results of its 32 samples in shared memory before they are written, so that whole
pieces of rows go to memory at once. Where few warps would fit, results are cut into slices of rows,
each with a function of its own. What several slices need is computed in each of their functions.

Where that is much, functions compute groups of results that belong together instead and leave them
in a workspace, from which another one writes the slices (``parts``).
"""

from dataclasses import dataclass, replace

from kinetree.codegen.parts import in_parts
from kinetree.codegen.program import Argument
from kinetree.codegen.render.cuda import Layout, Whole, render
from kinetree.codegen.render.cuda_assembly import render_assembly, slices
from kinetree.codegen.render.cuda_text import CudaText
from kinetree.expr.node import LEAVES

__all__ = ["Pieces", "render_pieces"]


@dataclass(frozen=True)
class Pieces:
    """A program as CUDA C.

    Attributes:
        texts: ``CudaText``s that compute it together, one after the other.
        work: numbers of a sample in the workspace that they share.
    """

    texts: tuple[CudaText, ...]
    work: int = 0


def render_pieces(program, dtype="float64", layout=None) -> Pieces:
    """CUDA C of a program, by as many functions as are good for it."""
    layout = layout or Layout()
    most = layout.results(program, dtype)
    if sum(a.size for a in program.outputs) <= most:
        return Pieces((render(program, dtype, layout),))
    if _is_long(program, layout):
        return _by_parts(program, dtype, layout)
    groups = _grouped(slices(program, most), most)
    return Pieces(tuple(_piece(program, group, dtype, layout) for group in groups))


def _is_long(program, layout):
    """Whether functions that compute most of a program each would take too long."""
    nodes = program.graph.nodes
    operations = [nodes[i][0] for i in program.graph.reachable(program.roots)]
    count = sum(op not in LEAVES for op in operations)
    return count > layout.longest and "repeat" not in operations


def _by_parts(program, dtype, layout):
    found = in_parts(program, layout.part)
    whole = Whole(_outputs(program), {}, work=found.slots)
    texts = [
        render(p.program, dtype, layout, replace(whole, left=p.slots, status=p.status))
        for p in found.parts
    ]
    texts.append(render_assembly(found, program.inputs, dtype, layout))
    return Pieces(tuple(texts), found.slots)


def _outputs(program):
    return tuple(a for a in program.outputs if a.size)


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
    outputs, places, roots = [], {}, []
    for s in group:
        outputs.append(Argument(f"{s.argument.name}_{s.start}", (len(s.roots),)))
        places[outputs[-1].name] = (s.argument.name, s.start)
        roots += s.roots
    part = replace(program, outputs=tuple(outputs), roots=tuple(roots))
    return render(part, dtype, layout, Whole(_outputs(program), places))
