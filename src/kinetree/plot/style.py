"""The style of all pictures, for pictures of your own."""

from kinetree.simulation.results.panels import COLORS
from kinetree.simulation.results.panels import STYLE as PANELS

__all__ = ["STYLE"]

STYLE = {
    **PANELS,
    "axes.prop_cycle": f"cycler(color={list(COLORS)})",
    "figure.constrained_layout.use": True,
    "figure.figsize": (5.6, 3.4),
}
"""Settings of Matplotlib: ``plt.style.use(kt.plot.STYLE)``."""
