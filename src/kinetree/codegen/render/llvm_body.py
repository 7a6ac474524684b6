"""Types of LLVM IR, and the body of a function in it, instruction by instruction."""

import struct
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Vector:
    """``lanes`` samples of one scalar, as a SIMD value."""

    dtype: str
    lanes: int

    @cached_property
    def scalar(self) -> str:
        """LLVM name of the element type."""
        return {"float64": "double", "float32": "float"}[self.dtype]

    @cached_property
    def bits(self) -> int:
        """Width of an element [bits]."""
        return {"float64": 64, "float32": 32}[self.dtype]

    @cached_property
    def size(self) -> int:
        """Size of an element [bytes]."""
        return self.bits // 8

    @cached_property
    def type(self) -> str:
        """LLVM name of the vector type."""
        return f"<{self.lanes} x {self.scalar}>"

    @cached_property
    def integer(self) -> str:
        """LLVM name of the vector of integers of the same width."""
        return f"<{self.lanes} x i{self.bits}>"

    @cached_property
    def mask(self) -> str:
        """LLVM name of the vector of truth values."""
        return f"<{self.lanes} x i1>"

    @cached_property
    def suffix(self) -> str:
        """Suffix of LLVM's overloaded intrinsics for this vector type."""
        return f"v{self.lanes}f{self.bits}"

    def number(self, x: float) -> str:
        """LLVM literal of one element; floats are written as doubles, as LLVM wants."""
        if self.dtype == "float32":
            x = struct.unpack("f", struct.pack("f", x))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"

    def constant(self, x: float) -> str:
        """LLVM literal of a vector with ``x`` in all lanes."""
        return "<" + ", ".join([f"{self.scalar} {self.number(x)}"] * self.lanes) + ">"

    def integers(self, n: int) -> str:
        """LLVM literal of an integer vector with ``n`` in all lanes."""
        return "<" + ", ".join([f"i{self.bits} {n}"] * self.lanes) + ">"


def declarations(*vectors: Vector) -> str:
    """LLVM declarations of intrinsics and math functions for each vector type."""
    lines = []
    for v in vectors:
        t, m, letter = v.type, v.mask, "" if v.dtype == "float64" else "f"
        lines += [
            f"declare {t} @llvm.fma.{v.suffix}({t}, {t}, {t})",
            f"declare {t} @llvm.sqrt.{v.suffix}({t})",
            f"declare {t} @llvm.fabs.{v.suffix}({t})",
            f"declare {t} @llvm.floor.{v.suffix}({t})",
            f"declare {t} @llvm.copysign.{v.suffix}({t}, {t})",
            f"declare {v.scalar} @llvm.vector.reduce.fmax.{v.suffix}({t})",
            f"declare i1 @llvm.vector.reduce.or.v{v.lanes}i1({m})",
            f"declare i1 @llvm.vector.reduce.and.v{v.lanes}i1({m})",
            *(f"declare {v.scalar} @{f}{letter}({v.scalar})" for f in ("sin", "cos", "log")),
        ]
    lines += [
        "declare ptr @malloc(i64)",
        "declare void @free(ptr)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "!0 = !{}",
    ]
    return "\n".join(dict.fromkeys(lines))


class Lines:
    """Lines of a function in LLVM IR."""

    v: Vector
    lines: list

    def emit(self, *lines):
        """Append LLVM instructions."""
        self.lines += [f"  {line}" for line in lines]


class LoopLines(Lines):
    """Loops of a function in LLVM IR; blocks are numbered for the sake of their labels."""

    count, label = 0, "entry"

    def new(self):
        """New number for names of LLVM values and labels."""
        self.count += 1
        return self.count

    def begin(self, label):
        """Begin a block with a label."""
        self.lines.append(f"{label}:")
        self.label = label

    def below(self, count):
        """LLVM condition that a loop's counter is below an integer or register."""
        return lambda k, _: f"icmp slt i64 {k}, {count}"

    def below_number(self, times):
        """LLVM condition that a loop's counter is below a floating-point number."""

        def goes_on(k, _):
            done = f"%done{self.new()}"
            self.emit(f"{done} = sitofp i64 {k} to {self.v.scalar}")
            return f"fcmp olt {self.v.scalar} {done}, {times}"

        return goes_on

    def loop(self, goes_on, body, chain=None):
        """Write an LLVM loop of ``body`` while ``goes_on``, or until the body's answer holds.

        Both get a counter and, of a ``chain``, the present record. ``chain`` has the first one, and
        writes the load of the next one. Returns the counter, which has the number of runs.
        """
        n, before = self.new(), self.label
        k, row, last = f"%k{n}", f"%row{n}", f"again{n}"
        self.emit(f"br label %head{n}")
        self.begin(f"head{n}")
        at = len(self.lines)
        self.emit(f"{k} = phi i64 [0, %{before}], [%next{n}, %{last}]")
        more = goes_on(k, row)
        self.emit(f"%more{n} = {more}", f"br i1 %more{n}, label %body{n}, label %end{n}")
        self.begin(f"body{n}")
        answer = body(k, row)
        end = f"br i1 {answer}, label %end{n}, " if answer else "br "
        self.emit(f"{end}label %{last}")
        self.begin(last)
        if chain:
            first, following = chain
            phi = f"phi ptr [{first}, %{before}], [{following(row)}, %{last}]"
            self.lines.insert(at, f"  {row} = {phi}")
        self.emit(f"%next{n} = add i64 {k}, 1", f"br label %head{n}")
        self.begin(f"end{n}")
        return k


