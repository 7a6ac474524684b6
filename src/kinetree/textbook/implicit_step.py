"""Implicit steps of closed mechanisms on a chart of independent coordinates — Spencer 4.6.

In independent coordinates ``z = (y, yd)`` the motion is an ordinary differential equation
``dz/dt = f(z)``, and an implicit step solves

    backward Euler:   z1 - z0 - h f(z1) = 0                        matrix  1 - h A
    trapezoid:        z1 - z0 - h/2 (f(z0) + f(z1)) = 0            matrix  1 - h/2 A

by Newton's method, whose iteration matrix is made of ``A`` of ``linearize_in_coordinates``: no
differences, and quadratic convergence. All iterates are closed configurations. For stiff
mechanisms, whose springs and dampers are those of the joints; ``kt.simulate`` has other methods
for them.

Of free and ball joints ``y1 - y0`` is ``difference(q0, q1)``, so that the step is a method on the
group: the mean of two velocities leads from one position to the other, which is of second order,
too.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import LoopError, SimulationError, UnknownNameError
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.linearization import linear_model
from kinetree.loops.linear.velocity_basis import (
    coordinate_jacobian,
    coordinate_rates,
    coordinates_at,
    move_coordinates,
    velocities,
    velocity_basis,
)
from kinetree.model import Model
from kinetree.model.arrays import as_model

_WEIGHTS = {"backward_euler": 1.0, "trapezoid": 0.5}
_ITERATIONS = 30


class ImplicitStep(NamedTuple):
    """Result of an implicit step."""

    q: Any
    """(nq,)"""
    qd: Any
    """(nv,)"""
    corrections: tuple
    """Largest change of ``z`` in each iteration of Newton's method."""


@on_host
def implicit_step(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    dt: float,
    f_ext: ArrayLike | dict | None = None,
    *,
    scheme: str = "trapezoid",
    independent: Sequence[str] | str | ArrayLike | None = None,
    tolerance: float = 1e-12,
    linearization: str = "equations",
) -> ImplicitStep:
    """State of a mechanism with closed loops after one implicit step of length ``dt``.

    Args:
        model: the mechanism; without loops all its variables are independent.
        q: joint positions that close the loops, (nq,).
        qd: joint velocities that keep them closed, (nv,).
        tau: forces of the motors, held over the step, (nv,).
        dt: length of the step [s].
        f_ext: forces acting on bodies, held over the step.
        scheme: ``"trapezoid"``, of second order; ``"backward_euler"``, of first order, damps.
        independent: coordinates, as in ``linearize_in_coordinates``. Those of free and ball joints
            are displacements from ``q``, ``model.integrate(q, dy)``, for which both schemes are of
            the same order.
        tolerance: correction of ``z`` relative to its size at which iterations end.
        linearization: method of ``linearize_in_coordinates`` for the iteration matrix.

    Raises:
        SimulationError: Newton's method does not converge; take a shorter step.
    """
    if scheme not in _WEIGHTS:
        raise UnknownNameError(
            f"implicit_step has no scheme {scheme!r}; use one of {list(_WEIGHTS)}"
        )
    if as_model(model).is_rheonomic:
        raise LoopError(
            f"implicit_step keeps constraints as they are at one instant, and those of model "
            f"{model.name!r} move with time; use kinetree.simulate(constraints='generalized_alpha')"
        )
    weight, corrections = dt * _WEIGHTS[scheme], []
    start = linear_model(model, q, qd, tau, f_ext, independent)
    chosen, p = start.chosen, len(start.coordinates)
    if independent is None or isinstance(independent, str):  # the same ones over the step
        independent = chosen.rows
    known = dt * start.rate - weight * start.rate  # the explicit part of the step
    change, here = dt * start.rate, start  # of z, and the linear model there
    yd = coordinate_rates(model, q, qd, chosen)
    at_q, at_qd = q, qd
    for _ in range(_ITERATIONS):
        at_q, at_qd = _state(model, at_q, q, change, yd, chosen)
        here = linear_model(model, at_q, at_qd, tau, f_ext, independent, linearization)
        residual = change - known - weight * here.rate
        A = _by_displacements(model, q, at_q, here)
        step = np.linalg.solve(np.eye(2 * p) - weight * A, -residual)
        change = change + step
        corrections.append(float(np.max(np.abs(step))))
        if corrections[-1] <= tolerance * max(1.0, float(np.max(np.abs(change)))):
            return ImplicitStep(*_state(model, at_q, q, change, yd, chosen), tuple(corrections))
        if not np.isfinite(corrections[-1]):
            break
    raise SimulationError(
        f"an implicit step of {dt:.3g} s does not converge for model {model.name!r}: corrections "
        f"{', '.join(f'{c:.2g}' for c in corrections[-3:])}; take shorter steps"
    )


def _by_displacements(model, q, at_q, linear):
    """State matrix ``A`` for coordinate displacements counted from ``q``."""
    if linear.chosen.flat:
        return linear.A
    p, A = len(linear.coordinates), linear.A.copy()
    gradient = (
        coordinate_jacobian(model, at_q, coordinates_at(model, q, at_q, linear.chosen)) @ linear.G
    )
    A[:p, :p] = 0
    A[p:, :p] = A[p:, :p] @ np.linalg.inv(gradient)
    return A


def _state(model, near, q, change, yd, chosen):
    """Closed state whose coordinates and rates differ by ``change`` from ``(q, yd)``."""
    p = len(yd)
    q = move_coordinates(model, q, change[:p], chosen, near)
    K = constraint(model, q, np.zeros(model.nv)).K
    return q, velocities(model, q, yd + change[p:], velocity_basis(model, q, K, chosen))
