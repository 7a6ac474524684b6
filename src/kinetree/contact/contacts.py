"""Contacts of one instant, and how fast the bodies separate there — RBDA §11.1, §11.3.

A contact is a point, a unit normal from the predecessor to the successor, and a gap along it. Its
row of the Jacobian is ``t = (J_s - J_p)ᵀ n``, RBDA (11.26), and its separation acceleration
``J qdd + bias``, RBDA (11.29). The bias holds the rate of the normal, which depends on how the
surfaces are curved: see ``rolling``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.contact.body_motions import body_motions
from kinetree.contact.rolling import contact_rates
from kinetree.contact.tangents import contact_axes, contact_axes_rate
from kinetree.quantities import kinematics

__all__ = ["Contacts", "bias", "jacobian", "spatial_normals", "velocity"]


class Contacts(NamedTuple):
    """Contacts of one instant, ``n`` of them.

    Attributes:
        predecessor: body on the side that the normal leaves, (n,) whole numbers; 0 is the base.
        successor: body on the side that the normal points to, (n,).
        point: where they touch, half-way across the gap, in base coordinates [m], (n, 3).
        normal: unit vectors; a positive force along one pushes the successor away, (n, 3).
        gap: distance along the normal [m], negative where the bodies overlap, (n,).
        names: what to call them.
        friction: coefficients of friction, (n,), where the scene knows them.
        restitution: coefficients of restitution, (n,), where the scene knows them.
        turn: with ``travel``, the curvature of both surfaces, (n, 2, 3, 3), predecessor first;
            see ``rolling``. None: corners of the successor on flat faces of the predecessor.
        travel: see ``turn``.
    """

    predecessor: Any
    successor: Any
    point: Any
    normal: Any
    gap: Any
    names: tuple[str, ...] = ()
    friction: Any = None
    restitution: Any = None
    turn: Any = None
    travel: Any = None

    @property
    def size(self) -> int:
        """Number of contacts."""
        return len(self.gap)

    def chosen(self, which) -> "Contacts":
        """Some of the contacts, by a mask or by numbers, in that order."""
        numbers = np.arange(self.size)[which]
        names = tuple(self.names[k] for k in numbers) if self.names else ()
        arrays = {
            field: np.asarray(a)[numbers]
            for field, a in self._asdict().items()
            if a is not None and field != "names"
        }
        return self._replace(**arrays, names=names)


def spatial_normals(contacts):
    """Unit forces along the normals through the points, ``[p × n; n]``, (n, 6) — RBDA §11.1."""
    moment = np.cross(contacts.point, contacts.normal)
    return np.concatenate([moment, contacts.normal], axis=-1)


@on_host
def jacobian(model, q, contacts):
    """Relative velocity of the bodies at every contact is ``J @ qd``, (n, 3, nv).

    Rows are the components along the normal, positive when the bodies separate, and along two
    tangents. Joints that move by themselves (``Prescribed``) come on top: see ``velocity``.
    """
    J = np.zeros((model.body_count + 1, 6, model.nv))
    J[1:] = kinematics.jacobians(model, q, frame="world")
    between = J[contacts.successor] - J[contacts.predecessor]
    return contact_axes(contacts.normal) @ _at_points(between, contacts.point)


@on_host
def velocity(model, q, qd, contacts):
    """Velocity of the successor relative to the predecessor at every contact, (n, 3) [m/s].

    Along the normal, positive when the bodies separate, and along two tangents. It is
    ``jacobian @ qd``, and what joints with a prescribed motion add.
    """
    v, _ = _between(model, q, qd, contacts)
    return (contact_axes(contacts.normal) @ _at_points(v, contacts.point)).squeeze(-1)


@on_host
def bias(model, q, qd, contacts):
    """What ``velocity`` changes by per second at ``qdd = 0``, (n, 3) [m/s²].

    Along the normal it is the second time derivative of the gap: ``n · a + ṅ · v``, RBDA (11.3),
    (11.33), with the rate of the normal that the curvature of the surfaces gives.
    """
    v, a = _between(model, q, qd, contacts)
    v_p = body_motions(model, q, qd)[0][contacts.predecessor]
    point_rate, normal_rate = contact_rates(contacts, v_p, v_p + v[..., 0])
    axes, axes_rate = contact_axes(contacts.normal), contact_axes_rate(contacts.normal, normal_rate)
    moved = np.cross(v[:, :3, 0], point_rate)[..., None]
    result = axes @ (_at_points(a, contacts.point) + moved)
    return (result + axes_rate @ _at_points(v, contacts.point)).squeeze(-1)


def _between(model, q, qd, contacts):
    """Velocity and velocity-product acceleration of successors relative to predecessors."""
    return (
        (m[contacts.successor] - m[contacts.predecessor])[..., None]
        for m in body_motions(model, q, qd)
    )


def _at_points(motions, points):
    """Linear parts at the points of motions in base coordinates, (n, 6, k) to (n, 3, k)."""
    return motions[:, 3:] + np.cross(motions[:, :3], points[..., None], axis=1)
