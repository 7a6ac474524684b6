"""How the bodies of a mechanism move, in base coordinates: what no change of model may change."""

import numpy as np

from kinetree.algorithms.aba import forward_dynamics
from kinetree.algorithms.kinematics import base_transforms, body_accelerations


def body_motions(model, q, qd, qdd=None, tau=None):
    """Velocity and acceleration (12,) of each body by name.

    Unless given, ``qdd`` is from ABA, of the spanning tree: random states do not close loops.
    """
    if qdd is None:
        tau, tree = np.zeros(model.nv) if tau is None else tau, model.replace(loops=())
        qdd = forward_dynamics(tree, q, qd, tau)
    X, v, a = body_accelerations(model, q, qd, qdd)
    X_0 = base_transforms(model, X)
    return {
        name: np.concatenate([X_0[i].inv_apply(v[i]).to_array(), X_0[i].inv_apply(a[i]).to_array()])
        for i, name in enumerate(model.body_names)
        if i > 0
    }


def frame_pose(model, q, name):
    """The 4x4 pose of a frame or body in the base."""
    frame = model.frame(name)
    X, _, _ = body_accelerations(model, q, model.zero_velocity, model.zero_velocity)
    return (frame.placement @ base_transforms(model, X)[frame.body]).to_pose().astype(float)


def carried_over(source, target, values, kind):
    """Joint vector of ``target`` with the values of joints of the same name in ``source``."""
    slices = {"q": "q_slice", "v": "v_slice"}[kind]
    result = target.neutral() if kind == "q" else np.zeros(target.nv)
    for name in target.joint_names:
        if name in source.joint_names:
            here = getattr(target, slices)[target.joint_index(name)]
            there = getattr(source, slices)[source.joint_index(name)]
            if here.stop - here.start == there.stop - there.start:
                result[here] = values[there]
    return result
