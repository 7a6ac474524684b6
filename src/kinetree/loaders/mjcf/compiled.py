"""A model from a compiled MuJoCo model: actuators and keyframes; the rest from beside."""

import math

import numpy as np

from kinetree.joints import Free
from kinetree.loaders.mjcf import constraints, tendons
from kinetree.loaders.mjcf.geoms import contact_pairs_of, geometry_of, with_parents
from kinetree.loaders.mjcf.joints import BALL, FREE, disabled, variables
from kinetree.loaders.mjcf.maps import map_of
from kinetree.loaders.mjcf.tree import sites_of, tree_of
from kinetree.loaders.mjcf.values import AllBut, model_name, names_of, unused
from kinetree.model import Actuator, Model, Posture

ATTRIBUTES = {
    "mujoco": {"model"},
    "option": {"gravity", "density", "viscosity", "wind"},
    "flag": {
        "gravity", "spring", "damper", "frictionloss", "limit", "equality", "constraint", "contact",
        "filterparent",
    },
    "key": {"name", "qpos", "qvel"},
    **dict.fromkeys(("compiler", "default", "asset", "actuator", "keyframe", "model"), AllBut()),
    **dict.fromkeys(
        (
            "general", "motor", "position", "velocity", "intvelocity", "pid", "damper", "cylinder",
            "muscle", "adhesion", "dcmotor", "orientation",
        ),
        AllBut("group", "user", "nsample", "interp", "delay", "actearly", "lengthrange"),
    ),
    **constraints.ATTRIBUTES,
    **tendons.ATTRIBUTES,
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""


def from_compiled(mj_model, note, *, lump=True, floating_base=False, paths=None) -> Model:
    """Our model of the mechanism in an ``MjModel``.

    Args:
        mj_model: the compiled model.
        note: called with tag, name, reason and effect for everything that is not represented.
        lump: merge bodies without joints into those that carry them.
        floating_base: put bodies on the world without joints on free joints.
        paths: paths of mesh files by the names under which MuJoCo knows them.
    """
    tree = tree_of(mj_model, note, lump=lump, floating_base=floating_base)
    frames = (*tree.frames, *sites_of(mj_model, tree))
    loops, couplings = constraints.constraints_of(mj_model, tree, note)
    _note_other_forces(mj_model, note)
    gravity = np.zeros(3) if disabled(mj_model, "GRAVITY") else np.array(mj_model.opt.gravity)
    geometry = geometry_of(mj_model, tree, note, paths)
    model = Model(
        tuple(tree.bodies),
        frames=frames,
        loops=loops,
        couplings=couplings,
        geometry=geometry,
        actuators=actuators_of(mj_model, tree, note),
        postures=postures_of(mj_model, tree),
        gravity=gravity,
        name=model_name(mj_model) or "mechanism",
        base_name=tree.body_names[0],
        strict=False,
        tendons=tendons.tendons_of(mj_model, tree, note),
        gravity_compensation=tendons.gravity_compensation_of(mj_model, tree, note),
        contact_pairs=contact_pairs_of(mj_model, tree, geometry, note),
    )
    return with_parents(mj_model, model)


def _note_other_forces(mj_model, note):
    if mj_model.opt.density or mj_model.opt.viscosity:
        note("option", "", "forces of a fluid (density, viscosity, wind) are not represented")
    if mj_model.nflex:
        note("flex", "", "the elasticity of flexible bodies is not represented")


# --- Actuators -----------------------------------------------------------------------------------

_JOINT, _JOINT_IN_PARENT = 0, 1  # mjtTrn


def actuators_of(mj_model, tree, note):
    """Actuators that act on a joint; a servo becomes a motor without its controller."""
    taken, found = set(), []
    number = {b.joint_name: i for i, b in enumerate(tree.bodies, start=1)}
    for a, given in enumerate(names_of(mj_model, "actuator")):
        if mj_model.actuator_trntype[a] not in (_JOINT, _JOINT_IN_PARENT):
            note("actuator", given, "it does not act on a joint, and is left out", "control")
            continue
        j = int(mj_model.actuator_trnid[a, 0])
        gear = _gear(mj_model, a, j)
        if gear is None:
            note(
                "actuator", given, "its axis is fixed in the parent, and it is left out", "control"
            )
            continue
        gain = _gain(mj_model, a)
        control = _range(mj_model, "ctrl", a, "actuator_ctrladr")
        effort = _range(mj_model, "force", a)
        if gain is None:
            why = "a servo, filter or muscle: kept as a motor of the same gear"
            note("actuator", given, why, "control")
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


# --- Keyframes -----------------------------------------------------------------------------------

INITIAL = "qpos0"
"""Name of the posture in which free bodies are where the file puts them."""


def postures_of(mj_model, tree):
    """Keyframes; before them ``qpos0``, if free bodies start elsewhere than at the origin."""
    taken, found = set(), []
    q, qd = _state(mj_model, tree, np.array(mj_model.qpos0), np.zeros(mj_model.nv))
    neutral = [x for body in tree.bodies for x in body.joint.neutral()]
    if any(isinstance(body.joint, Free) for body in tree.bodies) and q != tuple(neutral):
        found.append(Posture(unused(INITIAL, "", taken), q, qd))
    for k, given in enumerate(names_of(mj_model, "key")):
        state = _state(mj_model, tree, np.array(mj_model.key_qpos[k]), mj_model.key_qvel[k])
        found.append(Posture(unused(given or f"key_{k}", "key", taken), *state))
    return tuple(found)


def _state(mj_model, tree, qpos, qvel):
    numbers = {name: j for j, name in enumerate(tree.joint_names)}
    positions, velocities = [], []
    for body in tree.bodies:
        if body.joint_name in numbers:
            at = variables(mj_model, numbers[body.joint_name])
            q = body.joint.normalize(qpos[at.q] - at.reference)
            positions += q.tolist()
            velocities += map_of(body.joint).from_velocity(q, qvel[at.v]).tolist()
        elif body.joint.nq:  # the free joint that floating_base added
            b = tree.body_names.index(body.name)
            positions += [*mj_model.body_pos[b].tolist(), *mj_model.body_quat[b].tolist()]
            velocities += [0.0] * 6
    return tuple(positions), tuple(velocities)
