"""Variational steps: the midpoint rule of the Lagrangian on the group of each joint."""

from dataclasses import dataclass

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.field import times
from kinetree.integration.implicit import newton
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.linear_equations import linear_solver
from kinetree.integration.manifold import dexp, dexp_inverse, move
from kinetree.integration.on_arrays import (
    FieldOnArrays,
    inverse_dynamics_derivatives,
)
from kinetree.quantities import dynamics, lagrangian


@dataclass(frozen=True)
class VariationalMidpoint(Integrator):
    """Steps that make the action stationary, with the Lagrangian taken in their middle.

    A step of constant velocity ``v`` costs the action ``h L(integrate(q, h/2 v), v)``; momenta are
    its derivatives with respect to the two ends. Without forces other than gravity the step is
    symplectic: energy oscillates, with the square of the step, and does not drift. Momenta that
    belong to a symmetry of the mechanism, such as linear and angular momentum of one that floats
    freely, are conserved to rounding error, whatever the step. Other forces enter by the principle
    of d'Alembert, taken in the middle of the step.
    """

    iterations: int = 4
    """Newton's steps, from the velocity at the start."""
    name = "variational"
    order = 2
    differentiates = True
    solves = True
    by_action = True
    on_arrays = arrays_need_rates = True

    def step(self, field, model, t, h, q, qd, tau):
        """State a time ``h`` [s] after ``t`` by the variational midpoint rule."""
        given = (t, h, q, qd, tau)
        if isinstance(field, FieldOnArrays):
            return _stationary_step(field, model, *given, 2 * self.iterations)
        v, defect = newton(_discrete_equation, model, qd, given, field, self.iterations)
        p, f, power = _in_the_middle(model, v, t, h, q, tau, field)
        f = _by_joint(model, dexp, h / 2 * v, h / 2 * f)
        p = _by_joint(model, dexp_inverse, h * v, p + f)
        after = move(model, q, h * v)
        return Stepped(after, _velocity(model, after, p), h * power, defect=defect)


@kernel
def _discrete_equation(model, v, t, h, q, qd, inputs, *, field):
    """Residual of the discrete Euler-Lagrange equation: momentum at the step's start."""
    p, f, _ = _in_the_middle(model, v, t, h, q, inputs, field)
    f = _by_joint(model, dexp, -h / 2 * v, h / 2 * f)
    return _by_joint(model, dexp_inverse, -h * v, p - f) - _energy_derivatives(model, q, qd)[1]


_energy_derivatives = differentiate(dynamics.kinetic_energy, wrt=("q", "qd"))


def _in_the_middle(model, v, t, h, q, tau, field):
    """Momentum, generalised force, and power of the joint forces at mid-step."""
    middle = move(model, q, h / 2 * v)
    dT_dq, p = _energy_derivatives(model, middle, v)
    force = field.joint_force(model, t + h / 2, middle, v, tau)
    f = dT_dq - dynamics.gravity_force(model, middle) + force
    return p, f, (force * v).sum(-1)


def _stationary_step(field, model, t, h, q, qd, tau, iterations):
    """Variational midpoint step on arrays, for joints whose velocities are rates.

    Newton's matrix is that of the equation without second derivatives of the kinetic energy by
    positions, which are of the square of the step: it takes more steps to the same velocity.
    """
    before, v, dv = lagrangian.generalized_momentum(model, q, qd), qd, 0 * qd
    for _ in range(iterations):
        middle = move(model, q, h / 2 * v)
        p, f, _ = _middle_on_arrays(field, model, t + h / 2, middle, v, tau)
        dv = linear_solver(_stationary_matrix(field, model, t + h / 2, h, middle, v, tau))(
            p - h / 2 * f - before
        )
        v = v - dv
    middle = move(model, q, h / 2 * v)
    p, f, power = _middle_on_arrays(field, model, t + h / 2, middle, v, tau)
    after = move(model, q, h * v)
    defect = np.sqrt((dv * dv).sum(-1) / (1 + (v * v).sum(-1)))
    return Stepped(after, _velocity(model, after, p + h / 2 * f), h * power, defect=defect)


def _middle_on_arrays(field, model, t, q, v, tau):
    """Momentum, generalised force and power at mid-step, vectorised."""
    force = field.joint_force(model, t, q, v, tau)
    rate = times(lagrangian.mass_matrix_rate(model, q, v), v)
    f = rate - dynamics.bias_force(model, q, v) + force
    return lagrangian.generalized_momentum(model, q, v), f, (force * v).sum(-1)


def _stationary_matrix(field, model, t, h, q, v, tau):
    """Approximate Newton matrix of the variational midpoint equation."""
    rest = 0 * v
    W, _ = inverse_dynamics_derivatives(model, q, rest, rest)
    P = inverse_dynamics_derivatives(model, q, rest, v)[0] - W
    f_q, f_v, _ = field.derivatives(t, q, v, tau)
    turned = P - np.swapaxes(P, -1, -2) - f_v
    return dynamics.mass_matrix(model, q) + h / 2 * (turned + h / 2 * (W - f_q))


def _by_joint(model, matrix, u, p):
    """Vector ``Mᵀ p`` with the matrix of each joint at its part of ``u``."""
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at, joint = model.v_slice[i], model.joint[i]
        parts.append(p[at] if joint.rates_are_velocities else matrix(joint, u[at]).T @ p[at])
    return np.concatenate(parts)


def _velocity(model, q, p):
    """Velocity ``H⁻¹ p`` of a generalised momentum ``p``."""
    return dynamics.forward_dynamics(model, q, 0 * p, p + dynamics.bias_force(model, q, 0 * p))
