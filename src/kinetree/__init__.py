"""Rigid-body dynamics that reads like the book.

    import kinetree as kt

    m = kt.samples.panda()
    tau = kt.inverse_dynamics(m, q, qd, qdd)

All array functions broadcast over leading axes; see ``docs/notation.md`` for conventions.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kinetree import joints, model, spatial
from kinetree.codegen.runtime.threads import set_threads, threads
from kinetree.dynamics import (
    acceleration,
    bias_force,
    center_of_mass,
    christoffel,
    coriolis_matrix,
    forward_dynamics,
    gravity_force,
    inverse_dynamics,
    inverse_mass_matrix,
    jacobian,
    jacobian_rate,
    kinetic_energy,
    mass_matrix,
    momentum,
    operational_space_inertia,
    passive_force,
    pose,
    potential_energy,
    velocity,
)
from kinetree.errors import (
    CacheWarning,
    InteropError,
    JointError,
    KinetreeError,
    LoadError,
    LoopError,
    MissingPackageError,
    ModelError,
    ModelWarning,
    ShapeError,
    SimulationError,
    SimulationWarning,
    SingularError,
    SpatialTypeError,
    SweepError,
    SweepWarning,
    TraceError,
    UnknownNameError,
)
from kinetree.joints import (
    AbstractJoint,
    CustomJoint,
    Cylindrical,
    Euler,
    Exponential,
    Fixed,
    Free,
    Helical,
    Planar,
    Prescribed,
    Prismatic,
    RackAndPinion,
    Reversed,
    Revolute,
    Screw,
    SphereInCylinder,
    Spherical,
    Translation,
    Universal,
    check_joint,
)
from kinetree.model import (
    Actuator,
    Body,
    Coupling,
    Frame,
    JointDynamics,
    Limits,
    Loop,
    MechanismGraph,
    Model,
    ModelBuilder,
    Posture,
    edit,
    from_arrays,
    from_dh,
    from_poe,
    geometry,
    shapes,
)
from kinetree.spatial import Force, Inertia, Motion, Plucker, rotx, roty, rotz, xlt

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kinetree.doctor.check import check
    from kinetree.expr.repeat import repeat
    from kinetree.functional.choose import select
    from kinetree.functional.compiled import compile
    from kinetree.functional.differentiate import differentiate
    from kinetree.functional.export import export_c, listing, to_numpy
    from kinetree.functional.kernel import kernel
    from kinetree.loaders.load import load, loads
    from kinetree.simulate.actuators import TorqueSpeed
    from kinetree.simulate.events import Event
    from kinetree.simulate.forces import ExternalForce
    from kinetree.simulate.friction import Friction
    from kinetree.simulate.inputs import Recorded, Sampled
    from kinetree.simulate.limits import RigidLimits, StiffLimits
    from kinetree.simulate.rollout import rollout
    from kinetree.simulate.simulate import simulate
    from kinetree.simulate.sweep.result import Sweep
    from kinetree.simulate.sweep.sweep import sweep
    from kinetree.simulate.trajectory import Trajectory
    from kinetree.writers.save import save

# What not every program needs is loaded when it is asked for: submodules, and functions by module.
_ON_DEMAND = (
    "algorithms", "counting", "doctor", "interop", "loaders", "samples", "simulate",
    "writers",
)  # fmt: skip
_FUNCTIONS = {
    "check": "doctor.check",
    "compile": "functional.compiled",
    "differentiate": "functional.differentiate",
    "export_c": "functional.export",
    "kernel": "functional.kernel",
    "listing": "functional.export",
    "load": "loaders.load",
    "loads": "loaders.load",
    "repeat": "expr.repeat",
    "rollout": "simulate.rollout",
    "save": "writers.save",
    "select": "functional.choose",
    "Sweep": "simulate.sweep.result",
    "sweep": "simulate.sweep.sweep",
    "Trajectory": "simulate.trajectory",
    "to_numpy": "functional.export",
    "Event": "simulate.events",
    "ExternalForce": "simulate.forces",
    "Friction": "simulate.friction",
    "Recorded": "simulate.inputs",
    "RigidLimits": "simulate.limits",
    "Sampled": "simulate.inputs",
    "StiffLimits": "simulate.limits",
    "TorqueSpeed": "simulate.actuators",
}


def __getattr__(name):
    if name in _ON_DEMAND:
        return import_module(f"kinetree.{name}")
    if name in _FUNCTIONS:
        globals()[name] = getattr(import_module(f"kinetree.{_FUNCTIONS[name]}"), name)
        return globals()[name]
    raise AttributeError(f"module 'kinetree' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_ON_DEMAND, *_FUNCTIONS})


__all__ = [
    "AbstractJoint",
    "Actuator",
    "Body",
    "CacheWarning",
    "Coupling",
    "CustomJoint",
    "Cylindrical",
    "Euler",
    "Event",
    "Exponential",
    "ExternalForce",
    "Fixed",
    "Force",
    "Frame",
    "Free",
    "Friction",
    "Helical",
    "Inertia",
    "InteropError",
    "JointDynamics",
    "JointError",
    "KinetreeError",
    "Limits",
    "LoadError",
    "Loop",
    "LoopError",
    "MechanismGraph",
    "MissingPackageError",
    "Model",
    "ModelBuilder",
    "ModelError",
    "ModelWarning",
    "Motion",
    "Planar",
    "Plucker",
    "Posture",
    "Prescribed",
    "Prismatic",
    "RackAndPinion",
    "Recorded",
    "Reversed",
    "Revolute",
    "RigidLimits",
    "Sampled",
    "Screw",
    "ShapeError",
    "SimulationError",
    "SimulationWarning",
    "SingularError",
    "SpatialTypeError",
    "SphereInCylinder",
    "Spherical",
    "StiffLimits",
    "Sweep",
    "SweepError",
    "SweepWarning",
    "TorqueSpeed",
    "TraceError",
    "Trajectory",
    "Translation",
    "Universal",
    "UnknownNameError",
    "acceleration",
    "bias_force",
    "center_of_mass",
    "check",
    "check_joint",
    "christoffel",
    "compile",
    "coriolis_matrix",
    "differentiate",
    "edit",
    "export_c",
    "forward_dynamics",
    "from_arrays",
    "from_dh",
    "from_poe",
    "geometry",
    "gravity_force",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_rate",
    "joints",
    "kernel",
    "kinetic_energy",
    "listing",
    "load",
    "loads",
    "mass_matrix",
    "model",
    "momentum",
    "operational_space_inertia",
    "passive_force",
    "pose",
    "potential_energy",
    "repeat",
    "rollout",
    "rotx",
    "roty",
    "rotz",
    "save",
    "select",
    "set_threads",
    "shapes",
    "simulate",
    "spatial",
    "sweep",
    "threads",
    "to_numpy",
    "velocity",
    "xlt",
]
