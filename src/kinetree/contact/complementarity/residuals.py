"""By how much forces miss the laws that they should obey."""

from typing import NamedTuple

import numpy as np

from kinetree.contact.complementarity.rows import obeyed, scaled

__all__ = ["Residuals", "relative_error", "residuals"]


class Residuals(NamedTuple):
    """By how much a solution misses what it should be, all zero in exact arithmetic.

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
    """What is wrong with the forces ``lam`` of a mixed problem."""
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
    A_, b_, rows_, units = scaled(A, b, rows)
    return Residuals(
        complementarity=_largest(np.abs(power), *np.abs(products)),
        cone=_largest(friction - rows.mu * force[:, 0], -force[:, 0], -above, -below),
        dual=_largest(-separation, dual),
        scaled=relative_error(rows_, A_, b_, lam / units),
    )


def relative_error(rows, A, b, lam) -> float:
    """Largest error of ``lam = obeyed(lam)``, in units of the largest ``b``; of a scaled problem.

    Not in units of ``lam``: where there is no solution forces grow without end, and the error,
    which does not shrink, would seem to.
    """
    size = _largest(np.abs(b))
    missing = lam - obeyed(rows, lam, A @ lam + b)
    return _largest(np.abs(missing)) / (size if size > 0 else 1.0)


def _largest(*parts):
    return float(max(0.0, *(np.max(part, initial=0.0) for part in parts)))
