"""Tasks and results of ``kt.inverse_kinematics``, the function that solves them.

found = kt.inverse_kinematics(model, "tool", pose)
found = kt.inverse_kinematics(model, [kt.ik.PoseTask("tool", pose), kt.ik.PostureTask()])
found.require()  # joint positions, or an error that says why there are none
"""

from kinetree.arguments import guard_module
from kinetree.ik.solve import (
    REASONS,
    InverseKinematics,
    PoseDynamics,
    dynamics_at_pose,
    inverse_kinematics,
)
from kinetree.ik.tasks import CenterOfMassTask, OrientationTask, PoseTask, PositionTask, PostureTask

__all__ = [
    "REASONS", "CenterOfMassTask", "InverseKinematics", "OrientationTask", "PoseDynamics",
    "PoseTask", "PositionTask", "PostureTask", "dynamics_at_pose", "inverse_kinematics",
]  # fmt: skip

guard_module(__name__)
