"""Identification: what measured motion and joint forces say about the inertias of a mechanism."""

from kinetree.arguments import guard_module
from kinetree.identification.base import (
    BaseParameters,
    base_parameters,
    inertial_parameters,
    parameter_names,
)
from kinetree.identification.excitation import exciting_trajectory, fourier_trajectory
from kinetree.identification.forces import JointForces, MotorForces
from kinetree.identification.least_squares import Identification, identify

__all__ = [
    "BaseParameters", "Identification", "JointForces", "MotorForces", "base_parameters",
    "exciting_trajectory", "fourier_trajectory", "identify", "inertial_parameters",
    "parameter_names",
]  # fmt: skip

guard_module(__name__)
