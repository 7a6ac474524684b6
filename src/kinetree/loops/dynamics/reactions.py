"""Forces of loop joints, and which parts of them are unique — RBDA §8.4, §8.10.

The constraint forces ``lam`` satisfy ``Kᵀ lam = tau_c``, and where constraints are redundant many
do. They differ by the null space of ``Kᵀ``, forces that the mechanism carries without moving.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.algorithms.loop_forces import active_force
from kinetree.loops.dynamics.instant import Instant
from kinetree.spatial import Force

__all__ = ["LoopForce", "idle_forces", "loop_forces", "smallest", "uniqueness"]

_ZERO = 1e-9  # of vectors of unit length: what counts as no part in them


class LoopForce(NamedTuple):
    """What a loop joint exerts on its successor; on its predecessor, the opposite."""

    force: Force
    """``T lam`` plus the force along the joint, in base coordinates: the smallest of many, where it
    is not unique."""
    constraint: Force
    """The part ``T lam``, which the bearing carries."""
    unique: bool
    """Whether this is the only force that the bearing can carry."""
    idle: Force
    """Columns of forces that the joint may carry besides without moving anything; none, if the
    force is unique. Components in other directions are unique."""


def idle_forces(instant: Instant):
    """Columns that span the null space of ``Kᵀ``, orthonormal in pure numbers, (nc, nc - r)."""
    U = np.linalg.svd(instant.units.apply(instant.K))[0]
    return U[:, instant.rank :]


def smallest(instant: Instant, lam):
    """``lam`` without the part that moves nothing; forces count as moments over a length."""
    rows, idle = instant.units.rows, idle_forces(instant)
    pure = lam / rows
    return rows * (pure - idle @ (idle.T @ pure))


def uniqueness(instant: Instant):
    """Which entries of ``lam`` are unique, (nc,)."""
    return np.all(np.abs(idle_forces(instant)) < _ZERO, axis=1)


def loop_forces(instant: Instant, lam, loop_tau):
    """A ``LoopForce`` for every loop joint, by name.

    Args:
        instant: the equations.
        lam: constraint forces, (nc,).
        loop_tau: joint force of each loop joint, zero if it is passive.
    """
    model, idle = instant.model, idle_forces(instant)
    X_0 = base_transforms(model, joint_transforms(model, instant.q)[0])
    forces, row = {}, 0
    for n, (loop, J) in enumerate(zip(model.loops, instant.constraint.loops, strict=True)):
        at = slice(row, row + len(J.error))
        row = at.stop
        U, s, _ = np.linalg.svd(idle[at], full_matrices=False)
        within = instant.units.rows[at, None] * U[:, s > _ZERO]
        constraint = J.T @ lam[at]
        forces[loop.name] = LoopForce(
            force=constraint + active_force(loop, X_0, loop_tau[n]),
            constraint=constraint,
            unique=not np.any(s > _ZERO),
            idle=Force.from_array(J.T.to_array() @ within),
        )
    return forces
