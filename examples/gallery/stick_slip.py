"""Why a door creaks and a violin sings.

A spring drags a block over a rough table. The block sticks, breaks away, slides and sticks again.
The time of every transition is found exactly; none is smeared over several steps.
"""

import matplotlib.pyplot as plt

import kinetree as kt

plt.style.use(kt.plot.STYLE)
STIFFNESS, SPEED = 60.0, 0.1

block = (
    kt.ModelBuilder("block")
    .body("block", joint=kt.Prismatic("x"), inertia=kt.shapes.box(0.1, 0.1, 0.1, mass=1.0))
    .build()
    .replace(dynamics={"block_joint": kt.JointDynamics(friction=2.0)})  # N, while it slides
)


@kt.kernel
def spring(m, t, q, qd):
    """The free end of the spring moves on at a constant speed."""
    return STIFFNESS * (SPEED * t - q)


# To break away takes 1.8 times as much as to keep sliding.
law = kt.Friction(exact=True, static=1.8, stribeck_velocity=0.0)
motion = kt.simulate(block, [0.0], duration=5.0, dt=0.01, forces=spring, friction=law)
for event in motion.events[:4]:
    print(f"{event.t:.6f} s  {event.name}")
first = 1.8 * 2.0 / (STIFFNESS * SPEED)
print(f"first slip in theory: {first:.6f} s")

fig, (above, below) = plt.subplots(2, 1, figsize=(6, 4), sharex=True)
above.plot(motion.t, motion.q[:, 0], label="block")
above.plot(motion.t, SPEED * motion.t, "0.6", lw=1, label="end of the spring")
above.set_ylabel("position [m]")
above.legend(loc="upper left")
below.plot(motion.t, STIFFNESS * (SPEED * motion.t - motion.q[:, 0]), "C1")
below.axhline(3.6, color="0.6", lw=0.8, ls="--")
below.axhline(2.0, color="0.6", lw=0.8, ls="--")
below.set(xlabel="time [s]", ylabel="force of the spring [N]", ylim=(0, 4))
below.text(5.05, 3.6, "breaks away", va="center", fontsize=8, color="0.4")
below.text(5.05, 2.0, "slides", va="center", fontsize=8, color="0.4")
