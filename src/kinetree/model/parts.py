"""The parts of a model: bodies with their joints, frames, loop joints, limits — RBDA §4.6.

Parts keep read-only copies of the arrays they are given, so that a model cannot change behind
the back of what was computed from it.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint, Fixed, active_subspace_from_wrench
from kinetree.model.actuator import Actuator
from kinetree.model.coupling import Coupling, as_floats, as_numbers
from kinetree.spatial import Force, Inertia, Plucker, xlt
from kinetree.spelling import explains_itself

__all__ = [
    "OF_BODIES",
    "OF_JOINTS",
    "Actuator",
    "Body",
    "Coupling",
    "Frame",
    "FrozenPart",
    "JointDynamics",
    "Limits",
    "Loop",
    "Posture",
    "as_floats",
    "as_numbers",
    "as_placement",
    "is_identity",
    "relabel",
]  # fmt: skip

OF_BODIES = ("body", "parent", "predecessor", "successor")
OF_JOINTS = ("joint", "source", "sources", "joints")
"""Fields of parts that hold numbers of bodies and of joints."""


@explains_itself
@dataclass(frozen=True)
class Limits:
    """Bounds of a joint, one entry per variable; infinite where there is none.

    Attributes:
        lower: smallest position variables [m or rad], (nq,).
        upper: largest position variables, (nq,).
        velocity: largest speed of each velocity variable [m/s or rad/s], (nv,), or one for all.
        effort: largest size of the joint force [N or N·m], (nv,), or one for all.
        effort_lower: smallest joint force of actuators, (nv,), or one for all; ``-effort`` by
            default.
        effort_upper: their largest joint force, (nv,), or one for all; ``effort`` by default.
        effort_compensation: 1 where gravity compensation at the joint counts as a force of its
            actuators, within ``effort``, as with ``actuatorgravcomp`` in MJCF; 0 where it does not,
            the default, (nv,), or one for all.
    """

    lower: Any = ()
    upper: Any = ()
    velocity: Any = ()
    effort: Any = ()
    effort_lower: Any = ()
    effort_upper: Any = ()
    effort_compensation: Any = ()

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, as_floats(getattr(self, name), f"{name} limit"))


@explains_itself
@dataclass(frozen=True)
class JointDynamics:
    """Passive dynamics of a joint, one entry per velocity variable, zero by default.

    A single number applies to every velocity variable of the joint.

    The armature is part of the inertia matrix. The other three make up ``passive_force``; they are
    not part of the joint force ``tau``, which is the sum of all forces along the joint.

    Attributes:
        armature: inertia that the joint drives in addition to the bodies, such as that of a rotor
            behind a gear [kg or kg·m²].
        damping: force against the velocity [N·s/m or N·m·s].
        friction: largest force of dry friction [N or N·m].
        stiffness: of a spring [N/m or N·m].
        rest: position variables at which the spring is slack, (nq,); neutral by default.
        active_predecessor: wrench (moment, force) that the drive exerts on the successor, six
            numbers for each velocity variable, in coordinates of the joint's predecessor frame,
            where the drive is mounted; of any size. It affects the load of the bearing, not the
            motion. By default the drive is a pure force along the degrees of freedom — RBDA §3.5.
        active_successor: the same in successor coordinates, for a drive that moves with it.
    """

    armature: Any = ()
    damping: Any = ()
    friction: Any = ()
    stiffness: Any = ()
    rest: Any = ()
    active_predecessor: Any = ()
    active_successor: Any = ()

    @property
    def drive(self) -> tuple:
        """Wrenches of the joint's drive, on the side where it is mounted; empty by default."""
        return self.active_predecessor or self.active_successor

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, as_numbers(getattr(self, name), name))


_PER_VELOCITY = {
    Limits: ("velocity", "effort", "effort_lower", "effort_upper", "effort_compensation"),
    JointDynamics: ("armature", "damping", "friction", "stiffness"),
}


def spread(values, joint):
    """Limits or dynamics with one entry per velocity variable; single entries are repeated."""
    if not isinstance(joint, AbstractJoint) or joint.nv < 2:
        return values
    names = [n for n in _PER_VELOCITY.get(type(values), ()) if len(getattr(values, n)) == 1]
    return replace(values, **{n: getattr(values, n) * joint.nv for n in names}) if names else values


