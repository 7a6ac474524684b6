"""SRDF, the semantics beside a URDF file: what may touch, groups, states, end effectors.

    kt.load("robot.urdf", srdf="robot.srdf")

| SRDF | model |
|---|---|
| ``disable_collisions``, ``enable_collisions``, ``disable_default_collisions`` | contact pairs |
| ``group`` of links, joints, chains and groups | groups of the joints that move |
| ``group_state`` | postures; joints that it leaves out are neutral |
| ``end_effector`` | a frame of its name, and the tip of its group |
| ``virtual_joint`` | the joint of the root link, as ``floating_base`` |
| ``passive_joint`` | no actuator |

SRDF files outlive changes of their robots, so that names that the robot does not have are notices
with suggestions, not errors.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.errors import LoadError
from kinetree.joints import Fixed, Free, Planar
from kinetree.loaders.paths import content
from kinetree.loaders.report import Effect, Report
from kinetree.loaders.xml import Node, parse
from kinetree.model.geometry import ContactPair
from kinetree.model.names import Group
from kinetree.spelling import did_you_mean

EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(
        ("disable_collisions", "enable_collisions", "disable_default_collisions"), "contact"
    ),
    "passive_joint": "control",
    "robot": "setting",
    **dict.fromkeys(("virtual_joint", "rotor_params"), "motion"),
}
"""What is different without an element of SRDF."""

_ROOTS: dict[str, Any] = {"floating": Free, "planar": Planar, "fixed": Fixed}


@dataclass
class Semantics:
    """Contents of an SRDF file, by names of the URDF file."""

    pairs: tuple[ContactPair, ...] = ()
    """Links that may touch, or shall not."""
    groups: tuple[Group, ...] = ()
    """Joints with a common name."""
    frames: list[tuple[str, str, Node]] = field(default_factory=list)
    """Name and link of each end effector that adds a frame, with its node."""
    states: list[tuple[str, str, dict, Node]] = field(default_factory=list)
    """Name, group and positions of joints, by name, of each group state, with its node."""
    root: Any = None
    """Joint between the world and the root link, None where nothing is said."""
    root_name: str = "root_joint"
    """Name of it."""
    world: str = "world"
    """Name of the world."""
    passive: dict[str, Node] = field(default_factory=dict)
    """Names of joints without actuators, with the node that declares them."""


def read_srdf(
    given: Any, links: dict, joints: dict, root: str, name: str | None, floating: bool | None
):
    """Contents of an SRDF file, and a report of what is not used.

    Args:
        given: path of the file, or its text, which begins with ``<``.
        links: of the URDF file, by name.
        joints: of the URDF file, by name.
        root: name of the root link.
        name: of the robot in the URDF file.
        floating: ``floating_base`` as the user gave it; None where nothing was said.
    """
    text = given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given
    if isinstance(text, bytes) and text.lstrip()[:1] == b"<":
        path, source = "<srdf>", text
    elif isinstance(given, (str, os.PathLike)):
        path = str(given)
        source = content(path)
    else:
        raise LoadError(f"srdf must be the path of a file, got {type(given).__name__}")
    report = Report(path, EFFECTS)
    element = parse(source, path)
    robot = Node(element, report)
    if robot.tag != "robot":
        raise robot.error("the root element of an SRDF file is <robot>")
    if element.find("{*}link") is not None:
        raise robot.error("this is a robot with links, URDF; an SRDF file has groups and states")
    robot.get("version")
    if robot.get("name") != name:
        robot.note(f"name {robot.get('name')!r}", f"the robot of the URDF file is called {name!r}")
    found = _Reader(robot, links, joints, root).semantics(floating)
    report.note_unused(element)
    return found, report


class _Reader:
    """Reads one file; what refers to names that the robot does not have is left out."""

    def __init__(self, robot, links, joints, root):
        self.robot, self.links, self.joints, self.root = robot, links, joints, root
        self.above = {joint.child: joint for joint in joints.values()}
        self.found, self.unknown = Semantics(), {}

    def semantics(self, floating):
        """Semantics of a robot: virtual joint, groups, states, disabled collision pairs."""
        found = self.found
        self._virtual_joint(floating)
        found.pairs = tuple(self._pairs())
        found.groups = self._groups()
        self._end_effectors()
        for node in self.robot.all("group_state"):
            self._state(node)
        for node in self.robot.all("passive_joint"):
            if self._is_known(node, "name", self._joint_names(), "joint"):
                found.passive[node.need("name")] = node
        for node in self.robot.all("rotor_params"):
            node.ignore("rotor inertias; JointDynamics(armature=gear_ratio**2 * inertia) has them")
        self._note_unknown()
        return found

    def _joint_names(self):
        """Names of all joints that a state may contain, the root joint's included."""
        root = [] if self.found.root in (None, Fixed) else [self.found.root_name]
        return [*self.joints, *root]

    def _is_known(self, node, attribute, names, what):
        """Whether the name in an attribute is known; a notice suggests others if not."""
        name = node.need(attribute)
        if name in names:
            return True
        hint = did_you_mean(name, names, f"it has {len(names)} {what}s")
        if name == self.found.root_name and what == "joint":
            hint = "floating_base=True adds it"
        why = f"the robot has no {what} {name!r}; {hint}"
        node.report.use_all(node.element)
        self.unknown.setdefault((node.tag, why), []).append(node)
        return False

    def _note_unknown(self):
        """Add one notice for each unknown name, at its first place."""
        for (_, why), nodes in self.unknown.items():
            more = f" ({len(nodes)} lines name it)" if len(nodes) > 1 else ""
            nodes[0].ignore(f"{why}{more}")

    # --- the root ----------------------------------------------------------------------------

    def _virtual_joint(self, floating):
        """Root joint from the file's virtual joint, or from ``floating_base``."""
        found = self.found
        if floating:
            found.root = Free
        for node in self.robot.all("virtual_joint"):
            kind = node.need("type")
            if kind not in _ROOTS:
                hint = did_you_mean(kind, _ROOTS)
                raise node.error(
                    f"the type of a virtual joint is floating, planar or fixed; {hint}"
                )
            if not self._is_known(node, "child_link", self.links, "link"):
                continue
            if node.need("child_link") != self.root:
                why = f"it moves the whole robot, whose root link is {self.root!r}"
                node.ignore(f"child_link is {node.need('child_link')!r}; {why}")
                continue
            if floating is not None and floating != (kind == "floating"):
                raise node.error(
                    f"the root joint is {kind} here, but floating_base={floating} was passed; "
                    f"leave floating_base out to read it from this file"
                )
            if node.need("name") in self.joints:
                raise node.error("the name is taken by a joint of the robot; rename one")
            found.root, found.root_name = _ROOTS[kind], node.need("name")
            found.world = node.get("parent_frame") or found.world

    # --- what may touch ----------------------------------------------------------------------

    def _pairs(self):
        """Link pairs with collision enabled or disabled; disabling wins."""
        pairs = {}
        solid = [k for k, link in self.links.items() if any(not x.visual for x in link.looks)]
        for node in self.robot.all("disable_default_collisions"):
            if self._is_known(node, "link", self.links, "link"):
                one = node.need("link")
                pairs |= {_key(one, k): ContactPair(one, k, False) for k in solid if k != one}
        for tag, touch in (("enable_collisions", True), ("disable_collisions", False)):
            for node in self.robot.all(tag):
                reason = node.get("reason") or ""
                ends = [self._is_known(node, key, self.links, "link") for key in ("link1", "link2")]
                if all(ends) and node.need("link1") != node.need("link2"):
                    one, other = node.need("link1"), node.need("link2")
                    pairs[_key(one, other)] = ContactPair(one, other, touch, name=reason)
        return pairs.values()

    # --- groups ------------------------------------------------------------------------------

    def _groups(self):
        """Joint groups by name, with the groups they include resolved."""
        nodes = {}
        for node in self.robot.all("group"):
            name = node.need("name")
            if name in nodes:
                first = nodes[name].line
                raise node.error(f"the name is taken by another group, on line {first}; rename one")
            nodes[name] = node
        self.members, tips = {}, {}
        for name in nodes:
            self._members(name, nodes, ())
        for name, node in nodes.items():
            chains = node.all("chain")
            if len(chains) == 1 and chains[0].need("tip_link") in self.links:
                tips[name] = chains[0].need("tip_link")
        groups = []
        for name, node in nodes.items():
            if name in self._joint_names():
                node.ignore("it has the name of a joint; rename the group")
            else:
                groups.append(Group(name, self.members[name], tips.get(name, "")))
        return tuple(groups)

    def _members(self, name, nodes, inside):
        """Names of the moving joints of a group, in the order of the file."""
        if name in self.members:
            return self.members[name]
        node, found = nodes[name], {}
        for part in node.all("link", "joint", "chain", "group"):
            for joint in self._joints_in(part, nodes, (*inside, name)):
                if joint not in self.joints or not isinstance(self.joints[joint].joint, Fixed):
                    found[joint] = None
        self.members[name] = tuple(found)
        return self.members[name]

    def _joints_in(self, part, nodes, inside):
        """Names of the joints that one entry of a group stands for."""
        if part.tag == "joint":
            known = self._is_known(part, "name", self._joint_names(), "joint")
            return [part.need("name")] if known else []
        if part.tag == "link":
            known = self._is_known(part, "name", self.links, "link")
            above = self.above.get(part.need("name")) if known else None
            return [above.name] if above else []
        if part.tag == "group":
            name = part.need("name")
            if name in inside:
                raise part.error(f"groups contain each other: {' > '.join((*inside, name))}")
            known = self._is_known(part, "name", nodes, "group")
            return self._members(name, nodes, inside) if known else []
        ends = [self._is_known(part, end, self.links, "link") for end in ("base_link", "tip_link")]
        return self._chain(part.need("base_link"), part.need("tip_link")) if all(ends) else []

    def _chain(self, base, tip):
        """Joints on the path between two links."""
        ways = []
        for link in (base, tip):
            way = []
            while link in self.above:
                way.append(self.above[link])
                link = self.above[link].parent
            ways.append([joint.name for joint in way])
        up = [name for name in ways[0] if name not in ways[1]]
        down = [name for name in ways[1] if name not in ways[0]]
        return [*up, *reversed(down)]

    def _end_effectors(self):
        """Frames of end effectors, and tips of the groups that carry them."""
        for node in self.robot.all("end_effector"):
            name, group = node.need("name"), node.need("group")
            known = self._is_known(node, "parent_link", self.links, "link")
            if not known or not self._is_known(node, "group", self.members, "group"):
                continue
            link, carrier = node.need("parent_link"), node.get("parent_group")
            above = self.above.get(link)
            while above is not None and isinstance(above.joint, Fixed):
                above = self.above.get(above.parent)
            if carrier is None and above is not None and above.name in self.members[group]:
                carrier = group  # the end of this group, as files for Pinocchio have it
            self.found.groups = tuple(
                Group(g.name, g.joints, link) if g.name == carrier else g for g in self.found.groups
            )
            frames = {frame: on for frame, on, _ in self.found.frames}
            if name not in (*self.links, *frames):
                self.found.frames.append((name, link, node))
            elif name != link and frames.get(name) != link:
                node.note(f"end effector {name!r}", f"a frame has that name; use {link!r}")

    # --- states ------------------------------------------------------------------------------

    def _state(self, node):
        """Read a named group state as a posture."""
        positions, group = {}, node.get("group") or ""
        if group and group not in self.members:
            hint = did_you_mean(group, self.members, f"it has {len(self.members)} groups")
            node.note(f"group {group!r} of a state", f"the robot has no such group; {hint}")
        for part in node.all("joint"):
            values = part.numbers("value", None)
            if self._is_known(part, "name", self._joint_names(), "joint"):
                name = part.need("name")
                joint = self.joints[name].joint if name in self.joints else self.found.root()
                if isinstance(joint, Fixed):
                    part.note(f"joint {name!r} of a state", "it is fixed and has no position")
                else:
                    positions[name] = _position(joint, values, part)
        self.found.states.append((node.need("name"), group, positions, node))


