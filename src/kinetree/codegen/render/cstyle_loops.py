"""Loop programs in languages like C: regions are loops, cases are blocks of a ``switch``.

The text is one function body for one sample. It expects these names:

    ints, numbers   tables of the robot: integers and numbers of the model (``loops.robots.tables``)
    rows            the sample's rows of the workspace
    in_q, out_tau   the sample's arguments and results
    status          an ``int`` that notes failed checks
    ROW(p, k)       number ``k`` after ``p`` in the workspace
    ENTRY(p, k)     the same in an argument or result
    MODEL(k)        number ``k`` of the model

A record of a row is a pointer into ``ints``; that of a row of a list the number of its place in the
workspace, where its words are numbers, too.
"""

from contextlib import contextmanager
from typing import Any

from kinetree.codegen.loops.addresses import header_word
from kinetree.codegen.loops.lowered import (
    INTEGER,
    LISTED,
    MODEL,
    NUMBERS,
    RECORD,
    ROBOT,
    EntryPlace,
    LoweredWriter,
    ModelPlace,
    Value,
)
from kinetree.codegen.loops.lowering import lower_regions
from kinetree.codegen.render.cstyle import assignments, identifier
from kinetree.codegen.watch import SUMS_AND_PRODUCTS

_TYPES = {
    INTEGER: "const int", RECORD: "const int *const", LISTED: "const int",
    NUMBERS: "real *RESTRICT const", MODEL: "const int",
}  # fmt: skip
_TEXTS = {
    "sum": "{} + {}", "product": "{} * {}", "element": "{0} + {1} * {2}",
    "within": "{}", "row": "&ROW(rows, {})",
}  # fmt: skip