class FrozenPart:
    """Replaces arrays of transforms and inertias by read-only copies, and poses by transforms."""

    __dataclass_fields__: ClassVar[dict[str, Any]]  # every part is a dataclass

    def __post_init__(self):
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.shape == (4, 4):
                value = as_placement(value)
            if isinstance(value, _OF_ARRAYS):
                object.__setattr__(self, name, _freeze(value))


P = TypeVar("P", bound=FrozenPart)


def relabel(part: P, **changes: Any) -> P:
    """Copy of a part with other names or numbers, without the checks of ``replace``."""
    new = copy(part)
    vars(new).update(changes)
    return new


class Jointed(FrozenPart):
    """A part with a joint; what is one number for all variables of the joint is spread."""

    joint: AbstractJoint
    dynamics: JointDynamics | None

    def __post_init__(self):
        super().__post_init__()
        for name in ("limits", "dynamics"):
            object.__setattr__(self, name, spread(getattr(self, name), self.joint))

    def active_subspace(self, q: Array) -> Force:
        """Active force subspace ``T_a`` at ``q``, through which a drive acts — (3.35), Example 3.2.

        In successor coordinates, with ``T_aᵀ S = 1``: that of the joint unless ``dynamics`` says
        otherwise.
        """
        d = self.dynamics
        if d is None or not d.drive:
            return self.joint.active_subspace(q)
        wrench = Force.from_array(np.array(d.drive).reshape(-1, 6).T)
        if d.active_predecessor:
            wrench = self.joint.transform(q).star @ wrench
        return active_subspace_from_wrench(self.joint, q, wrench)


_OF_ARRAYS = (Plucker, Inertia)


def _freeze(x):
    """Transform or inertia with read-only arrays."""
    if isinstance(x, Plucker):
        return Plucker(_read_only(x.E), _read_only(x.r))
    return Inertia(x.mass, _read_only(x.first_moment), _read_only(x.rotational))


def _read_only(array):
    """Read-only array, copied unless it is read-only already."""
    if isinstance(array, np.ndarray) and array.base is None and not array.flags.writeable:
        return array
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False)
class Body(Jointed):
    """A moving body with the joint that connects it to its parent.

    Attributes:
        name: unique name.
        parent: number of the parent body; 0 is the base.
        joint: joint from parent to body; the body frame is its successor frame.
        placement: ``X_T``, from parent coordinates to the joint's predecessor frame.
        inertia: in body coordinates.
        joint_name: unique name of the joint.
        limits: bounds of the joint, if any.
        dynamics: armature, damping, friction and spring of the joint, if any.
    """

    name: str
    parent: int
    joint: AbstractJoint
    placement: Plucker
    inertia: Inertia
    joint_name: str
    limits: Limits | None = None
    dynamics: JointDynamics | None = None


@dataclass(frozen=True, eq=False)
class Frame(FrozenPart):
    """A named frame fixed to a body; ``placement`` takes body to frame coordinates."""

    name: str
    body: int
    placement: Plucker = field(default_factory=Plucker.identity)


@dataclass(frozen=True, eq=False)
class Loop(Jointed):
    """A joint that closes a kinematic loop — RBDA §4.2.

    Attributes:
        name: unique name, among the joints.
        predecessor: number of the first body that it connects; 0 is the base.
        successor: number of the second.
        joint: any joint; its variables are not part of ``q``.
        predecessor_placement: ``X_P``, from predecessor body to predecessor frame coordinates.
        successor_placement: ``X_S``, from successor body to successor frame coordinates.
        limits: bounds of the joint, if any.
        dynamics: damping, friction and spring of the joint, if any; it cannot have armature.
        misalignment: constraints that are redundant up to this error in all configurations are
            dropped [rad, or fraction of the size of the loop]; None for 1e-3, 0 to keep every
            constraint. The smallest value in a model applies to all its loops.
    """

    name: str
    predecessor: int
    successor: int
    joint: AbstractJoint = field(default_factory=Fixed)
    predecessor_placement: Plucker = field(default_factory=Plucker.identity)
    successor_placement: Plucker = field(default_factory=Plucker.identity)
    limits: Limits | None = None
    dynamics: JointDynamics | None = None
    misalignment: float | None = None


