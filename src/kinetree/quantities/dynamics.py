"""The public functions: a model and arrays in, arrays out.

Every function broadcasts over leading axes: ``q`` is (..., nq); ``qd``, ``qdd`` and ``tau`` are
(..., nv). Results have the precision of the inputs. Angular parts come first in 6-vectors.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kinetree.algorithms import aba, coriolis, coupled, crba, energy, minv, passive, rnea
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.closed import joint_space, maximal
from kinetree.algorithms.closed.allowed_motion import require_unmoved
from kinetree.algorithms.crba import require_independent_joints
from kinetree.arrays.batch import over_batch
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import TraceError, UnknownNameError, calling
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.define import quantity, require_tree
from kinetree.model.general.gears import solve_positive
from kinetree.quantities import closed_chains
from kinetree.quantities.external_forces import external_forces
from kinetree.quantities.loops import coordinate_count, none_kept, with_loops
from kinetree.spatial import Force

__all__ = [
    "bias_force", "christoffel", "coriolis_matrix", "forward_dynamics", "gravity_force",
    "inverse_dynamics", "inverse_mass_matrix", "kinetic_energy", "mass_matrix", "passive_force",
    "potential_energy",
]  # fmt: skip

Forces = ArrayLike | dict[str, Any] | None
"""Forces on bodies: an array (..., body_count, 6), or ``Force``s and (..., 6) by name."""

FORCES = {"f_ext": external_forces}


def _with_both(text, lean):
    """Formulations of an algorithm: plain, lean, and with inertias unmoved."""
    return text, lean, fewest.as_built(lean)


@coupled.for_couplings
def _geared_forward_dynamics(gears, q, qd, tau, f_ext=None):
    """Accelerations of independent variables of a model with linear couplings, (..., nv)."""
    q, qd = gears.positions(q), gears.velocities(qd)
    C = gears.forces(q, qd, 0 * qd, *(() if f_ext is None else (f_ext,)))
    return solve_positive(gears.inertia(q), (tau - C)[..., None])[..., 0]


@coupled.for_couplings
def _geared_inertia(gears, q):
    """Inertia matrix of a model with linear couplings, (..., nv, nv)."""
    return gears.inertia(gears.positions(q))


@coupled.for_couplings
def _geared_inverse_inertia(gears, q):
    """Inverse inertia matrix of a model with linear couplings, (..., nv, nv)."""
    H = gears.inertia(gears.positions(q))
    return solve_positive(H, np.broadcast_to(np.eye(H.shape[-1], dtype=H.dtype), H.shape))


# --- equations of motion -------------------------------------------------------------------------


def _inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Inverse dynamics for calls without compiled code, or with loops."""
    if not as_model(model).is_constrained:
        return inverse_dynamics.definition(model, q, qd, qdd, f_ext)
    forces = () if f_ext is None else (external_forces(model, f_ext),)
    return closed_chains.inverse_dynamics(model, (q, qd, qdd, *forces))


@quantity(
    ("nv",),
    *_with_both(rnea.inverse_dynamics, fewest.inverse_dynamics),
    tree=True,
    read=FORCES,
    suits=fewest.suits,
    general=True,
    calls=coupled.called_inverse_dynamics,
    gears=True,
    otherwise=_inverse_dynamics,
)
def inverse_dynamics(
    model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, f_ext: Forces = None
) -> Array:
    """Joint forces that produce the accelerations ``qdd``: ``tau = H(q) qdd + C(q, qd)``.

    Args:
        model: the mechanism. Armature is included; forces of springs, dampers and friction are
            not, see ``passive_force``. With loops, the result contains the smallest forces of the
            actuated joints, and the passive forces; ``kinetree.loops.inverse_dynamics`` has
            options.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        f_ext: forces acting on bodies [N·m, N], in base coordinates: a dict from the name of a body
            or frame to a ``Force`` or (..., 6), or an array (..., body_count, 6). ``applied_force``
            makes one from a force at a point.

    Returns:
        Joint forces [N, N·m], (..., nv).
    """


