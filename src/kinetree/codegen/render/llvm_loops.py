"""Loops over tables in LLVM IR: ``step``, which walks over rows and calls their cases.

It takes the robot where specialised code takes its constants. So the loop over samples, the lean
path and threads are those of all kernels. It does not depend on kinds: one text for every robot.
"""

from kinetree.codegen.loops.language import Chain, Clear
from kinetree.codegen.loops.plan import KIND, ROW
from kinetree.codegen.render.llvm import SharedCalls, loop_entry, single_entry
from kinetree.codegen.render.llvm_body import Vector, declarations
from kinetree.codegen.render.llvm_cases import GIVEN
from kinetree.codegen.render.llvm_math import angles_at_once


def step(program, plan, dtype, lanes) -> str:
    """LLVM IR of a loop program's walks and loops, which call cases by kinds of rows."""
    v = Vector(dtype, lanes)
    writer, calls = _Loops(program, plan, v), SharedCalls(v)
    writer.angles(calls)
    for name in plan.lists:
        writer.regions([Clear(name)], {})
    writer.regions(program.body, {})
    head = f"define void @step({GIVEN}) {{"
    text = "\n".join([head, *writer.lines, "  ret void", "}"])
    rest = [*calls.declared, declarations(v), *(_STACK if "@llvm.stack" in text else ())]
    return "\n\n".join([text, *rest])


_STACK = ("declare ptr @llvm.stacksave.p0()", "declare void @llvm.stackrestore.p0(ptr)")


