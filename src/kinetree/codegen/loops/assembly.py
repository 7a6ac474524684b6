"""From what was recorded to a loop program: stores of single numbers, sums, what nobody reads.

- Values become numbers: ``("t3", "i", 5)`` is the sixth number of the value in a row.
- ``t[p] = t[p] + x`` becomes a store that adds ``x``.
- Stores that no load sees are dropped, to a fixpoint.
- Each block becomes a ``Program`` of its own, whose numbering depends on what it computes alone, so
  that a kind has the same code whatever was recorded with it.
"""

from dataclasses import dataclass, replace
from typing import Any

from kinetree.codegen.loops.language import (
    Clear,
    Code,
    LoopProgram,
    Place,
    Repeat,
    Until,
    Walk,
    When,
    input_name,
    output_name,
    place_of,
)  # fmt: skip
from kinetree.codegen.loops.outline import Access, Bone, Outline, can_follow
from kinetree.codegen.loops.recording import ANY, Block, Recorder, arrays_of
from kinetree.codegen.program import Argument, Program, regrouped
from kinetree.errors import TraceError
from kinetree.expr import simplify
from kinetree.expr.node import Condition, Graph


def assembled(recorder: Recorder, name: str, arguments: tuple, results: tuple) -> LoopProgram:
    """The program that a recorder has recorded; ``results`` are names of arrays."""
    flat = _Flat(recorder, results)
    cleared = tuple(Clear(n) for n in recorder.cleared if flat.is_used(n))
    shared = flat.shared()
    bodies = [((), recorder.items)]
    skeleton = recorder.outline.skeleton or flat.skeleton(bodies)
    tables = {
        n: d for n, d in recorder.declared.items()
        if d.storage in ("argument", "model") or n in results or flat.is_used(n)
    }  # fmt: skip
    return LoopProgram(
        name, tuple(arguments), tuple(results), recorder.domains, tables,
        (*cleared, *flat.regions(bodies, skeleton, name)), shared, flat.rows(shared),
    )  # fmt: skip


def outline_of(recorder: Recorder, results: tuple) -> Outline:
    """What a recording of representative kinds shows; first without, then with its outline."""
    flat = _Flat(recorder, results)
    if recorder.outline.first:
        return flat.outline()
    return replace(recorder.outline, skeleton=flat.skeleton([((), recorder.items)]))


def explicit_sums(case: Program) -> Program:
    """A case that loads what it adds to and sets the sum, regrouped: as a processor runs it."""
    graph = _copy(case.graph)
    outputs, roots = [], []
    for output, root in zip(case.outputs, case.roots, strict=True):
        if output.name[0] == "+":
            place = place_of(output.name)._replace(adds=False)
            old = graph.node("input", input_name(place), place.index)
            root, output = simplify.add(graph, old, root), Argument(output_name(place), ())
        outputs.append(output)
        roots.append(root)
    checks = case.checks
    inputs = _inputs(graph, [*roots, *(c for c, *_ in checks)])
    return regrouped(Program(case.name, inputs, tuple(outputs), graph, tuple(roots), checks))


@dataclass
class _Stores:
    """A block in single numbers: nodes by place, and nodes of its conditions."""

    stores: dict
    conditions: dict
    checks: tuple

    def roots(self):
        return [*self.stores.values(), *self.conditions.values(), *(c for c, *_ in self.checks)]


