"""The body of a function in LLVM IR, instruction by instruction."""


class Body:
    """Collects instructions; every method returns the name of its result."""

    def __init__(self, v, table=None):
        self.v, self.lines, self.count, self.table = v, [], 0, table

    def constant(self, x):
        """All lanes equal to ``x``: a literal, or read from the table."""
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
        """The same, to be added to a product: a load, where one number would need copies.

        A fused multiplication overwrites its addend, on Arm always and with AVX often.
        """
        if self.table is None:
            return self.v.constant(x)
        slot = self.table.setdefault(x, len(self.table))
        at = self.emit(f"getelementptr {self.v.type}, ptr %coefficients, i64 {slot}")
        return self.emit(f"load {self.v.type}, ptr {at}")

    def emit(self, text):
        """An instruction."""
        self.count += 1
        name = f"%t{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def op(self, name, a, b):
        """Arithmetic of floats."""
        return self.emit(f"{name} {self.v.type} {a}, {b}")

    def fma(self, a, b, c):
        """``a b + c``, rounded once."""
        t = self.v.type
        return self.emit(f"call {t} @llvm.fma.{self.v.suffix}({t} {a}, {t} {b}, {t} {c})")

    def integer(self, name, a, b):
        """Arithmetic of integers."""
        return self.emit(f"{name} {self.v.integer} {a}, {b}")

    def select(self, mask, a, b):
        """``a`` in the lanes of the mask, else ``b``."""
        t = self.v.type
        return self.emit(f"select {self.v.mask} {mask}, {t} {a}, {t} {b}")

    def copysign(self, a, b):
        """``|a|`` with the sign of ``b``."""
        t = self.v.type
        return self.emit(f"call {t} @llvm.copysign.{self.v.suffix}({t} {a}, {t} {b})")

    def fabs(self, a):
        """``|a|``."""
        t = self.v.type
        return self.emit(f"call {t} @llvm.fabs.{self.v.suffix}({t} {a})")

    def compare(self, condition, a, b):
        """A mask."""
        return self.emit(f"fcmp {condition} {self.v.type} {a}, {b}")

    def cast(self, x, source, target):
        """The same bits as another type."""
        return self.emit(f"bitcast {source} {x} to {target}")

    def horner(self, coefficients, z):
        """A polynomial in ``z``, highest power first."""
        result = self.constant(coefficients[0])
        for c in coefficients[1:]:
            result = self.fma(result, z, self.addend(c))
        return result


def by_lane(v, lines, function):
    """The C library's function on every lane; returns the name of the vector of results."""
    result = "undef"
    for lane in range(v.lanes):
        x, y, out = (f"%{function}_{part}{lane}" for part in "xyv")
        lines.append(f"  {x} = extractelement {v.type} %x, i32 {lane}")
        lines.append(f"  {y} = call {v.scalar} @{c_name(v, function)}({v.scalar} {x})")
        lines.append(f"  {out} = insertelement {v.type} {result}, {v.scalar} {y}, i32 {lane}")
        result = out
    return result


def c_name(v, function):
    """What the C library calls a function in the precision of ``v``."""
    return function if v.dtype == "float64" else f"{function}f"