class LoopWriter(LoweredWriter):
    """Writes the regions of a program.

    Args:
        program: a ``LoopProgram``.
        layout: of the program and its kinds.
        language: makes the language of a case, ``language(case)``; ``TableLanguage`` is one of its
            bases.
        zero: the number zero.
    """

    def __init__(self, program, layout, language, zero):
        super().__init__(robot="ints")
        self.program, self.layout, self.language, self.zero = program, layout, language, zero
        self.count, self.lines = 0, []
        self.can_hide = False  # whether an argument that is not finite may leave no trace

    def text(self) -> list:
        """Lines of the whole loop program in a C-like language."""
        self.lines = [f"int {_count(name)};" for name in self.layout.lists]
        self.regions(lower_regions(self.program, self.layout, whole=True))
        return self.lines

    @contextmanager
    def inside(self, **variables):
        """Context in which lines are collected for a block."""
        outside, self.lines = self.lines, []
        with super().inside(**variables):
            yield self.lines
        self.lines = outside

    def _body(self, body, **variables):
        """Lines of the body of a loop in a C-like language."""
        with self.inside(**variables) as lines:
            self.regions(body)
        return lines

    def _block(self, head, lines):
        """Write a block in braces, unless it is empty."""
        if lines:
            self.lines += [f"{head} {{".lstrip(), *(f"    {line}" for line in lines), "}"]

    def _new(self, name):
        """New variable name: ``name`` and a number."""
        self.count += 1
        return f"{name}{self.count}"

    # --- values and places ------------------------------------------------------------------------

    def define(self, x, given):
        """Text of a lowered value; a word looked up in a record gets a variable."""
        if x.op == "count":
            return _count(given[0])
        if x.op == "word":
            record, k = given
            is_listed = x.operands[0].type == LISTED
            text = f"(int)ROW(rows, {record} + {k})" if is_listed else f"{_tight(record)}[{k}]"
            text = f"ints + {text}" if x.type == RECORD else text
        else:
            given = given if x.op == "sum" else [_tight(str(g)) for g in given]
            text = _TEXTS[x.op].format(*given)
        if x.op in ("sum", "product", "within") or ROBOT in x.operands:
            return text
        name = f"{identifier(x.name)}_"
        self.lines.append(f"{_TYPES[x.type]} {name} = {text};")
        return name

    def place(self, place) -> str:
        """Text of a number's place in memory, by the storage class of its table."""
        if isinstance(place, EntryPlace):
            offset = self.value(place.offset) if place.offset else ""
            at = " + ".join(x for x in (offset, str(place.at or "")) if x) or "0"
            side = "in" if place.given else "out"
            return f"ENTRY({identifier(f'{side}_{place.table}')}, {at})"
        if isinstance(place, ModelPlace):
            return f"MODEL({self.value(place.numbers)} + {place.at})"
        return f"ROW({self.value(place.row)}, {place.at})"

    def length(self, axis) -> str:
        """Text of an axis length, a constant or an entry of the robot's table of sizes."""
        known = not isinstance(axis, str)
        return self.value(axis if known else header_word(self.layout, f"length of {axis}"))

    # --- regions ----------------------------------------------------------------------------------

    def row_loop(self, loop):
        """Write a C-like loop over rows."""
        n, name, count = self._new("n"), loop.variable.name, self.value(loop.count)
        own = f"{_TYPES[loop.variable.type]} {name} = {self.value(loop.first)} + {loop.size} * {n};"
        body = self._body(loop.body, **{name: name})
        head = f"for (int {n} = 0; {n} < {count}; {n}++)"
        if loop.backwards:
            head = f"for (int {n} = {count} - 1; {n} >= 0; {n}--)"
        self._block(head, body and [own, *body])

    def chain_loop(self, loop):
        """Write a C-like loop along a chain of rows.

        Backwards from the start each time: there is no room for a list.
        """
        n, name, (_, word) = self._new("n"), loop.variable.name, loop.next.operands
        body = self._body(loop.body, **{name: name})
        if not body:
            return
        start = f"(int)({self.value(loop.first)} - ints)"
        own, up = f"const int *const {name} = ints + {n};", f"{n} = ints[{n} + {word}]"
        if not loop.backwards:
            after = f"{n} = {name}[{word}];"
            self._block(f"for (int {n} = {start}; {n};)", [own, *body, after])
            return
        again = [f"int {n} = {start};", f"for (int k = 0; k < {n}_left; k++) {up};", own, *body]
        with self.inside() as lines:
            lines.append(f"int {n}_left = 0;")
            lines.append(f"for (int {n} = {start}; {n}; {up}) {n}_left++;")
            self._block(f"while ({n}_left--)", again)
        self._block("", lines)

    def counted_loop(self, loop):
        """Write a C-like counted loop, or one until a condition holds."""
        n = self._new("n")
        most = loop.most if isinstance(loop.most, int) else self.place(loop.most)
        with self.inside() as lines:
            self.regions(loop.body)
            if loop.until is not None:
                lines.append(f"if ({self.case_call(loop.until)}) break;")
        self._block(f"for (int {n} = 0; {n} < {most}; {n}++)", lines)

    def choice(self, choice):
        """Write a C-like block that runs if a condition holds."""
        holds = self.case_call(choice.condition)
        self._block(f"if ({holds})", self._body(choice.body))

    def case_call(self, call):
        """Write the switch to the case for the kinds of rows in scope; equal cases are merged."""
        held, texts = "", {}
        if call.decides:
            held = self._new("held")
            self.lines.append(f"int {held} = 0;")
        for number, case in call.cases.items():
            texts.setdefault(tuple(self._case(case, held)), []).append(number)
        if len(texts) == 1:
            self._block("", next(iter(texts)))
            return held
        index = self.value(call.index)
        with self.inside() as lines:
            for text, numbers in texts.items():
                self._block(" ".join(f"case {n}:" for n in numbers), [*text, "break;"])
        self._block(f"switch ({index})", lines)
        return held

    def zero_numbers(self, region):
        """Write lines that set numbers of rows to zero."""
        self.lines += [f"{self.place(place)} = {self.zero};" for place in region.places]

    def zero_array(self, region):
        """Write lines that set a whole result to zero."""
        n = self._new("n")
        with self.inside(**{n: n}):
            entry = self.place(region.place._replace(offset=Value(n, INTEGER, "variable")))
        head = f"for (int {n} = 0; {n} < {self.value(region.size)}; {n}++)"
        self.lines.append(f"{head} {entry} = {self.zero};")

    def empty_list(self, region):
        """Write a line that empties a list."""
        self.lines.append(f"{_count(region.list)} = 0;")

    # --- cases ------------------------------------------------------------------------------------

    def _case(self, case, held):
        """Lines of the straight-line code of one case."""
        nodes, stores = case.program.graph.nodes, case.stores
        reachable = case.program.graph.reachable
        stored = reachable(case.program.roots)
        self.can_hide |= any(nodes[i][0] not in SUMS_AND_PRODUCTS for i in stored)
        language = self.language(case.program)
        language.place(self, case, held)
        used = reachable(case.program.wanted)
        order = [i for i in used if nodes[i][0] == "const" and i not in stores]
        order += [t for s in case.statements for t in s.targets]
        with self.inside() as lines:
            for item in assignments(case.program, language, order=order):
                language.lines += item.lines
            lines += language.lines + language.moves
            for row in case.new_rows:
                self._append(row, language)
        return lines

    def _append(self, row, language):
        """Write the words of a new row of a list, which is counted if it is kept."""
        record, name = self.value(row.record), row.list
        for k, word in row.words:
            there = isinstance(word, Value) and word.type == RECORD
            text = f"({self.value(word)} - ints)" if there else f"({self.value(word)})"
            self.lines.append(f"ROW(rows, {record} + {k}) = (real){text};")
        full = " ".join(language.require("0"))
        count = f"if ({_count(name)} < {self.value(row.most)}) {_count(name)}++; else {{ {full} }}"
        kept = "" if row.keep is None else f"if ({_keep(name)}) "
        self.lines.append(f"{kept}{{ {count} }}")


def _tight(text):
    """Text in parentheses, unless it is one name."""
    return f"({text})" if " " in text else text


def _count(name):
    """Name of the variable with the number of rows in a list."""
    return identifier(f"count_{name}")


def _keep(name):
    """Name of the variable that tells whether an appended row is kept."""
    return identifier(f"keep_{name}")


class TableLanguage:
    """A language whose inputs are loads from tables and whose outputs are stores."""

    inputs_have_names = True
    require: Any  # of the language

    def place(self, writer, case, held):
        """Set where the numbers of a case are, before it is written.

        Args:
            writer: of the program.
            case: a ``LoweredCase``.
            held: name of the variable that has the condition, where the case computes one.
        """
        graph = case.program.graph
        self.writer, self.held, self.lines, self.moves = writer, held, [], []
        self.loads = {graph.nodes[i][1:]: place for i, place in case.loads.items()}
        self.stores = {n: place for found in case.stores.values() for n, place in found.items()}
        self.late = {n: place for found in case.moves.values() for n, place in found.items()}

    def input(self, argument, index):
        """Text of the load of a number from a table."""
        return self.writer.place(self.loads[argument.name, index])

    def output(self, argument, index, text):
        """Lines of a store; a number stored as it was loaded is stored at the end."""
        name = argument.name
        if name in self.late:
            self.moves.append(f"{self.writer.place(self.late[name])} = {text};")
            return []
        if name in self.stores:
            return [f"{self.writer.place(self.stores[name])} = {text};"]
        what, _, of = name.partition("@")
        return [f"const int {_keep(of)} = {text};" if what == "keep" else f"{self.held} = {text};"]
