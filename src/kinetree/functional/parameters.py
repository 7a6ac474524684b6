"""Parameters of a model by name, so that they can be inputs of compiled code and differentiated.

| name | shape | meaning |
|---|---|---|
| ``"gravity"`` | (3,) | acceleration of gravity in base coordinates [m/s²] |
| ``"inertia:<body>"`` | (10,) | as ``Inertia.parameters``: mass, first moment, inertia |
| ``"inertia"`` | (body_count, 10) | those of all moving bodies |
| ``"mass:<body>"`` | () | mass [kg]; mass centre and shape stay, the body becomes denser |
| ``"placement:<joint>"`` | (4, 4) | pose of the joint's predecessor frame in the parent body |
| ``"armature:<joint>"`` | (nv,) | as in ``JointDynamics``; nv of the joint |
| ``"damping:<joint>"`` | (nv,) | likewise |
| ``"friction:<joint>"`` | (nv,) | likewise |
| ``"stiffness:<joint>"`` | (nv,) | likewise |

Derivatives with respect to a placement are taken along rigid displacements of the frame, moment
first, in its own coordinates, as for a free joint: six columns.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.model.parts import JointDynamics
from kinetree.spatial import Inertia, Plucker, skew

DYNAMICS = ("armature", "damping", "friction", "stiffness")
_KINDS = ("gravity", "inertia", "mass", "placement", *DYNAMICS)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a model."""

    name: str
    """As in the table above."""
    shape: tuple
    """Of its array."""
    tangent: tuple
    """Shape of the space in which it can change; equal to ``shape`` but for placements."""
    value: Callable
    """Takes a model to the array it has there."""
    changes: Callable
    """Takes a model and an array to what ``Model.replace`` takes, or a kind of joint dynamics."""
    rates: Callable
    """Takes an array to its rates along each tangent direction, (*shape, n)."""
    conditions: Callable = lambda array: ()
    """Takes a traced array to conditions that compiled code must check."""
    defect: Callable = lambda array: None
    """Takes an array of numbers to what is wrong with it, or None."""


def is_parameter(name) -> bool:
    """Whether ``name`` has the form of a model parameter such as ``"mass:hand"``."""
    return isinstance(name, str) and name.partition(":")[0] in _KINDS


def parameter(model, name) -> Parameter:
    """Parameter of a model by its name, e.g. ``"mass:hand"``."""
    kind, colon, of = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind == "gravity" and not colon:
        return _vector(name, (3,), lambda m: m.gravity, lambda m, x: {"gravity": x})
    if kind == "inertia" and not colon:
        return _all_inertias(model)
    if kind in ("inertia", "mass") and colon:
        i = model.body_index(of)
        if i == 0:
            raise ModelError(f"parameter {name!r}: the base does not move and has no inertia")
        return _inertia(name, i) if kind == "inertia" else _mass(model, name, i)
    if kind == "placement" and colon:
        return _placement(name, model.joint_index(of))
    if kind in DYNAMICS and colon:
        return _dynamics(model, name, kind, of)
    raise UnknownNameError(
        f"a model has no parameter {name!r}; use 'gravity', 'inertia', 'inertia:<body>', "
        f"'mass:<body>', 'placement:<joint>', or 'armature:<joint>', damping, friction, stiffness"
    )


def with_parameters(model, values):
    """Copy of the model with some parameters changed to numbers or traced arrays."""
    merged = {}
    for name, array in values.items():
        p = parameter(model, name)
        for field, change in p.changes(model, of_shape(p, array)).items():
            if isinstance(change, dict):
                twice = set(merged.setdefault(field, {})) & set(change)
                if twice:
                    raise ModelError(
                        f"parameters {list(values)}: the {field} of {min(twice)!r} is set twice"
                    )
                merged[field].update(change)
            else:
                merged[field] = change
    dynamics = _dynamics_of(model, {kind: merged.pop(kind, {}) for kind in DYNAMICS})
    if not merged and not dynamics:
        return model
    return model.replace(dynamics=dynamics, **merged).decided_by(model)


def with_some(model, kind, names):
    """Copy of the model in which the named friction or armature parameters are not zero.

    Laws and code are made for joints that have some; how much is known when they are used.
    """
    found = [parameter(model, name) for name in names if name.partition(":")[0] == kind]
    return with_parameters(model, {p.name: np.ones(p.shape) for p in found}) if found else model


def _dynamics_of(model, changes):
    """Joint dynamics by joint name, from values by kind and joint name."""
    dynamics = {}
    for kind, values in changes.items():
        for joint, value in values.items():
            old = _of_joint(model, joint).dynamics or JointDynamics()
            dynamics[joint] = replace(dynamics.get(joint, old), **{kind: value})
    return dynamics


def _vector(name, shape, value, changes, **more):
    """Parameter that can take any numbers, with unit directions as tangents."""

    def rates(array):
        return np.eye(array.size, dtype=int).reshape(*shape, array.size)

    return Parameter(name, shape, shape, value, changes, rates, **more)


def _all_inertias(model):
    """Parameter of the inertias of all bodies, (body_count, 10)."""

    def changes(m, x):
        inertias = map(Inertia.from_parameters, x)
        return {"inertia": dict(zip(m.body_names[1:], inertias, strict=True))}

    def value(m):
        return np.array([I.parameters() for I in m.inertia[1:]]).reshape(-1, 10)

    return _vector("inertia", (model.body_count, 10), value, changes)


