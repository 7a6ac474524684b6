"""A humanoid falls.

All shapes of the robot touch the ground and each other; its joints have a little damping and rigid
stops. It falls, slides, and comes to rest.
"""

import numpy as np

import kinetree as kt

robot = kt.samples.humanoid()
robot = robot.replace(
    dynamics={
        b.joint_name: kt.JointDynamics(damping=2.0)
        for b in robot.bodies
        if b.joint.nv and not isinstance(b.joint, kt.Free)
    }
)
world = kt.World("fall", timestep=2e-3)
world.add_ground(friction=0.7)
person = world.add(robot, name="person", spin=(0.5, 1.0, 0.0))

positions, energy = [], []
for _ in range(50):
    positions.append(world.q)
    energy.append(kt.kinetic_energy(world.model, world.q, world.qd))
    world.step(20)
t = 0.04 * np.arange(len(positions))
kt.viewer.save_html(world.model, "fall.html", np.array(positions), t=t)
kt.viewer.picture(world.model, "fall.png", positions[15], size=(480, 360))
print(world.report())
print(f"kinetic energy: at most {max(energy):.0f} J, at the end {energy[-1]:.1e} J")
table = world.contacts()
weight = world.model.total_mass * 9.81
print(
    f"{len(table)} contacts; the ground carries {table.force_on('person')[2] / weight:.3f} weights"
)
