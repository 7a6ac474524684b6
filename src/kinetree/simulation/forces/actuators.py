"""Actuators in a simulation: servos under held controls, and motors that can exert only so much.

Servos are functions of the state, so that their forces change inside a step: what a step holds are
controls, and activations at the time from which the controls were held, (u, act, t). Integrals of
lengths begin anew with every step, so that those where it begins are held as well, (u, act, t, l).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.actuators import integrating, resistance, stateful
from kinetree.errors import ModelError, UnknownNameError, require_known
from kinetree.functional.kernel import select
from kinetree.integration.refusals import CURVES_ALONE, CURVES_IN_TREE, CURVES_OF_LEADERS
from kinetree.model.limits import counted_compensation, effort_bounds, ratio_to_leader
from kinetree.model.memo import remember
from kinetree.quantities.actuators import (
    activation_after,
    driving_force,
    integral_motion,
    states_after,
)


@dataclass(frozen=True)
class Servos:
    """Joint forces of the actuators of a model under held controls."""

    count: int
    """Actuators."""
    states: int
    """Their activations and integrals."""
    integrals: int = 0
    """How many have integral action."""

    def inputs(self, model):
        """Zero array in the shape of held inputs: controls, activations, their time, integrals."""
        return np.zeros(self.count + self.states + bool(self.states) + 2 * self.integrals)

    def held_inputs(self, model, controls, activation, t, q, qd):
        """Inputs (..., size) that a step holds, from controls, activations, time and state."""
        if not self.states:
            return controls
        since = np.broadcast_to(t, (*np.shape(controls)[:-1], 1))
        parts = [controls, activation, since]
        if self.integrals:
            parts.append(integral_motion(model, q, qd))
        return np.concatenate(parts, axis=-1)

    def state(self, model, t, q, qd, inputs):
        """Controls (..., n) and activations (..., m) at time ``t``; None for no activations."""
        n, m = self.count, self.states
        controls = inputs[..., :n]
        if not m:
            return controls, None
        activation, time = inputs[..., n : n + m], np.asarray(t - inputs[..., n + m])
        if not self.integrals:
            return controls, activation_after(model, controls, activation, time)
        ends = inputs[..., n + m + 1 :], integral_motion(model, q, qd)
        return controls, states_after(model, controls, activation, time, *ends)

    def __call__(self, model, t, q, qd, inputs):
        """Joint forces, (..., nv)."""
        return driving_force(model, q, qd, *self.state(model, t, q, qd, inputs))

    def resistance(self, model, t, q, qd, inputs):
        """Stiffness and damping diagonals of joint servos, (nv,) each, for one sample."""
        return resistance(model, q, qd, *self.state(model, t, q, qd, inputs))


def servos_of(model, *, always=False) -> Servos | None:
    """``Servos`` of a model; None if joint forces depend on the controls alone.

    Motors are such, see ``controllers.Controls``, unless they push a frame or pull a tendon through
    space, or joints that follow others have limits of effort, or gravity compensation uses up a
    part of the effort.

    Args:
        model: the mechanism.
        always: whether motors count as well.
    """
    if not model.actuators:
        raise ModelError(
            f"model {model.name!r} has no actuators to control; give joint forces "
            f"(controller=), or add some: ModelBuilder.actuator"
        )
    found, varies = remember(model, ("servos_of",), lambda: _servos_of(model))
    return found if varies or always else None


def _servos_of(model):
    """``Servos`` of a model, and whether joint forces vary while controls are held."""
    full = model.uncoupled
    bounded = np.isfinite(effort_bounds(full)).any(axis=1)
    limited = (
        bounded.any() if model.couplings else (bounded & (counted_compensation(full) > 0)).any()
    )
    paths = {t.name for t in model.tendons if t.path}
    varies = any(a.is_servo or a.frame or a.tendon in paths for a in model.actuators)
    varies = varies or bool(limited)
    integrals = len(integrating(model))
    return Servos(len(model.actuators), len(stateful(model)), integrals), varies


@dataclass(frozen=True)
class TorqueSpeed:
    """Torque–speed curve of a motor, before its gear.

    The curve limits the motor when it drives; when it brakes, the limit is that at rest.

        kt.TorqueSpeed(stall=2.0, free_speed=400.0)               # a straight line
        kt.TorqueSpeed(speeds=(0, 200, 400), forces=(2, 2, 0))    # any polygon

    Args:
        stall: largest force at rest [N, N·m].
        free_speed: speed at which the force is zero [m/s, rad/s].
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


