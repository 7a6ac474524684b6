"""Contacts of one instant, their Jacobians, velocities and biases — RBDA §11.1, §11.3.

A contact is a point, a unit normal from the predecessor to the successor, and a gap along it. Its
row of the Jacobian is ``t = (J_s - J_p)ᵀ n``, RBDA (11.26), and its separation acceleration
``J qdd + bias``, RBDA (11.29). The bias holds the rate of the normal, which depends on how the
surfaces are curved: see ``contact_rates``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.functional.kernel import kernel, select
from kinetree.model.model import Model
from kinetree.quantities import kinematics


class Contacts(NamedTuple):
    """Contacts of one instant, ``n`` of them.

    Attributes:
        predecessor: body on the side that the normal leaves, (n,) integers; 0 is the base.
        successor: body on the side that the normal points to, (n,).
        point: where they touch, half-way across the gap, in base coordinates [m], (n, 3).
        normal: unit vectors; a positive force along one pushes the successor away, (n, 3).
        gap: distance along the normal [m], negative where the bodies overlap, (n,).
        names: what to call them.
        friction: coefficients of friction, (n,), of a scene; else None.
        restitution: coefficients of restitution, (n,), of a scene; else None.
        turn: with ``travel``, the curvature of both surfaces, (n, 2, 3, 3), predecessor first;
            see ``contact_rates``. None: corners of the successor on flat faces of the predecessor.
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

    def chosen(self, which: ArrayLike) -> "Contacts":
        """``Contacts`` with some of these contacts, selected by a mask or by numbers, in order."""
        numbers = np.arange(self.size)[which]
        names = tuple(self.names[k] for k in numbers) if self.names else ()
        arrays = {
            field: np.asarray(a)[numbers]
            for field, a in self._asdict().items()
            if a is not None and field != "names"
        }
        return self._replace(**arrays, names=names)


def spatial_normals(contacts: Contacts) -> Array:
    """Unit forces along the normals through the points, ``[p × n; n]``, (n, 6) — RBDA §11.1."""
    moment = np.cross(contacts.point, contacts.normal)
    return np.concatenate([moment, contacts.normal], axis=-1)


@on_host
def jacobian(model: Model, q: ArrayLike, contacts: Contacts) -> Array:
    """Contact Jacobian ``J``: ``J @ qd`` are the relative velocities at the contacts, (n, 3, nv).

    Rows are the components along the normal, positive when the bodies separate, and along two
    tangents. Prescribed joints add a velocity: see ``velocity``.
    """
    J = np.zeros((model.body_count + 1, 6, model.nv))
    J[1:] = kinematics.jacobians(model, q, frame="world")
    between = J[contacts.successor] - J[contacts.predecessor]
    return contact_axes(contacts.normal) @ _at_points(between, contacts.point)


@on_host
def velocity(model: Model, q: ArrayLike, qd: ArrayLike, contacts: Contacts) -> Array:
    """Velocity of the successor relative to the predecessor at every contact, (n, 3) [m/s].

    Along the normal, positive when the bodies separate, and along two tangents. It is
    ``jacobian @ qd``, and what joints with a prescribed motion add.
    """
    v, _ = _between(model, q, qd, contacts)
    return (contact_axes(contacts.normal) @ _at_points(v, contacts.point)).squeeze(-1)


