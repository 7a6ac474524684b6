"""Cases of loop programs in LLVM IR: a function for each, of which ``step`` calls the right one.

A case is straight-line code, so its function is that of a block; only loads and stores differ: rows
of the workspace, numbers of the model and entries of arrays, found by the records of the rows in
scope (see ``loops.plan``). Code for different kinds is compiled apart, in *units*: all cases of one
kind of row, or of one pair of kinds. The text of a unit names no kinds, so that equal texts are
compiled once.
"""

from functools import cached_property

from kinetree.codegen.loops.language import input_name, place_of
from kinetree.codegen.loops.plan import ANGLE, KIND, ROW
from kinetree.codegen.loops.stores import explicit_sums
from kinetree.codegen.render.llvm import Constants, SharedCalls
from kinetree.codegen.render.llvm_block import BlockPlaces, BlockWriter
from kinetree.codegen.render.llvm_body import Vector, declarations
from kinetree.codegen.render.llvm_math import angles_at_once
from kinetree.codegen.schedule import Block, Statement, inputs_at_first_use, statements_of
from kinetree.codegen.watch import WatchedValues

HOLDS = "holds@"
"""The output that a condition is."""

GIVEN = "ptr %frame, ptr %workspace, ptr %robot, ptr %status"
"""What ``step`` and cases take; the latter take the records of the rows in scope besides."""


def unit(program, plan, domains, kinds, dtype, lanes) -> str:
    """LLVM IR of all cases for some kinds of rows: a function ``@case_n`` per piece of code.

    Args:
        program: a ``LoopProgram`` in which these kinds were recorded.
        plan: of the program.
        domains: of the variables in scope.
        kinds: of the variables in scope.
        dtype: precision.
        lanes: samples at a time.
    """
    v = Vector(dtype, lanes)
    constants, calls, parts = Constants(), SharedCalls(v), []
    angle = angle_of(program, plan, domains, kinds)
    for n, code, walks in cases_of(program, plan, domains, kinds):
        variables = {w.variable: (d, k) for w, d, k in zip(walks, domains, kinds, strict=True)}
        case = code.cases[tuple(kinds)]
        writer = _CaseWriter(case, v, constants, calls, program, plan, variables, angle)
        answers = any(o.name == HOLDS for o in case.outputs)
        head = f"define {'i1' if answers else 'void'} @case_{n}({_parameters(variables)})"
        parts.append(f"{head} {writer.case(code.appends)}")
    # Not a constant: LLVM would rebuild its numbers, in up to five instructions each.
    table = constants.table(v).replace("internal constant", "internal global")
    return "\n\n".join([*parts, table, *calls.declared, declarations(v)])


def cases_of(program, plan, domains, kinds):
    """Number, code and surrounding walks of all code with a case for these kinds of rows."""
    for n, (code, walks) in enumerate(program.codes()):
        if plan.codes[n] == list(domains) and tuple(kinds) in code.cases:
            yield n, code, walks


def angle_of(program, plan, domains, kinds):
    """Argument, column and index of the joint angle whose sine is computed in advance, or None.

    That of the row's own entries in an argument which code of its kind asks for first: the angle of
    a hinge. ``step`` computes those of all rows in one loop (see ``llvm_math``); in the middle of
    a case, everything would wait for them.
    """
    if len(kinds) != 1:
        return None
    for _, code, (walk,) in cases_of(program, plan, domains, kinds):
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


def _parameters(variables):
    """LLVM parameters of the function of a case."""
    return ", ".join([GIVEN, *(f"ptr %{name}" for name in variables)])


