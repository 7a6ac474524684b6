"""Loops over tables in LLVM IR: ``step``, which walks over rows and calls their cases.

It takes the robot where specialised code takes its constants. So the loop over samples, the lean
path and threads are those of all kernels. It does not depend on kinds: one text for every robot.
"""

from contextlib import contextmanager

from kinetree.codegen.loops.addresses import header_word
from kinetree.codegen.loops.lowered import RECORD
from kinetree.codegen.loops.lowering import lower_regions
from kinetree.codegen.render.llvm import SharedCalls, loop_entry, single_entry
from kinetree.codegen.render.llvm_body import LoopLines, Vector, declarations
from kinetree.codegen.render.llvm_cases import GIVEN, Registers
from kinetree.codegen.render.llvm_math import angles_at_once

_STACK = ("declare ptr @llvm.stacksave.p0()", "declare void @llvm.stackrestore.p0(ptr)")


def step(program, layout, dtype, lanes) -> str:
    """LLVM IR of a loop program's walks and loops, which call cases by kinds of rows."""
    v = Vector(dtype, lanes)
    writer, calls = _StepWriter(v, layout), SharedCalls(v)
    writer.angles(calls)
    writer.regions(lower_regions(program, layout))
    head = f"define void @step({GIVEN}) {{"
    text = "\n".join([head, *writer.lines, "  ret void", "}"])
    rest = [*calls.declared, declarations(v), *(_STACK if "@llvm.stack" in text else ())]
    return "\n\n".join([text, *rest])


