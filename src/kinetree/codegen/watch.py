"""Numbers that compiled code checks so that all results are known to be finite.

A number that is not finite stays so through sums and products, and finite numbers of moderate size
cannot overflow a given chain of them. So of inputs and results the fewer need to be watched, unless
a division, root, exponential, logarithm or choice could hide or create infinities on the way.
"""

from dataclasses import dataclass
from math import log10

from kinetree.expr.node import LEAVES

SUMS_AND_PRODUCTS = frozenset(("const", "input", "+", "-", "*", "neg", "sin", "cos"))
_LARGEST = {"float64": 300.0, "float32": 37.0}  # powers of ten that are surely finite
_BOUNDS = (75, 50, 30, 15, 9, 6, 4)  # powers of ten that inputs may be held to


@dataclass(frozen=True)
class WatchedValues:
    """Values of a program that are watched.

    Attributes:
        inputs, results: whether they are looked at.
        bound: inputs beyond this size count as bad, since results might overflow; None for none.
    """

    inputs: bool = True
    results: bool = True
    bound: float | None = None


def what_to_watch(program, dtype) -> WatchedValues:
    """Cheapest choice of inputs or results to check, so that no infinity or NaN goes unnoticed."""
    graph = program.graph
    order = graph.reachable(program.roots)
    if any(graph.nodes[i][0] not in SUMS_AND_PRODUCTS for i in order):
        return WatchedValues()
    inputs = [i for i in order if graph.nodes[i][0] == "input"]
    results = {i for i in program.roots if graph.nodes[i][0] != "const"}
    if len(results) <= len(inputs):
        return WatchedValues(inputs=False)
    for bound in _BOUNDS:
        # Twice the bound, since the code compares squares.
        if max(2 * bound, _largest(graph, order, bound)) < _LARGEST[dtype]:
            return WatchedValues(results=False, bound=10.0**bound)
    return WatchedValues()


def hidden_inputs(program) -> set:
    """Places ``(name, index)`` of inputs that can be infinite or NaN while results are finite.

    That takes a division, in which a divisor that is too large leaves nothing, an exponential or
    hyperbolic tangent, which have limits, or a choice. A sine and a cosine of such an angle are
    NaN, and so is all that is divided by what they enter.
    """
    if program.total:
        return set()
    nodes, found, seen = program.graph.nodes, set(), set()
    waiting = []  # nodes, and whether a NaN would be hidden as well
    for i in program.graph.reachable(program.wanted):
        op, *operands = nodes[i]
        if op == "/":
            waiting.append((operands[1], False))
        elif op in ("exp", "tanh"):
            waiting.append((operands[0], False))
        elif op not in SUMS_AND_PRODUCTS and op not in (
            "carry",
            "sqrt",
            "abs",
            "floor",
            "held",
            "log",
        ):
            waiting += [(a, True) for a in operands if isinstance(a, int)]
    while waiting:
        i, even_nan = waiting.pop()
        if (i, even_nan) in seen:
            continue
        seen.add((i, even_nan))
        op, *operands = nodes[i]
        if op == "input":
            found.add((operands[0], operands[1]))
        elif op not in LEAVES and (even_nan or op not in ("sin", "cos")):
            waiting += [(a, even_nan) for a in operands]
    return found


def _largest(graph, order, bound):
    """Decimal exponent that no value exceeds while inputs stay below ``10**bound``."""
    size = {}
    for i in order:
        op, *operands = graph.nodes[i]
        if op == "input":
            size[i] = bound
        elif op == "const":
            size[i] = log10(abs(operands[0])) if operands[0] else 0.0
        elif op == "*":
            size[i] = size[operands[0]] + size[operands[1]]
        elif op in ("+", "-"):
            size[i] = max(size[operands[0]], size[operands[1]]) + log10(2)
        else:
            size[i] = 0.0 if op in ("sin", "cos") else size[operands[0]]
    return max(size.values(), default=0.0)
