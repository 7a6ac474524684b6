"""Lines of LLVM's text, values in it, and arithmetic on numbers and small arrays.

Arithmetic on small arrays is unrolled. Sums of products are fused multiplications and additions;
the text says which, and nothing about the order of operations is left open, so that all processors
compute the same bits.
"""

import ast
import ctypes
import math
import struct
from dataclasses import dataclass
from itertools import product
from typing import Any

from kinetree.codegen.procedures.language import BOOL, FLOAT, INT, SPELLED, ArrayType, spell
from kinetree.errors import TraceError

_FLOATS = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_INTS = {"Add": "add nsw", "Sub": "sub nsw", "Mult": "mul", "BitAnd": "and", "BitOr": "or",
         "BitXor": "xor", "LShift": "shl", "RShift": "ashr"}  # fmt: skip
MOST = 1300  # numbers or products of one unrolled expression
RANK = {BOOL: 0, INT: 1, FLOAT: 2}


# --- Values: numbers, arrays in memory, small arrays of numbers ----------------------------------


@dataclass(frozen=True)
class Number:
    """A number: what LLVM calls it, and its type."""

    x: str
    kind: Any

    @property
    def literal(self):
        """LLVM value of an LLVM integer literal; None for other operands."""
        return int(self.x) if self.kind == INT and self.x.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class Pointed:
    """An array in memory: address of its first number, and how far apart numbers are.

    ``of`` is the field of a record whose numbers alone they are, see ``language.record``, or empty.
    """

    at: str
    element: str
    dims: tuple
    strides: tuple
    of: str = ""

    @property
    def kind(self):
        """Array type of this pointer's numbers."""
        return ArrayType(self.element, self.dims)

    @property
    def is_contiguous(self):
        """Whether numbers are contiguous in memory, in row-major order."""
        wanted = strides_of(self.dims)
        return all(
            s == w or d == 1 for s, w, d in zip(self.strides, wanted, self.dims, strict=True)
        )


@dataclass(frozen=True)
class Small:
    """An array of numbers that are nowhere in memory, in the order of C."""

    element: str
    dims: tuple
    numbers: tuple

    @property
    def kind(self):
        """Array type of a small array."""
        return ArrayType(self.element, self.dims)


@dataclass(frozen=True)
class Pointer:
    """A record: its address and class."""

    at: str
    kind: Any


def strides_of(dims):
    """Strides [numbers] of a contiguous array along each axis."""
    return tuple(math.prod(dims[k + 1 :]) for k in range(len(dims)))


def places(dims):
    """All index tuples of a small array, in row-major order."""
    return product(*map(range, dims))


def literal(value) -> Number:
    """Python constant as an LLVM literal with its type."""
    if isinstance(value, bool):
        return Number("true" if value else "false", "i1")
    if isinstance(value, int):
        return Number(str(value), INT)
    return Number("0x" + struct.pack(">d", float(value)).hex().upper(), FLOAT)


# --- Text ----------------------------------------------------------------------------------------


def text_of(kind) -> str:
    """LLVM name of a type."""
    if kind is None:
        return "void"
    if isinstance(kind, tuple):
        return "{ " + ", ".join(map(text_of, kind)) + " }"
    return kind if isinstance(kind, str) else "ptr"


def what(value) -> str:
    """Type of a value in words, for error messages."""
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        return "a tuple"
    kind = value.kind
    return SPELLED[kind] if isinstance(kind, str) else spell(kind)


