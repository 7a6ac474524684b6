"""Contacts of polyhedra and cylinders by feature: a corner on a face, two edges — RBDA §11.6.

The gap of two features is a smooth function of the positions, and so are its rates: what events are
located with. Features also have borders. ``outside`` is how far the point of contact is beyond
them [m], negative within: a corner slides over the border of a face, an edge past the end of an
edge, or bodies have turned such that others of their features meet. Forces do not tell of such a
loss of contact; it is a separate event.

There are too many pairs of features to follow all of them: those that a step can bring together get
one of the slots of their pair of shapes, the same as long as they are near.
"""

import numpy as np

from kinetree.contact.contacts import body_motions, contact_axes, contact_axes_rate
from kinetree.contact.event_driven.kinds import FAR, Corners, Edges, Followed, join_rows
from kinetree.contact.event_driven.polyhedra import polyhedron
from kinetree.contact.event_driven.round_kinds import RimEdges, Rims, SidePoints
from kinetree.contact.event_driven.search import distinct, near
from kinetree.contact.event_driven.vectors import cross, turn, velocity_at
from kinetree.contact.finding.closed_forms import is_compiled
from kinetree.contact.scene import Candidates
from kinetree.integration.refusals import EVENT_SHAPES
from kinetree.model.geometry import Box, Cylinder, Mesh, Plane
from kinetree.quantities import kinematics

SLOTS = 32
"""Features of a pair of shapes that are followed at a time."""
BORDER = 1e-13
"""Of the size of a shape: how far a contact may be beyond a border before it is lost."""

_KINDS = {Corners: (0, 1), Edges: (2,), Rims: (3, 4), SidePoints: (5, 6), RimEdges: (7, 8)}
"""Kinds of pairs of features, by the numbers that keys have for them."""
_NEAR = 0.05  # of the size of a shape: what is followed however slowly it comes
_BESIDE = 1e-6  # [m] added to gaps beyond borders: they are open


