"""Accelerations of a constrained system by penalties, and multipliers of a known motion.

Sequential regularisation of Ascher and Lin: [22, 23] of Spencer.
"""

import numpy as np

from kinetree.loops.state_space.multipliers import (
    Stabilization,
    solved_inertia,
    velocity_products,
)


def recovered_multipliers(system, t, q, v, vdot):
    """Smallest multipliers ``lam`` with ``Gᵀ lam = F - M vdot`` of a known motion, (m,)."""
    force = system.F(t, q, v) - system.M(q) @ vdot
    return np.linalg.lstsq(system.G(q).T, force, rcond=None)[0]


def regularized_acceleration(
    system, t, q, v, *, epsilon=1e-6, iterations=4, stabilization: Stabilization | None = None
):
    """Constrained acceleration (n,) by sequential regularisation (Ascher & Lin).

    With ``lam`` of the last round, ``(M + Gᵀ G / eps) vdot = F - Gᵀ (lam + Gdot v / eps)``, then
    ``lam += (G vdot + Gdot v) / eps``. The matrix is positive definite whatever the rank of ``G``;
    every round leaves about ``eps`` of the error of the last, less near singularities.

    Args:
        system: the constrained system.
        t: time [s].
        q: configuration.
        v: velocity.
        epsilon: ``eps``, relative to the mean inertia.
        iterations: rounds.
        stabilization: of Baumgarte's method.
    """
    terms, M = system.constraint(q, v), system.M(q)
    weights = np.ones(system.m) if system.weights is None else np.asarray(system.weights)
    G, products = weights[:, None] * terms.G, weights * velocity_products(terms, v, stabilization)
    penalty = np.trace(M) / (max(system.n, 1) * epsilon)
    inertia = M + penalty * G.T @ G
    force, lam, vdot = system.F(t, q, v), np.zeros(system.m), np.zeros(system.n)
    for _ in range(iterations):
        vdot = solved_inertia(inertia, force - G.T @ (lam + penalty * products))
        lam = lam + penalty * (G @ vdot + products)
    return vdot
