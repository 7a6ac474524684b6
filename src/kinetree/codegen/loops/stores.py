"""Cases while they are made or changed: stores of single numbers, without dead stores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from kinetree.codegen.loops.language import NumberPlace, input_name, output_name, place_of
from kinetree.codegen.program import Argument, Program, regroup_sums
from kinetree.expr import simplify
from kinetree.expr.node import Graph

ANY = None
"""The kind of a row that a column names: it may be any."""


class Stores:
    """A case in single numbers.

    Attributes:
        graph: of its nodes.
        kinds: of the variables in scope.
        stores: nodes by place.
        conditions: nodes of outputs that are true or false, by name.
        checks: as those of a graph.
    """

    def __init__(self, graph: Graph, kinds: dict, stores: dict, conditions: dict, checks: tuple):
        self.graph, self.kinds = graph, kinds
        self.stores, self.conditions, self.checks = stores, conditions, checks
        self._leaves: tuple = (None, 0, {})  # of which stores, how many, and what they are

    @classmethod
    def of(cls, case: Program, variables: Iterable[str], key: tuple) -> "Stores":
        """Stores and conditions of a straight-line case, with a copy of its graph."""
        stores, conditions = {}, {}
        for output, root in zip(case.outputs, case.roots, strict=True):
            place = place_of(output.name)
            if place.table in ("keep", "holds"):
                conditions[output.name] = root
            else:
                stores[place] = root
        kinds = dict(zip(variables, key, strict=True))
        return cls(copy_of(case.graph), kinds, stores, conditions, case.checks)

    def roots(self) -> list[int]:
        """Nodes of all stores, conditions and checks."""
        return [*self.stores.values(), *self.conditions.values(), *(c for c, *_ in self.checks)]

    def leaves(self) -> dict[int, NumberPlace]:
        """Places that the case loads from, by input node."""
        stores, count, _ = self._leaves
        if stores is not self.stores or count != len(stores):
            found = leaves(self.graph, self.roots())
            self._leaves = self.stores, len(self.stores), found
        return self._leaves[2]

    def kind(self, place: NumberPlace) -> Any:
        """Kind of the table row that a place belongs to; ANY unless it is a variable's row."""
        return self.kinds.get(place.paths[0], ANY)

    def program(self, name: str) -> Program:
        """Straight-line program of the stores and conditions, in a separate graph."""
        graph, roots = canonical(self.graph, self.roots())
        n = len(self.stores) + len(self.conditions)
        outputs = [Argument(output_name(p), ()) for p in self.stores]
        outputs += [Argument(condition, ()) for condition in self.conditions]
        checks = tuple((i, *c[1:]) for i, c in zip(roots[n:], self.checks, strict=True))
        return Program(name, inputs(graph, roots), tuple(outputs), graph, tuple(roots[:n]), checks)


def drop_unread(cases: Iterable[Stores], decide: Callable) -> None:
    """Remove stores that no load reads, repeatedly until nothing changes.

    ``decide(case, place, node)`` is whether a store stays in any case, or None if it depends.
    """
    undecided, reads = {}, Counter()
    for case in cases:
        kept, open_ = {}, []
        for place, node in case.stores.items():
            stays = decide(case, place, node)
            if stays or stays is None:
                kept[place] = node
            if stays is None:
                open_.append(place)
        case.stores = kept
        undecided[case] = open_
        reads.update(_reads(case))
    changed = True
    while changed:
        changed = False
        for case, places in undecided.items():
            unread = [p for p in places if not _is_read(p, case.kind(p), reads)]
            if unread:
                reads.subtract(_reads(case))
                gone = set(unread)
                case.stores = {p: n for p, n in case.stores.items() if p not in gone}
                undecided[case] = [p for p in places if p not in gone]
                reads.update(_reads(case))
                changed = True


def _reads(case):
    """Numbers that a case loads: with the kind of row, and without."""
    found = set()
    for place in case.leaves().values():
        found.add((place.table, case.kind(place), place.index))
        found.add((place.table, place.index))
    return found


