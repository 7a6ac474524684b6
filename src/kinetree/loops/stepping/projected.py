"""Steps after which loops and couplings hold to rounding error — Spencer §3.1.3.

A step of any method under constrained accelerations is off the constraints by its error. The
projection of ``loops.kinematics.compiled_projection`` takes it away; what the next step starts from
is the projected state.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel, select
from kinetree.integration.adjoints import ADJOINTS, pulled_back
from kinetree.integration.field import Field, FieldAround
from kinetree.integration.integrator import Integrator
from kinetree.loops.kinematics.compiled_projection import (
    Chosen,
    ClosedState,
    close_loops,
    scale_to_energy,
)
from kinetree.loops.stepping import motion, on_arrays
from kinetree.loops.stepping.on_arrays import ConstrainedOnArrays
from kinetree.quantities import dynamics


@dataclass(frozen=True)
class Constrained(FieldAround):
    """Field of a mechanism with loops or couplings, under which accelerations obey the constraints.

    States inside a step are off the constraints by its error, and are taken as they are.

    Attributes:
        field: all forces that act.
        chosen: which of the constraint equations are solved.
        time_constant: with which errors decay [s], Baumgarte's method; None for none — RBDA (8.22).
        regularization: how nearly dependent equations are solved; None for least squares.
    """

    chosen: Chosen
    time_constant: float | None = None
    regularization: motion.Regularization | None = None

    def has_arrays(self, model) -> bool:
        """Whether vectorised array steps support this field: plain trees with steady loops."""
        plain = type(self.field) is Field and self.time_constant is None
        plain = plain and self.regularization is None
        plain = plain and not (self.chosen.prescribed or self.chosen.weight)
        return plain and not (model.is_rheonomic or model.couplings)

    def on_arrays(self, model) -> ConstrainedOnArrays:
        """``ConstrainedOnArrays``, the vectorised form of this field."""
        return ConstrainedOnArrays(model, self.field, self.chosen)

    def choosing(self, chosen) -> "Constrained":
        """Copy of the field that solves other chosen equations."""
        return replace(self, chosen=chosen)

    def response(self, model, q, M):
        """Function of constrained accelerations per force; see ``Field.response``."""
        return motion.constrained_response(model, q, M, self.chosen)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...).

        Constraints that move with time do work, which counts.
        """
        if self.prescription is not None:
            _, qd, qdd, total, drives = self._drive(model, t, q, qd, tau)
            total = total + drives
        else:
            total = self.joint_force(model, t, q, qd, tau)
            qdd = motion.acceleration(model.at(t), q, qd, total, **self._equations)
        if model.is_rheonomic:  # of joints and constraints: all that moves the bodies
            total = dynamics.inverse_dynamics(model.spanning_tree, q, qd, qdd)
        return qdd, (total * qd).sum(-1)

    @property
    def _equations(self):
        """Keyword options of the constraint equations to solve."""
        names = ("chosen", "time_constant", "regularization")
        return {name: getattr(self, name) for name in names}

    def drive_force(self, model, t, q, qd, tau):
        """Joint forces (..., nv) of controller, actuators and prescribed drives."""
        q, qd, _, _, drives = self._drive(model, t, q, qd, tau)
        return self.field.driving_force(model, t, q, qd, tau) + drives

    def _drive(self, model, t, q, qd, tau):
        """State, accelerations, joint forces, and forces of prescribed drives."""
        q, qd, qdd = self.prescription.at(model, t, q, qd)
        total = self.joint_force(model, t, q, qd, tau)
        qdd, drives = motion.driven_acceleration(model.at(t), q, qd, total, qdd, **self._equations)
        return q, qd, qdd, total, drives


DOUBTFUL = 1e-9
"""Position error, in pure numbers, of a step that cannot be trusted; see ``Projected.doubt``."""
_LOST = 0.25  # of the kinetic energy: a larger error is left to the checks
_KICK = 1e-6  # of the kinetic energy, in velocities that a projection takes away: as doubtful


class Checks(NamedTuple):
    """Checks that a projected step makes of itself, each (...).

    Attributes:
        position, velocity, kick, health: see ``ClosedState``.
        lost: change of kinetic and potential energy less the work of joint forces [J], before
            velocities are scaled.
        kinetic: kinetic energy at the end [J].
    """

    position: Any
    velocity: Any
    kick: Any
    health: Any
    lost: Any
    kinetic: Any

    @classmethod
    def of(cls, array):
        """``Checks`` of projected steps from an array (..., 6) of their values."""
        return cls(*(array[..., k] for k in range(6)))


