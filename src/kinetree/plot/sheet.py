"""An empty figure in the style of all pictures."""

from contextlib import contextmanager

from kinetree.simulation.results.packages import need
from kinetree.simulation.results.panels import STYLE, words

__all__ = ["heading", "sheet"]


@contextmanager
def sheet(rows=1, columns=1, size=(5.0, 3.6), **options):
    """A figure with its axes, (rows, columns), while the style holds."""
    pyplot = need("matplotlib.pyplot", "kinetree.plot", "plot")
    with pyplot.rc_context(STYLE):
        yield pyplot.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **options
        )


def heading(axes, text):
    """The title of one pair of axes."""
    axes.set_title(words(text), loc="left", fontweight="bold", color="#333333")
