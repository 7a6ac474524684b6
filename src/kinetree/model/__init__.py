"""Models of mechanisms: bodies, joints, frames, limits, geometry — RBDA chapter 4."""

from kinetree.arguments import guard_module
from kinetree.model import geometry, shapes, views
from kinetree.model.builder import ModelBuilder, from_arrays
from kinetree.model.cameras import Camera, camera
from kinetree.model.constraint_function import ConstraintFunction
from kinetree.model.coupling import GravityCompensation
from kinetree.model.dh import DHRow, DHTable, dh_from_axes, dh_from_model, from_dh
from kinetree.model.edit import attach, extract, floating, lock, lump_fixed, reroot
from kinetree.model.fluid import FluidForce
from kinetree.model.graph import ConnectivityGraph, SpanningTree
from kinetree.model.mechanism import MechanismGraph
from kinetree.model.model import Model
from kinetree.model.muscle import Muscle
from kinetree.model.names import Group
from kinetree.model.parts import (
    Actuator,
    Body,
    Coupling,
    Frame,
    JointDynamics,
    Limits,
    Loop,
    Posture,
)
from kinetree.model.poe import from_poe, to_poe
from kinetree.model.sensors import Sensor
from kinetree.model.tendon import Pulley, Tendon, Wrap

__all__ = [
    "Actuator", "Body", "Camera", "ConnectivityGraph", "ConstraintFunction", "Coupling", "DHRow",
    "DHTable", "FluidForce", "Frame", "GravityCompensation", "Group", "JointDynamics", "Limits",
    "Loop", "MechanismGraph", "Model", "ModelBuilder", "Muscle", "Posture", "Pulley", "Sensor",
    "SpanningTree", "Tendon", "Wrap", "attach", "camera", "dh_from_axes", "dh_from_model",
    "extract", "floating", "from_arrays", "from_dh", "from_poe", "geometry", "lock", "lump_fixed",
    "reroot", "shapes", "to_poe", "views",
]  # fmt: skip

guard_module(__name__)
