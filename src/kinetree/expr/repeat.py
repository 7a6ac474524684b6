"""Loops in the graph: a body that is traced once and runs many times, with carried state.

Three operations, whose operands are node numbers like any others:

  ("carry", loop, k)      leaf: the k-th carried value as the body of loop number ``loop`` sees it
  ("repeat", times, *initial, *next, *carries)
                          the loop: every carry starts as its ``initial`` and becomes its ``next``
                          as long as the number of runs done is less than ``times``
  ("final", repeat, carry)
                          the value of a carry when the loop has ended

A node belongs to the innermost loop on whose carries it depends; what depends on none is computed
once, before the loop, wherever it was written. Loops nest; a loop's number is that of the node
that came next when its body began, so that inner loops have higher numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import TraceError
from kinetree.expr.node import LEAVES, Expr


@dataclass(frozen=True)
class RepeatLoop:
    """The parts of a ``repeat`` node."""

    number: int
    times: int
    initial: tuple
    next: tuple
    carries: tuple


def loop_of(graph, node):
    """Parts of a ``repeat`` node: carries, initial and next states, count."""
    _, times, *rest = graph.nodes[node]
    n = len(rest) // 3
    carries = tuple(rest[2 * n :])
    number = graph.nodes[carries[0]][1]
    return RepeatLoop(number, times, tuple(rest[:n]), tuple(rest[n : 2 * n]), carries)


def free_loops(graph, order):
    """Numbers of the loops whose carries each node depends on.

    ``order`` is in order of evaluation. Nodes that depend on no carry are left out.
    """
    free, none, nodes = {}, frozenset(), graph.nodes
    if not any(nodes[i][0] == "carry" for i in order):
        return free
    get = free.get
    for i in order:
        node = nodes[i]
        op = node[0]
        if op in LEAVES:
            if op == "carry":
                free[i] = frozenset(node[1:2])
            continue
        if op == "final":
            inside = get(node[1])
        elif len(node) == 3:  # most have two operands
            inside, other = get(node[1]), get(node[2])
            if inside is None:
                inside = other
            elif other is not None and other is not inside:
                inside = inside | other
        else:
            inside = none.union(*(get(a, none) for a in node[1:]))
            if op == "repeat":
                inside -= {loop_of(graph, i).number}
        if inside:
            free[i] = inside
    return free


def by_scope(graph, order):
    """Nodes by the loop that they belong to; None for those outside all loops."""
    if graph.scoped[0] == order:  # graphs with loops are evaluated many times
        return graph.scoped[1]
    free, scopes = free_loops(graph, order), {}
    if not free:
        return {None: order}
    for i in order:
        if graph.nodes[i][0] != "carry":
            scopes.setdefault(max(free[i]) if i in free else None, []).append(i)
    graph.scoped = order, scopes
    return scopes


def check_scopes(graph, roots, checks):
    """Relevant run-time ``checks``, after an error if a ``root`` is inside a loop.

    Checks inside a loop whose result is used nowhere are left out, like the loop.
    """
    order = graph.reachable([*roots, *(node for node, _ in checks)])
    free = free_loops(graph, order)
    if not free:
        return tuple(checks)
    present = {loop_of(graph, i).number for i in order if graph.nodes[i][0] == "repeat"}
    if any(i in free for i in roots):
        raise TraceError(
            "a value computed inside the body of kinetree.repeat is used outside it, where it has "
            "no single value: make it part of the state that the body returns"
        )
    return tuple(c for c in checks if free.get(c[0], frozenset()) <= present)


# --- building loops ------------------------------------------------------------------------------


def repeat(body: Callable, state: Any, times: Any) -> Any:
    """State after applying ``body`` repeatedly, ``times`` times; traceable.

    On ordinary numbers this is a Python loop. Inside ``@kinetree.kernel`` it becomes a loop in the
    compiled code: ``body`` is traced once, so compile time does not depend on ``times``.

    Args:
        body: takes the state and returns the next one, of the same structure and shapes.
        state: an array or number, or a tuple, list or dict of such, nested as you like.
        times: how often, an int; or a value that is known only when the compiled code runs, such
            as an argument of the kernel. Fractions are rounded up, negative values count as zero.

    Returns:
        The state after the last run, in the structure of ``state``.
    """
    times = times[()] if isinstance(times, np.ndarray) else times
    leaves = _leaves(state)
    done = 0
    while not isinstance(times, Expr) and _graph(leaves) is None:
        if not done < times:
            return state
        state = body(state)
        leaves = _leaves_alike(leaves, state)
        done += 1
    if isinstance(times, Expr):
        start = (0, state)
        return _loop(_counting(body, times), start, times, times.graph)[1]
    if times - done <= 1:
        return _loop_free(body, state, times - done)
    return _loop(body, state, times - done, _graph(leaves))


def _loop_free(body, state, times):
    """State after at most one iteration, without a loop."""
    return body(state) if times > 0 else state


def _counting(body, times):
    """Loop body with a counter, after which the state stays constant."""
    graph = times.graph

    def step(counted):
        count, state = counted
        active = count < times
        ended = ~active  # before the body, whose loops may look at it
        first = len(graph.checks)
        after = _leaves_alike(_leaves(state), body(state))
        # A sample that has ended still runs along with its neighbours; its checks do not count.
        graph.checks[first:] = [
            ((ended | graph.handle(node)).i, *rest) for node, *rest in graph.checks[first:]
        ]
        held = [
            [active.select(a, b) for a, b in zip(new.ravel(), old.ravel(), strict=True)]
            for new, old in zip(after, _leaves(state), strict=True)
        ]
        return count + 1, _rebuild(state, [x for leaf in held for x in leaf])

    return step


def _loop(body, state, times, graph):
    """State after a traced loop, as new traced numbers."""
    leaves = _leaves(state)
    initial = [graph.number(x) for a in leaves for x in a.ravel()]
    if not initial:
        return state
    number = len(graph.nodes)
    carries = [graph.node("carry", number, k) for k in range(len(initial))]
    after = body(_rebuild(state, [graph.handle(c) for c in carries]))
    following = [graph.number(x) for a in _leaves_alike(leaves, after) for x in a.ravel()]
    node = graph.node("repeat", graph.number(times), *initial, *following, *carries)
    return _rebuild(state, [graph.handle(graph.node("final", node, c)) for c in carries])


# --- states: arrays in tuples, lists and dicts -----------------------------------------------


def _leaves(state):
    """Arrays of a nested state, in order."""
    if isinstance(state, dict):
        return [leaf for key in state for leaf in _leaves(state[key])]
    if isinstance(state, (tuple, list)):
        return [leaf for part in state for leaf in _leaves(part)]
    return [np.asarray(state)]


def _rebuild(state, numbers):
    """Nested state with other numbers in its arrays."""
    numbers = iter(numbers)

    def like(part):
        if isinstance(part, dict):
            return {key: like(value) for key, value in part.items()}
        if isinstance(part, (tuple, list)):
            return type(part)(map(like, part))
        array = np.empty(np.shape(part), dtype=object)
        for index in np.ndindex(array.shape):
            array[index] = next(numbers)
        return array if array.shape else array[()]

    return like(state)


def _leaves_alike(leaves, state):
    """Arrays of a state; TraceError unless they have the shapes of ``leaves``."""
    shapes = [a.shape for a in leaves]
    found = _leaves(state)
    if [a.shape for a in found] != shapes:
        raise TraceError(
            f"the body of kinetree.repeat must return a state of the same structure and shapes "
            f"that it gets: expected arrays of shapes {shapes}, got {[a.shape for a in found]}"
        )
    return found


def _graph(leaves):
    """Graph of the first traced number among arrays, or None."""
    for leaf in leaves:
        if leaf.dtype == object:
            for x in leaf.ravel():
                if isinstance(x, Expr):
                    return x.graph
    return None
