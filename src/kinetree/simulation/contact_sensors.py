"""Sensors that depend on shapes: touch, distances and ranges. In Python, on the CPU."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from kinetree.algorithms.jacobians import frame_pose
from kinetree.contact import Contacts, Scene
from kinetree.contact.collision.rays import NONE, first_hits, ray_shape
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.contacts import contact_axes
from kinetree.contact.finding.pairs import names_of
from kinetree.contact.finding.shapes import Placed
from kinetree.contact.soft.history import SoftHistory
from kinetree.errors import ContactError, ShapeError
from kinetree.model.geometry import Plane, Solid
from kinetree.model.memo import remember
from kinetree.model.parts import Frame

# --- contact forces ------------------------------------------------------------------------------


def contacts_along(trajectory, scene) -> list:
    """Contacts and their forces (n, 3) at every state of a trajectory, as a list.

    Forces are those of the step that ended at each time; at the first, those of the one after it.
    Of soft contact they are those at each time.
    """
    history = trajectory.contact
    if isinstance(history, SoftHistory):
        return [history.contacts(index) for index in np.ndindex(trajectory.q.shape[:-1])]
    scene = _scene(trajectory, scene)
    found, force = [], history.force.copy()
    if len(force) > 1:
        force[0] = force[1]
    if getattr(history, "place", None) is not None:
        return [_place(scene, history, k, force[k]) for k in range(len(force))]
    column = {name: k for k, name in enumerate(history.names)}
    fixed = not scene.open_pairs and history.names == scene.candidates.names
    if fixed:
        gaps, points, axes = map(np.asarray, scene.candidate_positions(scene.model, trajectory.q))
    for index in np.ndindex(trajectory.q.shape[:-1]):
        if fixed:
            of = scene.candidates
            here = (points[index], axes[index][:, 0], gaps[index], of.names)
            found.append((Contacts(of.predecessor, of.successor, *here), force[index]))
            continue
        contacts = scene.contacts(trajectory.q[index], _NEAR)
        known = [k for k, name in enumerate(contacts.names) if name in column]
        contacts = contacts.chosen(known)
        found.append((contacts, force[index][[column[name] for name in contacts.names]]))
    return found


def _place(scene, history, k, force):
    """Contacts and forces of event-driven polyhedra at stored time ``k``."""
    at = np.flatnonzero(force[:, 0] != 0)
    pair = np.array([scene.pair_names.index(history.names[c].rpartition(":")[0]) for c in at])
    ends = np.array([[g.body for g in scene.pairs[p][:2]] for p in pair], dtype=int).reshape(-1, 2)
    names, (point, normal) = (
        tuple(history.names[c] for c in at),
        history.place[k, at].swapaxes(0, 1),
    )
    gap = np.zeros(len(at))
    return Contacts(ends[:, 0], ends[:, 1], point, normal, gap, names), force[at]


_NEAR = 1e-4  # gap up to which contacts may carry forces [m]


def _scene(trajectory, scene):
    """``Scene`` of a trajectory; ContactError if none is known or given."""
    for of in ("notes", "dynamics"):  # of steps, of phases
        part = getattr(trajectory.acted, of, None)
        part = getattr(part, "constraints", part)
        scene = getattr(part, "scene", None) if scene is None else scene
    if scene is None:
        raise ContactError(
            "where contact forces of this trajectory act is not known any more: give the scene "
            "that it was simulated with, sensors(trajectory, scene=scene)"
        )
    return scene


def check_forces(contacts, forces):
    """Contact forces as (n, 3) along normal and tangents, from those or normal forces (n,)."""
    forces = np.asarray(forces, dtype=float)
    if forces.shape == (contacts.size,):
        forces = forces[:, None] * np.array([1.0, 0.0, 0.0])
    if forces.shape != (contacts.size, 3):
        raise ShapeError(
            f"contact_forces must have shape ({contacts.size}, 3), along normal and tangents of "
            f"each contact, got {forces.shape}"
        )
    return contacts, forces


def wrenches(model, contacts, forces) -> np.ndarray:
    """Resultant contact wrenches on the bodies in base coordinates, (body_count, 6)."""
    f = (forces[:, None, :] @ contact_axes(contacts.normal))[:, 0]
    wrench = np.concatenate([np.cross(contacts.point, f), f], axis=-1)
    total = np.zeros((model.body_count + 1, 6))
    np.add.at(total, contacts.successor, wrench)
    np.subtract.at(total, contacts.predecessor, wrench)
    return total[1:]


def touch(model, sensor, q, contacts, forces) -> float:
    """Sum of a body's normal contact forces inside a touch sensor's volume [N].

    As in MuJoCo, a contact counts if a ray from it, away from the body, meets the volume.
    """
    frame, T, total = model.frame(sensor.of), _pose(model, sensor, q), 0.0
    for k in range(contacts.size):
        for body, side in ((contacts.predecessor[k], 1.0), (contacts.successor[k], -1.0)):
            if body == frame.body and forces[k, 0] > 0:
                p, d = (contacts.point[k] - T[:3, 3]) @ T[:3, :3], contacts.normal[k] @ T[:3, :3]
                total += forces[k, 0] * _meets(sensor.shape, p, side * d)
    return total


def _meets(shape, p, d):
    """Whether a ray meets a touch sensor's volume; always without a solid volume."""
    if not isinstance(shape, Solid):
        return True
    return ray_shape(_table(shape), 0, p.copy(), d.copy(), NONE, np.zeros(3)) < NONE


