"""Forces of loop joints, and which of them are unique — RBDA §8.4, §8.10.

The constraint forces ``lam`` satisfy ``Kᵀ lam = tau_c``, and where constraints are redundant many
do. They differ by the null space of ``Kᵀ``, forces that the mechanism carries without moving.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kinetree.algorithms.closed.forces import active_force
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.spatial import Force

if TYPE_CHECKING:
    pass


class LoopForce(NamedTuple):
    """Force of a loop joint on its successor; the opposite acts on its predecessor."""

    force: Force
    """``T lam`` plus the force along the joint, in base coordinates: the smallest of many, where it
    is not unique."""
    constraint: Force
    """The part ``T lam``, which the bearing carries."""
    unique: bool
    """Whether this is the only force that the bearing can carry."""
    idle: Force
    """Columns of internal forces that the joint may carry in addition without any motion; none, if
    the force is unique. Components in other directions are unique."""


_ZERO = 1e-9  # of vectors of unit length: what counts as no part in them


def idle_forces(instant: ConstrainedEquations):
    """Orthonormal basis of the scaled null space of ``Kᵀ``: loop forces without effect."""
    U = np.linalg.svd(instant.units.apply(instant.K))[0]
    return U[:, instant.rank :]


def smallest(instant: ConstrainedEquations, lam):
    """Loop forces ``lam`` without their part that has no effect, in scaled units."""
    rows, idle = instant.units.rows, idle_forces(instant)
    pure = lam / rows
    return rows * (pure - idle @ (idle.T @ pure))


def uniqueness(instant: ConstrainedEquations):
    """Mask (nc,) of the loop forces that are uniquely determined."""
    if instant.chosen_rows is None:
        return np.all(np.abs(idle_forces(instant)) < _ZERO, axis=1)
    K, _, units = instant.counting
    idle = np.linalg.svd(units.apply(K))[0][:, instant.rank :]
    return instant.forces(np.all(np.abs(idle) < _ZERO, axis=1)).astype(bool)


def loop_forces(instant: ConstrainedEquations, lam, loop_tau):
    """``LoopForce`` of every loop joint by name, from constraint forces.

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
