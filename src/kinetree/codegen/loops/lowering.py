"""Lowering of loop programs: values, places and regions that languages only have to spell."""

from collections.abc import Callable

from kinetree.codegen.loops import language, lowered
from kinetree.codegen.loops.addresses import Addresses, header_word, product_of, sum_of
from kinetree.codegen.loops.language import input_name, place_of
from kinetree.codegen.loops.layout import KIND, name_of
from kinetree.codegen.loops.lowered import INTEGER, RECORD, LoweredCase, RowPlace, Value
from kinetree.codegen.loops.stores import explicit_sums
from kinetree.codegen.order import fewest_waiting
from kinetree.codegen.schedule import Statement, inputs_at_first_use, statements_of
from kinetree.errors import TraceError

# --- cases ----------------------------------------------------------------------------------------


def fused_statements(case) -> list:
    """Statements of a case with products fused into FMA and sines paired, as traced."""
    nodes, wanted = case.graph.nodes, case.wanted
    order = [i for i in case.graph.reachable(wanted) if nodes[i][0] != "const"]
    return statements_of(case.graph, order, wanted)


def single_statements(case) -> list:
    """Statements of a case, one per node, in an order with few live values."""
    nodes = case.graph.nodes
    order = [i for i in fewest_waiting(case) if nodes[i][0] != "const"]
    return [Statement((i,), nodes[i][0], _operands(nodes[i])) for i in order]


def _operands(node):
    """Operands of a graph node; none for constants and inputs."""
    return () if node[0] == "input" else node[1:]


def lower_case(
    case,
    variables: dict,
    program,
    layout,
    appends: tuple = (),
    statements: Callable = fused_statements,
    ahead: tuple | None = None,
) -> LoweredCase:
    """Lowered straight-line code of a case for some kinds of rows.

    Args:
        case: a ``Program`` whose inputs are loads and whose outputs are stores.
        variables: domain and kind of each variable in scope.
        program: the ``LoopProgram``.
        layout: of the program.
        appends: rows of lists that the case may append.
        statements: ``fused_statements`` or ``single_statements``.
        ahead: of the angle of this kind whose sine and cosine are computed ahead its input node,
            and how far its cosine is from its sine; None for none.
    """
    case, addresses = explicit_sums(case), Addresses(program, layout, variables)
    nodes = case.graph.nodes
    loads = {
        i: addresses.place(place_of(node[1])._replace(index=node[2]))
        for i, node in enumerate(nodes)
        if node[0] == "input"
    }
    stores, moves, answers, replaced = {}, {}, {}, {}
    inputs = {nodes[i][1:]: i for i in loads}
    for output, root in zip(case.outputs, case.roots, strict=True):
        place = place_of(output.name)
        if place.table in ("holds", "keep"):
            answers[output.name] = root
            continue
        old = inputs.get((input_name(place), place.index))
        where = moves if root in loads and old is not None else stores
        where.setdefault(root, {})[output.name] = addresses.place(place)
        replaced.setdefault(root, []).append(old)
    replaced = {i: old for i, old in replaced.items() if i not in moves}
    steps = [Statement((i,), "const", ()) for i in stores if nodes[i][0] == "const"]
    for s in statements(case):
        if ahead and s.op == "sincos" and nodes[s.operands[0]] == ahead[0]:
            sine = addresses.sine(next(iter(variables)))
            pairs = [(t, k) for k, t in enumerate(s.targets) if t is not None]
            loads |= {t: RowPlace(sine, k * ahead[1]) for t, k in pairs}
            steps += [Statement((t,), "ahead", ()) for t, _ in pairs]
        else:
            steps.append(s)
    found = inputs_at_first_use(steps, case.wanted, replaced)
    rows = tuple(addresses.new_row(a, answers.get(f"keep@{a.list}")) for a in appends)
    return LoweredCase(case, tuple(found), loads, stores, moves, answers, rows)


def angle_of(program, layout, domains, kinds):
    """Argument, column and index of the joint angle whose sine is computed in advance, or None.

    That of the row's own entries in an argument which code of its kind asks for first: the angle of
    a hinge. Those of all rows are computed in one loop (see ``render.llvm_math``); in the middle of
    a case, everything would wait for them.
    """
    if len(kinds) != 1:
        return None
    for _, code, (walk,) in cases_of(program, layout, domains, kinds):
        graph = code.cases[tuple(kinds)].graph
        for op, *operands in graph.nodes:
            if op in ("sin", "cos") and graph.nodes[operands[0]][0] == "input":
                _, name, index = graph.nodes[operands[0]]
                place = place_of(name)
                variable, _, column = place.paths[0].partition(".")
                table, own = program.tables[place.table], variable == walk.variable
                if table.storage == "argument" and len(index) == 1 and own and "." not in column:
                    return [place.table, column, index[0]]
    return None


def cases_of(program, layout, domains, kinds):
    """Number, code and surrounding walks of all code with a case for these kinds of rows."""
    for n, (code, walks) in enumerate(program.codes()):
        if layout.codes[n] == list(domains) and tuple(kinds) in code.cases:
            yield n, code, walks


# --- regions --------------------------------------------------------------------------------------


