"""Calls in procedures as LLVM's text: of procedures, of functions that only they have, of C's."""

import ast
import math
from typing import Any

from kinetree.codegen.procedures.expressions import Expressions
from kinetree.codegen.procedures.language import (
    BOOL,
    FLOAT,
    INT,
    ArrayType,
    builtin,
    is_record,
    spell,
)
from kinetree.codegen.procedures.text import (
    RANK,
    Number,
    Pointed,
    Pointer,
    Small,
    literal,
    strides_of,
    text_of,
    what,
)
from kinetree.codegen.procedures.workspaces import is_workspace

_LIBRARY = ("sin", "cos", "tan", "atan2", "asin", "acos", "atan", "exp", "log", "hypot")


class Functions(Expressions):
    """Values of calls."""

    in_lanes = False  # whether this is in a loop over lanes

    def e_Call(self, e):
        """LLVM value of a call of a procedure or of a built-in function."""
        if isinstance(e.func, ast.Subscript) and isinstance(e.func.value, ast.Name):
            choice = self.procedure.find(e.func.value.id)
            if hasattr(choice, "otherwise"):
                return self.choose(choice, e)
        if isinstance(e.func, ast.Attribute) and isinstance(e.func.value, ast.Name):
            module = self.procedure.module(e.func.value.id)
            callee = None if module is None else getattr(module, e.func.attr, None)
        else:
            callee = self.procedure.find(e.func.id) if isinstance(e.func, ast.Name) else None
        name = builtin(callee)
        if name is not None:
            if e.keywords:
                raise self.fail(f"{name} takes no keywords here", e)
            return getattr(self, f"f_{name}", None or self.f_library)(e, name)
        if not hasattr(callee, "arguments") or not isinstance(e.func, ast.Name):
            raise self.fail(
                f"{ast.unparse(e.func)} is neither a procedure nor a function of procedures", e
            )
        return self.call(callee, e)

    def f_lane_sum(self, e, name):
        """Value of ``lane_sum(x)`` or ``lane_max(x)`` over a warp's lanes; of one lane ``x``."""
        x = self.cast(self.number(e.args[0]), FLOAT)
        if self.in_lanes:
            raise self.fail(f"{name} comes after a loop over lanes, not in it", e)
        if self.module.lanes > 1:
            self.module.needs(f"declare double @{name}(double) convergent")
            x = self.op(f"call double @{name}(double {x})")
        return Number(x, FLOAT)

    f_lane_max = f_lane_sum

    def f_lane_count(self, e, name):
        """LLVM value of ``lane_count()``: the number of lanes, a constant."""
        return literal(self.module.lanes)

    def f_worlds_max(self, e, name):
        """Value of ``worlds_max(x)``: the largest among a warp's worlds, ``x`` itself on a CPU."""
        x = self.integer(e.args[0])
        return Number(x if self.module.lanes == 1 else self.op(f"call i64 @{name}(i64 {x})"), INT)

    def call(self, callee, e):
        """Write LLVM IR for the call of a procedure; its value."""
        values = self.arguments(callee, e)
        of = tuple(value.of if isinstance(value, Pointed) else "" for value in values)
        name = self.module.variant(callee, of) if any(of) else ""
        return self.call_with(callee, self.text_of_arguments(callee, values), name)

    def arguments(self, callee, e):
        """Values of the arguments of a call, defaults filled in and types checked."""
        if self.in_lanes and callee.uses_lanes:
            raise self.fail(f"{callee.name} loops over lanes, and is called in such a loop", e)
        given = dict(zip((name for name, _ in callee.arguments), e.args, strict=False))
        given |= {k.arg: k.value for k in e.keywords}
        given = {n: ast.Constant(x) for n, x in callee.defaults.items()} | given
        if set(given) != {name for name, _ in callee.arguments} or len(e.args) > len(
            callee.arguments
        ):
            wanted = ", ".join(f"{n}: {spell(k)}" for n, k in callee.arguments)
            raise self.fail(f"{callee.name} takes ({wanted})", e)
        return [self.argument(callee, name, kind, given[name]) for name, kind in callee.arguments]

    def text_of_arguments(self, callee, values):
        """LLVM text of the arguments of a call."""
        kinds = (kind for _, kind in callee.arguments)
        given = zip(kinds, values, strict=True)
        return ", ".join(f"{k} {x}" if isinstance(k, str) else f"ptr {x.at}" for k, x in given)

    def call_with(self, callee, arguments, name="") -> Any:
        """Write the call of a procedure with arguments given as LLVM text; its value."""
        text = f"{name or self.module.name(callee)}({arguments})"
        if callee.returns is None:
            self.emit(f"call void {text}")
            return None
        whole = self.op(f"call {text_of(callee.returns)} {text}")
        if not isinstance(callee.returns, tuple):
            return Number(whole, callee.returns)
        kind = text_of(callee.returns)
        return tuple(
            Number(self.op(f"extractvalue {kind} {whole}, {k}"), each)
            for k, each in enumerate(callee.returns)
        )

    def choose(self, choice, e):
        """Write the call ``TABLE[k](...)``: a switch with a branch for each procedure."""
        wrong = choice.mismatch()
        returns = choice.otherwise.returns
        if wrong or isinstance(returns, tuple):
            raise self.fail(
                f"{ast.unparse(e.func.value)}: {wrong or 'its procedures return one number each'}",
                e,
            )
        index = e.func.slice
        number = "0"
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            word = self.op(f"mul i64 {number}, {choice.WORD}")
            number = self.op(f"add nsw i64 {word}, {self.integer(part)}")
        arguments = self.text_of_arguments(choice.otherwise, self.arguments(choice.otherwise, e))
        slot = None if returns is None else self.stack(returns, "v")
        end, usual, blocks = self.label(), self.label(), []
        for callee, numbers in choice.numbers.items():
            label = usual if callee is choice.otherwise else self.label()
            blocks.append((label, callee, numbers))
        cases = [f"i64 {x}, label %{label}" for label, _, numbers in blocks for x in numbers]
        self.emit(f"switch i64 {number}, label %{usual} [ {' '.join(cases)} ]")
        self.done = True
        for label, callee, _ in blocks:
            self.start(label)
            value = self.call_with(callee, arguments)
            if slot is not None:
                self.emit(f"store {returns} {value.x}, ptr {slot}")
            self.jump(end)
        self.start(end)
        return None if slot is None else Number(self.op(f"load {returns}, ptr {slot}"), returns)

    def argument(self, callee, name, kind, e):
        """Value of one argument of a call, after a check of its type; of a number, its text."""
        value, label = self.any(e), f"argument {name} of {callee.name}"
        if isinstance(kind, str):
            return self.exact(value, kind, label)
        if is_record(kind):
            if not isinstance(value, Pointer) or value.kind is not kind:
                raise self.fail(f"{label} is {spell(kind)}, got {what(value)}", e)
            return value
        if not isinstance(value, Pointed | Small) or (
            value.element != kind.element
            or len(value.dims) != len(kind.dims)
            or any(k not in (None, d) for k, d in zip(kind.dims, value.dims, strict=True))
        ):
            raise self.fail(f"{label} is {kind}, got {what(value)}", e)
        value = self.array_in_memory(value)
        if not value.is_contiguous:
            raise self.fail(f"{label} must be contiguous: copy it into a local array", e)
        return value

    def f_library(self, e, name):
        """LLVM value of a call of a function of C's math library."""
        x = [self.cast(self.number(a), FLOAT) for a in e.args]
        if name not in _LIBRARY or len(x) != (2 if name in ("atan2", "hypot") else 1):
            raise self.fail(f"{ast.unparse(e)} is not in the language of procedures", e)
        kinds = ", ".join(["double"] * len(x))
        self.module.needs(f"declare double @{name}({kinds}) nounwind willreturn memory(none)")
        return Number(self.op(f"call double @{name}({', '.join(f'double {v}' for v in x)})"), FLOAT)

    def f_sqrt(self, e, name):
        """LLVM value of ``sqrt(x)``."""
        return Number(self.intrinsic("sqrt", self.cast(self.number(e.args[0]), FLOAT)), FLOAT)

    def f_floor(self, e, name):
        """LLVM value of ``floor(x)`` or ``ceil(x)``."""
        x = self.intrinsic(name, self.cast(self.number(e.args[0]), FLOAT))
        return Number(self.whole(x), INT)

    f_ceil = f_floor

    def f_copysign(self, e, name):
        """LLVM value of ``copysign(a, b)``: ``a`` with the sign of ``b``."""
        return Number(
            self.intrinsic("copysign", *(self.cast(self.number(a), FLOAT) for a in e.args)), FLOAT
        )

    def f_abs(self, e, name):
        """LLVM value of ``abs(x)``, of a number or elementwise."""
        value = self.any(e.args[0])
        if isinstance(value, Number):
            return self.absolute(value)
        value = self.small(value)
        found = [self.absolute(Number(x, value.element)) for x in value.numbers]
        return Small(found[0].kind, value.dims, tuple(x.x for x in found))

    def f_min(self, e, name):
        """Value of ``min`` or ``max`` of several numbers; of equal ones the first, as in Python."""
        values = [self.number(a) for a in e.args]
        kind, found = max((v.kind for v in values), key=RANK.__getitem__), values[0]
        for value in values[1:]:  # as Python: the first of equal ones
            a, b = Number(self.cast(found, kind), kind), Number(self.cast(value, kind), kind)
            test = self.compare("Lt" if name == "min" else "Gt", b, a)
            found = Number(self.op(f"select i1 {test}, {kind} {b.x}, {kind} {a.x}"), kind)
        return found

    f_max = f_min

    def f_float(self, e, name):
        """LLVM value of ``float(x)``."""
        return Number(self.cast(self.number(e.args[0]), FLOAT), FLOAT)

    def f_int(self, e, name):
        """LLVM value of ``int(x)``: without the fraction."""
        return Number(self.cast(self.number(e.args[0]), INT), INT)

    def f_bool(self, e, name):
        """LLVM value of ``bool(x)``: whether a number is not zero."""
        return Number(self.test(e.args[0]), BOOL)

    def f_len(self, e, name):
        """LLVM value of ``len(x)`` of an array."""
        value = self.any(e.args[0])
        if not isinstance(value, Pointed | Small) or value.dims[0] is None:
            raise self.fail("len is of arrays of fixed length", e)
        return literal(value.dims[0])

    def f_isfinite(self, e, name):
        """Whether a number is neither infinite nor NaN."""
        x = self.intrinsic("fabs", self.cast(self.number(e.args[0]), FLOAT))
        return Number(self.op(f"fcmp olt double {x}, {literal(math.inf).x}"), BOOL)

    def f_invoke(self, e, name):
        """Write ``invoke(address, ...)``: a call of machine code with the addresses of arrays."""
        arrays = [self.array_in_memory(self.any(a)).at for a in e.args[1:]]
        code = self.op(f"inttoptr i64 {self.integer(e.args[0])} to ptr")
        self.emit(f"call void {code}({', '.join(f'ptr {at}' for at in arrays)})")

    def f_isnan(self, e, name):
        """Whether a number is NaN."""
        x = self.cast(self.number(e.args[0]), FLOAT)
        return Number(self.op(f"fcmp uno double {x}, {x}"), BOOL)

    def f_cross(self, e, name):
        """LLVM value of ``cross(a, b)``, the vector product."""
        a, b = (self.small(self.any(x)) for x in e.args)
        if (a.dims, b.dims) != ((3,), (3,)):
            raise self.fail(
                f"cross is of two arrays of three numbers, got {a.kind} and {b.kind}", e
            )
        x, y = ([Number(n, v.element) for n in v.numbers] for v in (a, b))
        found = [
            self.arithmetic(
                "Sub", self.arithmetic("Mult", x[i], y[j]), self.arithmetic("Mult", x[j], y[i])
            )
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        return Small(found[0].kind, (3,), tuple(n.x for n in found))

    def f_dot(self, e, name):
        """LLVM value of ``dot(a, b)``, the scalar product."""
        return self.product(*(self.any(x) for x in e.args))

    def f_vector(self, e, name):
        """LLVM value of ``vector(...)``: a small array of floats in registers."""
        numbers = tuple(self.cast(self.number(a), FLOAT) for a in e.args)
        return Small(FLOAT, (len(numbers),), numbers)

    def f_local(self, e, name):
        """LLVM value of ``local(...)``: an uninitialised array or workspace on the stack."""
        kind = self.procedure.find(e.args[0].id) if isinstance(e.args[0], ast.Name) else None
        if is_workspace(kind):
            return Pointer(self.stack(f"[{self.size_of(kind) // 8} x i64]", "work", 16), kind)
        element = {"float": FLOAT, "int": INT}.get(getattr(e.args[0], "value", ""))
        dims = tuple(self.static(a) for a in e.args[1:])
        if element is None or not dims or not all(isinstance(d, int) and d > 0 for d in dims):
            raise self.fail(
                'local("float" or "int", lengths...) needs constant lengths, or a workspace', e
            )
        at = self.array_on_stack(ArrayType(element, dims), "local")
        return Pointed(at, element, dims, strides_of(dims))

    def f_view(self, e, name):
        """LLVM value of ``view(x, start)``: the part of an array from row ``start`` on."""
        array = self.any(e.args[0])
        if not isinstance(array, Pointed) or not array.is_contiguous:
            raise self.fail(f"view is of a contiguous array in memory, not of {what(array)}", e)
        start, stride = self.integer(e.args[1]), array.strides[0]
        offset = start if stride == 1 else self.op(f"mul nsw i64 {start}, {stride}")
        at = self.op(f"getelementptr inbounds {array.element}, ptr {array.at}, i64 {offset}")
        dims = (None, *array.dims[1:])
        if len(e.args) > 2:
            dims = tuple(self.static(a) for a in e.args[2:])
            if not all(isinstance(d, int) for d in dims[1:]):
                raise self.fail("all lengths of a view but the first are constant", e)
            if dims[0] is None:
                self.integer(e.args[2])
        return Pointed(at, array.element, dims, strides_of(dims), array.of)
