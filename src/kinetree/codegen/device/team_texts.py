"""LLVM's texts of what the lanes of a team share: waiting, sums, and entries."""

import re

LANES_ON_DEVICE = """@of_lanes = internal addrspace(3) global [{lanes} x double] undef, align 8
@words_of_team = external addrspace(3) global [0 x i64], align 16
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

define ptr @team_memory() alwaysinline nounwind {{
  %p = addrspacecast ptr addrspace(3) @words_of_team to ptr
  ret ptr %p
}}

define ptr @shared_memory_of_team() alwaysinline nounwind {{
  %p = call ptr @team_memory()
  ret ptr %p
}}

define i64 @copying_lane() alwaysinline nounwind {{
  %lane = call i64 @lane_number()
  ret i64 %lane
}}

define ptr @lane_values() alwaysinline nounwind {{
  %p = addrspacecast ptr addrspace(3) @of_lanes to ptr
  ret ptr %p
}}
"""

LANES_ON_PROCESSOR = """@lane_of_thread = global i64 0
@records_of_lane = global ptr null
@words_of_team = global ptr null
@values_of_lanes = global ptr null
@wait = global ptr null
@barrier = global ptr null

define i64 @lane_number() {
  %lane = load i64, ptr @lane_of_thread
  ret i64 %lane
}

define void @lanes_together() {
  %wait = load ptr, ptr @wait
  %some = icmp ne ptr %wait, null
  br i1 %some, label %meet, label %end
meet:
  %barrier = load ptr, ptr @barrier
  %code = call i32 %wait(ptr %barrier)
  br label %end
end:
  ret void
}

define ptr @team_memory() {
  %p = load ptr, ptr @records_of_lane
  ret ptr %p
}

define ptr @shared_memory_of_team() {
  %p = load ptr, ptr @words_of_team
  ret ptr %p
}

define i64 @copying_lane() {
  ret i64 0
}

define ptr @lane_values() {
  %p = load ptr, ptr @values_of_lanes
  ret ptr %p
}
"""
"""The same for threads of a CPU, each of which has this text for itself."""

OVER_LANES = """declare ptr @lane_values()
declare i64 @lane_number()
declare void @lanes_together() convergent

define double @lane_{name}(double %own) noinline nounwind convergent {{
entry:
  %values = call ptr @lane_values()
  call void @lanes_together()
  %lane = call i64 @lane_number()
  %own_at = getelementptr double, ptr %values, i64 %lane
  store double %own, ptr %own_at
  call void @lanes_together()
  %first = load double, ptr %values
  br label %head
head:
  %k = phi i64 [1, %entry], [%next, %head]
  %found = phi double [%first, %entry], [%more, %head]
  %at = getelementptr double, ptr %values, i64 %k
  %x = load double, ptr %at
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

ENTRY_ON_DEVICE = """declare void @turn(i64, i64, {kinds})
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()

define ptx_kernel void @team(i64 %parts, {given}) {{
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %p = trunc i64 %parts to i32
  %i = udiv i32 %c, %p
  %r = urem i32 %c, %p
  %item = zext i32 %i to i64
  %part = zext i32 %r to i64
  call void @turn(i64 %item, i64 %part, {given})
  ret void
}}

!nvvm.annotations = !{{!0, !1}}
!0 = !{{ptr @team, !"maxntidx", i32 {lanes}}}
!1 = !{{ptr @team, !"minctasm", i32 {teams}}}
"""

ENTRY_ON_PROCESSOR = """declare void @turn(i64, i64, {kinds})

define void @team(i64 %count, i64 %parts, {given}) {{
entry:
  br label %head
head:
  %c = phi i64 [0, %entry], [%next, %head]
  %item = udiv i64 %c, %parts
  %part = urem i64 %c, %parts
  call void @turn(i64 %item, i64 %part, {given})
  %next = add i64 %c, 1
  %all = mul i64 %count, %parts
  %some = icmp slt i64 %next, %all
  br i1 %some, label %head, label %end
end:
  ret void
}}
"""

PARAMETERS = (
    "ptr %memory, i64 %size, i64 %records, ptr %where, ptr %target, i64 %wanted_at, "
    "i64 %wanted, i64 %begin, i64 %chunk, i64 %stop"
)
"""Words of all items, how many an item has, and where records begin;  places of addresses, and
where these lead;  the word that says what an item waits for, and what it has to be;  the first
turn, turns of a part, and the end of all turns."""

TURN = """declare void @{name}({kinds})
declare i64 @lane_number()
declare ptr @team_memory()
declare ptr @shared_memory_of_team()
declare i64 @copying_lane()
declare void @lanes_together() convergent

