"""Building a model, body by body, in any order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint, Fixed, Helical, Prismatic, Revolute
from kinetree.model.attachments import Attachments
from kinetree.model.constraint_function import ConstraintFunction
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.names import number_names, number_of
from kinetree.model.numbering import Numbering
from kinetree.model.parts import Body, Frame, JointDynamics, Limits, Loop, as_placement
from kinetree.model.tree import check_parents, regular_order
from kinetree.spatial import Inertia
from kinetree.spelling import explains, explains_methods

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


@explains_methods
class ModelBuilder(Attachments):
    """Collects the parts, then builds the model. Every call returns the builder.

        arm = (
            kt.ModelBuilder("arm")
            .body("upper", on="base", joint=kt.Revolute("y"), at=(0, 0, 0.4), inertia=...)
            .body("fore", on="upper", joint=kt.Revolute("y"), at=(0, 0, 0.3), inertia=...)
            .frame("tool", on="fore", at=(0, 0, 0.25))
            .build()
        )

    Bodies are numbered in the order in which they are added, but parents before children.
    """

    def __init__(
        self,
        name: str = "mechanism",
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        base_name: str = "base",
    ):
        super().__init__()
        self._name, self._gravity, self._base_name = name, gravity, base_name
        self._bodies: list[dict] = []
        self._frames: list[tuple] = []
        self._loops: list[tuple] = []
        self._constraints: list[ConstraintFunction] = []

    def __repr__(self):
        many = f"{len(self._bodies)} {'body' if len(self._bodies) == 1 else 'bodies'}"
        return f"<ModelBuilder of {self._name!r}: {many}, {len(self._loops)} loops; build() it>"

    def body(
        self,
        name: str,
        *,
        joint: AbstractJoint,
        on: str | None = None,
        at: "ArrayLike | Plucker | None" = None,
        inertia: Inertia | None = None,
        joint_name: str | None = None,
        limits: Limits | None = None,
        dynamics: JointDynamics | None = None,
    ) -> "ModelBuilder":
        """Add a moving body, connected by ``joint`` to the body ``on``.

        Args:
            name: unique name of the body.
            joint: the joint between the two; the body's frame is the far side of it.
            on: name of the parent body; the base by default.
            at: placement of the joint on the parent: a position (3,) [m], a pose (4, 4) such as
                ``kt.pose`` returns, or a ``Plucker``; so in all calls of the builder.
            inertia: inertia in body coordinates; massless by default.
            joint_name: name of the joint; by default that of the body followed by ``_joint``.
            limits: bounds of the joint.
            dynamics: armature, damping, friction and spring of the joint.
        """
        self._bodies.append(
            {
                "name": name,
                "parent": on,
                "joint": joint,
                "placement": as_placement(at),
                "inertia": Inertia.zero() if inertia is None else inertia,
                "joint_name": f"{name}_joint" if joint_name is None else joint_name,
                "limits": limits,
                "dynamics": dynamics,
            }
        )
        return self

    def frame(
        self, name: str, *, on: str | None = None, at: "ArrayLike | Plucker | None" = None
    ) -> "ModelBuilder":
        """Add a named frame, fixed to the body ``on`` at a position (3,), pose or ``Plucker``."""
        self._frames.append((name, on, as_placement(at)))
        return self

    def loop(
        self,
        name: str,
        *,
        predecessor: str,
        successor: str,
        joint: AbstractJoint | None = None,
        at: "ArrayLike | Plucker | None" = None,
        successor_at: "ArrayLike | Plucker | None" = None,
        limits: Limits | None = None,
        dynamics: JointDynamics | None = None,
        misalignment: float | None = None,
    ) -> "ModelBuilder":
        """Close a loop with a joint between two bodies.

        Args:
            name: unique name, among the joints.
            predecessor: body on the near side, carrying the joint's predecessor frame at ``at``.
            successor: body on the far side, carrying the successor frame at ``successor_at``.
            joint: any joint; fixed by default.
            at: position (3,), pose (4, 4) or ``Plucker`` on the predecessor.
            successor_at: position (3,), pose (4, 4) or ``Plucker`` on the successor.
            limits: bounds of the joint.
            dynamics: damping, friction and spring of the joint.
            misalignment: constraints that are redundant up to this error are dropped [rad, or
                fraction of the size of the loop]; None for 1e-3, 0 to keep every constraint.
        """
        joint = Fixed() if joint is None else joint
        ends = as_placement(at), as_placement(successor_at)
        others = (limits, dynamics, misalignment)
        self._loops.append((name, predecessor, successor, joint, *ends, *others))
        return self

    def constraint(
        self,
        name: str,
        *,
        position: Callable | None = None,
        rate: Callable | None = None,
        rows: int = 1,
        unit: Any = "m",
    ) -> "ModelBuilder":
        """Add a user-defined constraint: functions of ``model``, ``q``, ``qd`` and ``t``.

        Args:
            name: unique name, among the constraints.
            position: ``position(model, q, t)``, kept at zero; none for a nonholonomic constraint.
            rate: ``rate(model, q, qd, t)``, linear in ``qd``, kept at zero; the derivative of
                ``position`` by default. Both take what they need of these arguments.
            rows: number of equations.
            unit: of the position error, ``"m"`` or ``"rad"``; one for all rows, or one for each.
        """
        self._constraints.append(ConstraintFunction(name, position, rate, rows, unit))
        return self

    def build(self, *, strict: bool = True) -> Model:
        """Build the validated model from all parts."""
        names = [self._base_name, *(b["name"] for b in self._bodies)]
        given = number_names(names, "body")
        parent = [-1] + [_number(given, b["parent"], b["name"]) for b in self._bodies]
        order = regular_order(parent)
        if len(order) < len(names):
            check_parents(parent, names)  # some bodies form a cycle: says which
        new = {old: i for i, old in enumerate(order)}

        def number(name, role):
            return 0 if name is None else new[number_of(name, names, role, "builder")]

        bodies = [
            Body(**{**self._bodies[old - 1], "parent": new[parent[old]]}) for old in order[1:]
        ]
        frames = [
            Frame(name, number(on, f"body of frame {name!r}"), at) for name, on, at in self._frames
        ]
        loops = [
            Loop(
                name,
                number(predecessor, f"predecessor of loop {name!r}"),
                number(successor, f"successor of loop {name!r}"),
                *rest,
            )
            for name, predecessor, successor, *rest in self._loops
        ]
        known = Numbering(
            bodies,
            [loop.name for loop in loops],
            lambda name, role: (number(name, role), None),
            [b["joint_name"] for b in self._bodies],
            "builder",
        )
        return Model(
            tuple(bodies),
            frames=tuple(frames),
            loops=tuple(loops),
            constraints=tuple(self._constraints),
            **self._model_fields(known),
            gravity=self._gravity,
            name=self._name,
            base_name=self._base_name,
            strict=strict,
        )


def _number(given, name, child):
    """Number of a parent body by its name, 0 for the base; an error for unknown names."""
    if isinstance(name, str) and name in given:
        return given[name]
    role = f"parent of body {child!r}"
    return 0 if name is None else number_of(name, list(given), role, "builder")


@explains
def from_arrays(
    parent: Sequence[int],
    X_T: "Sequence[Plucker]",
    pitch: Sequence[float],
    inertia: Sequence[Inertia],
    *,
    name: str = "mechanism",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Model:
    """Model of revolute, prismatic and helical joints about z, from arrays — 6-D guide 2.

    Bodies are called ``body1`` … ``bodyN``.

    Args:
        parent: parent of bodies 1 … N; 0 is the base.
        X_T: transform from each parent to the joint's frame on it.
        pitch: of each joint [m/rad]; 0 makes it revolute, infinity prismatic.
        inertia: of each body.
        name: of the model.
        gravity: uniform gravitational acceleration [m/s²] in base coordinates, (3,).
    """
    sizes = [len(parent), len(X_T), len(pitch), len(inertia)]
    if len(set(sizes)) > 1:
        raise ModelError(
            f"parent, X_T, pitch and inertia must have one entry for each body, got {sizes}"
        )
    bodies = [
        Body(f"body{i}", p, _joint(h), X, I, f"body{i}_joint")
        for i, (p, X, h, I) in enumerate(zip(parent, X_T, pitch, inertia, strict=True), start=1)
    ]
    return Model(tuple(bodies), name=name, gravity=gravity)


def _joint(pitch):
    """Joint along z by its pitch: prismatic, helical or revolute."""
    if np.isinf(pitch):
        return Prismatic("z")
    return Helical("z", pitch=pitch) if pitch else Revolute("z")
