"""The lean path for one sample: a Python function in machine code.

``single(self, args, nargs, names)`` has CPython's fast calling convention. It looks at the arrays,
and if each is a contiguous NumPy array of the right type and shape it allocates the results, runs
the loop on one sample and returns, in a fraction of the time of NumPy's general machinery. In any
other case, and when a check fails, it calls ``self``, the general path, with the same arguments.

What it needs to know of the running interpreter is written into ``@host`` after loading; the field
offsets are those of CPython's object header and of NumPy's array struct on 64-bit machines.
"""

__all__ = [
    "CONTIGUOUS_AND_ALIGNED",
    "DATA",
    "DESCRIPTOR",
    "DIMENSIONS",
    "FLAGS",
    "HOST",
    "NDIM",
    "TYPE",
    "single",
]

HOST = (
    "array_type",  # PyArray_Type
    "descriptor",  # the dtype object
    "new_array",  # PyArray_New
    "vectorcall",  # PyObject_Vectorcall
    "new_tuple",  # PyTuple_New
    "set_item",  # PyTuple_SetItem
    "release",  # Py_DecRef
    "as_scalar",  # PyArray_Return
    "type_number",  # of the dtype
)

TYPE, DATA, NDIM, DIMENSIONS, DESCRIPTOR, FLAGS = 8, 16, 24, 32, 56, 64
CONTIGUOUS_AND_ALIGNED = 0x1 | 0x100


def single(program, v):
    """IR text of ``@single`` and its table ``@host``."""
    lines = [
        f"@host = global [{len(HOST)} x ptr] zeroinitializer",
        "",
        "define ptr @single(ptr %self, ptr %args, i64 %nargs, ptr %names) {",
        "entry:",
    ]
    for k, name in enumerate(HOST):
        lines.append(f"  %{name}_at = getelementptr ptr, ptr @host, i64 {k}")
        lines.append(f"  %{name} = load ptr, ptr %{name}_at")
    n_in, n_out = len(program.inputs), len(program.outputs)
    lines.append(f"  %number_fits = icmp eq i64 %nargs, {n_in}")
    lines.append("  %no_keywords = icmp eq ptr %names, null")
    lines.append("  %fits = and i1 %number_fits, %no_keywords")
    lines.append("  br i1 %fits, label %in0, label %general")
    for k, argument in enumerate(program.inputs):
        lines += _check_array(k, argument)
    lines += [f"in{n_in}:"]
    for k, argument in enumerate(program.outputs):
        lines += _new_array(k, argument)
    lines += _run(program, v)
    lines += ["done:", *_result(program.outputs)]
    lines += ["failed:"]
    lines += [f"  call void %release(ptr %out{k})" for k in range(n_out)]
    lines += [
        "  br label %general",
        "general:",
        "  %answer = call ptr %vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)",
        "  ret ptr %answer",
        "}",
    ]
    return "\n".join(lines)


def _field(lines, name, base, offset, kind):
    lines.append(f"  {name}_at = getelementptr i8, ptr {base}, i64 {offset}")
    lines.append(f"  {name} = load {kind}, ptr {name}_at")


def _check_array(k, argument):
    a = f"%a{k}"
    lines = [f"in{k}:"]
    lines.append(f"  {a}_slot = getelementptr ptr, ptr %args, i64 {k}")
    lines.append(f"  {a} = load ptr, ptr {a}_slot")
    _field(lines, f"{a}_type", a, TYPE, "ptr")
    lines.append(f"  {a}_is = icmp eq ptr {a}_type, %array_type")
    lines.append(f"  br i1 {a}_is, label %array{k}, label %general")
    lines.append(f"array{k}:")
    _field(lines, f"{a}_descriptor", a, DESCRIPTOR, "ptr")
    _field(lines, f"{a}_ndim", a, NDIM, "i32")
    _field(lines, f"{a}_flags", a, FLAGS, "i32")
    lines.append(f"  {a}_t = icmp eq ptr {a}_descriptor, %descriptor")
    lines.append(f"  {a}_n = icmp eq i32 {a}_ndim, {len(argument.shape)}")
    lines.append(f"  {a}_m = and i32 {a}_flags, {CONTIGUOUS_AND_ALIGNED}")
    lines.append(f"  {a}_c = icmp eq i32 {a}_m, {CONTIGUOUS_AND_ALIGNED}")
    lines.append(f"  {a}_tn = and i1 {a}_t, {a}_n")
    lines.append(f"  {a}_tnc = and i1 {a}_tn, {a}_c")
    lines.append(f"  br i1 {a}_tnc, label %shape{k}, label %general")
    lines.append(f"shape{k}:")
    _field(lines, f"{a}_dims", a, DIMENSIONS, "ptr")
    ok = "true"
    for d, size in enumerate(argument.shape):
        lines.append(f"  {a}_d{d}_at = getelementptr i64, ptr {a}_dims, i64 {d}")
        lines.append(f"  {a}_d{d} = load i64, ptr {a}_d{d}_at")
        lines.append(f"  {a}_s{d} = icmp eq i64 {a}_d{d}, {size}")
        lines.append(f"  {a}_ok{d} = and i1 {ok}, {a}_s{d}")
        ok = f"{a}_ok{d}"
    _field(lines, f"{a}_data", a, DATA, "ptr")
    lines.append(f"  br i1 {ok}, label %in{k + 1}, label %general")
    return lines


