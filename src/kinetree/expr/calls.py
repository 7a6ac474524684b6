"""Calls in the graph: the code of another kernel, instead of a copy of its operations.

Three operations, whose operands are node numbers like any others:

  ("callee", kernel)      leaf: what is called
  ("call", callee, *arguments)
                          the call: one argument for every number of every input, in order
  ("result", call, k)     the k-th number of the results; k is the node of a constant

What is called has ``inputs`` and ``outputs`` with shapes, ``reference(arrays)`` for its meaning,
``constants`` for results that do not depend on its inputs, ``cost``, and ``rates(wrt)`` and
``gradients(wrt)`` for its derivatives, which are called in turn. What it checks at run time counts
as checked by the caller.

Programs are traced with calls for the processor that compiles them; everything else reads programs
without. Which one is traced now is said by ``calls_to``: ``"specialised"`` code, ``"general"`` code
where there is some, or None for no calls at all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from kinetree.errors import TraceError

_TIER: ContextVar[str | None] = ContextVar("tier_of_calls", default=None)


@contextmanager
def calls(tier: str | None) -> Iterator[None]:
    """Context of tracing with calls to code of a tier, or without calls."""
    token = _TIER.set(tier)
    try:
        yield
    finally:
        _TIER.reset(token)


def calls_to() -> str | None:
    """Tier of the kernels that traced code may call; None if it may not call."""
    return _TIER.get()


def call(graph, kernel, arrays) -> tuple[Any, ...]:
    """Traced call of a kernel on arrays of symbols; its results."""
    arguments = [graph.number(x) for a in arrays for x in np.ravel(a)]
    node, results, k = call_node(graph, kernel, arguments), [], 0
    for output in kernel.outputs:
        array = np.empty(output.size, dtype=object)
        for n in range(output.size):
            array[n] = graph.expr(result_node(graph, node, kernel, k))
            k += 1
        results.append(array.reshape(output.shape) if output.shape else array[0])
    return tuple(results)


def call_node(graph, kernel, arguments):
    """Node of a call of a kernel."""
    return graph.node("call", graph.node("callee", kernel), *arguments)


def result_node(graph, node, kernel, k):
    """Node of a call's k-th result number: a constant where it is one."""
    known = kernel.constants.get(k)
    if known is not None:
        return graph.constant(known)
    return graph.node("result", node, graph.constant(k))


def callee_of(graph, node):
    """Kernel that a ``call`` node calls."""
    return graph.nodes[graph.nodes[node][1]][1]


def place_of(graph, result):
    """Index of a ``result`` node among the numbers that a call returns."""
    return int(graph.nodes[graph.nodes[result][2]][1])


def callees(graph, roots) -> list:
    """Kernels that ``roots`` call, each once, in the order of the nodes."""
    return [graph.nodes[i][1] for i in graph.reachable(roots) if graph.nodes[i][0] == "callee"]


# --- meaning -------------------------------------------------------------------------------------


def call_values(kernel, values) -> list:
    """Numbers that a called kernel returns for argument values, each over samples."""
    values = np.broadcast_arrays(*values) if values else []
    batch, arrays, at = np.shape(values[0]) if values else (), [], 0
    for argument in kernel.inputs:
        part = values[at : at + argument.size]
        flat = np.stack(part, axis=-1) if part else np.zeros((*batch, 0))
        arrays.append(flat.reshape(batch + argument.shape))
        at += argument.size
    results = kernel.reference(arrays)
    results = results if isinstance(results, tuple) else (results,)
    flat = [
        np.asarray(r).reshape((*batch, o.size))
        for r, o in zip(results, kernel.outputs, strict=True)
    ]
    return list(np.moveaxis(np.concatenate(flat, axis=-1), -1, 0))


# --- derivatives ---------------------------------------------------------------------------------


def _inputs(kernel, arguments):
    """Arguments of a call grouped by the kernel's inputs."""
    at = 0
    for argument in kernel.inputs:
        yield arguments[at : at + argument.size]
        at += argument.size


def _derive(kernel, what, wrt):
    """Kernel of rates or gradients of a called kernel; an error if there is none."""
    found = getattr(kernel, what)(wrt)
    if found is None:  # of code by loops
        raise TraceError(f"there is no code for every robot for the {what} of {kernel.name}")
    return found


class Rates:
    """Forward accumulation through calls; one more call for every direction."""

    def __init__(self, graph):
        self.graph, self._calls = graph, {}

    def of(self, result, copy, rates):
        """Rates of a call's result node, by direction.

        Args:
            result: its node.
            copy: the node of a copy of its call, for arguments that were copied.
            rates: rates of nodes by direction.
        """
        graph, node = self.graph, self.graph.nodes[result][1]
        found = self._calls.get(node)
        if found is None:
            found = self._calls[node] = self._rates(node, copy, rates)
        kernel, by_direction = found
        k = place_of(graph, result)
        return {d: result_node(graph, i, kernel, k) for d, i in by_direction.items()}

    def _rates(self, node, copy, rates):
        """Kernel of a call's rates, and the node of its call for each direction."""
        graph, none = self.graph, {}
        kernel, zero = callee_of(graph, node), graph.constant(0.0)
        arguments = graph.nodes[node][2:]
        groups = list(_inputs(kernel, arguments))
        wrt = tuple(n for n, g in enumerate(groups) if any(rates.get(a) for a in g))
        directions = dict.fromkeys(d for a in arguments for d in rates.get(a, none))
        if not directions:
            return None, {}
        derived, moving = _derive(kernel, "rates", wrt), [a for n in wrt for a in groups[n]]
        given = graph.nodes[copy][2:]
        found = {}
        for d in directions:
            along = [rates.get(a, none).get(d, zero) for a in moving]
            found[d] = call_node(graph, derived, [*given, *along])
        return derived, found


def adjoints(graph, node, weights, moved):
    """Adjoint contributions of a call's arguments, ``(argument, root, node)``, in reverse mode.

    Args:
        graph: the graph.
        node: the node of the call.
        weights: by root, from the number of a result to its adjoint.
        moved: the nodes whose adjoints matter.
    """
    kernel, zero = callee_of(graph, node), graph.constant(0.0)
    arguments = graph.nodes[node][2:]
    groups = list(_inputs(kernel, arguments))
    wrt = tuple(n for n, g in enumerate(groups) if any(a in moved for a in g))
    derived, targets = _derive(kernel, "gradients", wrt), [a for n in wrt for a in groups[n]]
    size = sum(o.size for o in kernel.outputs)
    for root, row in weights.items():
        given = [row.get(k, zero) for k in range(size)]
        gradient = call_node(graph, derived, [*arguments, *given])
        for k, a in enumerate(targets):
            if a in moved:
                yield a, root, result_node(graph, gradient, derived, k)
