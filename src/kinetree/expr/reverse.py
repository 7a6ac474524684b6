"""Reverse accumulation: every node carries the slopes of the roots that it moves."""

from kinetree.expr import simplify
from kinetree.expr.forward import by_node
from kinetree.expr.slopes import FLAT, SLOPES

__all__ = ["reverse", "root_sets"]


def reverse(graph, roots, seeds):
    """For every root a dict from direction number to the node of its rate; not through loops."""
    zero, rates, result = graph.constant(0.0), by_node(seeds), []
    for slopes in _slopes(graph, roots, set(rates)):
        row = {}
        for i, slope in slopes.items():
            for k, d in rates[i].items():
                row[k] = simplify.add(graph, row.get(k, zero), simplify.mul(graph, slope, d))
        result.append({k: d for k, d in row.items() if d != zero})
    return result


def _slopes(graph, roots, independent):
    """For every root a dict from independent node to its slope there."""
    nodes, zero = graph.nodes, graph.constant(0.0)
    order = graph.reachable(roots)
    moved = _moved(graph, order, independent)
    slopes = {}
    for k, r in enumerate(roots):
        if r in moved:
            slopes.setdefault(r, {})[k] = graph.constant(1.0)
    for i in reversed(order):
        if i not in slopes or i in independent:
            continue
        row, (op, *operands) = slopes.pop(i), nodes[i]
        if op == "select":
            condition, *operands = operands
            parts = _chosen(graph, condition, row, zero)
        else:
            parts = (_multiples(graph, f, row) for f in SLOPES[op](graph, i, *operands))
        for a, part in zip(operands, parts, strict=True):
            if a in moved:
                total = slopes.setdefault(a, {})
                for k, slope in part:
                    total[k] = simplify.add(graph, total.get(k, zero), slope)
    found = [{} for _ in roots]
    for i in independent:
        for k, slope in slopes.get(i, {}).items():
            found[k][i] = slope
    return found


def _multiples(graph, factor, row):
    """Products of a factor with the slopes of a row, built when they are asked for."""
    return ((k, simplify.mul(graph, factor, slope)) for k, slope in row.items())


def _chosen(graph, condition, row, zero):
    yield ((k, simplify.select(graph, condition, slope, zero)) for k, slope in row.items())
    yield ((k, simplify.select(graph, condition, zero, slope)) for k, slope in row.items())


def _moved(graph, order, independent):
    """The nodes that depend on the independent ones."""
    moved = set()
    for i in order:
        op, *operands = graph.nodes[i]
        if i in independent or (op not in FLAT and any(a in moved for a in operands)):
            moved.add(i)
    return moved


def root_sets(graph, order, roots, moved):
    """For every node the set of roots that it moves, as the bits of a number."""
    sets = {}
    for k, r in enumerate(roots):
        sets[r] = sets.get(r, 0) | 1 << k
    for i in reversed(order):
        op, *operands = graph.nodes[i]
        if op not in FLAT and i in sets:
            for a in operands:
                if a in moved:
                    sets[a] = sets.get(a, 0) | sets[i]
    return sets