define void @turn(i64 %item, i64 %part, {given}) convergent {{
entry:
  %own = alloca [{lane} x i64], align 16
  %start = mul i64 %item, %size
  %image = getelementptr i64, ptr %memory, i64 %start
  %state_at = getelementptr i64, ptr %image, i64 %wanted_at
  %state = load i64, ptr %state_at
  %waits = icmp eq i64 %state, %wanted
  %always = icmp slt i64 %wanted, 0
  %goes = or i1 %waits, %always
  br i1 %goes, label %begin_turn, label %end
begin_turn:
  %before = mul i64 %part, %chunk
  %first_turn = add i64 %begin, %before
  %after = add i64 %first_turn, %chunk
  %short = icmp slt i64 %after, %stop
  %end_turn = select i1 %short, i64 %after, i64 %stop
  %team = call ptr @team_memory()
  %first = getelementptr i64, ptr %image, i64 %records
  %second = getelementptr i64, ptr %first, i64 {records}
  %shared = call ptr @shared_memory_of_team()
  %lane = call i64 @lane_number()
  %copying = call i64 @copying_lane()
  br label %take
take:
  %k = phi i64 [%copying, %begin_turn], [%k_next, %take_one]
  %k_more = icmp slt i64 %k, {records}
  br i1 %k_more, label %take_one, label %own_words
take_one:
  %from = getelementptr i64, ptr %first, i64 %k
  %word = load i64, ptr %from
  %to = getelementptr i64, ptr %team, i64 %k
  store i64 %word, ptr %to
  %k_next = add i64 %k, {copying}
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
  %p = phi i64 [%copying, %words_there], [%p_next, %point_one]
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
  %is_record = icmp slt i64 %away, {records}
  %team_base = select i1 %is_record, ptr %team, ptr %shared
  %one_of_two = select i1 %of_team, ptr %team_base, ptr %image
  %base = select i1 %of_lane, ptr %own, ptr %one_of_two
  %address = getelementptr i64, ptr %base, i64 %away
  %holder = getelementptr i64, ptr %team, i64 %place
  store ptr %address, ptr %holder
  %p_next = add i64 %p, {copying}
  br label %point
go:
  call void @lanes_together()
  call void @{name}({passed})
  call void @lanes_together()
  %leads = icmp eq i64 %lane, 0
  %keeps = icmp sle i64 %stop, 0
  %both = and i1 %leads, %keeps
  br i1 %both, label %keep, label %end
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

What lies on the stack has the same address for all lanes of a GPU, and is another place for each:
threads of a CPU have records for themselves instead, and share working memory.
Where several teams share an item, none of them changes what lanes keep.
"""

CALLS = """declare void @{kernel}(ptr, ptr, ptr, ptr)

define internal void @call_{n}(i64 %number, {given}) alwaysinline {{
  %frame = alloca [{arrays} x ptr]
  %room = alloca [{room} x double], align 16
  %failed = alloca i64
  %item = udiv i64 %number, %count
  %rest = urem i64 %number, %count
  %turn = add i64 %begin, %rest
  %start = mul i64 %item, %size
  %image = getelementptr i64, ptr %memory, i64 %start
  %state_at = getelementptr i64, ptr %image, i64 %wanted_at
  %state = load i64, ptr %state_at
  %waits = icmp eq i64 %state, %wanted
  %always = icmp slt i64 %wanted, 0
  %goes = or i1 %waits, %always
  br i1 %goes, label %go, label %end
go:
{frame}
  call void @{kernel}(ptr %frame, ptr %room, ptr null, ptr %failed)
  br label %end
end:
  ret void
}}
"""
"""A kernel for one turn of an item, whose arrays a table places."""

CALL_PARAMETERS = (
    "ptr %memory, i64 %size, ptr %table, i64 %wanted_at, i64 %wanted, i64 %begin, i64 %count"
)

CALL_ARRAY = """  %word_at{k} = getelementptr i64, ptr %table, i64 {first}
  %word{k} = load i64, ptr %word_at{k}
  %apart_at{k} = getelementptr i64, ptr %table, i64 {second}
  %apart{k} = load i64, ptr %apart_at{k}
  %base{k} = getelementptr i64, ptr %image, i64 %word{k}
  %away{k} = mul i64 %apart{k}, %turn
  %place{k} = getelementptr i8, ptr %base{k}, i64 %away{k}
  %to{k} = getelementptr ptr, ptr %frame, i64 {k}
  store ptr %place{k}, ptr %to{k}
"""

CALLS_ON_DEVICE = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()

define ptx_kernel void @team(i64 %all, {given}) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %which = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %first = mul i32 %c, {threads}
  %n = add i32 %first, %t
  %number = zext i32 %n to i64
  %some = icmp slt i64 %number, %all
  br i1 %some, label %go, label %end
go:
  switch i32 %which, label %end [ {cases} ]
{calls}
end:
  ret void
}}

!nvvm.annotations = !{{!0}}
!0 = !{{ptr @team, !"maxntidx", i32 {threads}}}
"""
"""Kernels side by side; on a processor one after the other."""

CALLS_ON_PROCESSOR = """define void @team(i64 %all, {given}) {{
entry:
  br label %head
head:
  %number = phi i64 [0, %entry], [%next, %again]
  br label %kernel0
{calls}
end:
  br label %again
again:
  %next = add i64 %number, 1
  %some = icmp slt i64 %next, %all
  br i1 %some, label %head, label %out
out:
  ret void
}}
"""

ASSUME = "declare void @llvm.assume(i1)"
CALL_ALIGNED = """  call void @llvm.assume(i1 true) [ "align"(ptr %place{k}, i64 16) ]
"""
"""Numbers of such an array can be written two at a time."""

_MEMSET = re.compile(
    r"call void @llvm\.memset\.p0\.i64\(ptr [^%]*(%[\w.]+), i8 0, i64 ([%\w.]+), i1 false\)"
)
_ZEROS = """
declare i32 @llvm.nvvm.activemask() convergent
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) convergent
declare void @llvm.nvvm.bar.warp.sync(i32) convergent
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.cttz.i32(i32, i1)

define internal void @fill_with_zeros(ptr %x, i64 %bytes) noinline nounwind convergent {
entry:
  %mask = call i32 @llvm.nvvm.activemask()
  %before = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  %lower = and i32 %mask, %before
  %own = call i32 @llvm.ctpop.i32(i32 %lower)
  %all = call i32 @llvm.ctpop.i32(i32 %mask)
  %first = zext i32 %own to i64
  %step = zext i32 %all to i64
  %address = ptrtoint ptr %x to i64
  %low = trunc i64 %address to i32
  %shifted = lshr i64 %address, 32
  %high = trunc i64 %shifted to i32
  %size = trunc i64 %bytes to i32
  br label %lane
lane:
  %left = phi i32 [%mask, %entry], [%rest, %done]
  %source = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %low_there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %low, i32 %source, i32 31)
  %high_there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %high, i32 %source, i32 31)
  %size_there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %size, i32 %source, i32 31)
  %low_word = zext i32 %low_there to i64
  %high_word = zext i32 %high_there to i64
  %upper = shl i64 %high_word, 32
  %whole = or i64 %upper, %low_word
  %there = inttoptr i64 %whole to ptr
  %count_there = lshr i32 %size_there, 3
  %count = zext i32 %count_there to i64
  br label %head
head:
  %k = phi i64 [%first, %lane], [%next, %fill]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %fill, label %done
fill:
  %at = getelementptr i64, ptr %there, i64 %k
  store i64 0, ptr %at
  %next = add i64 %k, %step
  br label %head
done:
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %some = icmp ne i32 %rest, 0
  br i1 %some, label %lane, label %end
end:
  call void @llvm.nvvm.bar.warp.sync(i32 %mask)
  ret void
}
"""
"""Lanes that are here together fill what each of them has to, one after the other."""


def fill_by_words(text: str) -> str:
    """LLVM IR with calls of memset replaced by a loop in which lanes write words of zeros."""
    return _MEMSET.sub(r"call void @fill_with_zeros(ptr \1, i64 \2)", text) + _ZEROS
