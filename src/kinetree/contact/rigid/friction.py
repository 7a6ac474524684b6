"""Contacts with friction at the level of accelerations.

A contact that slides has a known direction of friction, against the sliding: one unknown, and a
column ``n - mu s`` where the row is ``n``, so that the matrix is not symmetric. One that does not
slide yet has three unknowns: it sticks while friction within the cone can hold it, and else begins
to slide in the direction into which it then accelerates. Contacts without friction have one unknown
and symmetric parts.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity import cones, lcp
from kinetree.contact.complementarity.residuals import MixedEquations
from kinetree.contact.complementarity.rows import MixedRows, scale
from kinetree.contact.rigid.problem import require_no_closing, require_solution
from kinetree.errors import InfeasibleContactError, PainleveError, UnknownNameError
from kinetree.spelling import did_you_mean, from_textbook

_TOLERANCE, _STEPS, _ROUNDS = 1e-12, 60, 30
_GOOD = 1e-9  # error, of the motion without forces, with which the best forces are taken


class Reduced(NamedTuple):
    """The unknowns of a problem: forces are ``P x``, motions that count are ``Q w``."""

    P: Any
    """(3n, m)."""
    Q: Any
    """(m, 3n)."""
    resting: Any
    """Numbers of contacts with friction that do not slide; their unknowns come first."""
    single: Any
    """Numbers of the others, with one unknown each."""
    sliding: Any
    """Which of ``single`` have friction."""


def directions(zeta, velocity_tolerance):
    """Unit sliding directions (n, 2), zero if not sliding, and whether contacts slide (n,)."""
    speed = np.hypot(zeta[:, 1], zeta[:, 2])
    slides = speed > velocity_tolerance
    return zeta[:, 1:] / np.where(slides, speed, 1.0)[:, None] * slides[:, None], slides


def reduce_unknowns(mu, slip, slides) -> Reduced:
    """Reduced force unknowns of contacts: 3 if resting, 1 if sliding or frictionless."""
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
    """Contact forces (n, 3) of a ``RigidProblem`` along normals and tangents.

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
            lam[moves] = solve(problem.select(moves), velocity_tolerance, method, thorough)
        return lam
    if not np.any(problem.mu > 0):
        lam[:, 0] = frictionless_forces(problem, method)
        return lam
    slip, slides = directions(problem.zeta, velocity_tolerance)
    of = reduce_unknowns(problem.mu, slip, slides)
    M, d = of.Q @ problem.M @ of.P, of.Q @ problem.d
    if len(of.resting) == 0:
        x = sliding_forces(M, d, problem, slip, thorough)
    elif not np.any(of.sliding):
        x = _resting(M, d, problem, of)
    else:
        check_painleve(d, problem, of, slip)
        x = _solve_mixed(M, d, problem, of)
    return (of.P @ x).reshape(-1, 3)


def _resting(M, d, problem, of):
    """Forces of contacts that rest or have no friction: a symmetric cone problem."""
    mu, m = problem.mu[of.resting], len(of.single)
    found = cones.solve(M, d, mu, low=np.zeros(m), high=np.full(m, np.inf))
    if not found.converged and found.residuals.scaled > 1e-9:
        require_solution(found, _row_names(problem, of))
    return found.lam


def _solve_mixed(M, d, problem, of):
    """Forces of sliding and resting contacts together, by Newton's method.

    It starts from where the friction of the former is taken as known.
    """
    mu, m, k = problem.mu[of.resting], len(of.single), 3 * len(of.resting)
    bounds = {"low": np.zeros(m), "high": np.full(m, np.inf)}
    symmetric = of.Q @ problem.M @ of.Q.T
    A, b, rows, units = scale(M, d, MixedRows(mu, bounds["low"], bounds["high"]))
    whole = MixedEquations(A, b, rows)
    x = best = np.zeros(len(d))
    for _ in range(_ROUNDS):
        friction = (M - symmetric)[:, k:] @ x[k:]
        start = cones.solve(symmetric, d + friction, mu, warm=x, **bounds)
        x = start.lam
        better, _ = cones.newton_steps(whole, x / units, _TOLERANCE, _STEPS)
        if whole.error(better) <= 100 * _TOLERANCE:
            return units * (better - whole.missing(better))
        best = min(best, better, key=whole.error)
    if whole.error(best) <= _GOOD:  # redundant contacts may keep Newton's method from its end
        return units * best
    raise InfeasibleContactError(
        f"no contact forces were found with {int(np.sum(of.sliding))} contacts sliding and "
        f"{len(of.resting)} at rest: the best miss the laws by {whole.error(x / units):.3g} of the "
        f"motion without them",
        contacts=problem.names,
    )


def _row_names(problem, of):
    """Contact name of every reduced unknown."""
    owners = [*np.repeat(of.resting, 3), *of.single]
    return [problem.names[k] for k in owners]


# --- Sliding friction and Painlevé's paradox -----------------------------------------------------
# Where a contact slides, a normal force ``λ`` and its friction change the separation acceleration
# by ``(n · A n - mu n · A s) λ``. Friction drives the end of a rod into the ground if that end
# slides ahead of the rod, as chalk does that is pushed; if the coefficient is above a critical
# one, the bracket, the resistance, is negative. Then there is either no motion that obeys the
# laws (``inconsistent``), or there are two: with and without contact (``indeterminate``). Rigid
# bodies have no answer here; those that give a little do.

_DIFFERENT = 1e-7  # of the accelerations at hand
_ENUMERATED = 10  # contacts up to which all solutions are looked for


