"""A kinetree model from a Pinocchio model, and back."""

from typing import Any

import numpy as np

from kinetree.errors import InteropError, ModelWarning, warn
from kinetree.interop.pinocchio.kinds import as_kinetree, as_pinocchio
from kinetree.interop.pinocchio.leaves import (
    add_mimic_joints,
    couplings,
    from_inertia,
    from_se3,
    leaves,
    pinocchio,
    to_inertia,
    to_se3,
)
from kinetree.joints import Fixed
from kinetree.model import Body, Frame, JointDynamics, Limits, Model
from kinetree.model.constraint_function import require_none_written
from kinetree.model.limits import has_dynamics
from kinetree.spatial import Inertia, Plucker


def from_model(pin_model: Any) -> Model:
    """Kinetree model of the mechanism in ``pin_model``.

    Joints keep their names. A body is called after Pinocchio's body frame at its joint, or else
    after the joint; other frames (bodies, fixed joints, operational frames, sensors) become
    frames. A composite joint ``j`` becomes a chain ``j_1``, ``j_2``, … with massless bodies in
    between. A mimic joint ``j`` follows by a coupling ``j_mimic``.
    Inertia fixed to the universe is left out, as no dynamics depends on it.

    Raises:
        InteropError: for kinds of joint that kinetree does not have.

    Warns:
        ModelWarning: for rotor inertia that is not part of the armature, which Pinocchio's own
            dynamics ignore too; for friction and limits that differ in the two directions; for
            inertias that no rigid body can have; for frames that had to be renamed.
    """
    if not hasattr(pin_model, "inertias"):
        raise InteropError(
            f"from_model needs a pinocchio.Model, got {type(pin_model).__name__}; of a "
            f"RobotWrapper, give robot.model"
        )
    _refuse_angular_gravity(pin_model)
    _warn_of_what_is_left_behind(pin_model)
    parts = leaves(pin_model)
    names = body_names(pin_model, parts)
    number_of = {0: 0} | {part.number: i for i, part in enumerate(parts, start=1)}
    bodies = []
    for i, part in enumerate(parts, start=1):
        parent = number_of[pin_model.parents[part.number]] if part.first else i - 1
        bodies.append(_body(pin_model, part, names[i], parent))
    return Model(
        tuple(bodies),
        frames=frames(pin_model, names, number_of),
        couplings=couplings(pin_model, [part.name for part in parts]),
        gravity=np.array(pin_model.gravity.linear),
        name=pin_model.name or "mechanism",
        base_name=names[0],
        strict=False,
    )


def _body(pin_model, part, name, parent):
    """Body that a joint, or a part of a composite joint, moves."""
    joint, joint_map = as_kinetree(part.joint, part.name)
    return Body(
        name=name,
        parent=parent,
        joint=joint,
        placement=part.placement,
        inertia=from_inertia(pin_model.inertias[part.number]) if part.last else Inertia.zero(),
        joint_name=part.name,
        limits=_limits(pin_model, part, joint_map),
        dynamics=_dynamics(pin_model, part, joint_map),
    )


def _dynamics(pin_model, part, joint_map):
    """Armature, damping and friction of a joint, or None."""
    sources = {"armature": "armature", "damping": "damping", "friction": "upperDryFrictionLimit"}
    found = {
        name: joint_map.from_tangent(getattr(pin_model, source)[part.v])
        for name, source in sources.items()
    }
    given = {name: values for name, values in found.items() if np.any(values)}
    return JointDynamics(**given) if given else None


def _limits(pin_model, part, joint_map):
    """Limits of a joint, or None."""
    lower = _infinite(pin_model.lowerPositionLimit[part.q])
    upper = _infinite(pin_model.upperPositionLimit[part.q])
    limits = Limits(
        lower=joint_map.from_limit(lower, -np.inf),
        upper=joint_map.from_limit(upper, np.inf),
        velocity=joint_map.from_tangent(_infinite(pin_model.velocityLimit[part.v])),
        effort=joint_map.from_tangent(_infinite(pin_model.effortLimit[part.v])),
    )
    all_limits = (*limits.lower, *limits.upper, *limits.velocity, *limits.effort)
    return limits if np.any(np.isfinite(all_limits)) else None


