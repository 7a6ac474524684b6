"""Joints of an SDF file as joints of kinetree, and the choice of a spanning tree."""

import math
from dataclasses import dataclass

import numpy as np

from kinetree.errors import JointError
from kinetree.joints import Fixed, Helical, Prismatic, Revolute, Spherical, Universal
from kinetree.joints.axis import as_axis
from kinetree.loaders.sdf.description import Description
from kinetree.loaders.sdf.frames import WORLD
from kinetree.loaders.sdf.joints import Axis, Joint
from kinetree.loaders.xml import Node
from kinetree.model import JointDynamics, Limits
from kinetree.model.mechanism import Arc
from kinetree.spatial import Plucker
from kinetree.spatial.vector3 import ZERO3


@dataclass(frozen=True)
class SdfArc(Arc):
    """A joint between two links, either of which may be the world, and its element."""

    node: Node


def arcs_of(description: Description) -> list[SdfArc]:
    """Joints of a file as arcs between links; gearboxes are not included."""
    return [
        arc
        for joint in description.joints
        if joint.type != "gearbox"
        for arc in _arcs(description, joint)
    ]


def _arcs(description, joint: Joint):
    """Arcs of one joint: its two links and placements."""
    frames, node = description.frames, joint.node
    p, s = (_link(description, joint, name) for name in (joint.parent, joint.child))
    if p == s:
        raise node.error(f"connects {p!r} to itself")
    X_P, X_S = (frames.between(end, joint.frame) for end in (p, s))
    axes = [axis_in_joint(description, joint, axis) for axis in joint.axes]
    if joint.type in ("universal", "revolute2"):
        return _two_axes(joint, p, s, X_P, X_S, axes)
    try:
        kind = _one_joint(joint, axes)
    except JointError as error:
        raise node.error(str(error)) from None
    limits, dynamics = _limits(joint.axes), _dynamics(joint.axes)
    return [SdfArc(joint.key, kind, p, s, X_P, X_S, limits, dynamics, node)]


def _link(description, joint, name):
    """Link that a joint refers to by the name of an SDF link or frame."""
    frames = description.frames
    if name == WORLD:
        return WORLD
    key = frames.find(joint.scope, name, joint.node, "link or frame")
    return frames.link_of(key, joint.node)


def _one_joint(joint, axes):
    """Joint object for an SDF joint type and its axes."""
    match joint.type:
        case "revolute" | "continuous":
            return Revolute(axes[0])
        case "prismatic":
            return Prismatic(axes[0])
        case "screw":
            return Helical(axes[0], pitch=joint.pitch)
        case "ball":
            return Spherical()
        case _:
            if joint.node.one("axis") is not None:
                joint.node.report.use_all(joint.node.need_one("axis").element)  # says nothing
            return Fixed()


def axis_in_joint(description, joint: Joint, axis: Axis):
    """Unit vector of a joint axis in the joint's frame."""
    direction = np.array(axis.direction)
    if axis.expressed_in is not None:
        frames = description.frames
        key = frames.find(joint.scope, axis.expressed_in, axis.node or joint.node)
        direction = frames.between(key, joint.frame).E @ direction
        direction[np.abs(direction) < 1e-15 * np.max(np.abs(direction))] = 0.0
    return as_axis(direction)


def _two_axes(joint, p, s, X_P, X_S, axes):
    """Arcs of a two-axis joint: universal if perpendicular, else two with a link between."""
    a, b = (np.array(axis, dtype=float) for axis in axes)
    along = float(a @ b)
    if abs(along) < 1e-9:
        b = b - along * a
        b /= np.linalg.norm(b)
        turn = Plucker(np.array([a, b, np.cross(a, b)]), ZERO3)
        limits, dynamics = _limits(joint.axes), _dynamics(joint.axes)
        X_P, X_S = turn @ X_P, turn @ X_S
        return [SdfArc(joint.key, Universal("xy"), p, s, X_P, X_S, limits, dynamics, joint.node)]
    if abs(along) > 1 - 1e-9:
        raise joint.node.error("axis and axis2 are parallel")
    middle, one = f"{joint.key}_between", Plucker.identity()

    def arc(name, k, p, s, X_P, X_S):
        given = joint.axes[k : k + 1]
        limits, dynamics = _limits(given), _dynamics(given)
        return SdfArc(name, Revolute(axes[k]), p, s, X_P, X_S, limits, dynamics, joint.node)

    return [
        arc(joint.key, 0, p, middle, X_P, one),
        arc(f"{joint.key}_axis2", 1, middle, s, one, X_S),
    ]


