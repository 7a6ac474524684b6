"""Regrouping sums for processors with fused multiply-add.

``(a b - c d) + (e f - g h)`` takes five instructions as it is grouped here and four when the terms
are added one after the other, because each product but the first then merges with the addition
that follows it. The pass flattens sums whose parts nothing else needs and adds each term as soon as
it is there, which frees the registers of its factors: about a sixth fewer instructions in the
recursive algorithms. Rounding changes as it does when any sum is written in another order.
Reciprocals that serve a single quotient become divisions again.
"""

from operator import itemgetter
from typing import Any

from kinetree.expr.node import LEAVES, Graph
from kinetree.expr.repeat import free_loops

_SUMS = frozenset("+-")


def regroup(graph, roots):
    """A new graph in which the sums behind ``roots`` are regrouped, and the numbers of the roots.

    Conditions that are checked at run time must be among the roots. Time is linear in the number
    of operations, but for the sorting of the terms of long sums.
    """
    nodes, order = graph.nodes, graph.reachable(roots)
    uses = _use_counts(nodes, order, roots)
    parts = _parts(graph, order, uses)
    sums = {
        i: _Sum(nodes, i, parts, uses) for i in order if nodes[i][0] in _SUMS and i not in parts
    }
    waiting = {}  # from a term to the sums that can go on once it is there
    for it in sums.values():
        latest = -1
        for _, x in it.terms:  # a term can be added once it and those before it are there
            if x > latest:
                latest = x
            waiting.setdefault(latest, []).append(it)
    new = Graph()
    known, append, at = new.known, new.append, [-1] * len(nodes)
    for i in order:
        if i in parts:
            continue
        it = sums.get(i)
        if it is not None:
            at[i] = it.result(new)
        else:
            node = nodes[i]
            key = node if node[0] in LEAVES else _operation(nodes, node, at, uses)
            found = known.get(key)
            at[i] = append(key) if found is None else found
        for it in waiting.get(i, ()):
            it.add_next(new, at)
    return new, [at[i] for i in roots]


class _Sum:
    """Terms of a sum, and how far the adding has come."""

    __slots__ = ("done", "negative", "terms", "total")

    def __init__(self, nodes, i, parts, uses):
        terms = _terms(nodes, i, parts)
        positive = [term for term in terms if term[0] > 0]
        self.negative = not positive
        if self.negative:
            positive = terms = [(1, x) for _, x in terms]
        # To begin with, a term that cannot merge: a product that nothing else needs would.
        alone = [term for term in positive if nodes[term[1]][0] != "*" or uses[term[1]] > 1]
        first = (alone or positive)[0]
        self.terms = [first, *(term for term in terms if term is not first)]
        self.done = 0
        self.total: Any = None

    def add_next(self, new, at):
        """Add the next term, which is there now."""
        sign, x = self.terms[self.done]
        total, x = self.total, at[x]
        if self.done == 0:
            self.total = x
        elif sign < 0:
            self.total = new.node("-", total, x)
        else:
            self.total = new.node("+", total, x) if total < x else new.node("+", x, total)
        self.done += 1

    def result(self, new):
        """The total, once all terms have been added."""
        return new.node("neg", self.total) if self.negative else self.total


_node_number = itemgetter(1)


def _use_counts(nodes, order, roots):
    uses = [0] * len(nodes)
    for i in order:
        node = nodes[i]
        if node[0] not in LEAVES:
            for a in node[1:]:
                uses[a] += 1
    for i in roots:
        uses[i] += 1
    return uses


def _parts(graph, order, uses):
    """Sums that are needed by one other sum only, in the same loop."""
    nodes, parts = graph.nodes, set()
    loops = free_loops(graph, order)
    for i in order:
        node = nodes[i]
        if node[0] in _SUMS:
            for a in node[1:]:
                if uses[a] == 1 and nodes[a][0] in _SUMS and loops.get(a) == loops.get(i):
                    parts.add(a)
    return parts


def _terms(nodes, i, parts):
    """Terms of a sum with their signs, in the order of their nodes."""
    op, a, b = nodes[i]
    if a not in parts and b not in parts:  # most have two
        first, second = (1, a), (1 if op == "+" else -1, b)
        return [first, second] if b >= a else [second, first]
    terms, stack = [], [(1, i)]
    while stack:
        sign, x = stack.pop()
        if x == i or x in parts:
            op, a, b = nodes[x]
            stack += [(sign, a), (sign if op == "+" else -sign, b)]
        else:
            terms.append((sign, x))
    return sorted(terms, key=_node_number)


def _operation(nodes, node, at, uses):
    """The node again, with a product by a reciprocal of its own as a quotient."""
    if len(node) == 3:
        op, a, b = node
        if op == "*":
            for x, r in ((a, b), (b, a)):
                if nodes[r][0] == "/" and uses[r] == 1 and nodes[nodes[r][1]] == ("const", 1.0):
                    return "/", at[x], at[nodes[r][2]]
        return op, at[a], at[b]
    return node[0], *[at[a] for a in node[1:]]
