"""The public functions: a model and arrays in, arrays out.

Every function broadcasts over leading axes: ``q`` is (..., nq); ``qd``, ``qdd`` and ``tau`` are
(..., nv). Results have the precision of the inputs. Angular parts come first in 6-vectors.
"""

import numpy as np

from kinetree.algorithms import implicit, maximal
from kinetree.batch import over_batch
from kinetree.errors import ShapeError, SpatialTypeError, TraceError, UnknownNameError
from kinetree.functions import quantity, require_tree
from kinetree.model.arrays import (
    as_configuration,
    as_joint_vector,
    as_model,
    as_numbers,
    check_finite,
)
from kinetree.spatial import Force, Motion

__all__ = [
    "acceleration",
    "bias_force",
    "center_of_mass",
    "christoffel",
    "coriolis_matrix",
    "forward_dynamics",
    "gravity_force",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_rate",
    "kinetic_energy",
    "mass_matrix",
    "momentum",
    "operational_space_inertia",
    "passive_force",
    "pose",
    "potential_energy",
    "velocity",
]


# --- dynamics ------------------------------------------------------------------------------------


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces that produce the accelerations ``qdd``: ``tau = H(q) qdd + C(q, qd)``.

    Args:
        model: the mechanism, without loops and couplings. Armature takes its part of ``tau``;
            springs, dampers and friction are apart, see ``passive_force``.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        f_ext: forces acting on bodies [N·m, N], in base coordinates: a dict from body name to
            a ``Force`` or (..., 6), or an array (..., body_count, 6).

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
        model: the mechanism; loops and couplings are honoured.
        q: joint positions [m, rad], (..., nq). With loops or couplings, a configuration that
            satisfies them.
        qd: joint velocities [m/s, rad/s], (..., nv).
        tau: joint forces [N, N·m], (..., nv): those of the actuators plus ``passive_force``.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: ``"aba"``, the articulated-body algorithm; ``"crba"``, inertia matrix and sparse
            factorisation; ``"implicit"``, inertia matrix and constraints of loops and couplings;
            ``"maximal"``, all bodies and all joint constraints at once. By default ``"aba"`` for
            trees and ``"implicit"`` for mechanisms with loops or couplings.

    Returns:
        Joint accelerations [m/s², rad/s²], (..., nv).
    """
    is_tree = not (as_model(model).loops or model.couplings)
    if method is None and is_tree and _no_forces(f_ext):
        return quantity(model, "forward_dynamics").call(q, qd, tau)
    method = method or ("aba" if is_tree else "implicit")
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


_CONSTRAINED = {"implicit": implicit.forward_dynamics, "maximal": maximal.forward_dynamics}


def _constrained_forward_dynamics(model, q, qd, tau, f_ext, method):
    """With loops and couplings, on the host, one sample at a time."""
    if any(np.asarray(a).dtype == object for a in (q, qd, tau)):
        raise TraceError(
            f"forward_dynamics of model {model.name!r}, by method {method!r}, solves a general "
            f"linear system on the host and cannot be traced: call it outside the kernel; "
            f"model.replace(loops=(), couplings=()) is the spanning tree alone"
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
    """Joint forces that hold the mechanism against gravity, (..., nv)."""
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

    Of the many such matrices this is one for which ``dH/dt - 2C`` is skew-symmetric.
    """
    return quantity(model, "coriolis_matrix").call(q, qd)


def christoffel(model, q):
    """Coefficients of the velocity products, ``C_ij = Σ Γ_ijk qd_k``, (..., nv, nv, nv).

    Where ``qd`` is the derivative of ``q`` these are the Christoffel symbols of the first kind.
    """
    return quantity(model, "christoffel").call(q)


def operational_space_inertia(model, q, frame):
    """``(J H⁻¹ Jᵀ)⁻¹``: the inertia felt at a frame, in its own coordinates, (..., 6, 6)."""
    as_model(model).frame(frame)
    return quantity(model, "operational_space_inertia", of=frame).call(q)


# --- kinematics ----------------------------------------------------------------------------------


def pose(model, q, frame):
    """Pose of a frame in the base: a homogeneous matrix (..., 4, 4) that maps its coordinates."""
    as_model(model).frame(frame)
    return quantity(model, "pose", of=frame).call(q)


def jacobian(model, q, name, *, frame, point=None):
    """Jacobian of a frame or body: its velocity is ``J @ qd``, (..., 6, nv).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        name: name of the frame or body.
        frame: ``"world"``: spatial velocity in base coordinates; ``"body"``: in the frame's own
            coordinates; ``"aligned"``: at the frame's origin, along the axes of the base.
        point: a point fixed to the frame [m], (3,), to take the place of its origin; not with
            ``frame="world"``.
    """
    return _of_frame(model, "jacobian", (q,), name, frame, point)


def jacobian_rate(model, q, qd, name, *, frame, point=None):
    """Time derivative of ``jacobian`` when the mechanism moves at ``qd``, (..., 6, nv)."""
    return _of_frame(model, "jacobian_rate", (q, qd), name, frame, point)


