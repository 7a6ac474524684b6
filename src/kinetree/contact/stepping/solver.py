"""The solver for the forces of an unrolled step."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity.rows import MixedRows, newton_matrix, obey, scale
from kinetree.contact.complementarity.traced import Sweeps, largest, newton_step
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.spatial.ops import stop_gradient

DAMPING = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Weights of staying where one is, round by round, times the error relative to the forces."""
SWEEPS = (2, 0, 0, 0)
"""How many come before Newton's step, round by round: in some only, since near the solution they
lead away from it where contacts are redundant. Periods of 4 and 5 make for many combinations."""
FAR = 1e5  # times the tolerance: error below which there are no sweeps
LEAST = 1e-12  # damping of equations that are singular to rounding error
LEAST_SINGLE = 1e-6  # the same in float32
REFINED = 2  # times: derivatives of forces that are not unique
POLISHED = 0.05  # of the tolerance: error of the initial forces above which one round is needed


class Problem(NamedTuple):
    """Find forces whose motion ``w = A lam + b`` goes with them; see ``complementarity.rows``.

    The laws are relaxed by a ``speed``, if there is one [m/s or rad/s].
    """

    A: Any
    b: Any
    mu: Any
    low: Any
    high: Any
    speed: float = 0.0

    def scale(self):
        """Matrix, vector and rows of the problem in comparable units, and the units."""
        rows = MixedRows(np.asarray(self.mu), np.asarray(self.low), np.asarray(self.high))
        if self.speed:
            rows = rows._replace(speed=np.full(len(self.b), self.speed))
        return scale(self.A, self.b, rows)

    def errors(self, lam):
        """Law violations of all rows under forces ``lam``, as speeds [m/s or rad/s], (m,)."""
        A, b, rows, units = self.scale()
        force = lam / units
        return (force - obey(rows, force, A @ force + b)) / units


def solve_in_kernel(problem, warm, tolerance, rounds, loose=1.0):
    """Contact forces by semismooth Newton in a kernel, and their error [m/s or rad/s].

    A round is a semismooth step on the functions of Alart and Curnier, which is exact once it is
    known what sticks, slides and opens. It is kept whether or not the error has become smaller.
    Alone it may go in circles: the first round, and some of the later ones, begin with two sweeps
    of Gauss and Seidel, which find that out. At the end forces are put into their cones.
    Redundant contacts make the equations singular: damping in proportion to the error, after
    Levenberg and Marquardt, makes steps along what they leave open as long as the forces are, and
    vanishes at the solution.

    Loops inside compiled code have no way out but to run zero times. Here it is tried again with
    1, 1, 2, 4, 8 ... rounds, each time where the error is still too large. With ``loose`` above 1
    the tolerance is larger by this factor after the first round; without a round it is the true one
    that counts.
    """
    if not len(problem.b):
        return warm, 0.0
    A, b, rows, units = problem.scale()
    sweeps, rates = Sweeps(A, b, rows, LEAST), 1 / units
    # Relaxed laws are smooth on the scale of their speed: Newton's method needs no sweeps there.
    far = FAR * tolerance + problem.speed

    def looked_at(lam):
        w = A @ lam + b
        return lam, w, lam - obey(rows, lam, w)

    def sweep(found):
        return looked_at(sweeps.after(found[0]))

    def better(found, best, error):
        off = largest(np.abs(found[2]) * rates)
        return select(off < error, found[0], best), select(off < error, off, error)

    def one(state):
        found, best, error, damping, sweeping = state
        found = repeat(sweep, found, select(error > far, sweeping[0], 0))
        lam, w, missing = found
        best, error = better(found, best, error)
        off, size = largest(np.abs(missing)), largest(np.abs(lam))
        weight = damping[0] * off / (off + size) + LEAST
        found = looked_at(lam - newton_step(newton_matrix(rows, A, lam, w), missing, weight))
        best, error = better(found, best, error)
        return found, best, error, np.roll(damping, -1), np.roll(sweeping, -1)

    def some(state):
        *state, enough, many = state
        state = repeat(one, tuple(state), select(state[2] > enough, many, 0))
        return *state, loose * tolerance, many + many

    first = looked_at(warm * rates)
    best, error = first[0], largest(np.abs(first[2]) * rates)
    schedule = np.array(DAMPING), np.array(SWEEPS)
    state = (first, best, error, *schedule, POLISHED * tolerance, 0.5)  # counts as one
    _, best, *_ = repeat(some, state, 1 + int(np.ceil(np.log2(rounds))))
    lam, _, missing = looked_at(best)
    if not problem.speed:  # within the cones, and zero where nothing touches
        lam, _, missing = looked_at(lam - missing)
    return units * lam, largest(np.abs(missing) * rates)


def solve_by_sweeps(problem, warm, tolerance, rounds):
    """Contact forces by Gauss-Seidel sweeps in a kernel, and their error [m/s or rad/s].

    Contacts are solved one after the other, each exactly, until nothing changes by more than the
    tolerance, or ``rounds`` times: the forces are within their cones and bounds. Feet of a robot
    take two to seven sweeps from the forces of the last step, also while they slide; redundant
    contacts take more. There is no matrix to factor: the code is short, and all its
    numbers fit into the registers of a GPU.
    """
    if not len(problem.b):
        return warm, 0.0
    A, b, rows, units = problem.scale()
    sweeps, rates = Sweeps(A, b, rows, LEAST_SINGLE), 1 / units

    def one(state):
        lam, _ = state
        after = sweeps.after(lam)
        return after, largest(np.abs(after - lam) * rates)

    def unless_settled(state):
        return repeat(one, state, select(state[1] > tolerance, 1, 0))

    lam, _ = repeat(unless_settled, (warm * rates, 2 * tolerance), rounds)
    return units * lam, largest(np.abs(lam - obey(rows, lam, A @ lam + b)) * rates)


def differentiable(problem, lam, least=1e-6):
    """Forces ``lam`` of a solved problem with derivatives by the implicit function theorem.

    In comparable units ``F(lam) = lam - obeyed = 0`` defines the forces as functions of all else:
    their derivative is ``-J⁻¹ dF`` with ``J = dF/dlam``, that of a step of Newton's method whose
    matrix is held. With exact laws ``J`` is that of the state at hand: what is open, sticks and
    slides stays so. Redundant contacts make it singular; with the weight ``least`` the derivative
    has no part along what they leave open, and is refined to what it is without the weight.
    """
    if not len(problem.b):
        return lam
    A, b, rows, units = problem.scale()
    lam = _fix(lam / units)
    w = A @ lam + b
    missing = lam - obey(rows, lam, w)
    speed = None if rows.speed is None else _fix(rows.speed)
    fixed = MixedRows(_fix(rows.mu), _fix(rows.low), _fix(rows.high), rows.convex, speed)
    J = newton_matrix(fixed, _fix(A), lam, _fix(w))
    if problem.speed:  # regular
        return units * (lam - newton_step(J, missing, 0))
    step = newton_step(J, missing, least)
    for _ in range(REFINED):
        step = step + newton_step(J, missing - J @ step, least)
    return units * (lam - step)


def _fix(x):
    """Copy of numbers as constants, through which no derivatives flow."""
    return _each_held(x) if np.asarray(x).dtype == object else np.real(x)


_each_held = np.frompyfunc(stop_gradient, 1, 1)
