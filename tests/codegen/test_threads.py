"""Threads over large batches: same numbers whatever their number, and no surprises."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen.runtime import threads
from kinetree.errors import ShapeError
from kinetree.model.define import kernel_of


@pytest.fixture(autouse=True)
def _same_setting_afterwards():
    before = threads._Setting.count
    yield
    threads._Setting.count = before


@pytest.fixture(scope="module")
def model():
    return kt.samples.double_pendulum()


@pytest.mark.parametrize("batch", [(1001,), (3, 700), (700, 3), (2, 1, 997)])
def test_results_are_the_same_for_any_number_of_threads(model, rng, batch):
    x = rng.standard_normal((3, *batch, 2))
    results = []
    for count in (1, 2, 3, 7):
        threads.set_threads(count)
        results.append(kt.inverse_dynamics(model, *x))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    middle = tuple(n // 2 for n in batch)
    alone = kt.inverse_dynamics(model, *(a[middle] for a in x))
    np.testing.assert_array_equal(results[0][middle], alone)


def test_work_is_divided_only_when_it_pays(model, rng, monkeypatch):
    used = []
    monkeypatch.setattr(threads, "_pool", lambda count: used.append(count) or _Inline())
    threads.set_threads(4)
    kt.gravity_force(model, rng.standard_normal((100, 2)))
    assert used == []
    kt.gravity_force(model, rng.standard_normal((100_000, 2)))
    assert set(used) == {3}
    used.clear()
    threads.set_threads(1)
    kt.gravity_force(model, rng.standard_normal((100_000, 2)))
    assert used == []


class _Inline:
    """An executor that runs jobs at once."""

    def submit(self, function, *args):
        function(*args)
        return self

    def result(self):
        return None


def test_broadcast_inputs_are_divided_like_the_others(model, rng):
    q, qd, qdd = rng.standard_normal(2), rng.standard_normal((5000, 2)), rng.standard_normal((1, 2))
    threads.set_threads(1)
    one = kt.inverse_dynamics(model, q, qd, qdd)
    threads.set_threads(3)
    np.testing.assert_array_equal(kt.inverse_dynamics(model, q, qd, qdd), one)


def test_results_go_where_they_are_wanted(model, rng):
    threads.set_threads(3)
    kernel = kernel_of(model, "inverse_dynamics")
    x = rng.standard_normal((3, 5000, 2))
    wanted = kernel.full(*x)
    out = np.empty((10_000, 2))[::2]
    assert kernel.full(*x, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    q = x[0].copy()
    kernel.full(q, *x[1:], out=q)  # an output that is an input
    np.testing.assert_array_equal(q, wanted)
    space = np.zeros((5001, 2))
    space[:-1] = x[0]
    kernel.full(space[:-1], *x[1:], out=space[1:])
    np.testing.assert_array_equal(space[1:], wanted)
    larger = np.empty((2, 5000, 2))
    kernel.full(*x, out=larger)  # NumPy repeats the inputs
    np.testing.assert_array_equal(larger[1], wanted)


def test_an_error_names_the_sample(model, rng):
    threads.set_threads(4)
    q = rng.standard_normal((4, 3000, 2))
    q[2, 1234, 1] = np.nan
    with pytest.raises(ShapeError, match=r"nan at index 1 of sample \(2, 1234\)"):
        kt.gravity_force(model, q)


def test_several_threads_may_call_at_once(model, rng):
    threads.set_threads(2)
    x = rng.standard_normal((3, 4000, 2))
    wanted = kt.inverse_dynamics(model, *x)
    wrong = []

    def work():
        for _ in range(10):
            if not np.array_equal(kt.inverse_dynamics(model, *x), wanted):
                wrong.append(1)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong


@pytest.mark.parametrize("bad", [0, -1, 1.5])
def test_an_impossible_number_of_threads_is_rejected(bad):
    with pytest.raises(ValueError, match="integer of at least 1, got"):
        threads.set_threads(bad)


def test_the_environment_sets_the_number(monkeypatch):
    monkeypatch.setattr(threads._Setting, "count", None)
    monkeypatch.setenv("KINETREE_THREADS", "3")
    assert threads.threads() == 3
    monkeypatch.setattr(threads._Setting, "count", None)
    monkeypatch.delenv("KINETREE_THREADS")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 6}, raising=False)
    assert threads.threads() == 3
    monkeypatch.setattr(threads._Setting, "count", None)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert threads.threads() == os.cpu_count()
    for text in ("0", "many", "-2"):
        monkeypatch.setattr(threads._Setting, "count", None)
        monkeypatch.setenv("KINETREE_THREADS", text)
        with pytest.raises(ValueError, match=f"KINETREE_THREADS must be .* got '{text}'"):
            threads.threads()


FORK = """
import os, warnings
import numpy as np
import kinetree as kt
from kinetree.codegen.runtime import threads

warnings.simplefilter("ignore")
threads.set_threads(2)
model = kt.samples.pendulum()
q = np.linspace(0, 1, 20000)[:, None]
before = kt.gravity_force(model, q)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(kt.gravity_force(model, q), before) else 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_starts_threads_of_its_own():
    if hasattr(os, "fork"):
        subprocess.run([sys.executable, "-c", FORK], check=True, timeout=600)