class _Flat:
    """All blocks of a recording in single numbers, without what nobody reads."""

    def __init__(self, recorder, results):
        self.recorder, self.graph, self.results = recorder, recorder.graph, results
        self.outline_ = recorder.outline
        self.blocks = {}
        for block in _blocks(recorder.items):
            self.blocks[block] = self._numbers(block)
        self.by_serial = {b.serial: b for b in self.blocks}
        self._drop_unread()

    # --- single numbers ---------------------------------------------------------------------

    def _numbers(self, block):
        found = {}
        for (table, path), value in block.stored.items():
            entries = [x for a in arrays_of(value) for x in a.ravel()]
            for k, x in enumerate(entries):
                found[Place(table, (path,), (k,))] = self.graph.number(x)
        for (table, paths, index), x in block.entries.items():
            found[Place(table, paths, index)] = self.graph.number(x)
        stores = {}
        for place, node in found.items():
            leaf = self.graph.known.get(
                ("input", f"{input_name(place)}#{block.serial}", place.index)
            )
            if leaf is None:
                stores[place] = node
            elif node != leaf:  # otherwise it stays as it is
                rest = _without(self.graph, node, leaf)
                if rest is None or leaf in self.graph.reachable([rest]):
                    stores[place] = node
                else:
                    stores[place._replace(adds=True)] = rest
        conditions = {n: _condition(c) for n, c in block.conditions.items()}
        return _Stores(stores, conditions, tuple(block.checks))

    def _loads(self, block):
        """Places that a block loads from, with the number of the block that loaded them."""
        for i in self.graph.reachable(self.blocks[block].roots()):
            node = self.graph.nodes[i]
            if node[0] == "input":
                name, _, serial = node[1].partition("#")
                yield place_of(name)._replace(index=node[2]), int(serial or block.serial)

    def _kind(self, block, path):
        return next((row.kind for row in block.rows if row.path == path), ANY)

    def _storage(self, table):
        return self.recorder.declared[table].storage

    def _drop_unread(self):
        before = None
        while True:
            read, count = set(), 0
            for block in self.blocks:
                for place, _ in self._loads(block):
                    read.add((place.table, self._kind(block, place.paths[0]), place.index))
            for block, numbers in self.blocks.items():
                stores = numbers.stores.items()
                kept = {p: n for p, n in stores if self._is_read(block, p, n, read)}
                numbers.stores = kept
                count += len(kept)
            if count == before:
                return
            before = count

    def _is_read(self, block, place, node, read):
        outline = self.outline_
        table, kind, index = place.table, self._kind(block, place.paths[0]), place.index
        if self._storage(table) == "result":
            return table in self.results
        if table in outline.crossing:
            return True
        if table in outline.exposed and kind is not ANY:  # constants come back from no memory
            return table in outline.varied or self.graph.nodes[node][0] != "const"
        if not outline.first:
            return kind is not ANY and (table, kind, index) in read
        return any(
            t == table and n == index and (ANY in (k, kind) or k == kind) for t, k, n in read
        )

    def is_used(self, table):
        """Whether anything is stored to a table."""
        return any(p.table == table for b in self.blocks.values() for p in b.stores)

    # --- what crosses from row to row --------------------------------------------------------

    def outline(self):
        """See ``outline_of``."""
        crossing, exposed, varied = set(), set(), set()
        for block, numbers in self.blocks.items():
            nested = len(block.rows) > 1
            again = any(loop.region != "walk" for loop in block.scope)
            for place, _ in self._loads(block):
                if self._storage(place.table) == "rows":
                    if self._kind(block, place.paths[0]) is ANY:
                        crossing.add(place.table)
                    elif nested:
                        exposed.add(place.table)
            for place in numbers.stores:
                if self._storage(place.table) == "rows":
                    other = self._kind(block, place.paths[0]) is ANY
                    if other:
                        crossing.add(place.table)
                    if other or nested or again:
                        varied.add(place.table)
        like = {name: self._like(name) for name in crossing}
        fused = frozenset(self._fused())
        return Outline(
            like, frozenset(varied), frozenset(crossing), frozenset(exposed), fused, first=False
        )

    def _like(self, name):
        """A value of a table as others see it."""
        for block in self.blocks:
            for (table, path), value in block.stored.items():
                if table == name and self._kind(block, path) is ANY:
                    return value
        table = self.recorder.tables[name]
        return next(iter(table.latest.values()), table.base)

    def _fused(self):
        """Numbers of top-level walks that can go on with the walk before them."""
        number, before = 0, None
        for item in self.recorder.items:
            if isinstance(item, Block):
                if item.stored or item.entries or item.checks:
                    before = None
            elif item.region != "walk":
                before = None
            else:
                number += 1
                access, now = self._access(item), item.parameters
                if before is not None:
                    last, params = before
                    same = params["over"] == now["over"] and params["backwards"] == now["backwards"]
                    if same and can_follow(last, access, now["backwards"]):
                        yield number
                        access = last | access
                before = access, now

    def _access(self, loop):
        access, variable = Access(), loop.parameters["variable"]
        for block in _blocks([loop]):
            for place, _ in self._loads(block):
                if self._storage(place.table) in ("rows", "result"):
                    access.note(place.table, self._is_own(place, variable), stores=False)
            for place in self.blocks[block].stores:
                access.note(place.table, self._is_own(place, variable), stores=True)
        return access

    def _is_own(self, place, variable):
        if self._storage(place.table) == "rows":
            return place.paths == (variable,)
        return all(p == "" or p.split(".")[0] == variable for p in place.paths) and any(place.paths)

    # --- rows -------------------------------------------------------------------------------

    def shared(self):
        """For each domain the numbers that are at the same place in every row."""
        found, order = {}, list(self.recorder.declared)
        for name in sorted(self.outline_.crossing, key=order.index):
            size = sum(a.size for a in arrays_of(self.outline_.like[name]))
            domain = self.recorder.declared[name].domain
            found[domain] = (*found.get(domain, ()), *((name, k) for k in range(size)))
        return found

    def rows(self, shared):
        """For each domain and kind the numbers of a row."""
        used, order = {}, {name: n for n, name in enumerate(self.recorder.declared)}
        for block in self.blocks:
            places = [p for p, _ in self._loads(block)]
            for place in [*places, *self.blocks[block].stores]:
                if self._storage(place.table) != "rows":
                    continue
                domain = self.recorder.declared[place.table].domain
                kind = self._kind(block, place.paths[0])
                if kind is not ANY:
                    used.setdefault((domain, kind), set()).add((place.table, *place.index))
                elif (
                    self.recorder.domains.get(domain) is None or self.recorder.domains[domain].grows
                ):
                    used.setdefault((domain, ""), set())
        for (_, kind), numbers in used.items():
            for name in self.outline_.exposed & frozenset(self.outline_.varied):
                value = self.recorder.tables[name].latest.get(kind)
                if value is not None:
                    numbers.update((name, k) for k in range(sum(a.size for a in arrays_of(value))))
        found = {}
        for domain, kind in used:
            first = shared.get(domain, ())
            alone = used[domain, kind] - set(first)
            carried = self.outline_.exposed
            alone = sorted(alone, key=lambda n: (n[0] not in carried, order[n[0]], n[1]))
            found[domain, kind] = (*first, *alone)
        return found

    # --- regions ----------------------------------------------------------------------------

    def skeleton(self, bodies):
        """For each item of a body: None if it does nothing, else how it is made; inner ones too.

        ``bodies``: items by kinds of the variables in scope.
        """
        lengths = {len(items) for _, items in bodies}
        if len(lengths) > 1:
            raise TraceError(
                "the kinds of rows differ in their walks inside a walk: a walk that some kinds do "
                "not need must be there and have no rows for them"
            )
        return tuple(
            self._bone([(key, items[n]) for key, items in bodies])
            for n in range(min(lengths, default=0))
        )

    def _bone(self, items):
        first = items[0][1]
        if isinstance(first, Block):
            works = any(self.blocks[block].roots() for _, block in items)
            return Bone("code", {}, ()) if works else None
        inner = self.skeleton(_inside(items))
        given = {k: x for k, x in first.parameters.items() if k != "condition"}
        idle = first.region == "walk" and not any(inner)
        return None if idle else Bone(first.region, given, inner)

    def regions(self, bodies, skeleton, name):
        """Regions from items, by kinds of the variables in scope."""
        found = []
        for n, bone in enumerate(skeleton):
            items = [(key, items[n]) for key, items in bodies]
            if bone is not None:
                found.append(self._region(items, bone, name))
            elif any(self.blocks[b].roots() for _, item in items for b in _blocks([item])):
                raise TraceError(
                    f"{name}: a kind of row does something where representative kinds do nothing"
                )
        return tuple(found)

    def _region(self, items, bone, name):
        if bone.region == "code":
            cases = {key: self._case(block, name) for key, block in items}
            return Code(cases, tuple(items[0][1].appends) if items else ())
        given = {**bone.parameters, "body": self.regions(_inside(items), bone.inner, name)}
        if bone.region in ("until", "when"):
            found = [(key, loop.parameters["condition"]) for key, loop in items]
            given["condition"] = Code({key: self._case(b, name) for key, b in found})
        return {"walk": Walk, "repeat": Repeat, "until": Until, "when": When}[bone.region](**given)

    def _case(self, block, name):
        """A block as a program."""
        numbers = self.blocks[block]
        for place, serial in self._loads(block):
            if serial != block.serial:
                self._check_reload(block, place, self.by_serial[serial], name)
        graph, roots = _canonical(self.graph, numbers.roots())
        n, m = len(numbers.stores), len(numbers.conditions)
        outputs = [Argument(output_name(p), ()) for p in numbers.stores]
        outputs += [Argument(condition, ()) for condition in numbers.conditions]
        checks = tuple(
            (i, *rest) for i, (_, *rest) in zip(roots[n + m :], numbers.checks, strict=True)
        )
        inputs = _inputs(graph, roots)
        return Program(name, inputs, tuple(outputs), graph, tuple(roots[: n + m]), checks)

    def _check_reload(self, block, place, origin, name):
        """Refuse a value of another block, unless what it depends on is as it was."""
        depth = len(origin.scope)
        kinds = [r.kind for r in origin.rows], [r.kind for r in block.rows[: len(origin.rows)]]
        if origin.scope != block.scope[:depth] or kinds[0] != kinds[1]:
            raise TraceError(
                f"{name}: a value computed inside a walk is used after it or for another row, "
                f"where it has no single value: keep it in a table (model.table), or sum it "
                f"(model.total)"
            )
        if self._storage(place.table) in ("model", "argument"):
            return
        deeper = set(block.scope[depth:])
        for other, numbers in self.blocks.items():
            between = origin.serial <= other.serial < block.serial
            again = deeper & set(other.scope)
            if (between or again) and any(p.table == place.table for p in numbers.stores):
                raise TraceError(
                    f"{name}: a value is used after the row that it was computed from has changed "
                    f"(table {place.table}): keep the value in a table"
                )


