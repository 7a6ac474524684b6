"""Cases of loop programs in LLVM IR: a function for each, of which ``step`` calls the right one.

A case is straight-line code, so its function is that of a block; only loads and stores differ. Code
for different kinds is compiled apart, in *units*: all cases of one kind of row, or of one pair of
kinds. The text of a unit names no kinds, so that equal texts are compiled once.
"""

from kinetree.codegen.loops.lowered import INTEGER, RECORD, EntryPlace, LoweredWriter, ModelPlace
from kinetree.codegen.loops.lowering import angle_of, cases_of, lower_case
from kinetree.codegen.render.llvm import Constants, SharedCalls
from kinetree.codegen.render.llvm_block import BlockPlaces, BlockWriter
from kinetree.codegen.render.llvm_body import Lines, Vector, declarations
from kinetree.codegen.render.llvm_math import angles_at_once
from kinetree.codegen.watch import WatchedValues

GIVEN = "ptr %frame, ptr %workspace, ptr %robot, ptr %status"
"""What ``step`` and cases take; the latter take the records of the rows in scope besides."""


class Registers(LoweredWriter, Lines):
    """Values in registers, each computed where it is needed first."""

    scope = ""

    def define(self, x, given):
        """LLVM register of a lowered value."""
        name = f"%{x.name}{self.scope}"
        text, kept = _TEXTS.get(x.op, ""), ", align 8"
        if x.op == "word":  # records do not change, but for those of lists
            kept = ", !invariant.load !0" if x.operands[0].type == RECORD else ""
        if x.op in ("word", "count"):
            kind = "i64" if x.type == INTEGER else "ptr"
            self.emit(f"{name}_at = getelementptr {text.format(*given)}")
            self.emit(f"{name} = load {kind}, ptr {name}_at{kept}")
        else:
            self.emit(f"{name} = {text.format(*given, vector=self.v.type)}")
        return name


_TEXTS = {
    "word": "i64, ptr {}, i64 {}",
    "count": "i8, ptr %workspace, i64 {1}",
    "sum": "add i64 {}, {}",
    "product": "mul i64 {}, {}",
    "element": "getelementptr [{1} x i64], ptr {0}, i64 {2}",
    "within": "getelementptr i8, ptr %workspace, i64 {}",
    "row": "getelementptr {vector}, ptr %workspace, i64 {}",
}
"""Instructions for the operations of values; of loads the addresses."""


def unit(program, layout, domains, kinds, dtype, lanes) -> str:
    """LLVM IR of all cases for some kinds of rows: a function ``@case_n`` per piece of code.

    Args:
        program: a ``LoopProgram`` in which these kinds were recorded.
        layout: of the program.
        domains: of the variables in scope.
        kinds: of the variables in scope.
        dtype: precision.
        lanes: samples at a time.
    """
    v = Vector(dtype, lanes)
    constants, calls, parts = Constants(), SharedCalls(v), []
    angle, ahead = angle_of(program, layout, domains, kinds), None
    for n, code, walks in cases_of(program, layout, domains, kinds):
        variables = {w.variable: (d, k) for w, d, k in zip(walks, domains, kinds, strict=True)}
        if angle is not None:
            name = f"{angle[0]}@{walks[0].variable}.{angle[1]}"
            ahead = ("input", name, (angle[2],)), angles_at_once(v)
        case = code.cases[tuple(kinds)]
        case = lower_case(case, variables, program, layout, code.appends, ahead=ahead)
        parts.append(_CaseWriter(case, v, constants, calls, variables).function(n))
    # Not a constant: LLVM would rebuild its numbers, in up to five instructions each.
    table = constants.table(v).replace("internal constant", "internal global")
    return "\n\n".join([*parts, table, *calls.declared, declarations(v)])


