"""The pictures of the tour, by Matplotlib, which is optional."""

import importlib.util

import numpy as np

from kinetree.simulation.results.plotting import COLORS

__all__ = ["animate", "missing"]


def missing() -> str | None:
    """Why there can be no pictures, or None."""
    if importlib.util.find_spec("matplotlib") is None:
        return 'no pictures without Matplotlib: pip install "kinetree[plot]"'
    return None


def animate(folder, motion, every=10):
    """A web page that plays the motion, all in one file; its path."""
    import kinetree as kt

    model, t, positions = motion.model, motion.t, motion.q
    plt = _pyplot()
    from matplotlib.animation import FuncAnimation

    names = [*model.body_names[1:], "tip"]
    poses = [np.asarray(kt.pose(model, positions, n)) for n in names]
    points = np.stack([T[:, :3, 3] for T in poses], axis=1)
    x, z = points[..., 0], points[..., 2]
    reach = 1.1 * np.max(np.hypot(x, z))
    figure, axes = plt.subplots(figsize=(4.4, 4.4), layout="constrained")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.set(xlabel="x [m]", ylabel="z [m]", axisbelow=True)
    axes.spines[:].set_color("#888888")
    axes.grid(color="#e6e6e6")
    (trail,) = axes.plot([], [], color=COLORS[1], alpha=0.6)
    (bars,) = axes.plot([], [], "o-", color=COLORS[0], linewidth=3)

    def draw(frame):
        k = frame * every
        bars.set_data(x[k], z[k])
        since = slice(max(0, k - 30 * every), k + 1)
        trail.set_data(x[since, -1], z[since, -1])
        axes.set_title(f"t = {t[k]:.2f} s")
        return bars, trail

    interval = 1000 * every * (t[1] - t[0])
    path = folder / "double_pendulum.html"
    animation = FuncAnimation(figure, draw, frames=len(t[::every]), interval=interval)
    path.write_text(animation.to_jshtml(default_mode="loop"), encoding="utf-8")
    plt.close(figure)
    return path


def _pyplot():
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
