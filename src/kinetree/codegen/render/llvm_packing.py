"""Copies between samples with any strides and packed ones."""

from kinetree.codegen.render.llvm_table import field, record

__all__ = ["packing"]

_KNOWN = "ptr %kernel, ptr %args, ptr %steps, ptr %homes"


def packing(v):
    """``@pack``, ``@copy_staged``, and what these call."""
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
  %arg_at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg_at
  %step_at = getelementptr i64, ptr %steps, i64 %k
  %step = load i64, ptr %step_at
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
    """Copy between a packed sample and one with any strides, axis by axis; returns its end."""
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
    """Copy staged results of the samples from number ``%b`` on to where they belong."""
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
  %arg_at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg_at
  %step_at = getelementptr i64, ptr %steps, i64 %k
  %step = load i64, ptr %step_at
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
