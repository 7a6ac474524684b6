"""Passive joint dynamics and actuators of a model, as arrays over all variables."""

import numpy as np

from kinetree.errors import LoopError
from kinetree.model.limits import constant_ratio


def joint_values(model, name):
    """Armature, damping, friction or stiffness of every velocity variable of all joints."""
    parts = [np.zeros(0)]
    for b in model.bodies:
        given = () if b.dynamics is None else getattr(b.dynamics, name)
        parts.append(np.array(given) if given else np.zeros(b.joint.nv))
    values = np.concatenate(parts)
    values.flags.writeable = False
    return values


def has_dynamics(part, name) -> bool:
    """Whether the joint of a body, or a loop joint, has armature, damping and so on.

    A formula is taken for some.
    """
    values = () if part.dynamics is None else getattr(part.dynamics, name)
    return any(not isinstance(x, (int, float)) or x != 0 for x in values)


def joints_with(model, *names) -> tuple[str, ...]:
    """Names of the joints, loop joints included, that have stiffness, damping and so on."""
    parts = [*((b.joint_name, b) for b in model.bodies), *((x.name, x) for x in model.loops)]
    return tuple(name for name, part in parts if any(has_dynamics(part, n) for n in names))


def has_passive_forces(model, *names) -> bool:
    """Whether joints or tendons have some of these, all by default, or weight is carried.

    Carried weight counts with ``"stiffness"``: both are forces of the position.
    """
    names = names or ("stiffness", "damping", "friction")
    carried = "stiffness" in names and model.gravity_compensation
    return bool(joints_with(model, *names) or carried or any(t.has(*names) for t in model.tendons))


def actuation(model):
    """Joint forces for a unit force of each actuator before its gear, (nv, n_actuators).

    What drives a joint that follows others acts on those that lead, by its ratio; a tendon acts on
    all of its joints.
    """
    B = np.zeros((model.nv, len(model.actuators)))
    tendons = {t.name: t for t in model.tendons}
    for k, a in enumerate(model.actuators):
        if a.loop:
            raise _varies(a, f"{model.driven_joint(a)!r}, which closes a loop")
        if a.frame:
            raise _varies(a, f"frame {a.frame!r}")
        if a.joint and model.joint[a.joint].nv:
            B[model.v_slice[a.joint], k] = a.gear
            continue
        pulled = tendons[a.tendon] if a.tendon else None
        arms = [(a.joint, 1.0)] if pulled is None else zip(
            pulled.joints, pulled.coefficients, strict=True
        )  # fmt: skip
        for joint, arm in arms:
            if model.couplings or pulled is not None:
                ratio = constant_ratio(model, joint)
                if ratio is None:
                    name = model.joint_names[joint - 1]
                    raise _varies(a, f"{name!r}, which follows others by a ratio that varies")
                B[:, k] += ratio * arm * a.gear[0]
    B.flags.writeable = False
    return B


def _varies(actuator, what):
    return LoopError(
        f"actuator {actuator.name!r} drives {what}: what it comes to in joint space depends on the "
        f"configuration, see kinetree.loops.actuation_matrix(model, q)"
    )
