"""Nothing hangs: Ctrl-C ends every long call within a second and leaves what goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hostile.long_calls import CALLS

import kinetree as kt
from kinetree.codegen.runtime.interrupts import Interrupt, Pace
from kinetree.errors import ShapeError, ViewError

TESTS = Path(__file__).parents[1]
SOON = 1.0
"""Seconds in which Ctrl-C is heard."""


class Interrupted:
    """A process that makes long calls one after another, each of which is interrupted."""

    def __init__(self, names):
        command = [sys.executable, "-u", "-m", "hostile.long_calls", *names]
        paths = [TESTS, Path(kt.__file__).parents[1]]
        given = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given
        )

    def expect(self, word, name):
        """Read the next line, which has to be this word, in a call of this name."""
        line = self.process.stdout.readline().strip()
        if line != word:
            self.process.kill()
        assert line == word, f"{name}: {self.process.communicate()[1][-2000:]}"

    def take(self, name, after) -> float:
        """Seconds in which one call hears Ctrl-C that comes so many seconds after its start."""
        self.expect("ready", name)
        time.sleep(after)
        start = time.perf_counter()
        self.process.send_signal(signal.SIGINT)
        self.expect("heard", name)
        taken = time.perf_counter() - start
        self.expect("usable", name)
        return taken


def test_every_long_call_hears_ctrl_c_and_can_go_on():
    run = Interrupted(CALLS)
    watch = threading.Timer(180, run.process.kill)
    watch.start()
    try:
        taken = {name: run.take(name, 0.4) for name in CALLS}
        assert run.process.wait(20) == 0  # no thread goes on
    finally:
        watch.cancel()
        run.process.kill()
        run.process.communicate()
    assert max(taken.values()) < SOON, taken


def test_a_handler_that_returns_does_not_stop_the_work():
    world = kt.World()
    world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0)
    world.step(10)
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append(world.time))
    try:
        timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
        timer.start()
        world.step(100_000)
        timer.join()
        world.step(100)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) == 1
    assert round(world.time / world.timestep) == 100_110


def test_interrupts_are_delayed_to_where_the_work_looks():
    seen = []

    def work(looks):
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            seen.append("went on")
            if looks:
                interrupt.look()
            seen.append("to the end")

    for looks in (True, False):
        with pytest.raises(KeyboardInterrupt):
            work(looks)
    assert seen == ["went on", "went on", "to the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_slices_take_about_as_long_as_they_should():
    pace = Pace(1)
    for _ in range(12):
        time.sleep(1e-4 * pace.size)
        pace.next()
    assert 64 <= pace.size <= 512
    for _ in range(12):
        time.sleep(2e-2 * min(pace.size, 10))
        pace.next()
    assert pace.size <= 4


@pytest.mark.parametrize("wrong", [None, np.nan, np.inf, "x", 0, -1, 2.5, [1]])
def test_intervals_of_storing_are_integers(wrong):
    model = kt.samples.pendulum()
    with pytest.raises(ShapeError, match="store_every must be"):
        kt.simulate(model, [0.1], duration=0.1, store_every=wrong)
    with pytest.raises(ShapeError, match="store_every must be"):
        kt.rollout(model, [0.1], steps=10, store_every=wrong)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("203.0.113.7", "'203.0.113.7' is not an address of this machine"),
        ("nowhere.invalid", "is not the name of a machine"),
        ("", "must be an address of this machine"),
        (7, "must be an address of this machine"),
    ],
)
def test_a_viewer_elsewhere_is_an_error_at_once(host, message):
    start = time.perf_counter()
    with pytest.raises(ViewError, match=message):
        kt.view(kt.samples.pendulum(), host=host, open=False)
    assert time.perf_counter() - start < 5


def test_a_viewer_is_for_this_machine_alone():
    with kt.view(kt.samples.pendulum(), host=None, open=False) as viewer:
        assert viewer.server.get_host() == "127.0.0.1"
        assert viewer.url.startswith("http://localhost:")
    with pytest.raises(ViewError, match="port must be an integer from 1 to 65535"):
        kt.view(kt.samples.pendulum(), port="x", open=False)
