"""LLVM IR as text: one SIMD lane per sample.

The module has one function per block of the schedule, ``block_k(frame, workspace, constants,
status)``, and ``step``, which calls them. ``frame`` holds, for every argument and lane, a pointer
to that sample's contiguous data; so strides, broadcasting and remainders are not handled in blocks.
The loop over samples and what blocks call are functions that all kernels share: ``llvm_shared``.
Constants are read from a table: building them in registers takes up to five instructions each.
"""

from kinetree.codegen.linking import Linked
from kinetree.codegen.render.llvm_block import BlockWriter, places_of
from kinetree.codegen.render.llvm_body import LoopLines, Vector, declarations
from kinetree.codegen.render.llvm_driver import table
from kinetree.codegen.render.llvm_math import angle_places, angles_at_once
from kinetree.codegen.render.llvm_shared import shared_symbol
from kinetree.codegen.render.llvm_single import HOST
from kinetree.codegen.schedule import BLOCK_SIZE, LoopStep, schedule
from kinetree.codegen.watch import WatchedValues, what_to_watch


def render(program, dtype="float64", lanes=2, *, called=False, entries=None, block_size=BLOCK_SIZE):
    """LLVM IR of a straight-line program for ``lanes`` samples at a time; entry point ``loop``.

    Args:
        program: what is computed.
        dtype: the precision.
        lanes: samples at a time.
        called: whether it is for other code to call: then its arguments are vectors in one array,
            the inputs before the results, and there is no loop over samples.
        entries: of the code that the program calls, by kernel; see ``codegen.linking``.
        block_size: statements of a block; long ones are less text, and less to do without LLVM's
            optimisations.
    """
    v = Vector(dtype, lanes)
    roots = (*program.roots, *(node for node, _ in program.checks))
    plan = schedule(program.graph, roots, block_size, angle_group=angles_at_once(v))
    constants = Constants()
    # What calls other code looks at its own inputs and results.
    watch = WatchedValues(inputs=False, results=False) if called else what_to_watch(program, dtype)
    staged = frozenset() if called else _results_to_stage(program, v)
    calls, places = SharedCalls(v, called), places_of(program, called)
    linked = Linked(entries or {}, v, plan.slots)

    def writer():
        return BlockWriter(program, v, places, watch, constants, calls, linked)

    parts = [f"; {program.name}: {dtype} x {lanes}", *linked.text()]
    if plan.steps == (0,):  # one function takes less time to compile than two, and to call
        begin = [*linked.first(), *first(plan, calls)]
        alone = writer().write(0, plan.blocks[0], staged, "step", begin)
        parts += [alone]
    else:
        parts += [writer().write(k, block, staged) for k, block in enumerate(plan.blocks)]
        parts += [step(v, plan, calls, linked.first())]
    if plan.angles:
        listed = angle_places(plan, places, v)
        parts.append(f"@angle_places = internal constant {listed}")
    if staged:
        parts.append(writer().prepare(staged))
    parts += [constants.table(v), table(program, v, plan, staged, linked.more)]
    if not called:
        parts.append(loop_entry(calls))
    if not called and (lanes == 1 or dtype == "float64"):  # other batches have no lean path
        parts.append(single_entry(calls))
    return "\n\n".join([*parts, *calls.declared, declarations(v)])


class SharedCalls:
    """Symbols of the shared functions that are called, and their declarations."""

    def __init__(self, v, called=False):
        self.v, self.called, self.declared = v, called, {}

    def __call__(self, name, kind, *options):
        """How a shared function is called whose type, in IR, is ``kind`` with ``{}`` for it."""
        v = Vector(self.v.dtype, 1) if name == "single" else self.v  # the same for all lanes
        symbol = "@" + shared_symbol(name, v, *options)
        self.declared[f"declare {kind.format(symbol)}"] = None
        return symbol


def loop_entry(calls):
    """LLVM IR of ``@loop``, the inner loop that NumPy calls."""
    given = "ptr %args, ptr %dimensions, ptr %steps, ptr %status"
    symbol = calls("loop", "void {}(ptr, ptr, ptr, ptr, ptr)")
    call = f"  tail call void {symbol}({given}, ptr @kernel)"
    return "\n".join([f"define void @loop({given}) {{", call, "  ret void", "}"])


