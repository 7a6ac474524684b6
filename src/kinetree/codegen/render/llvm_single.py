"""The lean path for one sample or a small batch: a Python function in machine code.

A kernel's ``single(self, args, nargs, names)`` has CPython's fast calling convention. It looks at
the arrays, and if each is a contiguous NumPy array of the right type and shape, or all have one
leading axis of the same length besides, it allocates the results, computes them and returns, in a
fraction of the time of NumPy's general machinery. In any other case, and when a check fails, it
calls ``self``, the full path, with the same arguments. All kernels share one function that does
this. Batches run through the SIMD loop, whose address ``@host`` has once it is compiled.

What it needs to know of the running interpreter is written into ``@host`` after loading; the field
offsets are those of CPython's object header and of NumPy's array struct on 64-bit machines.
"""

from kinetree.codegen.render.llvm_body import declarations
from kinetree.codegen.render.llvm_driver import FIRST_RANK, STACK, field, load, record

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
    "alone",  # not null where this code computes single samples
    "loop",  # the loop over samples, or null
    "most",  # samples in a batch, beyond which threads and the interpreter lock matter
    "left",  # samples that may go this way, see codegen.tiers
)

TYPE, DATA, NDIM, DIMENSIONS, DESCRIPTOR, FLAGS = 8, 16, 24, 32, 56, 64
CONTIGUOUS_AND_ALIGNED = 0x1 | 0x100


def single(v):
    """LLVM IR of ``@shared``: call from Python with float64 arrays, without Python code."""
    known = "ptr %self, ptr %args, i64 %nargs, ptr %names, ptr %kernel, ptr %host"
    parts = [
        f"define ptr @shared({known}) {{",
        "entry:",
        field("step", "ptr"),
        field("constants", "ptr"),
        *map(field, ("arguments", "inputs", "workspace")),
        *(load(name, "%host", k, "ptr", "ptr") for k, name in enumerate(HOST)),
        _START,
        _inputs(),
        _outputs(),
        _run(),
        _RESULT,
        "general:",
        "  %answer = call ptr %vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)",
        "  ret ptr %answer",
        "}",
        declarations(v),
    ]
    return "\n".join(parts)


_START = f"""  %number = ptrtoint ptr %type_number to i64
  %dtype = trunc i64 %number to i32
  %frame = alloca ptr, i64 %arguments, align 16
  %dims = alloca [8 x i64]
  %steps_size = mul i64 %arguments, 8
  %steps = alloca i64, i64 %steps_size
  %objects = alloca ptr, i64 %arguments
  %status = alloca i64
  %number_fits = icmp eq i64 %nargs, %inputs
  %no_keywords = icmp eq ptr %names, null
  %fits = and i1 %number_fits, %no_keywords
  store i64 0, ptr %status
  br i1 %fits, label %kind, label %general
kind:  ; one sample, or a batch: the first array says it
  %has_inputs = icmp ne i64 %inputs, 0
  br i1 %has_inputs, label %first, label %general
first:
  %f = load ptr, ptr %args
{load("f_type", "%f", TYPE, "ptr", "i8")}
  %f_is_array = icmp eq ptr %f_type, %array_type
  br i1 %f_is_array, label %first_array, label %general
first_array:
{load("f_rank", "%kernel", FIRST_RANK)}
{load("f_ndim32", "%f", NDIM, "i32", "i8")}
  %f_ndim = zext i32 %f_ndim32 to i64
  %lead = sub i64 %f_ndim, %f_rank
  %is_one = icmp eq i64 %lead, 0
  br i1 %is_one, label %alone_kind, label %batch_kind
alone_kind:
  %can_alone = icmp ne ptr %alone, null
  br i1 %can_alone, label %arguments_begin, label %general
batch_kind:
  %is_batch = icmp eq i64 %lead, 1
  %has_loop = icmp ne ptr %loop, null
  %can_batch = and i1 %is_batch, %has_loop
  br i1 %can_batch, label %batch_count, label %general
batch_count:
{load("f_dims", "%f", DIMENSIONS, "ptr", "i8")}
  %f_count = load i64, ptr %f_dims
  %limit = ptrtoint ptr %most to i64
  %few = icmp ule i64 %f_count, %limit
  %several = icmp ugt i64 %f_count, 1
  %batch_fits = and i1 %few, %several
  br i1 %batch_fits, label %arguments_begin, label %general
arguments_begin:
  %count = phi i64 [1, %alone_kind], [%f_count, %batch_count]
  br label %argument"""


