"""Passive joint dynamics and actuators of a model, as arrays over all variables."""

import numpy as np

from kinetree.errors import LoopError, ModelError
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
    """Joint forces for a unit of control of each actuator, (nv, n_actuators).

    What drives a joint that follows others acts on those that lead, by its ratio.
    """
    for actuator in model.actuators:
        if not actuator.joint and not actuator.loop:
            raise ModelError(
                f"actuator {actuator.name!r} drives {actuator.tendon or actuator.frame!r}, not a "
                f"joint: model.actuation has the actuators of joints only"
            )
        if actuator.loop:
            raise LoopError(
                f"actuator {actuator.name!r} drives {model.driven_joint(actuator)!r}, which closes "
                f"a loop: what it comes to in joint space depends on the configuration, see "
                f"kinetree.loops.actuation_matrix(model, q)"
            )
    B = np.zeros((model.nv, len(model.actuators)))
    for k, actuator in enumerate(model.actuators):
        if model.joint[actuator.joint].nv:
            B[model.v_slice[actuator.joint], k] = actuator.gear
        elif model.couplings:
            ratio = constant_ratio(model, actuator.joint)
            if ratio is None:
                raise LoopError(
                    f"actuator {actuator.name!r} drives {model.driven_joint(actuator)!r}, which "
                    f"follows others by a ratio that varies: what it comes to depends on the "
                    f"configuration, see kinetree.loops.actuation_matrix(model, q)"
                )
            B[:, k] = ratio * actuator.gear[0]
    B.flags.writeable = False
    return B
