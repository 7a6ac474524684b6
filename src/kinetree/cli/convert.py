"""``kinetree convert`` and ``samples``: robots, also those that ship with the package, as files."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli.console import err, fail, misuse, print_json
from kinetree.cli.console import out as console_out
from kinetree.cli.info import counted
from kinetree.cli.options import (
    Floating,
    FolderOption,
    Json,
    KeepFixed,
    RobotArgument,
    SrdfOption,
    examples,
    flag,
    open_robot,
)


def convert(
    robot: RobotArgument,
    out: Annotated[
        Path,
        typer.Argument(help="Where to write; the suffix .urdf, .sdf, .xml, .toml, .json decides."),
    ],
    floating: Floating = False,
    srdf: SrdfOption = None,
    keep_fixed: KeepFixed = False,
    folder: FolderOption = None,
    strict: Annotated[
        bool, flag("--strict", help="Write nothing if something would get lost.")
    ] = False,
    force: Annotated[bool, flag("--force", help="Replace a file that exists.")] = False,
):
    """Write a robot in another format: URDF, SDF, MJCF (.xml), kinetree's TOML, or JSON.

    What the new file cannot carry is listed.
    """
    from kinetree.loaders.report import in_lines

    found = open_robot(robot, floating=floating, srdf=srdf, folders=folder, keep_fixed=keep_fixed)
    for line in in_lines(found.notices):
        err().print(f"note: {line}", style="yellow", markup=False, soft_wrap=True)
    if strict and found.notices:
        fail(f"nothing was written, because of {counted(len(found.notices), 'note')} about {robot}")
    write(found.model, out, force=force, strict=strict)


def write(model, path, *, force, strict=False):
    """Save a model, replace a file only with ``force``, and print the path."""
    from kinetree.errors import ModelWarning
    from kinetree.writers import save

    if path.exists() and not force:
        fail(f"{path} exists; --force replaces it", code=2)
    if not path.parent.is_dir():
        fail(f"there is no folder {str(path.parent)!r} to write {path.name} in", code=2)
    with warnings.catch_warnings():
        if strict:
            warnings.simplefilter("error", ModelWarning)
        try:
            save(model, path)
        except ModelWarning as warning:
            fail(f"nothing was written: {warning}")
    size = f"{counted(model.body_count, 'body', 'bodies')}, nv = {model.nv}"
    err().print(f"wrote {path}: {size}", soft_wrap=True)


# --- samples -------------------------------------------------------------------------------------

_WRITE = "kinetree samples write panda panda.urdf"

samples_app = typer.Typer(epilog=examples("kinetree samples", _WRITE))


def _sample_names(incomplete: str):
    import kinetree as kt
    from kinetree.cli.options import describe

    return [(n, describe(n)) for n in kt.samples.names() if n.startswith(incomplete)]


@samples_app.callback(invoke_without_command=True)
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
        _print_samples(rows)


def _print_samples(rows):
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for heading in ("sample", "nq", "nv", "loops", "description"):
        is_number = heading in ("nq", "nv", "loops")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        numbers = (str(row["nq"]), str(row["nv"]), str(row["loops"] or ""))
        table.add_row(Text(row["name"], "bold"), *numbers, Text(row["description"]))
    console_out().print(table)


@samples_app.command("write", epilog=examples(_WRITE))
def write_sample(
    name: Annotated[str, typer.Argument(help="Name of a sample.", autocompletion=_sample_names)],
    file: Annotated[
        Path, typer.Argument(help="Where to: .urdf, .sdf, .xml (MJCF), .toml or .json.")
    ],
    force: Annotated[bool, flag("--force", help="Replace a file that exists.")] = False,
):
    """Write a sample to a file, to change it or to use it elsewhere."""
    import kinetree as kt
    from kinetree.cli.options import missing

    if name not in kt.samples.names():
        misuse(missing(name, kt.samples.names(), files=False))
    write(getattr(kt.samples, name)(), file, force=force)
