"""The loop over samples, with the calling convention of a NumPy inner loop.

A kernel's ``loop(args, dimensions, steps, status)`` runs over all samples, ``lanes`` at a time.
Where the data of each sample is contiguous, blocks read and write it in place. Otherwise, and for
the samples left over at the end, data goes through packed copies; a lane without a sample repeats
the last one. ``status`` counts vectors in which a check failed.

The work is done by one function that all kernels share; a table describes the kernel to it.
"""

from kinetree.codegen.render.llvm_body import declarations

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
    """LLVM IR of ``@kernel``, the table of sizes and pointers that shared functions read.

    ``more`` bytes of the workspace follow the slots of the schedule.
    """
    numbers = table_numbers(program, v, plan.slots, staged, more)
    listed = ", ".join(f"i64 {n}" for n in numbers)
    pointers = f"ptr @step, ptr {'@prepare' if staged else 'null'}, ptr @constants"
    kind = f"{{ ptr, ptr, ptr, [{len(numbers)} x i64] }}"
    return f"@kernel = constant {kind} {{ {pointers}, [{len(numbers)} x i64] [{listed}] }}"


def table_numbers(program, v, slots, staged=(), more=0):
    """Numbers of the table ``@kernel``, after the three pointers at its beginning."""
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
    """Strides of a contiguous array of a shape, ``step`` bytes for the last axis."""
    strides = []
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def field(name, kind="i64"):
    """LLVM lines that load ``%name`` from the table ``%kernel``."""
    return load(name, "%kernel", _FIELDS.index(name), kind)


def load(name, base, k, kind="i64", unit="i64"):
    """LLVM lines that load ``%name`` from entry ``k`` of ``base``."""
    at = f"  %{name}_at = getelementptr {unit}, ptr {base}, i64 {k}"
    return f"{at}\n  %{name} = load {kind}, ptr %{name}_at"


def record(*names):
    """LLVM lines that load fields of the table's record about argument ``%k``, by name."""
    lines = [
        f"  %record_shift = mul i64 %k, {len(_RECORD)}",
        f"  %record_number = add i64 %record_shift, {_RECORDS}",
        "  %record = getelementptr i64, ptr %kernel, i64 %record_number",
    ]
    return "\n".join([*lines, *(load(name, "%record", _RECORD.index(name)) for name in names)])


STACK = 65536  # bytes; more comes from the heap, since threads may have small stacks
_KNOWN = "ptr %kernel, ptr %args, ptr %steps, ptr %homes"  # what functions for copies take first


def driver(v):
    """LLVM IR of ``@shared``, NumPy's inner loop for any kernel, given its table."""
    return "\n\n".join([packing(v), _loop(v), declarations(v)])


def _loop(v):
    """LLVM text of NumPy's inner loop for a kernel."""
    given = "ptr %args, ptr %dimensions, ptr %steps, ptr %status, ptr %kernel"
    stages = (_memory(v), _walks(v), _contiguous_axes(), _in_place(v), _through_copies(v), _end())
    return "\n".join([f"define void @shared({given}) {{", *stages, "}"])


