"""Phase portraits: velocity against position."""

import numpy as np

from kinetree.errors import ModelError
from kinetree.plot.sheet import heading, sheet
from kinetree.simulation.results.labels import positions, velocities
from kinetree.simulation.results.panels import COLORS, title
from kinetree.simulation.results.plotting import as_motion, chosen_joints

__all__ = ["phase"]

_MOST, _ACROSS = 12, 4


def phase(trajectory, names=None):
    """Velocity against position, of each joint in its own axes; many motions in the same.

    A circle is where a motion begins, a square where it ends.

    Args:
        trajectory: one motion, or many.
        names: of the joints to show; by default all that have one variable, at most twelve.
    """
    model = as_motion(trajectory).model
    chosen = chosen_joints(model, names)
    speeds = {v.name: k for k, v in enumerate(velocities(model))}
    pairs = [
        (v, k, speeds[v.name])
        for k, v in enumerate(positions(model))
        if v.name in speeds and v.joint in chosen
    ]
    if not pairs:
        raise ModelError(
            f"no joint of {model.name!r} that was chosen has a position whose rate is a velocity "
            f"variable; phase portraits are of such joints"
        )
    pairs = pairs if names is not None else pairs[:_MOST]
    columns = min(len(pairs), _ACROSS)
    rows = -(-len(pairs) // columns)
    with sheet(rows, columns, (2.9 * columns + 0.3, 2.6 * rows + 0.4)) as (figure, grid):
        for axes in grid.flat[len(pairs) :]:
            axes.set_axis_off()
        for axes, (variable, i, j) in zip(grid.flat, pairs, strict=False):
            _portrait(axes, trajectory.q[..., i], trajectory.qd[..., j])
            heading(axes, variable.name)
            axes.set(xlabel=f"[{variable.unit}]", ylabel=f"[{variable.unit}/s]")
        title(figure, trajectory)
    return figure


def _portrait(axes, q, qd):
    q, qd = (np.asarray(x).reshape(len(x), -1) for x in (q, qd))
    many = q.shape[1]
    for k in range(many):
        color = COLORS[k % len(COLORS)]
        axes.plot(q[:, k], qd[:, k], color=color, alpha=max(0.2, many**-0.5), linewidth=1.2)
        axes.plot(q[0, k], qd[0, k], "o", color=color, markersize=5, markerfacecolor="white")
        axes.plot(q[-1, k], qd[-1, k], "s", color=color, markersize=4)
