"""Proofs that a contact problem has no solution.

Forces ``y`` within their cones and bounds, however large, that move nothing, ``A y = 0``, while
everything moves against them, ``b · y < 0``: parts that must stay apart are driven together, and
no force can stop them. RBDA Example 11.1, a disc that moves into the narrow end of a slot.
"""

from typing import NamedTuple

import numpy as np

from kinetree.contact.complementarity.rows import BEYOND, nearest

__all__ = ["Certificate", "certificate_of", "cone_certificate"]

_PROJECTIONS = 500


class Certificate(NamedTuple):
    """A proof that there is no solution.

    Attributes:
        forces: the forces that move nothing, (n,), of length 1.
        motion: ``A y``, largest entry in size, relative to ``A``; zero up to rounding.
        closing: ``b · y``, relative to ``b``; negative.
    """

    forces: np.ndarray
    motion: float
    closing: float


def certificate_of(M, d, y, tolerance=1e-9):
    """The certificate, if ``y`` is one within the tolerance; else None."""
    length = np.linalg.norm(y)
    if not (np.isfinite(length) and length > 0):
        return None
    y = y / length
    size = np.max(np.abs(M), initial=0.0)
    motion = float(np.max(np.abs(M @ y)) / (size if size > 0 else 1.0))
    closing = float(d @ y / max(np.max(np.abs(d)), 1e-300))
    proved = motion <= tolerance and closing < -tolerance
    return Certificate(y, motion, closing) if proved else None


def cone_certificate(A, b, rows, lam):
    """A certificate for a mixed problem near the direction in which its forces grew, or None.

    The nearest point of the null space of ``A`` and of the cone, by alternating projections.
    """
    values, vectors = np.linalg.eigh(A)
    null = vectors[:, values <= 1e-11 * max(values[-1], 0.0)] if len(values) else vectors
    unbounded = rows._replace(
        low=np.where(rows.low > -BEYOND / 2, 0.0, -np.inf),
        high=np.where(rows.high < BEYOND / 2, 0.0, np.inf),
    )
    size = np.linalg.norm(lam)
    if null.shape[1] == 0 or not (np.isfinite(size) and size > 0):
        return None
    y = lam / size
    for _ in range(_PROJECTIONS):
        before, y = y, null @ (null.T @ nearest(unbounded, y))
        size = np.linalg.norm(y)
        if size < 1e-6:
            return None
        y = y / size
        if np.max(np.abs(y - before)) < 1e-14:
            break
    y = nearest(unbounded, y)
    return certificate_of(A, b, y)
