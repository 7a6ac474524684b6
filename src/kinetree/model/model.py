"""The model of a mechanism: frozen, validated, hashable by content — RBDA §4.6, Table 4.3."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelWarning
from kinetree.joints.base import AbstractJoint
from kinetree.joints.fixed import Following
from kinetree.model import gearing, names, serialize
from kinetree.model.actuator import fit_postures
from kinetree.model.by_name import NamedParts
from kinetree.model.cameras import Camera, cameras_among, for_constructor
from kinetree.model.constraint_function import ConstraintFunction
from kinetree.model.coupling import GravityCompensation
from kinetree.model.describe import as_html, summary
from kinetree.model.fingerprint import fingerprint
from kinetree.model.fluid import FluidForce
from kinetree.model.geometry import ContactPair, Geometry
from kinetree.model.instants import COMPILED, ModelInstants
from kinetree.model.names import Group, Joints
from kinetree.model.parts import Actuator, Body, Coupling, Frame, Loop, Posture
from kinetree.model.replacing import map_numbers, replaced_parts
from kinetree.model.sensors import Sensor, measurable
from kinetree.model.tendon import Tendon
from kinetree.model.tendon_paths import following_tendon
from kinetree.model.validate import check_model, check_parts
from kinetree.model.variables import ModelVariables
from kinetree.spatial import Motion, Plucker
from kinetree.spelling import joins_bases

if TYPE_CHECKING:
    from kinetree.spatial import Inertia


STANDARD_GRAVITY = (0.0, 0.0, -9.81)
_FIELDS = (
    "frames", "loops", "constraints", "couplings", "geometry", "actuators", "postures", "gravity",
    "name", "base_name", "tendons", "gravity_compensation", "sensors", "contact_pairs", "groups",
    "cameras", "fluid_forces",
)  # fmt: skip


@joins_bases
class Model(ModelInstants, ModelVariables, NamedParts):
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
        """Set the laws of couplings that follow tendons."""
        with warnings.catch_warnings():  # defects of the bodies are reported once
            warnings.simplefilter("ignore", ModelWarning)
            bare = Model(
                self.bodies, frames=self.frames, base_name=self.base_name, strict=self.strict
            )
        self.couplings = tuple(
            following_tendon(c, self.tendons, bare) if c.tendon else c for c in self.couplings
        )

    def _leave_to_couplings(self):
        """Remove the variables of coupled joints from the model and its postures."""
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
        """Objects cached with this model, by ``kinetree.model.memo.remember``."""
        return {}

    @cached_property
    def numeric(self) -> "Model":
        """Model whose numeric parameters decide ranks and elimination orders: itself.

        For a copy with traced parameters, it is the original model.
        """
        return self

    def decided_by(self, other: "Model") -> "Model":
        """Mark the model so that ``other``'s numbers decide its ranks and elimination orders."""
        self.__dict__["numeric"] = other.numeric
        return self

    report: tuple = ()
    """What the file of the model says and the model does not represent; see ``kinetree.load``."""

    def with_report(self, notices: tuple) -> "Model":
        """Model with the notices of its loader as its ``report``."""
        self.__dict__["report"] = notices
        return self

    def __getstate__(self):
        """Everything but compiled code, which does not travel."""
        return {name: value for name, value in self.__dict__.items() if name not in COMPILED}

    @cached_property
    def spanning_tree(self) -> "Model":
        """Model without loops and constraints; itself if it has none."""
        return self.replace(loops=(), constraints=()) if self.is_constrained else self

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 digest of the model's names, structure and parameters."""
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
        """Copy of the model with some parts replaced.

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
        """Copy of the model with one more user-defined constraint, see ``ConstraintFunction``."""
        more = ConstraintFunction(name, position, rate, rows, unit)
        return self.replace(constraints=(*self.constraints, more))

    def map_numbers(self, fn: Callable) -> "Model":
        """Copy of the model with ``fn`` applied to its inertias, placements, gravity, dynamics.

        ``fn`` may return fractions, mpmath numbers, formulas: the algorithms then run on those.
        Integers, such as the zeros and ones of an aligned frame, are exact and kept; so are the
        parameters of joints. Rotation matrices of rounded floats are not made orthogonal.
        """
        return map_numbers(self, fn)

    def to_dict(self) -> dict:
        """Model as plain dictionaries, lists, strings and numbers, ready for JSON."""
        return serialize.to_dict(self)

    @classmethod
    def from_dict(
        cls, data: dict, *, joints: "Sequence[type[AbstractJoint]]" = (), strict: bool = True
    ) -> "Model":
        """Model from the dictionaries of ``to_dict``.

        Args:
            data: the plain data.
            joints: joint classes of your own that they use.
            strict: reject physically impossible inertias instead of warning about them.
        """
        return serialize.from_dict(cls, data, joints, strict)

    def summary(self) -> str:
        """Text table of the bodies with their joints and masses."""
        return summary(self)

    def __repr__(self):
        parts = [("loop", self.loops), ("constraint", self.constraints)]
        parts = [(one, things) for one, things in (*parts, ("coupling", self.couplings)) if things]
        more = "".join(f", {_count(things, one, f'{one}s')}" for one, things in parts)
        bodies = _count(self.bodies, "body", "bodies")
        return f"Model({self.name!r}: {bodies}, nq={self.nq}, nv={self.nv}{more})"

    def _repr_html_(self):
        """Description for notebooks."""
        return as_html(self)


def _count(things, one, many):
    """Count with a noun in singular or plural."""
    return f"{len(things)} {one if len(things) == 1 else many}"


def _slices(sizes):
    """Consecutive slices of the given sizes."""
    ends = np.cumsum(sizes)
    return tuple(slice(int(e - n), int(e)) for e, n in zip(ends, sizes, strict=True))
