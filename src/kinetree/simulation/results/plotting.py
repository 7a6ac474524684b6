"""A trajectory as a picture: positions, velocities, forces and energy over time.

All panels over time have one style, with titles, units, legends and events, and read well in print,
too. Each kind of variable has a row, with one legend for both of its panels. Where there are more
variables than colours, those that move most are coloured and named, and the others are grey. Lines
differ by their dashes as well as by their colours.
"""

import io
import re
from functools import partial
from typing import NamedTuple

import numpy as np

from kinetree.errors import need, require_known
from kinetree.functional import layout
from kinetree.simulation.results.observables import loop_errors, observe
from kinetree.spelling import printable

COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f4fbf", "#8c613c",
    "#c2185b", "#4d4d4d",
)  # fmt: skip
DASHES = ("-", (0, (6, 1.8)), (0, (1.3, 1.3)), (0, (6, 1.5, 1.3, 1.5)), (0, (3, 1.2)))
"""One for each colour in turn, so that lines differ where there are no colours."""
GREY = "#c4c4c4"
_LONGEST = 100  # characters of a name; more would leave no room for the picture
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NOTHING = 1e-9  # rad, m, N: a rounding error of what stands still
STYLE = {
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


class Line(NamedTuple):
    """Some values over time, with a name for the legend; a colour, unless the joint has one."""

    name: str
    values: np.ndarray  # (T, motions)
    color: str = ""


def draw_rows(trajectory, rows):
    """Figure of rows of one or two panels over time, with legends and events."""
    pyplot = need("matplotlib.pyplot", "Trajectory.plot", "plot")
    colors = colors_of(rows)
    with style_context(pyplot):
        figure = pyplot.figure(figsize=(10, 1.2 + 2.1 * len(rows)), layout="constrained")
        show_once(figure)
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
                mark(axes, trajectory.events, named=k == j == 0)
                if k == len(rows) - 1:
                    axes.set_xlabel("time [s]")
        figure.align_ylabels()
        title(figure, trajectory)
    return figure


def style_context(pyplot):
    """Matplotlib context with the style of our figures."""
    pyplot.draw_if_interactive()  # loads the backend: what a notebook's sets is not to be undone
    return pyplot.rc_context(STYLE)


def show_once(figure):
    """Make notebooks display a figure exactly once.

    Notebooks show what a cell returns, and after that all figures that are open.
    """
    figure._ipython_display_ = partial(_display, figure)


def _display(figure):
    """Display a figure in a notebook as a PNG image."""
    from matplotlib import pyplot

    display = need("IPython.display", "showing figures in a notebook", "plot")
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    pyplot.close(figure)
    display.display(display.Image(image.getvalue()))


class Panel:
    """One pair of axes with its lines."""

    def __init__(self, title, unit, lines, *, by_joint=True):
        self.title, self.unit, self.lines, self.by_joint = title, unit, lines, by_joint

    def draw(self, axes, t, colors):
        """Draw the panel's lines over time, coloured by joint."""
        axes.set_title(self.title, loc="left", fontweight="bold", color="#333333")
        axes.margins(x=0.01)
        many = max((line.values.shape[1] for line in self.lines), default=1)
        scale = self._scale()
        power = f"[10{str(scale).translate(_RAISED)} " if scale else "["  # TeX takes 0.1 s
        axes.set_ylabel(self.unit.replace("[", power))
        for line in sorted(self.lines, key=lambda line: self._color(line, colors) != GREY):
            color = self._color(line, colors)
            is_thin = color == GREY or many > 1
            axes.plot(
                t,
                line.values / 10.0**scale,
                color=color,
                alpha=max(0.15, many**-0.5),
                linewidth=0.8 if is_thin else 1.4,
                linestyle=dash_of(color),
            )
        if self.by_joint and self._largest() < _NOTHING:
            axes.set_ylim(-1, 1)

    def _scale(self):
        """Power of ten, a multiple of 3, that keeps axis labels short."""
        largest = self._largest()
        if largest == 0 or 1e-3 <= largest < 1e5 or (self.by_joint and largest < _NOTHING):
            return 0
        return 3 * int(np.floor(np.log10(largest) / 3))

    def _largest(self):
        """Largest finite absolute value of all lines."""
        finite = [np.abs(line.values[np.isfinite(line.values)]) for line in self.lines]
        return max((values.max(initial=0) for values in finite), default=0)

    def legend_beside(self, axes, colors):
        """Draw the legend to the right of the axes."""
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "borderaxespad": 0.3}
        axes.legend(handles=self._handles(colors), handlelength=2.2, labelspacing=0.25, **place)

    def legend_above(self, axes, colors):
        """Draw the legend above the axes, beside the title."""
        if handles := self._handles(colors):
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
            spaces = {"handlelength": 2.2, "columnspacing": 1.0, "handletextpad": 0.4}
            axes.legend(handles=handles, ncols=len(handles), **place, **spaces)

    def _handles(self, colors):
        """Legend entries of the named lines, grey ones counted together."""
        from matplotlib.lines import Line2D

        named = [(self._color(line, colors), _key(line.name)) for line in self.lines if line.name]
        others = sum(color == GREY for color, _ in named)
        named = [entry for entry in named if entry[0] != GREY]
        named += [(GREY, f"{others} more")] if others else []
        return [
            Line2D([], [], color=c, label=words(label), linewidth=1.6, linestyle=dash_of(c))
            for c, label in named
        ]

    def _color(self, line, colors):
        """Colour of a line: its own, or that of its variable."""
        return line.color or colors.get(_key(line.name), GREY)


