"""A program with many results as several programs that leave their results in a workspace.

Of the results of a robot each depends on few joints. Those that depend on the same ones have most
of their history in common: they are computed together, limb by limb, the trunk after its limbs.
What a later part needs of an earlier one is left for it in the workspace, too, or computed again
where its history is short. A last program puts all results into their places.
"""

from dataclasses import dataclass, replace

from kinetree.codegen.program import Argument, Program
from kinetree.codegen.watch import hidden_inputs
from kinetree.expr.node import LEAVES, Graph

__all__ = ["LEFT", "WORK", "Part", "Parts", "in_parts"]

WORK, LEFT = "work", "left"
_SHORT = 60  # operations of a history that cost less than a number written and read


@dataclass(frozen=True)
class Part:
    """Some of the results.

    Attributes:
        program: from the inputs of the whole and the workspace ``WORK`` to one output ``LEFT``.
        slots: places in the workspace of what it leaves.
        status: place of what is NaN where something is wrong with a sample, if that can be.
    """

    program: Program
    slots: tuple
    status: int | None


@dataclass(frozen=True)
class Parts:
    """A whole program.

    Attributes:
        parts: in the order in which they must run.
        assembly: from the workspace to the results of the whole.
        watched: places in the workspace that are NaN where something is wrong.
        slots: numbers of a sample in the workspace.
    """

    parts: tuple
    assembly: Program
    watched: tuple
    slots: int


def in_parts(program, most) -> Parts:
    """A program without loops in parts of about so many operations at most."""
    return _Cut(program, most).parts()


@dataclass
class _Share:
    """What one part computes, as nodes of the whole program."""

    roots: list
    computed: set
    loaded: set

    @classmethod
    def empty(cls):
        return cls([], set(), set())


