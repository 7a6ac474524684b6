"""Sines and cosines of all joint angles in one loop, before the blocks run.

A call in the middle of a block would send every live vector register to memory and back. Here
several angles go side by side in one wide vector: the polynomials are long chains of dependent
operations, and only independent chains keep the processor busy.
"""

from kinetree.codegen.render.llvm_body import Vector, declarations
from kinetree.codegen.render.llvm_math import RANGE, sincos_function, sincos_near

_IN_FLIGHT = 64  # bytes of one sine that are computed together


def angles_at_once(v):
    """How many angles share one wide vector, where there are so many."""
    return max(1, _IN_FLIGHT // (v.size * v.lanes))


def angle_places(plan, places, v, first=None):
    """Where the angles of a schedule are, as ``@angles`` reads it, as text in IR.

    Args:
        plan: the schedule.
        places: argument number and offset of every input node.
        v: the vector type of the blocks.
        first: of code that other code calls, the number before each argument.
    """
    nodes = [*plan.angles] + [plan.angles[-1]] * (-len(plan.angles) % plan.angle_group)
    table = []
    for node in nodes:
        argument, offset = places[node]
        if first is None:
            table += [f"i64 {argument * v.lanes}", f"i64 {offset}"]
        else:
            table += [f"i64 {(first[argument] + offset) * v.lanes}", "i64 0"]
    return f"[{len(table)} x i64] [{', '.join(table)}]"


def angles(v, group, called=0):
    """``@shared``: sines and cosines of inputs, ``group`` at a time, go to the workspace.

    It takes the frame, the workspace, the status, the places of the inputs and how many they are: a
    multiple of ``group``. In the workspace a group of sines comes before that of their cosines. Of
    ``called`` code the frame is an array of vectors.
    """
    wide, one = Vector(v.dtype, v.lanes * group), Vector(v.dtype, 1)
    t = wide.type
    lines = [
        "define void @shared(ptr %frame, ptr %workspace, ptr %status, ptr %places, i64 %count) {",
        "entry:",
        "  %coefficients = load ptr, ptr @coefficients",
        "  br label %loop",
        "loop:",
        "  %k = phi i64 [0, %entry], [%k_next, %loop_end]",
        f"  %sum = phi {t} [{wide.constant(0.0)}, %entry], [%sum_next, %loop_end]",
        "  %k2 = mul i64 %k, 2",
    ]
    x = "undef"
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
                f"  %v{i} = insertelement {t} {x}, {v.scalar} %x{i}, i32 {n}",
            ]
            x = f"%v{i}"
    table, near, sine, cosine = sincos_near(wide, x)
    lines += [
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
        "check:",
        # One comparison for all: no angle exceeds the range when the sum of squares does not.
        f"  %far = fcmp ugt {t} %sum_next, {wide.constant(RANGE[v.dtype] ** 2)}",
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


def _address(v, called, i, offset):
    """Lines that find number ``%x_at`` at ``%slot`` of the frame."""
    if called:
        return [f"  %x_at{i} = getelementptr {v.scalar}, ptr %frame, i64 %slot{i}"]
    return [
        f"  %p_at{i} = getelementptr ptr, ptr %frame, i64 %slot{i}",
        f"  %p{i} = load ptr, ptr %p_at{i}",
        f"  %x_at{i} = getelementptr {v.scalar}, ptr %p{i}, i64 {offset}",
    ]


def _exact(group, v, one, called):
    """``@exact``: the same for arguments of any size, one angle of one sample at a time."""
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
