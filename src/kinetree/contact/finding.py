"""The contacts of a scene at one configuration: broad phase, narrow phase, curvature."""

import numpy as np

from kinetree.contact.broad_phase import bounds, sweep_and_prune
from kinetree.contact.contacts import Contacts
from kinetree.contact.manifold import manifold, on_plane
from kinetree.contact.shapes.placed import Placed
from kinetree.contact.shapes.table import has_closed_form, is_compiled, touches
from kinetree.contact.surfaces import surfaces_between
from kinetree.contact.terrain import on_terrain
from kinetree.model.geometry import HeightField, Plane
from kinetree.quantities import kinematics

__all__ = ["find_contacts", "near_pairs", "place_shapes"]

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
    places = {id(g): k for k, g in enumerate(scene.shapes)}
    placed = place_shapes(scene.model, q, scene.shapes)
    numbers = {}
    for k, pair in enumerate(scene.pairs):
        i, j = places[id(pair.first)], places[id(pair.second)]
        numbers[min(i, j), max(i, j)] = k, placed[i], placed[j]
    found, names = [], []
    for k, a, b in sorted(near_pairs(placed, numbers, margin), key=lambda item: item[0]):
        for j, t in enumerate(touches_of(a, b, margin, distance)):
            found.append((k, t, *surfaces_between(a, b, t)))
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