class _StepWriter(Registers, LoopLines):
    """Writes loops, and calls of cases."""

    def __init__(self, v, layout):
        super().__init__(robot="%robot")
        self.v, self.layout, self.lines = v, layout, ["entry:"]

    @contextmanager
    def inside(self, **variables):
        """Context of a block whose LLVM registers get distinct names."""
        outside, self.scope = self.scope, f".{self.new()}"
        with super().inside(**variables):
            yield
        self.scope = outside

    def _body(self, body, **variables):
        """Write LLVM IR of a loop's body."""
        with self.inside(**variables):
            self.regions(body)

    def angles(self, calls):
        """Write the call that computes sines and cosines of all rows' joint angles."""
        places = self.value(header_word(self.layout, "angles", RECORD))
        count, first = (
            self.value(header_word(self.layout, what)) for what in ("count of angles", "sines")
        )
        kind, group = "void {}(ptr, ptr, ptr, ptr, i64)", angles_at_once(self.v)
        symbol = calls("angles", kind, group)
        given = f"ptr %frame, ptr %sines_at_once, ptr %status, ptr {places}, i64 {count}"
        self.emit(
            f"%has_angles = icmp sgt i64 {count}, 0",
            "br i1 %has_angles, label %angles_ahead, label %begin",
        )
        self.begin("angles_ahead")
        self.emit(
            f"%sines_at_once = getelementptr {self.v.type}, ptr %workspace, i64 {first}",
            f"call void {symbol}({given})",
            "br label %begin",
        )
        self.begin("begin")

    def case_call(self, call):
        """Write the LLVM call of the case for the kinds of rows in scope; its answer, if any."""
        index, table, n = self.value(call.index), self.value(call.code), self.new()
        given = ", ".join([GIVEN, *(f"ptr {self.value(record)}" for record in call.records)])
        answer = f"%holds{n} = call i1" if call.decides else "call void"
        self.emit(
            f"%case_at{n} = getelementptr ptr, ptr {table}, i64 {index}",
            f"%case{n} = load ptr, ptr %case_at{n}, !invariant.load !0",
            f"{answer} %case{n}({given})",
        )
        return f"%holds{n}"

    def row_loop(self, loop):
        """Write LLVM IR of a loop over rows."""
        first, count, n = self.value(loop.first), self.value(loop.count), self.new()

        def body(k, _):
            index = k
            if loop.backwards:
                index = f"%back{n}"
                self.emit(f"%after{n} = add i64 {k}, 1", f"{index} = sub i64 {count}, %after{n}")
            self.emit(f"%at{n} = getelementptr [{loop.size} x i64], ptr {first}, i64 {index}")
            self._body(loop.body, **{loop.variable.name: f"%at{n}"})

        self.loop(self.below(count), body)

    def counted_loop(self, loop):
        """Write LLVM IR of a counted loop, or of one until a condition holds."""
        until = loop.until

        def body(*_):
            with self.inside():
                self.regions(loop.body)
                return until and self.case_call(until)

        self.loop(self._loop_condition(loop.most), body)

    def _loop_condition(self, most):
        """LLVM condition under which a loop continues, from its counter."""
        if isinstance(most, int):
            return self.below(most)
        n, scalar, infinity = self.new(), self.v.scalar, self.v.number(float("inf"))
        self.emit(  # how often is decided by a value, so that there is one lane
            f"%times_at{n} = getelementptr ptr, ptr %frame, i64 {most.argument}",
            f"%times_of{n} = load ptr, ptr %times_at{n}",
            f"%given{n} = load {scalar}, ptr %times_of{n}",
            f"%finite{n} = fcmp olt {scalar} %given{n}, {infinity}",
            f"%times{n} = select i1 %finite{n}, {scalar} %given{n}, {scalar} 0.0",
            f"%bad{n} = xor i1 %finite{n}, true",
            f"%one{n} = zext i1 %bad{n} to i64",
            f"%before{n} = atomicrmw add ptr %status, i64 %one{n} monotonic",
        )
        return self.below_number(f"%times{n}")

    def choice(self, choice):
        """Write LLVM IR of a block that runs if a condition holds."""
        holds, n = self.case_call(choice.condition), self.new()
        self.emit(f"br i1 {holds}, label %then{n}, label %rest{n}")
        self.begin(f"then{n}")
        self._body(choice.body)
        self.emit(f"br label %rest{n}")
        self.begin(f"rest{n}")

    def chain_loop(self, loop):
        """Write LLVM IR of a loop along a chain of rows; backwards by a list of the records."""
        name, first = loop.variable.name, self.value(loop.first)

        def following(row):
            with self.inside(**{name: row}):
                return self.value(loop.next)

        def upwards(body):
            return self.loop(lambda _, row: f"icmp ne ptr {row}, null", body, (first, following))

        if not loop.backwards:
            upwards(lambda _, row: self._body(loop.body, **{name: row}))
            return
        count, n = upwards(lambda *_: None), self.new()
        self.emit(
            f"%stack{n} = call ptr @llvm.stacksave.p0()", f"%way{n} = alloca ptr, i64 {count}"
        )

        def note(k, row):
            self.emit(
                f"%slot{n} = getelementptr ptr, ptr %way{n}, i64 {k}",
                f"store ptr {row}, ptr %slot{n}",
            )

        def visit(k, _):
            self.emit(
                f"%after{n} = add i64 {k}, 1",
                f"%back{n} = sub i64 {count}, %after{n}",
                f"%there{n} = getelementptr ptr, ptr %way{n}, i64 %back{n}",
                f"%at{n} = load ptr, ptr %there{n}",
            )
            self._body(loop.body, **{name: f"%at{n}"})

        upwards(note)
        self.loop(self.below(count), visit)
        self.emit(f"call void @llvm.stackrestore.p0(ptr %stack{n})")

    def zero_numbers(self, region):
        """Write LLVM IR that sets numbers of rows to zero."""
        for row, at in region.places:
            n, t = self.new(), self.v.type
            self.emit(
                f"%zero{n} = getelementptr {t}, ptr {self.value(row)}, i64 {at}",
                f"store {t} zeroinitializer, ptr %zero{n}, align {self.v.size}",
            )

    def zero_array(self, region):
        """Write LLVM IR that sets a result of every lane to zero."""
        n, size = self.new(), self.value(region.size)
        self.emit(f"%bytes{n} = mul i64 {size}, {self.v.size}")
        for lane in range(self.v.lanes):
            slot, out = region.place.argument * self.v.lanes + lane, f"%out{n}_{lane}"
            self.emit(
                f"{out}_at = getelementptr ptr, ptr %frame, i64 {slot}",
                f"{out} = load ptr, ptr {out}_at",
                f"call void @llvm.memset.p0.i64(ptr {out}, i8 0, i64 %bytes{n}, i1 false)",
            )

    def empty_list(self, region):
        """Write LLVM IR that empties a list."""
        n, cell = self.new(), self.value(region.cell)
        self.emit(f"%cell{n} = getelementptr i8, ptr %workspace, i64 {cell}")
        self.emit(f"store i64 0, ptr %cell{n}, align 8")


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