class Motor(NamedTuple):
    """An actuator with a torque–speed curve."""

    actuator: int
    """Its number."""
    variable: int
    """Velocity variable that it drives."""
    gear: float
    """Force on this variable for a unit of force."""
    curve: TorqueSpeed
    """What limits it."""


@dataclass(frozen=True)
class Drive:
    """Torque–speed curves at joints, which cut the joint forces that are requested."""

    motors: tuple[Motor, ...]
    """Those that have a curve."""

    def __call__(self, model, qd, tau):
        """Joint forces that the motors exert, (..., nv)."""
        columns = [tau[..., i] for i in range(model.nv)]
        for _, i, gear, curve in self.motors:
            speed, force = gear * qd[..., i], columns[i] / gear
            high, low = curve(speed), -curve(-speed)
            force = select(force < high, force, high)
            columns[i] = gear * select(force > low, force, low)
        return np.stack([np.asarray(c) for c in columns], axis=-1)


def check_motors(motors) -> None:
    """Raise an error unless ``motors`` maps actuator names to ``TorqueSpeed`` curves."""
    if motors is None:
        return
    if not isinstance(motors, Mapping):
        raise UnknownNameError(
            f"motors must be TorqueSpeed curves by name of the actuator, {{'motor': curve}}, got a "
            f"{type(motors).__name__}"
        )
    for name, curve in motors.items():
        if not isinstance(curve, TorqueSpeed):
            raise TypeError(f"motors[{name!r}] must be a TorqueSpeed, got {type(curve).__name__}")


def drive_of(model, motors) -> Drive | None:
    """``Drive`` for torque–speed curves by actuator name; None without any."""
    check_motors(motors)
    if not motors:
        return None
    actuators = {a.name: a for a in model.actuators}
    found = []
    for name, curve in motors.items():
        require_known(name, actuators, f"motors: model {model.name!r} has no actuator {name!r}")
        a = actuators[name]
        if not a.joint:
            drives = a.tendon or a.frame or f"{model.driven_joint(a)}, which closes a loop"
            raise CURVES_IN_TREE.of(f"motors[{name!r}]", f"an actuator that drives {drives}")
        driven = ratio_to_leader(model, a.joint) if model.couplings else (a.joint, 1.0)
        if driven is None:
            raise CURVES_OF_LEADERS.of(
                f"motors[{name!r}]",
                f"joint {model.driven_joint(a)!r}, which follows by a ratio that varies",
            )
        at, ratio = model.v_slice[driven[0]], driven[1]
        others = [
            b.name
            for b in model.actuators
            if b.name != name and (b.joint == a.joint or _share(model, a, b))
        ]
        if at.stop - at.start != 1 or others or a.gear[0] * ratio == 0:
            raise CURVES_ALONE.of(
                f"motors[{name!r}]",
                f"joint {model.joint_names[a.joint - 1]!r}, which has {at.stop - at.start} "
                f"variables and is also driven by {others or 'nothing else'}",
            )
        number = model.actuators.index(a)
        found.append(Motor(number, at.start, a.gear[0] * ratio, curve))
    return Drive(tuple(found))


def _share(model, a, b):
    """Whether two actuators act on the same variable, directly or by a constant gear."""
    if a.loop or b.loop or not model.couplings:
        return False
    one, other = (ratio_to_leader(model, x.joint) for x in (a, b))
    return one is not None and other is not None and one[0] == other[0]
