"""Contacts over time: points, normals, forces, friction cones; also of a simulated motion."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.contact.contacts import contact_axes
from kinetree.errors import ContactError, ShapeError
from kinetree.rendering.surfaces import ball, cone
from kinetree.simulation.contact_sensors import contacts_along
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.viewer.scenes.description import Part
from kinetree.viewer.scenes.marks import LONGEST, scaled_arrows
from kinetree.viewer.scenes.places import along

if TYPE_CHECKING:
    from kinetree.contact.scene import Scene as ContactScene


_POINT, _FORCE, _CONE = (0.1, 0.35, 0.85), (0.84, 0.1, 0.1), (0.25, 0.55, 0.95)


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts as plain arrays, one column for each contact of the motion.

    Attributes:
        points: where they are [m], (T, K, 3) in base coordinates; not a number where there is none.
        normals: unit vectors away from what is touched, (T, K, 3); upwards unless given.
        forces: on the mechanism [N], (T, K, 3) in base coordinates; none unless given.
        friction: coefficients, a number or (K,); without them no cones are drawn.
    """

    points: Any
    normals: Any = None
    forces: Any = None
    friction: Any = None

    def __post_init__(self):
        points = self._array("points", self.points)
        if points.ndim != 3:
            raise ShapeError(f"points of contacts must be of shape (T, K, 3), got {points.shape}")
        object.__setattr__(self, "points", points)
        for name, default in (("normals", (0.0, 0.0, 1.0)), ("forces", (0.0, 0.0, 0.0))):
            given = getattr(self, name)
            array = self._array(name, default if given is None else given)
            try:
                array = np.broadcast_to(array, points.shape)
            except ValueError:
                raise ShapeError(
                    f"{name} of contacts must be of the shape of their points, {points.shape}, "
                    f"got {array.shape}"
                ) from None
            object.__setattr__(self, name, array)
        if self.friction is not None:
            friction = np.asarray(self.friction, dtype=float)
            if friction.shape not in ((), (points.shape[1],)):
                raise ShapeError(
                    f"friction of contacts must be a number or one for each of the "
                    f"{points.shape[1]} contacts, got shape {friction.shape}"
                )
            object.__setattr__(self, "friction", np.broadcast_to(friction, points.shape[1]))

    @staticmethod
    def _array(name, given):
        """Contact points or forces as a float array (T, K, 3); ShapeError if they misfit."""
        array = np.asarray(given, dtype=float)
        if array.shape[-1:] != (3,):
            raise ShapeError(
                f"{name} of contacts must have 3 coordinates, (T, K, 3), got shape {array.shape}"
            )
        return array

    @property
    def count(self) -> int:
        """Largest number of contacts at any time."""
        return self.points.shape[1]

    def at(self, times: np.ndarray, wanted: np.ndarray) -> "Contacts":
        """Contacts at the stored times just before the ``wanted`` ones."""
        if len(self.points) != len(times):
            raise ShapeError(f"contacts have {len(self.points)} times, the motion has {len(times)}")
        k = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 1)
        return Contacts(self.points[k], self.normals[k], self.forces[k], self.friction)


def contact_parts(contacts, size, node):
    """Parts for balls and friction cones of contacts, on nodes from ``node`` on."""
    for k in range(contacts.count):
        yield Part(f"contact {k + 1}", "contacts", node + k, ball(0.012 * size, 14), _POINT)
        if contacts.friction is not None:
            height = 0.12 * size
            width = height * min(float(contacts.friction[k]), 3.0)
            surface = cone(width, height, 0.0)
            yield Part(f"friction cone {k + 1}", "contacts", node + k, surface, _CONE, 0.3)


def contact_places(contacts):
    """Positions (T, K, 3) and rotations (T, K, 3, 3) of the contacts' nodes."""
    length = np.linalg.norm(contacts.normals, axis=-1, keepdims=True)
    up = np.where(length > 0, contacts.normals, [0.0, 0.0, 1.0])
    up = np.nan_to_num(up / np.where(length > 0, length, 1.0), nan=0.577)
    return contacts.points, along(up)


