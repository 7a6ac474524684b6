"""Charts of the states of a constrained system: independent coordinates — Spencer §2.2, §2.3.

chart = charts.tangent(system, q)
y = chart.coordinates(q, v)
q, v = chart.state(y)
ydot = chart.rate(t, y)
chart.health
"""

from kinetree.loops.state_space.charts.atlas import Atlas
from kinetree.loops.state_space.charts.chart import AbstractChart, ChartPoint
from kinetree.loops.state_space.charts.integration import ChartMotion, integrate_on_charts
from kinetree.loops.state_space.charts.linear_chart import LinearChart, linear
from kinetree.loops.state_space.charts.nonlinear_chart import NonlinearChart, declared, nonlinear
from kinetree.loops.state_space.charts.partition_chart import partition
from kinetree.loops.state_space.charts.state_chart import (
    LinearStateChart,
    StateChart,
    linear_state,
    state,
)
from kinetree.loops.state_space.charts.tangent_chart import tangent
from kinetree.loops.state_space.charts.verification import Verification, verify

__all__ = [
    "AbstractChart", "Atlas", "ChartMotion", "ChartPoint", "LinearChart", "LinearStateChart",
    "NonlinearChart", "StateChart", "Verification", "declared", "integrate_on_charts", "linear",
    "linear_state", "nonlinear", "partition", "state", "tangent", "verify",
]  # fmt: skip
