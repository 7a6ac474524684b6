"""Contacts of a mechanism at one instant: ``ζ̇ = M λ + d`` — RBDA §11.3.

Per contact there are three rows, along the normal and two tangents. With ``J`` the rows of all
contacts, ``M = J A Jᵀ`` and ``d = J a + J̇ qd``, RBDA (11.36), where ``a`` are the accelerations
without contact forces, and ``A = H⁻¹``. Loops and joints that move as told leave
``A = G (Gᵀ H G)⁻¹ Gᵀ`` of it, with ``G`` what they allow; this is the same as to use independent
coordinates ``y``, for which the rows are ``J G``, and ``d`` gains ``J g``. Host-only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.contact.contacts import bias, jacobian, velocity
from kinetree.contact.mobility import free_acceleration, mobility

__all__ = ["Problem", "problem_at"]


@dataclass(frozen=True)
class Problem:
    """Closed contacts at the level of accelerations.

    Attributes:
        J: rows (normal, tangent, tangent) of every contact, (n, 3, nv).
        A: accelerations per joint force, loops kept, (nv, nv).
        free: accelerations without contact forces, (nv,).
        bias: velocity-product part of the accelerations at the contacts, (n, 3).
        zeta: relative velocities there, (n, 3).
        mu: coefficients of friction, (n,).
        names: of the contacts.
    """

    J: Any
    A: Any
    free: Any
    bias: Any
    zeta: Any
    mu: Any
    names: tuple[str, ...]

    @cached_property
    def M(self):
        """Accelerations at the contacts per contact force, (3n, 3n), symmetric."""
        rows = self.rows
        M = rows @ self.A @ rows.T
        return (M + M.T) / 2

    @cached_property
    def d(self):
        """Accelerations at the contacts without contact forces, (3n,)."""
        return self.rows @ self.free + self.bias.ravel()

    @property
    def rows(self):
        """``J`` as a matrix, (3n, nv)."""
        return self.J.reshape(3 * len(self.J), self.J.shape[-1])

    @property
    def size(self) -> int:
        """Number of contacts."""
        return len(self.mu)

    @cached_property
    def scale(self) -> float:
        """Size of the accelerations at hand [m/s²]."""
        terms = np.abs(self.rows) @ np.abs(self.free) + np.abs(self.bias).ravel()
        return float(np.max(terms, initial=0.0))

    def motion(self, lam):
        """Joint accelerations under contact forces (n, 3)."""
        return self.free + self.A @ (self.rows.T @ np.ravel(lam))

    def chosen(self, which) -> "Problem":
        """The same for some of the contacts, the others without force."""
        n = np.arange(self.size)[which]
        parts = (self.J[n], self.A, self.free, self.bias[n], self.zeta[n], self.mu[n])
        return Problem(*parts, tuple(self.names[k] for k in n))


def problem_at(model, q, qd, tau, contacts, mu, given=(), qdd=None) -> Problem:
    """The problem of all ``contacts``, with coefficients of friction ``mu``.

    Joints that are ``given`` accelerate by ``qdd``.
    """
    names = contacts.names or tuple(str(k) for k in range(contacts.size))
    return Problem(
        jacobian(model, q, contacts),
        mobility(model, q, given),
        free_acceleration(model, q, qd, tau, given, qdd),
        bias(model, q, qd, contacts),
        velocity(model, q, qd, contacts),
        mu,
        names,
    )
