"""Vector sine, cosine and arctangent in LLVM IR; the square root is the processor's own, exact.

Sine and cosine reduce ``x = n π/2 + r`` by three fused multiply-subtractions with the leading,
middle and trailing digits of π/2; the first leaves no rounding error. The range is ``|x| ≤ 2²⁰``
(2¹² in float32). A lane beyond it, infinite or NaN gets the C library's value; its neighbours keep
their own, so a result never depends on what else is in the batch.

``atan2`` divides the smaller by the larger of ``|x|`` and ``|y|``, takes the arctangent of the
quotient in [0, 1] by one polynomial and unfolds the octant with π/2 and π in two pieces each.
Zeros, infinities and their signs are treated as C99 does.

Largest error measured, in units in the last place, against mpmath and quadruple precision over
the whole range, near multiples of π/2 and at extreme quotients (tests/codegen/test_vector_math.py):

             float64   float32
    sin, cos   1.46      1.53
    atan2      1.65      1.51
"""

from kinetree.codegen.render.llvm_body import Body, by_lane, declarations
from kinetree.codegen.render.minimax import ATAN, COS, HALF_PI, RANGE, ROUND, SIN, TWO_OVER_PI

__all__ = ["RANGE", "atan2", "sincos", "sincos_function", "sincos_near"]


def _near(b, x):
    """Sine and cosine of ``x`` within ``RANGE``, as instructions of ``b``."""
    v = b.v
    t, i, k = v.type, v.integer, b.constant
    shifted = b.fma(x, k(TWO_OVER_PI), b.addend(ROUND[v.dtype]))
    n = b.op("fsub", shifted, k(ROUND[v.dtype]))
    r = x
    for part in HALF_PI[v.dtype]:
        r = b.fma(n, k(-part), r)
    z = b.op("fmul", r, r)
    s = b.fma(b.op("fmul", r, z), b.horner(SIN[v.dtype], z), r)
    s = b.copysign(s, r)  # -0 stays -0
    c = b.fma(z, b.fma(z, b.horner(COS[v.dtype], z), b.addend(-0.5)), b.addend(1.0))

    # The low bits of n pick the quadrant: odd swaps, bit 1 of n and of n + 1 are the signs.
    quadrant = b.cast(shifted, t, i)
    odd = b.emit(f"icmp ne {i} {b.integer('and', quadrant, v.integers(1))}, {v.integers(0)}")
    sign = v.integers(-(2 ** (v.bits - 1)))
    up = v.integers(v.bits - 2)
    flip_s = b.integer("and", b.integer("shl", quadrant, up), sign)
    next_quadrant = b.integer("add", quadrant, v.integers(1))
    flip_c = b.integer("and", b.integer("shl", next_quadrant, up), sign)
    sine = b.cast(b.integer("xor", b.cast(b.select(odd, c, s), t, i), flip_s), i, t)
    cosine = b.cast(b.integer("xor", b.cast(b.select(odd, s, c), t, i), flip_c), i, t)
    return sine, cosine


def sincos_near(v, x):
    """Instructions for arguments that the caller knows to be within ``RANGE``.

    The coefficients are read from ``%coefficients``, a pointer that LLVM cannot see through; it
    would otherwise rebuild each in five instructions.

    Returns:
        the table of coefficients as text, the lines, and the names of sine and cosine.
    """
    table: dict = {}
    b = Body(v, table)
    sine, cosine = _near(b, x)
    numbers = ", ".join(f"{v.type} {v.constant(x)}" for x in table)
    return f"[{len(table)} x {v.type}] [{numbers}]", b.lines, sine, cosine


def sincos(v):
    """``@shared``: sine and cosine of a vector."""
    return "\n".join([sincos_function(v, "@shared"), declarations(v)])


def sincos_function(v, name):
    """Sine and cosine of a vector, as a function of any name."""
    t, pair, k = v.type, f"{{{v.type}, {v.type}}}", v.constant
    b = Body(v)
    sine, cosine = _near(b, "%x")
    # Unordered: infinities and NaN are far away too.
    far = b.compare("ugt", b.fabs("%x"), k(RANGE[v.dtype]))
    any_far = b.emit(f"call i1 @llvm.vector.reduce.or.v{v.lanes}i1({v.mask} {far})")
    lines = [f"define {pair} {name}({t} %x) {{", *b.lines]
    lines += [f"  br i1 {any_far}, label %some_far, label %near", "near:"]
    lines += _return_pair(v, "near", sine, cosine)
    lines += ["some_far:"]
    for function, near in (("sin", sine), ("cos", cosine)):
        exact = by_lane(v, lines, function)
        lines.append(f"  %{function} = select {v.mask} {far}, {t} {exact}, {t} {near}")
    lines += _return_pair(v, "far", "%sin", "%cos")
    return "\n".join([*lines, "}"])


def _return_pair(v, label, first, second):
    t, pair = v.type, f"{{{v.type}, {v.type}}}"
    return [
        f"  %{label}0 = insertvalue {pair} undef, {t} {first}, 0",
        f"  %{label}1 = insertvalue {pair} %{label}0, {t} {second}, 1",
        f"  ret {pair} %{label}1",
    ]


def atan2(v):
    """``@shared``: the angle of the point (x, y)."""
    t, i = v.type, v.integer
    b = Body(v)
    k = v.constant
    pi_2, pi_2_low, _ = HALF_PI[v.dtype]
    ax, ay = b.fabs("%x"), b.fabs("%y")
    steep = b.compare("ogt", ay, ax)
    small, large = b.select(steep, ax, ay), b.select(steep, ay, ax)
    large = b.select(b.compare("oeq", large, k(0.0)), k(1.0), large)  # the origin: 0/1
    quotient = b.op("fdiv", small, large)
    quotient = b.select(b.compare("oeq", small, large), k(1.0), quotient)  # also of infinities
    z = b.op("fmul", quotient, quotient)
    angle = b.fma(b.op("fmul", quotient, z), b.horner(ATAN[v.dtype], z), quotient)

    # From the octant to the half plane y >= 0: ±angle + {0, π/2, π}.
    left = b.emit(f"icmp slt {i} {b.cast('%x', t, i)}, {v.integers(0)}")
    high = b.select(steep, k(pi_2), b.select(left, k(2 * pi_2), k(0.0)))
    low = b.select(steep, k(pi_2_low), b.select(left, k(2 * pi_2_low), k(0.0)))
    backwards = b.emit(f"xor {v.mask} {steep}, {left}")
    angle = b.select(backwards, b.emit(f"fneg {t} {angle}"), angle)
    angle = b.op("fadd", b.op("fadd", low, angle), high)
    result = b.copysign(angle, "%y")
    lines = [f"define {t} @shared({t} %y, {t} %x) {{", *b.lines]
    return "\n".join([*lines, f"  ret {t} {result}", "}", declarations(v)])