def _inputs():
    """LLVM lines that point the frame to the arrays, or leave if one is not as expected."""
    return f"""argument:
  %k = phi i64 [0, %arguments_begin], [%k_next, %right]
  %more = icmp ult i64 %k, %inputs
  br i1 %more, label %look, label %counting
look:
{record("rank", "size", "shape", "strides")}
  %lengths = getelementptr i64, ptr %kernel, i64 %shape
  %a_slot = getelementptr ptr, ptr %args, i64 %k
  %a = load ptr, ptr %a_slot
{load("a_type", "%a", TYPE, "ptr", "i8")}
  %is_array = icmp eq ptr %a_type, %array_type
  br i1 %is_array, label %array, label %general
array:
{load("a_descriptor", "%a", DESCRIPTOR, "ptr", "i8")}
{load("a_ndim", "%a", NDIM, "i32", "i8")}
{load("a_flags", "%a", FLAGS, "i32", "i8")}
{load("a_dims", "%a", DIMENSIONS, "ptr", "i8")}
{load("a_data", "%a", DATA, "ptr", "i8")}
  %rank_and_lead = add i64 %rank, %lead
  %axes = trunc i64 %rank_and_lead to i32
  %type_fits = icmp eq ptr %a_descriptor, %descriptor
  %rank_fits = icmp eq i32 %a_ndim, %axes
  %masked = and i32 %a_flags, {CONTIGUOUS_AND_ALIGNED}
  %flags_fit = icmp eq i32 %masked, {CONTIGUOUS_AND_ALIGNED}
  %two_fit = and i1 %type_fits, %rank_fits
  %three_fit = and i1 %two_fit, %flags_fit
  br i1 %three_fit, label %leading, label %general
leading:  ; of a batch, all arrays have the same length
  br i1 %is_one, label %axes_begin, label %leading_axis
leading_axis:
  %a_count = load i64, ptr %a_dims
  %count_fits = icmp eq i64 %a_count, %count
  br i1 %count_fits, label %axes_begin, label %general
axes_begin:
  %a_core = getelementptr i64, ptr %a_dims, i64 %lead
  br label %axis
axis:
  %d = phi i64 [0, %axes_begin], [%d_next, %length]
  %more_axes = icmp ult i64 %d, %rank
  br i1 %more_axes, label %length, label %right
length:
{load("found", "%a_core", "%d")}
{load("wanted", "%lengths", "%d")}
  %d_next = add i64 %d, 1
  %length_fits = icmp eq i64 %found, %wanted
  br i1 %length_fits, label %axis, label %general
right:
  %a_place = getelementptr ptr, ptr %frame, i64 %k
  store ptr %a_data, ptr %a_place
  %a_step = getelementptr i64, ptr %steps, i64 %k
  store i64 %size, ptr %a_step
  %a_strides = getelementptr i64, ptr %lengths, i64 %rank
  %a_stride_places = getelementptr i64, ptr %steps, i64 %strides
  %a_bytes = mul i64 %rank, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %a_stride_places, ptr %a_strides, i64 %a_bytes, i1 false)
  %k_next = add i64 %k, 1
  br label %argument"""