def contact_arrows(contacts, size, bodies):
    """Arrows of contact forces, outliers such as impacts cut to length.

    Args:
        contacts: with their forces.
        size: of the scene [m].
        bodies: extent of the largest body that moves [m], which no arrow is longer than.
    """
    here = np.all(np.isfinite(contacts.points), axis=-1, keepdims=True)
    forces = np.where(here, contacts.forces, 0.0)
    points = np.where(here, contacts.points, 0.0)
    lengths = np.linalg.norm(forces, axis=-1, keepdims=True)
    pushing = lengths[lengths > 0]
    most = 3 * np.median(pushing) if pushing.size else 0.0
    forces *= np.minimum(1.0, most / np.maximum(lengths, most or 1.0))
    longest = min(size, bodies / LONGEST)
    return scaled_arrows("contact forces", "contacts", _FORCE, points, forces, "N", longest)


def contacts_of(trajectory: Trajectory, scene: "ContactScene", margin: float = 1e-4) -> Contacts:
    """Points, normals, forces and friction of a motion's contacts, for ``view``.

    Args:
        trajectory: one motion that was simulated with ``contact=``.
        scene: the ``kinetree.contact.Scene`` that it was simulated with.
        margin: the largest gap of a contact that is shown [m].
    """
    history = trajectory.contact
    if history is None:
        raise ContactError(
            "the trajectory has no contact forces: simulate it with contact=, such as "
            "kt.simulate(model, q, contact=kt.contact.TimeStepping(scene), ...)"
        )
    column = {name: k for k, name in enumerate(history.names)}
    shape = len(trajectory.t), len(column), 3
    points, normals, forces = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    friction = np.zeros(len(column))
    place = getattr(history, "place", None)
    if place is not None:  # between polyhedra, in phases
        pair = [scene.pair_names.index(name.rpartition(":")[0]) for name in history.names]
        bears = history.force[..., :1] != 0
        forces = (history.force[..., None, :] @ contact_axes(place[..., 1, :]))[..., 0, :]
        points = np.where(bears, place[..., 0, :], np.nan)
        return Contacts(
            points, np.where(bears, place[..., 1, :], 0.0), forces, scene.friction[pair]
        )
    for k, q in enumerate(trajectory.q):
        found = scene.contacts(q, margin)
        known = [j for j, name in enumerate(found.names) if name in column]
        at = [column[found.names[j]] for j in known]
        axes = contact_axes(found.normal[known])
        points[k, at], normals[k, at] = found.point[known], found.normal[known]
        forces[k, at] = (history.force[k, at, None, :] @ axes)[:, 0]
        friction[at] = found.friction[known]
    return Contacts(points, normals, forces, friction)


def forces_seen(trajectory: Trajectory) -> Contacts | None:
    """Arrows of a motion's contact forces; None if unknown or absent.

    A contact keeps its column as long as it lasts; columns that were empty are used again.
    """
    if trajectory.contact is None or trajectory.q.ndim != 2 or not trajectory.contact.names:
        return None
    try:
        each = contacts_along(trajectory, None)
    except ContactError:  # of a trajectory from a file
        return None
    rows: list[dict[int, tuple]] = []
    column: dict[str, int] = {}
    count = 0
    for found, force in each:
        pushing = np.flatnonzero(np.abs(force).max(axis=1, initial=0.0) > 0)
        axes = contact_axes(found.normal[pushing]) if pushing.size else ()
        names = [found.names[k] for k in pushing]
        column = {name: at for name, at in column.items() if name in names}
        taken = {*column.values(), *(rows[-1] if rows else ())}
        for name in (n for n in names if n not in column):
            at = next(k for k in range(count + 1) if k not in taken)
            column[name], count = at, max(count, at + 1)
            taken.add(at)
        rows.append(
            {
                column[name]: (found.point[k], found.normal[k], force[k] @ A)
                for name, k, A in zip(names, pushing, axes, strict=True)
            }
        )
    if not count:
        return None
    arrays = np.full((3, len(rows), count, 3), np.nan)
    arrays[1:] = 0.0
    for t, row in enumerate(rows):
        for at, values in row.items():
            arrays[:, t, at] = values
    return Contacts(*arrays)
