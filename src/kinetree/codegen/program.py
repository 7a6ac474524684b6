"""A program: named inputs and outputs with shapes, and the graph between them."""

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from kinetree.expr.calls import callees, calls, calls_to
from kinetree.expr.counting import cost
from kinetree.expr.node import Graph
from kinetree.expr.refusals import explained
from kinetree.expr.regroup import regroup
from kinetree.expr.repeat import check_scopes


@dataclass(frozen=True)
class Argument:
    """A named array that goes in or comes out, per sample."""

    name: str
    shape: tuple

    @property
    def size(self) -> int:
        """Number of scalars."""
        return prod(self.shape)


@dataclass(frozen=True)
class Program:
    """Straight-line code: ``outputs`` as functions of ``inputs``.

    Attributes:
        name: what is computed, for listings and error messages.
        inputs: arguments in call order.
        outputs: results in order.
        graph: the expressions.
        roots: node number of every scalar of every output, in order.
        checks: conditions that must hold at run time, with what to say when one does not.
    """

    name: str
    inputs: tuple
    outputs: tuple
    graph: Graph
    roots: tuple
    checks: tuple = field(default=())

    @property
    def wanted(self) -> tuple:
        """All nodes that are needed: the roots, then the conditions that are checked."""
        return (*self.roots, *(node for node, *_ in self.checks))


def trace(function, inputs, name=None):
    """Run ``function`` on symbols for its ``inputs`` and keep what it does.

    Args:
        function: takes one array per input and returns an array or a tuple of arrays.
        inputs: ``Argument``s.
        name: name of the program.
    """
    graph = Graph()
    symbols = [symbols_of(graph, argument) for argument in inputs]
    with explained():
        results = function(*symbols)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [np.asarray(r, dtype=object) for r in results]
    outputs = tuple(Argument(f"out{k}", a.shape) for k, a in enumerate(arrays))
    roots = tuple(graph.number(x) for a in arrays for x in a.ravel())
    return Program(
        name or getattr(function, "__name__", "program"),
        tuple(inputs), outputs, graph, roots, check_scopes(graph, roots, graph.checks),
    )  # fmt: skip


def calls_of(program):
    """The kernels that a program calls."""
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
    """The program with the least weighted number of operations."""
    return min(programs, key=lambda program: cost(program.graph, program.roots))


def regrouped(program):
    """The same program with its sums in the order that suits fused multiply-add best."""
    graph, roots = regroup(program.graph, program.wanted)
    n = len(program.roots)
    graph.checks = [(i, *rest) for i, (_, *rest) in zip(roots[n:], program.checks, strict=True)]
    return replace(program, graph=graph, roots=tuple(roots[:n]), checks=tuple(graph.checks))


def symbols_of(graph, argument):
    """The inputs of a graph that an argument consists of, in its shape."""
    array = np.empty(argument.shape, dtype=object)
    for index in np.ndindex(argument.shape):
        array[index] = graph.input(argument.name, index)
    return array
