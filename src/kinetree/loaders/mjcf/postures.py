"""Keyframes of a compiled MuJoCo model as postures."""

import numpy as np

from kinetree.joints import Free
from kinetree.loaders.mjcf.joints import variables
from kinetree.loaders.mjcf.maps import map_of
from kinetree.loaders.mjcf.names import names_of, unused
from kinetree.model import Posture

__all__ = ["INITIAL", "postures_of"]

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
