"""A closed mechanism in motion: state, forces and accelerations that belong together."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import implicit
from kinetree.algorithms.closure import CLOSURE_TOLERANCE, ClosureErrors, check_loops_closed
from kinetree.errors import LoopError
from kinetree.loops.kinematics.constraint import Constraint
from kinetree.loops.linear.velocity_basis import VelocityBasis
from kinetree.quantities.dynamics import inverse_dynamics, mass_matrix, passive_force

__all__ = ["MotionState", "accelerations", "require_closed", "require_loops", "spanning_tree"]


def require_loops(model, instead):
    """Raise LoopError for a model without loops, and say what to do instead."""
    if not model.loops:
        raise LoopError(f"model {model.name!r} has no loops: {instead}")


def spanning_tree(model):
    """The model without its loops; the same object every time."""
    key = "loops.spanning_tree"
    if key not in model.kernels:
        model.kernels[key] = model.replace(loops=())
    return model.kernels[key]


class MotionState(NamedTuple):
    """What ``forward_dynamics`` was told and what it answered; any leading batch axes."""

    model: Any
    q: Any
    qd: Any
    qdd: Any
    tau: Any
    """Forces of the motors, without those of springs, dampers and friction."""
    f_ext: Any = None
    """Forces on the bodies, (..., body_count, 6), or None."""

    def constraint_force(self):
        """``Kᵀ lam``, (..., nv): what motion and gravity take beyond motors and joints."""
        forces = () if self.f_ext is None else (self.f_ext,)
        total = inverse_dynamics(spanning_tree(self.model), self.q, self.qd, self.qdd, *forces)
        return total - passive_force(self.model, self.q, self.qd) - self.tau

    def multipliers(self, basis: VelocityBasis):
        """``lam``, (..., nc), one of many where constraints are redundant.

        With the left inverse ``[G P]`` of ``[R; K]``, ``Rᵀ Gᵀ f + Kᵀ Pᵀ f = f`` for every force;
        one of the constraints does no work, ``Gᵀ f = 0``, so it is ``Kᵀ lam`` for ``lam = Pᵀ f``.
        """
        P = basis.inverse[..., basis.G.shape[-1] :]
        return np.einsum("...nc,...n->...c", P, self.constraint_force())


def accelerations(model, q, qd, tau, f_ext, c: Constraint, basis: VelocityBasis):
    """``qdd`` under the forces ``tau`` of the motors: ``G ydd + g`` — Spencer (4.10), RBDA (8.46).

    Args:
        model: the mechanism.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        tau: forces of the motors, (..., nv).
        f_ext: forces on the bodies, (..., body_count, 6), or None.
        c: the constraints in this state.
        basis: velocities from independent ones.
    """
    G, inverse = basis
    g = np.einsum("...nc,...c->...n", inverse[..., G.shape[-1] :], c.k)
    load = -MotionState(model, q, qd, g, tau, f_ext).constraint_force()
    G_T, H = np.swapaxes(G, -1, -2), mass_matrix(spanning_tree(model), q)
    ydd = np.linalg.solve(G_T @ H @ G, G_T @ load[..., None])
    return g + (G @ ydd)[..., 0]


def require_closed(model, q, qd, c: Constraint):
    """Raise ShapeError for a state that does not close the loops, up to drift."""
    limit = CLOSURE_TOLERANCE / 10  # beyond it, the check with words decides
    errors = ClosureErrors.of(model, c, np.zeros_like(qd))
    suspect = (errors.position > limit) | (errors.velocity > limit)
    for sample in map(tuple, np.argwhere(suspect)):
        found = implicit.constraint(model, q[sample], qd[sample])
        name = f" of sample {tuple(map(int, sample))}" if sample else ""
        check_loops_closed(model, found.loops, CLOSURE_TOLERANCE, name)
