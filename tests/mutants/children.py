"""Processes that run tests: forked from one that has imported everything but kinetree.

A child runs pytest in itself on some tests. It either records which lines of the source they
execute, or replaces one module by a mutated one as it is imported.

Compiled code is found on disk by two keys (kinetree.codegen.build): a *request*, which names a text
and the digest of the files of the source, and a *program*, which is the digest of the generated
code itself. The files say nothing about a mutant, and a text that is found by its request is not
executed. So children find requests in their own memory only, and programs, which are the same
whoever asks, on disk, too; mutants write nothing.
"""

import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from pathlib import Path

from mutants.changes import mutated

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGES = tuple(
    f"src/kinetree/{name}" for name in ("spatial", "joints", "algorithms", "loops", "contact")
)
WARM = (
    "numpy", "numpy.linalg", "numpy.random", "llvmlite.binding", "pytest", "hypothesis",
    "hypothesis.strategies", "_hypothesis_pytestplugin", "lxml.etree", "mpmath",
    "scipy.linalg", "scipy.integrate", "scipy.optimize", "scipy.spatial.transform", "unittest.mock",
)  # fmt: skip
MEMORY = 12 * 2**30  # [bytes] a mutant that allocates for ever ends here


def warm_up():
    """Import what every child needs and no mutant changes."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE), str(ROOT / "tests"), str(ROOT / "docs")]
    for name in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def run_all(tasks, jobs, end=None):
    """Fork a child for each task, ``jobs`` at a time; yield tasks with what their children say.

    Args:
        tasks: tuples of a name, a time limit [s] and a function of a list, which the child calls
            and which puts what it finds into the list.
        jobs: children at a time.
        end: ``time.monotonic()`` after which no more children begin.

    Yields:
        Name; list; ``"done"``, ``"crashed"`` or ``"timeout"``; seconds.
    """
    waiting, running = list(reversed(tasks)), {}
    while waiting or running:
        while waiting and len(running) < jobs and (end is None or time.monotonic() < end):
            name, limit, work = waiting.pop()
            pid, reader = _forked(work)
            running[reader] = [name, pid, time.monotonic(), limit, b""]
        if end is not None and time.monotonic() >= end:
            waiting.clear()
        ready = select.select(list(running), [], [], 0.2)[0]
        for reader in list(running):
            name, pid, begin, limit, data = running[reader]
            seconds = time.monotonic() - begin
            ending = None
            if reader in ready:
                piece = os.read(reader, 1 << 20)
                running[reader][4] = data = data + piece
                if not piece:
                    ending = "done"
            if ending is None and seconds > limit:
                ending = "timeout"
            if ending:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                os.close(reader)
                del running[reader]
                found = [json.loads(line) for line in data.split(b"\n")[:-1]]
                if ending == "done" and (not found or found[-1] != "end"):
                    ending = "crashed"
                yield name, [f for f in found if f != "end"], ending, seconds


def _forked(work):
    """A child that calls ``work(say)``, and the end of a pipe with a line for each thing said."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid, reader
    status = 1
    try:
        os.setpgid(0, 0)
        os.close(reader)
        os.set_inheritable(writer, False)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)

        def say(thing):
            os.write(writer, json.dumps(thing).encode() + b"\n")

        work(say)
        say("end")
        status = 0
    finally:
        os._exit(status)


# --- pytest in a child ----------------------------------------------------------------------------


def pytest_in_child(arguments, plugin):
    """Run pytest in this process, as the project is configured, without its caches."""
    import pytest

    options = ["-q", "-p", "no:cacheprovider", "--assert=plain", f"--rootdir={ROOT}"]
    if "_hypothesis_pytestplugin" in sys.modules:
        options += ["-p", "_hypothesis_pytestplugin"]
    return pytest.main([*options, *arguments], plugins=[plugin])


class ChosenTests:
    """A pytest plugin that runs some tests in the given order and says which one failed."""

    def __init__(self, tests, say):
        self.place, self.say = {test: k for k, test in enumerate(tests)}, say
        self.passed, self.failed = 0, False

    def pytest_collection_modifyitems(self, items):
        """Only these tests, in this order."""
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])

    def pytest_collectreport(self, report):
        """A test file that cannot be imported has noticed the mutant."""
        self._note(report)

    def pytest_runtest_logreport(self, report):
        """Say what failed, count what passed."""
        self._note(report)
        self.passed += report.when == "call" and report.passed

    def _note(self, report):
        if report.failed and not self.failed:
            self.failed = True
            self.say({"failed": report.nodeid, "why": _last_line(report)})