def _is_read(place, kind, reads):
    """Whether some load reads the number that a store to rows of a kind sets."""
    if kind is ANY:
        return reads[place.table, place.index] > 0
    return any(reads[place.table, k, place.index] > 0 for k in (kind, ANY))


def used_numbers(cases: Iterable[Stores]) -> Iterator[tuple[Any, str, int]]:
    """Kind of row, table and number index of everything that cases load from and store to rows."""
    for case in cases:
        for place in [*case.leaves().values(), *case.stores]:
            if len(place.index) == 1:
                yield case.kind(place), place.table, place.index[0]


def explicit_sums(case: Program) -> Program:
    """Case in which additions to a place become load, add and store, with sums regrouped."""
    graph = copy_of(case.graph)
    outputs, roots = [], []
    for output, root in zip(case.outputs, case.roots, strict=True):
        if output.name[0] == "+":
            place = place_of(output.name)._replace(adds=False)
            old = graph.node("input", input_name(place), place.index)
            root, output = simplify.add(graph, old, root), Argument(output_name(place), ())
        outputs.append(output)
        roots.append(root)
    checks = case.checks
    read = inputs(graph, [*roots, *(c for c, *_ in checks)])
    return regroup_sums(Program(case.name, read, tuple(outputs), graph, tuple(roots), checks))


# --- graphs --------------------------------------------------------------------------------------


def leaves(graph: Graph, roots: Iterable[int]) -> dict[int, NumberPlace]:
    """Places that some nodes depend on, by input node."""
    nodes, found = graph.nodes, {}
    for i in graph.reachable(roots):
        node = nodes[i]
        if node[0] == "input":
            table, paths = _parts(node[1])
            found[i] = NumberPlace(table, paths, node[2])
    return found


@lru_cache(maxsize=1 << 14)
def _parts(name):
    """Table and row paths that the name of an input refers to, a block's serial number ignored."""
    return place_of(name.partition("#")[0])[:2]


def copy_of(graph: Graph) -> Graph:
    """Copy of a graph with the same node numbers."""
    new = Graph()
    new.nodes, new.known = list(graph.nodes), dict(graph.known)
    new.forget_handles()
    return new


def canonical(graph: Graph, roots: list[int]) -> tuple[Graph, list[int]]:
    """Graph in canonical form: only nodes that roots depend on, inputs without block numbers.

    Operations keep their order; those on constants alone, which other cases may have computed
    before, come where they are needed first. So the same case has the same graph, whatever was
    recorded with it.
    """
    nodes, order = graph.nodes, graph.reachable(roots)
    new, at, own = Graph(), {}, set()
    for i in order:
        node = nodes[i]
        if node[0] == "input":
            if "#" in node[1]:
                own.add(i)
        elif node[0] != "const" and not own.isdisjoint(node[1:]):
            own.add(i)

    def copy(i):
        node = nodes[i]
        if node[0] == "input":
            node = "input", node[1].partition("#")[0], node[2]
        elif node[0] != "const":
            for a in node[1:]:
                if a not in at:
                    copy(a)
            node = (node[0], *[at[a] for a in node[1:]])
        known = new.known.get(node)
        at[i] = new.append(node) if known is None else known

    for i in [*(i for i in order if i in own), *roots]:
        if i not in at:
            copy(i)
    return new, [at[i] for i in roots]


def inputs(graph: Graph, roots: Iterable[int]) -> tuple[Argument, ...]:
    """Inputs that nodes depend on, as arguments with the smallest shapes that hold all indices."""
    read: dict[str, tuple] = {}
    for i in graph.reachable(roots):
        if graph.nodes[i][0] == "input":
            _, name, index = graph.nodes[i]
            known = read.get(name, (0,) * len(index))
            read[name] = tuple(max(a, k + 1) for a, k in zip(known, index, strict=True))
    return tuple(Argument(name, shape) for name, shape in read.items())
