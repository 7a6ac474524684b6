"""Trajectory optimization through contact: a quadruped jumps forward, lands, and stands."""

import numpy as np

import kinetree as kt

DISTANCE, HEIGHT = 0.4, 0.1  # of the jump [m]
SOLE = 0.02  # radius of a foot [m]

# --- the robot: only its feet touch the ground ---------------------------------------------------
robot = kt.samples.quadruped()
feet = tuple(g for g in robot.geometry if isinstance(g.shape, kt.geometry.Sphere))
robot = kt.contact.with_ground(robot.replace(geometry=feet, contact_pairs=()))
scene = kt.contact.Scene(robot, pairs="base", friction=0.6)
names = [f.name for f in robot.frames]
home = robot.posture("home").q
there = home.copy()
there[0] += DISTANCE


# --- what a good jump is -------------------------------------------------------------------------
@kt.kernel
def flight(m, t, q, qd, height):
    """In the middle of the motion all feet should be this high."""
    weight = kt.select((t > 0.44) & (t < 0.57), 10.0, 0.0)
    return np.array([weight * (kt.pose(m, q, name)[2, 3] - height) for name in names])


turn, move, legs = np.zeros((3, robot.nv))  # which velocity variables are which
turn[:3], move[3:6], legs[6:] = 1.0, 1.0, 1.0
along = kt.control.QuadraticCost(
    q=home, position=turn + 0.1 * legs, velocity=0.01 * turn + 1e-3 * legs, effort=1e-4 * legs
)
end = kt.control.QuadraticCost(q=there, position=100 * (turn + move) + 10 * legs, velocity=1.0)

# --- the plan: relaxed contact has derivatives ---------------------------------------------------
found = kt.control.optimize(
    robot, home, steps=50, dt=0.02, actuated=robot.joint_names[1:], running=[along, flight],
    terminal=end, arguments={"height": HEIGHT + SOLE}, tolerance=1e-3,
    contact=kt.contact.TimeStepping(scene, relaxation=0.1),
)  # fmt: skip
print(found)
assert found.converged
assert found.tau is not None


def clearance(q):
    """Height of the lowest foot above the ground, at every instant."""
    return np.min([kt.pose(robot, q, name)[:, 2, 3] for name in names], axis=0) - SOLE


print(f"the plan: {clearance(found.q).max():.3f} m high, {found.q[-1, 0]:.3f} m far, torques up to "
      f"{np.abs(found.tau).max():.1f} N·m of {robot.effort_limits[-1]} N·m")  # fmt: skip

# --- rigid contact, short steps, and the feedback of the plan ------------------------------------
motion = kt.simulate(
    robot, home, duration=1.5, dt=1e-3, controller=found.controller(),
    contact=kt.contact.TimeStepping(scene),
)  # fmt: skip
print(f"simulated: {clearance(motion.q).max():.3f} m high, {motion.q[-1, 0]:.3f} m far")
assert clearance(motion.q).max() > 0.8 * HEIGHT
assert abs(motion.q[-1, 0] - DISTANCE) < 0.05
assert np.abs(robot.difference(there, motion.q[-1])[:3]).max() < 0.05  # upright
assert np.abs(motion.qd[-1]).max() < 0.5
# kt.view(motion) shows it
