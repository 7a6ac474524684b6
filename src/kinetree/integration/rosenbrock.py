"""Linearly implicit steps: Rosenbrock methods on the manifold, for stiff forces."""

from dataclasses import dataclass

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.integration.explicit import combined
from kinetree.integration.group import bracket_matrix
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.linear import factor, solve
from kinetree.integration.manifold import local_rate, move
from kinetree.integration.tableaus import RosenbrockTableau
from kinetree.quantities import dynamics

__all__ = ["Rosenbrock"]


@dataclass(frozen=True)
class Rosenbrock(Integrator):
    """A Rosenbrock method: every stage solves a linear system, with one matrix for all stages.

    The state is ``(u, v)``, local coordinates and velocity. Its slope ``(dexp⁻¹(u) v, qdd)`` has
    the Jacobian ``[[P, 1], [A, B]]`` at the start, where ``A`` and ``B`` are derivatives of the
    acceleration. With ``F = H qdd + C - tau`` the equation of motion, ``H A = -∂F/∂q`` and
    ``H B = -∂F/∂qd``, so that for a right-hand side ``(r, s)`` the system of a stage becomes

        ((σ H + ∂F/∂qd)(σ - P) + ∂F/∂q) k_u = H s + (σ H + ∂F/∂qd) r,   k_v = (σ - P) k_u - r

    and its matrix is close to ``σ² H``, symmetric and positive definite.
    """

    tableau: RosenbrockTableau
    differentiates = True

    def __post_init__(self):
        for name in ("name", "order"):
            object.__setattr__(self, name, getattr(self.tableau, name))
        object.__setattr__(self, "error_order", self.tableau.embedded_order)

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``."""
        table = self.tableau
        sigma = 1 / (table.gamma * h)
        qdd, _ = field(model, t, q, qd, tau)
        system = _Linearized(model, sigma, t, q, qd, qdd, tau, field)
        k_u, k_v, k_w = [], [], []
        rows = zip(table.alpha, table.gammas, table.a, table.c, strict=True)
        for alpha, gamma, a, c in rows:
            u, q_i, v = 0 * qd, q, qd
            if any(a):
                u, v = combined(a, k_u), qd + combined(a, k_v)
                q_i = move(model, q, u)
            rate = local_rate(model, q, u, v, order=self.order)
            qdd, power = field(model, t + alpha * h, q_i, v, tau)
            r, s, w = (
                x + combined(c, k) / h if any(c) else x
                for x, k in ((rate, k_u), (qdd, k_v), (power, k_w))
            )
            for k, new in zip((k_u, k_v, k_w), system.solve(r, s, w, gamma * h), strict=True):
                k.append(new)
        u, dv, work = (combined(table.m, k) for k in (k_u, k_v, k_w))
        error = combined(table.e, k_u), combined(table.e, k_v)
        return Stepped(move(model, q, u), qd + dv, work, error)


@kernel
def _motion(model, t, q, qd, qdd, tau, *, field):
    """``F``, which is zero, and the power of the joint forces."""
    force = field.joint_force(model, t, q, qd, tau)
    return dynamics.inverse_dynamics(model, q, qd, qdd) - force, (force * qd).sum(-1)


_slopes = differentiate(_motion, wrt=("q", "qd", "t"))


class _Linearized:
    """The equation of motion linearized at the start of a step, and factorized for its length."""

    def __init__(self, model, sigma, t, q, qd, qdd, tau, field):
        (F_q, F_v, self.F_t), self.power = _slopes(model, t, q, qd, qdd, tau, field=field)
        self.sigma, self.H = sigma, dynamics.mass_matrix(model, q)
        self.damped = sigma * self.H + F_v
        self.back = sigma * np.eye(model.nv, dtype=int) - _turning(model, qd)
        self.factors = factor(self.damped @ self.back + F_q)

    def solve(self, r, s, w, dt):
        """Slopes of local coordinates, velocities and work for right-hand sides ``r, s, w``."""
        k_u = solve(self.factors, self.H @ s - dt * self.F_t + self.damped @ r)
        k_v = self.back @ k_u - r
        p_q, p_v, p_t = self.power
        return k_u, k_v, (w + p_q @ k_u + p_v @ k_v + dt * p_t) / self.sigma


def _turning(model, qd):
    """``P``, the derivative of ``dexp⁻¹(u) qd`` at zero: ``u`` to ``[u, qd]/2``."""
    P = np.zeros((model.nv, model.nv), dtype=object)
    for i in range(1, model.body_count + 1):
        at, joint = model.v_slice[i], model.joint[i]
        a = bracket_matrix(joint, qd[at])
        if a is not None:
            P[at, at] = -a / 2
    return P