def _last_line(report):
    lines = report.longreprtext.strip().splitlines()
    errors = [line for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[0][:200]


def try_mutant(path, number, tests, explained, stages=(6, 18)):
    """What the child of a mutant does: change a module, run tests, stop at the first failure.

    Args:
        path: file of the module, relative to the root of the repository.
        number: which of its changes; None for none, to see that the tests pass as they are.
        tests: those that cover the change, the most telling first. They are collected in
            stages, since most mutants die at once.
        explained: descriptions of changes that are known to change nothing.
        stages: where the list of tests is divided.
    """

    def work(say):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if number is not None:
            tree, change = mutated((ROOT / path).read_text(encoding="utf-8"), number)
            say({"change": change})
            if change in explained:
                return
            sys.meta_path.insert(0, _Replaced(path, tree))
        try:
            _isolate_compiled_code(writes=False)
        except Exception as error:  # kinetree cannot even be imported
            say({"failed": "import kinetree", "why": f"{type(error).__name__}: {error}"[:200]})
            return
        passed = 0
        for begin, end in zip((0, *stages), (*stages, None), strict=True):
            chosen = ChosenTests(tests[begin:end], say)
            files = dict.fromkeys(test.split("::")[0] for test in tests[begin:end])
            if files:
                pytest_in_child(["-x", *files], chosen)
            if chosen.failed:
                return
            passed += chosen.passed
        say({"passed": passed})

    return work


class _Replaced(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds and loads one module from a mutated tree."""

    def __init__(self, path, tree):
        parts = Path(path).with_suffix("").parts[1:]
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        super().__init__(".".join(parts), str(ROOT / path))
        self.tree = tree

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        package = Path(self.path).name == "__init__.py"
        spec = importlib.machinery.ModuleSpec(self.name, self, origin=self.path, is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [str(Path(self.path).parent)]
        return spec

    def get_code(self, fullname):
        return compile(self.tree, self.path, "exec")


def _isolate_compiled_code(writes):
    """Requests are found in memory only; programs on disk as well, where mutants write nothing."""
    from kinetree.codegen import build as keys
    from kinetree.codegen import cache

    memory, get, put = {}, cache.Store.get, cache.Store.put

    def get_(self, key):
        found = memory.get(key)
        return get(self, key) if found is None and not key.startswith("request") else found

    def put_(self, key, payload):
        memory[key] = payload
        if writes and not key.startswith("request"):
            put(self, key, payload)

    cache.Store.get, cache.Store.put = get_, put_
    keys.source_digest = lambda: "this process"


# --- Which lines a test executes ------------------------------------------------------------------


class LineRecorder:
    """A pytest plugin that runs each test in a child of its own and says what it executes.

    In a process of its own a test finds nothing that others have traced and compiled, so that the
    lines are those of the texts behind its kernels, too, and its time is that which a mutant takes.
    """

    def __init__(self, say, share, limit):
        self.say, self.share, self.limit = say, share, limit

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
            with _recorded(lines):
                reports = item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            del reports
            _add_procedures(lines)
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
        limit: [s] for a test.
    """

    def work(say):
        _isolate_compiled_code(writes=True)
        pytest_in_child([path], LineRecorder(say, share, limit))

    return work


def _add_procedures(lines):
    """Add the lines of procedures that were loaded as machine code, with all that they can reach.

    Which of them ran is not known: Python executes none of their lines.
    """
    from kinetree.codegen.procedures.native import Procedure

    wanted, root = tuple(str(ROOT / package) + os.sep for package in PACKAGES), len(str(ROOT)) + 1
    for loaded in gc.get_objects():
        if not isinstance(loaded, Procedure) or "code" not in vars(loaded):
            continue
        for each in loaded.reached:
            code = each.function.__code__
            if code.co_filename.startswith(wanted):
                numbers = {n for *_, n in code.co_lines() if n is not None}
                lines.setdefault(code.co_filename[root:], set()).update(numbers)


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

    def trace(frame, event, argument):
        path = place(frame.f_code)
        if path is None:
            return None
        seen = lines.setdefault(path, set())

        def local(frame, event, argument):
            if event == "line":
                seen.add(frame.f_lineno)
            return local

        return local

    threading.settrace(trace)
    sys.settrace(trace)
    yield
    sys.settrace(None)