@dataclass(frozen=True)
class _Corrected(Integrator):
    """Steps of another method, after which the constraints are corrected."""

    inner: Integrator
    """The method."""
    chosen: Chosen
    """Which of the constraint equations are solved."""

    def __post_init__(self):
        names = ("name", "order", "error_order", "differentiates", "solves")
        for name in (*names, *(["on_arrays"] if self.closes else [])):
            object.__setattr__(self, name, getattr(self.inner, name))

    def interpolation(self, theta):
        """Interpolation weights of the inner method's stages."""
        return self.inner.interpolation(theta)


@dataclass(frozen=True)
class Projected(_Corrected):
    """Steps of another method, each followed by projection."""

    energy: bool = False
    """Whether velocities are scaled after that, so that the change of energy is exactly the work of
    the joint forces."""
    iterations: int = 3
    """Newton's steps."""
    closes = True

    def step(self, field, model, t, h, q, qd, tau):
        """State after a step of the inner method, projected onto constraints, with checks."""
        after = self.inner.step(field, model, t, h, q, qd, tau)
        if isinstance(field, ConstrainedOnArrays):
            close, energy_of = field.close_loops, on_arrays.energies
        else:
            close, energy_of = close_loops, motion.constrained_energy
        options = {"chosen": self.chosen, "iterations": self.iterations}
        end = ClosedState(*close(model.at(t + h), after.q, after.qd, **options))
        q1, qd1 = end.q, end.qd
        kinetic, before = energy_of(model, q, qd)
        kinetic, energy = energy_of(model, q1, qd1)
        lost = energy - before - after.work
        if self.energy:
            qd1 = scale_to_energy(qd1, -lost, kinetic, _LOST)
        checks = Checks(*end[2:], lost, kinetic)
        return after._replace(q=q1, qd=qd1, checks=np.stack(checks, axis=-1))

    def doubt(self, after):
        """Estimated error (...) of a step: position error, or the scaled velocity correction."""
        checks = Checks(*np.moveaxis(np.asarray(after.checks), -1, 0))
        kick = DOUBTFUL * np.sqrt(checks.kick / (_KICK * checks.kinetic + _KICK * DOUBTFUL))
        return select(kick < checks.position, checks.position, kick)


def _through_projection(method, field, model, state, p_q, p_v):
    """Gradients at the start of a projected step, corrections assumed small."""
    after = method.step(field, model, *state)
    p_q, p_v = field.through_projection(after.q, after.qd, p_q, p_v)
    return pulled_back(method.inner, field, model, state, p_q, p_v)


ADJOINTS[Projected] = _through_projection


@dataclass(frozen=True)
class PostStabilized(_Corrected):
    """Steps of another method, after which errors are reduced — Ascher and Chin."""

    repeats: int = 2
    """Corrections after a step."""
    rate: float | None = None
    """With which errors decay [1/s]; None for a whole correction."""

    def step(self, field, model, t, h, q, qd, tau):
        """State after a step of ``h`` seconds, moved towards the constraints."""
        after = self.inner.step(field, model, t, h, q, qd, tau)
        share = 1 + 0 * h if self.rate is None else 1 - np.exp(-self.rate * h)
        state = after.q, after.qd, share
        q1, qd1 = motion.post_stabilized(
            model.at(t + h), *state, chosen=self.chosen, repeats=self.repeats
        )
        return after._replace(q=q1, qd=qd1)


@kernel
def projected_steps(model, t, h, q, qd, inputs, count, *, scheme):
    """Kernel of ``count`` projected steps with equal inputs, and their worst checks."""

    def body(state):
        t, q, qd, work, worst = state
        after = scheme.method.advance(scheme.field, model, t, h, q, qd, inputs)
        return t + h, after.q, after.qd, work + after.work, _worst(worst, after.checks)

    start = np.array([0 * t, 0 * t, 0 * t, 1 + 0 * t, 0 * t, 0 * t])
    _, *results, worst = repeat(body, (t, q, qd, 0 * t, start), count)
    return (*results, worst)


def _worst(a, b):
    """Worse of two steps' checks, entry by entry."""
    a, b = Checks(*a), Checks(*b)

    def larger(x, y):
        return select(x < y, y, x)

    return np.array(
        [
            larger(a.position, b.position),
            larger(a.velocity, b.velocity),
            larger(a.kick, b.kick),
            select(b.health < a.health, b.health, a.health),
            larger(a.lost, abs(b.lost)),
            larger(a.kinetic, b.kinetic),
        ]
    )
