"""Invariants of constrained systems: drift along them, and ways back onto them — Spencer ch. 2, 3.

The residuals (2.2) and (2.3), sizes (§2.2.1), and projections: position then velocity, each onto
its own constraint (§3.1.3, (3.10), (3.11)); with one matrix for both (post-stabilisation); or onto
all invariants at once, perhaps with energy. These take functions of the user's own and plain norms,
in which coordinates of different units count alike; ``kt.loops.project_configuration`` and its
companions, for models, have other metrics and decide which constraints count.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import SingularError
from kinetree.loops.kinematics.constraint import rank
from kinetree.loops.state_space.invariants import invariant_gradient, invariants, newton
from kinetree.loops.state_space.system import ConstrainedSystem

RCOND = 1e-12
"""Singular values below this times the largest count as zero."""
_ROUNDING = 1e-13


def velocity_residual(system, q, v):
    """Constraint velocity ``G v``, (m,) — Spencer (2.2)."""
    return system.G(q) @ v


def acceleration_residual(system, q, v, vdot):
    """Constraint acceleration ``G vdot + Gdot v``, (m,) — Spencer (2.3)."""
    _, G, Gdot_v = system.constraint(q, v)
    return G @ vdot + Gdot_v


class Dimensions(NamedTuple):
    """Sizes of a constrained system at one configuration — Spencer §2.2.1."""

    n: int
    """Velocities; the state has N = 2n."""
    m: int
    """Constraints; there are M = 2m invariants."""
    rank: int
    """Independent constraints."""
    freedom: int
    """Degrees of freedom p = n - rank; the manifold of states has P = 2p dimensions."""


def dimensions(
    system: ConstrainedSystem, q: ArrayLike, *, tolerance: float | None = None
) -> Dimensions:
    """``Dimensions`` of a system at ``q``: degrees of freedom by constraint rank."""
    r = rank(system.G(q), system.scaling, tolerance=tolerance)
    return Dimensions(system.n, system.m, r, system.n - r)


class Drift(NamedTuple):
    """Deviations of states from constraints and energy, which an exact motion preserves."""

    position: np.ndarray
    """Norm of ``g``, in its units."""
    velocity: np.ndarray
    """Norm of ``G v``."""
    energy: np.ndarray
    """Total energy less that of the first state [J]; zero if the system has no ``energy``."""

    def largest(self) -> "Drift":
        """``Drift`` with the largest absolute values over time."""
        return Drift(*(np.max(np.abs(x), initial=0.0) for x in self))


def drift(system: ConstrainedSystem, q: ArrayLike, v: ArrayLike) -> Drift:
    """``Drift`` of constraints and energy along states ``q`` (steps, nq), ``v`` (steps, n)."""
    h = np.array([invariants(system, *state) for state in zip(q, v, strict=True)])
    position, velocity = (np.linalg.norm(part, axis=1) for part in np.split(h, 2, axis=1))
    if system.energy is None:
        return Drift(position, velocity, np.zeros(len(position)))
    energy = np.array([system.energy(*state) for state in zip(q, v, strict=True)])
    return Drift(position, velocity, energy - energy[0])


def project_position(system, q, *, tolerance=1e-12, nearest=False, rcond=RCOND, limit=50):
    """Configuration near ``q`` with ``g(q) = 0``.

    Newton's method with the shortest step at every iterate, ``-pinv(G) g``, ends on the manifold,
    close to the nearest point but not in it.

    Args:
        system: the constrained system.
        q: configuration, (nq,).
        tolerance: weighted norm of ``g`` to reach.
        nearest: go to the nearest point itself, for which ``q + Gᵀ mu`` is the start; from a start
            closer than the radius of curvature of the manifold.
        rcond: singular values of ``G`` below this times the largest count as zero.
        limit: of the number of steps.
    """
    start, space = np.asarray(q, dtype=float), system.space

    def shortest(q):
        g = system.g(q)
        size = _size(system, g)
        if size <= tolerance:
            return np.zeros(system.n), size
        return -np.linalg.pinv(system.G(q), rcond=rcond) @ g, size

    def towards_nearest(q):
        g, G = system.g(q), system.G(q)
        away = space.difference(start, q)
        D = np.linalg.inv(space.difference_gradient(start, q))
        inverse = np.linalg.pinv(G @ D, rcond=rcond)
        return D @ (inverse @ (G @ D @ away - g) - away), np.inf

    options = {"move": space.move, "limit": limit, "what": "a projection onto the constraints"}
    q = newton(shortest, start, residual_tolerance=tolerance, **options).x
    left = _size(system, system.g(q))
    if left > max(tolerance, _ROUNDING * (1 + float(np.linalg.norm(q)))):
        raise SingularError(
            f"a projection onto the constraints stopped where they are violated by {left:.3g}, "
            f"at most {tolerance:.3g} is required: no small step reduces it; start elsewhere"
        )
    if nearest:
        q = _iterate_linearly(towards_nearest, q, space.move)
    return q


def _iterate_linearly(step, q, move, *, limit=500):
    """Limit of a linearly convergent iteration of configuration steps."""
    for _ in range(limit):
        dq, _ = step(q)
        q = move(q, dq)
        if np.linalg.norm(dq) <= 1e-14 * (1 + np.linalg.norm(q)):
            return q
    raise SingularError(
        "no nearest configuration was found: the given one is as far from the manifold as that is "
        "curved"
    )


def _size(system, g):
    """Weighted Euclidean norm of constraint errors."""
    return float(np.linalg.norm(g if system.weights is None else system.weights * g))


def project_velocity(system, q: ArrayLike, v, *, rcond=RCOND) -> Array:
    """Velocity ``v - pinv(G) G v`` nearest to ``v`` that the constraints allow."""
    G = system.G(q)
    return v - np.linalg.pinv(G, rcond=rcond) @ (G @ v)


def post_stabilize(system, q, v, *, repeats=2, rcond=RCOND):
    """State after a step, corrected towards the invariants (Ascher & Chin).

    ``x - F(x) h(x)`` with ``F = diag(pinv(G), pinv(G))``, so that positions and velocities are
    corrected with one and the same matrix. It is not iterated until it converges: one correction
    leaves errors of velocities as small as those of positions times the speed, the second leaves
    the square of them.

    Args:
        system: the constrained system.
        q: configuration, (nq,).
        v: velocity, (n,).
        repeats: corrections.
        rcond: singular values of ``G`` below this times the largest count as zero.
    """
    for _ in range(repeats):
        g, G = system.g(q), system.G(q)
        inverse = np.linalg.pinv(G, rcond=rcond)
        q, v = system.space.move(q, -inverse @ g), v - inverse @ (G @ v)
    return q, v


def project_all(system, q, v, *, energy=None, tolerance=1e-3, rcond=1e-4, limit=50):
    """State near ``q, v`` on all invariants, solved simultaneously.

    Args:
        system: the constrained system.
        q: configuration, (nq,).
        v: velocity, (n,).
        energy: total energy to hold [J], one more invariant; None for none. Only conservative
            systems have one. At rest in an equilibrium it cannot be changed by small steps.
        tolerance: norm of the weighted invariants to reach; states within it stay as they are.
        rcond: singular values of the stacked Jacobian below this times the largest count as zero.
            At kinematic singularities it loses rank; a small threshold makes large steps there.
        limit: of the number of steps.
    """
    n = system.n
    weights = np.ones(system.m) if system.weights is None else np.asarray(system.weights)
    weights = np.concatenate([weights, weights, *([] if energy is None else [[1.0]])])

    q, v = (np.asarray(x, dtype=float) for x in (q, v))
    for _ in range(limit):
        h = invariants(system, q, v)
        if energy is not None:
            h = np.append(h, system.energy(q, v) - energy)
        size = float(np.linalg.norm(weights * h))
        if size <= tolerance:
            break
        H = invariant_gradient(system, q, v)
        if energy is not None:
            H = np.concatenate([H, energy_gradient(system, q, v)[None]])
        dx = np.linalg.pinv(H * weights[:, None], rcond=rcond) @ (weights * h)
        q, v = system.space.move(q, -dx[:n]), v - dx[n:]
    else:
        raise SingularError(
            f"a projection onto the invariants has not converged in {limit} steps: they are "
            f"{size:.3g}, at most {tolerance:.3g} is required; near a kinematic singularity "
            f"a larger rcond than {rcond:.3g} makes shorter steps"
        )
    return q, v


def energy_gradient(system, q, v) -> Any:
    """Gradient (2n,) of the energy with respect to ``q`` and ``v``.

    By central differences, good to about ten digits, where the system does not know it.
    """
    if system.energy_gradient is not None:
        return system.energy_gradient(q, v)
    h = 6e-6
    along = [
        (system.energy(system.space.move(q, e), v) - system.energy(system.space.move(q, -e), v))
        for e in h * np.eye(system.n)
    ]
    return np.concatenate([np.array(along) / (2 * h), system.M(q) @ v])
