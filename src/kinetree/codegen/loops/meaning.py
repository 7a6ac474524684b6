"""The meaning of loop programs: an interpreter, one case after the other, on NumPy arrays.

All samples go together, as leading axes of the arrays, unless values decide which case runs next:
then one after the other. It checks what compiled code relies on: that rows exist and are set
before they are read, and that two paths of a case which name the same row do not get in each
other's way.
"""

from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from kinetree.codegen.loops import language
from kinetree.codegen.program import Program
from kinetree.errors import ShapeError, TraceError
from kinetree.expr.interpret import evaluate


def interpret(program: language.LoopProgram, data: language.Data, *arrays: Any) -> tuple:
    """Results of a loop program for one robot, interpreted in Python; a tuple of arrays."""
    return _run(program, data, arrays)[0]


def holds(program: language.LoopProgram, data: language.Data, *arrays: Any) -> Any:
    """Whether all run-time checks of a loop program hold, for each sample."""
    return _run(program, data, arrays)[1]


def _run(program, data, arrays):
    """Interpret a loop program in Python, sample by sample: results, and whether checks hold."""
    if len(arrays) != len(program.arguments):
        raise ShapeError(
            f"{program.name} takes {len(program.arguments)} arrays "
            f"({', '.join(program.arguments)}), got {len(arrays)}"
        )
    given, batches = {}, []
    for name, array in zip(program.arguments, arrays, strict=True):
        given[name] = np.asarray(array)
        sizes = _sizes(program, data, name)
        batches.append(given[name].shape[: given[name].ndim - len(sizes)])
        if given[name].shape[len(batches[-1]) :] != sizes:
            raise ShapeError(
                f"{program.name}: {name} has shape {sizes} for this robot, got {given[name].shape}"
            )
    batch = np.broadcast_shapes(*batches)
    if not program.by_values or not batch:
        return _Run(program, data, given, batch).outcome()
    each = {n: np.broadcast_to(a, (*batch, *_sizes(program, data, n))) for n, a in given.items()}
    runs = [
        _Run(program, data, {n: a[at] for n, a in each.items()}, ()).outcome()
        for at in np.ndindex(batch)
    ]
    results = [
        np.array(x).reshape(*batch, *x[0].shape) for x in zip(*(r for r, _ in runs), strict=True)
    ]
    return tuple(results), np.array([good for _, good in runs]).reshape(batch)


def _sizes(program, data, name):
    """Lengths of the axes of an argument or result, for a robot."""
    axes = program.tables[name].axes
    return tuple(data.lengths[n] if isinstance(n, str) else n for n in axes)


@lru_cache(maxsize=4096)
def _accesses(case: Program):
    """Places that a case loads, by the name of the input, and places that it stores to."""
    loads: dict[str, list] = {}
    for i in case.graph.reachable(case.wanted):
        node = case.graph.nodes[i]
        if node[0] == "input":
            loads.setdefault(node[1], []).append(language.place_of(node[1])._replace(index=node[2]))
    return loads, [language.place_of(o.name) for o in case.outputs]


