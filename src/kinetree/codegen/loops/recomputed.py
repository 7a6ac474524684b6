"""Less to remember: what a case can compute again from arguments and the robot is not stored.

On a GPU a number that goes to memory and comes back takes as long as dozens of operations. The
transform of a joint, say, is twelve numbers that an outward walk stores and later walks load; they
follow from one angle, its sine and cosine, and the placement of the joint.
"""

from dataclasses import replace

from kinetree.codegen.loops.language import (
    Clear,
    Code,
    LoopProgram,
    Until,
    Walk,
    When,
    place_of,
    regions,
)
from kinetree.codegen.program import Argument
from kinetree.expr.node import LEAVES, Graph

__all__ = ["recomputed"]

_WORTH = 12  # operations that one number less in memory is worth; a GPU computes 28 in its time
_COSTS = {"sin": 20, "cos": 20, "/": 8, "sqrt": 8, "atan2": 40, "exp": 20, "log": 20, "tanh": 30}
_OPAQUE = ("repeat", "final", "carry", "call", "callee", "result")


def recomputed(program: LoopProgram) -> LoopProgram:
    """The same program, which loads fewer numbers of rows and computes more."""
    return _Recomputed(program).program()


class _Recomputed:
    def __init__(self, loops):
        self.loops = loops
        self.codes = list(loops.codes())
        self.storing = self._storing()
        self.new = {id(code): dict(code.cases) for code, _ in self.codes}

    def _storing(self):
        """For tables whose rows are set once, by one code of a walk on its own: its number."""
        found, spoilt = {}, set()
        outermost = {id(c) for w in self.loops.body if isinstance(w, Walk) for c in w.body}
        for region, _ in regions(self.loops.body):
            if isinstance(region, Clear):
                spoilt.add(region.table)
        for n, (code, walks) in enumerate(self.codes):
            alone = id(code) in outermost and isinstance(walks[0].over, str)
            for case in code.cases.values():
                for place in map(place_of, (a.name for a in case.outputs)):
                    own = alone and place.paths == (walks[0].variable,) and not place.adds
                    if not own or found.setdefault(place.table, n) != n:
                        spoilt.add(place.table)
        return {t: n for t, n in found.items() if t not in spoilt and self._is_rows(t)}

    def _is_rows(self, table):
        return table in self.loops.tables and self.loops.tables[table].storage == "rows"

    def program(self):
        for n, (code, walks) in enumerate(self.codes):
            variables = [w.variable for w in walks]
            for kinds, case in code.cases.items():
                self.new[id(code)][kinds] = self._case(n, case, dict(zip(variables, kinds,
                                                                         strict=True)))  # fmt: skip
        self._drop_unread()
        used = self._used()
        rows = {
            (d, kind): tuple(at for at in row if at in self.loops.shared.get(d, ())
                             or (d, kind, *at) in used)
            for (d, kind), row in self.loops.rows.items()
        }  # fmt: skip
        return replace(self.loops, body=self._body(self.loops.body), rows=rows)

    # --- one case --------------------------------------------------------------------------------

    def _case(self, n, case, kinds):
        """The case with some of its loads replaced by what they were computed from."""
        nodes, wanted = case.graph.nodes, [*case.roots, *(c for c, *_ in case.checks)]
        groups, known = {}, set()
        for i in case.graph.reachable(wanted):
            if nodes[i][0] == "input":
                place = place_of(nodes[i][1])
                known.add(nodes[i][1:])
                source = self.storing.get(place.table)
                if source is not None and source < n and place.paths[0] in kinds:
                    groups.setdefault((place.table, place.paths[0]), []).append(i)
        given = {}
        for (table, path), loads in groups.items():
            code, walks = self.codes[self.storing[table]]
            first = code.cases.get((kinds[path],))
            if first is None:
                continue
            stored = dict(zip((a.name for a in first.outputs), first.roots, strict=True))
            roots = {}
            for i in loads:
                root = stored.get(f"{nodes[i][1].partition('@')[0]}@{walks[0].variable}"
                                  f"[{nodes[i][2][0]}]")  # fmt: skip
                if root is not None:
                    roots[i] = root
            rename = walks[0].variable, path
            free = {i: r for i, r in roots.items() if self._is_free(first.graph.nodes[r])}
            rest = {i: r for i, r in roots.items() if i not in free}
            taken = {**free, **(rest if self._pays(first, rest, rename, known) else {})}
            given |= {i: (first.graph, root, rename) for i, root in taken.items()}
        return _rebuilt(case, given) if given else case

    def _is_free(self, node):
        """Whether a stored value is a number of the robot, or a constant."""
        if node[0] == "const":
            return True
        return node[0] == "input" and self._storage(node[1]) == "model"

    def _storage(self, name):
        return self.loops.tables[place_of(name).table].storage

    def _pays(self, case, roots, rename, known):
        """Whether computing some loads again is worth it, and possible."""
        nodes, operations, loads = case.graph.nodes, 0, 0
        for i in case.graph.reachable(list(roots.values())):
            op = nodes[i][0]
            if op in _OPAQUE:
                return False
            if op == "input":
                place, storage = place_of(nodes[i][1]), self._storage(nodes[i][1])
                if storage == "result" or (storage == "rows" and place.table not in self.storing):
                    return False
                operations += 1
                is_new = (_renamed(nodes[i][1], rename), nodes[i][2]) not in known
                loads += is_new and storage != "model"
            elif op not in LEAVES:
                operations += _COSTS.get(op, 1)
        return operations <= _WORTH * 2 * (len(roots) - loads)

    # --- what is left ----------------------------------------------------------------------------

    def _loads(self):
        """Table, number, kind and domain of all rows that are loaded; kind None for any."""
        found = set()
        for code, walks in self.codes:
            for kinds, case in self.new[id(code)].items():
                at = {w.variable: kind for w, kind in zip(walks, kinds, strict=True)}
                wanted = [*case.roots, *(c for c, *_ in case.checks)]
                for i in case.graph.reachable(wanted):
                    node = case.graph.nodes[i]
                    if node[0] == "input" and self._storage(node[1]) == "rows":
                        place = place_of(node[1])
                        kind = at.get(place.paths[0]) if place.paths[0] else ""
                        found.add((place.table, node[2][0] if node[2] else 0, kind))
        return found

    def _drop_unread(self):
        """Forget stores to tables that nothing loads any more, for the kinds that did."""
        while True:
            loaded, changed = self._loads(), False
            for code, walks in self.codes:
                for kinds, case in self.new[id(code)].items():
                    keep = [
                        self._is_read(place_of(a.name), walks, kinds, loaded) for a in case.outputs
                    ]
                    if not all(keep):
                        changed = True
                        pairs = zip(case.outputs, case.roots, keep, strict=True)
                        kept = [(a, root) for a, root, wanted in pairs if wanted]
                        outputs, roots = zip(*kept, strict=True) if kept else ((), ())
                        self.new[id(code)][kinds] = replace(
                            case, outputs=tuple(outputs), roots=tuple(roots)
                        )
            if not changed:
                return

    def _is_read(self, place, walks, kinds, loaded):
        if place.table not in self.storing:
            return True
        at = {w.variable: kind for w, kind in zip(walks, kinds, strict=True)}
        k = place.index[0] if place.index else 0
        return any((place.table, k, kind) in loaded for kind in (at.get(place.paths[0]), None))

    def _used(self):
        """Domain, kind, table and number of rows that are loaded or stored."""
        found = set()
        for code, walks in self.codes:
            for kinds, case in self.new[id(code)].items():
                at = {w.variable: kind for w, kind in zip(walks, kinds, strict=True)}
                wanted = [*case.roots, *(c for c, *_ in case.checks)]
                nodes = [case.graph.nodes[i] for i in case.graph.reachable(wanted)]
                places = [place_of(m[1])._replace(index=m[2]) for m in nodes if m[0] == "input"]
                for place in (*places, *(place_of(a.name) for a in case.outputs)):
                    table = self.loops.tables.get(place.table)
                    if table is not None and table.storage == "rows":
                        kind = at.get(place.paths[0], "")
                        found.add((table.domain, kind, place.table, *(place.index[:1] or (0,))))
        return found

    def _body(self, body):
        """Regions with the new cases."""
        found = []
        for region in body:
            if isinstance(region, Code):
                region = replace(region, cases=self.new[id(region)])
            elif not isinstance(region, Clear):
                region = replace(region, body=self._body(region.body))
                if isinstance(region, (Until, When)):
                    (condition,) = self._body((region.condition,))
                    region = replace(region, condition=condition)
            found.append(region)
        return tuple(found)


