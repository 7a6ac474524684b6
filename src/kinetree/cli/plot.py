"""``kinetree plot``: a stored motion as a picture."""

import importlib.util
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from kinetree.cli.console import err, fail, misuse
from kinetree.cli.options import option

PICTURES = (".png", ".pdf", ".svg")


def plot(
    file: Annotated[
        Path, typer.Argument(metavar="MOTION", help="What kinetree simulate --out wrote.")
    ],
    picture: Annotated[
        Path | None,
        option("--out", "-o", value="FILE", help="The picture; MOTION with .png unless given."),
    ] = None,
    joints: Annotated[
        list[str] | None,
        option("--joints", "-j", value="NAMES", help="Only these, with commas; repeatable."),
    ] = None,
):
    """Draw a motion: positions, velocities, forces, energy and events over time."""
    from kinetree.simulation import Trajectory

    if not file.exists():
        misuse(f"there is no file {str(file)!r}; kinetree simulate ROBOT --out {file} makes one")
    picture = picture or file.with_suffix(".png")
    require_suffix(picture, PICTURES)
    if (reason := missing()) is not None:
        fail(reason)
    names = [name for entry in joints or () for name in entry.split(",") if name]
    motion = Trajectory.load(file)
    written = draw(motion, picture, names or None)
    err().print(f"wrote {written}", soft_wrap=True)


def require_suffix(path, suffixes):
    """Refuse a file that is not of these kinds."""
    if path.suffix.lower() not in suffixes:
        misuse(f"{path} must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}")


def draw(motion, path, joints=None):
    """Draw a motion into a file; its path."""
    pyplot = _pyplot()
    figure = motion.plot(joints=joints)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def missing() -> str | None:
    """The reason why pictures cannot be drawn, or None."""
    if importlib.util.find_spec("matplotlib") is None:
        return 'no pictures without Matplotlib: pip install "kinetree[plot]"'
    return None


def animate(folder, motion, every=10):
    """A web page that plays a motion of a planar chain, all in one file; its path."""
    import kinetree as kt

    model, t, positions = motion.model, motion.t, motion.q
    plt = _pyplot()
    from matplotlib.animation import FuncAnimation

    from kinetree.simulation.results.panels import COLORS

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
    from matplotlib import pyplot

    return pyplot