@lru_cache(maxsize=64)
def _table(shape):
    """Shape table of one shape at the origin, for ray queries."""
    return placed_table(Placed(shape, np.eye(3), np.zeros(3)))


def _pose(model, sensor, q):
    """World pose (4, 4) of a sensor's frame or volume."""
    frame = model.frame(sensor.of)
    return frame_pose(model, q, Frame("", frame.body, sensor.placement @ frame.placement))


# --- distances -----------------------------------------------------------------------------------


def nearest(model, sensor, q) -> np.ndarray:
    """Distance (up to a cutoff), normal or end points between two shapes, at one state.

    The normal is along the segment from a point of the first to one of the second, so that it turns
    round where they overlap. Both are zero where the shapes are farther apart than the cutoff.
    """

    def make():
        shapes = [replace(g, surface=None, collision=True) for g in model.geometry]
        bare = model.replace(geometry=shapes, contact_pairs=(), sensors=())
        scene = Scene(bare, pairs=[(sensor.of, sensor.reference)])
        first = {id(bare.geometry[k]) for k in names_of(bare).find(sensor.of)}
        ordered = [id(pair.first) in first for pair in scene.pairs]
        return scene, dict(zip(scene.pair_names, ordered, strict=True))

    scene, in_order = remember(model, ("nearest shapes", sensor.of, sensor.reference), make)
    found = scene.contacts(q, sensor.cutoff)
    size = {"distance": 1, "normal": 3, "fromto": 6}[sensor.kind]
    if not found.size:
        return np.full(size, sensor.cutoff if sensor.kind == "distance" else 0.0)
    k = int(np.argmin(found.gap))
    gap, n, p = found.gap[k], found.normal[k], found.point[k]
    n = n if in_order[found.names[k].rpartition(":")[0]] else -n
    ends, along = [p - n * gap / 2, p + n * gap / 2], n if gap >= 0 else -n
    return {"distance": np.array([gap]), "normal": along, "fromto": np.concatenate(ends)}[
        sensor.kind
    ]


def _is_seen(model, q, hit, way) -> bool:
    """Whether a ray's hit counts: on planes only the front side within their drawn size."""
    g = model.geometry[int(hit.shape)]
    if not isinstance(g.shape, Plane):
        return True
    T = frame_pose(model, q, Frame("", g.body, g.placement))
    x = T[:3, :2].T @ (hit.point - T[:3, 3])
    within = all(not s > 0 or abs(c) <= s / 2 for c, s in zip(x, g.shape.size, strict=True))
    return bool(hit.normal @ way < 0) and within


def range_along(model, sensor, q) -> float:
    """Rangefinder distance along a sensor's z axis to the first visible shape [m], or -1.

    Shapes of the body that carries the sensor do not count, nor those that are fully
    transparent. Planes are seen from above, within their size.
    """
    own, T = model.frame(sensor.of).body, _pose(model, sensor, q)
    hidden = {
        k
        for k, g in enumerate(model.geometry)
        if g.body == own or (g.color is not None and g.color[3] == 0)
    }
    hit = first_hits(model, q, T[:3, 3], T[:3, 2], hidden)
    while hit.shape >= 0 and not _is_seen(model, q, hit, T[:3, 2]):
        hidden |= {int(hit.shape)}
        hit = first_hits(model, q, T[:3, 3], T[:3, 2], hidden)
    found = -1.0 if np.isinf(hit.distance) else float(hit.distance)
    return float(np.clip(found, -sensor.cutoff, sensor.cutoff)) if sensor.cutoff else found
