"""Cost of a graph: operation counts in the book's convention, weighted cost, and depth.

What stands in the body of a loop counts once.
"""

from collections import Counter
from dataclasses import dataclass

from kinetree.expr.calls import callee_of
from kinetree.expr.node import LEAVES

# Cost of an operation relative to an addition, from the throughput of current processors.
WEIGHTS = {
    "const": 0, "input": 0, "carry": 0, "repeat": 0, "final": 0, "callee": 0, "result": 0,
    "/": 8, "sqrt": 8, "sin": 15, "cos": 15, "atan2": 40,
    "exp": 15, "log": 40, "tanh": 25,
}  # fmt: skip


@dataclass(frozen=True)
class OperationCount:
    """Operations by kind, in the convention of RBDA §10.3; prints as ``24m + 18a``.

    Subtractions are additions, sign changes and choices are free, trigonometric functions and
    exponentials (with logarithms and hyperbolic tangents) are kept apart.
    """

    multiplications: int
    additions: int
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    sign_changes: int = 0
    comparisons: int = 0
    exponentials: int = 0

    @property
    def total(self) -> int:
        """Multiplications, additions, divisions and square roots."""
        return self.multiplications + self.additions + self.divisions + self.square_roots

    def __str__(self):
        named = (
            (self.multiplications, "m"), (self.additions, "a"), (self.divisions, "d"),
            (self.square_roots, "r"),
        )  # fmt: skip
        return " + ".join(f"{n}{letter}" for n, letter in named if n) or "0"


def count_operations(graph, roots):
    """The operations that ``roots`` need, each once."""
    kinds = Counter(graph.nodes[i][0] for i in graph.reachable(roots))
    return OperationCount(
        multiplications=kinds["*"],
        additions=kinds["+"] + kinds["-"],
        divisions=kinds["/"],
        square_roots=kinds["sqrt"],
        trigonometric=kinds["sin"] + kinds["cos"] + kinds["atan2"],
        sign_changes=kinds["neg"] + kinds["abs"] + kinds["floor"],
        comparisons=sum(kinds[op] for op in ("<", "<=", "==", "and", "or", "not", "select")),
        exponentials=kinds["exp"] + kinds["log"] + kinds["tanh"],
    )


def cost(graph, roots):
    """Operations that ``roots`` need, weighted by the time they take; an addition is 1."""
    nodes, order = graph.nodes, graph.reachable(roots)
    return cost_of_calls(graph, roots) + sum(WEIGHTS.get(nodes[i][0], 1) for i in order)


def cost_of_calls(graph, roots):
    """The part of it in other kernels, which are called."""
    calls = [i for i in graph.reachable(roots) if graph.nodes[i][0] == "call"]
    return sum(callee_of(graph, i).cost for i in calls)


def depth(graph, roots):
    """Length of the longest chain of operations, each needing the one before."""
    nodes, level = graph.nodes, {}
    for i in graph.reachable(roots):
        op, *operands = nodes[i]
        level[i] = 0 if op in LEAVES else 1 + max(level[a] for a in operands)
    return max((level[i] for i in roots), default=0)
