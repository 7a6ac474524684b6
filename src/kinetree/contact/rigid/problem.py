"""Contacts of a mechanism at one instant: ``ζ̇ = M λ + d`` — RBDA §11.3.

Per contact there are three rows, along the normal and two tangents. With ``J`` the rows of all
contacts, ``M = J A Jᵀ`` and ``d = J a + J̇ qd``, RBDA (11.36), where ``a`` are the accelerations
without contact forces, and ``A = H⁻¹``. Loops and prescribed joints leave
``A = G (Gᵀ H G)⁻¹ Gᵀ`` of it, with ``G`` what they allow; this is the same as to use independent
coordinates ``y``, for which the rows are ``J G``, and ``d`` gains ``J g``. NumPy only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.contacts import bias, jacobian, velocity
from kinetree.contact.mobility import free_acceleration, mobility
from kinetree.errors import InfeasibleContactError


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


# --- The four states of a unilateral constraint — RBDA §11.4, Fig. 11.4 --------------------------
#     1   apart      the gap is open
#     2a  hitting    it is closed, and closing on: an impact is due
#     2b  leaving    it is closed, and opening: as good as apart
#     3   touching   it is closed and stays so for the moment: contact forces decide what is next
#
# States 2a and 2b last an instant. What counts as zero is a matter of tolerances.

APART, HITTING, LEAVING, TOUCHING = "1", "2a", "2b", "3"


def contact_states(
    gap: ArrayLike, zeta: ArrayLike, gap_tolerance: float = 1e-6, velocity_tolerance: float = 1e-6
) -> tuple[str, ...]:
    """The states of contacts, as RBDA Fig. 11.4 numbers them.

    Args:
        gap: distances [m], (n,).
        zeta: their rates [m/s], (n,).
        gap_tolerance: what counts as closed [m].
        velocity_tolerance: what counts as neither closing nor opening [m/s].
    """
    open_, closing, opening = (
        gap > gap_tolerance,
        zeta < -velocity_tolerance,
        zeta > velocity_tolerance,
    )
    found = np.select([open_, closing, opening], [APART, HITTING, LEAVING], TOUCHING)
    return tuple(str(s) for s in found)


# --- Problems without a solution -----------------------------------------------------------------


def require_solution(found, names):
    """Raise InfeasibleContactError for a complementarity problem that was not solved.

    Args:
        found: a solution from ``complementarity``.
        names: what to call the rows.
    """
    if getattr(found, "solved", getattr(found, "converged", True)):
        return
    proof = found.certificate
    if proof is None:
        raise InfeasibleContactError(
            f"no contact forces were found: the best miss the laws by {found.residuals.scaled:.3g} "
            f"of the motion without them",
            residuals=found.residuals,
        )
    rows = np.flatnonzero(np.abs(proof.forces) > 1e-9)
    jammed = tuple(dict.fromkeys(names[k] for k in rows))
    raise InfeasibleContactError(
        f"no contact forces keep {', '.join(map(repr, jammed))} from closing: they would cancel "
        f"each other, as on a disc that moves into the narrow end of a slot. Give the normals a "
        f"tilt, as a slight penetration does, or let an impact stop the motion first",
        contacts=jammed,
        certificate=proof,
        residuals=found.residuals,
    )


def require_no_closing(problem, stiff):
    """Raise InfeasibleContactError for a contact that closes while both sides are prescribed.

    Args:
        problem: a ``Problem``.
        stiff: which of its contacts no force moves, (n,).
    """
    d = problem.d[::3]
    for k in np.flatnonzero(stiff & (d < -1e-9 * problem.scale)):
        raise InfeasibleContactError(
            f"contact {problem.names[k]!r} closes at {-d[k]:.6g} m/s², and no force keeps it from "
            f"that: nothing on either side is free to move",
            contacts=(problem.names[k],),
        )
