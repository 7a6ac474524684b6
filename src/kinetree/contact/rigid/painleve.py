"""Sliding friction and Painlevé's paradox.

Where a contact slides, a normal force ``λ`` and its friction change the separation acceleration by
``(n · A n - mu n · A s) λ``. Friction drives the end of a rod into the ground if that end slides
ahead of the rod, as chalk does that is pushed; if the coefficient is above a critical one, the
bracket, the resistance, is negative. Then there is either no motion that obeys the laws
(``inconsistent``), or there are two: with and without contact (``indeterminate``). Rigid bodies
have no answer here; those that give a little do.
"""

import numpy as np

from kinetree.contact.complementarity import lcp
from kinetree.contact.rigid import frictionless
from kinetree.errors import PainleveError

__all__ = ["check", "resistances", "solve"]

_DIFFERENT = 1e-7  # of the accelerations at hand
_ENUMERATED = 10  # contacts up to which all solutions are looked for


def resistances(M, mu, slip):
    """Separation accelerations per normal force of contacts that slide, and without friction.

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


def solve(M, d, problem, slip, thorough=True):
    """Normal forces of contacts that all slide, or have no friction, (n,).

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
        frictionless.solve(problem)  # raises, if it is not the fault of friction
        _refuse(M, d, problem, slip, "inconsistent", ())
    motions = np.array([s.w for s in found])
    if np.max(np.ptp(motions, axis=0)) > _DIFFERENT * problem.scale:
        _refuse(M, d, problem, slip, "indeterminate", np.array([s.lam for s in found]))
    return min(found, key=lambda s: s.lam @ s.lam).lam


def check(M, d, problem, of, slip):
    """Raise PainleveError where a sliding contact among resting ones has no resistance."""
    resistance, smooth, _ = resistances(problem.M, problem.mu, slip)
    weak = [k for k in of.single[of.sliding] if resistance[k] <= 1e-9 * smooth[k]]
    if weak:
        at = 3 * len(of.resting)
        normal = problem.d[3 * of.single]
        kind = "inconsistent" if normal[list(of.single).index(weak[0])] < 0 else "indeterminate"
        _refuse(M, d[at:], problem.chosen(of.single), slip[of.single], kind, ())


def _refuse(M, d, problem, slip, kind, solutions):
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
