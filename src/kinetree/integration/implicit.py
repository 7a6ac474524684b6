"""Implicit steps on the manifold, for stiff forces: the midpoint rule, by Newton's method."""

from dataclasses import dataclass

import numpy as np

from kinetree.expr.repeat import repeat
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.linear_equations import linear_solver
from kinetree.integration.manifold import move
from kinetree.integration.on_arrays import (
    FieldOnArrays,
    motion_derivatives,
    move_derivative,
)
from kinetree.quantities import dynamics


@dataclass(frozen=True)
class ImplicitMidpoint(Integrator):
    """Forces and velocities in the middle of the step, which depend on its end.

    With ``v`` the mean of the two velocities, the step goes from ``q`` to ``integrate(q, h v)``
    through ``integrate(q, h/2 v)``, where the equation of motion holds. A-stable and symmetric in
    time: steps do not decay on their own, nor grow, however stiff the springs are.
    """

    iterations: int = 4
    """Newton's steps, from the velocity at the start."""
    name = "implicit_midpoint"
    order = 2
    differentiates = True
    solves = True
    on_arrays = True

    def step(self, field, model, t, h, q, qd, tau):
        """State a time ``h`` [s] after ``t`` by the implicit midpoint rule."""
        given = (t, h, q, qd, tau)
        if isinstance(field, FieldOnArrays):
            v, defect = _mean_velocity(field, model, *given, self.iterations)
        else:
            v, defect = newton(_equation, model, qd, given, field, self.iterations)
        middle = move(model, q, h / 2 * v)
        power = (field.joint_force(model, t + h / 2, middle, v, tau) * v).sum(-1)
        return Stepped(move(model, q, h * v), 2 * v - qd, h * power, defect=defect)


@kernel
def _equation(model, v, t, h, q, qd, inputs, *, field):
    """Residual of the equation of motion at mid-step, times ``h/2``, (nv,)."""
    middle = move(model, q, h / 2 * v)
    force = dynamics.inverse_dynamics(model, middle, v, (v - qd) * (2 / h))
    return (force - field.joint_force(model, t + h / 2, middle, v, inputs)) * (h / 2)


def _mean_velocity(field, model, t, h, q, qd, tau, iterations):
    """Mid-step velocity by Newton's method on arrays, and its last relative correction."""
    v, dv = qd, 0 * qd
    for _ in range(iterations):
        middle, qdd = move(model, q, h / 2 * v), (v - qd) * (2 / h)
        F_q, F_v, H, _ = motion_derivatives(field, model, t + h / 2, middle, v, qdd, tau)
        force = field.joint_force(model, t + h / 2, middle, v, tau)
        F = dynamics.inverse_dynamics(model, middle, v, qdd) - force
        A = h / 2 * (_product(F_q, h / 2 * move_derivative(model, h / 2 * v)) + F_v) + H
        dv = linear_solver(A)(h / 2 * F)
        v = v - dv
    return v, np.sqrt((dv * dv).sum(-1) / (1 + (v * v).sum(-1)))


def _product(A, B):
    """Product of a matrix with a matrix or number."""
    return A @ B if np.ndim(B) else A * B


def newton(equation, model, v, given, field, iterations):
    """Solution ``v`` of ``equation`` by Newton's method, and its last relative correction."""
    derivative = differentiate(equation, wrt="v")

    def improve(state):
        v, _ = state
        A = derivative(model, v, *given, field=field)
        dv = linear_solver(A)(equation(model, v, *given, field=field))
        return v - dv, dv

    v, dv = repeat(improve, (v, 0 * v), iterations)
    return v, np.sqrt((dv @ dv) / (1 + v @ v))