def _forward_dynamics(model, q, qd, tau, f_ext=None, method=None):
    """Forward dynamics for calls without compiled code, or with a chosen method."""
    if method is None and not as_model(model).is_constrained:
        return forward_dynamics.definition(model, q, qd, tau, f_ext)
    if method is None:
        forces = () if f_ext is None else (external_forces(model, f_ext),)
        return closed_chains.forward_dynamics(model, (q, qd, tau, *forces))
    if method in _BY_NUMPY:
        return _forward_dynamics_by_numpy(model, q, qd, tau, f_ext, method)
    if method not in BY_METHOD:
        raise UnknownNameError(
            f"forward_dynamics has no method {method!r}; use one of {[*BY_METHOD, *_BY_NUMPY]}"
        )
    require_tree(as_model(model), f"forward_dynamics(method={method!r})")
    return BY_METHOD[method](model, q, qd, tau, f_ext)


@quantity(
    ("nv",),
    aba.forward_dynamics,
    fewest.forward_dynamics_by_articulated_bodies,
    fewest.forward_dynamics_by_inertia_matrix,
    fewest.as_built(fewest.forward_dynamics_by_inertia_matrix),
    tree=True,
    needs=(require_independent_joints,),
    inverts_inertia=True,
    read=FORCES,
    selects=("method",),
    suits=fewest.suits,
    general=True,
    calls=coupled.called_forward_dynamics,
    gears=_geared_forward_dynamics,
    otherwise=_forward_dynamics,
)
def forward_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    f_ext: Forces = None,
    method: str | None = None,
) -> Array:
    """Joint accelerations that the joint forces ``tau`` produce.

    Args:
        model: the mechanism; loops are supported.
        q: joint positions [m, rad], (..., nq). With loops, a configuration that closes them.
        qd: joint velocities [m/s, rad/s], (..., nv).
        tau: joint forces [N, N·m], (..., nv): those of the actuators plus ``passive_force``.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: ``"aba"``, the articulated-body algorithm, for joints that all have independent
            variables; ``"crba"``, inertia matrix and sparse factorisation; ``"implicit"``, inertia
            matrix and constraints of loops, with ranks decided for every sample; ``"maximal"``, all
            bodies and all joint constraints at once, couplings among them. By default the quickest:
            compiled code, for loops by an order of elimination chosen for the model, and
            ``"implicit"`` for samples that it does not suit.

    Returns:
        Joint accelerations [m/s², rad/s²], (..., nv).
    """


def _by_method(algorithm):
    """Quantity of forward dynamics by one algorithm."""
    return quantity(
        ("nv",),
        algorithm,
        needs=(require_independent_joints,),
        read=FORCES,
        called="forward_dynamics",
        public=False,
    )


@_by_method(aba.forward_dynamics)
def _forward_dynamics_aba(model, q, qd, tau, f_ext=None) -> Any:
    """Accelerations by articulated bodies."""


@_by_method(crba.forward_dynamics)
def _forward_dynamics_crba(model, q, qd, tau, f_ext=None) -> Any:
    """Accelerations by the inertia matrix and its sparse factors."""


BY_METHOD = {"aba": _forward_dynamics_aba, "crba": _forward_dynamics_crba}
_BY_NUMPY = {"implicit": joint_space.forward_dynamics, "maximal": maximal.forward_dynamics}


@on_host
def _forward_dynamics_by_numpy(model, q, qd, tau, f_ext, method):
    """Forward dynamics with ranks decided by numbers, one sample at a time."""
    if any(np.asarray(a).dtype == object for a in (q, qd, tau)):
        raise TraceError(
            f"forward_dynamics of model {model.name!r}, by method {method!r}, solves a general "
            f"linear system on the CPU, in Python, and cannot be traced: call it outside the "
            f"kernel, or without a method, for an order of elimination that is chosen beforehand"
        )
    arguments = {
        "q": as_configuration(model, q),
        "qd": as_joint_vector(model, qd, "qd"),
        "tau": as_joint_vector(model, tau, "tau"),
    }
    if f_ext is not None:
        arguments["f_ext"] = external_forces(model, f_ext)

    def one(q, qd, tau, forces=None):
        forces = None if forces is None else [None, *(Force.from_array(f) for f in forces)]
        return _BY_NUMPY[method](model, q, qd, tau, forces)

    core = [1, 1, 1, 2][: len(arguments)]
    return over_batch(one, arguments, core=core, shape=(model.nv,))


