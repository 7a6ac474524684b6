"""Everything a model must satisfy before any algorithm sees it.

Numbers that are not floats or complex (fractions, formulas) are taken on trust.
"""

import numpy as np

from kinetree.errors import ModelError, ModelWarning, warn
from kinetree.joints import AbstractJoint
from kinetree.model import validate_attachments as attached
from kinetree.model.cameras import Camera, check_cameras
from kinetree.model.constraint_function import ConstraintFunction
from kinetree.model.coupling import GravityCompensation
from kinetree.model.fluid import FluidForce, check_fluid_force
from kinetree.model.gearing import with_leaders
from kinetree.model.geometry import ContactPair, Geometry
from kinetree.model.names import Group, check_group, number_names
from kinetree.model.parts import Actuator, Body, Coupling, Frame, Limits, Loop, Posture
from kinetree.model.sensors import Sensor, check_sensors
from kinetree.model.tendon import Tendon
from kinetree.model.tree import check_parents
from kinetree.model.validate_actuators import check_actuator
from kinetree.model.validate_loops import check_loops
from kinetree.model.validate_shapes import check_contact_pairs, check_shape
from kinetree.spatial import Inertia, Plucker


def check_parts(model):
    """Raise ModelError unless all parts of a model have the right classes."""
    kinds = {
        "bodies": Body, "frames": Frame, "loops": Loop, "constraints": ConstraintFunction,
        "couplings": Coupling, "geometry": Geometry, "actuators": Actuator, "postures": Posture,
        "tendons": Tendon, "gravity_compensation": GravityCompensation,
        "contact_pairs": ContactPair,
        "sensors": Sensor,
        "groups": Group,
        "cameras": Camera,
        "fluid_forces": FluidForce,
    }  # fmt: skip
    for name, kind in kinds.items():
        for part in getattr(model, name):
            if not isinstance(part, kind):
                raise ModelError(
                    f"a model needs {kind.__name__} objects here, got {type(part).__name__}; "
                    f"ModelBuilder makes them"
                )


def check_model(model, *, strict):
    """Raise ModelError for the first defect of ``model``; warn of lesser ones."""
    check_parents(model.parent, model.body_names)
    _check_names(model)
    _check_array(model.gravity, (3,), "gravity")
    for body, sound in zip(model.bodies, _are_sound(model.bodies), strict=True):
        _check_body(body, strict, sound)
    for frame in model.frames:
        _check_body_number(model, frame.body, f"frame {frame.name!r}")
        _check_transform(frame.placement, f"placement of frame {frame.name!r}")
    for loop in model.loops:
        _check_loop(model, loop, strict)
    check_loops(model)
    for constraint in model.constraints:
        if not constraint.equality:
            raise ModelError(
                f"constraint {constraint.name!r} is an inequality, an equation only while contact "
                f"lasts: if it does, make it with equality=True; contacts that open belong to "
                f"simulate(contact=...)"
            )
    attached.check_couplings(model)
    proper = _are_proper([g.placement for g in model.geometry])
    for geometry, sound in zip(model.geometry, proper, strict=True):
        what = f"geometry {geometry.name!r}" if geometry.name else "geometry"
        _check_body_number(model, geometry.body, what)
        what = f"{what} on body {model.body_names[geometry.body]!r}"
        if not sound:
            _check_transform(geometry.placement, f"placement of {what}")
        check_shape(geometry, what)
    for actuator in model.actuators:
        check_actuator(model, actuator)
    for posture in model.postures:
        attached.check_posture(model, posture)
    for tendon in model.tendons:
        attached.check_tendon(model, tendon, strict)
    for group in model.groups:
        check_group(model, group)
    for g in model.gravity_compensation:
        what = "gravity compensation"
        _check_body_number(model, g.body, what)
        what += f" of body {model.body_names[g.body]!r}"
        if g.body == 0:
            raise ModelError(f"{what}: the base does not move and has no weight to carry")
        _check_array(np.asarray(g.mass), (), f"mass of the {what}")
        _check_array(np.asarray(g.center), (3,), f"center of the {what}")
    for f in model.fluid_forces:
        _check_body_number(model, f.body, "a fluid force")
        _check_transform(f.placement, f"placement of a fluid on {model.body_names[f.body]!r}")
        check_fluid_force(model, f)
    check_contact_pairs(model)
    check_sensors(model)
    for sensor in model.sensors:
        for X in (sensor.placement, sensor.reference_placement):
            _check_transform(X, f"placement of sensor {sensor.name!r}")
    check_cameras(model)
    for camera in model.cameras:
        _check_transform(camera.placement, f"placement of camera {camera.name!r}")


