"""Explicit steps on the manifold: Runge–Kutta methods, and semi-implicit Euler."""

from dataclasses import dataclass

import numpy as np

from kinetree.expr.calls import calls_to
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.integration.integrator import Integrator, Stages, Stepped, is_called
from kinetree.integration.manifold import local_rate, move


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge–Kutta method: Butcher's array."""

    name: str
    """What it is called."""
    order: int
    """Of the solution."""
    c: tuple
    """Times of the stages, as fractions of the step."""
    a: tuple
    """Rows of the lower triangle; row i has i entries."""
    b: tuple
    """Weights of the stages in the result."""
    b_embedded: tuple = ()
    """Weights of another result, for the error estimate; may be empty."""
    embedded_order: int = 0
    """Its order."""
    dense: tuple = ()
    """For each stage, coefficients of θ, θ², ... of its weight at the fraction θ of the step; may
    be empty — RBDA (11.45)–(11.51)."""


@dataclass(frozen=True)
class ExplicitRungeKutta(Integrator):
    """An explicit Runge–Kutta method in local coordinates, after Munthe-Kaas."""

    tableau: Tableau
    """Its coefficients."""
    on_arrays = True
    looped: bool = False
    """Whether stages are a loop in compiled code, which then has the equation of motion once and
    not once for every stage: for mechanisms whose equation is long, where it is not called."""

    def __post_init__(self):
        for name in ("name", "order"):
            object.__setattr__(self, name, getattr(self.tableau, name))
        object.__setattr__(self, "error_order", self.tableau.embedded_order)

    def step(self, field, model, t, h, q, qd, tau):
        """State a time ``h`` [s] after ``t`` by the explicit Runge-Kutta method."""
        table = self.tableau
        is_copied = np.asarray(q).dtype == object and not (calls_to() and is_called(field))
        rates = self._in_a_loop if self.looped and is_copied else self._rates
        k_u, k_v, power = rates(field, model, t, h, q, qd, tau)
        error = None
        if table.b_embedded:
            e = [x - y for x, y in zip(table.b, table.b_embedded, strict=True)]
            error = h * weighted_sum(e, k_u), h * weighted_sum(e, k_v)
        u, dv, work = (h * weighted_sum(table.b, k) for k in (k_u, k_v, power))
        stages = None
        if table.dense:
            stages = Stages(np.stack(k_u, -2), np.stack(k_v, -2), np.stack(power, -1))
        return Stepped(move(model, q, u), qd + dv, work, error, stages)

    def _rates(self, field, model, t, h, q, qd, tau, known=((), (), ())):
        """Stage rates of coordinates, velocities and work, beyond the ``known`` stages."""
        table = self.tableau
        k_u, k_v, power = map(list, known)
        for c, a in list(zip(table.c, table.a, strict=True))[len(k_u) :]:
            q_i, v, rate = q, qd, qd
            if a:
                u = h * weighted_sum(a, k_u)
                v = qd + h * weighted_sum(a, k_v)
                q_i, rate = move(model, q, u), local_rate(model, q, u, v, order=self.order)
            qdd, p = field(model, t + c * h, q_i, v, tau)
            k_u.append(rate)
            k_v.append(qdd)
            power.append(p)
        return k_u, k_v, power

    def _in_a_loop(self, field, model, t, h, q, qd, tau):
        """Stage rates in traced code as a loop, so that the field is compiled once."""
        c, a = self.tableau.c, self.tableau.a
        stages = max(i for i, weight in enumerate(self.tableau.b, start=1) if weight)
        if stages == 1:  # nothing to repeat
            return self._rates(field, model, t, h, q, qd, tau)

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
            u, v = weighted_sum(weights, k_u[:-1]), qd + weighted_sum(weights, k_v[:-1])
            rate = local_rate(model, q, u, v, order=self.order)
            qdd, p = field(model, t + coefficient(c[:stages]) * h, move(model, q, u), v, tau)
            new = [
                (select(on, rate, x), select(on, qdd, y), select(on, p, z))
                for on, x, y, z in zip(is_now, k_u, k_v, power, strict=True)
            ]
            return (i + 1, *(list(rates) for rates in zip(*new, strict=True)))

        later = [qd] * stages  # any number: coefficients of stages to come are zero
        known = repeat(body, (0, later, later, [0] * stages), stages)[1:]
        return self._rates(field, model, t, h, q, qd, tau, known)

    def interpolation(self, theta):
        """Stage weights at fraction ``theta`` of a step; None without dense output."""
        if not self.tableau.dense:
            return None
        powers = [theta ** (k + 1) for k in range(len(self.tableau.dense[0]))]
        return np.array(self.tableau.dense) @ powers


@dataclass(frozen=True)
class SemiImplicitEuler(Integrator):
    """Velocities first, then positions with the new velocities."""

    name = "semi_implicit_euler"
    order = 1
    on_arrays = True

    def step(self, field, model, t, h, q, qd, tau):
        """State a time ``h`` [s] after ``t`` by the semi-implicit Euler method."""
        qdd, power = field(model, t, q, qd, tau)
        after = qd + h * qdd
        return Stepped(move(model, q, h * after), after, h * power)


def weighted_sum(weights, terms):
    """Sum of ``terms`` with ``weights``, terms of weight zero left out."""
    pairs = zip(weights, terms, strict=True)
    return sum(w * k for w, k in pairs if not (isinstance(w, (int, float)) and w == 0))


# --- tables of coefficients ----------------------------------------------------------------------


EULER = Tableau("euler", 1, c=(0.0,), a=((),), b=(1.0,), dense=((1.0,),))

MIDPOINT = Tableau(
    "midpoint", 2, c=(0.0, 1 / 2), a=((), (1 / 2,)), b=(0.0, 1.0), dense=((1.0, -1.0), (0.0, 1.0))
)

HEUN = Tableau(  # Heun's method with the second stage at 2/3 — RBDA (11.46)
    "heun",
    2,
    c=(0.0, 2 / 3),
    a=((), (2 / 3,)),
    b=(1 / 4, 3 / 4),
    dense=((1.0, -3 / 4), (0.0, 3 / 4)),
)

RK4 = Tableau(
    "rk4",
    4,
    c=(0.0, 1 / 2, 1 / 2, 1.0),
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
)

RK6 = Tableau(  # Butcher 1964: seven stages, the fewest that a method of order 6 can have
    "rk6",
    6,
    c=(0.0, 1 / 3, 2 / 3, 1 / 3, 1 / 2, 1 / 2, 1.0),
    a=(
        (),
        (1 / 3,),
        (0.0, 2 / 3),
        (1 / 12, 1 / 3, -1 / 12),
        (-1 / 16, 9 / 8, -3 / 16, -3 / 8),
        (0.0, 9 / 8, -3 / 8, -3 / 4, 1 / 2),
        (9 / 44, -9 / 11, 63 / 44, 18 / 11, 0.0, -16 / 11),
    ),
    b=(11 / 120, 0.0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120),
)

DORMAND_PRINCE = Tableau(  # Dormand & Prince 1980; interpolant of order 4 by Shampine 1986
    "dopri5",
    5,
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    b_embedded=(
        5179 / 57600,
        0.0,
        7571 / 16695,
        393 / 640,
        -92097 / 339200,
        187 / 2100,
        1 / 40,
    ),
    embedded_order=4,
    dense=(
        (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)
