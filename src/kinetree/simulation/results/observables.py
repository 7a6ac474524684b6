"""Energy, momentum and constraint error along a motion."""

from typing import Any, NamedTuple

import numpy as np

from kinetree import centroidal, dynamics
from kinetree.algorithms import implicit
from kinetree.functional.kernel import kernel
from kinetree.model.dynamics import has_dynamics

__all__ = ["Observables", "loop_error", "observe"]


class Observables(NamedTuple):
    """Scalars and vectors of every state.

    Attributes:
        kinetic: kinetic energy [J], (...).
        gravity: potential energy in the gravity field [J], (...).
        elastic: energy of the springs that the joints have [J], (...).
        momentum: spatial momentum about the origin of the base, (..., 6).
        center: centre of mass [m], (..., 3).
    """

    kinetic: Any
    gravity: Any
    elastic: Any
    momentum: Any
    center: Any


def observe(model, q, qd) -> Observables:
    """Energy and momentum of states (..., nq) and (..., nv)."""
    return Observables(*_observe(model, q, qd))


@kernel
def _observe(model, q, qd):
    return (
        dynamics.kinetic_energy(model, q, qd),
        dynamics.potential_energy(model, q),
        _elastic_energy(model, q),
        centroidal.momentum(model, q, qd),
        centroidal.center_of_mass(model, q),
    )


def _elastic_energy(model, q):
    """``½ Δᵀ k Δ`` of the springs in the joints."""
    energy = 0
    for i, body in enumerate(model.bodies, start=1):
        if has_dynamics(body, "stiffness"):
            rest = np.array(body.dynamics.rest) if body.dynamics.rest else body.joint.neutral()
            away = body.joint.difference(rest, q[model.q_slice[i]])
            energy = energy + np.array(body.dynamics.stiffness) @ (away * away) / 2
    return energy


def loop_error(model, q, qd):
    """Largest position error of a loop or coupling [m or rad], (...)."""
    error = np.zeros(q.shape[:-1])
    if model.loops or model.couplings:
        for index in np.ndindex(error.shape):
            found = implicit.constraint(model, q[index], qd[index]).implicit.error
            error[index] = np.max(np.abs(found), initial=0.0)
    return error
