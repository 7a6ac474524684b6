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
    constants: dict = {}
    stores = _stores(program)
    blocks = [
        _BlockWriter(program, v, constants, stores).write(k, block)
        for k, block in enumerate(plan.blocks)
    ]
    return "\n\n".join(
        [
            f"; {program.name}: {dtype} x {lanes}",
            *blocks,
            _constant_table(constants, v),
            sincos(v),
            atan2(v),
            angles(plan, _input_places(program), v),
            driver(program, v, plan),
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


class _BlockWriter:
    """Writes one block function."""

    def __init__(self, program, v, constants, stores):
        self.program, self.v, self.constants, self.stores = program, v, constants, stores
        self.nodes = program.graph.nodes
        self.checks = {node for node, _ in program.checks}
        self.lines, self.named, self.loads = [], set(), {}
        self.watched, self.sums = set(), {}
        self.places = _input_places(program)
        self.waiting, self.conditions = {}, []

    def write(self, k, block):
        self.loads = block.loads
        if k == 0:
            self._constant_outputs()
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
        slot = self.constants.setdefault(x, len(self.constants))
        v = self.v
        self._emit(f"%k{i} = getelementptr {v.scalar}, ptr %constants, i64 {slot}")
        self._emit(f"%s{i} = load {v.scalar}, ptr %k{i}, !invariant.load !0")
        self._splat(i, f"%s{i}")

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
            a, b, c = map(self._value, s.operands)
            if s.op == "fms":
                self._emit(f"%n{i} = fneg {t} {a}")
                a = f"%n{i}"
            self._emit(f"%v{i} = call {t} @llvm.fma.{v.suffix}({t} {a}, {t} {b}, {t} {c})")
        elif s.op in _BINARY:
            a, b = map(self._value, s.operands)
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
        self._watch(i)

    def _watch(self, i):
        """Take note of an input or result: a sum of x · 0 stays zero while all x are finite."""
        if i in self.watched:
            return
        v, t, zero = self.v, self.v.type, self.v.constant(0.0)
        k = len(self.watched) % _SUMS
        total = self.sums.get(k, zero)
        self.watched.add(i)
        self._emit(f"%z{i} = call {t} @llvm.fma.{v.suffix}({t} %v{i}, {t} {zero}, {t} {total})")
        self.sums[k] = f"%z{i}"

    def _check_finite(self):
        """Count the vector as bad when something watched in this block is not finite."""
        if not self.sums:
            return
        v, (total, *others) = self.v, self.sums.values()
        for k, other in enumerate(others):
            self._emit(f"%sum{k} = fadd {v.type} {total}, {other}")
            total = f"%sum{k}"
        self._emit(f"%finite = fcmp oeq {v.type} {total}, {v.constant(0.0)}")
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
        if target in self.stores:
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

    def _constant_outputs(self):
        """Results that do not depend on the inputs; first, so that zeros may overlap others."""
        v, first = self.v, len(self.program.inputs)
        for k, argument in enumerate(self.program.outputs, start=first):
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


def _constant_table(constants, v):
    numbers = ", ".join(f"{v.scalar} {v.number(x)}" for x in constants) or f"{v.scalar} 0.0"
    size = max(len(constants), 1)
    # Reached through a pointer that LLVM cannot see through, or it would rebuild the numbers.
    return (
        f"@constants = internal constant [{size} x {v.scalar}] [{numbers}], align 64\n"
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
            f"declare {v.scalar} @{sin}({v.scalar})",
            f"declare {v.scalar} @{cos}({v.scalar})",
            "!0 = !{}",
        ]
    )
