"""A program: named inputs and outputs with shapes, and the graph between them, regrouped.

Sums are regrouped for processors with fused multiply-add. ``(a b - c d) + (e f - g h)`` takes five
instructions as it is grouped here and four when the terms are added one after the other, because
each product but the first then merges with the addition that follows it. The pass flattens sums
whose parts nothing else needs and adds each term as soon as it is there, which frees the registers
of its factors: about a sixth fewer instructions in the recursive algorithms. Rounding changes as it
does when any sum is written in another order. Reciprocals that serve a single quotient become
divisions again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from kinetree.expr.calls import callees, calls, calls_to
from kinetree.expr.counting import cost
from kinetree.expr.node import LEAVES, Graph
from kinetree.expr.refusals import explain_trace_errors
from kinetree.expr.repeat import check_scopes, free_loops

_SUMS = frozenset("+-")


def regroup(graph, roots):
    """Graph with the sums behind ``roots`` reordered for FMA, and the new numbers of the roots.

    Conditions that are checked at run time must be among the roots. Time is linear in the number
    of operations, but for the sorting of the terms of long sums.
    """
    nodes, order = graph.nodes, graph.reachable(roots)
    uses = graph.use_counts(order, roots)
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
        """Add the next term of a sum to its running total."""
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
        """Node of the total after all terms have been added."""
        return new.node("neg", self.total) if self.negative else self.total


_node_number = itemgetter(1)


def _parts(graph, order, uses):
    """Nodes of sums that are operands of one other sum only, in the same loop."""
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
    """Terms of a sum with their signs, in the order in which they were traced."""
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
    """Copy of a node; a product by an otherwise unused reciprocal becomes a quotient."""
    if len(node) == 3:
        op, a, b = node
        if op == "*":
            for x, r in ((a, b), (b, a)):
                if nodes[r][0] == "/" and uses[r] == 1 and nodes[nodes[r][1]] == ("const", 1.0):
                    return "/", at[x], at[nodes[r][2]]
        return op, at[a], at[b]
    return node[0], *[at[a] for a in node[1:]]


@dataclass(frozen=True)
class Argument:
    """A named array that goes in or comes out, per sample."""

    name: str
    shape: tuple

    @property
    def size(self) -> int:
        """Number of scalars in the argument's array."""
        return prod(self.shape)


@dataclass(frozen=True)
class Program:
    """Straight-line code: ``outputs`` as functions of ``inputs``."""

    name: str
    """What is computed, for listings and error messages."""
    inputs: tuple
    """Arguments in call order."""
    outputs: tuple
    """Results in order."""
    graph: Graph
    """The expressions."""
    roots: tuple
    """Node number of every scalar of every output, in order."""
    checks: tuple = field(default=())
    """Conditions that must hold at run time, with what to say when one does not."""
    total: bool = False
    """Whether results are meant for inputs that are not finite, too."""
    warnings: tuple = ()
    """Warnings that tracing gave: pairs of a name in ``kinetree.errors`` and a message."""

    @property
    def wanted(self) -> tuple:
        """Nodes of all results, then of the conditions that are checked."""
        return (*self.roots, *(node for node, *_ in self.checks))


_NOTED: ContextVar[dict | None] = ContextVar("warnings_while_tracing", default=None)


@contextmanager
def noting() -> Iterator[dict]:
    """Context that collects warnings passed to ``note`` while a program is traced, as dict keys."""
    found: dict = {}
    token = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(token)
        note(found)


def note(warnings):
    """Record warnings with the program that is being traced."""
    found = _NOTED.get()
    if found is not None:
        found.update(dict.fromkeys(warnings))


def trace(function, inputs, name=None):
    """Trace a Python function on symbolic inputs; the program of the operations it performs.

    Args:
        function: takes one array per input and returns an array or a tuple of arrays.
        inputs: ``Argument``s.
        name: name of the program.
    """
    graph = Graph()
    symbols = [symbols_of(graph, argument) for argument in inputs]
    with explain_trace_errors():
        results = function(*symbols)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [np.asarray(r, dtype=object) for r in results]
    outputs = tuple(Argument(f"out{k}", a.shape) for k, a in enumerate(arrays))
    roots = tuple(graph.number(x) for a in arrays for x in a.ravel())
    graph.forget_handles()
    return Program(
        name or getattr(function, "__name__", "program"),
        tuple(inputs),
        outputs,
        graph,
        roots,
        check_scopes(graph, roots, graph.checks),
    )


def calls_of(program):
    """Kernels that a program calls."""
    return callees(program.graph, program.wanted)


class Traced:
    """A ``make_program`` for a kernel whose program has to be traced before the kernel is made.

    Args:
        make: traces it, with the calls that are wanted or without.
        tier: of the kernels that it may call the first time.

    Attributes:
        program: what was traced the first time; other ones follow when they are wanted.
    """

    def __init__(self, make, tier="specialised"):
        self._make, self._found = make, {}
        with calls(tier):
            self.program = self()

    def __call__(self):
        """The program with the calls that are wanted now."""
        found = self._found.get(calls_to())
        if found is None:
            found = self._make()
            tiers = (None, "specialised", "general") if not calls_of(found) else (calls_to(),)
            for tier in tiers:
                self._found.setdefault(tier, found)
        return found


def cheapest(programs):
    """Program with the least cost: the weighted number of operations."""
    return min(programs, key=lambda program: cost(program.graph, program.roots))


def regroup_sums(program):
    """Program with its sums reordered to suit fused multiply-add."""
    graph, roots = regroup(program.graph, program.wanted)
    n = len(program.roots)
    graph.checks = [(i, *rest) for i, (_, *rest) in zip(roots[n:], program.checks, strict=True)]
    return replace(program, graph=graph, roots=tuple(roots[:n]), checks=tuple(graph.checks))


def symbols_of(graph, argument):
    """Array of symbolic inputs of a graph for an argument, in its shape."""
    array = np.empty(argument.shape, dtype=object)
    for index in np.ndindex(argument.shape):
        array[index] = graph.input(argument.name, index)
    return array