class _CaseWriter(Registers, BlockWriter):
    """Writes the function of a ``LoweredCase``."""

    def __init__(self, case, v, constants, calls, variables):
        # All arguments and results: what other cases do with a number is not known here.
        given = case.program, v, BlockPlaces({}, {}), WatchedValues(), constants, calls
        super().__init__(*given, robot="%robot", **{name: f"%{name}" for name in variables})
        self.case, self.given = case, ", ".join([GIVEN, *(f"ptr %{name}" for name in variables)])

    def function(self, n):
        """LLVM function ``@case_n`` of a case."""
        case = self.case
        self.emit("%constants = getelementptr i8, ptr @constants, i64 0")
        for s in case.statements:
            if s.op == "const":
                self._value(s.targets[0])
            elif s.op in ("input", "ahead"):
                self._load_place(s.targets[0], case.loads[s.targets[0]])
            else:
                self._statement(s)
            for target in s.targets:
                self._store_places(target, case.stores.get(target, {}))
                if target in self.checks:
                    self.conditions.append(f"%v{target}")
        for target, places in case.moves.items():
            self._store_places(target, places)
        for row in case.new_rows:
            self._append(row)
        self._check_finite()
        self._count_unless_all_hold()
        end = "void"
        if "holds@" in case.answers:
            self.emit(f"%answer = extractelement {self.v.mask} %v{case.answers['holds@']}, i32 0")
            end = "i1 %answer"
        head = f"define {end.split()[0]} @case_{n}({self.given}) {{"
        return "\n".join([head, *self.lines, f"  ret {end}", "}"])

    def _entry(self, place, lane):
        """LLVM pointer to the array of an entry, or to the part of it at an offset."""
        base = self._pointer(place.argument, lane)
        if place.offset is None:
            return base
        offset = self.value(place.offset)
        name = f"{offset}.{place.argument}.{lane}"
        if name not in self.named:
            self.emit(f"{name} = getelementptr {self.v.scalar}, ptr {base}, i64 {offset}")
            self.named.add(name)
        return name

    def _load_place(self, i, place):
        """Write the load of a node's value from its place in memory."""
        v = self.v
        if isinstance(place, EntryPlace):
            self._gather(i, ((self._entry(place, lane), place.at) for lane in range(v.lanes)))
            if place.given:
                self._watch(i)
        elif isinstance(place, ModelPlace):
            numbers = self.value(place.numbers)
            self.emit(f"%a{i} = getelementptr {v.scalar}, ptr {numbers}, i64 {place.at}")
            self.emit(f"%x{i} = load {v.scalar}, ptr %a{i}, !invariant.load !0")
            self._splat(i, f"%x{i}")
        else:
            row = self.value(place.row)
            self.emit(f"%a{i} = getelementptr {v.type}, ptr {row}, i64 {place.at}")
            self.emit(f"%v{i} = load {v.type}, ptr %a{i}, align {v.size}")
        self.named.add(i)

    def _store_places(self, target, places):
        """Write the stores of a node's value to places in memory."""
        v = self.v
        for place in places.values():
            name = f"%o{target}_{len(self.lines)}"
            if not isinstance(place, EntryPlace):
                row = self.value(place.row)
                self.emit(f"{name} = getelementptr {v.type}, ptr {row}, i64 {place.at}")
                self.emit(f"store {v.type} %v{target}, ptr {name}, align {v.size}")
                continue
            if self.nodes[target][0] != "const":
                self._watch(target)
            for lane in range(v.lanes):
                one, to = f"{name}_{lane}", self._entry(place, lane)
                self.emit(f"{one} = extractelement {v.type} %v{target}, i32 {lane}")
                self.emit(f"{one}_at = getelementptr {v.scalar}, ptr {to}, i64 {place.at}")
                self.emit(f"store {v.scalar} {one}, ptr {one}_at")

    def _append(self, row):
        """Write the record of a new row of a list, which counts only if it is kept."""
        record, name = self.value(row.record), row.list
        for k, word in row.words:
            kind = "i64" if isinstance(word, int) or word.type == INTEGER else "ptr"
            text = self.value(word)
            self.emit(f"%word.{name}.{k} = getelementptr i64, ptr {record}, i64 {k}")
            self.emit(f"store {kind} {text}, ptr %word.{name}.{k}, align 8")
        count, most, kept = self.value(row.count), self.value(row.most), "true"
        if row.keep is not None:
            kept = f"%kept.{name}"
            self.emit(f"{kept} = extractelement {self.v.mask} %v{row.keep}, i32 0")
        self.emit(f"%more.{name} = zext i1 {kept} to i64")
        self.emit(f"%after.{name} = add i64 {count}, %more.{name}")
        self.emit(f"%fits.{name} = icmp sle i64 %after.{name}, {most}")
        self.emit(f"%now.{name} = select i1 %fits.{name}, i64 %after.{name}, i64 {most}")
        self.emit(f"store i64 %now.{name}, ptr {count}_at, align 8")
        # A list that is full: the sample counts as bad.
        self.emit(f"%full.{name} = insertelement {self.v.mask} undef, i1 %fits.{name}, i32 0")
        self.conditions.append(f"%full.{name}")
