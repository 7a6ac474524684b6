"""Drop objects on a table, beside a robot, in rigid contact."""

from pathlib import Path

import numpy as np

import kinetree as kt

world = kt.World()
world.add_ground(friction=0.8)
world.add(kt.geometry.Box((0.6, 0.6, 0.4)), name="table", at=(0.8, 0, 0.2))
box = world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, name="box", at=(0.8, 0, 0.7))
ball = world.add(
    kt.geometry.Sphere(0.05), density=500, name="ball", at=(0.8, 0.2, 0.6), restitution=0.5
)
arm = world.add(Path(__file__).parent / "arm.urdf", name="arm", fixed=True)


def hold(t, q, qd):
    """Joint forces of the arm: its weight, and a spring that keeps it where it began."""
    return {"arm": kt.gravity_force(world.model, q)[arm.v_indices] - 20 * q[arm.q_indices]}


motion = kt.simulate(world, duration=1.0, controller=hold)  # the world itself stays
world.step(500, tau=hold)  # one second: steps of 2 ms
print(world)
print("the box stands at", world["box"].position.round(6), "m")
print("the table carries", world.contacts().force_on("box")[2].round(3), "N of it")
print("simulate and step end alike:", np.array_equal(motion.q[-1], world.q))
print("penetration below 1e-9 m:", world.report().penetration < 1e-9)
