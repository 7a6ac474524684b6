"""Memory of large results is used again, and never while somebody looks at it."""

import os
import threading
import time

import numpy as np
import pytest

from kinetree.codegen import machine_code as llvm
from kinetree.codegen.runtime import threads


def address(array):
    return array.__array_interface__["data"][0]


def test_dropped_memory_comes_back():
    a = threads.empty((1000, 40, 7), "float64")
    first = address(a)
    del a
    assert address(threads.empty((1000, 7, 40), "float64")) == first


def test_living_arrays_and_views_keep_their_memory():
    a = threads.empty((1000, 36, 7), "float64")
    a[:] = 1.0
    view = a[10:20, 3]
    del a
    b = threads.empty((1000, 36, 7), "float64")
    b[:] = 2.0
    assert np.all(view == 1.0)
    assert not np.may_share_memory(view, b)


def test_what_is_kept_is_bounded():
    arrays = [threads.empty((5, 2**22 + k), "float64") for k in range(3)]
    assert sum(block.size for block in threads._kept) <= threads.KEPT_BYTES
    many = [threads.empty((9000 + k,), "float64") for k in range(200)]
    assert len(threads._kept) <= 64
    assert len({address(a) for a in many}) == 200
    for k, a in enumerate(arrays):
        a[:] = k
    assert [float(a[-1, -1]) for a in arrays] == [0.0, 1.0, 2.0]


def test_small_and_enormous_results_are_numpys_own():
    assert threads.empty((10, 3), "float32").base is None
    assert threads.empty((10, 3), "float32").dtype == np.float32
    too_large = threads.KEPT_BYTES // 8 + 1
    assert threads.empty((too_large,), "float64").base is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.parametrize("lock", [threads._lock, llvm._compiling], ids=["memory", "compiler"])
def test_a_fork_waits_for_who_holds_a_lock(lock):
    holding = threading.Event()

    def hold():
        with lock:
            holding.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(600)
    child = os.fork()
    if child == 0:  # nothing of pytest may run in here
        os._exit(0 if lock.acquire(timeout=600) else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with lock:
        pass
