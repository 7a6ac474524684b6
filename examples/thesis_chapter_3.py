"""The figures and numbers of Spencer's thesis, chapter 3 and §4.5, from the public API.

    python examples/thesis_chapter_3.py                 all of it, about a minute, into out/thesis
    python examples/thesis_chapter_3.py --out folder    into another folder
    python examples/thesis_chapter_3.py --numbers       without the runs of 5 s and the pictures

The five-bar of Table 3.1 starts at rest: in example 1 in its singular posture, to which it returns
at 2.8254 s; in example 2 upright and symmetric, so that it passes the singular posture at 0.6508,
1.8538 and 3.9098 s. Steps of 1 ms of the classical Runge-Kutta method, as in the thesis. The loader
has the topology of §4.5; the thesis prints no dimensions, so they and the matrices are ours.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

FIVE_BAR, LOADER = kt.samples.five_bar(), kt.samples.loader()
SYSTEM, REST = kt.loops.system_of(FIVE_BAR), np.zeros(4)
HOME = np.array([2 * np.pi / 3, np.arccos(2 / 3), -np.arccos(2 / 3), -2 * np.pi / 3])
STARTS = {1: np.array(FIVE_BAR.posture("singular").q), 2: FIVE_BAR.neutral()}
EXACT = {1: (2.82537,), 2: (0.65082, 1.85379, 3.90978)}  # [s]: the symmetric motion, by quadrature
CHARTS = (("boom_joint", "bucket_joint"), ("lift_piston_joint", "tilt_piston_joint"))


def link_angles(q):
    """Angles of the links against the line of the supports [rad], (..., 4)."""
    return HOME + np.cumsum(q, axis=-1)


# --- numbers -------------------------------------------------------------------------------------


def passes():
    """Times at which ``kt.simulate`` passes the singular posture in example 2 [s]."""
    motion = kt.simulate(FIVE_BAR, STARTS[2], duration=4.2)
    return [event.t for event in motion.events]


def eigenvalues():
    """Eigenvalues at both equilibria of the five-bar [1/s]: of A_hat, and of A with its zeros."""
    found = {}
    for name, angles in (
        ("stable", (276, -75, 75, -276)), ("unstable", (275, 98, -65, -299)),
    ):  # fmt: skip
        guess = np.diff(np.deg2rad(angles) - HOME, prepend=0.0)
        start = kt.loops.project_configuration(FIVE_BAR, guess)
        q, _ = kt.control.equilibrium(FIVE_BAR, start, actuated=[])
        whole = kt.loops.linearize_on_manifold(FIVE_BAR, q, REST, REST)
        linear = kt.linearize(FIVE_BAR, q, REST, REST)
        found[name] = linear.eigenvalues, np.linalg.eigvals(whole.A)
    return found


def loader_matrices(yd=(0.0, 0.0)):
    """``A21, A22`` of the loader by its independent joints, moving at ``yd`` in them (§4.5)."""
    q = LOADER.neutral()
    rest, found = np.zeros(LOADER.nv), {}
    for joints in CHARTS:
        at_rest = kt.linearize(LOADER, q, rest, rest, independent=list(joints))
        qd = at_rest.G @ np.array(yd)
        A = kt.linearize(LOADER, q, qd, rest, independent=list(joints)).A
        found[joints] = A[2:, :2], A[2:, 2:]
    return found


def report():
    """Print the numbers that take no long runs."""
    times = ", ".join(f"{t:.4f}" for t in passes())
    print(f"example 2, passes by kt.simulate [s]: {times}; exact {EXACT[2]}")
    for name, (reduced, whole) in eigenvalues().items():
        zeros = np.sum(np.abs(whole) < 1e-6)
        print(f"{name} equilibrium: {np.round(reduced, 5)} and {zeros} zeros [1/s]")
    for yd in ((0.0, 0.0), (0.3, -0.2)):
        for joints, (A21, A22) in loader_matrices(yd).items():
            print(f"loader, yd = {yd} of {' and '.join(joints)}:")
            print(np.array2string(np.hstack([A21, A22]), precision=5, suppress_small=True))


# --- runs of 5 s ---------------------------------------------------------------------------------


def examples(duration=5.0, step=1e-3):
    """Example 1 by the SVD form, and example 2 by every form and hold that §3.2 compares."""
    with warnings.catch_warnings():  # that V2 is arbitrary where example 1 starts
        warnings.simplefilter("ignore", kt.errors.SingularityWarning)
        run = (SYSTEM, STARTS[1], REST, duration, step)
        first = {
            "SVD": kt.loops.integrate_system(*run, hold="nothing"),
            "threshold 1e-3": kt.loops.integrate_system(*run, hold="nothing", threshold=1e-3),
            "damping 1e-3": kt.loops.integrate_system(*run, hold="nothing", damping=1e-3),
        }
    second = kt.loops.compare_forms(SYSTEM, STARTS[2], REST, duration, step)
    return first, second


# --- figures -------------------------------------------------------------------------------------


def draw_first(first):
    """Figures 3.3 to 3.6: angles, condition, energies, change of energy, constraint violation."""
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.2))
    motion = first["SVD"]
    _angles(axes[0, 0], motion, "3.3 link angles [deg]", EXACT[1])
    axes[0, 1].semilogy(motion.t, motion.kappa, color="C3")
    axes[0, 1].set(title="3.4 condition of $G$", ylim=(1, 1e6))
    for name in ("kinetic", "potential"):
        axes[0, 2].plot(motion.t, getattr(motion, name), label=name)
    axes[0, 2].set(title="3.5a energies [J]", ylim=(-140, 180))
    for name, found in first.items():
        axes[1, 0].semilogy(found.t, np.abs(found.drift.energy) + 1e-16, label=name)
        axes[1, 1].semilogy(found.t, found.drift.position + 1e-17, label=name)
        axes[1, 2].semilogy(found.t, found.drift.velocity + 1e-17, label=name)
    axes[1, 0].set(title="3.5b change of energy [J]", ylim=(1e-12, 10))
    axes[1, 1].set(title="3.6 constraint violation $|g|$ [m]", ylim=(1e-15, 1))
    axes[1, 2].set(title="3.6 constraint violation $|Gv|$ [m/s]", ylim=(1e-15, 1))
    return _finished(figure, axes, "Example 1: from rest in the singular posture")


def draw_second(second):
    """Figures 3.7 to 3.10: angles, drift, multipliers and indicator, energy of both methods."""
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.2))
    baumgarte = second.motions["multipliers", "baumgarte"]
    held = second.motions["svd", "energy"]
    _angles(axes[0, 0], held, "3.7 link angles, SVD and (dots) Lagrange [deg]", EXACT[2])
    axes[0, 0].plot(baumgarte.t, np.rad2deg(link_angles(baumgarte.q)), "k:", lw=0.9)
    for motion, name in ((baumgarte, "Lagrange, Baumgarte"), (held, "SVD, projection")):
        axes[0, 1].semilogy(motion.t, motion.drift.position + 1e-17, label=name)
    axes[0, 1].set(title="3.8 constraint drift $|g|$ [m]", ylim=(1e-16, 1))
    axes[0, 2].semilogy(baumgarte.t, np.abs(baumgarte.multipliers).max(1), color="C3")
    axes[0, 2].set(title=r"3.9a $|\lambda|$, Lagrange, Baumgarte [N]")
    axes[1, 0].semilogy(held.t, held.indicator + 1e-9, label=r"$|u_m^T \dot G v|$")
    axes[1, 0].semilogy(held.t, 1 / held.kappa, label=r"$1 / \kappa$")
    axes[1, 0].set(title="3.9b indicator, SVD with projection", ylim=(1e-6, 1e4))
    for panel, form, name in (
        (axes[1, 1], "multipliers", "3.10a Lagrange"), (axes[1, 2], "svd", "3.10b SVD"),
    ):  # fmt: skip
        for (of, hold), motion in second.motions.items():
            if of == form:
                panel.semilogy(motion.t, np.abs(motion.drift.energy) + 1e-12, label=hold)
        panel.set(title=f"{name}: change of energy [J]", ylim=(1e-10, 1e4))
    return _finished(figure, axes, "Example 2: three times through the singular posture")


def _angles(axis, motion, title, times):
    angles = np.rad2deg(link_angles(motion.q))
    for k in range(4):
        axis.plot(motion.t, angles[:, k], label=f"link {k + 1}")
    for t in times:
        axis.axvline(t, color="0.5", lw=0.8, ls=":")
    axis.set(title=title, ylim=(angles.min() - 60, 1.45 * angles.max()))


def _finished(figure, axes, title):
    for axis in axes.flat:
        axis.set(xlim=(0, 5), xlabel="time [s]")
        axis.title.set_fontsize(10)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=7, ncols=2, loc="upper left")
    figure.suptitle(title)
    return figure


def pictures(first, second):
    """All figures by name."""
    plt.style.use(kt.plot.STYLE)
    through = second.motions["svd", "energy"]
    chosen = np.linspace(0, min(1000, len(through.q) - 1), 9).astype(int)  # of the first second
    falling = kt.plot.postures(FIVE_BAR, through.q[chosen])
    drawn = {
        "figure_3_2": falling,
        "example_1": draw_first(first),
        "example_2": draw_second(second),
        "figure_4_2": kt.plot.postures(LOADER, LOADER.neutral()),
    }
    found = eigenvalues()
    names = list(found)
    matrices = [np.diag(found[name][1]) for name in names]
    return drawn | {"eigenvalues": kt.plot.eigenvalues(*matrices, names=names)}


def main():
    """Run, print, draw."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, default=Path("out/thesis"))
    options.add_argument("--numbers", action="store_true")
    options = options.parse_args()
    report()
    if options.numbers:
        return
    first, second = examples()
    for name, motion in first.items():
        print(f"example 1, {name}: {[str(event) for event in motion.passes]}")
        print(f"    largest change of energy {motion.drift.largest().energy:.2g} J")
    print(second)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures(first, second).items():
        figure.savefig(options.out / f"{name}.png", dpi=110)
    print(f"pictures are in {options.out}")


if __name__ == "__main__":
    main()
