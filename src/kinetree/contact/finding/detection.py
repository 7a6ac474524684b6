"""The contacts of a scene at one configuration: broad phase, narrow phase, curvature; feet."""

import warnings

import numpy as np

from kinetree.contact.contacts import Contacts
from kinetree.contact.finding.closed_forms import has_closed_form, is_compiled, touches
from kinetree.contact.finding.curvature import surfaces_between
from kinetree.contact.finding.manifold import manifold, on_plane
from kinetree.contact.finding.shapes import Placed, hull_of
from kinetree.contact.finding.supports import farthest
from kinetree.contact.finding.terrain import on_terrain
from kinetree.errors import LoadError, ModelWarning
from kinetree.model.arrays import as_configuration
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from kinetree.model.parts import Posture
from kinetree.quantities import kinematics

_SAME = 1e-9  # [m] points of a pair that are nearer than this are one


def place_shapes(model, q, shapes):
    """Every ``Geometry`` of a list where the configuration puts it."""
    poses = np.concatenate([np.eye(4)[None], kinematics.poses(model, q)])
    placed = []
    for g in shapes:
        R, r = poses[g.body, :3, :3], poses[g.body, :3, 3]
        E, at = np.asarray(g.placement.E, float), np.asarray(g.placement.r, float)
        placed.append(Placed(g.shape, R @ E.T, r + R @ at))
    return placed


def near_pairs(placed, pairs, margin):
    """Which pairs, of numbers of shapes, have boxes around them that are within ``margin``.

    Args:
        placed: shapes in their places.
        pairs: dictionary from numbers of two shapes, the smaller one first, to anything.
        margin: [m].
    """
    low, high = (np.array(side).reshape(-1, 3) for side in _boxes(placed))
    found = sweep_and_prune(low - margin / 2, high + margin / 2)
    return [pairs[i, j] for i, j in found.tolist() if (i, j) in pairs]


def _boxes(placed):
    return zip(*map(bounds, placed), strict=True) if placed else ((), ())


def touches_of(a, b, margin, distance):
    """Points within ``margin`` of each other of two shapes, as a list of ``Touch``."""
    if any(isinstance(p.shape, HeightField) for p in (a, b)):
        found = on_terrain(a, b, margin)
    elif not has_closed_form(a.shape, b.shape):
        nearest = distance(a, b)
        found = []
        if nearest.gap <= margin:
            found = manifold(a, b, nearest.normal, nearest.gap, nearest.foot)
    elif isinstance(a.shape, Plane) | isinstance(b.shape, Plane) and not is_compiled(
        a.shape, b.shape
    ):
        found = on_plane(a, b, margin)
    else:
        found = touches(a, b)
    return _different([t for t in found if t.gap <= margin])


def _different(found):
    kept: list = []
    for t in found:
        if all(np.max(np.abs(t.point - other.point)) > _SAME for other in kept):
            kept.append(t)
    return kept


def find_contacts(scene, q, margin, distance):
    """``Contacts`` of a ``Scene`` whose gap is at most ``margin``."""
    placed = place_shapes(scene.model, q, scene.shapes)
    found, names = [], []
    for k, first, second in sorted(near_pairs(placed, scene.pair_numbers, margin + scene.reach)):
        a, b, apart = placed[first], placed[second], scene.pairs[k].margin
        for j, t in enumerate(touches_of(a, b, margin + apart, distance)):
            curved = surfaces_between(a, b, t)
            found.append((k, t._replace(gap=t.gap - apart) if apart else t, *curved))
            names.append(f"{scene.pair_names[k]}:{j}")
    return _gathered(scene, found, tuple(names))


def _gathered(scene, found, names):
    pair = np.array([f[0] for f in found], dtype=int)
    bodies = np.array([[scene.pairs[k][0].body, scene.pairs[k][1].body] for k in pair], dtype=int)
    bodies = bodies.reshape(-1, 2)
    touch = [f[1] for f in found]
    return Contacts(
        bodies[:, 0],
        bodies[:, 1],
        np.array([t.point for t in touch], dtype=float).reshape(-1, 3),
        np.array([t.normal for t in touch], dtype=float).reshape(-1, 3),
        np.array([t.gap for t in touch], dtype=float),
        names,
        scene.friction[pair],
        scene.restitution[pair],
        np.array([f[2] for f in found]).reshape(-1, 2, 3, 3),
        np.array([f[3] for f in found]).reshape(-1, 2, 3, 3),
    )


# --- Broad phase: axis-aligned boxes, sorted and swept -------------------------------------------
# RBDA §11.6 leaves the detection of collisions to the literature. Sweep and prune is from D.
# Baraff, "Dynamic simulation of non-penetrating rigid bodies" (1992).

_ALIGNED = 1 - 1e-12
_FEW = 64  # boxes for which comparing all with all takes less time than sorting


def bounds(placed):
    """Lowest and highest coordinates of a shape in the base, (3,) each."""
    shape, R, origin = placed
    if isinstance(shape, Plane):
        return _half_space(R[:, 2], origin)
    if isinstance(shape, (Box, Sphere, Capsule, Cylinder, Ellipsoid)):
        reach = _reach(shape, R)
        return origin - reach, origin + reach
    if isinstance(shape, HeightField):
        return _half_space(R[:, 2], origin + R[:, 2] * _highest(shape))
    vertices = hull_of(shape).vertices @ R.T + origin
    return vertices.min(axis=0), vertices.max(axis=0)