def _check_names(model):
    """Raise ModelError if two parts of one kind have the same name."""
    kinds = {
        "body": model.body_names,
        "joint": (*model.joint_names, *(x.name for x in (*model.loops, *model.couplings))),
        "constraint": tuple(c.name for c in model.constraints),
        "frame": model.frame_names,
        "actuator": tuple(a.name for a in model.actuators),
        "posture": tuple(p.name for p in model.postures),
        "tendon": tuple(t.name for t in model.tendons),
        "sensor": tuple(s.name for s in model.sensors),
        "group": tuple(g.name for g in model.groups),
        "camera": tuple(c.name for c in model.cameras),
    }
    for kind, names in kinds.items():
        number_names(names, kind)
    shared = set(model.frame_names) & set(model.body_names)
    if shared:
        raise ModelError(
            f"frame name {min(shared)!r} is also a body name; a body name already names "
            f"the body's own frame"
        )


def _check_body(body, strict, sound):
    """Raise ModelError, or warn, about a body's joint, placement, inertia or limits."""
    check_joint_type(body.joint, f"joint {body.joint_name!r}")
    if not sound:
        _check_transform(body.placement, f"placement of joint {body.joint_name!r}")
        _check_inertia(body.inertia, f"inertia of body {body.name!r}", strict)
    check_limits(body.limits, body.joint, body.joint_name)
    attached.check_dynamics(body.dynamics, body.joint, body.joint_name, strict)


def _are_sound(bodies):
    """Vectorised check of bodies: whether placement and inertia of each are surely valid.

    The checks of single bodies, to half their tolerance; they find out what is wrong with others.
    """
    sound = _are_proper([b.placement for b in bodies])
    if any(type(b.inertia) is not Inertia for b in bodies):
        return np.zeros(len(bodies), dtype=bool)
    names = {"mass": (), "first_moment": (3,), "rotational": (3, 3)}
    m, h, I = (_stack([getattr(b.inertia, n) for b in bodies], x) for n, x in names.items())
    if m is None or h is None or I is None:
        return np.zeros(len(bodies), dtype=bool)
    with np.errstate(all="ignore"):
        c = h / m[:, None]
        around = np.sum(h * c, axis=1)[:, None, None] * np.eye(3) - h[:, :, None] * c[:, None, :]
        size = 5e-10 * np.max(np.abs(I), axis=(1, 2), initial=1e-300)
        sound &= np.isfinite(I - around).all(axis=(1, 2)) & (m > 0)
        sound &= np.max(np.abs(I - I.transpose(0, 2, 1)), axis=(1, 2), initial=0) <= size
        where = np.flatnonzero(sound)
        moments = np.linalg.eigvalsh((I - around)[where])
        possible = moments[:, 0] >= -size[where]
        sound[where] &= possible & (2 * moments[:, 2] <= moments.sum(axis=1) + size[where])
    return sound


def _are_proper(placements):
    """Vectorised check of transforms: whether each is surely a finite rigid motion."""
    sound = np.zeros(len(placements), dtype=bool)
    if any(type(X) is not Plucker for X in placements):
        return sound
    E = _stack([X.E for X in placements], (3, 3))
    r = _stack([X.r for X in placements], (3,))
    if E is None or r is None:
        return sound
    with np.errstate(all="ignore"):
        error = np.max(np.abs(E @ E.transpose(0, 2, 1) - np.eye(3)), axis=(1, 2), initial=0)
        sound = np.isfinite(r).all(axis=1) & (error < 5e-7)
    sound[sound] = np.linalg.det(E[sound]) > 0
    return sound


