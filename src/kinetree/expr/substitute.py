"""Copying expressions with some nodes replaced, simplifying again on the way."""

from kinetree.expr import simplify
from kinetree.expr.node import LEAVES
from kinetree.expr.repeat import loop_of

_RULES = {"+": simplify.add, "-": simplify.sub, "*": simplify.mul, "/": simplify.div}
_RULES |= {"neg": simplify.neg, "not": simplify.negate, "select": simplify.select}
_RULES |= {"atan2": simplify.atan2}


def substitute(source, roots, values, target=None):
    """Nodes of ``target`` that compute what ``roots`` compute in ``source``.

    Args:
        source: a graph.
        roots: node numbers of it.
        values: from node of ``source`` to the node of ``target`` that takes its place. Inputs that
            are not among them are inputs of the target by the same name.
        target: another graph; the same by default.
    """
    target = source if target is None else target
    needed = _needed(source, roots, values)
    image = dict(values) | fresh_carries(source, needed, target)
    for i in needed:
        if i not in image:
            op, *operands = source.nodes[i]
            if op not in LEAVES:
                operands = [image[a] for a in operands]
            image[i] = copy_node(target, op, operands)
    return [image[r] for r in roots]


def copy_node(graph, op, operands):
    """Number of the node ``(op, *operands)`` after simplification."""
    if op in _RULES:
        return _RULES[op](graph, *operands)
    if op in ("sqrt", "sin", "cos", "abs", "exp", "log", "tanh", "floor"):
        return simplify.unary(graph, op, *operands)
    if op in ("<", "<=", "=="):
        return simplify.compare(graph, op, *operands)
    if op in ("and", "or"):
        return simplify.combine(graph, op, *operands)
    if op == "const":
        return graph.constant(*operands)
    return graph.node(op, *operands)


def fresh_carries(source, order, target):
    """New carries for a copy of every loop among the nodes ``order``, by old carry.

    Two loops with one number cannot stand in one program. Outer loops keep lower numbers.
    """
    loops = [loop_of(source, i) for i in order if source.nodes[i][0] == "repeat"]
    image = {}
    for loop in sorted(loops, key=lambda loop: loop.number):
        number = len(target.nodes)
        for k, carry in enumerate(loop.carries):
            image[carry] = target.node("carry", number, k)
    return image


def _needed(graph, roots, values):
    """What ``roots`` depend on other than through ``values``, in evaluation order."""
    nodes, seen, stack = graph.nodes, set(), [r for r in roots if r not in values]
    while stack:
        i = stack.pop()
        if i not in seen:
            seen.add(i)
            if nodes[i][0] not in LEAVES:
                stack.extend(a for a in nodes[i][1:] if a not in values)
    return sorted(seen)
