"""The mixed problem: contacts with friction, loops, limits and dry joint friction, in one system.

Unknowns are forces ``lam`` (or impulses), and ``w = A lam + b`` are the accelerations (velocities)
that they leave along their own directions. Three rows per contact come first, (normal, tangent,
tangent); rows that keep within bounds follow.

    contact            |lam_t| ≤ mu lam_n, w_n ≥ 0, and where it slides lam_t = -mu lam_n w_t/|w_t|
    low < lam < high   w = 0
    lam = low          w ≥ 0
    lam = high         w ≤ 0

A loop is a row without bounds, a joint limit one with bounds (0, ∞), dry joint friction of size c
one with (-c, c). De Saxcé's way of writing Coulomb's law is ``lam`` in the friction cone, ``w̃``
in its dual, ``lam · w̃ = 0``, with ``w̃ = w + (mu |w_t|, 0, 0)``. The convex law leaves the
correction out: then the problem is a convex program, whose sliding contacts rise, w_n = mu |w_t|.

The texts here run on floats and on traced numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.functional.kernel import select
from kinetree.spatial.ops import sqrt

LAWS = ("coulomb", "convex")
"""Names of the friction laws."""

BEYOND = 1e150
"""Stands for a bound that is not there, in scaled problems."""


def less(a, b):
    """Elementwise ``a < b``, also of traced numbers."""
    traced = any(np.asarray(x).dtype == object for x in (a, b))
    return np.less(a, b, dtype=object) if traced else np.less(a, b)


class MixedRows(NamedTuple):
    """Rows of a mixed problem: friction cones, then bounds.

    Attributes:
        mu: coefficients of friction, (c,), of the contacts, which take the first 3 c rows.
        low: lower bounds of the rows that follow, (m,).
        high: upper bounds, (m,).
        convex: whether sliding contacts rise, as the convex law has it.
        speed: of the relaxed laws, in units of each row, (3 c + m,); None for the exact ones.
    """

    mu: Any
    low: Any
    high: Any
    convex: bool = False
    speed: Any = None

    @property
    def size(self) -> int:
        """Number of rows: three per contact, and one per bounded row."""
        return 3 * len(self.mu) + len(self.low)

    def split(self, x):
        """Contact part (c, 3) and part of the bounded rows (m,) of a vector."""
        at = 3 * len(self.mu)
        return x[:at].reshape(-1, 3), x[at:]


_each_root = np.frompyfunc(sqrt, 1, 1)  # np.sqrt rejects plain numbers among traced ones


def _root(x):
    """Elementwise square root of floats or traced numbers."""
    return _each_root(x) if x.dtype == object else np.sqrt(x)


def scale(A, b, rows):
    """Problem in units that make the mean of every diagonal block of ``A`` equal to 1.

    Forces of different kinds, newtons and newton metres, become comparable. The three rows of a
    contact share one unit, so that friction cones stay what they are.

    Returns:
        The matrix, the vector, the rows, and the units, (n,): the forces are ``units * lam``.
    """
    diagonal = np.diagonal(A)
    contacts, others = rows.split(diagonal)
    size = contacts.sum(axis=1) / 3
    size = np.concatenate([np.repeat(size, 3), others])
    size = select(less(0, size), size, 1)
    units = 1 / _root(size)
    _, unit = rows.split(units)
    low, high = (_within_reach(x, unit) for x in (rows.low, rows.high))
    rows = rows._replace(low=low, high=high)
    if rows.speed is not None:
        rows = rows._replace(speed=rows.speed * units)
    both = np.multiply.outer(units, units)  # symmetric to the last bit, also in code
    return A * both, b * units, rows, units


def _within_reach(bounds, unit):
    """Bounds divided by units, infinities replaced by ±``BEYOND`` for traced code."""
    far = [isinstance(x, (float, np.floating)) and abs(x) > BEYOND for x in bounds]
    return np.array(
        [
            np.copysign(BEYOND, x) if is_far else x / u
            for x, u, is_far in zip(bounds, unit, far, strict=True)
        ],
        dtype=np.result_type(bounds, unit),
    )


def obey(rows, lam, w):
    """Forces that the laws assign to ``lam - w``: equal to ``lam`` exactly at a solution.

    The nearest admissible force for the convex law and for rows with bounds; the functions of
    Alart and Curnier for Coulomb's law: first the normal force, then the nearest friction.
    """
    if rows.speed is not None:
        return relax(rows, lam, w)[0]
    trial = _trial(rows, lam, w)
    tangents = trial.ratio[:, None] * trial.tangent
    contacts = np.concatenate([trial.normal[:, None], tangents], axis=1)
    return np.concatenate([contacts.ravel(), select(trial.inside, trial.other, trial.bound)])


def nearest(rows, lam):
    """Orthogonal projection of forces on their cones and bounds."""
    return obey(rows._replace(convex=True), lam, np.zeros(rows.size))


def newton_matrix(rows, A, lam, w):
    """Derivative of ``lam - obey(lam - w)`` by ``lam``, (n, n), one of several at kinks."""
    if rows.speed is not None:
        D, c = relax(rows, lam, w)[1], 3 * len(rows.mu)
        blocks = [slice(k, k + 3) for k in range(0, c, 3)]
        blocks += [slice(k, k + 1) for k in range(c, rows.size)]
        moved = np.concatenate([D[at, at] @ A[at] for at in blocks])
        return moved + (np.eye(rows.size, dtype=int) - D)
    trial, start = _trial(rows, lam, w), 3 * len(rows.mu)
    kind = np.result_type(A, lam, w)
    G = np.array(
        A, dtype=kind
    )  # becomes 1 - D (1 - A), with the derivative D of the laws by lam - w
    for k, D in enumerate(_derivatives(rows, trial)):
        at = slice(3 * k, 3 * k + 3)
        G[at] = D @ A[at]
        G[at, at] = G[at, at] + (np.eye(3, dtype=int) - D)
    for k, inside in enumerate(trial.inside, start):
        G[k] = select(inside, A[k], 0)
        G[k, k] = select(inside, A[k, k], 1)
    return G


def _derivatives(rows, trial):
    """Derivatives (c, 3, 3) of the contacts' laws with respect to their trial forces."""
    kind = np.result_type(trial.normal, trial.tangent, rows.mu)
    blocks = np.zeros((len(rows.mu), 3, 3), dtype=kind)
    for D, mu, touching, sticking, tangent, reach, ratio in zip(
        blocks,
        rows.mu,
        trial.touching,
        trial.sticking,
        trial.tangent,
        trial.reach,
        trial.ratio,
        strict=True,
    ):
        e = tangent / reach
        normal = np.array([1, 0, 0])
        if rows.convex:
            oblique = np.array([1, mu * e[0], mu * e[1]]) / (1 + mu * mu)
            normal = select(sticking, normal, oblique)
        D[0] = select(touching, normal, 0)
        for i in range(2):
            across = ratio * np.array([0, (i == 0) - e[i] * e[0], (i == 1) - e[i] * e[1]])
            unit = np.array([0, i == 0, i == 1], dtype=int)
            D[1 + i] = select(sticking, unit, across + mu * e[i] * D[0])
    return blocks


