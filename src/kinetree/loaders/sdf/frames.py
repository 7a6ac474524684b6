"""Every link, joint, model and frame of an SDF file as a frame that is placed on another one.

Frames are known by keys, ``model::link``. A pose is never composed farther than to the closest
frame that both have in common, so that what is placed directly stays exactly as it was written.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kinetree.loaders.urdf.elements import rotation_of_rpy
from kinetree.loaders.xml import Node
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_from_quaternion
from kinetree.spelling import did_you_mean

WORLD = "world"
_MOST = 10_000
_FAR = 20  # frames on the way


@dataclass
class Scope:
    """Inside of a model or world: what names mean here."""

    prefix: str
    """Before the names of things in here, to make keys."""
    model: str
    """Key of the frame ``__model__``; of a world, ``world``."""
    node: Node
    """The element."""

    def key(self, name: str) -> str:
        """Unique key of a name in this scope."""
        if name == "__model__" or (name == WORLD and self.model == WORLD):
            return self.model
        return self.prefix + name


@dataclass
class FrameEntry:
    """A frame: where it is, and which frame it is fixed to."""

    kind: str
    """``"link"``, ``"joint"``, ``"model"``, ``"frame"`` or ``"world"``."""
    scope: Scope
    """In which the names below are to be looked up."""
    node: Node
    """The element, for messages."""
    placement: Plucker
    """From ``relative_to`` to this frame."""
    relative_to: str | None
    """Name of the frame it is placed on; None for the root."""
    fixed_to: str | None = None
    """Name of the frame that carries it; of a joint, its child."""
    placed_by: str | None = None
    """Of a model, the name inside of it of the frame that ``placement`` is about."""
    inside: Scope | None = None
    """Of a model, its own scope."""


class Frames:
    """All frames of a file and of those that it includes."""

    def __init__(self):
        self.entries: dict[str, FrameEntry] = {}
        self._above: dict[str, str | None] = {}
        self._depth: dict[str, int] = {}
        self._link: dict[str, str] = {}
        self._absolute: dict[str, Plucker] = {}

    def add(self, key: str, entry: FrameEntry):
        """Register a frame under its key."""
        if len(self.entries) >= _MOST:
            raise entry.node.error(f"more than {_MOST} links, joints and frames in all")
        if key in self.entries:
            first = self.entries[key]
            if first.kind == "world":
                raise entry.node.error("'world' stands for the world and names nothing else")
            where = f"{first.kind} on line {first.node.line}"
            raise entry.node.error(f"the name {key!r} is taken by the {where}; rename one")
        self.entries[key] = entry

    def find(self, scope: Scope, name: str, node: Node, what: str = "frame") -> str:
        """Key of the frame that a name means in a scope; an error for unknown names."""
        key = scope.key(name)
        if key in self.entries:
            return key
        known = [k.removeprefix(scope.prefix) for k in self.entries if k.startswith(scope.prefix)]
        hint = did_you_mean(name, known, f"there are {len(known)} names here")
        raise node.error(f"there is no {what} {name!r} here; {hint}")

    def resolve(self):
        """Resolve which frame every frame is attached to; an error for circles."""
        for key, entry in self.entries.items():
            if entry.relative_to is None:
                self._above[key] = None
            else:
                self._above[key] = self.find(entry.scope, entry.relative_to, entry.node)
        for key in self.entries:
            self._measure(key)
        models = [e for e in self.entries.values() if e.placed_by is not None]
        for entry in sorted(models, key=lambda e: -_inside(e).prefix.count("::")):
            inner = _inside(entry)
            placed = self.find(inner, entry.placed_by or "", entry.node)
            entry.placement = self.between(placed, inner.model) @ entry.placement

    def _measure(self, key):
        """Compute the depth of a frame in the pose graph; an error for circles."""
        path: dict[str, None] = {}
        k: str | None = key
        while k is not None and k not in self._depth:
            if k in path:
                circle = _circle(path, k)
                raise self.entries[k].node.error(f"poses are relative to each other: {circle}")
            path[k] = None
            k = self._above[k]
        depth = -1 if k is None else self._depth[k]
        for n, name in enumerate(reversed(path), start=1):
            self._depth[name] = depth + n

    def between(self, start: str, end: str) -> Plucker:
        """Transform from the coordinates of one frame to those of another."""
        up: list[Plucker] = []  # from the common frame to start
        down: list[Plucker] = []  # and to end
        ends = start, end
        while start != end:
            if len(up) + len(down) > _FAR:
                return self._from_world(ends[1]) @ self._from_world(ends[0]).inverse()
            if self._depth[start] >= self._depth[end]:
                up.append(self.entries[start].placement)
                start = self._above[start] or WORLD
            else:
                down.append(self.entries[end].placement)
                end = self._above[end] or WORLD
        X = Plucker.identity()
        for step in up:
            X = X @ step
        X = X.inverse() if up else X
        for step in reversed(down):
            X = step @ X
        return X

    def _from_world(self, key):
        """Transform from the world to a frame, cached."""
        path = []
        k: str | None = key
        while k is not None and k not in self._absolute:
            path.append(k)
            k = self._above[k]
        X = Plucker.identity() if k is None else self._absolute[k]
        for name in reversed(path):
            X = self.entries[name].placement @ X
            self._absolute[name] = X
        return X

    def link_of(self, key: str, node: Node) -> str:
        """Key of the link that carries a frame, or of the world."""
        path: dict[str, None] = {}
        while key not in self._link:
            entry = self.entries[key]
            if entry.kind in ("link", "world"):
                self._link[key] = key
                break
            if key in path:
                raise entry.node.error(f"frames are attached to each other: {_circle(path, key)}")
            path[key] = None
            if entry.fixed_to is None:
                raise node.error(f"model {key!r} has no link that could carry anything")
            key = self.find(_inside(entry), entry.fixed_to, entry.node)
        link = self._link[key]
        self._link |= dict.fromkeys(path, link)
        return link


def _inside(entry) -> Scope:
    """Scope in which names inside an entry are resolved."""
    return entry.inside if entry.inside is not None else entry.scope


def _circle(path, key):
    """Names of frames that refer to each other in a circle, as text."""
    names = list(path)
    return " -> ".join(repr(name) for name in [*names[names.index(key) :], key][:10])


# --- ``<pose>`` ----------------------------------------------------------------------------------


class Pose(NamedTuple):
    """A placement relative to a named frame; None for the default frame there."""

    placement: Plucker
    relative_to: str | None


def pose_in(node: Node) -> Pose:
    """The ``<pose>`` of an SDF element; the default one if it has none."""
    pose = node.one("pose")
    if pose is None:
        return Pose(Plucker.identity(), None)
    # Up to version 1.6 the attribute was called 'frame', and often written empty.
    relative_to = pose.get("relative_to") or pose.get("frame") or None
    return Pose(_placement(pose), relative_to)


def _placement(pose):
    """Transform of a ``<pose>`` element."""
    format, degrees = pose.get("rotation_format", "euler_rpy"), pose.get("degrees", "false")
    if not pose.text():
        return Plucker.identity()
    if format == "quat_xyzw":
        *position, x, y, z, w = pose.text_numbers(7)
        size = math.hypot(x, y, z, w)
        if abs(size - 1) > 1e-3:
            raise pose.error(f"the quaternion must have unit length, got length {size:.6g}")
        E = rotation_from_quaternion(np.array([w, x, y, z]) / size)
        return Plucker(E, np.array(position))
    if format != "euler_rpy":
        raise pose.error(f"rotation_format must be 'euler_rpy' or 'quat_xyzw', got {format!r}")
    values = pose.text_numbers(6)
    if not any(values):
        return Plucker.identity()
    scale = math.pi / 180 if degrees in ("true", "1") else 1.0
    angles = [scale * x for x in values[3:]]
    if not any(angles):
        return Plucker(Plucker.identity().E, np.array(values[:3]))
    return Plucker(rotation_of_rpy(angles), np.array(values[:3]))


def number_in(node: Node | None, tag: str, default: float, *, finite: bool = True) -> float:
    """Number in a child element, or the default."""
    child = None if node is None else node.one(tag)
    return default if child is None else child.text_numbers(1, finite=finite)[0]


def flag_in(node: Node, tag: str, default: bool = False) -> bool:
    """Truth value in a child element, or the default."""
    child = node.one(tag)
    if child is None:
        return default
    value = {"true": True, "1": True, "false": False, "0": False}.get(child.text().lower())
    if value is None:
        raise child.error(f"must be true or false, got {child.text()!r}")
    return value
