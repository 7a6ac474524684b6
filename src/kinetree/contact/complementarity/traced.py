"""The mixed problem inside ``@kt.kernel``: no decision on a value, pivots in a fixed order.

An iteration is one Gauss–Seidel sweep and one Newton step from where it ends, kept if nothing
before was better. From the forces of the last step one suffices as long as no contact changes
between sticking, sliding and open. A small proximal term keeps the pivots positive where contacts
are redundant, and does not move the solution.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.fixed_pivots import solve_for
from kinetree.contact.complementarity.rows import LAWS, Rows, newton_matrix, obeyed, scaled
from kinetree.contact.complementarity.sweeps import Sweeps
from kinetree.errors import UnknownNameError
from kinetree.expr.repeat import repeat
from kinetree.functional.choose import select

__all__ = ["KernelSolution", "in_kernel"]

_SHORTER = (0.5, 0.2)  # parts of a Newton step that are tried besides the whole


class KernelSolution(NamedTuple):
    """Forces of a mixed problem, and how good they are.

    Attributes:
        lam: forces, (n,), within their cones and bounds.
        w: the motion ``A lam + b`` that they leave, (n,).
        residual: largest error, in units of the motion without any force; has no unit.
    """

    lam: Any
    w: Any
    residual: Any


def in_kernel(
    A, b, mu, iterations=30, warm=None, *, low=(), high=(), law="coulomb", tolerance=1e-12,
    proximal=1e-9,
) -> KernelSolution:  # fmt: skip
    """Forces within their cones and bounds; as ``solve``, for traced numbers or floats.

    Args:
        A: inverse inertia that the forces meet, (n, n).
        b: motion without them, (n,).
        mu: coefficients of friction of the contacts, (c,), which take the first 3 c rows.
        iterations: how many at most, and one at least; a whole number, or a value of the kernel.
        warm: forces to start from, (n,); zero by default.
        low: lower bounds of the rows that follow, (n - 3 c,), -inf for none.
        high: upper bounds, inf for none.
        law: ``"coulomb"`` or ``"convex"``.
        tolerance: residual at which a sample stops iterating; 0 for all iterations.
        proximal: weight of staying where one is, in units of the diagonal of ``A``.
    """
    if law not in LAWS:
        raise UnknownNameError(f"the friction law must be one of {', '.join(LAWS)}, got {law!r}")
    A, b = np.asarray(A), np.asarray(b)
    if not len(b):
        return KernelSolution(b, b, 0.0)
    given = Rows(np.asarray(mu), np.asarray(low), np.asarray(high), law == "convex")
    A_, b_, rows, units = scaled(A, b, given)
    start = np.zeros(len(b)) if warm is None else np.asarray(warm) / units
    size = _largest(np.abs(b_))
    enough = (tolerance * size) ** 2
    lead = Sweeps(A_, b_, rows, proximal)

    def tried(lam):
        return lam, _squared(_missing(A_, b_, rows, lam))

    def iteration(state):
        lam, *best, _ = state
        lam = lead.after(lam)
        w = A_ @ lam + b_
        missing = lam - obeyed(rows, lam, w)
        step = _solved(newton_matrix(rows, A_, lam, w), missing, proximal)
        found = lam, _squared(missing)
        whole = tried(lam - step)
        # where both are good enough it is the step that counts, for the sake of derivatives
        found = _choice((whole[1] < found[1]) | (whole[1] <= enough), whole, found)
        for length in _SHORTER:
            part = tried(lam - length * step)
            found = _choice((part[1] < found[1]) & (found[1] > enough), part, found)
        # Newton's step counts only if it beats all before it; else sweeps go on undisturbed
        good = (found[1] < best[1]) | (found[1] <= enough)
        best = _choice(good, found, best)
        return select(good, found[0], lam), *best, 1

    def unless_done(state):
        open_ = (state[2] > enough) | (state[3] < 1)
        return repeat(iteration, state, select(open_, 1, 0))

    first = start, *tried(start), 0
    lam = np.asarray(repeat(unless_done, first, iterations)[1])
    lam = obeyed(rows, lam, A_ @ lam + b_)  # exactly within the cones
    error = _largest(np.abs(_missing(A_, b_, rows, lam)))
    force = units * lam
    return KernelSolution(force, A @ force + b, error / select(size > 0, size, 1))


def _squared(x):
    return x @ x


def _missing(A, b, rows, lam):
    return lam - obeyed(rows, lam, A @ lam + b)


def _choice(first, a, b):
    return tuple(select(first, x, y) for x, y in zip(a, b, strict=True))


def _largest(x):
    out = x[0]
    for each in x[1:]:
        out = select(each > out, each, out)
    return out


def _solved(G, missing, proximal):
    """Newton's step, by elimination in natural order."""
    n = len(missing)
    rows = {
        i: {**{j: G[i, j] for j in range(n)}, i: G[i, i] + proximal, n: -missing[i]}
        for i in range(n)
    }
    solved, _ = solve_for(rows, [(i, i) for i in range(n)])
    return np.array([solved[i].get(n, 0) for i in range(n)])
