"""Groups: joints with a common name, such as those of an arm, usable where joints are named."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelError, UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["Group"]


@dataclass(frozen=True)
class Group:
    """Joints with a common name, such as those of an arm.

    Attributes:
        name: unique name, among the groups and joints.
        joints: names of its joints, in order.
        tip: name of the frame or body at its end; empty where there is none.
    """

    name: str
    joints: tuple[str, ...] = ()
    tip: str = ""

    def __post_init__(self):
        if isinstance(self.joints, str):
            raise ModelError(
                f"joints of group {self.name!r} must be a sequence of names, got {self.joints!r}"
            )
        object.__setattr__(self, "joints", tuple(self.joints))

    def within(self, joints: Collection[str], frames: Collection[str]) -> "Group":
        """What is left of it where only these joints and frames are."""
        kept = tuple(name for name in self.joints if name in joints)
        return replace(self, joints=kept, tip=self.tip if self.tip in frames else "")

    def prefixed(self, prefix: str) -> "Group":
        """The same with a prefix on all names."""
        joints = tuple(prefix + name for name in self.joints)
        return Group(prefix + self.name, joints, self.tip and prefix + self.tip)


def joints_of(model, names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of joints, each once, where ``names`` may also name groups."""
    found: dict[str, None] = {}
    groups = {g.name: g.joints for g in model.groups}
    for name in (names,) if isinstance(names, str) else names:
        if name in groups:
            found |= dict.fromkeys(groups[name])
        elif name in (*model.joint_names, *model.loop_names):
            found[name] = None
        else:
            known = (*groups, *model.joint_names)
            raise UnknownNameError(
                f"model {model.name!r} has no joint or group {name!r}; "
                f"{did_you_mean(str(name), known, most=3)}"
            )
    return tuple(found)


def indices(model, names: Sequence[str], slices) -> Array:
    """Where the variables of joints and groups are in a joint vector, in the order of ``names``."""
    numbers = [model.joint_index(name) for name in joints_of(model, names)]
    found = [np.arange(slices[i].start, slices[i].stop) for i in numbers]
    return np.concatenate([np.zeros(0, dtype=int), *found])


def check_group(model, group):
    """Raise an error unless the joints and the tip of a group exist, and its name is its own."""
    what = f"group {group.name!r}"
    known = (*model.joint_names, *model.loop_names)
    if group.name in known:
        raise ModelError(f"{what} has the name of a joint; rename the group")
    for name in group.joints:
        if name not in known:
            raise UnknownNameError(
                f"{what} has joint {name!r}, which the model does not have; "
                f"{did_you_mean(str(name), known)}"
            )
    if len(set(group.joints)) < len(group.joints):
        raise ModelError(f"{what} must have each joint once, got {', '.join(group.joints)}")
    frames = (*model.frame_names, *model.body_names)
    if group.tip and group.tip not in frames:
        raise UnknownNameError(
            f"tip of {what} is {group.tip!r}, which the model does not have; "
            f"{did_you_mean(group.tip, frames)}"
        )