class _Run:
    """One run: the rows that are set, by table, row and number, and the results."""

    def __init__(self, program, data, given, batch):
        self.program, self.data, self.given, self.batch = program, data, given, batch
        self.dtype = np.result_type(float, *given.values())
        self.results = {
            n: np.full((*batch, *_sizes(program, data, n)), np.nan, self.dtype)
            for n in program.results
        }
        self.rows = {}
        self.cleared = set()
        self.lists = {d.name: [] for d in program.domains.values() if d.grows}
        self.good = np.ones(batch, dtype=bool)

    def outcome(self):
        """Run the program; its results, and whether all run-time checks hold."""
        self.run(self.program.body, {})
        return tuple(self.results[n] for n in self.program.results), self.good

    # --- regions ----------------------------------------------------------------------------

    def run(self, body, at):
        """Run regions in order; ``at`` has domain and row number of each loop variable."""
        for region in body:
            if isinstance(region, language.Code):
                self.code(region, at)
            elif isinstance(region, language.Walk):
                domain, rows = self.walk_rows(region.over, at)
                for row in reversed(rows) if region.backwards else rows:
                    self.run(region.body, {**at, region.variable: (domain, row)})
            elif isinstance(region, language.Repeat):
                for _ in range(self.times(region.times)):
                    self.run(region.body, at)
            elif isinstance(region, language.Until):
                for _ in range(self.times(region.most)):
                    self.run(region.body, at)
                    if self.code(region.condition, at)["holds@"]:
                        break
            elif isinstance(region, language.When):
                if self.code(region.condition, at)["holds@"]:
                    self.run(region.body, at)
            else:
                self.clear(region)

    def walk_rows(self, over, at):
        """Domain and row numbers of a walk: all rows of a domain, or a chain (ancestors)."""
        if not isinstance(over, language.Chain):
            return over, list(range(self.count(over)))
        domain, row = self.row(over.start, at)
        rows = []
        while row != language.NO_ROW:
            rows.append(row)
            row = self.column(domain, over.column, row)
        return domain, rows

    def times(self, times):
        """Number of iterations of a loop, from a constant or an argument; negative counts are 0."""
        number = self.given[times.rstrip("@")] if isinstance(times, str) else times
        return max(0, ceil(number))

    def clear(self, region: language.Clear):
        """Empty a list, set a result to zero, or forget all rows of a table."""
        if region.table in self.lists:
            self.lists[region.table] = []
        elif region.table in self.results:
            self.results[region.table][...] = 0
        else:
            self.rows = {k: x for k, x in self.rows.items() if k[0] != region.table}
            self.cleared.add(region.table)

    # --- cases ------------------------------------------------------------------------------

    def code(self, code, at):
        """Run the straight-line case for the kinds of rows in scope; values of its conditions."""
        case = code.cases.get(tuple(self.kind(*row) for row in at.values()))
        if case is None:
            kinds = ", ".join(str(self.kind(*row)) for row in at.values())
            raise TraceError(f"{self.program.name} has not been recorded for rows of kind {kinds}")
        loads, stores = _accesses(case)
        ends = {a.list: len(self.lists[a.list]) for a in code.appends}
        self.check_aliases(loads, stores, at)
        inputs = {}
        for argument in case.inputs:
            values = np.full((*self.batch, *argument.shape), np.nan, self.dtype)
            for place in loads.get(argument.name, ()):
                values[(..., *place.index)] = self.load(place, at)
            inputs[argument.name] = values
        axes = {a.name: len(a.shape) for a in case.inputs}
        values = evaluate(case.graph, case.wanted, inputs, axes=axes)
        values = [np.broadcast_to(x, self.batch) for x in values]
        for good in values[len(stores) :]:
            self.good = self.good & good
        conditions = {}
        for place, output, x in zip(stores, case.outputs, values, strict=False):
            if place.table in ("keep", "holds"):
                conditions[output.name] = bool(x)
            else:
                self.store(place, x, at, ends)
        for append in code.appends:
            if conditions.get(f"keep@{append.list}", True):
                columns = {c: self.row(path, at)[1] for c, path in append.columns.items()}
                if ends[append.list] < self.data.domains[append.list].count:
                    self.lists[append.list].append(columns)
                else:
                    self.good = self.good & False
        return conditions

    def check_aliases(self, loads, stores, at):
        """Raise TraceError if two paths name one row, and the code stores to it by one of them."""
        seen = {}
        places = [(p, False) for found in loads.values() for p in found[:1]]
        for place, stored in [*places, *((p, True) for p in stores)]:
            declared = self.program.tables.get(place.table)
            if declared is None or declared.storage != "rows" or place.paths[0].endswith(".new"):
                continue
            path = place.paths[0]
            key = place.table, self.row(path, at)[1] if path else 0
            before, was_stored = seen.setdefault(key, (path, stored))
            if before != path and (stored or was_stored):
                raise TraceError(
                    f"{self.program.name}: {before} and {path} are the same row of table "
                    f"{place.table}, {key[1]}, and code that stores to one of them relies on their "
                    f"being different rows"
                )

    def load(self, place: language.NumberPlace, at):
        """Number that a place holds, of an argument, the model or a row; TraceError if not set."""
        declared = self.program.tables[place.table]
        if declared.storage == "argument" or declared.storage == "result":
            arrays = self.given if declared.storage == "argument" else self.results
            return arrays[place.table][(..., *self.entry(place, at))]
        row = self.row(place.paths[0], at)[1] if place.paths[0] else 0
        self.check_row(place, declared.domain, row)
        if declared.storage == "model":
            return self.data.numbers[declared.domain][place.table][row, place.index[0]]
        key = place.table, row, place.index[0]
        if key not in self.rows and place.table not in self.cleared:
            raise TraceError(
                f"{self.program.name}: row {row} of table {place.table} is read "
                f"({place.paths[0]}, number {place.index[0]}) before it is set"
            )
        return self.rows.get(key, 0.0)

    def store(self, place: language.NumberPlace, x, at, ends):
        """Set the number at a place to ``x``, or add ``x`` to it."""
        declared = self.program.tables[place.table]
        if declared.storage == "result":
            where = (..., *self.entry(place, at))
            array = self.results[place.table]
            array[where] = array[where] + x if place.adds else x
            return
        path = place.paths[0]
        if path.endswith(".new"):
            row = ends[path[: -len(".new")]]
        else:
            row = self.row(path, at)[1] if path else 0
            self.check_row(place, declared.domain, row)
        key = place.table, row, place.index[0]
        self.rows[key] = self.load(place, at) + x if place.adds else x

    # --- rows -------------------------------------------------------------------------------

    def row(self, path, at):
        """Domain and number of the row that a path such as ``i.parent`` names."""
        variable, *columns = path.split(".")
        domain, row = (language.SINGLE, 0) if variable == "world" else at[variable]
        for column in columns:
            domain, row = (
                self.program.domains[domain].columns[column],
                self.column(domain, column, row),
            )
        return domain, row

    def column(self, domain, column, row):
        """Index of the row that a table column holds for a row, such as the parent of a body."""
        if domain in self.lists:
            return self.lists[domain][row][column]
        return int(self.data.domains[domain].columns[column][row])

    def count(self, domain):
        """Number of rows of a domain or of a list."""
        return len(self.lists[domain]) if domain in self.lists else self.data.domains[domain].count

    def kind(self, domain, row):
        """Kind of a row, which selects the code that runs for it."""
        if domain in self.lists:
            return ""
        rows = self.data.domains[domain]
        return rows.kinds[rows.kind_numbers[row]]

    def check_row(self, place, domain, row):
        """Raise an error unless a place lies in one of the rows of its domain."""
        count = 1 if domain == language.SINGLE else self.count(domain)
        if not 0 <= row < count:
            raise TraceError(
                f"{self.program.name}: {place.table}@{place.paths[0]} is row {row} of {count}"
            )

    def entry(self, place, at):
        """Index of a place in an argument or result; TraceError if it is out of range."""
        found = []
        sizes = _sizes(self.program, self.data, place.table)
        for path, k, n in zip(place.paths, place.index, sizes, strict=True) if sizes else ():
            at_row = self.row(path, at)[1] if path else 0
            found.append(at_row + k)
            if not 0 <= found[-1] < n:
                raise TraceError(
                    f"{self.program.name}: entry {found[-1]} of {place.table} along an axis of {n}"
                )
        return tuple(found)
