"""Processes that run tests: forked from one that has imported everything but kinetree.

A child runs pytest in itself on some tests. It either records which lines of the source they
execute (mutants.recording), or replaces one module by a mutated one as it is imported.

Compiled code is found on disk by keys (kinetree.codegen.keys): a *request*, or that of *loops* for
every robot, names a text and the digest of the files of the source; a *program* is the digest of
the generated code itself, and the key of *procedures* holds their bytecode. The files say nothing
about a mutant, and a text that is found by its request is not executed. So children find what is
named by files in their own memory only, and programs and procedures, whose keys say all, on disk,
too, where they leave what they compile: the first of a machine would else all compile the same.
Procedures are compiled from their text, which Python looks up by the
name of the file: there it finds the text of the mutant.
"""

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import linecache
import os
import pkgutil
import resource
import select
import signal
import sys
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
    "scipy.interpolate", "trimesh",
)  # fmt: skip
BELOW = ("expr", "arrays", "codegen")  # packages of kinetree that import no mutated one
MEMORY = 12 * 2**30  # [bytes] a mutant that allocates for ever ends here
SAID_ALL = ("program ", "procedures\n")  # beginnings of keys that hold all that code depends on
WAITING = 8.0  # times the limit on CPU time that a child may take, waiting for others included


def warm_up():
    """Import what every child needs and no mutant changes."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE), str(ROOT / "tests"), str(ROOT / "docs")]
    for name in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in BELOW:
        package = importlib.import_module(f"kinetree.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)
    mutable = [name.replace("/", ".").removeprefix("src.") for name in PACKAGES]
    wrong = [name for name in sys.modules if name.startswith(tuple(mutable))]
    if wrong:
        raise RuntimeError(f"imported before it is mutated: {wrong}")


def run_all(tasks, jobs, end=None):
    """Fork a child for each task, ``jobs`` at a time; yield tasks with what their children say.

    Args:
        tasks: tuples of a name, a limit on CPU time [s] and a function, which the child calls
            with a function that says something.
        jobs: children at a time.
        end: ``time.monotonic()`` after which no more children begin.

    Yields:
        Name; what was said; ``"done"``, ``"crashed"`` or ``"timeout"``; CPU time [s].
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
            elapsed = time.monotonic() - begin
            seconds, ending = _cpu_time(pid, elapsed), None
            if reader in ready:
                piece = os.read(reader, 1 << 20)
                running[reader][4] = data = data + piece
                if not piece:
                    ending = "done"
            if ending is None and (seconds > limit or elapsed > WAITING * limit):
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


