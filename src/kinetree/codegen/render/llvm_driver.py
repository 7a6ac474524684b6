"""The loop around the blocks, with the calling convention of a NumPy inner loop.

``loop(args, dimensions, steps, status)`` runs over all samples, ``lanes`` at a time. Where the data
of each sample is contiguous, blocks read and write it in place. Otherwise, and for the samples left
over at the end, data goes through packed copies; a lane without a sample of its own repeats the
last one. ``status`` counts vectors in which a check failed.
"""

from kinetree.codegen.render.llvm_steps import step

__all__ = ["driver"]


def driver(program, v, plan, staged=frozenset()):
    """IR text of ``@loop`` and what it needs; ``staged`` results are copied as a whole."""
    arguments = (*program.inputs, *program.outputs)
    return "\n\n".join(
        [
            *(_copy(way, v) for way in ("in", "out")),
            *(_pack(way, v) for way in ("in", "out")),
            *(_sizes(k, a) for k, a in enumerate(arguments)),
            step(v, plan),
            _loop(arguments, len(program.inputs), v, plan, staged),
        ]
    )


def _loop(arguments, inputs, v, plan, staged):
    n, lanes = len(arguments), v.lanes
    workspace = max(plan.slots, 1) * v.size * lanes
    packed = max(sum(a.size for a in arguments), 1) * v.size * lanes
    lines = [
        "define void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %status) {",
        "entry:",
        "  %count = load i64, ptr %dimensions",
        "  %constants = load ptr, ptr @constants_address",
        f"  %frame = alloca [{n * lanes} x ptr], align 16",
        *_memory(workspace, packed),
    ]
    strides = _core_strides(arguments, v)
    offset = n
    contiguous = []
    for k, a in enumerate(arguments):
        lines.append(f"  %arg_at{k} = getelementptr ptr, ptr %args, i64 {k}")
        lines.append(f"  %arg{k} = load ptr, ptr %arg_at{k}")
        lines.append(f"  %step_at{k} = getelementptr i64, ptr %steps, i64 {k}")
        lines.append(f"  %step{k} = load i64, ptr %step_at{k}")
        for d, expected in enumerate(strides[k]):
            lines.append(f"  %core_at{k}_{d} = getelementptr i64, ptr %steps, i64 {offset}")
            lines.append(f"  %core{k}_{d} = load i64, ptr %core_at{k}_{d}")
            if a.shape[d] != 1:
                lines.append(f"  %fits{k}_{d} = icmp eq i64 %core{k}_{d}, {expected}")
                contiguous.append(f"%fits{k}_{d}")
            offset += 1
    ok = "true"
    for c, name in enumerate(contiguous):
        lines.append(f"  %ok{c} = and i1 {ok}, {name}")
        ok = f"%ok{c}"
    lines += _homes(arguments, v)
    if staged:
        lines += _to_frame(sorted(staged), v, "home", "first")
        lines.append("  call void @prepare(ptr %frame)")
    lines += [
        f"  %whole = and i64 %count, {-lanes}",
        f"  %direct = select i1 {ok}, i64 %whole, i64 0",
        "  br label %head",
        # --- in place ---
        "head:",
        "  %b = phi i64 [0, %ready], [%b_next, %body]",
        "  %more = icmp slt i64 %b, %direct",
        "  br i1 %more, label %body, label %tail_head",
        "body:",
    ]
    for k in range(n):
        for lane in range(lanes):
            i = f"{k}_{lane}"
            lines.append(f"  %sample{i} = add i64 %b, {lane}")
            lines.append(f"  %shift{i} = mul i64 %sample{i}, %step{k}")
            lines.append(f"  %at{i} = getelementptr i8, ptr %arg{k}, i64 %shift{i}")
    lines += _to_frame([k for k in range(n) if k not in staged], v, "at", "slot")
    lines.append("  call void @step(ptr %frame, ptr %workspace, ptr %constants, ptr %status)")
    for k in sorted(staged):
        size = arguments[k].size * v.size
        for lane in range(lanes):
            ends = f"ptr %at{k}_{lane}, ptr %home{k}_{lane}"
            lines.append(f"  call void @llvm.memcpy.p0.p0.i64({ends}, i64 {size}, i1 false)")
    lines += [
        f"  %b_next = add i64 %b, {lanes}",
        "  br label %head",
        # --- through packed copies ---
        "tail_head:",
        "  %c = phi i64 [%direct, %head], [%c_next, %tail]",
        "  %left = icmp slt i64 %c, %count",
        "  br i1 %left, label %tail, label %exit",
        "tail:",
        "  %last = sub i64 %count, 1",
    ]
    lines += _packed(arguments, range(inputs), v, "in")
    lines += _to_frame(range(n), v, "home", "place")
    lines.append("  call void @step(ptr %frame, ptr %workspace, ptr %constants, ptr %status)")
    lines += _packed(arguments, range(inputs, n), v, "out")
    lines += [f"  %c_next = add i64 %c, {lanes}", "  br label %tail_head", "exit:"]
    if workspace + packed > _STACK:
        lines.append("  call void @free(ptr %memory)")
    return "\n".join([*lines, "  ret void", "}"])


def _homes(arguments, v):
    """Addresses of the packed samples."""
    lines, start = [], 0
    for k, a in enumerate(arguments):
        for lane in range(v.lanes):
            lines.append(f"  %home{k}_{lane} = getelementptr {v.scalar}, ptr %packed, i64 {start}")
            start += a.size
    return lines


