"""The model of a mechanism: frozen, validated, hashable by content — RBDA §4.6, Table 4.3."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ModelWarning
from kinetree.joints.base import AbstractJoint
from kinetree.joints.fixed import Following
from kinetree.model import gearing, manifold, names, serialize, tree
from kinetree.model.actuator import fit_postures
from kinetree.model.cameras import Camera, cameras_among, for_constructor
from kinetree.model.constraint_function import ConstraintFunction
from kinetree.model.coupling import GravityCompensation
from kinetree.model.describe import as_html, summary
from kinetree.model.fingerprint import fingerprint
from kinetree.model.fluid import FluidForce
from kinetree.model.geometry import ContactPair, Geometry
from kinetree.model.limits import (
    Bounds,
    actuation,
    effort_limits,
    has_dynamics,
    joint_values,
    position_limits,
    travel,
    velocity_limits,
)
from kinetree.model.names import Group, Joints, indices
from kinetree.model.parts import Actuator, Body, Coupling, Frame, Loop, Posture
from kinetree.model.replacing import map_numbers, replaced_parts
from kinetree.model.sensors import Sensor, measurable
from kinetree.model.tendon import Tendon
from kinetree.model.tendon_paths import following_tendon
from kinetree.model.validate import check_model, check_parts
from kinetree.spatial import Motion, Plucker

if TYPE_CHECKING:
    from kinetree.spatial import Inertia


STANDARD_GRAVITY = (0.0, 0.0, -9.81)
_FIELDS = (
    "frames", "loops", "constraints", "couplings", "geometry", "actuators", "postures", "gravity",
    "name", "base_name", "tendons", "gravity_compensation", "sensors", "contact_pairs", "groups",
    "cameras", "fluid_forces",
)  # fmt: skip

_COMPILED = ("kernels", "memo")


class Model:
    """A kinematic tree of rigid bodies, with loop joints and named frames.

    Lists over bodies have ``body_count + 1`` entries, entry 0 for the fixed base; joint ``i``
    connects body ``i`` to its parent. Build one with ``ModelBuilder``; change one with
    ``replace``, which returns a new model.

    Args:
        bodies: the moving bodies, each after its parent.
        frames: named frames fixed to bodies.
        loops: joints that close loops.
        constraints: user-defined constraints, functions of position, velocity and time.
        couplings: joints that follow other joints.
        geometry: shapes of the bodies, for drawing and for contact.
        actuators: motors and servos.
        postures: named states.
        gravity: uniform gravitational acceleration [m/s²] in base coordinates, (3,).
        name: of the mechanism.
        base_name: name of the fixed base.
        strict: reject physically impossible inertias instead of warning about them.
        tendons: springs, dampers and limits over several joints.
        gravity_compensation: forces that carry the weight of bodies, and those of fluids.
        sensors: sensors of the mechanism, cameras among them.
        contact_pairs: pairs of shapes that may or must not touch, overriding other settings.
        groups: joints with a common name.
    """

    def __init__(
        self,
        bodies: tuple[Body, ...] = (),
        *,
        frames: tuple[Frame, ...] = (),
        loops: tuple[Loop, ...] = (),
        constraints: tuple[ConstraintFunction, ...] = (),
        couplings: tuple[Coupling, ...] = (),
        geometry: tuple[Geometry, ...] = (),
        actuators: tuple[Actuator, ...] = (),
        postures: tuple[Posture, ...] = (),
        gravity: ArrayLike = STANDARD_GRAVITY,
        name: str = "mechanism",
        base_name: str = "base",
        strict: bool = True,
        tendons: tuple[Tendon, ...] = (),
        gravity_compensation: tuple[GravityCompensation | FluidForce, ...] = (),
        sensors: tuple[Sensor | Camera, ...] = (),
        contact_pairs: tuple[ContactPair, ...] = (),
        groups: tuple[Group, ...] = (),
    ):
        self.name, self.base_name, self.strict = name, base_name, strict
        self.bodies, self.frames, self.loops = tuple(bodies), tuple(frames), tuple(loops)
        self.constraints = tuple(constraints)
        self.couplings, self.geometry = tuple(couplings), tuple(geometry)
        self.actuators, self.postures = tuple(actuators), tuple(postures)
        self.tendons, on_bodies = tuple(tendons), tuple(gravity_compensation)
        self.fluid_forces = tuple(x for x in on_bodies if isinstance(x, FluidForce))
        self.gravity_compensation = tuple(x for x in on_bodies if not isinstance(x, FluidForce))
        self.contact_pairs = tuple(contact_pairs)
        sensors = tuple(sensors)
        self.cameras = tuple(s for s in sensors if isinstance(s, Camera))
        self.sensors = tuple(s for s in sensors if not isinstance(s, Camera))
        self.groups = tuple(groups)
        check_parts(self)
        self.gravity = np.array(gravity)
        self.gravity.flags.writeable = False

        self.parent = (-1, *(b.parent for b in self.bodies))
        self.joint = Joints((None, *(b.joint for b in self.bodies)))
        self.tree_transform: tuple[Any, ...] = (None, *(b.placement for b in self.bodies))
        self.inertia: tuple[Any, ...] = (None, *(b.inertia for b in self.bodies))
        self.body_names = (base_name, *(b.name for b in self.bodies))
        self.joint_names = self.joint.names = tuple(b.joint_name for b in self.bodies)
        self.frame_names = tuple(f.name for f in self.frames)
        if any(c.tendon for c in self.couplings):
            self._follow_tendons()
        check_model(self, strict=strict)

        if self.couplings:
            self._leave_to_couplings()
        self.q_slice = _slices([0, *(joint.nq for joint in self.joint[1:])])
        self.v_slice = _slices([0, *(joint.nv for joint in self.joint[1:])])
        self.nq, self.nv = self.q_slice[-1].stop, self.v_slice[-1].stop
        self.zero_velocity = np.zeros(self.nv, dtype=int)
        self.zero_velocity.flags.writeable = False
        self.zero_motion, self.identity_transform = Motion.zero(), Plucker.identity()
        self._complete = True

    def _follow_tendons(self):
        """Fill in the laws of joints that follow tendons."""
        with warnings.catch_warnings():  # defects of the bodies are reported once
            warnings.simplefilter("ignore", ModelWarning)
            bare = Model(
                self.bodies, frames=self.frames, base_name=self.base_name, strict=self.strict
            )
        self.couplings = tuple(
            following_tendon(c, self.tendons, bare) if c.tendon else c for c in self.couplings
        )

    def _leave_to_couplings(self):
        """Take the variables from joints that follow others, and from the postures."""
        following = {c.joint for c in self.couplings}
        joints = enumerate(self.joint[1:], start=1)
        found = Joints((None, *(Following(j) if i in following else j for i, j in joints)))
        found.names, self.joint = self.joint_names, found
        self.postures = tuple(gearing.leading_posture(self, p) for p in self.postures)

    def __setattr__(self, name, value):
        if "_complete" in self.__dict__:
            raise AttributeError(
                f"a model is frozen: cannot set {name!r}; model.replace(...) makes a changed copy"
            )
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # checkers of types find unknown names themselves

        def __getattr__(self, name):
            if hasattr(type(self), name):  # a property whose code failed to find another attribute
                return object.__getattribute__(self, name)
            raise AttributeError(names.no_attribute(self, name))

    @cached_property
    def kernels(self) -> dict:
        """Quantities compiled for this model so far, by name and options; see ``define``."""
        return {}

    @cached_property
    def memo(self) -> dict:
        """Other objects kept with this model, by ``kinetree.model.memo.kept``."""
        return {}

    @cached_property
    def numeric(self) -> "Model":
        """The model whose numbers determine ranks and orders of elimination: this one.

        For a copy with traced parameters, it is the original model.
        """
        return self

    def decided_by(self, other: "Model") -> "Model":
        """This model, with ranks and orders of elimination decided by the numbers of another."""
        self.__dict__["numeric"] = other.numeric
        return self

    report: tuple = ()
    """What the file of the model says and the model does not represent; see ``kinetree.load``."""

    def with_report(self, notices: tuple) -> "Model":
        """This model, with what was noticed when it was read as its ``report``."""
        self.__dict__["report"] = notices
        return self

    def __getstate__(self):
        """Everything but compiled code, which does not travel."""
        return {name: value for name, value in self.__dict__.items() if name not in _COMPILED}

    # --- structure ---------------------------------------------------------------------------

    @property
    def body_count(self) -> int:
        """N_B, the number of moving bodies."""
        return len(self.bodies)

    @property
    def total_mass(self) -> Any:
        """Mass of all moving bodies [kg]."""
        return sum(b.inertia.mass for b in self.bodies)

    @cached_property
    def children(self) -> tuple:
        """μ(i) for every body."""
        return tree.children(self.parent)

    @cached_property
    def support(self) -> tuple:
        """κ(i) for every body."""
        return tree.supports(self.parent)

    @cached_property
    def subtree(self) -> tuple:
        """ν(i) for every body."""
        return tree.subtrees(self.parent)

    @cached_property
    def expanded_parent(self) -> tuple[int, ...]:
        """λ′ over the velocity variables, counted from 0, -1 for none — RBDA Table 6.4."""
        if self.couplings:
            return gearing.coupled_parent(self)
        return tree.expanded_parent(self.parent, [0, *(b.joint.nv for b in self.bodies)])

    # --- constraints -------------------------------------------------------------------------

    @property
    def is_constrained(self) -> bool:
        """Whether there are loops or user-defined constraints."""
        return bool(self.loops or self.constraints)

    @property
    def is_rheonomic(self) -> bool:
        """Whether a user-defined constraint depends on time; see ``at``."""
        return any(c.rheonomic for c in self.constraints)

    @property
    def instant(self) -> Any:
        """Time [s] at which time-dependent constraints are evaluated; None if there are none."""
        return next((c.t for c in self.constraints if c.rheonomic), None)

    @cached_property
    def timeless(self) -> "Model":
        """The model on which ``at`` was called, whose compiled code takes the instant; or itself.

        If joints also depend on time, every instant has its own model and code.
        """
        return self

    @cached_property
    def spanning_tree(self) -> "Model":
        """Mechanism without loops and constraints; the model itself if it has none."""
        return self.replace(loops=(), constraints=()) if self.is_constrained else self

    @property
    def a_g(self) -> Motion:
        """Gravity as a spatial acceleration."""
        return Motion(self.zero_motion.angular, self.gravity)

    # --- couplings ---------------------------------------------------------------------------

    @cached_property
    def uncoupled(self) -> "Model":
        """Mechanism without couplings; the model itself if it has none."""
        if not self.couplings:
            return self
        with warnings.catch_warnings():  # defects of the bodies were reported before
            warnings.simplefilter("ignore", ModelWarning)
            bare = self.replace(couplings=(), postures=(), constraints=())
            self.__dict__["uncoupled"] = bare  # in which the postures are written
            postures = [gearing.full_posture(self, p) for p in self.postures]
            return bare.replace(postures=postures) if postures else bare

    @cached_property
    def couplings_in_order(self) -> Sequence[Coupling]:
        """The couplings, each after those that its leaders follow."""
        return gearing.in_order(self.couplings)

    @cached_property
    def independent_variables(self) -> tuple[Array, ...]:
        """Places of ``q`` and ``qd`` among the variables of ``uncoupled``, two arrays."""
        return gearing.independent_variables(self)

    @cached_property
    def travel(self) -> tuple:
        """``Limits`` of every joint, or None, including those of its followers; entry 0 is None.

        Joints that follow others have no separate entry here.
        """
        return travel(self)

    @cached_property
    def position_limits(self) -> Bounds:
        """``lower, upper`` of the position variables [m or rad], (nq,) each, infinite if unlimited.

        Where joints follow a joint, its limits are those that keep all of them within theirs.
        """
        return position_limits(self)

    @cached_property
    def velocity_limits(self) -> Array:
        """Largest speed of every velocity variable [m/s or rad/s], (nv,), infinite if unlimited."""
        return velocity_limits(self)

    @cached_property
    def effort_limits(self) -> Array:
        """Largest joint force of every velocity variable [N or N·m], (nv,)."""
        return effort_limits(self)

    expand = gearing.expand
    expand_velocity = gearing.expand_velocity
    expand_acceleration = gearing.expand_acceleration
    reduce = gearing.reduce
    reduce_velocity = gearing.reduce_velocity

    # --- what algorithms walk over and keep per body ------------------------------------------

    is_general = False  # one robot: a GeneralModel stands for every one
    outward = tree.outward
    inward = tree.inward
    above = tree.above
    chain = tree.chain
    variables = tree.variables
    unit = tree.unit
    parameter_columns = tree.parameter_columns
    parameter_slice = tree.parameter_slice
    laden = cached_property(tree.laden)
    first_laden = cached_property(tree.first_laden)
    table = tree.table
    sums = tree.sums
    copied = tree.copied
    filled = tree.filled
    total = tree.total
    of_body = tree.of_body
    joined = tree.joined
    stacked = tree.stacked
    columns = tree.columns
    zeros = tree.zeros
    matrix = tree.matrix

    # --- joints ------------------------------------------------------------------------------

    def jcalc(self, i: int, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """``X_J, S, v_J, c_J`` of joint ``i`` from the joint vectors of the whole model."""
        return self.joint[i].jcalc(q[self.q_slice[i]], qd[self.v_slice[i]])

    @cached_property
    def armature(self) -> Array:
        """Armature of each velocity variable, such as rotor inertia [kg or kg·m²], (nv,)."""
        return joint_values(self, "armature")

    @cached_property
    def armature_joints(self) -> tuple[int, ...]:
        """Numbers of the joints that have armature."""
        bodies = enumerate(self.bodies, start=1)
        return tuple(i for i, b in bodies if has_dynamics(b, "armature"))

    @cached_property
    def actuation(self) -> Array:
        """Joint forces for a unit force of each actuator before its gear, (nv, n).

        So ``tau = actuation @ u`` for motors, whose force is their control; ``kt.driving_force``
        has the joint forces of all actuators, within their ranges.
        """
        return actuation(self)

    def at(self, t: float) -> "Model":
        """The model at time ``t`` [s], for time-dependent joints and constraints — RBDA §3.5."""
        if not self._can_move or all(p.joint.at(t) == p.joint for p in (*self.bodies, *self.loops)):
            return self._with_constraints_at(t) if self.is_rheonomic else self
        bodies = [replace(b, joint=b.joint.at(t)) for b in self.bodies]
        loops = [replace(loop, joint=loop.joint.at(t)) for loop in self.loops]
        constraints = [c.at(t) for c in self.constraints]
        return self.replace(bodies=bodies, loops=loops, constraints=constraints)

    @cached_property
    def _can_move(self):
        """Whether the motion of some joint depends on time."""
        still = AbstractJoint.at
        return any(type(part.joint).at is not still for part in (*self.bodies, *self.loops))

    def _with_constraints_at(self, t):
        """A copy at an instant, traced or not, that shares with this model what time leaves."""
        found, tree = object.__new__(Model), self.spanning_tree
        left = ("fingerprint", "constraints", *_COMPILED)
        found.__dict__.update({k: v for k, v in self.__dict__.items() if k not in left})
        constraints = tuple(c.at(t) for c in self.constraints)
        found.__dict__.update(constraints=constraints, spanning_tree=tree, numeric=self.numeric)
        found.__dict__["timeless"] = self.timeless
        return found

    def neutral(self) -> Array:
        """The configuration in which every joint is at its neutral position, (nq,)."""
        return manifold.neutral(self)

    def random_configuration(
        self, rng: "np.random.Generator | None" = None, count: int | None = None
    ) -> Array:
        """A random configuration, within the joint limits where they are finite, (nq,).

        ``rng`` is a NumPy random generator or a seed; ``count`` makes several configurations,
        (count, nq).
        """
        return manifold.random_configuration(self, rng, count)

    integrate = manifold.integrate
    difference = manifold.difference
    configuration_rate = manifold.configuration_rate
    normalize = manifold.normalize

    def scalar_type(self, *arrays: Any) -> np.dtype:
        """The NumPy type that can hold results of ``arrays`` with the numbers of this model."""
        return np.result_type(self._dtype, *(np.asarray(a).dtype for a in arrays))

    @cached_property
    def _dtype(self):
        numbers = [self.gravity, self.armature, np.zeros(0)]
        for b in self.bodies:
            numbers += [b.placement.E, b.placement.r, b.inertia.parameters()]
        found = np.result_type(*(n.dtype for n in numbers))
        # Springs, dampers and friction are floats, unless they are formulas or traced.
        return np.dtype(object) if found.hasobject or _has_formulas(self) else found

    # --- names -------------------------------------------------------------------------------

    def body_index(self, name: str) -> int:
        """Number of a body; the base is 0."""
        return names.body_index(self, name)

    def joint_index(self, name: str) -> int:
        """Number of a tree joint, which is the number of the body it moves."""
        return names.joint_index(self, name)

    def frame(self, name: str) -> Frame:
        """A frame by its name; every body name is also the name of the body's own frame."""
        return names.frame(self, name)

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Names of the joints that close loops."""
        return tuple(loop.name for loop in self.loops)

    def driven_joint(self, actuator: Actuator) -> str:
        """Name of the joint, of the tree or closing a loop, that an actuator drives.

        It is empty for an actuator of a tendon or a frame.
        """
        if actuator.loop:
            return self.loops[actuator.loop - 1].name
        return self.joint_names[actuator.joint - 1] if actuator.joint else ""

    def posture(self, name: str) -> Posture:
        """A posture by its name."""
        return names.posture(self, name)

    def group(self, name: str) -> Group:
        """A group of joints by its name."""
        return names.group(self, name)

    def q_indices(self, *names: str) -> Array:
        """Indices of the position variables of joints and groups in ``q``, in the order given."""
        return indices(self, names, self.q_slice)

    def v_indices(self, *names: str) -> Array:
        """Indices of the velocity variables of joints and groups in ``qd``, in the order given."""
        return indices(self, names, self.v_slice)

    def tendon(self, name: str) -> Tendon:
        """A tendon by its name."""
        return names.tendon(self, name)

    # --- change ------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything the dynamics depends on, and of the names."""
        return fingerprint(self)

    def __eq__(self, other):
        return isinstance(other, Model) and self.fingerprint == other.fingerprint

    def __hash__(self):
        return hash(self.fingerprint)

    def replace(
        self,
        *,
        inertia: "Mapping[str, Inertia] | None" = None,
        placement: Mapping[str, ArrayLike | Plucker] | None = None,
        joint: "Mapping[str, AbstractJoint] | None" = None,
        limits: Mapping | None = None,
        dynamics: Mapping | None = None,
        strict: bool | None = None,
        **fields: Any,
    ) -> "Model":
        """A copy with some parts replaced.

        Actuators of loop joints and tendons that no longer exist are removed, unless there are new
        ``actuators``; so are sensors, cameras and pairs of shapes, unless there are new
        ``sensors``, ``cameras`` or ``contact_pairs``. Controls of postures follow the names of
        the actuators.

        Args:
            inertia: new inertias by body name.
            placement: new ``X_T`` by joint name; positions (3,) and poses (4, 4) are taken, too.
            joint: new joints by joint name; loop joints count, here and below.
            limits: new limits by joint name.
            dynamics: new armature, damping and so on by joint name.
            strict: whether inertias must be physically possible; unchanged by default.
            **fields: new ``bodies``, ``frames``, ``loops``, ``constraints``, ``couplings``,
                ``geometry``, ``actuators``, ``postures``, ``gravity``, ``name``, ``base_name``,
                ``tendons``, ``gravity_compensation``, ``sensors``, ``contact_pairs``, ``groups``,
                ``cameras``, ``fluid_forces``.
        """
        unknown = set(fields) - {"bodies", *_FIELDS}
        if unknown:
            raise TypeError(
                f"Model.replace has no argument {min(unknown)!r}; it takes inertia, placement, "
                f"joint, limits, dynamics, bodies, {', '.join(_FIELDS[:-1])} and {_FIELDS[-1]}"
            )
        kept = {key: getattr(self, key) for key in _FIELDS}
        if "couplings" in fields and "postures" not in fields:  # all joints may be needed
            kept["postures"] = self.uncoupled.postures
        parts = replaced_parts(
            self,
            fields,
            inertia=inertia,
            placement=placement,
            joint=joint,
            limits=limits,
            dynamics=dynamics,
        )
        if "postures" not in fields and parts["actuators"] != self.actuators:
            kept["postures"] = fit_postures(kept["postures"], self.actuators, parts["actuators"])
        strict = self.strict if strict is None else strict
        changed = {**kept, **fields, **parts}
        if "sensors" not in fields:
            changed["sensors"] = measurable(self.sensors, changed)
        if "cameras" not in fields:
            changed["cameras"] = cameras_among(self.cameras, changed)
        return Model(strict=strict, **for_constructor(changed))

    def with_constraint(
        self,
        name: str,
        *,
        position: Callable | None = None,
        rate: Callable | None = None,
        rows: int = 1,
        unit: Any = "m",
    ) -> "Model":
        """A copy with one more user-defined constraint, see ``ConstraintFunction``."""
        more = ConstraintFunction(name, position, rate, rows, unit)
        return self.replace(constraints=(*self.constraints, more))

    def map_numbers(self, fn: Callable) -> "Model":
        """A copy with ``fn`` applied to its numbers: inertias, placements, gravity, joint dynamics.

        ``fn`` may return fractions, mpmath numbers, formulas: the algorithms then run on those.
        Integers, such as the zeros and ones of an aligned frame, are exact and kept; so are the
        parameters of joints. Rotation matrices of rounded floats are not made orthogonal.
        """
        return map_numbers(self, fn)

    def to_dict(self) -> dict:
        """The model as plain dictionaries, lists, strings and numbers, ready for JSON."""
        return serialize.to_dict(self)

    @classmethod
    def from_dict(
        cls, data: dict, *, joints: "Sequence[type[AbstractJoint]]" = (), strict: bool = True
    ) -> "Model":
        """Inverse of ``to_dict``.

        Args:
            data: the plain data.
            joints: joint classes of your own that they use.
            strict: reject physically impossible inertias instead of warning about them.
        """
        return serialize.from_dict(cls, data, joints, strict)

    def summary(self) -> str:
        """A table of the bodies with their joints and masses, as text."""
        return summary(self)

    def __repr__(self):
        parts = [("loop", self.loops), ("constraint", self.constraints)]
        parts = [(one, things) for one, things in (*parts, ("coupling", self.couplings)) if things]
        more = "".join(f", {_count(things, one, f'{one}s')}" for one, things in parts)
        bodies = _count(self.bodies, "body", "bodies")
        return f"Model({self.name!r}: {bodies}, nq={self.nq}, nv={self.nv}{more})"

    def _repr_html_(self):
        return as_html(self)


def _has_formulas(model):
    """Whether forces of joints or tendons have coefficients that are not plain numbers."""
    forces = [part.dynamics for part in (*model.bodies, *model.loops) if part.dynamics is not None]
    values = [x for d in forces for x in (*d.damping, *d.friction, *d.stiffness)]
    values += [x for t in model.tendons for x in (t.damping, t.friction, t.stiffness)]
    return any(np.asarray(x).dtype.hasobject for x in values)


def _count(things, one, many):
    return f"{len(things)} {one if len(things) == 1 else many}"


def _slices(sizes):
    """Consecutive slices of the given sizes."""
    ends = np.cumsum(sizes)
    return tuple(slice(int(e - n), int(e)) for e, n in zip(ends, sizes, strict=True))
