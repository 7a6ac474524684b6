"""Marks on bodies: axes of frames, mass centres, inertia ellipsoids."""

import numpy as np

from kinetree.viewer.scene.description import Part, Surface
from kinetree.viewer.scene.surfaces import ball, joined, rod

__all__ = ["center_parts", "frame_parts", "inertia_parts", "mass_centers"]

AXES = ((0.85, 0.15, 0.15), (0.1, 0.6, 0.2), (0.15, 0.3, 0.9))
_CENTER, _TOTAL, _INERTIA = (0.95, 0.75, 0.1), (0.85, 0.1, 0.1), (0.35, 0.45, 0.95)


def frame_parts(model, size):
    """Red, green and blue axes of all bodies and, smaller, of the frames on them."""
    for body, name in enumerate(model.body_names):
        at = [(np.eye(4), 0.1 * size)]
        own = (f for f in model.frames if f.body == body)
        at += [(f.placement.to_pose().astype(float), 0.06 * size) for f in own]
        for axis in range(3):
            bars = [_axis(axis, length, pose) for pose, length in at]
            yield Part(f"{'xyz'[axis]} of {name}", "frames", body, joined(bars), AXES[axis])


def _axis(axis, length, pose):
    bar = rod(0.045 * length, 0.0, length, 10)
    turn = (_X, _Y, np.eye(3))[axis]
    return bar.placed(turn, np.zeros(3)).placed(pose[:3, :3], pose[:3, 3])


_X = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # from z to x
_Y = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # from z to y


def mass_centers(model):
    """Masses [kg], (NB + 1,), and mass centres in body coordinates [m], (NB + 1, 3)."""
    masses, centers = np.zeros(model.body_count + 1), np.zeros((model.body_count + 1, 3))
    for i, body in enumerate(model.bodies, start=1):
        masses[i] = float(body.inertia.mass)
        if masses[i] > 0:
            centers[i] = np.asarray(body.inertia.first_moment, dtype=float) / masses[i]
    return masses, centers


def center_parts(model, size, node):
    """Balls at the mass centres of the bodies, and one at that of all, on ``node``."""
    masses, centers = mass_centers(model)
    heaviest = masses.max(initial=0.0)
    for i, mass in enumerate(masses):
        if mass > 0:
            radius = 0.014 * size * max(0.35, (mass / heaviest) ** (1 / 3))
            placed = ball(radius, 12).placed(np.eye(3), centers[i])
            yield Part(f"mass centre of {model.body_names[i]}", "center", i, placed, _CENTER)
    if heaviest > 0:
        yield Part("centre of mass", "center", node, ball(0.025 * size, 20), _TOTAL)


def inertia_parts(model):
    """Solid ellipsoids of even density with the mass and inertia of the bodies."""
    for i, body in enumerate(model.bodies, start=1):
        mass = float(body.inertia.mass)
        if mass <= 0:
            continue
        center = np.asarray(body.inertia.first_moment, dtype=float) / mass
        about_origin = np.asarray(body.inertia.rotational, dtype=float)
        shift = mass * (center @ center * np.eye(3) - np.outer(center, center))
        moments, axes = np.linalg.eigh(about_origin - shift)
        squares = 2.5 / mass * (moments.sum() - 2 * moments)
        radii = np.sqrt(np.maximum(squares, 1e-4 * max(squares.max(), 1e-12)))
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        unit = ball(1.0, 24)
        placed = Surface(unit.vertices * radii, unit.faces).placed(axes, center)
        yield Part(f"inertia of {body.name}", "inertias", i, placed, _INERTIA, 0.4)
