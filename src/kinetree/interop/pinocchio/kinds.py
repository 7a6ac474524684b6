"""Joints of kinetree and of Pinocchio: which is which, and how their variables translate."""

import re
from dataclasses import dataclass, fields

import numpy as np

from kinetree import joints
from kinetree.errors import InteropError
from kinetree.joints.axis import index_of

# --- Variables of a joint ------------------------------------------------------------------------
# Every function takes and returns arrays over leading batch axes, variables last. The two sets of
# velocity variables differ at most in their order, whatever the joint: both are the same rates, or
# the same coordinates of the velocity in the child frame. So accelerations and forces translate
# like velocities, and need neither the configuration nor the velocity.


@dataclass(frozen=True)
class VariableMap:
    """Map between the same variables, perhaps in another order."""

    position_order: tuple | None = None
    """For each position variable of Pinocchio, the index of kinetree's."""
    velocity_order: tuple | None = None
    """The same for velocities, accelerations and forces."""
    limited: tuple | None = None
    """Indices of kinetree's position variables that a limit makes sense for."""

    def to_position(self, q):
        """Pinocchio's position variables from kinetree's."""
        return _take(q, self.position_order)

    def from_position(self, q):
        """Kinetree's position variables from Pinocchio's."""
        return _put(q, self.position_order)

    def to_tangent(self, x):
        """Pinocchio's tangent vector (velocity, force, limit) from kinetree's."""
        return _take(x, self.velocity_order)

    def from_tangent(self, x):
        """Kinetree's tangent vector (velocity, force, limit) from Pinocchio's."""
        return _put(x, self.velocity_order)

    def to_velocity(self, q, qd):
        """Pinocchio's velocities or forces from kinetree's at ``q``."""
        return self.to_tangent(qd)

    def from_velocity(self, q, v):
        """Kinetree's velocities or forces from Pinocchio's at ``q``."""
        return self.from_tangent(v)

    def to_acceleration(self, q, qd, qdd):
        """Pinocchio's accelerations from kinetree's state and ``qdd``."""
        return self.to_tangent(qdd)

    def from_acceleration(self, q, v, a):
        """Kinetree's accelerations from Pinocchio's state and ``a``."""
        return self.from_tangent(a)

    def to_limit(self, limit, unlimited):
        """Pinocchio's position limit from kinetree's; ``unlimited`` where there is none."""
        return self.to_position(self._where_limited(limit, unlimited))

    def from_limit(self, limit, unlimited):
        """Kinetree's position limit from Pinocchio's; ``unlimited`` where there is none."""
        return self._where_limited(self.from_position(limit), unlimited)

    def _where_limited(self, limit, unlimited):
        """Limits of the variables that can have one; ``unlimited`` for the others."""
        if self.limited is None:
            return limit
        return np.where(np.isin(np.arange(len(limit)), self.limited), limit, unlimited)


@dataclass(frozen=True)
class _Unbounded(VariableMap):
    """An angle here, its cosine and sine there."""

    def to_position(self, q):
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def from_position(self, q):
        return np.arctan2(q[..., 1:], q[..., :1])

    def to_limit(self, limit, unlimited):
        return np.full(2, unlimited)

    def from_limit(self, limit, unlimited):
        return np.full(1, unlimited)


@dataclass(frozen=True)
class _Planar(VariableMap):
    """(angle, x, y) here, (x, y, cosine, sine) there."""

    def to_position(self, q):
        return np.concatenate([q[..., 1:], UNBOUNDED.to_position(q[..., :1])], axis=-1)

    def from_position(self, q):
        return np.concatenate([UNBOUNDED.from_position(q[..., 2:]), q[..., :2]], axis=-1)

    def to_limit(self, limit, unlimited):
        return np.array([*limit[1:], unlimited, unlimited])

    def from_limit(self, limit, unlimited):
        return np.array([unlimited, *limit[:2]])


def _take(x, order):
    """Entries rearranged to Pinocchio's order."""
    return x if order is None else x[..., list(order)]


def _put(x, order):
    """Entries rearranged to kinetree's order."""
    return x if order is None else x[..., np.argsort(order)]


SAME = VariableMap()
UNBOUNDED = _Unbounded()
PLANAR = _Planar(velocity_order=(1, 2, 0))
SPHERICAL = VariableMap(position_order=(1, 2, 3, 0), limited=())
FREE = VariableMap(
    position_order=(0, 1, 2, 4, 5, 6, 3), velocity_order=(3, 4, 5, 0, 1, 2), limited=(0, 1, 2)
)