def _inertia(name, i):
    """Parameter of the ten inertial numbers of a body."""
    return _vector(
        name,
        (10,),
        lambda m: m.inertia[i].parameters(),
        lambda m, x: {"inertia": {m.body_names[i]: Inertia.from_parameters(x)}},
    )


def _mass(model, name, i):
    """Parameter of a body's mass, with mass centre and gyration radii constant."""
    mass = np.asarray(model.inertia[i].mass)
    if mass.dtype != object and mass == 0:
        raise ModelError(
            f"parameter {name!r}: body {model.body_names[i]!r} has no mass that could be scaled; "
            f"use 'inertia:{model.body_names[i]}'"
        )

    def changes(m, x):
        I = m.inertia[i]
        return {"inertia": {m.body_names[i]: I * (x[()] / I.mass)}}

    def defect(x):
        return f"mass must not be negative, got {x.min():.6g} kg" if np.any(x < 0) else None

    return _vector(
        name,
        (),
        lambda m: np.asarray(m.inertia[i].mass),
        changes,
        conditions=lambda x: (x[()] >= 0,),
        defect=defect,
    )


def _of_joint(model, name):
    """Body or loop whose joint has this name."""
    if name in model.loop_names:
        return model.loops[model.loop_names.index(name)]
    return model.bodies[model.joint_index(name) - 1]


def _dynamics(model, name, kind, joint):
    """Parameter of damping, friction, stiffness or armature of a joint."""
    shape = (_of_joint(model, joint).joint.nv,)
    if kind == "armature" and joint in model.loop_names:
        raise ModelError(f"parameter {name!r}: a joint that closes a loop cannot have armature")

    def value(m):
        return np.array(getattr(_of_joint(m, joint).dynamics, kind, ()) or np.zeros(shape))

    def changes(m, x):
        return {kind: {joint: tuple(x)}}

    def defect(x):
        return f"{kind} must not be negative, got {x.min():.6g}" if np.any(x < 0) else None

    return _vector(
        name,
        shape,
        value,
        changes,
        conditions=lambda x: tuple(entry >= 0 for entry in x),
        defect=defect,
    )


def _placement(name, i):
    """Parameter of a joint's placement as a pose (4, 4)."""

    def changes(m, x):
        return {"placement": {m.joint_names[i - 1]: Plucker.from_pose(x)}}

    return Parameter(
        name,
        (4, 4),
        (6,),
        lambda m: m.tree_transform[i].to_pose(),
        changes,
        _pose_rates,
        _pose_conditions,
        _pose_defect,
    )


def _pose_rates(T):
    """Tangents ``T [w× v; 0 0]`` of a pose for unit angular and linear velocities."""
    R, e = T[:3, :3], np.eye(3, dtype=int)
    rates = np.zeros((4, 4, 6), dtype=T.dtype)
    for k in range(3):
        rates[:3, :3, k] = R @ skew(e[k])
        rates[:3, 3, 3 + k] = R @ e[k]
    return rates


def _pose_error(T):
    """Squared defect of a matrix as a pose, zero for a pose, and the rotation's determinant."""
    R, last = T[..., :3, :3], T[..., 3, :] - np.array([0, 0, 0, 1])
    E = R @ np.swapaxes(R, -1, -2) - np.eye(3, dtype=int)
    x, y, z = (R[..., k, :] for k in range(3))
    det = (np.cross(x, y) * z).sum(axis=-1)
    return (E * E).sum(axis=(-1, -2)) + (last * last).sum(axis=-1), det


_POSE_TOLERANCE = 1e-11


def _pose_conditions(T):
    """Traceable conditions under which a matrix is a pose."""
    error, det = _pose_error(T)
    return error < _POSE_TOLERANCE, det > 0


def _pose_defect(T):
    """Error message for a matrix that is not a pose, or None."""
    error, det = _pose_error(T)
    if np.all(error < _POSE_TOLERANCE) and np.all(det > 0):
        return None
    return (
        f"a pose is a rotation matrix and a position above the row (0, 0, 0, 1); R Rᵀ and that row "
        f"are off by {np.sqrt(error.max()):.2g}, det R = {det.min():.6g}"
    )


def of_shape(p, value) -> np.ndarray:
    """Value of a parameter in its shape; ShapeError for others."""
    array = np.asarray(value)
    if array.shape != p.shape and (array.shape, p.shape) != ((), (1,)):
        raise ShapeError(f"parameter {p.name!r} must have shape {p.shape}, got {array.shape}")
    return array.reshape(p.shape)


def check_parameter(p, array):
    """Raise an error for numbers that the parameter cannot take, such as negative masses."""
    n = array.ndim - len(p.shape)
    if n < 0 or array.shape[n:] != p.shape:
        expected = ", ".join(["...", *map(str, p.shape)])
        raise ShapeError(f"parameter {p.name!r} must have shape ({expected}), got {array.shape}")
    if array.dtype == object:
        return
    if not np.all(np.isfinite(array)):
        raise ShapeError(f"parameter {p.name!r} must be finite")
    defect = p.defect(array)
    if defect:
        raise ShapeError(f"parameter {p.name!r}: {defect}")
