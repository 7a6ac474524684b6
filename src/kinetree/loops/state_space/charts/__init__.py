"""Charts of the states of a constrained system: independent coordinates — Spencer §2.2, §2.3.

chart = charts.tangent(system, q)
y = chart.coordinates(q, v)
q, v = chart.state(y)
ydot = chart.rate(t, y)
chart.health

``verify``, ``integrate_on_charts`` and charts of whole states are texts of ``kinetree.textbook``,
which are imported on first use.
"""

from typing import TYPE_CHECKING

from kinetree.arguments import guard_module, text_getter
from kinetree.loops.state_space.charts.atlas import Atlas
from kinetree.loops.state_space.charts.chart import AbstractChart, ChartPoint
from kinetree.loops.state_space.charts.linear_chart import LinearChart, linear, partition, tangent
from kinetree.loops.state_space.charts.nonlinear_chart import NonlinearChart, declared, nonlinear

if TYPE_CHECKING:
    from kinetree.textbook.chart_motion import ChartMotion, integrate_on_charts
    from kinetree.textbook.chart_scan import Verification, verify
    from kinetree.textbook.state_chart import LinearStateChart, StateChart, linear_state, state

__all__ = [
    "AbstractChart", "Atlas", "ChartMotion", "ChartPoint", "LinearChart", "LinearStateChart",
    "NonlinearChart", "StateChart", "Verification", "declared", "integrate_on_charts", "linear",
    "linear_state", "nonlinear", "partition", "state", "tangent", "verify",
]  # fmt: skip

__getattr__ = text_getter(
    __name__,
    {
        "chart_motion": ("ChartMotion", "integrate_on_charts"),
        "chart_scan": ("Verification", "verify"),
        "state_chart": ("LinearStateChart", "StateChart", "linear_state", "state"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


guard_module(__name__)
