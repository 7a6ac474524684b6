"""Explicit steps on the manifold: Runge–Kutta methods, and semi-implicit Euler."""

from dataclasses import dataclass

import numpy as np

from kinetree.simulation.integrators.integrator import Integrator, Stages, Stepped
from kinetree.simulation.integrators.manifold import local_rate, move
from kinetree.simulation.integrators.tableaus import Tableau

__all__ = ["ExplicitRungeKutta", "SemiImplicitEuler", "Stepped", "combined"]


@dataclass(frozen=True)
class ExplicitRungeKutta(Integrator):
    """An explicit Runge–Kutta method in local coordinates, after Munthe-Kaas."""

    tableau: Tableau

    def __post_init__(self):
        for name in ("name", "order"):
            object.__setattr__(self, name, getattr(self.tableau, name))
        object.__setattr__(self, "error_order", self.tableau.embedded_order)

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``."""
        table, k_u, k_v, power = self.tableau, [], [], []
        for c, a in zip(table.c, table.a, strict=True):
            q_i, v, rate = q, qd, qd
            if a:
                u = h * combined(a, k_u)
                v = qd + h * combined(a, k_v)
                q_i, rate = move(model, q, u), local_rate(model, q, u, v, order=self.order)
            qdd, p = field(model, t + c * h, q_i, v, tau)
            k_u.append(rate)
            k_v.append(qdd)
            power.append(p)
        error = None
        if table.b_embedded:
            e = [x - y for x, y in zip(table.b, table.b_embedded, strict=True)]
            error = h * combined(e, k_u), h * combined(e, k_v)
        u, dv, work = (h * combined(table.b, k) for k in (k_u, k_v, power))
        stages = None
        if table.dense:
            stages = Stages(np.stack(k_u, -2), np.stack(k_v, -2), np.stack(power, -1))
        return Stepped(move(model, q, u), qd + dv, work, error, stages)

    def interpolation(self, theta):
        """Weights of the stages, or None."""
        if not self.tableau.dense:
            return None
        powers = [theta ** (k + 1) for k in range(len(self.tableau.dense[0]))]
        return np.array(self.tableau.dense) @ powers


@dataclass(frozen=True)
class SemiImplicitEuler(Integrator):
    """Velocities first, then positions with the new velocities."""

    name = "semi_implicit_euler"
    order = 1

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``."""
        qdd, power = field(model, t, q, qd, tau)
        after = qd + h * qdd
        return Stepped(move(model, q, h * after), after, h * power)


def combined(weights, terms):
    """The sum of ``terms`` with ``weights``, those of weight zero left out."""
    return sum(w * k for w, k in zip(weights, terms, strict=True) if w != 0)
