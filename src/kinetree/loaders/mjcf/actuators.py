"""Actuators of a compiled MuJoCo model."""

import math

import numpy as np

from kinetree.loaders.mjcf.joints import BALL, FREE
from kinetree.loaders.mjcf.names import names_of, unused
from kinetree.model import Actuator

__all__ = ["actuators_of"]

_JOINT, _JOINT_IN_PARENT = 0, 1  # mjtTrn


def actuators_of(mj_model, tree, tell):
    """Those that act on a joint; a servo becomes a motor without its controller."""
    taken, found = set(), []
    number = {b.joint_name: i for i, b in enumerate(tree.bodies, start=1)}
    for a, given in enumerate(names_of(mj_model, "actuator")):
        if mj_model.actuator_trntype[a] not in (_JOINT, _JOINT_IN_PARENT):
            tell("actuator", given, "it does not act on a joint, and is left out")
            continue
        j = int(mj_model.actuator_trnid[a, 0])
        gear = _gear(mj_model, a, j)
        if gear is None:
            tell("actuator", given, "its axis is fixed in the parent, and it is left out")
            continue
        gain = _gain(mj_model, a)
        control = _range(mj_model, "ctrl", a, "actuator_ctrladr")
        effort = _range(mj_model, "force", a)
        if gain is None:
            tell("actuator", given, "a servo, filter or muscle: kept as a motor of the same gear")
            control = (-math.inf, math.inf)
        else:  # the gain is part of our gear
            gear = gear * gain
            low, high = sorted(x / gain for x in effort)
            effort = (low, high)
        name = unused(given or f"actuator_{a}", "actuator", taken)
        joint = number[tree.joint_names[j]]
        found.append(Actuator(name, joint, tuple(gear.tolist()), control, effort))
    return tuple(found)


def _gear(mj_model, a, j):
    """Along our velocity variables, or None where that is not constant."""
    out = mj_model.actuator_outadr[a] if hasattr(mj_model, "actuator_outadr") else a
    gear, kind = np.array(mj_model.actuator_gear[out]), mj_model.jnt_type[j]
    if kind not in (BALL, FREE):
        return gear[:1]
    if mj_model.actuator_trntype[a] == _JOINT_IN_PARENT:
        return None
    if kind == BALL:
        return gear[:3]
    return None if np.any(gear[:3]) else np.concatenate([gear[3:], np.zeros(3)])


def _gain(mj_model, a):
    """Force per unit of control, or None for anything but a plain motor."""
    plain = (
        mj_model.actuator_dyntype[a] == 0
        and mj_model.actuator_gaintype[a] == 0
        and mj_model.actuator_biastype[a] == 0
    )
    gain = float(mj_model.actuator_gainprm[a, 0])
    return gain if plain and gain != 0 else None


def _range(mj_model, what, a, address=None):
    if address is not None and hasattr(mj_model, address):
        a = getattr(mj_model, address)[a]
    if not getattr(mj_model, f"actuator_{what}limited")[a]:
        return -math.inf, math.inf
    low, high = getattr(mj_model, f"actuator_{what}range")[a]
    return float(low), float(high)
