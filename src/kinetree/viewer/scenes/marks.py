"""Marks and arrows: frames, mass centres, inertias, velocities, forces, loop errors."""

from itertools import pairwise

import numpy as np

from kinetree.model.geometry import Box
from kinetree.model.sensors import KINDS
from kinetree.rendering.surfaces import ball, join, rod, surface_of
from kinetree.viewer.scenes.description import Arrows, Part, Surface, round_number
from kinetree.viewer.scenes.places import along

AXES = ((0.85, 0.15, 0.15), (0.1, 0.6, 0.2), (0.15, 0.3, 0.9))
_CENTER, _TOTAL, _INERTIA = (0.95, 0.75, 0.1), (0.85, 0.1, 0.1), (0.35, 0.45, 0.95)


def frame_parts(model, size):
    """Parts for the red, green and blue axes of body frames and named frames."""
    for body, name in enumerate(model.body_names):
        at = [(np.eye(4), 0.1 * size)]
        own = (f for f in model.frames if f.body == body)
        at += [(f.placement.to_pose().astype(float), 0.06 * size) for f in own]
        for axis in range(3):
            bars = [_axis(axis, length, pose) for pose, length in at]
            yield Part(f"{'xyz'[axis]} of {name}", "frames", body, join(bars), AXES[axis])


def _axis(axis, length, pose):
    """Surface of a rod along one axis of a frame."""
    bar = rod(0.045 * length, 0.0, length, 10)
    turn = (_X, _Y, np.eye(3))[axis]
    return bar.place(turn, np.zeros(3)).place(pose[:3, :3], pose[:3, 3])


_X = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # from z to x
_Y = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # from z to y


_CAMERA, _SENSOR = (0.2, 0.2, 0.25), (0.0, 0.55, 0.65)


def camera_parts(model, size):
    """Parts for cameras, drawn as view pyramids with a flag at the top."""
    length = 0.12 * size
    for c in model.cameras:
        frame = model.frame(c.of or model.base_name)
        pose = (frame.placement.to_pose() @ c.placement.to_pose()).astype(float)
        y = length * np.tan(min(c.angle, 2.4) / 2)
        x = y * c.size[0] / c.size[1]
        corners = np.array([(sx * x, sy * y, -length) for sx, sy in _CORNERS])
        tip = np.array([[-0.4 * x, 1.1 * y, -length], [0.4 * x, 1.1 * y, -length]])
        flag = np.vstack([tip, [[0.0, 1.5 * y, -length]]])
        edges = [(np.zeros(3), corner) for corner in corners]
        edges += [(corners[k], corners[k - 1]) for k in range(4)]
        bars = [_bar(0.02 * length, a, b) for a, b in edges]
        lines = join([*bars, Surface(flag, np.array([[0, 1, 2], [2, 1, 0]]))])
        placed = lines.place(pose[:3, :3], pose[:3, 3])
        yield Part(f"camera {c.name}", "cameras", frame.body, placed, _CAMERA)


_CORNERS = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def _bar(radius, start, end):
    """Surface of a rod between two points."""
    along_it = end - start
    length = float(np.linalg.norm(along_it))
    return rod(radius, 0.0, length, 6).place(along(along_it / length), start)


def sensor_parts(model, size):
    """Parts for sensors on frames, drawn as small cubes with their x axis."""
    for s in model.sensors:
        if KINDS[s.kind].of != "frame":
            continue
        frame = model.frame(s.of)
        pose = (frame.placement.to_pose() @ s.placement.to_pose()).astype(float)
        cube = surface_of(Box((0.022 * size,) * 3))
        mark = join([cube, _axis(0, 0.05 * size, np.eye(4))])
        placed = mark.place(pose[:3, :3], pose[:3, 3])
        yield Part(f"sensor {s.name}", "sensors", frame.body, placed, _SENSOR)


def mass_centers(model):
    """Masses [kg], (NB + 1,), and mass centres in body coordinates [m], (NB + 1, 3)."""
    masses, centers = np.zeros(model.body_count + 1), np.zeros((model.body_count + 1, 3))
    for i, body in enumerate(model.bodies, start=1):
        masses[i] = float(body.inertia.mass)
        if masses[i] > 0:
            centers[i] = np.asarray(body.inertia.first_moment, dtype=float) / masses[i]
    return masses, centers


def center_parts(model, size, node):
    """Parts for balls at the bodies' mass centres and at the total one."""
    masses, centers = mass_centers(model)
    heaviest = masses.max(initial=0.0)
    for i, mass in enumerate(masses):
        if mass > 0:
            radius = 0.014 * size * max(0.35, (mass / heaviest) ** (1 / 3))
            placed = ball(radius, 12).place(np.eye(3), centers[i])
            yield Part(f"mass centre of {model.body_names[i]}", "center", i, placed, _CENTER)
    if heaviest > 0:
        yield Part("centre of mass", "center", node, ball(0.025 * size, 20), _TOTAL)


def inertia_parts(model):
    """Parts for uniform ellipsoids with the bodies' mass and inertia."""
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
        placed = Surface(unit.vertices * radii, unit.faces).place(axes, center)
        yield Part(f"inertia of {body.name}", "inertias", i, placed, _INERTIA, 0.4)


# --- Arrows: velocities and forces, scaled to the scene ------------------------------------------

LONGEST = 0.35  # of the size of the scene
_SPEED, _TURNING = (0.0, 0.62, 0.45), (0.5, 0.31, 0.75)
_FORCE, _MOMENT = (0.84, 0.37, 0.0), (0.80, 0.35, 0.6)


