"""A variational integrator: the midpoint rule of the Lagrangian on the group of each joint."""

from dataclasses import dataclass

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.group import dexp, dexp_inverse
from kinetree.integration.implicit import newton
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.manifold import move
from kinetree.quantities import dynamics

__all__ = ["VariationalMidpoint"]


@dataclass(frozen=True)
class VariationalMidpoint(Integrator):
    """Steps that make the action stationary, with the Lagrangian taken in their middle.

    A step of constant velocity ``v`` costs the action ``h L(integrate(q, h/2 v), v)``; momenta are
    its derivatives with respect to the two ends. Without forces other than gravity the step is
    symplectic: energy oscillates, with the square of the step, and does not drift. Momenta that
    belong to a symmetry of the mechanism, such as linear and angular momentum of one that floats
    freely, are conserved to rounding error, whatever the step. Other forces enter by the principle
    of d'Alembert, taken in the middle of the step.

    Attributes:
        iterations: Newton's steps, from the velocity at the start.
    """

    iterations: int = 4
    name = "variational"
    order = 2
    differentiates = True
    solves = True
    by_action = True

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``."""
        given = (t, h, q, qd, tau)
        v, defect = newton(_equation, model, qd, given, field, self.iterations)
        p, f, power = _in_the_middle(model, v, t, h, q, tau, field)
        f = _by_joint(model, dexp, h / 2 * v, h / 2 * f)
        p = _by_joint(model, dexp_inverse, h * v, p + f)
        after = move(model, q, h * v)
        return Stepped(after, _velocity(model, after, p), h * power, defect=defect)


@kernel
def _equation(model, v, t, h, q, qd, tau, *, field):
    """Momentum that the action asks for at the start of a step, less that which is there."""
    p, f, _ = _in_the_middle(model, v, t, h, q, tau, field)
    f = _by_joint(model, dexp, -h / 2 * v, h / 2 * f)
    return _by_joint(model, dexp_inverse, -h * v, p - f) - _energy_slopes(model, q, qd)[1]


_energy_slopes = differentiate(dynamics.kinetic_energy, wrt=("q", "qd"))


def _in_the_middle(model, v, t, h, q, tau, field):
    """Momentum, generalized force, and power of the joint forces."""
    middle = move(model, q, h / 2 * v)
    slope, p = _energy_slopes(model, middle, v)
    force = field.joint_force(model, t + h / 2, middle, v, tau)
    f = slope - dynamics.gravity_force(model, middle) + force
    return p, f, (force * v).sum(-1)


def _by_joint(model, matrix, u, p):
    """``Mᵀ p`` with ``M`` the matrix of each joint at its part of ``u``."""
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at, joint = model.v_slice[i], model.joint[i]
        parts.append(p[at] if joint.rates_are_velocities else matrix(joint, u[at]).T @ p[at])
    return np.concatenate(parts)


def _velocity(model, q, p):
    """``H⁻¹ p``: the acceleration from rest under ``p`` without gravity."""
    return dynamics.forward_dynamics(model, q, 0 * p, p + dynamics.bias_force(model, q, 0 * p))
