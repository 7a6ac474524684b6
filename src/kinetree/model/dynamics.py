"""What joints do of their own accord and what drives them, as arrays over all variables."""

import numpy as np

__all__ = ["actuation", "has_dynamics", "joint_values"]


def joint_values(model, name):
    """Armature, damping, friction or stiffness of every velocity variable, (nv,)."""
    parts = [np.zeros(0)]
    for b in model.bodies:
        given = () if b.dynamics is None else getattr(b.dynamics, name)
        parts.append(np.array(given) if given else np.zeros(b.joint.nv))
    values = np.concatenate(parts)
    values.flags.writeable = False
    return values


def has_dynamics(body, name) -> bool:
    """Whether the joint of a body has armature, damping and so on; a formula is taken for some."""
    values = () if body.dynamics is None else getattr(body.dynamics, name)
    return any(not isinstance(x, (int, float)) or x != 0 for x in values)


def actuation(model):
    """Joint forces for a unit of control of each actuator, (nv, n_actuators)."""
    B = np.zeros((model.nv, len(model.actuators)))
    for k, actuator in enumerate(model.actuators):
        B[model.v_slice[actuator.joint], k] = actuator.gear
    B.flags.writeable = False
    return B
