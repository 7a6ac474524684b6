"""``kinetree demo``: a tour of the library, with an arm that draws."""

import base64
import html
import time
from pathlib import Path
from typing import Annotated

import numpy as np

from kinetree.cli import options as cli
from kinetree.cli.options import flag, option
from kinetree.cli.view import draw, missing
from kinetree.files import write_text

_SAMPLES = 100_000  # of the functions that are timed


def demo(
    out: Annotated[
        Path, option("--out", "-o", value="FOLDER", help="Where to put the page; out.")
    ] = Path("out"),
    seconds: Annotated[
        float, option("--seconds", value="S", help="How long the arm takes to draw; 6.")
    ] = 6.0,
    stay: Annotated[bool, flag("--no-browser", help="Write the page, open no browser.")] = False,
):
    """Take the tour: a robot, its forces, four algorithms, batches, and an arm that draws."""
    import kinetree as kt
    from kinetree.cli.info import draw as draw_tree
    from kinetree.viewer.page import open_page

    # Faster, motors would need more than they have.
    if not 5 <= seconds <= 600:
        cli.misuse(f"--seconds must be between 5 and 600, got {seconds:g}")
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
    say.step("The arm draws a flower: inverse kinematics, computed torque, simulation")
    with cli.bar("drawing", seconds) as reached:
        motion, error = draw_flower(arm, seconds, reached)
    report = motion.report
    say(f"{seconds:g} s in {report.steps} steps of {report.integrator}")
    say(f"the hand is off its curve by at most {1e3 * error.max():.2f} mm")
    say(f"energy error: {report.energy_error:.1e} of the energy that is exchanged")
    say.step("Look at it")
    out.mkdir(parents=True, exist_ok=True)
    page = _written_tour(motion, out)
    say(f"wrote {page}: the arm in 3-D{'' if missing() else ', with plots beside it'}")
    if (reason := missing()) is not None:
        say(reason)
    if not stay and open_page(page.resolve().as_uri()):
        say("it opens in your browser")


def draw_flower(arm, seconds, progress=None):
    """Motion of the Panda arm that draws a flower, and its position error over time [m]."""
    import kinetree as kt

    def curve(t):
        s = t / seconds
        angle = 2 * np.pi * s**3 * (10 - 15 * s + 6 * s**2)  # at rest at both ends
        r = 0.13 + 0.06 * np.cos(5 * angle)
        return np.stack([0.55 + 0 * t, r * np.sin(angle), 0.42 + r * np.cos(angle)], axis=-1)

    t = np.linspace(0, seconds, 241)
    home = arm.posture("home").q.copy()
    home[-2:] = 0.01  # fingers away from their stops
    tasks = [kt.ik.PositionTask("grasp", curve(t)), kt.ik.PostureTask(home)]
    q = kt.inverse_kinematics(arm, tasks, q0=home).require()
    follow = kt.control.ComputedTorque(arm, kt.RecordedMotion(t, q), kp=100.0)
    motion = kt.simulate(
        arm, q[0], duration=seconds, dt=0.004, controller=follow, progress=progress
    )
    hand = kt.pose(arm, motion.q, "grasp")[:, :3, 3]
    return motion, np.linalg.norm(hand - curve(motion.t), axis=-1)


FLOWER = {"trace": "grasp", "direction": (1.0, -0.7, 0.4), "zoom": 1.25}
"""How the arm that draws is looked at."""


def _written_tour(motion, folder):
    """Write one HTML page of a motion: 3D view and, with Matplotlib, plots."""
    from kinetree import viewer

    if missing() is not None:
        return viewer.save_html(motion, folder / "demo.html", **FLOWER)
    arm = [f"link{k}_joint" for k in range(1, 8)]
    plots = draw(motion, folder / "demo.png", arm).read_bytes()
    scene = html.escape(viewer.embedded(motion, **FLOWER).text, quote=True)
    text = _TOUR.format(scene=scene, plots=base64.b64encode(plots).decode("ascii"))
    return write_text(folder / "demo.html", text)


_TOUR = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>kinetree: an arm that draws</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 0; display: flex; flex-wrap: wrap; min-height: 100vh; background: #fff; }}
  iframe {{ border: 0; flex: 3 1 480px; height: 100vh; min-height: 360px; }}
  img {{ flex: 2 1 340px; min-width: 0; max-height: 100vh; object-fit: contain; }}
  @media (max-width: 820px) {{ iframe {{ height: 62vh; }} img {{ max-height: none; }} }}
</style></head><body>
<iframe srcdoc="{scene}" title="the Panda draws a flower"></iframe>
<img src="data:image/png;base64,{plots}" alt="angles, velocities, forces and energy over time">
</body></html>
"""


class _Steps:
    """Numbered headings, and text under them."""

    def __init__(self):
        self.console, self.number = cli.out(), 0

    def step(self, title):
        """Print the heading of the next step."""
        self.number += 1
        self.console.print(f"\n{self.number}. {title}\n", style="bold")

    def __call__(self, text):
        self.console.print(text, soft_wrap=True)


def _three_questions(kt, arm, q, say):
    """Print joint forces at rest, the acceleration under them, and the tool's position."""
    tau, at_rest = kt.gravity_force(arm, q), np.zeros(arm.nv)
    qdd = kt.forward_dynamics(arm, q, at_rest, tau)
    with np.printoptions(precision=3, suppress=True):
        say(f"joint forces that hold it still: {tau.round(3) + 0.0}")  # no negative zeros
        say(f"acceleration under those forces: {qdd.round(3) + 0.0}")
        say(f"position of the tool [m]:        {kt.pose(arm, q, 'tool')[:3, 3]}")


def _four_algorithms(kt, model, q, say):
    """Print forward dynamics by four algorithms, which agree."""
    rng = np.random.default_rng(0)
    qd, qdd = rng.standard_normal((2, model.nv))
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    sums = kt.mass_matrix(model, q) @ qdd + kt.bias_force(model, q, qd)
    say(f"recursive Newton-Euler against H qdd + C   {np.max(np.abs(sums - tau)):.1e} N m")
    for method in ("aba", "crba", "maximal"):
        error = np.max(np.abs(kt.forward_dynamics(model, q, qd, tau, method=method) - qdd))
        say(f"forward dynamics by {method:8} recovers qdd to {error:.1e} rad/s2")


def _batches(kt, model, q, say):
    """Print times of the compiled functions on many samples."""
    rng = np.random.default_rng(1)
    many = q + 0.3 * rng.standard_normal((_SAMPLES, model.nq))
    qd, qdd = rng.standard_normal((2, model.nv))
    gradient = kt.differentiate(kt.inverse_dynamics, wrt="q")
    calls = {
        "inverse dynamics": lambda q: kt.inverse_dynamics(model, q, qd, qdd),
        "forward dynamics": lambda q: kt.forward_dynamics(model, q, qd, qdd),
        "d tau / d q": lambda q: gradient(model, q, qd, qdd),
    }
    taken = {}
    for name in cli.progress(list(calls), "compiling and running"):
        calls[name](many[:2])  # compile
        start = time.perf_counter()
        calls[name](many)
        taken[name] = time.perf_counter() - start
    for name, seconds in taken.items():
        say(f"{name:18} {1e9 * seconds / _SAMPLES:6.0f} ns a sample")
