"""A program with many results as several programs that leave their results in a workspace.

What a later part needs of an earlier one is left for it in the workspace, or computed again where
its history is short (``shares``). Rows of results that one part has alone it writes itself; other
results go to the workspace, too, and a last program puts them into their places.
"""

from dataclasses import dataclass, replace

from kinetree.codegen.program import Argument, Program
from kinetree.codegen.watch import hidden_inputs
from kinetree.expr.node import LEAVES, Graph

WORK, LEFT = "@work", "@left"  # no names that an argument can have


@dataclass(frozen=True)
class ResultPart:
    """Some of the results.

    Attributes:
        program: from the inputs of the whole and the workspace ``WORK`` to rows of results, and to
            an output ``LEFT``.
        slices: for each output but that the name of the whole one, and the number of it that the
            rows begin with.
        left: places in the workspace of what it leaves.
        status: place of what is NaN where something is wrong with a sample, if that can be.
    """

    program: Program
    slices: dict
    left: tuple = ()
    status: int | None = None


@dataclass(frozen=True)
class ProgramParts:
    """A whole program."""

    parts: tuple
    """In the order in which they must run."""
    assembly: ResultPart
    """From the workspace to the other results."""
    watched: tuple
    """Places in the workspace that are NaN where something is wrong."""
    slots: int
    """Numbers of a sample in the workspace."""


def in_parts(program, most, fits=None) -> ProgramParts:
    """Split a long program without loops into parts of about ``most`` operations each.

    Args:
        program: the program.
        most: operations of a part, about.
        fits: whether a part has room for such ``ResultRow``s, which it writes itself; by default
            always.
    """
    return _Cut(program, most, fits or (lambda rows: True)).parts()


@dataclass(frozen=True)
class ResultRow:
    """Consecutive numbers of a result."""

    argument: Argument
    """The output."""
    start: int
    """Number of it that they begin with."""
    roots: tuple
    """Their nodes."""

    @property
    def output(self) -> Argument:
        """Output argument of a part that holds these consecutive results."""
        return Argument(f"{self.argument.name}_{self.start}", (len(self.roots),))


class _Cut:
    def __init__(self, program, most, fits):
        self.program, self.nodes, self.fits = program, program.graph.nodes, fits
        self.shares = Shares(program, most)
        self.checks = [node for node, *_ in program.checks]

    def parts(self):
        """Programs of all parts, and the one that assembles results from their workspace."""
        shares = self.shares.all
        rows = self._rows(len(shares))
        alone = any(rows[k] for k, _ in enumerate(shares))
        if alone:
            self._check_everywhere(shares)
        rest = {i for row in rows[None] for i in row.roots if self.nodes[i] != ("const", 0.0)}
        shares[0].roots += sorted(i for i in rest if self.nodes[i][0] == "const")
        wanted = rest.union(*(s.loaded for s in shares))
        slots, places, watched, drafts = 0, {}, [], []
        for k, share in enumerate(shares):
            left = [i for i in [*share.roots, *sorted(share.computed)] if i in wanted]
            left = [i for i in dict.fromkeys(left) if i not in places]
            if alone and not left and not rows[k]:
                continue  # only checks, at which all look
            places.update((i, slots + n) for n, i in enumerate(left))
            slots += len(left)
            part, status = self._program(share, rows[k], left, places), None
            if part.checks or hidden_inputs(part):
                status, slots = slots, slots + 1
                watched.append(status)
            drafts.append(
                ResultPart(part, _origins(rows[k]), tuple(places[i] for i in left), status)
            )
        inputs = (*self.program.inputs, Argument(WORK, (slots,)))
        found = [replace(d, program=replace(d.program, inputs=inputs)) for d in drafts]
        assembly = self._assembly(rows[None], places, inputs)
        return ProgramParts(tuple(found), assembly, tuple(watched), slots)

    # --- who writes what -------------------------------------------------------------------------

    def _rows(self, count):
        """Rows of results by the number of the part that computes them; None: by the assembly.

        A sample with something wrong is NaN as a whole: shares write themselves only where each of
        them can find out by itself.
        """
        seen = hidden_inputs(replace(self.program, roots=()))
        alone = all(map(self.shares.is_short, self.checks)) and hidden_inputs(self.program) == seen
        found, position = {k: [] for k in (*range(count), None)}, 0
        for argument in self.program.outputs:
            size = argument.shape[-1] if argument.shape else 1
            owner = None
            for start in range(0, argument.size, size or 1):
                roots = self.program.roots[position + start : position + start + size]
                homes = {self.shares.home.get(i) for i in roots if self.nodes[i][0] != "const"}
                if homes and alone:  # a row of zeros goes with the one before it
                    owner = homes.pop() if len(homes) == 1 else None
                row = ResultRow(argument, start, tuple(roots))
                if owner is not None and not self.fits(_join([*found[owner], row])):
                    owner = None
                found[owner].append(row)
            position += argument.size
        return {owner: _join(rows) for owner, rows in found.items()}

    def _check_everywhere(self, shares):
        """Make every part compute all run-time conditions, so that each finds bad samples."""
        for k, share in enumerate(shares):
            computed, loaded = self.shares.needs(self.checks, share, k)
            share.roots += [i for i in self.checks if i not in share.roots]
            share.computed |= computed
            share.loaded |= loaded

    # --- programs --------------------------------------------------------------------------------

    def _program(self, share, rows, left, places):
        """Program of one part, with values loaded from and stored to the workspace."""
        results = [i for row in rows for i in row.roots]
        leaves = {
            a
            for i in share.computed
            for a in self.nodes[i][1:]
            if a not in share.computed and a not in share.loaded
        }
        needed = share.computed | share.loaded | leaves | set(share.roots) | set(results)
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
            outputs=(*(row.output for row in rows), Argument(LEFT, (len(left),))),
            graph=graph,
            roots=tuple(number[i] for i in [*results, *left]),
            checks=checks,
        )

    def _assembly(self, rows, places, inputs):
        """Program that assembles the remaining results from the parts' values in the workspace."""
        graph = Graph()
        roots = [
            graph.node("input", WORK, (places[i],)) if i in places else graph.node(*self.nodes[i])
            for row in rows
            for i in row.roots
        ]
        program = replace(
            self.program,
            inputs=inputs,
            outputs=tuple(row.output for row in rows),
            graph=graph,
            roots=tuple(roots),
            checks=(),
        )
        return ResultPart(program, _origins(rows))


