"""The tree of a mechanism as a diagram: bodies, joints, loops."""

import numpy as np

from kinetree.plot.sheet import sheet
from kinetree.simulation.results.panels import COLORS, words

__all__ = ["tree"]

_SHORT = 22


def tree(model, *, names=True):
    """The bodies from left to right, each after the one that carries it.

    A label has the name of the body above and the kind of its joint below; dashed lines are joints
    that close loops, dotted ones couplings.

    Args:
        model: the mechanism.
        names: write the names of bodies; numbers otherwise.
    """
    at = _places(model)
    deep = int(at[:, 0].max()) + 1
    rows = at[:, 1].max() + 1
    longest = max(len(name) for name in model.body_names)
    wide = 0.75 + 0.055 * min(longest, _SHORT) if names else 1.0
    with sheet(size=(max(3.2, wide * deep + 0.8), max(1.8, 0.48 * rows + 0.7))) as (figure, grid):
        axes = grid[0, 0]
        axes.set_axis_off()
        for i, body in enumerate(model.bodies, start=1):
            _edge(axes, at[body.parent], at[i])
        for loop in model.loops:
            _bow(axes, at[loop.predecessor], at[loop.successor], COLORS[1], (0, (5, 2)))
        for c in model.couplings:
            for source in c.leaders:
                _bow(axes, at[source], at[c.joint], COLORS[3], (0, (1, 1.5)))
        for i in range(model.body_count + 1):
            _node(axes, model, i, at[i], names)
        axes.set(xlim=(-0.5, deep - 0.5), ylim=(rows - 0.4, -0.6))
        count = f"{model.body_count} bodies" if model.body_count != 1 else "1 body"
        more = f", {len(model.loops)} loops (dashed)" if len(model.loops) > 1 else ""
        more = ", 1 loop (dashed)" if len(model.loops) == 1 else more
        more += ", couplings (dotted)" if model.couplings else ""
        axes.set_title(
            f"{words(model.name)}: {count}{more}", loc="left", fontsize=10, color="#333333"
        )
    return figure


def _places(model):
    """Depth and row of every body, (NB + 1, 2); parents are in the middle of their children."""
    at, free = np.zeros((model.body_count + 1, 2)), 0
    children = [sorted(numbers) for numbers in model.children]
    order, waiting = [], [0]
    while waiting:  # parents before their children; deep trees do not recurse
        order.append(i := waiting.pop())
        waiting += reversed(children[i])
        at[children[i], 0] = at[i, 0] + 1
        if not children[i]:
            at[i, 1], free = free, free + 1
    for i in reversed(order):
        if children[i]:
            at[i, 1] = (at[children[i][0], 1] + at[children[i][-1], 1]) / 2
    return at


def _edge(axes, start, end):
    x = (end[0] - 0.62, end[0] - 0.5)
    axes.plot(
        [start[0], x[0], x[1], end[0]], [start[1], start[1], end[1], end[1]], color="#8a8f98",
        linewidth=1.1, zorder=1, solid_joinstyle="round",
    )  # fmt: skip


def _bow(axes, start, end, color, dash):
    from matplotlib.patches import FancyArrowPatch

    bend = 0.35 if start[0] == end[0] else 0.25
    look = {"arrowstyle": "-", "color": color, "linestyle": dash, "linewidth": 1.3, "zorder": 1.5}
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", **look))


def _node(axes, model, i, at, names):
    kind = "" if i == 0 else type(model.bodies[i - 1].joint).__name__
    name = model.body_names[i] if names else str(i)
    name = name if len(name) <= _SHORT else f"{name[: _SHORT - 1]}…"
    box = {"boxstyle": "round,pad=0.28", "edgecolor": "#5b626c", "linewidth": 0.9}
    box["facecolor"] = "#e3e6ea" if i == 0 else "white"
    axes.text(*at, words(name), ha="center", va="center", fontsize=8, bbox=box, zorder=3)
    if kind:
        axes.annotate(
            kind, at, xytext=(0, -11.5), textcoords="offset points", ha="center", va="center",
            fontsize=6, color="#6a7078", zorder=4,
        )  # fmt: skip
