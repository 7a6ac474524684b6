"""Kinds of bodies: what code for every robot is made for, and what it reads from tables.

A body's kind is the class of its joint with all that decides the form of the equations (a
coordinate axis, a sequence of Euler angles, the convention of a translation), whether it hangs on
the base, and whether the joint has armature. The rest of a joint are numbers of the model, by the
joint's own ``parameters`` and ``with_parameters``: a general axis, a pitch, the instant of a
prescribed motion. A joint class of the user's is a kind like any other.
"""

from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.errors import JointError
from kinetree.joints.base import AbstractJoint
from kinetree.joints.fixed import Following
from kinetree.joints.prescribed import Prescribed
from kinetree.model.fingerprint import is_plain_value

MOST_KINDS = 64
"""Kinds of one robot up to which general code is worth having: each is compiled by itself."""


@dataclass(frozen=True)
class Kind:
    """What a case of general code is made for: all that decides the form of its equations.

    Attributes:
        joint: any joint of the kind, with placeholders for its parameters.
        at_base: whether the parent is the fixed base.
        armature: whether the joint has armature.
        marked: whether an option of a quantity names the joint.
    """

    joint: AbstractJoint
    at_base: bool
    armature: bool
    marked: bool = False

    @cached_property
    def count(self) -> int:
        """How many numbers of the model the joint reads."""
        return len(self.joint.parameters())

    @cached_property
    def key(self) -> str | None:
        """The same for the same kind in every process; None where no text says what it does."""
        if not is_plain_value(self.joint):  # a class or function of the user's
            return None
        flags = "base" * self.at_base + " armature" * self.armature + " marked" * self.marked
        return f"{type(self.joint).__module__} {self.joint!r} {flags}"

    def __repr__(self):
        flags = self.at_base, self.armature, self.marked
        return self.key or f"{self.joint!r} {id(type(self.joint))} {flags}"

    def __hash__(self):
        return self._hash

    @cached_property
    def _hash(self):
        return hash((type(self.joint), self.joint, self.at_base, self.armature, self.marked))


class Marked:
    """The joints that an option of a quantity names."""

    def __contains__(self, i):
        return i.kind.marked


@dataclass
class Joints:
    """The joints of a robot as kinds and numbers.

    Attributes:
        kinds: those of the robot, in the order in which they first come.
        of_body: number of the kind of each body.
        parameters: numbers of each joint.
    """

    kinds: list[Kind] = field(default_factory=list)
    of_body: list[int] = field(default_factory=list)
    parameters: list[tuple] = field(default_factory=list)


def joints_of(model) -> Joints | None:
    """Kinds and numbers of all joints of a robot; None where general code has no kind for one."""
    found, numbers, known = Joints(), {}, {}
    with_armature = frozenset(model.armature_joints)
    try:
        for i in range(1, model.body_count + 1):
            like = (model.joint[i], model.parent[i] == 0, i in with_armature)
            if like not in known:
                split = _split(model.joint[i])
                if split is None:
                    return None
                kind = Kind(split[0], *like[1:])
                known[like] = numbers.setdefault(kind, len(numbers)), split[1]
            k, parameters = known[like]
            found.of_body.append(k)
            found.parameters.append(parameters)
    except TypeError:  # a joint with fields that have no hash: nothing says that two are alike
        return None
    found.kinds = list(numbers)
    return found if len(numbers) <= MOST_KINDS else None


def _split(joint) -> tuple[AbstractJoint, tuple] | None:
    """A joint as its kind and its numbers; None for one that cannot be one of a kind."""
    if isinstance(joint, (Following, Prescribed)):  # has no motion by itself
        return None
    if not all(f.compare for f in (fields(joint) if is_dataclass(type(joint)) else ())):
        return None  # joints that differ count as equal
    parameters = joint.parameters()
    if not all(isinstance(x, (int, float, np.integer, np.floating)) for x in parameters):
        return None  # traced or exact
    placeholders = tuple(float(k + 1) for k in range(len(parameters)))
    try:
        return joint.with_parameters(placeholders), parameters
    except Exception as error:
        raise JointError(
            f"with_parameters of joint class {type(joint).__name__} must take any numbers, also "
            f"traced ones, without checking them; with {placeholders} it raised "
            f"{type(error).__name__}: {error}. Check numbers elsewhere, or define no parameters()"
        ) from error


def instance(kind: Kind, leaves: Any) -> AbstractJoint:
    """The joint of a kind whose parameters are ``leaves``."""
    return kind.joint.with_parameters(leaves) if kind.count else kind.joint
