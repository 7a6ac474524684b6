"""Threads that help compiled code: every item once, by whoever is there, and never waiting."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from kinetree.codegen.crew import ITEMS, LIMIT, MOST, Crew, can_help, shared_code, the_crew
from kinetree.codegen.crew_text import SEATS
from kinetree.codegen.procedures import procedure, record, sqrt
from kinetree.codegen.tied import Code, run

pytestmark = pytest.mark.skipif(not can_help(), reason="there are no locks to wait for")


@record
class Job:
    """What a thread does: sums, and who had an item."""

    me: int
    long: int
    sum: "float[:]"
    times: "int[:]"
    who: "int[:]"


@procedure
def add_up(j: Job, item: int) -> None:
    """A sum of roots, longer for some items than for others."""
    s = 0.0
    for k in range(j.long * (1 + item % 7)):
        s += sqrt(1.0 * k + item)
    j.sum[item] = s
    j.times[item] += 1
    j.who[item] = j.me


@record
class Whole:
    """Code that a procedure calls for all items."""

    code: Code


@procedure
def share_out(w: Whole, items: int) -> int:
    """All items, in the middle of a procedure."""
    w.code.frame[ITEMS] = items
    run(w.code)
    return items


def jobs(threads, items, long):
    """A call for some threads, and its arrays."""
    numbers = np.zeros(items), *np.zeros((2, items), dtype=np.int64)
    arrays = dict(zip(("sum", "times", "who"), numbers, strict=True))
    records = [Job(me=k, long=long, **arrays) for k in range(threads)]
    return Whole(code=shared_code(add_up, records)), arrays


def right(items, long):
    """Sums of one thread."""
    whole, arrays = jobs(1, items, long)
    share_out(whole, items)
    return arrays["sum"]


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 16])
def test_every_item_is_done_once(threads, rng):
    items, long = int(rng.integers(1, 300)), int(rng.integers(1, 400))
    the_crew().have(threads)
    whole, arrays = jobs(threads, items, long)
    for times in range(1, 30):
        share_out(whole, items)
        assert (arrays["times"] == times).all()
    np.testing.assert_array_equal(arrays["sum"], right(items, long))
    assert arrays["who"].max() < threads


def test_others_help_where_items_take_long():
    the_crew().have(2)
    whole, arrays = jobs(2, 64, 20_000)
    for _ in range(50):
        share_out(whole, 64)
        if {0, 1} == {*arrays["who"].tolist()}:
            return
    raise AssertionError("one thread did everything, 50 times")


def test_a_limit_leaves_others_out():
    the_crew().have(5)
    whole, arrays = jobs(5, 64, 2_000)
    whole.code.frame[LIMIT] = 2
    for _ in range(20):
        share_out(whole, 64)
        assert arrays["who"].max() < 2


def test_nobody_needs_to_come():
    whole, arrays = jobs(MOST, 50, 10)  # for whom there are no threads
    share_out(whole, 50)
    assert (arrays["times"] == 1).all()


def test_several_callers_at_once():
    the_crew().have(3)
    calls = [jobs(3, 40, 100) for _ in range(4)]

    def call_often(whole):
        for _ in range(200):
            share_out(whole, 40)

    callers = [threading.Thread(target=call_often, args=(whole,)) for whole, _ in calls]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60.0)
        assert not caller.is_alive()
    for _, arrays in calls:
        assert (arrays["times"] == 200).all()
        np.testing.assert_array_equal(arrays["sum"], right(40, 100))


def test_nobody_waits_with_a_processor():
    crew = the_crew()
    crew.have(3)
    whole, _ = jobs(3, 30, 100)
    share_out(whole, 30)
    for k in (1, 2):
        for _ in range(2000):
            if crew.desk[SEATS + 16 * k] == 1:
                break
            threading.Event().wait(0.005)
        assert crew.desk[SEATS + 16 * k] == 1  # it sits down to be woken


def _in_child(queue):
    """Share items out in a forked process, whose threads are new."""
    before = len(the_crew()._threads)
    the_crew().have(3)
    whole, arrays = jobs(3, 64, 1000)
    for _ in range(20):
        share_out(whole, 64)
    queue.put((before, len(the_crew()._threads), arrays["times"].tolist()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of threads and forks
def test_forked_processes_have_a_crew_of_their_own():
    the_crew().have(3)
    whole, arrays = jobs(3, 64, 1000)
    share_out(whole, 64)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == (0, 2, [20] * 64)
    child.join(20)
    assert child.exitcode == 0
    share_out(whole, 64)  # and the first one still has its own
    assert (arrays["times"] == 2).all()


def test_a_crew_that_is_closed_ends_its_threads():
    crew = Crew()
    crew.have(4)
    threads = list(crew._threads)
    assert all(thread.is_alive() for thread in threads)
    crew.close()
    assert not any(thread.is_alive() for thread in threads)


def test_a_process_ends_while_others_wait():
    text = """
        from kinetree.codegen.crew import the_crew
        the_crew().have(4)
        print("done")
    """
    run_ = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=60
    )
    assert (run_.returncode, run_.stdout, run_.stderr) == (0, "done\n", "")


def test_a_crew_has_no_more_than_there_are_seats():
    crew = Crew()
    crew._threads = [None] * MOST  # as if all were there
    assert crew.have(10**6) == MOST
    crew._threads = []