@on_host
def bias(model: Model, q: ArrayLike, qd: ArrayLike, contacts: Contacts) -> Array:
    """Contact accelerations at ``qdd = 0``, (n, 3) [m/s²]: the rate of ``velocity``.

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
    """Relative spatial velocities and bias accelerations of successors, (n, 6, 1) each."""
    return (
        (m[contacts.successor] - m[contacts.predecessor])[..., None]
        for m in body_motions(model, q, qd)
    )


def _at_points(motions, points):
    """Linear parts, at contact points, of motions in base coordinates: (n, 6, k) to (n, 3, k)."""
    return motions[:, 3:] + np.cross(motions[:, :3], points[..., None], axis=1)


# --- Rates of the point and normal of a contact between two curved surfaces ----------------------
# RBDA §11.1 takes the rate of the normal as known. It follows from the curvature of the surfaces.
# Let ``w`` be the rate of the normal and ``u`` the velocity of the contact, both in a frame that
# moves with one of the bodies. A smooth surface ties them, ``w = K u``: a ball of radius R has
# ``K = 1/R``, a plane 0. On a corner the normal turns while the contact stays, on an edge it does
# one across and the other along. All are covered by two matrices of the tangent plane,
#
#     w = turn @ s,   u = travel @ s   (s any tangent vector),
#
# which are 1, R for a ball, 0, 1 for a plane, 1, 0 for a corner. The motion of the contact is what
# both bodies agree on: D. J. Montana, "The kinematics of contact and grasp" (1988), with a gap.


def contact_rates(contacts, v_p, v_s):
    """Rates of the points and normals of contacts, each (n, 3), from the bodies' velocities.

    Args:
        contacts: ``Contacts``.
        v_p: spatial velocities of the predecessors in base coordinates, (n, 6).
        v_s: those of the successors.

    Where two flat faces, or parallel edges, lie against each other, the point may be anywhere on
    them, and no normal suits both once they turn apart. Then least squares decide.
    """
    n, gap = contacts.normal, np.asarray(contacts.gap)[:, None]
    turn, travel = _matrices(contacts)
    p_p, p_s = contacts.point - n * gap / 2, contacts.point + n * gap / 2
    at_p, at_s = (v[:, 3:] + np.cross(v[:, :3], p) for v, p in ((v_p, p_p), (v_s, p_s)))
    with_p = np.cross(v_p[:, :3], n)  # the rate of the normal if it were fixed to the predecessor
    slip = at_s - at_p
    slip = slip - n * np.sum(n * slip, axis=1, keepdims=True)
    spin = np.cross(v_s[:, :3] - v_p[:, :3], n)
    # One point: travel_p s_p + gap turn_p s_p - travel_s s_s = slip - gap with_p.
    # One normal: turn_p s_p + turn_s s_s = spin.
    scale = gap[..., None]
    A = np.block([[travel[:, 0] + scale * turn[:, 0], -travel[:, 1]], [turn[:, 0], turn[:, 1]]])
    s = _solve(A, np.concatenate([slip - gap * with_p, spin], axis=1))
    normal_rate = with_p + _times(turn[:, 0], s[:, :3])
    on_p, on_s = at_p + _times(travel[:, 0], s[:, :3]), at_s + _times(travel[:, 1], s[:, 3:])
    return (on_p + on_s) / 2, normal_rate


def _matrices(contacts):
    """Curvature matrices ``turn`` and ``travel`` of contacts; those of flat faces if unknown."""
    if contacts.turn is not None:
        return contacts.turn, contacts.travel
    across = _across(contacts.normal)
    none = np.zeros_like(across)
    return np.stack([none, across], axis=1), np.stack([across, none], axis=1)


def _solve(A, b):
    """Minimum-norm least-squares solutions of ``A x = b``, one for each contact."""
    return _times(np.linalg.pinv(A, rcond=1e-9), b) if len(A) else b


def _times(matrices, vectors):
    """Matrix-vector products, one for each contact: (n, i, j) and (n, j) to (n, i)."""
    return np.einsum("nij,nj->ni", matrices, vectors)


def _across(normal):
    """Projection matrices (..., 3, 3) onto the tangent planes of unit normals."""
    normal = np.asarray(normal)
    return np.eye(3) - normal[..., :, None] * normal[..., None, :]


# --- Motions of all bodies -----------------------------------------------------------------------


@kernel
def body_motions(model, q, qd):
    """Spatial velocities and bias accelerations of all bodies, base first, (body_count + 1, 6).

    In base coordinates, the base first; without gravity.
    """
    X, v, a = body_accelerations(model, q, qd, model.zero_velocity)
    X_0 = base_transforms(model, X)
    return tuple(
        np.array([X_0[i].inv_apply(m[i]).to_array() for i in range(model.body_count + 1)])
        for m in (v, a)
    )


# --- Contact frames: the normal and two tangents, as a smooth function of the normal -------------
# No field of tangents on a sphere is continuous. This one jumps where the normal points 60° or
# more below the horizon of the base, which ground, walls and most overhangs never see.

_JUMP = -0.5


def contact_axes(normal):
    """Contact frames with rows (normal, tangent 1, tangent 2), (..., 3, 3), right-handed.

    The tangents are x and y of the base turned the shortest way that takes z to the normal. Many
    normals at once must be floats; traced numbers come one normal at a time.
    """
    x, y, z, s, a = _parts(normal)
    b = x * y * a
    first = [1 + s * x * x * a, s * b, -s * x]
    second = [b, s + y * y * a, -y]
    return _rows(([x, y, z], first, second))


def contact_axes_rate(normal, rate):
    """Time derivative of ``contact_axes`` for normals that change at ``rate``, (..., 3, 3)."""
    x, y, _, s, a = _parts(normal)
    xd, yd, zd = np.moveaxis(rate, -1, 0)
    ad = zd * a * a
    bd = (xd * y + x * yd) * a + x * y * ad
    first = [s * (2 * x * xd * a + x * x * ad), s * bd, -s * xd]
    second = [bd, 2 * y * yd * a + y * y * ad, -yd]
    return _rows(([xd, yd, zd], first, second))


def _parts(normal):
    """Components x, y, z of unit normals, with the sign and factor of their tangents."""
    x, y, z = np.moveaxis(normal, -1, 0)
    s = select(z < _JUMP, -1, 1)  # of the axis ±z that is turned towards the normal
    return x, y, z, s, -1 / (s + z)


def _rows(rows):
    """Matrices (..., m, 3) stacked from rows of components."""
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


# --- Contacts gained and lost — RBDA §11.6, Fig. 11.6 --------------------------------------------
# Forces break a contact by pulling the bodies apart. Geometry breaks it without a warning in the
# equations of motion: a corner slides over the border of a face, an edge past the end of an edge.


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
def contact_changes(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    before: Contacts,
    after: Contacts,
    tolerance: float = 1e-6,
) -> Changes:
    """Pairs of shapes that gained and lost contact between two instants of a motion.

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
    """Indices of the contacts of every pair of shapes, by the pair's name."""
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(contacts.names):
        groups.setdefault(name.rpartition(":")[0], []).append(k)
    return groups
