"""An empty figure in the style of all pictures."""

from contextlib import contextmanager

from kinetree.errors import need
from kinetree.simulation.results import panels

STYLE = {
    **panels.STYLE,
    "axes.prop_cycle": f"cycler(color={list(panels.COLORS)})",
    "figure.constrained_layout.use": True,
    "figure.figsize": (5.6, 3.4),
}
"""Settings of Matplotlib for figures of your own: ``plt.style.use(kt.plot.STYLE)``."""


@contextmanager
def sheet(rows=1, columns=1, size=(5.0, 3.6), **options):
    """A figure with its axes, (rows, columns), while the style holds."""
    pyplot = need("matplotlib.pyplot", "kinetree.plot", "plot")
    with pyplot.rc_context(panels.STYLE):
        yield pyplot.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **options
        )


def heading(axes, text):
    """The title of one pair of axes."""
    axes.set_title(panels.words(text), loc="left", fontweight="bold", color="#333333")
