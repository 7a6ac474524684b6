"""Motors between what a controller asks for and what joints get: ranges, gears, speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.functional.choose import select
from kinetree.loops.kinematics.loop_joints import actuation_matrix
from kinetree.model.arrays import as_numbers
from kinetree.model.travel import constant_ratio, ratio_to_leader
from kinetree.simulation.inputs import Constant, call_with_model
from kinetree.spelling import did_you_mean

__all__ = ["Controls", "Drive", "TorqueSpeed", "drive_of"]


class Controls:
    """A controller that speaks to the actuators of a model rather than to its joints.

    Controls are cut to the range of each actuator, ``control``, and to what it can exert before
    its gear, ``effort``; joint forces are ``model.actuation`` times what is left, or where
    actuators drive loop joints ``kinetree.loops.actuation_matrix(model, q)``.

    Args:
        model: with actuators.
        controls: function ``(t, q, qd)`` that returns one number per actuator, (..., n); or n
            numbers that never change.
    """

    def __init__(self, model, controls):
        if not model.actuators:
            raise ModelError(
                f"model {model.name!r} has no actuators to control; give joint forces "
                f"(controller=), or add some: ModelBuilder.actuator"
            )
        self.model = model
        self.function: Any = call_with_model(controls, model) if callable(controls) else Constant(
            controls
        )  # fmt: skip
        ranges = np.array([(a.control, a.effort) for a in model.actuators])
        self.low, self.high = ranges[:, :, 0].max(axis=1), ranges[:, :, 1].min(axis=1)
        self.varies = any(
            a.loop or constant_ratio(model, a.joint) is None
            for a in model.actuators
            if a.loop or not model.joint[a.joint].nv
        )

    def __call__(self, t, q, qd):
        """Joint forces, (..., nv)."""
        u = as_numbers(self.function(t, q, qd), "controls").astype(float)
        n, names = len(self.model.actuators), [a.name for a in self.model.actuators]
        if u.ndim == 0 or u.shape[-1] != n:
            raise ShapeError(
                f"controls must have shape (..., {n}), one for each actuator of model "
                f"{self.model.name!r} ({', '.join(names)}), got {u.shape}"
            )
        if np.any(np.isnan(u)):
            raise ShapeError(f"controls are not numbers at t = {t:.6g} s: {u}")
        u = np.clip(u, self.low, self.high)
        if self.varies:
            return (actuation_matrix(self.model, q) * u[..., None, :]).sum(-1)
        return u @ self.model.actuation.T

    def next_instant(self, t):
        """When the controls change next, if that is known."""
        ask = getattr(self.function, "next_instant", None)
        return np.inf if ask is None else ask(t)

    def reset(self):
        """Before a new simulation."""
        if hasattr(self.function, "reset"):
            self.function.reset()


@dataclass(frozen=True)
class TorqueSpeed:
    """How much a motor can exert at a speed, both before its gear.

    Driving, it can exert what the curve says; braking, as much as at rest.

        kt.TorqueSpeed(stall=2.0, free_speed=400.0)               # a straight line
        kt.TorqueSpeed(speeds=(0, 200, 400), forces=(2, 2, 0))    # any polygon

    Args:
        stall: largest force at rest [N, N·m].
        free_speed: speed at which nothing is left [m/s, rad/s].
        speeds, forces: instead of these: corners of the curve, speeds from 0 upward. Beyond the
            last, the force is that of the last.
    """

    stall: float | None = None
    free_speed: float | None = None
    speeds: Any = ()
    forces: Any = ()

    def __post_init__(self):
        if (self.stall is None) != (self.free_speed is None) or (self.stall is None) == (
            not len(self.speeds)
        ):
            raise ModelError("a TorqueSpeed needs stall and free_speed, or speeds and forces")
        if self.stall is not None:
            object.__setattr__(self, "speeds", (0.0, self.free_speed))
            object.__setattr__(self, "forces", (self.stall, 0.0))
        speeds, forces = np.array(self.speeds, dtype=float), np.array(self.forces, dtype=float)
        if speeds.shape != forces.shape or speeds.ndim != 1 or len(speeds) < 2:
            raise ModelError(
                f"a TorqueSpeed needs as many speeds as forces, two at least; got "
                f"{len(self.speeds)} and {len(self.forces)}"
            )
        if speeds[0] != 0 or np.any(np.diff(speeds) <= 0) or np.any(forces < 0):
            raise ModelError(
                f"the speeds of a TorqueSpeed must start at 0 and increase, and its forces must "
                f"not be negative; got {speeds.tolist()} and {forces.tolist()}"
            )
        object.__setattr__(self, "speeds", tuple(speeds.tolist()))
        object.__setattr__(self, "forces", tuple(forces.tolist()))

    def __call__(self, speed):
        """Largest driving force at speeds >= 0; at rest for others."""
        force: Any = self.forces[-1] + 0 * speed
        for k in reversed(range(len(self.speeds) - 1)):
            (s0, s1), (f0, f1) = self.speeds[k : k + 2], self.forces[k : k + 2]
            line = f0 + (speed - s0) * ((f1 - f0) / (s1 - s0))
            force = select(speed < s1, line, force)
        return select(speed > 0, force, self.forces[0] + 0 * speed)


@dataclass(frozen=True)
class Drive:
    """Torque–speed curves at joints: what becomes of the joint forces that are asked for.

    Attributes:
        motors: velocity variable, gear, and curve of each.
    """

    motors: tuple

    def __call__(self, model, qd, tau):
        """Joint forces that the motors exert, (..., nv)."""
        columns = [tau[..., i] for i in range(model.nv)]
        for i, gear, curve in self.motors:
            speed, force = gear * qd[..., i], columns[i] / gear
            high, low = curve(speed), -curve(-speed)
            force = select(force < high, force, high)
            columns[i] = gear * select(force > low, force, low)
        return np.stack([np.asarray(c) for c in columns], axis=-1)


def drive_of(model, motors) -> Drive | None:
    """The drive for curves by name of the actuator."""
    if motors is None:
        return None
    if not isinstance(motors, Mapping):
        raise UnknownNameError(
            f"motors must be TorqueSpeed curves by name of the actuator, {{'motor': curve}}, got a "
            f"{type(motors).__name__}"
        )
    if not motors:
        return None
    actuators = {a.name: a for a in model.actuators}
    found = []
    for name, curve in motors.items():
        if name not in actuators:
            raise UnknownNameError(
                f"motors: model {model.name!r} has no actuator {name!r}; "
                f"{did_you_mean(name, actuators)}"
            )
        if not isinstance(curve, TorqueSpeed):
            raise TypeError(f"motors[{name!r}] must be a TorqueSpeed, got {type(curve).__name__}")
        a = actuators[name]
        if a.loop:
            raise ModelError(
                f"motors[{name!r}]: a torque-speed curve is for an actuator of a joint in the "
                f"tree; {model.driven_joint(a)!r} closes a loop"
            )
        driven = ratio_to_leader(model, a.joint) if model.couplings else (a.joint, 1.0)
        if driven is None:
            raise ModelError(
                f"motors[{name!r}]: a torque-speed curve is for a joint that leads, or that "
                f"follows one other by a constant ratio; {model.driven_joint(a)!r} does not"
            )
        at, ratio = model.v_slice[driven[0]], driven[1]
        others = [
            b.name
            for b in model.actuators
            if b.name != name and (b.joint == a.joint or _share(model, a, b))
        ]
        if at.stop - at.start != 1 or others or a.gear[0] * ratio == 0:
            raise ModelError(
                f"motors[{name!r}]: a torque-speed curve is for an actuator that drives one "
                f"variable, alone and with a gear that is not zero; joint "
                f"{model.joint_names[a.joint - 1]!r} has {at.stop - at.start} and is also driven "
                f"by {others or 'nothing else'}"
            )
        found.append((at.start, a.gear[0] * ratio, curve))
    return Drive(tuple(found))


def _share(model, a, b):
    """Whether two actuators act on one variable, directly or by a gear of constant ratio."""
    if a.loop or b.loop or not model.couplings:
        return False
    one, other = (ratio_to_leader(model, x.joint) for x in (a, b))
    return one is not None and other is not None and one[0] == other[0]