def _key(name):
    """Colour key of a variable: x, its velocity vx and rotation qx or wx share one."""
    return re.sub(r"\.[qvw]([wxyz])$", r".\1", name)


def colors_of(rows):
    """Colours of the most moving variables of each row, equal in all panels."""
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


def mark(axes, events, *, named):
    """Draw events as vertical lines, the first dozen with names."""
    for k, event in enumerate(events):
        axes.axvline(event.t, color="#777777", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)
        if named and k < 12:
            axes.annotate(
                words(event.name),
                (event.t, 1),
                xycoords=("data", "axes fraction"),
                rotation=90,
                fontsize=7,
                color="#666666",
                ha="right",
                va="top",
                xytext=(-1, -2),
                textcoords="offset points",
            )


def title(figure, trajectory):
    """Set the figure title: model name, duration and number of motions."""
    t, motions = trajectory.t, int(np.prod(trajectory.q.shape[1:-1]))
    many = f", {motions} motions" if motions > 1 else ""
    figure.suptitle(f"{words(trajectory.model.name)}: {t[-1] - t[0]:g} s{many}", fontsize=11)


def words(name) -> str:
    """Name as text that Matplotlib shows literally, shortened if long.

    For Matplotlib, dollars enclose formulas, and labels that start with an underscore are hidden.
    """
    text = printable(name).replace("$", r"\$")
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f" {text}" if text.startswith("_") else text


def dash_of(color):
    """Line style that belongs to a colour, for readers without colour."""
    return DASHES[COLORS.index(color) % len(DASHES)] if color in COLORS else "-"


def plot(trajectory, *, joints=None):
    """Matplotlib figure of a trajectory; ``joints`` selects the joints shown."""
    chosen = chosen_joints(as_motion(trajectory).model, joints)
    rows = motion_rows(trajectory, chosen)
    forces = force_panel(trajectory, chosen)
    rows += [(forces, None)] if forces else []
    rows.append((energy_panel(trajectory), balance_panel(trajectory)))
    if trajectory.model.is_constrained:
        rows.append(closure_panels(trajectory))
    return draw_rows(trajectory, rows)


