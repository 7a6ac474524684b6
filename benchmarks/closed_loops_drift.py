"""How far loops open and energy drifts in 100 s: kinetree as it comes, beside MuJoCo and Pinocchio.

    python benchmarks/closed_loops_drift.py             100 s, table and docs/closed_loops.png
    python benchmarks/closed_loops_drift.py --quick     5 s, the table alone

Steps of 1 ms. kinetree and MuJoCo run with their default settings; that of kinetree is a method of
order 6, so it also runs with the classical Runge-Kutta method. Pinocchio has no integrator: it gets
the latter, with the settings it comes with, and with the best of a grid of regularisations,
proximal iterations and time constants of Baumgarte's method, chosen for each mechanism by the
energy that it keeps in the first seconds. Nothing takes energy away: joints have
no damping, bodies no shape that could touch another, and the springs of the platform count. What is
compared is measured by the same functions on the states that all of them return, after the
accelerations at the start were found to agree. MuJoCo closes a hinge by two points, Pinocchio by
one, as they have no hinge for it.
"""

import json
import sys
import time
import warnings
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from closed_loops import Peer
from rich.console import Console
from rich.table import Table

import kinetree as kt
from kinetree.algorithms.energy import elastic_energy
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.constraint import error
from kinetree.loops.kinematics.projection import project_velocity

HERE = Path(__file__).parent
PICTURE = HERE.parent / "docs" / "closed_loops.png"
DT, EVERY = 1e-3, 10
REGULARISATIONS, ITERATIONS, TIME_CONSTANTS = (1e-12, 1e-10, 1e-8, 1e-6), (1, 5), (0.02, 0.1)
AGREEMENT = 1e-9
WHO = {
    "kinetree": "#0072b2",
    "kinetree, rk4": "#56b4e9",
    "MuJoCo": "#d55e00",
    "Pinocchio, tuned": "#009e73",
    "Pinocchio": "#cc79a7",
}


@dataclass
class Case:
    """A mechanism and a start."""

    name: str
    model: kt.Model
    q: np.ndarray
    qd: np.ndarray


@dataclass
class Run:
    """Result of a run: errors at every tenth step, as far as it went."""

    who: str
    t: np.ndarray
    closure: np.ndarray
    energy: np.ndarray
    scale: float
    seconds: float
    passes: tuple = ()
    settings: tuple | None = None


def cases():
    """Four mechanisms, the five-bar from two starts."""
    five, four, bennett = kt.samples.five_bar(), kt.samples.four_bar(), kt.samples.bennett()
    stewart = undamped(kt.samples.stewart())
    push = np.zeros(stewart.nv)
    push[:6] = 0.3, 0.2, 0.4, 0.1, 0.2, 0.3
    home = [np.array(m.posture("home").q, dtype=float) for m in (four, five, stewart, bennett)]
    flat = np.array(five.posture("singular").q, dtype=float)
    return [
        Case("four-bar", four, home[0], np.zeros(3)),
        Case("five-bar, start 1", five, flat, np.zeros(4)),
        Case("five-bar, start 2", five, home[1], np.zeros(4)),
        Case("Stewart platform", stewart, home[2], project_velocity(stewart, home[2], push)),
        Case("Bennett linkage", bennett, home[3], np.zeros(3)),
    ]


def undamped(model):
    """The scene without dampers."""
    springs = {
        body.joint_name: replace(body.dynamics, damping=())
        for body in model.bodies
        if body.dynamics is not None
    }
    return model.replace(dynamics=springs)


@kernel
def _energies(model, q, qd):
    kinetic = kt.kinetic_energy(model, q, qd)
    return kinetic, kinetic + kt.potential_energy(model, q) + elastic_energy(model, q)


def judged(who, case, t, q, qd, seconds, passes=()):
    """Closure errors and energy drift of states."""
    kinetic, energy = _energies(case.model, q, qd)
    closure = np.max(np.abs(np.asarray(error(case.model, q))), axis=-1)
    drift = np.abs(energy - energy[0])
    exchanged = 2 * float(np.max(kinetic)) or 1.0
    return Run(who, t, closure, drift, exchanged, seconds, passes)


# --- who runs -------------------------------------------------------------------------------------


