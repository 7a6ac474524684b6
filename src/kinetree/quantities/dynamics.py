"""The public functions: a model and arrays in, arrays out.

Every function broadcasts over leading axes: ``q`` is (..., nq); ``qd``, ``qdd`` and ``tau`` are
(..., nv). Results have the precision of the inputs. Angular parts come first in 6-vectors.
"""

import numpy as np

from kinetree.algorithms.closed import joint_space, maximal
from kinetree.arrays.batch import over_batch
from kinetree.arrays.functions import on_host
from kinetree.arrays.kinds import common, is_foreign
from kinetree.arrays.namespace import stacked_rows
from kinetree.codegen.program import Argument
from kinetree.errors import (
    ShapeError,
    SpatialTypeError,
    TraceError,
    UnknownNameError,
)
from kinetree.model.arrays import (
    as_configuration,
    as_given,
    as_joint_vector,
    as_model,
    check_finite,
)
from kinetree.quantities import closed_chains
from kinetree.quantities.functions import quantity, require_tree
from kinetree.spatial import Force, Motion

__all__ = [
    "bias_force",
    "christoffel",
    "coriolis_matrix",
    "forward_dynamics",
    "gravity_force",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "kinetic_energy",
    "mass_matrix",
    "passive_force",
    "potential_energy",
]


