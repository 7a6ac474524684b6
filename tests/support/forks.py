"""Processes that share the tests: ``pytest --forks 2``, where there is ``fork``.

The tests are collected once. Each worker is a copy of the process that collected, begins with what
this has imported, and makes room for a fresh copy once it has grown by ``GROWTH``: memory stays
small whatever tests leave behind. A worker gets a few tests at a time, of the module that it is in
while there are some, so that fixtures of modules are made once; at the end it helps others.
"""

import atexit
import contextlib
import importlib
import os
import pickle
import selectors
import signal
import socket
import struct
import time
import warnings
from collections import deque

import pytest

from support import memory

CHUNK = 4
"""Tests that are given out at once; one of the last ``FEW``."""

FEW = 60

GROWTH = 0.8e9
"""Memory [bytes] by which a worker may grow before a fresh copy takes its place."""


AHEAD = ("matplotlib.pyplot", "scipy.stats", "xarray", "pandas", "dask.array", "pyarrow.parquet")
"""What tests import late, a second or more of each worker: once, where all of them are to run."""

MANY = 2000
"""Tests of which some will need all of these."""


REPORTS = "reports of a worker"
"""Name of a plugin that workers have."""


def is_worker(config) -> bool:
    """Whether this process is one of several that share the tests."""
    return config.pluginmanager.hasplugin(REPORTS)


def import_ahead(session) -> None:
    """Import once, before there are workers, what each of them would import."""
    if session.config.getoption("--forks") and len(session.items) > MANY:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in AHEAD:
                importlib.import_module(name)


class Channel:
    """Messages between two processes: objects that can be pickled."""

    def __init__(self, end):
        self.end = end

    def send(self, *message):
        """Send a message."""
        data = pickle.dumps(message)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.end.sendall(struct.pack("<q", len(data)) + data)

    def receive(self):
        """The next message; None where the other process has ended."""
        size = self._read(8)
        data = size and self._read(struct.unpack("<q", size)[0])
        return pickle.loads(data) if data else None

    def _read(self, count):
        found = bytearray()
        while len(found) < count:
            try:
                more = self.end.recv(min(count - len(found), 1 << 20))
            except ConnectionResetError:
                return None
            if not more:
                return None
            found += more
        return bytes(found)


# --- a worker ------------------------------------------------------------------------------------


class Reports:
    """Plugin of a worker: what is to be reported goes to the process that collected."""

    def __init__(self, channel, config):
        self.channel, self.config = channel, config

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.channel.send("report", data)

    def pytest_warning_recorded(self, warning_message, when, nodeid, location):
        text = warnings.WarningMessage(
            str(warning_message.message), UserWarning, warning_message.filename,
            warning_message.lineno,
        )  # fmt: skip
        self.channel.send("warning", text, when, str(nodeid), location)


def work(session, channel, number):
    """Run tests until there are no more, or this process has grown too large."""
    config, begun = session.config, memory.used()
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    plugins.register(Reports(channel, config), REPORTS)
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()  # its files are those of the process that was copied
    capture.start_global_capturing()
    folder = config._tmp_path_factory.getbasetemp() / f"worker{number}"
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder
    ahead = deque(ask(channel))
    while ahead:
        here = ahead.popleft()
        full = memory.used() > begun + GROWTH
        if not ahead and not full:
            ahead.extend(ask(channel))
        channel.send("begin", here)
        item = session.items[here]
        following = session.items[ahead[0]] if ahead and not full else None
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        channel.send("end", here)
        if following is None and ahead:
            break
    channel.send("bye", memory.used("VmHWM"))


def ask(channel):
    """Numbers of the next tests."""
    channel.send("more")
    answer = channel.receive()
    return answer[0] if answer else []


# --- the process that collected ------------------------------------------------------------------


class Worker:
    """A worker, seen from the process that collected."""

    def __init__(self, session, number, place, module=None):
        self.number, self.place, self.module = number, place, module
        self.running, self.given = None, set()
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries with threads that do not like copies
            self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _be_worker(session, Channel(theirs), number)
        theirs.close()


def _be_worker(session, channel, number):
    """Never returns."""
    atexit._clear()  # what is to be done at the end of the process that was copied
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what is in background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        work(session, channel, number)
        code = 0
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        import traceback

        channel.send("failed", traceback.format_exc())
    finally:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
        os._exit(code)


