"""Denavit–Hartenberg parameters of given joint axes — RBDA §4.3, rules 1–4.

Works on floats: whether two axes are parallel, or meet, is a decision with a tolerance.
"""

import numpy as np

from kinetree.errors import ModelError, names_itself
from kinetree.joints import Cylindrical, Helical, Prismatic, Revolute
from kinetree.model.dh import DHRow, DHTable
from kinetree.spatial import Plucker

__all__ = ["dh_from_axes", "dh_from_model"]

_KINDS = {
    Revolute: "revolute",
    Prismatic: "prismatic",
    Cylindrical: "cylindrical",
    Helical: "helical",
}


def dh_from_axes(axes, *, tool=None, kinds=None, pitches=None, tolerance=1e-9) -> DHTable:
    """The table whose model has these joint axes when all its variables are zero.

    Where the rules leave a choice: the common perpendicular of parallel axes is the one that meets
    the one before it, that of intersecting axes turns less than a right angle from it, and a
    prismatic axis is moved so that it meets the axis before it.

    Args:
        axes: a point (3,) and a direction (3,) for each joint, in base coordinates.
        tool: transform from base to end-effector frame; by default that of the last link.
        kinds: ``"revolute"`` and so on for each joint; all revolute by default.
        pitches: pitch of each joint [m/rad], for helical ones.
        tolerance: below which sine [rad] axes are parallel, and below which distance [m] they meet.
    """
    n = len(axes)
    kinds = ["revolute"] * n if kinds is None else list(kinds)
    pitches = [0.0] * n if pitches is None else list(pitches)
    points = [np.zeros(3), *(np.asarray(p, dtype=float) for p, _ in axes)]
    z = [np.array([0.0, 0.0, 1.0]), *(_unit(direction) for _, direction in axes)]
    if tool is not None:
        points.append(np.asarray(tool.r, dtype=float))
        z.append(np.asarray(tool.E[2], dtype=float))

    # o[i]: where x_i leaves z_i. foot: where the perpendicular before it arrived on z_i.
    x, foot = np.array([1.0, 0.0, 0.0]), points[0]
    steps_x, steps_z = [], []
    for i in range(len(z) - 1):
        if i < n and kinds[i] == "prismatic":
            points[i + 1] = foot
        axis, next_axis = (points[i], z[i]), (points[i + 1], z[i + 1])
        o, x_new, arrival = _perpendicular(axis, next_axis, x, foot, tolerance)
        steps_z.append((_angle(x, x_new, z[i]), (o - foot) @ z[i]))
        steps_x.append(((arrival - o) @ x_new, _angle(z[i], z[i + 1], x_new)))
        x, foot = x_new, arrival
    if tool is None:  # the last link takes its x axis from the one before
        steps_z.append((0.0, 0.0))
        steps_x.append((0.0, 0.0))
        steps_z.append((0.0, 0.0))
    else:
        steps_z.append((_angle(x, tool.E[0], z[-1]), (points[-1] - foot) @ z[-1]))

    rows = tuple(
        DHRow(a, alpha, d, theta, kind, pitch)
        for (a, alpha), (theta, d), kind, pitch in zip(
            steps_x[:n], steps_z[1 : n + 1], kinds, pitches, strict=True
        )
    )
    (theta, d), (a, alpha) = steps_z[n + 1], steps_x[n]
    return DHTable(rows, steps_z[0], (a, alpha, d, theta))


@names_itself
def dh_from_model(model, *, tool=None, tolerance=1e-9) -> DHTable:
    """The table of an unbranched model whose joints all have an axis; inertias are not carried.

    Args:
        model: a chain of revolute, prismatic, cylindrical and helical joints.
        tool: name of the end-effector frame.
        tolerance: see ``dh_from_axes``.
    """
    X, axes, kinds, pitches = [Plucker.identity()], [], [], []
    for i, (body, name) in enumerate(zip(model.bodies, model.joint_names, strict=True), start=1):
        if type(body.joint) not in _KINDS or body.parent != i - 1:
            raise ModelError(
                f"DH parameters need an unbranched chain of joints with an axis; joint {name!r} "
                f"is {type(body.joint).__name__} on body {model.body_names[body.parent]!r}"
            )
        X.append(body.placement @ X[body.parent])
        axes.append((X[i].r, X[i].E.T @ np.array(body.joint.axis)))
        kinds.append(_KINDS[type(body.joint)])
        pitches.append(getattr(body.joint, "pitch", 0.0))
    end = None
    if tool is not None:
        frame = model.frame(tool)
        end = frame.placement @ X[frame.body]
    return dh_from_axes(axes, tool=end, kinds=kinds, pitches=pitches, tolerance=tolerance)


def _perpendicular(axis, next_axis, x, foot, tolerance):
    """Common perpendicular of two axes: where it leaves, its direction, where it arrives."""
    (p, z), (p_next, z_next) = axis, next_axis
    normal = np.cross(z, z_next)
    if np.linalg.norm(normal) < tolerance:  # parallel: through the foot of the one before
        gap = p_next - foot
        gap = gap - (gap @ z) * z
        distance = np.linalg.norm(gap)
        return foot, (gap / distance if distance > tolerance else x), foot + gap
    s, t = np.linalg.lstsq(np.column_stack([z, -z_next]), p_next - p, rcond=None)[0]
    o, arrival = p + s * z, p_next + t * z_next
    distance = np.linalg.norm(arrival - o)
    if distance > tolerance:
        return o, (arrival - o) / distance, arrival
    direction = normal / np.linalg.norm(normal)
    return o, (direction if direction @ x >= 0 else -direction), arrival


def _angle(a, b, about):
    return float(np.arctan2(np.cross(a, b) @ about, a @ b))


def _unit(direction):
    v = np.asarray(direction, dtype=float)
    size = np.linalg.norm(v)
    if v.shape != (3,) or not size > 0:
        raise ModelError(
            f"an axis needs a direction of three numbers, not all zero, got {direction!r}"
        )
    return v / size