def as_motion(trajectory):
    """``trajectory`` itself if it is a motion, else TypeError."""
    if not all(hasattr(trajectory, name) for name in ("model", "t", "q", "qd")):
        is_model = hasattr(trajectory, "body_count")
        hint = "; kinetree.plot.tree(model) draws a mechanism" if is_model else ""
        raise TypeError(
            f"this draws a motion, such as kinetree.simulate returns, got "
            f"{type(trajectory).__name__}{hint}"
        )
    return trajectory


def chosen_joints(model, joints):
    """Set of joint names to show; all joints by default."""
    if joints is None:
        return set(model.joint_names)
    joints = [joints] if isinstance(joints, str) else list(joints)
    for name in joints:
        require_known(name, model.joint_names, f"model {model.name!r} has no joint {name!r}")
    return set(joints)


def motion_rows(trajectory, chosen):
    """Rows of position and velocity panels: angles, distances, orientations."""
    model = trajectory.model
    q, qd = layout.positions(model), layout.velocities(model)
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
                Line(v.name, _columns(array[..., k]))
                for k, v in enumerate(variables)
                if belongs(v) and v.joint in chosen
            ]
            words = title if not suffix else _rates(title)
            shown = unit if not suffix else f"{'rad' if unit == '1' else unit}/s"
            panels.append(Panel(words, "quaternion" if shown == "1" else f"[{shown}]", lines))
        if panels[0].lines:
            rows.append(tuple(panels))
    return rows


def _rates(title):
    """Title of the velocity panel that belongs to a position panel."""
    return {"angles": "angular velocities", "distances": "velocities"}.get(
        title, "angular velocities"
    )


def force_panel(trajectory, chosen):
    """Panel of controller joint forces; None if they are all zero."""
    variables = layout.velocities(trajectory.model)
    lines = [
        Line(v.name, _columns(trajectory.tau[..., k]))
        for k, v in enumerate(variables)
        if v.joint in chosen
    ]
    if not any(np.any(line.values) for line in lines):
        return None
    units = sorted({v.force_unit for v in variables if v.joint in chosen}, reverse=True)
    return Panel("joint forces", f"[{', '.join(units)}]", lines)


def energy_panel(trajectory):
    """Panel of kinetic, potential and total energy, and work."""
    kinetic = observe(trajectory.model, trajectory.q, trajectory.qd).kinetic
    lines = [
        Line("kinetic", _columns(kinetic), COLORS[1]),
        Line("potential", _columns(trajectory.energy - kinetic), COLORS[2]),
        Line("total", _columns(trajectory.energy), "#222222"),
    ]
    if np.any(trajectory.work):
        lines.append(Line("work", _columns(trajectory.work), COLORS[3]))
    return Panel("energy", "[J]", lines, by_joint=False)


def balance_panel(trajectory):
    """Panel of the energy balance error: change of energy minus work.

    Springs of the joints count among those forces, and not into the energy. What events took away,
    such as impacts, is accounted for.
    """
    elastic = observe(trajectory.model, trajectory.q, trajectory.qd).elastic
    energy = trajectory.energy - elastic
    error = energy - energy[:1] - trajectory.work
    for event in trajectory.events:
        error[(trajectory.t >= event.t, *event.sample)] -= event.energy
    line = Line("", _columns(error), "#b00020")
    return Panel("energy balance: change less work", "[J]", [line], by_joint=False)


def closure_panels(trajectory):
    """Panels of the position and velocity errors of loops over time."""
    found = loop_errors(trajectory.model, trajectory.t, trajectory.q, trajectory.qd)
    titles = ("closure error of loops", "closure velocity error")
    return tuple(
        Panel(title, unit, [Line("", _columns(error), "#b00020")], by_joint=False)
        for title, unit, error in zip(titles, ("[m or rad]", "[m/s or rad/s]"), found, strict=True)
    )


def _columns(array):
    """Array (T, ...) reshaped to columns (T, n)."""
    return array.reshape(len(array), -1)