def velocity(model, q, qd, name, *, frame="world", point=None):
    """Spatial velocity of a frame or body, (..., 6); ``frame`` and ``point`` as in ``jacobian``."""
    return _of_frame(model, "velocity", (q, qd), name, frame, point)


def acceleration(model, q, qd, qdd, name, *, kind="spatial", frame="world", point=None):
    """Acceleration of a frame or body, (..., 6); ``frame`` and ``point`` as in ``jacobian``.

    ``kind="spatial"`` is the rate of the spatial velocity; ``kind="classical"`` has the
    acceleration of the reference point as its linear part.
    """
    if kind not in ("spatial", "classical"):
        raise UnknownNameError(f"acceleration has no kind {kind!r}; use 'spatial' or 'classical'")
    return _of_frame(model, "acceleration", (q, qd, qdd), name, frame, point, kind=kind)


# --- energy and momentum -------------------------------------------------------------------------


def kinetic_energy(model, q, qd):
    """Kinetic energy [J], that of the armature included, (...)."""
    return quantity(model, "kinetic_energy").call(q, qd)


def potential_energy(model, q):
    """Potential energy in the gravity field [J], zero at the base origin; no springs, (...)."""
    return quantity(model, "potential_energy").call(q)


def momentum(model, q, qd):
    """Total spatial momentum about the base origin, moment first [N·m·s, N·s], (..., 6).

    That of the bodies alone: armature has no part in it.
    """
    return quantity(model, "momentum").call(q, qd)


def center_of_mass(model, q):
    """Centre of mass of all moving bodies in base coordinates [m], (..., 3)."""
    return quantity(model, "center_of_mass").call(q)


# --- checking -----------------------------------------------------------------------


def _of_frame(model, function, arrays, name, frame, point, **options):
    """A quantity of the frame or body ``name``, in the coordinates that ``frame`` asks for."""
    as_model(model).frame(name)
    point = _reference(frame, point)
    options = {"of": name, "reference": frame, **options}
    if point is None:
        return quantity(model, function, **options).call(*arrays)
    return quantity(model, function, ("point",), **options).call(*arrays, point)


def _no_forces(f_ext):
    return f_ext is None or (isinstance(f_ext, dict) and not f_ext)


def external_forces(model, f_ext):
    """External forces as one array (..., body_count, 6), in the order of the bodies."""
    if isinstance(f_ext, dict):
        rows = {model.body_index(name): _force(name, f) for name, f in f_ext.items()}
        array = np.zeros((*_common_batch(f_ext, rows), model.body_count, 6), _common_type(rows))
        for i, f in rows.items():
            if i > 0:  # the base takes any force without moving
                array[..., i - 1, :] = f
        return array
    if isinstance(f_ext, (list, tuple)) and any(isinstance(f, (Force, Motion)) for f in f_ext):
        f_ext = [_force(f"body {i}", f) for i, f in enumerate(f_ext, start=1)]
    array = as_numbers(f_ext, "f_ext")
    if array.ndim < 2 or array.shape[-2:] != (model.body_count, 6):
        raise ShapeError(
            f"f_ext must be a dict from body name to (..., 6), or an array (..., body_count, 6) "
            f"with body_count = {model.body_count}; got shape {array.shape}"
        )
    return check_finite(array, "f_ext", core=2)


def _force(name, f):
    if isinstance(f, Motion):
        raise SpatialTypeError(f"f_ext[{name!r}] must be a Force or (..., 6), got a Motion")
    f = as_numbers(f.to_array() if isinstance(f, Force) else f, f"f_ext[{name!r}]")
    if f.ndim == 0 or f.shape[-1] != 6:
        raise ShapeError(f"f_ext[{name!r}] must have shape (..., 6), moment first, got {f.shape}")
    return check_finite(f, f"f_ext[{name!r}]")


def _common_batch(f_ext, rows):
    shapes = {name: f.shape[:-1] for name, f in zip(f_ext, rows.values(), strict=True)}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise ShapeError(
            f"batch axes of the forces in f_ext do not broadcast against each other: {shapes}"
        ) from None


def _common_type(rows):
    return np.result_type(*(f.dtype for f in rows.values()))


def _reference(frame, point):
    if frame not in ("world", "body", "aligned"):
        raise UnknownNameError(
            f"frame must be 'world', 'body' or 'aligned', got {frame!r}; the frame or body whose "
            f"motion is wanted comes before it"
        )
    if point is None:
        return None
    if frame == "world":
        raise ShapeError(
            "frame='world' gives the spatial velocity at the base origin, the same for every "
            "point of the body; use frame='aligned' for the velocity of a point"
        )
    point = as_numbers(point, "point")
    if point.shape[-1:] != (3,):
        raise ShapeError(f"point must have 3 coordinates, (..., 3), got shape {point.shape}")
    return check_finite(point, "point")