def resistances(M, mu, slip):
    """Separation accelerations per normal force: with sliding, without friction, and friction's.

    Args:
        M: accelerations at contacts per force there, (3n, 3n).
        mu: coefficients, (n,).
        slip: unit vectors of sliding, (n, 2).
    """
    n = len(mu)
    blocks = M.reshape(n, 3, n, 3)[range(n), :, range(n), :]
    smooth = blocks[:, 0, 0]
    along = np.einsum("nj,nj->n", blocks[:, 0, 1:], slip)
    return smooth - mu * along, smooth, along


def sliding_forces(M, d, problem, slip, thorough=True):
    """Normal forces (n,) of contacts that all slide or are frictionless, by Lemke.

    Args:
        M: their matrix, not symmetric, (n, n).
        d: separation accelerations without them, (n,).
        problem: the ``Problem``.
        slip: unit vectors of sliding, (n, 2).
        thorough: whether other motions are looked for, where there may be some.

    Raises:
        PainleveError: there are none, or several motions.
        InfeasibleContactError: there are none, and would be none without friction.
    """
    units = np.sqrt(np.maximum(np.diagonal(problem.M)[::3], 1e-300))
    balanced = (M + M.T) / 2 / units / units[:, None]
    if np.linalg.eigvalsh(balanced)[0] > 1e-9:  # one solution, whatever d is
        return lcp.lemke(M, d).lam
    found = []
    if not thorough or len(d) > _ENUMERATED:
        found = [s for s in (lcp.lemke(M, d),) if s.solved]
    if not found and len(d) <= _ENUMERATED:
        found = lcp.enumerated(M, d)
    if not found:
        frictionless_forces(problem)  # raises, if it is not the fault of friction
        _refuse_paradox(d, problem, slip, "inconsistent", ())
    motions = np.array([s.w for s in found])
    if np.max(np.ptp(motions, axis=0)) > _DIFFERENT * problem.scale:
        _refuse_paradox(d, problem, slip, "indeterminate", np.array([s.lam for s in found]))
    return min(found, key=lambda s: s.lam @ s.lam).lam


def check_painleve(d, problem, of, slip):
    """Raise PainleveError if a sliding contact among resting ones has no resistance."""
    resistance, smooth, _ = resistances(problem.M, problem.mu, slip)
    weak = [k for k in of.single[of.sliding] if resistance[k] <= 1e-9 * smooth[k]]
    if weak:
        at = 3 * len(of.resting)
        normal = problem.d[3 * of.single]
        kind = "inconsistent" if normal[list(of.single).index(weak[0])] < 0 else "indeterminate"
        _refuse_paradox(d[at:], problem.select(of.single), slip[of.single], kind, ())


def _refuse_paradox(d, problem, slip, kind, solutions):
    """Raise PainleveError that names the sliding contact with least resistance."""
    resistance, smooth, along = resistances(problem.M, problem.mu, slip)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(problem.mu > 0, resistance / smooth, np.inf)
        critical = np.where(along > 0, smooth / along, np.inf)
    k = int(np.argmin(ratio))
    ends = {
        "inconsistent": "no motion obeys the laws of contact and friction",
        "indeterminate": f"{max(len(solutions), 2)} motions obey the laws of contact and friction",
    }
    raise PainleveError(
        f"Painlevé's paradox at contact {problem.names[k]!r}: {ends[kind]}. Sliding with friction "
        f"{problem.mu[k]:.6g}, above the critical {critical[k]:.6g}, a normal force of 1 N changes "
        f"the separation acceleration by {resistance[k]:.6g} m/s², and without it that is "
        f"{d[k]:.6g} m/s². Take less friction, or contact that gives: kinetree.contact.SoftContact",
        contact=problem.names[k],
        kind=kind,
        resistance=float(resistance[k]),
        acceleration=float(d[k]),
        friction=float(problem.mu[k]),
        critical_friction=float(critical[k]),
        solutions=solutions if len(solutions) else None,
    )


# --- Contacts without friction: three forms of one problem — RBDA §11.5 --------------------------
# As a linear complementarity problem, RBDA (11.42); as a quadratic program in the forces,
# (11.43), whose optimality conditions are the former; and as one in the accelerations, (11.44):
# of all motions that the contacts allow, the nearest to the free one, as Gauss put it. With ``A =
# B Bᵀ`` and ``qdd = a + B x`` its metric is that of the unit matrix.

METHODS = ("auto", "lcp", "lemke", "forces", "accelerations")
"""Names of the methods: principal pivoting and Lemke's for the complementarity problem, and the two
quadratic programs, which are texts of ``kinetree.textbook``."""


def require_method(method):
    """Raise UnknownNameError for an unknown method of solving frictionless contact."""
    if method not in METHODS:
        raise UnknownNameError(
            f"there is no method {method!r} for contact forces; "
            + did_you_mean(method, METHODS, f"use one of {', '.join(METHODS)}")
        )


def frictionless_forces(problem, method="auto"):
    """Normal forces (n,) of a frictionless ``RigidProblem``, a basic solution.

    Raises:
        InfeasibleContactError: there are none.
    """
    normal = np.arange(problem.size) * 3
    M, d = problem.M[np.ix_(normal, normal)], problem.d[normal]
    if method == "accelerations":
        values, vectors = np.linalg.eigh(problem.A)
        B = vectors * np.sqrt(np.maximum(values, 0.0))
        still = np.zeros(len(values))
        program = from_textbook("quadratic_programs", "in_accelerations")
        found = program(np.eye(len(still)), still, problem.J[:, 0] @ B, d).forces
    elif method == "forces":
        found = from_textbook("quadratic_programs", "in_forces")(M, d)
    else:
        found = lcp.lemke(M, d) if method == "lemke" else lcp.pivoting(M, d)
    require_solution(found, problem.names)
    return found.lam
