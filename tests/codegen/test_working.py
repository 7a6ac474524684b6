"""What long work says of itself on a terminal."""

import io
import time
from types import SimpleNamespace

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal that is told at once."""
    screen = Terminal()
    monkeypatch.delenv("KINETREE_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=screen, modules={}))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "AGAIN", 0.001)
    return screen


def wait_for(screen, text):
    """Wait until a text was shown."""
    end = time.monotonic() + 20
    while text not in screen.getvalue():
        assert time.monotonic() < end, screen.getvalue()
        time.sleep(0.002)


def test_work_says_how_far_it_is_and_what_is_compiled_for_it(terminal):
    with progress.working("rollout", 30) as work:
        wait_for(terminal, "kinetree: rollout: 0 of 30 steps")
        work.advance(20)
        wait_for(terminal, "kinetree: rollout: 20 of 30 steps")
        with progress.building("inner"), progress.building("innermost"):
            wait_for(terminal, "20 of 30 steps (preparing inner)")
        with progress.working("part of it"):
            pass
    assert not progress._shown
    assert terminal.getvalue().endswith(" \r")  # taken back


def test_nothing_is_said_to_files(monkeypatch):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=io.StringIO(), modules={}))
    with progress.working("rollout", 30) as work:
        work.advance()
        assert not progress._shown


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ("rollout: ", lambda m, q: kt.rollout(m, q, steps=20)),
        ("identifying parameters", lambda m, q: kt.identify(m, *_motion(m))),
        ("finding base parameters", lambda m, q: kt.base_parameters(m)),
        ("deriving the equations of motion", lambda m, q: kt.equations_of_motion(m)),
        (
            "optimizing a motion: ",
            lambda m, q: kt.control.optimize(
                m, q, steps=3, dt=0.01, running=kt.control.QuadraticCost(effort=1.0)
            ),
        ),
    ],
)
def test_long_functions_say_what_they_do(words, task, terminal):
    model = kt.samples.double_pendulum()
    task(model, np.array([0.3, 0.1]))
    assert f"kinetree: {words}" in terminal.getvalue()


def _motion(model):
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 30, model.nv))
    return q, qd, qdd, kt.inverse_dynamics(model, q, qd, qdd)
