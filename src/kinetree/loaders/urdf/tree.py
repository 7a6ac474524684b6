"""The tree of links and joints of a URDF file: one root, no circles, every end known."""

from kinetree.loaders.urdf.joints import Joint, Mimic
from kinetree.loaders.urdf.links import Link
from kinetree.loaders.xml import Node
from kinetree.model.tree import regular_order
from kinetree.spelling import did_you_mean


class Tree:
    """The tree of a file.

    Attributes:
        root: name of the root link.
        joints: the joints, each after the one its parent link hangs on.
    """

    def __init__(self, robot: Node, links: dict[str, Link], joints: dict[str, Joint]):
        above: dict[str, Joint] = {}
        for joint in joints.values():
            for end in ("parent", "child"):
                find(getattr(joint, end), links, joint.node.need_one(end), "link")
            if joint.parent == joint.child:
                raise joint.node.error(f"connects link {joint.parent!r} to itself")
            if joint.child in above:
                other = above[joint.child]
                raise joint.node.error(
                    f"link {joint.child!r} is already the child of joint {other.name!r}, on line "
                    f"{other.node.line}; a joint that closes a loop is written as <kinetree:loop>"
                )
            above[joint.child] = joint
        self.root = _root(robot, links, above)
        order = _ordered(self.root, list(joints.values()))
        if len(order) < len(joints):
            raise _circle(order, joints, above)
        self.joints = order


def _root(robot, links, above):
    roots = [link for link in links.values() if link.name not in above]
    if not roots:
        raise robot.error("every link is the child of a joint: there is no root, only circles")
    if len(roots) > 1:
        names = ", ".join(f"{r.name!r} (line {r.node.line})" for r in roots[:5])
        more = f" and {len(roots) - 5} more" if len(roots) > 5 else ""
        raise roots[1].node.error(
            f"the robot must have one root link, but these are the child of no joint: {names}"
            f"{more}; connect them, if need be by a joint of type 'floating'"
        )
    return roots[0].name


def _ordered(root, joints):
    """The joints that hang on the root, in the order of the file as far as parents come first."""
    number = {root: 0} | {joint.child: i for i, joint in enumerate(joints, start=1)}
    order = regular_order([-1, *(number[joint.parent] for joint in joints)])
    return [joints[i - 1] for i in order[1:]]


def _circle(order, joints, above):
    """The error for joints that hang on each other and not on the root."""
    reached = {joint.name for joint in order}
    start = next(joint for joint in joints.values() if joint.name not in reached)
    seen, joint = {}, start
    while joint.name not in seen:
        seen[joint.name] = len(seen)
        joint = above[joint.parent]
    path = [*list(seen)[seen[joint.name] :], joint.name]
    names = " -> ".join(repr(name) for name in reversed(path[-10:]))
    return joint.node.error(f"joints hang on each other in a circle, not on the root: {names}")


def find(name: str, names, node: Node, what: str):
    """The thing of this name, or the error at ``node`` that suggests another."""
    if name in names:
        return names[name]
    hint = did_you_mean(name, names, f"the file has {len(names)} of them")
    raise node.error(f"there is no {what} {name!r}; {hint}")


def leaders(joints: dict[str, Joint]) -> dict[str, Mimic]:
    """For each joint that mimics, the one that leads in the end: chains are multiplied out."""
    mimics: dict[str, Mimic] = {}
    for joint in joints.values():
        if joint.mimic is not None and _can_follow(joint, joint.mimic, joints):
            mimics[joint.name] = joint.mimic
    result: dict[str, Mimic] = {}
    for name in mimics:
        path: dict[str, Mimic] = {}
        while name in mimics and name not in result:
            if name in path:
                raise mimics[name].node.error(f"joint {name!r} mimics itself, in a circle")
            path[name] = mimics[name]
            name = mimics[name].source
        for follower, mimic in reversed(path.items()):
            result[follower] = _after(mimic, result.get(mimic.source))
    return {name: result[name] for name in mimics}


def _after(mimic, leader):
    """The mimic law of a joint whose source itself follows ``leader``, or None."""
    if leader is None:
        return mimic
    k = mimic.multiplier
    return Mimic(leader.source, k * leader.multiplier, mimic.offset + k * leader.offset, mimic.node)


def _can_follow(joint, mimic, joints):
    """Whether a mimic makes sense; if not, it is noted or an error."""
    if joint.joint.nv == 0:
        mimic.node.ignored("a fixed joint follows nothing", effect="setting")
        return False
    if mimic.source not in joints:
        mimic.node.ignored(f"there is no joint {mimic.source!r} to follow")
        return False
    for j in (joint, joints[mimic.source]):
        if j.joint.nv > 1:
            raise mimic.node.error(
                f"joint {j.name!r} has {j.joint.nv} degrees of freedom; only joints with one can "
                f"mimic or be mimicked"
            )
    return True
