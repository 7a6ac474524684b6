"""Loops of procedures as LLVM's text: over ranges, and over lanes, which share their turns."""

import ast
from typing import Any

from kinetree.codegen.procedures.functions import Functions
from kinetree.codegen.procedures.language import INT, builtin
from kinetree.codegen.procedures.text import Number, Pointed, Pointer

AT_ONCE = 4
"""Turns of a lane that read together before any of them writes: memory is far away."""
_PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Call)
_CALLS = {"view", "abs", "min", "max", "sqrt"}


class Turns(Functions):
    """Loops.

    Attributes:
        bind, put: assign variables and numbers of arrays;  loop: writes the body of a loop;
            calls_local: whether an expression makes arrays. All of them are the writer's.
    """

    bind: Any
    put: Any
    loop: Any
    calls_local: Any

    def s_For(self, s):
        """Write LLVM IR for a loop over ``range``, or over ``lanes``, which threads share."""
        if isinstance(s.target, ast.Tuple):
            self.for_pairs(s)
        else:
            self.for_turns(s, s.iter)

    def for_pairs(self, s):
        """``for i, j in lanes(n, m)``: one loop inside the other, or one over all pairs."""
        call, names = s.iter, s.target.elts
        of: Any = call.func if isinstance(call, ast.Call) else None
        known = isinstance(of, ast.Name) and builtin(self.procedure.find(of.id)) == "lanes"
        if not (known and len(call.args) == len(names) == 2):
            raise self.fail("for i, j goes over lanes(n, m) in the language of procedures")
        outer, inner = (ast.Call(of, [e], []) for e in call.args)
        if self.module.lanes > 1:
            self.for_turns(s, outer, self.integer(call.args[1]))
            return
        inner.func = ast.Name("range")
        inside = ast.For(names[1], inner, s.body, s.orelse)
        self.s_For(
            ast.fix_missing_locations(ast.copy_location(ast.For(names[0], outer, [inside], []), s))
        )

    def for_turns(self, s, call, inner=None):
        """Write a ``for`` loop, of two counters where ``inner`` is the second one's count."""
        name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
        kind = builtin(self.procedure.find(name)) if name else None
        shared = kind == "lanes"
        if not isinstance(call, ast.Call) or not (shared or kind == "unroll" or name == "range"):
            raise self.fail("for goes over range(...) or lanes(...) in the language of procedures")
        if s.orelse or not isinstance(s.target, ast.Name if inner is None else ast.Tuple):
            raise self.fail("for needs one name, and has no else, in the language of procedures")
        bounds = [self.integer(e) for e in call.args]
        step = self.static(call.args[2]) if len(bounds) == 3 else 1
        if not isinstance(step, int) or not step:
            raise self.fail("the step of range must be a constant")
        low, high = ("0", bounds[0]) if len(bounds) == 1 else bounds[:2]
        waits = shared and self.module.lanes > 1 and self.writes(s)
        if shared:
            low, step = self.first_turn(bounds, waits)
        if inner is not None:
            high = self.op(f"mul nsw i64 {high}, {inner}")
        counter = self.stack("i64", "k")
        self.emit(f"store i64 {low}, ptr {counter}")
        several = getattr(self.module, "several_turns", False)
        if several and shared and self.module.lanes > 1 and self.is_plain(s):
            self.several_turns(s, counter, high, step, inner)
        head, body, again, end = (self.label() for _ in range(4))
        self.jump(head)
        self.start(head)
        i = self.op(f"load i64, ptr {counter}")
        self.branch(self.op(f"icmp {'slt' if step > 0 else 'sgt'} i64 {i}, {high}"), body, end)
        self.start(body)
        for name, value in self.counters(s, i, inner).items():
            self.bind(name, value)
        first = self.label()
        self.jump(first)
        self.in_lanes = shared or self.in_lanes
        self.loop(first, again, end, s.body)
        self.in_lanes = self.in_lanes and not shared
        self.start(again)
        more = self.op(f"add nsw i64 {self.op(f'load i64, ptr {counter}')}, {step}")
        self.emit(f"store i64 {more}, ptr {counter}")
        hint = (
            f", !llvm.loop {self.module.unroll()}"
            if several and self.module.lanes > 1 and kind == "unroll"
            else ""
        )
        self.emit(f"br label %{head}{hint}")
        self.start(end)
        if waits:
            self.wait_for_lanes()

    def counters(self, s, i, inner):
        """Loop counters of one iteration by variable name; two of them if ``inner`` is given."""
        if inner is None:
            return {s.target.id: Number(i, INT)}
        both = zip(s.target.elts, self.quotient_and_rest(i, inner), strict=True)
        return {target.id: Number(x, INT) for target, x in both}

    # --- several turns at once ---------------------------------------------------------------

    def is_plain(self, s):
        """Whether a loop only assigns to arrays and its variables, so that it can be unrolled."""
        known: set[str] = set()
        own = {t.id for b in s.body for t in getattr(b, "targets", []) if isinstance(t, ast.Name)}
        sums = [b.target for b in s.body if isinstance(b, ast.AugAssign)]
        sums = {t.id for t in sums if isinstance(t, ast.Name)}
        for statement in s.body:
            if not isinstance(statement, ast.Assign | ast.AugAssign):
                return False
            targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
            if not all(isinstance(t, ast.Subscript | ast.Name) for t in targets):
                return False
            reads = list(ast.walk(statement.value))
            reads += [n for t in targets if isinstance(t, ast.Subscript) for n in ast.walk(t)]
            names = {n.id for n in reads if isinstance(n, ast.Name)}
            if names & (sums | own - known) or not all(self.is_plain_part(n) for n in reads):
                return False
            known |= {t.id for t in targets if isinstance(t, ast.Name)}
        return not own & sums

    def is_plain_part(self, node):
        """Whether a syntax node has no branch and calls no procedure."""
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "")
            return builtin(self.procedure.find(name)) in _CALLS if name else False
        return isinstance(node, (*_PLAIN, ast.expr_context, ast.operator, ast.unaryop))

    def several_turns(self, s, counter, high, step, inner):
        """Write a loop unrolled by a few iterations: all loads of a statement before its stores."""
        head, body, end = self.label(), self.label(), self.label()
        self.jump(head)
        self.start(head)
        i = self.op(f"load i64, ptr {counter}")
        last = self.op(f"add nsw i64 {i}, {(AT_ONCE - 1) * step}")
        self.branch(self.op(f"icmp slt i64 {last}, {high}"), body, end)
        self.start(body)
        starts = [i, *(self.op(f"add nsw i64 {i}, {u * step}") for u in range(1, AT_ONCE))]
        turns = [self.counters(s, x, inner) for x in starts]
        for statement in s.body:
            self.node = statement
            values = [self.value_in_turn(statement, turn) for turn in turns]
            targets = getattr(statement, "targets", None) or [statement.target]
            for turn, value in zip(turns, values, strict=True):
                self.bind_all(turn)
                for target in targets:
                    if isinstance(target, ast.Subscript):
                        self.put(self.place(target), value)
                    elif isinstance(statement, ast.AugAssign):
                        self.bind(target.id, self.binary(statement.op, self.read(target.id), value))
        more = self.op(f"add nsw i64 {i}, {AT_ONCE * step}")
        self.emit(f"store i64 {more}, ptr {counter}")
        self.jump(head)
        self.start(end)

    def value_in_turn(self, statement, turn):
        """Value that a statement assigns in one of the unrolled iterations."""
        self.bind_all(turn)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            return self.any(statement.value)
        if isinstance(statement, ast.AugAssign):
            place: Any = self.place(statement.target)
            at, element, of = place
            old = self.load(element, at, of)
            return self.binary(statement.op, old, self.any(statement.value))
        value = self.any(statement.value)
        for target in statement.targets:
            if isinstance(target, ast.Name):
                self.bind(target.id, value)
                turn[target.id] = self.read(target.id)
        return value

    def bind_all(self, values):
        """Assign values to variables by name."""
        for name, value in values.items():
            self.bind(name, value)

    def quotient_and_rest(self, x, y):
        """Quotient and remainder of small nonnegative integers."""
        a, b = (self.op(f"trunc i64 {each} to i32") for each in (x, y))
        return [
            self.op(f"zext i32 {self.op(f'{op} i32 {a}, {b}')} to i64") for op in ("udiv", "urem")
        ]

    def wait_for_lanes(self):
        """Write LLVM IR for a barrier at which all lanes wait for each other."""
        self.module.needs("declare void @lanes_together() convergent")
        self.emit("call void @lanes_together()")

    def writes(self, loop):
        """Whether a loop writes to arrays that outlive it, so that lanes have to wait after it."""
        own: set[str] = set()
        for n in ast.walk(loop):
            if isinstance(n, ast.Assign) and self.calls_local(n.value):
                first = n.targets[0]
                own |= {e.id for e in getattr(first, "elts", [first])}
        changed = {name.partition(".")[0] for name in self.procedure.changed_in(loop)} - own
        return any(isinstance(self.names.get(name), Pointed | Pointer) for name in changed)

    def first_turn(self, bounds, waits):
        """First iteration of a lane, and the stride, which is the number of lanes."""
        if len(bounds) != 1 or self.in_lanes:
            raise self.fail("lanes(count) takes one number, and there is no loop over lanes in it")
        if self.module.lanes == 1:
            return "0", 1
        if waits:
            self.wait_for_lanes()
        self.module.needs("declare i64 @lane_number()")
        return self.op("call i64 @lane_number()"), self.module.lanes