def _infinite(limit):
    """Limits with the largest float, which means none in Pinocchio, replaced by infinity."""
    return np.where(np.abs(limit) >= np.finfo(float).max, np.copysign(np.inf, limit), limit)


def _refuse_angular_gravity(pin_model):
    """Raise an error if gravity has an angular part."""
    if np.any(pin_model.gravity.angular):
        raise InteropError(
            f"gravity must be a uniform linear acceleration, got an angular part "
            f"{pin_model.gravity.angular.tolist()}"
        )


def _warn_of_what_is_left_behind(pin_model):
    """Warn of properties of a Pinocchio model that are not represented."""
    rotors = pin_model.rotorInertia * pin_model.rotorGearRatio**2
    _warn_of(
        pin_model,
        {"rotor inertia": rotors > pin_model.armature * (1 + 1e-9)},
        "not converted: it is not in the armature, and Pinocchio's own dynamics ignore it too",
    )
    pairs = {
        "effort limits": ("effortLimit", "lowerEffortLimit"),
        "velocity limits": ("velocityLimit", "lowerVelocityLimit"),
        "friction": ("upperDryFrictionLimit", "lowerDryFrictionLimit"),
    }
    _warn_of(
        pin_model,
        {
            what: np.abs(getattr(pin_model, lower, getattr(pin_model, upper)))
            != np.abs(getattr(pin_model, upper))
            for what, (upper, lower) in pairs.items()
        },
        "differ in the two directions; the upper one is kept for both",
    )


def _warn_of(pin_model, values, consequence):
    """Warn once per property about the joints where it is not zero."""
    found = {what: _joints_with(pin_model, array) for what, array in values.items()}
    named = [f"{what} of joints {_list(names)}" for what, names in found.items() if names]
    if named:
        warn(f"model {pin_model.name!r}: {' and '.join(named)} {consequence}", ModelWarning)


def _joints_with(pin_model, values):
    """Names of the joints for which any entry of the velocity-sized ``values`` is not zero."""
    return [
        pin_model.names[i]
        for i in range(1, pin_model.njoints)
        if np.any(values[pin_model.idx_vs[i] :][: pin_model.nvs[i]])
    ]


def _list(names):
    """First few of many names, as text."""
    shown = ", ".join(map(repr, names[:4]))
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# --- Names of bodies and frames ------------------------------------------------------------------


def body_names(pin_model, parts):
    """Names of the base and of the body that each of ``parts``, the joints, moves.

    The first body frame that coincides with the joint frame, or else the joint itself, names it.
    """
    links = [f for f in pin_model.frames if _kind(f) == "BODY"]
    taken, names = {f.name for f in links}, []
    sites = [(0, pin_model.names[0]), *((p.number if p.last else None, p.name) for p in parts)]
    for number, joint_name in sites:
        own = [f.name for f in links if f.parentJoint == number and _is_identity(f.placement)]
        names.append(own[0] if own else _unused_name(joint_name, "body", taken))
        taken.add(names[-1])
    return names


