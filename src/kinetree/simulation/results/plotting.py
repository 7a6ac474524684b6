"""A trajectory as a picture: positions, velocities, forces and energy over time.

Each kind of variable has a row, positions on the left and velocities on the right, with one legend
for both. Where there are more variables than colours, those that move most are coloured and named,
and the others are grey.
"""

import re
from typing import NamedTuple

import numpy as np

from kinetree.errors import UnknownNameError
from kinetree.simulation.results import labels
from kinetree.simulation.results.observables import loop_errors, observe
from kinetree.simulation.results.packages import need
from kinetree.spelling import did_you_mean

__all__ = ["plot"]

COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f4fbf", "#8c613c",
    "#c2185b", "#4d4d4d",
)  # fmt: skip
_GREY = "#c4c4c4"
_NOTHING = 1e-9  # rad, m, N: a rounding error of what stands still
_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "figure.dpi": 120,
    "font.size": 9,
    "grid.color": "#e6e6e6",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "savefig.dpi": 150,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


class _Line(NamedTuple):
    name: str
    values: np.ndarray  # (T, motions)
    color: str = ""


def plot(trajectory, *, joints=None):
    """A Matplotlib figure of a trajectory; ``joints`` are the names of those to show."""
    pyplot = need("matplotlib.pyplot", "Trajectory.plot", "plot")
    chosen = _chosen(trajectory.model, joints)
    rows = _motion(trajectory, chosen)
    forces = _forces(trajectory, chosen)
    rows += [(forces, None)] if forces else []
    rows.append((_energy(trajectory), _balance(trajectory)))
    if trajectory.model.loops:
        rows.append(_closure(trajectory))
    colors = _colors(rows)
    with pyplot.rc_context(_STYLE):
        figure = pyplot.figure(figsize=(10, 1.2 + 2.1 * len(rows)), layout="constrained")
        grid = figure.add_gridspec(len(rows), 2)
        first = None
        for k, (left, right) in enumerate(rows):
            for j, panel in enumerate((left, right)):
                if panel is None:
                    continue
                at = grid[k, :] if right is None else grid[k, j]
                first = axes = figure.add_subplot(at, sharex=first)
                panel.draw(axes, trajectory.t, colors)
                if right is None or (j and left.by_joint):
                    left.legend_beside(axes, colors)
                elif not panel.by_joint:
                    panel.legend_above(axes, colors)
                _mark(axes, trajectory.events, named=k == j == 0)
                if k == len(rows) - 1:
                    axes.set_xlabel("time [s]")
        figure.align_ylabels()
        _title(figure, trajectory)
    return figure


# --- what is drawn --------------------------------------------------------------------------------


class _Panel:
    """One pair of axes with its lines."""

    def __init__(self, title, unit, lines, *, by_joint=True):
        self.title, self.unit, self.lines, self.by_joint = title, unit, lines, by_joint

    def draw(self, axes, t, colors):
        axes.set_title(self.title, loc="left", fontweight="bold", color="#333333")
        axes.margins(x=0.01)
        many = max((line.values.shape[1] for line in self.lines), default=1)
        scale = self._scale()
        power = f"[$10^{{{scale}}}$ " if scale else "["
        axes.set_ylabel(self.unit.replace("[", power))
        for line in sorted(self.lines, key=lambda line: self._color(line, colors) != _GREY):
            color = self._color(line, colors)
            is_thin = color == _GREY or many > 1
            axes.plot(
                t, line.values / 10.0**scale, color=color, alpha=max(0.15, many**-0.5),
                linewidth=0.8 if is_thin else 1.4,
            )  # fmt: skip
        if self.by_joint and self._largest() < _NOTHING:
            axes.set_ylim(-1, 1)

    def _scale(self):
        """A power of ten that keeps the numbers at the axis short."""
        largest = self._largest()
        if largest == 0 or 1e-3 <= largest < 1e5 or (self.by_joint and largest < _NOTHING):
            return 0
        return 3 * int(np.floor(np.log10(largest) / 3))

    def _largest(self):
        finite = [np.abs(line.values[np.isfinite(line.values)]) for line in self.lines]
        return max((values.max(initial=0) for values in finite), default=0)

    def legend_beside(self, axes, colors):
        """A legend to the right of some axes: names that do for positions and velocities."""
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "borderaxespad": 0.3}
        axes.legend(handles=self._handles(colors), handlelength=1.2, labelspacing=0.25, **place)

    def legend_above(self, axes, colors):
        """A legend in the line of the title."""
        if handles := self._handles(colors):
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
            spaces = {"handlelength": 1.2, "columnspacing": 1.0, "handletextpad": 0.4}
            axes.legend(handles=handles, ncols=len(handles), **place, **spaces)

    def _handles(self, colors):
        from matplotlib.lines import Line2D

        named = [(self._color(line, colors), _key(line.name)) for line in self.lines if line.name]
        others = sum(color == _GREY for color, _ in named)
        named = [entry for entry in named if entry[0] != _GREY]
        named += [(_GREY, f"{others} more")] if others else []
        return [Line2D([], [], color=c, label=label, linewidth=1.8) for c, label in named]

    def _color(self, line, colors):
        return line.color or colors.get(_key(line.name), _GREY)


