"""``@kernel``: the table in IR that describes a kernel to the functions that kernels share."""

_FIELDS = (
    "step",  # the function that computes one vector of samples
    "prepare",  # the function that writes what does not change in staged results, or null
    "constants",  # numbers that the blocks read
    "arguments",  # their number
    "inputs",  # the number of those that are read
    "workspace",  # bytes, whole cache lines
    "packed",  # bytes of all arguments of one vector of samples
)
_RECORDS = len(_FIELDS)  # where the arguments' records begin

_RECORD = (
    "rank",  # number of axes
    "size",  # bytes of one sample
    "home",  # where its packed samples begin, in bytes
    "staged",  # whether it is put together there and then copied as a whole
    "shape",  # where its lengths, and the strides of contiguous samples after them, begin
    "strides",  # where its strides begin among the steps that NumPy gives
)


FIRST_RANK = _RECORDS + _RECORD.index("rank")
"""Where the number of axes of the first argument is."""


def table(program, v, plan, staged, more=0):
    """``@kernel``: what the shared functions have to know, and code that calls this.

    ``more`` bytes of the workspace follow the slots of the schedule.
    """
    numbers = table_numbers(program, v, plan.slots, staged, more)
    listed = ", ".join(f"i64 {n}" for n in numbers)
    pointers = f"ptr @step, ptr {'@prepare' if staged else 'null'}, ptr @constants"
    kind = f"{{ ptr, ptr, ptr, [{len(numbers)} x i64] }}"
    return f"@kernel = constant {kind} {{ {pointers}, [{len(numbers)} x i64] [{listed}] }}"


def table_numbers(program, v, slots, staged=(), more=0):
    """The table but for the three pointers that it begins with."""
    arguments = (*program.inputs, *program.outputs)
    workspace = -(-max(slots, 1) * v.size * v.lanes // 64) * 64 + more
    records, shapes, home, strides = [], [], 0, len(arguments)
    first_shape = _RECORDS + len(_RECORD) * len(arguments)
    for k, a in enumerate(arguments):
        size = a.size * v.size
        records += [len(a.shape), size, home, int(k in staged), first_shape + len(shapes), strides]
        # A number counts as one axis where samples are copied.
        shapes += [*(a.shape or (1,)), *(_strides(a.shape, v.size) or (0,))]
        home += size * v.lanes
        strides += len(a.shape)
    return [len(arguments), len(program.inputs), workspace, home, *records, *shapes]


def _strides(shape, step):
    """Byte strides of contiguous samples."""
    strides = []
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def field(name, kind="i64"):
    """Lines that read ``%name`` from the table ``%kernel``."""
    at = f"  %{name}_at = getelementptr i64, ptr %kernel, i64 {_FIELDS.index(name)}"
    return f"{at}\n  %{name} = load {kind}, ptr %{name}_at"


def record(*names):
    """Lines that read what is known of argument ``%k``."""
    lines = [
        f"  %record_shift = mul i64 %k, {len(_RECORD)}",
        f"  %record_number = add i64 %record_shift, {_RECORDS}",
        "  %record = getelementptr i64, ptr %kernel, i64 %record_number",
    ]
    for name in names:
        at = f"getelementptr i64, ptr %record, i64 {_RECORD.index(name)}"
        lines += [f"  %{name}_at = {at}", f"  %{name} = load i64, ptr %{name}_at"]
    return "\n".join(lines)
