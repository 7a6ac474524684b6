"""Loops over tables in languages like C: walks are ``for`` loops, cases are blocks of a ``switch``.

The text is one function body for one sample. It expects these names:

    ints, numbers   tables of the robot: integers and numbers of the model (``loop_tables``)
    rows            the sample's rows of the workspace
    in_q, out_tau   the sample's arguments and results
    status          an ``int`` that notes failed checks
    ROW(p, k)       number ``k`` after ``p`` in the workspace
    ENTRY(p, k)     the same in an argument or result
    MODEL(k)        number ``k`` of the model
"""

from typing import Any

from kinetree.codegen.loops.language import (
    Chain,
    Clear,
    Code,
    Repeat,
    Until,
    Walk,
    When,
    domain_of,
    place_of,
)
from kinetree.codegen.order import fewest_waiting
from kinetree.codegen.program import Argument, regroup_sums
from kinetree.codegen.render.cstyle import assignments, identifier
from kinetree.codegen.render.loop_tables import KIND, NUMBERS, ROW, name_of
from kinetree.codegen.watch import SUMS_AND_PRODUCTS

# --- regions -------------------------------------------------------------------------------------


class LoopWriter:
    """Writes the regions of a program.

    Args:
        program: a ``LoopProgram``.
        plan: of the program.
        language: makes the language of a case, ``language(case)``; ``TableLanguage`` is one of its
            bases.
        zero: the number zero.
    """

    def __init__(self, program, plan, language, zero):
        self.program, self.plan, self.language, self.zero = program, plan, language, zero
        self.count = 0
        self.can_hide = False  # whether an argument that is not finite may leave no trace
        self.checks = False  # whether the text notes failed checks

    def text(self) -> list:
        """Lines of the whole loop program in a C-like language."""
        counts = [f"int {_count(name)} = 0;" for name in self.plan.lists]
        return [*counts, *self.regions(self.program.body, {})]

    def regions(self, body, scope) -> list:
        """Lines of regions (walks, loops, code) in order.

        Args:
            body: regions.
            scope: domain of each variable in scope.
        """
        ways = {Code: self._code, Walk: self._walk, Clear: self._clear, Repeat: self._repeat,
                Until: self._until, When: self._when}  # fmt: skip
        return [line for region in body for line in ways[type(region)](region, scope)]

    def _new(self, name):
        """New variable name: ``name`` and a number."""
        self.count += 1
        return f"{name}{self.count}"

    def _header(self, what):
        """Text of an entry of the robot's table of sizes, by name."""
        return f"ints[{self.plan.header[what]}]"

    def record(self, domain, row) -> str:
        """Text of the address of a row's record."""
        if not domain:
            return f"(ints + {self._header('records of ')})"
        return f"(ints + {self._header(f'records of {domain}')} + {self.plan.size(domain)} * {row})"

    def _walk(self, walk, scope):
        """Lines of a walk over the rows of a domain, or along a chain."""
        n = self._new("n")
        if isinstance(walk.over, Chain):
            domain, start, after = self._chain(walk, scope)
            head = f"for (int {n} = {start}; {n} >= 0;) {{"
            tail = [f"    {n} = {walk.variable}[{after}];"]
            if walk.backwards:
                return self._backwards(walk, scope, n, domain, start, after)
        else:
            domain, tail = walk.over, []
            is_list = domain in self.plan.lists
            count = _count(domain) if is_list else self._header(f"count of {domain}")
            head = f"for (int {n} = 0; {n} < {count}; {n}++) {{"
            if walk.backwards:
                head = f"for (int {n} = {count} - 1; {n} >= 0; {n}--) {{"
        body = self.regions(walk.body, {**scope, walk.variable: domain})
        if not body:  # nothing is left of what it computed
            return []
        own = f"const int *const {walk.variable} = {self.record(domain, n)};"
        if domain in self.plan.lists:
            own = f"const int {walk.variable} = {n};"
        return [head, f"    {own}", *(f"    {line}" for line in body), *tail, "}"]

    def _backwards(self, walk, scope, n, domain, start, after):
        """Lines of a walk along a chain from its last row, each found again from the start."""
        up = f"{self.record(domain, n)}[{after}]"
        body = self.regions(walk.body, {**scope, walk.variable: domain})
        if not body:
            return []
        return [
            "{",
            f"    int {n}_left = 0;",
            f"    for (int {n} = {start}; {n} >= 0; {n} = {up}) {n}_left++;",
            f"    while ({n}_left--) {{",
            f"        int {n} = {start};",
            f"        for (int k = 0; k < {n}_left; k++) {n} = {up};",
            f"        const int *const {walk.variable} = {self.record(domain, n)};",
            *(f"        {line}" for line in body),
            "    }",
            "}",
        ]

    def _chain(self, walk, scope):
        """Domain of a chain, text of its first row, and the word that names the next row."""
        first, *columns = walk.over.start.split(".")
        domain, row = scope.get(first, ""), first if first in scope else self.record("", 0)
        for column in columns[:-1]:
            target, at = self.plan.columns[domain][column]
            domain, row = target, self.record(target, f"{row}[{at}]")
        domain, at = self.plan.columns[domain][columns[-1]]
        return domain, f"{row}[{at}]", self.plan.columns[domain][walk.over.column][1]

    def _clear(self, region, scope):
        """Lines that empty a list, or set a table to zero."""
        if region.table in self.plan.lists:
            return [f"{_count(region.table)} = 0;"]
        table = self.program.tables[region.table]
        n = self._new("n")
        if table.storage == "result":
            size = " * ".join(map(self.length, table.axes)) or "1"
            name = identifier(f"out_{table.name}")
            return [f"for (int {n} = 0; {n} < {size}; {n}++) ENTRY({name}, {n}) = {self.zero};"]
        lines = []
        every = {name_of(k): row for (d, k), row in self.program.rows.items() if d == table.domain}
        for k, kind in enumerate(self.plan.kinds[table.domain]):
            row = every.get(kind, ())
            places = [p for p, (name, _) in enumerate(row) if name == table.name]
            stores = " ".join(f"ROW(own, {p}) = {self.zero};" for p in places)
            lines.append(f"        case {k}: {stores} break;")
        record = self.record(table.domain, n)
        return [
            f"for (int {n} = 0; {n} < {self._header(f'count of {table.domain}')}; {n}++) {{",
            f"    real *const own = &ROW(rows, {record}[{ROW}]);",
            f"    switch ({record}[{KIND}]) {{",
            *lines,
            "    }",
            "}",
        ]

    def length(self, axis) -> str:
        """Text of an axis length, a constant or an entry of the robot's table of sizes."""
        return self._header(f"length of {axis}") if isinstance(axis, str) else str(axis)

    # --- control flow ----------------------------------------------------------------------------

    def _times(self, times):
        """Text of a loop's number of iterations."""
        if not isinstance(times, str):
            return str(times)
        name = identifier(f"in_{place_of(times).table}")
        return f"ENTRY({name}, 0)"

    def _repeat(self, region, scope):
        """Lines of a loop with a number of iterations."""
        n = self._new("n")
        body = self.regions(region.body, scope)
        head = f"for (int {n} = 0; {n} < {self._times(region.times)}; {n}++) {{"
        return [head, *(f"    {line}" for line in body), "}"]

    def _until(self, region, scope):
        """Lines of a loop that ends when a condition holds."""
        n = self._new("n")
        body, held, condition = self.regions(region.body, scope), *self._condition(region, scope)
        return [
            f"for (int {n} = 0; {n} < {self._times(region.most)}; {n}++) {{",
            *(f"    {line}" for line in (*body, *condition)),
            f"    if ({held}) break;",
            "}",
        ]

    def _when(self, region, scope):
        """Lines of a block that runs if a condition holds."""
        held, condition = self._condition(region, scope)
        body = self.regions(region.body, scope)
        return [*condition, f"if ({held}) {{", *(f"    {line}" for line in body), "}"]

    def _condition(self, region, scope):
        """Name of a variable for a condition, and the lines that compute it."""
        name = self._new("held")
        return name, [f"int {name} = 0;", *self._code(region.condition, scope, name)]

    # --- cases -----------------------------------------------------------------------------------

    def _code(self, code, scope, held=None):
        """Lines that switch to the case for the kinds of rows in scope; equal cases are merged."""
        texts: dict = {}
        for key, case in code.cases.items():
            number = 0
            for domain, kind in zip(scope.values(), key, strict=True):
                known = self.plan.kinds[domain]
                number = number * len(known) + known.index(name_of(kind))
            variables = {v: (d, k) for (v, d), k in zip(scope.items(), key, strict=True)}
            text = self._case(case, variables, held, code.appends)
            texts.setdefault(tuple(text), []).append(number)
        if len(texts) == 1:
            (lines,) = texts
            return ["{", *(f"    {line}" for line in lines), "}"] if lines else []
        switch = ""
        for variable, domain in scope.items():
            kind = f"{variable}[{KIND}]"
            count = len(self.plan.kinds[domain])
            if count > 1:
                switch = f"({switch}) * {count} + {kind}" if switch else kind
        lines = [f"switch ({switch}) {{"]
        for text, numbers in texts.items():
            lines.append("".join(f"case {n}: " for n in numbers) + "{")
            lines += [*(f"    {line}" for line in text), "    break;", "}"]
        return [*lines, "}"]

    def _case(self, case, variables, held, appends):
        """Lines of the straight-line code for one combination of kinds of rows."""
        case = with_arguments(regroup_sums(case))
        self.can_hide |= hides(case)
        self.checks |= bool(case.checks or appends)
        language = self.language(case)
        language.place(self, variables, held)
        items = assignments(case, language, order=loads_at_first_use(case))
        lines = [line for item in items for line in item.lines]
        for append in appends:
            lines += language.append_lines(append)
        kept = [f"int {_keep(append.list)} = 1;" for append in appends]
        return [*kept, *language.addresses.values(), *lines]


