"""``kinetree robots``: the robots of installed packages."""

from textwrap import fill
from typing import Annotated

import typer

from kinetree.cli import options as cli
from kinetree.cli.options import Json


def _complete_name(incomplete: str):
    """Robot names that begin with a text, for shell completion."""
    import kinetree as kt

    return [name for name in kt.robots.names() if name.startswith(incomplete)]


def robots(
    name: Annotated[
        str | None,
        typer.Argument(help="Print the file of this robot.", autocompletion=_complete_name),
    ] = None,
    as_json: Json = False,
):
    """List the robots that installed packages bring; other commands take them as robots:NAME."""
    import kinetree as kt

    found = kt.robots.available() if name is None else (kt.robots.find(name),)
    if as_json:
        rows = [{"name": r.name, "package": r.package, "file": str(r.file)} for r in found]
        cli.print_json(rows if name is None else rows[0])
    elif name is not None:
        typer.echo(found[0].file)
    else:
        _print(found)


def _print(found):
    """Print robot names by package, and packages that could be installed."""
    from kinetree.loaders.robots.catalogs import CATALOGS

    by_package: dict = {}
    for robot in found:
        by_package.setdefault(robot.package, []).append(robot.name)
    for package, names in by_package.items():
        cli.out().print(package, style="bold")
        lines = fill(", ".join(sorted(names)), 96, initial_indent="  ", subsequent_indent="  ")
        cli.out().print(lines, markup=False, highlight=False)
    others = [c.package for c in CATALOGS if c.package not in by_package]
    if others:
        hint = f"none on this machine from {', '.join(others)}"
        cli.err().print(f"{hint} (not installed, or nothing downloaded)", style="dim")
