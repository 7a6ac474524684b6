"""Loops in a schedule: which statements belong to which body, and where carried values live.

Every carried value has a workspace slot of its own. A ``transfer`` at the end of the block before
the loop fills the slots, one at the end of the last block of the body replaces them all at once,
and whatever reads a carry, or its final value after the loop, reads the slot.
"""

from dataclasses import dataclass, field
from typing import Any

from kinetree.expr.repeat import free_loops, loop_of


@dataclass(frozen=True)
class Repeat:
    """A loop among the statements of a program, with statements of its own."""

    node: int
    loop: Any
    body: list
    targets: tuple = ()
    op: str = "repeat"

    @property
    def operands(self):
        """Every value that the loop mentions, its own included."""
        inside = (a for s in self.body for a in s.operands)
        return (self.loop.times, *self.loop.initial, *self.loop.next, *inside)


@dataclass(frozen=True)
class Transfer:
    """``slots = values``, all at once."""

    operands: tuple
    slots: tuple
    targets: tuple = ()
    op: str = "transfer"


@dataclass(frozen=True)
class LoopStep:
    """Run ``steps`` (numbers of blocks, and loops) again and again.

    Attributes:
        times: how often, an int; None when it is known only at run time.
        slot: workspace slot that then holds it, for every lane; the slowest lane decides.
        steps: what to run.
    """

    times: int | None
    slot: int | None
    steps: tuple


@dataclass
class Places:
    """Workspace slots of carried values, by carry, and of run-time counts, by loop."""

    first: int = 0
    slots: dict = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The first slot that is not taken."""
        return self.first + len(self.slots)

    def of(self, node):
        """The slot of a node, new or known."""
        return self.slots.setdefault(node, self.end)


def nest(graph, statements):
    """The statements with those of loop bodies moved into a ``Repeat`` each."""
    if not any(s.op == "repeat" for s in statements):
        return statements
    roots = [t for s in statements for t in (*s.targets, *s.operands) if t is not None]
    free = free_loops(graph, graph.reachable(roots))
    top, bodies = [], {}
    for s in statements:
        target = next(t for t in s.targets if t is not None)
        inside = free.get(target)
        if s.op == "repeat":
            loop = loop_of(graph, target)
            s = Repeat(target, loop, bodies.setdefault(loop.number, []))
        home = bodies.setdefault(max(inside), []) if inside else top
        home.append(s)
    return top


_RESULT = 10  # what writing a result counts: LLVM's time grows with the square of the stores


def cut(graph, statements, size, places, results=frozenset()):
    """Pieces of at most about ``size`` statements, one at least, and the steps that run them.

    Statements with a target among ``results`` count more: they write to memory.
    """
    pieces = []

    def steps_of(statements):
        steps, piece, weight = [], None, 0
        for s in statements:
            if piece is None or weight >= size:
                piece, weight = [], 0
                steps.append(len(pieces))
                pieces.append(piece)
            if s.op != "repeat":
                piece.append(s)
                weight += _RESULT if not results.isdisjoint(s.targets) else 1
                weight += len(s.targets) + len(s.operands) if s.op == "call" else 0
                continue
            loop, slots = s.loop, tuple(map(places.of, s.loop.carries))
            op, count = graph.nodes[loop.times][:2]
            if op == "const":
                piece.append(Transfer(loop.initial, slots))
                times, slot = _whole(count), None
            else:
                times, slot = None, places.of(s.node)
                piece.append(Transfer((*loop.initial, loop.times), (*slots, slot)))
            inner = steps_of([*s.body, Transfer(loop.next, slots)])
            steps.append(LoopStep(times, slot, inner))
            piece = None
        return tuple(steps)

    steps = steps_of(statements)
    return (pieces, steps) if pieces else ([[]], (0,))


def _whole(count):
    """The number of runs: a fraction counts as a whole."""
    return max(0, int(-(-count // 1)))


def spans(steps):
    """First and last block of every loop."""
    for step in steps:
        if isinstance(step, LoopStep):
            inner = list(_blocks(step.steps))
            yield inner[0], inner[-1]
            yield from spans(step.steps)


def _blocks(steps):
    for step in steps:
        if isinstance(step, LoopStep):
            yield from _blocks(step.steps)
        else:
            yield step
