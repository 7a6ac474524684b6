"""Implicit steps of closed mechanisms on a chart, with the linear model — Spencer 4.6.

In independent coordinates ``z = (y, yd)`` the motion is an ordinary differential equation
``dz/dt = f(z)``, and an implicit step solves

    backward Euler:   z1 - z0 - h f(z1) = 0                        matrix  1 - h A
    trapezoid:        z1 - z0 - h/2 (f(z0) + f(z1)) = 0            matrix  1 - h/2 A

by Newton's method, whose iteration matrix holds the ``A`` of ``linearize``: no differences, and
quadratic convergence. All iterates are closed configurations. For stiff mechanisms, whose springs
and dampers are those of the joints.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.errors import LoopError, SimulationError, UnknownNameError
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.linearization import linearize
from kinetree.loops.linear.velocity_basis import coordinate_rates, moved, velocity_basis

__all__ = ["ImplicitStep", "implicit_step"]

_WEIGHTS = {"backward_euler": 1.0, "trapezoid": 0.5}
_ITERATIONS = 30


class ImplicitStep(NamedTuple):
    """Where a step ends."""

    q: Any
    """(nq,)"""
    qd: Any
    """(nv,)"""
    corrections: tuple
    """Largest change of ``z`` in each iteration of Newton's method."""


@on_host
def implicit_step(
    model, q, qd, tau, dt, f_ext=None, *, scheme="trapezoid", independent=None, tolerance=1e-12,
    linearization="equations",
) -> ImplicitStep:  # fmt: skip
    """One implicit step of a closed mechanism, which stays closed.

    Args:
        model: the mechanism, with loops or couplings.
        q: joint positions that close the loops, (nq,).
        qd: joint velocities that keep them closed, (nv,).
        tau: forces of the motors, held over the step, (nv,).
        dt: length of the step [s].
        f_ext: forces acting on bodies, held over the step.
        scheme: ``"trapezoid"``, of second order; ``"backward_euler"``, of first order, damps.
        independent: coordinates, as in ``linearize``; their rates must be their derivatives.
        tolerance: correction of ``z`` relative to its size at which iterations end.
        linearization: method of ``linearize`` for the iteration matrix.

    Raises:
        SimulationError: Newton's method does not converge; take a shorter step.
    """
    if scheme not in _WEIGHTS:
        raise UnknownNameError(
            f"implicit_step has no scheme {scheme!r}; use one of {list(_WEIGHTS)}"
        )
    weight, corrections = dt * _WEIGHTS[scheme], []
    start = linearize(model, q, qd, tau, f_ext, independent=independent)
    chosen, p = start.chosen, len(start.coordinates)
    if not chosen.flat:
        raise LoopError(
            f"an implicit step needs coordinates whose rates are their derivatives; of "
            f"{', '.join(map(repr, chosen.names))} some are not: choose other independent joints"
        )
    known = dt * start.rate - weight * start.rate  # the explicit part of the step
    change, here = dt * start.rate, start  # of z, and the linear model there
    yd = coordinate_rates(model, q, qd, chosen)
    at_q, at_qd = q, qd
    for _ in range(_ITERATIONS):
        at_q, at_qd = _state(model, at_q, q, change, yd, chosen)
        here = linearize(
            model, at_q, at_qd, tau, f_ext, independent=independent, method=linearization
        )
        residual = change - known - weight * here.rate
        step = np.linalg.solve(np.eye(2 * p) - weight * here.A, -residual)
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


def _state(model, near, q, change, yd, chosen):
    """The closed state whose coordinates differ by ``change`` from ``(q, yd)``."""
    p = len(yd)
    q = moved(model, q, change[:p], chosen, near)
    K = constraint(model, q, np.zeros(model.nv)).K
    return q, velocity_basis(model, q, K, chosen).G @ (yd + change[p:])
