"""Procedures with their record given, as built-in functions."""
# pyright: reportInvalidTypeArguments=false

import gc
import threading
import weakref

import numpy as np
import pytest

from kinetree.codegen.procedures import binding, procedure, record
from kinetree.codegen.procedures.binding import bind


@record
class Account:
    """Numbers that procedures add to."""

    total: int
    values: "float[:]"


@procedure
def add(a: Account, n: int, twice: bool) -> int:
    """Add a number, or two times that."""
    a.total += 2 * n if twice else n
    a.values[0] += 0.5
    return a.total


@procedure
def count_up(a: Account, n: int) -> int:
    """Count for a while."""
    for i in range(n):
        a.total += (i ^ a.total) & 3
    return a.total


@procedure
def half(a: Account, x: float) -> int:
    """Not of integers alone."""
    a.values[0] = x / 2.0
    return 0


def account(total=0):
    return Account(total=total, values=np.zeros(1))


@pytest.mark.parametrize(
    ("n", "twice"), [(3, False), (-(2**40), True), (np.int64(7), 1), (True, 0)]
)
def test_it_computes_what_the_procedure_does(n, twice):
    one, other = account(5), account(5)
    assert bind(add, one)(n, twice) == add(other, n, twice) == one.total == other.total
    np.testing.assert_array_equal(one.values, other.values)


def test_python_without_usual_objects_calls_the_procedure(monkeypatch):
    monkeypatch.setattr(binding, "has_usual_objects", lambda: False)
    a = account(1)
    assert bind(add, a)(2, True) == 5 == a.total


@pytest.mark.parametrize(
    "arguments", [(), (1,), (1, False, 2), ("1", False), (1.5, False), (2**70, 0)]
)
def test_wrong_arguments_are_errors_and_change_nothing(arguments):
    a = account(4)
    with pytest.raises((TypeError, OverflowError)):
        bind(add, a)(*arguments)
    assert a.total == 4


def test_what_cannot_be_bound_is_named():
    with pytest.raises(TypeError, match=r"<procedure half> cannot be bound: it takes or returns"):
        bind(half, account())
    with pytest.raises(TypeError, match=r"add: a must be a Account, got list"):
        bind(add, [])


def test_it_keeps_its_record_and_lets_it_go():
    a = account(1)
    values, function = weakref.ref(a.values), bind(add, a)
    del a
    gc.collect()
    assert function(1, False) == 2
    del function
    gc.collect()
    assert values() is None


def test_better_code_takes_over():
    a = account()
    function = bind(add, a)
    add.use(add.code)  # as the background does, with code of other addresses
    assert function(1, False) == 1
    add.place[0] = 0
    add.use(add.code)
    assert add.place == add.code.address(add.entry)
    assert function(1, False) == 2


def test_other_threads_run_meanwhile():
    a, seen = account(), []
    thread = threading.Thread(target=lambda: seen.append(bind(count_up, a)(300_000_000)))
    bind(count_up, account())(1)  # compiled
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
    thread.join()
    assert turns > 100
    assert seen
