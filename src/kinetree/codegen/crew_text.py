"""Machine code of a crew: how a thread takes items, shares them out, and waits for more.

Words of the desk, of which different threads write different cache lines:

    WORD            next item, number of items (from bit 24 on), number of threads (from 48 on)
    DONE            how many items are done
    BUSY            1 while somebody shares items out
    JOB             code, records and number of the items at hand; functions that wait and wake
    OVER            1 where threads are to end
    SEATS + k LINE  of thread k: 1 while it waits or is about to; its lock

Whoever is to wait sets its seat to 1 and then looks once more for what it waits for, and whoever
has that puts it there and then looks at the seat: one of them sees the other (all of this is
sequentially consistent). Who changes the 1 of a seat back to 0 has to wake its thread, or is that
thread, which then need not wait.
"""

import platform

LINE = 16
WORD, DONE, BUSY, JOB, OVER, SEATS = (k * LINE for k in range(6))
CODE, RECORDS, TOTAL, WAIT, WAKE = range(JOB, JOB + 5)
ITEMS, LIMIT, FIRST = 2, 3, 4
"""Places in ``Code.frame``: number of items, of threads that may take them, and the records; before
these the desk, and where the address of the code of an item is."""

SPINS = 2000
"""How often a thread looks for work, or for the end of it, before it waits: some 20 to 80 µs."""

_X86 = "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
_ARM = "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
"""Instruction for a processor on which a thread only waits, by the name of the machine."""

_CLAIM = """
define internal i64 @claim(ptr %desk, i64 %me) {
entry:
  %word = getelementptr i64, ptr %desk, i64 {WORD}
  %first = load atomic i64, ptr %word seq_cst, align 8
  br label %look
look:
  %now = phi i64 [ %first, %entry ], [ %other, %again ]
  %next = and i64 %now, 16777215
  %rest = lshr i64 %now, 24
  %total = and i64 %rest, 16777215
  %limit = lshr i64 %now, 48
  %may = icmp ult i64 %me, %limit
  %left = icmp ult i64 %next, %total
  %both = and i1 %may, %left
  br i1 %both, label %try, label %none
try:
  %more = add i64 %now, 1
  %pair = cmpxchg ptr %word, i64 %now, i64 %more seq_cst seq_cst
  %other = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %mine, label %again
again:
  br label %look
mine:
  ret i64 %next
none:
  ret i64 -1
}
"""
"""Takes the next item: its number, or -1."""

_TAKE = """
define internal i1 @take(ptr %desk, i64 %me, i64 %item) {
entry:
  %code_at = getelementptr i64, ptr %desk, i64 {CODE}
  %code = load ptr, ptr %code_at
  %records_at = getelementptr i64, ptr %desk, i64 {RECORDS}
  %records = load ptr, ptr %records_at
  %total_at = getelementptr i64, ptr %desk, i64 {TOTAL}
  %total = load i64, ptr %total_at
  %record_at = getelementptr ptr, ptr %records, i64 %me
  %record = load ptr, ptr %record_at
  br label %work
work:
  %at = phi i64 [ %item, %entry ], [ %next, %work ]
  %before = phi i64 [ 0, %entry ], [ %count, %work ]
  call void %code(ptr %record, i64 %at)
  %count = add i64 %before, 1
  %next = call i64 @claim(ptr %desk, i64 %me)
  %more = icmp sge i64 %next, 0
  br i1 %more, label %work, label %end
end:
  %done_at = getelementptr i64, ptr %desk, i64 {DONE}
  %others = atomicrmw add ptr %done_at, i64 %count seq_cst
  %done = add i64 %others, %count
  %all = icmp eq i64 %done, %total
  ret i1 %all
}
"""
"""Does an item and all others that are left: whether all are done now."""

_SEAT = """
define void @wake(ptr %desk, i64 %k) {
  %line = mul i64 %k, {LINE}
  %place = add i64 %line, {SEATS}
  %seat = getelementptr i64, ptr %desk, i64 %place
  %was = atomicrmw xchg ptr %seat, i64 0 seq_cst
  %waits = icmp eq i64 %was, 1
  br i1 %waits, label %release, label %end
release:
  %lock_at = getelementptr i64, ptr %seat, i64 1
  %lock = load ptr, ptr %lock_at
  %wake_at = getelementptr i64, ptr %desk, i64 {WAKE}
  %function = load ptr, ptr %wake_at
  call void %function(ptr %lock)
  br label %end
end:
  ret void
}

define internal void @wait(ptr %desk, ptr %seat, i1 %comes) {
  br i1 %comes, label %rise, label %sit
rise:
  %was = atomicrmw xchg ptr %seat, i64 0 seq_cst
  %alone = icmp eq i64 %was, 1
  br i1 %alone, label %end, label %sit
sit:
  %lock_at = getelementptr i64, ptr %seat, i64 1
  %lock = load ptr, ptr %lock_at
  %wait_at = getelementptr i64, ptr %desk, i64 {WAIT}
  %function = load ptr, ptr %wait_at
  %found = call i32 %function(ptr %lock, i32 1)
  br label %end
end:
  ret void
}
"""
"""Wakes a thread that waits, or is about to; and waits, unless what is waited for comes."""

