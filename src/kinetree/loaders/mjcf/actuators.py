"""Actuators of a compiled MuJoCo model: motors, servos and cylinders on joints, tendons and sites.

MuJoCo's force is ``gain u + bias``, both affine in length and velocity, as ours is. Its length of a
hinge or slide counts from ``qpos = 0``, ours from ``qpos0``: the difference goes into the constants
of gain and bias, so that controls mean the same.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ModelError
from kinetree.loaders.mjcf.joints import BALL, FREE, is_disabled, variables
from kinetree.loaders.mjcf.tendons import tendon_names
from kinetree.loaders.mjcf.values import AllBut, names_of, unused_name
from kinetree.model import Actuator, Frame, Muscle
from kinetree.model.actuator import ACTIVATIONS, UNBOUNDED

ATTRIBUTES = {
    **dict.fromkeys(
        (
            "general", "motor", "position", "velocity", "intvelocity", "pid", "damper", "cylinder",
            "muscle", "adhesion", "dcmotor", "orientation",
        ),
        AllBut("group", "user", "nsample", "interp", "delay", "actearly"),
    ),
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""
INTEGRAL = "its integral action (ki) is not represented: proportional and derivative action are"
SLEW = "its position setpoint may jump: slewmax is not represented"
LEFT_OUT = {
    "dcmotor": "it is a DC motor with its electronics",
    "orientation": "it turns a body to an orientation",
}
"""Elements that are noted by name and left out."""
NOTED = {
    "muscle": {
        "tausmooth": "its activation switches from rising to falling at once, not smoothly "
        "(tausmooth)"
    },
}
"""Attributes that are noted by name where they act, and why."""

JOINT, JOINT_IN_PARENT, SLIDER_CRANK, TENDON, SITE, BODY, ORIENTATION = range(7)  # mjtTrn
_DYN = ("none", "integrator", "filter", "filterexact", "muscle", "dcmotor", "pid", "user")  # mjtDyn
_DYNAMICS = {_DYN.index(dyntype): name for name, a in ACTIVATIONS.items() for dyntype in a.dyntype}
_FIXED, _AFFINE, _MUSCLE, _, _, _PID = range(6)  # mjtGain; mjtBias: none, affine, muscle


class MjcfActuators(NamedTuple):
    """Actuators, and where MuJoCo's vectors have their controls and activations."""

    actuators: tuple[Actuator, ...]
    controls: list[int]
    activation: list[int]
    frames: tuple[Frame, ...]
    """Frames that some of them need besides those of the model."""


def actuators_of(mj_model, tree, note, frames, sites) -> MjcfActuators:
    """Actuators of a MuJoCo model whose force is affine in length and velocity, or a muscle.

    Args:
        mj_model: the compiled model.
        tree: our bodies.
        note: for the others.
        frames: of the model.
        sites: those of all sites.
    """
    taken, found, controls, activation = set(), [], [], []
    clamped = not is_disabled(mj_model, "CLAMPCTRL")
    ends = _Ends(mj_model, tree, frames, sites)
    for a, given in enumerate(names_of(mj_model, "actuator")):
        try:
            laws, end = _laws(mj_model, a), ends.of(a)
        except _LeftOutError as why:
            note("actuator", given, f"{why}, and is left out", "control")
            continue
        for why in _not_represented(mj_model, a, laws):
            note("actuator", given, why, "control")
        zero, has_length = end.pop("zero"), end.pop("has_length")
        first = int(mj_model.actuator_ctrladr[a]) if hasattr(mj_model, "actuator_ctrladr") else a
        for control, (ending, law) in enumerate(laws.items(), start=first):
            own = (given or f"actuator_{a}") + ending
            found.append(
                Actuator(
                    unused_name(own, "actuator", taken),
                    control=_range(mj_model, "ctrl", control) if clamped else UNBOUNDED,
                    effort=_range(mj_model, "force", a),
                    **{**law, **end, **_shift(law, zero, has_length)},
                )
            )
            controls.append(control)
            states = bool(law["activation"]) + bool(law.get("integral"))
            activation += range(mj_model.actuator_actadr[a], mj_model.actuator_actadr[a] + states)
    return MjcfActuators(tuple(found), controls, activation, tuple(ends.frames))


def _not_represented(mj_model, a, laws):
    """Properties of a MuJoCo actuator's law that kinetree does not represent."""
    prm = mj_model.actuator_dynprm[a]
    if mj_model.actuator_gaintype[a] == _PID:
        if len(laws) > 1 and mj_model.actuator_forcelimited[a]:
            yield "its force range bounds the force of each of its inputs, not their sum"
        return
    activation = laws[""]["activation"]
    if _dynamics(mj_model, a) and not activation:
        yield "its time constant is zero: the activation is the control"
    if ACTIVATIONS[activation].falls and prm[2]:
        yield NOTED["muscle"]["tausmooth"]


class _LeftOutError(Exception):
    """Error for an actuator that has no counterpart."""


# --- the law of its force ------------------------------------------------------------------------