def frames(pin_model, body_names, number_of):
    """Frames of a Pinocchio model that are no bodies or joints.

    Args:
        pin_model: Pinocchio's model.
        body_names: names of the bodies, the base first.
        number_of: number of the body at each joint of Pinocchio.
    """
    own = [
        f
        for f in list(pin_model.frames)[1:]  # frame 0 is the universe, which is the base
        if _kind(f) != "JOINT"
        and not (_kind(f) == "BODY" and f.name == body_names[number_of[f.parentJoint]])
    ]
    taken, chosen, renamed = set(body_names), {}, []
    for frame in sorted(own, key=lambda f: _kind(f) != "BODY"):  # links come first to their names
        name = _unused_name(frame.name, _kind(frame).lower(), taken)
        if name != frame.name:
            renamed.append(f"{frame.name!r} to {name!r}")
        taken.add(name)
        chosen[_kind(frame), frame.name] = name
    if renamed:
        warn(
            f"model {pin_model.name!r}: frames renamed, since another body or frame has the same "
            f"name: {', '.join(renamed)}",
            ModelWarning,
        )
    return tuple(
        Frame(chosen[_kind(f), f.name], number_of[f.parentJoint], from_se3(f.placement))
        for f in own
    )


def _unused_name(name, suffix, taken):
    """Unused name: with a suffix, then a number if it is taken."""
    candidate, count = name, 1
    while candidate in taken:
        candidate = f"{name}_{suffix}" if count == 1 else f"{name}_{suffix}_{count}"
        count += 1
    return candidate


def _kind(frame):
    """Name of the kind of a frame."""
    return str(frame.type).rpartition(".")[2]


def _is_identity(M):
    """Whether a placement is the identity."""
    return np.array_equal(M.homogeneous, np.eye(4))


_UNLIMITED = np.finfo(float).max


def to_model(model: Model) -> Any:
    """Pinocchio model of a kinetree model.

    Joints, bodies and frames keep their names; bodies and frames become body and operational
    frames. Fixed joints become frames and their bodies part of the body they are fixed to.
    Joints are numbered depth first, which Pinocchio's algorithms rely on, so the order of the
    variables may differ: see ``to_q``, ``to_v``. Of joints that follow one another all but one
    become mimic joints, which have no variables.

    Raises:
        InteropError: for loop joints, for couplings other than by a factor and an offset or of
            helical joints, and for kinds of joint that Pinocchio does not have.

    Warns:
        ModelWarning: for springs, and limits of quaternions, which Pinocchio does not have.
    """
    pin = pinocchio()
    if model.loops:
        raise InteropError(
            f"a pinocchio.Model is a tree; model {model.name!r} has loop joints: "
            f"{', '.join(repr(loop.name) for loop in model.loops)}. Remove them with "
            f"model.replace(loops=()) and add constraint models on Pinocchio's side"
        )
    require_none_written(model, "a pinocchio.Model")
    result = pin.Model()
    result.name = model.name
    result.gravity.linear = np.asarray(model.gravity, dtype=float)

    site = {0: _Site(0, 0, Plucker.identity())}
    if model.base_name != result.frames[0].name:
        site[0].frame = result.addBodyFrame(model.base_name, 0, pin.SE3.Identity(), 0)
    for i in _depth_first(model):
        site[i] = _add_body(pin, result, model.bodies[i - 1], site[model.parent[i]])
    for frame in model.frames:
        at = site[frame.body]
        placement = to_se3(pin, frame.placement @ at.X)
        kind = pin.FrameType.OP_FRAME
        result.addFrame(pin.Frame(frame.name, at.joint, at.frame, placement, kind))
    for what, names in (
        ("springs", ("stiffness",)),
        ("drives", ("active_predecessor", "active_successor")),
    ):
        joints = [b.joint_name for b in model.bodies if any(has_dynamics(b, n) for n in names)]
        if joints:
            warn(
                f"model {model.name!r}: {what} of joints {', '.join(map(repr, joints))} not "
                f"converted, since Pinocchio has none",
                ModelWarning,
            )
    for what in ("tendons", "gravity_compensation", "fluid_forces"):
        if getattr(model, what):
            warn(
                f"model {model.name!r}: {what.replace('_', ' ')} not converted, since Pinocchio "
                f"has none",
                ModelWarning,
            )
    return add_mimic_joints(pin, result, model) if model.couplings else result


class _Site:
    """Counterpart of a body of kinetree: joint and frame of Pinocchio, and place on the joint."""

    def __init__(self, joint, frame, X):
        self.joint, self.frame, self.X = joint, frame, X


