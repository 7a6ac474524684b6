"""Shared fixtures, and the collection of ``covers`` markers for docs/book.md."""

import gc
import json
import os
import shutil
import sys
import tempfile
import time
import zlib
from pathlib import Path

# Small matrices on several workers: threads of the linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of PyTorch

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from support import entered, forks, memory, pytorch_here, sampling

gc.disable()  # until everything is imported and collected

settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=2000)
settings.load_profile("default")

# Level 0, with one register to a vector, takes LLVM a fifth of the time and computes the same bits,
# as tests/codegen shows, where everything is compiled as it is for users.
os.environ.setdefault("KINETREE_OPTIMIZATION", "0")

# Compiled code is shared by all tests and workers, and kept for the next run: its keys hold digests
# of kinetree's source, the model and the versions. ``pytest --cache-clear`` starts from nothing.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
ROOT = Path(__file__).parents[1]
if WORKER is None:
    sampling.draw_number()
    os.environ["KINETREE_CACHE"] = str(ROOT / ".pytest_cache" / "d" / "kinetree")
    os.environ.pop("KINETREE_CACHE_SIZE", None)
    # In a fresh clone nothing has bytecode: let one worker write it for all.
    folders = {p.parent for p in Path(__file__).parent.glob("*/test_*.py")}
    fresh = not all(any(f.glob("__pycache__/test_*.pyc")) for f in folders)
    fresh = fresh and not sys.dont_write_bytecode
    os.environ["KINETREE_TESTS_FRESH"] = tempfile.mkdtemp(prefix="kinetree-") if fresh else ""
COLLECTED = Path(os.environ["KINETREE_TESTS_FRESH"] or ROOT) / "collected"


LONG = ("worlds/test_on_device", "feature_matrix/", "documents/test_pages",
        "viewer/test_in_the_browser", "peers/", "documents/", "simulation/",
        "contact/")  # fmt: skip
"""Where the longest tests are: they begin, so that no worker is left with one at the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if WORKER in (None, "gw0") and (path := config.getoption("--covers-file")):
        write_covers(path, items)
    if config.getoption("--sample") or config.getoption("--walks"):
        out = sampling.left_out(items, config.getoption("--walks"))
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]

    def place(item):
        path = item.nodeid.removeprefix("tests/")
        return next(
            (k for k, beginning in enumerate(LONG) if path.startswith(beginning)), len(LONG)
        )

    if WORKER is not None or config.getoption("--forks"):
        items.sort(key=place)  # the order within each place stays


def write_covers(path, items):
    """Add what the tests cover to a file, in the order of theirs, for docs/make_book.py."""
    before = json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else []
    found = {json.dumps(entry): entry for entry in before}
    for item in items:
        for marker in item.iter_markers("covers"):
            test, by = item.nodeid.split("[")[0], [_name(f) for f in _by(marker)]
            entry = {"test": test, "passages": list(marker.args), "by": by}
            found[json.dumps(entry)] = entry
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    entries = sorted(found.values(), key=lambda entry: entry["test"].split("::")[0].split("/"))
    Path(path).write_text(json.dumps(entries), encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    end = time.monotonic() + 120
    if WORKER not in (None, "gw0") and os.environ["KINETREE_TESTS_FRESH"]:
        while not COLLECTED.exists() and time.monotonic() < end:
            time.sleep(0.1)


def pytest_report_header(config):
    sampled = [sampling.header()] if config.getoption("--sample") else []
    return [pytorch_here.header() or "", *sampled]


def pytest_ignore_collect(collection_path):
    is_test = collection_path.suffix == ".py" and collection_path.is_file()
    if is_test and pytorch_here.is_left_out(collection_path.read_text(encoding="utf-8")):
        return True
    return None


def pytest_unconfigure():
    if WORKER is None and (folder := os.environ["KINETREE_TESTS_FRESH"]):
        shutil.rmtree(folder, ignore_errors=True)


def pytest_configure(config):
    if (count := config.getoption("--forks")) and hasattr(os, "fork"):
        config.pluginmanager.register(forks.Forks(count), "forks")


KEPT = [0.0]
"""Memory [bytes] after it was last let go."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if forks.is_worker(item.config):  # which gives way to a fresh one
        return
    # After every test: pages alone, which are one file, would leave a gigabyte.
    now = memory.used()
    KEPT[0] = min(KEPT[0] or now, now)
    if now > KEPT[0] + memory.MUCH:
        memory.let_go()
        KEPT[0] = memory.used()


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # of a worker, not of tests that it runs
        session.config.workeroutput["memory"] = memory.used("VmHWM")


