"""Derivatives of a graph: sparse, by forward or by reverse accumulation, of any order.

What is built goes through the same simplifications as everything else, into the same graph, so
that values are shared with the function itself and a derivative can be differentiated again.

A direction is a dict from nodes, usually inputs, to their rates, which may be expressions: that is
how a tangent space enters. A node with a rate is independent; what it was computed from does not
count. Rates that are zero by structure are never built.
"""

import numpy as np

from kinetree.expr import simplify
from kinetree.expr.calls import adjoints as adjoints_of_call
from kinetree.expr.calls import callee_of, place_of
from kinetree.expr.counting import cost
from kinetree.expr.forward import DERIVATIVES, FLAT, by_node, direction_sets, forward

_CLEAR = 3.0  # ratio of estimated costs beyond which only the better way is tried


def jacobian(graph, y, directions, mode=None):
    """Derivatives of a traced array along several directions, as the last axis.

    Args:
        graph: the graph of the expressions.
        y: array of expressions and plain numbers.
        directions: dicts from node number to the rate of that node, an expression or a number.
        mode: ``"forward"`` or ``"reverse"``; by default the one that gives less work.
    """
    y = np.asarray(y, dtype=object)
    roots = [graph.number(x) for x in y.ravel()]
    seeds = [{i: graph.number(rate) for i, rate in d.items()} for d in directions]
    result = np.zeros((len(roots), len(seeds)), dtype=object)
    for row, rates in zip(result, derivatives(graph, roots, seeds, mode), strict=True):
        for k, i in rates.items():
            row[k] = graph.expr(i)
    return result.reshape(*y.shape, len(seeds))


def derivatives(graph, roots, seeds, mode=None):
    """Derivatives of each root as a dict from direction number to node; zeros left out."""
    zero = graph.constant(0.0)
    seeds = [{i: rate for i, rate in seed.items() if rate != zero} for seed in seeds]
    if mode is not None:
        return _MODES[mode](graph, roots, seeds)
    guess = estimates(graph, roots, seeds)
    best = min(guess, key=lambda mode: guess[mode])
    found = [_MODES[m](graph, roots, seeds) for m in _MODES if guess[m] <= _CLEAR * guess[best]]
    return min(found, key=lambda rows: cost(graph, [i for row in rows for i in row.values()]))


def estimates(graph, roots, seeds):
    """Estimated operations of forward and of reverse mode."""
    order = graph.reachable(roots)
    if any(graph.nodes[i][0] == "repeat" for i in order):
        return {"forward": 1.0, "reverse": np.inf}  # backwards through a loop needs its history
    directions = direction_sets(graph, order, seeds)
    reached = root_sets(graph, order, roots, directions)
    ahead = back = 1.0
    for i in order:
        if i not in directions or i not in reached or graph.nodes[i][0] == "input":
            continue  # what only conditions depend on reaches no root
        op, *operands = graph.nodes[i]
        if op == "call":
            work = callee_of(graph, i).cost
            ahead += 2 * work * directions[i].bit_count()
            back += 4 * work * reached[i].bit_count()
            continue
        work = 1 if op in ("+", "-", "neg") else 2
        for a in operands:
            if a in directions:
                ahead += work * directions[a].bit_count()
                back += work * reached[i].bit_count()
    for i in {i for seed in seeds for i in seed if i in reached}:
        back += 2 * reached[i].bit_count() * directions[i].bit_count()
    return {"forward": ahead, "reverse": back}


# --- reverse accumulation: every node carries the derivatives of the roots that it moves ---------


def reverse(graph, roots, seeds):
    """Derivatives of each root by reverse mode, as a dict from direction number to node."""
    zero, rates, result = graph.constant(0.0), by_node(seeds), []
    for adjoints in _adjoints(graph, roots, set(rates)):
        row = {}
        for i, adjoint in adjoints.items():
            for k, d in rates[i].items():
                row[k] = simplify.add(graph, row.get(k, zero), simplify.mul(graph, adjoint, d))
        result.append({k: d for k, d in row.items() if d != zero})
    return result


def _adjoints(graph, roots, independent):
    """Adjoints of independent nodes for each root, as a dict by node."""
    nodes, zero = graph.nodes, graph.constant(0.0)
    order = graph.reachable(roots)
    moved = _dependent_nodes(graph, order, independent)
    adjoints = {}
    for k, r in enumerate(roots):
        if r in moved:
            adjoints.setdefault(r, {})[k] = graph.constant(1.0)
    weights = {}  # of the results of calls: by call, root and number of the result
    for i in reversed(order):
        if i in weights:
            for a, k, adjoint in adjoints_of_call(graph, i, weights.pop(i), moved):
                total = adjoints.setdefault(a, {})
                total[k] = simplify.add(graph, total.get(k, zero), adjoint)
        if i not in adjoints or i in independent:
            continue
        row, (op, *operands) = adjoints.pop(i), nodes[i]
        if op == "result":
            for k, adjoint in row.items():
                own = weights.setdefault(operands[0], {}).setdefault(k, {})
                own[place_of(graph, i)] = adjoint
            continue
        if op == "select":
            condition, *operands = operands
            parts = _choose(graph, condition, row, zero)
        else:
            parts = (_multiples(graph, f, row) for f in DERIVATIVES[op](graph, i, *operands))
        for a, part in zip(operands, parts, strict=True):
            if a in moved:
                total = adjoints.setdefault(a, {})
                for k, adjoint in part:
                    total[k] = simplify.add(graph, total.get(k, zero), adjoint)
    found = [{} for _ in roots]
    for i in independent:
        for k, adjoint in adjoints.get(i, {}).items():
            found[k][i] = adjoint
    return found


def _multiples(graph, factor, row):
    """Products of a factor with the adjoints of a row, made when needed."""
    return ((k, simplify.mul(graph, factor, adjoint)) for k, adjoint in row.items())


def _choose(graph, condition, row, zero):
    """Adjoints of both operands of a selection, zero for the one not chosen."""
    yield ((k, simplify.select(graph, condition, adjoint, zero)) for k, adjoint in row.items())
    yield ((k, simplify.select(graph, condition, zero, adjoint)) for k, adjoint in row.items())


def _dependent_nodes(graph, order, independent):
    """Nodes that depend on the independent ones, as a set."""
    moved = set()
    for i in order:
        op, *operands = graph.nodes[i]
        if i in independent or (op not in FLAT and any(a in moved for a in operands)):
            moved.add(i)
    return moved


def root_sets(graph, order, roots, moved):
    """For every node the set of roots that depend on it, as bits of an integer."""
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


_MODES = {"forward": forward, "reverse": reverse}
