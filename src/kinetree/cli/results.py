"""Numbers with names beside them, for people."""

import numpy as np

from kinetree.algorithms.task_space import ROWS, task_rows
from kinetree.cli.console import print_wide
from kinetree.identification.parameters import parameter_names, velocity_names
from kinetree.quantities.catalogue import FUNCTIONS
from kinetree.spelling import printable

__all__ = ["show"]

_SPATIAL = ("wx", "wy", "wz", "x", "y", "z")


def show(console, model, function, arguments, result):
    """Print a result as a table whose rows and columns say what they are.

    ``arguments`` are as the user gave them; None is the default.
    """
    from rich.table import Table
    from rich.text import Text

    given = "".join(f", {name} = {_short(name, value)}" for name, value in arguments.items())
    console.print(
        Text.assemble((function, "bold"), " of ", (printable(model.name), "bold"), f"{given}\n"),
        soft_wrap=True,  # one line whatever the terminal, for whoever reads it by program
    )
    array = np.asarray(result, dtype=float)
    array = np.where(np.abs(array) > 1e-14 * np.max(np.abs(array), initial=0), array, 0.0)
    if array.ndim == 0:
        console.print(f"{array:.6g}")
        return
    if array.ndim > 2:
        console.print(str(array))
        return
    rows, *columns = _labels(model, array.shape, function, arguments)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("")
    for label in columns[0] if columns else [""]:
        table.add_column(printable(label), justify="right")
    if array.ndim == 1:
        table.show_header = False
    for label, row in zip(rows, np.atleast_2d(array.T).T, strict=True):
        table.add_row(Text(printable(label), "cyan"), *(f"{x:.6g}" for x in row))
    print_wide(console, table)


def _labels(model, shape, function, arguments):
    """Names for the entries along each axis of a result; samples of a batch have numbers."""
    axes = FUNCTIONS[function].shape
    lead = len(shape) - len(axes)
    return [
        [str(k) for k in range(size)]
        if i < lead
        else _names(model, axes[i - lead], function, arguments)
        for i, size in enumerate(shape)
    ]


def _names(model, axis, function, arguments):
    """Names for the entries along an axis, as the catalogue describes it."""
    if axis == "nv":
        return velocity_names(model)
    if callable(axis) and function.endswith("regressor"):
        chosen = {name: arguments[name] for name in ("friction", "rotors") if name in arguments}
        return list(parameter_names(model, **chosen))
    if callable(axis):
        return [ROWS[k] for k in task_rows(arguments.get("rows"))]
    return {3: ["x", "y", "z"], 4: ["x", "y", "z", ""], 6: list(_SPATIAL)}[axis]


def _short(name, value):
    """What the user gave, or the default."""
    if value is None:
        return "neutral" if name == "q" else "0"
    return str(value)