def _stack(numbers, shape):
    """Arrays of real numbers stacked; None unless all have the given shape."""
    try:
        found = np.array(numbers)
    except ValueError:  # of different shapes
        return None
    found = found.reshape(0, *shape) if not len(numbers) else found
    return found if found.dtype.kind in "fi" and found.shape[1:] == shape else None


def check_joint_type(joint, what):
    """Raise ModelError unless an object is a joint."""
    if not isinstance(joint, AbstractJoint):
        given = f"the class {joint.__name__}" if isinstance(joint, type) else repr(joint)
        raise ModelError(f"{what} must be a joint such as Revolute('z'), got {given}")


def check_inertia_type(inertia, what):
    """Raise ModelError unless an object is a rigid-body inertia."""
    if not isinstance(inertia, Inertia):
        raise ModelError(
            f"{what} must be an Inertia such as shapes.sphere(0.1, mass=1), got "
            f"{type(inertia).__name__}"
        )


def _check_inertia(inertia, what, strict):
    """Raise ModelError, or warn, about an inertia that is physically impossible."""
    check_inertia_type(inertia, what)
    _check_array(np.asarray(inertia.mass), (), f"mass in the {what}")
    _check_array(inertia.first_moment, (3,), f"first moment in the {what}")
    _check_array(inertia.rotational, (3, 3), f"rotational part of the {what}")
    defect = None if inertia.parameters().dtype == object else inertia_defect(inertia)
    if defect:
        message = f"{what} is physically impossible: {defect}"
        if strict:
            raise ModelError(message)
        warn(message, ModelWarning)


def check_limits(limits, joint, joint_name):
    """Raise ModelError unless the limits, if any, fit the joint of that name."""
    if limits is None:
        return
    what = f"limits of joint {joint_name!r}"
    if not isinstance(limits, Limits):
        raise ModelError(f"{what} must be Limits, got {type(limits).__name__}")
    for name in limits.__dataclass_fields__:
        values, size = getattr(limits, name), joint.nq if name in ("lower", "upper") else joint.nv
        if len(values) not in (0, size):
            raise ModelError(f"{what}: {name} needs {size} entries, got {len(values)}")
        if np.any(np.isnan(values)):
            raise ModelError(f"{what}: {name} is not a number; leave it out or use infinity")
        if name in ("velocity", "effort") and np.any(np.array(values) < 0):
            raise ModelError(f"{what}: {name} must not be negative, got {min(values):.6g}")
    if set(limits.effort_compensation) - {0.0, 1.0}:
        raise ModelError(
            f"{what}: effort_compensation must be 1 where gravity compensation counts within "
            f"effort, else 0, got {list(limits.effort_compensation)}"
        )
    for low, high in zip(limits.lower, limits.upper, strict=False):
        if low > high:
            raise ModelError(f"{what}: lower bound {low:.6g} is above upper bound {high:.6g}")
    for low, high in zip(limits.effort_lower, limits.effort_upper, strict=False):
        if low > high:
            raise ModelError(f"{what}: effort_lower {low:.6g} is above effort_upper {high:.6g}")


def _check_loop(model, loop, strict):
    """Raise ModelError for invalid bodies, placements or limits of a loop joint."""
    what = f"loop joint {loop.name!r}"
    _check_body_number(model, loop.predecessor, what)
    _check_body_number(model, loop.successor, what)
    check_joint_type(loop.joint, what)
    _check_transform(loop.predecessor_placement, f"predecessor placement of {what}")
    _check_transform(loop.successor_placement, f"successor placement of {what}")
    check_limits(loop.limits, loop.joint, loop.name)
    attached.check_dynamics(loop.dynamics, loop.joint, loop.name, strict)


def _check_body_number(model, i, what):
    """Raise ModelError unless a number is that of a body."""
    if not isinstance(i, (int, np.integer)):
        raise ModelError(f"{what} must refer to a body by its number, got {i!r}")
    if not 0 <= i <= len(model.bodies):
        last = len(model.bodies)
        raise ModelError(f"{what} refers to body {i}; the model has bodies 0 to {last}")