class LlvmBody:
    """Collects instructions; every method returns the name of its result."""

    def __init__(self, v, table=None):
        self.v, self.lines, self.count, self.table = v, [], 0, table

    def constant(self, x):
        """Write a vector with ``x`` in all lanes: a literal, or loaded from the table."""
        v = self.v
        if self.table is None:
            return v.constant(x)
        slot = self.table.setdefault(x, len(self.table))
        at = self.emit(f"getelementptr {v.type}, ptr %coefficients, i64 {slot}")
        number = self.emit(f"load {v.scalar}, ptr {at}, !invariant.load !0")
        first = self.emit(f"insertelement {v.type} undef, {v.scalar} {number}, i32 0")
        zeros = f"<{v.lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {v.type} {first}, {v.type} undef, {zeros}")

    def addend(self, x):
        """Write the load of a constant addend as a whole vector, which FMA may overwrite.

        A fused multiplication overwrites its addend, on Arm always and with AVX often.
        """
        if self.table is None:
            return self.v.constant(x)
        slot = self.table.setdefault(x, len(self.table))
        at = self.emit(f"getelementptr {self.v.type}, ptr %coefficients, i64 {slot}")
        return self.emit(f"load {self.v.type}, ptr {at}")

    def emit(self, text):
        """Append an LLVM instruction; the name of its result."""
        self.count += 1
        name = f"%t{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def op(self, name, a, b):
        """Write a float operation on vectors in LLVM IR."""
        return self.emit(f"{name} {self.v.type} {a}, {b}")

    def fma(self, a, b, c):
        """Write ``a b + c`` on vectors in LLVM IR, rounded once (FMA)."""
        t = self.v.type
        return self.emit(f"call {t} @llvm.fma.{self.v.suffix}({t} {a}, {t} {b}, {t} {c})")

    def integer(self, name, a, b):
        """Write an integer operation on vectors in LLVM IR."""
        return self.emit(f"{name} {self.v.integer} {a}, {b}")

    def select(self, mask, a, b):
        """Write a select in LLVM IR: ``a`` in the lanes of the mask, else ``b``."""
        t = self.v.type
        return self.emit(f"select {self.v.mask} {mask}, {t} {a}, {t} {b}")

    def copysign(self, a, b):
        """Write ``|a|`` with the sign of ``b``, on vectors in LLVM IR."""
        t = self.v.type
        return self.emit(f"call {t} @llvm.copysign.{self.v.suffix}({t} {a}, {t} {b})")

    def fabs(self, a):
        """Write the absolute value of a vector in LLVM IR."""
        t = self.v.type
        return self.emit(f"call {t} @llvm.fabs.{self.v.suffix}({t} {a})")

    def compare(self, condition, a, b):
        """Write a comparison of float vectors in LLVM IR; a mask with a bit per lane."""
        return self.emit(f"fcmp {condition} {self.v.type} {a}, {b}")

    def cast(self, x, source, target):
        """Write a bitcast of a value to another type in LLVM IR."""
        return self.emit(f"bitcast {source} {x} to {target}")

    def horner(self, coefficients, z):
        """Write a polynomial in ``z`` by Horner's scheme, highest power first."""
        result = self.constant(coefficients[0])
        for c in coefficients[1:]:
            result = self.fma(result, z, self.addend(c))
        return result


def by_lane(v, lines, function):
    """Write calls of a C math function on every lane of ``%x``; the vector of results."""
    result = "undef"
    for lane in range(v.lanes):
        x, y, out = (f"%{function}_{part}{lane}" for part in "xyv")
        lines.append(f"  {x} = extractelement {v.type} %x, i32 {lane}")
        lines.append(f"  {y} = call {v.scalar} @{c_name(v, function)}({v.scalar} {x})")
        lines.append(f"  {out} = insertelement {v.type} {result}, {v.scalar} {y}, i32 {lane}")
        result = out
    return result


def c_name(v, function):
    """Name of a C math function in the precision of ``v``, e.g. ``tanhf``."""
    return function if v.dtype == "float64" else f"{function}f"
