"""Functions of numbers that the C library has on a CPU, as LLVM's text: a GPU has no such library.

Sine, cosine, arctangent, exponential and hyperbolic tangent are those of general code
(``render.llvm_math``). Angles beyond 2²⁰ are reduced by the digits of 2/π that matter for them
(Payne and Hanek). The errors are at most 3 units in the last place.
"""

import math
import re
import struct
from functools import cache

from kinetree.codegen.device.interleaved import scalar_text
from kinetree.codegen.render.llvm_body import Vector
from kinetree.codegen.render.llvm_math import atan2, sincos_function
from kinetree.codegen.render.llvm_shared import exponential, tangent
from kinetree.codegen.render.minimax import RANGE

_ONE = Vector("float64", 1)
_WORDS = 21  # of the digits of 2/π, the first of them zero

_DECLARED = """declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.copysign.f64(double, double)
declare i192 @llvm.ctlz.i192(i192, i1)"""


@cache
def library_text() -> str:
    """LLVM IR of the math functions (sine, exponential, ...) that GPU code calls."""
    shared = {"near_sincos": _near(), "atan2": atan2(_ONE)}
    shared |= {"exp": exponential(_ONE), "tanh_of_one": tangent(_ONE)}
    parts = [_definition(text, name) for name, text in shared.items()]
    digits = ", ".join(f"i64 {x}" for x in _two_over_pi())
    table = f"@two_over_pi = internal constant [{_WORDS} x i64] [{digits}]"
    return "\n\n".join([_DECLARED, table, *parts, _FAR, _OTHERS]) + "\n"


def _near():
    """LLVM IR of sine and cosine for arguments within the range of the polynomials."""
    text = sincos_function(_ONE, "@shared")
    return text[: text.index("some_far:")].replace("label %some_far", "label %near") + "}"


def _definition(text, name):
    """LLVM IR of the function ``@shared`` under another name, as a function of scalars."""
    found = re.search(r"(?ms)^define .*?^}", scalar_text(text))
    assert found
    return found[0].replace("@shared", f"@{name}")