def _check_transform(X, what):
    """Raise an error unless a placement is a finite transform with a rotation."""
    if not isinstance(X, Plucker):
        raise ModelError(
            f"{what} must be a Plücker transform such as xlt(x, y, z), got {type(X).__name__}"
        )
    _check_array(X.E, (3, 3), f"rotation in the {what}")
    _check_array(X.r, (3,), f"position in the {what}")
    if X.E.dtype == object:
        return
    error, det = np.max(np.abs(X.E @ X.E.T - np.eye(3))), np.linalg.det(np.real(X.E))
    if error > 1e-6 or det < 0:
        raise ModelError(
            f"{what} is not a proper rotation: E Eᵀ differs from 1 by {error:.2g}, "
            f"det E = {det:.6g}"
        )


def _check_array(array, shape, what):
    """Raise an error unless an array has a shape and finite numbers."""
    if array.shape != shape:
        raise ModelError(f"{what} must have shape {shape}, got {array.shape}")
    if array.dtype == object:
        return
    if not np.issubdtype(array.dtype, np.number):
        raise ModelError(f"{what} must hold numbers, got {array.tolist()!r}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{what} must be finite, got {array.tolist()}")


def inertia_defect(inertia) -> str | None:
    """Reason why no rigid body can have this inertia, or None; mass 0 is allowed."""
    m = float(np.real(inertia.mass))
    if m < 0:
        return f"mass must not be negative, got {m:.6g} kg"
    h, I = np.real(inertia.first_moment), np.real(inertia.rotational)
    size = float(np.max(np.abs(I)))
    if m == 0:
        if np.any(h) or size > 0:
            return "a body without mass cannot have a first moment or a rotational inertia"
        return None
    asymmetry = float(np.max(np.abs(I - I.T)))
    if asymmetry > 1e-9 * size:
        return f"rotational inertia must be symmetric, is off by {asymmetry:.3g} kg m²"
    # Principal moments about the mass centre: each at most the sum of the other two.
    moments = np.linalg.eigvalsh(np.real(inertia.rotational_at_center))
    tolerance = 1e-9 * max(size, 1e-300)
    if moments[0] < -tolerance:
        return f"principal moments must not be negative, got {_list(moments)} kg m²"
    if moments[2] > moments[0] + moments[1] + tolerance:
        return (
            f"no principal moment may exceed the sum of the other two, got {_list(moments)} kg m²"
        )
    return None


def _list(values):
    """Text list of several numbers."""
    return ", ".join(f"{v:.6g}" for v in values)


def joints_without_inertia(model) -> tuple[str, ...]:
    """Names of the joints that move no inertia, which makes forward dynamics singular.

    Decided at the neutral position, every other joint held: ``SᵀI^c S`` has no inverse. Such a
    model is fine for kinematics and inverse dynamics. A joint that leads others moves their
    inertia, too.
    """
    if model.couplings:
        idle = set(joints_without_inertia(model.uncoupled))
        names = ("", *model.joint_names)
        led = {i for c in model.couplings if names[c.joint] not in idle for i in c.leaders}
        driven = {names[i] for i in with_leaders(model, led)}
        return tuple(n for n in names if n in idle - driven and not _follows(model, n))
    still, q = model.at(0.0), model.neutral()
    IC, singular = list(model.inertia), []
    for i in range(model.body_count, 0, -1):
        X_J, S, _, _ = still.jcalc(i, q, model.zero_velocity)
        F = (IC[i] @ S).to_array()
        D = S.to_array().T @ F + np.diag(model.armature[model.v_slice[i]])
        moments = np.linalg.eigvalsh(np.asarray(D, dtype=float))
        if np.any(moments <= 1e-14 * np.max(np.abs(F), initial=0.0)):
            singular.append(model.joint_names[i - 1])
        if model.parent[i] != 0:
            X = X_J @ model.tree_transform[i]
            IC[model.parent[i]] = IC[model.parent[i]] + X.T @ IC[i] @ X
    return tuple(reversed(singular))


def _follows(model, name):
    """Whether a joint is coupled to others."""
    return any(model.joint_names[c.joint - 1] == name for c in model.couplings)
