"""LLVM IR as text: one SIMD lane per sample.

The module has one function per block of the schedule, ``block_k(frame, workspace, constants)``,
and a driver with the calling convention of a NumPy inner loop (see ``llvm_driver``). ``frame``
holds, for every argument and lane, a pointer to that sample's contiguous data; so blocks know
nothing about strides, broadcasting or remainders. Constants are read from a table: building them
in registers takes up to five instructions each.
"""

import numpy as np

from kinetree.codegen.render.llvm_angles import angles, angles_at_once
from kinetree.codegen.render.llvm_driver import driver
from kinetree.codegen.render.llvm_math import atan2, sincos
from kinetree.codegen.render.llvm_single import single
from kinetree.codegen.render.llvm_types import Vector
from kinetree.codegen.schedule import schedule
from kinetree.codegen.watch import what_to_watch

__all__ = ["render"]

_BINARY = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_SUMS = 4  # independent sums, so that none waits for another
_PATIENCE = 120  # lines of text that a result waits for its neighbour
_COMPARE = {"<": "olt", "<=": "ole", "==": "oeq"}


def render(program, dtype="float64", lanes=2):
    """IR text of a program; its entry point is ``loop``."""
    v = Vector(dtype, lanes)
    roots = (*program.roots, *(node for node, _ in program.checks))
    plan = schedule(program.graph, roots, angle_group=angles_at_once(v))
    constants = _Constants()
    stores, watch = _stores(program), what_to_watch(program, dtype)
    staged = _staged(program, v)
    blocks = [
        _BlockWriter(program, v, constants, stores, watch).write(k, block, staged)
        for k, block in enumerate(plan.blocks)
    ]
    return "\n\n".join(
        [
            f"; {program.name}: {dtype} x {lanes}",
            *blocks,
            constants.table(v),
            sincos(v),
            atan2(v),
            angles(plan, _input_places(program), v),
            _BlockWriter(program, v, constants, stores, watch).prepare(staged),
            driver(program, v, plan, staged),
            single(program, v),
            _declarations(v),
        ]
    )


def _input_places(program):
    """Argument number and offset of every input node."""
    arguments = {a.name: (k, a) for k, a in enumerate(program.inputs)}
    places = {}
    for i, node in enumerate(program.graph.nodes):
        if node[0] == "input":
            k, argument = arguments[node[1]]
            index = np.ravel_multi_index(node[2], argument.shape) if argument.shape else 0
            places[i] = (k, int(index))
    return places


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


