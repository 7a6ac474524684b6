"""``kinetree samples``: the robots that ship with the package."""

from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli.console import misuse, out, print_json
from kinetree.cli.options import Json, examples, flag

_WRITE = "kinetree samples write panda panda.urdf"

app = typer.Typer(epilog=examples("kinetree samples", _WRITE))


def _names(incomplete: str):
    import kinetree as kt
    from kinetree.cli.options import describe

    return [(n, describe(n)) for n in kt.samples.names() if n.startswith(incomplete)]


@app.callback(invoke_without_command=True)
def samples(context: typer.Context, as_json: Json = False):
    """List the robots that ship with the package, or write one to a file."""
    if context.invoked_subcommand is not None:
        return
    import kinetree as kt
    from kinetree.cli.options import describe

    rows = []
    for name in kt.samples.names():
        model = getattr(kt.samples, name)()
        row = {"name": name, "nq": model.nq, "nv": model.nv, "loops": len(model.loops)}
        rows.append({**row, "description": describe(name)})
    if as_json:
        print_json(rows)
    else:
        _print(rows)


def _print(rows):
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for heading in ("sample", "nq", "nv", "loops", "description"):
        is_number = heading in ("nq", "nv", "loops")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        numbers = (str(row["nq"]), str(row["nv"]), str(row["loops"] or ""))
        table.add_row(Text(row["name"], "bold"), *numbers, Text(row["description"]))
    out().print(table)


@app.command(epilog=examples(_WRITE))
def write(
    name: Annotated[str, typer.Argument(help="Name of a sample.", autocompletion=_names)],
    file: Annotated[
        Path, typer.Argument(help="Where to: .urdf, .sdf, .xml (MJCF), .toml or .json.")
    ],
    force: Annotated[bool, flag("--force", help="Replace a file that exists.")] = False,
):
    """Write a sample to a file, to change it or to use it elsewhere."""
    import kinetree as kt
    from kinetree.cli.convert import write as save
    from kinetree.cli.options import missing

    if name not in kt.samples.names():
        misuse(missing(name, kt.samples.names(), files=False))
    save(getattr(kt.samples, name)(), file, force=force)
