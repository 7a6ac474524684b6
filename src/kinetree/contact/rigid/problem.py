"""Contacts of a mechanism at one instant, ``ζ̇ = M λ + d``, and fewer of them — RBDA §11.3, §11.6.

Per contact there are three rows, along the normal and two tangents. With ``J`` the rows of all
contacts, ``M = J A Jᵀ`` and ``d = J a + J̇ qd``, RBDA (11.36), where ``a`` are the accelerations
without contact forces, and ``A = H⁻¹``. Loops and prescribed joints leave
``A = G (Gᵀ H G)⁻¹ Gᵀ`` of it, with ``G`` what they allow; this is the same as to use independent
coordinates ``y``, for which the rows are ``J G``, and ``d`` gains ``J g``. NumPy only.

A contact whose normal, as a spatial force, is a non-negative combination of the others may go: the
others can exert whatever it can (Fig. 11.7). Of a polygon on a plane the corners remain, of an edge
the ends. A disc, or a curved line of contact, needs infinitely many; then ``accuracy`` says how far
what is kept may fall short. With friction nothing is lost either, where normals and coefficients
agree: friction at a point of a polygon is a combination of friction at its corners.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.algorithms.closed.inverse_dynamics import nonnegative_least_squares
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.contacts import Contacts, bias, jacobian, spatial_normals, velocity
from kinetree.contact.mobility import free_acceleration, mobility
from kinetree.errors import InfeasibleContactError, ModelError


@dataclass(frozen=True)
class RigidProblem:
    """Closed contacts at the level of accelerations."""

    J: Any
    """Rows (normal, tangent, tangent) of every contact, (n, 3, nv)."""
    A: Any
    """Accelerations per joint force, loops kept, (nv, nv)."""
    free: Any
    """Accelerations without contact forces, (nv,)."""
    bias: Any
    """Velocity-product part of the accelerations at the contacts, (n, 3)."""
    zeta: Any
    """Relative velocities there, (n, 3)."""
    mu: Any
    """Coefficients of friction, (n,)."""
    names: tuple[str, ...]
    """Of the contacts."""

    @cached_property
    def M(self):
        """Contact accelerations per contact force, (3n, 3n), symmetric."""
        rows = self.rows
        M = rows @ self.A @ rows.T
        return (M + M.T) / 2

    @cached_property
    def d(self):
        """Contact accelerations without contact forces, (3n,)."""
        return self.rows @ self.free + self.bias.ravel()

    @property
    def rows(self):
        """Contact Jacobian as a matrix, (3n, nv)."""
        return self.J.reshape(3 * len(self.J), self.J.shape[-1])

    @property
    def size(self) -> int:
        """Number of contacts."""
        return len(self.mu)

    @cached_property
    def scale(self) -> float:
        """Largest contact acceleration without contact forces, by absolute terms [m/s²]."""
        terms = np.abs(self.rows) @ np.abs(self.free) + np.abs(self.bias).ravel()
        return float(np.max(terms, initial=0.0))

    def motion(self, lam):
        """Joint accelerations (nv,) under contact forces (n, 3)."""
        return self.free + self.A @ (self.rows.T @ np.ravel(lam))

    def select(self, which) -> "RigidProblem":
        """``RigidProblem`` of some contacts only; the others exert no force."""
        n = np.arange(self.size)[which]
        parts = (self.J[n], self.A, self.free, self.bias[n], self.zeta[n], self.mu[n])
        return RigidProblem(*parts, tuple(self.names[k] for k in n))


def problem_at(model, q, qd, tau, contacts, mu, given=(), qdd=None) -> RigidProblem:
    """``RigidProblem`` of all ``contacts`` at a state with friction coefficients ``mu``.

    Joints that are ``given`` accelerate by ``qdd``.
    """
    names = contacts.names or tuple(str(k) for k in range(contacts.size))
    return RigidProblem(
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
    """States of contacts (apart, hitting, leaving, touching), see RBDA Fig. 11.4.

    Args:
        gap: distances [m], (n,).
        zeta: their rates [m/s], (n,).
        gap_tolerance: largest gap of a closed contact [m].
        velocity_tolerance: largest speed that counts as zero [m/s].
    """
    is_open = gap > gap_tolerance
    closing, opening = zeta < -velocity_tolerance, zeta > velocity_tolerance
    found = np.select([is_open, closing, opening], [APART, HITTING, LEAVING], TOUCHING)
    return tuple(str(s) for s in found)


# --- Problems without a solution -----------------------------------------------------------------


def require_solution(found, names):
    """Raise InfeasibleContactError for a complementarity problem without solution.

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
    """Raise InfeasibleContactError for a closing contact that no force can move.

    Args:
        problem: a ``RigidProblem``.
        stiff: which of its contacts no force moves, (n,).
    """
    d = problem.d[::3]
    for k in np.flatnonzero(stiff & (d < -1e-9 * problem.scale)):
        raise InfeasibleContactError(
            f"contact {problem.names[k]!r} closes at {-d[k]:.6g} m/s², and no force keeps it from "
            f"that: nothing on either side is free to move",
            contacts=(problem.names[k],),
        )


