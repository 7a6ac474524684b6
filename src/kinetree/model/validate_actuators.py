"""Checks of actuators: what they drive, their laws, activations and limits of effort."""

import math

import numpy as np

from kinetree.errors import (
    ModelError,
    ModelWarning,
    warn,
)
from kinetree.model.actuator import ACTIVATIONS, UNBOUNDED
from kinetree.model.muscle import Muscle
from kinetree.model.names import number_of
from kinetree.model.validate_attachments import check_joint_number, check_numbers


def check_actuator(model, actuator):
    """Raise ModelError unless an actuator drives one thing, with a valid gear and law."""
    what = f"actuator {actuator.name!r}"
    driven, size = _driven_end(model, actuator, what)
    check_numbers(actuator.gear, f"gear of {what}")
    if len(actuator.gear) != size:
        raise ModelError(
            f"{what} drives {driven}; gear needs {size} {'entry' if size == 1 else 'entries'}, "
            f"got {len(actuator.gear)}"
        )
    for bounds in ("control", "effort", "activation_range", "integral_range"):
        values = getattr(actuator, bounds)
        check_numbers(values, f"{bounds} of {what}", finite=False)
        if len(values) != 2 or not values[0] <= values[1]:
            raise ModelError(
                f"{bounds} of {what} must be the smallest and the largest value, got {values}"
            )
    for law in ("gain", "bias"):
        check_numbers(getattr(actuator, law), f"{law} of {what}")
        if len(getattr(actuator, law)) != 3:
            raise ModelError(
                f"{law} of {what} needs 3 numbers, for 1, length and velocity, got "
                f"{len(getattr(actuator, law))}"
            )
    if actuator.muscle is not None and not isinstance(actuator.muscle, Muscle):
        raise ModelError(f"muscle of {what} must be a Muscle, got {type(actuator.muscle).__name__}")
    _check_activation(actuator, what)
    _check_integral(actuator, what)


def _check_integral(actuator, what):
    """Raise ModelError for an invalid integral action of an actuator."""
    for name in ("integral", "integral_zero"):
        value = getattr(actuator, name)
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ModelError(f"{name} of {what} must be a number, got {value!r}")
    if actuator.integral and (actuator.muscle is not None or actuator.adhesion):
        raise ModelError(f"{what} has integral action, which muscles and adhesion have not")
    other = actuator.integral_zero or tuple(actuator.integral_range) != UNBOUNDED
    if other and not actuator.integral:
        raise ModelError(f"{what} has integral_zero or integral_range and no integral action")


def _check_activation(actuator, what):
    """Raise ModelError for an invalid activation, or time constants, of an actuator."""
    kind, time_constant = actuator.activation, actuator.time_constant
    if kind not in ACTIVATIONS:
        raise ModelError(
            f"activation of {what} must be {', '.join(map(repr, filter(None, ACTIVATIONS)))} or '' "
            f"for none, got {kind!r}"
        )
    if not (isinstance(time_constant, (int, float)) and 0 <= time_constant < math.inf):
        raise ModelError(
            f"time_constant of {what} must be a number of seconds that is not negative, got "
            f"{time_constant!r}"
        )
    fall = actuator.deactivation_time
    if not (isinstance(fall, (int, float)) and 0 <= fall < math.inf):
        raise ModelError(
            f"deactivation_time of {what} must be a number of seconds that is not negative, got "
            f"{fall!r}"
        )
    if bool(fall) != ACTIVATIONS[kind].falls:
        raise ModelError(
            f"{what} is a {kind} and needs a deactivation_time above zero [s]"
            if not fall
            else f"deactivation_time of {what} is for activation='muscle', which it has not"
        )
    needed = ACTIVATIONS[kind].has_time_constant
    if needed and not time_constant:
        raise ModelError(f"{what} is a {kind} and needs a time_constant above zero [s]")
    if time_constant and not needed:
        those = [repr(name) for name, a in ACTIVATIONS.items() if a.has_time_constant]
        raise ModelError(
            f"time_constant of {what} is for activation={' or '.join(those)}, which it has not"
        )
    if not kind and tuple(actuator.activation_range) != UNBOUNDED:
        raise ModelError(f"{what} has an activation_range and no activation; use control")


def _driven_end(model, actuator, what):
    """Driven object of an actuator in words, and the number of its gears; ModelError if invalid."""
    ends = {"joint": actuator.joint, "loop joint": actuator.loop}
    ends |= {"tendon": actuator.tendon, "frame": actuator.frame}
    given = [f"{kind} {end!r}" for kind, end in ends.items() if end]
    if len(given) > 1:
        raise ModelError(f"{what} drives {' and '.join(given)}; it can drive one of them")
    if not given and not actuator.joint and actuator.joint is not False:
        raise ModelError(f"{what} drives nothing: give a joint, a tendon or a frame")
    if actuator.reference and not actuator.frame:
        raise ModelError(f"{what} has a reference frame, which only one with a frame can have")
    for role in ("frame", "reference"):
        name = getattr(actuator, role)
        if name:
            known = (*model.frame_names, *model.body_names)
            number_of(name, known, f"{role} of {what}", f"model {model.name!r}")
    if actuator.adhesion:
        if actuator.frame not in model.body_names[1:] or actuator.reference or actuator.crank:
            raise ModelError(
                f"{what} adheres: its frame must be the name of a body that moves, without a "
                f"reference, got {actuator.frame!r}"
            )
        return f"body {actuator.frame!r} by adhesion", 1
    if actuator.crank:
        if not (actuator.reference and 0 < actuator.crank < math.inf):
            raise ModelError(
                f"crank of {what} is the length [m] of a rod from its frame to a slider along z of "
                f"its reference, above zero; give both frames, got {actuator.crank!r}"
            )
        return f"a slider along {actuator.reference!r} by a rod", 1
    if actuator.frame:
        return f"frame {actuator.frame!r} by a wrench (moment, force)", 6
    if actuator.tendon:
        known = [t.name for t in model.tendons]
        number_of(actuator.tendon, known, f"tendon of {what}", f"model {model.name!r}")
        return f"tendon {actuator.tendon!r}", 1
    if actuator.loop:
        check_joint_number(model, actuator.loop, what, "loop joint", len(model.loops))
        loop = model.loops[actuator.loop - 1]
        nv = loop.joint.nv
        _check_effort(actuator, loop, what)
    else:
        check_joint_number(model, actuator.joint, what)
        nv = model.joint[actuator.joint].nv
    return f"joint {model.driven_joint(actuator)!r} with {nv} degrees of freedom", nv


def _check_effort(actuator, loop, what):
    """Warn of an effort limit of a loop joint, which has no effect: the actuator's has."""
    limits = () if loop.limits is None else loop.limits.effort
    limited = any(isinstance(x, float) and 0 < x < np.inf for x in limits)
    if limited and tuple(actuator.effort) == UNBOUNDED:
        warn(
            f"{what} drives loop joint {loop.name!r}, whose limit of effort does not act: give the "
            f"actuator an effort, (smallest, largest)",
            ModelWarning,
        )