def _cpu_time(pid, elapsed):
    """CPU time [s] of a process and those it has waited for: that of a loaded machine, too."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:  # not Linux
        return elapsed
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


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

    options = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=line", f"--rootdir={ROOT}"]
    if "_hypothesis_pytestplugin" in sys.modules:
        options += ["-p", "_hypothesis_pytestplugin"]
    return pytest.main([*options, *arguments], plugins=[plugin])


class ChosenTests:
    """A pytest plugin that runs some tests in the given order and says which one failed."""

    def __init__(self, tests, say):
        self.place, self.say = {test: k for k, test in enumerate(tests)}, say
        self.passed, self.failed, self.count, self.fine = 0, False, 0, []

    def pytest_collection_modifyitems(self, items):
        """Only these tests, in this order."""
        items[:] = self.chosen(items)
        self.count = len(items)

    def chosen(self, items):
        """The tests to run, of all that are there."""
        found = [item for item in items if item.nodeid in self.place]
        return sorted(found, key=lambda item: self.place[item.nodeid])

    def pytest_collectreport(self, report):
        """A test file that cannot be imported has noticed the mutant."""
        self._note(report)

    def pytest_runtest_logreport(self, report):
        """Say what failed, count what passed."""
        self._note(report)
        called = report.when == "call" and report.passed
        self.passed += report.skipped or called
        if called:
            self.fine.append(report.nodeid)

    def _note(self, report):
        if report.failed and not self.failed:
            self.failed = True
            self.say({"failed": report.nodeid, "why": _last_line(report)})


class OtherCases(ChosenTests):
    """The same with cases of test functions that were not recorded.

    Args:
        functions: seconds of a case, by the names of the functions.
        known: tests that were run before.
        seconds: for all of them.
        say: see ``run_all``.
    """

    def __init__(self, functions, known, seconds, say):
        super().__init__((), say)
        self.functions, self.known, self.seconds = functions, {*known}, seconds

    def chosen(self, items):
        """In turn one of each function, as long as there is time."""
        cases: dict = {}
        for item in items:
            function = item.nodeid.split("[")[0]
            if function in self.functions and item.nodeid not in self.known:
                cases.setdefault(function, []).append(item)
        found, left = [], self.seconds
        for turn in range(max(map(len, cases.values()), default=0)):
            for function, seconds in self.functions.items():
                if turn < len(cases.get(function, ())) and seconds <= left:
                    found.append(cases[function][turn])
                    left -= seconds
        return found


def _last_line(report):
    lines = report.longreprtext.strip().splitlines()
    return (lines or [""])[0][:200]


def try_mutant(path, number, tests, others, explained, stages=(6, 18)):
    """What the child of a mutant does: change a module, run tests, stop at the first failure.

    Args:
        path: file of the module, relative to the root of the repository.
        number: which of its changes; None for none, to see that the tests pass.
        tests: those that cover the change, the most telling first. They are collected in
            stages, since most mutants die at once.
        others: functions of which other cases are tried then, and the time for them; see
            ``OtherCases``.
        explained: descriptions of changes that are known to change nothing.
        stages: where the list of tests is divided.
    """

    def work(say):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        source = (ROOT / path).read_text(encoding="utf-8")
        tree = ast.parse(source)
        if number is not None:
            tree, change = mutated(source, number)
            say({"change": change})
            if change in explained:
                return
        sys.meta_path.insert(0, _Replaced(path, ast.unparse(tree)))
        try:
            isolate_compiled_code()
        except Exception as error:  # kinetree cannot even be imported
            say({"failed": "import kinetree", "why": f"{type(error).__name__}: {error}"[:200]})
            return
        passed = count = 0
        parts = [tests[a:b] for a, b in zip((0, *stages), (*stages, None), strict=True)]
        plugins = [(part, ChosenTests(part, say)) for part in parts]
        for names, chosen in [*plugins, (others[0], OtherCases(others[0], tests, others[1], say))]:
            files = dict.fromkeys(test.split("::")[0] for test in names)
            if files:
                pytest_in_child(["-x", *files], chosen)
                say({"fine": chosen.fine})
            if chosen.failed:
                return
            passed, count = passed + chosen.passed, count + chosen.count
        say({"passed": passed, "count": count})

    return work


class _Replaced(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds and loads one module from a mutated text, which others find under its name, too."""

    def __init__(self, path, text):
        parts = Path(path).with_suffix("").parts[1:]
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        super().__init__(".".join(parts), str(ROOT / path))
        self.text = text
        lines = text.splitlines(keepends=True)
        linecache.cache[str(ROOT / path)] = (len(text), None, lines, str(ROOT / path))

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
        return compile(self.text, self.path, "exec")


def isolate_compiled_code():
    """What is named by files is found in memory only; other code on disk, too.

    Nothing is optimised in the background, which would take the time of the tests.
    """
    from kinetree.codegen import cache, keys
    from kinetree.codegen.procedures import native

    memory, get, put = {}, cache.Store.get, cache.Store.put

    def get_(self, key):
        found = memory.get(key)
        return get(self, key) if found is None and key.startswith(SAID_ALL) else found

    def put_(self, key, payload):
        memory[key] = payload
        if key.startswith(SAID_ALL):
            put(self, key, payload)

    cache.Store.get, cache.Store.put = get_, put_
    keys.source_digest = lambda: "this process"
    native.improve_later = lambda job: None
