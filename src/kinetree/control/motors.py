"""Motors of a mechanism: which velocity variables they drive, and how strong they are."""

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.errors import ModelError
from kinetree.joints import Free
from kinetree.model.arrays import as_joint_vector


def joint_names(model, columns):
    """Quoted names of the joints to which velocity variables belong."""
    at = model.v_slice
    names = (n for i, n in enumerate(model.joint_names, start=1) if np.any(columns[at[i]]))
    return ", ".join(map(repr, names))


def driven_variables(model, actuated):
    """Indices of the velocity variables that motors drive.

    Those of the joints that are named. By default those with actuators; of a model without any, all
    but free joints.
    """
    if actuated is not None:
        return velocity_columns(model, actuated, "actuated")
    if not model.actuators:
        joints = zip(model.joint[1:], model.v_slice[1:], strict=True)
        parts = [np.arange(s.start, s.stop) for j, s in joints if not isinstance(j, Free)]
        return np.concatenate([np.zeros(0, int), *parts])
    return np.unique([_variable(model, a) for a in model.actuators])


def pushed_variables(model, actuated):
    """Indices of the velocity variables that motors can push, also several at once.

    All where motors pull tendons or push frames, which may move any joint.
    """
    if actuated is not None or not model.actuators:
        return driven_variables(model, actuated)
    if any(not a.joint for a in model.actuators):
        return np.arange(model.nv)
    at = [model.v_slice[a.joint].start + np.flatnonzero(a.gear) for a in model.actuators]
    return np.unique(np.concatenate(at))


def _variable(model, actuator):
    """Index of the velocity variable that an actuator drives."""
    s = model.v_slice[actuator.joint] if actuator.joint else slice(0, 0)
    at = np.flatnonzero(actuator.gear) if s.stop > s.start else ()
    if len(at) != 1:
        raise ModelError(
            f"actuator {actuator.name!r} of model {model.name!r} does not drive one variable of "
            f"one joint; name the joints that may be driven with actuated=..."
        )
    return s.start + int(at[0])


def force_limits(model, given):
    """Smallest and largest motor forces, (2, nv)."""
    if given is False:
        return np.stack([np.full(model.nv, -np.inf), np.full(model.nv, np.inf)])
    if given is not True:
        most = np.abs(as_joint_vector(model, np.nan_to_num(given, posinf=1e300), "torque_limits"))
        most = np.where(most >= 1e300, np.inf, most)
        return np.stack([-most, most])
    limits = np.stack([-model.effort_limits, np.asarray(model.effort_limits)])
    motors = np.zeros_like(limits)
    for a in model.actuators:
        s = model.v_slice[a.joint] if a.joint else slice(0, 0)
        if s.stop > s.start and np.count_nonzero(a.gear) == 1:
            v, gear = _variable(model, a), a.gear[int(np.flatnonzero(a.gear)[0])]
            motors[:, v] += sorted(gear * x for x in a.force_range)
    some = np.any(motors != 0, axis=0)
    motors = np.where(some, motors, [[-np.inf], [np.inf]])
    return np.stack([np.maximum(limits[0], motors[0]), np.minimum(limits[1], motors[1])])