def _limits(axes):
    """Limits of all axes of an SDF joint, or None."""
    bounds = {
        name: tuple(getattr(axis, name) for axis in axes)
        for name in ("lower", "upper", "velocity", "effort")
    }
    bounds = {name: x for name, x in bounds.items() if not all(map(math.isinf, x))}
    return Limits(**bounds) if bounds else None


def _dynamics(axes):
    """Damping, friction and spring of all axes of a joint, or None."""
    values = {
        name: tuple(getattr(axis, name) for axis in axes)
        for name in ("damping", "friction", "stiffness")
    }
    values = {name: x for name, x in values.items() if any(x)}
    if not values:
        return None
    rest = tuple(axis.rest for axis in axes)
    return JointDynamics(**values, rest=rest if "stiffness" in values and any(rest) else ())


# --- Spanning tree -------------------------------------------------------------------------------
# Any spanning tree will do for the dynamics. But only joints of the tree have variables, so those
# that follow others, or have springs, damping or limits, should be in it.


class _Groups:
    """Things that belong together: a forest whose roots stand for groups."""

    def __init__(self, things):
        self._above = {thing: thing for thing in things}

    def of(self, thing):
        """Representative of an element's group (union-find)."""
        while self._above[thing] != thing:
            self._above[thing] = self._above[self._above[thing]]
            thing = self._above[thing]
        return thing

    def join(self, a, b) -> bool:
        """Join two groups; whether they were separate."""
        a, b = self.of(a), self.of(b)
        self._above[b] = a
        return a != b


class Connections:
    """Links and joints as a graph.

    Args:
        links: keys.
        arcs: the joints between them and the world.
        needed: names of joints that must be in the tree.
    """

    def __init__(self, links: list[str], arcs: list[SdfArc], needed: set[str]):
        self.links, self.arcs, self.needed = links, list(arcs), needed

    def add(self, arc: SdfArc):
        """Add a joint to the graph."""
        self.arcs.append(arc)

    def apart(self) -> list[set[str]]:
        """Groups of links that no joint connects to the world."""
        groups = _Groups([WORLD, *self.links])
        for arc in self.arcs:
            groups.join(arc.predecessor, arc.successor)
        parts: dict[str, set[str]] = {}
        for link in self.links:
            parts.setdefault(groups.of(link), set()).add(link)
        parts.pop(groups.of(WORLD), None)
        return list(parts.values())

    def choose_joints(self) -> tuple[list[SdfArc], list[SdfArc], list[SdfArc]]:
        """Joints of the spanning tree, joints that close loops, and joints within one body."""
        groups, rigid = _Groups([WORLD, *self.links]), _Groups([WORLD, *self.links])
        tree, left, still = [], [], []
        near = self._distance()
        for arc in sorted(self.arcs, key=lambda arc: (self._rank(arc), near[arc.name])):
            if groups.join(arc.predecessor, arc.successor):
                tree.append(arc)
                if isinstance(arc.joint, Fixed):
                    rigid.join(arc.predecessor, arc.successor)
            elif rigid.of(arc.predecessor) == rigid.of(arc.successor):
                still.append(arc)
            else:
                left.append(arc)
        order = {arc.name: k for k, arc in enumerate(self.arcs)}
        for part in (tree, left, still):
            part.sort(key=lambda arc: order[arc.name])
        return tree, left, still

    def _rank(self, arc):
        """Sort key by which arcs enter the spanning tree, lowest first."""
        if isinstance(arc.joint, Fixed):
            return 0
        if arc.name in self.needed:
            return 1
        return 2 if arc.dynamics is not None else 3 if arc.limits is not None else 4

    def _distance(self):
        """Distance of each joint from the world, counted in joints."""
        touching: dict[str, list[SdfArc]] = {key: [] for key in (WORLD, *self.links)}
        for arc in self.arcs:
            touching[arc.predecessor].append(arc)
            touching[arc.successor].append(arc)
        distance, reached, ring = {}, {WORLD}, [WORLD]
        steps = 0
        while ring:
            following = []
            for link in ring:
                for arc in touching[link]:
                    distance.setdefault(arc.name, steps)
                    other = arc.successor if arc.predecessor == link else arc.predecessor
                    if other not in reached:
                        reached.add(other)
                        following.append(other)
            ring, steps = following, steps + 1
        return distance
