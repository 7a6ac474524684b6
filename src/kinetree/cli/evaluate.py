"""``kinetree eval``: any function of a robot at a state, and its result as a table."""

import sys
from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np
import typer

from kinetree.cli import options as cli
from kinetree.cli.arguments import (
    bind,
    find_function,
    functions,
    settings,
    spelling,
    standard_input,
    summary,
)
from kinetree.cli.options import flag, option
from kinetree.cli.records import Reading, with_records
from kinetree.spelling import printable


def _complete_function(incomplete: str):
    """Function names that begin with a text, with descriptions, for shell completion."""
    return [(n, summary(f)) for n, f in functions().items() if n.startswith(incomplete)]


FunctionName = Annotated[
    str | None,
    typer.Argument(
        metavar="FUNCTION",
        help="What to compute; --list lists them.",
        autocompletion=_complete_function,
    ),
]
RobotName = Annotated[
    str | None,
    typer.Argument(metavar="ROBOT", help="A file or a sample.", autocompletion=cli.complete),
]
StandardInput = Annotated[
    str | None, typer.Argument(metavar="[-]", help="'-': arguments as JSON from stdin.")
]
Position = Annotated[
    str | None,
    option("--q", value="Q", help="Positions: 1,2,3 or neutral or random:7 or a posture."),
]
Velocity = Annotated[str | None, option("--qd", value="QD", help="Velocities; zero unless given.")]
Acceleration = Annotated[
    str | None, option("--qdd", value="QDD", help="Accelerations; zero unless given.")
]
JointForces = Annotated[
    str | None, option("--tau", value="TAU", help="Joint forces; zero unless given.")
]
BodyForces = Annotated[
    str | None,
    option("--f-ext", value="JSON", help='Forces on bodies: {"hand": [0,0,0,0,0,-9.8]}.'),
]
FrameName = Annotated[str | None, option("--of", value="NAME", help="The frame or body.")]
Coordinates = Annotated[
    str | None,
    option("--in", value="WHICH", help="Coordinates of the answer: world, body or aligned."),
]
Point = Annotated[str | None, option("--point", value="X,Y,Z", help="A point in that frame.")]
Setting = Annotated[
    list[str] | None, option("--set", value="NAME=JSON", help="Any other argument; repeatable.")
]
AsTable = Annotated[
    bool | None,
    flag(
        "--table/--json",
        help="For people or for programs; by default a table on a terminal, else JSON.",
        show_default=False,
    ),
]
ShowList = Annotated[bool, flag("--list", help="List the functions.")]


@dataclass(frozen=True)
class GivenTexts:
    """Arguments of the function, as texts."""

    q: Position = None
    qd: Velocity = None
    qdd: Acceleration = None
    tau: JointForces = None
    f_ext: BodyForces = None
    of: FrameName = None
    coordinates: Coordinates = None
    point: Point = None
    argument: Setting = None

    def texts(self) -> dict:
        """Given argument texts by option name."""
        texts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "argument"}
        texts["in"] = texts.pop("coordinates")
        return {name: x for name, x in texts.items() if x is not None} | settings(
            self.argument or []
        )


@with_records
def evaluate(
    function: FunctionName = None,
    robot: RobotName = None,
    stdin: StandardInput = None,
    *,
    arguments: GivenTexts,
    reading: Reading,
    table: AsTable = None,
    show_list: ShowList = False,
):
    """Compute a function of a robot at a state: forces, accelerations, poses, Jacobians, energies.

    Positions are neutral and all else is zero, unless given. Lists of lists are batches.
    """
    if show_list or function is None:
        _print_list(table if table is not None else True)
        return
    chosen = find_function(function)
    if robot is None:
        cli.misuse(f"which robot? kinetree eval {function} ROBOT")
    model = reading.robot(robot).model
    given = arguments.texts()
    if stdin is not None:
        given = {**standard_input(stdin), **given}
    values = bind(chosen, model, given)
    result = chosen(model, **values)
    words = spelling(chosen)
    if table or (table is None and sys.stdout.isatty()):
        shown = {
            words[p]: value if isinstance(value, str) else given.get(words[p], given.get(p))
            for p, value in values.items()
        }
        show(cli.out(), model, function, shown, result)
    else:
        answer = {"model": model.name, "function": function}
        answer |= {words[p]: plain(value) for p, value in values.items()}
        cli.print_json({**answer, "result": plain(result)})


def plain(value):
    """Value with arrays as nested lists of numbers."""
    return value.tolist() if isinstance(value, (np.ndarray, np.number)) else value


def _print_list(as_table):
    """Print all functions, as a table or as JSON."""
    rows = [{"name": n, "description": summary(f)} for n, f in functions().items()]
    if not as_table:
        cli.print_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3, 0, 0))
    for row in rows:
        text = row["description"].replace("``", "")
        grid.add_row(Text(row["name"], "bold"), Text(text))
    cli.out().print(grid)


# --- Tables of results ---------------------------------------------------------------------------

_SPATIAL = ("wx", "wy", "wz", "x", "y", "z")


def show(console, model, function, arguments, result):
    """Print a result as a table with labelled rows and columns.

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
    cli.print_wide(console, table)


def _labels(model, shape, function, arguments):
    """Labels of the entries along each axis of a result."""
    from kinetree.quantities import FUNCTIONS

    axes = FUNCTIONS[function].definition.shape
    lead = len(shape) - len(axes)
    return [
        [str(k) for k in range(size)]
        if i < lead
        else _names(model, axes[i - lead], function, arguments)
        for i, size in enumerate(shape)
    ]


def _names(model, axis, function, arguments):
    """Labels of the entries along one axis, by the catalogue of quantities."""
    from kinetree.algorithms.closed.independent import coordinate_labels, named_variables
    from kinetree.algorithms.task_space import ROWS, task_rows
    from kinetree.identification.base import parameter_names, velocity_names
    from kinetree.quantities.loops import coordinate_count

    if axis is coordinate_count and model.is_constrained:
        chosen = named_variables(model, arguments.get("independent"))
        return [coordinate_labels(model)[i] for i in chosen]
    if axis in ("nv", coordinate_count):
        return velocity_names(model)
    if callable(axis) and function.endswith("regressor"):
        chosen = {name: arguments[name] for name in ("friction", "rotors") if name in arguments}
        return list(parameter_names(model, **chosen))
    if callable(axis):
        return [ROWS[k] for k in task_rows(arguments.get("rows"))]
    return {3: ["x", "y", "z"], 4: ["x", "y", "z", ""], 6: list(_SPATIAL)}[axis]


def _short(name, value):
    """Text of a given value, or of the default."""
    if value is None:
        return "neutral" if name == "q" else "0"
    return str(value)
