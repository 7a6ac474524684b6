"""Programs by other means than machine code: copied into a trace, or evaluated by definition."""

from dataclasses import replace

import numpy as np

from kinetree.codegen.program import note
from kinetree.errors import ArrayKindError
from kinetree.expr import interpret
from kinetree.expr.counting import cost
from kinetree.expr.forward import substitute
from kinetree.expr.node import Expr, Graph
from kinetree.expr.repeat import loop_of


def compact(program, known=()):
    """Copy of a program with its graph simplified, conditions ``known`` to hold replaced by 1.

    ``known`` are the nodes of conditions that always hold.
    """
    note(program.warnings)
    graph, roots = Graph(), program.roots
    checks = [c[0] for c in program.checks]
    for i in program.inputs:
        for place in np.ndindex(i.shape):
            graph.input(i.name, place)
    values = dict.fromkeys(known, graph.constant(1.0)) if known else {}
    found = substitute(program.graph, [*roots, *checks], values, graph)
    kept = zip(found[len(roots) :], program.checks, strict=True)
    return replace(
        program,
        graph=graph,
        roots=tuple(found[: len(roots)]),
        checks=tuple((i, *check[1:]) for i, check in kept),
    )


def alone(program):
    """Program for a single sample, without loop conditions needed only by samples in lockstep.

    There the condition that a counting loop has not ended (``expr.repeat``) always holds.
    """
    graph, nodes, known = program.graph, program.graph.nodes, []
    for i in graph.reachable(program.wanted):
        if nodes[i][0] == "repeat":
            loop = loop_of(graph, i)
            carry, one = loop.carries[0], graph.known.get(("const", 1.0))
            counts = nodes[loop.next[0]] == ("+", one, carry)
            if counts and nodes[loop.initial[0]] == ("const", 0.0):
                known.append(graph.known.get(("<", carry, loop.times)))
    return compact(program, [i for i in known if i is not None]) if any(known) else program


def evaluate(program, arrays):
    """Evaluate a program on traced symbols, exact numbers or floats, operation by operation."""
    graph = trace_of(arrays)
    if graph is not None:
        note(program.warnings)
        results = _inline(program, arrays, graph)
    else:
        results = _interpret(program, [_as_floats(a) for a in arrays])
    return results[0] if len(results) == 1 else results


def _as_floats(array):
    """Object arrays of plain floats converted to float arrays; other arrays unchanged."""
    if array.dtype == object and all(isinstance(x, _PLAIN) for x in array.flat):
        return array.astype(complex if any(isinstance(x, complex) for x in array.flat) else float)
    return array


_PLAIN = (int, float, complex, np.number)


def _interpret(program, arrays):
    """Results of a program for exact or symbolic numbers, interpreted node by node."""
    functions = _elementary(arrays)
    try:
        return interpret.run(program, *arrays, functions=functions)
    except TypeError as error:
        objects = (x for a in arrays if a.dtype == object for x in a.flat)
        strange = next((type(x).__name__ for x in objects if not isinstance(x, _PLAIN)), None)
        if strange is None or functions is not None:
            raise
        raise ArrayKindError(
            f"{program.name} cannot be computed with numbers of type {strange}; use floats, "
            f"complex numbers or mpmath numbers"
        ) from error


def trace_of(arrays):
    """Graph that the traced numbers in some arrays belong to, or None if none is traced.

    Nor are numbers of other kinds that are made of traced ones, such as those with a rate.
    """
    graph = None
    for a in arrays:
        if a.dtype == object:
            for x in a.ravel():
                if isinstance(x, Expr):
                    graph = x.graph if graph is None else graph
                elif not isinstance(x, _PLAIN):
                    return None
    return graph


def shortest(ways, graph):
    """Result of the alternative formula that adds the fewest operations to a trace.

    Args:
        ways: functions without arguments that return the same array of traced numbers.
        graph: the trace.
    """
    found = []
    for way in ways:
        first = len(graph.checks)
        result = way()
        roots = [graph.number(x) for x in np.ravel(result)]
        found.append((cost(graph, roots), result, graph.checks[first:]))
        del graph.checks[first:]
    _, result, checks = min(found, key=lambda entry: entry[0])
    graph.checks += checks
    return result


def _elementary(arrays):
    """The module mpmath if an array has its multi-precision numbers, else None."""
    numbers = (x for a in arrays if a.dtype == object for x in a.ravel())
    if any(type(x).__module__.startswith("mpmath") for x in numbers):
        import mpmath  # only where the caller uses it

        return mpmath
    return None


def _inline(program, arrays, graph):
    """Copy a program's nodes into another trace, once for each sample of the batch."""
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
        part = flat[..., position : position + output.size].reshape((*batch, *output.shape))
        results.append(part if part.shape else part[()])
        position += output.size
    return tuple(results)
