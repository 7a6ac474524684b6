"""A quadruped trots under predictive control, is pushed, and goes on.

Every 10 ms a plan of the next 0.3 s is made from the state of the robot: its whole dynamics, with
the contacts of a trot, friction cones and heights of the feet, two iterations from the last plan.
Every millisecond, whole-body control follows the plan.

    python examples/20_mpc_walk.py

Change the speed, the gait or the push.
"""

import time

import numpy as np

import kinetree as kt
from kinetree.control import MPC, Contact, ForceTask, PostureTask, QuadraticCost, WholeBody

DURATION, H, DT = 2.0, 1e-3, 0.01  # of the walk, of a step of the simulation, of the plan [s]
SPEED = 0.4  # forward [m/s]
PUSH, BEGIN, END = np.array([0.0, 60.0, 0.0]), 0.8, 0.9  # [N], [s]; the robot weighs 118 N
FEET = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]

robot = kt.samples.quadruped()
home = robot.posture("home").q
soles = [Contact(foot, friction=0.6) for foot in FEET]
gait = kt.control.trot(soles, swing=0.2, stand=0.03, lift=0.06, ground=0.02)

# %%
# Predictive control: the robot should be level, at its height, in its posture, and fast enough;
# where it is does not matter.

turn, up, ahead, legs = np.zeros((4, robot.nv))  # which velocity variables are which
turn[:3], up[5], ahead[3:5], legs[6:] = 1.0, 1.0, 1.0, 1.0
forward = np.zeros(robot.nv)
forward[3] = SPEED
plan = MPC(
    robot, steps=30, dt=DT, phases=gait, iterations=2, tolerance=1e-4,
    actuated=robot.joint_names[1:], effort_limits=None, position_limits=None, velocity_limits=None,
    running=QuadraticCost(
        q=home, position=100 * turn + 300 * up + 10 * legs, qd=forward,
        velocity=turn + 20 * ahead + 0.02 * legs, effort=1e-2,
    ),
)  # fmt: skip


# %%
# Whole-body control: accelerations and forces of the plan, and the state that it has between steps.


class Walk:
    """Controller: plans at 100 Hz, and torques at every call."""

    def __init__(self):
        self.plans, self.torques = [], []  # times that they took
        self.follow = WholeBody(
            robot,
            [
                PostureTask(lambda t: self.motion, kp=100.0, joints=["root"], name="root"),
                PostureTask(lambda t: self.motion, kp=300.0, weight=0.05),
                *(ForceTask(f, lambda t, f=f: self.forces.get(f), weight=1e-4) for f in FEET),
            ],
            soles,
            stance=lambda t: self.closed,
        )

    def __call__(self, t, q, qd):
        begin = time.thread_time()
        if plan.plan is None or t >= plan.asked_at + DT - 1e-9:
            plan(t, q, qd)
            self.plans.append(time.thread_time() - begin)
            begin = time.thread_time()
        p, s = plan.plan, (t - plan.planned_at) / DT + 1e-9
        k = min(int(s), len(p.tau) - 1)
        v, change = p.qd[k], p.qd[k + 1] - p.qd[k]
        self.motion = (
            robot.integrate(p.q[k], (s - k) * DT * p.qd[k + 1]),
            v + (s - k) * change,
            change / DT,
        )
        self.closed = gait.closed(t)
        self.forces = {f: p.forces[f][k, 0] for f in self.closed}
        tau = self.follow(t, q, qd)
        self.torques.append(time.thread_time() - begin)
        return tau


# %%
# The world: rigid contact between feet and ground, and a push from the side.

world = kt.World(timestep=H)
world.add_ground(friction=0.8)
dog = world.add(robot, name="dog", q=home)
walk, n = Walk(), int(DURATION / H)
walk(0.0, home, np.zeros(robot.nv))  # the first plan, before it starts
states, begin = [], 0.0
for k in range(n):
    if k == 1:
        begin = time.thread_time()  # without what the first step loads
    t = k * H
    q, qd = world.q[dog.q_indices], world.qd[dog.v_indices]
    tau = walk(t, q, qd)
    if BEGIN <= t < END:
        tau[3:6] += kt.pose(robot, q, "trunk")[:3, :3].T @ PUSH
    world.step(tau=tau)
    states.append(world.q.copy())
spent = time.thread_time() - begin

states = np.array(states)
trunk = states[:, :3]
aside = 1000 * np.ptp(trunk[:, 1])
print(f"walked {trunk[-1, 0]:.2f} m in {DURATION:g} s, pushed aside by {aside:.0f} mm")
print(f"height of the trunk: {trunk[:, 2].min():.3f} to {trunk[:, 2].max():.3f} m")
plans, torques = 1e3 * np.median(walk.plans[1:]), 1e3 * np.median(walk.torques)
print(f"a plan takes {plans:.1f} ms, torques {torques:.2f} ms; {DURATION:g} s took {spent:.1f} s")
assert trunk[:, 2].min() > 0.2, "it fell"
assert trunk[-1, 0] > 0.5 * SPEED * DURATION, "it does not walk"
