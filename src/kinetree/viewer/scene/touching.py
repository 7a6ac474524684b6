"""Contacts of a simulated motion, as arrays to be shown."""

import numpy as np

from kinetree.contact.tangents import contact_axes
from kinetree.errors import ContactError
from kinetree.viewer.scene.contacts import Contacts

__all__ = ["contacts_of"]


def contacts_of(trajectory, scene, margin=1e-4) -> Contacts:
    """Points, normals, forces and friction of the contacts of a motion, for ``view`` and the rest.

    Args:
        trajectory: one motion that was simulated with ``contact=``.
        scene: the ``kinetree.contact.Scene`` that it was simulated with.
        margin: the largest gap of a contact that is shown [m].
    """
    history = trajectory.contact
    if history is None:
        raise ContactError(
            "the trajectory has no contact forces: simulate it with contact=, such as "
            "kt.simulate(model, q, contact=kt.contact.TimeStepping(scene), ...)"
        )
    column = {name: k for k, name in enumerate(history.names)}
    shape = len(trajectory.t), len(column), 3
    points, normals, forces = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    friction = np.zeros(len(column))
    for k, q in enumerate(trajectory.q):
        found = scene.contacts(q, margin)
        known = [j for j, name in enumerate(found.names) if name in column]
        at = [column[found.names[j]] for j in known]
        axes = contact_axes(found.normal[known])
        points[k, at], normals[k, at] = found.point[known], found.normal[known]
        forces[k, at] = (history.force[k, at, None, :] @ axes)[:, 0]
        friction[at] = found.friction[known]
    return Contacts(points, normals, forces, friction)
