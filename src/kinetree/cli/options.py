"""Options as all commands declare them."""

from typing import Annotated

import typer

__all__ = ["Json", "examples", "flag", "option"]


def flag(*names, help, **settings):
    """An option without a value."""
    return typer.Option(*names, help=help, metavar="", **settings)


def option(*names, help, value, **settings):
    """An option with a value, which ``--help`` calls ``value``."""
    return typer.Option(*names, help=help, metavar=value, show_default=False, **settings)


def examples(*lines):
    """The end of a ``--help``: commands to copy."""
    return "\n".join(["Examples:", *(f"$ {line}" for line in lines)])


Json = Annotated[bool, flag("--json", help="Print JSON.")]
