"""How many constraints of a mechanism are independent, and which — RBDA §8.8, §8.10.

Rows of ``K`` are angular velocities [rad/s] or velocities [m/s], and so are its columns. Before a
rank is decided, lengths are measured in units of the mechanism itself: a linkage drawn in
millimetres has the rank of the one drawn in metres. Singular values below ``RANK_TOLERANCE`` times
the largest then count as zero. Host-only: ranks are decisions.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.subspace import RANK_TOLERANCE
from kinetree.array_functions import on_host
from kinetree.functional.layout import velocity_unit

__all__ = [
    "RANK_TOLERANCE", "Row", "Scaling", "dependencies", "independent_rows", "rank", "rows_of",
    "scaling", "typical_length",
]  # fmt: skip


class Row(NamedTuple):
    """One constraint: what it belongs to, which motion it forbids, the unit of its error."""

    owner: str
    """``"loop 'pin'"`` or ``"coupling 'gear'"``."""
    direction: str
    """``"rotation about x"``, ``"translation along y"``, in the frames of the loop joint."""
    unit: str
    """``"rad"`` or ``"m"``."""

    def __str__(self):
        return f"{self.owner}: {self.direction}"


class Scaling:
    """Units in which the rows and columns of ``K`` are pure numbers.

    Attributes:
        rows: factors of the rows, 1 for angles and ``1 / length`` for lengths, (nc,).
        columns: factors of the columns, 1 for angles and ``length`` for lengths, (nv,).
        length: the unit of length [m].
    """

    def __init__(self, rows, columns, length):
        self.rows, self.columns, self.length = rows, columns, length

    def apply(self, K):
        """``K`` as a matrix of pure numbers, (..., nc, nv)."""
        return np.asarray(K, dtype=float) * self.rows[:, None] * self.columns

    @cached_property
    def inverse_rows(self):
        """Factors that take scaled errors back to metres and radians, (nc,)."""
        return 1 / self.rows


def scaling(model) -> Scaling:
    """The units in which ranks of a model are decided."""
    key = "loops.scaling"
    if key not in model.kernels:
        length = typical_length(model)
        rows = [1.0 if row.unit == "rad" else 1 / length for row in rows_of(model)]
        units = [velocity_unit(joint, k) for joint in model.joint[1:] for k in range(joint.nv)]
        columns = [1.0 if unit == "rad" else length for unit in units]
        model.kernels[key] = Scaling(np.array(rows), np.array(columns), length)
    return model.kernels[key]


def typical_length(model) -> float:
    """A length of the mechanism: the largest distance between two joints on one body [m]."""
    joints = [[np.zeros(3)] if i else [] for i in range(model.body_count + 1)]
    for body in model.bodies:
        joints[body.parent].append(body.placement.r)
    for loop in model.loops:
        joints[loop.predecessor].append(loop.predecessor_placement.r)
        joints[loop.successor].append(loop.successor_placement.r)
    spans = [np.ptp(np.array(points, dtype=float), axis=0) for points in joints if points]
    return max((float(np.linalg.norm(span)) for span in spans), default=0.0) or 1.0


def rows_of(model) -> list[Row]:
    """What every row of ``K`` says: the loops in order."""
    rows = []
    for loop in model.loops:
        T = loop.joint.constraint_subspace(loop.joint.neutral()).to_array().astype(float)
        rows += [Row(f"loop {loop.name!r}", _direction(t), _unit(t)) for t in T.T]
    return rows


@on_host
def rank(K, scaling: Scaling | None = None, *, tolerance=RANK_TOLERANCE):
    """Number of independent rows of ``K``: a number, or an array for a batch (..., nc, nv).

    Args:
        K: constraint matrix, or matrices.
        scaling: units from ``scaling(model)``; None if ``K`` consists of pure numbers.
        tolerance: singular values below this times the largest count as zero. With a scaling, the
            largest counts as no less than 1, so that rounding errors alone have rank 0.
    """
    s = np.linalg.svd(_scaled(K, scaling), compute_uv=False)
    found = np.sum(s > _threshold(s, scaling, tolerance), axis=-1)
    return int(found) if found.ndim == 0 else found


@on_host
def independent_rows(K, scaling: Scaling | None = None, *, tolerance=RANK_TOLERANCE) -> np.ndarray:
    """Numbers of rows that say all that ``K`` says, as far from dependent as a greedy choice gets.

    The row that is farthest from the span of those already chosen comes next, the first of
    several; in ascending order.
    """
    size, rest, chosen = rank(K, scaling, tolerance=tolerance), _scaled(K, scaling), []
    for _ in range(size):
        lengths = np.linalg.norm(rest, axis=1)
        lengths[chosen] = -1.0
        best = int(np.argmax(lengths >= lengths.max() * (1 - 1e-9)))
        direction = rest[best] / lengths[best]
        chosen.append(best)
        for _ in range(2):  # twice is enough, once is not
            rest = rest - np.outer(rest @ direction, direction)
    return np.array(sorted(chosen), dtype=int)


@on_host
def dependencies(K, scaling: Scaling | None = None, *, tolerance=RANK_TOLERANCE) -> np.ndarray:
    """Which combinations of rows vanish: orthonormal rows ``c`` with ``c K = 0`` in pure numbers.

    A row of ``K`` whose entries are all zero here is needed; any other may be left out instead of
    the ones that ``independent_rows`` leaves out.
    """
    U, s, _ = np.linalg.svd(_scaled(K, scaling))
    return U[:, np.sum(s > _threshold(s, scaling, tolerance)) :].T


def _threshold(s, scaling, tolerance):
    """Singular values above it count."""
    floor = 0.0 if scaling is None else 1.0
    return tolerance * np.max(s, axis=-1, keepdims=True, initial=floor)


def _scaled(K, scaling):
    return np.asarray(K, dtype=float) if scaling is None else scaling.apply(K)


def _unit(t):
    return "m" if np.any(t[3:]) else "rad"


def _direction(t):
    turn, shift = t[:3], t[3:]
    words = [
        f"{motion} {_axis(part)}"
        for motion, part in (("rotation about", turn), ("translation along", shift))
        if np.any(part)
    ]
    return " with ".join(words)


def _axis(direction):
    aligned = np.flatnonzero(direction)
    if len(aligned) == 1:
        return "xyz"[aligned[0]]
    direction = direction / np.linalg.norm(direction)
    return f"({', '.join(f'{x:.3g}' for x in direction)})"
