"""Procedures are compiled quickly, then optimised in the background, to the same bits."""

import gc
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from kinetree.codegen import machine_code, progress
from kinetree.codegen.cache import Store, open_store
from kinetree.codegen.keys import kept_code
from kinetree.codegen.procedures import Procedure, improving, native, sqrt


def _root(x: float) -> float:
    y = x
    for _ in range(40):
        y = 0.5 * (y + x / y)
    return y + sqrt(x)


def _sums(x: "float[:]", n: int) -> float:  # pyright: ignore
    total = 0.0
    for i in range(n):
        total += x[i] * x[n - 1 - i] + _large(x[i])  # pyright: ignore
    return total


_large = Procedure(_root, inline=False)


@pytest.fixture
def found(tmp_path, monkeypatch):
    """A procedure of two parts, an empty cache, and the background held back until released.

    What it has to do for others waits until this is over.
    """
    others = improving._stop()
    monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
    held, compiled = threading.Event(), improving.branching_code_in_background
    monkeypatch.setattr(
        improving, "branching_code_in_background", lambda text: held.wait(20) and compiled(text)
    )
    yield Procedure(_sums), held
    held.set()
    improving.improve_now()
    for job in others:
        improving.improve_later(job)


def levels():
    return sorted((kept.name, kept.level) for kept in kept_code(open_store()))


def test_quick_code_is_there_first_and_optimised_code_takes_over_with_the_same_bits(found):
    sums, held = found
    x = np.random.default_rng(0).uniform(1, 2, 50)
    quick, before = sums(x, 50), sums.code
    assert levels() == [("_root", 0), ("_sums", 0)]
    held.set()
    end = time.monotonic() + 20
    while sums.code is before and time.monotonic() < end:
        time.sleep(0.01)
    assert sums.code is not before
    assert levels() == [("_root", 0), ("_root", 1), ("_sums", 0), ("_sums", 1)]
    assert sums(x, 50) == quick == sums.python(x, 50)


def test_what_is_left_can_be_done_at_once_and_says_how_far_it_is(found):
    sums, held = found
    sums(np.ones(3), 3)
    before, reached = sums.code, []
    held.set()
    improving.improve_now(lambda done, total: reached.append((done, total)))
    assert sums.code is not before
    assert [done for done, _ in reached] == list(range(reached[0][0], reached[-1][1] + 1))
    assert {total for _, total in reached} <= {0, 1, 2}
    improving.improve_now(lambda done, total: reached.append((done, total)))
    assert reached[-1] == (0, 0)


def test_optimised_code_on_disk_is_used_at_once(found):
    sums, held = found
    held.set()
    sums(np.ones(3), 3)
    improving.improve_now()
    again = Procedure(_sums)
    again(np.ones(3), 3)
    assert improving._State.jobs == []


def test_everything_is_optimised_at_once_where_that_is_set(found, monkeypatch):
    monkeypatch.setenv("KINETREE_OPTIMIZATION", "1")
    sums, _ = found
    sums(np.ones(3), 3)
    assert {level for _, level in levels()} == {1}


def test_a_process_ends_while_the_background_is_at_work(tmp_path):
    code = (
        "import time\n"
        "from kinetree.codegen.procedures import improving\n"
        "from kinetree.contact.collision.pair_distance import pair_distance\n"
        "assert pair_distance.code\n"
        "assert improving._State.jobs\n"
        "print(time.time(), flush=True)"
    )
    environment = {"KINETREE_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert time.time() - float(done.stdout) < 10
    assert done.stderr == ""
    kept = [entry.level for entry in kept_code(Store(str(tmp_path), 2**30))]
    assert kept.count(0) > 20
    assert kept.count(1) < kept.count(0) / 2  # it did not wait for all of it


def test_a_child_has_no_background(found):
    sums, _ = found
    sums(np.ones(3), 3)
    assert improving._State.jobs
    improving._State.jobs, kept = [*improving._State.jobs], improving._State.jobs
    thread, condition = improving._State.thread, improving._changed
    try:
        improving._after_fork()
        assert improving._State.jobs == []
        assert improving._State.thread is None
    finally:
        improving._State.jobs, improving._State.thread = kept, thread
        improving._changed = condition


def test_the_line_says_how_far_it_is():
    work = progress.Building("code of kinetree.contact (step), once on this machine")
    assert str(work).startswith("kinetree: preparing code of kinetree.contact")
    work.parts = 127
    work.advance()
    assert str(work).endswith("once on this machine: 1 of 127 parts")


def test_better_code_may_come_while_the_first_is_on_its_way(found, monkeypatch):
    sums, held = found
    loaded, coming, load = [], threading.Event(), native.load

    def slow(data, level):
        code = load(data, level)
        loaded.append((weakref.ref(code), code.address(sums.entry)))
        coming.wait(20)  # the background has optimised code, and wants it to be used
        time.sleep(0.05)
        return code

    def use(code):
        coming.set()
        Procedure.use(sums, code)

    monkeypatch.setattr(native, "load", slow)
    monkeypatch.setattr(sums, "use", use, raising=False)
    held.set()
    first = int(sums.place[0])
    improving.improve_now()
    gc.collect()
    alive = {address: code() for code, address in loaded}
    assert len(loaded) == 1
    assert alive[first] is not None  # another thread could be in there
    assert sums.code is not alive[first]
    assert sums.place[0] == sums.code.address(sums.entry) != first
    x = np.random.default_rng(0).uniform(1, 2, 50)
    assert sums(x, 50) == sums.python(x, 50)


def test_others_compile_while_the_background_is_at_work(monkeypatch):
    monkeypatch.setattr(machine_code, "_options", dict)  # alike for all code, as on x86-64
    inside, done = threading.Event(), threading.Event()

    def optimise():
        with machine_code._emitting(straight=False, patient=True):
            inside.set()
            done.wait(20)

    with machine_code.compiling():  # adds targets, for which all must wait
        pass
    background = threading.Thread(target=optimise)
    background.start()
    assert inside.wait(20)
    assert machine_code.object_code("define void @f() {\n  ret void\n}")
    with machine_code.compiling():
        assert background.is_alive()
    done.set()
    background.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_waits_for_a_background_that_failed(found, monkeypatch):
    sums, _ = found

    def fail(name, job):
        raise OSError("no space left")

    monkeypatch.setattr(improving, "_compile_in_background", fail)
    x = np.arange(1.0, 4.0)
    first = sums(x, 3)
    waiting = threading.Thread(target=improving.improve_now, daemon=True)
    waiting.start()
    waiting.join(20)
    assert not waiting.is_alive()
    assert sums(x, 3) == first
    assert improving._State.jobs == []
    for thread in threading.enumerate():  # its exception belongs to this test, not to the next one
        if thread.name == "kinetree optimises":
            thread.join(20)


def test_a_text_is_parsed_again_where_threads_got_in_each_others_way(monkeypatch):
    parse, failed = native.ast.parse, []

    def sometimes(text, *more):
        if not more and len(failed) < 3:
            failed.append(text)
            raise SystemError("AST constructor recursion depth mismatch (before=48, after=173)")
        return parse(text, *more)

    monkeypatch.setattr(native.ast, "parse", sometimes)
    assert Procedure(_root).tree.name == "_root"
    assert len(failed) == 3
