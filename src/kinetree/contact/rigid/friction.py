"""Contacts with friction at the level of accelerations.

A contact that slides has a known direction of friction, against the sliding: one unknown, and a
column ``n - mu s`` where the row is ``n``, so that the matrix is not symmetric. One that does not
slide yet has three unknowns: it sticks while friction within the cone can hold it, and else begins
to slide in the direction into which it then accelerates. Contacts without friction have one unknown
and symmetric parts.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity import cones, newton
from kinetree.contact.complementarity.equations import Equations
from kinetree.contact.complementarity.rows import Rows, scaled
from kinetree.contact.rigid import frictionless, painleve
from kinetree.contact.rigid.refusals import require_no_closing, require_solution
from kinetree.errors import InfeasibleContactError

__all__ = ["Reduced", "directions", "reduced", "solve"]

_TOLERANCE, _STEPS, _ROUNDS = 1e-12, 60, 30


class Reduced(NamedTuple):
    """The unknowns of a problem: forces are ``P x``, motions that count are ``Q w``.

    Attributes:
        P: (3n, m).
        Q: (m, 3n).
        resting: numbers of contacts with friction that do not slide; their unknowns come first.
        single: numbers of the others, with one unknown each.
        sliding: which of ``single`` have friction.
    """

    P: Any
    Q: Any
    resting: Any
    single: Any
    sliding: Any


def directions(zeta, velocity_tolerance):
    """Unit vectors of sliding, (n, 2), and whether contacts slide, (n,)."""
    speed = np.hypot(zeta[:, 1], zeta[:, 2])
    slides = speed > velocity_tolerance
    return zeta[:, 1:] / np.where(slides, speed, 1.0)[:, None] * slides[:, None], slides


def reduced(mu, slip, slides) -> Reduced:
    """Which unknowns contacts with coefficients ``mu`` have that slide along ``slip``, or rest."""
    n = len(mu)
    rests = (mu > 0) & ~slides
    resting, single = np.flatnonzero(rests), np.flatnonzero(~rests)
    P = np.zeros((3 * n, 3 * len(resting) + len(single)))
    for c, k in enumerate(resting):
        P[3 * k : 3 * k + 3, 3 * c : 3 * c + 3] = np.eye(3)
    Q = P.T.copy()
    for c, k in enumerate(single, 3 * len(resting)):
        P[3 * k : 3 * k + 3, c] = 1.0, *(-mu[k] * slip[k])
        Q[c, 3 * k] = 1.0
    return Reduced(P, Q, resting, single, (mu > 0)[single])


def solve(problem, velocity_tolerance, method="auto", thorough=True):
    """Forces of a ``Problem`` along normals and tangents, (n, 3).

    Args:
        problem: contacts that are closed.
        velocity_tolerance: speed up to which contacts do not slide [m/s].
        method: for contacts without friction, see ``frictionless``.
        thorough: whether Painlevé's paradox is looked for where it shows in no other way than that
            there are several motions.

    Raises:
        InfeasibleContactError: no forces keep the contacts from closing.
        PainleveError: friction leaves no motion, or several.
    """
    lam = np.zeros((problem.size, 3))
    moves = np.diagonal(problem.M)[::3] > 0
    if not moves.all():
        require_no_closing(problem, ~moves)
        if moves.any():
            lam[moves] = solve(problem.chosen(moves), velocity_tolerance, method, thorough)
        return lam
    if not np.any(problem.mu > 0):
        lam[:, 0] = frictionless.solve(problem, method)
        return lam
    slip, slides = directions(problem.zeta, velocity_tolerance)
    of = reduced(problem.mu, slip, slides)
    M, d = of.Q @ problem.M @ of.P, of.Q @ problem.d
    if len(of.resting) == 0:
        x = painleve.solve(M, d, problem, slip, thorough)
    elif not np.any(of.sliding):
        x = _resting(M, d, problem, of)
    else:
        painleve.check(M[3 * len(of.resting) :, 3 * len(of.resting) :], d, problem, of, slip)
        x = _mixed(M, d, problem, of)
    return (of.P @ x).reshape(-1, 3)


def _resting(M, d, problem, of):
    """Without contacts that slide with friction: a symmetric problem."""
    mu, m = problem.mu[of.resting], len(of.single)
    found = cones.solve(M, d, mu, low=np.zeros(m), high=np.full(m, np.inf))
    if not found.converged and found.residuals.scaled > 1e-9:
        require_solution(found, _row_names(problem, of))
    return found.lam


def _mixed(M, d, problem, of):
    """Contacts that slide, and others that rest: Newton's method.

    It starts from where the friction of the former is taken as known.
    """
    mu, m, k = problem.mu[of.resting], len(of.single), 3 * len(of.resting)
    bounds = {"low": np.zeros(m), "high": np.full(m, np.inf)}
    symmetric = of.Q @ problem.M @ of.Q.T
    A, b, rows, units = scaled(M, d, Rows(mu, bounds["low"], bounds["high"]))
    whole = Equations(A, b, rows)
    x = np.zeros(len(d))
    for _ in range(_ROUNDS):
        friction = (M - symmetric)[:, k:] @ x[k:]
        start = cones.solve(symmetric, d + friction, mu, warm=x, **bounds)
        x = start.lam
        better, _ = newton.newton_steps(whole, x / units, _TOLERANCE, _STEPS)
        if whole.error(better) <= 100 * _TOLERANCE:
            return units * (better - whole.missing(better))
    raise InfeasibleContactError(
        f"no contact forces were found with {int(np.sum(of.sliding))} contacts sliding and "
        f"{len(of.resting)} at rest: the best miss the laws by {whole.error(x / units):.3g} of the "
        f"motion without them",
        contacts=problem.names,
    )


def _row_names(problem, of):
    """Name of the contact of every unknown."""
    owners = [*np.repeat(of.resting, 3), *of.single]
    return [problem.names[k] for k in owners]
