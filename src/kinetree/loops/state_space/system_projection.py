"""States of a constrained system put back onto its invariants — Spencer §3.1.3, (3.10), (3.11).

Plain norms, so that coordinates of different units count alike; ``kt.loops.project_configuration``
and its companions, for models, have others. Two algorithms that are not the same: position then
velocity, each onto its own constraint, and everything at once, perhaps with energy.
"""

import numpy as np

from kinetree.errors import SingularError
from kinetree.loops.state_space.invariants import invariant_gradient, invariants
from kinetree.loops.state_space.newton import newton

__all__ = ["energy_gradient", "project_all", "project_position", "project_velocity"]

RCOND = 1e-12
"""Singular values below this times the largest count as zero."""
_ROUNDING = 1e-13


def project_position(system, q, *, tolerance=1e-12, nearest=False, rcond=RCOND, limit=50):
    """The configuration near ``q`` with ``g(q) = 0``.

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
            f"wanted is {tolerance:.3g}: no small step makes that less; start elsewhere"
        )
    if nearest:
        q = _settled(towards_nearest, q, space.move)
    return q


def project_velocity(system, q, v, *, rcond=RCOND):
    """``v - pinv(G) G v``, the velocity nearest to ``v`` that the constraints at ``q`` allow."""
    G = system.G(q)
    return v - np.linalg.pinv(G, rcond=rcond) @ (G @ v)


def project_all(system, q, v, *, energy=None, tolerance=1e-3, rcond=1e-4, limit=50):
    """The state near ``q, v`` on all invariants, found simultaneously.

    Args:
        system: the constrained system, in a vector space.
        q: configuration, (n,).
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

    x = np.concatenate([q, v]).astype(float)
    for _ in range(limit):
        q, v = x[:n], x[n:]
        h = invariants(system, q, v)
        if energy is not None:
            h = np.append(h, system.energy(q, v) - energy)
        size = float(np.linalg.norm(weights * h))
        if size <= tolerance:
            break
        H = invariant_gradient(system, q, v)
        if energy is not None:
            H = np.concatenate([H, energy_gradient(system, q, v)[None]])
        x = x - np.linalg.pinv(H * weights[:, None], rcond=rcond) @ (weights * h)
    else:
        raise SingularError(
            f"a projection onto the invariants has not converged in {limit} steps: they are "
            f"{size:.3g}, wanted are {tolerance:.3g}; near a kinematic singularity a larger rcond "
            f"than {rcond:.3g} makes shorter steps"
        )
    return x[:n], x[n:]


def energy_gradient(system, q, v):
    """Derivative of the energy with respect to ``q`` and ``v``, (2n,).

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


def _settled(step, q, move, *, limit=500):
    """Linear convergence, the slower the nearer the start is to a centre of curvature."""
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
    return float(np.linalg.norm(g if system.weights is None else system.weights * g))