def ours(case, duration, who="kinetree", **options):
    """kinetree, nothing set; or with the method that Pinocchio gets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.SimulationWarning)  # the start that is singular
        kt.simulate(case.model, case.q, case.qd, duration=2 * DT, **options)  # compiles
        start = time.perf_counter()
        motion = kt.simulate(case.model, case.q, case.qd, duration=duration, **options)
        seconds = time.perf_counter() - start
    passes = tuple(event.t for event in motion.events)
    states = (array[::EVERY] for array in (motion.t, motion.q, motion.qd))
    return judged(who, case, *states, seconds, passes)


def theirs_mujoco(case, duration):
    """MuJoCo, nothing set but the step."""
    balls = [replace(loop, joint=_closable(loop.joint)) for loop in case.model.loops]
    model = case.model.replace(loops=balls, actuators=(), geometry=())  # nothing that touches
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        mj_model = kt.interop.mujoco.to_model(model)
    mj_model.opt.timestep = DT
    data = mujoco.MjData(mj_model)
    data.qpos = kt.interop.mujoco.to_q(model, mj_model, case.q)
    data.qvel = kt.interop.mujoco.to_v(model, mj_model, case.q, case.qd)
    states = [(data.qpos.copy(), data.qvel.copy())]
    start = time.perf_counter()
    for _ in range(round(duration / DT) // EVERY):
        mujoco.mj_step(mj_model, data, EVERY)
        states.append((data.qpos.copy(), data.qvel.copy()))
    seconds = time.perf_counter() - start
    if data.ncon:
        raise RuntimeError(f"{case.name}: MuJoCo found contacts, which are not to be compared")
    qpos, qvel = (np.array(part) for part in zip(*states, strict=True))
    q = kt.interop.mujoco.from_q(model, mj_model, qpos)
    qd = kt.interop.mujoco.from_v(model, mj_model, qpos, qvel)
    return judged("MuJoCo", case, DT * EVERY * np.arange(len(q)), q, qd, seconds)


def _closable(joint):
    """A joint that MJCF can close a loop with: points in cylinders become points."""
    return joint if isinstance(joint, (kt.Revolute, kt.Spherical)) else kt.Spherical()


class Pinocchio:
    """Pinocchio's constrained dynamics under the classical Runge-Kutta method."""

    def __init__(self, case, settings=None):
        self.case = case
        self.peer = Peer(case.model, case.q[None], case.qd[None], np.zeros((1, case.model.nv)))
        self.pin, self.springs = self.peer.pin, _springs(case.model, self.peer.model)
        if settings is not None:
            mu, iterations, T = settings
            self.peer.settings = self.pin.ProximalSettings(1e-13, 1e-13, mu, iterations)
            for closure in self.peer.closures:
                gains = self.pin.BaumgarteCorrectorParameters(1 / T**2, 2 / T)
                closure.setBaumgarteCorrectorParameters(gains)

    def rate(self, q, v):
        """Accelerations."""
        peer, tau = self.peer, np.zeros(self.peer.model.nv)
        for at_q, at_v, k, rest in self.springs:
            tau[at_v] = -k * (q[at_q] - rest)
        return self.pin.constraintDynamics(
            peer.model, peer.data, q, v, tau, peer.closures, peer.work, peer.settings
        ).copy()

    def disagreement(self):
        """Error of accelerations at the start, relative to the largest."""
        case, peer = self.case, self.peer
        springs = kt.passive_force(case.model, case.q, case.qd)
        ours = kt.forward_dynamics(case.model, case.q, case.qd, springs)
        found = peer.back(0, self.rate(peer.q[0], peer.v[0]))
        gap = np.max(np.abs(found - ours)) / np.max(np.abs(ours))
        return gap if np.isfinite(gap) else np.inf

    def step(self, q, v, h):
        """The classical Runge-Kutta method on the manifold."""

        def moved(dv):
            return self.pin.integrate(self.peer.model, q, dv)

        a1 = self.rate(q, v)
        v2 = v + h / 2 * a1
        a2 = self.rate(moved(h / 2 * v), v2)
        v3 = v + h / 2 * a2
        a3 = self.rate(moved(h / 2 * v2), v3)
        v4 = v + h * a3
        a4 = self.rate(moved(h * v3), v4)
        return moved(h / 6 * (v + 2 * v2 + 2 * v3 + v4)), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def run(self, duration, who):
        """As far as it goes."""
        q, v = self.peer.q[0], self.peer.v[0]
        states, start = [(q, v)], time.perf_counter()
        for _ in range(round(duration / DT) // EVERY):
            for _ in range(EVERY):
                q, v = self.step(q, v, DT)
            if not (np.all(np.isfinite(v)) and np.max(np.abs(v)) < 1e6):
                break
            states.append((q, v))
        seconds = time.perf_counter() - start
        q, v = (np.array(part) for part in zip(*states, strict=True))
        tree = self.case.model.replace(loops=(), actuators=())
        qd = kt.interop.pinocchio.from_v(tree, self.peer.model, q, v)
        q = kt.interop.pinocchio.from_q(tree, self.peer.model, q)
        return judged(who, self.case, DT * EVERY * np.arange(len(q)), q, qd, seconds)


def tuned_pinocchio(case, duration, trial=4.5):
    """With the settings of the grid that keep most of the energy over the first seconds."""
    best, chosen = np.inf, None
    for settings in product(REGULARISATIONS, ITERATIONS, TIME_CONSTANTS):
        peer = Pinocchio(case, settings)
        if peer.disagreement() > AGREEMENT:
            continue
        run = peer.run(min(trial, duration), "trial")
        went = run.t[-1] >= min(trial, duration) - 1e-9
        drift = np.max(run.energy) / run.scale if went else np.inf
        if drift < best:
            best, chosen = drift, settings
    run = Pinocchio(case, chosen).run(duration, "Pinocchio, tuned")
    run.settings = chosen
    return run


def _springs(model, pin_model):
    """Places, stiffness and rest position of the springs of joints with one variable."""
    found = []
    for body in model.bodies:
        if body.dynamics is not None and body.dynamics.stiffness:
            joint = pin_model.joints[pin_model.getJointId(body.joint_name)]
            rest = body.dynamics.rest[0] if body.dynamics.rest else 0.0
            found.append((joint.idx_q, joint.idx_v, body.dynamics.stiffness[0], rest))
    return found


# --- what is shown --------------------------------------------------------------------------------


def show(results):
    """A table of all runs."""
    table = Table(title="Loops and energy at 1 ms")
    for column in (
        "mechanism",
        "who",
        "up to",
        "closure error",
        "energy drift",
        "relative",
        "took",
    ):
        table.add_column(column, justify="left" if column in ("mechanism", "who") else "right")
    for case, runs in results:
        for run in runs:
            went = run.t[-1] >= max(r.t[-1] for r in runs) - 1e-9
            numbers = (f"{np.max(run.closure):.1e} m", f"{np.max(run.energy):.1e} J",
                       f"{np.max(run.energy) / run.scale:.1e}")  # fmt: skip
            table.add_row(
                case.name, run.who, f"{run.t[-1]:.4g} s",
                *(numbers if went else ("not a number", "-", "-")), f"{run.seconds:.1f} s",
            )  # fmt: skip
        table.add_section()
    Console(width=120).print(table)
    for case, runs in results:
        if runs[0].passes:
            times = ", ".join(f"{t:.4f}" for t in runs[0].passes[:6])
            print(f"{case.name}: close to singular at t = {times} s")
    for case, runs in results:
        mu, iterations, T = runs[3].settings
        print(f"{case.name}: Pinocchio with mu = {mu:g}, {iterations} iterations, T = {T:g} s")


def draw(results):
    """Closure error and energy drift over time, a column for each mechanism."""
    style = {"font.size": 8, "axes.grid": True, "grid.color": "#e6e6e6", "axes.axisbelow": True,
             "axes.spines.right": False, "axes.spines.top": False}  # fmt: skip
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            2, len(results), figsize=(13, 5), sharex="col", sharey="row", layout="constrained"
        )
        for (case, runs), column in zip(results, axes.T, strict=True):
            column[0].set_title(case.name, fontweight="bold")
            for run in runs:
                options = {"color": WHO[run.who], "linewidth": 0.9, "label": run.who}
                column[0].semilogy(run.t, _envelope(run.closure, 1e-17), **options)
                column[1].semilogy(run.t, _envelope(run.energy / run.scale, 1e-16), **options)
            column[1].set_xlabel("time [s]")
        axes[0, 0].set_ylabel("closure error [m or rad]")
        axes[1, 0].set_ylabel("energy drift, relative")
        axes[0, 0].set_ylim(1e-17, 30)
        axes[1, 0].set_ylim(1e-16, 1e4)
        handles = {line.get_label(): line for ax in axes.flat for line in ax.get_lines()}
        order = [handles[who] for who in WHO if who in handles]
        figure.legend(handles=order, loc="outside lower center", ncols=len(order), frameon=False)
        figure.savefig(PICTURE, dpi=130)
    print(f"wrote {PICTURE}")


def _envelope(values, floor):
    """The largest so far in a window, so that zero crossings do not hide the rest."""
    values = np.where(np.isfinite(values), values, np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, (24, 0), "edge"), 25)
    return np.maximum(windows.max(axis=-1), floor)


def main():
    quick = "--quick" in sys.argv
    duration = 5.0 if quick else 100.0
    results = []
    for case in cases():
        runs = [
            ours(case, duration),
            ours(case, duration, "kinetree, rk4", integrator="rk4"),
            theirs_mujoco(case, duration),
            tuned_pinocchio(case, duration),
            Pinocchio(case).run(duration, "Pinocchio"),
        ]
        results.append((case, runs))
    show(results)
    if not quick:
        draw(results)
        rows = [
            {"mechanism": case.name, "who": run.who, "until": float(run.t[-1]),
             "closure": float(np.max(run.closure)), "energy": float(np.max(run.energy)),
             "relative": float(np.max(run.energy) / run.scale), "seconds": run.seconds,
             "passes": run.passes[:3], "settings": run.settings}
            for case, runs in results
            for run in runs
        ]  # fmt: skip
        path = HERE / "closed_loops_drift.json"
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
