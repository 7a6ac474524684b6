"""Rigid-body dynamics that reads like the book.

    import kinetree as kt

    m = kt.samples.panda()
    tau = kt.inverse_dynamics(m, q, qd, qdd)

All array functions broadcast over leading axes; see ``docs/notation.md`` for conventions.
"""

from importlib import import_module

from kinetree import joints, model, spatial
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
    pose,
    potential_energy,
    velocity,
)
from kinetree.errors import (
    InteropError,
    JointError,
    KinetreeError,
    LoopError,
    ModelError,
    ModelWarning,
    ShapeError,
    SingularError,
    SpatialTypeError,
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
    Body,
    Frame,
    Limits,
    Loop,
    MechanismGraph,
    Model,
    ModelBuilder,
    edit,
    from_arrays,
    from_dh,
    from_poe,
    shapes,
)
from kinetree.spatial import Force, Inertia, Motion, Plucker, rotx, roty, rotz, xlt

__version__ = "0.1.0"

_ON_DEMAND = ("algorithms", "counting", "interop", "samples")


def __getattr__(name):
    """Submodules that most programs do not need, loaded when they are asked for."""
    if name in _ON_DEMAND:
        return import_module(f"kinetree.{name}")
    raise AttributeError(f"module 'kinetree' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_ON_DEMAND])


__all__ = [
    "AbstractJoint",
    "Body",
    "CustomJoint",
    "Cylindrical",
    "Euler",
    "Exponential",
    "Fixed",
    "Force",
    "Frame",
    "Free",
    "Helical",
    "Inertia",
    "InteropError",
    "JointError",
    "KinetreeError",
    "Limits",
    "Loop",
    "LoopError",
    "MechanismGraph",
    "Model",
    "ModelBuilder",
    "ModelError",
    "ModelWarning",
    "Motion",
    "Planar",
    "Plucker",
    "Prescribed",
    "Prismatic",
    "RackAndPinion",
    "Reversed",
    "Revolute",
    "Screw",
    "ShapeError",
    "SingularError",
    "SpatialTypeError",
    "SphereInCylinder",
    "Spherical",
    "Translation",
    "Universal",
    "UnknownNameError",
    "acceleration",
    "bias_force",
    "center_of_mass",
    "check_joint",
    "christoffel",
    "coriolis_matrix",
    "edit",
    "forward_dynamics",
    "from_arrays",
    "from_dh",
    "from_poe",
    "gravity_force",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_rate",
    "joints",
    "kinetic_energy",
    "mass_matrix",
    "model",
    "momentum",
    "operational_space_inertia",
    "pose",
    "potential_energy",
    "rotx",
    "roty",
    "rotz",
    "shapes",
    "spatial",
    "velocity",
    "xlt",
]
