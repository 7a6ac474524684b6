"""One robot as data for code that serves every robot: kinds of bodies, and tables of numbers.

A body's kind is the class of its joint with all that decides the form of the equations (a
coordinate axis, a sequence of Euler angles, the convention of a translation), whether it hangs on
the base, and whether the joint has armature. The rest of a joint are numbers of the model, by the
joint's own ``parameters`` and ``with_parameters``: a general axis, a pitch, the instant of a
prescribed motion. A joint class of the user's is a kind like any other. Another mass, placement,
gravity or parameter of a joint is another number in the tables; only another kind of joint needs
other code.
"""

from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.loops.language import BODIES, SINGLE, Data, RowRange
from kinetree.errors import JointError
from kinetree.joints.base import AbstractJoint
from kinetree.joints.fixed import Following
from kinetree.joints.prescribed import Prescribed
from kinetree.model.fingerprint import is_plain_value
from kinetree.model.memo import remember

MOST_KINDS = 64
"""Kinds of one robot up to which general code is worth having: each is compiled by itself."""


@dataclass(frozen=True)
class BodyKind:
    """Kind of body that a case of general code is made for: all that decides its equations.

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
        """Number of parameters that the joint reads."""
        return len(self.joint.parameters())

    @cached_property
    def key(self) -> str | None:
        """Key of a kind of body, equal in every process; None for user-defined joints."""
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
        """Hash of the kind, computed once."""
        return hash((type(self.joint), self.joint, self.at_base, self.armature, self.marked))


class Marked:
    """The joints that an option of a quantity names."""

    def __contains__(self, i):
        return i.kind.marked


@dataclass
class Joints:
    """The joints of a robot as kinds and numbers."""

    kinds: list[BodyKind] = field(default_factory=list)
    """Those of the robot, in the order in which they first come."""
    of_body: list[int] = field(default_factory=list)
    """Number of the kind of each body."""
    parameters: list[tuple] = field(default_factory=list)
    """Numbers of each joint."""


def joints_of(model) -> Joints | None:
    """Kinds and parameters of all joints of a robot; None if general code lacks a kind."""
    found, numbers, known = Joints(), {}, {}
    with_armature = frozenset(model.armature_joints)
    try:
        for i in range(1, model.body_count + 1):
            like = (model.joint[i], model.parent[i] == 0, i in with_armature)
            if like not in known:
                split = _split(model.joint[i])
                if split is None:
                    return None
                kind = BodyKind(split[0], *like[1:])
                known[like] = numbers.setdefault(kind, len(numbers)), split[1]
            k, parameters = known[like]
            found.of_body.append(k)
            found.parameters.append(parameters)
    except TypeError:  # a joint with fields that have no hash: nothing says that two are alike
        return None
    found.kinds = list(numbers)
    return found if len(numbers) <= MOST_KINDS else None


def _split(joint) -> tuple[AbstractJoint, tuple] | None:
    """Joint as its kind with placeholders and its parameters; None if it cannot be split."""
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


def instance(kind: BodyKind, leaves: Any) -> AbstractJoint:
    """Joint of a kind with the parameters ``leaves``."""
    return kind.joint.with_parameters(leaves) if kind.count else kind.joint


# --- Columns and tables --------------------------------------------------------------------------

COLUMNS = {"parent": BODIES, "above": BODIES, "q": "q", "v": "v", "b": "b", "p": "p"}
"""Columns of bodies, and what they refer to; ``above`` is the parent of those that are marked."""

VARIABLES, PARAMETERS = "variables", "parameters"

NUMBERS = {"placement": 12, "inertia": 10, "armature": 6, "joint": 20, "first": 1, "dynamics": 25}
"""Numbers of a body: ``E`` and ``r`` of its placement, ten of its inertia, of its joint, the number
of its first velocity variable; stiffness, damping, friction of the joint, and where its spring
rests."""


WORLD = {"gravity": 3}
"""Numbers that all bodies share."""


def data_of(model) -> Data | None:
    """Robot as tables for general code, kept with the model; None if it cannot serve."""
    return remember(model, ("general.data_of",), lambda: (_data_of(model),))[0]


def _data_of(model):
    """Robot as tables for general code, or None."""
    if not model.bodies or model.couplings or model.scalar_type().kind not in "fi":
        return None  # joints that follow others, numbers that are traced or exact
    joints = joints_of(model)
    if joints is None or max(map(len, joints.parameters), default=0) > NUMBERS["joint"]:
        return None
    n = model.body_count
    columns = {
        "parent": np.array(model.parent[1:], dtype=np.int64) - 1,  # NO_ROW for the base
        "above": np.array(model.parent[1:], dtype=np.int64) - 1,
        "q": np.array([s.start for s in model.q_slice[1:]], dtype=np.int64),
        "v": np.array([s.start for s in model.v_slice[1:]], dtype=np.int64),
        "b": np.arange(n, dtype=np.int64),
        "p": 10 * np.arange(n, dtype=np.int64),
    }
    kind = np.array(joints.of_body, dtype=np.int64)
    bodies = RowRange(n, columns, tuple(joints.kinds), kind)
    numbers = {
        "placement": placements(model.tree_transform[1:]), "inertia": _inertias(model.inertia[1:]),
        "armature": _armature(model), "joint": _filled_up(joints.parameters, NUMBERS["joint"]),
        "first": columns["v"][:, None].astype(float), "dynamics": _dynamics(model, joints),
    }  # fmt: skip
    world = {"gravity": np.array([model.gravity], dtype=float)}
    lengths = {"q": model.nq, "v": model.nv, "b": n, "p": 10 * n}
    variables = RowRange(model.nv, {"v": np.arange(model.nv, dtype=np.int64)})
    parameters = RowRange(10 * n, {"p": np.arange(10 * n, dtype=np.int64)})
    return Data(
        {BODIES: bodies, VARIABLES: variables, PARAMETERS: parameters, SINGLE: RowRange(1)},
        lengths,
        {BODIES: numbers, VARIABLES: {"number": np.arange(model.nv)[:, None] * 1.0}, SINGLE: world},
    )


def placements(transforms) -> Array:
    """Transforms as rows of twelve numbers: ``E`` by rows, then ``r``."""
    found = np.zeros((len(transforms), 12))
    found[:, :9] = np.array([X.E for X in transforms], dtype=float).reshape(-1, 9)
    found[:, 9:] = np.array([X.r for X in transforms], dtype=float).reshape(-1, 3)
    return found


def _inertias(inertias):
    """Inertial parameters of bodies as rows: mass, first moment, moments of inertia."""
    found = np.zeros((len(inertias), 10))
    found[:, 0] = [I.mass for I in inertias]
    found[:, 1:4] = np.array([I.first_moment for I in inertias], dtype=float).reshape(-1, 3)
    moments = np.array([I.rotational for I in inertias], dtype=float).reshape(-1, 3, 3)
    rows, columns = np.tril_indices(3)
    found[:, 4:] = moments[:, rows, columns]
    return found


def _armature(model):
    """Armature of each joint's variables as rows, padded with zeros."""
    found = np.zeros((model.body_count, NUMBERS["armature"]))
    for i in model.armature_joints:
        at = model.v_slice[i]
        found[i - 1, : at.stop - at.start] = model.armature[at]
    return found


def _dynamics(model, joints):
    """Stiffness, damping, friction and rest position of each joint as rows, zero-padded."""
    found = np.zeros((model.body_count, NUMBERS["dynamics"]))
    for k, kind in enumerate(joints.kinds):
        found[np.array(joints.of_body) == k, 18 : 18 + kind.joint.nq] = kind.joint.neutral()[:7]
    for row, body in zip(found, model.bodies, strict=True):
        if body.dynamics is not None:
            law = body.dynamics
            for at, x in enumerate((law.stiffness, law.damping, law.friction, law.rest)):
                row[6 * at : 6 * at + len(x[:7])] = x[:7]
    return found


def _filled_up(rows, size):
    """Rows of different lengths as one array, padded with zeros."""
    found = np.zeros((len(rows), size))
    for k, row in enumerate(rows):
        if row:
            found[k, : len(row)] = row
    return found