class _CaseWriter(BlockWriter):
    """Writes the function of a case.

    Args:
        case: a ``Program`` whose inputs are loads and whose outputs are stores.
        variables: domain and kind of each variable in scope.
        angle: as of ``angle_of``.
    """

    def __init__(self, case, v, constants, calls, program, plan, variables, angle):
        case = explicit_sums(case)
        # All arguments and results: what other cases do with a number is not known here.
        super().__init__(case, v, BlockPlaces({}, {}), WatchedValues(), constants, calls)
        self.loops, self.plan, self.variables, self.angle = program, plan, variables, None
        if angle is not None:
            table, column, index = angle
            self.angle = ("input", f"{table}@{next(iter(variables))}.{column}", (index,))
        self.numbers = {name: k for k, (name, _) in enumerate(plan.arguments)}
        self.rows = {key: {at: k for k, at in enumerate(row)} for key, row in program.rows.items()}

    def case(self, appends):
        """LLVM function of a case, from its opening brace on; ``appends``: rows it may append."""
        program, graph = self.program, self.program.graph
        wanted = program.wanted
        self.targets = {}
        answers = {}
        for output, root in zip(program.outputs, program.roots, strict=True):
            place = place_of(output.name)
            if place.table in ("holds", "keep"):
                answers[output.name] = root
            else:
                self.targets.setdefault(root, []).append(place)
        self.inputs = {n[1:]: i for i, n in enumerate(graph.nodes) if n[0] == "input"}
        order = [i for i in graph.reachable(wanted) if graph.nodes[i][0] != "const"]
        statements = [
            Statement(s.targets, "ahead", ()) if self._is_ahead(s) else s
            for s in statements_of(graph, order, wanted)
        ]
        statements = inputs_at_first_use(statements, wanted)
        block = Block(tuple(statements), {}, {})
        self._emit("%constants = getelementptr i8, ptr @constants, i64 0")
        for root in self.targets:
            if graph.nodes[root][0] == "const":
                self._value(root)
                self._after(root, block)
        for statement in statements:
            if statement.op != "input" or statement.targets[0] not in self.named:
                self._statement(statement)
            for target in statement.targets:
                self._after(target, block)
        for append in appends:
            self._append(append, answers.get(f"keep@{append.list}"))
        self._check_finite()
        self._count_unless_all_hold()
        end = "ret void"
        if HOLDS in answers:
            self._emit(f"%answer = extractelement {self.v.mask} %v{answers[HOLDS]}, i32 0")
            end = "ret i1 %answer"
        return "\n".join(["{", *self.lines, f"  {end}", "}"])

    def _is_ahead(self, s):
        """Whether a statement is the sine or cosine that ``step`` computes in advance."""
        return s.op == "sincos" and self.nodes[s.operands[0]] == self.angle

    def _statement(self, s):
        """Write a statement; sines that were computed in advance are loaded."""
        if s.op != "ahead":
            super()._statement(s)
            return
        v = self.v
        record, _ = self._record(next(iter(self.variables)))
        slot = self._word("%angle", record, ANGLE, "i64")
        at = f"{{}} = getelementptr {v.type}, ptr %workspace, i64 {slot}"
        sine = self._once("%angle.sine", at)
        for part, target in enumerate(s.targets):
            if target is not None:
                shift = part * angles_at_once(v)
                self._emit(f"%a{target} = getelementptr {v.type}, ptr {sine}, i64 {shift}")
                self._emit(f"%v{target} = load {v.type}, ptr %a{target}, align {v.size}")
                self.named.add(target)

    def _append(self, append, keep):
        """Write the columns of a new row of a list, which is counted only if ``keep`` holds."""
        name, plan = append.list, self.plan
        place, count, record = self._end(name)
        words = {KIND: "i64 0", ROW: f"i64 %end.{name}"}
        for column, path in append.columns.items():
            at = plan.column(name, column)[1]
            words[at] = f"ptr {self._record(path)[0]}"
            words[at + 1] = f"i64 {self._row_number(path)}"
        for k, word in words.items():
            self._emit(f"%new.{name}.{k} = getelementptr i64, ptr {record}, i64 {k}")
            self._emit(f"store {word}, ptr %new.{name}.{k}, align 8")
        most = self._word(f"%most.{name}", "%robot", plan.words[f"most of {name}"], "i64")
        kept = "true"
        if keep is not None:
            kept = f"%kept.{name}"
            self._emit(f"{kept} = extractelement {self.v.mask} %v{keep}, i32 0")
        self._emit(f"%more.{name} = zext i1 {kept} to i64")
        self._emit(f"%sum.{name} = add i64 {count}, %more.{name}")
        self._emit(f"%fits.{name} = icmp sle i64 %sum.{name}, {most}")
        self._emit(f"%now.{name} = select i1 %fits.{name}, i64 %sum.{name}, i64 {most}")
        self._emit(f"store i64 %now.{name}, ptr {place}, align 8")
        # A list that is full: the sample counts as bad.
        self._emit(f"%full.{name} = insertelement {self.v.mask} undef, i1 %fits.{name}, i32 0")
        self.conditions.append(f"%full.{name}")

    def _end(self, name):
        """LLVM names of a list's count: its address and value, and of the record behind its end."""
        words, size = self.plan.words, self.plan.size(name)
        cell = self._word(f"%cell.{name}", "%robot", words[f"count of {name}"], "i64")
        first = self._word(f"%records.{name}", "%robot", words[f"records of {name}"], "i64")
        row = self._word(f"%rows.{name}", "%robot", words[f"rows of {name}"], "i64")
        width = self._word(f"%width.{name}", "%robot", words[f"width of {name}"], "i64")
        place = self._once(
            f"%counter.{name}", f"{{}} = getelementptr i8, ptr %workspace, i64 {cell}"
        )
        count = self._once(f"%count.{name}", f"{{}} = load i64, ptr {place}, align 8")
        self._once(
            f"%end.{name}",
            f"{{}}.shift = mul i64 {count}, {width}",
            f"{{}} = add i64 {row}, {{}}.shift",
        )
        record = self._once(
            f"%last.{name}",
            f"{{}}.all = getelementptr i8, ptr %workspace, i64 {first}",
            f"{{}} = getelementptr [{size} x i64], ptr {{}}.all, i64 {count}",
        )
        return place, count, record

    # --- addresses --------------------------------------------------------------------------------

    def _once(self, name, *lines):
        """Write lines that define a name, unless it is defined; ``{}`` stands for the name."""
        if name not in self.named:
            for line in lines:
                self._emit(line.replace("{}", name))
            self.named.add(name)
        return name

    def _word(self, name, pointer, k, kind):
        """Write the load of a constant word of a record, once."""
        return self._once(
            name,
            f"{{}}_at = getelementptr i64, ptr {pointer}, i64 {k}",
            f"{{}} = load {kind}, ptr {{}}_at, !invariant.load !0",
        )

    def _record(self, path) -> tuple[str, str]:
        """LLVM pointer to the record of the row that a path names, and the row's domain."""
        head, _, column = path.rpartition(".")
        if not head and path in self.variables:
            return f"%{path}", self.variables[path][0]
        if not head:
            domain = path if path in self.plan.domains else ""
            word = self.plan.words[f"records of {domain}"]
            return self._word(f"%single.{domain}", "%robot", word, "ptr"), domain
        record, domain = self._record(head)
        target, at = self.plan.column(domain, column)
        return self._word(f"%to.{path}", record, at, "ptr"), target

    def _row_number(self, path):
        """LLVM index at which the row of a path begins in the workspace."""
        head, _, column = path.rpartition(".")
        if not head:
            return self._word(f"%row.{path}", self._record(path)[0], ROW, "i64")
        if column == "new":
            self._end(head)
            return f"%end.{head}"
        record, domain = self._record(head)
        return self._word(f"%row.{path}", record, self.plan.column(domain, column)[1] + 1, "i64")

    def _row(self, path):
        """LLVM pointer to the row of a path in the workspace, and the offsets of its numbers."""
        head, _, column = path.rpartition(".")
        if not head:
            row = self.rows[self.variables.get(path, ("", ""))]
        elif column == "new":
            row = self.rows[head, ""]
        else:
            target, _ = self.plan.column(self._record(head)[1], column)
            row = {at: k for k, at in enumerate(self.loops.shared[target])}
        at = f"{{}} = getelementptr {self.v.type}, ptr %workspace, i64 {self._row_number(path)}"
        return self._once(f"%numbers.{path}", at), row

    def _entry(self, place, lane):
        """LLVM pointer to an entry of one sample of an argument or result."""
        v, axes = self.v, dict(self.plan.arguments)[place.table]
        argument, name, at = self.numbers[place.table], f"%at.{place.table}", 0
        terms = []
        paths: tuple[str, ...] = place.paths
        if paths == ("",):
            paths = ("",) * len(axes)
        for k, (path, n) in enumerate(zip(paths, place.index, strict=True)):
            stride, fixed = self._stride(axes[k + 1 :])
            first = None
            if path:
                head, _, column = path.rpartition(".")
                record, domain = self._record(head)
                first = self._word(
                    f"%first.{path}", record, self.plan.column(domain, column)[1], "i64"
                )
            if fixed:
                at += n * stride
                if first:
                    terms.append((first, str(stride)))
            else:
                if n:
                    first = self._once(f"%plus{n}.{path}", f"{{}} = add i64 {first or 0}, {n}")
                if first:
                    terms.append((first, stride))
            name += f".{path}" if fixed else f".{path}.{n}"
        base = self._pointer(argument, lane)
        if terms:
            if name not in self.named:
                total = None
                for k, (first, stride) in enumerate(terms):
                    here = first
                    if stride != "1":
                        here = f"{name}.t{k}"
                        self._emit(f"{here} = mul i64 {first}, {stride}")
                    if total is not None:
                        self._emit(f"{name}.s{k} = add i64 {total}, {here}")
                        here = f"{name}.s{k}"
                    total = here
                self.sums_of_offsets[name] = total
                self.named.add(name)
            near = f"{{}} = getelementptr {v.scalar}, ptr {base}, i64 {self.sums_of_offsets[name]}"
            base = self._once(f"{name}.lane{lane}", near)
        return base, at

    @cached_property
    def sums_of_offsets(self):
        """LLVM registers with offsets of array entries that were computed already, by terms."""
        return {}

    def _stride(self, axes):
        """Stride of an axis as a number or register, and whether it is a number."""
        fixed, names = 1, []
        for a in axes:
            if isinstance(a, str):
                names.append(a)
            else:
                fixed *= a
        if not names:
            return fixed, True
        register = None
        for k, a in enumerate(names):
            word = self._word(f"%length.{a}", "%robot", self.plan.words[f"length of {a}"], "i64")
            if register is None:
                register = word
            else:
                product = f"%length.{'.'.join(names[: k + 1])}"
                register = self._once(product, f"{{}} = mul i64 {register}, {word}")
        if fixed != 1:
            register = self._once(f"{register}.x{fixed}", f"{{}} = mul i64 {register}, {fixed}")
        return register, False

    # --- loads and stores -------------------------------------------------------------------------

    def _input(self, i):
        """Write the load of a number from a table."""
        v, (_, name, index) = self.v, self.nodes[i]
        place = place_of(name)._replace(index=index)
        storage = self.loops.tables[place.table].storage
        if storage == "rows":
            row, places = self._row(place.paths[0])
            at = places[place.table, index[0] if index else 0]
            self._emit(f"%a{i} = getelementptr {v.type}, ptr {row}, i64 {at}")
            self._emit(f"%v{i} = load {v.type}, ptr %a{i}, align {v.size}")
        elif storage == "model":
            record, domain = self._record(place.paths[0])
            word = self.plan.table(domain, place.table)
            numbers = self._word(f"%model.{name.replace('@', '.')}", record, word, "ptr")
            at = index[0] if index else 0
            self._emit(f"%a{i} = getelementptr {v.scalar}, ptr {numbers}, i64 {at}")
            self._emit(f"%x{i} = load {v.scalar}, ptr %a{i}, !invariant.load !0")
            self._splat(i, f"%x{i}")
        else:
            self._gather(i, (self._entry(place, lane) for lane in range(v.lanes)))
            if self.watch.inputs and storage == "argument":
                self._watch(i)

    def _after(self, target, block):
        """Write the stores of a value into tables."""
        for n, place in enumerate(self.targets.get(target, ())):
            self._keep_old(place)
            v, name = self.v, f"%o{target}_{n}"
            if self.loops.tables[place.table].storage == "rows":
                row, places = self._row(place.paths[0])
                at = places[place.table, place.index[0] if place.index else 0]
                self._emit(f"{name} = getelementptr {v.type}, ptr {row}, i64 {at}")
                self._emit(f"store {v.type} %v{target}, ptr {name}, align {v.size}")
                continue
            if self.nodes[target][0] != "const":
                self._watch(target)
            for lane in range(v.lanes):
                pointer, at = self._entry(place, lane)
                self._emit(f"{name}_{lane} = extractelement {v.type} %v{target}, i32 {lane}")
                self._emit(f"{name}_{lane}_at = getelementptr {v.scalar}, ptr {pointer}, i64 {at}")
                self._emit(f"store {v.scalar} {name}_{lane}, ptr {name}_{lane}_at")
        if target in self.checks:
            self.conditions.append(f"%v{target}")

    def _keep_old(self, place):
        """Write the load of a number that is needed later, before a store overwrites it."""
        load = self.inputs.get((input_name(place), place.index))
        if load is not None and load not in self.named:
            self._input(load)
            self.named.add(load)
