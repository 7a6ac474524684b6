"""Eigenvalues in the complex plane: what is stable, what swings, what is fast."""

import numpy as np

from kinetree.errors import ShapeError
from kinetree.plot.sheet import heading, sheet
from kinetree.simulation.results.panels import COLORS

__all__ = ["eigenvalues"]

_MARKS = "oxs^d+v*"


def eigenvalues(*systems, names=None, discrete=False):
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