def _chosen(model, joints):
    if joints is None:
        return set(model.joint_names)
    joints = [joints] if isinstance(joints, str) else list(joints)
    for name in joints:
        if name not in model.joint_names:
            hint = did_you_mean(name, model.joint_names)
            raise UnknownNameError(f"model {model.name!r} has no joint {name!r}; {hint}")
    return set(joints)


def _motion(trajectory, chosen):
    """Rows of positions and velocities: of angles, of distances, of orientations."""
    model = trajectory.model
    q, qd = labels.positions(model), labels.velocities(model)
    turning = {v.joint for v in q if v.unit == "1"}  # joints with quaternions
    kinds = (
        ("angles", "rad", lambda v: v.is_turn and v.joint not in turning),
        ("distances", "m", lambda v: v.unit.startswith("m")),
        ("orientations", "1", lambda v: v.joint in turning and not v.unit.startswith("m")),
    )
    rows = []
    for title, unit, belongs in kinds:
        panels = []
        for array, variables, suffix in ((trajectory.q, q, ""), (trajectory.qd, qd, "/s")):
            lines = [
                _Line(v.name, _columns(array[..., k]))
                for k, v in enumerate(variables)
                if belongs(v) and v.joint in chosen
            ]
            words = title if not suffix else _rates(title)
            shown = unit if not suffix else f"{'rad' if unit == '1' else unit}/s"
            panels.append(_Panel(words, "quaternion" if shown == "1" else f"[{shown}]", lines))
        if panels[0].lines:
            rows.append(tuple(panels))
    return rows


def _rates(title):
    return {"angles": "angular velocities", "distances": "velocities"}.get(
        title, "angular velocities"
    )


def _forces(trajectory, chosen):
    """The forces of the controller, if it exerted any."""
    variables = labels.velocities(trajectory.model)
    lines = [
        _Line(v.name, _columns(trajectory.tau[..., k]))
        for k, v in enumerate(variables)
        if v.joint in chosen
    ]
    if not any(np.any(line.values) for line in lines):
        return None
    units = sorted({v.force_unit for v in variables if v.joint in chosen}, reverse=True)
    return _Panel("joint forces", f"[{', '.join(units)}]", lines)


def _energy(trajectory):
    kinetic = observe(trajectory.model, trajectory.q, trajectory.qd).kinetic
    lines = [
        _Line("kinetic", _columns(kinetic), COLORS[0]),
        _Line("potential", _columns(trajectory.energy - kinetic), COLORS[1]),
        _Line("total", _columns(trajectory.energy), "#222222"),
    ]
    if np.any(trajectory.work):
        lines.append(_Line("work", _columns(trajectory.work), COLORS[2]))
    return _Panel("energy", "[J]", lines, by_joint=False)


def _balance(trajectory):
    """Energy that came from nowhere: the change of energy less the work of all joint forces.

    Springs of the joints count among those forces, and not into the energy. What events took away,
    such as impacts, is accounted for.
    """
    elastic = observe(trajectory.model, trajectory.q, trajectory.qd).elastic
    energy = trajectory.energy - elastic
    error = energy - energy[:1] - trajectory.work
    for event in trajectory.events:
        error[(trajectory.t >= event.t, *event.sample)] -= event.energy
    line = _Line("", _columns(error), "#b00020")
    return _Panel("energy balance: change less work", "[J]", [line], by_joint=False)


def _closure(trajectory):
    """How far loops and couplings are from closed, and how fast they open."""
    found = loop_errors(trajectory.model, trajectory.q, trajectory.qd)
    titles = ("closure error of loops", "closure velocity error")
    return tuple(
        _Panel(title, unit, [_Line("", _columns(error), "#b00020")], by_joint=False)
        for title, unit, error in zip(titles, ("[m or rad]", "[m/s or rad/s]"), found, strict=True)
    )


def _columns(array):
    return array.reshape(len(array), -1)


# --- how ------------------------------------------------------------------------------------------


def _key(name):
    """What has a colour of its own: x, its velocity vx and the turn qx or wx about it share one."""
    return re.sub(r"\.[qvw]([wxyz])$", r".\1", name)


def _colors(rows):
    """Colours of those variables of each row that move most, the same in all panels."""
    colors = {}
    for left, _ in rows:
        if not left.by_joint:
            continue
        missing = [line for line in left.lines if _key(line.name) not in colors]
        spread = [np.ptp(line.values, axis=0).max() for line in missing]
        taken = sum(_key(line.name) in colors for line in left.lines)
        most = np.argsort(spread)[::-1][: max(len(COLORS) - taken, 0)]
        for k in sorted(most):
            colors.setdefault(_key(missing[k].name), COLORS[len(colors) % len(COLORS)])
    return colors


def _mark(axes, events, *, named):
    """Events as lines across the panel; at most a dozen have their names written above."""
    for k, event in enumerate(events):
        axes.axvline(event.t, color="#777777", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)
        if named and k < 12:
            axes.annotate(
                event.name, (event.t, 1), xycoords=("data", "axes fraction"), rotation=90,
                fontsize=7, color="#666666", ha="right", va="top",
                xytext=(-1, -2), textcoords="offset points",
            )  # fmt: skip


def _title(figure, trajectory):
    t, motions = trajectory.t, int(np.prod(trajectory.q.shape[1:-1]))
    many = f", {motions} motions" if motions > 1 else ""
    figure.suptitle(f"{trajectory.model.name}: {t[-1] - t[0]:g} s{many}", fontsize=11)