class _BlockWriter:
    """Writes one block function."""

    def __init__(self, program, v, constants, stores, watch):
        self.program, self.v, self.constants, self.stores = program, v, constants, stores
        self.watch = watch
        self.nodes = program.graph.nodes
        self.checks = {node for node, _ in program.checks}
        self.lines, self.named, self.loads = [], set(), {}
        self.watched, self.sums = set(), {}
        self.places = _input_places(program)
        self.waiting, self.conditions = {}, []

    def write(self, k, block, staged):
        self.loads = block.loads
        if k == 0:
            self._constant_outputs(set(self._outputs()) - staged)
        for statement in block.statements:
            self._statement(statement)
            for target in statement.targets:
                self._after(target, block)
        self._flush(older_than=len(self.lines))
        self._check_finite()
        self._count_unless_all_hold()
        arguments = "ptr %frame, ptr %workspace, ptr %constants, ptr %status"
        head = f"define internal void @block_{k}({arguments}) noinline {{"
        return "\n".join([head, *self.lines, "  ret void", "}"])

    def prepare(self, staged):
        """``@prepare``: what does not change in results that are staged, written once."""
        self._constant_outputs(staged)
        return "\n".join(
            ["define internal void @prepare(ptr %frame) noinline {", *self.lines, "  ret void", "}"]
        )

    def _outputs(self):
        """Numbers of the arguments that are results."""
        first = len(self.program.inputs)
        return range(first, first + len(self.program.outputs))

    # --- values ------------------------------------------------------------------------------

    def _emit(self, text):
        self.lines.append("  " + text)

    def _value(self, i):
        """Name of node ``i``, loaded on first use when it comes from elsewhere."""
        op = self.nodes[i][0]
        if i in self.named:
            return f"%v{i}"
        if op == "const":
            self._load_constant(i, self.nodes[i][1])
        elif i in self.loads:
            self._load(i, self.loads[i])
        self.named.add(i)
        return f"%v{i}"

    def _load(self, i, slot):
        """Node ``i`` from the workspace."""
        t = self.v.mask if self._is_condition(i) else self.v.type
        self._emit(f"%w{i} = getelementptr {self.v.type}, ptr %workspace, i64 {slot}")
        self._emit(f"%v{i} = load {t}, ptr %w{i}")

    def _transfer(self, s):
        """Replace what a loop carries: all values are there before the first slot changes."""
        values = [self._value(i) for i in s.operands]
        for slot, value in zip(s.slots, values, strict=True):
            at = f"%t{len(self.lines)}"
            self._emit(f"{at} = getelementptr {self.v.type}, ptr %workspace, i64 {slot}")
            self._emit(f"store {self.v.type} {value}, ptr {at}")

    def _is_condition(self, i):
        return self.nodes[i][0] in ("<", "<=", "==", "and", "or", "not")

    def _load_constant(self, i, x):
        v, at = self.v, self.constants.place(x)
        self._emit(f"%k{i} = getelementptr {v.scalar}, ptr %constants, i64 {at}")
        self._emit(f"%s{i} = load {v.scalar}, ptr %k{i}, !invariant.load !0")
        self._splat(i, f"%s{i}")

    def _addend(self, i):
        """The same for what is added to something: constants then come as whole vectors.

        A product can take one element of a register as its factor; a sum cannot, and a fused
        product overwrites what it is added to.
        """
        if self.nodes[i][0] != "const":
            return self._value(i)
        v, n = self.v, len(self.lines)
        at = self.constants.place(self.nodes[i][1], v.lanes)
        self._emit(f"%c{n} = getelementptr {v.scalar}, ptr %constants, i64 {at}")
        self._emit(f"%u{n} = load {v.type}, ptr %c{n}, align {v.size}")
        return f"%u{n}"

    def _splat(self, i, scalar):
        v = self.v
        self._emit(f"%i{i} = insertelement {v.type} undef, {v.scalar} {scalar}, i32 0")
        zeros = f"<{v.lanes} x i32> zeroinitializer"
        self._emit(f"%v{i} = shufflevector {v.type} %i{i}, {v.type} undef, {zeros}")

    def _pointer(self, argument, lane):
        """Pointer to one sample of an argument, from the frame."""
        name = f"%p{argument}_{lane}"
        if name not in self.named:
            slot = argument * self.v.lanes + lane
            self._emit(f"{name}_at = getelementptr ptr, ptr %frame, i64 {slot}")
            self._emit(f"{name} = load ptr, ptr {name}_at, !invariant.load !0")
            self.named.add(name)
        return name

    # --- statements --------------------------------------------------------------------------

    def _statement(self, s):
        if s.op == "transfer":
            self._transfer(s)
            return
        v, t, i = self.v, self.v.type, s.targets[0]
        if s.op == "input":
            self._input(i)
        elif s.op == "sincos":
            self._sincos(s)
        elif s.op == "final":
            self._load(i, self.loads[s.operands[0]])
        elif s.op in ("fma", "fms"):
            (a, b), c = map(self._value, s.operands[:2]), self._addend(s.operands[2])
            if s.op == "fms":
                self._emit(f"%n{i} = fneg {t} {a}")
                a = f"%n{i}"
            self._emit(f"%v{i} = call {t} @llvm.fma.{v.suffix}({t} {a}, {t} {b}, {t} {c})")
        elif s.op in _BINARY:
            a, b = map(self._addend if s.op in "+-" else self._value, s.operands)
            self._emit(f"%v{i} = {_BINARY[s.op]} {t} {a}, {b}")
        elif s.op in _COMPARE:
            a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = fcmp {_COMPARE[s.op]} {t} {a}, {b}")
        elif s.op in ("and", "or"):
            a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = {s.op} {v.mask} {a}, {b}")
        elif s.op == "not":
            ones = "<" + ", ".join(["i1 true"] * v.lanes) + ">"
            self._emit(f"%v{i} = xor {v.mask} {self._value(s.operands[0])}, {ones}")
        elif s.op == "select":
            c, a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = select {v.mask} {c}, {t} {a}, {t} {b}")
        elif s.op == "neg":
            self._emit(f"%v{i} = fneg {t} {self._value(s.operands[0])}")
        elif s.op in ("sqrt", "abs"):
            name = {"sqrt": "sqrt", "abs": "fabs"}[s.op]
            a = self._value(s.operands[0])
            self._emit(f"%v{i} = call {t} @llvm.{name}.{v.suffix}({t} {a})")
        elif s.op == "atan2":
            a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = call {t} @atan2v({t} {a}, {t} {b})")
        else:
            raise AssertionError(f"operation {s.op!r} has no LLVM spelling")
        self.named.update(x for x in s.targets if x is not None)

    def _input(self, i):
        k, offset = self.places[i]
        v, result = self.v, "undef"
        for lane in range(v.lanes):
            out = f"%v{i}" if lane == v.lanes - 1 else f"%l{i}_{lane}"
            pointer = self._pointer(k, lane)
            self._emit(f"%a{i}_{lane} = getelementptr {v.scalar}, ptr {pointer}, i64 {offset}")
            self._emit(f"%x{i}_{lane} = load {v.scalar}, ptr %a{i}_{lane}")
            self._emit(
                f"{out} = insertelement {v.type} {result}, {v.scalar} %x{i}_{lane}, i32 {lane}"
            )
            result = out
        if self.watch.inputs:
            self._watch(i)

    def _watch(self, i):
        """Take note of an input or result.

        A sum of x · 0 stays zero while all x are finite, one of x² small while all x are.
        """
        if i in self.watched:
            return
        v, t, zero = self.v, self.v.type, self.v.constant(0.0)
        k = len(self.watched) % _SUMS
        total = self.sums.get(k, zero)
        factor = zero if self.watch.bound is None else f"%v{i}"
        self.watched.add(i)
        self._emit(f"%z{i} = call {t} @llvm.fma.{v.suffix}({t} %v{i}, {t} {factor}, {t} {total})")
        self.sums[k] = f"%z{i}"

    def _check_finite(self):
        """Count the vector as bad when something watched in this block is not finite."""
        if not self.sums:
            return
        v, (total, *others) = self.v, self.sums.values()
        for k, other in enumerate(others):
            self._emit(f"%sum{k} = fadd {v.type} {total}, {other}")
            total = f"%sum{k}"
        bound = self.watch.bound
        most = v.constant(0.0 if bound is None else bound**2)
        self._emit(f"%finite = fcmp ole {v.type} {total}, {most}")
        self.conditions.append("%finite")

    def _count_unless_all_hold(self):
        """Add one to the status unless every condition of this block holds in every lane."""
        if not self.conditions:
            return
        v, (together, *others) = self.v, self.conditions
        for k, condition in enumerate(others):
            self._emit(f"%both{k} = and {v.mask} {together}, {condition}")
            together = f"%both{k}"
        self._emit(f"%good = call i1 @llvm.vector.reduce.and.v{v.lanes}i1({v.mask} {together})")
        self._emit("br i1 %good, label %done, label %bad")
        self.lines.append("bad:")
        self._emit("%count = atomicrmw add ptr %status, i64 1 monotonic")
        self._emit("br label %done")
        self.lines.append("done:")

    def _sincos(self, s):
        t = self.v.type
        x = self._value(s.operands[0])
        name = next(i for i in s.targets if i is not None)
        self._emit(f"%sc{name} = call {{{t}, {t}}} @sincos({t} {x})")
        for part, target in enumerate(s.targets):
            if target is not None:
                self._emit(f"%v{target} = extractvalue {{{t}, {t}}} %sc{name}, {part}")

    # --- what happens to a value once it is there ---------------------------------------------

    def _after(self, target, block):
        if target is None:
            return
        v = self.v
        if target in block.stores:
            t = v.mask if self._is_condition(target) else v.type
            slot = block.stores[target]
            self._emit(f"%o{target} = getelementptr {v.type}, ptr %workspace, i64 {slot}")
            self._emit(f"store {t} %v{target}, ptr %o{target}")
        if target in self.stores and self.watch.results:
            self._watch(target)
        for argument, offset in self.stores.get(target, ()):
            self._result(target, argument, offset)
        if target in self.checks:
            self.conditions.append(f"%v{target}")

    def _result(self, target, argument, offset):
        """Write a result, together with its neighbour if that is just there: half the stores."""
        self._flush(older_than=len(self.lines) - _PATIENCE)
        partner = self.waiting.pop((argument, offset ^ 1), None)
        if partner is None:
            self.waiting[argument, offset] = (target, len(self.lines))
            return
        v, (even, odd) = self.v, (partner[0], target) if offset & 1 else (target, partner[0])
        for lane in range(v.lanes):
            n = f"{even}_{odd}_{argument}_{offset}_{lane}"
            lanes = f"<2 x i32> <i32 {lane}, i32 {v.lanes + lane}>"
            self._emit(f"%e{n} = shufflevector {v.type} %v{even}, {v.type} %v{odd}, {lanes}")
            at = self._pointer(argument, lane)
            self._emit(f"%d{n} = getelementptr {v.scalar}, ptr {at}, i64 {offset & ~1}")
            self._emit(f"store <2 x {v.scalar}> %e{n}, ptr %d{n}, align {v.size}")

    def _flush(self, older_than):
        """Write results whose neighbour has not come."""
        for place, (target, since) in list(self.waiting.items()):
            if since > older_than:
                break  # they are in order of arrival
            del self.waiting[place]
            argument, offset = place
            for lane in range(self.v.lanes):
                n = f"{target}_{argument}_{offset}_{lane}"
                self._emit(f"%e{n} = extractelement {self.v.type} %v{target}, i32 {lane}")
                self._store(n, argument, offset, lane, f"%e{n}")

    def _store(self, n, argument, offset, lane, value):
        v = self.v
        pointer = self._pointer(argument, lane)
        self._emit(f"%d{n} = getelementptr {v.scalar}, ptr {pointer}, i64 {offset}")
        self._emit(f"store {v.scalar} {value}, ptr %d{n}")

    def _constant_outputs(self, which):
        """Results that do not depend on the inputs; first, so that zeros may overlap others."""
        v = self.v
        for k, argument in zip(self._outputs(), self.program.outputs, strict=True):
            if k not in which:
                continue
            constant = {
                offset: self.nodes[root][1]
                for root, places in self.stores.items()
                for output, offset in places
                if output == k and self.nodes[root][0] == "const"
            }
            cleared = self._clear(k, argument, [o for o, x in constant.items() if x == 0])
            for offset, x in constant.items():
                if x != 0 or not cleared:
                    for lane in range(v.lanes):
                        self._store(f"c{k}_{offset}_{lane}", k, offset, lane, v.number(x))

    def _clear(self, k, argument, zeros):
        """Zero a whole result at once when enough of it is zero."""
        if len(zeros) < 16 or 4 * len(zeros) < argument.size:
            return False
        for lane in range(self.v.lanes):
            pointer, size = self._pointer(k, lane), argument.size * self.v.size
            self._emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        return True


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
    sin, cos = (f if v.dtype == "float64" else f"{f}f" for f in ("sin", "cos"))
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
            f"declare {v.scalar} @{sin}({v.scalar})",
            f"declare {v.scalar} @{cos}({v.scalar})",
            "!0 = !{}",
        ]
    )