def _count(name):
    """Name of the variable with the number of rows in a list."""
    return identifier(f"count_{name}")


def _keep(name):
    """Name of the variable that tells whether an appended row is kept."""
    return identifier(f"keep_{name}")


def with_arguments(case):
    """A case whose loads are all declared as input arguments."""
    known = {n[1] for n in case.graph.nodes if n[0] == "input"} - {a.name for a in case.inputs}
    new = tuple(Argument(name, ()) for name in sorted(known))
    return type(case)(
        case.name, (*case.inputs, *new), case.outputs, case.graph, case.roots, case.checks
    )


def hides(case) -> bool:
    """Whether a case has operations, such as select, that can hide infinite or NaN values."""
    nodes = case.graph.nodes
    return any(nodes[i][0] not in SUMS_AND_PRODUCTS for i in case.graph.reachable(case.roots))


def loads_at_first_use(case) -> list:
    """Order of nodes in which loads from places that the case also stores to come first."""
    nodes, order, seen = case.graph.nodes, [], set()
    stored = {place_of(a.name)[:3] for a in case.outputs}
    waiting = fewest_waiting(case)

    def place(i):
        return place_of(nodes[i][1])._replace(index=nodes[i][2])[:3]

    for i in waiting:
        if nodes[i][0] == "input" and place(i) in stored:
            order.append(i)
            seen.add(i)
    for i in waiting:
        if nodes[i][0] in ("input", "const"):
            continue
        for a in (*nodes[i][1:], i):
            if a not in seen:
                seen.add(a)
                order.append(a)
    return [*order, *(i for i in waiting if i not in seen)]