class _Trial(NamedTuple):
    """``lam - w`` and how it lies to the laws; the normal part is the one that they allow."""

    touching: Any
    sticking: Any
    normal: Any
    tangent: Any
    reach: Any
    ratio: Any
    inside: Any
    other: Any
    bound: Any


def _roots(x):
    """Elementwise square roots of an array in which some numbers may be traced."""
    return _each_root(x) if x.dtype == object else np.sqrt(x)


_each_root = np.frompyfunc(sqrt, 1, 1)


def _trial(rows, lam, w):
    """Trial state of all rows at ``lam - w``: which touch, stick, or are within bounds."""
    contacts, other = rows.split(lam - w)
    mu, normal, tangent = rows.mu, contacts[:, 0], contacts[:, 1:]
    square = tangent[:, 0] * tangent[:, 0] + tangent[:, 1] * tangent[:, 1]
    moves = less(0, square)
    reach = _roots(select(moves, square, 1.0))  # has derivatives where the square is zero
    size = select(moves, reach, 0)
    outside = less(mu * normal, size)
    if rows.convex:
        normal = select(outside, (normal + mu * size) / (1 + mu * mu), normal)
    touching = less(0, normal)
    normal = select(touching, normal, 0)
    sticking = select(outside, False, touching)
    ratio = select(sticking, 1, mu * normal / reach)
    below = less(other, rows.low)
    bound = select(below, rows.low, rows.high)
    inside = select(below, False, less(other, rows.high))
    return _Trial(touching, sticking, normal, tangent, reach, ratio, inside, other, bound)


