"""Residuals of solutions, and proofs that there is none."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity.rows import BEYOND, MixedRows, nearest, obey, scale


class Residuals(NamedTuple):
    """Errors of a solution, all zero in exact arithmetic.

    Attributes:
        complementarity: largest product of force and motion that should be zero, ``|lam · w̃|`` of
            a contact [W, or J for impulses].
        cone: largest excess of a force over its cone or bounds [N or N·s].
        dual: largest motion that a contact or row does not allow [m/s² or m/s].
        scaled: largest of all errors, in units of the motion without any force; has no unit.
    """

    complementarity: float
    cone: float
    dual: float
    scaled: float


def residuals(rows, A, b, lam) -> Residuals:
    """``ForceResiduals`` of the forces ``lam`` of a mixed contact problem."""
    w = A @ lam + b
    (force, others), (motion, w_others) = rows.split(lam), rows.split(w)
    slip = rows.mu * np.hypot(motion[:, 1], motion[:, 2])
    friction = np.hypot(force[:, 1], force[:, 2])
    separation = motion[:, 0] - slip if rows.convex else motion[:, 0]
    power = np.sum(force * motion, axis=1)
    power = power if rows.convex else power + force[:, 0] * slip
    # a row may move up from its lower bound and down from its upper one
    up, down = np.maximum(w_others, 0), np.maximum(-w_others, 0)
    above, below = others - rows.low, rows.high - others
    dual = np.where(np.isinf(above), up, 0) + np.where(np.isinf(below), down, 0)
    products = [np.where(np.isinf(x), 0, x) * v for x, v in ((above, up), (below, down))]
    A_, b_, rows_, units = scale(A, b, rows)
    return Residuals(
        complementarity=_largest(np.abs(power), *np.abs(products)),
        cone=_largest(friction - rows.mu * force[:, 0], -force[:, 0], -above, -below),
        dual=_largest(-separation, dual),
        scaled=relative_error(rows_, A_, b_, lam / units),
    )


def relative_error(rows, A, b, lam) -> float:
    """Largest fixed-point error ``lam - obey(lam - w)`` relative to the largest ``b``.

    Not in units of ``lam``: where there is no solution forces grow without end, and the error,
    which does not shrink, would seem to.
    """
    size = _largest(np.abs(b))
    missing = lam - obey(rows, lam, A @ lam + b)
    return _largest(np.abs(missing)) / (size if size > 0 else 1.0)


def _largest(*parts):
    """Largest entry of several arrays, or zero if that is larger."""
    return float(max(0.0, *(np.max(part, initial=0.0) for part in parts)))


# --- Proofs that a contact problem has no solution -----------------------------------------------
# Forces ``y`` within their cones and bounds, however large, that move nothing, ``A y = 0``, while
# everything moves against them, ``b · y < 0``: parts that must stay apart are driven together,
# and no force can stop them. RBDA Example 11.1, a disc that moves into the narrow end of a slot.

_PROJECTIONS = 500
_NONE = 1e-9  # of a matrix or a vector: what counts as nothing


class Certificate(NamedTuple):
    """A proof that there is no solution.

    Attributes:
        forces: the forces that move nothing, (n,), of length 1.
        motion: ``A y``, largest entry in size, relative to ``A``; zero up to rounding. Like the
            next in units in which the diagonal of ``A`` is 1.
        closing: ``b · y``, relative to ``b``; negative.
    """

    forces: np.ndarray
    motion: float
    closing: float


def certificate_of(M, d, y, *, one_sided=False):
    """Infeasibility certificate for the LCP direction ``y`` if it is one, else None.

    Measured in units in which the diagonal of ``M`` is 1. ``one_sided``: it is enough that
    ``Mᵀ y ≤ 0``, where forces only push.
    """
    diagonal = np.diagonal(M)
    units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    M, d, y = units[:, None] * M * units, units * d, y / units
    length = np.linalg.norm(y)
    if not (np.isfinite(length) and length > 0):
        return None
    y = y / length
    size, moved = np.max(np.abs(M), initial=0.0), M.T @ y
    moved = np.maximum(moved, 0.0) if one_sided else np.abs(moved)
    motion = float(np.max(moved) / (size if size > 0 else 1.0))
    closing = float(d @ y / max(np.max(np.abs(d)), 1e-300))
    if motion > _NONE or closing >= -_NONE:
        return None
    forces = units * y
    return Certificate(forces / np.linalg.norm(forces), motion, closing)


def cone_certificate(A, b, rows):
    """Infeasibility certificate of a mixed problem, by Dykstra's projections, or None.

    The point nearest to ``-b`` of the null space of ``A`` and of the cone, by Dykstra's
    projections: zero where there is none.
    """
    values, vectors = np.linalg.eigh(A)
    null = vectors[:, values <= 1e-11 * max(values[-1], 0.0)] if len(values) else vectors
    size = np.linalg.norm(b)
    if null.shape[1] == 0 or size == 0:
        return None
    unbounded = rows._replace(
        low=np.where(rows.low > -BEYOND / 2, 0.0, -np.inf),
        high=np.where(rows.high < BEYOND / 2, 0.0, np.inf),
    )
    y, left = null @ (null.T @ b) / -size, 0.0
    for _ in range(_PROJECTIONS):
        before, x = y, nearest(unbounded, y + left)
        left, y = y + left - x, null @ (null.T @ x)
        if np.linalg.norm(y) < 1e-6:
            return None
        if np.max(np.abs(y - before)) < 1e-15:
            break
    return certificate_of(A, b, nearest(unbounded, y))


# --- The problem as equations --------------------------------------------------------------------


@dataclass(frozen=True)
class MixedEquations:
    """``lam`` and ``w = A lam + b`` under the laws of ``rows``, in comparable units.

    Attributes:
        A: motion per force, (n, n).
        b: motion without forces, (n,).
        rows: cones and bounds.
    """

    A: Any
    b: Any
    rows: MixedRows

    def missing(self, lam):
        """Fixed-point errors of forces, (n,), zero where they satisfy their laws."""
        return lam - obey(self.rows, lam, self.A @ lam + self.b)

    def merit(self, lam):
        """Sum of squared fixed-point errors of forces."""
        return float(np.sum(self.missing(lam) ** 2))

    def error(self, lam):
        """Largest fixed-point error of forces relative to the largest ``b``."""
        return relative_error(self.rows, self.A, self.b, lam)
