"""Lagrange's equations, for any Lagrangian — Lynch & Park (9.3)."""

from kinetree.errors import ShapeError
from kinetree.symbolic.library import sympy

__all__ = ["lagrange_equations"]


def lagrange_equations(L, q, qd, qdd):
    """Generalised forces ``d/dt (∂L/∂qd) - ∂L/∂q``, one formula for each coordinate.

    Args:
        L: the Lagrangian, kinetic minus potential energy, a formula in ``q`` and ``qd``.
        q: symbols of independent coordinates.
        qd: symbols of their rates.
        qdd: symbols of the rates of those.
    """
    sp = sympy()
    if not len(q) == len(qd) == len(qdd):
        raise ShapeError(
            f"coordinates, rates and accelerations must be as many, got {len(q)}, {len(qd)} and "
            f"{len(qdd)} symbols"
        )
    forces = []
    for x, v in zip(q, qd, strict=True):
        momentum = sp.diff(L, v)
        rate = sum(
            sp.diff(momentum, y) * yd + sp.diff(momentum, yd) * ydd
            for y, yd, ydd in zip(q, qd, qdd, strict=True)
        )
        forces.append(sp.expand(rate - sp.diff(L, x)))
    return sp.Matrix(forces)
