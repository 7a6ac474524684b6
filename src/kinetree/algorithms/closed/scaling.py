"""Scaling that makes loop constraints dimensionless: lengths are divided by the size of the loop.

Rows of ``K`` are angular velocities [rad/s] or velocities [m/s], and so are its columns. For ranks,
lengths are measured in units of the loop they belong to: a linkage drawn in millimetres has the
same rank as in metres, and a gripper of 5 mm the same on an arm of 2 m as alone. Closure errors are
compared in the same units: angles in radians, lengths as fractions of the size of the loop.
"""

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import (
    check_functions,
    function_rows,
    loop_root,
    loop_signs,
    stack_constraints,
)
from kinetree.model.gearing import with_leaders
from kinetree.model.memo import remember

_LOOKS = 3  # configurations in which user-defined constraints are evaluated


class ConstraintRow(NamedTuple):
    """One constraint: its owner, the motion it prevents, the unit of its error."""

    owner: str
    """``"loop 'pin'"`` or ``"constraint 'rope'"``."""
    direction: str
    """``"rotation about x"``, ``"translation along y"``, in the frames of the loop joint; for a
    user-defined constraint, its number, ``"row 0"``."""
    unit: str
    """``"rad"`` or ``"m"``."""

    def __str__(self):
        return f"{self.owner}: {self.direction}"


class Scaling:
    """Factors that make the rows and columns of ``K`` dimensionless.

    Attributes:
        rows: factors of the rows, 1 for angles and ``1 / length`` for lengths, (nc,).
        columns: factors of the columns, 1 for angles and ``length`` for lengths, (nv,).
        length: size of the whole mechanism [m].
        rounding: rounding errors of the scaled rows relative to machine precision: size of the
            mechanism over that of its smallest loop.
        policy: the ``rank.RankPolicy`` of the model, which decides ranks that are ambiguous in
            one configuration; None for a matrix without a model.
    """

    def __init__(self, rows, columns, length, rounding=1.0, policy: Any = None, part=None):
        self.rows, self.columns, self.length, self.rounding = rows, columns, length, rounding
        self.policy, self._part = policy, part

    def apply(self, K):
        """Constraint matrix ``K`` scaled to be dimensionless, (..., nc, nv)."""
        return np.asarray(K, dtype=float) * self.rows[:, None] * self.columns

    @cached_property
    def inverse_rows(self):
        """Factors that convert scaled errors back to metres and radians, (nc,)."""
        return 1 / self.rows

    def part(self, rows: Any = slice(None), columns: Any = slice(None)):
        """Scaling restricted to some rows and columns of the constraint matrix."""
        every = self._part or (np.arange(len(self.rows)), np.arange(len(self.columns)))
        part = every[0][rows], every[1][columns]
        of_part = self.rows[rows], self.columns[columns]
        return Scaling(*of_part, self.length, self.rounding, self.policy, part)

    @property
    def alignment_tolerance(self):
        """Singular values up to which ranks are ambiguous; 0 without a model."""
        return 0.0 if self.policy is None else self.policy.tolerance

    def generic_rank(self):
        """Rank of the scaled constraint block in regular configurations; None if unknown."""
        return None if self.policy is None else self.policy.generic_rank(self._part)


def units_of(model) -> Scaling:
    """Scaling of a model's constraints: rows by their loop's size, columns by the smallest loop.

    User-defined constraints are scaled by how much they change as joints move.
    """
    whole, lengths = typical_length(model), [loop_length(model, loop) for loop in model.loops]
    rows, own = [], np.full(model.body_count + 1, np.inf)
    for loop, length in zip(model.loops, lengths, strict=True):
        rows += [1.0 if row.unit == "rad" else 1 / length for row in _rows_of_loop(loop)]
        inner = with_leaders(model, loop_signs(model, loop.predecessor, loop.successor))
        own[list(inner)] = np.minimum(own[list(inner)], length)
    own[np.isinf(own)] = whole
    joints = enumerate(model.joint[1:], start=1)
    columns = [1.0 if turns else own[i] for i, joint in joints for turns in velocity_turns(joint)]
    if model.constraints:
        sizes = partial(_sizes_of_functions, model, np.array(columns), whole)
        lengths += list(remember(model, "sizes of constraints", sizes))
        rows += [1 / size for size in lengths[len(model.loops) :]]
    rounding = max(1.0, whole / min(lengths, default=whole))
    return Scaling(np.array(rows), np.array(columns), whole, rounding)


