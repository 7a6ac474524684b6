"""A quadruped stands on the ground, is pushed, and stays up; pushed harder, it falls.

python examples/13_stance.py           # prints, and writes stance.html

Change the goal of the trunk, the weights, the friction or the pushes, and see what happens.
"""

import sys

import numpy as np

import kinetree as kt
from kinetree.control import Contact, FrameTask, PostureTask, WholeBody

world = kt.World(timestep=2e-3)
world.add_ground(friction=0.8)
dog = world.add("quadruped", name="dog")  # or the path of a URDF file, with fixed=False

robot = kt.samples.quadruped()
home = robot.posture("home").q
start = kt.pose(robot, home, "trunk")
legs = ("front_left", "front_right", "rear_left", "rear_right")


def trunk(t):
    """Pose, velocity and acceleration of the trunk: it bows up and down, 2 cm, once a second."""
    goal, v, a, w = start.copy(), np.zeros(6), np.zeros(6), 2 * np.pi
    goal[2, 3] += 0.02 * (np.cos(w * t) - 1)
    v[5], a[5] = -0.02 * w * np.sin(w * t), -0.02 * w * w * np.cos(w * t)
    return goal, v, a


stand = WholeBody(
    robot,
    tasks=[
        FrameTask("trunk", trunk, kp=100.0),
        PostureTask(home, kp=20.0, priority=2),  # as far as the trunk does not mind
    ],
    contacts=[Contact(f"{leg}_foot", friction=0.6, least=1.0) for leg in legs],
)


def control(t, q, qd):
    """Forces of the motors; pushes act on the trunk as forces of its free joint would."""
    tau = np.zeros(world.model.nv)
    found = stand.solve(t, q[dog.q_indices], qd[dog.v_indices])
    if "contacts" in found.relaxed:  # its feet cannot stay: from now on it only damps its joints
        FALLS.append(t)
    tau[dog.v_indices] = found.tau
    if FALLS:
        tau[dog.v_indices[6:]] = -0.5 * qd[dog.v_indices[6:]]
    for begin, force in PUSHES:
        if begin <= t < begin + 0.1:
            R = kt.pose(world.model, q, "dog.trunk")[:3, :3]
            tau[dog.v_indices[3:6]] += R.T @ force  # along the axes of the trunk
    return tau


FALLS = []  # times at which feet could not stay
PUSHES = [  # time [s], force [N] during 0.1 s; the robot weighs 118 N
    (0.5, np.array([0.0, 40.0, 0.0])),
    (1.2, np.array([-40.0, 0.0, 0.0])),
]

motion = kt.simulate(world, duration=2.0, controller=control)
place = kt.pose(world.model, motion.q, "dog.trunk")[:, :3, 3]
aside = np.abs(place - np.array([trunk(t)[0][:3, 3] for t in motion.t])).max(axis=0)
print("largest error of the trunk along x, y, z [mm]:", (1000 * aside).round(1))
print("at the end [mm]:", (1000 * (place[-1] - trunk(motion.t[-1])[0][:3, 3])).round(1))
feet = [kt.pose(world.model, motion.q[[0, -1]], f"dog.{leg}_foot")[:, :3, 3] for leg in legs]
print("feet moved by [mm]:", [round(1000 * float(np.linalg.norm(p[1] - p[0])), 1) for p in feet])
found = stand.solve(0.0, motion.q[-1][dog.q_indices], motion.qd[-1][dog.v_indices])
print("upward forces on the feet [N]:", [round(float(f[0, 2]), 1) for f in found.forces.values()])
assert abs(place[-1, 2] - start[2, 3]) < 0.01, "it fell"

# A push that no friction can stand: contacts give way, torques go on, and it falls.
PUSHES[:] = [(0.1, np.array([0.0, 600.0, 0.0]))]
fall = kt.simulate(world, duration=1.2, controller=control)
height = kt.pose(world.model, fall.q, "dog.trunk")[:, 2, 3]
print(f"it begins to fall at {FALLS[0]:.3f} s")
print("height of the trunk when pushed hard [m]:", height[::100].round(2))
if sys.argv[1:] != ["--quiet"]:
    kt.viewer.save_html(motion, "stance.html")
    kt.viewer.save_html(fall, "fall.html")