class Tests:
    """Tests that wait, module by module."""

    def __init__(self, items):
        self.waiting, self.left = {}, len(items)
        for k, item in enumerate(items):
            self.waiting.setdefault(str(item.path), deque()).append(k)
        self.fresh = deque(self.waiting)

    def next(self, worker) -> list:
        """The next tests for a worker: of its module, of a new one, or of the longest of all."""
        mine = self.waiting.get(worker.module)
        if not mine:
            module = self.fresh.popleft() if self.fresh else self._longest()
            if module is None:
                return []
            worker.module, mine = module, self.waiting[module]
        self.left -= (count := min(CHUNK if self.left > FEW else 1, len(mine)))
        return [mine.popleft() for _ in range(count)]

    def _longest(self):
        module = max(self.waiting, key=lambda m: len(self.waiting[m]), default=None)
        return module if module and self.waiting[module] else None

    def back(self, numbers, items):
        """Tests that a worker did not come to."""
        self.left += len(numbers)
        for k in reversed(numbers):
            self.waiting[str(items[k].path)].appendleft(k)


class Forks:
    """Plugin of ``--forks``: gives tests to workers and reports what they find."""

    def __init__(self, count):
        self.count, self.memory, self.copies = count, [], 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Run all tests in workers."""
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return None
        self.session, self.tests = session, Tests(session.items)
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.showfspath = False
        session.config._tmp_path_factory.getbasetemp()
        workers = {}
        try:
            with selectors.DefaultSelector() as self.waiting:
                for place in range(min(self.count, len(session.items))):
                    workers[place] = self._start(place)
                while self.waiting.get_map():
                    for key, _ in self.waiting.select():
                        self._hear(key.data, workers)
                    if session.shouldfail:
                        raise session.Failed(session.shouldfail)
                    if session.shouldstop:
                        raise session.Interrupted(session.shouldstop)
        finally:
            for worker in workers.values():
                _end(worker)
        return True

    def _start(self, place, module=None):
        worker = Worker(self.session, self.copies, place, module)
        self.copies += 1
        self.waiting.register(worker.channel.end, selectors.EVENT_READ, worker)
        return worker

    def _hear(self, worker, workers):
        """Answer one message of a worker."""
        kind, *rest = worker.channel.receive() or ("lost",)
        hook = self.session.config.hook
        if kind == "more":
            numbers = self.tests.next(worker)
            worker.given |= set(numbers)
            worker.channel.send(numbers)
        elif kind == "begin":
            worker.running = rest[0]
        elif kind == "end":
            worker.given.discard(rest[0])
            worker.running = None
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=self.session.config, data=rest[0])
            hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            names = ("warning_message", "when", "nodeid", "location")
            hook.pytest_warning_recorded.call_historic(kwargs=dict(zip(names, rest, strict=True)))
        else:
            self._ended(worker, workers, kind, rest)

    def _ended(self, worker, workers, kind, rest):
        self.waiting.unregister(worker.channel.end)
        _end(worker)
        left = sorted(worker.given)
        if kind == "bye":
            self.memory.append(rest[0])
        else:
            left = [k for k in left if k != worker.running]
            self._crashed(worker, rest[0] if rest else "the process ended")
        self.tests.back(left, self.session.items)
        if any(self.tests.waiting.values()):
            workers[worker.place] = self._start(worker.place, worker.module)

    def _crashed(self, worker, why):
        """Report the test that a worker did not survive."""
        if worker.running is None:
            raise RuntimeError(f"worker {worker.number} ended between tests: {why}")
        item = self.session.items[worker.running]
        report = pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed",
            longrepr=f"worker {worker.number} crashed while running {item.nodeid}: {why}",
            when="call", sections=[], duration=0, start=time.time(), stop=time.time(),
        )  # fmt: skip
        self.session.config.hook.pytest_runtest_logreport(report=report)

    def pytest_terminal_summary(self, terminalreporter):
        """How much memory workers had."""
        if self.memory:
            most = max(self.memory) / 1e9
            text = f"memory of {self.copies} workers, one after the other: at most {most:.2f} GB"
            terminalreporter.write_line(text)


def _end(worker):
    """End a worker, if it is still there, and forget its process."""
    worker.channel.end.close()
    if worker.pid:
        with contextlib.suppress(ProcessLookupError):
            if os.waitpid(worker.pid, os.WNOHANG)[0] == 0:
                _wait(worker.pid)
        worker.pid = 0


def _wait(pid, within=10.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
