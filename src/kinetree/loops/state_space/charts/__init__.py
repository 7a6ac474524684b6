"""Charts of the states of a constrained system: independent coordinates — Spencer §2.2, §2.3.

chart = charts.tangent(system, q)
y = chart.coordinates(q, v)
q, v = chart.state(y)
ydot = chart.rate(t, y)
chart.health
"""

from kinetree.arguments import guard_module
from kinetree.loops.state_space.charts.atlas import Atlas, ChartMotion, integrate_on_charts
from kinetree.loops.state_space.charts.chart import AbstractChart, ChartPoint, Verification, verify
from kinetree.loops.state_space.charts.linear_chart import (
    LinearChart,
    NonlinearChart,
    declared,
    linear,
    nonlinear,
    partition,
    tangent,
)
from kinetree.loops.state_space.charts.state_chart import (
    LinearStateChart,
    StateChart,
    linear_state,
    state,
)

__all__ = [
    "AbstractChart", "Atlas", "ChartMotion", "ChartPoint", "LinearChart", "LinearStateChart",
    "NonlinearChart", "StateChart", "Verification", "declared", "integrate_on_charts", "linear",
    "linear_state", "nonlinear", "partition", "state", "tangent", "verify",
]  # fmt: skip

guard_module(__name__)
