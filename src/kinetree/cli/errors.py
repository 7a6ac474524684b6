"""Mistakes and their messages: one line for people, the traceback for ``--debug``.

Exit codes: 0 done; 1 the answer is no, or there is none; 2 the command was used wrongly.
"""

import warnings
from typing import NoReturn

import typer
import typer.core

from kinetree.cli.console import err
from kinetree.errors import KinetreeError

__all__ = ["Commands", "fail", "misuse"]


def fail(message, *, code=1) -> NoReturn:
    """Say what went wrong and leave."""
    from rich.text import Text

    err().print(Text("error: ", "bold red") + Text(str(message)), soft_wrap=True)
    raise typer.Exit(code)


def misuse(message) -> NoReturn:
    """Say what was asked for wrongly and leave."""
    fail(message, code=2)


class Commands(typer.core.TyperGroup):
    """The group of all commands, which turns errors into messages."""

    order = (
        "info", "view", "check", "eval", "simulate", "plot", "convert", "samples", "generate",
        "bench", "demo", "cache",
    )  # fmt: skip

    def list_commands(self, ctx):
        """The commands in the order in which a newcomer needs them."""
        known = [name for name in self.order if name in self.commands]
        return known + sorted(set(self.commands) - set(known))

    def invoke(self, ctx):
        """Run a command; what kinetree refuses is explained, not traced back."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KinetreeError as error:
                return _explained(ctx, error, str(error))
            except OSError as error:
                name = "" if error.filename is None else f"{error.filename}: "
                return _explained(ctx, error, f"{name}{error.strerror or error}")


def _explained(ctx, error, message):
    if ctx.params.get("debug"):
        raise error
    fail(message)


def _show_warning(message, category, filename, lineno, file=None, line=None):
    from rich.text import Text

    err().print(Text("warning: ", "yellow") + Text(str(message)), soft_wrap=True)
