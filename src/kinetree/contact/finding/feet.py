"""The shapes that a mechanism stands on: those that are lowest in a posture."""

import warnings

import numpy as np

from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.support import round_of, support
from kinetree.contact.finding.shapes import as_hull, place_shapes
from kinetree.errors import LoadError, ModelWarning
from kinetree.model.arrays import as_configuration
from kinetree.model.parts import Posture

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
            heights.append(-reach_along(placed, down))
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


def reach_along(placed, direction):
    """How far a ``Placed`` shape goes along a unit direction, from the origin of the base [m]."""
    shapes, point = placed_table(as_hull(placed)), np.zeros(3)
    support(shapes, 0, np.zeros((6, 3)), np.zeros(3), direction, 0, point)
    return float(point @ direction) + round_of(shapes, 0)
