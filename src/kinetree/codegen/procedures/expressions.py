"""Expressions of procedures as LLVM's text."""

import ast
import operator
from typing import Any

import numpy as np

from kinetree.codegen.procedures.language import BOOL, FLOAT, INT, ArrayType, Rounding, is_record
from kinetree.codegen.procedures.text import (
    RANK,
    Number,
    Pointed,
    Pointer,
    Small,
    Text,
    literal,
    strides_of,
    what,
)
from kinetree.codegen.procedures.workspaces import is_workspace

_STATIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
           ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
           ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
           ast.BitOr: operator.or_, ast.BitAnd: operator.and_}  # fmt: skip


class Expressions(Text):
    """Values of expressions.

    Attributes:
        names: variables, each at its place on the stack.
        widened: lines that made variables floats.
    """

    def __init__(self, procedure, module):
        super().__init__(procedure, module)
        self.names: dict[str, Any] = {}
        self.widened: dict[str, int] = {}
        self.constants = getattr(module, "constants", {})

    def read(self, name):
        """Write LLVM IR for the load of a variable; its value."""
        variable = self.names[name]
        if isinstance(variable, Number):
            return Number(self.op(f"load {variable.kind}, ptr {variable.x}"), variable.kind)
        at = self.op(f"load ptr, ptr {variable.at}")
        if isinstance(variable, Pointer):
            return Pointer(at, variable.kind)
        return Pointed(at, variable.element, variable.dims, variable.strides, variable.of)

    def any(self, e) -> Any:
        """Write the code of any expression; its value, an LLVM number, pointer or small array."""
        constant = self.static(e)
        if constant is not None:
            return literal(constant)
        write = getattr(self, "e_" + type(e).__name__, None)
        if write is None:
            raise self.fail(
                f"{type(e).__name__} ({ast.unparse(e)}) is not in the language of procedures", e
            )
        return write(e)

    def number(self, e) -> Number:
        """Write LLVM IR of an expression, which must be a number."""
        value = self.any(e)
        if not isinstance(value, Number):
            raise self.fail(f"{ast.unparse(e)} must be a number, is {what(value)}", e)
        return value

    def integer(self, e) -> str:
        """Write the code of an expression, which must be an int; the name of its LLVM value."""
        value = self.number(e)
        if value.kind == FLOAT:
            raise self.fail(f"{ast.unparse(e)} must be an int, is a float{self.reason(e)}", e)
        return self.cast(value, INT)

    def reason(self, e):
        """Explanation why a variable is a float, for an error message; empty if none is known."""
        line = self.widened.get(e.id) if isinstance(e, ast.Name) else None
        return "" if line is None else f", as line {line} assigns one: use two names"

    def static(self, e):
        """LLVM value of an expression that is constant at compile time, or None."""
        if isinstance(e, ast.Constant):
            return e.value if isinstance(e.value, bool | int | float) else None
        if isinstance(e, ast.Name):
            if e.id in self.names or e.id in self.procedure.assigned:
                return None
            return _number(self.procedure.find(e.id), single=self.module.single)
        if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name):
            found = self.procedure.module(e.value.id)
            found = getattr(found, e.attr, None)
            return _number(found, single=self.module.single)
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            x = self.static(e.operand)
            return None if x is None else -x
        if isinstance(e, ast.BinOp) and type(e.op) in _STATIC:
            x = self.static(e.left)
            y = None if x is None else self.static(e.right)
            return None if x is None or y is None else _STATIC[type(e.op)](x, y)
        return None

    def test(self, e) -> str:
        """Write LLVM IR of a condition; the name of its LLVM value of type i1."""
        if isinstance(e, ast.BoolOp):
            return self.e_BoolOp(e, strict=False).x
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
            return self.op(f"xor i1 {self.test(e.operand)}, true")
        value = self.number(e)
        if value.kind == BOOL:
            return value.x
        test = "icmp ne" if value.kind == INT else "fcmp une"
        zero = literal(0 if value.kind == INT else 0.0).x
        return self.op(f"{test} {value.kind} {value.x}, {zero}")

    def e_Name(self, e):
        """LLVM value of a name: a variable, or a constant array of the module."""
        if e.id in self.names:
            return self.read(e.id)
        if e.id in self.procedure.assigned:
            raise self.fail(f"{e.id} has no value yet", e)
        found = self.procedure.find(e.id)
        if isinstance(found, tuple | np.ndarray):
            return self.table(e.id, found)
        if found is None:
            raise self.fail(f"{e.id} is not defined", e)
        raise self.fail(
            f"{e.id} is {type(found).__name__}, which is not in the language of procedures", e
        )

    def table(self, name, found):
        """A constant array as a table of the LLVM module; an error if it is not of numbers."""
        array = np.asarray(found)
        if array.dtype.kind not in "if" or not array.ndim:
            raise self.fail(f"{name} is not a constant array of numbers")
        element = FLOAT if array.dtype.kind == "f" else INT
        at = self.module.table(array.astype(ArrayType(element, ()).dtype), element)
        return Pointed(at, element, array.shape, strides_of(array.shape))

    def field(self, e):
        """Address, type and alias tag of a field in an expression ``record.field``."""
        return self.field_of(self.any(e.value), e)

    def field_of(self, owner, e):
        """Address, type and alias tag of a record's field, given the record."""
        if not isinstance(owner, Pointer):
            raise self.fail(f"{ast.unparse(e)}: {what(owner)} has no {e.attr}", e)
        kind = owner.kind.types.get(e.attr)
        if kind is None:
            raise self.fail(f"record {owner.kind.__name__} has no field {e.attr}", e)
        offset = owner.kind.offsets[e.attr]
        at = (
            self.op(f"getelementptr inbounds i8, ptr {owner.at}, i64 {offset}")
            if offset
            else owner.at
        )
        return at, kind, self.module.field_tag(owner.kind, e.attr)

    def get_field(self, at, kind, tag):
        """Write LLVM IR for the load of a number from a record's field."""
        if kind == BOOL:
            return Number(self.op(f"trunc i8 {self.op(f'load i8, ptr {at}{tag}')} to i1"), BOOL)
        return Number(self.op(f"load {kind}, ptr {at}{tag}"), kind)

    def e_Attribute(self, e):
        """LLVM value of ``record.field``, or the transpose of an array for ``.T``."""
        if e.attr == "T":
            value = self.any(e.value)
            if isinstance(value, Small) and len(value.dims) == 2:
                m, n = value.dims
                numbers = tuple(value.numbers[i * n + j] for j in range(n) for i in range(m))
                return Small(value.element, (n, m), numbers)
            if isinstance(value, Pointed) and len(value.dims) == 2 and None not in value.dims:
                turned = value.dims[::-1], value.strides[::-1]
                return Pointed(value.at, value.element, *turned, value.of)
            raise self.fail(f".T is of small matrices, not of {what(value)}", e)
        owner = self.any(e.value)
        known = isinstance(owner, Pointer) and (owner.kind.__name__, e.attr)
        if known in self.constants:
            return literal(self.constants[known])
        at, kind, tag = self.field_of(owner, e)
        if kind in RANK:
            return self.get_field(at, kind, tag)
        if is_workspace(owner.kind):
            return Pointed(at, kind.element, kind.dims, strides_of(kind.dims))
        more = ", !nonnull !0" if is_record(kind) else ""
        if is_record(kind):
            more += f", !dereferenceable {self.module.meta(f'i64 {max(self.size_of(kind), 8)}')}"
        x = self.op(f"load ptr, ptr {at}{tag}, !invariant.load !0{more}")
        if is_record(kind):
            return Pointer(x, kind)
        of = f"{owner.kind.__name__}.{e.attr}" if owner.kind.apart and self.module.at_once else ""
        return Pointed(x, kind.element, kind.dims, strides_of(kind.dims), of)

    def place(self, e):
        """Place of a subscript: a part of an array, or address, type and field of one number."""
        array = self.any(e.value)
        if isinstance(array, Small):
            array = self.array_in_memory(array)
        if not isinstance(array, Pointed):
            raise self.fail(f"{ast.unparse(e.value)} has no [...]: it is {what(array)}", e)
        indices = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        if len(indices) > len(array.dims):
            raise self.fail(f"{len(indices)} indices of {array.kind}", e)
        at, dims, strides, fixed, moving = array.at, [], [], 0, None
        for index, d, stride in zip(indices, array.dims, array.strides, strict=False):
            if isinstance(index, ast.Slice):
                low, count, step = self.part(index, d)
                fixed += low * stride
                dims.append(count)
                strides.append(stride * step)
                continue
            known = self.static(index)
            if isinstance(known, int) and not isinstance(known, bool):
                if known < 0:
                    if d is None:
                        raise self.fail("a negative index of an axis of any length", e)
                    known += d
                if d is not None and not 0 <= known < d:
                    raise self.fail(f"index {known} of an axis of length {d}", e)
                fixed += known * stride
                continue
            x = self.integer(index)
            term = x if stride == 1 else self.op(f"mul nsw i64 {x}, {stride}")
            moving = term if moving is None else self.op(f"add nsw i64 {moving}, {term}")
        if moving is not None:
            at = self.op(f"getelementptr inbounds {array.element}, ptr {at}, i64 {moving}")
        if fixed:
            at = self.op(f"getelementptr inbounds {array.element}, ptr {at}, i64 {fixed}")
        dims += array.dims[len(indices) :]
        strides += array.strides[len(indices) :]
        if not dims:
            return at, array.element, array.of
        return Pointed(at, array.element, tuple(dims), tuple(strides), array.of)

    def part(self, index, d):
        """First index, count and step of a constant slice along an axis of length ``d``."""
        ends: list[Any] = [
            None if x is None else self.static(x) for x in (index.lower, index.upper, index.step)
        ]
        for given, known in zip((index.lower, index.upper, index.step), ends, strict=True):
            if given is not None and not isinstance(known, int):
                raise self.fail("slices are constant; view(x, start, n) is a part at run time")
        if d is None:
            if ends != [None, None, None]:
                if ends[1] is None or min(x or 0 for x in ends) < 0:
                    raise self.fail(
                        "a slice of an axis of any length needs an end, or view(x, start)"
                    )
                d = ends[1]
            else:
                return 0, None, 1
        low, high, step = slice(*ends).indices(d)
        return low, len(range(low, high, step)), step

    def e_Subscript(self, e):
        """LLVM value of ``a[i]``: a number of an array, or a part of the array."""
        value = self.any(e.value) if not isinstance(e.value, ast.Name | ast.Attribute) else None
        if isinstance(value, Small):
            known = self.static(e.slice)
            if isinstance(known, int) and len(value.dims) == 1:
                return Number(value.numbers[known], value.element)
        place = self.place(e)
        return place if isinstance(place, Pointed) else self.load(place[1], place[0], place[2])

    def e_BinOp(self, e):
        """LLVM value of a binary arithmetic operation."""
        return self.binary(e.op, self.any(e.left), self.any(e.right))

    def e_UnaryOp(self, e):
        """LLVM value of a unary operation: sign, bitwise or logical negation."""
        if isinstance(e.op, ast.Not):
            return Number(self.test(e), BOOL)
        value = self.any(e.operand)
        if isinstance(e.op, ast.UAdd):
            return value
        if isinstance(e.op, ast.Invert):
            return Number(self.op(f"xor i64 {self.cast(value, INT)}, -1"), INT)
        if not isinstance(value, Number):
            value = self.small(value)
            found = [self.negative(Number(x, value.element)) for x in value.numbers]
            return Small(found[0].kind, value.dims, tuple(x.x for x in found))
        return self.negative(value)

    def e_Compare(self, e):
        """LLVM value of comparisons, chained ones such as ``a < b < c`` included."""
        left, found = self.number(e.left), ""
        for op, right in zip(e.ops, e.comparators, strict=True):
            test = self.compare(type(op).__name__, left, other := self.number(right))
            found = test if not found else self.op(f"and i1 {found}, {test}")
            left = other
        return Number(found, BOOL)

    def e_BoolOp(self, e, strict=True):
        """Value of ``and``, ``or``; ``strict`` wants conditions, the second only if it matters."""
        slot, end = self.stack("i1", "c"), self.label()
        for k, each in enumerate(e.values):
            if strict and not is_condition(each):
                value = self.number(each)
                if value.kind != BOOL:
                    raise self.fail(
                        f"{ast.unparse(e)}: and, or give numbers only in a condition", e
                    )
                test = value.x
            else:
                test = self.test(each)
            self.emit(f"store i1 {test}, ptr {slot}")
            if k < len(e.values) - 1:
                more = self.label()
                self.branch(test, *((more, end) if isinstance(e.op, ast.And) else (end, more)))
                self.start(more)
        self.jump(end)
        self.start(end)
        return Number(self.op(f"load i1, ptr {slot}"), BOOL)

    def e_IfExp(self, e):
        """LLVM value of a conditional expression, of which only one side is computed."""
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(self.test(e.test), yes, no)
        ends, values = [], []
        for label, each in ((yes, e.body), (no, e.orelse)):
            self.start(label)
            value = self.any(each)
            values.append(value if isinstance(value, Number) else self.array_in_memory(value))
            ends.append(len(self.lines))
            self.lines.append("")  # to be the store and the jump, once the type is known
            self.done = True
        a, b = values
        if isinstance(a, Number) and isinstance(b, Number):
            kind = max(a.kind, b.kind, key=RANK.__getitem__)
            slot = self.stack(kind, "v")
        elif (
            isinstance(a, Pointed)
            and isinstance(b, Pointed)
            and (a.kind, a.strides) == (b.kind, b.strides)
        ):
            kind, slot = "ptr", self.stack("ptr", "v")
        else:
            raise self.fail(f"{ast.unparse(e)} is {what(a)} or {what(b)}", e)
        for at, value in zip(ends, values, strict=True):
            kept, self.lines = self.lines, []
            x = value.at if isinstance(value, Pointed) else self.cast(value, kind)
            self.emit(f"store {kind} {x}, ptr {slot}")
            self.emit(f"br label %{end}")
            kept[at] = "\n".join(self.lines)
            self.lines = kept
        self.start(end)
        x = self.op(f"load {kind}, ptr {slot}")
        if isinstance(a, Number):
            return Number(x, kind)
        same = isinstance(b, Pointed) and a.of == b.of
        return Pointed(x, a.element, a.dims, a.strides, a.of if same else "")


def is_condition(e) -> bool:
    """Whether an expression is a comparison, or one of ``and``, ``or``, ``not``."""
    is_not = isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not)
    return is_not or isinstance(e, ast.BoolOp | ast.Compare)


def _number(value, *, single):
    """A Python constant as a plain number, rounded for single precision if declared; or None."""
    if single and isinstance(value, Rounding):
        return value.single
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.integer | np.floating):
        return value.item()
    return None
