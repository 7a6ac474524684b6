"""A mechanism with loops at one instant, and everything its equation of motion is made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, implicit, rnea
from kinetree.algorithms.constrained_system import EquationOfMotion
from kinetree.algorithms.loop_rank import kept_rows
from kinetree.algorithms.maximal_joints import expanded
from kinetree.loops.kinematics.rank import rank, scaling

__all__ = ["Accelerations", "Counting", "Instant"]


class Accelerations(NamedTuple):
    """What a method finds."""

    qdd: np.ndarray
    """Accelerations of the tree joints, (nv,)."""
    lam: np.ndarray
    """Constraint forces, (nc,): one of many, where constraints are redundant."""


class Counting(NamedTuple):
    """``K qdd = k`` without constraints that are nearly redundant, and its units."""

    K: np.ndarray
    k: np.ndarray
    units: Any


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

    @cached_property
    def rows(self):
        """Numbers of the constraints that count, where others are nearly redundant; else None."""
        return kept_rows(self.model, self.K) if self.known_rank is None else None

    @cached_property
    def counting(self) -> "Counting":
        """The constraints without those that are nearly redundant."""
        if self.rows is None:
            return Counting(self.K, self.k, self.units)
        return Counting(self.K[self.rows], self.k[self.rows], self.units.part(self.rows))

    def forces(self, lam):
        """Forces of all constraints from those of ``counting``, (nc,)."""
        return expanded(lam, self.rows, len(self.K))