def _renamed(name, rename):
    """The name of an input with another variable for the first one."""
    old, new = rename
    table, _, where = name.partition("@")
    paths = [
        new + path[len(old) :] if path == old or path.startswith(old + ".") else path
        for path in where.split(",")
    ]
    return f"{table}@{','.join(paths)}"


def _rebuilt(case, given):
    """A case with some of its inputs replaced by nodes of other graphs."""
    graph, made = Graph(), {}
    shapes = {a.name: a.shape for a in case.inputs}

    def copied(source, roots, rename, key):
        for i in source.reachable(roots):
            if (key, i) in made:
                continue
            node = source.nodes[i]
            if node[0] == "input":
                if key is None and i in given:
                    other, root, renaming = given[i]
                    copied(other, [root], renaming, (id(other), renaming))
                    made[key, i] = made[(id(other), renaming), root]
                    continue
                name = _renamed(node[1], rename) if rename else node[1]
                least = tuple(k + 1 for k in node[2])
                shapes[name] = tuple(map(max, shapes.get(name, least), least))
                made[key, i] = graph.node("input", name, node[2])
            elif node[0] in LEAVES:
                made[key, i] = graph.node(*node)
            else:
                made[key, i] = graph.node(node[0], *(made[key, a] for a in node[1:]))

    copied(case.graph, [*case.roots, *(c for c, *_ in case.checks)], None, None)
    checks = tuple((made[None, c], *rest) for c, *rest in case.checks)
    roots = tuple(made[None, r] for r in case.roots)
    inputs = tuple(Argument(*item) for item in shapes.items())
    return replace(case, inputs=inputs, graph=graph, roots=roots, checks=checks)
