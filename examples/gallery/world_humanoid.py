"""A humanoid falls.

All shapes of the robot can touch the ground and each other; its joints have light damping and rigid
stops. It falls, slides and comes to rest.
"""

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

motion = kt.simulate(world, duration=2.0, store_every=20)
kt.viewer.save_html(motion, "fall.html", zoom=1.4)
kt.viewer.picture(motion, "fall.png", at=0.7, size=(480, 360), zoom=1.4)
energy = kt.kinetic_energy(world.model, motion.q, motion.qd)
print(motion.report)
print(f"kinetic energy: at most {energy.max():.0f} J, at the end {energy[-1]:.1e} J")

# %%
# The same, step by step: `world.contacts()` is a table, whose forces add up to the weight.

world.step(1000)
table = world.contacts()
weight = world.model.total_mass * 9.81
print(
    f"{len(table)} contacts; the ground carries {table.force_on('person')[2] / weight:.3f} weights"
)