def _memory(v):
    """LLVM lines that read the table and allocate frames and workspace, on stack or heap."""
    return f"""entry:
{field("step", "ptr")}
{field("prepare", "ptr")}
{field("constants", "ptr")}
{field("arguments")}
{field("inputs")}
{field("workspace")}
{field("packed")}
  %count = load i64, ptr %dimensions
  %entries = mul i64 %arguments, {v.lanes}
  %frame = alloca ptr, i64 %entries, align 16
  %packed_frame = alloca ptr, i64 %entries, align 16
  %ways_size = mul i64 %arguments, 3
  %ways = alloca i64, i64 %ways_size
  %space_size = add i64 %workspace, %packed
  %is_large = icmp ugt i64 %space_size, {STACK}
  br i1 %is_large, label %heap, label %stack
stack:
  %on_stack = alloca i8, i64 %space_size, align 64
  br label %ready
heap:
  %with_room = add i64 %space_size, 64
  %memory = call ptr @malloc(i64 %with_room)
  %missing = icmp eq ptr %memory, null
  br i1 %missing, label %give_up, label %align
give_up:  ; counts as a failed check: the samples are then computed by other means
  %before = atomicrmw add ptr %status, i64 1 monotonic
  ret void
align:
  %address = ptrtoint ptr %memory to i64
  %beyond = add i64 %address, 63
  %aligned = and i64 %beyond, -64
  %on_heap = inttoptr i64 %aligned to ptr
  br label %ready
ready:
  %space = phi ptr [%on_stack, %stack], [%on_heap, %align]
  %owned = phi ptr [null, %stack], [%memory, %align]
  %homes = getelementptr i8, ptr %space, i64 %workspace
  br label %argument"""


def _walks(v):
    """For each argument where its samples are, from vector to vector and from lane to lane, into
    ``%ways``; and its packed samples into ``%packed_frame``.
    """
    return f"""argument:
  %k = phi i64 [0, %ready], [%k_next, %argument_end]
  %fits = phi i1 [true, %ready], [%fits_so_far, %argument_end]
{record("rank", "size", "home", "staged", "shape", "strides")}
  %lengths = getelementptr i64, ptr %kernel, i64 %shape
  %expected = getelementptr i64, ptr %lengths, i64 %rank
  %found = getelementptr i64, ptr %steps, i64 %strides
  %home_place = getelementptr i8, ptr %homes, i64 %home
  %home_number = ptrtoint ptr %home_place to i64
  %is_staged = icmp ne i64 %staged, 0
{load("arg", "%args", "%k", "i64", "ptr")}
{load("sample_step", "%steps", "%k")}
  %first = select i1 %is_staged, i64 %home_number, i64 %arg
  %move = select i1 %is_staged, i64 0, i64 %sample_step
  %apart = select i1 %is_staged, i64 %size, i64 %sample_step
  %way_number = mul i64 %k, 3
  %way = getelementptr i64, ptr %ways, i64 %way_number
  store i64 %first, ptr %way
  %way_move = getelementptr i64, ptr %way, i64 1
  store i64 %move, ptr %way_move
  %way_apart = getelementptr i64, ptr %way, i64 2
  store i64 %apart, ptr %way_apart
  %packed_slot_number = mul i64 %k, {v.lanes}
  %packed_slot = getelementptr ptr, ptr %packed_frame, i64 %packed_slot_number
{_lanes("packed", "%home_number", "%size", v)}
  br label %axis"""


def _contiguous_axes():
    """LLVM lines that compare an argument's strides with contiguous ones, axis by axis."""
    return f"""axis:
  %d = phi i64 [0, %argument], [%d_next, %axis_body]
  %fits_so_far = phi i1 [%fits, %argument], [%fits_next, %axis_body]
  %more_axes = icmp ult i64 %d, %rank
  br i1 %more_axes, label %axis_body, label %argument_end
axis_body:
{load("stride", "%found", "%d")}
{load("stride_if_contiguous", "%expected", "%d")}
{load("length", "%lengths", "%d")}
  %same = icmp eq i64 %stride, %stride_if_contiguous
  %lone = icmp eq i64 %length, 1
  %either = or i1 %same, %lone
  %fits_next = and i1 %fits_so_far, %either
  %d_next = add i64 %d, 1
  br label %axis
argument_end:
  %k_next = add i64 %k, 1
  %more_arguments = icmp ult i64 %k_next, %arguments
  br i1 %more_arguments, label %argument, label %begin
begin:
  %has_staged = icmp ne ptr %prepare, null
  br i1 %has_staged, label %prepare_staged, label %start
prepare_staged:
  call void %prepare(ptr %packed_frame)
  br label %start"""


