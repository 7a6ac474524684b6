"""The pictures of the tour, by Matplotlib, which is optional."""

import importlib.util

import numpy as np

__all__ = ["animate", "missing", "plot"]


def missing() -> str | None:
    """Why there can be no pictures, or None."""
    if importlib.util.find_spec("matplotlib") is None:
        return "no pictures without Matplotlib: pip install kinetree[plot]"
    return None


def plot(folder, t, positions, energy):
    """Joint angles and energy error over time; the path of the picture."""
    plt = _pyplot()
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    above.plot(t, positions, label=["shoulder", "elbow"])
    above.set_ylabel("angle [rad]")
    above.legend(loc="upper left")
    below.plot(t, energy - energy[0], color="tab:red")
    below.set(ylabel="energy error [J]", xlabel="time [s]")
    figure.suptitle("Double pendulum, RK4 with steps of 5 ms")
    path = folder / "double_pendulum.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def animate(folder, model, t, positions, every=10):
    """A web page that plays the motion, all in one file; its path."""
    import kinetree as kt

    plt = _pyplot()
    from matplotlib.animation import FuncAnimation

    names = [*model.body_names[1:], "tip"]
    poses = [np.asarray(kt.pose(model, positions[::every], n)) for n in names]
    points = np.stack([T[:, :3, 3] for T in poses], axis=1)
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
    path = folder / "double_pendulum.html"
    animation = FuncAnimation(figure, draw, frames=len(x), interval=interval)
    path.write_text(animation.to_jshtml(default_mode="loop"), encoding="utf-8")
    plt.close(figure)
    return path


def _pyplot():
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
