"""Meaning of the entries in the arrays of a model: joint or body, and unit."""

import numpy as np


def labels(model):
    """For every coordinate the body that it moves, last bodies first in rank."""
    labels = {}
    for i in range(1, model.body_count + 1):
        label = (i, model.body_names[i])
        labels.update((("q", (k,)), label) for k in _range(model.q_slice[i]))
        for name in ("qd", "qdd", "tau"):
            labels.update(((name, (k,)), label) for k in _range(model.v_slice[i]))
        labels.update((("f_ext", (i - 1, k)), label) for k in range(6))
    return labels


def _range(part):
    return range(part.start, part.stop)


def layout(model):
    """Which joint every entry of ``q`` and of the joint vectors belongs to, and its unit."""
    positions, velocities = [], []
    for i in range(1, model.body_count + 1):
        joint, name = model.joint[i], model.joint_names[i - 1]
        kind = f"{name} ({type(joint).__name__})"
        for k in _range(model.q_slice[i]):
            unit = position_unit(joint, k - model.q_slice[i].start)
            positions.append(f"  q[{k}]  {unit:4} {kind}")
        for k in _range(model.v_slice[i]):
            unit = velocity_unit(joint, k - model.v_slice[i].start)
            force = "N m" if unit == "rad" else "N"
            velocities.append(f"  [{k}]  {unit}/s, {unit}/s^2, {force}  {kind}")
    lines = [f"Model {model.name!r}: {model.body_count} bodies, nq = {model.nq}, nv = {model.nv}"]
    if positions:
        lines += ["Joint positions (unit 1: part of a unit quaternion w, x, y, z):", *positions]
    if velocities:
        lines += ["Joint velocities, accelerations and forces:", *velocities]
    gravity = ", ".join(f"{g:g}" for g in model.gravity)
    return [*lines, f"Gravity ({gravity}) m/s^2 in base coordinates."]


def velocity_unit(joint, k):
    """``rad`` where the velocity variable turns, ``m`` where it only shifts."""
    S = joint.motion_subspace(joint.neutral()).to_array().astype(float)
    return "rad" if np.any(S[:3, k]) else "m"


def position_unit(joint, k):
    """Unit of a position variable; 1 for part of a quaternion."""
    if any(k in range(joint.nq)[part] for part in joint.unit_parts):
        return "1"
    if joint.nq == joint.nv:
        return velocity_unit(joint, k)
    return "m"
