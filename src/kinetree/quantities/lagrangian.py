"""Energy, momentum and power as the joints see them.

``T = ½ qdᵀ H qd`` has the momenta ``p = ∂T/∂qd = H qd``, and Lagrange's equations
``dp/dt - ∂T/∂q + ∂U/∂q = tau`` are the same as ``inverse_dynamics``. Where ``qd`` is not the rate
of ``q`` (spherical, free, planar joints) derivatives with respect to ``q`` are taken along
``model.integrate``, and the momentum of the joint turns with it.
"""

from typing import Any, NamedTuple

from kinetree.errors import calling
from kinetree.model.arrays import as_given
from kinetree.quantities.dynamics import external_forces, forward_dynamics
from kinetree.quantities.functions import quantity

__all__ = [
    "PowerBalance",
    "generalized_force",
    "generalized_momentum",
    "kinetic_energy_rate",
    "mass_matrix_rate",
    "potential_energy_rate",
    "power_balance",
]


def generalized_momentum(model, q, qd):
    """``p = H(q) qd`` [kg·m/s, kg·m²/s], in linear time, (..., nv)."""
    return quantity(model, "generalized_momentum").call(q, qd)


def mass_matrix_rate(model, q, qd):
    """``dH/dt`` while the mechanism moves at ``qd``, (..., nv, nv)."""
    return quantity(model, "mass_matrix_rate").call(q, qd)


def kinetic_energy_rate(model, q, qd, qdd):
    """``dT/dt`` [W], (...)."""
    return quantity(model, "kinetic_energy_rate").call(q, qd, qdd)


def potential_energy_rate(model, q, qd):
    """``dU/dt`` [W], (...)."""
    return quantity(model, "potential_energy_rate").call(q, qd)


def generalized_force(model, q, f_ext):
    """Joint forces with the same power as forces on bodies, ``Q = Σ Jᵀ f``, (..., nv).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        f_ext: forces on bodies in base coordinates, as in ``inverse_dynamics``; ``applied_force``
            makes them from forces at points.
    """
    return quantity(model, "generalized_force").call(q, external_forces(model, f_ext))


class PowerBalance(NamedTuple):
    """``kinetic + potential = joints + external``, each [W], (...)."""

    joints: Any
    """Power of the joint forces, ``tau·qd``."""
    external: Any
    """Power of the forces on bodies."""
    kinetic: Any
    """Rate of the kinetic energy."""
    potential: Any
    """Rate of the potential energy."""

    @property
    def residual(self):
        """Energy that appears from nowhere: rounding errors, and what prescribed joints put in."""
        return self.kinetic + self.potential - self.joints - self.external


def power_balance(model, q, qd, tau, f_ext=None) -> PowerBalance:
    """Where the power of the forces goes when the mechanism moves freely under them.

    Args:
        model: the mechanism; loops are honoured, their forces do no work.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        tau: joint forces, (..., nv).
        f_ext: forces on bodies in base coordinates, as in ``inverse_dynamics``.
    """
    with calling("power_balance"):
        qdd = forward_dynamics(model, q, qd, tau, f_ext)
    qd, tau = as_given(qd, "qd"), as_given(tau, "tau")
    joints = (tau * qd).sum(-1)
    external = 0 * joints
    if f_ext is not None:
        external = (generalized_force(model, q, f_ext) * qd).sum(-1)
    rates = kinetic_energy_rate(model, q, qd, qdd), potential_energy_rate(model, q, qd)
    return PowerBalance(joints, external, *rates)
