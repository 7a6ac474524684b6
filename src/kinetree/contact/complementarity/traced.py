"""The mixed problem inside ``@kt.kernel``: no decision on a value, pivots in a fixed order.

An iteration is one Gauss–Seidel sweep and one Newton step from where it ends, kept if nothing
before was better. From the forces of the last step one suffices as long as no contact changes
between sticking, sliding and open. A small proximal term keeps the pivots positive where contacts
are redundant, and does not move the solution.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.algorithms.closed.elimination import solve_for
from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.complementarity.rows import LAWS, MixedRows, newton_matrix, obey, scale
from kinetree.errors import UnknownNameError
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select

_SHORTER = (0.5, 0.2)  # parts of a Newton step that are tried besides the whole
LEAST_LIFTED = 1e-6  # by a normal force of one and its friction, in units of the diagonal of A


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
    A: ArrayLike,
    b: ArrayLike,
    mu: ArrayLike,
    iterations: Any = 30,
    warm: ArrayLike | None = None,
    *,
    low: ArrayLike = (),
    high: ArrayLike = (),
    law: Literal["coulomb", "convex"] = "coulomb",
    tolerance: float = 1e-12,
    proximal: float = 1e-9,
) -> KernelSolution:
    """Contact forces within cones and bounds, like ``solve``, traceable in kernels.

    Args:
        A: inverse inertia that the forces meet, (n, n).
        b: motion without them, (n,).
        mu: coefficients of friction of the contacts, (c,), which take the first 3 c rows.
        iterations: how many at most, and one at least; an integer, or a value of the kernel.
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
    given = MixedRows(np.asarray(mu), np.asarray(low), np.asarray(high), law == "convex")
    A_, b_, rows, units = scale(A, b, given)
    start = np.zeros(len(b)) if warm is None else np.asarray(warm) / units
    size = largest(np.abs(b_))
    enough = (tolerance * size) ** 2
    lead = Sweeps(A_, b_, rows, proximal)

    def try_forces(lam):
        return lam, _square(_missing(A_, b_, rows, lam))

    def iteration(state):
        lam, *best, _ = state
        lam = lead.after(lam)
        w = A_ @ lam + b_
        missing = lam - obey(rows, lam, w)
        step = newton_step(newton_matrix(rows, A_, lam, w), missing, proximal)
        found = lam, _square(missing)
        whole = try_forces(lam - step)
        # where both are good enough it is the step that counts, for the sake of derivatives
        found = _choice((whole[1] < found[1]) | (whole[1] <= enough), whole, found)
        for length in _SHORTER:
            part = try_forces(lam - length * step)
            found = _choice((part[1] < found[1]) & (found[1] > enough), part, found)
        # Newton's step counts only if it beats all before it; else sweeps go on undisturbed
        good = (found[1] < best[1]) | (found[1] <= enough)
        best = _choice(good, found, best)
        return select(good, found[0], lam), *best, 1

    def unless_done(state):
        open_ = (state[2] > enough) | (state[3] < 1)
        return repeat(iteration, state, select(open_, 1, 0))

    first = start, *try_forces(start), 0
    lam = np.asarray(repeat(unless_done, first, iterations)[1])
    lam = obey(rows, lam, A_ @ lam + b_)  # exactly within the cones
    error = largest(np.abs(_missing(A_, b_, rows, lam)))
    force = units * lam
    return KernelSolution(force, A @ force + b, error / select(size > 0, size, 1))


def _square(x):
    """Squared Euclidean norm of a vector."""
    return x @ x


def _missing(A, b, rows, lam):
    """Fixed-point error ``lam - obey(lam - w)`` of forces, (n,)."""
    return lam - obey(rows, lam, A @ lam + b)


def _choice(first, a, b):
    """Elementwise selection between two tuples of numbers by one condition."""
    return tuple(select(first, x, y) for x, y in zip(a, b, strict=True))


