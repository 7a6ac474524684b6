"""Accelerations of a constrained system: by multipliers, independent accelerations or penalties.

The underlying ordinary differential equation is that of Spencer (2.4)–(2.6); without multipliers,
``vdot = K z + c`` with ``G K = 0`` and ``G c = -Gdot v`` — Spencer §2.4.
"""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import SingularError
from kinetree.loops.state_space.system import ConstraintTerms


class Stabilization(NamedTuple):
    """``0 = gddot + 2 alpha gdot + beta² g`` in place of ``gddot = 0`` — Spencer (3.8).

    Baumgarte's method. ``alpha = beta = 1 / T`` makes errors decay with the time constant T,
    critically damped, as ``kinetree.Baumgarte(T)`` does in a simulation.
    """

    alpha: float
    """Damping [1/s]."""
    beta: float
    """Frequency [1/s]."""

    def products(self, terms: ConstraintTerms, v: ArrayLike) -> np.ndarray:
        """Baumgarte-stabilised terms (m,) that replace ``Gdot v``."""
        return terms.Gdot_v + 2 * self.alpha * (terms.G @ v) + self.beta**2 * terms.g


def velocity_products(terms, v, stabilization: Stabilization | None = None):
    """Velocity products ``Gdot v`` (m,), with Baumgarte terms if given."""
    return terms.Gdot_v if stabilization is None else stabilization.products(terms, v)


def multipliers(system, t, q, v, *, stabilization: Stabilization | None = None):
    """Lagrange multipliers of the constraints, (m,) — Spencer (2.4).

    They are large near kinematic singularities, whatever the forces are, and do not exist there nor
    with redundant constraints: a SingularError. The sign is that of ``M vdot = F - Gᵀ lam``.
    """
    return _solution(system, t, q, v, stabilization)[1]


def acceleration(system, t, q, v, *, stabilization: Stabilization | None = None):
    """Constrained acceleration ``vdot = M⁻¹ (F - Gᵀ lam)``, (n,) — Spencer (2.5)."""
    return _solution(system, t, q, v, stabilization)[0]


def independent_acceleration(system, t, q, v, K, c):
    """Independent accelerations ``z`` of ``Kᵀ M K z = Kᵀ (F - M c)``, (p,)."""
    M = system.M(q)
    return solved_inertia(K.T @ M @ K, K.T @ (system.F(t, q, v) - M @ c))


def solved_inertia(M, force):
    """Solution ``M⁻¹ force`` for a projected inertia matrix; SingularError if singular."""
    try:
        return np.linalg.solve(M, force)
    except np.linalg.LinAlgError:
        raise SingularError(
            f"some motion that the constraints allow moves no inertia: the inertia matrix of the "
            f"{len(M)} degrees of freedom is singular; give mass to the bodies that take part in "
            f"it, or constrain it"
        ) from None


def _solution(system, t, q, v, stabilization):
    """Accelerations and multipliers by the range-space method."""
    terms = system.constraint(q, v)
    force, G = system.F(t, q, v), terms.G
    moved = np.linalg.solve(system.M(q), np.column_stack([G.T, force]))  # M⁻¹ (Gᵀ, F)
    free = moved[:, -1]
    inertia = G @ moved[:, :-1]
    _check_regular(system, inertia)
    lam = np.linalg.solve(inertia, G @ free + velocity_products(terms, v, stabilization))
    return free - moved[:, :-1] @ lam, lam


def _check_regular(system, inertia):
    """Raise SingularError if the scaled constraint inertia is singular up to rounding."""
    if system.m == 0 or not np.all(np.isfinite(inertia)):
        return  # what is not finite shows in the result
    weights = np.ones(system.m) if system.weights is None else np.asarray(system.weights)
    values = np.linalg.eigvalsh(inertia * np.outer(weights, weights))
    if values[0] > 16 * system.m * np.finfo(float).eps * values[-1]:
        return
    raise SingularError(
        f"the {system.m} constraints have no unique Lagrange multipliers here: they are redundant, "
        f"or the mechanism is at a kinematic singularity; system.independent(q) leaves redundant "
        f"constraints out, and kt.loops.SVDForm passes through singularities"
    )
