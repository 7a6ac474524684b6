"""How far work is that takes a while: a bar, or a line that says what is compiled.

On a terminal or in a notebook, to standard error, and gone when the work is done. Nothing is shown
elsewhere, nor where the environment variable KINETREE_PROGRESS is 0.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

PATIENCE, AGAIN = 1.0, 0.2  # [s] before a line is shown, and between its changes
_SECONDS_PER_OPERATION = (35e-6, 90e-6)  # to write and compile, at LLVM's levels 0 and 1


def is_shown(stream=None) -> bool:
    """Whether progress is printed: to a terminal or a notebook, unless KINETREE_PROGRESS is 0."""
    if os.environ.get("KINETREE_PROGRESS", "").strip().lower() in ("0", "off", "no", "false"):
        return False
    isatty = getattr(stream or sys.stderr, "isatty", None)  # which may be None, or no file
    return bool(isatty and isatty()) or _in_notebook()


def _in_notebook():
    """Whether the process is the kernel of a Jupyter notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _columns():
    """Width of the terminal."""
    import shutil  # with archives: not needed where nothing is shown

    return shutil.get_terminal_size().columns


class Building:
    """Work that is compiled now.

    Attributes:
        name: of the function.
        level: how much LLVM optimises it.
        operations: how many it consists of, once that is known.
        parts: how many units it consists of, once that is known.
        done: how many of these are there.
    """

    def __init__(self, name, level=0):
        self.name, self.level, self.operations = name, level, 0
        self.parts = self.done = 0

    def advance(self):
        """Count one more compiled part of this work."""
        self.done += 1

    def __str__(self):
        if self.parts:
            return f"kinetree: compiling {self.name}: {self.done} of {self.parts} parts"
        if not self.operations:
            return f"kinetree: preparing {self.name}"
        seconds = max(round(self.operations * _SECONDS_PER_OPERATION[self.level]), 1)
        return f"kinetree: compiling {self.name}, {self.operations} operations: about {seconds} s"


class Working:
    """Work that is done now, such as a plan or an identification.

    Attributes:
        what: the work, in words.
        total: how many parts it has, or 0.
        unit: what these are called.
        done: how many are done.
        inner: what is compiled for it now, if anything is.
    """

    def __init__(self, what, total=0, unit="steps"):
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self.inner: Building | None = None

    def advance(self, more=1):
        """Count ``more`` finished parts of this work."""
        self.done += more

    def __str__(self):
        parts = f": {self.done} of {self.total} {self.unit}" if self.total else ""
        inner = f" ({str(self.inner).partition(': ')[2]})" if self.inner else ""
        return f"kinetree: {self.what}{parts}{inner}"


_shown: list[Building | Working] = []  # one at a time: what others do meanwhile is a part of it


@contextmanager
def building(name: str, level: int = 0) -> Iterator[Building]:
    """Context of a compilation, shown with its expected time if that exceeds a second."""
    work = Building(name, level)
    if _shown and isinstance(outer := _shown[0], Working) and outer.inner is None:
        outer.inner = work
        try:
            yield work
        finally:
            outer.inner = None
        return
    if _shown or not is_shown():
        yield work
        return
    with _line(work, lambda: str(work), PATIENCE):
        yield work


@contextmanager
def working(what: str, total: int = 0, unit: str = "steps") -> Iterator[Working]:
    """Context of long work, shown with its progress after a second.

    Also the decorator of a function, of whose work no parts are counted.

    Args:
        what: the work, in words.
        total: how many parts it has; 0 if they are not counted.
        unit: what these are called.
    """
    work = Working(what, total, unit)
    if _shown or not is_shown():
        yield work
        return
    with _line(work, lambda: str(work), PATIENCE):
        yield work


@contextmanager
def _line(work, text, patience):
    """Context in which a thread draws a changing progress line, erased at the end."""
    stream, over, drawn = sys.stderr, Event(), [""]
    is_dumb = os.environ.get("TERM") in ("dumb", "unknown")  # which cannot take a line back

    def draw(now):
        width = _columns() - 1
        # Spaces clear what was there: escape sequences are not for every console of Windows.
        stream.write(
            "\r" + now[:width].ljust(min(len(drawn[0]), width)) + ("\r" if not now else "")
        )
        stream.flush()
        drawn[0] = now

    def show():
        wait = patience
        while not over.wait(wait):
            wait = AGAIN
            if is_dumb:
                stream.write(f"{text()}\n")
                return
            if (now := text()) != drawn[0]:
                draw(now)

    thread = Thread(target=show, daemon=True)
    _shown.append(work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if drawn[0]:
            draw("")
        _shown.clear()


@contextmanager
def reporter(progress: Any, total: int, done: int, what: str) -> Iterator[Any]:
    """Context of a progress bar; yields a function that is called with how much more is done.

    Args:
        progress: True for a bar, False for none, None for a bar where somebody watches; or a
            function that is called with the number of parts done and of all.
        total: number of parts.
        done: how many were done before.
        what: the title of the bar.
    """
    count = [done]
    if callable(progress):

        def advance(more):
            count[0] += more
            progress(count[0], total)

        progress(done, total)
        yield advance
        return

    def add(more):
        count[0] += more

    shows, before = progress or (progress is None and is_shown()), done / max(total, 1)
    with _bar(shows, what, before, lambda: (count[0] / max(total, 1), f"{count[0]}/{total}")):
        yield add


@contextmanager
def clock_reporter(
    progress: Any, start: float, end: float, what: str
) -> Iterator[Callable[[float], Any]]:
    """Context of a progress bar of a simulation; yields a function of the time reached [s].

    Args:
        progress: True for a bar, None or False for none; or the function itself.
        start: of the motion [s].
        end: of the motion [s].
        what: the title of the bar.
    """
    if callable(progress):
        yield progress
        return
    reached = [start]

    def reach(t):
        reached[0] = t

    def state():
        return (reached[0] - start) / ((end - start) or 1.0), f"{reached[0]:.3g}/{end:g} s"

    with _bar(progress, what, 0.0, state):
        yield reach


@contextmanager
def _bar(shows, what, before, state):
    """Context that draws a progress bar with its share done and time left, if wanted."""
    if not shows or _shown or sys.stderr is None:  # one line at a time
        yield
        return
    start = time.monotonic()

    def text():
        share, label = state()
        full, left = round(30 * min(share, 1.0)), ""
        if share > before:
            left = f", {(time.monotonic() - start) * (1 - share) / (share - before):.0f} s left"
        return f"{what} [{'#' * full}{'.' * (30 - full)}] {label}{left}"

    with _line(Building(what), text, AGAIN):
        yield