def _to_frame(which, v, address, name):
    """Let the frame point to these addresses of arguments."""
    lines = []
    for k in which:
        for lane in range(v.lanes):
            place = f"%{name}{k}_{lane}"
            lines.append(f"  {place} = getelementptr ptr, ptr %frame, i64 {k * v.lanes + lane}")
            lines.append(f"  store ptr %{address}{k}_{lane}, ptr {place}")
    return lines


def _packed(arguments, which, v, way):
    """Copies between the caller's arrays and the packed ones."""
    lines = []
    cores = [len(arguments)]
    for a in arguments:
        cores.append(cores[-1] + len(a.shape))
    for k in which:
        a = arguments[k]
        rank = max(len(a.shape), 1)
        strides = f"%strides{way}{k}" if a.shape else "@no_stride"
        if a.shape:
            lines.append(f"  {strides} = getelementptr i64, ptr %steps, i64 {cores[k]}")
        lines.append(
            f"  call void @pack_{way}(ptr %home{k}_0, ptr %arg{k}, i64 {a.size * v.size}, "
            f"i64 %step{k}, i64 %c, i64 %last, ptr @sizes_{k}, ptr {strides}, i64 {rank})"
        )
    return lines


def _pack(way, v):
    """Copy one argument of the samples from number ``%c`` on, a lane each; past ``%last``, that."""
    return f"""define internal void @pack_{way}(ptr %near, ptr %far, i64 %size, i64 %step, i64 %c, \
i64 %last, ptr %sizes, ptr %strides, i64 %rank) noinline {{
entry:
  br label %loop
loop:
  %lane = phi i64 [0, %entry], [%lane_next, %loop]
  %want = add i64 %c, %lane
  %is = icmp slt i64 %want, %last
  %use = select i1 %is, i64 %want, i64 %last
  %move = mul i64 %use, %step
  %there = getelementptr i8, ptr %far, i64 %move
  %shift = mul i64 %lane, %size
  %here = getelementptr i8, ptr %near, i64 %shift
  %end = call ptr @copy_{way}(ptr %here, ptr %there, ptr %sizes, ptr %strides, i64 %rank)
  %lane_next = add i64 %lane, 1
  %more = icmp slt i64 %lane_next, {v.lanes}
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}"""


def _sizes(k, a):
    """Table of the sizes of the axes of argument ``k``; a number counts as one axis of length 1."""
    sizes = a.shape or (1,)
    table = f"@sizes_{k} = internal constant [{len(sizes)} x i64] "
    table += "[" + ", ".join(f"i64 {n}" for n in sizes) + "]"
    return table if k else f"@no_stride = internal constant i64 0\n{table}"


_STACK = 65536  # bytes; more comes from the heap, since threads may have small stacks


def _memory(workspace, packed):
    """Space for the workspace and for packed samples, aligned to cache lines."""
    workspace = -(-workspace // 64) * 64
    size = workspace + packed
    if size <= _STACK:
        return [
            f"  %workspace = alloca [{workspace} x i8], align 64",
            f"  %packed = alloca [{packed} x i8], align 64",
            "  br label %ready",
            "ready:",
        ]
    return [
        f"  %memory = call ptr @malloc(i64 {size + 64})",
        "  %missing = icmp eq ptr %memory, null",
        "  br i1 %missing, label %give_up, label %ready",
        "give_up:",  # counts as a failed check: the samples are then computed by other means
        "  %before = atomicrmw add ptr %status, i64 1 monotonic",
        "  ret void",
        "ready:",
        "  %address = ptrtoint ptr %memory to i64",
        "  %beyond = add i64 %address, 63",
        "  %aligned = and i64 %beyond, -64",
        "  %workspace = inttoptr i64 %aligned to ptr",
        f"  %packed = getelementptr i8, ptr %workspace, i64 {workspace}",
    ]


def _core_strides(arguments, v):
    """Byte strides of each argument's core axes when a sample is contiguous."""
    result = []
    for a in arguments:
        strides, step = [], v.size
        for size in reversed(a.shape):
            strides.insert(0, step)
            step *= size
        result.append(strides)
    return result


def _copy(way, v):
    """Copy between a packed sample and one with any strides, axis by axis; returns its end."""
    source, target = ("%there", "%p") if way == "in" else ("%p", "%there")
    head = f"define internal ptr @copy_{way}"
    return f"""{head}(ptr %near, ptr %far, ptr %sizes, ptr %strides, i64 %rank) {{
entry:
  %n = load i64, ptr %sizes
  %stride = load i64, ptr %strides
  %sizes_in = getelementptr i64, ptr %sizes, i64 1
  %strides_in = getelementptr i64, ptr %strides, i64 1
  %left = sub i64 %rank, 1
  %last = icmp eq i64 %rank, 1
  br label %head
head:
  %i = phi i64 [0, %entry], [%i_next, %next]
  %p = phi ptr [%near, %entry], [%p_next, %next]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %exit
body:
  %shift = mul i64 %i, %stride
  %there = getelementptr i8, ptr %far, i64 %shift
  br i1 %last, label %one, label %axis
one:
  %x = load {v.scalar}, ptr {source}, align 1
  store {v.scalar} %x, ptr {target}, align 1
  %after_one = getelementptr i8, ptr %p, i64 {v.size}
  br label %next
axis:
  %after_axis = call ptr @copy_{way}(ptr %p, ptr %there, ptr %sizes_in, ptr %strides_in, i64 %left)
  br label %next
next:
  %p_next = phi ptr [%after_one, %one], [%after_axis, %axis]
  %i_next = add i64 %i, 1
  br label %head
exit:
  ret ptr %p
}}"""
