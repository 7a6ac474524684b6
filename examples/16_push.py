"""An arm pushes a box to a goal.

A Panda pushes a box over a table with two open fingers. It does not grasp the box, and nothing
guides it: friction decides how the box turns, slides and follows the fingers.

    pip install "kinetree[view]"
    python examples/16_push.py                 # prints, and writes push.html

Change the goal, the shape, the mass, the friction or the speed.
"""

import numpy as np

import kinetree as kt
from kinetree.control import OperationalSpaceControl
from kinetree.model.geometry import Box, Cylinder

START, ASKEW = np.array([0.45, -0.2]), 0.4  # of the box on the table [m], [rad]
GOAL, NEAR = np.array([0.55, 0.25]), 0.005  # where the box should be, and how exactly [m]
SPEED, OPEN = 0.15, 0.03  # of the hand [m/s]; of each finger [m]

# %%
# The arm starts behind the box, seen from the goal, with its hand upright and the fingers side by
# side. Two points of contact keep the box from turning; with a single one it would turn away.

panda = kt.samples.panda()
panda = kt.edit.lock(panda, {"left_finger_joint": OPEN, "right_finger_joint": OPEN})
home = panda.posture("home").q
way = (GOAL - START) / np.hypot(*(GOAL - START))
hand = kt.pose(panda, home, "grasp")
hand[:3, :3] = [[way[0], way[1], 0], [way[1], -way[0], 0], [0, 0, -1]]  # x ahead, z down
hand[:3, 3] = [*(START - 0.12 * way), 0.035]
start = kt.inverse_kinematics(panda, "grasp", hand, q0=home).require()

world = kt.World(timestep=2e-3)
world.add(Box((0.9, 1.0, 0.05)), name="table", at=(0.3, 0, -0.025), color=(0.8, 0.75, 0.65, 1))
world.add(Cylinder(0.04, 2e-3), name="goal", at=(*GOAL, 0), color=(0.2, 0.6, 0.3, 1))
arm = world.add(panda, name="arm", q=start)
box = world.add(
    Box((0.12, 0.09, 0.06)), mass=0.5, name="box", friction=0.4, color=(0.9, 0.5, 0.2, 1),
    at=kt.rotz(ASKEW) @ kt.xlt([*START, 0.03]),
)  # fmt: skip
world.exclude("goal", "arm")  # a mark that nothing touches
world.exclude("goal", "box")

# %%
# The hand moves in the direction in which the box has to go. Its height and orientation are held
# by springs, its velocity by a damper only, so that it can be wherever contact lets it be. Once
# the box is there, the hand goes up.


class Push:
    """Controller: moves the hand so that the box goes to the goal."""

    def __init__(self):
        self.arrived = None  # when
        self.control = OperationalSpaceControl(
            panda, "grasp", lambda t: self.reference, kp=1000.0, kd=150.0, posture=start
        )

    def __call__(self, t, q, qd):
        """Forces of all joints of the world; those of the box are zero."""
        goal, v = hand.copy(), np.zeros(6)
        goal[:2, 3] = kt.pose(world.model, q, "arm.grasp")[:2, 3]
        missing = GOAL - kt.pose(world.model, q, "box")[:2, 3]
        distance = np.hypot(*missing)
        if self.arrived is None and distance < NEAR:
            self.arrived = t
        if self.arrived is None:
            v[3:5] = SPEED * missing / distance
        else:
            goal[2, 3] += SPEED * min(t - self.arrived, 1.0)
        self.reference = goal, v, np.zeros(6)
        tau = np.zeros(world.model.nv)
        tau[arm.v_indices] = self.control(t, q[arm.q_indices], qd[arm.v_indices])
        return tau


push = Push()
motion = kt.simulate(world, duration=5.0, controller=push, store_every=10)
place = kt.pose(world.model, motion.q, "box")
left_over = 1000 * np.hypot(*(place[-1, :2, 3] - GOAL))
turned = np.degrees(np.arctan2(place[-1, 1, 0], place[-1, 0, 0]) - ASKEW)
print(f"the box is {left_over:.1f} mm from the goal and has turned by {turned:.0f}°")

# %%
# The forces while it pushes: friction on the table, and the two fingers.

world.step(1000, tau=Push())
print(world.contacts().of("box"))

# %%
# The motion as a page that plays, with arrows for contact forces.

look = {"direction": (1, 0.7, 0.7), "zoom": 1.4}
kt.viewer.save_html(motion, "push.html", **look)
kt.viewer.picture(motion, "push.png", at=2.0, size=(560, 400), **look)
assert push.arrived is not None, "the box did not arrive"
