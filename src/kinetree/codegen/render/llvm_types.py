"""Types of LLVM IR for one vector of samples."""

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
        """IR name of one element."""
        return {"float64": "double", "float32": "float"}[self.dtype]

    @cached_property
    def bits(self) -> int:
        """Width of one element."""
        return {"float64": 64, "float32": 32}[self.dtype]

    @cached_property
    def size(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @cached_property
    def type(self) -> str:
        """IR name of the vector."""
        return f"<{self.lanes} x {self.scalar}>"

    @cached_property
    def integer(self) -> str:
        """IR name of the vector of integers of the same width."""
        return f"<{self.lanes} x i{self.bits}>"

    @cached_property
    def mask(self) -> str:
        """IR name of the vector of truth values."""
        return f"<{self.lanes} x i1>"

    @cached_property
    def suffix(self) -> str:
        """Suffix of overloaded intrinsics."""
        return f"v{self.lanes}f{self.bits}"

    def number(self, x: float) -> str:
        """One element as a literal; floats are written as doubles, as IR wants it."""
        if self.dtype == "float32":
            x = struct.unpack("f", struct.pack("f", x))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"

    def constant(self, x: float) -> str:
        """All lanes equal to ``x``, as a literal."""
        return "<" + ", ".join([f"{self.scalar} {self.number(x)}"] * self.lanes) + ">"

    def integers(self, n: int) -> str:
        """All lanes equal to the integer ``n``, as a literal."""
        return "<" + ", ".join([f"i{self.bits} {n}"] * self.lanes) + ">"


def declarations(*vectors: Vector) -> str:
    """LLVM's own functions, and the C library's, for each of the vectors."""
    lines = []
    for v in vectors:
        t, m, letter = v.type, v.mask, "" if v.dtype == "float64" else "f"
        lines += [
            f"declare {t} @llvm.fma.{v.suffix}({t}, {t}, {t})",
            f"declare {t} @llvm.sqrt.{v.suffix}({t})",
            f"declare {t} @llvm.fabs.{v.suffix}({t})",
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
