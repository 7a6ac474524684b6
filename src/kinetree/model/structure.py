"""The tree of a model with its joints, loops and constraints, as algorithms walk over it."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kinetree.arrays.kinds import Array
from kinetree.model import gearing, tree
from kinetree.model.cameras import Camera
from kinetree.model.constraint_function import ConstraintFunction
from kinetree.model.coupling import GravityCompensation
from kinetree.model.fluid import FluidForce
from kinetree.model.geometry import ContactPair, Geometry
from kinetree.model.names import Group, Joints
from kinetree.model.parts import Actuator, Body, Coupling, Frame, Loop, Posture
from kinetree.model.sensors import Sensor
from kinetree.model.tendon import Tendon
from kinetree.spatial import Motion, Plucker

if TYPE_CHECKING:
    from kinetree.model.model import Model


class ModelStructure:
    """Bodies, joints, loops and constraints of a model, and the walks over them."""

    name: str
    base_name: str
    strict: bool
    bodies: tuple[Body, ...]
    frames: tuple[Frame, ...]
    loops: tuple[Loop, ...]
    constraints: tuple[ConstraintFunction, ...]
    couplings: tuple[Coupling, ...]
    geometry: tuple[Geometry, ...]
    actuators: tuple[Actuator, ...]
    postures: tuple[Posture, ...]
    tendons: tuple[Tendon, ...]
    fluid_forces: tuple[FluidForce, ...]
    gravity_compensation: tuple[GravityCompensation, ...]
    contact_pairs: tuple[ContactPair, ...]
    cameras: tuple[Camera, ...]
    sensors: tuple[Sensor, ...]
    groups: tuple[Group, ...]
    gravity: Array
    parent: tuple[int, ...]
    joint: Joints
    tree_transform: tuple[Any, ...]
    inertia: tuple[Any, ...]
    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    q_slice: tuple[slice, ...]
    v_slice: tuple[slice, ...]
    nq: int
    nv: int
    numeric: "Model"
    spanning_tree: "Model"
    replace: Callable[..., "Model"]
    zero_velocity: Array
    zero_motion: Motion
    identity_transform: Plucker

    @property
    def body_count(self) -> int:
        """Number N_B of moving bodies."""
        return len(self.bodies)

    @property
    def total_mass(self) -> Any:
        """Mass of all moving bodies [kg]."""
        return sum(b.inertia.mass for b in self.bodies)

    @cached_property
    def children(self) -> tuple:
        """Children μ(i) of every body."""
        return tree.children(self.parent)

    @cached_property
    def support(self) -> tuple:
        """Support κ(i) of every body: the joints between it and the base."""
        return tree.supports(self.parent)

    @cached_property
    def subtree(self) -> tuple:
        """Subtree ν(i) of every body: itself and all bodies beyond."""
        return tree.subtrees(self.parent)

    @cached_property
    def expanded_parent(self) -> tuple[int, ...]:
        """Expanded parent array λ′ over velocity variables; -1 for none — RBDA Table 6.4."""
        if self.couplings:
            return gearing.coupled_parent(self)
        return tree.expanded_parent(self.parent, [0, *(b.joint.nv for b in self.bodies)])

    # --- constraints -------------------------------------------------------------------------

    @property
    def is_constrained(self) -> bool:
        """Whether there are loops or user-defined constraints."""
        return bool(self.loops or self.constraints)

    @property
    def a_g(self) -> Motion:
        """Gravity as a spatial acceleration."""
        return Motion(self.zero_motion.angular, self.gravity)

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
    copy_table = tree.copy_table
    fill_table = tree.fill_table
    total = tree.total
    of_body = tree.of_body
    join_rows = tree.join_rows
    stack_rows = tree.stack_rows
    columns = tree.columns
    zeros = tree.zeros
    matrix = tree.matrix

    def jcalc(self, i: int, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, axes, velocity and velocity product ``X_J, S, v_J, c_J`` of joint ``i``."""
        return self.joint[i].jcalc(q[self.q_slice[i]], qd[self.v_slice[i]])
