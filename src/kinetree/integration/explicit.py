"""Explicit steps on the manifold: Runge–Kutta methods, and semi-implicit Euler."""

from dataclasses import dataclass

import numpy as np

from kinetree.expr.repeat import repeat
from kinetree.functional.choose import select
from kinetree.integration.integrator import Integrator, Stages, Stepped
from kinetree.integration.manifold import local_rate, move
from kinetree.integration.tableaus import Tableau

__all__ = ["ExplicitRungeKutta", "SemiImplicitEuler", "Stepped", "combined"]


@dataclass(frozen=True)
class ExplicitRungeKutta(Integrator):
    """An explicit Runge–Kutta method in local coordinates, after Munthe-Kaas.

    Attributes:
        tableau: its coefficients.
        looped: whether stages are a loop in compiled code, which then has the equation of motion
            once and not once for every stage: for mechanisms whose equation is long.
    """

    tableau: Tableau
    looped: bool = False

    def __post_init__(self):
        for name in ("name", "order"):
            object.__setattr__(self, name, getattr(self.tableau, name))
        object.__setattr__(self, "error_order", self.tableau.embedded_order)

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``."""
        table = self.tableau
        slopes = self._in_a_loop if self.looped and np.asarray(q).dtype == object else self._slopes
        k_u, k_v, power = slopes(field, model, t, h, q, qd, tau)
        error = None
        if table.b_embedded:
            e = [x - y for x, y in zip(table.b, table.b_embedded, strict=True)]
            error = h * combined(e, k_u), h * combined(e, k_v)
        u, dv, work = (h * combined(table.b, k) for k in (k_u, k_v, power))
        stages = None
        if table.dense:
            stages = Stages(np.stack(k_u, -2), np.stack(k_v, -2), np.stack(power, -1))
        return Stepped(move(model, q, u), qd + dv, work, error, stages)

    def _slopes(self, field, model, t, h, q, qd, tau, known=((), (), ())):
        """Slopes at all stages but the ``known`` ones: of coordinates, velocities, and the work."""
        table = self.tableau
        k_u, k_v, power = map(list, known)
        for c, a in list(zip(table.c, table.a, strict=True))[len(k_u) :]:
            q_i, v, rate = q, qd, qd
            if a:
                u = h * combined(a, k_u)
                v = qd + h * combined(a, k_v)
                q_i, rate = move(model, q, u), local_rate(model, q, u, v, order=self.order)
            qdd, p = field(model, t + c * h, q_i, v, tau)
            k_u.append(rate)
            k_v.append(qdd)
            power.append(p)
        return k_u, k_v, power

    def _in_a_loop(self, field, model, t, h, q, qd, tau):
        """The same, traced, with the stages that the result needs in a loop."""
        c, a = self.tableau.c, self.tableau.a
        stages = max(i for i, weight in enumerate(self.tableau.b, start=1) if weight)
        if stages == 1:  # nothing to repeat
            return self._slopes(field, model, t, h, q, qd, tau)

        def body(state):
            i, k_u, k_v, power = state
            is_now = [(j - 0.5 < i) & (i < j + 0.5) for j in range(stages)]

            def coefficient(values):
                value = values[-1]
                for now, other in zip(is_now[:-1], values[:-1], strict=True):
                    value = select(now, other, value)
                return value

            column = [[row[j] if j < len(row) else 0 for row in a[:stages]] for j in range(stages)]
            weights = [h * coefficient(values) for values in column[:-1]]
            u, v = combined(weights, k_u[:-1]), qd + combined(weights, k_v[:-1])
            rate = local_rate(model, q, u, v, order=self.order)
            qdd, p = field(model, t + coefficient(c[:stages]) * h, move(model, q, u), v, tau)
            new = [
                (select(on, rate, x), select(on, qdd, y), select(on, p, z))
                for on, x, y, z in zip(is_now, k_u, k_v, power, strict=True)
            ]
            return (i + 1, *(list(slopes) for slopes in zip(*new, strict=True)))

        later = [qd] * stages  # any number: coefficients of stages to come are zero
        known = repeat(body, (0, later, later, [0] * stages), stages)[1:]
        return self._slopes(field, model, t, h, q, qd, tau, known)

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
    pairs = zip(weights, terms, strict=True)
    return sum(w * k for w, k in pairs if not (isinstance(w, (int, float)) and w == 0))
