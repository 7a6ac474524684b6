"""From what was recorded to a loop program: stores of single numbers, sums, no dead stores.

- Values become numbers: ``("t3", "i", 5)`` is the sixth number of the value in a row.
- ``t[p] = t[p] + x`` becomes a store that adds ``x``.
- Stores that no load sees are dropped, to a fixpoint.
- Each block becomes a separate ``Program``, whose numbering depends on what it computes alone, so
  that a kind has the same code whatever was recorded with it.
"""

from dataclasses import replace

import numpy as np

from kinetree.codegen.loops.language import (
    Chain,
    Clear,
    Code,
    LoopProgram,
    NumberPlace,
    Repeat,
    Until,
    Walk,
    When,
    input_name,
)
from kinetree.codegen.loops.recording import (
    Access,
    Bone,
    LoopRecorder,
    Outline,
    RecordedBlock,
    can_follow,
)
from kinetree.codegen.loops.stores import ANY, Stores, drop_unread, used_numbers
from kinetree.codegen.loops.values import arrays_of, value_like
from kinetree.errors import TraceError
from kinetree.expr import simplify
from kinetree.expr.node import Condition


def assemble(recorder: LoopRecorder, name: str, arguments: tuple, results: tuple) -> LoopProgram:
    """Loop program of a recording, without dead stores; ``results`` are names of result arrays."""
    flat = _Flat(recorder, results)
    outline = recorder.outline
    # What is cleared must not depend on the kinds that happen to be recorded.
    cleared = tuple(Clear(n) for n in recorder.cleared if n in results or n in outline.crossing)
    shared = flat.uniform_numbers()
    bodies = [((), recorder.items)]
    skeleton = outline.skeleton or flat.skeleton(bodies)
    tables = {
        n: d
        for n, d in recorder.declared.items()
        if d.storage in ("argument", "model")
        or n in (*results, *outline.crossing)
        or flat.is_used(n)
    }
    return LoopProgram(
        name,
        tuple(arguments),
        tuple(results),
        recorder.domains,
        tables,
        (*cleared, *flat.regions(bodies, skeleton, name)),
        shared,
        flat.rows(shared),
        outline.exposed,
    )


def outline_of(recorder: LoopRecorder, results: tuple) -> Outline:
    """Outline of a recording for representative kinds of rows: loops and tables of all kinds."""
    flat = _Flat(recorder, results)
    if recorder.outline.first:
        return flat.outline()
    return replace(recorder.outline, skeleton=flat.skeleton([((), recorder.items)]))


