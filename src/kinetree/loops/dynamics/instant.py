"""A mechanism with loops at one instant, and everything its equation of motion is made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, implicit, rnea
from kinetree.algorithms.constrained_system import EquationOfMotion
from kinetree.loops.kinematics.rank import rank, scaling

__all__ = ["Accelerations", "Instant"]


class Accelerations(NamedTuple):
    """What a method finds."""

    qdd: np.ndarray
    """Accelerations of the tree joints, (nv,)."""
    lam: np.ndarray
    """Constraint forces, (nc,): one of many, where constraints are redundant."""


@dataclass(frozen=True)
class Instant:
    """``H qdd + C = tau + Kᵀ lam`` and ``K qdd = k`` — RBDA (8.36). Computed when asked for.

    Attributes:
        model: the mechanism.
        q: position variables of the tree joints, (nq,).
        qd: velocity variables of the tree joints, (nv,).
        tau: joint forces of the tree joints, (nv,).
        f_ext: force on each body in base coordinates, those of loop joints included, entry 0
            unused; or None.
        stabilization: time constant [s] with which errors decay; None for none.
        known_rank: number of independent constraints, if the caller knows it better.
    """

    model: Any
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    f_ext: Any = None
    stabilization: float | None = None
    known_rank: int | None = None

    @cached_property
    def H(self):
        """Joint-space inertia matrix of the spanning tree, (nv, nv)."""
        return np.asarray(crba.joint_space_inertia(self.model, self.q), dtype=float)

    @cached_property
    def force(self):
        """``tau - C``, active loop forces included, (nv,)."""
        return self.tau - rnea.bias_force(self.model, self.q, self.qd, self.f_ext)

    @property
    def system(self):
        """The spanning tree as an ``EquationOfMotion``."""
        return EquationOfMotion(self.H, np.zeros_like(self.tau), self.force)

    @cached_property
    def constraint(self):
        """Loops and couplings, with their stabilisation."""
        return implicit.constraint(self.model, self.q, self.qd, stabilization=self.stabilization)

    @property
    def K(self):
        """Constraint matrix, (nc, nv)."""
        return self.constraint.implicit.K

    @property
    def k(self):
        """``k + k_stab``, (nc,)."""
        return self.constraint.implicit.k

    @cached_property
    def units(self):
        """Units in which ``K`` consists of pure numbers."""
        return scaling(self.model)

    @cached_property
    def rank(self):
        """Number of independent constraints."""
        return rank(self.K, self.units) if self.known_rank is None else self.known_rank
