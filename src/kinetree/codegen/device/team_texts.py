"""LLVM's texts of what the lanes of a team share: waiting, sums, entries, and calls of kernels."""

import re

LANE_FUNCTIONS = """@of_lanes = internal addrspace(3) global [{lanes} x double] undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

define i64 @lane_number() alwaysinline nounwind {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = zext i32 %t to i64
  ret i64 %lane
}}

define void @lanes_together() alwaysinline nounwind convergent {{
  call void @llvm.nvvm.barrier0()
  ret void
}}

define internal void @show(double %x) nounwind convergent {{
  call void @llvm.nvvm.barrier0()
  %lane = call i64 @lane_number()
  %own = getelementptr double, ptr addrspace(3) @of_lanes, i64 %lane
  store double %x, ptr addrspace(3) %own
  call void @llvm.nvvm.barrier0()
  ret void
}}
"""

OVER_LANES = """define double @lane_{name}(double %own) noinline nounwind convergent {{
entry:
  call void @show(double %own)
  %first = load double, ptr addrspace(3) @of_lanes
  br label %head
head:
  %k = phi i64 [1, %entry], [%next, %head]
  %found = phi double [%first, %entry], [%more, %head]
  %at = getelementptr double, ptr addrspace(3) @of_lanes, i64 %k
  %x = load double, ptr addrspace(3) %at
  {more}
  %next = add i64 %k, 1
  %some = icmp slt i64 %next, {lanes}
  br i1 %some, label %head, label %end
end:
  ret double %more
}}
"""

SUM = "%more = fadd double %found, %x"
MAXIMUM = """%less = fcmp olt double %found, %x
  %more = select i1 %less, double %x, double %found"""

ONE_LANE = """define i64 @lane_number() { ret i64 0 }
define void @lanes_together() { ret void }
"""

ENTRY_ON_DEVICE = """{declared}
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()

define ptx_kernel void @team({given}) {{
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %item = zext i32 %c to i64
  call void @turn(i64 %item, {passed})
  ret void
}}

!nvvm.annotations = !{{!0, !1}}
!0 = !{{ptr @team, !"maxntidx", i32 {lanes}}}
!1 = !{{ptr @team, !"minctasm", i32 {teams}}}
"""

ENTRY_ON_PROCESSOR = """{declared}

define void @team(i64 %count, {given}) {{
entry:
  br label %head
head:
  %item = phi i64 [0, %entry], [%next, %head]
  call void @turn(i64 %item, {passed})
  %next = add i64 %item, 1
  %some = icmp slt i64 %next, %count
  br i1 %some, label %head, label %end
end:
  ret void
}}
"""

TURN = """{declared}
declare i64 @lane_number()
declare void @lanes_together() convergent

@words_of_team = internal {space}global [{records} x i64] undef, align 16

define void @turn(i64 %item, {given}) convergent {{
entry:
  %own = alloca [{lane} x i64], align 16
  %team = {to_team}
  %start = mul i64 %item, %size
  %image = getelementptr i64, ptr %memory, i64 %start
  %first = getelementptr i64, ptr %image, i64 %records
  %second = getelementptr i64, ptr %first, i64 {records}
  %lane = call i64 @lane_number()
  br label %take
take:
  %k = phi i64 [%lane, %entry], [%k_next, %take_one]
  %k_more = icmp slt i64 %k, {records}
  br i1 %k_more, label %take_one, label %own_words
take_one:
  %from = getelementptr i64, ptr %first, i64 %k
  %word = load i64, ptr %from
  %to = getelementptr i64, ptr %team, i64 %k
  store i64 %word, ptr %to
  %k_next = add i64 %k, {lanes}
  br label %take
own_words:
  %o = phi i64 [0, %take], [%o_next, %own_words]
  %o_from = getelementptr i64, ptr %second, i64 %o
  %o_word = load i64, ptr %o_from
  %o_to = getelementptr i64, ptr %own, i64 %o
  store i64 %o_word, ptr %o_to
  %o_next = add i64 %o, 1
  %o_more = icmp slt i64 %o_next, {kept}
  br i1 %o_more, label %own_words, label %words_there
words_there:
  call void @lanes_together()
  br label %point
point:
  %p = phi i64 [%lane, %words_there], [%p_next, %point_one]
  %p_more = icmp slt i64 %p, {pointers}
  br i1 %p_more, label %point_one, label %go
point_one:
  %where_at = getelementptr i64, ptr %where, i64 %p
  %place = load i64, ptr %where_at
  %target_at = getelementptr i64, ptr %target, i64 %p
  %code_of_target = load i64, ptr %target_at
  %whose = and i64 %code_of_target, 3
  %away = ashr i64 %code_of_target, 2
  %of_lane = icmp eq i64 %whose, 2
  %of_team = icmp eq i64 %whose, 1
  %one_of_two = select i1 %of_team, ptr %team, ptr %image
  %base = select i1 %of_lane, ptr %own, ptr %one_of_two
  %address = getelementptr i64, ptr %base, i64 %away
  %holder = getelementptr i64, ptr %team, i64 %place
  store ptr %address, ptr %holder
  %p_next = add i64 %p, {lanes}
  br label %point
go:
  call void @lanes_together()
{body}
  call void @lanes_together()
  %leads = icmp eq i64 %lane, 0
  br i1 %leads, label %keep, label %end
keep:
  %i = phi i64 [0, %go], [%i_next, %keep]
  %mine = getelementptr i64, ptr %own, i64 %i
  %found = load i64, ptr %mine
  %back = getelementptr i64, ptr %second, i64 %i
  store i64 %found, ptr %back
  %i_next = add i64 %i, 1
  %i_more = icmp slt i64 %i_next, {kept}
  br i1 %i_more, label %keep, label %end
end:
  ret void
}}
"""
"""A team copies records and lets their addresses lead to where things are.

What lies on the stack has the same address for all lanes of a GPU, and is another place for each.
"""

