"""Energy, momentum and power as the joints see them.

``T = ½ qdᵀ H qd`` has the momenta ``p = ∂T/∂qd = H qd``, to both of which prescribed joints add
what they move, and Lagrange's equations ``dp/dt - ∂T/∂q + ∂U/∂q = tau`` are the same as
``inverse_dynamics``. Where ``qd`` is not the rate
of ``q`` (spherical, free, planar joints) derivatives with respect to ``q`` are taken along
``model.integrate``, and the momentum of the joint turns with it.
"""

from typing import Any, NamedTuple

from kinetree.algorithms import energy
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import calling
from kinetree.model import Model
from kinetree.model.arrays import as_given
from kinetree.model.define import quantity, register
from kinetree.quantities.dynamics import FORCES, Forces, Names, forward_dynamics
from kinetree.quantities.loops import coordinate_count, with_loops

__all__ = [
    "generalized_force", "generalized_momentum", "kinetic_energy_rate", "mass_matrix_rate",
    "potential_energy_rate", "power_balance",
]  # fmt: skip


@quantity(("nv",), energy.generalized_momentum, general=True)
def generalized_momentum(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Momenta of the joints ``p = ∂T/∂qd`` [kg·m/s, kg·m²/s], in linear time, (..., nv).

    ``p = H(q) qd``; with prescribed joints ``H(q) qd + p(q, 0)``, that of the actual motion.
    """


@quantity(
    (coordinate_count, coordinate_count),
    energy.mass_matrix_rate,
    energy.mass_matrix_rate_by_axial_turns,
    tree=True,
    general=True,
    gears=True,
    selects=("independent",),
    serve=with_loops(lambda at: at.inertia_rate()),
)
def mass_matrix_rate(
    model: Model, q: ArrayLike, qd: ArrayLike, *, independent: Names = None
) -> Array:
    """Time derivative ``dH/dt`` of the mass matrix at the velocity ``qd``, (..., nv, nv).

    With loops, the rate of the matrix of the coordinates ``y`` that ``mass_matrix`` returns.
    """


@quantity((), energy.kinetic_energy_rate, general=True)
def kinetic_energy_rate(model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Rate of the kinetic energy ``dT/dt`` [W], (...)."""


@quantity((), energy.potential_energy_rate, general=True)
def potential_energy_rate(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Rate of the potential energy ``dU/dt`` [W], (...)."""


@quantity(("nv",), energy.generalized_force, read=FORCES, general=True)
def generalized_force(model: Model, q: ArrayLike, f_ext: Forces) -> Array:
    """Generalised force ``Q = Σ Jᵀ f``, (..., nv), equivalent to forces on bodies.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        f_ext: forces on bodies in base coordinates, as in ``inverse_dynamics``; ``applied_force``
            makes them from forces at points.
    """


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
        """Unaccounted power [W]: rounding errors, and what prescribed joints supply."""
        return self.kinetic + self.potential - self.joints - self.external


@register
def power_balance(
    model: Model, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, f_ext: Forces = None
) -> PowerBalance:
    """Power balance of the mechanism under given forces: power supplied, and rates of the energies.

    Args:
        model: the mechanism; loops are supported, their forces do no work.
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