def _inside(items):
    """Bodies of loops, by kinds of the variables in scope."""
    found = []
    for key, loop in items:
        walks = loop.region == "walk"
        found += [((*key, kind) if walks else key, b) for kind, b in loop.bodies.items()]
    return found


def _blocks(items):
    """All blocks, in order, conditions included."""
    for item in items:
        if isinstance(item, Block):
            yield item
        else:
            for body in item.bodies.values():
                yield from _blocks(body)
            if "condition" in item.parameters:
                yield item.parameters["condition"]


def _without(graph, node, term):
    """What a sum adds to one of its terms; None if it is not among them."""
    op, *operands = graph.nodes[node]
    if node <= term or op not in ("+", "-"):
        return None
    for (a, b), combine in (
        (operands, simplify.add if op == "+" else simplify.sub),
        (operands[::-1], simplify.add if op == "+" else None),
    ):
        if combine is None:
            continue
        rest = graph.constant(0.0) if a == term else _without(graph, a, term)
        if rest is not None:
            return combine(graph, rest, b)
    return None


def _condition(condition):
    if not isinstance(condition, Condition):
        raise TraceError(
            f"a condition of loops compares traced values, got {condition!r}, which is known now"
        )
    return condition.i


def _canonical(graph, roots):
    """The nodes behind roots in a graph of their own, inputs under their names without numbers.

    Operations keep their order; those on constants alone, which other blocks may have computed
    before, come where they are needed first.
    """
    nodes, order = graph.nodes, graph.reachable(roots)
    new, at, own = Graph(), {}, set()
    for i in order:
        op, *operands = nodes[i]
        if op == "input":
            if "#" in operands[0]:
                own.add(i)
        elif op != "const" and any(a in own for a in operands):
            own.add(i)

    def copy(i):
        op, *operands = nodes[i]
        if op == "input":
            at[i] = new.node("input", operands[0].partition("#")[0], operands[1])
        elif op == "const":
            at[i] = new.node("const", operands[0])
        else:
            for a in operands:
                if a not in at:
                    copy(a)
            at[i] = new.node(op, *(at[a] for a in operands))

    for i in order:
        if i in own and i not in at:
            copy(i)
    for i in roots:
        if i not in at:
            copy(i)
    return new, [at[i] for i in roots]


def _copy(graph):
    new = Graph()
    for node in graph.nodes:
        new.append(node)
    return new


def _inputs(graph, roots):
    """What a program reads, with the extents of what it reads."""
    read: dict[str, Any] = {}
    for i in graph.reachable(roots):
        if graph.nodes[i][0] == "input":
            _, name, index = graph.nodes[i]
            known = read.get(name, (0,) * len(index))
            read[name] = tuple(max(a, k + 1) for a, k in zip(known, index, strict=True))
    return tuple(Argument(name, shape) for name, shape in read.items())
