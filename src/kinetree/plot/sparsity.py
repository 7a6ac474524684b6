"""Where matrices of a mechanism are zero by its shape: the mass matrix and its factor."""

import numpy as np

from kinetree.algorithms.sparsity import pattern
from kinetree.algorithms.sparsity import sparsity as measured
from kinetree.errors import ShapeError
from kinetree.model import Model
from kinetree.plot.sheet import heading, sheet
from kinetree.simulation.results.labels import velocities
from kinetree.simulation.results.panels import words

__all__ = ["sparsity"]

_NAMED = 32


def sparsity(what):
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