def _laws(mj_model, a) -> dict[str, dict[str, Any]]:
    """Actuator laws (gain, bias, activation) by name suffix; several for several inputs."""
    if mj_model.actuator_gaintype[a] == _PID and hasattr(mj_model, "actuator_ctrlspec"):
        return _pid(mj_model, a)
    return {"": _law(mj_model, a)}


def _pid(mj_model, a):
    """PID actuator as one law per input, whose forces add up.

    That of the position has the states: the setpoint, if its rate is bounded, and the integral.
    """
    _require_on(mj_model, a)
    bias = [float(x) for x in mj_model.actuator_biasprm[a, :3]]
    gains = {"": -bias[1], "_velocity": -bias[2], "_feedforward": 1.0}
    found = {}
    for k, (ending, gain) in enumerate(gains.items()):
        if mj_model.actuator_ctrlspec[a] >> k & 1:
            ending, own = (ending, [0.0, 0.0, 0.0]) if found else ("", bias)
            found[ending] = {"gain": [gain, 0.0, 0.0], "bias": own, "activation": ""}
    largest, slew = (float(x) for x in mj_model.actuator_dynprm[a, :2])
    if slew > 0:
        found[""] |= {"activation": "ramp", "time_constant": 1.0 / slew}
    if integral := float(mj_model.actuator_gainprm[a, 0]):
        found[""]["integral"] = integral
        found[""]["integral_range"] = (-largest, largest) if largest > 0 else UNBOUNDED
    return found


def _require_on(mj_model, a):
    """Raise an error for an actuator in a group that is disabled."""
    if mj_model.opt.disableactuator >> int(mj_model.actuator_group[a]) & 1:
        raise _LeftOutError("its group is switched off (actuatorgroupdisable)")


def _law(mj_model, a):
    """Gain, bias and activation of a MuJoCo actuator with one input."""
    kinds = [getattr(mj_model, f"actuator_{what}type")[a] for what in ("dyn", "gain", "bias")]
    if getattr(mj_model, "actuator_plugin", [-1] * (a + 1))[a] >= 0:
        raise _LeftOutError("a plugin computes its force")
    _require_on(mj_model, a)
    muscular = kinds[1] == _MUSCLE and kinds[2] in (0, _MUSCLE)
    if kinds[0] not in _DYNAMICS or (max(kinds[1:]) > _AFFINE and not muscular):
        raise _LeftOutError(_kind(kinds))
    gain, bias = (
        [float(x) for x in getattr(mj_model, f"actuator_{what}prm")[a, :3]]
        for what in ("gain", "bias")
    )
    law: dict[str, Any] = (
        {"muscle": _muscle(mj_model, a)}
        if muscular
        else {
            "gain": gain if kinds[1] == _AFFINE else [gain[0], 0.0, 0.0],
            "bias": bias if kinds[2] == _AFFINE else [0.0, 0.0, 0.0],
        }
    )
    activation, time_constant = _dynamics(mj_model, a), float(mj_model.actuator_dynprm[a, 0])
    fall = float(mj_model.actuator_dynprm[a, 1]) if ACTIVATIONS[activation].falls else 1.0
    if ACTIVATIONS[activation].has_time_constant and min(time_constant, fall) <= 0:
        if ACTIVATIONS[activation].falls:
            raise _LeftOutError("it is a muscle whose activation takes no time")
        activation = ""
    law["activation"] = activation
    if ACTIVATIONS[activation].has_time_constant:
        law["time_constant"] = time_constant
    if ACTIVATIONS[activation].falls:
        law["deactivation_time"] = fall
    if activation:
        law["activation_range"] = _range(mj_model, "act", a)
    return law


def _muscle(mj_model, a):
    """Muscle parameters with the lengths and force that MuJoCo's compiler found."""
    prm = [float(x) for x in mj_model.actuator_gainprm[a, :9]]
    low, high = (float(x) for x in mj_model.actuator_lengthrange[a])
    lengths = low, high
    force = prm[2] if prm[2] >= 0 else prm[3] / max(1e-15, float(mj_model.actuator_acc0[a]))
    passive = prm[7] if mj_model.actuator_biastype[a] == _MUSCLE else 0.0
    try:
        curves = dict(zip(("lmin", "lmax", "vmax"), prm[4:7], strict=True))
        reach = prm[0], prm[1]
        return Muscle(force, lengths, reach, **curves, fpmax=passive, fvmax=prm[8])
    except ModelError as why:
        raise _LeftOutError(f"it is a muscle that cannot be: {why}") from None


def _dynamics(mj_model, a):
    """Name of the activation dynamics of an actuator."""
    return _DYNAMICS[int(mj_model.actuator_dyntype[a])]


_OTHERS = (
    ((None, 2, 2), "only its gain or only its bias is that of a muscle"),
    ((5, 3, 3), LEFT_OUT["dcmotor"]),
    ((7, 6, 5), "a program of the user computes its force"),
    ((None, 4, 4), LEFT_OUT["orientation"]),
)
"""Other laws: their numbers in mjtDyn, mjtGain and mjtBias, and what the actuator is."""


