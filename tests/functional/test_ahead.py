"""Code built ahead of the work, and what is said meanwhile."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from support.effort import until

import kinetree as kt
from kinetree.codegen import progress, tiers
from kinetree.codegen.runtime import kernel as kernel_module
from kinetree.errors import UnknownNameError
from kinetree.functional import ahead
from kinetree.model.define import kernel_of


@pytest.fixture
def model():
    return kt.samples.double_pendulum()


@pytest.fixture
def built(monkeypatch):
    """Names and variants of what is built."""
    found, build = [], kernel_module.build

    def noting(kernel, dtype, wide, level):
        found.append((kernel.name, dtype, wide, level))
        return build(kernel, dtype, wide, level)

    monkeypatch.setattr(kernel_module, "build", noting)
    return found


def test_code_that_was_built_ahead_is_used(model, built):
    kt.warm_up(model, kt.inverse_dynamics)
    name = "inverse_dynamics"
    assert sorted(built) == [(name, "float64", False, 1), (name, "float64", True, 1)]
    q = np.zeros((40, 2))
    kt.inverse_dynamics(model, q[0], q[0], q[0])
    kt.inverse_dynamics(model, q, q, q)
    with kt.tier("general"):
        assert kt.tier_of(model, kt.inverse_dynamics) == "specialised"
        kt.inverse_dynamics(model, q, q, q)
    assert len(built) == 2
    assert kernel_of(model, name).is_settled


def test_variants_and_options(model, built):
    body = model.body_names[-1]
    kt.warm_up(model, [kt.mass_matrix, (kt.jacobian, {"name": body})], batch=False, dtype="float32")
    assert sorted(built) == [(n, "float32", False, 1) for n in ("jacobian", "mass_matrix")]


def test_by_default_all_that_was_used_and_the_usual_functions_are_built(model, built):
    kt.kinetic_energy(model, [0.1, 0.2], [1.0, 2.0])
    kt.warm_up(model, single=False)
    names = {name for name, _, wide, level in built if wide and level}
    assert names == {"kinetic_energy", "inverse_dynamics", "forward_dynamics", "mass_matrix"}


def test_for_closed_chains_all_that_was_used_is_built(built):
    closed = kt.samples.four_bar()
    q = kt.loops.assemble(closed)
    kt.forward_dynamics(closed, q, *np.zeros((2, closed.nv)))
    built.clear()
    kt.warm_up(closed, batch=False)
    assert "forward_dynamics" in {name for name, *_ in built}
    assert kt.tier_of(closed, kt.forward_dynamics) == "specialised"


def test_a_little_of_the_work_builds_what_it_needs(model, built):
    q = np.zeros((3, 2))
    kt.rollout(model, q, steps=2)
    assert {level for *_, level in built} == {0}
    kt.warm_up(model, lambda: kt.rollout(model, q, steps=2))
    assert built[-1][2:] == (True, 1)
    count = len(built)
    kt.rollout(model, q, steps=2)
    assert len(built) == count


def test_compile_optimises_at_once(model, built):
    kt.compile(kt.mass_matrix, model)(np.zeros(2))
    assert built == [("mass_matrix", "float64", False, 1)]


def test_progress_is_reported(model):
    seen = []
    kt.warm_up(model, [kt.mass_matrix, kt.kinetic_energy], progress=lambda *x: seen.append(x))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_ctrl_c_ends_it(model, monkeypatch):
    begun, ended = [], threading.Event()

    def interrupted():
        begun.append(1)
        raise KeyboardInterrupt

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait=True, **options):
            super().shutdown(wait=False, **options)
            ended.set()
            super().shutdown(wait)

    monkeypatch.setattr(ahead, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(ahead, "threads", lambda: 1)
    with pytest.raises(KeyboardInterrupt):
        kt.warm_up(model, [interrupted, lambda: ended.wait(600), interrupted])
    assert begun == [1]


@pytest.mark.parametrize(
    ("functions", "options", "message"),
    [
        ([1], {}, "warm_up takes functions, and pairs of one and its options, got 1"),
        (5, {}, "warm_up takes functions, and pairs of one and its options, got 5"),
        ("mass_matrx", {}, "got 'mass_matrx'; write kt.mass_matrix, without quotes"),
        (["fast"], {}, "warm_up takes functions, and pairs of one and its options, got 'fast'$"),
        (
            kt.rollout,
            {},
            r"what code rollout needs depends .* such as lambda: kt.rollout\(\.\.\.\)",
        ),
        (kt.jacobian, {}, "jacobian needs name= to say which code is meant"),
        (kt.mass_matrix, {"dtype": "int8"}, "dtype must be float64 or float32, got 'int8'"),
        (kt.mass_matrix, {"batch": False, "single": False}, "nothing to build with batch=False"),
    ],
)
def test_wrong_arguments(model, functions, options, message):
    with pytest.raises(UnknownNameError, match=message):
        kt.warm_up(model, functions, **options)


def test_tier_of_whatever_can_be_called(model):
    q = np.zeros(2)
    assert kt.tier_of(model, kt.compile(kt.mass_matrix, model)) == "specialised"
    derivative = kt.differentiate(kt.inverse_dynamics, wrt="q")
    with pytest.raises(UnknownNameError, match=r"no code for model .* yet: .* Call it once"):
        kt.tier_of(model, derivative)
    with kt.tier("general"):
        derivative(model, q, q, q)
        assert kt.tier_of(model, derivative) == "general"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (len, "len is not a function of kinetree, nor one under @kinetree.kernel$"),
        ("mass_matrix", "'mass_matrix' is not .*; write kt.mass_matrix, without quotes"),
        (kt.simulate, "simulate has no separate code: it runs in Python"),
    ],
)
def test_tier_of_what_has_none(model, function, message):
    with pytest.raises(UnknownNameError, match=message):
        kt.tier_of(model, function)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watched(monkeypatch):
    """Standard error as a terminal, and little patience."""
    screen = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=screen, modules={}))
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.delenv("KINETREE_PROGRESS", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    return screen


def test_long_compilation_is_announced(watched):
    with progress.building("forward_dynamics", 1) as work:
        with progress.building("inner"):
            work.operations = 40_000
        line = "compiling forward_dynamics, 40000 operations: about 4 s"
        until(lambda: line in watched.getvalue())
    assert "inner" not in watched.getvalue()


def test_a_terminal_that_takes_nothing_back_gets_one_line(watched, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with progress.building("forward_dynamics"):
        until(lambda: watched.getvalue() == "kinetree: preparing forward_dynamics\n")


@pytest.mark.parametrize("stream", [None, SimpleNamespace(write=print)])
def test_programs_without_a_standard_error(watched, monkeypatch, stream):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, modules={}))
    assert not progress.is_shown()


def test_quick_or_noninteractive_runs_print_nothing(watched, monkeypatch):
    with monkeypatch.context() as patience:
        patience.setattr(progress, "PATIENCE", 600.0)
        with progress.building("quick"):
            assert progress._shown
    assert not progress._shown
    monkeypatch.setenv("KINETREE_PROGRESS", "0")
    with progress.building("silenced"):
        assert not progress._shown
    monkeypatch.delenv("KINETREE_PROGRESS")
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=io.StringIO(), modules={}))
    with progress.building("a script"):
        assert not progress._shown
    assert watched.getvalue() == ""


def test_a_bar_on_a_terminal(watched, model):
    def slow():
        with progress.building("inner"):
            until(lambda: "compiling" in watched.getvalue())

    kt.warm_up(model, [kt.mass_matrix, slow])
    assert "inner" not in watched.getvalue()
    assert not progress._shown


def test_settling_reaches_kernels_that_are_in_use(model):
    x = np.zeros(2)
    kt.mass_matrix(model, x)
    with tiers.settling():
        kt.mass_matrix(model, x)
    assert kernel_of(model, "mass_matrix").is_settled


def test_bars_of_times_fill_and_go(watched, monkeypatch):
    monkeypatch.setattr(progress, "AGAIN", 0.01)
    with progress.clock_reporter(True, 1.0, 5.0, "simulating arm") as reached:
        reached(3.0)
        until(lambda: f"simulating arm [{'#' * 15}{'.' * 15}] 3/5 s" in watched.getvalue())
        with progress.building("inner"):
            pass
    assert watched.getvalue().endswith(" \r")  # the line is clear
    assert "inner" not in watched.getvalue()
    with progress.clock_reporter(None, 0.0, 1.0, "silent") as reached:
        reached(0.5)
    assert "silent" not in watched.getvalue()


def test_simulations_show_a_bar_on_request(watched, monkeypatch):
    monkeypatch.setattr(progress, "AGAIN", 0.01)
    m = kt.samples.double_pendulum()

    def wait(t, q, qd):
        until(lambda: f"simulating {m.name} [" in watched.getvalue())
        return np.zeros(2)

    kt.simulate(m, [0.1, 0.2], duration=0.004, controller=wait, progress=True)
    assert watched.getvalue().endswith("\r")
