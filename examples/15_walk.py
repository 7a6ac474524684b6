"""A quadruped from a URDF file walks.

ANYmal trots over flat ground: two diagonal legs stand while the other two swing, and whole-body
control finds the torques. Any robot with four legs of three joints will do.

    pip install "kinetree[qp,view]" example-robot-data
    python examples/15_walk.py                 # ANYmal, from example-robot-data
    python examples/15_walk.py go1.urdf        # your own

Change the numbers at the top and find out when it falls.
"""

import sys
import warnings
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np

import kinetree as kt
from kinetree.control import Contact, FrameTask, PostureTask, WholeBody
from kinetree.ik import PositionTask

SPEED, TURN = 0.5, 0.0  # forward [m/s], to the left [rad/s]
HEIGHT = 0.85  # of the hips, in lengths of a straight leg
DURATION = 7.0  # [s]

ROBOTS = "cmeel.prefix/share/example-robot-data/robots"
ANYMAL = f"{ROBOTS}/anymal_b_simple_description/robots/anymal.urdf"
given = [name for name in sys.argv[1:] if name.endswith(".urdf")]
try:
    file = given[0] if given else distribution("example-robot-data").locate_file(ANYMAL)
except PackageNotFoundError:
    sys.exit("pip install example-robot-data, or name a file: python 15_walk.py robot.urdf")

# %%
# A URDF file says neither that the base is free nor how the robot stands. `Scene(..., "feet")`
# finds what touches the ground first; here these are four spheres. Inverse kinematics bends the
# legs so that each foot stays below its hip.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", kt.ModelWarning)  # "kinetree check robot.urdf" shows them
    robot = kt.contact.with_ground(kt.load(file, floating_base=True))
scene = kt.contact.Scene(robot, "feet", friction=0.8)
feet = [pair.second.link for pair in scene.pairs]  # the two in front, then the two behind
trunk, legs = robot.body_names[1], robot.joint_names[2:]

straight = robot.neutral()
below = np.array([kt.pose(robot, straight, foot)[:3, 3] for foot in feet]) * [1, 1, HEIGHT]
leg = -below[:, 2].mean()
STEP, LIFT = 0.4 * np.sqrt(leg), 0.15 * leg  # of a swing: duration [s], height [m]
bent = straight.copy()
bent[7:] = np.outer(np.sign(below[:, 0]), [0, 0.6, -1.2]).ravel()  # knees towards the middle
tasks = [PositionTask(foot, place) for foot, place in zip(feet, below, strict=True)]
stand = kt.inverse_kinematics(robot, tasks, q0=bent, joints=legs).require()
stand[2] -= scene.contacts(stand, margin=10.0).gap.min()  # down to the ground, or up
height = [kt.pose(robot, stand, foot)[2, 3] for foot in feet]  # of the frames of the feet
print(f"{robot.name} stands {stand[2]:.3f} m high on {', '.join(feet)}")

# %%
# The gait. A foot that swings goes to where it will be below its hip in the middle of the next
# stance, and a little farther if the robot is faster than it should be (Raibert's rule).


class Trot:
    """Controller: phases of the legs, paths of the feet, torques by whole-body control."""

    def __init__(self):
        swings = [
            FrameTask(foot, partial(self.swing, k), task="position", kp=900.0)
            for k, foot in enumerate(feet)
        ]
        self.control = WholeBody(
            robot,
            [FrameTask(trunk, self.trunk, kp=100.0), *swings, PostureTask(stand, weight=1e-3)],
            [Contact(foot, friction=0.6) for foot in feet],
            stance=lambda t: [foot for k, foot in enumerate(feet) if not self.swinging(t, k)],
        )
        self.lifted = [None] * 4

    def __call__(self, t, q, qd):
        """Torques of the joints."""
        self.pose = kt.pose(robot, q, trunk)
        self.velocity = self.pose[:3, :3] @ qd[3:6]
        for k, foot in enumerate(feet):
            if not self.swinging(t, k):
                self.lifted[k] = kt.pose(robot, q, foot)[:3, 3]  # until it leaves the ground
        return self.control(t, q, qd)

    def swinging(self, t, k):
        """Whether leg ``k`` swings: after a first stand, legs 0, 3 and legs 1, 2 take turns."""
        return t >= STEP and int(t / STEP) % 2 == (k in (0, 3))

    def course(self, t):
        """Heading [rad] and velocity [m/s] at a time; it starts gently."""
        walking = max(t - STEP, 0.0)
        heading, speed = TURN * walking, SPEED * min(walking, 1.0)
        return heading, speed * np.array([np.cos(heading), np.sin(heading), 0.0])

    def trunk(self, t):
        """Pose, velocity and acceleration that the trunk should have: level, at its height."""
        heading, velocity = self.course(t)
        goal = self.pose.copy()  # wherever it is
        goal[:3, :3], goal[2, 3] = turned(heading), stand[2]
        return goal, np.concatenate([[0, 0, TURN], velocity]), np.zeros(6)

    def swing(self, k, t):
        """Position, velocity and acceleration of foot ``k``, or None while it stands."""
        if not self.swinging(t, k):
            return None
        s, w = t / STEP % 1.0, np.pi / STEP
        heading, wanted = self.course(t)
        hip = self.pose[:3, 3] + turned(heading) @ below[k]
        goal = hip + self.velocity * (1.5 - s) * STEP + 0.1 * (self.velocity - wanted)
        along, up = goal - self.lifted[k], np.array([0, 0, LIFT])
        along[2] = height[k] - 0.005 - self.lifted[k][2]  # it must not land too late
        c, c2 = np.cos(np.pi * s), np.cos(2 * np.pi * s)
        d, d2 = np.sin(np.pi * s), np.sin(2 * np.pi * s)
        return (
            self.lifted[k] + along * (1 - c) / 2 + up * (1 - c2) / 2,
            along * w * d / 2 + up * w * d2,
            along * w * w * c / 2 + 2 * up * w * w * c2,
        )


def turned(angle):
    """Rotation about the vertical."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


# %%
# Walk. Rigid contact between feet and ground, in steps of 2 ms.

walk = kt.simulate(
    robot, stand, duration=DURATION, dt=2e-3, controller=Trot(),
    contact=kt.contact.TimeStepping(scene), store_every=10,
)  # fmt: skip
place = kt.pose(robot, walk.q, trunk)
tilt = np.degrees(np.arccos(np.clip(place[:, 2, 2], -1, 1)))
print(f"walked {np.hypot(*(place[-1, :2, 3] - place[0, :2, 3])):.2f} m in {DURATION:g} s, "
      f"trunk {place[:, 2, 3].min():.3f} to {place[:, 2, 3].max():.3f} m high, "
      f"tilted by at most {tilt.max():.1f}°")  # fmt: skip

# %%
# The motion as a page that plays.

kt.viewer.save_html(walk, "walk.html")
kt.viewer.picture(walk, "walk.png", at=0.6 * DURATION, size=(560, 400))
assert place[:, 2, 3].min() > 0.8 * stand[2], "it fell"