_EXACT = 1e-10  # part of the size of a set of contacts


def positive_dependence(vectors: ArrayLike, k: int) -> tuple[Array, float]:
    """Nonnegative combination of the other rows nearest to row ``k``, and the residual.

    Row ``k`` is positively dependent on the others if the residual is zero — RBDA §11.6. The
    coefficient of the row itself is zero.

    Args:
        vectors: (n, m).
        k: which row.
    """
    vectors = np.asarray(vectors, dtype=float)
    others = np.delete(np.arange(len(vectors)), k)
    coefficients = np.zeros(len(vectors))
    coefficients[others], rest = _combine(vectors[others], vectors[k])
    return coefficients, rest


def _combine(vectors, target):
    """Nonnegative coefficients of rows nearest to a vector, and the remaining distance."""
    x = nonnegative_least_squares(vectors.T, target)
    return x, float(np.linalg.norm(x @ vectors - target))


def reduced(contacts: Contacts, accuracy: float | None = None) -> Contacts:
    """Minimal subset of contacts whose forces can replace those of all others.

    Every pair of bodies is treated separately. Of equivalent contacts, those with the smallest
    gap are kept.

    Args:
        contacts: ``Contacts``.
        accuracy: how far [m] the line of a force that is given up may lie from what the contacts
            that are kept can exert; None: no farther than rounding errors.
    """
    if accuracy is not None and not 0 <= accuracy < math.inf:
        raise ModelError(f"accuracy must be a length in metres, zero or positive, got {accuracy!r}")
    pairs = np.column_stack([contacts.predecessor, contacts.successor])
    kept: list[int] = []
    for pair in np.unique(pairs, axis=0):
        group = np.flatnonzero(np.all(pairs == pair, axis=1))
        kept += _reduced_group(contacts, group, accuracy)
    return contacts.chosen(np.array(sorted(kept), dtype=int))


def _reduced_group(contacts, group, accuracy):
    """Indices of one body pair's contacts that a minimal subset keeps."""
    group = group[np.argsort(np.asarray(contacts.gap)[group], kind="stable")]
    vectors, size = _lengths(contacts.chosen(group))
    kept = list(range(len(group)))
    if accuracy is not None and accuracy > _EXACT * size:
        kept = _covering(vectors, accuracy)
    for k in reversed(list(kept)):  # the largest gap first
        others = [j for j in kept if j != k]
        if _combine(vectors[others], vectors[k])[1] <= _EXACT * size:
            kept = others
    return group[kept].tolist()


def _lengths(contacts):
    """Contact normals as 6-vectors of lengths (moment, scaled force), and the scale [m]."""
    middle = contacts.point.mean(axis=0)
    moved = contacts._replace(point=contacts.point - middle)
    size = max(float(np.abs(moved.point).max()), 1e-9)
    return spatial_normals(moved) * np.repeat([1.0, size], 3), size


def _covering(vectors, accuracy):
    """Indices of vectors whose cone comes within ``accuracy`` of all others, worst first."""
    kept, rests = [0], np.full(len(vectors), np.inf)
    rests[0] = 0
    while (worst := int(np.argmax(rests))) not in kept and rests[worst] > accuracy:
        # What is left over only shrinks as more are kept: old values are bounds.
        rests[worst] = _combine(vectors[kept], vectors[worst])[1]
        if rests[worst] >= rests.max() and rests[worst] > accuracy:
            kept.append(worst)
            rests[worst] = 0
    return kept


def disc_corners(radius: float, accuracy: float) -> int:
    """Number of corners of a regular polygon that approximates a circle to ``accuracy`` [m]."""
    if not accuracy > 0:
        raise ModelError(f"accuracy must be positive, got {accuracy!r}: a disc has no corners")
    if accuracy >= radius / 2:
        return 3
    return math.ceil(math.pi / math.acos(1 - accuracy / radius))