class TableLanguage:
    """A language whose inputs are loads from tables and whose outputs are stores."""

    inputs_have_names = True
    require: Any  # of the language

    def place(self, writer, variables, held):
        """Set the writer, and the domain and kind of each row variable, before a case is written.

        Args:
            writer: of the program.
            variables: domain and kind of each.
            held: name of the variable that has the condition, where the case computes one.
        """
        self.writer, self.variables, self.held = writer, variables, held
        self.addresses: dict = {}

    def input(self, argument, index):
        """Text of the load of a number from a table."""
        return self._at(place_of(argument.name)._replace(index=index))

    def output(self, argument, index, text):
        """Lines that store a number to a table, or add to it."""
        place = place_of(argument.name)
        if place.table == "holds":
            return [f"{self.held} = {text};"]
        if place.table == "keep":
            return [f"{_keep(place.paths[0])} = {text};"]
        return [f"{self._at(place)} {'+=' if place.adds else '='} {text};"]

    def _at(self, place):
        """Text of a number's place in memory, by the storage class of its table."""
        writer, table = self.writer, self.writer.program.tables[place.table]
        k = place.index[0] if place.index else 0
        if table.storage == "rows":
            row, places = self._row(place.paths[0])
            return f"ROW({row}, {places[place.table, k]})"
        if table.storage == "model":
            record, domain = self._record(place.paths[0])
            at = writer.plan.numbers[domain][place.table][0] + k
            first = self._once(f"model_{place.paths[0]}", "const int", f"{record}[{NUMBERS}]")
            return f"MODEL({first} + {at})"
        name = identifier(f"{'out' if table.storage == 'result' else 'in'}_{place.table}")
        at = ""
        index = place.index or (0,) * len(table.axes)
        for axis, path, n in zip(table.axes, place.paths, index, strict=bool(table.axes)):
            here = str(n)
            if path:
                head, _, column = path.rpartition(".")
                record, domain = self._record(head)
                word = writer.plan.columns[domain][column][1]
                first = self._once(f"first_{path}", "const int", f"{record}[{word}]")
                here = f"{first} + {n}" if n else first
            at = f"({at}) * {writer.length(axis)} + {here}" if at else here
        return f"ENTRY({name}, {at or 0})"

    def _once(self, name, kind, text):
        """Name of an address variable, which is defined once per case."""
        name = identifier(f"{name}_")
        self.addresses.setdefault(name, f"{kind} {name} = {text};")
        return name

    def _record(self, path):
        """Text of the record of the row that a path names, and its domain."""
        plan = self.writer.plan
        if path in ("", "world"):
            return self.writer.record("", 0), ""
        head, _, column = path.rpartition(".")
        if not head:
            return path, self.variables[path][0]
        target = plan.columns[self._domain(head)][column][0]
        text = self.writer.record(target, self._number(path))
        return self._once(f"record_{path}", "const int *const", text), target

    def _domain(self, path):
        """Domain of the row that a path names."""
        variables = {name: domain for name, (domain, _) in self.variables.items()}
        return domain_of(path, variables, self.writer.program.domains)

    def _number(self, path):
        """Text of the number of the row that a path names."""
        plan, domain = self.writer.plan, self._domain(path)
        head, _, column = path.rpartition(".")
        if not head:
            if domain in plan.lists:
                return path
            first = self.writer.record(domain, 0)
            return f"(int)(({path} - {first}) / {plan.size(domain)})"
        at = plan.columns[self._domain(head)][column][1]
        if self._domain(head) in plan.lists:
            return f"(int)ROW({self._row(head)[0]}, {at})"
        return f"{self._record(head)[0]}[{at}]"

    def _row(self, path):
        """Text of the address of a row in the workspace, and the offsets of its numbers."""
        program, plan, lists = self.writer.program, self.writer.plan, self.writer.plan.lists
        head, _, column = path.rpartition(".")
        if column == "new" and head in lists:
            domain, at = head, self._in_list(head, _count(head))
        elif self._domain(path) in lists:
            domain, at = self._domain(path), self._in_list(self._domain(path), self._number(path))
        elif head and self._domain(head) not in lists:
            record, domain = self._record(head)[0], self._domain(path)
            at = f"{record}[{plan.columns[self._domain(head)][column][1] + 1}]"
        else:
            record, domain = self._record(path)
            at = f"{record}[{ROW}]"
        if domain in lists:
            places = program.rows.get((domain, ""), ())
        elif head:
            places = program.shared[domain]
        else:
            places = program.rows[self.variables.get(path, ("", ""))]
        row = self._once(f"row_{path}", "real *RESTRICT const", f"&ROW(rows, {at})")
        first = len(plan.columns[domain]) if domain in lists else 0
        return row, {at: first + k for k, at in enumerate(places)}

    def _in_list(self, name, number):
        """Text of the address of a row of a list, by its number."""
        start = self.writer.plan.header[f"rows of {name}"]
        return f"ints[{start}] + {self.writer.plan.widths[name][0]} * {number}"

    def append_lines(self, append):
        """Lines that fill in a new row of a list, and count it if it is kept."""
        plan, name = self.writer.plan, append.list
        row, _ = self._row(f"{name}.new")
        lines = [
            f"ROW({row}, {plan.columns[name][column][1]}) = (real){self._number(path)};"
            for column, path in append.columns.items()
        ]
        most = f"ints[{plan.header[f'count of {name}']}]"
        full = " ".join(self.require("0"))
        count = f"if ({_count(name)} < {most}) {_count(name)}++; else {{ {full} }}"
        return [*lines, f"if ({_keep(name)}) {{ {count} }}"]