def _two_over_pi():
    """Binary digits of 2/π after the point in words of 64 bits, preceded by one word of zeros."""
    bits = 64 * (_WORDS - 1)
    unit = 1 << (bits + 64)

    def arctangent(n):
        """Arctangent of 1/n, in units."""
        total, term, k = 0, unit // n, 1
        while term:
            total += (term // k) * (1 - 2 * (k // 2 % 2))
            term, k = term // (n * n), k + 2
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    digits = (2 * unit << bits) // pi
    return [0] + [digits >> (64 * k) & (2**64 - 1) for k in reversed(range(_WORDS - 1))]


def _number(x):
    """A float as a hexadecimal literal of LLVM IR."""
    return "0x" + struct.pack(">d", x).hex().upper()


# |x| = m 2^s with a whole m of 53 bits. Digits of 2/π whose weight times 2^s is 4 or more turn
# whole circles; the 192 bits from there on, times m, are the angle in right angles modulo 4.
_FAR = f"""define internal {{double, double}} @far_sincos(double %x) noinline {{
  %bits = bitcast double %x to i64
  %e0 = lshr i64 %bits, 52
  %e = and i64 %e0, 2047
  %finite = icmp ne i64 %e, 2047
  br i1 %finite, label %reduce, label %none
none:
  %nan = fsub double %x, %x
  %n0 = insertvalue {{double, double}} undef, double %nan, 0
  %n1 = insertvalue {{double, double}} %n0, double %nan, 1
  ret {{double, double}} %n1
reduce:
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %first = sub i64 %e, 1013
  %word = lshr i64 %first, 6
  %shift = and i64 %first, 63
  %p0 = getelementptr i64, ptr @two_over_pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %d0 = load i64, ptr %p0
  %d1 = load i64, ptr %p1
  %d2 = load i64, ptr %p2
  %d3 = load i64, ptr %p3
  %w0 = call i64 @llvm.fshl.i64(i64 %d0, i64 %d1, i64 %shift)
  %w1 = call i64 @llvm.fshl.i64(i64 %d1, i64 %d2, i64 %shift)
  %w2 = call i64 @llvm.fshl.i64(i64 %d2, i64 %d3, i64 %shift)
  %z0 = zext i64 %w0 to i192
  %z1 = zext i64 %w1 to i192
  %z2 = zext i64 %w2 to i192
  %y0 = shl i192 %z0, 128
  %y1 = shl i192 %z1, 64
  %y01 = or i192 %y0, %y1
  %digits = or i192 %y01, %z2
  %mm = zext i64 %m to i192
  %turns = mul i192 %digits, %mm
  %half = shl i192 1, 189
  %rounded = add i192 %turns, %half
  %q192 = lshr i192 %rounded, 190
  %q = trunc i192 %q192 to i64
  %whole = shl i192 %q192, 190
  %rest = sub i192 %turns, %whole
  %negative = icmp slt i192 %rest, 0
  %opposite = sub i192 0, %rest
  %size = select i1 %negative, i192 %opposite, i192 %rest
  %zeros192 = call i192 @llvm.ctlz.i192(i192 %size, i1 false)
  %zeros0 = trunc i192 %zeros192 to i64
  %zeros = call i64 @llvm.umin.i64(i64 %zeros0, i64 191)
  %by = zext i64 %zeros to i192
  %normal = shl i192 %size, %by
  %top192 = lshr i192 %normal, 128
  %top = trunc i192 %top192 to i64
  %number = uitofp i64 %top to double
  %exponent = sub i64 961, %zeros
  %exponent_bits = shl i64 %exponent, 52
  %unit = bitcast i64 %exponent_bits to double
  %part = fmul double %number, %unit
  %angle0 = fmul double %part, {_number(math.pi / 2)}
  %minus = fneg double %angle0
  %angle = select i1 %negative, double %minus, double %angle0
  %near = call {{double, double}} @near_sincos(double %angle)
  %s = extractvalue {{double, double}} %near, 0
  %c = extractvalue {{double, double}} %near, 1
  %odd0 = and i64 %q, 1
  %odd = icmp ne i64 %odd0, 0
  %s1 = select i1 %odd, double %c, double %s
  %c1 = select i1 %odd, double %s, double %c
  %two = and i64 %q, 2
  %s_flips = icmp ne i64 %two, 0
  %q1 = add i64 %q, 1
  %two1 = and i64 %q1, 2
  %c_flips = icmp ne i64 %two1, 0
  %s_minus = fneg double %s1
  %c_minus = fneg double %c1
  %s2 = select i1 %s_flips, double %s_minus, double %s1
  %c2 = select i1 %c_flips, double %c_minus, double %c1
  %left = icmp slt i64 %bits, 0
  %s2_minus = fneg double %s2
  %s3 = select i1 %left, double %s2_minus, double %s2
  %f0 = insertvalue {{double, double}} undef, double %s3, 0
  %f1 = insertvalue {{double, double}} %f0, double %c2, 1
  ret {{double, double}} %f1
}}

declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

define {{double, double}} @sincos_of_one(double %x) {{
  %size = call double @llvm.fabs.f64(double %x)
  %is_near = fcmp ole double %size, {_number(RANGE["float64"])}
  br i1 %is_near, label %near, label %far
near:
  %n = call {{double, double}} @near_sincos(double %x)
  ret {{double, double}} %n
far:
  %f = call {{double, double}} @far_sincos(double %x)
  ret {{double, double}} %f
}}"""

# log x = n log 2 + log m with m from sqrt(1/2) on, and log m = 2 artanh(z), z = (m - 1)/(m + 1).
_SERIES = [2.0 / (2 * k + 1) for k in range(1, 12)]


def _series():
    """LLVM IR lines that evaluate the series by Horner's scheme, and the register of its value."""
    lines, at = [], _number(_SERIES[-1])
    for k, c in enumerate(reversed(_SERIES[:-1])):
        lines.append(
            f"  %h{k} = call double @llvm.fma.f64(double {at}, double %zz, double {_number(c)})"
        )
        at = f"%h{k}"
    return "\n".join(lines), at


_LINES, _SUM = _series()
_LOG2 = math.log(2)
_LOG2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_OTHERS = f"""define double @sin(double %x) {{
  %both = call {{double, double}} @sincos_of_one(double %x)
  %s = extractvalue {{double, double}} %both, 0
  ret double %s
}}

define double @cos(double %x) {{
  %both = call {{double, double}} @sincos_of_one(double %x)
  %c = extractvalue {{double, double}} %both, 1
  ret double %c
}}

define double @tan(double %x) {{
  %both = call {{double, double}} @sincos_of_one(double %x)
  %s = extractvalue {{double, double}} %both, 0
  %c = extractvalue {{double, double}} %both, 1
  %t = fdiv double %s, %c
  ret double %t
}}

define double @atan(double %x) {{
  %a = call double @atan2(double %x, double 1.0)
  ret double %a
}}

define internal double @other_leg(double %x) {{
  %a = fsub double 1.0, %x
  %b = fadd double 1.0, %x
  %ab = fmul double %a, %b
  %leg = call double @llvm.sqrt.f64(double %ab)
  ret double %leg
}}

define double @asin(double %x) {{
  %leg = call double @other_leg(double %x)
  %a = call double @atan2(double %x, double %leg)
  ret double %a
}}

define double @acos(double %x) {{
  %leg = call double @other_leg(double %x)
  %a = call double @atan2(double %leg, double %x)
  ret double %a
}}

define double @hypot(double %x, double %y) {{
  %a = call double @llvm.fabs.f64(double %x)
  %b = call double @llvm.fabs.f64(double %y)
  %less = fcmp olt double %a, %b
  %large = select i1 %less, double %b, double %a
  %small = select i1 %less, double %a, double %b
  %zero = fcmp oeq double %large, 0.0
  %by = select i1 %zero, double 1.0, double %large
  %ratio = fdiv double %small, %by
  %s = call double @llvm.fma.f64(double %ratio, double %ratio, double 1.0)
  %root = call double @llvm.sqrt.f64(double %s)
  %h = fmul double %large, %root
  ret double %h
}}

define double @log(double %x) {{
  %positive = fcmp ogt double %x, 0.0
  %below = fcmp olt double %x, {_number(math.inf)}
  %usual = and i1 %positive, %below
  br i1 %usual, label %go, label %special
special:
  %is_zero = fcmp oeq double %x, 0.0
  %is_negative = fcmp olt double %x, 0.0
  %low = select i1 %is_negative, double {_number(math.nan)}, double %x
  %value = select i1 %is_zero, double {_number(-math.inf)}, double %low
  ret double %value
go:
  %tiny = fcmp olt double %x, {_number(2.0**-1022)}
  %scaled = fmul double %x, {_number(2.0**54)}
  %y = select i1 %tiny, double %scaled, double %x
  %shift = select i1 %tiny, i64 54, i64 0
  %bits = bitcast double %y to i64
  %above = sub i64 %bits, 4604544271217802189
  %n0 = ashr i64 %above, 52
  %n52 = shl i64 %n0, 52
  %m_bits = sub i64 %bits, %n52
  %m = bitcast i64 %m_bits to double
  %n = sub i64 %n0, %shift
  %k = sitofp i64 %n to double
  %f = fsub double %m, 1.0
  %sum = fadd double %m, 1.0
  %z = fdiv double %f, %sum
  %zz = fmul double %z, %z
{_LINES}
  %zh = fmul double %zz, {_SUM}
  %half0 = fmul double %f, %f
  %half = fmul double %half0, 0.5
  %e0 = fneg double %half
  %both = fadd double %zh, %half
  %tail = fmul double %z, %both
  %low0 = call double @llvm.fma.f64(double %k, double {_number(_LOG2_LOW)}, double %tail)
  %low1 = fadd double %low0, %e0
  %high = fmul double %k, {_number(_LOG2_HIGH)}
  %rest = fadd double %f, %low1
  %log = fadd double %high, %rest
  ret double %log
}}"""
