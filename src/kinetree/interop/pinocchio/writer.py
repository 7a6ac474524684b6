"""A Pinocchio model from a kinetree model."""

import warnings
from typing import Any

import numpy as np

from kinetree.errors import InteropError, ModelWarning
from kinetree.interop.pinocchio.kinds import as_pinocchio
from kinetree.interop.pinocchio.leaves import add_mimic_joints, pinocchio, to_inertia, to_se3
from kinetree.joints import Fixed
from kinetree.model import Model
from kinetree.model.constraint_function import require_none_written
from kinetree.model.limits import has_dynamics
from kinetree.spatial import Plucker

_UNLIMITED = np.finfo(float).max


def to_model(model: Model) -> Any:
    """The mechanism as a ``pinocchio.Model``.

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
            warnings.warn(
                f"model {model.name!r}: {what} of joints {', '.join(map(repr, joints))} not "
                f"converted, since Pinocchio has none",
                ModelWarning,
                stacklevel=2,
            )
    for what in ("tendons", "gravity_compensation"):
        if getattr(model, what):
            warnings.warn(
                f"model {model.name!r}: {what.replace('_', ' ')} not converted, since Pinocchio "
                f"has none",
                ModelWarning,
                stacklevel=2,
            )
    return add_mimic_joints(pin, result, model) if model.couplings else result


class _Site:
    """Counterpart of a body of kinetree: joint and frame of Pinocchio, and place on the joint."""

    def __init__(self, joint, frame, X):
        self.joint, self.frame, self.X = joint, frame, X


def _depth_first(model):
    waiting = list(reversed(model.children[0]))
    while waiting:
        i = waiting.pop()
        yield i
        waiting.extend(reversed(model.children[i]))


def _add_body(pin, result, body, parent):
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
    """A limit as Pinocchio writes it: the largest float where there is none."""
    return np.clip(values or np.full(size, unlimited), -_UNLIMITED, _UNLIMITED)


def _warn_of_lost_limits(body, joint_map, lower, upper):
    lost = np.zeros(body.joint.nq, dtype=bool)
    for limit, unlimited in ((lower, -_UNLIMITED), (upper, _UNLIMITED)):
        lost |= limit != joint_map.from_limit(joint_map.to_limit(limit, unlimited), unlimited)
    if np.any(lost):
        warnings.warn(
            f"joint {body.joint_name!r}: limits of position variables "
            f"{np.flatnonzero(lost).tolist()} not converted, since Pinocchio has a "
            f"quaternion, or a cosine and a sine, in their place",
            ModelWarning,
            stacklevel=6,
        )