def _new_array(k, argument):
    n = len(argument.shape)
    lines = [f"  %shape_out{k} = alloca [{max(n, 1)} x i64]"]
    for d, size in enumerate(argument.shape):
        lines.append(f"  %size{k}_{d} = getelementptr i64, ptr %shape_out{k}, i64 {d}")
        lines.append(f"  store i64 {size}, ptr %size{k}_{d}")
    lines += [
        f"  %number{k} = ptrtoint ptr %type_number to i64",
        f"  %type{k} = trunc i64 %number{k} to i32",
        f"  %out{k} = call ptr %new_array(ptr %array_type, i32 {n}, ptr %shape_out{k}, "
        f"i32 %type{k}, ptr null, ptr null, i32 0, i32 0, ptr null)",
        f"  %exists{k} = icmp ne ptr %out{k}, null",
        f"  br i1 %exists{k}, label %have{k}, label %no_memory{k}",
        f"no_memory{k}:",
        *(f"  call void %release(ptr %out{j})" for j in range(k)),
        "  ret ptr null",
        f"have{k}:",
        f"  %out{k}_at = getelementptr i8, ptr %out{k}, i64 {DATA}",
        f"  %out{k}_data = load ptr, ptr %out{k}_at",
    ]
    return lines


def _run(program, v):
    """Build what the loop expects on the stack, with one sample, and call it."""
    arguments = (*program.inputs, *program.outputs)
    steps = [0] * len(arguments)
    for a in arguments:
        strides, step = [], v.size
        for size in reversed(a.shape):
            strides.insert(0, step)
            step *= size
        steps += strides
    lines = [
        f"  %pointers = alloca [{len(arguments)} x ptr]",
        f"  %steps = alloca [{max(len(steps), 1)} x i64]",
        "  %one = alloca i64",
        "  %status = alloca i64",
        "  store i64 1, ptr %one",
        "  store i64 0, ptr %status",
    ]
    data = [f"%a{k}_data" for k in range(len(program.inputs))]
    data += [f"%out{k}_data" for k in range(len(program.outputs))]
    for k, name in enumerate(data):
        lines.append(f"  %pointer{k} = getelementptr ptr, ptr %pointers, i64 {k}")
        lines.append(f"  store ptr {name}, ptr %pointer{k}")
    for k, step in enumerate(steps):
        lines.append(f"  %step{k} = getelementptr i64, ptr %steps, i64 {k}")
        lines.append(f"  store i64 {step}, ptr %step{k}")
    lines += [
        "  call void @loop(ptr %pointers, ptr %one, ptr %steps, ptr %status)",
        "  %bad = load i64, ptr %status",
        "  %good = icmp eq i64 %bad, 0",
        "  br i1 %good, label %done, label %failed",
    ]
    return lines


def _result(outputs):
    lines, values = [], []
    for k, output in enumerate(outputs):
        values.append(f"%out{k}")
        if output.shape == ():  # NumPy's habit: a number, not an array without axes
            lines.append(f"  %value{k} = call ptr %as_scalar(ptr %out{k})")
            values[-1] = f"%value{k}"
    if len(outputs) == 1:
        return [*lines, f"  ret ptr {values[0]}"]
    lines.append(f"  %tuple = call ptr %new_tuple(i64 {len(outputs)})")
    for k, value in enumerate(values):
        lines.append(f"  %set{k} = call i32 %set_item(ptr %tuple, i64 {k}, ptr {value})")
    return [*lines, "  ret ptr %tuple"]
