"""Rows of a contact Jacobian for rotation: about the normal, or about all three axes."""

import numpy as np

from kinetree.contact.body_motions import body_motions
from kinetree.contact.tangents import contact_axes
from kinetree.quantities import kinematics

__all__ = ["with_spin"]


def with_spin(collision, axes):
    """Jacobian and relative velocity with angular rows after the three linear ones.

    Args:
        collision: a ``Collision``.
        axes: how many of (normal, tangent 1, tangent 2) to have rows for.

    Returns:
        ``J`` (n, 3 + axes, nv), and ``zeta`` (n, 3 + axes).
    """
    model, contacts = collision.model, collision.contacts
    w = np.zeros((model.body_count + 1, 3, model.nv))
    w[1:] = kinematics.jacobians(model, collision.q, frame="world")[:, :3]
    turning = contact_axes(contacts.normal)[:, :axes]
    spin = turning @ (w[contacts.successor] - w[contacts.predecessor])
    J = np.concatenate([collision.J, spin], axis=1)
    v = body_motions(model, collision.q, collision.qd)[0][:, :3]
    between = (v[contacts.successor] - v[contacts.predecessor])[..., None]
    return J, np.concatenate([collision.zeta, (turning @ between).squeeze(-1)], axis=1)