# --- dynamics ------------------------------------------------------------------------------------


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces that produce the accelerations ``qdd``: ``tau = H(q) qdd + C(q, qd)``.

    Args:
        model: the mechanism, without loops; for those that have them there is
            ``kinetree.loops.inverse_dynamics``. Armature takes its part of ``tau``; springs,
            dampers and friction are apart, see ``passive_force``.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        f_ext: forces acting on bodies [N·m, N], in base coordinates: a dict from the name of a body
            or frame to a ``Force`` or (..., 6), or an array (..., body_count, 6). ``applied_force``
            makes one from a force at a point.

    Returns:
        Joint forces [N, N·m], (..., nv).
    """
    if _no_forces(f_ext):
        return quantity(model, "inverse_dynamics").call(q, qd, qdd)
    forces = external_forces(model, f_ext)
    return quantity(model, "inverse_dynamics", ("f_ext",)).call(q, qd, qdd, forces)


def forward_dynamics(model, q, qd, tau, f_ext=None, method=None):
    """Joint accelerations that the joint forces ``tau`` produce.

    Args:
        model: the mechanism; loops are honoured.
        q: joint positions [m, rad], (..., nq). With loops, a configuration that closes them.
        qd: joint velocities [m/s, rad/s], (..., nv).
        tau: joint forces [N, N·m], (..., nv): those of the actuators plus ``passive_force``.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: ``"aba"``, the articulated-body algorithm, for joints that all have variables of
            their own; ``"crba"``, inertia matrix and sparse factorisation; ``"implicit"``, inertia
            matrix and constraints of loops, with ranks decided for every sample; ``"maximal"``, all
            bodies and all joint constraints at once, couplings among them. By default the quickest:
            compiled code, for loops by an order of elimination chosen for the model, and
            ``"implicit"`` for samples that it does not suit.

    Returns:
        Joint accelerations [m/s², rad/s²], (..., nv).
    """
    is_tree = not as_model(model).loops
    if method is None and is_tree and _no_forces(f_ext):
        return quantity(model, "forward_dynamics").call(q, qd, tau)
    if method is None and not is_tree:
        forces = () if _no_forces(f_ext) else (external_forces(model, f_ext),)
        return closed_chains.forward_dynamics(model, (q, qd, tau, *forces))
    method = method or "aba"
    if method in _CONSTRAINED:
        return _constrained_forward_dynamics(model, q, qd, tau, f_ext, method)
    if method not in ("aba", "crba"):
        raise UnknownNameError(
            f"forward_dynamics has no method {method!r}; use one of "
            f"{['aba', 'crba', *_CONSTRAINED]}"
        )
    require_tree(model, f"forward_dynamics(method={method!r})")
    if _no_forces(f_ext):
        return quantity(model, f"forward_dynamics_{method}").call(q, qd, tau)
    forces = external_forces(model, f_ext)
    return quantity(model, f"forward_dynamics_{method}", ("f_ext",)).call(q, qd, tau, forces)


_CONSTRAINED = {"implicit": joint_space.forward_dynamics, "maximal": maximal.forward_dynamics}


@on_host
def _constrained_forward_dynamics(model, q, qd, tau, f_ext, method):
    """With loops, on the host, one sample at a time."""
    if any(np.asarray(a).dtype == object for a in (q, qd, tau)):
        raise TraceError(
            f"forward_dynamics of model {model.name!r}, by method {method!r}, solves a general "
            f"linear system on the host and cannot be traced: call it outside the kernel, or "
            f"without a method, for an order of elimination that is chosen beforehand"
        )
    arguments = {
        "q": as_configuration(model, q),
        "qd": as_joint_vector(model, qd, "qd"),
        "tau": as_joint_vector(model, tau, "tau"),
    }
    if not _no_forces(f_ext):
        arguments["f_ext"] = external_forces(model, f_ext)

    def one(q, qd, tau, forces=None):
        forces = None if forces is None else [None, *(Force.from_array(f) for f in forces)]
        return _CONSTRAINED[method](model, q, qd, tau, forces)

    core = [1, 1, 1, 2][: len(arguments)]
    return over_batch(one, arguments, core=core, shape=(model.nv,))


def mass_matrix(model, q):
    """The joint-space inertia matrix ``H(q)``, symmetric and positive definite, (..., nv, nv)."""
    return quantity(model, "mass_matrix").call(q)


def inverse_mass_matrix(model, q):
    """``H(q)⁻¹``, (..., nv, nv)."""
    return quantity(model, "inverse_mass_matrix").call(q)


def bias_force(model, q, qd, f_ext=None):
    """``C(q, qd)``: joint forces at zero acceleration; gravity included, (..., nv)."""
    if _no_forces(f_ext):
        return quantity(model, "bias_force").call(q, qd)
    return quantity(model, "bias_force", ("f_ext",)).call(q, qd, external_forces(model, f_ext))


def gravity_force(model, q):
    """Joint forces that hold the mechanism against gravity, ``C(q, 0)``, (..., nv).

    Joints that time moves do so all the same, and their part is in it.
    """
    return quantity(model, "gravity_force").call(q)


def passive_force(model, q, qd):
    """Joint forces of springs, dampers and dry friction, ``-k Δ - d qd - c sign(qd)``, (..., nv).

    They come with the joints (``JointDynamics``) and count as part of ``tau``. So the actuators
    must supply ``inverse_dynamics(...) - passive_force(...)``, and ``forward_dynamics`` is told
    their force plus this one. ``Δ`` is the displacement from the rest position,
    ``model.difference`` joint by joint; dry friction is zero at rest.
    """
    return quantity(model, "passive_force").call(q, qd)


def coriolis_matrix(model, q, qd):
    """A matrix ``C`` with ``C qd`` the velocity terms of the bias force, (..., nv, nv).

    Of the many such matrices this is one for which ``dH/dt - 2C`` is skew-symmetric. Where time
    moves a joint there is none that does both, and ``JointError`` says so.
    """
    return quantity(model, "coriolis_matrix").call(q, qd)


def christoffel(model, q):
    """Coefficients of the velocity products, ``C_ij = Σ Γ_ijk qd_k``, (..., nv, nv, nv).

    Where ``qd`` is the derivative of ``q`` these are the Christoffel symbols of the first kind.
    """
    return quantity(model, "christoffel").call(q)


# --- energy --------------------------------------------------------------------------------------


def kinetic_energy(model, q, qd):
    """Kinetic energy [J], that of the armature included, (...)."""
    return quantity(model, "kinetic_energy").call(q, qd)


def potential_energy(model, q):
    """Potential energy in the gravity field [J], zero at the base origin; no springs, (...)."""
    return quantity(model, "potential_energy").call(q)


# --- checking -----------------------------------------------------------------------


def _no_forces(f_ext):
    return f_ext is None or (isinstance(f_ext, dict) and not f_ext)


def external_forces(model, f_ext):
    """External forces as one array (..., body_count, 6), in the order of the bodies."""
    if isinstance(f_ext, dict):
        forces = {name: _force(name, f) for name, f in f_ext.items()}
        if any(map(is_foreign, forces.values())):
            return _stacked(model, forces)
        array = np.zeros((*_common_batch(forces), model.body_count, 6), _common_type(forces))
        for name, f in forces.items():
            i = model.frame(name).body
            if i > 0:  # the base takes any force without moving
                array[..., i - 1, :] = array[..., i - 1, :] + f
        return array
    if isinstance(f_ext, (list, tuple)) and any(isinstance(f, (Force, Motion)) for f in f_ext):
        f_ext = [_force(f"body {i}", f) for i, f in enumerate(f_ext, start=1)]
    array = as_given(f_ext, "f_ext")
    if array.ndim < 2 or array.shape[-2:] != (model.body_count, 6):
        raise ShapeError(
            f"f_ext must be a dict from body name to (..., 6), or an array (..., body_count, 6) "
            f"with body_count = {model.body_count}; got shape {array.shape}"
        )
    return check_finite(array, "f_ext", core=2)


def _stacked(model, forces):
    """The same for forces that are arrays of another library."""
    common("f_ext", [Argument(name, (6,)) for name in forces], list(forces.values()))
    rows = {}
    for name, f in forces.items():
        i = model.frame(name).body
        if i > 0:
            rows[i - 1] = rows[i - 1] + f if i - 1 in rows else f
    return stacked_rows(rows, model.body_count)


def _force(name, f):
    if isinstance(f, Motion):
        raise SpatialTypeError(f"f_ext[{name!r}] must be a Force or (..., 6), got a Motion")
    f = as_given(f.to_array() if isinstance(f, Force) else f, f"f_ext[{name!r}]")
    if f.ndim == 0 or f.shape[-1] != 6:
        raise ShapeError(f"f_ext[{name!r}] must have shape (..., 6), moment first, got {f.shape}")
    return check_finite(f, f"f_ext[{name!r}]")


def _common_batch(forces):
    shapes = {name: f.shape[:-1] for name, f in forces.items()}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise ShapeError(
            f"batch axes of the forces in f_ext do not broadcast against each other: {shapes}"
        ) from None


def _common_type(forces):
    return np.result_type(*(f.dtype for f in forces.values()))