def single_entry(calls):
    """LLVM IR of ``@single``, which Python calls for one sample, and its table ``@host``."""
    given = "ptr %self, ptr %args, i64 %nargs, ptr %names"
    symbol = calls("single", "ptr {}(ptr, ptr, i64, ptr, ptr, ptr)")
    return "\n".join(
        [
            f"@host = global [{len(HOST)} x ptr] zeroinitializer",
            f"define ptr @single({given}) {{",
            f"  %answer = tail call ptr {symbol}({given}, ptr @kernel, ptr @host)",
            "  ret ptr %answer",
            "}",
        ]
    )


def _results_to_stage(program, v):
    """Numbers of large, mostly constant results, which are staged and copied as a whole.

    Large ones with many constants: these are then written once, and memory that is not in the
    cache gets whole lines in order instead of numbers here and there.
    """
    position, staged = 0, set()
    for k, argument in enumerate(program.outputs, start=len(program.inputs)):
        roots = program.roots[position : position + argument.size]
        position += argument.size
        constants = sum(program.graph.nodes[i][0] == "const" for i in roots)
        if v.lanes > 1 and argument.size >= 1024 and 4 * constants >= argument.size:
            staged.add(k)
    return frozenset(staged)


class Constants:
    """A table of numbers, some of them once for every lane."""

    def __init__(self):
        self.numbers, self.places = [], {}

    def place(self, x, copies=1):
        """Index in the table of constants of a number, or of the first of its ``copies``."""
        if (x, copies) not in self.places:
            self.numbers += [0.0] * (-len(self.numbers) % copies)
            self.places[x, copies] = len(self.numbers)
            self.numbers += [x] * copies
        return self.places[x, copies]

    def table(self, v):
        """LLVM IR of the table of constants.

        LLVM would otherwise rebuild the numbers, in up to five instructions each.
        """
        numbers = self.numbers or [0.0]
        listed = ", ".join(f"{v.scalar} {v.number(x)}" for x in numbers)
        return f"@constants = internal constant [{len(numbers)} x {v.scalar}] [{listed}], align 64"


# --- ``@step``: all blocks on one vector of samples, with loops around those that repeat ---------

_ARGUMENTS = "ptr %frame, ptr %workspace, ptr %constants, ptr %status"


def step(v, plan, calls, begin=()):
    """LLVM IR of ``@step``, which calls blocks and loops for one vector of samples."""
    head = [f"define internal void @step({_ARGUMENTS}) {{", "entry:", *begin, *first(plan, calls)]
    writer = _StepWriter(v, head)
    writer.steps(plan.steps)
    return "\n".join([*writer.lines, "  ret void", "}"])


def first(plan, calls):
    """LLVM lines that compute sines and cosines of all input angles before the blocks."""
    if not plan.angles:
        return []
    count = -(-len(plan.angles) // plan.angle_group) * plan.angle_group
    options = (plan.angle_group, 1) if calls.called else (plan.angle_group,)
    symbol = calls("angles", "void {}(ptr, ptr, ptr, ptr, i64)", *options)
    given = f"ptr %frame, ptr %workspace, ptr %status, ptr @angle_places, i64 {count}"
    return [f"  call void {symbol}({given})"]


class _StepWriter(LoopLines):
    """Writes calls and loops."""

    def __init__(self, v, lines):
        self.v, self.lines = v, lines

    def steps(self, steps):
        """Write LLVM calls of blocks, and the loops among them."""
        for item in steps:
            if isinstance(item, LoopStep):
                known = item.times is not None
                more = (
                    self.below(item.times) if known else self.below_number(self._slowest(item.slot))
                )
                self.loop(more, lambda *_, item=item: self.steps(item.steps))
            else:
                self.emit(f"call void @block_{item}({_ARGUMENTS})")

    def _slowest(self, slot):
        """Write the largest loop count of all lanes; infinite ones count as zero."""
        v, t, n = self.v, self.v.type, self.new()
        infinity, zero = v.constant(float("inf")), v.constant(0.0)
        self.emit(
            f"%slot{n} = getelementptr {t}, ptr %workspace, i64 {slot}",
            f"%counts{n} = load {t}, ptr %slot{n}",
            f"%finite{n} = fcmp olt {t} %counts{n}, {infinity}",
            f"%kept{n} = select {v.mask} %finite{n}, {t} %counts{n}, {t} {zero}",
            f"%times{n} = call {v.scalar} @llvm.vector.reduce.fmax.{v.suffix}({t} %kept{n})",
        )
        return f"%times{n}"
