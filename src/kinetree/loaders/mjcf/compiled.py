"""A model from a compiled MuJoCo model: keyframes; the rest from beside."""

import numpy as np

from kinetree.joints import Free
from kinetree.loaders.mjcf import actuators, constraints, tendons
from kinetree.loaders.mjcf.cameras import cameras_of
from kinetree.loaders.mjcf.fluids import fluid_forces_of, momenta_of
from kinetree.loaders.mjcf.geoms import contact_pairs_of, geometry_of, with_parents
from kinetree.loaders.mjcf.joints import is_disabled, map_of, variables
from kinetree.loaders.mjcf.sensors import with_sensors
from kinetree.loaders.mjcf.tree import sites_of, tree_of
from kinetree.loaders.mjcf.values import AllBut, model_name, names_of, unused_name
from kinetree.model import Model, Posture

ATTRIBUTES = {
    "mujoco": {"model"},
    "option": {"gravity", "density", "viscosity", "wind", "magnetic"},
    "flag": {
        "gravity", "spring", "damper", "frictionloss", "limit", "equality", "constraint", "contact",
        "filterparent", "clampctrl",
    },
    "key": {"name", "qpos", "qvel", "ctrl", "act"},
    **dict.fromkeys(("compiler", "lengthrange", "default", "asset", "actuator"), AllBut()),
    **dict.fromkeys(("keyframe", "model"), AllBut()),
    **actuators.ATTRIBUTES,
    **constraints.ATTRIBUTES,
    **tendons.ATTRIBUTES,
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""


def from_compiled(
    mj_model,
    note,
    *,
    lump=True,
    floating_base=False,
    paths=None,
    references=None,
    keys=(),
    free=None,
) -> Model:
    """Kinetree model of the mechanism in a compiled ``MjModel``.

    Args:
        mj_model: the compiled model.
        note: called with tag, name, reason and effect for everything that is not represented.
        lump: merge bodies without joints into those that carry them.
        floating_base: put bodies on the world without joints on free joints.
        paths: paths of mesh files by the names under which MuJoCo knows them.
        references: ``refpos`` and ``refquat`` of meshes, by the same names.
        keys: attributes that the keyframes have in the file, if they are known; MuJoCo has zeros
            for controls and activations that are not given.
        free: names of the free joints that MuJoCo did not see, by the number of their body.
    """
    tree = tree_of(mj_model, note, lump=lump, floating_base=floating_base, free=free)
    sites = sites_of(mj_model, tree)
    frames = (*tree.frames, *sites)
    taken = {*tree.body_names, *(x.name for x in (*tree.bodies, *frames))}
    shapes = tendons.wrapped_frames(mj_model, tree, taken)
    frames += tuple(shapes.values())
    drives = actuators.actuators_of(mj_model, tree, note, frames, sites)
    loops, couplings = constraints.constraints_of(mj_model, tree, note)
    if mj_model.nflex:
        note("flex", "", "the elasticity of flexible bodies is not represented")
    gravity = np.zeros(3) if is_disabled(mj_model, "GRAVITY") else np.array(mj_model.opt.gravity)
    geometry = geometry_of(mj_model, tree, note, paths, references)
    model = Model(
        tuple(tree.bodies),
        frames=(*frames, *drives.frames),
        loops=loops,
        couplings=couplings,
        geometry=geometry,
        actuators=drives.actuators,
        postures=postures_of(mj_model, tree, drives, keys),
        gravity=gravity,
        name=model_name(mj_model) or "mechanism",
        base_name=tree.body_names[0],
        strict=False,
        tendons=tendons.tendons_of(mj_model, tree, note, sites, shapes),
        gravity_compensation=(
            *tendons.gravity_compensation_of(mj_model, tree, note),
            *fluid_forces_of(mj_model, tree),
            *momenta_of(tree),
        ),
        contact_pairs=contact_pairs_of(mj_model, tree, geometry, note),
        sensors=cameras_of(mj_model, tree, note),
    )
    model = tendons.with_armature(mj_model, model, note)
    sensed = with_sensors(mj_model, tree, model, sites, note)
    return with_parents(mj_model, sensed)


# --- Keyframes -----------------------------------------------------------------------------------

INITIAL = "qpos0"
"""Name of the posture in which free bodies are where the file puts them."""


def postures_of(mj_model, tree, drives, keys):
    """Postures for MuJoCo's keyframes, and for ``qpos0`` if free bodies start elsewhere."""
    taken, found = set(), []
    q, qd = _state(mj_model, tree, np.array(mj_model.qpos0), np.zeros(mj_model.nv))
    neutral = [x for body in tree.bodies for x in body.joint.neutral()]
    if any(isinstance(body.joint, Free) for body in tree.bodies) and q != tuple(neutral):
        found.append(Posture(unused_name(INITIAL, "", taken), q, qd))
    for k, given in enumerate(names_of(mj_model, "key")):
        state = _state(mj_model, tree, np.array(mj_model.key_qpos[k]), mj_model.key_qvel[k])
        commands = {"ctrl": drives.controls, "act": drives.activation}
        if len(keys) == mj_model.nkey:
            commands = {what: at if what in keys[k] else [] for what, at in commands.items()}
        values = (getattr(mj_model, f"key_{what}")[k][at] for what, at in commands.items())
        found.append(Posture(unused_name(given or f"key_{k}", "key", taken), *state, *values))
    return tuple(found)


def _state(mj_model, tree, qpos, qvel):
    """Positions and velocities of all joints, from MuJoCo's ``qpos`` and ``qvel``."""
    numbers = {name: j for j, name in enumerate(tree.joint_names)}
    bodies = {name: b for b, name in enumerate(tree.body_names)}
    positions, velocities = [], []
    for body in tree.bodies:
        if body.joint_name in numbers:
            at = variables(mj_model, numbers[body.joint_name])
            q = body.joint.normalize(qpos[at.q] - at.reference)
            positions += q.tolist()
            velocities += map_of(body.joint).from_velocity(q, qvel[at.v]).tolist()
        elif body.joint.nq:  # a free joint that MuJoCo did not see
            b = bodies[body.name]
            pose = np.concatenate([mj_model.body_pos[b], mj_model.body_quat[b]])
            positions += body.joint.normalize(pose).tolist()
            velocities += [0.0] * 6
    return tuple(positions), tuple(velocities)
