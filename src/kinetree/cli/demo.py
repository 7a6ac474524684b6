"""``kinetree demo``: the five-minute tour, with pictures at its end."""

import time
from pathlib import Path
from typing import Annotated

import numpy as np

from kinetree.cli.console import bar, misuse, progress
from kinetree.cli.console import out as console
from kinetree.cli.options import option


def demo(
    out: Annotated[
        Path, option("--out", "-o", value="FOLDER", help="Where to put the pictures; out.")
    ] = Path("out"),
    seconds: Annotated[
        float, option("--seconds", value="S", help="How long the pendulum swings; 5.")
    ] = 5.0,
):
    """Take the tour: a robot, its forces, four algorithms, batches, a motion, its pictures."""
    import kinetree as kt
    from kinetree.cli import view
    from kinetree.cli.info import draw as draw_tree

    if not 0 < seconds <= 600:
        misuse(f"--seconds must be between 0 and 600, got {seconds:g}")
    arm = kt.samples.panda()
    say = _Steps()
    say.step("A robot arm that ships with the package")
    draw_tree(say.console, arm)
    say.step("Three questions, three lines")
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.6, 0.7, 0.02, 0.02])
    _three_questions(kt, arm, q, say)
    say.step("Four algorithms, one answer")
    _four_algorithms(kt, arm, q, say)
    say.step("A hundred thousand at once, and their derivatives")
    _batches(kt, arm, q, say)
    say.step("A double pendulum swings")
    model = kt.samples.double_pendulum()
    with bar("swinging", seconds) as reached:
        motion = kt.simulate(model, [2.0, 0.5], duration=seconds, dt=0.005, progress=reached)
    report = motion.report
    say(f"{seconds:g} s in {report.steps} steps of {report.integrator}")
    say(f"energy drift: {report.energy_error:.1e} of the energy that swings back and forth")
    say.step("Look at it")
    if (reason := view.missing()) is not None:
        say(reason)
        return
    out.mkdir(parents=True, exist_ok=True)
    for picture in (view.draw(motion, out / "double_pendulum.png"), view.animate(out, motion)):
        say(f"wrote {picture}")


class _Steps:
    """Numbered headings, and text under them."""

    def __init__(self):
        self.console, self.number = console(), 0

    def step(self, title):
        self.number += 1
        self.console.print(f"\n{self.number}. {title}\n", style="bold")

    def __call__(self, text):
        self.console.print(text, soft_wrap=True)


def _three_questions(kt, arm, q, say):
    tau, at_rest = kt.gravity_force(arm, q), np.zeros(arm.nv)
    with np.printoptions(precision=3, suppress=True):
        say(f"joint forces that hold it still: {tau}")
        say(f"acceleration under those forces: {kt.forward_dynamics(arm, q, at_rest, tau)}")
        say(f"position of the tool [m]:        {kt.pose(arm, q, 'tool')[:3, 3]}")


def _four_algorithms(kt, model, q, say):
    """Newton–Euler, composite bodies, articulated bodies and maximal coordinates."""
    rng = np.random.default_rng(0)
    qd, qdd = rng.standard_normal((2, model.nv))
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    sums = kt.mass_matrix(model, q) @ qdd + kt.bias_force(model, q, qd)
    say(f"recursive Newton-Euler against H qdd + C   {np.max(np.abs(sums - tau)):.1e} N m")
    for method in ("aba", "crba", "maximal"):
        error = np.max(np.abs(kt.forward_dynamics(model, q, qd, tau, method=method) - qdd))
        say(f"forward dynamics by {method:8} recovers qdd to {error:.1e} rad/s2")


def _batches(kt, model, q, say, count=100_000):
    """Time the compiled functions on many samples."""
    rng = np.random.default_rng(1)
    many = q + 0.3 * rng.standard_normal((count, model.nq))
    qd, qdd = rng.standard_normal((2, model.nv))
    gradient = kt.differentiate(kt.inverse_dynamics, wrt="q")
    calls = {
        "inverse dynamics": lambda q: kt.inverse_dynamics(model, q, qd, qdd),
        "forward dynamics": lambda q: kt.forward_dynamics(model, q, qd, qdd),
        "d tau / d q": lambda q: gradient(model, q, qd, qdd),
    }
    taken = {}
    for name in progress(list(calls), "compiling and running"):
        calls[name](many[:2])  # compile
        start = time.perf_counter()
        calls[name](many)
        taken[name] = time.perf_counter() - start
    for name, seconds in taken.items():
        say(f"{name:18} {1e9 * seconds / count:6.0f} ns a sample")
