"""What exact motion preserves: ``g = 0`` and ``G v = 0`` — Spencer §2.1.1, (2.7)–(2.10)."""

from typing import NamedTuple

import numpy as np

from kinetree.loops.kinematics.rank import rank

__all__ = [
    "Dimensions", "Drift", "acceleration_residual", "dimensions", "drift", "invariant_gradient",
    "invariants", "rate_gradient", "velocity_residual",
]  # fmt: skip


def velocity_residual(system, q, v):
    """``G v``, (m,) — Spencer (2.2)."""
    return system.G(q) @ v


def acceleration_residual(system, q, v, vdot):
    """``G vdot + Gdot v``, (m,) — Spencer (2.3)."""
    _, G, Gdot_v = system.constraint(q, v)
    return G @ vdot + Gdot_v


def invariants(system, q, v):
    """``h = (g, G v)``, (2m,) — Spencer (2.7)."""
    g, G, _ = system.constraint(q, v)
    return np.concatenate([g, G @ v])


def invariant_gradient(system, q, v):
    """``H = [[G, 0], [d(G v)/dq, G]]``, (2m, 2n) — Spencer (2.10)."""
    G = system.G(q)
    return np.block([[G, np.zeros_like(G)], [rate_gradient(system, q, v), G]])


def rate_gradient(system, q, v):
    """``d(G v)/dq``, (m, n); on the way of ``v`` that is ``dG/dt``.

    In a vector space ``Gdot v`` is a quadratic form of ``v`` whose bilinear form is symmetric, so
    that the matrix follows from products, without differences of positions.
    """
    if system.rate_gradient is not None:
        return system.rate_gradient(q, v)
    columns = [(system.Gdot_v(q, v + e) - system.Gdot_v(q, v - e)) / 4 for e in np.eye(system.n)]
    return np.reshape(columns, (system.n, system.m)).T


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


def dimensions(system, q, *, tolerance: float | None = None) -> Dimensions:
    """Count freedoms where the mechanism stands; more than elsewhere at a kinematic singularity."""
    r = rank(system.G(q), system.scaling, tolerance=tolerance)
    return Dimensions(system.n, system.m, r, system.n - r)


class Drift(NamedTuple):
    """How far states are from what exact motion preserves."""

    position: np.ndarray
    """Norm of ``g``, in its units."""
    velocity: np.ndarray
    """Norm of ``G v``."""
    energy: np.ndarray
    """Total energy less that of the first state [J]; zero if the system does not know it."""

    def largest(self):
        """The largest absolute values."""
        return Drift(*(np.max(np.abs(x), initial=0.0) for x in self))


def drift(system, q, v) -> Drift:
    """Drift along a trajectory ``q`` (steps, nq), ``v`` (steps, n)."""
    h = np.array([invariants(system, *state) for state in zip(q, v, strict=True)])
    position, velocity = (np.linalg.norm(part, axis=1) for part in np.split(h, 2, axis=1))
    if system.energy is None:
        return Drift(position, velocity, np.zeros(len(position)))
    energy = np.array([system.energy(*state) for state in zip(q, v, strict=True)])
    return Drift(position, velocity, energy - energy[0])
