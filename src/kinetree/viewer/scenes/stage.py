"""A mechanism on stage: bodies as coloured surfaces, once, and where they are in any states."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ShapeError
from kinetree.model.geometry import HeightField, Plane
from kinetree.quantities.kinematics import pose
from kinetree.rendering.bodies import BASE, COLORS, drawn_pieces, shapes_seen
from kinetree.rendering.surfaces import Surface, ball, rod, surface_of
from kinetree.spatial.rotation import quaternions
from kinetree.viewer.scenes import contacts, marks
from kinetree.viewer.scenes.description import Part, Scene, round_number
from kinetree.viewer.scenes.places import across, along, places, velocities


def body_parts(model, shapes):
    """Parts of the layer ``bodies``, and notices of shapes that cannot be drawn.

    Where no body has a shape, sticks between the joints are drawn; where only some have none,
    their axes, at the centre of mass.

    Args:
        model: the mechanism.
        shapes: those that are drawn.
    """
    drawn, notices = drawn_pieces(model, shapes)
    parts = [Part(d.name, "bodies", d.body, d.surface, d.color, d.opacity) for d in drawn]
    if not any(part.node for part in parts):
        parts += _sticks(model)
    else:
        seen = {part.node for part in parts}
        parts += [
            p for i in range(1, model.body_count + 1) if i not in seen for p in _axes(model, i)
        ]
    return tuple(parts), notices


def scale_of(model) -> float:
    """Length scale of a mechanism without shapes [m], from its joint distances."""
    lengths = [float(np.linalg.norm(_position(b.placement))) for b in model.bodies]
    lengths += [float(np.linalg.norm(center)) for center in map(_center, model.bodies)]
    return max([x for x in lengths if np.isfinite(x)], default=0.0) or 0.5


def _sticks(model):
    """Parts for a stick figure: balls at joints and mass centres, rods between."""
    thick = 0.03 * scale_of(model)
    for i, body in enumerate(model.bodies, start=1):
        color = COLORS[i % len(COLORS)]
        yield Part(body.joint_name, "bodies", i, ball(1.6 * thick, 16), color)
        ends = [_position(model.bodies[child - 1].placement) for child in model.children[i]]
        ends += [_position(f.placement) for f in model.frames if f.body == i]
        ends = ends or [_center(body)]
        for end in ends:
            if (length := float(np.linalg.norm(end))) > 1e-9:
                bar = rod(thick, 0.0, length, 12)
                yield Part(
                    body.name, "bodies", i, bar.place(along(end / length), np.zeros(3)), color
                )


_AXES = ((0.85, 0.3, 0.3), (0.3, 0.7, 0.3), (0.3, 0.45, 0.9))


def _axes(model, i):
    """Parts for a ball with axes at the mass centre of a body without shapes."""
    body = model.bodies[i - 1]
    if not float(body.inertia.mass) > 0:
        return
    radii = np.sqrt(np.diag(np.asarray(body.inertia.rotational, dtype=float)) / body.inertia.mass)
    length = max(float(np.max(radii)), 0.02 * scale_of(model))
    yield Part(body.name, "bodies", i, ball(0.2 * length, 12).place(np.eye(3), _center(body)), BASE)
    for axis, color in zip(np.eye(3), _AXES, strict=True):
        bar = rod(0.06 * length, 0.0, length, 8).place(along(axis), _center(body))
        yield Part(body.name, "bodies", i, bar, color)


def _position(placement):
    """Position of a placement as a float array, (3,)."""
    return np.asarray(placement.r, dtype=float)


def _center(body):
    """Centre of mass of a body in its coordinates, (3,); zero if massless."""
    mass = float(body.inertia.mass)
    return np.asarray(body.inertia.first_moment, dtype=float) / mass if mass > 0 else np.zeros(3)


# --- Ground: planes, which have no end, height fields and walls ----------------------------------

_SHEET, _LINES, _HILLS = (0.78, 0.81, 0.85), (0.52, 0.56, 0.62), (0.70, 0.69, 0.65)


def is_terrain(g) -> bool:
    """Whether a shape is ground to stand on rather than part of the mechanism."""
    return isinstance(g.shape, Plane) or (isinstance(g.shape, HeightField) and not g.body)


def ground_height(terrain, up, size) -> float | None:
    """Height along ``up`` of a level base-fixed plane [m]; None if there is none.

    Args:
        terrain: shapes of the ground, as ``kinetree.geometry.Geometry``.
        up: away from the ground, (3,).
        size: of the mechanism [m]; a plane that is not much larger is a table.
    """
    heights = [float(_pose(g)[:3, 3] @ up) for g in terrain if _is_ground(g, up, size)]
    return max(heights, default=None)


def terrain_parts(terrain, up, box, size):
    """Parts for height fields and translucent planes, level ground excepted.

    Args:
        terrain: shapes of the ground.
        up: away from the ground, (3,).
        box: what the bodies pass through [m], (2, 3); a sheet is a little larger.
        size: of the mechanism [m].
    """
    for g in terrain:
        if isinstance(g.shape, HeightField):
            color, opacity = (_HILLS, 1.0) if g.color is None else (g.color[:3], g.color[3])
            hills = surface_of(g.shape)
            yield Part(g.name or "hills", "bodies", 0, _place(g, hills), color, opacity)
        elif not _is_ground(g, up, size):
            name, (low, high) = g.name or "plane", _extent(g, box, size)
            color, opacity = (_SHEET, 0.5) if g.color is None else (g.color[:3], 0.5 * g.color[3])
            sheet = _place(g, _rectangles([(*low, *high)], 0.0))
            yield Part(name, "bodies", g.body, sheet, color, opacity)
            lines = _place(g, _lines(low, high, size))
            yield Part(f"lines on {name}", "bodies", g.body, lines, _LINES, 0.6)


def _extent(g, box, size):
    """Lower and upper plane coordinates, (2,) each, of the drawn part of a plane."""
    pose, half = _pose(g), _sides(g.shape) / 2
    middle, reach = np.zeros(2), np.full(2, size)
    if not g.body:
        middle = ((box[0] + box[1]) / 2 - pose[:3, 3]) @ pose[:3, :2]
        reach += 0.5 * np.linalg.norm(box[1] - box[0]) - 0.5 * size
    middle = np.clip(middle, -half, half)
    return np.maximum(middle - reach, -half), np.minimum(middle + reach, half)


def _is_ground(g, up, size):
    """Whether a shape is a level, large plane fixed to the base."""
    if not isinstance(g.shape, Plane) or g.body:
        return False
    return _pose(g)[:3, 2] @ up > 1 - 1e-6 and np.all(_sides(g.shape) > 2 * size)


def _sides(plane):
    """Side lengths of a plane [m], (2,), infinite where given as 0."""
    sides = np.array(plane.size, dtype=float)
    return np.where(sides > 0, sides, np.inf)


def _pose(g):
    """Pose (4, 4) of a shape on its body."""
    return g.placement.to_pose().astype(float)


def _place(g, surface):
    """Surface transformed by the placement of a shape."""
    pose = _pose(g)
    return surface.place(pose[:3, :3], pose[:3, 3])


def _lines(low, high, size):
    """Surface of lines at round distances just above a plane."""
    step, thick = round_number(size / 6), 0.002 * size
    bars = []
    for axis in (0, 1):
        for k in np.arange(np.ceil(low[axis] / step), np.floor(high[axis] / step) + 1):
            bar = np.array([low, high])
            bar[:, axis] = k * step - thick, k * step + thick
            bars.append(bar.ravel())
    return _rectangles(bars, 1e-3 * size)


def _rectangles(bars, z):
    """Surface of axis-aligned rectangles at a height."""
    corners = [[(a, b, z), (c, b, z), (c, d, z), (a, d, z)] for a, b, c, d in bars]
    faces = [np.array([[0, 1, 2], [0, 2, 3]]) + 4 * k for k in range(len(bars))]
    return Surface(
        np.reshape(np.array(corners, dtype=float), (-1, 3)),
        np.concatenate([np.zeros((0, 3), dtype=int), *faces]),
    )


_GHOST = (0.45, 0.55, 0.7)
_DIRECTIONS = np.array([d for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)]) - 1


class Overlays(NamedTuple):
    """Drawings beside a mechanism, each None where there is none.

    Attributes:
        forces: on bodies, as ``f_ext`` of the dynamics, (T, NB, 6), for arrows.
        reactions: of the joints at their origins, along the axes of the base, (T, joints, 6).
        touching: ``Contacts`` at these times.
        ghost: positions of a second motion of the same mechanism, (T, nq).
        trace: name of a frame or body, whose path is drawn as far as it has come.
        beside: positions of a motion of the same mechanism that is drawn beside it, (T, nq).
    """

    forces: Any = None
    reactions: Any = None
    touching: Any = None
    ghost: Any = None
    trace: str | None = None
    beside: Any = None


NOTHING = Overlays()


class _Cast:
    """Nodes of a scene with their places, parts and arrows, while they are collected."""

    def __init__(self, parts):
        self.parts, self.arrows = list(parts), []
        self.nodes: list[str] = []
        self.positions, self.rotations = [], []

    def add(self, names, positions, rotations):
        """Add named nodes with positions (T, n, 3) and rotations (T, n, 3, 3)."""
        self.nodes += names
        self.positions.append(positions)
        self.rotations.append(rotations)


class Stage:
    """A mechanism with all that can be drawn of it.

    Nodes are the base, the bodies, the centre of mass; then the bodies of the ghost, the contacts
    and the pieces of a path, if any.

    Args:
        model: the mechanism.
        collision: draw the collision shapes instead of the visual ones.
    """

    def __init__(self, model, *, collision=False):
        self.model = model
        shapes = shapes_seen(model, collision=collision)
        self.terrain = [g for g in shapes if is_terrain(g)]
        shapes = [g for g in shapes if not is_terrain(g)]
        self.bodies, self.notices = body_parts(model, shapes)
        self.masses, self.centers = marks.mass_centers(model)

    @cached_property
    def box(self):
        """Bounding box of the bodies in neutral position, (2, 3)."""
        return self.box_at(places(self.model, self.model.neutral()[None]))

    def box_over(self, placed):
        """Bounding box of the bodies during a motion, (2, 3)."""
        moments = np.unique(np.linspace(0, len(placed.positions) - 1, 24).astype(int))
        boxes = np.array([self.box_at(placed, k) for k in moments])
        return np.array([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])

    def box_at(self, placed, k=0):
        """Bounding box of the bodies at time index ``k``, (2, 3)."""
        nodes, points = self._outermost
        if not len(nodes):
            return np.array([-np.full(3, 0.5), np.full(3, 0.5)])
        points = np.einsum("nij,nj->ni", placed.rotations[k, nodes], points)
        points += placed.positions[k, nodes]
        return np.array([points.min(axis=0), points.max(axis=0)])

    @cached_property
    def _outermost(self):
        """Extreme points of the bodies in many directions, with their nodes.

        What is much larger than the mechanism is its surroundings.
        """
        nodes, points, largest = [], [np.zeros((0, 3))], 20 * scale_of(self.model)
        for part in self.bodies:
            vertices = part.surface.vertices
            if np.ptp(vertices, axis=0).max() < largest:
                points.append(vertices[np.unique(np.argmax(vertices @ _DIRECTIONS.T, axis=0))])
                nodes += [part.node] * len(points[-1])
        return np.array(nodes, dtype=int), np.concatenate(points)

    @cached_property
    def size(self) -> float:
        """Largest side of the bodies' bounding box [m]."""
        return max(float(np.max(self.box[1] - self.box[0])), 1e-3)

    @cached_property
    def largest(self) -> float:
        """Size of the largest moving body [m]; of the mechanism if it has no shapes."""
        sizes = [np.ptp(p.surface.vertices, axis=0).max() for p in self.bodies if p.node]
        return float(max(sizes, default=self.size))

    @cached_property
    def parts(self):
        """All parts of the mechanism itself, marks included."""
        return (
            *self.bodies,
            *marks.loop_parts(self.model, self.size),
            *marks.center_parts(self.model, self.size, self.model.body_count + 1),
            *marks.inertia_parts(self.model),
            *marks.frame_parts(self.model, self.size),
            *marks.camera_parts(self.model, self.size),
            *marks.sensor_parts(self.model, self.size),
        )

    @property
    def up(self):
        """Unit vector against gravity; z without gravity."""
        gravity = np.asarray(self.model.gravity, dtype=float)
        length = np.linalg.norm(gravity)
        return -gravity / length if length > 0 else np.array([0.0, 0.0, 1.0])

    def scene(self, t, q, qd=None, tau=None, overlays=NOTHING) -> Scene:
        """``Scene`` of a motion of the mechanism with overlays.

        Args:
            t: times [s], (T,).
            q: positions, (T, nq).
            qd: velocities, (T, nv), for arrows.
            tau: joint forces, (T, nv), for arrows.
            overlays: what is drawn beside the mechanism.
        """
        placed, cast = places(self.model, q), _Cast(self.parts)
        center = np.broadcast_to(np.eye(3), (len(t), 1, 3, 3))
        cast.add(self.model.body_names, placed.positions, placed.rotations)
        cast.add(["centre of mass"], self._center(placed), center)
        self._add_overlays(cast, q, overlays)
        arrows = [
            marks.loop_arrows(self.model, placed),
            *cast.arrows,
            *self._arrows(placed, q, qd, tau, overlays),
        ]
        first, whole = self.box_at(placed), self.box_over(placed)
        if overlays.beside is not None:
            first, whole = self._with_neighbour(first, whole, q, overlays.beside)
        away = bool(np.max(whole[1] - whole[0]) > 3 * max(np.max(first[1] - first[0]), 1e-3))
        return Scene(
            self.model.name,
            tuple(cast.nodes),
            (*cast.parts, *terrain_parts(self.terrain, self.up, whole, self.size)),
            tuple(a for a in arrows if a is not None),
            np.asarray(t, dtype=float),
            np.concatenate(cast.positions, axis=1),
            quaternions(np.concatenate(cast.rotations, axis=1)),
            self.up,
            first if away else whole,
            away,
            ground_height(self.terrain, self.up, self.size),
            self.notices,
        )

    def _add_overlays(self, cast, q, overlays):
        """Add nodes and parts of ghost, contacts and path to the cast."""
        model, size, trace = self.model, self.size, overlays.trace
        if (ghost := overlays.ghost) is not None:
            if np.shape(ghost) != np.shape(q):
                raise ShapeError(f"a ghost needs q of shape {np.shape(q)}, got {np.shape(ghost)}")
            start, second = len(cast.nodes), places(model, ghost)
            cast.parts += [
                Part(f"ghost of {p.name}", "ghost", start + p.node, p.surface, _GHOST, 0.35)
                for p in self.bodies
                if p.node
            ]
            names = [f"ghost of {name}" for name in model.body_names]
            cast.add(names, second.positions, second.rotations)
        if (beside := overlays.beside) is not None:
            start, second = len(cast.nodes), self._neighbour(q, beside)
            cast.parts += [
                Part(f"{p.name}, beside", "bodies", start + p.node, p.surface, p.color, p.opacity)
                for p in self.bodies  # those of the base, too
            ]
            names = [f"{name}, beside" for name in model.body_names]
            cast.add(names, second.positions, second.rotations)
        if (touching := overlays.touching) is not None:
            cast.parts += contacts.contact_parts(touching, size, len(cast.nodes))
            names = [f"contact {k + 1}" for k in range(touching.count)]
            cast.add(names, *contacts.contact_places(touching))
            cast.arrows.append(contacts.contact_arrows(touching, size, self.largest))
        if trace is not None:
            points = np.asarray(pose(model, q, trace), dtype=float)[:, :3, 3]
            pieces, at = marks.path_parts(trace, points, size, len(cast.nodes))
            cast.parts += pieces
            names = [f"path of {trace}, {k + 1}" for k in range(len(pieces))]
            cast.add(names, at, np.broadcast_to(np.eye(3), (*at.shape[:2], 3, 3)))

    def _neighbour(self, q, beside):
        """Body poses of a second motion, shifted to the right of the first."""
        if np.shape(beside) != np.shape(q):
            raise ShapeError(f"beside needs q of shape {np.shape(q)}, got {np.shape(beside)}")
        first, second = places(self.model, q), places(self.model, beside)
        boxes = np.array([self.box_over(first), self.box_over(second)])
        right = across(self.up)
        wide = boxes @ right  # (2, 2): of both motions, at the least and largest coordinates
        start, end = wide[0].max(), wide[1].min()
        gap = 0.15 * max(np.ptp(wide[0]), np.ptp(wide[1]), 0.5 * self.size)
        return second._replace(positions=second.positions + (start - end + gap) * right)

    def _with_neighbour(self, first, whole, q, beside):
        """Bounding boxes enlarged by those of a second mechanism beside the first."""
        second = self._neighbour(q, beside)
        boxes = self.box_at(second), self.box_over(second)
        return tuple(
            np.array([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])])
            for a, b in zip((first, whole), boxes, strict=True)
        )

    def _arrows(self, placed, q, qd, tau, overlays):
        """Arrows of joint forces, applied forces, reactions and velocities."""
        model, size = self.model, self.size
        if tau is not None and np.any(tau):
            yield from marks.joint_arrows(model, placed, q, tau, size)
        if overlays.forces is not None:
            yield from marks.applied_arrows(model, placed, overlays.forces, size)
        if overlays.reactions is not None:
            yield from marks.reaction_arrows(model, placed, overlays.reactions, size)
        if qd is not None and np.any(qd):
            speed = velocities(model, q, qd)
            yield from marks.velocity_arrows(model, placed, speed, size)

    def _center(self, placed):
        """Centre of mass of the mechanism, (T, 1, 3); mean of the bodies if massless."""
        weights = self.masses if np.any(self.masses) else np.ones_like(self.masses)
        weights = weights / weights.sum()
        return np.einsum("b,tbi->ti", weights, placed.points(self.centers))[:, None]
