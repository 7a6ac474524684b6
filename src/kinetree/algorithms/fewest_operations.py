"""The formulations that generated code prefers: the same quantities in fewer operations.

Three devices, all exact: inertia moved towards the base where that cannot be noticed
(``model.views.condensed_view``), rotations about coordinate axes applied as such (``axial_view``),
and velocity terms by acceleration tensors (``rnea_tensor``). Forward dynamics takes the bias force
from the last of these and then solves ``H qdd = tau - C`` for a mechanism at rest, without gravity.
Derivatives come in two systems of coordinates: which of them is cheaper depends on the model.
"""

from kinetree.algorithms import (
    aba,
    aba_derivatives,
    coriolis,
    crba,
    ltl,
    minv,
    rnea,
    rnea_derivatives,
    rnea_tensor,
)
from kinetree.algorithms.honours import refuses, timed_joints
from kinetree.algorithms.rnea_derivatives import is_applicable
from kinetree.algorithms.sparsity import sparsity
from kinetree.model.views import axial_view, condensed_view, uncondensed_view


def as_built(algorithm):
    """Formulation of an algorithm that leaves every body's inertia as the model has it."""

    def of_model(model, *arrays, **options):
        return algorithm(uncondensed_view(model), *arrays, **options)

    of_model.as_built = algorithm
    return of_model


_SMALL = 10


def suits(model, algorithm) -> bool:
    """Whether an algorithm may take the fewest operations for a model, so that it is tried."""
    if hasattr(algorithm, "as_built"):  # zeros of large robots are not worth tracing all twice
        return model.nv <= _SMALL and suits(model, algorithm.as_built)
    if algorithm not in (forward_dynamics_by_inertia_matrix, inverse_mass_matrix_by_factors):
        return True
    return 100 * model.nv >= sparsity(model.expanded_parent).D2


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces ``tau = H(q) qdd + C(q, qd)``, (nv,), in few operations."""
    return rnea_tensor.inverse_dynamics(condensed_view(model), q, qd, qdd, f_ext)


def bias_force(model, q, qd, f_ext=None):
    """Bias force ``C(q, qd)``, gravity included, (nv,), in few operations."""
    return rnea_tensor.bias_force(condensed_view(model), q, qd, f_ext)


def gravity_force(model, q):
    """Gravity force ``C(q, 0)``, (nv,), in few operations."""
    return rnea.gravity_force(axial_view(condensed_view(model)), q)


def joint_space_inertia(model, q):
    """Joint-space inertia matrix ``H(q)``, (nv, nv), in few operations."""
    return crba.joint_space_inertia(axial_view(condensed_view(model)), q)


def inertia_factors(model, q):
    """Factors ``L``, ``D`` of ``H(q) = LᵀDL``, (nv, nv), in few operations."""
    return crba.inertia_factors(axial_view(condensed_view(model)), q)


def coriolis_matrix_by_axial_turns(model, q, qd):
    """Coriolis matrix ``C(q, qd)``, (nv, nv), with axial rotations factored out."""
    return coriolis.coriolis_matrix(axial_view(condensed_view(model)), q, qd)


def coriolis_matrix_in_root_coordinates(model, q, qd):
    """Coriolis matrix in root coordinates, (nv, nv); shorter for short chains."""
    if not is_applicable(model) or any(not j.constant_subspace for j in model.joint[1:]):
        return coriolis.coriolis_matrix(condensed_view(model), q, qd)
    return coriolis.coriolis_matrix_in_root_coordinates(condensed_view(model), q, qd)


def inverse_mass_matrix(model, q):
    """Inverse ``H(q)⁻¹`` of the inertia matrix, (nv, nv), in few operations."""
    return minv.inverse_mass_matrix(axial_view(condensed_view(model)), q)


def inverse_mass_matrix_by_factors(model, q):
    """Inverse ``H(q)⁻¹`` of the inertia matrix, (nv, nv), by its sparse factors."""
    return minv.inverse_mass_matrix_by_factors(axial_view(condensed_view(model)), q)


@refuses("loops", use="implicit.forward_dynamics")
def forward_dynamics_by_articulated_bodies(model, q, qd, tau, f_ext=None):
    """Joint accelerations (nv,) by articulated bodies of the mechanism at rest.

    Their bias forces are what the bodies need for their motion at ``qdd = 0``; velocities and
    gravity are in these and nowhere else.
    """
    if timed_joints(model):  # which are never at rest
        return aba.forward_dynamics(condensed_view(model), q, qd, tau, f_ext)
    if model.couplings:
        return forward_dynamics_by_inertia_matrix(model, q, qd, tau, f_ext)
    forces = rnea_tensor.inertia_forces(condensed_view(model), q, qd, model.zero_velocity, f_ext)
    return aba.accelerations_at_rest(axial_view(condensed_view(model)), q, tau, forces)


@refuses("loops", use="implicit.forward_dynamics")
def forward_dynamics_by_inertia_matrix(model, q, qd, tau, f_ext=None):
    """Joint accelerations (nv,) by the inertia matrix and its sparse factors."""
    L = inertia_factors(model, q)
    return ltl.solve_ltdl(L, model.expanded_parent, tau - bias_force(model, q, qd, f_ext))


def inverse_dynamics_derivatives(model, q, qd, qdd, f_ext=None, *, in_body_coordinates):
    """Derivatives of inverse dynamics, in the coordinates of each body or of one frame."""
    model, composite = _coordinates(model, in_body_coordinates)
    return rnea_derivatives.inverse_dynamics_derivatives(
        model, q, qd, qdd, f_ext, composite_bodies=composite
    )


def forward_dynamics_derivatives(model, q, qd, tau, f_ext=None, *, in_body_coordinates):
    """Derivatives of forward dynamics, in the coordinates of each body or of one frame."""
    model, composite = _coordinates(model, in_body_coordinates)
    return aba_derivatives.forward_dynamics_derivatives(
        model, q, qd, tau, f_ext, composite_bodies=composite
    )


def _coordinates(model, in_body_coordinates):
    """Model and composite-body function for body coordinates, or for those of one frame."""
    if in_body_coordinates:
        return axial_view(
            condensed_view(model)
        ), rnea_derivatives.composite_bodies_in_body_coordinates
    return condensed_view(model), rnea_derivatives.composite_bodies
