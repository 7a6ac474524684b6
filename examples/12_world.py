"""A world: a robot arm, boxes and a ball on the ground, in rigid contact.

python examples/12_world.py            # prints, and writes world.html
"""

import sys

import kinetree as kt
from kinetree.model.geometry import Box, Sphere

world = kt.World(timestep=2e-3)
world.add_ground(friction=0.8)
arm = world.add(
    "panda", name="arm"
)  # a sample; or a Model, or the path of a URDF, MJCF or SDF file
world.add(Box((0.1, 0.1, 0.1)), mass=0.5, at=[(0.5, 0, 0.05), (0.5, 0, 0.15), (0.5, 0, 0.25)])
ball = world.add(Sphere(0.05), density=500, name="ball", at=(1, 0.02, 0.2), velocity=(-4, 0, 0.5))


def hold(t, q, qd):
    """Joint forces that carry the weight of the arm."""
    tau = 0 * qd
    tau[arm.v_indices] = kt.gravity_force(world.model, q)[arm.v_indices]
    return tau


world.step(25, tau=hold)  # 0.05 s
print(world)
print(world.contacts())
print(world.report())
print("the ball is at", ball.position.round(3), "m and moves at", ball.velocity.round(3), "m/s")

motion = kt.simulate(world, duration=0.4, controller=hold)  # from here on; the world stays
print(motion.report)
if sys.argv[1:] != ["--quiet"]:
    kt.viewer.save_html(motion, "world.html")
