"""Schedule a graph: blocks of statements small enough for a compiler, and loops over them.

Three decisions, each a function: which products fuse with the addition that consumes them, where
the straight line is cut into blocks (compile time grows faster than the length of a function), and
which values cross from block to block through a workspace.

Every value that a loop carries has its own workspace slot. A ``transfer`` at the end of the
block before the loop fills the slots, one at the end of the last block of the body replaces them
all at once, and whatever reads a carry, or its final value after the loop, reads the slot.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kinetree.expr.repeat import free_loops, loop_of


@dataclass(frozen=True)
class Repeat:
    """A loop among the statements of a program, with its own statements."""

    node: int
    loop: Any
    body: list
    targets: tuple = ()
    op: str = "repeat"

    @property
    def operands(self):
        """All nodes that the loop uses, those in its body included."""
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
    """Run ``steps`` (numbers of blocks, and loops) again and again."""

    times: int | None
    """How often, an int; None when it is known only at run time."""
    slot: int | None
    """Workspace slot that then holds it, for every lane; the slowest lane decides."""
    steps: tuple
    """What to run."""


@dataclass
class WorkspaceSlots:
    """Workspace slots of carried values, by carry, and of run-time counts, by loop."""

    first: int = 0
    slots: dict = field(default_factory=dict)

    @property
    def end(self) -> int:
        """First free slot after all that are taken."""
        return self.first + len(self.slots)

    def of(self, node):
        """Workspace slot of a node, assigned when it is new."""
        return self.slots.setdefault(node, self.end)


def nest(graph, statements):
    """Statements with the bodies of loops gathered in ``Repeat`` statements."""
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
    """Cut statements into pieces of about ``size``, and the steps that run the pieces.

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
    """Number of runs of a loop, a fraction rounded up; not below zero."""
    return max(0, int(-(-count // 1)))


def spans(steps):
    """First and last block number of every loop."""
    for step in steps:
        if isinstance(step, LoopStep):
            inner = list(_blocks(step.steps))
            yield inner[0], inner[-1]
            yield from spans(step.steps)


def _blocks(steps):
    """Block numbers of all steps, those in loops included."""
    for step in steps:
        if isinstance(step, LoopStep):
            yield from _blocks(step.steps)
        else:
            yield step


_NOT_COMPUTED = frozenset(("const", "carry", "callee"))
BLOCK_SIZE = 500  # statements; 250 to 1000 compile and run alike, see benchmarks/results.md


class Statement(NamedTuple):
    """``targets = op(*operands)`` on node numbers.

    Besides the operations of the graph there are ``fma`` and ``fms``, ``c + a b`` and ``c - a b``
    of operands ``(a, b, c)``, and ``sincos``, with two targets; and ``transfer`` (see ``repeat``).
    The targets of a ``call`` are those of its results that are needed, its operands the arguments.
    """

    targets: tuple
    op: str
    operands: tuple


@dataclass(frozen=True)
class Block:
    """Statements in order, the values they need from earlier blocks and leave for later ones."""

    statements: tuple
    loads: dict
    stores: dict


@dataclass(frozen=True)
class BlockSchedule:
    """Blocks in order and the number of workspace slots they share.

    ``angles`` are inputs whose sine and cosine are computed before the first block, ``angle_group``
    at a time: the first slots hold the sines of the first group, then its cosines, and so on.
    ``steps`` are the numbers of the blocks to run, with ``LoopStep``s among them for loops.
    """

    blocks: tuple
    slots: int
    angles: tuple = ()
    angle_group: int = 1
    steps: tuple = ()


def schedule(graph, roots, block_size=BLOCK_SIZE, angle_group=1):
    """Schedule of a graph: blocks of statements, loops, and slots for values between blocks."""
    order = [i for i in graph.reachable(roots) if graph.nodes[i][0] not in _NOT_COMPUTED]
    statements = statements_of(graph, order, roots)
    results = frozenset(roots)
    angles = [s for s in statements if _is_angle(graph, s, results)]
    statements = nest(graph, [s for s in statements if not _is_angle(graph, s, results)])
    statements = inputs_at_first_use(statements, roots)
    group = min(angle_group, 1 << max(len(angles) - 1, 0).bit_length())  # no larger than needed
    fixed = _angle_slots(angles, group)
    carried = WorkspaceSlots(first=2 * group * -(-len(angles) // group))
    pieces, steps = cut(graph, statements, block_size, carried, results)
    fixed.update(carried.slots)
    blocks, slots = _allocate(pieces, steps, fixed, carried.end)
    return BlockSchedule(blocks, slots, tuple(s.operands[0] for s in angles), group, steps)


def _is_angle(graph, s, results):
    """Whether a statement is the sine or cosine of an input and no result itself."""
    if s.op != "sincos" or graph.nodes[s.operands[0]][0] != "input":
        return False
    return results.isdisjoint(s.targets)


def statements_of(graph, order, roots):
    """Statements for nodes in order: products fused into FMA, sines paired with cosines."""
    nodes, known = graph.nodes, graph.known
    wanted, fused = set(order), _fusible(graph, order, roots)
    statements, done, results = [], set(fused.values()), {}
    for i in order:
        if nodes[i][0] == "result":
            results.setdefault(nodes[i][1], []).append(i)
            done.add(i)
    for i in order:
        if i in done:
            continue
        node = nodes[i]
        op, product = node[0], fused.get(i)
        if product is not None:
            _, a, b = nodes[product]
            c = node[1] if node[2] == product else node[2]
            statements.append(Statement((i,), "fma" if op == "+" else "fms", (a, b, c)))
        elif op in ("sin", "cos"):
            pair = tuple(known.get((f, node[1])) for f in ("sin", "cos"))
            targets = tuple(t if t in wanted else None for t in pair)
            done.update(targets)
            statements.append(Statement(targets, "sincos", node[1:]))
        elif op == "call":
            statements.append(Statement(tuple(results[i]), "call", node[2:]))
        else:
            reads = () if op == "input" else node[2:] if op == "final" else node[1:]
            statements.append(Statement((i,), op, reads))
    return statements


def _fusible(graph, order, roots):
    """For each sum or difference a product that it can absorb as FMA, used nowhere else."""
    nodes, uses = graph.nodes, graph.use_counts(order, roots)
    fused = {}
    for i in order:
        node = nodes[i]
        op = node[0]
        if op == "+" or op == "-":
            _, a, b = node
            if uses[b] == 1 and nodes[b][0] == "*":
                fused[i] = b
            elif op == "+" and uses[a] == 1 and nodes[a][0] == "*":
                fused[i] = a
    return fused


def inputs_at_first_use(statements, roots, replaced=None):
    """Statements with loads of inputs moved down to their first use.

    ``replaced``: for a target the inputs whose places get its value, which must be loaded before.
    """
    moved, pending = [], {s.targets[0]: s for s in statements if s.op == "input"}
    for s in statements:
        if s.op == "input":
            continue
        if pending:
            late = [i for t in s.targets for i in replaced.get(t, ())] if replaced else ()
            moved += [pending.pop(a) for a in (*s.operands, *late) if a in pending]
        moved.append(s)
    return moved + [pending[i] for i in dict.fromkeys(roots) if i in pending]  # passed through


def _angle_slots(angles, group):
    """Workspace slots of sines and cosines, each group of sines before its cosines."""
    slots = {}
    for n, s in enumerate(angles):
        base, k = divmod(n, group)
        for part, target in enumerate(s.targets):
            slots[target] = (2 * base + part) * group + k
    slots.pop(None, None)
    return slots


def _allocate(pieces, steps, fixed, slots):
    """Assign workspace slots to values that outlive their block; slots are reused.

    ``fixed`` slots, below number ``slots``, are given. What a loop reads from outside stays to its
    end. Returns the blocks and the number of slots.
    """
    home = {t: b for b, piece in enumerate(pieces) for s in piece for t in s.targets}
    loops, last_read = list(spans(steps)), {}
    for b, piece in enumerate(pieces):
        for s in piece:
            for a in s.operands:
                h = home.get(a, b)
                if h != b:
                    ends = [end for start, end in loops if h < start <= b <= end] if loops else ()
                    last_read[a] = max(b, last_read.get(a, b), *ends)
    slot, free, expiring, blocks = dict(fixed), [], {}, []
    for b, piece in enumerate(pieces):
        free.extend(slot[i] for i in expiring.get(b, ()))
        stores = {}
        for t in (t for s in piece for t in s.targets if t in last_read):
            if free:
                slot[t] = free.pop()
            else:
                slot[t], slots = slots, slots + 1
            stores[t] = slot[t]
            expiring.setdefault(last_read[t] + 1, []).append(t)
        loads = {a: slot[a] for s in piece for a in s.operands if a in fixed or home.get(a, b) != b}
        blocks.append(Block(tuple(piece), loads, stores))
    return tuple(blocks), slots
