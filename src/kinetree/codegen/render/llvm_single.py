"""The lean path for one sample: a Python function in machine code.

A kernel's ``single(self, args, nargs, names)`` has CPython's fast calling convention. It looks at
the arrays, and if each is a contiguous NumPy array of the right type and shape it allocates the
results, computes one sample and returns, in a fraction of the time of NumPy's general machinery.
In any other case, and when a check fails, it calls ``self``, the general path, with the same
arguments. All kernels share one function that does this.

What it needs to know of the running interpreter is written into ``@host`` after loading; the field
offsets are those of CPython's object header and of NumPy's array struct on 64-bit machines.
"""

from kinetree.codegen.render.llvm_driver import STACK
from kinetree.codegen.render.llvm_table import field, record
from kinetree.codegen.render.llvm_types import declarations

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


def single(v):
    """``@shared``: the lean path, which also takes a kernel's table and its ``@host``."""
    known = "ptr %self, ptr %args, i64 %nargs, ptr %names, ptr %kernel, ptr %host"
    host = []
    for k, name in enumerate(HOST):
        host.append(f"  %{name}_at = getelementptr ptr, ptr %host, i64 {k}")
        host.append(f"  %{name} = load ptr, ptr %{name}_at")
    parts = [
        f"define ptr @shared({known}) {{",
        "entry:",
        field("step", "ptr"),
        field("constants", "ptr"),
        *map(field, ("arguments", "inputs", "workspace")),
        *host,
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


_START = """  %number = ptrtoint ptr %type_number to i64
  %dtype = trunc i64 %number to i32
  %frame = alloca ptr, i64 %arguments, align 16
  %objects = alloca ptr, i64 %arguments
  %status = alloca i64
  %number_fits = icmp eq i64 %nargs, %inputs
  %no_keywords = icmp eq ptr %names, null
  %fits = and i1 %number_fits, %no_keywords
  store i64 0, ptr %status
  br i1 %fits, label %argument, label %general"""


def _load(name, base, offset, kind):
    return (
        f"  %{name}_at = getelementptr i8, ptr {base}, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr %{name}_at"
    )


def _inputs():
    """Let the frame point to the arrays if each is as it should be."""
    return f"""argument:
  %k = phi i64 [0, %entry], [%k_next, %right]
  %more = icmp ult i64 %k, %inputs
  br i1 %more, label %look, label %results
look:
{record("rank", "shape")}
  %lengths = getelementptr i64, ptr %kernel, i64 %shape
  %a_slot = getelementptr ptr, ptr %args, i64 %k
  %a = load ptr, ptr %a_slot
{_load("a_type", "%a", TYPE, "ptr")}
  %is_array = icmp eq ptr %a_type, %array_type
  br i1 %is_array, label %array, label %general
array:
{_load("a_descriptor", "%a", DESCRIPTOR, "ptr")}
{_load("a_ndim", "%a", NDIM, "i32")}
{_load("a_flags", "%a", FLAGS, "i32")}
{_load("a_dims", "%a", DIMENSIONS, "ptr")}
{_load("a_data", "%a", DATA, "ptr")}
  %axes = trunc i64 %rank to i32
  %type_fits = icmp eq ptr %a_descriptor, %descriptor
  %rank_fits = icmp eq i32 %a_ndim, %axes
  %masked = and i32 %a_flags, {CONTIGUOUS_AND_ALIGNED}
  %flags_fit = icmp eq i32 %masked, {CONTIGUOUS_AND_ALIGNED}
  %two_fit = and i1 %type_fits, %rank_fits
  %three_fit = and i1 %two_fit, %flags_fit
  br i1 %three_fit, label %axis, label %general
axis:
  %d = phi i64 [0, %array], [%d_next, %length]
  %more_axes = icmp ult i64 %d, %rank
  br i1 %more_axes, label %length, label %right
length:
  %found_at = getelementptr i64, ptr %a_dims, i64 %d
  %found = load i64, ptr %found_at
  %wanted_at = getelementptr i64, ptr %lengths, i64 %d
  %wanted = load i64, ptr %wanted_at
  %d_next = add i64 %d, 1
  %length_fits = icmp eq i64 %found, %wanted
  br i1 %length_fits, label %axis, label %general
right:
  %a_place = getelementptr ptr, ptr %frame, i64 %k
  store ptr %a_data, ptr %a_place
  %k_next = add i64 %k, 1
  br label %argument"""


def _outputs():
    """New arrays for the results."""
    read = record("rank", "shape").replace("%", "%o_").replace("%o_kernel", "%kernel")
    return f"""results:
  %o_k = phi i64 [%inputs, %argument], [%o_next, %have]
  %more_results = icmp ult i64 %o_k, %arguments
  br i1 %more_results, label %new, label %run
new:
{read}
  %o_lengths = getelementptr i64, ptr %kernel, i64 %o_shape
  %o_axes = trunc i64 %o_rank to i32
  %o = call ptr %new_array(ptr %array_type, i32 %o_axes, ptr %o_lengths, i32 %dtype, ptr null, \
ptr null, i32 0, i32 0, ptr null)
  %exists = icmp ne ptr %o, null
  br i1 %exists, label %have, label %no_memory
have:
{_load("o_data", "%o", DATA, "ptr")}
  %o_place = getelementptr ptr, ptr %frame, i64 %o_k
  store ptr %o_data, ptr %o_place
  %object = getelementptr ptr, ptr %objects, i64 %o_k
  store ptr %o, ptr %object
  %o_next = add i64 %o_k, 1
  br label %results"""


def _run():
    """Compute; when a check fails, take the general path."""
    return f"""run:
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
drop:  ; the results that are there; then an error, or the general path
  %end = phi i64 [%o_k, %no_memory], [%arguments, %failed]
  br label %drop_head
drop_head:
  %r = phi i64 [%inputs, %drop], [%r_next, %drop_one]
  %more_to_drop = icmp ult i64 %r, %end
  br i1 %more_to_drop, label %drop_one, label %dropped
drop_one:
  %r_at = getelementptr ptr, ptr %objects, i64 %r
  %r_object = load ptr, ptr %r_at
  call void %release(ptr %r_object)
  %r_next = add i64 %r, 1
  br label %drop_head
dropped:
  %all_there = icmp eq i64 %end, %arguments
  br i1 %all_there, label %general, label %error
error:
  ret ptr null"""


# NumPy's habit: a number, not an array without axes.
_RESULT = """done:
  %count = sub i64 %arguments, %inputs
  %is_one = icmp eq i64 %count, 1
  br i1 %is_one, label %one, label %several
one:
  %only_at = getelementptr ptr, ptr %objects, i64 %inputs
  %only = load ptr, ptr %only_at
  %only_value = call ptr %as_scalar(ptr %only)
  ret ptr %only_value
several:
  %tuple = call ptr %new_tuple(i64 %count)
  br label %item
item:
  %i = phi i64 [0, %several], [%i_next, %item]
  %i_number = add i64 %i, %inputs
  %i_at = getelementptr ptr, ptr %objects, i64 %i_number
  %i_object = load ptr, ptr %i_at
  %i_value = call ptr %as_scalar(ptr %i_object)
  %set = call i32 %set_item(ptr %tuple, i64 %i, ptr %i_value)
  %i_next = add i64 %i, 1
  %more_items = icmp ult i64 %i_next, %count
  br i1 %more_items, label %item, label %filled
filled:
  ret ptr %tuple"""