def _key(one, other):
    """Key of an unordered pair."""
    return frozenset((one, other))


def _position(joint, values, node):
    """Position variables of a joint from SRDF's order (quaternions with w last)."""
    x, wanted = np.array(values), joint.nq
    if isinstance(joint, Free) and len(x) == 7:
        return _unit(x[[0, 1, 2, 6, 3, 4, 5]], slice(3, 7), node)
    if isinstance(joint, Planar) and len(x) == 3:
        return x[[2, 0, 1]]
    if isinstance(joint, Planar) and len(x) == 4:  # cosine and sine, as in Pinocchio
        return np.array([np.arctan2(x[3], x[2]), x[0], x[1]])
    if wanted == 1 and len(x) == 2 and abs(x @ x - 1) < 1e-3:
        return np.arctan2(x[1:], x[:1])
    if len(x) != wanted:
        raise node.error(f"attribute 'value' must hold {wanted} numbers, got {len(x)}")
    return x


def _unit(x, part, node):
    """Positions with a quaternion normalised in place."""
    size = np.linalg.norm(x[part])
    if not 0.9 < size < 1.1:
        raise node.error(f"attribute 'value' has a quaternion of length {size:.3g}; it must be 1")
    x[part] /= size
    return x


def merged_states(states) -> dict[str, tuple[dict, Node]]:
    """Joint positions by posture name, with the XML node of the first state.

    States of several groups with one name, such as "home" of the arm and of the hand, are one
    posture where they agree; where they contradict each other, each is called ``group/name``.
    """
    found: dict[str, tuple[dict, Node]] = {}
    for name in dict.fromkeys(name for name, *_ in states):
        alike = [(group, q, node) for other, group, q, node in states if other == name]
        together: dict = {}
        agree = all(
            np.array_equal(together.setdefault(joint, x), x)
            for _, q, _ in alike
            for joint, x in q.items()
        )
        if agree:
            found[name] = (together, alike[0][2])
            continue
        for group, q, node in alike:
            own = f"{group}/{name}" if group else name
            if own in found:
                raise node.error(
                    f"the name is taken by another state, on line {found[own][1].line}"
                )
            found[own] = (q, node)
    return found
