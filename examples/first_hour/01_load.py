"""Load your own robot, and see what is in it."""

from pathlib import Path

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
print(m.summary())
print(m.report or "everything in the file is in the model")

q = m.neutral()  # or np.zeros(m.nq), for joints that turn and slide
q[m.joint_names.index("elbow")] = 0.5
print("the tool is at", kt.pose(m, q, "tool")[:3, 3].round(4), "m")