def _in_place(v):
    """LLVM lines that compute whole vectors of contiguous samples in place."""
    return f"""start:
  %whole = and i64 %count, {-v.lanes}
  %direct = select i1 %fits_so_far, i64 %whole, i64 0
  br label %head
head:
  %b = phi i64 [0, %start], [%b_next, %body_end]
  %more = icmp slt i64 %b, %direct
  br i1 %more, label %body, label %tail_head
body:
  br label %point
point:
  %p = phi i64 [0, %body], [%p_next, %point]
  %number = mul i64 %p, 3
  %from = getelementptr i64, ptr %ways, i64 %number
  %from_first = load i64, ptr %from
{load("from_move", "%from", 1)}
{load("from_apart", "%from", 2)}
  %shift = mul i64 %from_move, %b
  %place = add i64 %from_first, %shift
  %direct_slot_number = mul i64 %p, {v.lanes}
  %direct_slot = getelementptr ptr, ptr %frame, i64 %direct_slot_number
{_lanes("direct", "%place", "%from_apart", v)}
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %arguments
  br i1 %p_more, label %point, label %run
run:
  call void %step(ptr %frame, ptr %space, ptr %constants, ptr %status)
  br i1 %has_staged, label %copy_staged, label %body_end
copy_staged:
  call void @copy_staged({_KNOWN}, i64 %b)
  br label %body_end
body_end:
  %b_next = add i64 %b, {v.lanes}
  br label %head"""


def _through_copies(v):
    """LLVM lines that compute the remaining samples through packed copies."""
    return f"""tail_head:
  %c = phi i64 [%direct, %head], [%c_next, %tail]
  %left = icmp slt i64 %c, %count
  br i1 %left, label %tail, label %exit
tail:
  %last = sub i64 %count, 1
  call void @pack({_KNOWN}, i64 0, i64 %inputs, i64 %c, i64 %last, i1 true)
  call void %step(ptr %packed_frame, ptr %space, ptr %constants, ptr %status)
  call void @pack({_KNOWN}, i64 %inputs, i64 %arguments, i64 %c, i64 %last, i1 false)
  %c_next = add i64 %c, {v.lanes}
  br label %tail_head"""


def _end():
    """LLVM lines that free memory from the heap and return."""
    return """exit:
  br i1 %is_large, label %release, label %done
release:
  call void @free(ptr %owned)
  br label %done
done:
  ret void"""


def _lanes(frame, place, apart, v):
    """LLVM lines that point the frame's entries of an argument to one sample per lane."""
    lines = []
    for lane in range(v.lanes):
        at = f"%{frame}_at{lane}"
        lines.append(f"  {at} = getelementptr ptr, ptr %{frame}_slot, i64 {lane}")
        lines.append(f"  store i64 {place}, ptr {at}")
        if lane + 1 < v.lanes:
            lines.append(f"  %{frame}{lane} = add i64 {place}, {apart}")
            place = f"%{frame}{lane}"
    return "\n".join(lines)


# --- Copies between samples with any strides and packed ones -------------------------------------


def packing(v):
    """LLVM IR of ``@pack`` and ``@copy_staged``, with the functions that these call."""
    return "\n\n".join([_copy(v), _pack(v), _copy_staged(v)])