class Text:
    """The lines of a procedure.

    Attributes:
        procedure: which is written.
        module: gives names of others, tags and constants.
        lines: of the function;  entry: those that it begins with.
        done: whether the block has ended;  node: the statement that is written.
        products: factors of results that are products.
    """

    def __init__(self, procedure, module):
        self.procedure, self.module = procedure, module
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.count, self.done, self.node = 0, False, procedure.tree
        self.products: dict[str, tuple[str, str]] = {}

    def new(self, prefix="t"):
        """New unique name of an LLVM value."""
        self.count += 1
        return f"%{prefix}.{self.count}"

    def emit(self, line):
        """Append a line of LLVM IR."""
        self.lines.append(f"  {line}")

    def op(self, text):
        """Append an LLVM instruction; the name of its result."""
        name = self.new()
        self.emit(f"{name} = {text}")
        return name

    def label(self):
        """New unique label of a block."""
        self.count += 1
        return f"b{self.count}"

    def start(self, label):
        """Begin a block of LLVM IR with a label."""
        self.lines.append(f"{label}:")
        self.done = False

    def jump(self, label):
        """End a block with a jump to a label, unless it has ended."""
        if not self.done:
            self.emit(f"br label %{label}")
            self.done = True

    def branch(self, test, yes, no):
        """End a block with a conditional branch."""
        self.emit(f"br i1 {test}, label %{yes}, label %{no}")
        self.done = True

    def stack(self, kind, prefix="s", align=8):
        """Reserve memory on the stack (alloca) at the function's entry; its name."""
        name = self.new(prefix)
        self.entry.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def fail(self, message, node=None):
        """Error about the procedure, with name, file and line of a syntax node."""
        node = node if node is not None and hasattr(node, "lineno") else self.node
        p = self.procedure
        return TraceError(f"procedure {p.name}, {p.file}, line {self.line(node)}: {message}")

    def line(self, node):
        """Line number of a syntax node in its file."""
        return self.procedure.first_line + getattr(node, "lineno", 1) - 1

    def size_of(self, kind):
        """Size of a record in bytes, as an LLVM constant expression."""
        return ctypes.sizeof(kind)

    def array_on_stack(self, kind, prefix="a"):
        """Reserve memory for an array on the stack; its address."""
        return self.stack(f"[{math.prod(kind.dims)} x {kind.element}]", prefix, 16)

    def load(self, element, at, of=""):
        """Write LLVM IR for the load of a number at an address."""
        return Number(self.op(f"load {element}, ptr {at}{self.tag(element, of)}"), element)

    def store(self, element, x, at, of=""):
        """Write LLVM IR for the store of a number at an address, with its alias tag."""
        self.emit(f"store {element} {x}, ptr {at}{self.tag(element, of)}")

    def tag(self, element, of):
        """Alias tag of numbers of arrays, or of those of a field."""
        return self.module.tag_of(element, of) if of else self.module.tag(element)

    def number_at(self, array, index):
        """Address of the number at a constant index of an array."""
        offset = sum(i * s for i, s in zip(index, array.strides, strict=True))
        if not offset:
            return array.at
        return self.op(f"getelementptr inbounds {array.element}, ptr {array.at}, i64 {offset}")

    def small(self, value) -> Small:
        """Numbers of an array of fixed size, loaded one by one."""
        if isinstance(value, Small):
            return value
        if not isinstance(value, Pointed) or None in value.dims:
            raise self.fail(f"this needs an array of fixed size, got {spell(value.kind)}")
        self.limit(math.prod(value.dims))
        numbers = [
            self.load(value.element, self.number_at(value, k), value.of).x
            for k in places(value.dims)
        ]
        return Small(value.element, value.dims, tuple(numbers))

    def limit(self, count):
        """Raise an error if an array expression takes too many operations to be unrolled."""
        if count > MOST:
            raise self.fail(f"{count} operations in one expression on arrays: write a loop")

    def array_in_memory(self, value) -> Pointed:
        """Array in memory: itself, or a copy of a small array on the stack."""
        if isinstance(value, Pointed):
            return value
        strides = strides_of(value.dims)
        made = Pointed(self.array_on_stack(value.kind), value.element, value.dims, strides)
        self.store_all(made, value)
        return made

    def store_all(self, array, value):
        """Write the copy of a small array, or of one number to all entries, into an array."""
        if None in array.dims:
            raise self.fail(f"only arrays of fixed size can be assigned whole, not {array.kind}")
        if isinstance(value, Number):
            x = self.cast(value, array.element)
            numbers = [x] * math.prod(array.dims)
        else:
            value = self.small(value)
            if value.dims != array.dims:
                raise self.fail(f"{value.kind} cannot be assigned to {array.kind}")
            numbers = [self.cast(Number(x, value.element), array.element) for x in value.numbers]
        self.limit(len(numbers))
        if self.module.at_once and array.element == FLOAT and self.has_sixes(array):
            for start in range(0, len(numbers), 6):
                self.store_at_once(array, start, numbers[start : start + 4])
                self.store_at_once(array, start + 4, numbers[start + 4 : start + 6])
            return
        for index, x in zip(places(array.dims), numbers, strict=True):
            self.store(array.element, x, self.number_at(array, index), array.of)

    def has_sixes(self, array):
        """Whether an array consists of contiguous rows of six numbers, such as spatial vectors."""
        return array.dims[-1] == 6 and array.is_contiguous

    def store_at_once(self, array, start, numbers):
        """Write consecutive numbers of an array by one vector store.

        Rows of six are read as four and two numbers, or in pairs. LLVM would also write one, four
        and one; who reads what two instructions wrote waits until both are in memory.
        """
        kind = f"<{len(numbers)} x {array.element}>"
        whole = "poison"
        for k, x in enumerate(numbers):
            whole = self.op(f"insertelement {kind} {whole}, {array.element} {x}, i64 {k}")
        at = self.op(f"getelementptr inbounds {array.element}, ptr {array.at}, i64 {start}")
        tag = self.tag(array.element, array.of)
        self.emit(f"store {kind} {whole}, ptr {at}, align 8{tag}")

    def exact(self, value, kind, what):
        """Number converted to a type without loss; an error names ``what`` if it would lose any."""
        if not isinstance(value, Number) or not isinstance(kind, str):
            raise self.fail(f"{what} is {spell(kind)}, got {spell(getattr(value, 'kind', None))}")
        if RANK[value.kind] > RANK[kind]:
            raise self.fail(f"{what} is {spell(kind)}, got {spell(value.kind)}: write int(...)")
        return self.cast(value, kind)

    def cast(self, value, kind) -> str:
        """Write the conversion of a number to another type; the converted LLVM value."""
        x, known = value.x, value.kind
        if known == kind:
            return x
        if known == INT and kind == FLOAT:
            whole = value.literal
            return (
                literal(float(whole)).x
                if whole is not None
                else self.op(f"sitofp i64 {x} to double")
            )
        if known == FLOAT and kind == INT:
            return self.whole(x)
        if known == BOOL:
            y = {"true": "1", "false": "0"}.get(x) or self.op(f"zext i1 {x} to i64")
            return self.cast(Number(y, INT), kind)
        raise self.fail(f"{spell(known)} is not {spell(kind)}")

    def whole(self, x):
        """Float rounded toward zero to an int, saturating."""
        self.module.needs("declare i64 @llvm.fptosi.sat.i64.f64(double)")
        return self.op(f"call i64 @llvm.fptosi.sat.i64.f64(double {x})")

    # --- arithmetic -----------------------------------------------------------------------------

    def binary(self, op, a, b):
        """Write LLVM IR for a binary operation on numbers or elementwise on small arrays."""
        if isinstance(op, ast.MatMult):
            return self.product(a, b)
        if isinstance(a, Number) and isinstance(b, Number):
            return self.arithmetic(type(op).__name__, a, b)
        sides = [x if isinstance(x, Number) else self.small(x) for x in self.arrays(a, b)]
        shapes = {x.dims for x in sides if isinstance(x, Small)}
        if len(shapes) > 1:
            raise self.fail(f"arrays of different shapes: {sides[0].kind} and {sides[1].kind}")
        (dims,) = shapes
        self.limit(math.prod(dims))
        columns = [
            [Number(n, x.element) for n in x.numbers]
            if isinstance(x, Small)
            else [x] * math.prod(dims)
            for x in sides
        ]
        found = [self.arithmetic(type(op).__name__, x, y) for x, y in zip(*columns, strict=True)]
        return Small(found[0].kind, dims, tuple(n.x for n in found))

    def arrays(self, *values):
        """The values, after an error for any that is neither number nor array."""
        for x in values:
            if not isinstance(x, Number | Small | Pointed):
                raise self.fail(f"arithmetic with {what(x)}")
        return values

    def arithmetic(self, name, a, b):
        """Write LLVM IR for a binary operation on two numbers, converted to their common type."""
        if name == "Pow":
            return self.power(a, b)
        if name == "Div" or FLOAT in (a.kind, b.kind):
            if name not in _FLOATS:
                raise self.fail(f"{name} of floats is not in the language of procedures")
            x, y = self.cast(a, FLOAT), self.cast(b, FLOAT)
            return Number(self.float_operation(name, x, y), FLOAT)
        if name in ("BitAnd", "BitOr", "BitXor") and (a.kind, b.kind) == (BOOL, BOOL):
            return Number(self.op(f"{_INTS[name]} i1 {a.x}, {b.x}"), BOOL)
        x, y = self.cast(a, INT), self.cast(b, INT)
        if name in ("FloorDiv", "Mod"):
            return Number(self.floor_division(name, x, y), INT)
        if name not in _INTS:
            raise self.fail(f"{name} is not in the language of procedures")
        return Number(self.op(f"{_INTS[name]} i64 {x}, {y}"), INT)

    def float_operation(self, name, x, y):
        """Write a float operation; a product that is added within an expression is fused (FMA)."""
        if name in ("Add", "Sub") and (x in self.products or y in self.products):
            first = y not in self.products
            (a, b), c = (self.products[x], y) if first else (self.products[y], x)
            if name == "Sub" and first:
                c = self.op(f"fneg double {c}")
            elif name == "Sub":
                a = self.op(f"fneg double {a}")
            return self.intrinsic("fma", a, b, c)
        found = self.op(f"{_FLOATS[name]} double {x}, {y}")
        if name == "Mult":
            self.products[found] = x, y
        return found

    def floor_division(self, name, x, y):
        """Write LLVM IR for ``x // y`` or ``x % y``, rounded down as in Python."""
        divisor = Number(y, INT).literal
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if name == "Mod":
                return self.op(f"and i64 {x}, {divisor - 1}")
            return self.op(f"ashr i64 {x}, {divisor.bit_length() - 1}")
        rest = self.op(f"srem i64 {x}, {y}")
        some = self.op(f"icmp ne i64 {rest}, 0")
        signs = self.op(f"icmp slt i64 {self.op(f'xor i64 {rest}, {y}')}, 0")
        less = self.op(f"and i1 {some}, {signs}")
        if name == "Mod":
            return self.op(f"add i64 {rest}, {self.op(f'select i1 {less}, i64 {y}, i64 0')}")
        return self.op(
            f"sub i64 {self.op(f'sdiv i64 {x}, {y}')}, {self.op(f'zext i1 {less} to i64')}"
        )

    def power(self, a, b):
        """Write LLVM IR for ``a ** b`` for a small constant exponent."""
        n = b.literal
        if n is None or not 1 <= n <= 8:
            raise self.fail("a power has a constant exponent from 1 to 8")
        found = a
        for _ in range(n - 1):
            found = self.arithmetic("Mult", found, a)
        return found

    def product(self, a, b):
        """Write LLVM IR for the matrix product of two small arrays."""
        a, b = self.small(a), self.small(b)
        left = a.dims if len(a.dims) == 2 else (1, *a.dims)
        right = b.dims if len(b.dims) == 2 else (*b.dims, 1)
        if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
            raise self.fail(f"{a.kind} @ {b.kind}: the shapes do not fit")
        (m, k), (_, n) = left, right
        self.limit(m * k * n)
        found = []
        for i in range(m):
            for j in range(n):
                x = [Number(a.numbers[i * k + p], a.element) for p in range(k)]
                y = [Number(b.numbers[p * n + j], b.element) for p in range(k)]
                found.append(self.scalar_product(list(zip(x, y, strict=True))))
        dims = (*a.dims[:-1], *b.dims[1:])
        return Small(found[0].kind, dims, tuple(x.x for x in found)) if dims else found[0]

    def scalar_product(self, terms):
        """Write LLVM IR for a sum of products, added from the first to the last by FMA."""
        total = self.arithmetic("Mult", *terms[0])
        for x, y in terms[1:]:
            total = self.arithmetic("Add", total, self.arithmetic("Mult", x, y))
        return total

    def negative(self, value):
        """Write LLVM IR for the negation of a number."""
        if value.kind == FLOAT:
            return Number(self.op(f"fneg double {value.x}"), FLOAT)
        return Number(self.op(f"sub nsw i64 0, {self.cast(value, INT)}"), INT)

    def compare(self, name, a, b):
        """Write LLVM IR for the comparison of two numbers."""
        order = {"Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne"}.get(
            name
        )
        if order is None:
            raise self.fail(f"{name} is not in the language of procedures")
        if FLOAT in (a.kind, b.kind):
            test = "une" if order == "ne" else f"o{order}"
            return self.op(f"fcmp {test} double {self.cast(a, FLOAT)}, {self.cast(b, FLOAT)}")
        test = order if order in ("eq", "ne") else f"s{order}"
        return self.op(f"icmp {test} i64 {self.cast(a, INT)}, {self.cast(b, INT)}")

    def intrinsic(self, name, *x):
        """Declare an intrinsic of LLVM; its name."""
        self.module.needs(f"declare double @llvm.{name}.f64({', '.join(['double'] * len(x))})")
        return self.op(f"call double @llvm.{name}.f64({', '.join(f'double {v}' for v in x)})")

    def absolute(self, value):
        """Write LLVM IR for the absolute value of a number."""
        if value.kind == FLOAT:
            return Number(self.intrinsic("fabs", value.x), FLOAT)
        self.module.needs("declare i64 @llvm.abs.i64(i64, i1)")
        return Number(self.op(f"call i64 @llvm.abs.i64(i64 {self.cast(value, INT)}, i1 true)"), INT)
