"""Postures by the names of joints, for models that are already built."""

from kinetree.model import Posture

__all__ = ["with_posture"]


def with_posture(model, name, q, qd=None):
    """The model with one more posture; joints that are not named stand at their neutral position.

    Args:
        model: the model.
        name: of the posture.
        q: position variables by the name of the joint.
        qd: velocity variables likewise.
    """
    positions, velocities = model.neutral(), model.zero_velocity.astype(float)
    for vector, slices, given in (
        (positions, model.q_slice, q),
        (velocities, model.v_slice, qd or {}),
    ):
        for joint, value in given.items():
            vector[slices[model.joint_index(joint)]] = value
    posture = Posture(name, tuple(positions.tolist()), tuple(velocities.tolist()))
    return model.replace(postures=(*model.postures, posture))
