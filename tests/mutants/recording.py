"""Which lines of the source a test executes, those of procedures included.

Python executes no line of a procedure: its machine code is made from its text. While tests are
recorded, that code notes its lines itself: before each statement it stores a byte at an address
that stands for the line. The addresses are the same in all processes, so that the code is found on
disk like any other.
"""

import contextlib
import ctypes
import hashlib
import mmap
import os
import sys
import threading

import numpy as np

from mutants.children import PACKAGES, ROOT, isolate_compiled_code, pytest_in_child, run_all

BASE = 0x2000_0000_0000  # [address] of the notes: nothing else is mapped there
MOST_LINES = 4096  # of a file
MOST_CALLS, MOST_EVENTS = 300, 10_000  # of a function and its lines that Python 3.11 looks at
_FIXED = 0x100000  # MAP_FIXED_NOREPLACE of Linux


class LineRecorder:
    """A pytest plugin that runs each test in a child of its own and says what it executes.

    In a process of its own a test finds nothing that others have traced and compiled, so that the
    lines are those of the texts behind its kernels, too, and its time is that which a mutant takes.
    """

    def __init__(self, say, share, limit, notes):
        self.say, self.share, self.limit, self.notes = say, share, limit, notes

    def pytest_runtestloop(self, session):
        """Instead of pytest's own loop."""
        part, parts, each = self.share
        items = _few_of_each(session.items, each)[part::parts]
        tasks = [(item.nodeid, self.limit, self._one(item)) for item in items]
        for name, found, ending, seconds in run_all(tasks, 1):
            passed = ending == "done" and found and found[-1]["passed"]
            lines = found[-1]["lines"] if passed else {}
            self.say({"test": name, "passed": bool(passed), "seconds": seconds, "lines": lines})
        return True

    def _one(self, item):
        def work(say):
            lines = {}
            self.notes.clear()
            with _recorded(lines):
                reports = item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            del reports
            for path, numbers in self.notes.lines().items():
                lines.setdefault(path, set()).update(numbers)
            passed = not item.session.testsfailed
            say({"passed": passed, "lines": {path: sorted(n) for path, n in lines.items()}})

        return work


def _few_of_each(items, each):
    """At most so many cases of every test function, spread over all it has."""
    cases: dict = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    if each is None:
        return items
    return [found[k * len(found) // min(each, len(found))] for found in cases.values()
            for k in range(min(each, len(found)))]  # fmt: skip


def record_file(path, share, limit):
    """What the child of a test file does: record its tests.

    Args:
        path: of the file.
        share: number of a part, how many parts there are, and how many cases of each test to
            record, None for all.
        limit: [s] of CPU for a test.
    """

    def work(say):
        isolate_compiled_code()
        notes = ProcedureLines()
        notes.record()
        pytest_in_child([path], LineRecorder(say, share, limit, notes))

    return work


class ProcedureLines:
    """Bytes that the code of procedures sets, one for each line of the packages."""

    def __init__(self):
        files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
        self.files = {str(file): n for n, file in enumerate(files)}
        digest = hashlib.sha256()
        for file in files:
            digest.update(f"{file.name}\n".encode() + file.read_bytes())
        self.digest = digest.hexdigest()
        size = len(files) * MOST_LINES
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3,
                                ctypes.c_long]  # fmt: skip
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED
        got = system.mmap(BASE, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
        if got != BASE:
            raise OSError(ctypes.get_errno(), f"no memory at {BASE:#x} for notes of procedures")
        self.memory = (ctypes.c_uint8 * size).from_address(BASE)

    def record(self):
        """From now on code of procedures that is compiled notes the lines that it executes."""
        from kinetree.codegen.procedures import on_disk, writer

        files, written = self.files, writer._Writer.body

        def body(self, statements):
            for statement in statements:
                number = files.get(self.procedure.file)
                if not self.done and number is not None and hasattr(statement, "lineno"):
                    at = BASE + number * MOST_LINES + self.line(statement)
                    self.emit(f"store i8 1, ptr inttoptr (i64 {at} to ptr)")
                written(self, [statement])

        writer._Writer.body = body
        on_disk._writer = lambda: f"notes lines of {self.digest}"

    def clear(self):
        """Forget what was noted."""
        ctypes.memset(BASE, 0, len(self.memory))

    def lines(self):
        """Numbers of the lines that were executed, by file."""
        found, paths = {}, list(self.files)
        for place in np.flatnonzero(np.frombuffer(self.memory, np.uint8)).tolist():
            number, line = divmod(place, MOST_LINES)
            found.setdefault(paths[number][len(str(ROOT)) + 1 :], set()).add(line)
        return found


@contextlib.contextmanager
def _recorded(lines):
    """Note the lines of the packages that are executed here, by file."""
    wanted, root = tuple(str(ROOT / package) + os.sep for package in PACKAGES), len(str(ROOT)) + 1

    def place(code):
        return code.co_filename[root:] if code.co_filename.startswith(wanted) else None

    if hasattr(sys, "monitoring"):  # Python 3.12
        monitoring, tool = sys.monitoring, sys.monitoring.COVERAGE_ID

        def line(code, number):
            if path := place(code):
                lines.setdefault(path, set()).add(number)
            return monitoring.DISABLE

        monitoring.use_tool_id(tool, "mutants")
        monitoring.register_callback(tool, monitoring.events.LINE, line)
        monitoring.set_events(tool, monitoring.events.LINE)
        yield
        monitoring.set_events(tool, 0)
        return

    calls: dict = {}

    def trace(frame, event, argument):
        code = frame.f_code
        path = place(code)
        calls[code] = calls.get(code, 0) + 1
        if path is None or calls[code] > MOST_CALLS:
            return None
        seen, left = lines.setdefault(path, set()), MOST_EVENTS

        def local(frame, event, argument):
            nonlocal left
            if event == "line":
                seen.add(frame.f_lineno)
                left -= 1
            return local if left > 0 else None

        return local

    threading.settrace(trace)
    sys.settrace(trace)
    yield
    sys.settrace(None)
