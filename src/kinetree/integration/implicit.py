"""The implicit midpoint rule on the manifold."""

from dataclasses import dataclass

import numpy as np

from kinetree.expr.repeat import repeat
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.linear import factor, solve
from kinetree.integration.manifold import move
from kinetree.quantities import dynamics

__all__ = ["ImplicitMidpoint", "newton"]


@dataclass(frozen=True)
class ImplicitMidpoint(Integrator):
    """Forces and velocities in the middle of the step, which depend on its end.

    With ``v`` the mean of the two velocities, the step goes from ``q`` to ``integrate(q, h v)``
    through ``integrate(q, h/2 v)``, where the equation of motion holds. A-stable and symmetric in
    time: steps do not decay on their own, nor grow, however stiff the springs are.

    Attributes:
        iterations: Newton's steps, from the velocity at the start.
    """

    iterations: int = 4
    name = "implicit_midpoint"
    order = 2
    differentiates = True
    solves = True

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``."""
        given = (t, h, q, qd, tau)
        v, defect = newton(_equation, model, qd, given, field, self.iterations)
        middle = move(model, q, h / 2 * v)
        power = (field.joint_force(model, t + h / 2, middle, v, tau) * v).sum(-1)
        return Stepped(move(model, q, h * v), 2 * v - qd, h * power, defect=defect)


@kernel
def _equation(model, v, t, h, q, qd, tau, *, field):
    """The equation of motion in the middle of a step, times ``h/2``, which is zero."""
    middle = move(model, q, h / 2 * v)
    force = dynamics.inverse_dynamics(model, middle, v, (v - qd) * (2 / h))
    return (force - field.joint_force(model, t + h / 2, middle, v, tau)) * (h / 2)


def newton(equation, model, v, given, field, iterations):
    """Solve ``equation`` for ``v``; also the size of the last correction, relative to ``v``."""
    slope = differentiate(equation, wrt="v")

    def improved(state):
        v, _ = state
        A = slope(model, v, *given, field=field)
        dv = solve(factor(A), equation(model, v, *given, field=field))
        return v - dv, dv

    v, dv = repeat(improved, (v, 0 * v), iterations)
    return v, np.sqrt((dv @ dv) / (1 + v @ v))
