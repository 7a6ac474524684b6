"""Which results of a program are computed together, and what they need of each other.

Of the results of a robot each depends on few joints. Those that depend on the same ones have most
of their history in common: they form a family, and families are taken limb by limb, the trunk after
its limbs.
"""

from dataclasses import dataclass

from kinetree.expr.node import LEAVES

__all__ = ["Share", "Shares"]

_TOGETHER = 0.6  # of the operations that a family may have: those of several in one share
_SHORT = 60  # operations of a history that cost less than a number written and read


@dataclass
class Share:
    """What is computed together, as nodes of a program.

    Attributes:
        roots: results and checks.
        computed: all that is computed for them.
        loaded: values that other shares have computed.
    """

    roots: list
    computed: set
    loaded: set

    @classmethod
    def empty(cls):
        """Nothing yet."""
        return cls([], set(), set())


class Shares:
    """A program without loops as shares.

    Args:
        program: the program.
        most: operations of a family that stays together.

    Attributes:
        all: the shares, those that others load from before these.
        home: for each node the number of the share that computes it first.
    """

    def __init__(self, program, most):
        self.program, self.most = program, most
        self.nodes = program.graph.nodes
        self.home, self._short = {}, {}
        self.all = self._shares()

    def _shares(self):
        """Families one after the other, small ones together, large ones cut."""
        shares, share = [], Share.empty()
        for family in self._families():
            whole, _ = self.needs(family, share, len(shares))
            for roots in [family] if len(whole) <= self.most else [[root] for root in family]:
                computed, loaded = self.needs(roots, share, len(shares))
                if share.roots and len(share.computed) + len(computed) > _TOGETHER * self.most:
                    shares.append(share)
                    share = Share.empty()
                    computed, loaded = self.needs(roots, share, len(shares))
                share.roots += roots
                share.computed |= computed
                share.loaded |= loaded
                self.home.update(dict.fromkeys(computed - self.home.keys(), len(shares)))
        return [*shares, share]

    def needs(self, roots, share, number):
        """What must be computed for some roots in a share, and loaded."""
        computed, loaded, waiting = set(), set(), list(roots)
        while waiting:
            i = waiting.pop()
            if i in computed or i in share.computed or i in loaded or i in share.loaded:
                continue
            if self.home.get(i, number) != number and not self.is_short(i):
                loaded.add(i)
            elif self.nodes[i][0] not in LEAVES:
                computed.add(i)
                waiting += self.nodes[i][1:]
        return computed, loaded

    def is_short(self, i):
        """Whether a value has a history of few operations."""
        if i not in self._short:
            history, waiting = set(), [i]
            while waiting and len(history) <= _SHORT:
                k = waiting.pop()
                if k not in history and self.nodes[k][0] not in LEAVES:
                    history.add(k)
                    waiting += self.nodes[k][1:]
            self._short[i] = len(history) <= _SHORT
        return self._short[i]

    def _families(self):
        """Results and checks that belong together, what a family depends on before it."""
        checks = [node for node, *_ in self.program.checks]
        roots = [i for i in self.program.roots if self.nodes[i][0] != "const"]
        groups, (depends, positions) = {}, self._dependencies([*roots, *checks])
        for i in dict.fromkeys([*checks, *roots]):
            groups.setdefault(depends[i], []).append(i)
        families, waiting, inner = [], [None], _inner_sets(list(groups), positions)
        while waiting:  # backwards: a set before what is part of it
            s = waiting.pop()
            all_of_it = [i for t in _with_inner(s, inner) for i in groups.get(t, ())]
            if s is not None and len(self.needs(all_of_it, Share.empty(), 0)[0]) <= self.most:
                families.append(all_of_it)
            else:
                families.append(groups.get(s, []))
                waiting += inner[s]
        return families[::-1]

    def _dependencies(self, roots):
        """For each node the inputs that it depends on, as bits; and those of the first argument."""
        found, bits, first = {}, 0, 0
        for i in self.program.graph.reachable(roots):
            op, *operands = self.nodes[i]
            if op == "input":
                found[i], bits = 1 << bits, bits + 1
                first |= found[i] if operands[0] == self.program.inputs[0].name else 0
                continue
            found[i] = 0
            if op not in LEAVES:
                for a in operands:
                    found[i] |= found[a]
        return found, first


def _inner_sets(sets, positions):
    """For each set, as bits, those within it and no smaller one; None has the others.

    They are in the order of the number of positions that they contain: limbs before what depends
    on several of them.
    """
    sets = sorted(sets, key=lambda s: ((s & positions).bit_count(), s.bit_count(), s))
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
