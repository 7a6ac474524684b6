"""How far a sweep is: a bar on the terminal, a function of the user's, or nothing."""

import sys
from contextlib import contextmanager

__all__ = ["reporter"]


@contextmanager
def reporter(progress, total, done, what):
    """A function to be told how many more runs are done.

    Args:
        progress: True for a bar, False for none, None for a bar on a terminal alone; or a function
            that is called with the number of runs done and of all.
        total: number of runs.
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
    elif progress or (progress is None and sys.stderr.isatty()):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
            task = bar.add_task(what, total=total, completed=done)
            yield lambda more: bar.advance(task, more)
    else:
        yield lambda more: None