MEMORY = []
"""The most that each worker had [bytes]."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    MEMORY.append(getattr(node, "workeroutput", {}).get("memory", 0.0))


def pytest_terminal_summary(terminalreporter):
    if any(MEMORY):
        most = ", ".join(f"{x / 1e9:.2f}" for x in MEMORY)
        terminalreporter.write_line(f"memory of the workers, at most: {most} GB")


@pytest.fixture
def rng(request):
    """A random generator seeded by the name of the test: different tests, same run every time."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def compilations(monkeypatch):
    """Says how many programs were compiled so far."""
    from kinetree.codegen import build

    count, compiled = [], build.object_code

    def counted(*arguments, **named):
        count.append(arguments)
        return compiled(*arguments, **named)

    monkeypatch.setattr(build, "object_code", counted)
    return lambda: len(count)


@pytest.fixture
def specialised():
    """Code for one robot alone, for tests of what it consists of."""
    import kinetree as kt

    with kt.tier("specialised"):
        yield


ENTERED: dict = {}
"""What set-ups of fixtures have entered, by where they are valid and name; see support.entered."""
JUDGED: set = set()
"""Test functions of which a case has called what they cover."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if not request.config.getoption("--check-covers"):
        return (yield)
    with entered.Watch() as watch:
        result = yield
    ENTERED[fixturedef.baseid, fixturedef.argname] = watch.entered
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if not item.config.getoption("--check-covers"):
        return (yield)
    # Markers of a class speak of its tests together, those of a test of itself.
    function, markers = item.nodeid.split("[")[0], item.iter_markers_with_node("covers")
    named = [by for node, marker in markers if node is item and (by := _by(marker))]
    if not named or function in JUDGED or entered.keeps_results(item.module):
        return (yield)
    with entered.Watch() as watch:
        result = yield
    found = watch.entered.union(
        *(e for (place, name), e in ENTERED.items()
          if name in item.fixturenames and item.nodeid.startswith(place))
    )  # fmt: skip
    for by in named:
        if not entered.is_called(by, found):
            names = " or ".join(map(_name, by))
            pytest.fail(f"this test is marked as covering {names}, which it never calls", False)
    JUDGED.add(function)
    return result


def _by(marker):
    """The functions that a ``covers`` marker names."""
    by = marker.kwargs.get("by", ())
    return by if isinstance(by, tuple) else (by,)


def pytest_addoption(parser):
    parser.addoption("--forks", type=int, default=0, help="processes that share the tests")
    parser.addoption("--covers-file", help="add what the tests cover to this JSON file")
    parser.addoption("--sample", action="store_true", help="of walks over all cases take a sample")
    parser.addoption("--walks", action="store_true", help="walks over all cases, nothing else")
    parser.addoption(
        "--check-covers", action="store_true", help="fail tests that do not call what they cover"
    )


def pytest_collection_finish(session):
    if WORKER == "gw0" and os.environ["KINETREE_TESTS_FRESH"]:
        COLLECTED.touch()
    forks.import_ahead(session)
    # What was imported and collected stays; looking for garbage in it is a tenth of all the time.
    memory.keep_early()
    gc.enable()


def _name(thing):
    if isinstance(thing, str):
        return thing
    module = getattr(thing, "__module__", None) or ""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", repr(thing))
    return f"{module}.{name}".removeprefix("kinetree.").lstrip(".")
