"""Inverse kinematics: joint positions that bring the tool to a place."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
found = kt.inverse_kinematics(m, "tool", [0.4, 0.2, 0.3])  # a position; a pose (4, 4) works, too
print(found)
print("q =", found.q.round(3), "brings the tool to", kt.pose(m, found.q, "tool")[:3, 3].round(6))

pose = kt.pose(m, [0.3, 0.5, 0.9, 0.2], "tool")
found = kt.inverse_kinematics(m, "tool", pose)
print(found)
print("errors of the pose:", found.error < 1e-8)

far = kt.inverse_kinematics(m, "tool", [2.0, 0.0, 0.5])  # never a false success
print(far)
try:
    far.require()
except kt.KinetreeError as error:
    print(error)

line = np.linspace([0.4, -0.3, 0.3], [0.4, 0.3, 0.3], 50)  # many targets at once
print(kt.inverse_kinematics(m, "tool", line))