def _kind(kinds):
    """Names of unsupported kinds of an actuator, as text for a notice."""
    for numbers, text in _OTHERS:
        if any(k == n for k, n in zip(kinds, numbers, strict=True)):
            return text
    return "its force follows a law of another kind"


def _shift(law, zero, has_length):
    """Actuator law for lengths that are smaller by ``zero`` than MuJoCo's."""
    if "muscle" in law:
        lengths = tuple(x - zero for x in law["muscle"].length_range)
        return {"muscle": replace(law["muscle"], length_range=lengths)}
    shifted = {
        what: (c0 + c1 * zero, c1 if has_length else 0.0, c2)
        for what, (c0, c1, c2) in ((what, law[what]) for what in ("gain", "bias"))
    }
    return shifted | ({"integral_zero": zero} if law.get("integral") else {})


def _range(mj_model, what, a):
    """Control or force range of a MuJoCo actuator; infinite for none."""
    if not getattr(mj_model, f"actuator_{what}limited")[a]:
        return UNBOUNDED
    low, high = getattr(mj_model, f"actuator_{what}range")[a]
    return float(low), float(high)


# --- what it drives ------------------------------------------------------------------------------


class _Ends:
    """Ends of actuators, as fields of ``Actuator``, with their gears."""

    def __init__(self, mj_model, tree, frames, sites):
        self.mj_model, self.tree, self.sites = mj_model, tree, sites
        self.tendons = tendon_names(mj_model)
        self.number = {b.joint_name: i for i, b in enumerate(tree.bodies, start=1)}
        self.frames: list[Frame] = []
        self.taken = {*tree.body_names, *(b.name for b in tree.bodies)}
        self.taken |= {f.name for f in frames}

    def of(self, a):
        """Actuator fields by its transmission; ``zero`` is MuJoCo's length at kinetree's zero."""
        mj_model = self.mj_model
        kind, (i, reference) = mj_model.actuator_trntype[a], mj_model.actuator_trnid[a].tolist()
        out = mj_model.actuator_outadr[a] if hasattr(mj_model, "actuator_outadr") else a
        gear = [float(x) for x in mj_model.actuator_gear[out]]
        if kind in (JOINT, JOINT_IN_PARENT):
            return {"zero": 0.0, "has_length": True} | self._joint(i, gear, kind)
        if kind == TENDON:
            end = {"tendon": self.tendons[i], "gear": tuple(gear[:1])}
        elif kind == SITE:
            end = {"frame": self.sites[i].name, "gear": (*gear[3:], *gear[:3])}
            if reference >= 0:
                end["reference"] = self.sites[reference].name
        elif kind == SLIDER_CRANK:
            sites = {"frame": self.sites[i].name, "reference": self.sites[reference].name}
            rod = float(mj_model.actuator_cranklength[a])
            end = {**sites, "crank": rod, "gear": tuple(gear[:1])}
        elif kind == BODY:
            end = {"frame": self._body(i), "adhesion": True, "gear": tuple(gear[:1])}
        else:
            raise _LeftOutError(LEFT_OUT["orientation"])
        return {"zero": 0.0, "has_length": True} | end

    def _body(self, b):
        """Number of the body with adhesion; an error if it has other bodies merged in."""
        number = self.tree.places[b].body
        carried = [k for k, place in enumerate(self.tree.places) if place.body == number]
        shaped = [k for k in carried if self.mj_model.body_geomnum[k]]
        if not number or shaped not in ([], [b]):
            raise _LeftOutError("it acts by adhesion of a part of a body (lump=False keeps parts)")
        return self.tree.bodies[number - 1].name

    def _joint(self, j, gear, kind):
        """Joint, gear and zero length of an actuator on a joint."""
        at, joint = variables(self.mj_model, j), self.number[self.tree.joint_names[j]]
        if at.kind not in (BALL, FREE):
            return {"joint": joint, "gear": (gear[0],), "zero": gear[0] * at.reference}
        body, moment, force = self.tree.bodies[joint - 1], gear[3:], gear[:3]
        if at.kind == BALL:
            if kind == JOINT:
                return {"joint": joint, "gear": tuple(gear[:3])}
            name = unused_name(f"{body.joint_name}_parent", "frame", self.taken)
            self.frames.append(Frame(name, body.parent, body.placement))
            wrench = (*gear[:3], 0.0, 0.0, 0.0)
            return {"frame": body.name, "reference": name, "gear": wrench}
        # A free joint has no length in MuJoCo; it is pushed in the axes of the world, and turned
        # in those of the body, or of the world too.
        if kind == JOINT and not np.any(force):
            return {"joint": joint, "gear": (*moment, 0.0, 0.0, 0.0), "has_length": False}
        if kind == JOINT and np.any(moment):
            raise _LeftOutError("it pushes in the axes of the world and turns in those of the body")
        world = self.tree.body_names[0]
        end = {"frame": body.name, "reference": world, "gear": (*moment, *force)}
        return end | {"has_length": False}