def scaled_arrows(name, layer, color, origins, vectors, unit, size, longest=None) -> Arrows | None:
    """``Arrows`` scaled so that the longest is a third of the scene; None if all are zero.

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
    scale = LONGEST * size / longest
    nice = round_number(0.5 * longest)
    legend = f"{name}: {_short(scale * nice)} m for {_short(nice)} {unit}"
    return Arrows(name, layer, color, origins, np.nan_to_num(scale * vectors), legend)


def velocity_arrows(model, placed, velocity, size):
    """Arrows of linear and angular velocities of bodies at their mass centres."""
    masses, centers = mass_centers(model)
    heavy = masses > 0
    points = placed.points(centers)[:, heavy]
    turning, linear = velocity[:, heavy, :3], velocity[:, heavy, 3:]
    speed = linear + np.cross(turning, points)
    return (
        scaled_arrows("velocities", "velocities", _SPEED, points, speed, "m/s", size),
        scaled_arrows("angular velocities", "velocities", _TURNING, points, turning, "rad/s", size),
    )


def joint_arrows(model, placed, q, tau, size):
    """Arrows of joint forces and moments along the joint axes."""
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
    """Arrows of applied wrenches (..., NB, 6) at the bodies' mass centres."""
    steps = len(placed.positions)
    wrenches = np.broadcast_to(wrenches, (steps, model.body_count, 6))
    points = placed.points(mass_centers(model)[1])[:, 1:]
    force = wrenches[..., 3:]
    moment = wrenches[..., :3] - np.cross(points, force)
    return _pair("applied", points, force, moment, size)


def reaction_arrows(model, placed, wrenches, size):
    """Arrows of joint reactions, (T, joints, 6) in base axes."""
    ends = [loop_frame(placed, loop.successor, loop.successor_placement)[0] for loop in model.loops]
    points = np.concatenate([placed.positions[:, 1:], *(p[:, None] for p in ends)], axis=1)
    return _pair("reaction", points, wrenches[..., 3:], wrenches[..., :3], size, "reactions")


def _pair(whose, points, forces, moments, size, layer="forces"):
    """Arrows of forces and of moments at points, a pair."""
    return (
        scaled_arrows(f"{whose} forces", layer, _FORCE, points, forces, "N", size),
        scaled_arrows(f"{whose} moments", layer, _MOMENT, points, moments, "N·m", size),
    )


def _short(x):
    """Number formatted as short text, for labels."""
    return f"{x:.2g}" if x < 100 else f"{x:.0f}"


# --- Paths: rods that appear one after another ----------------------------------------------------

_PATH, _MOST = (0.84, 0.37, 0.0), 200


def path_parts(name, points, size, node):
    """Parts for the path of a point (T, 3), appearing as the motion proceeds.

    Returns:
        Parts, on nodes from number ``node`` on, and the positions of these nodes, (T, nodes, 3):
        zero from the time on at which the point has passed, not a number before.
    """
    steps = len(points)
    at = np.unique(np.linspace(0, steps - 1, min(_MOST, steps)).astype(int))
    parts, later = [], []
    for start, end in pairwise(at):
        along_it = points[end] - points[start]
        length = float(np.linalg.norm(along_it))
        if length > 1e-6 * size:
            bar = rod(0.004 * size, 0.0, length, 6).place(along(along_it / length), points[start])
            parts.append(Part(f"path of {name}", "paths", node + len(parts), bar, _PATH))
            later.append(end)
    passed = np.arange(steps)[:, None] >= np.array(later, dtype=int)
    return parts, np.where(passed[..., None], np.zeros(3), np.nan)


# --- Loop errors ---------------------------------------------------------------------------------

_END, _GAP = (0.95, 0.55, 0.1), (0.75, 0.0, 0.1)


def loop_parts(model, size):
    """Parts for balls on both sides of every loop joint."""
    for loop in model.loops:
        sides = (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
        for body, placement in sides:
            at = np.asarray(placement.r, dtype=float)
            surface = ball(0.014 * size, 14).place(np.eye(3), at)
            yield Part(f"end of loop {loop.name}", "loops", body, surface, _END)


def loop_ends(model, placed):
    """Loop joint positions on predecessors [m], (T, NL, 3), and gaps from there, (T, NL, 3).

    Returns:
        Points on the predecessors [m], (T, NL, 3), and gaps from there, (T, NL, 3): less what the
        joint lets slide.
    """
    starts, gaps = np.zeros((2, len(placed.positions), len(model.loops), 3))
    for k, loop in enumerate(model.loops):
        start, _ = loop_frame(placed, loop.predecessor, loop.predecessor_placement)
        end, axes = loop_frame(placed, loop.successor, loop.successor_placement)
        gap = np.einsum("tji,tj->ti", axes, end - start)  # in the successor's frame
        S = np.asarray(loop.joint.motion_subspace(loop.joint.neutral()).linear, dtype=float)
        slides = S.reshape(3, -1)
        gap = gap - gap @ (slides @ np.linalg.pinv(slides)).T if slides.size else gap
        starts[:, k], gaps[:, k] = start, np.einsum("tij,tj->ti", axes, gap)
    return starts, gaps


def loop_arrows(model, placed):
    """Arrows of the loops' gaps in true length; None without loops."""
    if not model.loops:
        return None
    starts, gaps = loop_ends(model, placed)
    largest = np.linalg.norm(gaps, axis=-1).max(initial=0.0)
    legend = f"loop errors: at most {largest:.2g} m"
    return Arrows("loop errors", "loops", _GAP, starts, gaps, legend)


def loop_frame(placed, body, placement):
    """Origin (T, 3) and axes (T, 3, 3) of a loop joint's frame on a body."""
    R = placed.rotations[:, body]
    origin = placed.positions[:, body] + R @ np.asarray(placement.r, dtype=float)
    return origin, R @ np.asarray(placement.E, dtype=float).T
