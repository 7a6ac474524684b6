"""One block of the schedule as a function in LLVM IR, with the conditions that it checks.

Conditions are those of the program, and that all results are finite.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from kinetree.expr.calls import callee_of, place_of


@dataclass(frozen=True)
class BlockPlaces:
    """Where a block finds the inputs of a program, and where its results go."""

    inputs: dict
    """Argument number and offset of every input node."""
    results: dict
    """Where each root goes: node -> [(argument number, offset), ...]."""
    first: tuple | None = None
    """Of code that other code calls, the number before each argument: all arguments are then
    vectors in one array, the inputs before the results. None for a frame of pointers."""


def places_of(program, called=False) -> BlockPlaces:
    """Places of inputs and results in arrays of NumPy, or in packed vectors if ``called``."""
    sizes = [a.size for a in (*program.inputs, *program.outputs)]
    first = tuple(accumulate(sizes, initial=0)) if called else None
    return BlockPlaces(_input_places(program), _result_places(program), first)


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


def _result_places(program):
    """Argument number and offsets of every result node."""
    places, position = {}, 0
    for k, argument in enumerate(program.outputs, start=len(program.inputs)):
        for offset in range(argument.size):
            places.setdefault(program.roots[position], []).append((k, offset))
            position += 1
    return places


# --- How results get to memory: in pairs where they come so, constants and zeros ahead of all else

_PATIENCE = 120  # lines of text that a result waits for its neighbour


class ResultWriter:
    """Lines of a function, and the results among them.

    Args:
        program: what is computed.
        v: the vectors it is computed in.
        places: where its inputs and results are.
    """

    def __init__(self, program, v, places):
        self.program, self.v, self.places = program, v, places
        self.nodes = program.graph.nodes
        self.lines, self.named, self.waiting = [], set(), {}

    def _outputs(self):
        """Numbers of the arguments that are results."""
        first = len(self.program.inputs)
        return range(first, first + len(self.program.outputs))

    def _emit(self, text):
        """Append an LLVM instruction."""
        self.lines.append("  " + text)

    def _pointer(self, argument, lane):
        """LLVM pointer to one sample of an argument, loaded from the frame."""
        name = f"%p{argument}_{lane}"
        if name not in self.named:
            slot = argument * self.v.lanes + lane
            self._emit(f"{name}_at = getelementptr ptr, ptr %frame, i64 {slot}")
            self._emit(f"{name} = load ptr, ptr {name}_at, !invariant.load !0")
            self.named.add(name)
        return name

    def _result(self, target, argument, offset):
        """Write a result number; two neighbours are stored together if computed soon enough."""
        if self.places.first is not None:
            n, t = f"{target}_{argument}_{offset}", self.v.type
            at = self.places.first[argument] + offset
            self._emit(f"%d{n} = getelementptr {t}, ptr %frame, i64 {at}")
            self._emit(f"store {t} %v{target}, ptr %d{n}")
            return
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
        """Write waiting result numbers whose neighbour has not come for a while."""
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
        """Write the store of one lane of a result number."""
        v = self.v
        pointer = self._pointer(argument, lane)
        self._emit(f"%d{n} = getelementptr {v.scalar}, ptr {pointer}, i64 {offset}")
        self._emit(f"store {v.scalar} {value}, ptr %d{n}")

    def _constant_outputs(self, which):
        """Write the constant entries of results ``which``, before those that are computed.

        Code that calls other code knows those of it beforehand.
        """
        if self.places.first is not None:
            return
        v = self.v
        for k, argument in zip(self._outputs(), self.program.outputs, strict=True):
            if k not in which:
                continue
            constant = {
                offset: self.nodes[root][1]
                for root, places in self.places.results.items()
                for output, offset in places
                if output == k and self.nodes[root][0] == "const"
            }
            cleared = self._clear(k, argument, [o for o, x in constant.items() if x == 0])
            for offset, x in constant.items():
                if x != 0 or not cleared:
                    for lane in range(v.lanes):
                        self._store(f"c{k}_{offset}_{lane}", k, offset, lane, v.number(x))

    def _clear(self, k, argument, zeros):
        """Write a memset of a result if many entries are zero; whether it was written."""
        if len(zeros) < 16 or 4 * len(zeros) < argument.size:
            return False
        for lane in range(self.v.lanes):
            pointer, size = self._pointer(k, lane), argument.size * self.v.size
            self._emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        return True


_SUMS = 4  # independent sums, so that none waits for another


class CheckWriter(ResultWriter):
    """Lines of a function with conditions, which are counted once at its end.

    Args:
        program: what is computed.
        v: the vectors it is computed in.
        places: where its inputs and results are.
        watch: which values must be finite, or bounded.
    """

    def __init__(self, program, v, places, watch):
        super().__init__(program, v, places)
        self.watch = watch
        self.checks = {node for node, _ in program.checks}
        self.watched, self.sums, self.conditions = set(), {}, []

    def _watch(self, i):
        """Add an input or result to the sums that become NaN or large if it is not finite.

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
        """Write a check that all watched values of this block are finite; else status counts up."""
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
        """Write a check that this block's conditions hold in all lanes; else status counts up."""
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