@dataclass(frozen=True, eq=False)
class Posture:
    """A named state, such as "home": positions (nq,) and velocities (nv,), or none (0,).

    All arrays are read-only; use ``posture.q.copy()`` to change one. A model with couplings also
    takes positions and velocities of all its joints, and keeps the independent ones.

    Attributes:
        name: unique name, among the postures.
        q: position variables.
        qd: velocity variables, or none.
        controls: one for each actuator of the model, in their order, such as those that hold the
            posture; or none.
        activation: one for each actuator that has an activation, in their order; or none.
    """

    name: str
    q: Any
    qd: Any = ()
    controls: Any = ()
    activation: Any = ()

    def __post_init__(self):
        for name in ("q", "qd", "controls", "activation"):
            values = np.array(getattr(self, name))
            values = values.astype(float) if values.dtype.kind in "biu" else values
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __repr__(self):
        given = [n for n in ("q", "qd", "controls", "activation") if getattr(self, n).size]
        return f"Posture({self.name!r}{''.join(f', {n}={getattr(self, n)}' for n in given)})"

    @property
    def moves(self) -> bool:
        """Whether the posture has nonzero velocities."""
        return self.qd.size > 0

    def _content(self):
        """Values of the posture, for comparisons."""
        values = (self.q, self.qd, self.controls, self.activation)
        return self.name, *(tuple(x.tolist()) for x in values)

    def __eq__(self, other):
        return self._content() == other._content() if isinstance(other, Posture) else NotImplemented

    def __hash__(self):
        return hash(self._content())


def is_identity(X) -> bool:
    """Whether a transform is exactly the identity."""
    return X.E.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]] and X.r.tolist() == [0, 0, 0]


def as_placement(at) -> Plucker:
    """Placement transform from a position (3,), pose (4, 4), ``Plucker`` or None."""
    if at is None:
        return Plucker.identity()
    if isinstance(at, Plucker):
        return at
    if np.shape(at) == (4, 4):
        return _from_pose(np.asarray(at))
    if np.shape(at) != (3,):
        hint, came = "", f"shape {at.shape}" if isinstance(at, np.ndarray) else repr(at)
        if np.shape(at) == (3, 3):
            hint = "; for a rotation alone, write Plucker(R.T, (0, 0, 0)) or a 4x4 matrix with R"
        raise ModelError(
            f"'at' must be a position of 3 numbers, a 4x4 pose as kinetree.pose returns it, or a "
            f"Plücker transform, got {came}{hint}"
        )
    if np.asarray(at).dtype == float and not np.isfinite(at).all():
        raise ModelError(
            f"'at' must be a position of 3 finite numbers, got {np.asarray(at).tolist()}"
        )
    return xlt(np.asarray(at))


_ORTHONORMAL = 1e-6
"""Largest entry of ``Rᵀ R - 1`` in a pose; models check their transforms to the same tolerance."""


def _from_pose(T):
    """Plücker transform of a homogeneous matrix, checked to be a rigid motion."""
    if T.dtype != object:
        with np.errstate(all="ignore"):
            error = np.max(np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)))
            last = np.max(np.abs(T[3] - (0, 0, 0, 1)))
        if not last <= _ORTHONORMAL:
            transposed = np.max(np.abs(T[:, 3] - (0, 0, 0, 1))) <= _ORTHONORMAL
            hint = "; it looks transposed: pass its transpose" if transposed else ""
            raise ModelError(
                f"a pose must have the last row (0, 0, 0, 1), got {T[3].tolist()}{hint}"
            )
        if not error <= _ORTHONORMAL or np.linalg.det(np.real(T[:3, :3])) < 0:
            raise ModelError(
                f"the rotation R = T[:3, :3] of a pose must be orthonormal, with determinant 1: "
                f"Rᵀ R differs from 1 by {error:.2g} (at most {_ORTHONORMAL:g}), det R = "
                f"{np.linalg.det(np.real(T[:3, :3])):.6g}"
            )
    return Plucker.from_pose(T)
