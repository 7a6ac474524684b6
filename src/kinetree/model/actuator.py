"""Actuators: motors, servos and cylinders on joints, tendons and frames."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ModelError
from kinetree.model.coupling import as_floats
from kinetree.model.muscle import Muscle
from kinetree.spelling import explains_itself

UNBOUNDED = (-math.inf, math.inf)


class Activation(NamedTuple):
    """A way in which a state of an actuator follows its control."""

    dyntype: tuple[str, ...]
    """What MuJoCo calls it; the first is written."""
    has_time_constant: bool = False
    """Whether it needs ``time_constant``."""
    falls: bool = False
    """Whether it needs a ``deactivation_time``, too."""
    servo: str = "position"
    """Type in MuJoCo of a position servo with it."""
    motor: str = "general"
    """Type in MuJoCo of an actuator without bias that has it."""


ACTIVATIONS: dict[str, Activation] = {
    "": Activation(("none",), motor="motor"),
    "integrator": Activation(("integrator",), servo="intvelocity"),
    "filter": Activation(("filterexact", "filter"), has_time_constant=True, motor="cylinder"),
    "muscle": Activation(("muscle",), has_time_constant=True, falls=True),
    "ramp": Activation((), has_time_constant=True),
}
"""By name. How they move is in ``algorithms.actuators`` and ``contact.engine.drives``."""


@explains_itself
@dataclass(frozen=True)
class Actuator:
    """A motor or servo that drives a joint, a loop joint, a tendon or a frame.

    Its length ``l`` is ``gear`` times the position of what it drives, its velocity ``ld`` the rate
    of that. The force before the gear is

        f = clip(gain(l, ld) u + bias(l, ld), effort)      u = clip(control value, control)

    with ``gain(l, ld) = g0 + g1 l + g2 ld`` and a similar bias; the joint forces are the gear times
    ``f``. A motor has the constant gain ``(1, 0, 0)`` and no bias, a position servo the gain
    ``(kp, 0, 0)`` and the bias ``(0, -kp, -kv)``, a velocity servo ``(kv, 0, 0)`` and
    ``(0, 0, -kv)``. With an activation, ``u`` is replaced by a state ``act`` of the actuator that
    follows it: ``act' = u`` ("integrator"), ``act' = (u - act) / time_constant`` ("filter"), or
    ``act' = ±1 / time_constant`` until it is there ("ramp"); for muscles see
    ``algorithms.muscles``. With integral action, ``integral z`` is added before the clip, where

        z' = u - l - integral_zero,      z within integral_range

    Attributes:
        name: unique name, among the actuators.
        joint: number of the joint; 0 for an actuator that drives something else.
        gear: joint force for a unit of ``f``, one entry per velocity variable of the joint; one
            entry for a tendon; for a frame a wrench (moment, force), six entries.
        control: smallest and largest control.
        effort: smallest and largest force before the gear.
        loop: number of the loop joint that it drives, from 1; 0 for anything else.
        tendon: name of the tendon that it pulls.
        frame: name of the frame, or of the body, that it pushes. Without a ``reference`` its
            wrench is in the axes of the frame and its length is zero.
        reference: name of the frame relative to which ``frame`` is pushed: the wrench is in the
            axes of the reference, and its reaction acts there.
        gain: of ``u``, three numbers, see above; one number for a constant.
        bias: three numbers, in the same way.
        activation: one of ``ACTIVATIONS``: ``""``, ``"integrator"``, ``"filter"``, ``"muscle"`` or
            ``"ramp"``.
        time_constant: of the filter, or with which the activation of a muscle rises [s]; of a ramp
            the time for a unit.
        activation_range: smallest and largest activation.
        deactivation_time: with which the activation of a muscle falls [s].
        muscle: a ``Muscle``, whose force takes the place of gain and bias.
        crank: length of a connecting rod [m], whose one end is the origin of ``frame`` and whose
            other end slides along z of the ``reference``. The actuator pushes that slider: its
            length is ``gear``, one entry, times where it is, ``z - sqrt(crank² - x² - y²)`` with
            the origin of the frame at (x, y, z); where the rod is too short, ``z``.
        adhesion: whether the force pulls the body ``frame`` to what it touches, shared equally by
            its contacts, along their normals; ``gear`` is one number. It acts in steps with rigid
            contact only, has no length, and does nothing to joints by itself.
        integral: gain of integral action, 0 for none: force for a unit of ``z``, a second state,
            after the activation if there is one.
        integral_zero: length that the integral counts from.
        integral_range: smallest and largest ``z``.
    """

    name: str
    joint: int = 0
    gear: tuple[float, ...] = (1.0,)
    control: tuple[float, float] = UNBOUNDED
    effort: tuple[float, float] = UNBOUNDED
    loop: int = 0
    tendon: str = ""
    frame: str = ""
    reference: str = ""
    gain: Any = (1.0, 0.0, 0.0)
    bias: Any = (0.0, 0.0, 0.0)
    activation: str = ""
    time_constant: float = 0.0
    activation_range: tuple[float, float] = UNBOUNDED
    deactivation_time: float = 0.0
    muscle: Muscle | None = None
    crank: float = 0.0
    adhesion: bool = False
    integral: float = 0.0
    integral_zero: float = 0.0
    integral_range: tuple[float, float] = UNBOUNDED

    def __post_init__(self):
        for name in ("gain", "bias"):
            values = as_floats(getattr(self, name), f"{name} of actuator {self.name!r}")
            object.__setattr__(self, name, (*values, *(0.0,) * (3 - len(values))))

    @property
    def kind(self) -> str:
        """Type of the actuator in MuJoCo, e.g. ``"motor"`` or ``"position"``.

        "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion",
        "pid" or "general".
        """
        if self.adhesion:
            return "adhesion"
        if self.integral or self.activation == "ramp":
            return "pid"
        if self.muscle is not None:
            return "muscle" if self.activation == "muscle" else "general"
        (g0, g1, g2), (b0, b1, b2) = self.gain, self.bias
        if g1 or (g0 and g2):
            return "general"
        if g2:
            damper = g2 < 0 and not self.activation and not any(self.bias)
            return "damper" if damper else "general"
        if b1 and b1 == -g0 and b2 <= 0:
            return ACTIVATIONS[self.activation].servo
        if self.activation:
            return ACTIVATIONS[self.activation].motor
        if b2 and b2 == -g0 and not b0 and not b1:
            return "velocity"
        return "general" if any(self.bias) else "motor"

    @property
    def is_servo(self) -> bool:
        """Whether the actuator's force depends on a bias or state, not on the control alone."""
        law = any(self.bias) or any(self.gain[1:]) or self.muscle is not None
        return bool(self.activation or self.integral) or law

    @property
    def force_range(self) -> tuple[float, float]:
        """Smallest and largest force of the actuator before its gear [N or N·m]."""
        if self.is_servo:
            return self.effort
        low, high = sorted(self.gain[0] * x if self.gain[0] else 0.0 for x in self.control)
        return max(low, self.effort[0]), min(high, self.effort[1])


