"""Programs by other means than machine code: copied into a trace, or evaluated by definition."""

from dataclasses import replace

import numpy as np

from kinetree.expr import interpret
from kinetree.expr.node import Expr, Graph
from kinetree.expr.substitute import substitute

__all__ = ["compact", "evaluated"]


def compact(program):
    """The same program in a graph of its own, without what differentiation left behind."""
    graph, roots = Graph(), program.roots
    checks = [c[0] for c in program.checks]
    for i in program.inputs:
        for place in np.ndindex(i.shape):
            graph.input(i.name, place)
    found = substitute(program.graph, [*roots, *checks], {}, graph)
    kept = zip(found[len(roots) :], program.checks, strict=True)
    return replace(
        program,
        graph=graph,
        roots=tuple(found[: len(roots)]),
        checks=tuple((i, *check[1:]) for i, check in kept),
    )


def evaluated(program, arrays):
    """Results of a program on numbers of any kind, by its definition."""
    objects = (x for a in arrays if a.dtype == object for x in a.ravel())
    traced = next((x for x in objects if isinstance(x, Expr)), None)
    if traced is not None:
        results = _inlined(program, arrays, traced.graph)
    else:
        results = interpret.run(program, *arrays, functions=_elementary(arrays))
    return results[0] if len(results) == 1 else results


def _elementary(arrays):
    """The module with the elementary functions of multi-precision numbers, or None."""
    numbers = (x for a in arrays if a.dtype == object for x in a.ravel())
    if any(type(x).__module__.startswith("mpmath") for x in numbers):
        import mpmath  # only where the caller uses it

        return mpmath
    return None


def _inlined(program, arrays, graph):
    """A copy of a program in another trace; batch axes are written out sample by sample."""
    shapes = [i.shape for i in program.inputs]
    leads = [a.shape[: a.ndim - len(s)] for a, s in zip(arrays, shapes, strict=True)]
    batch = np.broadcast_shapes(*leads)
    full = [np.broadcast_to(a, batch + s) for a, s in zip(arrays, shapes, strict=True)]
    flat = np.empty((*batch, len(program.roots)), dtype=object)
    for index in np.ndindex(batch):
        values = {}
        for i, a in zip(program.inputs, full, strict=True):
            for place in np.ndindex(i.shape):
                node = program.graph.node("input", i.name, place)
                values[node] = graph.number(a[(*index, *place)])
        checks = [c[0] for c in program.checks]
        found = substitute(program.graph, [*program.roots, *checks], values, graph)
        flat[index] = [graph.expr(i) for i in found[: len(program.roots)]]
        for i, check in zip(found[len(program.roots) :], program.checks, strict=True):
            graph.checks.append((i, *check[1:]))
    results, position = [], 0
    for output in program.outputs:
        part = flat[..., position : position + output.size]
        results.append(part.reshape((*batch, *output.shape)))
        position += output.size
    return tuple(results)