_SERVE = """
define void @serve(ptr %desk, i64 %me) {
entry:
  %over_at = getelementptr i64, ptr %desk, i64 {OVER}
  %line = mul i64 %me, {LINE}
  %place = add i64 %line, {SEATS}
  %seat = getelementptr i64, ptr %desk, i64 %place
  br label %begin
begin:
  br label %look
look:
  %n = phi i64 [ 0, %begin ], [ %m, %spin ]
  %over = load atomic i64, ptr %over_at seq_cst, align 8
  %ends = icmp ne i64 %over, 0
  br i1 %ends, label %end, label %try
try:
  %item = call i64 @claim(ptr %desk, i64 %me)
  %found = icmp sge i64 %item, 0
  br i1 %found, label %work, label %spin
spin:
  {PAUSE}
  %m = add i64 %n, 1
  %enough = icmp uge i64 %m, {SPINS}
  br i1 %enough, label %sit, label %look
sit:
  %ignored = atomicrmw xchg ptr %seat, i64 1 seq_cst
  %over_now = load atomic i64, ptr %over_at seq_cst, align 8
  %ends_now = icmp ne i64 %over_now, 0
  %late = call i64 @claim(ptr %desk, i64 %me)
  %has = icmp sge i64 %late, 0
  %comes = or i1 %ends_now, %has
  call void @wait(ptr %desk, ptr %seat, i1 %comes)
  br i1 %has, label %work, label %begin
work:
  %mine = phi i64 [ %item, %try ], [ %late, %sit ]
  %all = call i1 @take(ptr %desk, i64 %me, i64 %mine)
  br i1 %all, label %tell, label %begin
tell:
  call void @wake(ptr %desk, i64 0)
  br label %begin
end:
  ret void
}
"""
"""Works as thread ``me`` until it is over."""

_SHARE = """
define void @share(ptr %frame, ptr %c, ptr %s, ptr %e) {
entry:
  %desk = load ptr, ptr %frame
  %place_at = getelementptr ptr, ptr %frame, i64 1
  %place = load ptr, ptr %place_at
  %code = load ptr, ptr %place
  %total_at = getelementptr i64, ptr %frame, i64 {ITEMS}
  %total = load i64, ptr %total_at
  %limit_at = getelementptr i64, ptr %frame, i64 {LIMIT}
  %limit = load i64, ptr %limit_at
  %records = getelementptr ptr, ptr %frame, i64 {FIRST}
  %busy_at = getelementptr i64, ptr %desk, i64 {BUSY}
  %pair = cmpxchg ptr %busy_at, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %publish, label %alone
alone:
  %record = load ptr, ptr %records
  br label %each
each:
  %i = phi i64 [ 0, %alone ], [ %j, %one ]
  %further = icmp ult i64 %i, %total
  br i1 %further, label %one, label %end
one:
  call void %code(ptr %record, i64 %i)
  %j = add i64 %i, 1
  br label %each
publish:
  %code_at = getelementptr i64, ptr %desk, i64 {CODE}
  store ptr %code, ptr %code_at
  %records_at = getelementptr i64, ptr %desk, i64 {RECORDS}
  store ptr %records, ptr %records_at
  %all_at = getelementptr i64, ptr %desk, i64 {TOTAL}
  store i64 %total, ptr %all_at
  %done_at = getelementptr i64, ptr %desk, i64 {DONE}
  store atomic i64 0, ptr %done_at seq_cst, align 8
  %high = shl i64 %limit, 48
  %low = shl i64 %total, 24
  %now = or i64 %high, %low
  %word = getelementptr i64, ptr %desk, i64 {WORD}
  store atomic i64 %now, ptr %word seq_cst, align 8
  %few = icmp ult i64 %total, %limit
  %most = select i1 %few, i64 %total, i64 %limit
  br label %call
call:
  %k = phi i64 [ 1, %publish ], [ %l, %wake ]
  %someone = icmp ult i64 %k, %most
  br i1 %someone, label %wake, label %own
wake:
  call void @wake(ptr %desk, i64 %k)
  %l = add i64 %k, 1
  br label %call
own:
  %item = call i64 @claim(ptr %desk, i64 0)
  %found = icmp sge i64 %item, 0
  br i1 %found, label %work, label %look
work:
  %last = call i1 @take(ptr %desk, i64 0, i64 %item)
  br label %look
look:
  %n = phi i64 [ 0, %own ], [ 0, %work ], [ %m, %spin ], [ 0, %sit ]
  %done = load atomic i64, ptr %done_at seq_cst, align 8
  %ready = icmp eq i64 %done, %total
  br i1 %ready, label %close, label %spin
spin:
  {PAUSE}
  %m = add i64 %n, 1
  %enough = icmp uge i64 %m, {SPINS}
  br i1 %enough, label %sit, label %look
sit:
  %seat = getelementptr i64, ptr %desk, i64 {SEATS}
  %ignored = atomicrmw xchg ptr %seat, i64 1 seq_cst
  %done_now = load atomic i64, ptr %done_at seq_cst, align 8
  %comes = icmp eq i64 %done_now, %total
  call void @wait(ptr %desk, ptr %seat, i1 %comes)
  br label %look
close:
  store atomic i64 0, ptr %word seq_cst, align 8
  store atomic i64 0, ptr %busy_at seq_cst, align 8
  br label %end
end:
  ret void
}
"""
"""Shares the items of a frame out, takes part, and returns when all are done."""


def crew_text() -> str:
    """LLVM IR of the worker threads, for this machine."""
    declared, pause = _PAUSES.get(platform.machine().lower(), ("", ""))
    text = "\n".join([declared, _CLAIM, _TAKE, _SEAT, _SERVE, _SHARE])
    names = {name: globals()[name] for name in _NUMBERS}
    for name, x in (names | {"PAUSE": pause}).items():
        text = text.replace(f"{{{name}}}", str(x))
    return text


_NUMBERS = (
    "WORD", "DONE", "BUSY", "CODE", "RECORDS", "TOTAL", "WAIT", "WAKE", "OVER", "SEATS", "LINE",
    "ITEMS", "LIMIT", "FIRST", "SPINS",
)  # fmt: skip