def _reach(shape, R):
    if isinstance(shape, Box):
        return np.abs(R) @ (np.array(shape.size) / 2)
    if isinstance(shape, Ellipsoid):
        return np.sqrt((R * R) @ np.square(shape.radii))
    if isinstance(shape, Sphere):
        return np.full(3, shape.radius)
    along = np.abs(R[:, 2]) * shape.length / 2
    if isinstance(shape, Capsule):
        return along + shape.radius
    return along + shape.radius * np.sqrt(np.maximum(1 - R[:, 2] ** 2, 0))


def _half_space(normal, origin):
    """All of space, but for a plane along the axes of the base."""
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    for k in range(3):
        if normal[k] > _ALIGNED:
            high[k] = origin[k]
        elif normal[k] < -_ALIGNED:
            low[k] = origin[k]
    return low, high


def _highest(field):
    """Nothing of a field is higher: a spline overshoots by less than what its heights differ."""
    heights = np.array(field.heights)
    return 2 * heights.max() - heights.min()


def sweep_and_prune(low, high):
    """Pairs of overlapping boxes, (m, 2) numbers with the smaller one first, sorted.

    Args:
        low: lowest coordinates, (n, 3).
        high: highest coordinates, (n, 3).
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if len(low) <= _FEW:
        return np.argwhere(np.triu(_overlap(low[:, None], high[:, None], low, high), 1))
    axis = _widest(low, high)
    order = np.argsort(low[:, axis], kind="stable")
    starts = low[order, axis]
    ends = np.searchsorted(starts, high[order, axis], side="right")  # the last that begins inside
    found = []
    for k, i in enumerate(order):
        others = order[k + 1 : ends[k]]
        others = others[_overlap(low[i], high[i], low[others], high[others])]
        found.append(np.column_stack([np.full(len(others), i), others]))
    pairs = np.sort(np.concatenate(found), axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _overlap(low, high, other_low, other_high):
    return np.all((other_low <= high) & (other_high >= low), axis=-1)


def _widest(low, high):
    """The axis along which the boxes are spread most; those without end do not count."""
    with np.errstate(invalid="ignore"):
        middles = (low + high) / 2
    middles = middles[np.all(np.isfinite(middles), axis=1)]
    return int(np.argmax(np.var(middles, axis=0))) if len(middles) else 0


# --- The shapes that a mechanism stands on: those that are lowest in a posture -------------------

_STANDS = 0.05  # a foot is at most so much higher than the lowest one, of the robot's height
_AS_LOW = 0.005  # and not higher than what its limb has besides by more than this
_USUAL = ("home", "qpos0")


def feet(model, pairs, posture=None):
    """Those of ``pairs``, of moving shapes with fixed ones, whose moving shape stands on something.

    A shape does where its link is nearly as low as the lowest of all, no link that is farther out
    on the same limb, or on the same body, is lower, and no other shape of the link.

    Args:
        model: the mechanism.
        pairs: pairs of shapes with those fixed to the base, first.
        posture: name of a posture, a ``Posture``, or position variables (nq,); by default that
            called home, or where the file puts what floats, or else the neutral one.
    """
    shapes = list({id(p.second): p.second for p in pairs}.values())
    if not shapes:
        return []
    height = _lowest(model, _configuration(model, posture), shapes)
    tall = max(float(np.ptp(height[height < np.inf])), 1e-6)
    link: dict = {}
    for g, h in zip(shapes, height, strict=True):
        key = (g.body, g.link)
        link[key] = min(h, link.get(key, np.inf))
    low = {
        key: h
        for key, h in link.items()
        if h - height.min() <= _STANDS * tall
        and not any(
            other < h - _AS_LOW * tall
            for (body, _), other in link.items()
            if body == key[0] or key[0] in model.support[body]
        )
    }
    standing = {
        id(g)
        for g, h in zip(shapes, height, strict=True)
        if (g.body, g.link) in low and h - low[g.body, g.link] <= _AS_LOW * tall
    }
    return [p for p in pairs if id(p.second) in standing]


def _configuration(model, posture):
    if posture is None:
        known = {p.name: p for p in model.postures}
        posture = next((known[name] for name in _USUAL if name in known), None)
    if posture is None:
        return model.neutral()
    if isinstance(posture, str):
        posture = model.posture(posture)
    q = posture.q if isinstance(posture, Posture) else posture
    return np.asarray(as_configuration(model, q), dtype=float)


def _lowest(model, q, shapes):
    """Height of the lowest point of every shape, against gravity [m]."""
    g = np.asarray(model.gravity, dtype=float)
    down = g / np.linalg.norm(g) if np.any(g) else np.array([0.0, 0.0, -1.0])
    heights, unread = [], []
    for placed in place_shapes(model, q, shapes):
        try:
            heights.append(-(farthest(placed, down[None])[0] @ down))
        except LoadError as error:
            heights.append(np.inf)
            unread.append(error)
    if len(unread) == len(shapes):
        raise unread[0]
    if unread:
        warnings.warn(
            f"model {model.name!r}: {len(unread)} of its shapes are not looked at for feet, since "
            f"their meshes cannot be read, the first is {unread[0]}",
            ModelWarning,
            stacklevel=5,
        )
    return np.array(heights)
