"""The five-bar of Spencer's thesis (§3.2) through its singularities, by every method it compares.

    python benchmarks/thesis.py               both examples, table and docs/five_bar.png
    python benchmarks/thesis.py --table       the table alone

Steps of 1 ms of the classical Runge-Kutta method over 5 s, as in the thesis. Example 1 starts at
rest in the singular posture, and returns to it at 2.8254 s. Example 2 starts at rest in a symmetric
posture, and passes the singularity at 0.6508, 1.8538 and 3.9098 s; these are the times of the
exact symmetric motion, which is unstable. Runs that are projected have lost its symmetry by several
degrees when they come to the third, and do not pass; the others pass, and violate energy.
"""

import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from kinetree import samples
from kinetree.errors import SimulationError, SingularError
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system_motion import integrate_system

PICTURE = Path(__file__).parents[1] / "docs" / "five_bar.png"
MODEL = samples.five_bar()
SYSTEM, REST = system_of(MODEL), np.zeros(4)
STARTS = {1: np.array(MODEL.posture("singular").q, dtype=float), 2: np.zeros(4)}
HOME = np.array([2 * np.pi / 3, np.arccos(2 / 3), -np.arccos(2 / 3), -2 * np.pi / 3])
EXACT = {1: (2.8254,), 2: (0.6508, 1.8538, 3.9098)}
HOLDS = {
    "nothing": "none",
    "baumgarte": "Baumgarte, 10/s",
    "projection": "projection",
    "all": "projection, all at once",
    "energy": "projection with energy",
}


def motions():
    """Every combination that the thesis compares, by example, form and hold."""
    found = {}
    for example, start in STARTS.items():
        for form in ("svd", "multipliers"):
            for hold in HOLDS:
                begin = time.process_time()
                try:
                    motion = integrate_system(
                        SYSTEM, start, REST, 5.0, 1e-3, form=form, hold=hold, near=100
                    )
                except (SingularError, SimulationError) as error:
                    motion = error
                found[example, form, hold] = motion, time.process_time() - begin
    return found


def table(found, console):
    """What the motions are judged by."""
    rows = Table(title="five-bar, 5 s at 1 ms")
    for name in ("example", "form", "hold", "passes, s", "|g|, m", "|Gv|, m/s", "dE, J"):
        rows.add_column(name)
    rows.add_column("|lam|, N")
    rows.add_column("CPU, s")
    for (example, form, hold), (motion, seconds) in found.items():
        name = "multipliers" if form == "multipliers" else "SVD"
        if isinstance(motion, Exception):
            rows.add_row(str(example), name, HOLDS[hold], type(motion).__name__)
            continue
        worst = motion.drift.largest()
        rows.add_row(
            str(example), name, HOLDS[hold],
            " ".join(f"{event.time:.4f}" for event in motion.passes),
            *(f"{x:.2g}" for x in worst),
            f"{np.abs(motion.multipliers).max():.2g}", f"{seconds:.1f}",
        )  # fmt: skip
    console.print(rows)


def picture(found):
    """The figures 3.3 to 3.10 of the thesis, on one page."""
    figure, axes = plt.subplots(2, 3, figsize=(13, 6.6), dpi=110, layout="constrained")
    first = found[1, "svd", "nothing"][0]
    _angles(axes[0, 0], first, "Example 1: link angles [deg]", EXACT[1])
    axes[0, 1].semilogy(first.t, first.kappa, color="C3", lw=1)
    axes[0, 1].set(title=r"Example 1: condition of $G$", ylim=(1, 1e6))
    axes[0, 2].semilogy(first.t, np.abs(first.drift.energy) + 1e-17, label="energy change [J]")
    axes[0, 2].semilogy(first.t, first.drift.position + 1e-17, label="closure error [m]")
    axes[0, 2].set(title="Example 1: SVD form, no stabilisation", ylim=(1e-15, 1e-3))
    axes[0, 2].legend(loc="lower right")

    held = found[2, "svd", "energy"][0]
    _angles(axes[1, 0], held, "Example 2: link angles [deg]", EXACT[2])
    for form, hold in (
        ("multipliers", "baumgarte"), ("svd", "nothing"), ("svd", "projection"), ("svd", "energy"),
    ):  # fmt: skip
        motion = found[2, form, hold][0]
        label = f"{'SVD' if form == 'svd' else 'multipliers'}, {HOLDS[hold]}"
        axes[1, 1].semilogy(motion.t, np.abs(motion.drift.energy) + 1e-12, lw=1, label=label)
    axes[1, 1].set(title="Example 2: energy change [J]", ylim=(1e-9, 1e3))
    axes[1, 1].legend(loc="upper left", fontsize=8)
    stabilized = found[2, "multipliers", "baumgarte"][0]
    largest = np.abs(stabilized.multipliers).max(1)
    axes[1, 2].semilogy(stabilized.t, largest, lw=1, label=r"$|\lambda|$, Baumgarte [N]")
    axes[1, 2].semilogy(
        held.t, held.indicator + 1e-9, lw=1, label=r"$|u_m^T \dot G v|$, SVD with projection"
    )
    axes[1, 2].set(title="Example 2: indicators of large accelerations", ylim=(1e-5, 1e8))
    axes[1, 2].legend(loc="upper left", fontsize=8)
    for axis in axes[1]:
        axis.set_xlabel("time [s]")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.set_xlim(0, 5)
    figure.savefig(PICTURE)


def _angles(axis, motion, title, passes):
    angles = np.rad2deg(HOME + np.cumsum(motion.q, axis=1))
    for k in range(4):
        axis.plot(motion.t, angles[:, k], lw=1, label=f"link {k + 1}")
    for t in passes:
        axis.axvline(t, color="0.5", lw=0.8, ls=":")
    top, low = angles.max(), angles.min()
    axis.set(title=title, ylim=(low - 0.05 * (top - low), top + 0.22 * (top - low)))
    axis.legend(ncols=4, fontsize=8, loc="upper center", handlelength=1, columnspacing=1)


def main():
    """Run, print, draw."""
    found = motions()
    table(found, Console(width=140))
    if "--table" not in sys.argv:
        picture(found)


if __name__ == "__main__":
    main()
