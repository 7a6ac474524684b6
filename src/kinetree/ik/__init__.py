"""Inverse kinematics: joint positions that put frames and mass centres where they belong."""

from kinetree.ik.solve import REASONS, InverseKinematics, inverse_kinematics
from kinetree.ik.tasks import (
    CenterOfMassTask,
    OrientationTask,
    PoseTask,
    PositionTask,
    PostureTask,
)

__all__ = [
    "REASONS",
    "CenterOfMassTask",
    "InverseKinematics",
    "OrientationTask",
    "PoseTask",
    "PositionTask",
    "PostureTask",
    "inverse_kinematics",
]
