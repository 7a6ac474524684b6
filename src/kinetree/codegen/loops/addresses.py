"""Addresses in loop programs: from the paths of rows to values and places in lowered form."""

from kinetree.codegen.loops.language import SINGLE, Append, NumberPlace
from kinetree.codegen.loops.layout import ANGLE, KIND, ROW
from kinetree.codegen.loops.lowered import (
    INTEGER,
    LISTED,
    MODEL,
    NUMBERS,
    RECORD,
    ROBOT,
    EntryPlace,
    ModelPlace,
    NewRow,
    RowPlace,
    Value,
)


def header_word(layout, what: str, kind: str = INTEGER) -> Value:
    """Integer value loaded from a word of the robot's header, by the name of its content."""
    name = what.replace(" of ", ".").replace(" ", ".")
    return Value(name, kind, "word", (ROBOT, layout.header[what]))


def product_of(a: Value, b: "Value | int") -> Value:
    """Lowered product of integers; ``a`` itself where ``b`` is one."""
    if b == 1:
        return a
    known = b if isinstance(b, int) else f".{b.name}"
    return Value(f"{a.name}.x{known}", INTEGER, "product", (a, b))


def sum_of(a: "Value | None", b: "Value | int") -> Value:
    """Lowered sum of integers; ``b`` itself where ``a`` is None."""
    if a is None:
        return b if isinstance(b, Value) else Value(f"p{b}", INTEGER, "sum", (0, b))
    known = b if isinstance(b, int) else f".{b.name}"
    return Value(f"{a.name}.p{known}", INTEGER, "sum", (a, b))