class _Cut:
    def __init__(self, program, most):
        self.program, self.most = program, most
        self.nodes = program.graph.nodes
        self.home, self.short = {}, {}  # the share that computes a node; whether it is cheap

    def parts(self):
        shares = self._shares()
        wanted = set(self.program.roots).union(*(s.loaded for s in shares))
        slots, places, statuses = 0, {}, []
        drafts = []
        for share in shares:
            left = [i for i in [*share.roots, *sorted(share.computed)] if i in wanted]
            left = [i for i in dict.fromkeys(left) if i not in places]
            places.update((i, slots + k) for k, i in enumerate(left))
            slots += len(left)
            part = self._program(share, left, places)
            status = None
            if part.checks or hidden_inputs(part):
                status, slots = slots, slots + 1
                statuses.append(status)
            drafts.append(Part(part, tuple(places[i] for i in left), status))
        inputs = (*self.program.inputs, Argument(WORK, (slots,)))
        found = [replace(d, program=replace(d.program, inputs=inputs)) for d in drafts]
        return Parts(tuple(found), self._assembly(places, inputs), tuple(statuses), slots)

    # --- who computes what -----------------------------------------------------------------------

    def _shares(self):
        """Families one after the other, put together as long as they are not too many."""
        shares, share = [], _Share.empty()
        for family in self._families():
            whole, _ = self._needs(family, share, len(shares))
            begun = [family] if len(whole) <= self.most else [[root] for root in family]
            for roots in begun:
                computed, loaded = self._needs(roots, share, len(shares))
                if share.roots and len(share.computed) + len(computed) > self.most:
                    shares.append(share)
                    share = _Share.empty()
                    computed, loaded = self._needs(roots, share, len(shares))
                share.roots += roots
                share.computed |= computed
                share.loaded |= loaded
                self.home.update(dict.fromkeys(computed - self.home.keys(), len(shares)))
        return [*shares, share]

    def _needs(self, roots, share, number):
        """What must be computed for some roots in a share, and loaded."""
        computed, loaded, waiting = set(), set(), list(roots)
        while waiting:
            i = waiting.pop()
            if i in computed or i in share.computed or i in loaded or i in share.loaded:
                continue
            if self.home.get(i, number) != number and not self._is_short(i):
                loaded.add(i)
            elif self.nodes[i][0] not in LEAVES:
                computed.add(i)
                waiting += self.nodes[i][1:]
        return computed, loaded

    def _is_short(self, i):
        """Whether a value has a history of few operations."""
        if i not in self.short:
            history, waiting = set(), [i]
            while waiting and len(history) <= _SHORT:
                k = waiting.pop()
                if k not in history and self.nodes[k][0] not in LEAVES:
                    history.add(k)
                    waiting += self.nodes[k][1:]
            self.short[i] = len(history) <= _SHORT
        return self.short[i]

    def _families(self):
        """Results and checks that belong together, what a family depends on before it."""
        checks = [node for node, *_ in self.program.checks]
        roots = [i for i in self.program.roots if self.nodes[i][0] != "const"]
        groups, depends = {}, self._dependencies([*roots, *checks])
        for i in dict.fromkeys([*checks, *roots]):
            groups.setdefault(depends[i], []).append(i)
        families, waiting, inner = [], [None], _inner_sets(list(groups))
        while waiting:  # backwards: a set before what is part of it
            s = waiting.pop()
            all_of_it = [i for t in _with_inner(s, inner) for i in groups.get(t, ())]
            if s is not None and len(self._needs(all_of_it, _Share.empty(), 0)[0]) <= self.most:
                families.append(all_of_it)
            else:
                families.append(groups.get(s, []))
                waiting += inner[s]
        return families[::-1]

    def _dependencies(self, roots):
        """For each node the inputs that it depends on, as bits."""
        found, bits = {}, 0
        for i in self.program.graph.reachable(roots):
            op, *operands = self.nodes[i]
            if op == "input":
                found[i], bits = 1 << bits, bits + 1
                continue
            found[i] = 0
            if op not in LEAVES:
                for a in operands:
                    found[i] |= found[a]
        return found

    # --- programs --------------------------------------------------------------------------------

    def _program(self, share, left, places):
        """The program of a share."""
        leaves = {
            a
            for i in share.computed
            for a in self.nodes[i][1:]
            if a not in share.computed and a not in share.loaded
        }
        needed = share.computed | share.loaded | leaves | set(share.roots)
        graph, number = Graph(), {}
        for i in sorted(needed):  # an order in which they can be computed
            op, *operands = self.nodes[i]
            if i in share.loaded:
                number[i] = graph.node("input", WORK, (places[i],))
            elif op in LEAVES:
                number[i] = graph.node(op, *operands)
            else:
                number[i] = graph.node(op, *(number[a] for a in operands))
        own = set(share.roots)
        checks = tuple((number[i], *rest) for i, *rest in self.program.checks if i in own)
        graph.checks = list(checks)
        return replace(
            self.program,
            outputs=(Argument(LEFT, (len(left),)),), graph=graph,
            roots=tuple(number[i] for i in left), checks=checks,
        )  # fmt: skip

    def _assembly(self, places, inputs):
        graph = Graph()
        roots = [
            graph.node("input", WORK, (places[i],)) if i in places else graph.node(*self.nodes[i])
            for i in self.program.roots
        ]
        return replace(self.program, inputs=inputs, graph=graph, roots=tuple(roots), checks=())


def _inner_sets(sets):
    """For each set, as bits, the largest ones within it and no smaller one; None has the others."""
    sets = sorted(sets, key=lambda s: (s.bit_count(), s))
    inner = {s: [] for s in (*sets, None)}
    for k, s in enumerate(sets):
        inner[next((t for t in sets[k + 1 :] if t & s == s), None)].append(s)
    return inner


def _with_inner(s, inner):
    """A set after all those within it."""
    found, waiting = [], [s]
    while waiting:
        found.append(waiting.pop())
        waiting += inner[found[-1]]
    return found[::-1]
