"""How velocities answer to impulses: ``H Δqd = Jᵀ λ + Kᵀ κ`` with ``K Δqd = 0`` — RBDA (11.57).

Loops and couplings answer at once, with impulses of their own. With ``G`` a basis of what they
allow, ``Δqd = A Jᵀ λ`` where ``A = G (Gᵀ H G)⁻¹ Gᵀ``; without them ``A = H⁻¹``. Host-only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree import dynamics
from kinetree.contact.contacts import jacobian, velocity
from kinetree.errors import LoopError
from kinetree.loops.dynamics.null_space import null_space
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.metric import tree_inertia
from kinetree.loops.kinematics.rank import rank, scaling

__all__ = ["Collision", "inverse_inertia"]

VELOCITY_TOLERANCE = 1e-6
"""Velocity error of loops [rad/s, or lengths of the mechanism per second], relative to ``qd``,
above which a state is refused."""


def inverse_inertia(model, q):
    """``A``: velocity changes per joint-space impulse, loops and couplings kept, (nv, nv)."""
    if not (model.loops or model.couplings):
        return dynamics.inverse_mass_matrix(model, q)
    H, K, units = tree_inertia(model, q), *_constraint_matrix(model, q)
    G = null_space(K, np.zeros(len(K)), rank(K, units), units).G
    return G @ np.linalg.solve(G.T @ H @ G, G.T)


def _constraint_matrix(model, q):
    return constraint(model, q, np.zeros(model.nv)).K, scaling(model)


@dataclass(frozen=True)
class Collision:
    """A mechanism at the instant of an impact.

    Attributes:
        model: the mechanism.
        q: joint positions, (nq,).
        qd: joint velocities before, (nv,).
        contacts: where it is hit; ``Contacts``.
    """

    model: Any
    q: np.ndarray
    qd: np.ndarray
    contacts: Any

    def __post_init__(self):
        """Refuse velocities that loops do not allow: the impulse would have to undo them, too."""
        if not (self.model.loops or self.model.couplings):
            return
        found, units = constraint(self.model, self.q, self.qd), scaling(self.model)
        worst = np.max(np.abs(found.rate * units.rows), initial=0.0)
        if worst > VELOCITY_TOLERANCE * (1 + np.max(np.abs(self.qd), initial=0.0)):
            raise LoopError(
                f"qd opens the loops or couplings of model {self.model.name!r} at {worst:.3g} per "
                f"second, which an impact cannot start from: use kinetree.loops.project_velocity"
            )

    @cached_property
    def J(self):
        """Rows (normal, tangent 1, tangent 2) of every contact, (n, 3, nv)."""
        return jacobian(self.model, self.q, self.contacts)

    @cached_property
    def A(self):
        """``inverse_inertia``, (nv, nv)."""
        return inverse_inertia(self.model, self.q)

    @cached_property
    def W(self):
        """Velocity changes at the contacts per impulse there, (n, 3, n, 3)."""
        return np.einsum("nav,vw,mbw->namb", self.J, self.A, self.J)

    @cached_property
    def zeta(self):
        """Relative velocities before, (n, 3): along the normal, positive when separating."""
        return velocity(self.model, self.q, self.qd, self.contacts)

    def loop_impulse(self, u):
        """``κ`` of loops and couplings, (nc,), the smallest if not unique; and ``Kᵀκ``.

        Args:
            u: joint-space impulse of the contacts, (nv,).
        """
        if not (self.model.loops or self.model.couplings):
            return np.zeros(0), np.zeros(self.model.nv)
        missing = tree_inertia(self.model, self.q) @ (self.A @ u) - u
        K, units = _constraint_matrix(self.model, self.q)
        scaled = units.apply(K).T
        kappa = units.rows * np.linalg.lstsq(scaled, units.columns * missing, rcond=1e-10)[0]
        return kappa, K.T @ kappa
