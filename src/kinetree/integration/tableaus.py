"""Runge–Kutta and Rosenbrock methods as tables."""

from dataclasses import dataclass

__all__ = [
    "DORMAND_PRINCE", "EULER", "HEUN", "MIDPOINT", "RK4", "RK6", "RODAS3", "RosenbrockTableau",
    "Tableau",
]  # fmt: skip


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge–Kutta method: Butcher's array.

    Attributes:
        name: what it is called.
        order: of the solution that is carried on.
        c: times of the stages, as fractions of the step.
        a: rows of the lower triangle; row i has i entries.
        b: weights of the stages in the result.
        b_embedded: weights of another result, for the error estimate; may be empty.
        embedded_order: its order.
        dense: for each stage, coefficients of θ, θ², ... of its weight at the fraction θ of the
            step; may be empty — RBDA (11.45)–(11.51).
    """

    name: str
    order: int
    c: tuple
    a: tuple
    b: tuple
    b_embedded: tuple = ()
    embedded_order: int = 0
    dense: tuple = ()


EULER = Tableau("euler", 1, c=(0.0,), a=((),), b=(1.0,), dense=((1.0,),))

MIDPOINT = Tableau(
    "midpoint",
    2,
    c=(0.0, 1 / 2),
    a=((), (1 / 2,)),
    b=(0.0, 1.0),
    dense=((1.0, -1.0), (0.0, 1.0)),
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
        5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40,
    ),
    embedded_order=4,
    dense=(
        (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408,
         701980252875 / 199316789632),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class RosenbrockTableau:
    """A Rosenbrock method, in the form that needs no product with the Jacobian.

        (1/(γh) - J) k_i = f(t + α_i h, y + Σ a_ij k_j) + Σ c_ij k_j / h + γ_i h ∂f/∂t

    Attributes:
        name: what it is called.
        order: of the solution that is carried on.
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