_BINARY = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_COMPARE = {"<": "olt", "<=": "ole", "==": "oeq"}


class BlockWriter(CheckWriter):
    """Writes one block function: loads, operations and what becomes of their results."""

    def __init__(self, program, v, places, watch, constants, calls, linked=None):
        super().__init__(program, v, places, watch)
        self.constants, self.calls, self.loads = constants, calls, {}
        self.linked: Any = linked  # None for programs without calls

    def write(self, k, block, staged, name="", before=()):
        """LLVM IR of the function ``@block_k``; the first writes constants unless ``staged``.

        Args:
            k: the number of the block.
            block: what it computes.
            staged: numbers of results that are put together elsewhere.
            name: another name for the function.
            before: lines that come first.
        """
        self.loads = block.loads
        self.lines += before
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
        head = f"define internal void @{name or f'block_{k}'}({arguments}) noinline {{"
        return "\n".join([head, *self.lines, "  ret void", "}"])

    def prepare(self, staged):
        """LLVM IR of ``@prepare``, which writes the constant entries of staged results once."""
        self._constant_outputs(staged)
        return "\n".join(
            ["define internal void @prepare(ptr %frame) noinline {", *self.lines, "  ret void", "}"]
        )

    # --- values ------------------------------------------------------------------------------

    def _value(self, i):
        """LLVM name of a node's value, loaded at its first use from workspace or constants."""
        if i in self.named:
            return f"%v{i}"
        if self.nodes[i][0] == "const":
            self._load_constant(i, self.nodes[i][1])
        elif i in self.loads:
            self._load(i, self.loads[i])
        self.named.add(i)
        return f"%v{i}"

    def _load(self, i, slot):
        """Write the load of a node's value from the workspace."""
        t = self.v.mask if self._is_condition(i) else self.v.type
        self._emit(f"%w{i} = getelementptr {self.v.type}, ptr %workspace, i64 {slot}")
        self._emit(f"%v{i} = load {t}, ptr %w{i}")

    def _transfer(self, s):
        """Write the next states of a loop to their slots, after all of them are computed."""
        values = [self._value(i) for i in s.operands]
        for slot, value in zip(s.slots, values, strict=True):
            at = f"%t{len(self.lines)}"
            self._emit(f"{at} = getelementptr {self.v.type}, ptr %workspace, i64 {slot}")
            self._emit(f"store {self.v.type} {value}, ptr {at}")

    def _is_condition(self, i):
        """Whether a node is a truth value, one bit per lane."""
        return self.nodes[i][0] in ("<", "<=", "==", "and", "or", "not")

    def _load_constant(self, i, x):
        """Write the load of a constant into all lanes."""
        v, at = self.v, self.constants.place(x)
        self._emit(f"%k{i} = getelementptr {v.scalar}, ptr %constants, i64 {at}")
        self._emit(f"%s{i} = load {v.scalar}, ptr %k{i}, !invariant.load !0")
        self._splat(i, f"%s{i}")

    def _addend(self, i):
        """LLVM name of an addend; constants are loaded as whole vectors, as FMA overwrites them.

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
        """Write a vector with one scalar in all lanes."""
        v = self.v
        self._emit(f"%i{i} = insertelement {v.type} undef, {v.scalar} {scalar}, i32 0")
        zeros = f"<{v.lanes} x i32> zeroinitializer"
        self._emit(f"%v{i} = shufflevector {v.type} %i{i}, {v.type} undef, {zeros}")

    # --- statements --------------------------------------------------------------------------

    def _statement(self, s):
        """Write the instructions of one statement of a block."""
        v, t, op = self.v, self.v.type, s.op
        if op == "transfer":
            self._transfer(s)
            return
        i = s.targets[0]
        if op == "fma" or op == "fms":  # half of all
            x, y, z = s.operands
            c, a, b = self._addend(z), self._value(x), self._value(y)
            if op == "fms":
                self._emit(f"%n{i} = fneg {t} {a}")
                a = f"%n{i}"
            self._emit(f"%v{i} = call {t} @llvm.fma.{v.suffix}({t} {a}, {t} {b}, {t} {c})")
            self.named.add(i)
            return
        if op == "input":
            self._input(i)
        elif op == "call":
            self._call(s)
        elif op == "sincos":
            self._sincos(s)
        elif op == "final":
            self._load(i, self.loads[s.operands[0]])
        elif op in _BINARY:
            a, b = map(self._addend if op in "+-" else self._value, s.operands)
            self._emit(f"%v{i} = {_BINARY[op]} {t} {a}, {b}")
        elif op in _COMPARE:
            a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = fcmp {_COMPARE[op]} {t} {a}, {b}")
        elif op in ("and", "or"):
            a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = {op} {v.mask} {a}, {b}")
        elif op == "not":
            ones = "<" + ", ".join(["i1 true"] * v.lanes) + ">"
            self._emit(f"%v{i} = xor {v.mask} {self._value(s.operands[0])}, {ones}")
        elif op == "select":
            c, a, b = map(self._value, s.operands)
            self._emit(f"%v{i} = select {v.mask} {c}, {t} {a}, {t} {b}")
        elif op == "neg":
            self._emit(f"%v{i} = fneg {t} {self._value(s.operands[0])}")
        elif op in ("sqrt", "abs", "floor"):
            name = {"abs": "fabs"}.get(op, op)
            a = self._value(s.operands[0])
            self._emit(f"%v{i} = call {t} @llvm.{name}.{v.suffix}({t} {a})")
        elif op == "held":
            self._emit(f"%v{i} = bitcast {t} {self._value(s.operands[0])} to {t}")
        elif op in ("exp", "log", "tanh"):
            symbol, a = self.calls(op, f"{t} {{}}({t})"), self._value(s.operands[0])
            self._emit(f"%v{i} = call {t} {symbol}({t} {a})")
        elif op == "atan2":
            a, b = map(self._value, s.operands)
            symbol = self.calls("atan2", f"{t} {{}}({t}, {t})")
            self._emit(f"%v{i} = call {t} {symbol}({t} {a}, {t} {b})")
        else:
            raise AssertionError(f"operation {op!r} has no LLVM spelling")
        self.named.update(x for x in s.targets if x is not None)

    def _input(self, i):
        """Write the load of an input for all lanes."""
        k, offset = self.places.inputs[i]
        v = self.v
        if self.places.first is not None:
            self._emit(
                f"%a{i} = getelementptr {v.type}, ptr %frame, i64 {self.places.first[k] + offset}"
            )
            self._emit(f"%v{i} = load {v.type}, ptr %a{i}")
            return
        self._gather(i, ((self._pointer(k, lane), offset) for lane in range(v.lanes)))
        if self.watch.inputs:
            self._watch(i)

    def _gather(self, i, places):
        """Write a vector gathered from one number per lane, by pointer and offset."""
        v, result = self.v, "undef"
        for lane, (pointer, offset) in enumerate(places):
            out = f"%v{i}" if lane == v.lanes - 1 else f"%l{i}_{lane}"
            self._emit(f"%a{i}_{lane} = getelementptr {v.scalar}, ptr {pointer}, i64 {offset}")
            self._emit(f"%x{i}_{lane} = load {v.scalar}, ptr %a{i}_{lane}")
            new = f"insertelement {v.type} {result}, {v.scalar} %x{i}_{lane}, i32 {lane}"
            self._emit(f"{out} = {new}")
            result = out

    def _call(self, s):
        """Write a call of other code, with arguments and results in the workspace."""
        v, graph = self.v, self.program.graph
        call = self.nodes[s.targets[0]][1]
        kernel, values = callee_of(graph, call), [self._value(i) for i in s.operands]
        number, entry = self.linked.number(kernel)
        wide, linked = not entry.has_frame, self.linked
        for part, at in (("a", linked.array), ("w", linked.space), ("f", linked.frame)):
            self._emit(f"%c{part}{call} = getelementptr i8, ptr %workspace, i64 {at}")
        for n, value in enumerate(values):
            if wide:
                self._emit(f"%c{call}_{n} = getelementptr {v.type}, ptr %ca{call}, i64 {n}")
                self._emit(f"store {v.type} {value}, ptr %c{call}_{n}")
                continue
            for lane, at in enumerate(entry.lane_places(n, v.lanes)):
                one, to = f"%c{call}_{n}_{lane}", f"%d{call}_{n}_{lane}"
                self._emit(f"{one} = extractelement {v.type} {value}, i32 {lane}")
                self._emit(f"{to} = getelementptr {v.scalar}, ptr %ca{call}, i64 {at}")
                self._emit(f"store {v.scalar} {one}, ptr {to}")
        if not wide:
            for slot, at in enumerate(entry.frame(v.lanes)):
                self._emit(f"%e{call}_{slot} = getelementptr {v.scalar}, ptr %ca{call}, i64 {at}")
                self._emit(f"%h{call}_{slot} = getelementptr ptr, ptr %cf{call}, i64 {slot}")
                self._emit(f"store ptr %e{call}_{slot}, ptr %h{call}_{slot}")
        self._emit(f"%ct_at{call} = getelementptr i8, ptr %workspace, i64 {linked.home}")
        self._emit(f"%ct{call} = load ptr, ptr %ct_at{call}")
        for part, slot in (("s", 2 * number), ("k", 2 * number + 1)):
            self._emit(f"%c{part}_at{call} = getelementptr ptr, ptr %ct{call}, i64 {slot}")
            self._emit(f"%c{part}{call} = load ptr, ptr %c{part}_at{call}")
        frame = f"%ca{call}" if wide else f"%cf{call}"
        given = f"ptr {frame}, ptr %cw{call}, ptr %ck{call}, ptr %status"
        self._emit(f"call void %cs{call}({given})")
        for target in s.targets:
            k = len(values) + place_of(graph, target)
            if wide:
                self._emit(f"%r{target} = getelementptr {v.type}, ptr %ca{call}, i64 {k}")
                self._emit(f"%v{target} = load {v.type}, ptr %r{target}")
                continue
            self._gather(target, ((f"%ca{call}", at) for at in entry.lane_places(k, v.lanes)))

    def _sincos(self, s):
        """Write a call that computes sine and cosine together."""
        t = self.v.type
        x = self._value(s.operands[0])
        name = next(i for i in s.targets if i is not None)
        pair = f"{{{t}, {t}}}"
        symbol = self.calls("sincos", f"{{{pair}}} {{}}({t})")
        self._emit(f"%sc{name} = call {pair} {symbol}({t} {x})")
        for part, target in enumerate(s.targets):
            if target is not None:
                self._emit(f"%v{target} = extractvalue {pair} %sc{name}, {part}")

    # --- what happens to a value once it is there ---------------------------------------------

    def _after(self, target, block):
        """Write the stores of a new value into its workspace slot and results."""
        if target is None:
            return
        v = self.v
        if target in block.stores:
            t = v.mask if self._is_condition(target) else v.type
            slot = block.stores[target]
            self._emit(f"%o{target} = getelementptr {v.type}, ptr %workspace, i64 {slot}")
            self._emit(f"store {t} %v{target}, ptr %o{target}")
        if target in self.places.results and self.watch.results:
            self._watch(target)
        for argument, offset in self.places.results.get(target, ()):
            self._result(target, argument, offset)
        if target in self.checks:
            self.conditions.append(f"%v{target}")