class Addresses:
    """Where code finds rows, numbers of the model and entries of arrays.

    Args:
        program: a ``LoopProgram``.
        layout: of the program.
        variables: domain and kind of each variable in scope.
    """

    def __init__(self, program, layout, variables):
        self.program, self.layout, self.variables = program, layout, variables
        self.axes, self.rows = dict(layout.arguments), {}
        self.argument = {name: k for k, (name, _) in enumerate(layout.arguments)}

    # --- rows -------------------------------------------------------------------------------------

    def record(self, path) -> tuple[Value, str]:
        """Lowered pointer to the record of the row that a path names, and the row's domain."""
        head, _, column = path.rpartition(".")
        if not head:
            if path not in self.variables:
                return header_word(self.layout, f"records of {SINGLE}", RECORD), SINGLE
            domain = self.variables[path][0]
            return Value(path, self._type(domain), "variable"), domain
        if column == "new":
            behind = self.first_of_list(head), self.layout.size(head), self.count(head)
            return Value(f"new.{head}", LISTED, "element", behind), head
        record, domain = self.record(head)
        target, at = self.layout.column(domain, column)
        return Value(f"to.{path}", self._type(target), "word", (record, at)), target

    def _type(self, domain):
        """Lowered type of the records of a domain."""
        return LISTED if domain in self.layout.lists else RECORD

    def row_number(self, path) -> Value:
        """Lowered index at which the row of a path begins in the workspace."""
        head, _, column = path.rpartition(".")
        if not head:
            return Value(f"row.{path}", INTEGER, "word", (self.record(path)[0], ROW))
        if column == "new":
            before = product_of(self.count(head), header_word(self.layout, f"width of {head}"))
            return sum_of(header_word(self.layout, f"rows of {head}"), before)
        record, domain = self.record(head)
        at = self.layout.column(domain, column)[1] + 1
        return Value(f"row.{path}", INTEGER, "word", (record, at))

    def row(self, path) -> tuple[Value, dict]:
        """Lowered index at which a row's numbers begin, and the offset of each."""
        if path not in self.rows:
            self.rows[path] = self._row(path)
        return self.rows[path]

    def _row(self, path):
        """Compute the index and offsets of a row, as ``row`` returns them."""
        head, _, column = path.rpartition(".")
        if not head:
            numbers = self.program.rows.get(self.variables.get(path, (SINGLE, "")), ())
        elif column == "new":
            numbers = self.program.rows[head, ""]
        else:
            numbers = self.program.shared[self.record(path)[1]]
        value = Value(f"numbers.{path}", NUMBERS, "row", (self.row_number(path),))
        return value, {at: k for k, at in enumerate(numbers)}

    def sine(self, variable) -> Value:
        """Lowered index of the sine of a row's joint angle."""
        angle = Value(f"angle.{variable}", INTEGER, "word", (self.record(variable)[0], ANGLE))
        return Value(f"sine.{variable}", NUMBERS, "row", (angle,))

    # --- lists ------------------------------------------------------------------------------------

    def cell(self, name) -> Value:
        """Lowered place of a list's length in memory."""
        return header_word(self.layout, f"count of {name}")

    def count(self, name, when="") -> Value:
        """Lowered length of a list."""
        return Value(f"rows.now.{name}{when}", INTEGER, "count", (name, self.cell(name)))

    def first_of_list(self, name) -> Value:
        """Lowered pointer to the record of a list's first row."""
        place = header_word(self.layout, f"records of {name}")
        return Value(f"first.{name}", LISTED, "within", (place,))

    def new_row(self, append: Append, keep: int | None) -> NewRow:
        """Lowered row behind the last of a list, which counts only if the node ``keep`` holds."""
        name, words = append.list, {KIND: 0, ROW: self.row_number(f"{append.list}.new")}
        for column, path in append.columns.items():
            at = self.layout.column(name, column)[1]
            words |= {at: self.record(path)[0], at + 1: self.row_number(path)}
        record, _ = self.record(f"{name}.new")
        most = header_word(self.layout, f"most of {name}")
        return NewRow(name, record, tuple(words.items()), keep, self.count(name), most)

    # --- numbers ----------------------------------------------------------------------------------

    def place(self, place: NumberPlace) -> "RowPlace | ModelPlace | EntryPlace":
        """Lowered address of a number of a table, argument or result."""
        storage, k = self.program.tables[place.table].storage, (place.index or (0,))[0]
        if storage == "rows":
            row, places = self.row(place.paths[0])
            return RowPlace(row, places[place.table, k])
        if storage == "model":
            record, domain = self.record(place.paths[0])
            word = self.layout.table(domain, place.table)
            name = f"model.{place.paths[0]}.{place.table}"
            return ModelPlace(Value(name, MODEL, "word", (record, word)), k)
        return self._entry(place)

    def _entry(self, place):
        """Lowered address of an entry of an argument or result, by indices along its axes."""
        axes, total, at = self.axes[place.table], None, 0
        paths = ("",) * len(axes) if place.paths == ("",) else place.paths
        index = place.index or (0,) * len(axes)
        for k, (path, n) in enumerate(zip(paths, index, strict=bool(axes))):
            stride, first = self.length(axes[k + 1 :]), self._first(path) if path else None
            if isinstance(stride, int):
                at += n * stride
            elif n:
                first = sum_of(first, n)
            if first is not None:
                total = sum_of(total, product_of(first, stride))
        return self.array(place.table)._replace(offset=total, at=at)

    def array(self, table) -> EntryPlace:
        """Lowered address at which an argument or result begins."""
        given = self.program.tables[table].storage == "argument"
        return EntryPlace(table, self.argument[table], given, None, 0)

    def _first(self, path):
        """Lowered index of the first entry that a row has along an axis."""
        head, _, column = path.rpartition(".")
        record, domain = self.record(head)
        at = self.layout.column(domain, column)[1]
        return Value(f"first.{path}", INTEGER, "word", (record, at))

    def length(self, axes) -> "Value | int":
        """Lowered product of the lengths of some axes."""
        known, names = 1, []
        for a in axes:
            if isinstance(a, str):
                names.append(header_word(self.layout, f"length of {a}"))
            else:
                known *= a
        if not names:
            return known
        total = names[0]
        for length in names[1:]:
            total = product_of(total, length)
        return product_of(total, known)
