"""Joints of a compiled MuJoCo model: kind, limits, armature, damping, friction, springs, variables.

Position variables are counted from ``qpos0``: ours are ``qpos - qpos0`` for hinges and sliders,
and the same quaternions and positions for ball and free joints. MuJoCo's velocities of a free joint
are linear in the world, then angular in the body; ours are angular, then linear, both in the body.
A planar joint is two sliders and a hinge there, with the same difference. So their accelerations,
the rates of these, differ by more than a rotation.
"""

from typing import NamedTuple

import numpy as np

from kinetree.joints import AbstractJoint, Free, Planar, Prismatic, Revolute, Spherical
from kinetree.loaders.mjcf.values import mujoco
from kinetree.model import JointDynamics, Limits
from kinetree.spatial.rotation import rotation_from_quaternion

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
ATTRIBUTES = {
    "joint": {
        "name", "class", "type", "pos", "axis", "springdamper", "stiffness", "range", "limited",
        "actuatorfrcrange", "actuatorfrclimited", "ref", "springref", "springyield", "armature",
        "damping", "frictionloss", "actuatorgravcomp",
    },
    "freejoint": {"name", "align"},
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""
_YIELDS = "a spring that yields is taken as elastic"
NOTED = {"joint": {"springyield": _YIELDS}}
"""Attributes that are noted by name where they act, and why."""
_SIZES = {FREE: (7, 6), BALL: (4, 3), SLIDE: (1, 1), HINGE: (1, 1)}


class JointVariables(NamedTuple):
    """Slices of the variables of a joint in MuJoCo's vectors, and its zero."""

    kind: int
    q: slice
    v: slice
    reference: float


def variables(mj_model, j) -> JointVariables:
    """Slices of MuJoCo joint ``j`` in ``qpos`` and ``qvel``."""
    kind = int(mj_model.jnt_type[j])
    nq, nv = _SIZES[kind]
    q, v = int(mj_model.jnt_qposadr[j]), int(mj_model.jnt_dofadr[j])
    reference = float(mj_model.qpos0[q]) if kind in (SLIDE, HINGE) else 0.0
    return JointVariables(kind, slice(q, q + nq), slice(v, v + nv), reference)


def joint_of(mj_model, j) -> AbstractJoint:
    """Kinetree joint for MuJoCo joint ``j``."""
    kind, axis = mj_model.jnt_type[j], mj_model.jnt_axis[j]
    if kind == HINGE:
        return Revolute(tuple(axis.tolist()))
    if kind == SLIDE:
        return Prismatic(tuple(axis.tolist()))
    return Spherical() if kind == BALL else Free()


def anchor(mj_model, j):
    """Anchor of a MuJoCo joint in its body's frame; zero for sliders and free joints."""
    return np.array(mj_model.jnt_pos[j]) * (mj_model.jnt_type[j] in (BALL, HINGE))


def is_disabled(mj_model, what) -> bool:
    """Whether an option disables ``"SPRING"``, ``"LIMIT"``, ``"GRAVITY"`` and so on."""
    bits = mujoco().mjtDisableBit
    bit = getattr(bits, f"mjDSBL_{what}", None) or getattr(bits, "mjDSBL_PASSIVE", 0)
    return bool(mj_model.opt.disableflags & int(bit))


def limits_of(mj_model, j, name, note) -> Limits | None:
    """Position and force limits of a MuJoCo joint, and forces that count for the latter."""
    at, limits = variables(mj_model, j), {}
    if mj_model.jnt_limited[j] and not is_disabled(mj_model, "LIMIT"):
        lower, upper = (float(x) - at.reference for x in mj_model.jnt_range[j])
        if at.kind == BALL:
            note("joint", name, "its range, a largest angle of rotation, has no counterpart here")
        elif at.kind != FREE:
            limits["lower"], limits["upper"] = lower, upper
    if mj_model.jnt_actfrclimited[j] and at.kind in (SLIDE, HINGE):
        smallest, largest = (float(x) for x in mj_model.jnt_actfrcrange[j])
        limits["effort"] = max(abs(smallest), abs(largest))
        if smallest != -largest:
            limits["effort_lower"], limits["effort_upper"] = smallest, largest
    counts = getattr(mj_model, "jnt_actgravcomp", np.zeros(j + 1))[j]
    if counts and at.kind in (SLIDE, HINGE):
        limits["effort_compensation"] = 1.0
    return Limits(**limits) if limits else None


def have_dynamics(mj_model) -> np.ndarray:
    """Mask of the joints for which ``dynamics_of`` may find something."""
    found = np.full(mj_model.njnt, mj_model.nu > 0)
    for name in ("jnt_stiffness", "jnt_stiffnesspoly", "jnt_springyield"):
        values = getattr(mj_model, name, np.zeros(mj_model.njnt))
        found |= np.any(values, axis=tuple(range(1, values.ndim)))
    for name in ("dof_armature", "dof_damping", "dof_frictionloss", "dof_dampingpoly"):
        values = getattr(mj_model, name, np.zeros(mj_model.nv))
        found[mj_model.dof_jntid[np.any(values, axis=tuple(range(1, values.ndim)))]] = True
    return found


def dynamics_of(mj_model, j, name, note) -> JointDynamics | None:
    """Armature, damping, friction and spring of a MuJoCo joint and its actuators."""
    at = variables(mj_model, j)
    nv = at.v.stop - at.v.start
    found = {
        "armature": np.array(mj_model.dof_armature[at.v]),
        "damping": np.array(mj_model.dof_damping[at.v]),
        "friction": np.array(mj_model.dof_frictionloss[at.v]),
        "stiffness": np.full(nv, float(mj_model.jnt_stiffness[j])),
    }
    for armature, damping in actuators_on(mj_model, j, "joint", name, note):
        found["armature"] += armature
        found["damping"] += damping
    for what, flag in (
        ("damping", "DAMPER"),
        ("stiffness", "SPRING"),
        ("friction", "FRICTIONLOSS"),
    ):
        if np.any(found[what]) and is_disabled(mj_model, flag):
            why = f"the option flag switches its {what} off, so it has none here"
            note("joint", name, why, "setting")
            found[what][:] = 0
    _note_rest(mj_model, j, at, name, found, note)
    if at.kind == FREE:  # whose translations come first in MuJoCo
        found = {what: np.roll(values, 3) for what, values in found.items()}
        found["stiffness"][:] = 0
    given = {what: values for what, values in found.items() if np.any(values)}
    rest = np.array(mj_model.qpos_spring[at.q]) - at.reference
    if "stiffness" in given and np.any(rest - np.eye(1, len(rest)).ravel() * (at.kind == BALL)):
        given["rest"] = rest
    return JointDynamics(**given) if given else None


def actuators_on(mj_model, i, kind, name, note):
    """Armature and damping that each actuator adds to joint or tendon ``i``."""
    if not hasattr(mj_model, "actuator_armature"):
        return
    driven = np.isin(mj_model.actuator_trntype, (0, 1) if kind == "joint" else (3,))  # mjtTrn
    for a in np.flatnonzero(driven & (mj_model.actuator_trnid[:, 0] == i)):
        if np.any(getattr(mj_model, "actuator_dampingpoly", np.zeros(a + 1))[a]):
            note(kind, name, "damping of an actuator beyond the linear term is not represented")
        out = mj_model.actuator_outadr[a] if hasattr(mj_model, "actuator_outadr") else a
        squared = float(mj_model.actuator_gear[out, 0]) ** 2
        yield mj_model.actuator_armature[a] * squared, mj_model.actuator_damping[a] * squared


def _note_rest(mj_model, j, at, name, found, note):
    """Add notices about properties of a joint that are not represented."""
    for field, what in (
        ("jnt_stiffnesspoly", "stiffness beyond the linear term is not represented"),
        ("jnt_springyield", _YIELDS),
    ):
        if np.any(getattr(mj_model, field, np.zeros(j + 1))[j]):
            note("joint", name, what)
    if np.any(getattr(mj_model, "dof_dampingpoly", np.zeros(at.v.stop))[at.v]):
        note("joint", name, "damping beyond the linear term is not represented")
    if at.kind == FREE and np.any(found["stiffness"]):
        note("joint", name, "the spring of a free joint is not represented")
    if at.kind == FREE and np.ptp(found["armature"][:3]):
        note(
            "joint",
            name,
            "its armature along the axes of the world differs, here it is that along the axes of "
            "the body",
        )


# --- Conversion of the variables of one joint -----------------------------------------------------


class JointMap:
    """Map between the same variables of both."""

    def to_position(self, q):
        """MuJoCo's position variables from kinetree's ``q``."""
        return q

    def from_position(self, p):
        """Kinetree's position variables from MuJoCo's."""
        return p

    def to_velocity(self, q, qd):
        """MuJoCo's velocity variables, or forces, from kinetree's at ``q``."""
        return qd

    def from_velocity(self, q, v):
        """Kinetree's velocity variables, or forces, from MuJoCo's at ``q``."""
        return v

    def to_acceleration(self, q, qd, qdd):
        """MuJoCo's acceleration variables from kinetree's state and ``qdd``."""
        return qdd

    def from_acceleration(self, q, v, a):
        """Kinetree's acceleration variables from MuJoCo's, at ``q``."""
        return a


class _Moving(JointMap):
    """Our velocity is (angular, linear) in the body; theirs is linear in the parent, angular.

    Args:
        turns: number of angular variables.
        rotation: of ``q``, from parent to body coordinates, (i, j, ...), the batch axes last.
        cross: angular times linear velocity.
        order: for each position variable of MuJoCo, the index of kinetree's.
    """

    def __init__(self, turns, rotation, cross, order):
        self.turns, self.rotation, self.cross, self.order = turns, rotation, cross, order

    def to_position(self, q):
        return q[..., self.order]

    def from_position(self, p):
        return p[..., np.argsort(self.order)]

    def to_velocity(self, q, qd):
        w, v = qd[..., : self.turns], qd[..., self.turns :]
        return _join(np.einsum("ji...,...j->...i", self.rotation(q), v), w)

    def from_velocity(self, q, v):
        w, v = v[..., -self.turns :], v[..., : -self.turns]
        return _join(w, np.einsum("ij...,...j->...i", self.rotation(q), v))

    def to_acceleration(self, q, qd, qdd):
        """MuJoCo's accelerations ``d(R v)/dt = R (dv/dt + ω × v)`` of a free or planar joint."""
        w, v = qd[..., : self.turns], qd[..., self.turns :]
        rate = _join(qdd[..., : self.turns], qdd[..., self.turns :] + self.cross(w, v))
        return self.to_velocity(q, rate)

    def from_acceleration(self, q, v, a):
        qd, rate = self.from_velocity(q, v), self.from_velocity(q, a)
        turning = self.cross(qd[..., : self.turns], qd[..., self.turns :])
        return _join(rate[..., : self.turns], rate[..., self.turns :] - turning)


def _free_rotation(q):
    """Rotation matrix of a free joint's quaternion."""
    return rotation_from_quaternion(np.moveaxis(q[..., 3:7], -1, 0))


def _planar_rotation(q):
    """Rotation matrix of a planar joint's angle, (2, 2)."""
    c, s = np.cos(q[..., 0]), np.sin(q[..., 0])
    return np.array([[c, s], [-s, c]])


def _planar_cross(w, v):
    """Planar cross product ``ω × v``."""
    return w * np.stack([-v[..., 1], v[..., 0]], axis=-1)


def _join(*parts):
    """Concatenation of vector parts with batch axes."""
    batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)


_SAME = JointMap()
_FREE = _Moving(3, _free_rotation, np.cross, [0, 1, 2, 3, 4, 5, 6])
_PLANAR = _Moving(1, _planar_rotation, _planar_cross, [1, 2, 0])


def map_of(joint: AbstractJoint) -> JointMap:
    """Converter between MuJoCo's and kinetree's variables for a joint."""
    if isinstance(joint, Free):
        return _FREE
    return _PLANAR if isinstance(joint, Planar) else _SAME