class Features:
    """The contacts of a scene for phases: closed forms, and features of polyhedra in slots.

    It stands in for the ``Scene``, with the same ``candidates`` and functions of positions. A gap
    is that of the features within their borders; beyond them it is how far beyond, if that is more.

    Args:
        scene: a ``Scene``.

    Attributes:
        candidates: all contacts that there may be: closed forms first, then slots.
        held: whether contacts are equations now, so that they may be at their borders, (n,).
        keys: features in the slots: numbers of the pair, the kind (of ``_KINDS``, the second number
            where shapes have changed places), both features, and a sign; None: not in use.
    """

    def __init__(self, scene):
        self.scene, self.pairs, self.pair_names = scene, scene.pairs, scene.pair_names
        self.numbers = [
            k for k, p in enumerate(scene.pairs) if not is_compiled(p.first.shape, p.second.shape)
        ]
        kinds = {k: [type(g.shape) for g in scene.pairs[k][:2]] for k in self.numbers}
        for k, both in kinds.items():
            convex = all(getattr(g.shape, "convex", True) for g in scene.pairs[k][:2])
            round_ones = sum(issubclass(kind, Cylinder) for kind in both)
            known = all(issubclass(kind, (Box, Cylinder, Mesh, Plane)) for kind in both)
            if not (convex and known and round_ones <= 1):
                names = " and ".join(kind.__name__ for kind in both)
                raise EVENT_SHAPES.of(
                    "event-driven contact, which takes shapes with closed forms, polyhedra (Box, "
                    "Mesh by its convex hull, Plane) and a Cylinder on one of them,",
                    f"{scene.pair_names[k]!r}, which is {names}",
                )
        self.smooth = scene.closed_forms()
        of = self.smooth.candidates
        slot = np.repeat(np.array(self.numbers, dtype=int), SLOTS)
        bodies = np.array([[p.first.body, p.second.body] for p in scene.pairs], dtype=int)[slot]
        names = tuple(f"{scene.pair_names[k]}:{j}" for k in self.numbers for j in range(SLOTS))
        kept = np.array([k for k in range(len(scene.pairs)) if k not in kinds], dtype=int)
        self.candidates = Candidates(
            np.append(of.predecessor, bodies[:, 0]),
            np.append(of.successor, bodies[:, 1]),
            of.names + names,
            np.append(of.friction, scene.friction[slot]),
            np.append(of.restitution, scene.restitution[slot]),
            np.append(kept[of.pair], slot),
        )
        self.held = np.zeros(self.candidates.size, dtype=bool)
        self.keys: list = [None] * len(slot)
        self._shapes = {k: [_in_body(g) for g in scene.pairs[k][:2]] for k in self.numbers}
        self._gather()

    # --- which features are followed --------------------------------------------------------

    def follow(self, model, q, qd, h, tolerance, without=()):
        """Assign slots to all polyhedron features that can meet within ``h`` seconds.

        Args:
            model: the mechanism, or its tree.
            q: joint positions, (nq,).
            qd: joint velocities, (nv,).
            h: [s].
            tolerance: gaps [m] up to which bodies count as in touch; those that are farther inside
                each other touch by other features.
            without: keys of features that have just come to their borders, on the way out.
        """
        R, r = self._poses(model, q)
        v = body_motions(model, q, qd)[0]
        first = self.candidates.size - len(self.keys)
        for i, k in enumerate(self.numbers):
            at = range(i * SLOTS, (i + 1) * SLOTS)
            held = {self.keys[j] for j in at if self.held[first + j]}
            first_shape, second_shape, reach = self._place(k, R, r, v, h)
            found = near(k, first_shape, second_shape, reach, tolerance)
            found = [feature for feature in found if feature[0] not in without]
            chosen = distinct(found, held)[:SLOTS]
            keys = {feature[0] for feature in chosen}
            for j in at:
                if self.keys[j] not in keys:
                    self.release(first + j)
            new = [key for key in (f[0] for f in chosen) if key not in self.keys]
            free = [j for j in at if self.keys[j] is None]
            for j, key in zip(free, new, strict=False):
                self.keys[j] = key
        self._gather()

    def release(self, k):
        """Free the slot of contact ``k``; returns the key of the feature that had it."""
        slot = k - (self.candidates.size - len(self.keys))
        key, self.keys[slot], self.held[k] = self.keys[slot], None, False
        return key

    def _place(self, k, R, r, v, h):
        """World shapes of pair ``k``, and the distance [m] within which features count."""
        shapes, bodies, reach = [], [g.body for g in self.scene.pairs[k][:2]], 0.0
        for shape, b in zip(self._shapes[k], bodies, strict=True):
            shapes.append(shape.place(R[b], r[b]))
            linear = v[b, 3:] + cross(v[b, :3], r[b])
            far = np.max(np.abs(shape.corner), initial=0.0) * 2
            reach += np.linalg.norm(linear) + np.linalg.norm(v[b, :3]) * far
        near = _NEAR * min(s.size for s in shapes)
        return *shapes, 2 * h * (reach + 10 * h) + near

    def _gather(self):
        """Collect the features in use into arrays, kind by kind."""
        offset, self._parts, rows, sizes = self.candidates.size - len(self.keys), [], [], [0.0]
        for kind, numbers in _KINDS.items():
            used = [j for j, key in enumerate(self.keys) if key is not None and key[1] in numbers]
            if used:
                part = join_rows(kind, [self._feature(self.keys[j]) for j in used])
                self._parts.append(part)
                rows += [j + offset for j in used]
                sizes += part.size.tolist()
        self._rows: np.ndarray = np.array(rows, dtype=int)
        self._size = np.array(sizes[1:], dtype=float)

    def _feature(self, key):
        """Shapes and body numbers of the pair that a feature key refers to, and the key."""
        return self._shapes[key[0]], [g.body for g in self.scene.pairs[key[0]][:2]], key

    # --- where they are ----------------------------------------------------------------------

    def _poses(self, model, q):
        """Rotations (..., b, 3, 3) and origins (..., b, 3) of all bodies, the base first."""
        T = kinematics.poses(model, q)
        base = np.broadcast_to(np.eye(4), (*T.shape[:-3], 1, 4, 4))
        T = np.concatenate([base, T], axis=-3)
        return T[..., :3, :3], T[..., :3, 3]

    def _follow(self, model, q) -> Followed:
        """Gaps, points and normals of all features in use at a configuration."""
        R, r = self._poses(model, q)
        parts = [part.at(R, r) for part in self._parts]
        if not parts:
            return Followed(
                *(np.zeros((*R.shape[:-3], 0, *size)) for size in ((), (), (), (3,), (3,)))
            )
        fields = zip(zip(*parts, strict=True), (-1, -1, -1, -2, -2), strict=True)
        return Followed(*(np.concatenate(field, axis=axis) for field, axis in fields))

    def _gaps(self, found):
        """Gaps of features [m], replaced by a positive distance outside their borders."""
        pair = self.candidates.pair[self._rows]
        margin = np.array([self.scene.pairs[k].margin for k in pair])
        gap, outside = found.gap - margin, self._outside(found)
        beside = (outside > 0) & ~self.held[self._rows]
        return np.where(beside, np.maximum(gap, outside) + _BESIDE, gap)

    def _outside(self, found):
        """Distance beyond the features' borders less its tolerance [m], (..., m).

        Contacts that are held stay what they are while bodies turn, until others take over.
        """
        held, limit = self.held[self._rows], BORDER * self._size
        turned = np.maximum(found.beyond, found.turned)
        return np.where(held, found.beyond - limit, turned - limit / 2)

    def _join(self, function, own, model, q, *rest):
        """Arrays of all contacts: closed-form values, then the values of the features in use."""
        lead = np.shape(q)[:-1]
        shapes = [x.shape[len(lead) + 1 :] for x in own]  # of one contact
        smooth = [np.zeros((*lead, 0, *shape)) for shape in shapes]
        if self.smooth.pairs:
            smooth = function(model, q, *rest)
        fills = [FAR] + [0.0] * (len(own) - 1)
        parts = zip(smooth, shapes, own, fills, strict=True)
        return tuple(self._all(a, -1 - len(shape), b, fill) for a, shape, b, fill in parts)

    def _all(self, smooth, axis, values, fill):
        """Closed-form values and feature values in all slots, unused ones set to ``fill``."""
        shape = list(values.shape)
        shape[axis] = len(self.keys)
        slots = np.full(shape, fill)
        at: list = [slice(None)] * len(shape)
        at[axis] = self._rows - (self.candidates.size - len(self.keys))
        slots[tuple(at)] = values
        return np.concatenate([smooth, slots], axis=axis)

    def outside(self, model, q):
        """Distance of all contacts beyond their features' borders [m], less tolerance, (..., n)."""
        smooth = np.full((*np.shape(q)[:-1], self.smooth.candidates.size), -FAR)
        return self._all(smooth, -1, self._outside(self._follow(model, q)), -FAR)

    def candidate_positions(self, model, q):
        """Gaps, points and axes of all contacts, like ``Scene.candidate_positions``."""
        found = self._follow(model, q)
        own = self._gaps(found), found.point, contact_axes(found.normal)
        return self._join(self.smooth.candidate_positions, own, model, q)

    def candidate_velocities(self, model, q, qd):
        """Gaps and velocities of all contacts, like ``Scene.candidate_velocities``."""
        found = self._follow(model, q)
        v, _ = self._between(model, q, qd)
        zeta = turn(contact_axes(found.normal), velocity_at(v, found.point))
        own = self._gaps(found), zeta
        return self._join(self.smooth.candidate_velocities, own, model, q, qd)

    def candidate_terms(self, model, q, qd):
        """Gaps, Jacobians and biases of contacts, like ``Scene.candidate_terms``."""
        found = self._follow(model, q)
        J = kinematics.jacobians(model, q, frame="world")
        J = np.concatenate([np.zeros((*J.shape[:-3], 1, *J.shape[-2:])), J], axis=-3)
        between = J[..., self._ends[1], :, :] - J[..., self._ends[0], :, :]
        axes, x = contact_axes(found.normal), found.point
        rows = axes @ (
            between[..., 3:, :]
            + np.swapaxes(cross(np.swapaxes(between[..., :3, :], -1, -2), x[..., None, :]), -1, -2)
        )
        v, a = self._between(model, q, qd)
        point_rate, normal_rate = self._rates(model, q, qd, found)
        there = velocity_at(a, x) + cross(v[..., :3], point_rate)
        turning = contact_axes_rate(found.normal, normal_rate)
        bias = turn(axes, there) + turn(turning, velocity_at(v, x))
        own = self._gaps(found), rows, bias
        return self._join(self.smooth.candidate_terms, own, model, q, qd)

    @property
    def _ends(self):
        """Body numbers of the first and second shapes of the features in use."""
        of = self.candidates
        return of.predecessor[self._rows], of.successor[self._rows]

    def _between(self, model, q, qd):
        """Relative velocity and bias acceleration of each feature's bodies, (..., m, 6)."""
        p, s = self._ends
        return (m[..., s, :] - m[..., p, :] for m in body_motions(model, q, qd))

    def _rates(self, model, q, qd, found):
        """Rates of the features' contact points and normals, each (..., m, 3)."""
        R, r = self._poses(model, q)
        v, begin = body_motions(model, q, qd)[0], 0
        rates = [(np.zeros((*v.shape[:-2], 0, 3)),) * 2]
        for part in self._parts:
            at = slice(begin, begin + len(part.size))
            own = (x[..., at] if x.ndim == v.ndim - 1 else x[..., at, :] for x in found)
            rates.append(part.rates(R, r, v, Followed(*own)))
            begin = at.stop
        points, normals = zip(*rates, strict=True)
        return np.concatenate(points, axis=-2), np.concatenate(normals, axis=-2)


def _in_body(geometry):
    """Polyhedron of a shape in the coordinates of its body."""
    E, r = (np.asarray(x, dtype=float) for x in (geometry.placement.E, geometry.placement.r))
    return polyhedron(geometry.shape).place(E.T, r)