def _pack(v):
    """Copy all inputs to their packed samples, or all results from there: those ``%first`` to
    ``%end``, of the samples from number ``%c`` on, a lane each; past ``%last``, that.
    """
    which = "i64 %first, i64 %end, i64 %c, i64 %last, i1 %inwards"
    return f"""define internal void @pack({_KNOWN}, {which}) {{
entry:
  br label %head
head:
  %k = phi i64 [%first, %entry], [%k_next, %next]
  %more = icmp ult i64 %k, %end
  br i1 %more, label %body, label %exit
body:
{record("rank", "size", "home", "shape", "strides")}
  %near = getelementptr i8, ptr %homes, i64 %home
{load("arg", "%args", "%k", "ptr", "ptr")}
{load("step", "%steps", "%k")}
  %lengths = getelementptr i64, ptr %kernel, i64 %shape
  %is_number = icmp eq i64 %rank, 0
  %no_strides = getelementptr i64, ptr %lengths, i64 1
  %some_strides = getelementptr i64, ptr %steps, i64 %strides
  %axes = select i1 %is_number, i64 1, i64 %rank
  %apart = select i1 %is_number, ptr %no_strides, ptr %some_strides
  br label %one
one:
  %lane = phi i64 [0, %body], [%lane_next, %one]
  %want = add i64 %c, %lane
  %is = icmp slt i64 %want, %last
  %use = select i1 %is, i64 %want, i64 %last
  %move = mul i64 %use, %step
  %there = getelementptr i8, ptr %arg, i64 %move
  %shift = mul i64 %lane, %size
  %here = getelementptr i8, ptr %near, i64 %shift
  %after = call ptr @copy(ptr %here, ptr %there, ptr %lengths, ptr %apart, i64 %axes, i1 %inwards)
  %lane_next = add i64 %lane, 1
  %more_lanes = icmp slt i64 %lane_next, {v.lanes}
  br i1 %more_lanes, label %one, label %next
next:
  %k_next = add i64 %k, 1
  br label %head
exit:
  ret void
}}"""


def _copy(v):
    """LLVM function that copies a sample between packed and strided memory; returns its end."""
    given = "ptr %near, ptr %far, ptr %sizes, ptr %strides, i64 %rank, i1 %inwards"
    within = "ptr %p, ptr %there, ptr %sizes_in, ptr %strides_in, i64 %left, i1 %inwards"
    return f"""define internal ptr @copy({given}) {{
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
  %source = select i1 %inwards, ptr %there, ptr %p
  %target = select i1 %inwards, ptr %p, ptr %there
  %x = load i{v.bits}, ptr %source, align 1
  store i{v.bits} %x, ptr %target, align 1
  %after_one = getelementptr i8, ptr %p, i64 {v.size}
  br label %next
axis:
  %after_axis = call ptr @copy({within})
  br label %next
next:
  %p_next = phi ptr [%after_one, %one], [%after_axis, %axis]
  %i_next = add i64 %i, 1
  br label %head
exit:
  ret ptr %p
}}"""


def _copy_staged(v):
    """LLVM function that copies staged results of samples from ``%b`` on to their arrays."""
    return f"""define internal void @copy_staged({_KNOWN}, i64 %b) {{
entry:
{field("arguments")}
{field("inputs")}
  br label %head
head:
  %k = phi i64 [%inputs, %entry], [%k_next, %next]
  %more = icmp ult i64 %k, %arguments
  br i1 %more, label %body, label %exit
body:
{record("size", "home", "staged")}
  %near = getelementptr i8, ptr %homes, i64 %home
{load("arg", "%args", "%k", "ptr", "ptr")}
{load("step", "%steps", "%k")}
  %is_staged = icmp ne i64 %staged, 0
  br i1 %is_staged, label %one, label %next
one:
  %lane = phi i64 [0, %body], [%lane_next, %one]
  %sample = add i64 %b, %lane
  %move = mul i64 %sample, %step
  %there = getelementptr i8, ptr %arg, i64 %move
  %shift = mul i64 %size, %lane
  %here = getelementptr i8, ptr %near, i64 %shift
  call void @llvm.memcpy.p0.p0.i64(ptr %there, ptr %here, i64 %size, i1 false)
  %lane_next = add i64 %lane, 1
  %more_lanes = icmp slt i64 %lane_next, {v.lanes}
  br i1 %more_lanes, label %one, label %next
next:
  %k_next = add i64 %k, 1
  br label %head
exit:
  ret void
}}"""
