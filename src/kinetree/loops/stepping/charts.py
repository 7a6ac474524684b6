"""Steps of a simulation on charts — Spencer ch. 2. In Python, sample by sample.

Every stage of a step is a state that satisfies the constraints.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from kinetree.integration.explicit import weighted_sum
from kinetree.integration.integrator import Stepped
from kinetree.integration.step import Stepper
from kinetree.loops.state_space.charts import Atlas
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.stepping.motion import acceleration
from kinetree.loops.stepping.projected import Constrained
from kinetree.model import Model


class ChartStepper(Stepper):
    """Steps of an explicit Runge–Kutta method on charts.

    Args:
        model: the mechanism.
        method: the method, with a tableau.
        field: ``Constrained``.
        make: what makes charts, as for ``kinetree.loops.state_space.charts.Atlas``.
        growth: of the condition at which a chart ends.
    """

    def __init__(self, model, method, field, *, make, growth):
        super().__init__(model, method, field, compiled=False)
        self.system, self.make, self.growth = system_of(model), make, growth
        self._atlases: dict = {}

    @property
    def changes(self) -> int:
        """Number of chart changes so far, over all samples."""
        return sum(atlas.changes for atlas in self._atlases.values())

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State and work after a step of ``h`` seconds in chart coordinates."""
        q1, qd1, work = np.array(q), np.array(qd), np.zeros(q.shape[:-1])
        for index in np.ndindex(q.shape[:-1]):
            forces = _Forces(self.model, self.field, tau[index])
            if index not in self._atlases:
                self._atlases[index] = Atlas(
                    self.system, q[index], qd[index], make=self.make, growth=self.growth
                )

            def advance(chart, t, y, forces=forces):
                forces.powers = []
                rates = []
                for c, a in zip(self.method.tableau.c, self.method.tableau.a, strict=True):
                    stage = y + h * weighted_sum(a, rates) if a else y
                    rates.append(chart.rate(t + c * h, stage, acceleration=forces))
                return y + h * weighted_sum(self.method.tableau.b, rates)

            q1[index], qd1[index] = self._atlases[index].step(t, q[index], qd[index], advance)
            work[index] = h * weighted_sum(self.method.tableau.b, forces.powers)
        return Stepped(q1, qd1, work)


@dataclass
class _Forces:
    """Accelerations of one sample; remembers the power of the joint forces at every stage."""

    model: Model
    field: Constrained
    tau: np.ndarray
    powers: list = dataclasses.field(default_factory=list)

    def __call__(self, t, q, qd):
        total = self.field.joint_force(self.model, t, q, qd, self.tau)
        self.powers.append(float(total @ qd))
        return acceleration(self.model, q, qd, total, chosen=self.field.chosen)
