"""Projection onto loops and couplings as compiled code, of states that are off by little.

Equations are chosen beforehand (``Chosen``); positions take Newton's steps, velocities follow, both
in the metric of the inertia matrix: velocities change as by an impulse of the constraint forces.
Steps of simulations end with it. It decides nothing: ranks, other metrics and states from afar are
for ``loops.kinematics.projection``, in Python; ``loops.stepping.on_arrays`` is the same for
mechanisms so large that code for each would take longer to compile than it saves.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel, one_copy_of_general_code, select
from kinetree.loops.kinematics.whitening import (
    FactoredInertia,
    multipliers,
    orthogonal,
    smallest,
    sparsity,
    whitening,
)


@dataclass(frozen=True)
class Chosen:
    """Choice of the constraint equations that are solved; the others follow from them."""

    rows: tuple[int, ...]
    """Their numbers."""
    units: tuple[float, ...]
    """Factor of each that makes it a pure number."""
    prescribed: tuple[int, ...] = ()
    """Velocity variables of prescribed joints. Their motions are more equations, in front of the
    others: with them ``K1 qdd1 = k - K2 qdd2`` for the other joints."""
    prescribed_units: tuple[float, ...] = ()
    """Factor of each that makes it a pure number."""
    weight: float = 0.0
    """Of the equations in ``H + weight KᵀK`` [kg·m²], which stands for ``H`` where that of the tree
    is singular; zero where it is not."""
    every: tuple[float, ...] = ()
    """Factors that make all equations, chosen or not, pure numbers."""
    slack: float = 0.0
    """Error, in pure numbers, of equations that are not chosen: the misalignment of nearly
    redundant ones, see ``algorithms.closed.rank``."""

    @classmethod
    def of_rows(cls, rows, units, prescribed=(), weight=0.0, slack=0.0) -> "Chosen":
        """``Chosen`` equations with these row numbers, in dimensionless units."""
        factors, every = (tuple(map(float, part)) for part in (units.rows[rows], units.rows))
        of_prescribed = tuple(float(1 / units.columns[k]) for k in prescribed)
        return cls(tuple(map(int, rows)), factors, prescribed, of_prescribed, weight, every, slack)

    def __call__(self, equations):
        """The chosen ones of all equations, (nc, ...)."""
        return (equations[list(self.rows)].T * np.array(self.units)).T

    def largest_error(self, error):
        """Largest scaled constraint error, traceable; unchosen rows less their slack."""
        pure = error * np.array(self.every)
        if not self.slack:
            return largest(pure)
        others = [k for k in range(len(self.every)) if k not in self.rows]
        within = [select(abs(x) < self.slack, 0 * x, abs(x) - self.slack) for x in pure[others]]
        return largest([*pure[list(self.rows)], *within])

    def largest_errors(self, errors):
        """Largest scaled constraint errors (...) of arrays; unchosen rows less their slack."""
        pure = np.abs(errors * np.array(self.every))
        if self.slack:
            others = [k for k in range(len(self.every)) if k not in self.rows]
            pure[..., others] = np.maximum(pure[..., others] - self.slack, 0.0)
        return np.max(pure, axis=-1)

    def matrix(self, K):
        """Scaled matrix (r, nv) of the chosen constraints and prescribed variables."""
        K = self(K)
        if not self.prescribed:
            return K
        unit = np.eye(K.shape[-1], dtype=int)[list(self.prescribed)]
        return np.concatenate([(unit.T * np.array(self.prescribed_units)).T, K])

    def right(self, k, prescribed=None):
        """Scaled right sides (r,) of the chosen constraints and prescribed variables.

        None stands for zeros.
        """
        k = self(k)
        if not self.prescribed:
            return k
        units = np.array(self.prescribed_units)
        first = 0 * units if prescribed is None else prescribed[list(self.prescribed)] * units
        return np.concatenate([first, k])

    def others(self, x):
        """Vector ``x`` (nv,) with zeros for prescribed variables."""
        if not self.prescribed:
            return x
        free = np.ones(len(x), dtype=int)
        free[list(self.prescribed)] = 0
        return x * free


def largest(values):
    """Largest absolute value of a list, traceable."""
    largest = abs(values[0])
    for value in values[1:]:
        largest = select(largest < abs(value), abs(value), largest)
    return largest


class ConstraintSolution(NamedTuple):
    """Solution of the constraint equations at a state; vectors are whitened.

    Attributes:
        x: accelerations that obey them, next to given ones.
        forces: of the equations, which that takes.
        dx, dv: corrections of positions and velocities.
        error, rate: position and velocity errors.
        health: of each equation, see ``OrthogonalRows``.
    """

    x: Any
    forces: Any
    dx: Any
    dv: Any
    error: Any
    rate: Any
    health: Any


def solve_equations(
    model, q, qd, inertia, x, qdd, chosen, time_constant=None
) -> ConstraintSolution:
    """``ConstraintSolution`` of the chosen equations at a state, in whitened variables."""
    places = [(i, j) for i in range(model.nv) for j in ltl.ancestors(inertia.lam, i)]
    factors = np.array([*(inertia.L[at] for at in places), *inertia.root])
    given = (q, qd, 0 * qd if qdd is None else qdd, factors, x)
    solve = _equations if np.asarray(q).dtype == object else _equations.function
    return ConstraintSolution(*solve(model, *given, chosen=chosen, time_constant=time_constant))


@one_copy_of_general_code
@kernel
def _equations(model, q, qd, qdd, factors, x, *, chosen, time_constant):
    """Kernel of a ``ConstraintSolution``, given the factors of the inertia matrix."""
    lam, L = sparsity(model, chosen.weight), np.zeros((model.nv, model.nv), dtype=object)
    root, below = factors[len(factors) - model.nv :], iter(factors)
    for i in range(model.nv):
        for j in ltl.ancestors(lam, i):
            L[i, j] = next(below)
    c = loop_constraints(model, q, qd)
    rows = orthogonal(FactoredInertia(L, root, lam), chosen.matrix(c.K))
    k = chosen.right(c.k if time_constant is None else c.with_stabilization(time_constant), qdd)
    forces: Any = 0 * k
    for _ in range(2):  # the second removes what damping and rounding left of the first
        rest = k - rows.apply(x)
        x = x + smallest(rows, rest)
        if chosen.prescribed:
            forces = forces + multipliers(rows, rest)
    forces = forces - chosen.weight * k if chosen.weight else forces
    dx = -smallest(rows, chosen.right(c.error))
    dv = -smallest(rows, chosen.right(c.rate))
    return x, forces, dx, dv, c.error, c.rate, np.array(rows.health)


class ClosedState(NamedTuple):
    """A state from which the errors of loops and couplings were taken away.

    Attributes:
        q, qd: the state.
        position: largest position error, in any equation, in pure numbers.
        velocity: largest velocity error, likewise [1/s].
        kick: half the square of the change of the velocities, in the metric of ``H`` [J].
        health: square of what is new in the equation that says least, relative to the mean: zero
            where the mechanism is singular.
    """

    q: Any
    qd: Any
    position: Any
    velocity: Any
    kick: Any
    health: Any


def least(values):
    """Smallest of a list of numbers, traceable."""
    least = values[0]
    for value in values[1:]:
        least = select(value < least, value, least)
    return least


@kernel
def close_loops(model, q, qd, chosen, *, iterations=3):
    """State with loops closed near one with small errors, by Newton steps in the metric ``H``.

    Newton's method for the positions, with the inertia matrix of the first guess; velocities obey
    the linear equations of the last but one position. Returns the values of a ``ClosedState``,
    whose errors are those before the last of the steps.
    """
    K = chosen.matrix(loop_constraints(model, q, qd).K) if chosen.weight else None
    inertia = whitening(model, q, K, chosen.weight)

    def improve(state):
        q, qd, x = state[:3]
        found = solve_equations(model, q, qd, inertia, 0 * qd, None, chosen)
        errors = chosen.largest_error(found.error), chosen.largest_error(found.rate)
        dq, dqd = (chosen.others(inertia.motion(y)) for y in (found.dx, found.dv))
        return model.integrate(q, dq), qd + dqd, x + found.dv, *errors, least(found.health)

    none = 0 * q[0]
    state = (q, qd, 0 * qd, none, none, none)
    q, qd, x, position, velocity, health = repeat(improve, state, iterations)
    return q, qd, position, velocity, x @ x / 2, health


def scale_to_energy(qd, lacking, kinetic, most):
    """Velocities scaled to gain the energy ``lacking``, if they have enough of it.

    They point along the gradient of the kinetic energy in the metric of ``H``, so this is the
    nearest point on the surface of the right energy; and scaled velocities obey constraints that
    do not move as those did.

    Args:
        qd: velocities, (..., nv), traced or not.
        lacking: energy to add [J], (...).
        kinetic: kinetic energy of ``qd`` [J], (...).
        most: part of it beyond which nothing is added.
    """
    one = 1 + 0 * kinetic
    enough = abs(lacking) < most * kinetic
    ratio = select(enough, 1 + lacking / select(enough, kinetic, one), one)
    return np.asarray(np.sqrt(ratio))[..., None] * qd
