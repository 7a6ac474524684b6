"""Arrows: velocities of the bodies, joint forces, forces on bodies; as long as suits the scene."""

import numpy as np

from kinetree.viewer.scene.description import Arrows, round_number
from kinetree.viewer.scene.marks import mass_centers

__all__ = ["applied_arrows", "joint_arrows", "scaled", "velocity_arrows"]

_LONGEST = 0.35  # of the size of the scene
_SPEED, _TURNING = (0.0, 0.62, 0.45), (0.5, 0.31, 0.75)
_FORCE, _MOMENT = (0.84, 0.37, 0.0), (0.80, 0.35, 0.6)


def scaled(name, layer, color, origins, vectors, unit, size, longest=None) -> Arrows | None:
    """Arrows whose longest is a third of the scene; None where all are nothing.

    Args:
        name: what they mean.
        layer: where they belong.
        color: red, green, blue.
        origins: where they begin [m], (T, K, 3).
        vectors: what they show, (T, K, 3).
        unit: of ``vectors``.
        size: of the scene [m].
        longest: the largest vector to expect, if it is not one of these.
    """
    lengths = np.linalg.norm(vectors, axis=-1)
    longest = np.nanmax(lengths, initial=0.0) if longest is None else longest
    if not longest > 1e-9:
        return None
    scale = _LONGEST * size / longest
    nice = round_number(0.5 * longest)
    legend = f"{name}: {_short(scale * nice)} m for {_short(nice)} {unit}"
    return Arrows(name, layer, color, origins, np.nan_to_num(scale * vectors), legend)


def velocity_arrows(model, placed, velocity, size):
    """Velocities of the mass centres, and angular velocities, of bodies that have mass."""
    masses, centers = mass_centers(model)
    heavy = masses > 0
    points = placed.points(centers)[:, heavy]
    turning, linear = velocity[:, heavy, :3], velocity[:, heavy, 3:]
    speed = linear + np.cross(turning, points)
    return (
        scaled("velocities", "velocities", _SPEED, points, speed, "m/s", size),
        scaled("angular velocities", "velocities", _TURNING, points, turning, "rad/s", size),
    )


def joint_arrows(model, placed, q, tau, size):
    """Joint forces along what they move: forces, and moments about their axes."""
    forces, moments = np.zeros((2, len(q), model.body_count + 1, 3))
    for i in range(1, model.body_count + 1):
        joint, q_i, tau_i = model.joint[i], q[:, model.q_slice[i]], tau[:, model.v_slice[i]]
        if not joint.nv:
            continue
        at = q_i[:1] if joint.constant_subspace else q_i
        found = [joint.motion_subspace(x) for x in at]
        for part, total in (("linear", forces), ("angular", moments)):
            S = np.array([np.asarray(getattr(s, part), dtype=float).reshape(3, -1) for s in found])
            total[:, i] = np.einsum("tij,tj->ti", np.broadcast_to(S, (len(q), *S.shape[1:])), tau_i)
    turned = [np.einsum("tbij,tbj->tbi", placed.rotations, x) for x in (forces, moments)]
    return _pair("joint", placed.positions, turned[0], turned[1], size)


def applied_arrows(model, placed, wrenches, size):
    """Forces on bodies about the origin of the base, (..., NB, 6): at their mass centres."""
    steps = len(placed.positions)
    wrenches = np.broadcast_to(wrenches, (steps, model.body_count, 6))
    points = placed.points(mass_centers(model)[1])[:, 1:]
    force = wrenches[..., 3:]
    moment = wrenches[..., :3] - np.cross(points, force)
    return _pair("applied", points, force, moment, size)


def _pair(whose, points, forces, moments, size):
    return (
        scaled(f"{whose} forces", "forces", _FORCE, points, forces, "N", size),
        scaled(f"{whose} moments", "forces", _MOMENT, points, moments, "N·m", size),
    )


def _short(x):
    return f"{x:.2g}" if x < 100 else f"{x:.0f}"
