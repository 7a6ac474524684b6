"""The public functions: a model and arrays in, arrays out.

Every function broadcasts over leading axes: ``q`` is (..., nq); ``qd``, ``qdd`` and ``tau`` are
(..., nv). Results have the precision of the inputs. Angular parts come first in 6-vectors.
"""

import numpy as np

from kinetree.algorithms import (
    aba,
    coriolis,
    crba,
    energy,
    jacobians,
    maximal,
    minv,
    projection,
    rnea,
)
from kinetree.algorithms import momentum as momentum_
from kinetree.batch import over_batch
from kinetree.errors import LoopError, ShapeError, SpatialTypeError, UnknownNameError
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
    "pose",
    "potential_energy",
    "velocity",
]


# --- dynamics ------------------------------------------------------------------------------------


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces that produce the accelerations ``qdd``: ``tau = H(q) qdd + C(q, qd)``.

    Args:
        model: the mechanism, without loops.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        f_ext: forces acting on bodies [N·m, N], in base coordinates: a dict from body name to
            a ``Force`` or (..., 6), or an array (..., body_count, 6).

    Returns:
        Joint forces [N, N·m], (..., nv).
    """
    _require_tree(model, "inverse_dynamics")
    arguments = _state(model, q, qd, qdd=qdd)
    return _with_external(rnea.inverse_dynamics, model, arguments, f_ext, (model.nv,))


def forward_dynamics(model, q, qd, tau, f_ext=None, method=None):
    """Joint accelerations that the joint forces ``tau`` produce.

    Args:
        model: the mechanism; loops are honoured.
        q: joint positions [m, rad], (..., nq). With loops, a configuration that closes them.
        qd: joint velocities [m/s, rad/s], (..., nv).
        tau: joint forces [N, N·m], (..., nv).
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        method: ``"aba"``, the articulated-body algorithm; ``"crba"``, inertia matrix and sparse
            factorisation; ``"maximal"``, all bodies and all joint constraints at once. By default
            ``"aba"`` for trees and ``"maximal"`` for mechanisms with loops.

    Returns:
        Joint accelerations [m/s², rad/s²], (..., nv).
    """
    methods = {
        "aba": aba.forward_dynamics,
        "crba": crba.forward_dynamics,
        "maximal": maximal.forward_dynamics,
    }
    method = method or ("maximal" if as_model(model).loops else "aba")
    if method not in list(methods):
        raise UnknownNameError(
            f"forward_dynamics has no method {method!r}; use one of {list(methods)}"
        )
    if method != "maximal":
        _require_tree(model, f"forward_dynamics(method={method!r})")
    arguments = _state(model, q, qd, tau=tau)
    return _with_external(methods[method], model, arguments, f_ext, (model.nv,))


def mass_matrix(model, q):
    """The joint-space inertia matrix ``H(q)``, symmetric and positive definite, (..., nv, nv)."""
    _require_tree(model, "mass_matrix")
    return _over(crba.joint_space_inertia, model, _position(model, q), (model.nv, model.nv))


def inverse_mass_matrix(model, q):
    """``H(q)⁻¹``, (..., nv, nv)."""
    _require_tree(model, "inverse_mass_matrix")
    return _over(minv.inverse_mass_matrix, model, _position(model, q), (model.nv, model.nv))


def bias_force(model, q, qd, f_ext=None):
    """``C(q, qd)``: joint forces at zero acceleration; gravity included, (..., nv)."""
    _require_tree(model, "bias_force")
    return _with_external(rnea.bias_force, model, _state(model, q, qd), f_ext, (model.nv,))


def gravity_force(model, q):
    """Joint forces that hold the mechanism against gravity, (..., nv)."""
    _require_tree(model, "gravity_force")
    return _over(rnea.gravity_force, model, _position(model, q), (model.nv,))


def coriolis_matrix(model, q, qd):
    """A matrix ``C`` with ``C qd`` the velocity terms of the bias force, (..., nv, nv).

    Of the many such matrices this is one for which ``dH/dt - 2C`` is skew-symmetric.
    """
    _require_tree(model, "coriolis_matrix")
    return _over(coriolis.coriolis_matrix, model, _state(model, q, qd), (model.nv, model.nv))


def christoffel(model, q):
    """Coefficients of the velocity products, ``C_ij = Σ Γ_ijk qd_k``, (..., nv, nv, nv).

    Where ``qd`` is the derivative of ``q`` these are the Christoffel symbols of the first kind.
    """
    _require_tree(model, "christoffel")
    return _over(coriolis.christoffel, model, _position(model, q), (model.nv,) * 3)


def operational_space_inertia(model, q, frame):
    """``(J H⁻¹ Jᵀ)⁻¹``: the inertia felt at a frame, in its own coordinates, (..., 6, 6)."""
    _require_tree(model, "operational_space_inertia")
    frame = _frame(model, frame)
    return _over(
        lambda model, q: projection.operational_space_inertia(model, q, frame),
        model,
        _position(model, q),
        (6, 6),
    )


# --- kinematics ----------------------------------------------------------------------------------


def pose(model, q, frame):
    """Pose of a frame in the base: a homogeneous matrix (..., 4, 4) that maps its coordinates."""
    frame = _frame(model, frame)
    return _over(
        lambda model, q: jacobians.frame_pose(model, q, frame), model, _position(model, q), (4, 4)
    )


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
    where, point = _frame(model, name), _reference(frame, point)
    return _over(
        lambda model, q: jacobians.frame_jacobian(model, q, where, frame, point),
        model,
        _position(model, q),
        (6, model.nv),
    )


def jacobian_rate(model, q, qd, name, *, frame, point=None):
    """Time derivative of ``jacobian`` when the mechanism moves at ``qd``, (..., 6, nv)."""
    where, point = _frame(model, name), _reference(frame, point)
    return _over(
        lambda model, q, qd: jacobians.frame_jacobian_rate(model, q, qd, where, frame, point),
        model,
        _state(model, q, qd),
        (6, model.nv),
    )


def velocity(model, q, qd, name, *, frame="world", point=None):
    """Spatial velocity of a frame or body, (..., 6); ``frame`` and ``point`` as in ``jacobian``."""
    where, point = _frame(model, name), _reference(frame, point)
    return _over(
        lambda model, q, qd: jacobians.frame_velocity(model, q, qd, where, frame, point),
        model,
        _state(model, q, qd),
        (6,),
    )


def acceleration(model, q, qd, qdd, name, *, kind="spatial", frame="world", point=None):
    """Acceleration of a frame or body, (..., 6); ``frame`` and ``point`` as in ``jacobian``.

    ``kind="spatial"`` is the rate of the spatial velocity; ``kind="classical"`` has the
    acceleration of the reference point as its linear part.
    """
    if kind not in ("spatial", "classical"):
        raise UnknownNameError(f"acceleration has no kind {kind!r}; use 'spatial' or 'classical'")
    where, point = _frame(model, name), _reference(frame, point)

    def one(model, q, qd, qdd):
        return jacobians.frame_acceleration(model, q, qd, qdd, where, frame, kind, point)

    return _over(one, model, _state(model, q, qd, qdd=qdd), (6,))


# --- energy and momentum -------------------------------------------------------------------------


def kinetic_energy(model, q, qd):
    """Kinetic energy [J], (...)."""
    return _over(energy.kinetic_energy, model, _state(model, q, qd), ())


def potential_energy(model, q):
    """Potential energy in the gravity field [J], zero at the base origin, (...)."""
    return _over(energy.potential_energy, model, _position(model, q), ())


def momentum(model, q, qd):
    """Total spatial momentum about the base origin, moment first [N·m·s, N·s], (..., 6)."""
    return _over(momentum_.total_momentum, model, _state(model, q, qd), (6,))


def center_of_mass(model, q):
    """Centre of mass of all moving bodies in base coordinates [m], (..., 3)."""
    return _over(momentum_.center_of_mass, model, _position(model, q), (3,))


# --- checking and batching -----------------------------------------------------------------------


def _frame(model, name):
    return as_model(model).frame(name)


def _position(model, q):
    return {"q": as_configuration(as_model(model), q)}


def _state(model, q, qd, **others):
    vectors = {"qd": qd, **others}
    position = _position(model, q)
    checked = {name: as_joint_vector(model, x, name) for name, x in vectors.items()}
    return {**position, **checked}


def _over(function, model, arguments, shape):
    return over_batch(
        lambda *arrays: function(model, *arrays),
        arguments,
        core=[1] * len(arguments),
        shape=shape,
    )


def _with_external(function, model, arguments, f_ext, shape):
    if f_ext is None or (isinstance(f_ext, dict) and not f_ext):
        return _over(function, model, arguments, shape)
    arguments["f_ext"] = _external(model, f_ext)

    def one(*arrays):
        *state, forces = arrays
        return function(model, *state, [None, *(Force.from_array(f) for f in forces)])

    core = [1] * (len(arguments) - 1) + [2]
    return over_batch(one, arguments, core=core, shape=shape)


def _external(model, f_ext):
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


def _require_tree(model, function):
    if as_model(model).loops:
        raise LoopError(
            f"{function} is not defined for model {model.name!r}, whose joint "
            f"{model.loops[0].name!r} closes a loop: its joint forces are not independent. "
            f"forward_dynamics(model, ...) honours loops; model.replace(loops=()) is the "
            f"spanning tree alone"
        )


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
    if point.shape != (3,):
        raise ShapeError(f"point must have 3 coordinates, got shape {point.shape}")
    return check_finite(point, "point")
