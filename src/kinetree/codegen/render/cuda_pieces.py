"""Large programs as several functions, each of which computes some of the results.

Compilers take more than proportionally long for long functions, and a thread has few registers. So
results that need the same values come together, and what several such groups need is computed
again in each. Results that are the same in every sample have a function of their own.
"""

from dataclasses import dataclass, replace

from kinetree.codegen.program import Argument
from kinetree.codegen.render.cuda import Layout, Slice, Whole, render, whole_results
from kinetree.expr.node import LEAVES

__all__ = ["render_pieces", "strips_by_piece"]

_LARGE = 6000  # values of a program that is one function
_SHARED = 0.5  # of its values that a strip must have in common with a piece to join it


@dataclass(frozen=True)
class Strip:
    """Some numbers of a row of a result that are written together."""

    argument: Argument
    start: int
    width: int
    roots: tuple
    row: int


def render_pieces(program, dtype="float64", layout=None) -> list:
    """``CudaText``s that compute a program together."""
    layout, nodes = layout or Layout(), program.graph.nodes
    inner = [i for i in program.graph.reachable(program.roots) if nodes[i][0] not in LEAVES]
    loops = any(nodes[i][0] == "repeat" for i in inner)
    if len(inner) <= _LARGE or loops or whole_results(program, dtype, layout):
        return [render(program, dtype, layout)]
    strips = _strips(program, layout.window)
    fixed = [s for s in strips if all(nodes[i][0] == "const" for i in s.roots)]
    groups = strips_by_piece(program, [s for s in strips if s not in fixed], layout.piece)
    texts = [_piece(program, group, (), dtype, layout) for group in groups]
    return [*texts, _piece(program, (), fixed, dtype, layout)] if fixed else texts


def _strips(program, window):
    """All results in pieces of rows, row by row."""
    found, position = [], 0
    for argument in program.outputs:
        length = argument.shape[-1] if len(argument.shape) > 1 else min(window, argument.size)
        for start in range(0, argument.size):
            if start % length % window:
                continue
            width = min(window, length - start % length, argument.size - start)
            roots = program.roots[position + start : position + start + width]
            found.append(Strip(argument, start, width, roots, start // length))
        position += argument.size
    return sorted(found, key=lambda s: s.row)


def strips_by_piece(program, strips, most):
    """Strips in groups that need the same values, at most so many unless one strip needs more."""
    needs = _needs(program)
    wanted = {s: _union(needs[i] for i in s.roots) for s in strips}
    pieces = []  # pairs of values and strips
    for strip in sorted(strips, key=lambda s: -wanted[s].bit_count()):
        values = wanted[strip]
        fitting = [p for p in pieces if (p[0] | values).bit_count() <= most]
        best = max(fitting, key=lambda p: (p[0] & values).bit_count(), default=None)
        if best and (best[0] & values).bit_count() >= _SHARED * values.bit_count():
            best[0] |= values
            best[1].append(strip)
        else:
            pieces.append([values, [strip]])
    return [sorted(group, key=strips.index) for _, group in _merged(pieces, most)]


def _merged(pieces, most):
    """Pieces that fit together, put together, those with most in common first."""
    while True:
        pairs = [
            ((a[0] & b[0]).bit_count(), k, n)
            for k, a in enumerate(pieces)
            for n, b in enumerate(pieces[:k])
            if (a[0] | b[0]).bit_count() <= most
        ]
        if not pairs:
            return pieces
        _, k, n = max(pairs)
        pieces[n] = [pieces[n][0] | pieces[k][0], pieces[n][1] + pieces[k][1]]
        del pieces[k]


def _needs(program):
    """For every node the set of values that it needs, as bits."""
    nodes, found, number = program.graph.nodes, {}, 0
    for i in program.graph.reachable(program.roots):
        if nodes[i][0] in LEAVES:
            found[i] = 0
        else:
            found[i] = _union(found[a] for a in nodes[i][1:]) | 1 << number
            number += 1
    return found


def _union(sets):
    total = 0
    for s in sets:
        total |= s
    return total


def _piece(program, group, fixed, dtype, layout):
    """CUDA C of a group of strips, and of some that do not change."""
    outputs, slices, roots = [], {}, []
    for s in group:
        argument = Argument(f"{s.argument.name}_{s.start}", (s.width,))
        outputs.append(argument)
        slices[argument.name] = Slice(s.argument.name, s.argument.size, s.start)
        roots += s.roots
    constants = {}
    for s in fixed:
        numbers = [program.graph.nodes[i][1] for i in s.roots]
        places = constants.setdefault(s.argument.name, [])
        places += [(s.start + k, x) for k, x in enumerate(numbers)]
    part = replace(program, outputs=tuple(outputs), roots=tuple(roots))
    whole = Whole(tuple(a for a in program.outputs if a.size), slices, constants)
    return render(part, dtype, layout, whole)