class _Flat:
    """All blocks of a recording in single numbers, without dead stores."""

    def __init__(self, recorder, results):
        self.recorder, self.graph, self.results = recorder, recorder.graph, results
        self.outline_ = recorder.outline
        self.blocks = {}
        for block in _blocks(recorder.items):
            self.blocks[block] = self._numbers(block)
        self.summed = {p.table for c in self.blocks.values() for p in c.stores if c.kind(p) is ANY}
        drop_unread(self.blocks.values(), self._stays)
        if not self.outline_.first:
            self._check_outline()

    # --- single numbers ---------------------------------------------------------------------

    def _numbers(self, block):
        """Scalar stores of a recorded block, nodes by place; sums to a place become additions."""
        found = {}
        for (table, path), value in block.stored.items():
            entries = [x for a in arrays_of(value) for x in a.ravel()]
            for k, x in enumerate(entries):
                found[NumberPlace(table, (path,), (k,))] = self.graph.number(x)
        for (table, paths, index), x in block.entries.items():
            found[NumberPlace(table, paths, index)] = self.graph.number(x)
        stores, sums = {}, {}
        for place, node in found.items():
            name = f"{input_name(place)}#{block.serial}"
            leaf = self.graph.known.get(("input", name, place.index))
            if leaf is None or node != leaf:  # otherwise it stays as it is
                rest = None if leaf is None else _without(self.graph, node, leaf)
                stores[place] = node
                if rest is not None:
                    sums[place] = leaf, rest
        used = set(self.graph.reachable([rest for _, rest in sums.values()]))
        for place, (leaf, rest) in sums.items():
            if leaf not in used or leaf not in self.graph.reachable([rest]):
                del stores[place]
                stores[place._replace(adds=True)] = rest
        conditions = {n: _condition(c) for n, c in block.conditions.items()}
        kinds = {row.path: row.kind for row in block.rows}
        return Stores(self.graph, kinds, stores, conditions, tuple(block.checks))

    def _storage(self, table):
        """Storage class of a table: ``"rows"``, ``"argument"``, ``"result"`` or ``"model"``."""
        return self.recorder.declared[table].storage

    def _stays(self, case, place, node):
        """Whether a store is kept even if no load reads it; None if only the loads decide."""
        outline, table, kind = self.outline_, place.table, case.kind(place)
        if self._storage(table) == "result":
            return table in self.results
        if table in outline.crossing:
            return True
        if table in outline.exposed and kind is not ANY:  # constants come back from no memory
            return table in outline.varied or self.graph.nodes[node][0] != "const"
        return None if outline.first or kind is not ANY else False

    def _check_outline(self):
        """Raise TraceError if a kind of row reads rows of others that the outline lacks."""
        outline = self.outline_
        for block, case in self.blocks.items():
            known = outline.crossing | (outline.exposed if len(block.rows) > 1 else frozenset())
            for place in case.leaves().values():
                if self._storage(place.table) != "rows":
                    continue
                other = case.kind(place) is ANY or len(block.rows) > 1
                if place.table in outline.unseen or (other and place.table not in known):
                    raise TraceError(
                        f"a kind of row reads table {place.table} at {place.paths[0]}, which no "
                        f"representative kind does, so that other kinds do not keep it for it: "
                        f"record the algorithm with more representative kinds"
                    )

        again = {n for n, _ in self.recorder.folded & self._stored_tables() - outline.stored}
        for table in sorted((again | self._set_in_part()) - frozenset(outline.varied)):
            raise TraceError(
                f"a kind of row sets table {table} again where no representative kind does, so "
                f"that other kinds take constants that were set before for all there are: record "
                f"the text with more representative kinds"
            )

    def _stored_tables(self):
        """Pairs of a table and the number of a walk that stores to it."""
        return {(table, n) for table, walks in self.recorder.stored.items() for n in walks}

    def _set_in_part(self):
        """Tables of which a walk along a chain sets some rows, and other walks the others."""
        return {
            table
            for table, walks in self.recorder.stored.items()
            if any(isinstance(over, Chain) for over in walks.values())
            and len(set(walks.values())) > 1
        }

    def is_used(self, table):
        """Whether anything is stored to a table, by the recorded kinds or by others."""
        return table in self.outline_.crossing or any(
            p.table == table for b in self.blocks.values() for p in b.stores
        )

    # --- what crosses from row to row --------------------------------------------------------

    def outline(self):
        """Outline of this recording: which tables other rows read, and which walks can be fused."""
        crossing, exposed, varied = set(), set(), set()
        for block, case in self.blocks.items():
            nested = len(block.rows) > 1
            again = any(loop.region != "walk" for loop in block.scope)
            for place in case.leaves().values():
                if self._storage(place.table) == "rows":
                    if case.kind(place) is ANY:
                        crossing.add(place.table)
                    elif nested:
                        exposed.add(place.table)
            for place in case.stores:
                if self._storage(place.table) == "rows":
                    other = case.kind(place) is ANY
                    if other:
                        crossing.add(place.table)
                    elif nested:
                        exposed.add(place.table)
                    if other or nested or again:
                        varied.add(place.table)
        for loop in self.recorder.items:
            if not isinstance(loop, RecordedBlock) and loop.region == "walk":
                access = self._access(loop)  # rows above may have been set in the same walk
                varied |= access.read_other & access.stored
        varied |= self._set_in_part()
        like = {name: _form(self._like(name)) for name in crossing}
        fused = frozenset(self._fusable_walks())
        return Outline(
            like,
            frozenset(varied),
            frozenset(crossing),
            frozenset(exposed),
            frozenset(self.summed - crossing),
            fused,
            frozenset(self._stored_tables()),
            first=False,
        )

    def _like(self, name):
        """Value of a table with the form (type, shapes) in which other rows load it."""
        for block, case in self.blocks.items():
            for (table, path), value in block.stored.items():
                if table == name and path not in case.kinds:
                    return value
        table = self.recorder.tables[name]
        return next(iter(table.latest.values()), table.base)

    def _fusable_walks(self):
        """Numbers of top-level walks that can be fused with the walk before them."""
        number, before = 0, None
        for item in self.recorder.items:
            if isinstance(item, RecordedBlock):
                if item.values or item.stored or item.entries or item.checks:
                    before = None
            elif item.region != "walk":
                before = None
            else:
                number += 1
                access, now = self._access(item), item.parameters
                inward = now["backwards"] != isinstance(now["over"], Chain)
                if before is not None:
                    last, params = before
                    same = params["over"] == now["over"] and params["backwards"] == now["backwards"]
                    if same and can_follow(last, access, inward):
                        yield number
                        access = last | access
                before = access, now

    def _access(self, loop):
        """Tables that a loop reads and stores to, in its row or in others."""
        access, variable = Access(), loop.parameters["variable"]
        for block in _blocks([loop]):
            for place in self.blocks[block].leaves().values():
                if self._storage(place.table) in ("rows", "result"):
                    access.note(place.table, self._is_own(place, variable), stores=False)
                    if place.paths[0].startswith("world."):
                        access.anywhere.add(place.table)
            for place in self.blocks[block].stores:
                access.note(place.table, self._is_own(place, variable), stores=True)
        return access

    def _is_own(self, place, variable):
        """Whether a place is in the row of a loop variable, which no other iteration touches."""
        if self._storage(place.table) == "rows":
            return place.paths == (variable,)
        return all(p == "" or p.split(".")[0] == variable for p in place.paths) and any(place.paths)

    # --- rows -------------------------------------------------------------------------------

    def uniform_numbers(self):
        """Numbers ``(name, k)``, by domain, that rows of all kinds store at the same offset."""
        found, order = {}, list(self.recorder.declared)
        for name in sorted(self.outline_.crossing, key=order.index):
            size = sum(a.size for a in arrays_of(self.outline_.like[name]))
            domain = self.recorder.declared[name].domain
            found[domain] = (*found.get(domain, ()), *((name, k) for k in range(size)))
        return found

    def rows(self, shared):
        """For each domain and kind of row the numbers that a row stores, ``shared`` ones first."""
        used, order = {}, {name: n for n, name in enumerate(self.recorder.declared)}
        for kind, table, k in used_numbers(self.blocks.values()):
            if self._storage(table) == "rows":
                domain = self.recorder.declared[table].domain
                known = self.recorder.domains.get(domain)
                if kind is not ANY:
                    used.setdefault((domain, kind), set()).add((table, k))
                elif domain == "" or (known and known.grows):
                    used.setdefault((domain, ""), set()).add((table, k))
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
        """Common structure of loop bodies of several kinds: a bone per item, None if idle.

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
        """Structure that one item has for all recorded kinds; None if it does nothing for any."""
        first = items[0][1]
        if isinstance(first, RecordedBlock):
            works = any(block.kept or self.blocks[block].roots() for _, block in items)
            return Bone("code", {}, ()) if works else None
        inner = self.skeleton(_inside(items))
        given = {k: x for k, x in first.parameters.items() if k != "condition"}
        idle = first.region == "walk" and not any(inner)
        return None if idle else Bone(first.region, given, inner)

    def regions(self, bodies, skeleton, name):
        """Regions of a loop program from items recorded per kind of rows, and their structure."""
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
        """Region of a loop program from one item, recorded per kind of rows, and its structure."""
        if bone.region == "code":
            cases = {key: self._case(block, name) for key, block in items}
            return Code(cases, tuple(items[0][1].appends) if items else ())
        given = {**bone.parameters, "body": self.regions(_inside(items), bone.inner, name)}
        if bone.region in ("until", "when"):
            found = [(key, loop.parameters["condition"]) for key, loop in items]
            given["condition"] = Code({key: self._case(b, name) for key, b in found})
        return {"walk": Walk, "repeat": Repeat, "until": Until, "when": When}[bone.region](**given)

    def _case(self, block, name):
        """Straight-line program of a recorded block, after a check of values of earlier blocks."""
        case, nodes = self.blocks[block], self.graph.nodes
        for i, place in case.leaves().items():
            serial = int(nodes[i][1].partition("#")[2] or block.serial)
            if serial != block.serial:
                self._check_reload(block, place, self.recorder.by_serial[serial], name)
        return case.program(name)

    def _check_reload(self, block, place, origin, name):
        """Raise TraceError if a value from another block may have changed since it was computed."""
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


def _form(value):
    """Zeros of the same type and shapes as a value."""
    return value_like(value, [np.zeros(a.shape, dtype=int) for a in arrays_of(value)])


def _inside(items):
    """Bodies of loops with the kinds of rows that they were recorded for."""
    found = []
    for key, loop in items:
        walks = loop.region == "walk"
        found += [((*key, kind) if walks else key, b) for kind, b in loop.bodies.items()]
    return found


def _blocks(items):
    """All recorded blocks in order, those inside loops and of their conditions included."""
    for item in items:
        if isinstance(item, RecordedBlock):
            yield item
        else:
            for body in item.bodies.values():
                yield from _blocks(body)
            if "condition" in item.parameters:
                yield item.parameters["condition"]


def _without(graph, node, term):
    """Node of a sum without one of its terms; None if ``term`` is not one of them."""
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
    """Node of a traced condition; TraceError for a truth value that is known while tracing."""
    if not isinstance(condition, Condition):
        raise TraceError(
            f"a condition of loops compares traced values, got {condition!r}, which is known now"
        )
    return condition.i