def _depth_first(model):
    """Body numbers depth first, as Pinocchio's joints need."""
    waiting = list(reversed(model.children[0]))
    while waiting:
        i = waiting.pop()
        yield i
        waiting.extend(reversed(model.children[i]))


def _add_body(pin, result, body, parent):
    """Add a body, with its joint, to Pinocchio's model."""
    X = body.placement @ parent.X
    if isinstance(body.joint, Fixed):
        joint = parent.joint
        kind = pin.FrameType.FIXED_JOINT
        frame = pin.Frame(body.joint_name, joint, parent.frame, to_se3(pin, X), kind)
        at = _Site(joint, result.addFrame(frame), X)
    else:
        joint = _add_joint(pin, result, body, parent.joint, to_se3(pin, X))
        at = _Site(joint, result.addJointFrame(joint, parent.frame), Plucker.identity())
    placement = to_se3(pin, at.X)
    result.appendBodyToJoint(joint, to_inertia(pin, body.inertia), placement)
    at.frame = result.addBodyFrame(body.name, joint, placement, at.frame)
    return at


def _add_joint(pin, result, body, parent, placement):
    """Add a joint with its limits and dynamics to Pinocchio's model."""
    joint, joint_map = as_pinocchio(pin, body.joint, body.joint_name)
    where = (parent, joint, placement, body.joint_name)
    number = _add_limited(result, body, joint_map, where)
    at = slice(result.nv - body.joint.nv, result.nv)
    for name, targets in _DYNAMICS.items():
        values = () if body.dynamics is None else getattr(body.dynamics, name)
        if values:
            for target, sign in targets.items():
                getattr(result, target)[at] = sign * joint_map.to_tangent(np.array(values))
    return number


_DYNAMICS = {
    "armature": {"armature": 1},
    "damping": {"damping": 1},
    "friction": {"upperDryFrictionLimit": 1, "lowerDryFrictionLimit": -1},
}


def _add_limited(result, body, joint_map, where):
    """Add a joint with limits in Pinocchio's variables; its number."""
    if body.limits is None:
        return result.addJoint(*where)
    limits, nq, nv = body.limits, body.joint.nq, body.joint.nv
    lower, upper = _limit(limits.lower, nq, -_UNLIMITED), _limit(limits.upper, nq, _UNLIMITED)
    effort, velocity = (_limit(x, nv, _UNLIMITED) for x in (limits.effort, limits.velocity))
    _warn_of_lost_limits(body, joint_map, lower, upper)
    number = result.addJoint(
        *where,
        joint_map.to_tangent(effort),
        joint_map.to_tangent(velocity),
        joint_map.to_limit(lower, -_UNLIMITED),
        joint_map.to_limit(upper, _UNLIMITED),
    )
    if hasattr(result, "lowerVelocityLimit"):  # Pinocchio 4.1 sets it with the wrong sign
        result.lowerVelocityLimit[-nv:] = -joint_map.to_tangent(velocity)
    return number


def _limit(values, size, unlimited):
    """Limits as Pinocchio writes them: the largest float for none."""
    return np.clip(values or np.full(size, unlimited), -_UNLIMITED, _UNLIMITED)


def _warn_of_lost_limits(body, joint_map, lower, upper):
    """Warn of limits that Pinocchio's variables cannot express."""
    lost = np.zeros(body.joint.nq, dtype=bool)
    for limit, unlimited in ((lower, -_UNLIMITED), (upper, _UNLIMITED)):
        lost |= limit != joint_map.from_limit(joint_map.to_limit(limit, unlimited), unlimited)
    if np.any(lost):
        warn(
            f"joint {body.joint_name!r}: limits of position variables "
            f"{np.flatnonzero(lost).tolist()} not converted, since Pinocchio has a "
            f"quaternion, or a cosine and a sine, in their place",
            ModelWarning,
        )