# --- Relaxed laws --------------------------------------------------------------------------------
# With a speed v and the mass m that a row meets, 1 in scaled problems, complementarity becomes the
# central path of interior-point methods, and friction a smooth function of the sliding velocity:
#
#     lam w = m v²,  lam, w > 0               for  0 ≤ lam ⟂ w ≥ 0
#     lam_t = -mu lam_n w_t / (v + |w_t|)     for  Coulomb's law, and likewise for dry friction
#
# Written as ``lam = P(lam - w)`` both are roots of quadratic equations; P is increasing with a
# derivative between 0 and 1, and tends to the projection as v tends to 0.


def relax(rows, lam, w):
    """Forces by the relaxed laws at ``lam - w``, (n,), and their derivative, (n, n)."""
    y, c = lam - w, 3 * len(rows.mu)
    found = np.zeros(rows.size, dtype=np.result_type(y, rows.mu, rows.low, rows.high, rows.speed))
    D = np.zeros((rows.size, rows.size), dtype=found.dtype)
    for k, mu in zip(range(0, c, 3), rows.mu, strict=True):
        v = rows.speed[k]
        normal, derivative = _positive(y[k], v)
        (e, size), t = _direction(y[k + 1 : k + 3]), slice(k + 1, k + 3)
        ratio, by_size, by_reach = _limit(size, mu * normal, v)
        found[k], found[t] = normal, ratio * y[t]
        D[k, k], D[t, k] = derivative, by_reach * mu * derivative * e
        D[t, t] = ratio * np.eye(2, dtype=int) + (by_size - ratio) * np.outer(e, e)
    for k, low, high in zip(range(c, rows.size), rows.low, rows.high, strict=True):
        v, (from_low, from_high) = rows.speed[k], (not _is_far(x) for x in (low, high))
        if from_low and from_high:
            middle, reach = (low + high) / 2, (high - low) / 2
            ratio, D[k, k], _ = _limit(_direction(y[k : k + 1] - middle)[1], reach, v)
            found[k] = middle + ratio * (y[k] - middle)
        elif from_low:
            above, D[k, k] = _positive(y[k] - low, v)
            found[k] = low + above
        elif from_high:
            below, D[k, k] = _positive(high - y[k], v)
            found[k] = high - below
        else:
            found[k], D[k, k] = y[k], 1
    return found, D


def _is_far(bound) -> bool:
    """Whether a bound's number stands for no bound at all."""
    return isinstance(bound, (complex, float)) and abs(bound) >= BEYOND


def _positive(y, v):
    """Positive root x of ``x (x - y) = v²``, a smoothed max(y, 0), and its derivative."""
    root = sqrt(y * y + 4 * v * v)
    large = (root + select(less(0, y), y, -y)) / 2
    x = select(less(0, y), large, v * v / large)
    return x, x / root


def _direction(y):
    """Unit vector and length of a 2-vector, differentiable where the length is zero."""
    square = y @ y
    moves = less(0, square)
    size = sqrt(select(moves, square, 1))
    return select(moves, y / size, 0 * y), select(moves, size, 0)


def _limit(size, reach, v):
    """Smoothed min(size, reach) as ratio to ``size``, and its two derivatives.

    With ``(size - x) (reach - x) = v x``: a sliding speed ``size - x`` with ``x`` of friction.
    """
    apart = size - reach
    root = sqrt(apart * apart + 2 * v * (size + reach) + v * v)
    ratio = 2 * reach / (size + reach + v + root)
    x = ratio * size
    return ratio, (reach - x) / root, (size - x) / root
