"""What the command offers: its subcommands and common options."""

from typing import Annotated

import typer

import kinetree
from kinetree.cli import bench, cache

__all__ = ["app"]

app = typer.Typer(
    help="Rigid-body dynamics, compiled. Each command has its own --help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(cache.app, name="cache")
app.command("bench")(bench.bench)


def _print_version(wanted: bool):
    if wanted:
        typer.echo(f"kinetree {kinetree.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
):
    """Options that come before the name of a command."""
