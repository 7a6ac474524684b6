"""Functions that kernels share: each is a separate module and is compiled once per process.

They are most of what a small kernel needs: the loop over samples, the sines of its joint angles, a
few functions that processors do not have. A kernel calls them by a symbol that says which function,
for which vectors, and has a digest of its text; so a kernel that was kept on disk can never meet a
function other than the one that it was compiled for.
"""

import hashlib
import re
from functools import cache

from kinetree.codegen.render.llvm_body import LlvmBody, Vector, by_lane, declarations
from kinetree.codegen.render.llvm_driver import driver
from kinetree.codegen.render.llvm_math import angles, atan2, sincos
from kinetree.codegen.render.llvm_single import single
from kinetree.codegen.render.minimax import EXP, LN2, LOG2_E, ROUND, TANH

# --- Vector exponential, hyperbolic tangent and logarithm in LLVM IR -----------------------------
# ``exp`` reduces ``x = n log 2 + r`` by two fused multiply-subtractions, of which the first leaves
# no rounding error, and multiplies a polynomial in ``r`` by ``2ⁿ`` in two halves, so that results
# at both ends of the range, infinite and subnormal ones included, come out right.
#
# ``tanh`` is an odd polynomial up to ``|x| = 0.55`` and ``1 - 2 / (exp(2 |x|) + 1)`` beyond:
# nothing cancels near zero and nothing overflows. The logarithm is the C library's, lane by lane.
#
# Largest error measured, in units in the last place, against quadruple precision at two million
# numbers each (tests/codegen/test_vector_math.py has fewer):
#
#              float64   float32
#     exp        1.05      0.96
#     tanh       1.48      1.45

_MANTISSA = {"float64": 52, "float32": 23}
_RANGE = {"float64": (-760.0, 720.0), "float32": (-110.0, 90.0)}  # zero before, infinite after
_BEND = 0.55  # where the two formulas of the hyperbolic tangent meet
_ONE = {"float64": 44.0, "float32": 20.0}  # twice an argument beyond which it is 1


def exponential(v):
    """LLVM IR of ``@shared``: the exponential of a vector."""
    low, high = _RANGE[v.dtype]
    b, k = LlvmBody(v), v.constant
    x = b.select(b.compare("ogt", "%x", k(high)), k(high), "%x")  # NaN stays NaN
    x = b.select(b.compare("olt", x, k(low)), k(low), x)
    p, n = _reduce(b, x)
    half = b.integer("ashr", n, v.integers(1))
    p = b.op("fmul", p, _power_of_two(b, half))
    return _function(b, b.op("fmul", p, _power_of_two(b, b.integer("sub", n, half))))


def tangent(v):
    """LLVM IR of ``@shared``: the hyperbolic tangent of a vector."""
    b, k = LlvmBody(v), v.constant
    a, z = b.fabs("%x"), b.op("fmul", "%x", "%x")
    near = b.fma(b.op("fmul", "%x", z), b.horner(TANH[v.dtype], z), "%x")
    twice = b.op("fadd", a, a)
    twice = b.select(b.compare("ogt", twice, k(_ONE[v.dtype])), k(_ONE[v.dtype]), twice)
    p, n = _reduce(b, twice)
    e = b.op("fmul", p, _power_of_two(b, n))
    rest = b.op("fdiv", k(2.0), b.op("fadd", e, k(1.0)))
    far = b.op("fsub", k(1.0), rest)
    result = b.select(b.compare("olt", a, k(_BEND)), near, far)
    return _function(b, b.copysign(result, "%x"))


def logarithm(v):
    """LLVM IR of ``@shared``: the natural logarithm of a vector."""
    b = LlvmBody(v)
    return _function(b, by_lane(v, b.lines, "log"))


def _reduce(b, x):
    """Write ``exp(r) - 1`` and the integers ``n`` of the reduction ``x = n log 2 + r``."""
    v = b.v
    t, i, k = v.type, v.integer, v.constant
    shifted = b.fma(x, k(LOG2_E), k(ROUND[v.dtype]))
    whole = b.op("fsub", shifted, k(ROUND[v.dtype]))
    r = x
    for part in LN2[v.dtype]:
        r = b.fma(whole, k(-part), r)
    p = b.fma(b.op("fmul", r, r), b.horner(EXP[v.dtype], r), r)
    n = b.integer("sub", b.cast(shifted, t, i), b.cast(k(ROUND[v.dtype]), t, i))
    return b.op("fadd", k(1.0), p), n


def _power_of_two(b, n):
    """Write ``2**n`` for integer vectors, by the exponent bits of floats."""
    v, mantissa = b.v, _MANTISSA[b.v.dtype]
    bias = 2 ** (v.bits - mantissa - 2) - 1
    exponent = b.integer("add", n, v.integers(bias))
    return b.cast(b.integer("shl", exponent, v.integers(mantissa)), v.integer, v.type)


def _function(b, result):
    """LLVM IR of ``@shared``, a function of one vector, from its lines and result."""
    t = b.v.type
    lines = [f"define {t} @shared({t} %x) {{", *b.lines, f"  ret {t} {result}", "}"]
    return "\n".join([*lines, declarations(b.v)])


_TEXTS = {
    "angles": angles, "atan2": atan2, "exp": exponential, "log": logarithm, "loop": driver,
    "single": single, "sincos": sincos, "tanh": tangent,
}  # fmt: skip


@cache
def shared_symbol(name: str, v: Vector, *options: int) -> str:
    """Symbol of a shared math function, with a digest of its LLVM IR."""
    text = _text(name, v, *options)
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return "_".join(["kinetree", name, v.dtype, *map(str, (v.lanes, *options)), digest])


def shared_symbols(text: str) -> list[str]:
    """Symbols of shared math functions that LLVM IR calls."""
    return sorted(set(re.findall(r"@(kinetree_\w+)\(", text)))


def shared_text(symbol: str) -> str | None:
    """LLVM IR of the shared function that a symbol names; None if our version differs."""
    _, name, dtype, lanes, *options, _ = symbol.split("_")
    v, options = Vector(dtype, int(lanes)), list(map(int, options))
    return _text(name, v, *options) if shared_symbol(name, v, *options) == symbol else None


@cache
def _text(name, v, *options):
    """LLVM IR of a shared math function by its name."""
    return "\n\n".join([f"; {name}", _TEXTS[name](v, *options)])