def kind_of(pin_joint) -> str:
    """Pinocchio's name of a joint type, such as ``"JointModelRX"``."""
    return pin_joint.shortname()


def as_kinetree(pin_joint, name):
    """Kinetree's joint equal to Pinocchio's, and the map between their variables."""
    kind = kind_of(pin_joint)
    if kind not in _READERS:
        raise InteropError(
            f"joint {name!r} is a {kind}, which has no counterpart in kinetree; these have: "
            f"{', '.join(_READERS)}, and composites of them"
        )
    read, joint_map = _READERS[kind]
    return read(pin_joint, name), joint_map


def as_pinocchio(pin, joint, name):
    """Pinocchio's joint equal to kinetree's, and the map between their variables."""
    if type(joint) not in _WRITERS:
        raise InteropError(
            f"joint {name!r} is a {type(joint).__name__}, which Pinocchio does not have; these "
            f"it has: Fixed, {', '.join(kind.__name__ for kind in _WRITERS)}. A chain of simpler "
            f"joints with massless bodies may do the same"
        )
    pin_joint = _WRITERS[type(joint)](pin, joint)
    pin_joint.setIndexes(1, 0, 0)
    reread, joint_map = as_kinetree(pin_joint, name)
    if not same_joint(joint, reread):
        raise InteropError(
            f"joint {name!r} is {joint!r}; of this kind Pinocchio only has {reread!r}"
        )
    return pin_joint, joint_map


