"""Diagrams of mechanisms and of linear models: trees, sparsity patterns, eigenvalues."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.algorithms.sparsity import pattern
from kinetree.algorithms.sparsity import sparsity as measured
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.model import Model
from kinetree.plot.sheet import heading, sheet
from kinetree.simulation.results.labels import velocities
from kinetree.simulation.results.panels import COLORS, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SHORT = 22


def tree(model: Model, *, names: bool = True) -> "Figure":
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


_NAMED = 32


def sparsity(what: Model | ArrayLike) -> "Figure":
    """The pattern of the mass matrix of a model and of its factor L; or that of a matrix.

    Dark squares may be other than zero. The pattern of a model comes from its tree — RBDA §6.4:
    ``H = Lᵀ L`` has no fill-in.

    Args:
        what: a ``Model``, or a matrix.
    """
    if not isinstance(what, Model):
        matrix = np.asarray(what)
        if matrix.ndim != 2:
            raise ShapeError(f"sparsity is of a model or of a matrix, got shape {matrix.shape}")
        with sheet(size=(4.4, 4.2)) as (figure, grid):
            _squares(grid[0, 0], matrix != 0, ())
            filled = np.count_nonzero(matrix)
            heading(grid[0, 0], f"{filled} of {matrix.size} entries are not zero")
        return figure
    lam = what.expanded_parent
    whole, names = pattern(lam), [v.name for v in velocities(what)]
    numbers = measured(lam)
    side = 2.4 + 0.09 * min(len(lam), 40)
    with sheet(1, 2, (2 * side + 0.9, side + 0.5)) as (figure, grid):
        left, right = grid[0]
        _squares(left, whole, names)
        heading(left, f"mass matrix, {100 * numbers.density:.0f} % filled")
        _squares(right, np.tril(whole), ())
        right.set(xticks=[], yticks=[])
        heading(right, "factor L")
        figure.suptitle(f"{words(what.name)}: {len(lam)} variables", fontsize=11)
    return figure


def _squares(axes, filled, names):
    axes.imshow(filled, cmap="Blues", vmin=0, vmax=1.35, interpolation="nearest")
    rows, columns = filled.shape
    axes.grid(False)
    if max(rows, columns) <= 60:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(True, which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)
    if names and rows <= _NAMED:
        axes.set_yticks(
            range(rows), [words(name) for name in names], fontsize=8 if rows <= 16 else 6
        )
        axes.set_xticks([])


_MARKS = "oxs^d+v*"


def eigenvalues(
    *systems: Any, names: Sequence[str] | None = None, discrete: bool = False
) -> "Figure":
    """Eigenvalues of linear models, each with a mark of its own.

    What is stable is on white, what is not on grey.

    Args:
        *systems: matrices (n, n), or linear models with a matrix ``A``, such as ``kt.linearize``
            returns.
        names: of the systems, for the legend.
        discrete: eigenvalues of steps, stable within the unit circle; else of rates [1/s], stable
            on the left.
    """
    found = [np.linalg.eigvals(_matrix(system)) for system in systems]
    if not found:
        raise ShapeError("eigenvalues needs at least one matrix")
    if names is not None and len(names) != len(found):
        raise ShapeError(f"there are {len(found)} systems and {len(names)} names")
    with sheet(size=(4.8, 4.2)) as (figure, grid):
        axes = grid[0, 0]
        everything = np.concatenate(found)
        reach = 1.15 * max(np.abs(everything.real).max(), np.abs(everything.imag).max(), 1e-9)
        (_circle if discrete else _halves)(axes, max(reach, 1.25 if discrete else 0.0))
        for k, values in enumerate(found):
            mark = _MARKS[k % len(_MARKS)]
            hollow = {} if mark in "x+*" else {"markerfacecolor": "none"}
            axes.plot(
                values.real, values.imag, mark, color=COLORS[k % len(COLORS)], markersize=6,
                markeredgewidth=1.4, label=names[k] if names else None, zorder=3, **hollow,
            )  # fmt: skip
        unit = "" if discrete else " [1/s]"
        axes.set(xlabel=f"real part{unit}", ylabel=f"imaginary part{unit}")
        margin = 1e-9 * np.abs(everything).max(initial=0.0)  # on the border by rounding
        inside = np.abs(everything) < 1 - 1e-9 if discrete else everything.real < -margin
        stable = bool(np.all(inside))
        heading(axes, "eigenvalues" if not stable else "eigenvalues, all stable")
        if names:
            axes.legend(loc="best")
    return figure


def _matrix(system):
    A = np.asarray(getattr(system, "A", system))
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ShapeError(
            f"eigenvalues are of square matrices, or of models that have one; got {A.shape}"
        )
    return A


def _halves(axes, reach):
    axes.axvspan(0, reach, color="#efefef", zorder=0)
    for draw in (axes.axvline, axes.axhline):
        draw(0, color="#777777", linewidth=0.9, zorder=1)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))


def _circle(axes, reach):
    from matplotlib.patches import Circle

    axes.set_facecolor("#efefef")
    axes.add_patch(Circle((0, 0), 1.0, facecolor="white", edgecolor="#777777", zorder=0.5))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