def _join(rows):
    """Join result rows whose places are consecutive in one result."""
    found = []
    for row in rows:
        last = found[-1] if found else None
        if last and last.argument == row.argument and last.start + len(last.roots) == row.start:
            found[-1] = replace(last, roots=last.roots + row.roots)
        else:
            found.append(row)
    return found


def _origins(rows):
    """For each output of a part: the result it belongs to, and the offset where it begins there."""
    return {row.output.name: (row.argument.name, row.start) for row in rows}


# --- Which results of a program are computed together, and what they need of each other ----------
# Of the results of a robot each depends on few joints. Those that depend on the same ones have
# most of their history in common: they form a family, and families are taken limb by limb, the
# trunk after its limbs.

_TOGETHER = 0.6  # of the operations that a family may have: those of several in one share
_SHORT = 60  # operations of a history that cost less than a number written and read


@dataclass
class Share:
    """Nodes of a program that are computed together."""

    roots: list
    """Results and checks."""
    computed: set
    """All that is computed for them."""
    loaded: set
    """Values that other shares have computed."""

    @classmethod
    def empty(cls):
        """A share without nodes."""
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
        """Distribute families of results over shares: small ones together, large ones cut."""
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
        """Nodes that a share must compute for some roots, and those it loads from other shares."""
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
        """Whether a node depends on so few operations that recomputing beats loading it."""
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
        """Families of results and checks that depend on the same inputs, dependencies first."""
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
        """Inputs that each node depends on, as bits of an integer; bits of the first argument."""
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
    """Tree of nested input sets (bits): each set with the largest sets it contains; None on top.

    They are in the order of the number of positions that they contain: limbs before what depends
    on several of them.
    """
    sets = sorted(sets, key=lambda s: ((s & positions).bit_count(), s.bit_count(), s))
    inner = {s: [] for s in (*sets, None)}
    for k, s in enumerate(sets):
        inner[next((t for t in sets[k + 1 :] if t & s == s), None)].append(s)
    return inner


def _with_inner(s, inner):
    """A set of inputs preceded by all sets nested in it."""
    found, waiting = [], [s]
    while waiting:
        found.append(waiting.pop())
        waiting += inner[found[-1]]
    return found[::-1]
