"""What became of contacts from one instant to the next — RBDA §11.6, Fig. 11.6.

Forces break a contact by pulling the bodies apart. Geometry breaks it without a warning in the
equations of motion: a corner slides over the border of a face, an edge past the end of an edge.
"""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.contact.contacts import velocity

__all__ = ["Changes", "contact_changes"]


class Changes(NamedTuple):
    """Names of pairs that began to touch, or ceased to.

    Attributes:
        gained: pairs that touch now and did not before.
        parted: pairs that moved apart along the normal.
        slid_off: pairs that lost their contact through geometry alone.
    """

    gained: tuple[str, ...]
    parted: tuple[str, ...]
    slid_off: tuple[str, ...]


@on_host
def contact_changes(model, q, qd, before, after, tolerance=1e-6):
    """What pairs of shapes gained and lost contact between two instants.

    Args:
        model: the mechanism.
        q: configuration at the first instant, (nq,).
        qd: velocity at the first instant, (nv,).
        before: ``Contacts`` of a scene at the first instant.
        after: those of the second.
        tolerance: speed [m/s] of separation above which bodies part.
    """
    first, second = _pairs(before), _pairs(after)
    lost = [name for name in first if name not in second]
    apart = velocity(model, q, qd, before)[:, 0] > tolerance
    parts = {name: bool(np.all(apart[first[name]])) for name in lost}
    return Changes(
        tuple(name for name in second if name not in first),
        tuple(name for name in lost if parts[name]),
        tuple(name for name in lost if not parts[name]),
    )


def _pairs(contacts):
    """Numbers of the contacts of every pair, by name."""
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(contacts.names):
        groups.setdefault(name.rpartition(":")[0], []).append(k)
    return groups
