"""Joints that follow others: ``<mimic>`` and gearboxes."""

from typing import NamedTuple

import numpy as np

from kinetree.joints import Prismatic, Revolute
from kinetree.loaders.sdf.description import Description
from kinetree.loaders.sdf.frames import WORLD
from kinetree.loaders.sdf.joints import Joint
from kinetree.loaders.sdf.mechanism import Arc, axis_in_joint
from kinetree.loaders.xml import Node

__all__ = ["Follower", "followers_of"]


class Follower(NamedTuple):
    """``q = coefficients[0] + coefficients[1] q_source``, by names of joints."""

    name: str
    joint: str
    source: str
    coefficients: tuple[float, float]
    node: Node


def followers_of(description: Description, arcs: list[Arc]) -> list[Follower]:
    """What the file says about joints that follow others."""
    by_name = {arc.name: arc for arc in arcs}
    followers = []
    for joint in description.joints:
        if joint.type == "gearbox":
            follower = _gearbox(description, joint, arcs)
        else:
            follower = _mimic(joint, by_name)
        if follower is not None:
            followers.append(follower)
    return followers


def _mimic(joint: Joint, by_name):
    mimic = next((axis.mimic for axis in joint.axes if axis.mimic is not None), None)
    if mimic is None:
        return None
    source = joint.scope.key(mimic.source)
    if source not in by_name:
        raise mimic.node.error(f"there is no joint {mimic.source!r} to follow")
    for key in (joint.key, source):
        if by_name[key].joint.nv != 1:
            raise mimic.node.error(
                f"joint {key!r} has {by_name[key].joint.nv} degrees of freedom; only joints with "
                f"one can mimic or be mimicked"
            )
    coefficients = (mimic.offset, mimic.multiplier)
    return Follower(f"{joint.key}_mimic", joint.key, source, coefficients, mimic.node)


def _gearbox(description: Description, gearbox: Joint, arcs):
    """``theta_2 = -ratio theta_1``, angles of child and parent relative to the reference body."""
    one, two = (
        _angle(description, gearbox, link, axis, arcs)
        for link, axis in zip((gearbox.parent, gearbox.child), gearbox.axes, strict=True)
    )
    if one is None or two is None:
        gearbox.node.ignored(
            f"no revolute joint connects both of its links to {gearbox.reference!r}, so that no "
            f"two variables are coupled"
        )
        return None
    (leader, s1), (follower, s2) = one, two
    if leader == follower:
        raise gearbox.node.error("the gearbox couples a joint to itself")
    return Follower(gearbox.key, follower, leader, (0.0, -gearbox.ratio * s1 / s2), gearbox.node)


def _angle(description, gearbox, link, axis, arcs):
    """The joint between the reference body and a link, and the sign of its variable."""
    frames = description.frames
    ends = []
    for name in (gearbox.reference, link):
        key = WORLD if name == WORLD else frames.find(gearbox.scope, name, gearbox.node, "link")
        ends.append(frames.link_of(key, gearbox.node))
    for arc in arcs:
        if {arc.predecessor, arc.successor} == set(ends) and isinstance(
            arc.joint, (Revolute, Prismatic)
        ):
            # Both axes seen from the frame of the link that carries the gearbox.
            wanted = np.array(axis_in_joint(description, gearbox, axis), dtype=float)
            wanted = frames.between(gearbox.frame, arc.successor).E @ wanted
            along = float((arc.X_S.E.T @ np.array(arc.joint.axis, dtype=float)) @ wanted)
            if abs(along) < 0.99:
                gearbox.node.note(
                    f"axis of gearbox {gearbox.key!r}", f"it is not that of joint {arc.name!r}"
                )
            sign = 1.0 if along >= 0 else -1.0
            return arc.name, sign if arc.predecessor == ends[0] else -sign
    return None
