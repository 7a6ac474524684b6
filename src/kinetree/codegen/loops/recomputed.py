"""Less to remember: what a case can compute again from arguments and the robot is not stored.

On a GPU a number that goes to memory and comes back takes as long as dozens of operations. The
transform of a joint, say, is twelve numbers that an outward walk stores and later walks load; they
follow from one angle, its sine and cosine, and the placement of the joint.
"""

from dataclasses import replace

from kinetree.codegen.loops import language
from kinetree.codegen.loops.stores import ANY, Stores, drop_unread, used_numbers
from kinetree.codegen.program import Argument
from kinetree.expr.node import LEAVES, Graph

_WORTH = 12  # operations that one number less in memory is worth; a GPU computes 28 in its time
_COSTS = {"sin": 20, "cos": 20, "/": 8, "sqrt": 8, "atan2": 40, "exp": 20, "log": 20, "tanh": 30}
_OPAQUE = ("repeat", "final", "carry", "call", "callee", "result")


def recompute(program: language.LoopProgram) -> language.LoopProgram:
    """Loop program with the same results that recomputes values where loading takes longer."""
    return _Recomputed(program).program()


class _Recomputed:
    def __init__(self, loops):
        self.loops = loops
        self.codes = list(loops.codes())
        self.storing = self._storing()

    def _storing(self):
        """Number of the code that sets each table, for tables set once by an outermost walk."""
        found, spoilt = {}, set()
        outermost = {id(c) for w in self.loops.body if isinstance(w, language.Walk) for c in w.body}
        for region, _ in language.regions(self.loops.body):
            if isinstance(region, language.Clear):
                spoilt.add(region.table)
        for n, (code, walks) in enumerate(self.codes):
            alone = id(code) in outermost and isinstance(walks[0].over, str)
            for case in code.cases.values():
                for place in map(language.place_of, (a.name for a in case.outputs)):
                    own = alone and place.paths == (walks[0].variable,) and not place.adds
                    if not own or found.setdefault(place.table, n) != n:
                        spoilt.add(place.table)
        return {t: n for t, n in found.items() if t not in spoilt and self._is_rows(t)}

    def _is_rows(self, table):
        """Whether a table has one row for each body or joint."""
        return table in self.loops.tables and self.loops.tables[table].storage == "rows"

    def program(self):
        """Loop program in which later walks recompute values of earlier ones instead of loads."""
        new = {}  # by code and kinds
        for n, (code, walks) in enumerate(self.codes):
            variables = [w.variable for w in walks]
            for key, case in code.cases.items():
                case = self._case(n, case, dict(zip(variables, key, strict=True)))
                new[id(code), key] = case, Stores.of(case, variables, key)
        cases = [stores for _, stores in new.values()]
        drop_unread(cases, lambda case, place, node: place.table not in self.storing or None)
        used = {
            (self.loops.tables[table].domain, "" if kind is ANY else kind, table, k)
            for kind, table, k in used_numbers(cases)
        }
        rows = {
            (d, kind): tuple(
                at for at in row if at in self.loops.shared.get(d, ()) or (d, kind, *at) in used
            )
            for (d, kind), row in self.loops.rows.items()
        }

        def change(code):
            return replace(code, cases={key: _trim(*new[id(code), key]) for key in code.cases})

        return replace(self.loops, body=language.with_codes(self.loops.body, change), rows=rows)

    # --- one case --------------------------------------------------------------------------------

    def _case(self, n, case, kinds):
        """A case in which loads of row values are replaced by their formulas, where it pays."""
        nodes, groups, known = case.graph.nodes, {}, set()
        for i in case.graph.reachable(case.wanted):
            if nodes[i][0] == "input":
                place = language.place_of(nodes[i][1])
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
                root = stored.get(
                    f"{nodes[i][1].partition('@')[0]}@{walks[0].variable}[{nodes[i][2][0]}]"
                )
                if root is not None:
                    roots[i] = root
            rename = walks[0].variable, path
            free = {i: r for i, r in roots.items() if self._is_free(first.graph.nodes[r])}
            rest = {i: r for i, r in roots.items() if i not in free}
            taken = {**free, **(rest if self._pays(first, rest, rename, known) else {})}
            given |= {i: (first.graph, root, rename) for i, root in taken.items()}
        return _rebuilt(case, given) if given else case

    def _is_free(self, node):
        """Whether a node costs no load from a row: a constant or a parameter of the model."""
        if node[0] == "const":
            return True
        return node[0] == "input" and self._storage(node[1]) == "model"

    def _storage(self, name):
        """Storage class of the table that an input's name refers to."""
        return self.loops.tables[language.place_of(name).table].storage

    def _pays(self, case, roots, rename, known):
        """Whether recomputing some values in a case replaces more loads than it adds work."""
        nodes, operations, loads = case.graph.nodes, 0, 0
        for i in case.graph.reachable(list(roots.values())):
            op = nodes[i][0]
            if op in _OPAQUE:
                return False
            if op == "input":
                place, storage = language.place_of(nodes[i][1]), self._storage(nodes[i][1])
                if storage == "result" or (storage == "rows" and place.table not in self.storing):
                    return False
                operations += 1
                is_new = (_rename(nodes[i][1], rename), nodes[i][2]) not in known
                loads += is_new and storage != "model"
            elif op not in LEAVES:
                operations += _COSTS.get(op, 1)
        return operations <= _WORTH * 2 * (len(roots) - loads)


def _trim(case, stores):
    """A straight-line case restricted to the outputs that ``stores`` still has."""
    pairs = list(zip(case.outputs, case.roots, strict=True))
    left = {*map(language.output_name, stores.stores), *stores.conditions}
    kept = [(a, root) for a, root in pairs if a.name in left]
    return replace(case, outputs=tuple(a for a, _ in kept), roots=tuple(root for _, root in kept))


def _rename(name, rename):
    """Name of an input in which one row path is replaced by another."""
    old, new = rename
    table, _, where = name.partition("@")
    paths = [
        new + path[len(old) :] if path == old or path.startswith(old + ".") else path
        for path in where.split(",")
    ]
    return f"{table}@{','.join(paths)}"


def _rebuilt(case, given):
    """A case in which some inputs are replaced by nodes copied from other cases' graphs."""
    graph, made = Graph(), {}
    shapes = {a.name: a.shape for a in case.inputs}

    def copy_nodes(source, roots, rename, key):
        for i in source.reachable(roots):
            if (key, i) in made:
                continue
            node = source.nodes[i]
            if node[0] == "input":
                if key is None and i in given:
                    other, root, renaming = given[i]
                    copy_nodes(other, [root], renaming, (id(other), renaming))
                    made[key, i] = made[(id(other), renaming), root]
                    continue
                name = _rename(node[1], rename) if rename else node[1]
                least = tuple(k + 1 for k in node[2])
                shapes[name] = tuple(map(max, shapes.get(name, least), least))
                made[key, i] = graph.node("input", name, node[2])
            elif node[0] in LEAVES:
                made[key, i] = graph.node(*node)
            else:
                made[key, i] = graph.node(node[0], *(made[key, a] for a in node[1:]))

    copy_nodes(case.graph, case.wanted, None, None)
    checks = tuple((made[None, c], *rest) for c, *rest in case.checks)
    roots = tuple(made[None, r] for r in case.roots)
    inputs = tuple(Argument(*item) for item in shapes.items())
    return replace(case, inputs=inputs, graph=graph, roots=roots, checks=checks)
