"""A mechanism that is hit: ``H Δqd = Jᵀ λ + Kᵀ κ`` with ``K Δqd = 0`` — RBDA (11.57).

Loops answer at once, with impulses ``κ`` of their own. Host-only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.algorithms.loop_rank import kept_rows, scaling
from kinetree.algorithms.maximal_joints import expanded
from kinetree.contact.contacts import jacobian, velocity
from kinetree.contact.mobility import free_variables, mobility
from kinetree.errors import ImpactError, LoopError
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.space import tree_inertia

__all__ = ["Collision"]

VELOCITY_TOLERANCE = 1e-6
"""Velocity error of loops [rad/s, or lengths of the mechanism per second], relative to ``qd``,
above which a state is refused."""


@dataclass(frozen=True)
class Collision:
    """A mechanism at the instant of an impact.

    Attributes:
        model: the mechanism.
        q: joint positions, (nq,).
        qd: joint velocities before, (nv,).
        contacts: where it is hit; ``Contacts``.
        given: names of joints that move as told, whatever hits them.
    """

    model: Any
    q: np.ndarray
    qd: np.ndarray
    contacts: Any
    given: tuple[str, ...] = ()

    def __post_init__(self):
        """Refuse velocities that loops do not allow: the impulse would have to undo them, too."""
        if not self.model.loops:
            return
        found, units = constraint(self.model, self.q, self.qd), scaling(self.model)
        rows = kept_rows(self.model, found.K)
        rate = np.asarray(found.rate) * units.rows
        worst = np.max(np.abs(rate if rows is None else rate[rows]), initial=0.0)
        if worst > VELOCITY_TOLERANCE * (1 + np.max(np.abs(self.qd), initial=0.0)):
            raise LoopError(
                f"qd opens the loops of model {self.model.name!r} at {worst:.3g} per second, which "
                f"an impact cannot start from: use kinetree.loops.project_velocity"
            )

    def require_yielding(self):
        """Raise ImpactError where both sides of a contact that closes move as told."""
        yields = np.einsum("nv,vw,nw->n", self.J[:, 0], self.A, self.J[:, 0])
        stiff = np.flatnonzero((self.zeta[:, 0] < 0) & (yields <= 0))
        if len(stiff):
            k = int(stiff[0])
            name = self.contacts.names[k] if self.contacts.names else str(k)
            raise ImpactError(
                f"contact {name!r} closes at {-self.zeta[k, 0]:.6g} m/s, and no impulse stops it: "
                f"nothing on either side is free to move"
            )

    @cached_property
    def J(self):
        """Rows (normal, tangent 1, tangent 2) of every contact, (n, 3, nv)."""
        return jacobian(self.model, self.q, self.contacts)

    @cached_property
    def A(self):
        """``mobility``, (nv, nv)."""
        return mobility(self.model, self.q, self.given)

    @cached_property
    def W(self):
        """Velocity changes at the contacts per impulse there, (n, 3, n, 3)."""
        return np.einsum("nav,vw,mbw->namb", self.J, self.A, self.J)

    @cached_property
    def zeta(self):
        """Relative velocities before, (n, 3): along the normal, positive when separating."""
        return velocity(self.model, self.q, self.qd, self.contacts)

    @cached_property
    def free(self):
        """Which velocity variables impulses can change, (nv,)."""
        return free_variables(self.model, self.given)

    def loop_impulse(self, u):
        """``κ`` of loops, (nc,), the smallest if not unique; and ``Kᵀκ``.

        Args:
            u: joint-space impulse of the contacts, (nv,).
        """
        if not self.model.loops:
            return np.zeros(0), np.zeros(self.model.nv)
        missing = (tree_inertia(self.model, self.q) @ (self.A @ u) - u)[self.free]
        K, units = constraint(self.model, self.q, np.zeros(self.model.nv)).K, scaling(self.model)
        scaled, columns = units.apply(K).T[self.free], units.columns[self.free]
        rows = kept_rows(self.model, K)
        scaled = scaled if rows is None else scaled[:, rows]
        found = np.linalg.lstsq(scaled, columns * missing, rcond=1e-10)[0]
        kappa = units.rows * expanded(found, rows, len(K))
        return kappa, K.T @ kappa
