"""Accelerations under constraints, and the way back to them, as functions that can be compiled."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree import dynamics
from kinetree.algorithms import rnea
from kinetree.algorithms.loop_constraints import loop_constraints
from kinetree.expr.repeat import repeat
from kinetree.functional.choose import select
from kinetree.functional.kernel import kernel
from kinetree.simulation.constrained.equations import orthogonal, smallest, whitening

__all__ = ["Chosen", "Closed", "acceleration", "closed", "constrained_energy"]


@dataclass(frozen=True)
class Chosen:
    """Which of the constraint equations are solved; the others follow from them.

    Attributes:
        rows: their numbers.
        units: factor of each that makes it a pure number.
    """

    rows: tuple[int, ...]
    units: tuple[float, ...]

    def __call__(self, equations):
        """The chosen ones of all equations, (nc, ...)."""
        return (equations[list(self.rows)].T * np.array(self.units)).T


class Closed(NamedTuple):
    """A state from which the errors of loops and couplings were taken away.

    Attributes:
        q, qd: the state.
        position: largest position error, in any equation [m or rad].
        velocity: largest velocity error [m/s or rad/s].
        kick: half the square of the change of the velocities, in the metric of ``H`` [J].
        health: square of what is new in the equation that says least, relative to the mean: zero
            where the mechanism is singular.
    """

    q: Any
    qd: Any
    position: Any
    velocity: Any
    kick: Any
    health: Any


@kernel
def acceleration(model, q, qd, tau, chosen, time_constant=None):
    """Joint accelerations under the joint forces ``tau`` and the constraints, (..., nv).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        tau: all joint forces, (..., nv).
        chosen: equations that are solved.
        time_constant: with which errors decay [s]; None for none — RBDA (8.22).
    """
    c, inertia = loop_constraints(model, q, qd), whitening(model, q)
    k = c.k if time_constant is None else c.stabilized(time_constant)
    equations = orthogonal(inertia, chosen(c.K))
    x, k = inertia.forces(tau - rnea.bias_force(model, q, qd)), chosen(k)
    for _ in range(2):  # the second removes what damping and rounding left of the first
        x = x + smallest(equations, k - equations.applied(x))
    return inertia.motion(x)


@kernel
def closed(model, q, qd, chosen, *, iterations=3):
    """The state without errors next to one with small errors, in the metric of ``H``.

    Newton's method for the positions, with the inertia matrix of the first guess; velocities obey
    the linear equations of the last but one position. Returns the values of a ``Closed``, whose
    errors are those before the last of the steps.
    """
    inertia = whitening(model, q)

    def improved(state):
        q, qd, x = state[:3]
        c = loop_constraints(model, q, qd)
        equations = orthogonal(inertia, chosen(c.K))
        dx = -smallest(equations, chosen(c.error))
        dv = -smallest(equations, chosen(c.rate))
        health = equations.health[0]
        for other in equations.health[1:]:
            health = select(other < health, other, health)
        errors = largest(c.error), largest(c.rate)
        after = model.integrate(q, inertia.motion(dx)), qd + inertia.motion(dv)
        return *after, x + dv, *errors, health

    none = 0 * q[0]
    state = (q, qd, 0 * qd, none, none, none)
    q, qd, x, position, velocity, health = repeat(improved, state, iterations)
    return q, qd, position, velocity, x @ x / 2, health


@kernel
def constrained_energy(model, q, qd):
    """Kinetic energy, and the sum of kinetic and potential energy in the gravity field [J]."""
    kinetic = dynamics.kinetic_energy(model, q, qd)
    return kinetic, kinetic + dynamics.potential_energy(model, q)


def largest(values):
    """The largest absolute value."""
    largest = abs(values[0])
    for value in values[1:]:
        largest = select(largest < abs(value), abs(value), largest)
    return largest