# --- coefficients of the equation of motion ------------------------------------------------------
# With loops, these are the coefficients for the independent coordinates ``y``, with
# ``qd = G yd`` (``algorithms.closed.independent``): which variables these are is chosen once for a
# model, and ``independent`` names others.

Names = str | Sequence[str] | None
"""Names of joints, or of single variables such as ``"ball[1]"``."""


@quantity(
    (coordinate_count, coordinate_count),
    *_with_both(crba.joint_space_inertia, fewest.joint_space_inertia),
    tree=True,
    suits=fewest.suits,
    general=True,
    calls=coupled.called_inertia,
    gears=_geared_inertia,
    selects=("independent",),
    serve=with_loops(lambda at: at.inertia),
)
def mass_matrix(model: Model, q: ArrayLike, *, independent: Names = None) -> Array:
    """The joint-space inertia matrix ``H(q)``, symmetric and positive definite, (..., nv, nv).

    Args:
        model: the mechanism. With loops, the matrix is that of its independent coordinates ``y``,
            ``Gᵀ H G`` with ``qd = G yd``, (..., p, p); ``kinetree.loops.null_space`` has ``G``.
        q: joint positions, (..., nq); with loops, a configuration that closes them.
        independent: of a mechanism with loops, names of the joints whose variables are ``y``, those
            that close loops among them, or of single variables (``"ball[1]"``);
            ``kinetree.loops.independent(model)`` if left out.
    """


@quantity(
    ("nv", "nv"),
    minv.inverse_mass_matrix,
    fewest.inverse_mass_matrix,
    fewest.inverse_mass_matrix_by_factors,
    tree=True,
    needs=(require_independent_joints,),
    inverts_inertia=True,
    suits=fewest.suits,
    general=lambda options: minv.inverse_mass_matrix_by_columns,
    gears=_geared_inverse_inertia,
    serve=with_loops(lambda at: at.response(np.eye(at.model.nv, dtype=int)), none_kept),
)
def inverse_mass_matrix(model: Model, q: ArrayLike) -> Array:
    """Inverse mass matrix ``H(q)⁻¹``, (..., nv, nv): joint accelerations per joint force.

    With loops it is ``G (Gᵀ H G)⁻¹ Gᵀ``, whatever the coordinates, and singular: forces that the
    loops carry accelerate nothing.
    """


@quantity(
    (coordinate_count,),
    *_with_both(rnea.bias_force, fewest.bias_force),
    tree=True,
    read=FORCES,
    suits=fewest.suits,
    general=True,
    calls=coupled.called_bias_force,
    gears=True,
    selects=("independent",),
    serve=with_loops(lambda at, f_ext=None: at.bias(f_ext)),
)
def bias_force(
    model: Model, q: ArrayLike, qd: ArrayLike, f_ext: Forces = None, *, independent: Names = None
) -> Array:
    """Bias force ``C(q, qd)``: joint forces at zero acceleration, gravity included, (..., nv).

    With loops, ``Gᵀ (C + H g)`` of the coordinates ``y`` of ``mass_matrix``, (..., p): the equation
    of motion is ``mass_matrix @ ydd + bias_force = Gᵀ tau``.
    """


def _gravity_force(model, q):
    """Gravity force for calls without compiled code, or with loops."""
    if not as_model(model).is_constrained:
        return gravity_force.definition(model, q)
    with calling("gravity_force"):
        require_unmoved(model, "a force that holds the mechanism still")
        rest = np.zeros(model.nv)
        return closed_chains.inverse_dynamics(model, (q, rest, rest))