def same_joint(a, b) -> bool:
    """Whether two joints have the same class and equal parameters up to rounding."""
    return type(a) is type(b) and all(
        _same_parameter(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
    )


def _same_parameter(a, b):
    """Whether two parameters of a joint agree, to rounding."""
    return a == b or (not isinstance(a, str) and np.allclose(a, b, rtol=0, atol=1e-9))


# --- from Pinocchio --------------------------------------------------------------------------


def _subspace(pin_joint):
    """Constant motion subspace of a one-variable Pinocchio joint, linear part first."""
    data = pin_joint.createData()
    pin_joint.calc(data, np.zeros(pin_joint.idx_q + pin_joint.nq))
    S = np.array(data.S).ravel()
    return S[:3], S[3:]


def _unit(axis, name):
    """Axis of a Pinocchio joint, which must have unit length; an error otherwise."""
    if abs(np.linalg.norm(axis) - 1) > 1e-6:
        raise InteropError(f"axis of joint {name!r} must be a unit vector, got {axis.tolist()}")
    return tuple(axis)


def _revolute(pin_joint, name):
    """Kinetree's revolute joint for one of Pinocchio."""
    return joints.Revolute(_unit(_subspace(pin_joint)[1], name))


def _prismatic(pin_joint, name):
    """Kinetree's prismatic joint for one of Pinocchio."""
    return joints.Prismatic(_unit(_subspace(pin_joint)[0], name))


def _helical(pin_joint, name):
    """Kinetree's helical joint for one of Pinocchio."""
    linear, axis = _subspace(pin_joint)
    return joints.Helical(_unit(axis, name), pitch=float(linear @ axis))


def _mimic(pin_joint, name):
    """Kinetree's joint for a Pinocchio mimic joint, without the mimic law.

    Of it Pinocchio shows the kind, in what it prints, and the pose. Its motion subspace is that
    of before the first pose, which a helical joint does not have yet. Computing the pose of one
    that is helical about a general axis ends the process on x86-64, so it must not be computed.
    """
    if pin_joint.scaling == 0:
        raise InteropError(
            f"joint {name!r} follows another by a factor of zero, so that it never moves; make it "
            f"a fixed joint"
        )
    kind = re.search(r"Mimicking joint type: (\w+)", str(pin_joint))
    if kind is None or kind[1] not in _MIMICS:
        raise InteropError(
            f"joint {name!r} follows another and is a {kind[1] if kind else 'joint of no name'}, "
            f"with which Pinocchio itself cannot compute; these can follow: {', '.join(_MIMICS)}"
        )
    one = (1 - pin_joint.offset) / pin_joint.scaling  # of the leader, where the follower is at 1
    at_one = [np.cos(one), np.sin(one)] if "Unbounded" in kind[1] or "RUB" in kind[1] else [one]
    data = pin_joint.createData()
    pin_joint.calc(data, np.concatenate((np.zeros(pin_joint.idx_q), at_one)))
    R, shift = np.array(data.M.rotation), np.array(data.M.translation)
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (2 * np.sin(1))
    return _MIMICS[kind[1]](axis, shift, name)


def universal_letters(pin_joint) -> str:
    """Letters of a universal joint's axes, such as ``"xy"``; empty for oblique axes."""
    axes = [np.flatnonzero(axis == 1) for axis in (pin_joint.axis1, pin_joint.axis2)]
    letters = "".join("xyz"[k] for axis in axes for k in axis)
    return letters if len(set(letters)) == 2 else ""


_BOUNDED = ("JointModelRX", "JointModelRY", "JointModelRZ", "JointModelRevoluteUnaligned")
_UNBOUNDED = (
    "JointModelRUBX",
    "JointModelRUBY",
    "JointModelRUBZ",
    "JointModelRevoluteUnboundedUnaligned",
)
_PRISMATIC = ("JointModelPX", "JointModelPY", "JointModelPZ", "JointModelPrismaticUnaligned")
_HELICAL = ("JointModelHX", "JointModelHY", "JointModelHZ")

_MIMICS = {
    **dict.fromkeys(
        (*_BOUNDED, *_UNBOUNDED), lambda axis, _, name: joints.Revolute(_unit(axis, name))
    ),
    **dict.fromkeys(_PRISMATIC, lambda _, shift, name: joints.Prismatic(_unit(shift, name))),
    **dict.fromkeys(
        _HELICAL,
        lambda axis, shift, name: joints.Helical(_unit(axis, name), pitch=float(shift @ axis)),
    ),
}
"""The joint of a follower, by its kind, the axis of its rotation and the shift at q = 1."""

_READERS = {
    **dict.fromkeys(_BOUNDED, (_revolute, SAME)),
    **dict.fromkeys(_UNBOUNDED, (_revolute, UNBOUNDED)),
    **dict.fromkeys(_PRISMATIC, (_prismatic, SAME)),
    **dict.fromkeys((*_HELICAL, "JointModelHelicalUnaligned"), (_helical, SAME)),
    "JointModelMimic": (_mimic, SAME),
    "JointModelUniversal": (lambda j, name: joints.Universal(universal_letters(j)), SAME),
    "JointModelSpherical": (lambda j, name: joints.Spherical(), SPHERICAL),
    "JointModelSphericalZYX": (lambda j, name: joints.Euler("zyx"), SAME),
    "JointModelTranslation": (lambda j, name: joints.Translation(), SAME),
    "JointModelPlanar": (lambda j, name: joints.Planar("z"), PLANAR),
    "JointModelFreeFlyer": (lambda j, name: joints.Free(), FREE),
}


# --- to Pinocchio ----------------------------------------------------------------------------


def _along(pin, letter, unaligned, axis, *parameters):
    """Pinocchio joint of a family for an axis, aligned with x, y, z or not."""
    aligned = index_of(axis)
    if aligned is not None and aligned[1] > 0:
        return getattr(pin, f"JointModel{letter}{'XYZ'[aligned[0]]}")(*parameters)
    return getattr(pin, f"JointModel{unaligned}")(np.array(axis, dtype=float), *parameters)


def _universal(pin, joint):
    """Pinocchio's joint for a universal one."""
    return pin.JointModelUniversal(*(np.eye(3)["xyz".index(axis)] for axis in joint.axes))


_WRITERS = {
    joints.Revolute: lambda pin, j: _along(pin, "R", "RevoluteUnaligned", j.axis),
    joints.Prismatic: lambda pin, j: _along(pin, "P", "PrismaticUnaligned", j.axis),
    joints.Helical: lambda pin, j: _along(pin, "H", "HelicalUnaligned", j.axis, float(j.pitch)),
    joints.Universal: _universal,
    joints.Spherical: lambda pin, j: pin.JointModelSpherical(),
    joints.Euler: lambda pin, j: pin.JointModelSphericalZYX(),
    joints.Translation: lambda pin, j: pin.JointModelTranslation(),
    joints.Planar: lambda pin, j: pin.JointModelPlanar(),
    joints.Free: lambda pin, j: pin.JointModelFreeFlyer(),
}
