"""How far work is that takes a while: a bar, or a line that says what is compiled.

On a terminal or in a notebook, to standard error, and gone when the work is done. Nothing is shown
elsewhere, nor where the environment variable KINETREE_PROGRESS is 0.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

PATIENCE = 1.0  # [s] before a line is shown
_SECONDS_PER_OPERATION = (35e-6, 90e-6)  # to write and compile, at LLVM's levels 0 and 1


def is_shown(stream=None) -> bool:
    """Whether somebody watches: a terminal or a notebook, unless KINETREE_PROGRESS is 0."""
    if os.environ.get("KINETREE_PROGRESS", "").strip().lower() in ("0", "off", "no", "false"):
        return False
    isatty = getattr(stream or sys.stderr, "isatty", None)  # which may be None, or no file
    return bool(isatty and isatty()) or _in_notebook()


def _in_notebook():
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _console():
    from rich.console import Console

    return Console(file=None if _in_notebook() else sys.stderr)


class Building:
    """What is compiled now.

    Attributes:
        name: of the function.
        level: how much LLVM optimises it.
        operations: how many it consists of, once that is known.
    """

    def __init__(self, name, level=0):
        self.name, self.level, self.operations = name, level, 0

    def __str__(self):
        if not self.operations:
            return f"kinetree: preparing {self.name}"
        seconds = max(round(self.operations * _SECONDS_PER_OPERATION[self.level]), 1)
        return f"kinetree: compiling {self.name}, {self.operations} operations: about {seconds} s"


_shown: list[Building] = []  # one at a time: what others compile meanwhile is a part of it


@contextmanager
def building(name: str, level: int = 0) -> Iterator[Building]:
    """Say what is compiled, and how long it may take, when that is more than a second."""
    work = Building(name, level)
    if _shown or not is_shown():
        yield work
        return
    _shown.append(work)
    status: list[Any] = []

    def show():
        console = _console()
        if console.is_dumb_terminal:  # which cannot take a line back
            console.print(_Line(work))
            return
        status.append(console.status(_Line(work)))
        status[0].start()

    timer = Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield work
    finally:
        timer.cancel()
        timer.join()
        for found in status:
            found.stop()
        _shown.clear()


class _Line:
    """Text that rich asks for whenever it draws."""

    def __init__(self, work):
        self.work = work

    def __rich__(self):
        from rich.text import Text

        return Text(str(self.work))


@contextmanager
def reporter(progress: Any, total: int, done: int, what: str) -> Iterator[Any]:
    """A function that is called with how much more is done.

    Args:
        progress: True for a bar, False for none, None for a bar where somebody watches; or a
            function that is called with the number of parts done and of all.
        total: number of parts.
        done: how many were done before.
        what: the title of the bar.
    """
    if callable(progress):
        count = [done]

        def advance(more):
            count[0] += more
            progress(count[0], total)

        progress(done, total)
        yield advance
    elif progress or (progress is None and is_shown()):
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=_console(), transient=True) as bar:
            task = bar.add_task(what, total=total, completed=done)
            _shown.append(Building(what))  # no other line beside the bar
            try:
                yield lambda more: bar.advance(task, more)
            finally:
                _shown.clear()
    else:
        yield lambda more: None