def _outputs():
    """LLVM lines that make new NumPy arrays for the results."""
    read = (
        record("rank", "size", "shape", "strides")
        .replace("%", "%o_")
        .replace("%o_kernel", "%kernel")
    )
    return f"""counting:
  %left_before = ptrtoint ptr %left to i64
  %left_after = sub i64 %left_before, %count
  %may = icmp sge i64 %left_after, 0
  br i1 %may, label %counted, label %general
counted:
  store i64 %left_after, ptr %left_at
  br label %results
results:
  %o_k = phi i64 [%inputs, %counted], [%o_next, %have]
  %more_results = icmp ult i64 %o_k, %arguments
  br i1 %more_results, label %new, label %run
new:
{read}
  %o_lengths = getelementptr i64, ptr %kernel, i64 %o_shape
  %o_rank_and_lead = add i64 %o_rank, %lead
  %o_axes = trunc i64 %o_rank_and_lead to i32
  %o_core_dims = getelementptr i64, ptr %dims, i64 %lead
  store i64 %count, ptr %dims
  %o_bytes = mul i64 %o_rank, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %o_core_dims, ptr %o_lengths, i64 %o_bytes, i1 false)
  %o = call ptr %new_array(ptr %array_type, i32 %o_axes, ptr %dims, i32 %dtype, ptr null, \
ptr null, i32 0, i32 0, ptr null)
  %exists = icmp ne ptr %o, null
  br i1 %exists, label %have, label %no_memory
have:
{load("o_data", "%o", DATA, "ptr", "i8")}
  %o_place = getelementptr ptr, ptr %frame, i64 %o_k
  store ptr %o_data, ptr %o_place
  %object = getelementptr ptr, ptr %objects, i64 %o_k
  store ptr %o, ptr %object
  %o_step = getelementptr i64, ptr %steps, i64 %o_k
  store i64 %o_size, ptr %o_step
  %o_own_strides = getelementptr i64, ptr %o_lengths, i64 %o_rank
  %o_stride_places = getelementptr i64, ptr %steps, i64 %o_strides
  call void @llvm.memcpy.p0.p0.i64(ptr %o_stride_places, ptr %o_own_strides, i64 %o_bytes, \
i1 false)
  %o_next = add i64 %o_k, 1
  br label %results"""


def _run():
    """LLVM lines that compute; the full path in Python is taken if a check fails."""
    return f"""run:
  br i1 %is_one, label %run_alone, label %run_batch
run_batch:
  store i64 %count, ptr %dims
  call void %loop(ptr %frame, ptr %dims, ptr %steps, ptr %status)
  br label %ran
run_alone:
  %is_large = icmp ugt i64 %workspace, {STACK}
  br i1 %is_large, label %heap, label %stack
stack:
  %on_stack = alloca i8, i64 %workspace, align 64
  call void %step(ptr %frame, ptr %on_stack, ptr %constants, ptr %status)
  br label %ran
heap:
  %on_heap = call ptr @malloc(i64 %workspace)
  %is_there = icmp ne ptr %on_heap, null
  br i1 %is_there, label %run_on_heap, label %failed
run_on_heap:
  call void %step(ptr %frame, ptr %on_heap, ptr %constants, ptr %status)
  call void @free(ptr %on_heap)
  br label %ran
ran:
  %bad = load i64, ptr %status
  %good = icmp eq i64 %bad, 0
  br i1 %good, label %done, label %failed
no_memory:
  br label %drop
failed:
  br label %drop
drop:  ; the results that are there; then an error, or the full path
  %end = phi i64 [%o_k, %no_memory], [%arguments, %failed]
  br label %drop_head
drop_head:
  %r = phi i64 [%inputs, %drop], [%r_next, %drop_one]
  %more_to_drop = icmp ult i64 %r, %end
  br i1 %more_to_drop, label %drop_one, label %dropped
drop_one:
{load("r_object", "%objects", "%r", "ptr", "ptr")}
  call void %release(ptr %r_object)
  %r_next = add i64 %r, 1
  br label %drop_head
dropped:
  %all_there = icmp eq i64 %end, %arguments
  br i1 %all_there, label %general, label %error
error:
  ret ptr null"""


# NumPy's habit: a number, not an array without axes.
_RESULT = f"""done:
  %result_count = sub i64 %arguments, %inputs
  %has_one = icmp eq i64 %result_count, 1
  br i1 %has_one, label %one, label %several_results
one:
{load("only", "%objects", "%inputs", "ptr", "ptr")}
  %only_value = call ptr %as_scalar(ptr %only)
  ret ptr %only_value
several_results:
  %tuple = call ptr %new_tuple(i64 %result_count)
  br label %item
item:
  %i = phi i64 [0, %several_results], [%i_next, %item]
  %i_number = add i64 %i, %inputs
{load("i_object", "%objects", "%i_number", "ptr", "ptr")}
  %i_value = call ptr %as_scalar(ptr %i_object)
  %set = call i32 %set_item(ptr %tuple, i64 %i, ptr %i_value)
  %i_next = add i64 %i, 1
  %more_items = icmp ult i64 %i_next, %result_count
  br i1 %more_items, label %item, label %filled
filled:
  ret ptr %tuple"""