def _sizes_of_functions(model, columns, length):
    """Norms of the scaled rows of user-defined constraints over a few configurations.

    Such functions may have any scale; dividing by the norm removes it. Rows that are zero
    everywhere are scaled by their unit only. Functions whose derivatives are inconsistent are
    rejected here, before anything is solved with them.
    """
    rng, usual = np.random.default_rng(5), []
    with np.errstate(all="ignore"):
        for q in (model.neutral(), *(model.random_configuration(rng) for _ in range(_LOOKS))):
            K = stack_constraints(model, function_rows(model, q, model.zero_velocity)).K.astype(
                float
            )
            usual.append(np.linalg.norm(K * columns, axis=1))
            check_functions(model, q, rng.normal(size=model.nv))
    size = np.max(np.nan_to_num(usual, posinf=0.0), axis=0)
    units = [1.0 if row.unit == "rad" else length for row in _rows_of_functions(model)]
    return np.where(size > 0, size, units)


def typical_length(model) -> float:
    """Size of the mechanism: the largest distance between two joints of one body [m]."""
    joints = [[np.zeros(3)] if i else [] for i in range(model.body_count + 1)]
    for body in model.bodies:
        joints[body.parent].append(body.placement.r)
    for loop in model.loops:
        joints[loop.predecessor].append(loop.predecessor_placement.r)
        joints[loop.successor].append(loop.successor_placement.r)
    return _largest_span(joints) or 1.0


def loop_length(model, loop) -> float:
    """Size of a loop: the largest distance between two of its joints on one body [m].

    The size of the mechanism if all axes of the loop meet in one point.
    """
    p, s = loop.predecessor, loop.successor
    inner = loop_signs(model, p, s)
    joints: dict = {i: [np.zeros(3)] for i in inner} | {loop_root(model, p, s): []}
    for i in inner:
        joints[model.parent[i]].append(model.bodies[i - 1].placement.r)
    joints[p].append(loop.predecessor_placement.r)
    joints[s].append(loop.successor_placement.r)
    return _largest_span(joints.values()) or typical_length(model)


def _largest_span(joints):
    """Largest distance that the points of one joint extend over [m]."""
    spans = [np.ptp(np.array(points, dtype=float), axis=0) for points in joints if len(points)]
    return max((float(np.linalg.norm(span)) for span in spans), default=0.0)


def rows_of(model) -> list[ConstraintRow]:
    """Name and unit of each row of the constraint matrix ``K``: loops, then user constraints."""
    loops = [row for loop in model.loops for row in _rows_of_loop(loop)]
    return loops + _rows_of_functions(model)


def _rows_of_functions(model):
    """Names and units of the rows of constraint functions."""
    return [
        ConstraintRow(f"constraint {c.name!r}", f"row {n}", unit)
        for c in model.constraints
        for n, unit in enumerate(c.units)
    ]


def _rows_of_loop(loop):
    """Names and units of the constraint rows of a loop joint."""
    T = loop.joint.constraint_subspace(loop.joint.neutral()).to_array().astype(float)
    return [ConstraintRow(f"loop {loop.name!r}", _direction(t), _unit(t)) for t in T.T]


def velocity_turns(joint):
    """For each velocity variable of a joint, whether it is angular."""
    if joint.nv == 0:
        return ()
    S = joint.motion_subspace(joint.neutral()).to_array().astype(float)
    return np.any(S[:3], axis=0)


def _unit(t):
    """Unit of a constraint: metres if it has a linear part, else radians."""
    return "m" if np.any(t[3:]) else "rad"


def _direction(t):
    """Constrained motion in words: rotation about an axis, translation along another."""
    turn, shift = t[:3], t[3:]
    words = [
        f"{motion} {_axis(part)}"
        for motion, part in (("rotation about", turn), ("translation along", shift))
        if np.any(part)
    ]
    return " with ".join(words)


def _axis(direction):
    """Name of a coordinate axis, or the components of an oblique direction."""
    aligned = np.flatnonzero(direction)
    if len(aligned) == 1:
        return "xyz"[aligned[0]]
    direction = direction / np.linalg.norm(direction)
    return f"({', '.join(f'{x:.3g}' for x in direction)})"