@quantity(
    ("nv",),
    *_with_both(rnea.gravity_force, fewest.gravity_force),
    tree=True,
    suits=fewest.suits,
    general=True,
    calls=coupled.called_gravity_force,
    gears=True,
    otherwise=_gravity_force,
)
def gravity_force(model: Model, q: ArrayLike) -> Array:
    """Joint forces that balance gravity, ``∂U/∂q``, (..., nv).

    Without prescribed joints this is ``C(q, 0)``. What the motion of prescribed joints requires is
    not included; ``bias_force`` at ``qd = 0`` has both. With loops, many forces balance gravity:
    these are the ones that ``inverse_dynamics`` finds at rest, the smallest of the actuated joints
    with those of springs in the joints; prescribed joints and moving constraints raise an error.
    """


def _has_joints_alone(model, options):
    """Whether all passive forces are those of tree joints."""
    others = model.loops or model.tendons or model.gravity_compensation or model.fluid_forces
    return not others and all(joint.nq <= 7 for joint in model.joint[1:])


@quantity(("nv",), passive.passive_force, general=True, general_for=_has_joints_alone)
def passive_force(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Joint forces of springs, dampers and dry friction, ``-k Δ - d qd - c sign(qd)``, (..., nv).

    These are the forces of joints (``JointDynamics``), tendons (``Tendon``),
    ``GravityCompensation`` and fluids (``FluidForce``). They count as part of ``tau``: the
    actuators must supply ``inverse_dynamics(...) - passive_force(...)``, and ``tau`` of
    ``forward_dynamics`` is their force plus this one. ``Δ`` is the displacement from the rest
    position, ``model.difference`` joint by joint; dry friction is zero at rest.
    """


@quantity(
    (coordinate_count, coordinate_count),
    coriolis.coriolis_matrix,
    fewest.coriolis_matrix_in_root_coordinates,
    fewest.coriolis_matrix_by_axial_turns,
    tree=True,
    general=True,
    gears=True,
    selects=("independent",),
    serve=with_loops(lambda at: at.coriolis()),
)
def coriolis_matrix(
    model: Model, q: ArrayLike, qd: ArrayLike, *, independent: Names = None
) -> Array:
    """Coriolis matrix ``C`` with ``C qd`` the velocity terms, (..., nv, nv).

    Of the many such matrices this is one for which ``dH/dt - 2C`` is skew-symmetric. With
    prescribed joints no matrix does both, and ``JointError`` is raised. With loops it belongs to
    the coordinates ``y`` of ``mass_matrix``, (..., p, p), and ``C yd`` are the velocity terms.
    """


@quantity(
    (coordinate_count, coordinate_count, coordinate_count),
    coriolis.christoffel,
    tree=True,
    general=lambda options: coriolis.christoffel_by_planes,
    gears=True,
    selects=("independent",),
    serve=with_loops(lambda at: at.christoffel()),
)
def christoffel(model: Model, q: ArrayLike, *, independent: Names = None) -> Array:
    """Christoffel symbols with ``C_ij = Σ Γ_ijk qd_k``, (..., nv, nv, nv).

    Where ``qd`` is the derivative of ``q`` these are the Christoffel symbols of the first kind;
    with loops, those of the inertia matrix of the coordinates ``y`` of ``mass_matrix``,
    (..., p, p, p).
    """


# --- energy --------------------------------------------------------------------------------------


@quantity((), energy.kinetic_energy, general=True)
def kinetic_energy(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Kinetic energy ``T`` [J], that of the armature and of prescribed motion included, (...).

    ``T = ½ qdᵀ H qd``; with prescribed joints ``½ qdᵀ H qd + p(q, 0)·qd + T(q, 0)``, with ``p``
    from ``generalized_momentum``.
    """


@quantity((), energy.potential_energy, general=True)
def potential_energy(model: Model, q: ArrayLike) -> Array:
    """Potential energy in the gravity field [J], zero at the base origin; no springs, (...)."""
