"""Why a long arm sways slowly.

The oil in a hydraulic cylinder acts as a spring. With its valves closed, an excavator sways on it.
The linear model of the closed chain gives the frequency in every posture, and shows how much a
damper helps.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
OIL = 2.5e6  # N/m
machine, strokes = kt.samples.excavator(), ["piston_joint", "stick_joint"]


def shut_off(damping):
    """The machine with oil in the cylinder and a stiff motor at the stick."""
    parts = {
        "piston_joint": kt.JointDynamics(stiffness=OIL, damping=damping),
        "stick_joint": kt.JointDynamics(stiffness=4e5, damping=damping / 20),
    }
    return machine.replace(dynamics=parts)


# Lower the boom and stretch the stick: the cylinder is prescribed, the loop follows.
reach, slowest = [], []
stiff, rest = shut_off(0.0), np.zeros(machine.nv)
way = {"piston_joint": np.linspace(0, -0.3, 16), "stick_joint": np.linspace(0, 0.8, 16)}
raised = kt.loops.follow(machine, machine.neutral(), way).q
for q in raised:
    q, tau = kt.control.equilibrium(stiff, q, actuated=strokes)
    linear = kt.linearize(stiff, q, rest, tau)
    reach.append(kt.pose(machine, q, "bucket")[0, 3])
    slowest.append(np.min(abs(linear.eigenvalues.imag)) / (2 * np.pi))
print(f"slowest mode: {slowest[0]:.2f} Hz to {slowest[-1]:.2f} Hz")

fig, ax = plt.subplots(figsize=(5, 3.4))
ax.plot(reach, slowest, "o-", ms=3)
ax.set(xlabel="reach of the bucket [m]", ylabel="slowest mode [Hz]")

# %%
systems = []
for damping in (0.0, 2e4, 6e4):
    m = shut_off(damping)
    q, tau = kt.control.equilibrium(m, machine.neutral(), actuated=strokes)
    systems.append(kt.linearize(m, q, rest, tau))
kt.plot.eigenvalues(*systems, names=["no damping", "some", "more"])
