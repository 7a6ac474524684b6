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

Sines and cosines of all joint angles are computed in one loop, before the blocks run: a call in the
middle of a block would send every live vector register to memory and back. There several angles go
side by side in one wide vector: the polynomials are long chains of dependent operations, and only
independent chains keep the processor busy.
"""

from kinetree.codegen.render.llvm_body import LlvmBody, Vector, by_lane, declarations
from kinetree.codegen.render.minimax import ATAN, COS, HALF_PI, RANGE, ROUND, SIN, TWO_OVER_PI


def _near(b, x):
    """Write sine and cosine of ``x`` within ``RANGE`` by polynomials; names of both."""
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
    """LLVM lines of sine and cosine for arguments within ``RANGE``.

    The coefficients are read from ``%coefficients``, a pointer that LLVM cannot see through; it
    would otherwise rebuild each in five instructions.

    Returns:
        the table of coefficients as text, the lines, and the names of sine and cosine.
    """
    table: dict = {}
    b = LlvmBody(v, table)
    sine, cosine = _near(b, x)
    numbers = ", ".join(f"{v.type} {v.constant(x)}" for x in table)
    return f"[{len(table)} x {v.type}] [{numbers}]", b.lines, sine, cosine


def sincos(v):
    """LLVM IR of ``@shared``: sine and cosine of a vector."""
    return "\n".join([sincos_function(v, "@shared"), declarations(v)])


def sincos_function(v, name):
    """LLVM IR of a function, by name, that returns sine and cosine of a vector."""
    t, pair, k = v.type, f"{{{v.type}, {v.type}}}", v.constant
    b = LlvmBody(v)
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
    """LLVM lines that return two vectors as one structure."""
    t, pair = v.type, f"{{{v.type}, {v.type}}}"
    return [
        f"  %{label}0 = insertvalue {pair} undef, {t} {first}, 0",
        f"  %{label}1 = insertvalue {pair} %{label}0, {t} {second}, 1",
        f"  ret {pair} %{label}1",
    ]


def atan2(v):
    """LLVM IR of ``@shared``: the angle of points (x, y), as vectors."""
    t, i = v.type, v.integer
    b = LlvmBody(v)
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


_IN_FLIGHT = 64  # bytes of one sine that are computed together


def angles_at_once(v):
    """Number of angles whose sines are computed together in one wide vector; 1: none."""
    return max(1, _IN_FLIGHT // (v.size * v.lanes))


def angle_places(plan, places, v):
    """LLVM IR of the table ``@angle_places``: where the angles of a schedule are.

    Args:
        plan: the schedule.
        places: where the inputs of the program are.
        v: the vector type of the blocks.
    """
    nodes = [*plan.angles] + [plan.angles[-1]] * (-len(plan.angles) % plan.angle_group)
    table = []
    for node in nodes:
        argument, offset = places.inputs[node]
        if places.first is None:
            table += [f"i64 {argument * v.lanes}", f"i64 {offset}"]
        else:
            table += [f"i64 {(places.first[argument] + offset) * v.lanes}", "i64 0"]
    return f"[{len(table)} x i64] [{', '.join(table)}]"


def angles(v, group, called=0):
    """LLVM IR of ``@shared``: sines and cosines of input angles, ``group`` at a time.

    It takes the frame, the workspace, the status, the places of the inputs and how many they are: a
    multiple of ``group``. In the workspace a group of sines comes before that of their cosines. Of
    ``called`` code the frame is an array of vectors.
    """
    wide, one = Vector(v.dtype, v.lanes * group), Vector(v.dtype, 1)
    t = wide.type
    gathering, x = _gather(v, wide, group, called)
    table, near, sine, cosine = sincos_near(wide, x)
    lines = [
        "define void @shared(ptr %frame, ptr %workspace, ptr %status, ptr %places, i64 %count) {",
        "entry:",
        "  %coefficients = load ptr, ptr @coefficients",
        "  br label %loop",
        "loop:",
        "  %k = phi i64 [0, %entry], [%k_next, %loop_end]",
        f"  %sum = phi {t} [{wide.constant(0.0)}, %entry], [%sum_next, %loop_end]",
        "  %k2 = mul i64 %k, 2",
        *gathering,
        *near,
        f"  %to_s = getelementptr {v.type}, ptr %workspace, i64 %k2",
        f"  %to_c = getelementptr {t}, ptr %to_s, i64 1",
        f"  store {t} {sine}, ptr %to_s, align {v.size}",
        f"  store {t} {cosine}, ptr %to_c, align {v.size}",
        "  br label %loop_end",
        "loop_end:",
        f"  %k_next = add i64 %k, {group}",
        f"  %sum_next = call {t} @llvm.fma.{wide.suffix}({t} {x}, {t} {x}, {t} %sum)",
        "  %more = icmp slt i64 %k_next, %count",
        "  br i1 %more, label %loop, label %check",
        *_check_range(wide),
        "exit:",
        "  ret void",
        "}",
    ]
    return "\n".join(
        [
            f"@table = internal constant {table}, align 64",
            "@coefficients = global ptr @table",
            sincos_function(one, "@sincos_of_one"),
            _exact(group, v, one, called),
            *lines,
            declarations(wide, one),
        ]
    )


def _gather(v, wide, group, called):
    """LLVM lines that gather ``group`` angles of all lanes; the name of their vector."""
    lines, x = [], "undef"
    for a in range(group):
        lines += [
            f"  %n{a} = add i64 %k2, {2 * a}",
            f"  %place{a} = getelementptr i64, ptr %places, i64 %n{a}",
            f"  %pointers{a} = load i64, ptr %place{a}",
            f"  %offset_at{a} = getelementptr i64, ptr %place{a}, i64 1",
            f"  %offset{a} = load i64, ptr %offset_at{a}",
        ]
        for lane in range(v.lanes):
            i, n = f"{a}_{lane}", a * v.lanes + lane
            lines += [
                f"  %slot{i} = add i64 %pointers{a}, {lane}",
                *_address(v, called, i, f"%offset{a}"),
                f"  %x{i} = load {v.scalar}, ptr %x_at{i}",
                f"  %v{i} = insertelement {wide.type} {x}, {v.scalar} %x{i}, i32 {n}",
            ]
            x = f"%v{i}"
    return lines, x


def _check_range(wide):
    """LLVM lines that recompute angles out of range exactly, and count infinite ones."""
    t = wide.type
    return [
        "check:",
        # One comparison for all: no angle exceeds the range when the sum of squares does not.
        f"  %far = fcmp ugt {t} %sum_next, {wide.constant(RANGE[wide.dtype] ** 2)}",
        f"  %any_far = call i1 @llvm.vector.reduce.or.v{wide.lanes}i1({wide.mask} %far)",
        "  br i1 %any_far, label %exact, label %exit",
        "exact:",
        "  call void @exact(ptr %frame, ptr %workspace, ptr %places, i64 %count)",
        # x · 0 ≠ 0 unless x is finite; blocks do not see these inputs.
        f"  %zero = fmul {t} %sum_next, {wide.constant(0.0)}",
        f"  %finite = fcmp oeq {t} %zero, {wide.constant(0.0)}",
        f"  %all = call i1 @llvm.vector.reduce.and.v{wide.lanes}i1({wide.mask} %finite)",
        "  br i1 %all, label %exit, label %bad",
        "bad:",
        "  %old = atomicrmw add ptr %status, i64 1 monotonic",
        "  br label %exit",
    ]


def _address(v, called, i, offset):
    """LLVM lines that find the address of an angle in the frame."""
    if called:
        return [f"  %x_at{i} = getelementptr {v.scalar}, ptr %frame, i64 %slot{i}"]
    return [
        f"  %p_at{i} = getelementptr ptr, ptr %frame, i64 %slot{i}",
        f"  %p{i} = load ptr, ptr %p_at{i}",
        f"  %x_at{i} = getelementptr {v.scalar}, ptr %p{i}, i64 {offset}",
    ]


def _exact(group, v, one, called):
    """LLVM IR of ``@exact``: sines and cosines of angles of any size, one at a time."""
    t, pair = one.type, f"{{{one.type}, {one.type}}}"
    head = "ptr %frame, ptr %workspace, ptr %places, i64 %count"
    address = "\n".join(_address(v, called, "", "%offset"))
    return f"""define internal void @exact({head}) noinline cold {{
entry:
  %samples = mul i64 %count, {v.lanes}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i_next, %loop]
  %k = udiv i64 %i, {v.lanes}
  %lane = urem i64 %i, {v.lanes}
  %n = mul i64 %k, 2
  %place = getelementptr i64, ptr %places, i64 %n
  %pointers = load i64, ptr %place
  %offset_at = getelementptr i64, ptr %place, i64 1
  %offset = load i64, ptr %offset_at
  %slot = add i64 %pointers, %lane
{address}
  %x = load {t}, ptr %x_at, align {v.size}
  %sc = call {pair} @sincos_of_one({t} %x)
  %s = extractvalue {pair} %sc, 0
  %c = extractvalue {pair} %sc, 1
  %in_group = urem i64 %k, {group}
  %first = sub i64 %n, %in_group
  %to_s = getelementptr {v.type}, ptr %workspace, i64 %first, i64 %lane
  %to_c = getelementptr {v.type}, ptr %to_s, i64 {group}
  store {t} %s, ptr %to_s, align {v.size}
  store {t} %c, ptr %to_c, align {v.size}
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, %samples
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}"""
