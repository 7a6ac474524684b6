"""Linearly implicit steps, for stiff forces: Rosenbrock methods."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.elimination import is_zero
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel, select
from kinetree.integration.explicit import weighted_sum
from kinetree.integration.field import times
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.linear_equations import linear_solver
from kinetree.integration.manifold import bracket_matrix, local_rate, move
from kinetree.integration.on_arrays import (
    FieldOnArrays,
    joint_forces,
    motion_derivatives,
    opposing,
    turning,
)
from kinetree.quantities import dynamics


@dataclass(frozen=True)
class RosenbrockTableau:
    """A Rosenbrock method, in the form that needs no product with the Jacobian.

        (1/(γh) - J) k_i = f(t + α_i h, y + Σ a_ij k_j) + Σ c_ij k_j / h + γ_i h ∂f/∂t

    Attributes:
        name: what it is called.
        order: of the solution.
        gamma: the diagonal coefficient γ.
        alpha: times of the stages, as fractions of the step.
        gammas: γ_i.
        a, c: rows of the lower triangles.
        m: weights of the stages in the result.
        e: weights of the stages in the error estimate.
        embedded_order: order of the result without that.
    """

    name: str
    order: int
    gamma: float
    alpha: tuple
    gammas: tuple
    a: tuple
    c: tuple
    m: tuple
    e: tuple
    embedded_order: int


RODAS3 = RosenbrockTableau(  # Sandu et al. 1997: L-stable and stiffly accurate
    "rosenbrock",
    3,
    gamma=1 / 2,
    alpha=(0.0, 0.0, 1.0, 1.0),
    gammas=(1 / 2, 3 / 2, 0.0, 0.0),
    a=((), (0.0,), (2.0, 0.0), (2.0, 0.0, 1.0)),
    c=((), (4.0,), (1.0, -1.0), (1.0, -1.0, -8 / 3)),
    m=(2.0, 0.0, 1.0, 1.0),
    e=(0.0, 0.0, 0.0, 1.0),
    embedded_order=2,
)


ROS34PW2 = RosenbrockTableau(  # Rang & Angermann 2005: L-stable, stiffly accurate, a W-method
    "rosenbrock_w",
    3,
    gamma=0.43586652150845900,
    alpha=(0.0, 0.87173304301691801, 0.73157995778885238, 1.0),
    gammas=(0.43586652150845900, -0.43586652150845900, -0.41333337623388654, 0.0),
    a=(
        (),
        (2.0,),
        (1.4192173174557652, -0.25923221167296978),
        (4.1847604823191613, -0.28519201735549599, 2.2942803602790423),
    ),
    c=(
        (),
        (-4.5885607205580836,),
        (-4.1847604823191613, 0.28519201735549599),
        (-6.3681792001283597, -6.7956209444668367, 2.8700986043310550),
    ),
    m=(4.1847604823191613, -0.28519201735549599, 2.2942803602790423, 1.0),
    e=(0.27774994764796860, -1.4032398951759992, 1.7726301276675510, 0.5),
    embedded_order=2,
)


class RosenbrockStage(NamedTuple):
    """One stage of a step: where it is, and what it adds."""

    u: Any
    """Local coordinates."""
    v: Any
    """Velocity."""
    qdd: Any
    """Acceleration there."""
    s: Any
    """The same, with what earlier stages add."""
    k_u: Any
    k_v: Any
    k_w: Any


@dataclass(frozen=True)
class Rosenbrock(Integrator):
    """A Rosenbrock method: every stage solves a linear system, with one matrix for all stages.

    The state is ``(u, v)``, local coordinates and velocity. Its rate ``(dexp⁻¹(u) v, qdd)`` has
    the Jacobian ``[[P, 1], [A, B]]`` at the start, where ``A`` and ``B`` are derivatives of the
    acceleration. With ``F = H qdd + C - tau`` the equation of motion, ``H A = -∂F/∂q`` and
    ``H B = -∂F/∂qd``, so that for a right-hand side ``(r, s)`` the system of a stage becomes

        ((σ H + ∂F/∂qd)(σ - P) + ∂F/∂q) k_u = H s + (σ H + ∂F/∂qd) r,   k_v = (σ - P) k_u - r

    and its matrix is close to ``σ² H``, symmetric and positive definite.
    """

    tableau: RosenbrockTableau
    differentiates = True
    on_arrays = True

    def __post_init__(self):
        for name in ("name", "order"):
            object.__setattr__(self, name, getattr(self.tableau, name))
        object.__setattr__(self, "error_order", self.tableau.embedded_order)

    def step(self, field, model, t, h, q, qd, tau):
        """State a time ``h`` [s] after ``t`` by the linearly implicit Rosenbrock method."""
        table = self.tableau
        stages, system = self.stages(field, model, t, h, q, qd, tau)
        every = zip(*((x.k_u, x.k_v, x.k_w) for x in stages), strict=True)
        k_u, k_v, k_w = map(list, every)
        u, dv, work = (weighted_sum(table.m, k) for k in (k_u, k_v, k_w))
        error = weighted_sum(table.e, k_u), weighted_sum(table.e, k_v)
        return Stepped(move(model, q, u), qd + dv, work + system.quadratic(qd + dv / 2, dv), error)

    def stages(self, field, model, t, h, q, qd, tau) -> tuple:
        """All stages of a Rosenbrock step, and the linearised system at its start."""
        table = self.tableau
        system = self._system(model, 1 / (table.gamma * h), t, q, qd, tau, field)
        k_u, k_v, k_w, stages = [], [], [], []
        rows = zip(table.alpha, table.gammas, table.a, table.c, strict=True)
        for alpha, gamma, a, c in rows:
            u, q_i, v = 0 * qd, q, qd
            if any(a):
                u, v = weighted_sum(a, k_u), qd + weighted_sum(a, k_v)
                q_i = move(model, q, u)
            rate = local_rate(model, q, u, v, order=self.order)
            qdd, power = field(model, t + alpha * h, q_i, v, tau)
            rest = power - system.quadratic(v, qdd)
            r, s, w = (
                x + weighted_sum(c, k) / h if any(c) else x
                for x, k in ((rate, k_u), (qdd, k_v), (rest, k_w))
            )
            found = system.solve(r, s, w, gamma * h)
            for k, new in zip((k_u, k_v, k_w), found, strict=True):
                k.append(new)
            stages.append(RosenbrockStage(u, v, qdd, s, *found))
        return stages, system

    def _system(self, *given):
        """Linearised system of a step with exact derivatives."""
        return _Linearized(*given)


@kernel
def _motion(model, t, q, qd, qdd, inputs, *, field):
    """Kernel of the residual of the equation of motion, and the joint forces' power."""
    force = field.joint_force(model, t, q, qd, inputs)
    return dynamics.inverse_dynamics(model, q, qd, qdd) - force, (force * qd).sum(-1)


