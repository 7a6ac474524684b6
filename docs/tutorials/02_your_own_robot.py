"""Your own robot.

Load a robot from a URDF file, find and fix a mistake in it, and move its tool along a circle by
inverse kinematics; then build the same robot in Python.
"""

# %%
# `kt.load("robot.urdf")` reads a file. Here the text is short enough to show: a lift with an arm,
# and with a mistake in it.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)

URDF = """
<robot name="lift_arm">
  <link name="base"/>
  <joint name="slide" type="prismatic">
    <parent link="base"/> <child link="carriage"/> <axis xyz="0 0 1"/>
    <limit lower="0" upper="800" velocity="1" effort="400"/>
  </joint>
  <link name="carriage"> <inertial> <mass value="8"/>
    <inertia ixx="0.08" iyy="0.08" izz="0.05" ixy="0" ixz="0" iyz="0"/> </inertial> </link>
  <joint name="shoulder" type="revolute">
    <parent link="carriage"/> <child link="arm"/> <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="2" effort="60"/>
  </joint>
  <link name="arm"> <inertial> <origin xyz="0.25 0 0"/> <mass value="3"/>
    <inertia ixx="0.002" iyy="0.06" izz="0.06" ixy="0" ixz="0" iyz="0"/> </inertial> </link>
  <joint name="elbow" type="revolute">
    <origin xyz="0.5 0 0"/> <parent link="arm"/> <child link="forearm"/> <axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="3" effort="30"/>
  </joint>
  <link name="forearm"> <inertial> <origin xyz="0.2 0 0"/> <mass value="1.5"/>
    <inertia ixx="0.001" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/> </inertial> </link>
  <joint name="flange" type="fixed">
    <origin xyz="0.4 0 0"/> <parent link="forearm"/> <child link="tool"/> </joint>
  <link name="tool"/>
</robot>
"""
robot = kt.loads(URDF)
print(robot.summary())

# %%
# The doctor examines the model. Each finding names the part, the reason why it matters, and how to
# fix it.

for finding in kt.check(robot):
    print(finding)
    print("   ", finding.fix)

# %%
# The slide goes to 800 *metres*, which was meant to be millimetres. Fix the text and check again.

fixed = kt.loads(URDF.replace('upper="800"', 'upper="0.8"'))
print("findings:", len(kt.check(fixed)))

# %%
# Move the tool along a circle: 60 targets, solved in one call. Only the position matters here, so
# we use a `PositionTask`.

turn = np.linspace(0, 2 * np.pi, 60)
targets = np.stack([0.6 + 0.15 * np.cos(turn), 0.15 * np.sin(turn), 0 * turn + 0.3], axis=-1)
solved = kt.inverse_kinematics(fixed, kt.ik.PositionTask("tool", targets))
print("solved:", int(solved.success.sum()), "of", len(targets))

elbow = kt.pose(fixed, solved.q, "forearm")[:, :2, 3]
tool = kt.pose(fixed, solved.q, "tool")[:, :2, 3]
fig, ax = plt.subplots(figsize=(4.6, 4))
for e, t in zip(elbow[::5], tool[::5], strict=True):
    ax.plot([0, e[0], t[0]], [0, e[1], t[1]], "o-", color="0.7", lw=1, ms=3)
ax.plot(*targets[:, :2].T, "C3", lw=2)
ax.set_aspect("equal")
ax.set_xlabel("x [m]")
ax.set_ylabel("y [m]")

# %%
# The same robot in Python: a body has a joint, a place on its parent, and an inertia, which shapes
# can compute.

rod = kt.shapes.rod
built = (
    kt.ModelBuilder("lift_arm")
    .body("carriage", joint=kt.Prismatic("z"), inertia=kt.shapes.box(0.2, 0.3, 0.3, mass=8.0))
    .body(
        "arm", on="carriage", joint=kt.Revolute("z"),
        inertia=rod(0.5, mass=3.0, axis="x", at=(0.25, 0, 0)),
    )
    .body(
        "forearm", on="arm", joint=kt.Revolute("z"), at=(0.5, 0, 0),
        inertia=rod(0.4, mass=1.5, axis="x", at=(0.2, 0, 0)),
    )
    .frame("tool", on="forearm", at=(0.4, 0, 0))
    .build()
)  # fmt: skip
q = solved.q[0]
same = np.allclose(kt.pose(fixed, q, "tool"), kt.pose(built, q, "tool"))
print("the tools of both are in the same place:", same)
print("force that holds the lift [N]:", kt.gravity_force(built, q)[0].round(2))