def largest(values, least=0.0):
    """Largest of some numbers, traced or not, and at least ``least``."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return np.fmax.reduce(values, initial=least)
    for x in values:
        least = select(x > least, x, least)
    return least


def newton_step(G, missing, weight):
    """Solution of ``(G + weight) x = missing``, traced without pivoting, or by LU on floats."""
    n = len(missing)
    if G.dtype != object:
        return np.linalg.solve(G + weight * np.eye(n), missing)
    rows = {
        i: {**{j: G[i, j] for j in range(n)}, i: G[i, i] + weight, n: -missing[i]} for i in range(n)
    }
    solved, _ = solve_for(rows, [(i, i) for i in range(n)])
    return np.array([solved[i].get(n, 0) for i in range(n)])


# --- Gauss–Seidel sweeps for traced numbers ------------------------------------------------------


class Sweeps:
    """Gauss–Seidel, contact by contact; directions of sliding converge with the sweeps.

    Args:
        A: matrix of a scaled problem, (n, n).
        b: motion without forces, (n,).
        rows: what the rows stand for.
        proximal: added to the diagonal, so that blocks can be inverted.
    """

    def __init__(self, A, b, rows, proximal):
        self.A, self.b, self.rows = A, b, rows
        self.blocks = [slice(3 * i, 3 * i + 3) for i in range(len(rows.mu))]
        weighted = [A[at, at] + proximal * np.eye(3, dtype=int) for at in self.blocks]
        self.inverses = [_inverse(block) for block in weighted]

    def after(self, lam):
        """Forces after one Gauss-Seidel sweep from ``lam``, (n,), traceable."""
        lam = np.array(lam, dtype=object if self.A.dtype == object else None)
        for i, at in enumerate(self.blocks):
            w = self.A[at] @ lam + self.b[at]
            lam[at] = self._contact(i, lam[at], w)
        for k, (low, high) in enumerate(
            zip(self.rows.low, self.rows.high, strict=True), 3 * len(self.blocks)
        ):
            to = lam[k] - (self.A[k] @ lam + self.b[k])  # the diagonal of A is 1
            lam[k] = select(to < low, low, select(to > high, high, to))
        return lam

    def _contact(self, i, lam, w):
        """Force of contact ``i`` that satisfies its law while all others are held."""
        at, mu, convex = self.blocks[i], self.rows.mu[i], self.rows.convex
        A = self.A[at, at]
        stick = lam - self.inverses[i] @ w
        free = w - A @ lam
        floor, reach = free[0], np.sqrt(lam[1:] @ lam[1:])
        lifted = (A[0, 0] - LEAST_LIFTED) * reach + mu * (A[0, 1:] @ lam[1:])
        if convex:
            floor = free[0] - mu * np.sqrt(free[1] * free[1] + free[2] * free[2])
            lifted = reach
        # Friction along sliding is no start, nor is one that presses more than n lifts: in the
        # direction in which the contact would stick it does not.
        c = select((lifted > 0) & (lam[1:] @ w[1:] <= 0), lam[1:], stick[1:])
        reach = np.sqrt(c @ c)
        g = _along(mu, self._turn(A, free, mu, c / select(reach > 0, reach, 1)))
        along, driven = self._lift(A @ g, free, g)
        n = -driven / select(along > 0, along, 1)
        slide = select(n > 0, n, 0) * g
        size = stick[1] * stick[1] + stick[2] * stick[2]
        limit = mu * stick[0]
        sticks = (stick[0] > 0) & (size <= limit * limit)
        return select(floor >= 0, 0 * lam, select(sticks, stick, slide))

    def _lift(self, Ag, free, g):
        """Coefficients a, d of the separation ``a n + d`` under a sliding force ``n g``."""
        return (g @ Ag, g @ free) if self.rows.convex else (Ag[0], free[0])

    def _turn(self, A, free, mu, c):
        """Direction of sliding friction after a Newton step of its angle, (2,).

        It is against sliding where ``p · w_t = 0`` with ``p`` normal to ``c``; with ``a n + d = 0``
        that is ``a (p · free_t) = d (p · (A g)_t)``, a polynomial of the direction, of degree four
        in the tangent of half the angle. Where the derivative has the sign of the opposite
        direction, friction is turned away from there. The plain iteration ``c = -w_t/|w_t|`` does
        not converge where contacts slide slowly.
        """
        p, g = np.array([-c[1], c[0]]), _along(mu, c)
        Ag, Ap, f = A @ g, mu * (A[:, 1:] @ p), free[1:]
        a, d = self._lift(Ag, free, g)
        fp, Agp = p @ f, p @ Ag[1:]
        change = Ap[0] * fp
        if self.rows.convex:
            change = mu * Agp * fp
        stiff, slip = -d * (p @ Ap[1:]), d * (c @ Ag[1:]) - a * (c @ f)
        across, rate = a * fp - d * Agp, stiff + slip + change
        rate = select(rate > stiff / 4, rate, stiff / 4 + np.abs(slip))
        # half a right angle at most, and not all the way to where friction presses down
        pressed = 0 if self.rows.convex else 2 * across * Ap[0] / select(a > 0, a, 1)
        rate = largest([np.abs(across), pressed], rate)
        angle = across / select(rate > 0, rate, 1)
        return (c - angle * p) / np.sqrt(1 + angle * angle)


def _along(mu, c):
    """Force of a sliding contact with unit normal force and friction direction ``c``, (3,)."""
    return np.array([1, mu * c[0], mu * c[1]])


def _inverse(B):
    """Inverse of a symmetric 3 x 3 matrix by cofactors, traceable."""
    cofactors = np.array(
        [
            [
                B[(i + 1) % 3, (j + 1) % 3] * B[(i + 2) % 3, (j + 2) % 3]
                - B[(i + 1) % 3, (j + 2) % 3] * B[(i + 2) % 3, (j + 1) % 3]
                for j in range(3)
            ]
            for i in range(3)
        ]
    )
    determinant = B[0] @ cofactors[0]
    return cofactors / determinant