class _Loops:
    """Writes walks and calls of cases."""

    def __init__(self, program, plan, v):
        self.program, self.plan, self.v = program, plan, v
        self.lines, self.count, self.label = ["entry:"], 0, "entry"
        self.number = {id(code): n for n, (code, _) in enumerate(program.codes())}

    def _emit(self, *lines):
        """Append LLVM instructions."""
        self.lines += [f"  {line}" for line in lines]

    def _new(self):
        """New number for names of values and labels."""
        self.count += 1
        return self.count

    def _begin(self, label):
        """Begin an LLVM block with a label."""
        self.lines.append(f"{label}:")
        self.label = label

    def _word(self, name, pointer, k, kind):
        """Write the load of word ``k`` of a record."""
        self._emit(
            f"{name}_at = getelementptr i64, ptr {pointer}, i64 {k}",
            f"{name} = load {kind}, ptr {name}_at",
        )
        return name

    def _of_robot(self, name, what, kind="i64"):
        """Write the load of a word of the robot's table, by the name of its content."""
        return self._word(name, "%robot", self.plan.words[what], kind)

    def angles(self, calls):
        """Write the call that computes sines and cosines of all rows' joint angles."""
        places = self._of_robot("%angles", "angles", "ptr")
        count = self._of_robot("%angle_count", "count of angles")
        first = self._of_robot("%sines", "sines")
        kind, group = "void {}(ptr, ptr, ptr, ptr, i64)", angles_at_once(self.v)
        symbol = calls("angles", kind, group)
        given = f"ptr %frame, ptr %sines_at_once, ptr %status, ptr {places}, i64 {count}"
        self._emit(
            f"%has_angles = icmp sgt i64 {count}, 0",
            "br i1 %has_angles, label %angles_ahead, label %begin",
        )
        self._begin("angles_ahead")
        self._emit(
            f"%sines_at_once = getelementptr {self.v.type}, ptr %workspace, i64 {first}",
            f"call void {symbol}({given})",
            "br label %begin",
        )
        self._begin("begin")

    def regions(self, body, variables):
        """Run regions in order; ``variables`` has the record and domain of each in scope."""
        for region in body:
            getattr(self, f"_{type(region).__name__.lower()}")(region, variables)

    def _code(self, code, variables, answers=False):
        """Write the indirect call of the case for the kinds of the rows in scope."""
        n, number = self._new(), self.number[id(code)]
        table = self._of_robot(f"%table{n}", f"code {number}", "ptr")
        index = None
        for k, (record, domain) in enumerate(variables.values()):
            kind = self._word(f"%kind{n}_{k}", record, KIND, "i64")
            if index is not None:
                kinds = self._of_robot(f"%kinds{n}_{k}", f"kinds of {domain}")
                self._emit(
                    f"%m{n}_{k} = mul i64 {index}, {kinds}",
                    f"%s{n}_{k} = add i64 %m{n}_{k}, {kind}",
                )
                kind = f"%s{n}_{k}"
            index = kind
        given = ", ".join([GIVEN, *(f"ptr {record}" for record, _ in variables.values())])
        self._emit(
            f"%case_at{n} = getelementptr ptr, ptr {table}, i64 {index or 0}",
            f"%case{n} = load ptr, ptr %case_at{n}",
            f"%holds{n} = call i1 %case{n}({given})" if answers else f"call void %case{n}({given})",
        )
        return f"%holds{n}"

    def _walk(self, walk, variables):
        """Write a walk over rows or along a chain."""
        if isinstance(walk.over, Chain):
            self._chain(walk, variables)
            return
        domain, n = walk.over, self._new()
        if domain in self.plan.lists:
            first = self._of_robot(f"%first{n}", f"records of {domain}")
            self._emit(f"%records{n} = getelementptr i8, ptr %workspace, i64 {first}")
            records, cell = f"%records{n}", self._counter(domain)
            self._emit(f"%count{n} = load i64, ptr {cell}, align 8")
            count = f"%count{n}"
        else:
            records = self._of_robot(f"%records{n}", f"records of {domain}", "ptr")
            count = self._of_robot(f"%count{n}", f"count of {domain}")
        size = f"[{self.plan.size(domain)} x i64]"

        def body(k):
            index = k
            if walk.backwards:
                index = f"%back{n}"
                self._emit(f"%after{n} = add i64 {k}, 1", f"{index} = sub i64 {count}, %after{n}")
            self._emit(f"%record{n} = getelementptr {size}, ptr {records}, i64 {index}")
            self.regions(walk.body, {**variables, walk.variable: (f"%record{n}", domain)})

        self._times(lambda k: f"icmp slt i64 {k}, {count}", body)

    def _times(self, goes_on, body, ends=None):
        """Write a counted loop: ``body`` while ``goes_on``, or until ``ends`` holds."""
        n, before = self._new(), self.label
        self._emit(f"br label %head{n}")
        self._begin(f"head{n}")
        self._emit(f"%k{n} = phi i64 [0, %{before}], [%next{n}, %again{n}]")
        more = goes_on(f"%k{n}")
        self._emit(f"%more{n} = {more}", f"br i1 %more{n}, label %body{n}, label %end{n}")
        self._begin(f"body{n}")
        body(f"%k{n}")
        if ends is None:
            self._emit(f"br label %again{n}")
        else:
            self._emit(f"br i1 {ends()}, label %end{n}, label %again{n}")
        self._begin(f"again{n}")
        self._emit(f"%next{n} = add i64 %k{n}, 1", f"br label %head{n}")
        self._begin(f"end{n}")

    def _repeat(self, region, variables):
        """Write a loop with a number of runs."""
        body = region.body
        self._times(self._loop_condition(region.times), lambda k: self.regions(body, variables))

    def _until(self, region, variables):
        """Write a loop that ends when a condition holds."""
        self._times(
            self._loop_condition(region.most),
            lambda k: self.regions(region.body, variables),
            lambda: self._code(region.condition, variables, answers=True),
        )

    def _when(self, region, variables):
        """Write regions that run if a condition holds."""
        n, holds = self._new(), self._code(region.condition, variables, answers=True)
        self._emit(f"br i1 {holds}, label %then{n}, label %rest{n}")
        self._begin(f"then{n}")
        self.regions(region.body, variables)
        self._emit(f"br label %rest{n}")
        self._begin(f"rest{n}")

    def _loop_condition(self, times):
        """The condition under which a loop goes on, of its counter."""
        if not isinstance(times, str):
            return lambda k: f"icmp slt i64 {k}, {times}"
        n, scalar = self._new(), self.v.scalar
        slot = [name for name, _ in self.plan.arguments].index(times.rstrip("@"))
        infinity = self.v.number(float("inf"))
        self._emit(  # how often is decided by a value, so that there is one lane
            f"%times_at{n} = getelementptr ptr, ptr %frame, i64 {slot}",
            f"%times_of{n} = load ptr, ptr %times_at{n}",
            f"%given{n} = load {scalar}, ptr %times_of{n}",
            f"%finite{n} = fcmp olt {scalar} %given{n}, {infinity}",
            f"%times{n} = select i1 %finite{n}, {scalar} %given{n}, {scalar} 0.0",
            f"%bad{n} = xor i1 %finite{n}, true",
            f"%one{n} = zext i1 %bad{n} to i64",
            f"%before{n} = atomicrmw add ptr %status, i64 %one{n} monotonic",
        )

        def goes_on(k):
            self._emit(f"%done{n} = sitofp i64 {k} to {scalar}")
            return f"fcmp olt {scalar} %done{n}, %times{n}"

        return goes_on

    def _counter(self, domain):
        """LLVM pointer to the number of rows in a list."""
        n = self._new()
        cell = self._of_robot(f"%cell{n}", f"count of {domain}")
        self._emit(f"%counter{n} = getelementptr i8, ptr %workspace, i64 {cell}")
        return f"%counter{n}"

    def _chain(self, walk, variables):
        """Write a walk along a chain of rows."""
        n = self._new()
        first, *columns = walk.over.start.split(".")
        if first in variables:
            record, domain = variables[first]
        else:
            domain = first if first in self.plan.domains else ""
            record = self._of_robot(f"%single{n}", f"records of {domain}", "ptr")
        for k, column in enumerate(columns):
            domain, at = self.plan.column(domain, column)
            record = self._word(f"%start{n}_{k}", record, at, "ptr")
        along = self.plan.column(domain, walk.over.column)[1]

        def body(record, k):
            self.regions(walk.body, {**variables, walk.variable: (record, domain)})

        if walk.backwards:
            self._backwards(record, along, body)
        else:
            self._upwards(record, along, body)

    def _upwards(self, first, along, body):
        """Write a walk from a row along a column to the chain's end; its number of rows."""
        n, before = self._new(), self.label
        self._emit(f"br label %head{n}")
        self._begin(f"head{n}")
        self._emit(
            f"%record{n} = phi ptr [{first}, %{before}], [%up{n}, %again{n}]",
            f"%k{n} = phi i64 [0, %{before}], [%next{n}, %again{n}]",
            f"%more{n} = icmp ne ptr %record{n}, null",
            f"br i1 %more{n}, label %body{n}, label %end{n}",
        )
        self._begin(f"body{n}")
        body(f"%record{n}", f"%k{n}")
        self._emit(f"br label %again{n}")
        self._begin(f"again{n}")
        self._word(f"%up{n}", f"%record{n}", along, "ptr")
        self._emit(f"%next{n} = add i64 %k{n}, 1", f"br label %head{n}")
        self._begin(f"end{n}")
        return f"%k{n}"

    def _backwards(self, first, along, body):
        """Write a walk along a chain from its last row, whose records are listed on the stack."""
        count, n = self._upwards(first, along, lambda record, k: None), self._new()
        self._emit(
            f"%stack{n} = call ptr @llvm.stacksave.p0()", f"%way{n} = alloca ptr, i64 {count}"
        )

        def note(record, k):
            self._emit(
                f"%slot{n} = getelementptr ptr, ptr %way{n}, i64 {k}",
                f"store ptr {record}, ptr %slot{n}",
            )

        def visit(k):
            self._emit(
                f"%after{n} = add i64 {k}, 1",
                f"%back{n} = sub i64 {count}, %after{n}",
                f"%there{n} = getelementptr ptr, ptr %way{n}, i64 %back{n}",
                f"%at{n} = load ptr, ptr %there{n}",
            )
            body(f"%at{n}", k)

        self._upwards(first, along, note)
        self._times(lambda k: f"icmp slt i64 {k}, {count}", visit)
        self._emit(f"call void @llvm.stackrestore.p0(ptr %stack{n})")

    def _clear(self, region, variables):
        """Write what empties a list or sets a table to zero."""
        if region.table in self.plan.lists:
            self._emit(f"store i64 0, ptr {self._counter(region.table)}, align 8")
            return
        n, v = self._new(), self.v
        table = self.program.tables[region.table]
        if table.storage == "rows":
            record = self._of_robot(f"%single{n}", f"records of {table.domain}", "ptr")
            row = self._word(f"%row{n}", record, ROW, "i64")
            for at, (name, _) in enumerate(self.program.rows.get(("", ""), ())):
                if name == region.table:
                    self._emit(
                        f"%number{n}_{at} = add i64 {row}, {at}",
                        f"%zero{n}_{at} = getelementptr {v.type}, ptr %workspace, "
                        f"i64 %number{n}_{at}",
                        f"store {v.type} zeroinitializer, ptr %zero{n}_{at}, align {v.size}",
                    )
            return
        argument = [name for name, _ in self.plan.arguments].index(region.table)
        size = str(v.size)
        for k, a in enumerate(table.axes):
            length = str(a)
            if isinstance(a, str):
                length = self._of_robot(f"%length{n}_{k}", f"length of {a}")
            self._emit(f"%size{n}_{k} = mul i64 {size}, {length}")
            size = f"%size{n}_{k}"
        for lane in range(v.lanes):
            slot = argument * v.lanes + lane
            self._emit(
                f"%out_at{n}_{lane} = getelementptr ptr, ptr %frame, i64 {slot}",
                f"%out{n}_{lane} = load ptr, ptr %out_at{n}_{lane}",
                f"call void @llvm.memset.p0.i64(ptr %out{n}_{lane}, i8 0, i64 {size}, i1 false)",
            )


# --- what ties a robot to such code ---------------------------------------------------------------

TABLE = 256
"""Words of the table that describes a kernel to the functions that kernels share."""


def binding(dtype, lanes) -> str:
    """LLVM IR of ``loop`` and ``single`` with tables filled in at load time, for any robot.

    It is the same for all programs and robots; each robot loads its own copy.
    """
    v = Vector(dtype, lanes)
    calls = SharedCalls(v)
    parts = [
        f"@kernel = global [{TABLE} x i64] zeroinitializer",
        loop_entry(calls),
        single_entry(calls),
    ]
    return "\n\n".join([*parts, *calls.declared, declarations(v)])
