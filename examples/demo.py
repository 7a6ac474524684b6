"""The five-minute tour: what ``make demo`` runs. Writes its pictures to the folder ``out``."""

import sys
import time
from pathlib import Path

import numpy as np

import kinetree as kt

OUT = Path(__file__).resolve().parent.parent / "out"


def main():
    OUT.mkdir(exist_ok=True)
    print("1. A robot arm that ships with the package\n")
    arm = kt.samples.panda()
    print(arm.summary())

    print("\n2. Three questions, three lines\n")
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.6, 0.7, 0.02, 0.02])
    rest = np.zeros(arm.nv)
    tau = kt.gravity_force(arm, q)
    with np.printoptions(precision=3, suppress=True):
        print("joint forces that hold it still:", tau)
        print("acceleration under those forces:", kt.forward_dynamics(arm, q, rest, tau))
        print("position of the tool [m]:       ", kt.pose(arm, q, "tool")[:3, 3])

    print("\n3. Four algorithms, one answer\n")
    compare_algorithms(arm, q)

    print("\n4. A hundred thousand at once, and their derivatives\n")
    time_batches(arm, q)

    print("\n5. Let a double pendulum swing for five seconds\n")
    model = kt.samples.double_pendulum()
    t, positions, velocities = simulate(model, duration=5.0, dt=0.005)
    energy = kt.kinetic_energy(model, positions, velocities) + kt.potential_energy(model, positions)
    drift = np.max(np.abs(energy - energy[0])) / np.ptp(kt.potential_energy(model, positions))
    print(f"energy drift: {drift:.1e} of the energy that swings back and forth")

    print("\n6. Look at it\n")
    for path in (plot(t, positions, energy), animate(model, t, positions)):
        print(f"wrote {path.relative_to(OUT.parent)}")


def compare_algorithms(model, q):
    """Newton–Euler, composite bodies, articulated bodies and maximal coordinates."""
    rng = np.random.default_rng(0)
    qd, qdd = rng.standard_normal((2, model.nv))
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    sums = kt.mass_matrix(model, q) @ qdd + kt.bias_force(model, q, qd)
    print(f"  recursive Newton-Euler against H qdd + C   {np.max(np.abs(sums - tau)):.1e} N m")
    for method in ("aba", "crba", "maximal"):
        error = np.max(np.abs(kt.forward_dynamics(model, q, qd, tau, method=method) - qdd))
        print(f"  forward dynamics by {method:8} recovers qdd to  {error:.1e} rad/s2")


def time_batches(model, q, count=100_000):
    """How long the compiled functions take on many samples."""
    rng = np.random.default_rng(1)
    many = q + 0.3 * rng.standard_normal((count, model.nq))
    qd, qdd = rng.standard_normal((2, model.nv))
    gradient = kt.differentiate(kt.inverse_dynamics, wrt="q")
    for name, call in (
        ("inverse dynamics", lambda q: kt.inverse_dynamics(model, q, qd, qdd)),
        ("forward dynamics", lambda q: kt.forward_dynamics(model, q, qd, qdd)),
        ("d tau / d q", lambda q: gradient(model, q, qd, qdd)),
    ):
        call(many[:2])  # compile
        start = time.perf_counter()
        call(many)
        seconds = time.perf_counter() - start
        print(f"  {name:18} {1e9 * seconds / count:6.0f} ns a sample")


def simulate(model, duration, dt):
    """Fourth-order Runge–Kutta on the configuration manifold, from a high starting position."""
    steps = round(duration / dt)
    tau = np.zeros(model.nv)
    q, qd = model.integrate(model.neutral(), np.array([2.0, 0.5])), np.zeros(model.nv)
    positions, velocities = [q], [qd]
    for step in range(steps):
        a1 = kt.forward_dynamics(model, q, qd, tau)
        v2 = qd + dt / 2 * a1
        a2 = kt.forward_dynamics(model, model.integrate(q, dt / 2 * qd), v2, tau)
        v3 = qd + dt / 2 * a2
        a3 = kt.forward_dynamics(model, model.integrate(q, dt / 2 * v2), v3, tau)
        v4 = qd + dt * a3
        a4 = kt.forward_dynamics(model, model.integrate(q, dt * v3), v4, tau)
        q = model.integrate(q, dt / 6 * (qd + 2 * v2 + 2 * v3 + v4))
        qd = qd + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        positions.append(q)
        velocities.append(qd)
        progress(step + 1, steps)
    return dt * np.arange(steps + 1), np.array(positions), np.array(velocities)


def progress(done, total):
    """A bar that fills up; on a pipe, a line every quarter."""
    if sys.stdout.isatty():
        bar = "#" * (40 * done // total)
        print(f"\r  [{bar:40}] {100 * done // total:3d} %", end="\n" if done == total else "")
    elif done % (total // 4) == 0:
        print(f"  {100 * done // total:3d} %")


def plot(t, positions, energy):
    """Joint angles and energy error over time."""
    plt = pyplot()
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    above.plot(t, positions, label=["shoulder", "elbow"])
    above.set_ylabel("angle [rad]")
    above.legend(loc="upper left")
    below.plot(t, energy - energy[0], color="tab:red")
    below.set(ylabel="energy error [J]", xlabel="time [s]")
    figure.suptitle("Double pendulum, RK4 with steps of 5 ms")
    path = OUT / "double_pendulum.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def animate(model, t, positions, every=10):
    """A web page that plays the motion, all in one file."""
    plt = pyplot()
    from matplotlib.animation import FuncAnimation

    names = [*model.body_names[1:], "tip"]
    points = np.stack([kt.pose(model, positions[::every], n)[:, :3, 3] for n in names], axis=1)
    x, z = points[..., 0], points[..., 2]
    reach = 1.1 * np.max(np.hypot(x, z))
    figure, axes = plt.subplots(figsize=(4, 4), layout="constrained")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    (trail,) = axes.plot([], [], color="tab:orange", alpha=0.5)
    (bars,) = axes.plot([], [], "o-", color="tab:blue", linewidth=3)

    def draw(k):
        bars.set_data(x[k], z[k])
        trail.set_data(x[max(0, k - 30) : k + 1, -1], z[max(0, k - 30) : k + 1, -1])
        axes.set_title(f"t = {t[k * every]:.2f} s")
        return bars, trail

    interval = 1000 * every * (t[1] - t[0])
    path = OUT / "double_pendulum.html"
    animation = FuncAnimation(figure, draw, frames=len(x), interval=interval)
    path.write_text(animation.to_jshtml(default_mode="loop"), encoding="utf-8")
    plt.close(figure)
    return path


def pyplot():
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


if __name__ == "__main__":
    main()