def servo_law(name: str, law: dict[str, Any], kp, kv) -> dict[str, Any]:
    """Actuator law with gain and bias of a position (``kp``) or velocity servo (``kv``)."""
    if kp is None and kv is None:
        return law
    if law.get("gain") is not None or law.get("bias") is not None:
        raise ModelError(
            f"actuator {name!r} has kp or kv, which stand for gain and bias; give one or the other"
        )
    for what, value in (("kp", kp), ("kv", kv)):
        if value is not None and not (np.ndim(value) == 0 and value >= 0):
            raise ModelError(
                f"{what} of actuator {name!r} must be a number that is not negative, got {value!r}"
            )
    damping = 0.0 if kv is None else float(kv)
    stiffness, gain = (0.0, damping) if kp is None else (float(kp), float(kp))
    return {**law, "gain": (gain, 0.0, 0.0), "bias": (0.0, -stiffness, -damping)}


# --- controls and states of postures, by name ----------------------------------------------------


def states_of(actuators) -> list[str]:
    """Names of the state variables of actuators, in order: its own, or ``<name>.integral``.

    A state has the name of its actuator alone, unless it is the second one.
    """
    found = []
    for a in actuators:
        found += [a.name] * bool(a.activation)
        found += [f"{a.name}.integral" if a.activation else a.name] * bool(a.integral)
    return found


def commands_of(posture, actuators) -> dict[str, dict]:
    """Controls and states of a posture by name, see ``states_of``; empty where it has none."""
    names = {"controls": [a.name for a in actuators], "activation": states_of(actuators)}
    return {
        what: dict(zip(those, getattr(posture, what).tolist(), strict=False))
        for what, those in names.items()
    }


def command_vectors(commands: dict[str, dict], actuators) -> dict[str, tuple]:
    """Control and state vectors of a posture from values by name; zero for names not given."""
    names = {"controls": [a.name for a in actuators], "activation": states_of(actuators)}
    return {
        what: tuple(commands[what].get(name, 0.0) for name in those)
        if any(name in commands[what] for name in those)
        else ()
        for what, those in names.items()
    }


def fit_postures(postures, old, new) -> list:
    """Postures with controls in the order of ``new`` actuators, by name; zero for new names."""
    return [replace(p, **command_vectors(commands_of(p, old), new)) for p in postures]