_linearization = differentiate(_motion, wrt=("q", "qd", "t"))


class _Linearized:
    """The equation of motion linearized at the start of a step, and factorized for its length."""

    def __init__(self, model, sigma, t, q, qd, tau, field):
        qdd, _ = field(model, t, q, qd, tau)
        if isinstance(field, FieldOnArrays):
            F_q, F_v, self.H, self.F_t = motion_derivatives(field, model, t, q, qd, qdd, tau)
            self.power, P = field.power_derivatives(t, q, qd, tau), turning(model, qd)
        else:
            of_motion = _linearization(model, t, q, qd, qdd, tau, field=field)
            (F_q, F_v, self.F_t), self.power = of_motion
            self.H, P = dynamics.mass_matrix(model, q), _turning(model, qd)
        self.sigma = sigma
        self.damped = sigma * self.H + F_v
        self.back = sigma * np.eye(model.nv, dtype=int) - P
        self.solved = linear_solver(self.damped @ self.back + F_q)

    def quadratic(self, v, dv):
        """Part of the work that is known exactly: none, 0."""
        return 0

    def solve(self, r, s, w, dt):
        """Stage rates of coordinates, velocities and work for given right sides."""
        k_u = self.solved(times(self.H, s) - dt * self.F_t + times(self.damped, r))
        k_v = times(self.back, k_u) - r
        p_q, p_v, p_t = self.power
        work = (p_q * k_u).sum(-1) + (p_v * k_v).sum(-1) + dt * p_t
        return k_u, k_v, (w + work) / self.sigma


