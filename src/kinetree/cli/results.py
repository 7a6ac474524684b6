"""Numbers with names beside them, for people."""

import numpy as np

from kinetree.cli.console import print_wide

__all__ = ["show"]

_SPATIAL = ("wx", "wy", "wz", "x", "y", "z")


def show(console, model, function, arguments, result):
    """Print a result as a table whose rows and columns say what they are.

    ``arguments`` are as the user gave them; None is the default.
    """
    from rich.table import Table
    from rich.text import Text

    given = "".join(f", {name} = {_short(name, value)}" for name, value in arguments.items())
    console.print(Text.assemble((function, "bold"), " of ", (model.name, "bold"), f"{given}\n"))
    array = np.asarray(result, dtype=float)
    array = np.where(np.abs(array) > 1e-14 * np.max(np.abs(array), initial=0), array, 0.0)
    if array.ndim == 0:
        console.print(f"{array:.6g}")
        return
    if array.ndim > 2:
        console.print(str(array))
        return
    rows = _labels(model, array.shape[0], function)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    columns = [""] if array.ndim == 1 else _labels(model, array.shape[1], function)
    table.add_column("")
    for label in columns:
        table.add_column(label, justify="right")
    if array.ndim == 1:
        table.show_header = False
    for label, row in zip(rows, np.atleast_2d(array.T).T, strict=True):
        table.add_row(Text(label, "cyan"), *(f"{x:.6g}" for x in row))
    print_wide(console, table)


def _labels(model, size, function):
    """Names for the entries along an axis of a result."""
    if size == model.nv and function not in ("pose",):
        return [
            name if part.stop - part.start == 1 else f"{name}.{k - part.start}"
            for name, part in zip(model.joint_names, model.v_slice[1:], strict=True)
            for k in range(part.start, part.stop)
        ]
    if size == 6:
        return list(_SPATIAL)
    return ["x", "y", "z", ""][:size] if size in (3, 4) else [str(k) for k in range(size)]


def _short(name, value):
    """What the user gave, or the default."""
    if value is None:
        return "neutral" if name == "q" else "0"
    return str(value)
