"""Generalized-α steps for mechanisms with constraints, on the manifold.

With ``a`` a running mean of the accelerations, a step from ``q, v`` is (Chung and Hulbert; on Lie
groups Brüls, Cardona and Arnold)

    q' = integrate(q, h Δ)       Δ = v + (1/2 - β) h a + β h a'
    v' = v + (1 - γ) h a + γ h a'
    (1 - α_f) qdd' + α_f qdd = (1 - α_m) a' + α_m a

with the equation of motion, constraint forces included, and the position constraints at its end.
Its unknowns are ``a'`` and the constraint forces, found by Newton's method with derivatives of all
forces, so stiff springs and dampers do not limit the step. Velocities, which position constraints
alone leave off by the error of the step, are then projected. Frequencies beyond those that the step
resolves are damped, by the factor ``spectral_radius`` in a step.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import rnea
from kinetree.algorithms.closed.constraints import loop_constraints, velocity_rows
from kinetree.errors import SimulationError
from kinetree.expr.repeat import repeat
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.integrator import Stepped
from kinetree.integration.linear_equations import factor, solve
from kinetree.integration.manifold import move
from kinetree.integration.step import Scheme, Stepper
from kinetree.loops.kinematics.compiled_projection import close_loops
from kinetree.loops.stepping.singular_passes import near_singularity

_ITERATIONS = 8
_CONVERGED = 1e-9  # last correction of the velocities, relative to the speed, that will do


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of the method, for a spectral radius at infinite frequency from 0 to 1."""

    spectral_radius: float

    name = "generalized_alpha"
    order = 2
    error_order = 0
    solves = closes = False

    @property
    def values(self):
        """Coefficients ``alpha_m, alpha_f, beta, gamma`` of the generalized-alpha method."""
        rho = self.spectral_radius
        m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        return m, f, (1 - m + f) ** 2 / 4, 1 / 2 - m + f

    def __call__(self):
        """Coefficients, as ``values``, so that a kernel takes them for an option."""
        return self.values


class _Ahead(NamedTuple):
    """State at the end of a step as a function of the running mean ``a`` there."""

    q: Any
    qd: Any
    qdd: Any


def _ahead(model, a, h, q, qd, before, method):
    """State at the end of a generalized-alpha step for a mean acceleration ``a``."""
    m, f, beta, gamma = method()
    mean, qdd = before[: model.nv], before[model.nv :]
    delta = qd + (0.5 - beta) * h * mean + beta * h * a
    return _Ahead(
        move(model, q, h * delta),
        qd + (1 - gamma) * h * mean + gamma * h * a,
        ((1 - m) * a + m * mean - f * qdd) / (1 - f),
    )


@kernel
def _imbalance(model, a, times, q, qd, inputs, before, *, scheme):
    """Joint forces needed at the end of the step minus those that act, (nv,).

    ``times`` are its beginning and length, ``before`` running mean and acceleration there.
    """
    t, h = times
    end = _ahead(model, a, h, q, qd, before, scheme.method)
    needed = rnea.inverse_dynamics(model, end.q, end.qd, end.qdd)
    return needed - scheme.field.joint_force(model, t + h, end.q, end.qd, inputs)


_gradient = differentiate(_imbalance, wrt="a")


@kernel
def _alpha_step(model, t, h, q, qd, inputs, before, *, scheme):
    """Kernel of a generalized-alpha step: state, work, accelerations, last correction."""
    method, field = scheme.method, scheme.field
    chosen, (beta, gamma) = field.chosen, method()[2:]
    given, moving = (np.array([t, h]), q, qd, inputs, before), velocity_rows(model)
    ends = model.at(t + h)

    def improve(state):
        a, force, _ = state
        end = _ahead(model, a, h, q, qd, before, method)
        c = loop_constraints(ends, end.q, end.qd)
        missing = -c.error / (beta * h * h)
        if moving:  # rows that have no position
            missing[moving] = -c.rate[moving] / (gamma * h)
        K, missing = chosen(c.K), chosen(missing)
        rest = _imbalance(model, a, *given, scheme=scheme) - K.T @ force
        gradient = _gradient(model, a, *given, scheme=scheme)
        S = factor(gradient + chosen.weight * (K.T @ K) if chosen.weight else gradient)
        y, X = solve(S, rest), np.array([solve(S, row) for row in K]).T
        df = solve(factor(K @ X), missing + K @ y)
        da = X @ df - y
        force = force + (df - chosen.weight * missing if chosen.weight else df)
        return a + da, force, np.sqrt(h * h * (da @ da))

    none = 0 * chosen(loop_constraints(ends, q, qd).k)
    a, _, defect = repeat(improve, (before[: model.nv], none, 0 * t), _ITERATIONS)
    end = _ahead(model, a, h, q, qd, before, method)
    q1, qd1 = close_loops(ends, end.q, end.qd, chosen=chosen)[:2]
    work = (
        h
        / 2
        * (_power(model, t, q, qd, inputs, field) + _power(model, t + h, q1, qd1, inputs, field))
    )
    defect = defect / np.sqrt(1 + qd1 @ qd1)
    return q1, qd1, work, np.concatenate([a, end.qdd]), defect


def _power(model, t, q, qd, tau, field):
    """Power of joint forces, and of constraints that move with time [W]."""
    if model.is_rheonomic:
        return field(model, t, q, qd, tau)[1]
    return field.joint_force(model, t, q, qd, tau) @ qd


class AlphaStepper(Stepper):
    """Generalized-α steps, which remember accelerations from one to the next.

    Args:
        model: the mechanism.
        method: ``Coefficients``.
        field: ``Constrained``; all forces can be traced.
    """

    def __init__(self, model, method, field):
        super().__init__(model, method, field, compiled=True)
        self._memory: dict = {}  # from a state to mean and acceleration there; the last two

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State and work after a generalized-alpha step of ``h`` seconds."""
        before = self._recall(t, q, qd, tau)
        numbers = (np.array(x, dtype=float) for x in (t, h))
        q1, qd1, work, now, defect = self._alpha.call(*numbers, q, qd, tau, before)
        if not np.max(defect, initial=0.0) <= _CONVERGED:
            why = near_singularity(self.model.at(t), self.field.chosen, q)
            raise SimulationError(
                f"a generalized-alpha step of {h:.3g} s from t = {t:.6g} s did not converge: its "
                f"last correction was {np.max(defect):.2g} of the speed, at most {_CONVERGED:g} "
                f"will do; take a smaller dt{why}"
            )
        self._memory = {self._key(q, qd): before, self._key(q1, qd1): now}
        return Stepped(q1, qd1, work)

    def steps(self, t, h, q, qd, tau, count):
        """State and work after ``count`` steps with constant ``tau``."""
        states = self.walk([t + k * h for k in range(count + 1)], q, qd, tau, h)
        return *states[-1][:2], sum(state[2] for state in states)

    def _recall(self, t, q, qd, tau):
        """Mean and actual acceleration at the start of a step, (..., 2 nv)."""
        if self._key(q, qd) not in self._memory:
            qdd = self.accelerations(t, q, qd, tau)[0]
            return np.concatenate([qdd, qdd], axis=-1)
        return self._memory[self._key(q, qd)]

    @staticmethod
    def _key(q, qd):
        """Key of a state for stored accelerations, exact to the bit."""
        return q.tobytes(), qd.tobytes()

    @property
    def _alpha(self):
        """Compiled generalized-alpha step."""
        q, v, held = self._zeros()
        scheme = Scheme(self.method, self.field)
        return _alpha_step.compiled(self.model, 0.0, 1.0, q, v, held, [*v, *v], scheme=scheme)
