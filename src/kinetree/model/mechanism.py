"""Mechanisms as they are found: bodies, and joints between any two of them — RBDA §4.1.

A kinematic tree needs every joint to point away from the base and every body frame to sit on a
joint. ``MechanismGraph`` needs neither: it chooses a spanning tree, turns joints round, moves
body frames and closes loops, and hands over a ``Model`` of the same mechanism.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint, Free
from kinetree.joints.reversed import Reversed
from kinetree.model.arrays import as_model
from kinetree.model.attachments import Attachments
from kinetree.model.constraint_function import require_none_moved
from kinetree.model.graph import ConnectivityGraph, SpanningTree, best_tree, importance
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.names import number_of
from kinetree.model.numbering import Numbering
from kinetree.model.parts import Body, Frame, JointDynamics, Limits, Loop, as_placement, is_identity
from kinetree.model.validate import check_inertia_type, check_joint_type
from kinetree.spatial import Inertia, Plucker
from kinetree.spelling import explains_methods


@dataclass(frozen=True)
class Arc:
    """A joint between two bodies, at ``X_P`` and ``X_S`` of theirs; either may be the base."""

    name: str
    joint: AbstractJoint
    predecessor: str
    successor: str
    X_P: Plucker
    X_S: Plucker
    limits: Limits | None
    dynamics: JointDynamics | None


@explains_methods
class MechanismGraph(Attachments):
    """Collects bodies and joints in any order and direction. Every call returns the graph.

        slider_crank = (
            kt.model.MechanismGraph("slider-crank")
            .body("crank", inertia=...).body("rod", inertia=...).body("piston", inertia=...)
            .joint("main", kt.Revolute("y"), predecessor="base", successor="crank")
            .joint("big end", kt.Revolute("y"), predecessor="crank", successor="rod", at=...)
            .joint("small end", kt.Revolute("y"), predecessor="piston", successor="rod",
                   successor_at=(0.3, 0, 0))
            .joint("cylinder", kt.Prismatic("x"), predecessor="base", successor="piston")
            .to_model()
        )

    There is exactly one base, under the name ``base_name``, for everything that never moves.
    """

    def __init__(
        self,
        name: str = "mechanism",
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        base_name: str = "base",
    ):
        super().__init__()
        self._name, self._gravity = name, gravity
        self._bodies: dict[str, Inertia] = {base_name: Inertia.zero()}
        self._joints: list[Arc] = []
        self._frames: list[tuple] = []

    @classmethod
    def from_model(cls, model: Model) -> "MechanismGraph":
        """Connectivity graph of a model, in which loop joints are like any other."""
        return cls(model.name, gravity=model.gravity, base_name=model.base_name).add_model(model)

    def body(self, name: str, *, inertia: Inertia | None = None) -> "MechanismGraph":
        """Add a moving body; ``inertia`` is in the coordinates of any frame fixed to the body."""
        if name in self._bodies:
            first = name == self.base_name
            what = "the base, and there is exactly one" if first else "already there"
            raise ModelError(f"body {name!r} is {what}; choose another name")
        inertia = Inertia.zero() if inertia is None else inertia
        check_inertia_type(inertia, f"inertia of body {name!r}")
        self._bodies[name] = inertia
        return self

    def joint(
        self,
        name: str,
        joint: AbstractJoint,
        *,
        predecessor: str,
        successor: str,
        at: ArrayLike | Plucker | None = None,
        successor_at: ArrayLike | Plucker | None = None,
        limits: Limits | None = None,
        dynamics: JointDynamics | None = None,
    ) -> "MechanismGraph":
        """Add a joint between two bodies at given placements.

        Args:
            name: unique name of the joint.
            joint: its variables are the motion of the successor relative to the predecessor.
            predecessor: body that carries the joint's predecessor frame.
            successor: body that carries the joint's successor frame.
            at: where, on the predecessor: position (3,) [m], pose (4, 4) or ``Plucker``.
            successor_at: where, on the successor.
            limits: bounds of the joint.
            dynamics: armature, damping, friction and spring of the joint.
        """
        check_joint_type(joint, f"joint {name!r}")
        X_P, X_S = as_placement(at), as_placement(successor_at)
        self._joints.append(Arc(name, joint, predecessor, successor, X_P, X_S, limits, dynamics))
        return self

    def frame(
        self, name: str, *, on: str, at: ArrayLike | Plucker | None = None
    ) -> "MechanismGraph":
        """Add a named frame, fixed to the body ``on`` at a position (3,), pose or ``Plucker``."""
        self._frames.append((name, on, as_placement(at)))
        return self

    def add_model(self, model: Model, *, without: Sequence[str] = ()) -> "MechanismGraph":
        """Add everything a model has, on the same base, except the joints ``without``.

        Joints named in ``without`` are left out, with their couplings, actuators and positions.
        """
        names = as_model(model).body_names
        require_none_moved(model)
        for name in without:
            _check_known(
                name, (*model.joint_names, *(j.name for j in model.loops)), "joint to omit"
            )
        for b in model.bodies:
            self.body(b.name, inertia=b.inertia)
        for b in model.bodies:
            if b.joint_name not in without:
                self.joint(
                    b.joint_name,
                    b.joint,
                    predecessor=names[b.parent],
                    successor=b.name,
                    at=b.placement,
                    limits=b.limits,
                    dynamics=b.dynamics,
                )
        for loop in model.loops:
            if loop.name not in without:
                self.joint(
                    loop.name,
                    loop.joint,
                    predecessor=names[loop.predecessor],
                    successor=names[loop.successor],
                    at=loop.predecessor_placement,
                    successor_at=loop.successor_placement,
                    limits=loop.limits,
                    dynamics=loop.dynamics,
                )
        for f in model.frames:
            self.frame(f.name, on=names[f.body], at=f.placement)
        self._add_attachments(model, without)
        return self

    def float_unconnected(self, *bodies: str) -> Any:
        """Connect each part of the mechanism that is not connected to the base by a free joint.

        Such joints constrain nothing; they supply the variables that say where the part is. Each
        part floats on one of ``bodies``, or on the body that was added first, by a joint called
        ``<body>_floating`` — RBDA §4.1.
        """
        for name in bodies:
            self._check_body(name, "floating body")
        for part in self.connectivity().components()[1:]:
            names = [self.body_names[k] for k in part]
            floating = next((name for name in bodies if name in names), names[0])
            ends = {"predecessor": self.base_name, "successor": floating}
            self.joint(f"{floating}_floating", Free(), **ends)
        return self

    @property
    def base_name(self) -> str:
        """Name of the mechanism's fixed base."""
        return self.body_names[0]

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of all bodies in the order they were added, the base first."""
        return tuple(self._bodies)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all joints in the order they were added."""
        return tuple(j.name for j in self._joints)

    def connectivity(self) -> ConnectivityGraph:
        """The graph of bodies and joints, by number."""
        arcs, number = [], {name: k for k, name in enumerate(self._bodies)}
        for j in self._joints:
            for end in ("predecessor", "successor"):
                if getattr(j, end) not in number:
                    self._check_body(getattr(j, end), f"{end} of joint {j.name!r}")
            if j.predecessor == j.successor:
                raise ModelError(f"joint {j.name!r} connects body {j.predecessor!r} to itself")
            arcs.append((number[j.predecessor], number[j.successor]))
        return ConnectivityGraph(len(self._bodies), tuple(arcs))

    def spanning_tree(self, tree_joints: Sequence[str] | None = None) -> SpanningTree:
        """Spanning tree and numbering that ``to_model`` will use."""
        graph = self.connectivity()
        apart = graph.components()[1:]
        if apart:
            names = ", ".join(repr(self.body_names[k]) for k in apart[0])
            raise ModelError(
                f"nothing connects {names} to the base {self.base_name!r}; add the missing joint, "
                f"or call float_unconnected() for parts that fly"
            )
        if tree_joints is None:
            levels = importance(self._joints, *self._attached_joints())
            return graph.spanning_tree(best_tree(graph, levels, [j.joint.nv for j in self._joints]))
        known = self.joint_names
        number = {name: k for k, name in reversed([*enumerate(known)])}
        for name in tree_joints:
            if name not in number:
                _check_known(name, known, "tree joint")
        return graph.spanning_tree([number[name] for name in tree_joints])

    def to_model(self, tree_joints: Sequence[str] | None = None, *, strict: bool = True) -> Model:
        """Model of the mechanism, with a spanning tree of important joints or the given one.

        A body's frame becomes the frame of the joint that carries it. Where that is not the frame
        in which the body was described, the latter stays, as a frame called ``<body>_link``.

        Args:
            tree_joints: names of the joints of the spanning tree; by default a tree in which
                joints that are driven, sprung, damped or limited have variables where possible,
                and bodies are as few joints away from the base as that allows.
            strict: reject physically impossible inertias instead of warning about them.
        """
        tree = self.spanning_tree(tree_joints)
        described, forward = self.body_names, tree.forward
        names = [described[k] for k in tree.bodies]
        new = {name: i for i, name in enumerate(names)}
        joints = [None, *(self._joints[k] for k in tree.joints[1:])]
        Y = [Plucker.identity()]  # from the frame a body was described in to its frame in the tree
        bodies, frames, loops = [], [], []
        for i, parent in enumerate(tree.parent[1:], start=1):
            j = joints[i]
            near, far = (j.X_P, j.X_S) if forward[i] else (j.X_S, j.X_P)
            joint = j.joint if forward[i] else reversed_joint(j.joint)
            placement, inertia = near @ Y[parent].inverse(), self._bodies[names[i]]
            if not is_identity(far):
                inertia = inertia.transformed(far)
            of_joint = (j.name, j.limits, j.dynamics if forward[i] else turned_drive(j.dynamics))
            bodies.append(Body(names[i], parent, joint, placement, inertia, *of_joint))
            Y.append(far)

        for i in tree.chords:
            j, p, s = joints[i], tree.predecessor[i], tree.successor[i]
            X_P, X_S = j.X_P @ Y[p].inverse(), j.X_S @ Y[s].inverse()
            loops.append(Loop(j.name, p, s, j.joint, X_P, X_S, j.limits, j.dynamics))

        for name, on, at in self._frames:
            self._check_body(on, f"body of frame {name!r}")
            i = new[on]
            frames.append(Frame(name, i, at @ Y[i].inverse()))
        taken = {f.name for f in frames} | set(names)
        for i, name in enumerate(names):
            if not is_identity(Y[i]) and f"{name}_link" not in taken:
                frames.append(Frame(f"{name}_link", i, Y[i].inverse()))

        def number(name, role):
            self._check_body(self.base_name if name is None else name, role)
            i = 0 if name is None else new[name]
            return i, None if is_identity(Y[i]) else Y[i]

        loop_names = [loop.name for loop in loops]
        known = Numbering(bodies, loop_names, number, self.joint_names, "mechanism")
        return Model(
            tuple(bodies),
            frames=tuple(frames),
            loops=tuple(loops),
            **self._model_fields(known),
            gravity=self._gravity,
            name=self._name,
            base_name=self.base_name,
            strict=strict,
        )

    def _check_body(self, name, role):
        """Raise ModelError unless there is a body of this name."""
        if not isinstance(name, str) or name not in self._bodies:
            _check_known(name, self.body_names, role)


def reversed_joint(joint):
    """Joint with predecessor and successor exchanged — RBDA §4.1.3, Table 4.2."""
    return joint.joint if isinstance(joint, Reversed) else Reversed(joint)


def turned_drive(dynamics):
    """Dynamics of a joint with exchanged bodies: its drive acts on the other side."""
    if dynamics is None or not dynamics.drive:
        return dynamics
    p, s = dynamics.active_predecessor, dynamics.active_successor
    return replace(dynamics, active_predecessor=s, active_successor=p)


def _check_known(name, names, role):
    """Raise ModelError, with suggestions, for an unknown name."""
    number_of(name, names, role, "mechanism")
