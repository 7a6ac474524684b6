"""LLVM IR as text: one SIMD lane per sample.

The module has one function per block of the schedule, ``block_k(frame, workspace, constants)``,
and a driver with the calling convention of a NumPy inner loop (see ``llvm_driver``). ``frame``
holds, for every argument and lane, a pointer to that sample's contiguous data; so blocks know
nothing about strides, broadcasting or remainders. Constants are read from a table: building them
in registers takes up to five instructions each.
"""

from kinetree.codegen.render.llvm_angles import angles, angles_at_once
from kinetree.codegen.render.llvm_block import BlockWriter, input_places
from kinetree.codegen.render.llvm_body import c_name
from kinetree.codegen.render.llvm_driver import driver
from kinetree.codegen.render.llvm_exponentials import exponential, logarithm, tangent
from kinetree.codegen.render.llvm_math import atan2, sincos
from kinetree.codegen.render.llvm_single import single
from kinetree.codegen.render.llvm_types import Vector
from kinetree.codegen.schedule import schedule
from kinetree.codegen.watch import what_to_watch

__all__ = ["render"]


def render(program, dtype="float64", lanes=2):
    """IR text of a program; its entry point is ``loop``."""
    v = Vector(dtype, lanes)
    roots = (*program.roots, *(node for node, _ in program.checks))
    plan = schedule(program.graph, roots, angle_group=angles_at_once(v))
    constants = _Constants()
    stores, watch = _stores(program), what_to_watch(program, dtype)
    staged = _staged(program, v)
    blocks = [
        BlockWriter(program, v, constants, stores, watch).write(k, block, staged)
        for k, block in enumerate(plan.blocks)
    ]
    parts = [f"; {program.name}: {dtype} x {lanes}", *blocks, constants.table(v)]
    parts += _functions(plan, v)
    if plan.angles:
        parts.append(angles(plan, input_places(program), v))
    if staged:
        parts.append(BlockWriter(program, v, constants, stores, watch).prepare(staged))
    parts.append(driver(program, v, plan, staged))
    if lanes == 1:
        parts.append(single(program, v))
    return "\n\n".join([*parts, _declarations(v)])


_TEXTS = {
    "sincos": sincos, "atan2": atan2, "exp": exponential, "log": logarithm, "tanh": tangent,
}  # fmt: skip


def _functions(plan, v):
    """What the statements call; a function that nothing calls is compiled all the same."""
    called = {s.op for block in plan.blocks for s in block.statements}
    return [text(v) for op, text in _TEXTS.items() if op in called]


def _stores(program):
    """Where each root goes: node -> [(argument number, offset), ...]."""
    stores, position = {}, 0
    for k, argument in enumerate(program.outputs, start=len(program.inputs)):
        for offset in range(argument.size):
            stores.setdefault(program.roots[position], []).append((k, offset))
            position += 1
    return stores


def _staged(program, v):
    """Numbers of results that are put together in one place and then copied as a whole.

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


class _Constants:
    """A table of numbers, some of them once for every lane."""

    def __init__(self):
        self.numbers, self.places = [], {}

    def place(self, x, copies=1):
        """Where a number is, or where so many copies of it begin."""
        if (x, copies) not in self.places:
            self.numbers += [0.0] * (-len(self.numbers) % copies)
            self.places[x, copies] = len(self.numbers)
            self.numbers += [x] * copies
        return self.places[x, copies]

    def table(self, v):
        """The table in IR, reached through a pointer that LLVM cannot see through.

        It would otherwise rebuild the numbers, in up to five instructions each.
        """
        numbers = self.numbers or [0.0]
        listed = ", ".join(f"{v.scalar} {v.number(x)}" for x in numbers)
        return (
            f"@constants = internal constant [{len(numbers)} x {v.scalar}] [{listed}], align 64\n"
            f"@constants_address = global ptr @constants"
        )


def _declarations(v):
    t, m = v.type, v.mask
    functions = (c_name(v, f) for f in ("sin", "cos", "log"))
    return "\n".join(
        [
            f"declare {t} @llvm.fma.{v.suffix}({t}, {t}, {t})",
            f"declare {t} @llvm.sqrt.{v.suffix}({t})",
            f"declare {t} @llvm.fabs.{v.suffix}({t})",
            f"declare {t} @llvm.copysign.{v.suffix}({t}, {t})",
            f"declare i1 @llvm.vector.reduce.or.v{v.lanes}i1({m})",
            f"declare i1 @llvm.vector.reduce.and.v{v.lanes}i1({m})",
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            *(f"declare {v.scalar} @{f}({v.scalar})" for f in functions),
            "!0 = !{}",
        ]
    )