def _turning(model, qd):
    """Derivative of ``dexp⁻¹(u) qd`` by ``u`` at zero, (nv, nv): ``[u, qd]/2``."""
    P = np.zeros((model.nv, model.nv), dtype=object)
    for i in range(1, model.body_count + 1):
        at, joint = model.v_slice[i], model.joint[i]
        a = bracket_matrix(joint, qd[at])
        if a is not None:
            P[at, at] = -a / 2
    return P


class RosenbrockW(Rosenbrock):
    """A Rosenbrock method whose order does not depend on the matrix of its stages: a W-method.

    Of the Jacobian it takes what makes mechanisms stiff, springs and dampers of the joints, limits,
    friction and servos; gravity, velocity terms, contact and forces of the user are explicit. With
    ``K`` and ``D`` the derivatives of these forces, the system of a stage becomes

        (σ H + D + K/σ) k_v = H s - K r/σ,   k_u = (r + k_v)/σ

    whose matrix is symmetric and has the zeros of ``H``: a step takes little more than one of an
    explicit method with four stages. Loops and prescribed joints take part as in the equation of
    motion, with this matrix for the inertia matrix.
    """

    differentiates = False

    def _system(self, *given):
        """Linearised system of a W-method step with resistances alone."""
        return _Resisted(*given)


class _Resisted:
    """Springs and dampers at the start of a step, and the inertia matrix, for its length.

    Stages overshoot where a velocity settles within the step, and the power is quadratic in it. So
    of the power ``f · v`` only ``f · v - v · H qdd`` is integrated by stages, which is linear in
    ``v``; the integral of the rest is ``(v + Δv/2) · H Δv``.
    """

    def __init__(self, model, sigma, t, q, qd, tau, field):
        if isinstance(field, FieldOnArrays):
            F_q, F_v, _ = field.of_joints.derivatives(t, q, qd, tau)
            self.H = dynamics.mass_matrix(model.spanning_tree, q)
            self.K, D = opposing(F_q), opposing(F_v)
        else:
            matrices = _matrices if np.asarray(q).dtype == object else _matrices_of_arrays
            self.H, self.K, D = matrices(model, t, q, qd, tau, field=field.of_joints)
        self.sigma, self.bias = sigma, None
        self.total = field.joint_force(model, t, q, qd, tau)
        self.M = sigma * self.H + D + self.K / sigma
        self.response = field.response(model, q, self.M)

    def quadratic(self, v, dv):
        """Part of the work that is known exactly: ``v · H dv``."""
        return (v * times(self.H, dv)).sum(-1)

    def solve(self, r, s, w, dt):
        """Stage rates of coordinates, velocities and work for given right sides."""
        del dt  # of the derivative with respect to time, which is left out
        force = times(self.H, s)
        if self.bias is None:  # in the first stage, where ``s`` is the acceleration
            self.bias = self.total - force
        k_v = self.response(force - times(self.K, r) / self.sigma, s / self.sigma)
        k_w = (w + (self.bias * k_v).sum(-1)) / self.sigma
        return (r + k_v) / self.sigma, k_v, k_w


def _matrices(model, t, q, qd, tau, *, field):
    """Inertia matrix ``H``, and stiffness ``K`` and damping ``D`` of joint forces."""
    F_q, F_v = _of_joints_derivatives(model, t, q, qd, tau, field=field)
    return dynamics.mass_matrix(model.spanning_tree, q), _resisting(F_q), _resisting(F_v)


@kernel
def _matrices_of_arrays(model, t, q, qd, inputs, *, field):
    """Kernel of inertia, stiffness and damping matrices."""
    return _matrices(model, t, q, qd, inputs, field=field)


def _resisting(F):
    """Symmetric stabilising part of ``-F`` without negative diagonal entries, traceable."""
    A = -(F + F.T) / 2
    for i, x in enumerate(np.diagonal(A)):
        A[i, i] = x if is_zero(x) else select(x > 0, x, 0 * x)
    return A


_of_joints_derivatives = differentiate(joint_forces, wrt=("q", "qd"))
