"""Momentum and mass centre of the whole mechanism — RBDA §2.12."""

from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.spatial import Force
from kinetree.spatial.ops import check_pivot

__all__ = ["center_of_mass", "momentum", "total_mass", "total_momentum"]


def momentum(model, q, qd):
    """Spatial momentum of all bodies, as a ``Force`` in base coordinates.

    Its angular part is about the origin of the base [N·m·s], its linear part [N·s] is the total
    mass times the velocity of the mass centre. Armature has no part in it.
    """
    lam, NB, I = model.parent, model.body_count, model.inertia
    X, v = body_velocities(model, q, qd)
    h = [Force.zero(), *(I[i] @ v[i] for i in range(1, NB + 1))]
    for i in range(NB, 0, -1):
        h[lam[i]] = h[lam[i]] + X[i].T @ h[i]
    return h[0]


def total_momentum(model, q, qd):
    """The six coordinates of ``momentum``, (6,)."""
    return momentum(model, q, qd).to_array()


def total_mass(model):
    """Mass of all moving bodies together [kg]."""
    return sum(I.mass for I in model.inertia[1:])


def center_of_mass(model, q):
    """Mass centre of all moving bodies [m], in base coordinates, (3,)."""
    mass = check_pivot(
        total_mass(model), 0, lambda: f"model {model.name!r} has no mass, hence no mass centre"
    )
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    moment = sum(
        I.mass * X.r + X.E.T @ I.first_moment
        for I, X in zip(model.inertia[1:], X_0[1:], strict=True)
    )
    return moment / mass