RECORDS_OF_ONE = "", "getelementptr i64, ptr @words_of_team, i64 0"
PARAMETERS = "ptr %memory, i64 %size, i64 %records, ptr %where, ptr %target"

CALL = """declare i64 @lane_number()
declare void @lanes_together() convergent

define void @{name}(ptr %loop, i64 %first, i64 %count) noinline nounwind convergent {{
entry:
  %frame = alloca [{widest} x ptr]
  %room = alloca [{room} x double], align 16
  %code_at = getelementptr i64, ptr %loop, i64 {code_at}
  %code = load i64, ptr %code_at
  %arrays_at = getelementptr i64, ptr %loop, i64 {arrays_at}
  %arrays = load i64, ptr %arrays_at
  %frames_at = getelementptr i64, ptr %loop, i64 {frame_at}
  %frames = load ptr, ptr %frames_at
  %steps_at = getelementptr i64, ptr %loop, i64 {steps_at}
  %steps = load ptr, ptr %steps_at
  %status_at = getelementptr i64, ptr %loop, i64 {status_at}
  %status = load ptr, ptr %status_at
  %lane = call i64 @lane_number()
  %begin = add i64 %first, %lane
  %end = add i64 %first, %count
  call void @lanes_together()
  br label %head
head:
  %i = phi i64 [%begin, %entry], [%i_next, %again]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %fill, label %done
fill:
  %a = phi i64 [0, %head], [%a_next, %fill]
  %from = getelementptr ptr, ptr %frames, i64 %a
  %base = load ptr, ptr %from
  %step_at = getelementptr i64, ptr %steps, i64 %a
  %step = load i64, ptr %step_at
  %away = mul i64 %step, %i
  %sample = getelementptr i8, ptr %base, i64 %away
  %to = getelementptr ptr, ptr %frame, i64 %a
  store ptr %sample, ptr %to
  %a_next = add i64 %a, 1
  %a_more = icmp slt i64 %a_next, %arrays
  br i1 %a_more, label %fill, label %go
go:
  switch i64 %code, label %again [ {cases} ]
{calls}again:
  %i_next = add i64 %i, {lanes}
  br label %head
done:
  call void @lanes_together()
  ret void
}}
"""


_MEMSET = re.compile(
    r"call void @llvm\.memset\.p0\.i64\(ptr [^%]*(%[\w.]+), i8 0, i64 ([%\w.]+), i1 false\)"
)
_ZEROS = """
define internal void @fill_with_zeros(ptr %x, i64 %bytes) noinline nounwind {
entry:
  %count = lshr i64 %bytes, 3
  %some = icmp ne i64 %count, 0
  br i1 %some, label %head, label %end
head:
  %k = phi i64 [0, %entry], [%next, %head]
  %at = getelementptr i64, ptr %x, i64 %k
  store i64 0, ptr %at
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %head, label %end
end:
  ret void
}
"""


def fill_by_words(text: str) -> str:
    """A text that fills with zeros word by word: the target does it byte by byte."""
    return _MEMSET.sub(r"call void @fill_with_zeros(ptr \1, i64 \2)", text) + _ZEROS
