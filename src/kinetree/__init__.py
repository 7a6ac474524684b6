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
from kinetree.errors import (
    ArrayKindError,
    AssemblyError,
    CacheWarning,
    ContactError,
    DeviceError,
    DeviceMemoryError,
    EquilibriumError,
    ExcitationError,
    ExcitationWarning,
    IdentifiabilityError,
    ImpactError,
    InfeasibleContactError,
    InteropError,
    JointError,
    KinetreeError,
    LoadError,
    LoopError,
    MisalignmentWarning,
    MissingPackageError,
    ModelError,
    ModelWarning,
    PainleveError,
    PickleError,
    ShapeError,
    SimulationError,
    SimulationWarning,
    SingularError,
    SingularityWarning,
    SpatialTypeError,
    SweepError,
    SweepWarning,
    TraceError,
    UnknownNameError,
    UnreachableError,
    ViewError,
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
from kinetree.quantities.cartesian import (
    applied_force,
    cartesian_forces,
    forces_of_joint_torques,
    generalized_velocity,
    joint_torques,
)
from kinetree.quantities.centroidal import (
    center_of_mass,
    center_of_mass_acceleration,
    center_of_mass_jacobian,
    center_of_mass_jacobian_rate,
    center_of_mass_velocity,
    centroidal_inertia,
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
    centroidal_momentum_matrix_rate,
    centroidal_momentum_rate,
    momentum,
    zero_moment_point,
)
from kinetree.quantities.dynamics import (
    bias_force,
    christoffel,
    coriolis_matrix,
    forward_dynamics,
    gravity_force,
    inverse_dynamics,
    inverse_mass_matrix,
    kinetic_energy,
    mass_matrix,
    passive_force,
    potential_energy,
)
from kinetree.quantities.hybrid import hybrid_dynamics, hybrid_response
from kinetree.quantities.kinematics import (
    acceleration,
    bias_acceleration,
    hessian,
    jacobian,
    jacobian_rate,
    jacobians,
    pose,
    poses,
    velocity,
)
from kinetree.quantities.lagrangian import (
    generalized_force,
    generalized_momentum,
    kinetic_energy_rate,
    mass_matrix_rate,
    potential_energy_rate,
    power_balance,
)
from kinetree.quantities.regressors import (
    energy_regressor,
    kinetic_energy_regressor,
    momentum_regressor,
    potential_energy_regressor,
    regressor,
)
from kinetree.quantities.support import support_margin
from kinetree.quantities.task_space import (
    dynamically_consistent_inverse,
    inverse_operational_space_inertia,
    null_space_projector,
    operational_space_bias,
    operational_space_dynamics,
    operational_space_gravity,
    operational_space_inertia,
    task_freedom,
    task_space_forward_dynamics,
    task_space_inverse_dynamics,
)
from kinetree.spatial import Force, Inertia, Motion, Plucker, rotx, roty, rotz, xlt

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kinetree.control.linearization import linearize
    from kinetree.diagnosis.costs import operation_counts
    from kinetree.diagnosis.health import health
    from kinetree.doctor.check import check
    from kinetree.expr.repeat import repeat
    from kinetree.functional.compiled import compile
    from kinetree.functional.differentiate import differentiate
    from kinetree.functional.export import export_c, listing, to_numpy
    from kinetree.functional.kernel import kernel, select
    from kinetree.functional.products import jvp, vjp
    from kinetree.identification import base_parameters, identify
    from kinetree.ik import inverse_kinematics
    from kinetree.integration.events import Event
    from kinetree.integration.recorded_motion import RecordedMotion
    from kinetree.loaders.load import load, loads
    from kinetree.loops.stepping.options import (
        Baumgarte,
        Charts,
        GeneralizedAlpha,
        Projection,
    )
    from kinetree.quantities.quasi_velocities import quasi_velocity_dynamics
    from kinetree.simulation.controllers import Recorded, Sampled
    from kinetree.simulation.forces.actuators import TorqueSpeed
    from kinetree.simulation.forces.applied import ExternalForce
    from kinetree.simulation.forces.friction import Friction
    from kinetree.simulation.forces.limits import RigidLimits, StiffLimits
    from kinetree.simulation.results.trajectory import Trajectory
    from kinetree.simulation.rollouts.gradient import final_state_derivatives, rollout_gradient
    from kinetree.simulation.rollouts.rollout import rollout
    from kinetree.simulation.simulate import simulate
    from kinetree.simulation.sweep.result import Sweep
    from kinetree.simulation.sweep.sweep import sweep
    from kinetree.symbolic import equations_of_motion
    from kinetree.viewer.show import view
    from kinetree.writers.save import save

# What not every program needs is loaded when it is asked for: submodules, and functions by module.
_ON_DEMAND = {
    name: name
    for name in (
        "algorithms",
        "contact",
        "control",
        "doctor",
        "identification",
        "ik",
        "interop",
        "loaders",
        "loops",
        "plot",
        "quantities",
        "samples",
        "simulation",
        "symbolic",
        "textbook",
        "viewer",
        "writers",
    )
} | {
    "counting": "expr.counting",
    "equivalence": "diagnosis.equivalence",
    "floating": "floating",
    "gears": "quantities.gears",
}
_FUNCTIONS = {
    "Projection": "loops.stepping.options",
    "GeneralizedAlpha": "loops.stepping.options",
    "Charts": "loops.stepping.options",
    "Baumgarte": "loops.stepping.options",
    "base_parameters": "identification",
    "check": "doctor.check",
    "compile": "functional.compiled",
    "differentiate": "functional.differentiate",
    "equations_of_motion": "symbolic",
    "Event": "integration.events",
    "export_c": "functional.export",
    "final_state_derivatives": "simulation.rollouts.gradient",
    "ExternalForce": "simulation.forces.applied",
    "Friction": "simulation.forces.friction",
    "health": "diagnosis.health",
    "identify": "identification",
    "inverse_kinematics": "ik",
    "jvp": "functional.products",
    "kernel": "functional.kernel",
    "linearize": "control.linearization",
    "listing": "functional.export",
    "load": "loaders.load",
    "loads": "loaders.load",
    "operation_counts": "diagnosis.costs",
    "quasi_velocity_dynamics": "quasi_velocities",
    "Recorded": "simulation.controllers",
    "RecordedMotion": "integration.recorded_motion",
    "repeat": "expr.repeat",
    "RigidLimits": "simulation.forces.limits",
    "rollout": "simulation.rollouts.rollout",
    "rollout_gradient": "simulation.rollouts.gradient",
    "Sampled": "simulation.controllers",
    "save": "writers.save",
    "select": "functional.kernel",
    "simulate": "simulation.simulate",
    "StiffLimits": "simulation.forces.limits",
    "Sweep": "simulation.sweep.result",
    "sweep": "simulation.sweep.sweep",
    "to_numpy": "functional.export",
    "TorqueSpeed": "simulation.forces.actuators",
    "Trajectory": "simulation.results.trajectory",
    "view": "viewer.show",
    "vjp": "functional.products",
}


def __getattr__(name):
    if name in _ON_DEMAND:
        return import_module(f"kinetree.{_ON_DEMAND[name]}")
    if name in _FUNCTIONS:
        globals()[name] = getattr(import_module(f"kinetree.{_FUNCTIONS[name]}"), name)
        return globals()[name]
    from kinetree.spelling import FUNCTIONS, name_here, suggesting

    here = name_here(name, FUNCTIONS)
    if here is not None:
        raise AttributeError(f"module 'kinetree' has no attribute {name!r}: it is kinetree.{here}")
    return suggesting("kinetree", (*__all__, *_ON_DEMAND))(name)


def __dir__():
    return sorted({*globals(), *_ON_DEMAND, *_FUNCTIONS})


__all__ = [
    "AbstractJoint",
    "Actuator",
    "ArrayKindError",
    "AssemblyError",
    "Baumgarte",
    "Body",
    "CacheWarning",
    "Charts",
    "ContactError",
    "Coupling",
    "CustomJoint",
    "Cylindrical",
    "DeviceError",
    "DeviceMemoryError",
    "EquilibriumError",
    "Euler",
    "Event",
    "ExcitationError",
    "ExcitationWarning",
    "Exponential",
    "ExternalForce",
    "Fixed",
    "Force",
    "Frame",
    "Free",
    "Friction",
    "GeneralizedAlpha",
    "Helical",
    "IdentifiabilityError",
    "ImpactError",
    "Inertia",
    "InfeasibleContactError",
    "InteropError",
    "JointDynamics",
    "JointError",
    "KinetreeError",
    "Limits",
    "LoadError",
    "Loop",
    "LoopError",
    "MechanismGraph",
    "MisalignmentWarning",
    "MissingPackageError",
    "Model",
    "ModelBuilder",
    "ModelError",
    "ModelWarning",
    "Motion",
    "PainleveError",
    "PickleError",
    "Planar",
    "Plucker",
    "Posture",
    "Prescribed",
    "Prismatic",
    "Projection",
    "RackAndPinion",
    "Recorded",
    "RecordedMotion",
    "Reversed",
    "Revolute",
    "RigidLimits",
    "Sampled",
    "Screw",
    "ShapeError",
    "SimulationError",
    "SimulationWarning",
    "SingularError",
    "SingularityWarning",
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
    "UnreachableError",
    "ViewError",
    "acceleration",
    "applied_force",
    "base_parameters",
    "bias_acceleration",
    "bias_force",
    "cartesian_forces",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_jacobian_rate",
    "center_of_mass_velocity",
    "centroidal_inertia",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "centroidal_momentum_rate",
    "check",
    "check_joint",
    "christoffel",
    "compile",
    "coriolis_matrix",
    "differentiate",
    "dynamically_consistent_inverse",
    "edit",
    "energy_regressor",
    "equations_of_motion",
    "export_c",
    "final_state_derivatives",
    "forces_of_joint_torques",
    "forward_dynamics",
    "from_arrays",
    "from_dh",
    "from_poe",
    "generalized_force",
    "generalized_momentum",
    "generalized_velocity",
    "geometry",
    "gravity_force",
    "health",
    "hessian",
    "hybrid_dynamics",
    "hybrid_response",
    "identify",
    "inverse_dynamics",
    "inverse_kinematics",
    "inverse_mass_matrix",
    "inverse_operational_space_inertia",
    "jacobian",
    "jacobian_rate",
    "jacobians",
    "joint_torques",
    "joints",
    "jvp",
    "kernel",
    "kinetic_energy",
    "kinetic_energy_rate",
    "kinetic_energy_regressor",
    "linearize",
    "listing",
    "load",
    "loads",
    "mass_matrix",
    "mass_matrix_rate",
    "model",
    "momentum",
    "momentum_regressor",
    "null_space_projector",
    "operation_counts",
    "operational_space_bias",
    "operational_space_dynamics",
    "operational_space_gravity",
    "operational_space_inertia",
    "passive_force",
    "pose",
    "poses",
    "potential_energy",
    "potential_energy_rate",
    "potential_energy_regressor",
    "power_balance",
    "quasi_velocity_dynamics",
    "regressor",
    "repeat",
    "rollout",
    "rollout_gradient",
    "rotx",
    "roty",
    "rotz",
    "save",
    "select",
    "set_threads",
    "shapes",
    "simulate",
    "spatial",
    "support_margin",
    "sweep",
    "task_freedom",
    "task_space_forward_dynamics",
    "task_space_inverse_dynamics",
    "threads",
    "to_numpy",
    "velocity",
    "view",
    "vjp",
    "xlt",
    "zero_moment_point",
]