class _Regions:
    """Lowers regions; ``scope`` has the domain of each variable, and a kind that is no matter."""

    def __init__(self, program, layout, whole):
        self.program, self.layout, self.whole, self.walks = program, layout, whole, 0
        self.number = {id(code): n for n, (code, _) in enumerate(program.codes())}
        self.ways = {
            language.Walk: self._walk, language.Repeat: self._times, language.Until: self._times,
            language.When: self._when, language.Code: self._call, language.Clear: self._clear,
        }  # fmt: skip

    def lower(self, body, scope) -> tuple:
        """Lowered regions (loops, choices, cases) of a loop program, in order."""
        return tuple(self.ways[type(region)](region, scope) for region in body)

    def _addresses(self, scope):
        """Lowered addresses for the rows in scope."""
        return Addresses(self.program, self.layout, scope)

    def _walk(self, walk, scope):
        """Lowered loop over all rows of a domain, or along a chain."""
        if not isinstance(walk.over, language.Chain):
            scope = {**scope, walk.variable: (walk.over, "")}
            return self._rows(walk.variable, scope, walk.backwards, self.lower(walk.body, scope))
        first, domain = self._addresses(scope).record(walk.over.start)
        word = self.layout.column(domain, walk.over.column)[1]
        variable = Value(walk.variable, RECORD, "variable")
        following = Value(f"next.{walk.variable}", RECORD, "word", (variable, word))
        body = self.lower(walk.body, {**scope, walk.variable: (domain, "")})
        return lowered.ChainLoop(variable, first, following, walk.backwards, body)

    def _rows(self, name, scope, backwards, body):
        """Lowered loop over all rows of a variable's domain."""
        addresses, layout, (domain, _) = self._addresses(scope), self.layout, scope[name]
        if domain in layout.lists:
            self.walks += 1  # a list may have another count each time
            count = addresses.count(domain, f".{self.walks}")
            first = addresses.first_of_list(domain)
        else:
            count = header_word(layout, f"count of {domain}")
            first = header_word(layout, f"records of {domain}", RECORD)
        variable, size = addresses.record(name)[0], layout.size(domain)
        return lowered.RowLoop(variable, first, size, count, backwards, body)

    def _times(self, region, scope):
        """Lowered loop with a count (number or argument), or until a condition holds."""
        until, body = None, self.lower(region.body, scope)
        if isinstance(region, language.Until):
            most, until = region.most, self._call(region.condition, scope, decides=True)
        else:
            most = region.times
        if isinstance(most, str):
            most = self._addresses({}).array(place_of(most).table)
        return lowered.CountedLoop(most, until, body)

    def _when(self, region, scope):
        """Lowered block that runs if a condition holds."""
        condition = self._call(region.condition, scope, decides=True)
        return lowered.Choice(condition, self.lower(region.body, scope))

    def _call(self, code, scope, decides=False):
        """Lowered call of the case for the kinds of the rows in scope."""
        index, addresses = None, self._addresses(scope)
        records = {name: addresses.record(name)[0] for name in scope}
        for name, (domain, _) in scope.items():
            kinds = self._kinds(domain)
            index = None if index is None else product_of(index, kinds)
            if kinds != 1:
                index = sum_of(index, Value(f"kind.{name}", INTEGER, "word", (records[name], KIND)))
        cases = {}
        for key, case in code.cases.items() if self.whole else ():
            variables = {n: (d, k) for (n, (d, _)), k in zip(scope.items(), key, strict=True)}
            number = 0
            for domain, kind in variables.values():
                known = list(self.layout.widths[domain])
                number = number * len(known) + known.index(name_of(kind))
            given = variables, self.program, self.layout, code.appends, single_statements
            cases[number] = lower_case(case, *given)
        table = header_word(self.layout, f"code {self.number[id(code)]}", RECORD)
        index = 0 if index is None else index
        return lowered.CaseCall(table, index, tuple(records.values()), cases, decides)

    def _kinds(self, domain):
        """Number of kinds that the rows of a domain have."""
        if domain in self.layout.lists:
            return 1
        known = self.layout.widths.get(domain)
        return len(known) if known else header_word(self.layout, f"kinds of {domain}")

    def _clear(self, region, scope):
        """Lowered clearing of a list, result or table of rows."""
        addresses, name = self._addresses({}), region.table
        if name in self.layout.lists:
            return lowered.EmptyList(name, addresses.cell(name))
        table = self.program.tables[name]
        if table.storage == "result":
            return lowered.ZeroArray(addresses.array(name), addresses.length(table.axes))
        scope, shared = {"i": (table.domain, "")}, self.program.shared.get(table.domain, ())
        row, numbers = addresses.row("")
        if table.domain:
            row, numbers = (
                self._addresses(scope).row("i")[0],
                {at: k for k, at in enumerate(shared)},
            )
            of = {at for (d, _), x in self.program.rows.items() if d == table.domain for at in x}
            if any(t == name for t, _ in of.difference(shared)):
                raise TraceError(
                    f"{self.program.name} clears table {name}, of which other rows see a part: "
                    f"clear results, tables of the single row, or tables that others see as a whole"
                )
        places = tuple(RowPlace(row, k) for (t, _), k in numbers.items() if t == name)
        zeros = lowered.ZeroNumbers(places)
        return self._rows("i", scope, False, (zeros,)) if table.domain else zeros


def lower_regions(program, layout, *, whole=False) -> tuple:
    """Lowered form of all regions of a loop program.

    Args:
        program: a ``LoopProgram``.
        layout: of the program.
        whole: whether calls have their cases; else these are code by itself (``lower_case``).
    """
    lists = tuple(language.Clear(name) for name in layout.lists)
    return _Regions(program, layout, whole).lower((*lists, *program.body), {})
