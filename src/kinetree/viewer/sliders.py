"""Joints as the page moves them: products of turns and slides, one for each slider.

A joint is described by the twists of its variables: between its body and the parent stands
``R₀ exp(S₁ x₁) ... exp(Sₙ xₙ)``. The twists come from the poses that kinetree computes, and the
product is compared with these poses at other values; a joint of another form has no slider.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.spelling import printable
from kinetree.viewer.knobs import Knobs
from kinetree.viewer.scenes.marks import mass_centers
from kinetree.viewer.scenes.places import places

_STEP, _CLOSE = 1e-6, 1e-4
_SAMPLES = (0.3, -0.7)


class Sliders(NamedTuple):
    """Sliders of a page, and how bodies follow them.

    Attributes:
        knobs: label, unit, least, largest and first value of each.
        parent: number of the parent of each body, -1 for the base.
        home: pose of each body in its parent with all its variables at zero, (NB + 1, 4, 4).
        moves: for each body its motions in order: number of a knob, and a twist (6,).
        masses: of the bodies [kg].
        centers: mass centres in their coordinates [m].
    """

    knobs: list[dict[str, Any]]
    parent: list[int]
    home: np.ndarray
    moves: list[list[tuple[int, np.ndarray]]]
    masses: np.ndarray
    centers: np.ndarray


def sliders_of(model, q, size) -> Sliders | None:
    """``Sliders`` of a mechanism in configuration ``q``; None for mechanisms with loops.

    Args:
        model: the mechanism.
        q: where the sliders are at first, (nq,).
        size: how far what has no limits may move [m].
    """
    if model.is_constrained or not model.nq:
        return None
    knobs = Knobs(model, size)
    now, count = np.array(knobs.values(q)), len(knobs.knobs)
    zero, step = np.zeros(count), _STEP * np.eye(count)
    rows = [zero, *step, *(x * np.eye(count)[k] for k in range(count) for x in _SAMPLES)]
    rows += [np.full(count, x) for x in _SAMPLES]
    poses = _relative(model, np.array([knobs.configuration(row) for row in rows]))
    home, moves = poses[0], []
    changes = np.linalg.inv(home) @ poses - np.eye(4)
    for i in range(model.body_count + 1):
        alone = changes[1 + count : 1 + 3 * count, i].reshape(count, -1)
        moved = [k for k in range(count) if np.abs(alone[k]).max() > 0]
        found = [(k, _twist(changes[1 + k, i] / _STEP)) for k in moved]
        # Turns before slides, or after them: joints have their own order.
        orders = found, sorted(found, key=lambda move: bool(np.any(move[1][:3])))
        fitting = [
            x for x in orders if _are_products(home[i], x, rows[1 + count :], poses[1 + count :, i])
        ]
        if not fitting:
            return None
        moves.append(fitting[0])
    listed = [
        {
            "label": printable(knob.label),
            "unit": knob.unit,
            "low": min(knob.lower, float(value)),
            "high": max(knob.upper, float(value)),
            "value": float(value),
        }
        for knob, value in zip(knobs.knobs, now, strict=True)
    ]
    return Sliders(listed, list(model.parent), home, moves, *mass_centers(model))


def _are_products(home, moves, rows, poses):
    """Whether poses at sample values equal the products of exponentials of the motions."""
    for row, pose in zip(rows, poses, strict=True):
        product = home
        for k, twist in moves:
            product = product @ exponential(twist * row[k])
        if np.abs(product - pose).max() > _CLOSE * max(1.0, np.abs(pose).max()):
            return False
    return True


def _relative(model, q):
    """Poses of all bodies relative to their parents, (n, NB + 1, 4, 4)."""
    placed = places(model, q)
    poses = np.zeros((*placed.positions.shape[:2], 4, 4))
    poses[..., :3, :3], poses[..., :3, 3] = placed.rotations, placed.positions
    poses[..., 3, 3] = 1
    relative = poses.copy()
    for i in range(1, model.body_count + 1):
        relative[:, i] = np.linalg.inv(poses[:, model.parent[i]]) @ poses[:, i]
    return relative


def _twist(change):
    """Twist (rotation, translation), (6,), from the derivative of a pose."""
    W = (change[:3, :3] - change[:3, :3].T) / 2
    found = np.array([W[2, 1], W[0, 2], W[1, 0], *change[:3, 3]])
    return np.where(np.abs(found) < 1e-7, 0.0, found)


def exponential(twist):
    """Pose (4, 4) reached by a twist in unit time."""
    w, v = twist[:3], twist[3:]
    angle = np.linalg.norm(w)
    K = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    pose = np.eye(4)
    a, b, c = 1.0, 0.5, 1 / 6
    if angle > 1e-9:
        a, b = np.sin(angle) / angle, (1 - np.cos(angle)) / angle**2
        c = (1 - a) / angle**2
    pose[:3, :3] += a * K + b * K @ K
    pose[:3, 3] = (np.eye(3) + b * K + c * K @ K) @ v
    return pose
