"""Actuators with constant moment arms as a table, and their forces in compiled code."""

import numpy as np

from kinetree.codegen.procedures import procedure, record
from kinetree.model.limits import position_index


@record
class Laws:
    """Actuators with constant moment arms, and the joints that they drive.

    Attributes:
        gain: of the control: value, by length, by velocity;  bias: likewise.
        control: smallest and largest control;  effort: likewise, of the force before the gear.
        state: number of the activation, or -1.
        offset: length where all positions are zero.
        arm_first: arms of an actuator are ``arm[arm_first[k]:arm_first[k + 1]]``.
        arm: joint force for a unit of force;  arm_q, arm_v: position and velocity variable.
        most: of the velocity variables: largest joint force.
    """

    count: int
    nv: int
    gain: "float[:, 3]"
    bias: "float[:, 3]"
    control: "float[:, 2]"
    effort: "float[:, 2]"
    state: "int[:]"
    offset: "float[:]"
    arm_first: "int[:]"
    arm: "float[:]"
    arm_q: "int[:]"
    arm_v: "int[:]"
    most: "float[:]"


def no_laws() -> Laws:
    """No actuators."""
    return Laws(count=0, arm_first=np.zeros(1, dtype=np.int64))


def has_constant_arms(model) -> bool:
    """Whether all actuators drive joints of one variable, or tendons."""
    return not model.couplings and all(
        a.tendon or (a.joint and model.joint[a.joint].nv == model.joint[a.joint].nq == 1)
        for a in model.actuators
    )


def laws_of(model) -> Laws:
    """The actuators of a model as a table."""
    arms, at, n = model.actuation, position_index(model), len(model.actuators)
    used = [np.flatnonzero(arms[:, k]) for k in range(n)]
    joined = np.concatenate([np.zeros(0, dtype=np.int64), *used]).astype(np.int64)
    gears = [arms[i, k] for k in range(n) for i in used[k]]
    offset = [a.gear[0] * model.tendon(a.tendon).offset if a.tendon else 0.0
              for a in model.actuators]  # fmt: skip
    states = np.array([bool(a.activation) for a in model.actuators], dtype=bool)
    most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)

    def table(name, width):
        values = [getattr(a, name) for a in model.actuators]
        return np.array(values, dtype=float).reshape(n, width)

    return Laws(
        count=n, nv=model.nv, gain=table("gain", 3), bias=table("bias", 3),
        control=table("control", 2), effort=table("effort", 2),
        state=np.where(states, np.cumsum(states) - 1, -1).astype(np.int64),
        offset=np.array(offset, dtype=float), arm=np.array(gears, dtype=float),
        arm_first=np.cumsum([0, *map(len, used)]).astype(np.int64),
        arm_q=at[joined].astype(np.int64), arm_v=joined, most=np.array(most, dtype=float),
    )  # fmt: skip


@procedure
def drive(
    a: Laws, q: "float[:]", v: "float[:]", u: "float[:]", activation: "float[:]", tau: "float[:]",
    K: "float[:]", D: "float[:]",
):  # fmt: skip
    """Joint forces, and diagonals of stiffness and damping; see ``algorithms.actuators``."""
    tau[: a.nv] = K[: a.nv] = D[: a.nv] = 0.0
    for k in range(a.count):
        x = min(max(u[k], a.control[k, 0]), a.control[k, 1])
        if a.state[k] >= 0:
            x = activation[a.state[k]]
        l = a.offset[k]
        ld = 0.0
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            l += a.arm[j] * q[a.arm_q[j]]
            ld += a.arm[j] * v[a.arm_v[j]]
        f = (a.gain[k, 0] + a.gain[k, 1] * l + a.gain[k, 2] * ld) * x
        f += a.bias[k, 0] + a.bias[k, 1] * l + a.bias[k, 2] * ld
        stiff = damp = 0.0
        if a.effort[k, 0] < f and f < a.effort[k, 1]:
            stiff = max(-(a.gain[k, 1] * x + a.bias[k, 1]), 0.0)
            damp = max(-(a.gain[k, 2] * x + a.bias[k, 2]), 0.0)
        f = min(max(f, a.effort[k, 0]), a.effort[k, 1])
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            i = a.arm_v[j]
            tau[i] += a.arm[j] * f
            K[i] += a.arm[j] * a.arm[j] * stiff
            D[i] += a.arm[j] * a.arm[j] * damp
    for i in range(a.nv):
        tau[i] = min(max(tau[i], -a.most[i]), a.most[i])
