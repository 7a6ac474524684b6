"""Kinds of constraints: the functions behind the matrices — RBDA §3.4, Fig. 3.1.

At velocity level every equality constraint reads ``φ⁰(q, t) + Σ φⁱ(q, t) qdᵢ = 0``, holonomic
(3.30) or not (3.29). A holonomic one is the rate of a position function; a nonholonomic one is
the rate of nothing, and leaves the system more freedom of position than of velocity.
CPU only: derivatives along the motion are taken by complex step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kinetree.algorithms.closed.subspace import Subspace
from kinetree.algorithms.closed.systems import Implicit
from kinetree.errors import ModelError, ShapeError

__all__ = ["ConstraintFunction", "Freedoms", "freedoms"]

STEP = 1e-30  # of the complex step: no subtraction, hence no rounding error to balance


@dataclass(frozen=True)
class ConstraintFunction:
    """A constraint as functions of position, velocity and time.

    Write ``rate`` and ``position`` so that they take complex arguments.

    Attributes:
        rate: ``rate(q, qd, t)``, linear in ``qd``, which the constraint keeps at zero.
        position: ``position(q, t)``, whose time derivative ``rate`` is; None if there is no such
            function, which makes the constraint nonholonomic.
        scleronomic: whether time does not appear; otherwise the constraint is rheonomic.
        equality: False for a contact that may open; it can be used as an equation only while it
            is known to stay closed.
        configuration_rate: ``dq/dt`` as a function of ``(q, qd)``, where that is not ``qd``
            itself: ``model.configuration_rate`` does it.
    """

    rate: Callable
    position: Callable | None = None
    scleronomic: bool = True
    equality: bool = True
    configuration_rate: Callable | None = None

    @property
    def holonomic(self) -> bool:
        """Whether it constrains positions, and not velocities alone."""
        return self.position is not None

    @property
    def kind(self) -> str:
        """Its place in the hierarchy, in words."""
        words = [
            "equality" if self.equality else "inequality",
            "holonomic" if self.holonomic else "nonholonomic",
            "scleronomic" if self.scleronomic else "rheonomic",
        ]
        return ", ".join(words)

    def at(self, q, qd, t=0.0) -> Implicit:
        """The constraint at one instant: ``K qd = rate``, ``K qdd = k``."""
        if not self.equality:
            raise ModelError(
                "an inequality constraint is an equation only while contact lasts; if it does, "
                "make the constraint with equality=True"
            )
        q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        offset = np.asarray(self.rate(q, np.zeros_like(qd), t))
        columns = [np.asarray(self.rate(q, e, t)) - offset for e in np.eye(len(qd))]
        error = np.zeros(len(offset)) if self.position is None else self.position(q, t)
        return Implicit(np.column_stack(columns), -self._along_motion(q, qd, t), -offset, error)

    def check(self, q, qd, t=0.0, *, tolerance=1e-10):
        """Raise unless ``rate`` is linear in ``qd`` and the time derivative of ``position``."""
        at, value = self.at(q, qd, t), np.asarray(self.rate(q, qd, t))
        scale = tolerance * (1.0 + float(np.max(np.abs(at.K))) * float(np.linalg.norm(qd)))
        if np.any(np.abs(at.K @ qd - at.rate - value) > scale):
            raise ShapeError("the rate of a constraint must be linear in qd")
        if self.position is None:
            return
        q_step, t_step = self._step(np.asarray(q, dtype=float), qd, t)
        derivative = np.imag(self.position(q_step, t_step)) / STEP
        if np.any(np.abs(derivative - value) > scale):
            raise ShapeError(
                f"rate is not the time derivative of position: {value.tolist()} against "
                f"{derivative.tolist()}"
            )

    def _along_motion(self, q, qd, t):
        """``Kd qd + φ⁰d``: derivative of the rate along the motion, ``qd`` held."""
        q_step, t_step = self._step(q, qd, t)
        return np.imag(self.rate(q_step, qd, t_step)) / STEP

    def _step(self, q, qd, t):
        flow = qd if self.configuration_rate is None else self.configuration_rate(q, qd)
        return q + 1j * STEP * np.asarray(flow), (t if self.scleronomic else t + 1j * STEP)


@dataclass(frozen=True)
class Freedoms:
    """Degrees of freedom of a constrained system.

    Attributes:
        position: dimension of the set of reachable configurations.
        velocity: dimension of the set of allowed velocities; smaller if something rolls.
    """

    position: int
    velocity: int


def freedoms(constraints, q, qd, t=0.0) -> Freedoms:
    """Freedoms of a system with ``len(qd)`` velocity variables under equality constraints.

    Takes the word of each constraint for being nonholonomic: such rows take away velocities only.
    """
    everything = np.zeros((0, len(qd)))
    holonomic = np.zeros((0, len(qd)))
    for constraint in constraints:
        K = constraint.at(q, qd, t).K
        everything = np.vstack([everything, K])
        if constraint.holonomic:
            holonomic = np.vstack([holonomic, K])
    return Freedoms(*(Subspace.null(K, "motion").dim for K in (holonomic, everything)))
